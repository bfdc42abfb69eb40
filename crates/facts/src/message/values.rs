//! The values of a call and of its arrays, as text.

use crate::call::{Batch, Call, Form};
use crate::rules::role::Role;
use crate::rules::rule::{Finding, Subject};
use crate::vendor::abi::{KINDS, aclrtMemLocation};
use std::fmt::Write;

/// A word as C code would write it, by the type of its argument.
pub fn value(c_type: &str, word: u64) -> String {
    match c_type {
        "aclrtMemcpyKind" => match KINDS.get(word as usize) {
            Some(name) => format!("ACL_MEMCPY_{name}"),
            None => (word as i32).to_string(),
        },
        "int32_t" => (word as i32).to_string(),
        "uint32_t" => (word as u32).to_string(),
        "size_t" if word == u64::MAX => "SIZE_MAX".into(),
        "size_t" => word.to_string(),
        _ if word == 0 => "NULL".into(),
        _ => format!("{word:#x}"),
    }
}

/// The words that a call was made of, in the order of its row.
pub fn words(call: &Call) -> Vec<u64> {
    let mut words = match call.form {
        Form::Linear { dst, dst_max, src, count, kind } => {
            vec![dst as u64, dst_max as u64, src as u64, count as u64, kind.0 as u64]
        }
        Form::Pitched { dst, dst_pitch, src, src_pitch, width, height, kind } => {
            let kind = kind.0 as u64;
            vec![dst as u64, dst_pitch as u64, src as u64, src_pitch as u64, width as u64, height as u64, kind]
        }
        Form::Batch(Batch { dsts, dst_maxs, srcs, sizes, items, attrs, attr_indexes, attr_count, fail_index }) => {
            let mut words = vec![dsts as u64, dst_maxs as u64, srcs as u64, sizes as u64, items as u64];
            words.extend([attrs as u64, attr_indexes as u64, attr_count as u64]);
            words.extend(fail_index.map(|index| index as u64));
            words
        }
        Form::Indirect { dst, dst_max, dst_offset, src, count, src_offset, kind } => {
            let (count, src_offset) = (count as u64, src_offset as u64);
            vec![dst as u64, dst_max as u64, dst_offset as u64, src as u64, count, src_offset, kind.0 as u64]
        }
        Form::Described { desc, kind } => vec![desc as u64, kind.0 as u64],
        Form::FromSymbol { dst, dst_max, symbol, count, offset, kind } => {
            vec![dst as u64, dst_max as u64, symbol as u64, count as u64, offset as u64, kind.0 as u64]
        }
        Form::ToSymbol { symbol, src, count, offset, kind } => {
            vec![symbol as u64, src as u64, count as u64, offset as u64, kind.0 as u64]
        }
        Form::DescSize { kind, size } => vec![kind.0 as u64, size as u64],
        Form::SetDesc { desc, kind, src, dst, count, config } => {
            vec![desc as u64, kind.0 as u64, src as u64, dst as u64, count as u64, config as u64]
        }
        Form::Fill { dst, dst_max, value, count } => vec![dst as u64, dst_max as u64, value as u64, count as u64],
        Form::FillWords { dst, dst_max, value, words } => {
            vec![dst as u64, dst_max as u64, value as u64, words as u64]
        }
    };
    words.extend(call.stream.map(|stream| stream as u64));
    words
}

/// The entry of the array that a finding is at, and what else belongs to it.
fn entry(subject: &Subject, role: Role, index: usize) -> Option<String> {
    let arrays = &subject.arrays;
    let number = |array: Option<&[usize]>| array?.get(index).copied();
    let pointer = |array: Option<&[*mut core::ffi::c_void]>| array?.get(index).map(|pointer| *pointer as usize);
    match role {
        Role::Dst => pointer(arrays.dsts).map(|address| format!("{address:#x}")),
        Role::Src => pointer(arrays.srcs).map(|address| format!("{address:#x}")),
        Role::Count => number(arrays.sizes).map(|size| size.to_string()),
        Role::DstMax => {
            let max = number(arrays.dst_maxs)?;
            let size = number(arrays.sizes).map_or(String::new(), |size| format!(", sizes[{index}] = {size}"));
            Some(format!("{max}{size}"))
        }
        Role::AttrIndexes => {
            let at = |index: usize| arrays.attr_indexes?.get(index).copied();
            let before = index.checked_sub(1).and_then(|before| Some((before, at(before)?)));
            let before = before.map_or(String::new(), |(index, value)| format!(", attrsIndexes[{index}] = {value}"));
            Some(format!("{}{before}", at(index)?))
        }
        Role::Attrs => {
            let attr = arrays.attrs?.get(index)?;
            let first = arrays.attr_indexes.and_then(|indexes| indexes.get(index));
            let first = first.map_or(String::new(), |first| format!(", from item {first} on"));
            Some(format!("{{dst {}, src {}}}{first}", location(attr.dstLoc), location(attr.srcLoc)))
        }
        _ => None,
    }
}

/// A location as people say it. The id of a host location means nothing, and may be anything.
pub fn location(location: aclrtMemLocation) -> String {
    match location.type_ {
        0 => "HOST".into(),
        1 => format!("DEVICE {}", location.id),
        2 => "UNREGISTERED".into(),
        3 => "MANAGED".into(),
        4 => "HOST_NUMA".into(),
        other => format!("type {other}"),
    }
}

/// The attribute of an item: what a finding at an item of `dsts` or `srcs` is measured against.
fn attribute_of(subject: &Subject, item: usize) -> Option<String> {
    let indexes = subject.arrays.attr_indexes?;
    let entry = indexes.iter().rposition(|first| *first <= item)?;
    let attr = subject.arrays.attrs?.get(entry)?;
    Some(format!("attrs[{entry}] = {{dst {}, src {}}}", location(attr.dstLoc), location(attr.srcLoc)))
}

/// The call with its values, and where the finding is.
pub fn values(subject: &Subject, finding: &Finding) -> String {
    let row = subject.function.row();
    let words = words(&subject.call);
    let mut text = format!("{}(", row.name);
    for (position, (argument, word)) in row.arguments.iter().zip(&words).enumerate() {
        let comma = if position == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{} = {}", argument.name, value(argument.c_type, *word));
    }
    text.push(')');
    let Some(argument) = row.arguments.get(finding.argument as usize) else { return text };
    match finding.index {
        Some(index) => {
            let _ = write!(text, ": {}[{index}]", argument.name);
            let role = subject.role_in_batch(finding.argument);
            if let Some(entry) = role.and_then(|role| entry(subject, role, index)) {
                let _ = write!(text, " = {entry}");
            }
            if matches!(role, Some(Role::Dst | Role::Src))
                && let Some(attribute) = attribute_of(subject, index)
            {
                let _ = write!(text, ", {attribute}");
            }
        }
        None => {
            let _ = write!(text, "; wrong argument: {}", argument.name);
        }
    }
    text
}
