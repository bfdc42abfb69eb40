//! Whether two threads read the same of a trace as one.

mod mixed;

use aclshim_collect::interpreter::visitor::{AnnotationView, CallView, CallVisitor, Lost, ParallelVisitor};
use aclshim_collect::trace_set::TraceSet;
use std::fs;
use std::path::{Path, PathBuf};

/// All that is shown, with the turn that it came at.
#[derive(Default)]
struct Shown {
    turn: u64,
    all: Vec<(u64, String)>,
    /// How much of it was shown to others.
    aside: usize,
}

impl Shown {
    fn push(&mut self, what: String) {
        self.all.push((self.turn, what));
    }
}

impl CallVisitor for Shown {
    fn call(&mut self, seen: &CallView<'_>) {
        let (whose, call) = (seen.whose, seen.call);
        let when = (seen.time_ns(), seen.duration_ns());
        self.push(format!("{} {} {call:?} {when:?} {:x} {}", whose.ring, whose.thread, seen.rules, seen.is_left));
    }

    fn lost(&mut self, lost: &Lost<'_>) {
        self.push(format!("{} lost {}", lost.whose.ring, lost.calls));
    }

    fn remark(&mut self, remark: &AnnotationView<'_>) {
        self.push(format!("{} {:?}", remark.whose.ring, remark.what));
    }
}

impl ParallelVisitor for Shown {
    fn another(&self) -> Self {
        Self::default()
    }

    fn at(&mut self, turn: u64) {
        self.turn = turn;
    }

    fn join(&mut self, others: Vec<Self>) {
        for other in others {
            self.aside += other.all.len();
            self.all.extend(other.all);
        }
        self.all.sort_by_key(|(turn, _)| *turn);
        self.turn = u64::MAX; // what follows is shown to one again
    }
}

/// All that is known of what was read.
fn known(set: &TraceSet, shown: &Shown) -> Vec<String> {
    let mut known: Vec<String> = shown.all.iter().map(|(_, what)| what.clone()).collect();
    for process in set.processes() {
        known.push(format!("{:?} {} {}", process.slots, process.not_recorded, process.overwritten()));
        known.push(format!("{:?}", process.judge.totals()));
        known.extend(process.functions().map(|sums| format!("{sums:?}")));
        let found = process.findings.iter();
        known.extend(found.map(|found| format!("{} {} {}", found.thread, found.number, found.told.message)));
    }
    known.extend(set.troubles.iter().map(|trouble| format!("{trouble:?}")));
    known
}

/// Reads a trace by one thread and by two; how much was shown beside, of how much.
fn compare(path: &Path, what: &str) -> (usize, usize) {
    let paths = [path];
    let ((mut one, mut two), (mut shown, mut beside)) = <((TraceSet, TraceSet), (Shown, Shown))>::default();
    one.read(&paths, &mut shown).unwrap();
    two.read_parallel(&paths, &mut beside).unwrap();
    one.finish(&mut shown);
    two.finish(&mut beside);
    let (one, two) = (known(&one, &shown), known(&two, &beside));
    for (at, (one, two)) in one.iter().zip(&two).enumerate() {
        assert_eq!(one, two, "{what}: number {at} of what is known");
    }
    assert_eq!(one.len(), two.len(), "{what}");
    (beside.aside, beside.all.len())
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("aclshim-abreast-{}-{name}.acltrace", std::process::id()))
}

#[test]
fn two_threads_show_and_add_up_what_one_does_in_the_same_order() {
    let path = file("whole");
    for seed in 1..=3 {
        let (bytes, _) = mixed::trace(seed, 100_000);
        fs::write(&path, bytes).unwrap();
        let (aside, all) = compare(&path, &format!("seed {seed}"));
        assert!(aside > all / 2, "seed {seed}: most of it is shown beside: {aside} of {all}");
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn what_is_damaged_or_cut_off_is_passed_over_by_two_threads_as_by_one() {
    let path = file("damaged");
    let (whole, blocks) = mixed::trace(7, 100_000);
    let (middle, last) = (blocks[blocks.len() * 2 / 3], blocks[blocks.len() - 1]);
    let spoil = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        bytes
    };
    for (what, bytes) in [
        ("a payload is damaged", spoil(middle + 64 + 7)),
        ("a head has no magic", spoil(middle)),
        ("a head says that its block is longer", spoil(middle + 58)),
        ("a block is of a kind that is not known, and its sum is wrong", spoil(middle + 4)),
        ("the last block is damaged", spoil(last + 48)),
        ("the last block is cut off", whole[..whole.len() - 3].to_vec()),
        ("the last block's head is cut off", whole[..last + 10].to_vec()),
        ("something else stands in the middle", [&whole[..middle], b"BLK1 and no more", &whole[middle..]].concat()),
    ] {
        fs::write(&path, bytes).unwrap();
        let (aside, _) = compare(&path, what);
        assert!(aside > 10_000, "{what}: {aside} were shown beside");
    }
    fs::remove_file(path).unwrap();
}
