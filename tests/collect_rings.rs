//! `aclshim collect` on files that are no rings, or spoiled ones.

#[path = "support/collecting.rs"]
mod collecting;
#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use aclshim_trace::reader;
use aclshim_trace::ring::layout::{Control, HEADER, Header};
use collecting::{Folders, Metrics, leftover};
use recording::ordered::{Ordered, steps};
use recording::truth::Truth;
use std::fs;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Run, aclshim, scratch, target, until};

/// A copy with one word changed, and its process another one, so that none has the name of another.
fn spoiled(ring: &[u8], at: usize, value: &[u8]) -> Vec<u8> {
    let mut copy = ring.to_vec();
    copy[at..at + value.len()].copy_from_slice(value);
    copy
}

#[test]
fn what_is_no_ring_or_a_spoiled_one_does_no_harm() {
    let folders = Folders::new("collect");
    let elsewhere = scratch("collect");
    let ring = leftover(&elsewhere.join("out"));
    let out = elsewhere.join("living");
    let run = |run: Run, pipe: &Path| run.arg(pipe).env("ACLSHIM_DRAIN", "off").env("ACLSHIM_DIR", &out);
    let mut host = Ordered::new(run, steps());
    host.order("calls 100");
    let living_ring = fs::read(&reader::files(&host.scratch).unwrap()[0]).unwrap();
    let first = u64::from_le_bytes(*ring[offset_of!(Header, first)..].first_chunk().unwrap()) as usize;
    let put = |number: u64, bytes: &[u8]| {
        let path = folders.rings.join(format!("aclshim-{}-{number:x}.ring", 4_000_000 + number));
        fs::write(&path, bytes).unwrap();
        path
    };
    let long = [u8::MAX; 8];
    let mut kept = vec![
        put(1, b""),
        put(2, b"garbage"),
        put(3, &vec![7; 100_000]),
        put(4, &ring[..1000]),
        put(5, &spoiled(&ring, offset_of!(Header, version), &99u32.to_le_bytes())),
        put(6, &spoiled(&ring, offset_of!(Header, slots), &3u32.to_le_bytes())),
        put(7, &spoiled(&ring, offset_of!(Header, slots), &long[..4])),
        put(8, &spoiled(&ring, offset_of!(Header, stride), &[0; 8])),
    ];
    // These can be read, more or less: of a process that is gone, and of one that lives.
    let changes = [
        (offset_of!(Header, rings), &long[..4]),
        (offset_of!(Header, first), &long[..]),
        (offset_of!(Header, stride), &long[..]),
        (offset_of!(Header, functions), &long[..4]),
        (offset_of!(Header, calls), &long[..4]),
        (offset_of!(Header, clock), &long[..4]),
        (offset_of!(Header, pid), &[0; 4][..]),
        (offset_of!(Header, pid), &long[..4]),
        (offset_of!(Header, pid_ns), &long[..]),
        (offset_of!(Header, ticks_hz), &[1, 0, 0, 0, 0, 0, 0, 0][..]),
        (offset_of!(Header, born_ns), &long[..]),
        (offset_of!(Header, segment), &[0; 8][..]),
        (offset_of!(Header, budget), &[0; 8][..]),
        (offset_of!(Header, executable), &[0xff; 1024][..]),
        (offset_of!(Header, dir), &[b'/'; 4096][..]),
        (offset_of!(Header, dir), b"relative\0"),
        (offset_of!(Header, pattern), b"../../up\0"),
        (first + offset_of!(Control, drained), &long[..]),
        (first + offset_of!(Control, drained), &[0, 0, 0, 0, 1, 0, 0, 0][..]),
        (first + offset_of!(Control, since), &long[..]),
        (first + offset_of!(Control, not_recorded), &long[..]),
        (first + 4096, &long[..]),
    ];
    let mut in_use = Vec::new();
    for (number, (at, value)) in changes.iter().enumerate() {
        put(100 + number as u64, &spoiled(&ring, *at, value));
        // A copy that is in use, as that of a living process is.
        let living = put(400 + number as u64, &spoiled(&living_ring, *at, value));
        in_use.push(fs::OpenOptions::new().write(true).open(living).unwrap());
    }
    let mut random = 1u64;
    for number in 0..8 {
        let mut noise = ring.clone();
        for word in noise[first + 4096..].chunks_exact_mut(8) {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            word.copy_from_slice(&(random ^ random >> 29).to_le_bytes());
        }
        put(200 + number, &noise);
    }
    let huge = put(300, &ring);
    fs::OpenOptions::new().write(true).open(huge).unwrap().set_len(1 << 40).unwrap();
    let huge = put(301, &spoiled(&ring, offset_of!(Header, rings), &long[..4]));
    fs::OpenOptions::new().write(true).open(huge).unwrap().set_len(1 << 40).unwrap();
    let name = |number: u64| folders.rings.join(format!("aclshim-{number}-1.ring"));
    let fifo = std::ffi::CString::new(name(5_000_001).as_os_str().as_bytes()).unwrap();
    // SAFETY: a C string.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    let target = elsewhere.join("target");
    fs::write(&target, &ring).unwrap();
    symlink(&target, name(5_000_002)).unwrap();
    symlink(elsewhere.join("nowhere"), name(5_000_003)).unwrap();
    fs::create_dir(name(5_000_004)).unwrap();
    kept.extend((5_000_001..=5_000_004).map(name));

    let collector = folders.collector();
    let (mut child, folder) = folders.hammer(&["2", "2000"]);
    child.wait().unwrap();
    let is_left = |numbers: &[u64]| {
        let left = reader::files(&folders.rings).unwrap();
        let of = |number: &u64| folders.rings.join(format!("aclshim-{}-{number:x}.ring", 4_000_000 + number));
        let names: Vec<PathBuf> = numbers.iter().map(of).collect();
        left.iter().all(|path| kept.contains(path) || names.contains(path)) && names.iter().all(|path| path.exists())
    };
    // What belongs nowhere stays.
    let [nowhere, living] = [[114, 115], [414, 415]];
    let all: Vec<u64> = nowhere.into_iter().chain(400..400 + changes.len() as u64).collect();
    until("those of the dead are written", || is_left(&all));
    assert!(fs::read_dir(&out).unwrap().count() > 0, "those of the living are read, too");
    host.end();
    drop(in_use);
    until("all that can be written is", || is_left(&[nowhere, living].concat()));
    let metrics = collector.metrics();
    assert_eq!(metrics.sum("aclshim_worker_failures_total", &[]), 0, "{}", collector.errors());
    collector.end(libc::SIGTERM);
    let stat = folders.stat();
    assert_eq!(stat.total("calls") + stat.total("not_recorded"), Truth::of(&folder).begun());
    assert!(kept.iter().all(|path| fs::symlink_metadata(path).is_ok()), "what is no ring is left alone");
    assert_eq!(fs::read(&target).unwrap(), ring, "nothing is read through a link");
    assert!(!elsewhere.join("up").exists() && !elsewhere.parent().unwrap().join("up").exists());
}

#[test]
fn once_goes_on_until_nothing_is_left_and_tells_of_it() {
    let folders = Folders::new("collect");
    for _ in 0..9 {
        assert!(folders.hammer(&["1", "100"]).0.wait().unwrap().success());
    }
    assert_eq!(reader::files(&folders.rings).unwrap().len(), 9);
    let file = folders.metrics.join("metrics.prom");
    // Too few descriptors to hold all at a time.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 44; exec \"$@\"", "sh"]).arg(target("release/aclshim"));
    command.args(["collect", "--once", "--metrics-file"]).arg(&file).arg(&folders.rings);
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(reader::files(&folders.rings).unwrap().len(), 0);
    assert_eq!(folders.stat().total("calls"), 900);
    assert_eq!(Metrics::of(&fs::read_to_string(file).unwrap()).sum("aclshim_calls_total", &[]), 900);
}

#[test]
fn a_ring_of_another_format_is_named_once_and_fails_once() {
    let folders = Folders::new("collect");
    let ring = leftover(&scratch("collect").join("out"));
    let path = folders.rings.join("aclshim-4000005-5.ring");
    fs::write(&path, spoiled(&ring, offset_of!(Header, version), &99u32.to_le_bytes())).unwrap();
    let mut command = aclshim();
    command.args(["collect", "--once", "--metrics-file"]).arg(folders.metrics.join("metrics"));
    command.arg("--log-dir").arg(folders.metrics.join("log")).arg(&folders.rings);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.matches("format version 99").count()), (Some(1), 1), "{said}");
    assert!(said.contains("end in .prom") && said.contains(path.to_str().unwrap()), "{said}");
    assert!(path.exists());
    // The log has each message of the collector and of its worker, with the time.
    let mut logs = fs::read_dir(folders.metrics.join("log")).unwrap().map(|entry| entry.unwrap().path());
    let log = fs::read_to_string(logs.next().unwrap()).unwrap();
    let messages: Vec<&str> = log.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    assert_eq!((messages, logs.next()), (said.lines().collect(), None));
    assert!(log.starts_with("20") && log.contains("Z aclshim: "), "{log}");
}

#[test]
fn a_ring_that_is_cut_short_while_it_is_read_costs_the_others_nothing() {
    let folders = Folders::new("collect");
    let mut host = folders.host(steps());
    host.order("calls 100");
    // One more of the same process, which so seems to live: the file is open.
    let [ring] = &reader::files(&folders.rings).unwrap()[..] else { panic!("one ring") };
    let out = scratch("collect").join("out");
    let mut path = [0; 4096];
    path[..out.as_os_str().len()].copy_from_slice(out.as_os_str().as_bytes());
    let copy = spoiled(&fs::read(ring).unwrap(), offset_of!(Header, dir), &path);
    let copied = folders.rings.join("aclshim-1-1.ring");
    fs::write(&copied, copy).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&copied).unwrap();
    let collector = folders.collector();
    let is_written = |calls| {
        let stat = folders.stat();
        stat.total("calls") == calls && stat.0["slots"]["ring"] == 0
    };
    until("both are read", || is_written(100) && out.exists());
    // And reported: a worker that dies before it has reported its counts takes them with it.
    until("both are counted", || collector.metrics().sum("aclshim_calls_total", &[]) >= 200);
    file.set_len(HEADER as u64).unwrap();
    until("the worker has met the end of the file", || {
        collector.metrics().sum("aclshim_worker_failures_total", &[]) > 0 && collector.errors().contains("SIGBUS")
    });
    host.order("calls 100");
    until("the rest is read", || is_written(200));
    fs::remove_file(copied).unwrap();
    host.end();
    until("the ring is written and removed", || reader::files(&folders.rings).unwrap().is_empty());
    let metrics = collector.end(libc::SIGTERM);
    let stat = folders.stat();
    assert_eq!((stat.total("calls"), stat.total("not_recorded")), (200, 0));
    assert!(metrics.sum("aclshim_calls_total", &[]) >= 200, "what was counted before is still counted");
}
