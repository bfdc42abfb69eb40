use super::*;
use crate::reader::{ReadMode, files};
use crate::record::slot::{Head, Layout};
use crate::ring::cursor::RingCursor;
use crate::ring::file::{self, RingSize};
use crate::ring::layout::{Mode, stride};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::AtomicBool;

/// A folder that goes away with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("aclshim-reader-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn bytes(&self) -> &[u8] {
        self.0.as_os_str().as_bytes()
    }

    fn file(&self) -> PathBuf {
        files(&self.0).unwrap().remove(0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Has the writer end when its test does, also by a failure.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The words of a record that all follow from its number.
fn words(number: u64) -> [u64; 7] {
    [0, 1, 2, 3, 4, 5, 6].map(|at: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ at)
}

#[test]
fn records_that_are_copied_beside_their_writer_are_whole_and_none_is_missing() {
    for mode in [Mode::Flight, Mode::Audit] {
        let folder = Folder::new("beside");
        let made = file::create(folder.bytes(), RingSize::fixed(64), |header| header.mode = mode as u32).unwrap();
        let (control, slots) = made.add_ring(folder.bytes(), 0).unwrap();
        control.owner.store(7, Ordering::Relaxed);
        made.header.rings.store(1, Ordering::Release);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    slots[number as usize % 64].put(Head::done(number, Layout::Linear, 1), &words(number));
                    number += 1;
                    if mode == Mode::Audit && number % 32 == 0 {
                        // Drained at once.
                        control.drained.store(number, Ordering::Release);
                    }
                }
            });
            let _over = Over(&is_over);
            let reader = RingReader::open(&folder.file()).unwrap();
            let mut seen = 0;
            for _ in 0..3000 {
                let copy = reader.ring(0).unwrap().unwrap();
                let mut from = copy.drained;
                let mut last = None;
                while from < copy.end {
                    let run = copy.ring().read_to(copy.end, from, ReadMode::Peek, usize::MAX);
                    for (slot, number) in run.slots.iter().zip(run.first..) {
                        assert_eq!(slot[1..], words(number), "number {number}");
                        assert!(last.is_none_or(|last| last < number));
                        last = Some(number);
                        seen += 1;
                    }
                    // A slot that is not there was overwritten, or is just being written: none was left out.
                    let skipped = if run.slots.is_empty() { run.next } else { run.first } - from;
                    assert!(skipped <= run.overwritten + 1, "{skipped} skipped, {} overwritten", run.overwritten);
                    assert!(run.next > from);
                    from = run.next;
                }
            }
            assert!(seen > 0);
        });
    }
}

/// One range.
fn only(range: Range<usize>) -> Vec<Range<usize>> {
    Vec::from_iter([range])
}

#[test]
fn a_slot_that_changes_between_two_copies_is_read_until_it_is_whole() {
    let slot = |head: u64, number: u64| -> [u64; 8] {
        let words = words(number);
        std::array::from_fn(|at| if at == 0 { head } else { words[at - 1] })
    };
    let done = |number: u64| slot(Head::done(number, Layout::Linear, 1).0, number);
    let old_head = Head::done(1, Layout::Linear, 1).0;
    // What stands in slots 0 and 1 at each read: the first one meets the writer in slot 1, under its old head.
    let mut states = vec![
        [done(0), slot(old_head, 65)],
        [done(0), slot(0, 65)],
        [done(0), slot(0, 129)],
        [done(0), done(129)],
        [done(0), done(129)],
    ]
    .into_iter();
    let mut read = |bytes: &mut [u8], at: u64| {
        let state = states.next().expect("no more reads than are needed");
        let all: Vec<u8> = state.as_flattened().iter().flat_map(|word| word.to_ne_bytes()).collect();
        let at = at as usize - 4096;
        bytes.copy_from_slice(&all[at..at + bytes.len()]);
        Ok(())
    };
    let slots = Mapping::anonymous(64 * SLOT).unwrap();
    let control = Control::default();
    let mut copy = RingSnapshot { drained: 0, end: 0, control, slots, count: 64, written: only(0..2) };
    copy_twice(&mut read, || only(1..2), 4096, &mut copy).unwrap();
    assert_eq!(copy.end, 2, "as far as the first copy reached");
    let words: Vec<_> = copy.written().map(|(at, slot)| (at, slot.read().unwrap())).collect();
    assert_eq!(words, [(0, done(0)), (1, done(129))]);
    assert!(states.next().is_none());
}

#[test]
fn what_a_process_writes_is_copied_from_its_file_as_it_is_mapped() {
    let folder = Folder::new("written");
    let made = file::create(folder.bytes(), RingSize::fixed(64), |header| header.mode = Mode::Audit as u32).unwrap();
    for ring in 0..2 {
        let (control, slots) = made.add_ring(folder.bytes(), ring).unwrap();
        control.owner.store(7, Ordering::Relaxed);
        let cursor = RingCursor::default();
        assert!(cursor.open(control, slots, slots.len() as u32, Mode::Audit, 0));
        for _ in 0..=ring {
            let number = cursor.claim(1).unwrap();
            // SAFETY: the cursor was opened.
            unsafe { cursor.slot(number) }.put(Head::done(number, Layout::Linear, 1), &[u64::from(ring) + 50]);
        }
        control.not_recorded.store(3, Ordering::Relaxed);
        made.header.rings.fetch_add(1, Ordering::AcqRel);
    }
    let reader = RingReader::open(&folder.file()).unwrap();
    assert_eq!((reader.rings(), reader.header().pid), (2, std::process::id()));
    for ring in 0..2 {
        let copy = reader.ring(ring).unwrap().unwrap();
        assert_eq!((copy.drained, copy.end), (0, ring as u64 + 1));
        assert_eq!(copy.ring().control.not_recorded.load(Ordering::Relaxed), 3);
        let run = copy.ring().read_to(copy.end, 0, ReadMode::Peek, usize::MAX);
        assert_eq!((run.slots.len(), run.slots[0][1]), (ring + 1, ring as u64 + 50));
    }
    assert!(reader.ring(2).unwrap().is_none(), "it is not made");
    let cut = File::options().write(true).open(folder.file()).unwrap();
    cut.set_len(made.header.first + stride(64)).unwrap();
    assert!(reader.ring(0).unwrap().is_some() && reader.ring(1).unwrap().is_none(), "the file ends before it");
}

#[test]
fn a_hole_is_neither_filled_nor_walked_through() {
    let folder = Folder::new("hole");
    let made = file::create(folder.bytes(), RingSize::fixed(1 << 16), |_| ()).unwrap();
    let (control, slots) = made.add_ring(folder.bytes(), 0).unwrap();
    control.owner.store(7, Ordering::Relaxed);
    made.header.rings.store(1, Ordering::Release);
    for number in [0, 40_000] {
        slots[number as usize].put(Head::done(number, Layout::Linear, 1), &words(number));
    }
    let reader = RingReader::open(&folder.file()).unwrap();
    let room = || fs::metadata(folder.file()).unwrap().blocks();
    let before = room();
    let copy = reader.ring(0).unwrap().unwrap();
    assert_eq!((copy.drained, copy.end), (0, 40_001));
    // Where the file system knows holes.
    let written = copy.written_count();
    assert!(written < 4096 || before * 512 > 4 << 20, "{written} slots in {before} blocks");
    assert_eq!((copy.written().count(), room()), (written, before));
    let run = copy.ring().read_to(copy.end, 0, ReadMode::Peek, usize::MAX);
    assert_eq!((run.slots.len(), run.next), (1, 1));
}

#[test]
fn ranges_that_touch_become_one() {
    assert_eq!(merged(vec![]), []);
    assert_eq!(merged(vec![8..9, 0..2, 1..4, 4..5, 0..1]), [0..5, 8..9]);
}
