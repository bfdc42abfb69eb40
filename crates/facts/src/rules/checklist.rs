//! The vendor's checks of each shape of call, in the vendor's order.
//!
//! Releases differ in what they accept early (see [`Subject::is_nothing`]); where an older release tests the same
//! things in another order, the codes are the same, and one order stands for both.

use super::argument::{DEST_MAX, NULL_POINTER, SAME_ADDRESS, ZERO_SIZE, is_same};
use super::batch::{self, BATCH_DEST_MAX, BATCH_EMPTY, BATCH_LIMIT, BATCH_RESERVED};
use super::capture::{ASYNC_PAGEABLE, CAPTURE_BLOCKS, CAPTURE_PAGEABLE, CAPTURE_SYNC};
use super::descriptor::{DESC_ALIGN, DESC_CONFIG, DESC_PLACE, DESC_SIDES, DESC_STREAM_NULL, SIZE_TRUNCATED};
use super::item::{
    BATCH_DIRECTION, BATCH_NULL_ITEM, BATCH_PLACE, BATCH_UNORDERED, BATCH_UNREGISTERED, BATCH_ZERO_SIZE,
};
use super::kind::{
    ASYNC_HOST_TO_HOST, BUFFER_PLACE, KIND_FUNCTION, KIND_PLACE, KIND_RANGE, KIND_ROOT_COMPLEX, host_to_host_refused,
};
use super::layout::{BATCH_ATTRS, BATCH_INDEX_FIRST, BATCH_INDEX_ORDER, BATCH_INDEX_RANGE};
use super::memory::{
    ALIGN_64, DEVICE_CLOSED, UNALLOCATED, desc_there, dst_looked_at, dst_there, src_looked_at, src_there,
};
use super::offset::{OFFSET_LIMIT, OFFSET_ROOM, SIZE_LIMIT};
use super::peer::PEER_ACCESS;
use super::pitch::{
    PITCH_KIND, PITCH_LIMIT, PITCH_PLACE, PITCH_PRODUCT, PITCH_ROOT_COMPLEX, PITCH_WIDTH, pitch_kind_known,
    pitch_kind_refused,
};
use super::range::{MEMORY_ROOM, OVERLAP, RANGE_OVERFLOW, desc_room, dst_room, host_room, src_room};
use super::stream::{
    CONDITION_DRIVER, CONTEXT_MISSING, STREAM_FOREIGN, STREAM_INVALID, context_is_there, default_stream_missing,
};
use super::support::{DEPRECATED, EXPERIMENTAL, UNSUPPORTED_PRODUCT, UNSUPPORTED_RELEASE};
use super::symbol::{SYMBOL_OVERFLOW, SYMBOL_RANGE, SYMBOL_UNKNOWN};
use super::words::{WORDS_ALIGN, WORDS_IGNORED, WORDS_PLACE, is_ignored};
use crate::call::{Call, Form};
use crate::functions::{Function, Support};
use crate::rule::{Rule, Subject, Verdict};

/// What there is to check of a call of one function.
pub struct Checklist {
    /// What the vendor checks, in its order.
    pub steps: &'static [Step],
    /// What it does not check, of a call that it carries out.
    pub advice: &'static [&'static Rule],
    /// What is checked of every call, also of one that moves nothing.
    pub always: &'static [Step],
}

/// One step of the vendor's.
pub enum Step {
    /// It accepts the call here, with nothing to do; `None` if that is not known.
    Accept(fn(&Subject) -> Option<bool>),
    /// It checks a rule.
    Check(&'static Rule),
    /// It checks a part of a rule.
    Part(&'static Rule, fn(&Subject) -> Verdict),
    /// It checks a rule, but only of the functions of the shape that have this support.
    Only(Support, &'static Rule),
    /// It checks these rules item by item of a batch, and with them what the attributes say.
    Items(&'static [&'static Rule]),
}

use Step::{Accept, Check, Items, Only, Part};

impl Step {
    /// Hands the verdict of each rule that is checked as a whole to `see`; whether that says to go on.
    pub fn check(&self, subject: &Subject, see: &mut dyn FnMut(&'static Rule, Verdict) -> bool) -> bool {
        self.rules(subject.function).iter().all(|rule| see(rule, (rule.check)(subject)))
    }

    /// The rules that this step checks of a function.
    fn rules(&self, function: Function) -> &[&'static Rule] {
        match self {
            Accept(_) => &[],
            Check(rule) | Part(rule, _) => core::slice::from_ref(rule),
            Only(support, rule) if function.row().support == *support => core::slice::from_ref(rule),
            Only(..) => &[],
            Items(rules) => rules,
        }
    }
}

impl Rule {
    /// Whether it is checked of this function: its checklist names it. Found anew each time: a table that is filled once takes
    /// a lock, and a child that is forked meanwhile would wait for it.
    pub fn applies_to(&self, function: Function) -> bool {
        let Checklist { steps, advice, always } = checklist(&function.call(&[]));
        let checked = steps.iter().chain(*always).flat_map(|step| step.rules(function));
        checked.chain(*advice).any(|rule| rule.number == self.number)
    }

    /// The functions that it is checked of, in the order of the table.
    pub fn functions(&self) -> impl Iterator<Item = Function> {
        Function::ALL.iter().copied().filter(|function| self.applies_to(*function))
    }
}

/// The checklist of a call, by the shape of its arguments.
pub fn checklist(call: &Call) -> &'static Checklist {
    match (&call.form, call.stream.is_some()) {
        (Form::Linear { .. }, false) => &LINEAR,
        (Form::Linear { .. }, true) => &LINEAR_ASYNC,
        (Form::Pitched { .. }, false) => &PITCHED,
        (Form::Pitched { .. }, true) => &PITCHED_ASYNC,
        (Form::Batch(_), false) => &BATCH,
        (Form::Batch(_), true) => &BATCH_ASYNC,
        (Form::Indirect { .. }, _) => &INDIRECT,
        (Form::Described { .. }, _) => &DESCRIBED,
        (Form::FromSymbol { .. }, false) => &FROM_SYMBOL,
        (Form::FromSymbol { .. }, true) => &FROM_SYMBOL_ASYNC,
        (Form::ToSymbol { .. }, false) => &TO_SYMBOL,
        (Form::ToSymbol { .. }, true) => &TO_SYMBOL_ASYNC,
        (Form::DescSize { .. }, _) => &DESC_SIZE,
        (Form::SetDesc { .. }, _) => &SET_DESC,
        (Form::Fill { .. }, false) => &FILL,
        (Form::Fill { .. }, true) => &FILL_ASYNC,
        (Form::FillWords { .. }, false) => &WORDS,
        (Form::FillWords { .. }, true) => &WORDS_ASYNC,
    }
}

const NOTHING: Step = Accept(|s| s.is_nothing());
const SAME: Step = Accept(is_same);
const CONTEXT: Step = Part(&CONTEXT_MISSING, context_is_there);

const DEPRECATION: Step = Only(Support::Deprecated, &DEPRECATED);
const TRIAL: Step = Only(Support::Experimental, &EXPERIMENTAL);
const RELEASE: Step = Only(Support::Since9_1, &UNSUPPORTED_RELEASE);

const DST_THERE: Step = Part(&UNALLOCATED, dst_there);
const SRC_THERE: Step = Part(&UNALLOCATED, src_there);
const DESC_THERE: Step = Part(&UNALLOCATED, desc_there);
const DST_LOOKED_AT: Step = Part(&UNALLOCATED, dst_looked_at);
const SRC_LOOKED_AT: Step = Part(&UNALLOCATED, src_looked_at);
const DST_ROOM: Step = Part(&MEMORY_ROOM, dst_room);
const SRC_ROOM: Step = Part(&MEMORY_ROOM, src_room);
const HOST_ROOM: Step = Part(&MEMORY_ROOM, host_room);
const DESC_ROOM: Step = Part(&MEMORY_ROOM, desc_room);

static LINEAR: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&NULL_POINTER),
        Check(&KIND_RANGE),
        Check(&KIND_FUNCTION),
        Check(&DEST_MAX),
        Check(&ZERO_SIZE),
        SAME,
        CONTEXT,
        Check(&CAPTURE_SYNC),
        DST_THERE,
        DST_ROOM,
        SRC_THERE,
        SRC_ROOM,
        HOST_ROOM,
    ],
    advice: &[&MEMORY_ROOM, &OVERLAP, &RANGE_OVERFLOW, &PEER_ACCESS],
    always: &[Check(&ZERO_SIZE), Check(&SAME_ADDRESS), DEPRECATION, TRIAL, RELEASE],
};

const ON_STREAM_ADVICE: &[&Rule] =
    &[&ASYNC_HOST_TO_HOST, &ALIGN_64, &ASYNC_PAGEABLE, &MEMORY_ROOM, &OVERLAP, &RANGE_OVERFLOW, &KIND_ROOT_COMPLEX];

static LINEAR_ASYNC: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&NULL_POINTER),
        Check(&KIND_RANGE),
        Check(&KIND_FUNCTION),
        Check(&STREAM_INVALID),
        Check(&DEST_MAX),
        Check(&ZERO_SIZE),
        CONTEXT,
        // The function with the condition is the deprecated one of this shape.
        Only(Support::Deprecated, &CONDITION_DRIVER),
        SRC_LOOKED_AT,
        DST_LOOKED_AT,
        Check(&BUFFER_PLACE),
        Check(&KIND_PLACE),
        Part(&ASYNC_HOST_TO_HOST, host_to_host_refused),
        SAME,
        Check(&CAPTURE_PAGEABLE),
        Check(&STREAM_FOREIGN),
        Check(&CAPTURE_BLOCKS),
        DST_THERE,
        DST_ROOM,
        SRC_THERE,
        SRC_ROOM,
        HOST_ROOM,
    ],
    advice: ON_STREAM_ADVICE,
    always: &[Check(&ZERO_SIZE), Check(&SAME_ADDRESS), DEPRECATION, TRIAL, RELEASE],
};

static PITCHED: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&NULL_POINTER),
        Check(&ZERO_SIZE),
        Check(&PITCH_WIDTH),
        Check(&KIND_RANGE),
        Check(&KIND_FUNCTION),
        Part(&PITCH_KIND, pitch_kind_known),
        Check(&PITCH_LIMIT),
        Part(&PITCH_KIND, pitch_kind_refused),
        CONTEXT,
        SRC_LOOKED_AT,
        DST_LOOKED_AT,
        Check(&KIND_PLACE),
        Check(&PITCH_PLACE),
        Check(&CAPTURE_SYNC),
        Check(&PITCH_ROOT_COMPLEX),
        DST_ROOM,
        SRC_ROOM,
        HOST_ROOM,
    ],
    advice: &[&PITCH_KIND, &MEMORY_ROOM, &RANGE_OVERFLOW],
    always: &[Check(&ZERO_SIZE), DEPRECATION, TRIAL, RELEASE],
};

static PITCHED_ASYNC: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&NULL_POINTER),
        Check(&ZERO_SIZE),
        Check(&PITCH_WIDTH),
        Check(&KIND_RANGE),
        Check(&KIND_FUNCTION),
        Part(&PITCH_KIND, pitch_kind_known),
        Check(&STREAM_INVALID),
        Part(&CONTEXT_MISSING, default_stream_missing),
        Check(&PITCH_LIMIT),
        CONTEXT,
        SRC_LOOKED_AT,
        DST_LOOKED_AT,
        Check(&KIND_PLACE),
        Check(&PITCH_PLACE),
        Check(&CAPTURE_PAGEABLE),
        Check(&STREAM_FOREIGN),
        Check(&CAPTURE_BLOCKS),
        Check(&PITCH_ROOT_COMPLEX),
        DST_THERE,
        DST_ROOM,
        SRC_THERE,
        SRC_ROOM,
        HOST_ROOM,
    ],
    advice: &[&PITCH_KIND, &PITCH_PRODUCT, &ASYNC_PAGEABLE, &MEMORY_ROOM, &RANGE_OVERFLOW],
    always: &[Check(&ZERO_SIZE), DEPRECATION, TRIAL, RELEASE],
};

static BATCH: Checklist = Checklist {
    steps: &[
        Check(&NULL_POINTER),
        Check(&BATCH_EMPTY),
        Accept(batch::is_nothing),
        Check(&BATCH_DEST_MAX),
        Check(&BATCH_RESERVED),
        Check(&UNSUPPORTED_PRODUCT),
        Check(&BATCH_ATTRS),
        Check(&BATCH_LIMIT),
        Check(&BATCH_INDEX_FIRST),
        Check(&BATCH_INDEX_ORDER),
        Check(&BATCH_INDEX_RANGE),
        Items(&[
            &BATCH_ZERO_SIZE,
            &BATCH_NULL_ITEM,
            &BATCH_PLACE,
            &BATCH_UNREGISTERED,
            &BATCH_DIRECTION,
            &UNALLOCATED,
            &MEMORY_ROOM,
            &DEVICE_CLOSED,
        ]),
    ],
    advice: &[&BATCH_UNORDERED, &MEMORY_ROOM, &RANGE_OVERFLOW],
    always: &[DEPRECATION, TRIAL, RELEASE],
};

static BATCH_ASYNC: Checklist = Checklist {
    steps: &[
        Check(&NULL_POINTER),
        Check(&BATCH_EMPTY),
        Accept(batch::is_nothing),
        Check(&BATCH_DEST_MAX),
        Check(&BATCH_RESERVED),
        Check(&UNSUPPORTED_PRODUCT),
        Check(&STREAM_INVALID),
        Check(&BATCH_ATTRS),
        Check(&BATCH_INDEX_FIRST),
        Check(&BATCH_INDEX_ORDER),
        Check(&BATCH_INDEX_RANGE),
        CONTEXT,
        Items(&[
            &BATCH_ZERO_SIZE,
            &BATCH_NULL_ITEM,
            &BATCH_PLACE,
            &BATCH_UNREGISTERED,
            &BATCH_DIRECTION,
            &UNALLOCATED,
            &MEMORY_ROOM,
            &STREAM_FOREIGN,
            &CAPTURE_PAGEABLE,
            &CAPTURE_BLOCKS,
            &BATCH_LIMIT,
        ]),
    ],
    advice: &[&BATCH_UNORDERED, &ASYNC_PAGEABLE, &MEMORY_ROOM, &RANGE_OVERFLOW],
    always: &[DEPRECATION, TRIAL, RELEASE],
};

static INDIRECT: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&KIND_RANGE),
        Check(&KIND_FUNCTION),
        Check(&UNSUPPORTED_PRODUCT),
        Check(&STREAM_INVALID),
        Check(&NULL_POINTER),
        Check(&DEST_MAX),
        Check(&ZERO_SIZE),
        Check(&SIZE_LIMIT),
        Check(&OFFSET_LIMIT),
        Check(&OFFSET_ROOM),
        CONTEXT,
        SRC_THERE,
        DST_THERE,
        Check(&STREAM_FOREIGN),
    ],
    advice: &[],
    always: &[Check(&ZERO_SIZE), DEPRECATION, TRIAL, RELEASE],
};

static DESC_SIZE: Checklist = Checklist {
    steps: &[Check(&NULL_POINTER), Check(&KIND_RANGE), Check(&UNSUPPORTED_PRODUCT), Check(&KIND_FUNCTION)],
    advice: &[],
    always: &[DEPRECATION, TRIAL, RELEASE],
};

static SET_DESC: Checklist = Checklist {
    steps: &[
        Check(&NULL_POINTER),
        Check(&KIND_RANGE),
        Check(&ZERO_SIZE),
        Check(&DESC_CONFIG),
        Check(&UNSUPPORTED_PRODUCT),
        Check(&KIND_FUNCTION),
        Check(&SIZE_LIMIT),
        Check(&DESC_ALIGN),
        Check(&DEVICE_CLOSED),
        DESC_THERE,
        DST_THERE,
        SRC_THERE,
        Check(&DESC_PLACE),
        Check(&DESC_SIDES),
        CONTEXT,
        DESC_ROOM,
    ],
    advice: &[&SIZE_TRUNCATED, &OVERLAP, &RANGE_OVERFLOW],
    always: &[DEPRECATION, TRIAL, RELEASE],
};

static DESCRIBED: Checklist = Checklist {
    steps: &[
        Check(&NULL_POINTER),
        Check(&KIND_RANGE),
        Check(&DESC_STREAM_NULL),
        Check(&UNSUPPORTED_PRODUCT),
        Check(&STREAM_INVALID),
        Check(&KIND_FUNCTION),
        Check(&DEVICE_CLOSED),
        DESC_THERE,
        Check(&DESC_PLACE),
        Check(&DESC_ALIGN),
        CONTEXT,
        Check(&STREAM_FOREIGN),
    ],
    advice: &[],
    always: &[DEPRECATION, TRIAL, RELEASE],
};

const SYMBOL_ALWAYS: &[Step] = &[DEPRECATION, TRIAL, RELEASE, Check(&UNSUPPORTED_PRODUCT)];

static FROM_SYMBOL: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&NULL_POINTER),
        Check(&DEST_MAX),
        Check(&KIND_RANGE),
        Check(&KIND_FUNCTION),
        CONTEXT,
        Check(&SYMBOL_UNKNOWN),
        Check(&SYMBOL_OVERFLOW),
        Check(&SYMBOL_RANGE),
        SAME,
        Check(&CAPTURE_SYNC),
        DST_THERE,
        DST_ROOM,
        HOST_ROOM,
    ],
    advice: &[&MEMORY_ROOM, &RANGE_OVERFLOW],
    always: SYMBOL_ALWAYS,
};

static FROM_SYMBOL_ASYNC: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&NULL_POINTER),
        Check(&DEST_MAX),
        Check(&KIND_RANGE),
        Check(&KIND_FUNCTION),
        CONTEXT,
        Check(&SYMBOL_UNKNOWN),
        Check(&SYMBOL_OVERFLOW),
        Check(&SYMBOL_RANGE),
        Check(&STREAM_INVALID),
        DST_LOOKED_AT,
        SAME,
        Check(&CAPTURE_PAGEABLE),
        Check(&STREAM_FOREIGN),
        Check(&CAPTURE_BLOCKS),
        DST_THERE,
        DST_ROOM,
        HOST_ROOM,
    ],
    advice: &[&ASYNC_PAGEABLE, &MEMORY_ROOM, &RANGE_OVERFLOW],
    always: SYMBOL_ALWAYS,
};

static TO_SYMBOL: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&NULL_POINTER),
        Check(&KIND_RANGE),
        Check(&KIND_FUNCTION),
        CONTEXT,
        Check(&SYMBOL_UNKNOWN),
        Check(&SYMBOL_OVERFLOW),
        Check(&SYMBOL_RANGE),
        SAME,
        Check(&CAPTURE_SYNC),
        SRC_THERE,
        SRC_ROOM,
        HOST_ROOM,
    ],
    advice: &[&MEMORY_ROOM, &RANGE_OVERFLOW],
    always: SYMBOL_ALWAYS,
};

static TO_SYMBOL_ASYNC: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&NULL_POINTER),
        Check(&KIND_RANGE),
        Check(&KIND_FUNCTION),
        CONTEXT,
        Check(&SYMBOL_UNKNOWN),
        Check(&SYMBOL_OVERFLOW),
        Check(&SYMBOL_RANGE),
        Check(&STREAM_INVALID),
        SRC_LOOKED_AT,
        SAME,
        Check(&CAPTURE_PAGEABLE),
        Check(&STREAM_FOREIGN),
        Check(&CAPTURE_BLOCKS),
        SRC_THERE,
        SRC_ROOM,
        HOST_ROOM,
    ],
    advice: &[&ASYNC_PAGEABLE, &MEMORY_ROOM, &RANGE_OVERFLOW],
    always: SYMBOL_ALWAYS,
};

static FILL: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&NULL_POINTER),
        Check(&ZERO_SIZE),
        CONTEXT,
        Check(&CAPTURE_SYNC),
        Check(&DEST_MAX),
        DST_THERE,
        DST_ROOM,
        HOST_ROOM,
    ],
    advice: &[&MEMORY_ROOM, &RANGE_OVERFLOW],
    always: &[Check(&ZERO_SIZE), DEPRECATION, TRIAL, RELEASE],
};

static FILL_ASYNC: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&NULL_POINTER),
        Check(&STREAM_INVALID),
        Check(&DEST_MAX),
        Check(&ZERO_SIZE),
        CONTEXT,
        Check(&STREAM_FOREIGN),
        DST_THERE,
        DST_ROOM,
        HOST_ROOM,
    ],
    advice: &[&MEMORY_ROOM, &RANGE_OVERFLOW],
    always: &[Check(&ZERO_SIZE), DEPRECATION, TRIAL, RELEASE],
};

const WORDS_ALWAYS: &[Step] = &[Check(&WORDS_IGNORED), DEPRECATION, TRIAL, RELEASE];

static WORDS: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&NULL_POINTER),
        Check(&WORDS_ALIGN),
        Check(&DEST_MAX),
        Check(&DEVICE_CLOSED),
        DST_THERE,
        Check(&WORDS_PLACE),
        CONTEXT,
        Accept(is_ignored),
        DST_ROOM,
        HOST_ROOM,
    ],
    advice: &[&MEMORY_ROOM, &RANGE_OVERFLOW],
    always: WORDS_ALWAYS,
};

static WORDS_ASYNC: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&NULL_POINTER),
        Check(&WORDS_ALIGN),
        Check(&DEST_MAX),
        Check(&DEVICE_CLOSED),
        DST_THERE,
        Check(&WORDS_PLACE),
        Check(&STREAM_INVALID),
        CONTEXT,
        Check(&STREAM_FOREIGN),
        Accept(is_ignored),
        DST_ROOM,
        HOST_ROOM,
    ],
    advice: &[&MEMORY_ROOM, &RANGE_OVERFLOW],
    always: WORDS_ALWAYS,
};
