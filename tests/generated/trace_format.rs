//! The page that describes the format, `docs/trace-format.md`: text from `trace-format.md` beside this file, and
//! tables made from the structures, so that no offset in it can be wrong.

use aclshim_trace::ring::layout::{CONTROL, Control, HEADER, Header};
use std::fmt::Write;

/// The text of `docs/trace-format.md`.
pub fn trace_format_page() -> String {
    let header = table("pub struct Header {", &header_fields());
    let control = table("pub struct Control {", &control_fields());
    include_str!("trace-format.md")
        .replace("{{header}}", header.trim_end())
        .replace("{{header size}}", &size_of::<Header>().to_string())
        .replace("{{header room}}", &HEADER.to_string())
        .replace("{{control}}", control.trim_end())
        .replace("{{control room}}", &CONTROL.to_string())
}

/// A field: its name, where it begins, and how long it is.
type Field = (&'static str, usize, usize);

macro_rules! fields {
    ($type:ty: $($field:ident)*) => {
        vec![$((stringify!($field), core::mem::offset_of!($type, $field), length(|of: &$type| &of.$field))),*]
    };
}

/// Length of a field.
fn length<S, T>(_: fn(&S) -> &T) -> usize {
    size_of::<T>()
}

fn header_fields() -> Vec<Field> {
    fields!(Header: magic version size pid uid pid_ns start_time born_ns first stride slots mode clock batch_items
            ticks_hz born later rings functions not_recorded told write_failures segment budget calls form doorbell doorbell_reserved growth
            dir_device dir_inode growth_limit drain_allocates reserved names host
            boot_id rank product cann build_id pattern executable library settings dir maps
            time_ns)
}

fn control_fields() -> Vec<Field> {
    fields!(Control: owner reserved since not_recorded told lost_since notes_lost notes_told lost_classes
            mark fresh lap_began pending_jump pending_room shrunk_since full_at reserve apart drained overwritten ended allocated)
}

/// The fields as the structure documents them: name, type and sentences.
fn documented(start: &str) -> Vec<(String, String, String)> {
    let source = include_str!("../../crates/trace/src/ring/layout.rs");
    let body = source.split_once(start).and_then(|(_, rest)| rest.split_once("\n}")).map_or("", |(body, _)| body);
    let mut sentences = Vec::new();
    let mut fields = Vec::new();
    for line in body.lines().map(str::trim) {
        if let Some(sentence) = line.strip_prefix("/// ") {
            sentences.push(sentence.replace("[`", "`").replace("`]", "`"));
        } else if let Some((name, kind)) = line.strip_prefix("pub ").and_then(|field| field.split_once(": ")) {
            let kind = kind.trim_end_matches(',').replace("Atomic", "").to_lowercase();
            fields.push((name.to_owned(), kind, std::mem::take(&mut sentences).join(" ")));
        }
    }
    fields
}

/// Name of a type on the page.
fn type_name(kind: &str, length: usize) -> String {
    match kind {
        "u32" | "u64" => kind.to_owned(),
        "moment" => "3 u64".to_owned(),
        _ => format!("{length} bytes"),
    }
}

fn table(start: &str, fields: &[Field]) -> String {
    let mut table = "| at | type | field | |\n|---|---|---|---|\n".to_owned();
    for ((name, kind, sentence), (_, at, length)) in documented(start).iter().zip(fields) {
        let _ = writeln!(table, "| {at} | {} | `{name}` | {sentence} |", type_name(kind, *length));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_the_structures_is_on_the_page() {
        for (start, fields, size) in [
            ("pub struct Header {", header_fields(), size_of::<Header>()),
            ("pub struct Control {", control_fields(), size_of::<Control>()),
        ] {
            let names: Vec<_> = documented(start).into_iter().map(|(name, ..)| name).collect();
            assert!(names.iter().eq(fields.iter().map(|(name, ..)| name)), "{names:?} are documented");
            let mut end = 0;
            for (name, at, length) in fields {
                assert_eq!(at, end, "{name} begins where the one before ends");
                end = at + length;
            }
            assert!(size - end < 64, "only the alignment follows");
        }
        assert!(documented("pub struct Header {").iter().all(|(.., sentence)| !sentence.is_empty()));
    }

    #[test]
    fn nothing_is_left_to_be_filled_in() {
        let page = trace_format_page();
        assert!(
            !page.contains("{{")
                && page.contains("| 0 | u64 | `magic` |")
                && page.contains("| 128 | u64 | `drained` |")
        );
    }
}
