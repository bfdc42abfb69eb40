use super::*;
use crate::reader::{ReadMode, RingReader};
use crate::record::slot::{Head, Layout};
use crate::ring::cursor::RingCursor;
use crate::ring::file::{self, RingSize};
use crate::ring::layout::{Mode, stride};

/// A folder that goes away with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("aclshim-trace-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn bytes(&self) -> &[u8] {
        self.0.as_os_str().as_bytes()
    }

    /// A file with these bytes, which ought not to be opened.
    fn refuses(&self, bytes: &[u8]) -> RingFileError {
        let path = self.0.join("aclshim-1-1.ring");
        fs::write(&path, bytes).unwrap();
        RingFile::open(&path).err().expect("it is not one of ours")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn only_file(folder: &Folder) -> PathBuf {
    let found = files(&folder.0).unwrap();
    assert_eq!(found.len(), 1);
    found[0].clone()
}

#[test]
fn what_a_process_writes_is_read_from_its_file() {
    let folder = Folder::new("written");
    let made = file::create(folder.bytes(), RingSize::fixed(64), |header| header.mode = Mode::Audit as u32).unwrap();
    let path = only_file(&folder);
    let mut opened = RingFile::open(&path).unwrap();
    assert_eq!((opened.look_for_rings(), opened.header().pid), (0, std::process::id()));
    for ring in 0..2 {
        let (control, slots) = made.add_ring(folder.bytes(), ring).unwrap();
        control.owner.store(7, Ordering::Relaxed);
        let cursor = RingCursor::default();
        assert!(cursor.open(control, slots, slots.len() as u32, Mode::Audit, 0));
        let number = cursor.claim(1).unwrap();
        // SAFETY: the cursor was opened.
        unsafe { cursor.slot(number) }.put(Head::done(number, Layout::Linear, 1), &[u64::from(ring) + 50]);
        made.header.rings.fetch_add(1, Ordering::AcqRel);
    }
    assert_eq!(opened.look_for_rings(), 2);
    for ring in 0..2 {
        let run = opened.ring(ring).unwrap().read(0, ReadMode::Peek, 9);
        assert_eq!((run.slots.len(), run.slots[0][1]), (1, ring as u64 + 50));
    }
    assert!(opened.ring(2).is_none());
}

#[test]
fn junk_is_told_from_what_is_cut_and_from_what_is_newer() {
    let folder = Folder::new("junk");
    file::create(folder.bytes(), RingSize::fixed(64), |_| ()).unwrap();
    let path = only_file(&folder);
    let good = fs::read(&path).unwrap();
    fs::remove_file(path).unwrap();
    for junk in [&b""[..], b"ACLSHIM", b"hello, world and all", &vec![0; 30_000]] {
        assert!(matches!(folder.refuses(junk), RingFileError::NotOurs), "{} bytes", junk.len());
    }
    for cut in [12, 64, size_of::<Header>() - 1] {
        assert!(matches!(folder.refuses(&good[..cut]), RingFileError::Short(len, _) if len == cut as u64));
    }
    let mut newer = good.clone();
    newer[8] = 3;
    let said = folder.refuses(&newer).to_string();
    assert!(said.contains("version 3") && said.contains("versions 1 and 2"), "{said}");
    // The version is looked at first: of a newer file nothing else is known.
    assert!(matches!(folder.refuses(&newer[..20]), RingFileError::Version(3)));
    for (field, value) in [(64, 0u32), (64, 63), (64, 1 << 21), (64, 1 << 31), (56, 0)] {
        let mut wrong = good.clone();
        wrong[field..field + 4].copy_from_slice(&value.to_le_bytes());
        assert!(matches!(folder.refuses(&wrong), RingFileError::NotOurs), "{value} at {field}");
    }
}

#[test]
fn rings_that_are_told_of_and_not_there_are_not_touched() {
    let folder = Folder::new("missing");
    let made = file::create(folder.bytes(), RingSize::fixed(64), |_| ()).unwrap();
    made.add_ring(folder.bytes(), 0).unwrap().0.owner.store(7, Ordering::Relaxed);
    made.header.rings.store(u32::MAX, Ordering::Relaxed);
    let path = only_file(&folder);
    let rings = |path: &Path| {
        let mut opened = RingFile::open(path).unwrap();
        (0..opened.look_for_rings()).filter(|ring| opened.ring(*ring).is_some()).count()
    };
    assert_eq!(rings(&path), 1);
    // A cursor that no file can have.
    let mut copy = fs::read(&path).unwrap();
    copy[48..56].copy_from_slice(&(u64::MAX - 5).to_le_bytes());
    let other = folder.0.join("aclshim-2-2.ring");
    fs::write(&other, copy).unwrap();
    assert_eq!(rings(&other), 0);
}

#[test]
fn a_ring_that_cannot_be_mapped_is_not_one_that_is_not_made() {
    let folder = Folder::new("unmapped");
    let made = file::create(folder.bytes(), RingSize::fixed(64), |_| ()).unwrap();
    let control = made.add_ring(folder.bytes(), 0).unwrap().0;
    made.header.rings.store(1, Ordering::Relaxed);
    let path = only_file(&folder);
    let look = |begin: u64| {
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(&begin.to_le_bytes(), std::mem::offset_of!(Header, first) as u64).unwrap();
        let mut opened = RingFile::open(&path).unwrap();
        assert_eq!(opened.look_for_rings(), 1);
        (opened.ring(0).is_some(), opened.is_whole())
    };
    let begin = made.header.first;
    assert_eq!(look(begin), (false, true), "it has no owner yet");
    control.owner.store(7, Ordering::Relaxed);
    assert_eq!(look(begin), (true, true));
    // Nothing can be mapped from the middle of a page; the system may refuse it for want of memory, too.
    control.notes_lost.store(7 << 32 | 7, Ordering::Relaxed);
    let notes_lost = std::mem::offset_of!(crate::ring::layout::Control, notes_lost) as u64;
    File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
    assert_eq!(look(begin + notes_lost), (false, false));
}

#[test]
fn a_size_that_is_changed_later_is_not_believed() {
    let folder = Folder::new("changed");
    let made = file::create(folder.bytes(), RingSize::fixed(64), |_| ()).unwrap();
    made.add_ring(folder.bytes(), 0).unwrap().0.owner.store(7, Ordering::Relaxed);
    made.header.rings.store(1, Ordering::Relaxed);
    let path = only_file(&folder);
    let mut opened = RingFile::open(&path).unwrap();
    assert_eq!(opened.look_for_rings(), 1);
    File::options().write(true).open(&path).unwrap().write_all_at(&(1u32 << 20).to_le_bytes(), 64).unwrap();
    assert_eq!(opened.header().slots, 1 << 20);
    assert_eq!(opened.ring(0).unwrap().slots.len(), 64);
}

#[test]
fn one_drain_at_a_time_has_a_file() {
    let folder = Folder::new("taken");
    file::create(folder.bytes(), RingSize::fixed(64), |_| ()).unwrap();
    let path = only_file(&folder);
    let first = RingFile::open_to_drain(&path).unwrap();
    assert!(matches!(RingFile::open_to_drain(&path), Err(RingFileError::Locked)));
    assert!(RingFile::open(&path).is_ok(), "looking is free");
    drop(first);
    assert!(RingFile::open_to_drain(&path).is_ok());
}

#[test]
fn links_and_pipes_under_our_names_are_left_alone() {
    let folder = Folder::new("links");
    file::create(folder.bytes(), RingSize::fixed(64), |_| ()).unwrap();
    let path = only_file(&folder);
    let link = folder.0.join("aclshim-0-0.ring");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(matches!(RingFile::open(&link), Err(RingFileError::Io(_))));
    let pipe = folder.0.join("aclshim-9-9.ring");
    let name = std::ffi::CString::new(pipe.as_os_str().as_bytes()).unwrap();
    // SAFETY: a C string of ours.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert!(matches!(RingFile::open(&pipe), Err(RingFileError::NotOurs)));
}

#[test]
fn a_ring_is_added_only_to_the_file_that_was_made() {
    let folder = Folder::new("gone");
    let made = file::create(folder.bytes(), RingSize::fixed(64), |_| ()).unwrap();
    let path = only_file(&folder);
    fs::rename(&path, folder.0.join("other")).unwrap();
    assert!(matches!(made.add_ring(folder.bytes(), 0), Err(file::RingSetupError::System("open", libc::ENOENT))));
    fs::write(&path, b"somebody else's").unwrap();
    assert!(matches!(made.add_ring(folder.bytes(), 0), Err(file::RingSetupError::Gone)));
    assert_eq!(fs::read(&path).unwrap(), b"somebody else's");
}

#[test]
fn only_our_names_are_looked_at_in_order() {
    let folder = Folder::new("names");
    for name in ["aclshim-2-b.ring", "aclshim-1-a.ring", "aclshim-1.jsonl", "other.ring"] {
        fs::write(folder.0.join(name), b"").unwrap();
    }
    let found = files(&folder.0).unwrap();
    let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["aclshim-1-a.ring", "aclshim-2-b.ring"]);
    assert!(files(&folder.0.join("none")).is_err());
}

#[test]
fn rings_lie_on_whole_pages_of_any_system() {
    for slots in [64, 1024, 1 << 20] {
        assert!(stride(slots).is_multiple_of(64 * 1024) && stride(slots) >= CONTROL as u64 + u64::from(slots) * 64);
    }
}

/// A ring file as version 1 wrote it: one ring of 64 slots, drained up to number 3, with calls 3 to 5, the last in flight.
fn version_1() -> Vec<u8> {
    let (first, stride) = (64 * 1024u64, stride(64));
    let mut file = vec![0; (first + stride) as usize];
    let mut put = |at: u64, bytes: &[u8]| file[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    put(0, b"ACLSHIM\0");
    for (at, half) in [(8, 1u32), (12, 19_648), (16, 77), (64, 64), (136, 1), (140, 2)] {
        put(at, &half.to_le_bytes());
    }
    for (at, word) in [(48, first), (56, stride), (152, 5), (160, 6)] {
        put(at, &word.to_le_bytes());
    }
    put(192, b"one");
    put(232, b"two");
    put(9344, b"/out");
    put(first, &9u32.to_le_bytes());
    for (at, word) in [(16, 40u64), (64, 3), (72, 1), (80, 2)] {
        put(first + at, &word.to_le_bytes());
    }
    for (number, state) in [(3, 2u64), (4, 2), (5, 1)] {
        let slot = first + 4096 + 64 * number;
        // State, layout 0, kind 2, function 1, number.
        put(slot, &(state | 2 << 6 | 1 << 10 | number << 16).to_le_bytes());
        put(slot + 8, &(100 + number).to_le_bytes());
    }
    file
}

#[test]
fn a_file_of_version_1_is_read_and_drained_as_one_of_the_present_version() {
    let folder = Folder::new("version-1");
    let path = folder.0.join("aclshim-77-1.ring");
    fs::write(&path, version_1()).unwrap();
    let snapshot = RingReader::open(&path).unwrap();
    assert_eq!((snapshot.header().pid, snapshot.rings()), (77, 1));
    let copy = snapshot.ring(0).unwrap().unwrap();
    assert_eq!((copy.drained, copy.end), (3, 6));
    let seen = copy.ring().read_to(copy.end, copy.drained, ReadMode::Peek, 99);

    let mut opened = RingFile::open_to_drain(&path).unwrap();
    let origin = crate::origin::Origin::new(opened.header());
    assert_eq!((origin.functions, origin.dir), (vec!["one".to_owned(), "two".into()], "/out".into()));
    assert!(opened.is_copy() && opened.look_for_rings() == 1 && opened.is_whole());
    let ring = opened.ring(0).unwrap();
    assert_eq!(ring.control.not_recorded.load(Ordering::Relaxed), 40);
    let peeked = ring.read(3, ReadMode::Peek, 99);
    assert_eq!(peeked.slots, seen.slots);
    let run = ring.read(3, ReadMode::Finish, 99);
    let heads: Vec<_> = run.slots.iter().map(|slot| Head(slot[0])).collect();
    let call = |number| Head::in_flight(number, Layout::Linear, 1, 2);
    assert_eq!(heads, [call(3).ended(), call(4).ended(), call(5).passed()]);
    assert_eq!((run.slots[0][1], run.next), (103, 6));

    let before = fs::read(&path).unwrap();
    assert_eq!(before, version_1(), "the file is as it was until it is given back");
    ring.control.overwritten.fetch_add(10, Ordering::Relaxed);
    ring.control.ended.store(6, Ordering::Relaxed);
    ring.give_back(run.next);
    opened.header().told.store(7, Ordering::Relaxed);
    drop(opened);
    let mut expected = version_1();
    for (at, word) in [(152, 7u64), (64 * 1024 + 64, 6), (64 * 1024 + 72, 11), (64 * 1024 + 80, 6)] {
        expected[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    assert!(fs::read(&path).unwrap() == expected, "only what a drain writes has changed");
    assert_eq!(RingReader::open(&path).unwrap().ring(0).unwrap().unwrap().drained, 6);
}

#[test]
fn a_file_of_version_1_that_is_only_looked_at_stays_as_it_is() {
    let folder = Folder::new("version-1-peek");
    let path = folder.0.join("aclshim-77-1.ring");
    fs::write(&path, version_1()).unwrap();
    let mut opened = RingFile::open(&path).unwrap();
    opened.look_for_rings();
    opened.ring(0).unwrap().give_back(6);
    drop(opened);
    assert!(fs::read(&path).unwrap() == version_1());
    let short = &version_1()[..19_647];
    assert!(matches!(folder.refuses(short), RingFileError::Short(19_647, 19_648)));
}
