//! Reading count files, of processes that run and of processes that are gone.

use crate::page::{BLOCKS, Block, Counter, FUNCTIONS, Header, MAGIC, NAME, PREFIX, Page, SUFFIX, VERSION};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What one process counted.
#[derive(Debug, Default)]
pub struct Counts {
    /// The process.
    pub pid: u32,
    /// Where its output goes.
    pub dir: PathBuf,
    /// Calls forwarded but in no counter.
    pub not_recorded: u64,
    /// Outermost calls under way when the file was read.
    pub in_flight: u64,
    /// By function.
    pub functions: BTreeMap<String, Tally>,
}

/// What was counted of one function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Outermost calls.
    pub calls: u64,
    /// Calls inside another.
    pub nested: u64,
    /// Outermost calls that failed.
    pub errors: u64,
    /// Bytes of outermost calls that succeeded.
    pub bytes: u64,
}

/// Why a file cannot be read.
#[derive(Debug)]
pub enum Unreadable {
    /// The file is not one of ours, or not finished.
    NotOurs,
    /// The file is of a version that this program does not know.
    Version(u32),
    /// The file ends too early.
    Short(usize),
    /// The system said no.
    Io(io::Error),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::NotOurs => write!(f, "not an aclshim count file"),
            Unreadable::Version(found) => {
                write!(f, "format version {found}; this program reads version {VERSION}, use the aclshim that wrote it")
            }
            Unreadable::Short(len) => write!(f, "{len} bytes long, expected {}", size_of::<Page>()),
            Unreadable::Io(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Unreadable {}

/// Reads one file.
pub fn read(path: &Path) -> Result<Counts, Unreadable> {
    let mut bytes = Vec::new();
    // A FIFO in a directory that others may write to must not stop us.
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .and_then(|file| file.take(2 * size_of::<Page>() as u64).read_to_end(&mut bytes))
        .map_err(Unreadable::Io)?;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Result<Counts, Unreadable> {
    let word = |at: usize| bytes.get(at..at + 8).map(|b| u64::from_le_bytes(b.try_into().unwrap_or_default()));
    let half = |at: usize| bytes.get(at..at + 4).map(|b| u32::from_le_bytes(b.try_into().unwrap_or_default()));
    let text = |at: usize, room: usize| {
        let field = bytes.get(at..at + room).unwrap_or_default();
        field.split(|&b| b == 0).next().unwrap_or_default()
    };
    if word(offset_of!(Header, magic)) != Some(MAGIC) {
        return Err(Unreadable::NotOurs);
    }
    match half(offset_of!(Header, version)) {
        Some(VERSION) => {}
        found => return Err(Unreadable::Version(found.unwrap_or_default())),
    }
    if bytes.len() < size_of::<Page>() {
        return Err(Unreadable::Short(bytes.len()));
    }
    let word = |at| word(at).unwrap_or_default();
    let half = |at| half(at).unwrap_or_default();

    let mut counts = Counts {
        pid: half(offset_of!(Header, pid)),
        dir: PathBuf::from(std::ffi::OsStr::from_bytes(text(offset_of!(Header, dir), 4096))),
        not_recorded: word(offset_of!(Header, not_recorded)),
        ..Counts::default()
    };
    let functions = (half(offset_of!(Header, functions)) as usize).min(FUNCTIONS);
    for block in (0..BLOCKS).map(|n| offset_of!(Page, blocks) + n * size_of::<Block>()) {
        counts.in_flight += u64::from(half(block + offset_of!(Block, open)));
        for function in 0..functions {
            let name = text(offset_of!(Header, names) + function * NAME, NAME);
            let tally = counts.functions.entry(String::from_utf8_lossy(name).into_owned()).or_default();
            let counter = block + offset_of!(Block, counters) + function * size_of::<Counter>();
            *tally += Tally {
                calls: word(counter + offset_of!(Counter, calls)),
                nested: word(counter + offset_of!(Counter, nested)),
                errors: word(counter + offset_of!(Counter, errors)),
                bytes: word(counter + offset_of!(Counter, bytes)),
            };
        }
    }
    counts.functions.retain(|_, tally| *tally != Tally::default());
    Ok(counts)
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.nested += other.nested;
        self.errors += other.errors;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The count files in `directory`, by name.
pub fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = fs::read_dir(directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().as_bytes();
            name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
        })
        .collect();
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("aclshim-trace-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn what_two_threads_count_is_read_back_as_one_sum() {
        let dir = scratch("sum");
        let page = writer::create(dir.as_os_str().as_bytes(), b"/some/where", ["first", "second"].into_iter()).unwrap();
        for me in [7, 8] {
            let block = page.claim(me, |_| true);
            block.add(&block.counter(1).calls, 3);
            block.add(&block.counter(1).bytes, 100);
        }
        let [path] = &files(&dir).unwrap()[..] else { panic!("one file") };
        let counts = read(path).unwrap();
        assert_eq!((counts.pid, counts.dir.as_path()), (std::process::id(), Path::new("/some/where")));
        assert_eq!(counts.functions["second"], Tally { calls: 6, bytes: 200, ..Tally::default() });
        assert!(!counts.functions.contains_key("first"));
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_block_is_handed_on_when_its_thread_is_gone_and_shared_when_all_live() {
        let dir = scratch("claim");
        let page = writer::create(dir.as_os_str().as_bytes(), b"", ["f"].into_iter()).unwrap();
        let first = page.claim(1, |_| true);
        assert!(std::ptr::eq(first, page.claim(1, |_| true)), "it stays its own");
        for thread in 2..BLOCKS as u32 {
            assert!(!std::ptr::eq(page.claim(thread, |_| true), &page.blocks[0]), "there is room for {thread}");
        }
        assert!(std::ptr::eq(page.claim(1000, |_| true), &page.blocks[0]), "no block left");
        assert!(std::ptr::eq(page.claim(1000, |owner| owner != 1), first), "thread 1 is gone");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn junk_a_cut_file_and_a_newer_version_are_told_apart() {
        assert!(matches!(parse(b"hello"), Err(Unreadable::NotOurs)));
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend(9u32.to_le_bytes());
        assert!(matches!(parse(&bytes), Err(Unreadable::Version(9))));
        bytes[8] = VERSION as u8;
        assert!(matches!(parse(&bytes), Err(Unreadable::Short(12))));
    }
}
