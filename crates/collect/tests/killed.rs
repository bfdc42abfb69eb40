//! What a process leaves that was killed, and what its drain leaves that was killed with it: the records are in the
//! ring, and nothing else does harm.

use aclshim_collect::drain::Drain;
use aclshim_collect::drain::adoption::{self, Adoption};
use aclshim_collect::drain::outside::Outside;
use aclshim_collect::interpreter::visitor::NoVisitor;
use aclshim_collect::storage::budget::Sizes;
use aclshim_collect::storage::file_names::{FileNameValues, stem};
use aclshim_collect::storage::rotation::OutputLocation;
use aclshim_collect::storage::segment::TraceWriter;
use aclshim_collect::trace_set::{ReadOptions, TraceSet};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, ReadMode, RingFile};
use aclshim_trace::record::slot::{self, Layout};
use aclshim_trace::ring::cursor::RingCursor;
use aclshim_trace::ring::file::{self, RingSize};
use aclshim_trace::ring::layout::{Header, Mode};
use aclshim_trace::segment::format::{BlockHead, Preamble};
use aclshim_trace::segment::reader::SegmentReader;
use aclshim_trace::system::namespace;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

const CALLS: u64 = 5;

/// The ring file of a dead process of another boot, which writes to `out`; and its only ring.
fn ring_of(folder: &Path, out: &Path, mode: Mode) -> (PathBuf, RingCursor) {
    let (folder_bytes, out_bytes) = (folder.as_os_str().as_bytes(), out.as_os_str().as_bytes());
    let made = file::create(folder_bytes, RingSize::fixed(64), |header| {
        header.functions = 1;
        header.names[..11].copy_from_slice(b"aclrtMemcpy");
        header.dir[..out_bytes.len()].copy_from_slice(out_bytes);
        header.boot_id[..8].copy_from_slice(b"not here");
        // The counter began anew since.
        let [ticks, realtime, monotonic] = header.born.get();
        header.born.store([ticks, realtime - 3_600_000_000_000, monotonic]);
        // Its pid is ours now.
        (header.pid_ns, header.time_ns, header.start_time) = (namespace::pid(), namespace::time(), 1);
        (header.segment, header.budget) = (1 << 20, 1 << 30);
    })
    .unwrap();
    let (control, slots) = made.add_ring(folder_bytes, 0).unwrap();
    control.owner.store(7, Ordering::Relaxed);
    let place = RingCursor::default();
    place.open(control, slots, 64, mode, 0);
    made.header.rings.store(1, Ordering::Release);
    (reader::files(folder).unwrap().remove(0), place)
}

/// Makes so many calls.
fn call(place: &RingCursor, calls: u64) {
    for _ in 0..calls {
        let number = place.claim(1).unwrap();
        let head = slot::Head::done(number, Layout::Linear, 0);
        // SAFETY: the place was opened.
        unsafe { place.slot(number) }.put(head, &[1000 + number, 7, 1, 2, 3, 64, 0]);
    }
}

/// The ring file of a process that has made so many calls.
fn ring_file(folder: &Path, out: &Path) -> PathBuf {
    let (path, place) = ring_of(folder, out, Mode::Audit);
    call(&place, CALLS);
    path
}

/// Calls, slots in traces and in rings, and of how many files something is said.
fn read(out: &Path, rings: &Path) -> (u64, [u64; 2], usize) {
    let mut set = TraceSet::new(ReadOptions { ring_folders: vec![rings.to_owned()], ..ReadOptions::default() });
    set.read(&[out], &mut NoVisitor).unwrap();
    let troubles = set.troubles.len();
    let [process] = &set.processes().collect::<Vec<_>>()[..] else { panic!("one process") };
    (process.totals.total().calls, process.slots, troubles)
}

#[test]
fn what_another_boot_has_left_is_not_dated_by_the_ticks_of_this_one() {
    let folder = std::env::temp_dir().join(format!("aclshim-killed-{}-boot", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let out = folder.join("out");
    fs::create_dir_all(&out).unwrap();
    let ring = RingFile::open_to_drain(&ring_file(&folder, &out)).unwrap();
    let before = Origin::new(ring.header());
    adoption::finish(ring);
    let mut set = TraceSet::default();
    set.read(&[&out], &mut NoVisitor).unwrap();
    let [process] = &set.processes().collect::<Vec<_>>()[..] else { panic!("one process") };
    assert_eq!(process.origin.calibration, before.calibration);
    let mut files = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    let trace = files.find(|path| path.extension() == Some("acltrace".as_ref())).unwrap();
    let blocks: Vec<_> = SegmentReader::open(File::open(trace).unwrap()).unwrap().map(Result::unwrap).collect();
    assert!(!blocks.is_empty() && blocks.iter().all(|block| block.head.ticks == 0));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_was_written_and_overwritten_before_it_was_given_back_is_not_lost() {
    let folder = std::env::temp_dir().join(format!("aclshim-killed-{}-back", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let out = folder.join("out");
    fs::create_dir_all(&out).unwrap();
    let (path, place) = ring_of(&folder, &out, Mode::Flight);
    let overwritten = |message: &str| {
        let mut set = TraceSet::new(ReadOptions { ring_folders: vec![folder.clone()], ..ReadOptions::default() });
        set.read(&[&out], &mut NoVisitor).unwrap();
        let [process] = &set.processes().collect::<Vec<_>>()[..] else { panic!("one process") };
        let calls = process.totals.total().calls;
        assert_eq!(calls + process.overwritten(), 150, "{message}: each call is there or is said to be lost");
        process.overwritten()
    };
    call(&place, 100);
    {
        let mut file = RingFile::open_to_drain(&path).unwrap();
        file.look_for_rings();
        Drain::outside(file.header()).pass(file.header(), |number| file.ring(number), ReadMode::Drain);
        // As if it had been killed before it could give anything back.
        let control = file.ring(0).unwrap().control;
        assert_eq!(control.drained.swap(0, Ordering::Relaxed), 100);
        assert_eq!(control.overwritten.swap(0, Ordering::Relaxed), 36);
    }
    call(&place, 50);
    assert_eq!(overwritten("in the ring"), 36);
    adoption::finish(RingFile::open_to_drain(&path).unwrap());
    assert_eq!(overwritten("in the trace"), 36);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_trace_that_was_cut_before_its_first_block_is_harmless_and_goes_in_time() {
    for length in [0, 100, 8192] {
        let folder = std::env::temp_dir().join(format!("aclshim-killed-{}-{length}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let out = folder.join("out");
        fs::create_dir_all(&out).unwrap();
        let ring = ring_file(&folder, &out);
        let whole = Preamble::default().to_bytes(&[0; size_of::<Header>()]);
        assert!(length < whole.len());
        let stem = stem(b"", &FileNameValues { pid: std::process::id(), ..FileNameValues::default() });
        let cut = out.join(format!("{stem}.acltrace"));
        fs::write(&cut, &whole[..length]).unwrap();
        let said = usize::from(length > 0); // an empty one may be just being made

        assert_eq!(read(&out, &folder), (CALLS, [0, CALLS], said), "{length}: the records are in the ring");
        adoption::finish(RingFile::open_to_drain(&ring).unwrap());
        assert!(!ring.exists() && out.join(format!("{stem}+2.acltrace")).exists(), "{length}: a file of its own");
        assert_eq!(fs::read(&cut).unwrap(), &whole[..length], "{length}: nothing is written behind it");
        assert_eq!(read(&out, &folder), (CALLS, [CALLS, 0], said), "{length}");

        // Where room is short it goes; an empty one when it is too old to be just being made.
        let make_room = |stem: &str| {
            let place =
                OutputLocation { dir: out.clone(), stem: stem.into(), sizes: Sizes { segment: 1 << 20, budget: 1 } };
            TraceWriter::new(place, &[]).append(&BlockHead::default(), &[]).unwrap();
        };
        make_room("a");
        assert_eq!(cut.exists(), length == 0, "{length}");
        let old = SystemTime::now() - Duration::from_secs(120);
        let _ = File::options().append(true).open(&cut).map(|file| file.set_modified(old));
        make_room("b");
        assert!(!cut.exists(), "{length}");
        fs::remove_dir_all(folder).unwrap();
    }
}

/// A folder with a directory for what is written.
fn folders(name: &str) -> (PathBuf, PathBuf) {
    let folder = std::env::temp_dir().join(format!("aclshim-killed-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let out = folder.join("out");
    fs::create_dir_all(&out).unwrap();
    (folder, out)
}

#[test]
fn a_ring_that_cannot_be_mapped_is_kept() {
    let (folder, out) = folders("unmapped");
    let path = ring_file(&folder, &out);
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(1 << 20).unwrap();
    // In the middle of a page, where something stands: as much use as want of memory.
    let begin = RingFile::open(&path).unwrap().header().first + 4096 + 8;
    file.write_all_at(&begin.to_le_bytes(), std::mem::offset_of!(Header, first) as u64).unwrap();
    adoption::finish(RingFile::open_to_drain(&path).unwrap());
    assert!(path.exists());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_could_not_be_written_once_does_not_keep_a_ring_for_ever() {
    let (folder, out) = folders("stale");
    let path = ring_file(&folder, &out);
    let mut file = RingFile::open_to_drain(&path).unwrap();
    let mut drain = Drain::outside(file.header());
    file.look_for_rings();
    assert_eq!(drain.pass(file.header(), |number| file.ring(number), ReadMode::Drain), CALLS);
    fs::rename(&out, folder.join("elsewhere")).unwrap();
    fs::remove_dir_all(folder.join("elsewhere")).unwrap();
    fs::write(&out, "no directory").unwrap();
    assert!(!adoption::finish_with(&mut file, &mut drain), "its end cannot be written");
    fs::remove_file(&out).unwrap();
    assert!(adoption::finish_with(&mut file, &mut drain) && !path.exists());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_ring_of_another_directory_is_removed_only_when_all_is_told() {
    let (folder, out) = folders("others");
    let (first, place) = ring_of(&folder, &out, Mode::Audit);
    // A number that nobody has.
    let path = folder.join("aclshim-999999999-1.ring");
    fs::rename(first, &path).unwrap();
    call(&place, CALLS);
    let mut file = RingFile::open_to_drain(&path).unwrap();
    file.look_for_rings();
    let ring = |number| file.ring(number);
    let look = |dir: &Path| {
        // SAFETY: zero is a valid header.
        let mut header = unsafe { Box::new(std::mem::zeroed::<Header>()) };
        let dir = dir.as_os_str().as_bytes();
        header.dir[..dir.len()].copy_from_slice(dir);
        let mut adoption = Adoption::new(folder.join("aclshim-1-1.ring"), &header);
        while !adoption.look() {}
        path.exists()
    };
    let other = folder.join("other");
    {
        let mut drain = Drain::outside(file.header());
        drain.pass(file.header(), ring, ReadMode::Drain);
    }
    let control = file.ring(0).unwrap().control;
    assert_eq!(control.drained.load(Ordering::Relaxed), CALLS);
    control.not_recorded.store(3, Ordering::Relaxed);
    drop(file);
    assert!(look(&other), "neither its end nor what it has lost is told");
    assert!(!look(&out), "who writes there tells it");
    let mut set = TraceSet::default();
    set.read(&[&out], &mut NoVisitor).unwrap();
    let [process] = &set.processes().collect::<Vec<_>>()[..] else { panic!("one process") };
    assert_eq!((process.totals.total().calls, process.not_recorded), (CALLS, 3));

    let (first, _) = ring_of(&folder, &out, Mode::Audit);
    fs::rename(first, &path).unwrap();
    assert!(!look(&other), "nothing is in it");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_that_says_nothing_is_removed_when_nobody_has_it_any_more() {
    let (folder, _) = folders("blank");
    let path = folder.join("aclshim-999999999-1.ring");
    let maker = File::options().create_new(true).write(true).open(&path).unwrap();
    maker.set_modified(SystemTime::now() - Duration::from_secs(120)).unwrap();
    let mut outside = Outside::new(&folder);
    outside.look();
    assert!(path.exists(), "who makes it may be stopped");
    drop(maker);
    outside.look();
    assert!(!path.exists());
    fs::remove_dir_all(folder).unwrap();
}
