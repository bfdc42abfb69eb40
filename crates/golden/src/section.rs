//! The calls of one thread, a line each.

use crate::alias::{Aliases, buffer_name, is_memory};
use crate::call::{Call, End, MARK_INJECTED, MARK_REFUSED, Name};
use aclshim_facts::abi::{KINDS, aclrtMemLocation};
use aclshim_facts::call::{self, Form};
use aclshim_facts::functions::Argument;
use aclshim_facts::{code, message};
use std::fmt::Write;

/// How an argument is written.
enum Role {
    /// An address of memory, with the number of bytes that the call uses there.
    Memory(u64),
    Stream,
    Symbol,
    /// A pointer whose value means nothing: only NULL is written.
    Hidden,
    Number,
}

/// The text of a thread.
pub fn text(calls: &[&Call], names: &[Name]) -> String {
    let mut aliases = Aliases::new(calls.iter().flat_map(|call| ranges(call, names)), names);
    let mut text = String::new();
    let mut last = (String::new(), 0);
    for call in calls {
        let lines = lines(call, &mut aliases);
        if last.0 != lines {
            write(&mut text, &last.0, last.1);
            last = (lines, 0);
        }
        last.1 += 1;
    }
    write(&mut text, &last.0, last.1);
    text
}

/// Writes equal consecutive calls once, with their number.
fn write(text: &mut String, lines: &str, times: u64) {
    match times {
        0 => {}
        1 => _ = write!(text, "  {lines}"),
        _ => _ = write!(text, "  {times} times: {lines}"),
    }
}

/// The ranges of memory without a name that a call uses. The sizes of a call that was not accepted are unreliable: only its
/// first bytes count.
fn ranges<'a>(call: &'a Call, names: &'a [Name]) -> impl Iterator<Item = (u64, u64)> + 'a {
    let form = call.function.call(&call.arguments).form;
    let of_arguments = call.function.row().arguments.iter().zip(call.arguments).filter_map(move |(argument, word)| {
        if let Role::Memory(bytes) = role(&form, argument) { Some((word, bytes)) } else { None }
    });
    let of_items = call.items.iter().flat_map(|item| [(item.dst, item.size), (item.src, item.size)]);
    let is_new = |(address, _): &(u64, u64)| is_memory(*address) && buffer_name(names, *address, call.at).is_none();
    let is_true = call.is_accepted();
    of_arguments.chain(of_items).filter(is_new).map(move |(begin, bytes)| (begin, if is_true { bytes } else { 1 }))
}

fn role(form: &Form, argument: &Argument) -> Role {
    match (argument.c_type, argument.name) {
        ("aclrtStream", _) => Role::Stream,
        (_, "symbol") => Role::Symbol,
        (_, "config") | ("size_t *" | "aclrtMemcpyBatchAttr *", _) => Role::Hidden,
        ("void *" | "const void *", name) => Role::Memory(extent(form, name)),
        ("void **" | "const void **", _) => match form {
            // The memory holds a pointer.
            Form::Indirect { .. } => Role::Memory(8),
            _ => Role::Hidden,
        },
        _ => Role::Number,
    }
}

/// Number of bytes that a call uses at the argument of that name.
fn extent(form: &Form, name: &str) -> u64 {
    let rows = |pitch: usize, width: usize, height: usize| {
        let before = (pitch as u64).saturating_mul((height as u64).saturating_sub(1));
        before.saturating_add(width as u64)
    };
    match *form {
        Form::Pitched { dst_pitch, width, height, .. } if name == "dst" => rows(dst_pitch, width, height),
        Form::Pitched { src_pitch, width, height, .. } => rows(src_pitch, width, height),
        // Its size is known to the vendor only.
        Form::SetDesc { .. } | Form::Described { .. } if name == "desc" => 1,
        Form::SetDesc { count, .. } => count as u64,
        _ => match (call::Call { form: *form, stream: None }).amount() {
            call::Amount::Bytes(bytes) => bytes,
            call::Amount::Sum { .. } => 1,
        },
    }
}

/// A call, and the lines of its batch.
fn lines(call: &Call, aliases: &mut Aliases) -> String {
    let row = call.function.row();
    let form = call.function.call(&call.arguments).form;
    let mut text = format!("{}(", row.name);
    let mut comma = "";
    for (argument, word) in row.arguments.iter().zip(call.arguments) {
        let value = match role(&form, argument) {
            Role::Memory(_) => aliases.address(word, call.at),
            Role::Stream => aliases.stream(word, call.at),
            Role::Symbol => aliases.symbol(word, call.at),
            Role::Hidden if word == 0 => "NULL".into(),
            Role::Hidden => continue,
            Role::Number => number(argument.c_type, word),
        };
        let _ = write!(text, "{comma}{}={value}", argument.name);
        comma = ", ";
    }
    text.push_str(") = ");
    match call.end {
        End::Returned(0) => text.push_str("ACL_SUCCESS"),
        End::Returned(code) => match code::name(code) {
            Some(name) => text.push_str(name),
            None => _ = write!(text, "{code}"),
        },
        End::UnderWay => text.push_str("under way"),
        End::Left => text.push_str("left by an exception or a jump"),
    }
    for (mark, word) in [(MARK_INJECTED, " (injected)"), (MARK_REFUSED, " (refused)")] {
        text.push_str(if call.marks & mark != 0 { word } else { "" });
    }
    text.push('\n');
    if let Form::Batch(batch) = form {
        batch_lines(&mut text, call, batch.items as u64, aliases);
    }
    text
}

fn batch_lines(text: &mut String, call: &Call, all: u64, aliases: &mut Aliases) {
    let location = |(type_, id): (i32, u32)| message::location(aclrtMemLocation { id, type_ });
    for attribute in &call.attributes {
        let (dst, src) = (location(attribute.dst), location(attribute.src));
        let _ = writeln!(text, "    attribute from item {}: dst {dst}, src {src}", attribute.first);
    }
    for (index, item) in call.items.iter().enumerate() {
        let (dst, src) = (aliases.address(item.dst, call.at), aliases.address(item.src, call.at));
        let _ = writeln!(text, "    [{index}] dst={dst} destMax={} src={src} size={}", item.dst_max, item.size);
    }
    let rest = all.saturating_sub(call.items.len() as u64);
    if rest > 0 && !call.items.is_empty() {
        let _ = writeln!(text, "    ... and {rest} more");
    }
}

fn number(c_type: &str, word: u64) -> String {
    match c_type {
        "aclrtMemcpyKind" => match KINDS.get(word as u32 as usize) {
            Some(name) => (*name).into(),
            None => (word as i32).to_string(),
        },
        _ => message::value(c_type, word),
    }
}
