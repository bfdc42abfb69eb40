//! Rules of how the attributes of a batch are laid over its items.

use super::{ONE, THREE, THREE_NOW, TO_DEVICE, as_far, entries};
use crate::rules::entries::prelude::*;

/// With two attributes.
const TWO_ATTRS: &[u64] = &[ARRAY, ARRAY, ARRAY, ARRAY, 3, ARRAY, ARRAY, 2, ARRAY];

pub static BATCH_ATTRS: Rule = Rule {
    number: 33,
    id: "BATCH-ATTRS",
    steps: &[Step::vendor(300, BATCH)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always; failIndex is SIZE_MAX")],
    statement: "numAttrs must be at least 1 and at most numBatches",
    sources: &[
        Doc("aclrtMemcpyBatchAsync, Restrictions: numAttrs must be less than or equal to numBatches"),
        Runtime("api_error.cc:7298 and :7344"),
    ],
    fix: "one attribute is enough where all items go the same way: numAttrs = 1, attrsIndexes = {0}",
    check: batch_attrs,
    cases: cases![
        Case::bad(aclrtMemcpyBatch, "no attribute", &[ARRAY, ARRAY, ARRAY, ARRAY, 3, ARRAY, ARRAY, 0, ARRAY])
            .within(THREE),
        Case::bad(
            aclrtMemcpyBatch,
            "more attributes than items",
            &[ARRAY, ARRAY, ARRAY, ARRAY, 1, ARRAY, ARRAY, 2, ARRAY],
        )
        .within(Scene { attrs: &[TO_DEVICE, TO_DEVICE], attr_indexes: &[0, 1], ..ONE }),
        Case::good(
            aclrtMemcpyBatch,
            "as many attributes as items",
            &[ARRAY, ARRAY, ARRAY, ARRAY, 3, ARRAY, ARRAY, 3, ARRAY],
        )
        .within(Scene { attrs: &[TO_DEVICE, TO_DEVICE, TO_DEVICE], attr_indexes: &[0, 1, 2], ..THREE }),
    ],
    implies: &[("BATCH-INDEX-RANGE", "more strictly rising indexes than items run beyond the last item")],
    ..Rule::DEFAULT
};

fn batch_attrs(s: &Subject) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    let is_broken = batch.attr_count == 0 || batch.attr_count > batch.items;
    Verdict::broken_if(is_broken, s.failing(usize::MAX, s.refusal(Role::AttrCount, ACL_ERROR_RT_PARAM_INVALID)))
}

fn wrong_index(s: &Subject, index: usize) -> Verdict {
    let finding = s.failing(usize::MAX, s.refusal(Role::AttrIndexes, ACL_ERROR_RT_PARAM_INVALID));
    Verdict::Broken(Finding { index: Some(index), ..finding })
}

pub static BATCH_INDEX_FIRST: Rule = Rule {
    number: 35,
    id: "BATCH-INDEX-FIRST",
    steps: &[Step::vendor(320, BATCH)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always; failIndex is SIZE_MAX")],
    statement: "the first entry of attrsIndexes must be 0",
    sources: &[Doc("aclrtMemcpyBatchAsync, Restrictions"), Runtime("api_error.cc:7298 and :7344")],
    fix: "attrsIndexes[k] is the first item that attrs[k] applies to: let attrs[0] begin with item 0",
    check: batch_index_first,
    cases: cases![
        Case::bad(aclrtMemcpyBatch, "attributes from item 1 on", THREE_NOW)
            .within(Scene { attr_indexes: &[1], ..THREE }),
        Case::good(aclrtMemcpyBatch, "from item 0 on", THREE_NOW).within(THREE),
    ],
    ..Rule::DEFAULT
};

fn batch_index_first(s: &Subject) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    match s.arrays.attr_indexes.and_then(|indexes| indexes.first()) {
        _ if batch.attr_count == 0 => Verdict::Holds,
        Some(0) => Verdict::Holds,
        Some(_) => wrong_index(s, 0),
        None => Verdict::Unknown,
    }
}

pub static BATCH_INDEX_ORDER: Rule = Rule {
    number: 36,
    id: "BATCH-INDEX-ORDER",
    steps: &[Step::vendor(330, BATCH)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always; failIndex is SIZE_MAX")],
    statement: "each entry of attrsIndexes must be greater than the one before",
    sources: &[Doc("aclrtMemcpyBatchAsync, Restrictions"), Runtime("api_error.cc:7298 and :7344")],
    fix: "sort the attribute ranges; attrsIndexes[k] is the first item that attrs[k] applies to",
    check: batch_index_order,
    cases: cases![
        Case::bad(aclrtMemcpyBatch, "two attributes for item 0", TWO_ATTRS).within(Scene {
            attrs: &[TO_DEVICE, TO_DEVICE],
            attr_indexes: &[0, 0],
            ..THREE
        }),
        Case::good(aclrtMemcpyBatch, "one after the other", TWO_ATTRS).within(Scene {
            attrs: &[TO_DEVICE, TO_DEVICE],
            attr_indexes: &[0, 1],
            ..THREE
        }),
    ],
    ..Rule::DEFAULT
};

fn batch_index_order(s: &Subject) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    let (indexes, is_whole) = entries(s.arrays.attr_indexes, batch.attr_count);
    let pairs = || indexes.iter().zip(indexes.get(1..).unwrap_or_default());
    if pairs().fold(true, |rises, (before, index)| rises & (index > before)) {
        // The vendor looks at both rules entry by entry: it comes no further than one that is out of range.
        let is_over = indexes.last().is_some_and(|last| *last >= batch.items);
        return as_far(is_whole || is_over);
    }
    match pairs().position(|(before, index)| index <= before) {
        Some(before) => wrong_index(s, before + 1),
        None => as_far(is_whole),
    }
}

pub static BATCH_INDEX_RANGE: Rule = Rule {
    number: 37,
    id: "BATCH-INDEX-RANGE",
    steps: &[Step::vendor(340, BATCH)],
    severity: Severity::Error,
    codes: &[(ACL_ERROR_RT_PARAM_INVALID, "always; failIndex is SIZE_MAX")],
    statement: "the last entry of attrsIndexes must be less than numBatches",
    sources: &[Doc("aclrtMemcpyBatchAsync, Restrictions"), Runtime("api_error.cc:7298 and :7344")],
    fix: "attrsIndexes holds the first item of each range, not the item behind it",
    check: batch_index_range,
    cases: cases![
        Case::bad(aclrtMemcpyBatch, "a range behind the last item", TWO_ATTRS).within(Scene {
            attrs: &[TO_DEVICE, TO_DEVICE],
            attr_indexes: &[0, 3],
            ..THREE
        }),
        Case::good(aclrtMemcpyBatch, "a range of the last item", TWO_ATTRS).within(Scene {
            attrs: &[TO_DEVICE, TO_DEVICE],
            attr_indexes: &[0, 2],
            ..THREE
        }),
    ],
    ..Rule::DEFAULT
};

fn batch_index_range(s: &Subject) -> Verdict {
    let Some(batch) = s.batch() else { return Verdict::Holds };
    let (indexes, is_whole) = entries(s.arrays.attr_indexes, batch.attr_count);
    // The first is BATCH-INDEX-FIRST's.
    let indexes = indexes.get(1..).unwrap_or_default();
    if indexes.iter().fold(true, |all, index| all & (*index < batch.items)) {
        return as_far(is_whole);
    }
    match indexes.iter().position(|index| *index >= batch.items) {
        Some(before) => wrong_index(s, before + 1),
        None => as_far(is_whole),
    }
}
