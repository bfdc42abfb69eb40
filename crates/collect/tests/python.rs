//! The reader in `docs/read_trace.py` needs nothing but `docs/trace-format.md`. It must see what ours sees.

use aclshim_collect::drain::Drain;
use aclshim_trace::reader::{self, ReadMode, Ring, RingFile};
use aclshim_trace::record::annotation::{Annotation, AnnotationRef};
use aclshim_trace::record::slot::{Head, Layout, Note, Slot, Words};
use aclshim_trace::record::{Entry, Extent, Follows, decode};
use aclshim_trace::ring::cursor::RingCursor;
use aclshim_trace::ring::file::{self, RingSize};
use aclshim_trace::ring::layout::{Control, Mode, write_names};
use aclshim_trace::ring::storage::FixedStorage;
use aclshim_trace::segment::format::kind;
use aclshim_trace::segment::reader::SegmentReader;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

const FUNCTIONS: [&str; 3] = ["aclrtMemcpy", "aclrtMemset", "aclrtMemcpyBatch"];

struct Writer {
    place: RingCursor,
    control: &'static Control,
    slots: &'static [Slot],
}

impl Writer {
    fn put(&self, slots: &[(Head, [u64; 7])]) -> u64 {
        let count = slots.len() as u64;
        let claim = self.place.claim(count).or_else(|claimed| {
            // SAFETY: the place is open, and this thread's.
            unsafe { self.place.make_room(claimed, count, 0, &FixedStorage, || false) }.ok_or(())
        });
        let first = claim.expect("room");
        for (nth, (head, words)) in slots.iter().enumerate().rev() {
            let number = first + nth as u64;
            // SAFETY: the place was opened.
            unsafe { self.place.slot(number) }.put(Head(head.0 | number << 24), words);
        }
        first
    }

    fn note(&self, note: Note, words: &[u64]) {
        // SAFETY: the place is open, and this thread's.
        assert!(unsafe { self.place.write_note(note, words) });
    }

    fn tell(&self, telling: &AnnotationRef<'_>) {
        // SAFETY: the place is open, and this thread's.
        assert!(unsafe { self.place.annotate(telling, 1250, &FixedStorage, || false) });
    }

    fn ring(&self) -> Ring<'static> {
        Ring { control: self.control, slots: self.slots }
    }
}

/// One of each kind of record, most of them across the end of a ring.
fn write(writer: &Writer) {
    let head = |layout, function, kind| Head::in_flight(0, layout, function, kind);
    let end = |duration: u64, code: i32| duration | (code as u32 as u64) << 32;
    writer.note(Note::Thread, &[5, 4711, u64::from_le_bytes(*b"worker\0\0"), 0]);
    writer.put(&[(head(Layout::Linear, 0, 2).ended(), [1000, end(7, 0), 0xc0de, 0xd, 0x5, 4096, 0])]);
    writer.put(&[(head(Layout::Linear, 0, 1).nested().ended(), [1100, end(8, -3), 0xc0de, u64::MAX, 0x5, 1, 9])]);
    writer.put(&[(head(Layout::Fill, 1, 0).ended(), [1200, end(9, 107_000), 0xc0de, 0xd, 0xff, 64, 0])]);
    writer.tell(&AnnotationRef::scope(77, 0, "a scope whose name takes two slots".as_bytes()));
    writer.tell(&AnnotationRef::mark(&["m\u{e9}".repeat(99).as_bytes(), &[0xff; 9]].concat()));
    let two = Extent::new(2, 1, 77).0;
    let (long, more) = (head(Layout::Long, 0, 0), Head::done(0, Layout::More, 0));
    writer.put(&[(long.ended(), [1300, end(1, 0), 2, 3, 4, 5, 6]), (more, [1, 2, two, 7, 8, 9, 10])]);
    let follows = Follows { items: 1, attributes: 0, direction: None, is_read: true }.word();
    let batch = [
        (head(Layout::Long, 2, 0).ended(), [1400, end(5, 0), 1, 2, 3, 4, 5]),
        (more, [0, 0, Extent::new(4, 0, 78).0, 6, 7, 8, 9]),
        (Head::done(0, Layout::Batch, 2), [64, 64, 64, follows, 0, 10, 11]),
        (Head::done(0, Layout::Items, 2), [1, 2, 64, 0, 0, 0, 0]),
    ];
    writer.put(&batch);
    let long_ago = writer.put(&[(head(Layout::Linear, 0, 2).ended(), [1500, end(0xffff_ffff, 0), 1, 2, 3, 4, 5])]);
    let passed = writer.put(&[(head(Layout::Linear, 0, 2).passed(), [1600, 99, 1, 2, 3, 4, 5])]);
    writer.note(Note::End, &[1500, long_ago, 1 << 40, 0]);
    writer.note(Note::End, &[1600, passed, 12, -8i64 as u64]);
    // Readers of copies pass these over.
    writer.put(&[(head(Layout::Tracked, 2, 0).ended(), [1650, end(1, 0), 1, 2, 3, 4, 5])]);
    writer.note(Note::Skip, &[1660, writer.place.next.load(Ordering::Relaxed) + 1]);
    writer.put(&[(head(Layout::Linear, 0, 2), [1700, 99, 1, 2, 3, 4, 5])]);
}

/// The calls and marks as our own reader sees them: runs of slots by ring and first number, older ones first.
fn ours(runs: &[(u32, u64, Vec<Words>)]) -> Vec<Value> {
    let (mut calls, mut ends, mut marks, mut scopes) =
        <(BTreeMap<_, _>, BTreeMap<_, _>, BTreeMap<_, _>, BTreeMap<_, _>)>::default();
    for (ring, first, slots) in runs {
        let mut at = 0;
        while at < slots.len() {
            let (entry, count) = decode(&slots[at..], first + at as u64).unwrap();
            match entry {
                Entry::Call(call) => drop(calls.entry((*ring, call.number)).or_insert(call)),
                Entry::End { of, end } => drop(ends.insert((*ring, of), end)),
                Entry::Annotation { ticks, annotation: Annotation::Mark { text } } => {
                    let number = first + at as u64;
                    let mark = json!({"mark": text, "ring": ring, "number": number, "begin": ticks});
                    marks.insert((*ring, number), mark);
                }
                Entry::Annotation { annotation: Annotation::Scope { id, name, .. }, .. } => {
                    drop(scopes.insert(id, name))
                }
                _ => {}
            }
            at += count;
        }
    }
    let object = |((ring, number), call): ((u32, u64), aclshim_trace::record::Call)| {
        let end = ends.get(&(ring, number)).copied().or(call.end);
        let scope = || scopes.get(&call.scope).cloned().unwrap_or_else(|| format!("#{}", call.scope));
        let call = json!({
            "function": FUNCTIONS[usize::from(call.function)], "ring": ring, "number": number, "begin": call.begin,
            "duration": end.map(|end| end.duration), "code": end.map(|end| end.code), "site": call.site,
            "nested": call.is_nested, "arguments": call.arguments, "scope": (call.scope != 0).then(scope),
        });
        ((ring, number), call)
    };
    let mut all: BTreeMap<_, _> = calls.into_iter().map(object).collect();
    all.append(&mut marks);
    all.into_values().collect()
}

/// The calls as Python sees them.
fn theirs(files: &[&Path]) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/read_trace.py");
    let output = Command::new("python3").arg(script).args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |line: &str| {
        let mut call: Value = serde_json::from_str(line).unwrap();
        if let Some(arguments) = call["arguments"].as_array_mut() {
            arguments.resize(10, json!(0));
        } else {
            call.as_object_mut().unwrap().remove("arguments");
        }
        call
    };
    String::from_utf8(output.stdout).unwrap().lines().map(line).collect()
}

/// What a ring file shows to whoever looks.
fn in_ring(path: &Path) -> Vec<(u32, u64, Vec<Words>)> {
    let mut file = RingFile::open(path).unwrap();
    let rings = file.look_for_rings();
    let look = |number: usize| {
        let ring = file.ring(number).unwrap();
        let run = ring.read(ring.control.drained.load(Ordering::Acquire), ReadMode::Peek, usize::MAX);
        (number as u32, run.first, run.slots)
    };
    (0..rings).map(look).collect()
}

/// What a segment holds.
fn in_trace(path: &Path) -> Vec<(u32, u64, Vec<Words>)> {
    let reader = SegmentReader::open(File::open(path).unwrap()).unwrap();
    let blocks = reader.map(Result::unwrap).filter(|block| block.head.kind == kind::SLOTS);
    blocks.map(|block| (block.head.ring, block.head.first, block.slots().collect())).collect()
}

#[test]
fn the_reader_in_the_documents_sees_what_ours_sees() {
    let mut python = Command::new("python3");
    let python = python.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !python.is_ok_and(|status| status.success()) {
        return skipped("the_reader_in_the_documents_sees_what_ours_sees", "python3");
    }
    let dir = std::env::temp_dir().join(format!("aclshim-python-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir(&dir).unwrap();
    let path = dir.as_os_str().as_bytes();
    let made = file::create(path, RingSize::fixed(64), |header| {
        header.functions = write_names(FUNCTIONS, &mut header.names);
        header.dir[..path.len()].copy_from_slice(path);
        header.boot_id[..8].copy_from_slice(b"not here");
        (header.segment, header.budget) = (1 << 20, 1 << 30);
    })
    .unwrap();
    let writers: Vec<Writer> = (0..2)
        .map(|ring| {
            let (control, slots) = made.add_ring(path, ring).unwrap();
            control.owner.store(7, Ordering::Relaxed);
            let place = RingCursor::default();
            // The second one is near the end of what a head has room for.
            let first = u64::from(ring) * ((1 << 40) - 5);
            control.drained.store(first, Ordering::Relaxed);
            place.open(control, slots, 64, Mode::Audit, first);
            made.header.rings.store(ring + 1, Ordering::Release);
            Writer { place, control, slots }
        })
        .collect();
    let ring_file = reader::files(&dir).unwrap().remove(0);
    writers.iter().for_each(write);
    let all = ours(&in_ring(&ring_file));
    assert_eq!(all.len(), 2 * 9);
    assert_eq!(all.iter().filter(|call| call["scope"] == "a scope whose name takes two slots").count(), 2);
    assert_eq!(all.iter().filter(|call| call["scope"] == "#78").count(), 2);
    assert_eq!(theirs(&[&ring_file]), all);

    // On disk, and given back.
    let ring = |number: usize| writers.get(number).map(Writer::ring);
    let mut drain = Drain::outside(made.header);
    drain.pass(made.header, ring, ReadMode::Finish);
    let segments: Vec<PathBuf> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "acltrace"))
        .collect();
    let [segment] = &segments[..] else { panic!("{segments:?}") };
    assert_eq!(ours(&in_trace(segment)), all);
    assert_eq!(theirs(&[segment]), all);
    assert_eq!(theirs(&[&ring_file]), [] as [Value; 0]);

    // A call that the drain went past, and that failed later, is told of like others.
    let log = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let log = log.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let lines: Vec<Value> = log
        .flat_map(|path| fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
        .map(|line| serde_json::from_str(&line).unwrap())
        .collect();
    let late = lines.iter().filter(|line| line["event"] == "failed_call" && line["code"] == -8).count();
    assert_eq!(late, 2, "one on each ring: {lines:?}");

    // Written, and not given back before the drain ended; and something new.
    writers[0].control.drained.store(0, Ordering::Release);
    writers[1].put(&[(Head::in_flight(0, Layout::Linear, 0, 2).ended(), [1800, 0, 1, 2, 3, 4, 5])]);
    let runs = [in_trace(segment), in_ring(&ring_file)].concat();
    assert_eq!(ours(&runs).len(), all.len() + 1);
    assert_eq!(theirs(&[&ring_file, segment]), ours(&runs));

    // Cut within a block: what stands before is read, by both.
    let whole = fs::read(segment).unwrap();
    fs::write(segment, &whole[..whole.len() - 1]).unwrap();
    let mut reader = SegmentReader::open(File::open(segment).unwrap()).unwrap();
    let mut good = Vec::new();
    while let Ok(Some(block)) = reader.next_block() {
        if block.head.kind == kind::SLOTS {
            good.push((block.head.ring, block.head.first, block.slots().collect()));
        }
    }
    assert_eq!(theirs(&[segment]), ours(&good));

    // Cut before its first block, as a kill may leave it: nothing is in it, and the others are read all the same.
    for length in [0, 5, 11, 100, 8192] {
        let cut = dir.join("cut.acltrace");
        fs::write(&cut, &whole[..length]).unwrap();
        assert_eq!(theirs(&[&cut, segment]), ours(&good), "{length} bytes");
    }
    fs::remove_dir_all(dir).unwrap();
}

/// Says by name what was not tested; in CI that is a failure.
fn skipped(test: &str, what: &str) {
    assert!(std::env::var_os("CI").is_none(), "{test}: {what} is missing, and in CI nothing is skipped");
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/skipped.txt");
    let mut list = File::options().create(true).append(true).open(list).unwrap();
    std::io::Write::write_all(&mut list, format!("{test}: needs {what}\n").as_bytes()).unwrap();
}
