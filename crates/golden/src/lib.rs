//! Golden runs: the calls of a program as a text that is the same in every run and can be read in a review, and what is
//! different between two such texts.
//!
//! Pure: calls in, text out. The shim feeds it from a scope, the command from a trace.
//!
//! What differs from run to run without a reason in the program does not appear: addresses are a buffer and an offset,
//! streams are counted in the order in which they come, each thread has a section of its own, and there are no thread
//! ids, times or call sites. What follows from that is written in `docs/testing-command.md`.
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

mod call;
mod diff;
mod place;
mod section;

pub use call::{Attribute, Call, End, Item, MARK_INJECTED, MARK_REFUSED, Name, Named, Run};
pub use diff::{cut, diff};

use std::collections::BTreeMap;

/// What a golden file begins with.
const HEAD: &str = "\
# aclshim golden run 1: what a program copies, each thread for itself, addresses as buffer + offset.
# Accept what it does now: run it with ACLSHIM_GOLDEN=update, or with `aclshim test --golden FILE --update -- program`.
";

/// The text of a run: of the program itself, and of the processes that it started.
pub fn text(program: &Run, children: &[Run]) -> String {
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
fn sections(run: &Run) -> String {
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

/// Equal texts once, in an order that depends on nothing else.
fn counted(texts: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    texts.for_each(|text| *counts.entry(text).or_insert(0) += 1);
    counts
}

/// What is different between a golden file and a run, as a unified diff; `None` if nothing is.
///
/// Comments (lines that begin with `#`) and the ends of lines may differ.
pub fn compare(expected: &str, actual: &str) -> Option<String> {
    let is_told = |line: &&str| !line.starts_with('#');
    if expected.lines().filter(is_told).eq(actual.lines().filter(is_told)) {
        return None;
    }
    // Only what counts is shown: the comments are those that are expected.
    let comments = expected.lines().take_while(|line| line.starts_with('#'));
    let told = actual.lines().skip_while(|line| line.starts_with('#'));
    let actual: Vec<&str> = comments.chain(told).collect();
    diff(expected, &actual.join("\n"))
}

#[cfg(test)]
mod tests;
