//! A copy of the recorded runs, as if this machine had made them: files of the user who runs the test, of processes that have
//! ended.

use crate::support::{root, scratch};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Where fields of a header are; see docs/trace-format.md.
mod header {
    pub const UID: usize = 20;
    pub const PID_NS: usize = 24;
    pub const FIRST: usize = 48;
    pub const STRIDE: usize = 56;
    pub const RINGS: usize = 136;
    pub const DIR: usize = 9344;
    pub const DIR_ROOM: usize = 4096;
    pub const TIME_NS: usize = 19584;
    pub const SIZE: usize = 19648;
}

/// The names of all runs.
pub fn names() -> Vec<String> {
    let folders = fs::read_dir(root().join("tests/corpus/runs")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = folders.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// Copies runs into a folder of their own, `runs` in a scratch folder, which is the answer.
pub fn copied(script: &str, runs: &[&str]) -> PathBuf {
    let folder = scratch(&format!("corpus-{script}"));
    for run in runs {
        let (from, to) = (root().join("tests/corpus/runs").join(run), folder.join(run));
        copy(&from, &to, &to.join("out"));
    }
    folder
}

fn copy(from: &Path, to: &Path, out: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        if path.is_dir() {
            copy(&path, &to.join(name), out);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let (name, bytes) = match name.strip_suffix(".packed") {
            Some(name) if name.ends_with(".ring") => (name, ring(unpacked(&bytes), out)),
            Some(name) => (name, trace(unpacked(&bytes))),
            None => (&*name, bytes),
        };
        let file = to.join(name);
        fs::write(&file, bytes).unwrap();
        // Long ago: a file that has just been written to may still have a writer.
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000);
        File::options().write(true).open(&file).unwrap().set_modified(then).unwrap();
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(number)
}

/// Pieces, each: how many zeros, how many other bytes, and these.
fn unpacked(packed: &[u8]) -> Vec<u8> {
    let (mut bytes, mut at) = (Vec::new(), 0);
    while at < packed.len() {
        let (zeros, others) = (number::<4>(packed, at) as usize, number::<4>(packed, at + 4) as usize);
        bytes.resize(bytes.len() + zeros, 0);
        bytes.extend_from_slice(&packed[at + 8..at + 8 + others]);
        at += 8 + others;
    }
    bytes
}

/// Says in a header that its process was one of this machine and this user.
fn settle(header: &mut [u8]) {
    let namespace = |name: &str| fs::metadata(format!("/proc/self/ns/{name}")).map_or(0, |about| about.ino());
    // SAFETY: takes nothing and cannot fail.
    let uid = unsafe { libc::geteuid() };
    header[header::UID..header::UID + 4].copy_from_slice(&uid.to_le_bytes());
    header[header::PID_NS..header::PID_NS + 8].copy_from_slice(&namespace("pid").to_le_bytes());
    header[header::TIME_NS..header::TIME_NS + 8].copy_from_slice(&namespace("time").to_le_bytes());
}

/// A ring of a process whose directory is `out`.
fn ring(mut bytes: Vec<u8>, out: &Path) -> Vec<u8> {
    settle(&mut bytes);
    let dir = out.as_os_str().as_encoded_bytes();
    let field = &mut bytes[header::DIR..header::DIR + header::DIR_ROOM];
    field.fill(0);
    field[..dir.len()].copy_from_slice(dir);
    let [first, stride] = [header::FIRST, header::STRIDE].map(|at| number::<8>(&bytes, at) as usize);
    let whole = first + stride * number::<4>(&bytes, header::RINGS) as usize;
    bytes.resize(whole.max(bytes.len()), 0);
    bytes
}

/// A trace. One whose beginning is not whole stays as it is.
fn trace(mut bytes: Vec<u8>) -> Vec<u8> {
    if !bytes.starts_with(b"ACLTRACE") {
        return bytes;
    }
    let mut at = 64 + number::<4>(&bytes, 12) as usize;
    settle(&mut bytes[64..at]);
    let sum = checksum(&bytes[..at], 40);
    bytes[40..48].copy_from_slice(&sum.to_le_bytes());
    while at + 64 <= bytes.len() && bytes[at..].starts_with(b"BLK1") {
        let end = at + 64 + number::<4>(&bytes, at + 56) as usize;
        if number::<4>(&bytes, at + 4) == 5 && end >= at + 64 + header::SIZE && end <= bytes.len() {
            settle(&mut bytes[at + 64..end]);
            let sum = checksum(&bytes[at..end], 48);
            bytes[at + 48..at + 56].copy_from_slice(&sum.to_le_bytes());
        }
        at = end;
    }
    bytes
}

/// The checksum of docs/trace-format.md over `bytes`, with the word at `at` as 0.
fn checksum(bytes: &[u8], at: usize) -> u64 {
    let mix = |sum: u64, word: u64| (sum ^ word).rotate_left(29).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut covered = bytes.to_vec();
    covered[at..at + 8].fill(0);
    covered.resize(bytes.len().next_multiple_of(32), 0);
    let mut sums = [0, 1, 2, 3].map(|more| bytes.len() as u64 + more);
    for (index, word) in covered.chunks_exact(8).enumerate() {
        sums[index % 4] = mix(sums[index % 4], number::<8>(word, 0));
    }
    sums[1..].iter().fold(sums[0], |sum, other| mix(sum, *other))
}
