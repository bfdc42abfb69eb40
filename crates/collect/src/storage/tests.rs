//! Tests of the running total of a directory, together with the budget that uses it.

use crate::scratch::Scratch;
use crate::storage::budget::{Room, Sizes, make_room};
use crate::storage::directory::Directory;
use crate::storage::failure::Report;
use crate::storage::usage::{MAGIC, Record, Share, Usage};
use aclshim_trace::segment::format;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

const SIZES: Sizes = Sizes { segment: 64 << 10, budget: 4 << 20 };

fn directory(scratch: &Scratch) -> Directory {
    Directory::open(scratch.path()).unwrap()
}

fn path(scratch: &Scratch) -> PathBuf {
    // SAFETY: asks for a number.
    scratch.path().join(format!(".aclshim-usage-{}", unsafe { libc::geteuid() }))
}

fn record(scratch: &Scratch) -> Option<Record> {
    Usage::open(&directory(scratch)).unwrap().read()
}

fn room(scratch: &Scratch) -> (Room, Report) {
    let mut report = Report::default();
    let room = make_room(&directory(scratch), SIZES, 1000, &mut report).unwrap();
    (room, report)
}

/// A trace of `bytes` bytes that no process writes to.
fn put(scratch: &Scratch, name: &str, bytes: usize) {
    let mut content = format::MAGIC.to_vec();
    content.resize(bytes, 0);
    fs::write(scratch.path().join(name), content).unwrap();
}

#[test]
fn the_directory_is_looked_through_once_and_then_the_total_is_believed() {
    let scratch = Scratch::new("usage-once");
    put(&scratch, "a.acltrace", 5000);
    assert_eq!(room(&scratch).0, Room { limit: 64 << 10, share: Share { until: 1000, counted: 1000 } });
    assert_eq!(record(&scratch), Some(Record { total: 6000, retry_above: 0 }));
    // By hand, and so not in the total: it shows that no look came since.
    put(&scratch, "b.acltrace", 100_000);
    room(&scratch);
    assert_eq!(record(&scratch).unwrap().total, 7000);
}

#[test]
fn what_a_file_grows_to_is_told_a_few_times_and_never_too_late() {
    let scratch = Scratch::new("usage-grow");
    room(&scratch);
    let mut share = Share { until: 1000, counted: 1000 };
    let mut told = 0;
    for bytes in (0..1 << 20).step_by(100) {
        let before = share;
        share.grow(|| Some(directory(&scratch)), bytes);
        told += u64::from(share != before);
        assert!(record(&scratch).unwrap().total >= bytes);
    }
    assert_eq!((told, record(&scratch).unwrap().total), (10, 1 << 20));
}

#[test]
fn a_file_that_could_not_be_counted_is_counted_when_it_grows() {
    let scratch = Scratch::new("usage-busy");
    room(&scratch);
    let holder = Usage::open(&directory(&scratch)).unwrap();
    let (Room { limit, mut share }, _) = room(&scratch);
    assert_eq!((limit, share), (64 << 10, Share { until: 1000, counted: 0 }));
    share.grow(|| Some(directory(&scratch)), 1500);
    assert_eq!((share, holder.read().unwrap().total), (Share { until: 2048, counted: 0 }, 1000));
    drop(holder);
    share.grow(|| Some(directory(&scratch)), 3000);
    assert_eq!((share, record(&scratch).unwrap().total), (Share { until: 4096, counted: 4096 }, 1000 + 4096));
}

#[test]
fn at_the_budget_a_look_is_followed_by_many_new_files_before_the_next() {
    let scratch = Scratch::new("usage-full");
    for number in 0..4000 {
        put(&scratch, &format!("{number:05}.acltrace"), 1024);
    }
    let (mut looks, mut before) = (0, 0);
    for number in 4000..5000 {
        room(&scratch);
        put(&scratch, &format!("{number:05}.acltrace"), 1000);
        // Only a look lowers it.
        let total = record(&scratch).unwrap().total;
        looks += u64::from(total < before);
        before = total;
    }
    let left = scratch.names().iter().map(|name| fs::metadata(scratch.path().join(name)).unwrap().len()).sum::<u64>();
    assert!((SIZES.budget / 8 * 7..=SIZES.budget).contains(&left), "{left}");
    assert!((1..=10).contains(&looks), "{looks}");
}

#[test]
fn where_nothing_can_be_removed_that_is_not_tried_for_each_new_file() {
    let scratch = Scratch::new("usage-full-of-held");
    put(&scratch, "a.acltrace", 4 << 20);
    (0..163).for_each(|number| put(&scratch, &format!("{number}.acltrace"), 8));
    let files = scratch.names();
    let held: Vec<File> = files.iter().map(|name| File::open(scratch.path().join(name)).unwrap()).collect();
    assert!(held.iter().all(crate::storage::directory::hold));
    let (first, report) = room(&scratch);
    assert_eq!((first.limit, report.over_budget), (64 << 10, 163 * 8));
    drop(held);
    let (second, report) = room(&scratch);
    assert_eq!((second.limit, report.over_budget, report.removed_files), (64 << 10, 163 * 8 + 1000, 0));
    // 1 KiB for each file beyond 64.
    Usage::open(&directory(&scratch)).unwrap().add(100 << 10);
    assert!(room(&scratch).1.removed_files > 0);
    assert_eq!(record(&scratch).unwrap().retry_above, 0);
}

#[test]
fn nonsense_in_the_file_costs_one_look_and_removes_nothing() {
    let scratch = Scratch::new("usage-nonsense");
    put(&scratch, "a.acltrace", 5000);
    let whole = Record { total: 6000, retry_above: 0 };
    room(&scratch);
    let good = fs::read(path(&scratch)).unwrap();
    let huge = Record { total: u64::MAX, retry_above: u64::MAX }.to_bytes();
    for bytes in [&good[..8], &good[..31], &[&MAGIC[..], &[7; 24]].concat(), &huge, b""] {
        fs::write(path(&scratch), bytes).unwrap();
        let (room, report) = room(&scratch);
        assert_eq!((room.limit, report), (64 << 10, Report::default()));
        assert_eq!(record(&scratch), Some(whole), "{bytes:?}");
    }
    assert_eq!(scratch.names(), ["a.acltrace"]);
}

#[test]
fn another_file_in_the_place_of_the_total_is_never_written_to() {
    let scratch = Scratch::new("usage-foreign");
    let (mine, usage) = (scratch.path().join("mine"), path(&scratch));
    fs::write(&mine, "mine").unwrap();
    let links: [fn(&std::path::Path, &std::path::Path) -> io::Result<()>; 3] = [
        |from, to| std::os::unix::fs::symlink(from, to),
        |from, to| fs::hard_link(from, to),
        |from, to| fs::copy(from, to).map(drop),
    ];
    for link in links {
        link(&mine, &usage).unwrap();
        assert_eq!(room(&scratch).0.limit, 64 << 10);
        assert_eq!([fs::read(&mine).unwrap(), fs::read(&usage).unwrap()], [b"mine", b"mine"]);
        fs::remove_file(&usage).unwrap();
    }
    fs::create_dir(&usage).unwrap();
    assert_eq!(room(&scratch).0.limit, 64 << 10);
    fs::remove_dir(&usage).unwrap();
    // An empty one of ours that has another name, too.
    fs::write(&mine, "").unwrap();
    fs::hard_link(&mine, &usage).unwrap();
    room(&scratch);
    assert_eq!(fs::metadata(&mine).unwrap().len(), 0);
}
