//! Traces and rings with arbitrary damage, read by every reader: no panic, no hang, no unbounded memory.
//!
//! Real files are taken apart, changed, and put together again with right checksums, so that what is behind these is reached
//! too. `ACLSHIM_FUZZ_SECONDS` says how long; `ACLSHIM_FUZZ_SEED` begins with the seed that a failure named.

#[path = "support/damage.rs"]
mod damage;
#[path = "support/keeping.rs"]
mod keeping;
mod support;

use aclshim_collect::findings::modules::Modules;
use aclshim_collect::interpreter::visitor::{AnnotationView, CallView, CallVisitor, Lost};
use aclshim_collect::trace_set::{CallOrder, ReadOptions, TraceSet};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{ReadMode, RingFile};
use aclshim_trace::record::decode;
use aclshim_trace::segment::format::HEAD;
use aclshim_trace::segment::reader::SegmentReader;
use damage::{Random, Trace, changed_ring};
use keeping::{files, kept, only};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::limited;

/// More than reading needs: a block, what is searched ahead, and what is known of a few processes.
const MOST_MEMORY: usize = 256 << 20;

/// What is tried now.
static SEED: AtomicU64 = AtomicU64::new(0);
static USED: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static HEAP: Counting = Counting;

// SAFETY: passes everything on to the system, and counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if USED.fetch_add(layout.size(), Ordering::Relaxed) + layout.size() > MOST_MEMORY {
            give_up("more memory than reading may take");
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Names the seed without any memory, and ends.
fn give_up(why: &str) -> ! {
    let mut digits = [b'0'; 20];
    let mut seed = SEED.load(Ordering::Relaxed);
    for digit in digits.iter_mut().rev() {
        *digit += (seed % 10) as u8;
        seed /= 10;
    }
    for part in [why.as_bytes(), b"; ACLSHIM_FUZZ_SEED=", &digits, b"\n"] {
        // SAFETY: bytes of ours.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
    std::process::abort()
}

/// Looks at everything that a reader may want to know of a call.
#[derive(Default)]
struct All(u64);

impl CallVisitor for All {
    fn call(&mut self, seen: &CallView<'_>) {
        let known = (seen.bytes(), seen.time_ns(), seen.duration_ns(), seen.code(), seen.kind(), seen.direction());
        self.0 ^= known.0 ^ known.1.unwrap_or(0) ^ seen.stream().unwrap_or(0) ^ u64::from(seen.is_refused());
        self.0 ^= format!("{:?}", known.4).len() as u64;
        let names = (seen.scope(), seen.stream_name(), seen.buffer(seen.call.arguments[0]));
        self.0 ^= format!("{names:?}").len() as u64;
    }

    fn lost(&mut self, lost: &Lost<'_>) {
        self.0 ^= lost.calls ^ lost.notes ^ lost.from_ns.unwrap_or(0) ^ lost.to_ns.unwrap_or(0);
    }

    fn remark(&mut self, remark: &AnnotationView<'_>) {
        self.0 ^= format!("{:?}", remark.what).len() as u64 ^ remark.time_ns().unwrap_or(0);
    }
}

/// What `stat`, `findings` and the others do with a file.
fn read_set(path: &Path) {
    let mut all = All::default();
    let with = |order| TraceSet::new(ReadOptions { order, ..ReadOptions::default() });
    let mut set = with(CallOrder::ByThreadNamesFirst);
    let _ = set.read(&[path], &mut all);
    set.finish(&mut all);
    for process in set.processes() {
        let total = process.totals.total();
        let _ = (total.durations.percentile(50), process.overwritten(), process.functions().count());
        let text: usize = process.findings.iter().map(|found| found.told.message.len()).sum();
        all.0 ^= text as u64 ^ process.judge.totals().len() as u64;
    }
    for number in 0..set.processes().count() {
        let _ = set.process(number).map(|process| process.modules().site(all.0));
    }
    let _ = with(CallOrder::ByTime).read(&[path], &mut all);
}

fn read_trace(bytes: &[u8], path: &Path) {
    for reader in [SegmentReader::open(bytes).ok(), SegmentReader::open_anyway(bytes).ok().map(|(reader, _)| reader)] {
        let Some(mut reader) = reader else { continue };
        let _ = Origin::from_bytes(&reader.header);
        while let Some(block) = reader.by_ref().find_map(Result::ok) {
            let slots: Vec<_> = block.slots().collect();
            for at in 0..slots.len() {
                let _ = decode(&slots[at..], block.head.first.wrapping_add(at as u64));
            }
            let mut modules = Modules::from_bytes(&block.payload);
            let _ = (modules.site(block.head.first), modules.to_bytes().len(), modules.learn(Modules::default()));
        }
        assert_eq!(reader.good(), bytes.len() as u64, "all of it is looked at");
    }
    fs::write(path, bytes).unwrap();
    read_set(path);
}

fn read_ring(bytes: &[u8], path: &Path) {
    fs::write(path, bytes).unwrap();
    read_set(path);
    for how in [ReadMode::Peek, ReadMode::Flush, ReadMode::Finish] {
        let Ok(mut file) = RingFile::open_to_drain(path) else { continue };
        for number in 0..file.look_for_rings() {
            let Some(ring) = file.ring(number) else { continue };
            let mut from = ring.control.drained.load(Ordering::Relaxed);
            let _ = ring.owner();
            // Twice round is enough for anything that comes to an end.
            for _ in 0..4 * ring.slots.len() {
                let run = ring.read(from, how, 1024);
                if run.next == from {
                    break;
                }
                assert!(run.next > from, "goes forward");
                from = run.next;
            }
        }
    }
}

/// The commands that read files by ways of their own, in processes of their own: they end by themselves, with what their
/// help names.
fn commands(path: &Path, folder: &Path) {
    let out = folder.join("out");
    let _ = fs::remove_dir_all(&out);
    for (arguments, to) in [
        (&["verify", "--json"][..], None),
        (&["recover", "--out"], Some("recovered")),
        (&["merge", "-o"], Some("merged")),
    ] {
        let mut command = keeping::command(&out, arguments);
        command.args(to.map(|name| out.join(name))).arg(path).stdin(Stdio::null());
        let output = limited(&mut command, MOST_MEMORY as u64).output().unwrap();
        let is_named = output.status.code().is_some_and(|status| (0..=2).contains(&status));
        assert!(is_named, "{arguments:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn whatever_a_file_holds_reading_it_ends_and_takes_no_memory_without_end() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let usual = if std::env::var_os("CI").is_some() { 60 } else { 10 };
    let seconds = number("ACLSHIM_FUZZ_SECONDS").unwrap_or(usual);
    let fixed = number("ACLSHIM_FUZZ_SEED");
    // Fixed seeds, so that a change does not fail for a fault that was there before; a longer run takes further ones.
    let clock = || std::time::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64);
    let first = fixed.unwrap_or_else(|| if seconds > 60 { clock() } else { 1 });
    let output = kept(&["3", "40"]).ok();
    let out = output.scratch.join("out");
    let trace = Trace::new(&fs::read(only(&out, "acltrace")).unwrap());
    let killed = support::Run::new(keeping::program()).arg("2").arg("30").arg("kill");
    let killed = killed.sim().shim().env("ACLSHIM_DRAIN", "off").run();
    let ring = fs::read(only(&killed.scratch, "ring")).unwrap();
    assert!(files(&out, "acltrace").len() == 1 && trace.blocks.len() > 3 && ring.len() > HEAD);

    // Where nothing goes to a disk, if there is such a place.
    let folder = if Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { output.scratch.clone() };
    let folder = folder.join(format!("fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (a_trace, a_ring) = (folder.join("a.acltrace"), folder.join("a.ring"));
    static TURNS: AtomicU64 = AtomicU64::new(0);
    std::thread::spawn(|| {
        let mut before = u64::MAX;
        loop {
            std::thread::sleep(Duration::from_secs(120));
            let now = TURNS.load(Ordering::Relaxed);
            if now == before {
                give_up("reading does not end");
            }
            before = now;
        }
    });
    let begin = Instant::now();
    let mut seed = first;
    while begin.elapsed() < Duration::from_secs(seconds) {
        SEED.store(seed, Ordering::Relaxed);
        let mut random = Random(seed);
        let read = catch_unwind(AssertUnwindSafe(|| {
            let path = if random.below(3) < 2 {
                read_trace(&trace.changed(&mut random), &a_trace);
                &a_trace
            } else {
                read_ring(&changed_ring(&ring, &mut random), &a_ring);
                &a_ring
            };
            // A process costs as much as many files.
            if fixed == Some(seed) || seed.is_multiple_of(100) {
                commands(path, &folder);
            }
        }));
        assert!(read.is_ok(), "ACLSHIM_FUZZ_SEED={seed}");
        TURNS.fetch_add(1, Ordering::Relaxed);
        seed += 1;
        if fixed.is_some() && std::env::var_os("ACLSHIM_FUZZ_SECONDS").is_none() {
            break;
        }
    }
    println!("{} files from seed {first} on", TURNS.load(Ordering::Relaxed));
    fs::remove_dir_all(folder).unwrap();
}
