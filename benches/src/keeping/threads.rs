//! Counters of threads, from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A set of threads.
pub enum Whose {
    /// The threads of a process that have a name.
    Named(u32, &'static str),
    /// All threads of a process.
    Process(u32),
    /// All threads of a process and of its descendants, except those of processes with the name of the host.
    Tree(u32),
}

/// What is counted of a thread.
pub type Counter = fn(&Path) -> Option<u64>;

/// The sum of a counter over a set of threads; a thread that has ended counts with the last value that was seen.
pub struct Watch {
    whose: Whose,
    counter: Counter,
    seen: BTreeMap<PathBuf, u64>,
}

const HOST: &str = "host";

impl Watch {
    /// Nothing has been seen yet.
    pub fn new(whose: Whose, counter: Counter) -> Self {
        Self { whose, counter, seen: BTreeMap::new() }
    }

    /// Reads the counters; their sum.
    pub fn total(&mut self) -> u64 {
        for thread in self.whose.threads() {
            if let Some(value) = (self.counter)(&thread) {
                self.seen.insert(thread, value);
            }
        }
        self.seen.values().sum()
    }

    /// Number of threads that were seen.
    pub fn threads(&self) -> usize {
        self.seen.len()
    }
}

impl Whose {
    fn threads(&self) -> Vec<PathBuf> {
        match *self {
            Self::Named(process, name) => {
                let mut threads = of_process(process);
                threads.retain(|thread| is_named(thread, name));
                threads
            }
            Self::Process(process) => of_process(process),
            Self::Tree(root) => {
                let tree = tree(root);
                let others = tree.into_iter().filter(|process| !is_named(&folder(*process), HOST));
                others.flat_map(of_process).collect()
            }
        }
    }
}

/// Nanoseconds on a processor.
pub const CPU_NS: Counter = |thread| number(&fs::read_to_string(thread.join("schedstat")).ok()?);

/// How often it was woken or interrupted: context switches of both kinds.
pub const WAKE_UPS: Counter = |thread| {
    let status = fs::read_to_string(thread.join("status")).ok()?;
    let switches = |key| status.lines().find_map(|line| number(line.strip_prefix(key)?.strip_prefix(':')?));
    Some(switches("voluntary_ctxt_switches")? + switches("nonvoluntary_ctxt_switches")?)
};

fn number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

fn folder(process: u32) -> PathBuf {
    Path::new("/proc").join(process.to_string())
}

fn of_process(process: u32) -> Vec<PathBuf> {
    numbered(&folder(process).join("task")).map(|(_, path)| path).collect()
}

fn is_named(folder: &Path, name: &str) -> bool {
    fs::read_to_string(folder.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
}

/// A process and its descendants.
fn tree(root: u32) -> Vec<u32> {
    let parents: BTreeMap<u32, u32> =
        numbered(Path::new("/proc")).filter_map(|(process, path)| Some((process, parent(&path)?))).collect();
    let is_ours = |mut process: u32| {
        while process != root {
            match parents.get(&process) {
                Some(&parent) if parent != process => process = parent,
                _ => return false,
            }
        }
        true
    };
    parents.keys().copied().filter(|process| is_ours(*process)).collect()
}

fn parent(process: &Path) -> Option<u32> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // The name, in parentheses, may hold anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn numbered(folder: &Path) -> impl Iterator<Item = (u32, PathBuf)> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
}
