//! Functions that rules treat alike.

use crate::functions::Function::{self, *};

/// One run of bytes.
pub const LINEAR: &[Function] = &[aclrtMemcpy, aclrtMemcpyAsync, aclrtMemcpyAsyncWithCondition];

/// One run of bytes on a stream.
pub const LINEAR_ASYNC: &[Function] = &[aclrtMemcpyAsync, aclrtMemcpyAsyncWithCondition];

/// Rows.
pub const PITCHED: &[Function] = &[aclrtMemcpy2d, aclrtMemcpy2dAsync];

/// Many runs.
pub const BATCH: &[Function] = &[aclrtMemcpyBatch, aclrtMemcpyBatchV2, aclrtMemcpyBatchAsync, aclrtMemcpyBatchAsyncV2];

/// From and to device variables.
pub const SYMBOL: &[Function] =
    &[aclrtMemcpyFromSymbol, aclrtMemcpyFromSymbolAsync, aclrtMemcpyToSymbol, aclrtMemcpyToSymbolAsync];

/// 32-bit words.
pub const WORDS: &[Function] = &[aclrtMemsetD32, aclrtMemsetD32Async];

/// Every function but the one that asks for a size.
pub const WORK: &[Function] = &[
    aclrtMemcpy,
    aclrtMemcpyAsync,
    aclrtMemcpyAsyncWithCondition,
    aclrtMemcpy2d,
    aclrtMemcpy2dAsync,
    aclrtMemcpyBatch,
    aclrtMemcpyBatchV2,
    aclrtMemcpyBatchAsync,
    aclrtMemcpyBatchAsyncV2,
    aclrtMemcpyAsyncWithOffset,
    aclrtMemcpyAsyncWithDesc,
    aclrtMemcpyFromSymbol,
    aclrtMemcpyFromSymbolAsync,
    aclrtMemcpyToSymbol,
    aclrtMemcpyToSymbolAsync,
    aclrtSetMemcpyDesc,
    aclrtMemset,
    aclrtMemsetAsync,
    aclrtMemsetD32,
    aclrtMemsetD32Async,
];

/// Every function with a stream.
pub const ON_STREAM: &[Function] = &[
    aclrtMemcpyAsync,
    aclrtMemcpyAsyncWithCondition,
    aclrtMemcpy2dAsync,
    aclrtMemcpyBatchAsync,
    aclrtMemcpyBatchAsyncV2,
    aclrtMemcpyAsyncWithOffset,
    aclrtMemcpyAsyncWithDesc,
    aclrtMemcpyFromSymbolAsync,
    aclrtMemcpyToSymbolAsync,
    aclrtMemsetAsync,
    aclrtMemsetD32Async,
];
