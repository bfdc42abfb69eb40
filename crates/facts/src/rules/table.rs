//! The table of all rules.

use super::entries::batch::{self, item, layout};
use super::entries::{
    argument, capture, descriptor, kind, memory, offset, pitch, range, stream, support, symbol, words,
};
use crate::rules::rule::Rule;
use crate::vendor::abi::aclError;

/// Every rule, by its number, which stands in records: rules are only added, at the end, never moved, renamed or reused.
pub static RULES: &[&Rule] = &[
    &argument::NULL_POINTER,
    &argument::ZERO_SIZE,
    &argument::DEST_MAX,
    &argument::SAME_ADDRESS,
    &kind::KIND_RANGE,
    &kind::KIND_FUNCTION,
    &kind::KIND_PLACE,
    &kind::BUFFER_PLACE,
    &kind::ASYNC_HOST_TO_HOST,
    &kind::KIND_ROOT_COMPLEX,
    &memory::ALIGN_64,
    &range::OVERLAP,
    &range::RANGE_OVERFLOW,
    &range::MEMORY_ROOM,
    &memory::UNALLOCATED,
    &memory::DEVICE_CLOSED,
    &stream::CONTEXT_MISSING,
    &stream::STREAM_INVALID,
    &stream::STREAM_FOREIGN,
    &capture::CAPTURE_SYNC,
    &capture::CAPTURE_PAGEABLE,
    &capture::CAPTURE_BLOCKS,
    &capture::ASYNC_PAGEABLE,
    &stream::CONDITION_DRIVER,
    &pitch::PITCH_WIDTH,
    &pitch::PITCH_LIMIT,
    &pitch::PITCH_KIND,
    &pitch::PITCH_PLACE,
    &pitch::PITCH_PRODUCT,
    &pitch::PITCH_ROOT_COMPLEX,
    &batch::BATCH_EMPTY,
    &batch::BATCH_DEST_MAX,
    &batch::BATCH_RESERVED,
    &layout::BATCH_ATTRS,
    &batch::BATCH_LIMIT,
    &layout::BATCH_INDEX_FIRST,
    &layout::BATCH_INDEX_ORDER,
    &layout::BATCH_INDEX_RANGE,
    &item::BATCH_ZERO_SIZE,
    &item::BATCH_NULL_ITEM,
    &item::BATCH_PLACE,
    &item::BATCH_UNREGISTERED,
    &item::BATCH_DIRECTION,
    &item::BATCH_UNORDERED,
    &offset::SIZE_LIMIT,
    &offset::OFFSET_LIMIT,
    &offset::OFFSET_ROOM,
    &descriptor::DESC_ALIGN,
    &descriptor::DESC_STREAM_NULL,
    &descriptor::DESC_PLACE,
    &descriptor::DESC_SIDES,
    &descriptor::DESC_CONFIG,
    &descriptor::SIZE_TRUNCATED,
    &words::WORDS_ALIGN,
    &words::WORDS_PLACE,
    &words::WORDS_IGNORED,
    &symbol::SYMBOL_UNKNOWN,
    &symbol::SYMBOL_OVERFLOW,
    &symbol::SYMBOL_RANGE,
    &support::DEPRECATED,
    &support::EXPERIMENTAL,
    &support::UNSUPPORTED_PRODUCT,
    &support::UNSUPPORTED_RELEASE,
    &memory::PEER_ACCESS,
];

const _: () = {
    assert!(RULES.len() <= 128, "a set of rules is a u128");
    let mut number = 0;
    while number < RULES.len() {
        assert!(RULES[number].number as usize == number, "the number of a rule is its position in the table");
        number += 1;
    }
};

impl Rule {
    /// The rule of that id.
    pub fn by_id(id: &str) -> Option<&'static Rule> {
        RULES.iter().copied().find(|rule| rule.id == id)
    }

    /// The rules that a call of some function may be refused for with this code.
    pub fn by_code(code: aclError) -> impl Iterator<Item = &'static Rule> {
        RULES.iter().copied().filter(move |rule| rule.codes.iter().any(|(other, _)| *other == code))
    }
}
