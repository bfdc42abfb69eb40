//! Golden runs: the calls of a program as a text that does not change from run to run and can be read in a review, and the
//! difference between two such texts.
//!
//! Pure functions: calls in, text out. The shim takes the calls from a scope, the command from a trace.
//!
//! Values that differ from run to run without a reason in the program do not appear: an address is a buffer and an offset
//! (`alias`), streams are numbered in the order of their first use, each thread has a section of its own (`section`), and
//! there are no thread ids, times or call sites. `docs/testing-command.md` describes the consequences.
//!
//! ```text
//! main thread:
//!   aclrtMemcpyAsync(dst=b1+0x0, destMax=4096, src=weights+0x40, count=4096, kind=HOST_TO_DEVICE, stream=s1) = ACL_SUCCESS
//! 2 threads:
//!   aclrtMemcpyBatch(numBatches=2, numAttrs=1) = ACL_SUCCESS
//!     attribute from item 0: dst DEVICE 0, src HOST
//!     [0] dst=b1+0x0 destMax=64 src=b2+0x0 size=64
//!     [1] dst=b1+0x40 destMax=64 src=b3+0x0 size=64
//! ```

mod alias;
mod call;
mod diff;
mod section;

pub use call::{Attribute, Call, End, GoldenRun, Item, MARK_INJECTED, MARK_REFUSED, Name, NamedObject};
pub use diff::{cut, diff};

use std::collections::BTreeMap;

/// The first lines of a golden file.
const HEAD: &str = "\
# aclshim golden run 1: what a program copies, each thread for itself, addresses as buffer + offset.
# Accept what it does now: run it with ACLSHIM_GOLDEN=update, or with `aclshim test --golden FILE --update -- program`.
";

/// The text of a run: of the program itself, and of the processes that it started.
pub fn text(program: &GoldenRun, children: &[GoldenRun]) -> String {
    let mut text = String::from(HEAD);
    text.push_str(&sections(program));
    let children = children.iter().filter(|child| !child.calls.is_empty()).map(sections);
    for (child, count) in counted(children) {
        text.push_str(&if count == 1 { "child process:\n".into() } else { format!("{count} child processes:\n") });
        child.lines().for_each(|line| text.extend(["  ", line, "\n"]));
    }
    if text.len() == HEAD.len() {
        text.push_str("no call\n");
    }
    text
}

/// The sections of a process: its main thread first, then the others by their text.
fn sections(run: &GoldenRun) -> String {
    let mut threads: BTreeMap<u64, Vec<&Call>> = BTreeMap::new();
    for call in &run.calls {
        threads.entry(call.thread).or_default().push(call);
    }
    let mut text = String::new();
    if let Some(calls) = run.main.and_then(|main| threads.remove(&main)) {
        text.push_str("main thread:\n");
        text.push_str(&section::text(&calls, &run.names));
    }
    for (section, count) in counted(threads.values().map(|calls| section::text(calls, &run.names))) {
        text.push_str(&if count == 1 { "thread:\n".into() } else { format!("{count} threads:\n") });
        text.push_str(&section);
    }
    text
}

/// Number of occurrences of each text, in the order of the texts.
fn counted(texts: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    texts.for_each(|text| *counts.entry(text).or_insert(0) += 1);
    counts
}

/// The difference between a golden file and a run as a unified diff; `None` if there is none.
///
/// Comments (lines that begin with `#`) and the ends of lines may differ.
pub fn compare(expected: &str, actual: &str) -> Option<String> {
    let is_compared = |line: &&str| !line.starts_with('#');
    if expected.lines().filter(is_compared).eq(actual.lines().filter(is_compared)) {
        return None;
    }
    // Comments never appear as a difference: those of the golden file are taken for both.
    let comments = expected.lines().take_while(|line| line.starts_with('#'));
    let compared = actual.lines().skip_while(|line| line.starts_with('#'));
    let actual: Vec<&str> = comments.chain(compared).collect();
    diff(expected, &actual.join("\n"))
}

#[cfg(test)]
mod tests;
