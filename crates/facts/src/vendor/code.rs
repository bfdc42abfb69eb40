//! The vendor's error codes: those that the shim returns or distinguishes, and the names of all that a copy may return.

use crate::vendor::abi::aclError;

/// The call was accepted.
pub const ACL_SUCCESS: aclError = 0;

/// What a call answers when the real library lacks the function, or there is no real library.
pub const ACL_ERROR_RT_FEATURE_NOT_SUPPORT: aclError = 207_000;

/// The outer layer's "invalid parameter".
pub const ACL_ERROR_INVALID_PARAM: aclError = 100_000;
/// The inner layer's "invalid parameter".
pub const ACL_ERROR_RT_PARAM_INVALID: aclError = 107_000;
/// The thread has no context.
pub const ACL_ERROR_RT_CONTEXT_NULL: aclError = 107_002;
/// The stream is another context's.
pub const ACL_ERROR_RT_STREAM_CONTEXT: aclError = 107_003;
/// A handle is not what it should be.
pub const ACL_ERROR_RT_INVALID_HANDLE: aclError = 107_017;
/// A capture forbids synchronous work.
pub const ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT: aclError = 107_030;
/// A capture forbids an asynchronous call that would block.
pub const ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC: aclError = 107_041;
/// No device variable.
pub const ACL_ERROR_RT_INVALID_SYMBOL: aclError = 107_043;
/// Failure without a reason.
pub const ACL_ERROR_FAILURE: aclError = 500_001;
/// The driver's own failure.
pub const ACL_ERROR_RT_DRV_INTERNAL_ERROR: aclError = 507_899;

/// The vendor's names, by code, and what each means.
static NAMES: &[(aclError, &str, &str)] = &[
    (100_000, "ACL_ERROR_INVALID_PARAM", "the outer layer found an argument that it does not take"),
    (100_001, "ACL_ERROR_UNINITIALIZE", "aclInit was not called"),
    (100_002, "ACL_ERROR_REPEAT_INITIALIZE", "aclInit was called twice"),
    (100_037, "ACL_ERROR_REPEAT_FINALIZE", "aclFinalize was called twice"),
    (100_039, "ACL_ERROR_COMPILING_STUB_MODE", "the stub library for linking was loaded instead of the real one"),
    (107_000, "ACL_ERROR_RT_PARAM_INVALID", "the inner layer or the driver found an argument that it does not take"),
    (107_001, "ACL_ERROR_RT_INVALID_DEVICEID", "there is no device of that number"),
    (
        107_002,
        "ACL_ERROR_RT_CONTEXT_NULL",
        "the calling thread has no context: aclrtSetDevice was not called on it, or its context was destroyed",
    ),
    (107_003, "ACL_ERROR_RT_STREAM_CONTEXT", "the stream belongs to another context than the calling thread's"),
    (107_008, "ACL_ERROR_RT_ADDR_UNALIGNED", "an address is not aligned"),
    (107_016, "ACL_ERROR_RT_INVALID_MEMORY_TYPE", "memory of this type is not taken here"),
    (107_017, "ACL_ERROR_RT_INVALID_HANDLE", "a handle is not one, or not any more; or no device is open yet"),
    (107_018, "ACL_ERROR_RT_INVALID_MALLOC_TYPE", "the memory was allocated in a way that is not taken here"),
    (107_019, "ACL_ERROR_RT_WAIT_TIMEOUT", "waiting took longer than the limit"),
    (107_020, "ACL_ERROR_RT_TASK_TIMEOUT", "a task took longer than the limit"),
    (107_022, "ACL_ERROR_RT_DEVICE_TASK_ABORT", "the device is giving up its tasks"),
    (107_023, "ACL_ERROR_RT_STREAM_ABORT", "the stream was aborted"),
    (107_024, "ACL_ERROR_RT_CAPTURE_DEPENDENCY", "a captured stream depends on one that is not captured"),
    (107_025, "ACL_ERROR_RT_STREAM_UNJOINED", "a stream that joined a capture was not joined back to its origin"),
    (107_026, "ACL_ERROR_RT_MODEL_CAPTURED", "the model is being captured"),
    (107_027, "ACL_ERROR_RT_STREAM_CAPTURED", "the stream is being captured"),
    (107_028, "ACL_ERROR_RT_EVENT_CAPTURED", "the event is being captured"),
    (107_029, "ACL_ERROR_RT_STREAM_NOT_CAPTURED", "the stream is not being captured"),
    (107_030, "ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT", "a capture under way forbids synchronous work on this thread"),
    (107_031, "ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT", "a capture forbids work that waits for the default stream"),
    (107_035, "ACL_ERROR_RT_TASK_ABORT_STOP", "the task was aborted"),
    (107_036, "ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED", "the capture began on another stream"),
    (107_038, "ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD", "the capture began on another thread"),
    (107_039, "ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY", "the array has too little room for the answer"),
    (
        107_041,
        "ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC",
        "a capture under way forbids an asynchronous call that has to block",
    ),
    (107_042, "ACL_ERROR_RT_SYMBOL_NOT_FOUND", "the symbol was not found"),
    (107_043, "ACL_ERROR_RT_INVALID_SYMBOL", "the symbol names no device variable"),
    (200_000, "ACL_ERROR_BAD_ALLOC", "host memory could not be allocated"),
    (200_001, "ACL_ERROR_API_NOT_SUPPORT", "the function is not supported here"),
    (200_002, "ACL_ERROR_INVALID_DEVICE", "the device is not one that can be used"),
    (200_003, "ACL_ERROR_MEMORY_ADDRESS_UNALIGNED", "an address is not aligned"),
    (200_004, "ACL_ERROR_RESOURCE_NOT_MATCH", "two resources do not belong together"),
    (200_005, "ACL_ERROR_INVALID_RESOURCE_HANDLE", "a handle is not one, or not any more"),
    (200_006, "ACL_ERROR_FEATURE_UNSUPPORTED", "the feature is not supported here"),
    (
        207_000,
        "ACL_ERROR_RT_FEATURE_NOT_SUPPORT",
        "the product, the form or the driver does not support this; many programs try it and fall back",
    ),
    (207_001, "ACL_ERROR_RT_MEMORY_ALLOCATION", "device memory could not be allocated"),
    (207_002, "ACL_ERROR_RT_MEMORY_FREE", "memory could not be freed"),
    (207_004, "ACL_ERROR_RT_NO_DEVICE", "there is no device"),
    (207_005, "ACL_ERROR_RT_RESOURCE_ALLOC_FAIL", "a resource could not be allocated"),
    (207_006, "ACL_ERROR_RT_NO_PERMISSION", "the process may not do this"),
    (207_008, "ACL_ERROR_RT_NO_STREAM_RESOURCE", "no more streams can be made"),
    (207_012, "ACL_ERROR_RT_OVER_LIMIT", "a limit is exceeded"),
    (207_018, "ACL_ERROR_RT_DEVICE_OOM", "the device has no memory left"),
    (207_020, "ACL_ERROR_RT_TIMEOUT", "the device did not answer in time"),
    (300_000, "ACL_ERROR_STORAGE_OVER_LIMIT", "storage is exhausted"),
    (500_000, "ACL_ERROR_INTERNAL_ERROR", "an internal error"),
    (500_001, "ACL_ERROR_FAILURE", "a failure without a further word; for a symbol, offset plus count overflows"),
    (500_003, "ACL_ERROR_RT_FAILURE", "the runtime failed"),
    (500_004, "ACL_ERROR_DRV_FAILURE", "the driver failed"),
    (507_000, "ACL_ERROR_RT_INTERNAL_ERROR", "an internal error of the inner layer"),
    (507_002, "ACL_ERROR_RT_STREAM_TASK_FULL", "the stream has no room for another task"),
    (507_004, "ACL_ERROR_RT_STREAM_NOT_COMPLETE", "the stream is not done yet"),
    (507_006, "ACL_ERROR_RT_EVENT_NOT_COMPLETE", "the event is not complete yet"),
    (507_010, "ACL_ERROR_RT_LOST_HEARTBEAT", "the device does not answer any more"),
    (507_012, "ACL_ERROR_RT_REPORT_TIMEOUT", "the device did not report in time"),
    (507_013, "ACL_ERROR_RT_SYS_DMA", "the copy engine met an address that is gone"),
    (507_033, "ACL_ERROR_RT_DEV_SETUP_ERROR", "the device could not be set up"),
    (507_046, "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT", "the stream was not done in time"),
    (507_047, "ACL_ERROR_RT_EVENT_SYNC_TIMEOUT", "the event was not complete in time"),
    (507_052, "ACL_ERROR_RT_COPY_DATA", "the driver could not reach the host memory of a copy"),
    (507_053, "ACL_ERROR_RT_DEVICE_MEM_ERROR", "the device's memory has an error"),
    (507_054, "ACL_ERROR_RT_HBM_MULTI_BIT_ECC", "the device's memory has an error that cannot be corrected"),
    (507_056, "ACL_ERROR_RT_LINK_ERROR", "the link to the device has an error"),
    (
        507_899,
        "ACL_ERROR_RT_DRV_INTERNAL_ERROR",
        "the driver failed for a reason that has no code of its own: for a copy, mostly an address of the device where nothing is allocated",
    ),
    (507_903, "ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED", "the capture has become invalid"),
    (507_910, "ACL_ERROR_RT_HOST_MEMORY_ALREADY_REGISTERED", "the host memory is registered already"),
    (507_911, "ACL_ERROR_RT_HOST_MEMORY_NOT_REGISTERED", "the host memory is not registered"),
];

fn row(code: aclError) -> Option<&'static (aclError, &'static str, &'static str)> {
    NAMES.get(NAMES.binary_search_by_key(&code, |row| row.0).ok()?)
}

/// Every known code but success: the number, its name and what it means, in order.
pub fn all() -> impl Iterator<Item = (aclError, &'static str, &'static str)> {
    NAMES.iter().copied()
}

/// The vendor's name of a code, if it is a known one.
pub fn name(code: aclError) -> Option<&'static str> {
    row(code).map(|row| row.1)
}

/// What a code means, in one sentence, if it is a known one.
pub fn meaning(code: aclError) -> Option<&'static str> {
    row(code).map(|row| row.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_have_their_names() {
        assert!(NAMES.is_sorted_by_key(|row| row.0));
        assert_eq!(name(100_000), Some("ACL_ERROR_INVALID_PARAM"));
        assert_eq!(name(ACL_ERROR_RT_FEATURE_NOT_SUPPORT), Some("ACL_ERROR_RT_FEATURE_NOT_SUPPORT"));
        assert_eq!(name(-1), None);
    }
}
