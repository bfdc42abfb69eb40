//! The 21 functions that copy and set memory.

use std::ffi::CStr;

/// Their names, each with a fixed index.
pub const NAMES: [&CStr; 21] = [
    c"aclrtMemcpy",
    c"aclrtMemcpyAsync",
    c"aclrtMemcpyAsyncWithCondition",
    c"aclrtMemcpy2d",
    c"aclrtMemcpy2dAsync",
    c"aclrtMemcpyBatch",
    c"aclrtMemcpyBatchV2",
    c"aclrtMemcpyBatchAsync",
    c"aclrtMemcpyBatchAsyncV2",
    c"aclrtMemcpyAsyncWithOffset",
    c"aclrtMemcpyAsyncWithDesc",
    c"aclrtMemcpyFromSymbol",
    c"aclrtMemcpyFromSymbolAsync",
    c"aclrtMemcpyToSymbol",
    c"aclrtMemcpyToSymbolAsync",
    c"aclrtGetMemcpyDescSize",
    c"aclrtSetMemcpyDesc",
    c"aclrtMemset",
    c"aclrtMemsetAsync",
    c"aclrtMemsetD32",
    c"aclrtMemsetD32Async",
];

/// Index of `name` in [`NAMES`]; a name that is missing there does not compile.
pub const fn index(name: &str) -> usize {
    let mut at = 0;
    while at < NAMES.len() {
        if same(NAMES[at].to_bytes(), name.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("not one of the gated functions")
}

const fn same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}
