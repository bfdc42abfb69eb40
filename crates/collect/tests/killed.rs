//! What a process leaves that was killed, and what its drain leaves that was killed with it: the records are in the
//! ring, and nothing else does harm.

use aclshim_collect::adoption;
use aclshim_collect::budget::Sizes;
use aclshim_collect::chain::Place;
use aclshim_collect::drain::Drain;
use aclshim_collect::names::{Who, stem};
use aclshim_collect::segment::TraceWriter;
use aclshim_collect::survey::Survey;
use aclshim_trace::file;
use aclshim_trace::layout::{Header, Mode};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{self, Reading, RingFile};
use aclshim_trace::ring;
use aclshim_trace::segment::{Head, Preamble};
use aclshim_trace::segment_reader::SegmentReader;
use aclshim_trace::slot::{self, Layout};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

const CALLS: u64 = 5;

/// The ring file of a process of another boot, which writes to `out`; and its only ring.
fn ring_of(folder: &Path, out: &Path, mode: Mode) -> (PathBuf, ring::Place) {
    let (folder_bytes, out_bytes) = (folder.as_os_str().as_bytes(), out.as_os_str().as_bytes());
    let made = file::create(folder_bytes, 64, |header| {
        header.functions = 1;
        header.names[0][..11].copy_from_slice(b"aclrtMemcpy");
        header.dir[..out_bytes.len()].copy_from_slice(out_bytes);
        header.boot_id[..8].copy_from_slice(b"not here");
        (header.segment, header.budget) = (1 << 20, 1 << 30);
    })
    .unwrap();
    let (control, slots) = made.add_ring(folder_bytes, 0).unwrap();
    control.owner.store(7, Ordering::Relaxed);
    let place = ring::Place::default();
    place.open(control, slots, mode, 0);
    made.header.rings.store(1, Ordering::Release);
    (reader::files(folder).unwrap().remove(0), place)
}

/// Makes so many calls.
fn call(place: &ring::Place, calls: u64) {
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
fn survey(out: &Path, rings: &Path) -> (u64, [u64; 2], usize) {
    let mut survey = Survey::default();
    survey.read(out, &[rings.to_owned()]).unwrap();
    let troubles = survey.troubles.len();
    let [process] = &survey.processes().collect::<Vec<_>>()[..] else { panic!("one process") };
    (process.account.total().calls, process.slots, troubles)
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
    let mut survey = Survey::default();
    survey.read(&out, &[]).unwrap();
    let [process] = &survey.processes().collect::<Vec<_>>()[..] else { panic!("one process") };
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
        let mut survey = Survey::default();
        survey.read(&out, std::slice::from_ref(&folder)).unwrap();
        let [process] = &survey.processes().collect::<Vec<_>>()[..] else { panic!("one process") };
        let calls = process.account.total().calls;
        assert_eq!(calls + process.overwritten(), 150, "{message}: each call is there or is said to be lost");
        process.overwritten()
    };
    call(&place, 100);
    {
        let mut file = RingFile::open_to_drain(&path).unwrap();
        file.look_for_rings();
        Drain::new(file.header(), "outside").pass(file.header(), |number| file.ring(number), Reading::Drain);
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
        let stem = stem(b"", &Who { pid: std::process::id(), ..Who::default() });
        let cut = out.join(format!("{stem}.acltrace"));
        fs::write(&cut, &whole[..length]).unwrap();
        let said = usize::from(length > 0); // an empty one may be just being made

        assert_eq!(survey(&out, &folder), (CALLS, [0, CALLS], said), "{length}: the records are in the ring");
        adoption::finish(RingFile::open_to_drain(&ring).unwrap());
        assert!(!ring.exists() && out.join(format!("{stem}+2.acltrace")).exists(), "{length}: a file of its own");
        assert_eq!(fs::read(&cut).unwrap(), &whole[..length], "{length}: nothing is written behind it");
        assert_eq!(survey(&out, &folder), (CALLS, [CALLS, 0], said), "{length}");

        // Where room is short it goes; an empty one when it is too old to be just being made.
        let make_room = |stem: &str| {
            let place = Place { dir: out.clone(), stem: stem.into(), sizes: Sizes { segment: 1 << 20, budget: 1 } };
            TraceWriter::new(place, &[]).append(&Head::default(), &[]).unwrap();
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
