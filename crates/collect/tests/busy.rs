//! A drain among others: one that a busy ring does not keep, and one that waits for its turn.

use aclshim_collect::drain::Drain;
use aclshim_collect::drain::inside::{self, Host};
use aclshim_trace::reader::{self, ReadMode, Ring, RingFile};
use aclshim_trace::record::slot::{Head, Layout, Slot};
use aclshim_trace::ring::cursor::RingCursor;
use aclshim_trace::ring::file::{self, OwnRingFile, RingSize};
use aclshim_trace::ring::layout::{Control, Header, Mode};
use aclshim_trace::ring::storage::FixedStorage;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

const SLOTS: u32 = 4096;

/// A process of ours with one ring, and where things are.
struct Process {
    folder: PathBuf,
    file: OwnRingFile,
    control: &'static Control,
    slots: &'static [Slot],
}

impl Process {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("aclshim-busy-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let bytes = folder.as_os_str().as_bytes();
        let made = file::create(bytes, RingSize::fixed(SLOTS), |header| {
            header.functions = 1;
            header.names[..11].copy_from_slice(b"aclrtMemcpy");
            header.dir[..bytes.len()].copy_from_slice(bytes);
            (header.segment, header.budget) = (1 << 30, 1 << 40);
        })
        .unwrap();
        let (control, slots) = made.add_ring(bytes, 0).unwrap();
        control.owner.store(7, Ordering::Relaxed);
        made.header.rings.store(1, Ordering::Release);
        Self { folder, file: made, control, slots }
    }

    fn ring(&self) -> Ring<'static> {
        Ring { control: self.control, slots: self.slots }
    }

    fn place(&self) -> RingCursor {
        let place = RingCursor::default();
        place.open(self.control, self.slots, SLOTS, Mode::Audit, 0);
        place
    }
}

/// Makes a call if there is room for it, or comes while `wait` says so.
fn call(place: &RingCursor, wait: impl FnMut() -> bool) -> bool {
    // SAFETY: the place was opened, and is this thread's.
    let number =
        place.claim(1).or_else(|claimed| unsafe { place.make_room(claimed, 1, 0, &FixedStorage, wait) }.ok_or(()));
    let Ok(number) = number else { return false };
    // SAFETY: the place was opened.
    unsafe { place.slot(number) }.put(Head::done(number, Layout::Linear, 0), &[1000, 7, 1, 2, 3, 64, 0]);
    true
}

#[test]
fn a_ring_that_is_written_all_the_time_does_not_keep_its_drain() {
    let process = Process::new("busy");
    let (mut most, is_over) = (0, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let place = process.place();
            while !is_over.load(Ordering::Relaxed) {
                call(&place, || !is_over.load(Ordering::Relaxed));
            }
        });
        let mut drain = Drain::outside(process.file.header);
        let ring = |number| (number == 0).then(|| process.ring());
        let mut passes = 0;
        while passes < 20 {
            let moved = drain.pass(process.file.header, ring, ReadMode::Drain);
            passes += u32::from(moved > 0);
            most = moved.max(most);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(most <= u64::from(SLOTS) + 2 * 1024, "{most} slots in one pass");
    fs::remove_dir_all(&process.folder).unwrap();
}

/// What a drain inside is told and answers.
static ASKED: AtomicU32 = AtomicU32::new(0);
static ANSWERED: AtomicU32 = AtomicU32::new(0);

struct Here<'a>(&'a Process);

impl Host for Here<'_> {
    fn header(&self) -> Option<&'static Header> {
        Some(self.0.file.header)
    }

    fn ring_dir(&self) -> &[u8] {
        self.0.folder.as_os_str().as_bytes()
    }

    fn ring(&self, ring: usize) -> Option<Ring<'static>> {
        (ring == 0).then(|| self.0.ring())
    }

    fn asked(&self) -> u32 {
        ASKED.load(Ordering::Acquire)
    }

    fn answer(&self, asked: u32) {
        ANSWERED.store(asked, Ordering::Release);
    }

    fn wait(&self, _: u32, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns.min(1_000_000)));
    }

    fn is_first_thread_gone(&self) -> bool {
        false
    }
}

/// Waits until something is so.
#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::yield_now();
    }
}

fn only(folder: &Path) -> PathBuf {
    let [path] = &reader::files(folder).unwrap()[..] else { panic!("one ring") };
    path.clone()
}

#[test]
fn a_drain_inside_goes_on_when_somebody_outside_lets_the_ring_go() {
    let process: &'static Process = Box::leak(Box::new(Process::new("taken")));
    let taken = RingFile::open_to_drain(&only(&process.folder)).unwrap();
    // It ends with this process.
    std::thread::spawn(|| inside::run(&Here(process)));
    ASKED.store(1, Ordering::Release);
    until("it answers", || ANSWERED.load(Ordering::Acquire) == 1);
    assert!(call(&process.place(), || false));
    assert_eq!(process.control.drained.load(Ordering::Acquire), 0, "the other one has it");
    drop(taken);
    until("the call is written", || process.control.drained.load(Ordering::Acquire) == 1);
    let _ = fs::remove_dir_all(&process.folder);
}
