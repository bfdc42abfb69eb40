//! The vendor's checks of each function, in the vendor's order.
//!
//! Releases differ in what they accept early (see [`Subject::is_nothing`]); where an older release tests the same
//! things in another order, the codes are the same, and one order stands for both.

use super::argument::{DEST_MAX, NULL_POINTER, SAME_ADDRESS, ZERO_SIZE, is_same};
use super::batch::{self, BATCH_DEST_MAX, BATCH_EMPTY, BATCH_LIMIT, BATCH_RESERVED};
use super::capture::{ASYNC_PAGEABLE, CAPTURE_BLOCKS, CAPTURE_PAGEABLE, CAPTURE_SYNC};
use super::descriptor::{DESC_ALIGN, DESC_CONFIG, DESC_PLACE, DESC_SIDES, DESC_STREAM_NULL, SIZE_TRUNCATED};
use super::item::BATCH_UNORDERED;
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
use crate::functions::Function::{self, *};
use crate::rule::{Rule, Subject, Verdict};

/// What there is to check of a call of one function.
pub struct Checklist {
    /// What the vendor checks, in its order.
    pub steps: &'static [Step],
    /// What it does not check, of a call that it carries out.
    pub advice: &'static [&'static Rule],
    /// What there is to say of every call, also of one that moves nothing.
    pub always: &'static [&'static Rule],
}

/// One step of the vendor's.
pub enum Step {
    /// It accepts the call here, with nothing to do; `None` if that cannot be told.
    Accept(fn(&Subject) -> Option<bool>),
    /// It checks a rule.
    Check(&'static Rule),
    /// It checks a part of a rule.
    Part(&'static Rule, fn(&Subject) -> Verdict),
    /// It looks at the items of a batch, and what their attributes say comes out.
    Items,
}

use Step::{Accept, Check, Items, Part};

/// The checklist of a function.
pub fn checklist(function: Function) -> &'static Checklist {
    match function {
        aclrtMemcpy => &LINEAR,
        aclrtMemcpyAsync => &LINEAR_ASYNC,
        aclrtMemcpyAsyncWithCondition => &LINEAR_WITH_CONDITION,
        aclrtMemcpy2d => &PITCHED,
        aclrtMemcpy2dAsync => &PITCHED_ASYNC,
        aclrtMemcpyBatch => &BATCH,
        aclrtMemcpyBatchV2 => &BATCH_V2,
        aclrtMemcpyBatchAsync => &BATCH_ASYNC,
        aclrtMemcpyBatchAsyncV2 => &BATCH_ASYNC_V2,
        aclrtMemcpyAsyncWithOffset => &INDIRECT,
        aclrtMemcpyAsyncWithDesc => &DESCRIBED,
        aclrtMemcpyFromSymbol => &FROM_SYMBOL,
        aclrtMemcpyFromSymbolAsync => &FROM_SYMBOL_ASYNC,
        aclrtMemcpyToSymbol => &TO_SYMBOL,
        aclrtMemcpyToSymbolAsync => &TO_SYMBOL_ASYNC,
        aclrtGetMemcpyDescSize => &DESC_SIZE,
        aclrtSetMemcpyDesc => &SET_DESC,
        aclrtMemset => &FILL,
        aclrtMemsetAsync => &FILL_ASYNC,
        aclrtMemsetD32 => &WORDS,
        aclrtMemsetD32Async => &WORDS_ASYNC,
    }
}

const NOTHING: Step = Accept(|s| s.is_nothing());
const SAME: Step = Accept(is_same);
const CONTEXT: Step = Part(&CONTEXT_MISSING, context_is_there);

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
    always: &[&ZERO_SIZE, &SAME_ADDRESS],
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
    always: &[&ZERO_SIZE, &SAME_ADDRESS],
};

static LINEAR_WITH_CONDITION: Checklist = Checklist {
    steps: &[
        NOTHING,
        Check(&NULL_POINTER),
        Check(&KIND_RANGE),
        Check(&KIND_FUNCTION),
        Check(&STREAM_INVALID),
        Check(&DEST_MAX),
        Check(&ZERO_SIZE),
        CONTEXT,
        Check(&CONDITION_DRIVER),
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
    always: &[&ZERO_SIZE, &SAME_ADDRESS, &DEPRECATED],
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
    always: &[&ZERO_SIZE],
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
    always: &[&ZERO_SIZE],
};

const BATCH_STEPS: &[Step] = &[
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
    Items,
];

const BATCH_ASYNC_STEPS: &[Step] = &[
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
    Items,
];

const BATCH_ADVICE: &[&Rule] = &[&BATCH_UNORDERED, &MEMORY_ROOM, &RANGE_OVERFLOW];

const BATCH_ASYNC_ADVICE: &[&Rule] = &[&BATCH_UNORDERED, &ASYNC_PAGEABLE, &MEMORY_ROOM, &RANGE_OVERFLOW];

static BATCH: Checklist = Checklist { steps: BATCH_STEPS, advice: BATCH_ADVICE, always: &[] };
static BATCH_V2: Checklist = Checklist { steps: BATCH_STEPS, advice: BATCH_ADVICE, always: &[&UNSUPPORTED_RELEASE] };
static BATCH_ASYNC: Checklist =
    Checklist { steps: BATCH_ASYNC_STEPS, advice: BATCH_ASYNC_ADVICE, always: &[&EXPERIMENTAL] };
static BATCH_ASYNC_V2: Checklist =
    Checklist { steps: BATCH_ASYNC_STEPS, advice: BATCH_ASYNC_ADVICE, always: &[&UNSUPPORTED_RELEASE] };

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
    always: &[&ZERO_SIZE],
};

static DESC_SIZE: Checklist = Checklist {
    steps: &[Check(&NULL_POINTER), Check(&KIND_RANGE), Check(&UNSUPPORTED_PRODUCT), Check(&KIND_FUNCTION)],
    advice: &[],
    always: &[],
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
    always: &[],
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
    always: &[],
};

const SYMBOL_ALWAYS: &[&Rule] = &[&UNSUPPORTED_RELEASE, &UNSUPPORTED_PRODUCT];

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
    always: &[&ZERO_SIZE],
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
    always: &[&ZERO_SIZE],
};

const WORDS_ALWAYS: &[&Rule] = &[&WORDS_IGNORED, &UNSUPPORTED_RELEASE];

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
