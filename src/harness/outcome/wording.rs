//! Messages about a scope: calls, findings and expectations as text.

use crate::harness::aclshim_flag::*;
use crate::harness::state::entry::{CallState, Entry, EntryFinding};
use crate::harness::state::names::Names;
use aclshim_facts::abi::aclrtMemcpyKind;
use aclshim_facts::code;
use std::fmt::Write;

/// Number of calls or findings that are listed one by one.
const MOST: usize = 40;

/// The begin of every message.
pub fn title(scope: &str) -> String {
    format!("aclshim: scope \"{scope}\": ")
}

/// A number with its noun.
pub fn number(count: u64, thing: &str) -> String {
    let s = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{s}")
}

/// An expected number as text: an exact number, or bounds.
pub fn bounds(least: u64, most: u64, thing: &str) -> String {
    match (least, most) {
        (least, most) if least == most => number(least, thing),
        (0, u64::MAX) => format!("any number of {thing}s"),
        (0, most) => format!("at most {}", number(most, thing)),
        (least, u64::MAX) => format!("at least {}", number(least, thing)),
        (least, most) => format!("{least} to {}", number(most, thing)),
    }
}

/// A list of calls, each with its place and the mark that `mark` returns for it. Where there are many, only those with a
/// mark are listed.
pub fn calls<'a>(
    calls: impl Iterator<Item = (u64, &'a Entry)>,
    names: &Names,
    mark: impl Fn(&Entry) -> Option<&'static str>,
) -> String {
    let all: Vec<_> = calls.map(|(order, entry)| (order, entry, mark(entry))).collect();
    let is_marked = |(_, _, mark): &&(u64, &Entry, Option<&str>)| mark.is_some();
    let is_choice = all.len() > MOST && all.iter().any(|call| is_marked(&call));
    let shown = all.iter().filter(|call| !is_choice || is_marked(call)).take(MOST);
    let mut text = String::new();
    let mut count = 0;
    for (order, entry, mark) in shown {
        let mark = mark.map_or(String::new(), |mark| format!("   <- {mark}"));
        let _ = writeln!(text, "  #{order} {}{mark}", call(entry, names));
        count += 1;
    }
    match all.len() - count {
        0 if count == 0 => text.push_str("  (no call)\n"),
        0 => {}
        more => _ = writeln!(text, "  ... and {more} more"),
    }
    text
}

/// A call as C code would write it, with its result and its call site.
pub fn call(entry: &Entry, names: &Names) -> String {
    let mut text = format!("{}(", entry.function.row().name);
    for (nth, (argument, word)) in entry.arguments().enumerate() {
        let comma = if nth == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{}={}", argument.name, value(argument.c_type, word, entry.at, names));
    }
    text.push(')');
    text.push_str(&match entry.fate {
        CallState::UnderWay => " under way".into(),
        CallState::Left => " left by an exception, a jump or the end of its thread".into(),
        CallState::Done => match code::name(entry.code) {
            Some(name) => format!(" = {} ({name})", entry.code),
            None => format!(" = {}", entry.code),
        },
    });
    if !entry.items().is_empty() {
        let _ = write!(text, " [{}]", number(entry.bytes().unwrap_or(0), "byte"));
    }
    for (flag, word) in [(ACLSHIM_INJECTED, " injected"), (ACLSHIM_WAS_REFUSED, " refused")] {
        if entry.flags & flag as i32 != 0 {
            text.push_str(word);
        }
    }
    match names.site(entry.site) {
        Some(site) => _ = write!(text, "  {site}"),
        None => _ = write!(text, "  {:#x}", entry.site),
    }
    text
}

fn value(c_type: &str, word: u64, at: u64, names: &Names) -> String {
    let names = names.at(at);
    match c_type {
        "aclrtStream" if word == 0 => "default".into(),
        "aclrtStream" => names.of_stream(word).map_or_else(|| format!("{word:#x}"), Into::into),
        "aclrtMemcpyKind" => aclrtMemcpyKind(word as i32).name().map_or_else(|| (word as i32).to_string(), Into::into),
        "void *" | "const void *" if word != 0 => match names.of_address(word) {
            Some((name, offset)) => format!("{name}+{offset:#x}"),
            None => format!("{word:#x}"),
        },
        _ => aclshim_facts::message::value(c_type, word),
    }
}

/// A list of findings, each with the place of its call.
pub fn findings<'a>(findings: impl Iterator<Item = (u64, &'a EntryFinding)>) -> String {
    let mut text = String::new();
    let mut more = 0;
    for (nth, (order, found)) in findings.enumerate() {
        if nth < MOST {
            let _ = writeln!(text, "  #{order} {}", found.message.to_string_lossy());
        } else {
            more += 1;
        }
    }
    if more > 0 {
        let _ = writeln!(text, "  ... and {more} more");
    }
    text
}
