//! The vendor's error codes: those that the shim itself may return or has to tell apart, and the names of all that a
//! copy may meet.

use crate::abi::aclError;

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
/// Failure without a further word.
pub const ACL_ERROR_FAILURE: aclError = 500_001;
/// The driver's own failure.
pub const ACL_ERROR_RT_DRV_INTERNAL_ERROR: aclError = 507_899;

/// The vendor's names, by code.
static NAMES: &[(aclError, &str)] = &[
    (100_000, "ACL_ERROR_INVALID_PARAM"),
    (100_001, "ACL_ERROR_UNINITIALIZE"),
    (100_002, "ACL_ERROR_REPEAT_INITIALIZE"),
    (100_037, "ACL_ERROR_REPEAT_FINALIZE"),
    (100_039, "ACL_ERROR_COMPILING_STUB_MODE"),
    (107_000, "ACL_ERROR_RT_PARAM_INVALID"),
    (107_001, "ACL_ERROR_RT_INVALID_DEVICEID"),
    (107_002, "ACL_ERROR_RT_CONTEXT_NULL"),
    (107_003, "ACL_ERROR_RT_STREAM_CONTEXT"),
    (107_008, "ACL_ERROR_RT_ADDR_UNALIGNED"),
    (107_016, "ACL_ERROR_RT_INVALID_MEMORY_TYPE"),
    (107_017, "ACL_ERROR_RT_INVALID_HANDLE"),
    (107_018, "ACL_ERROR_RT_INVALID_MALLOC_TYPE"),
    (107_019, "ACL_ERROR_RT_WAIT_TIMEOUT"),
    (107_020, "ACL_ERROR_RT_TASK_TIMEOUT"),
    (107_022, "ACL_ERROR_RT_DEVICE_TASK_ABORT"),
    (107_023, "ACL_ERROR_RT_STREAM_ABORT"),
    (107_024, "ACL_ERROR_RT_CAPTURE_DEPENDENCY"),
    (107_025, "ACL_ERROR_RT_STREAM_UNJOINED"),
    (107_026, "ACL_ERROR_RT_MODEL_CAPTURED"),
    (107_027, "ACL_ERROR_RT_STREAM_CAPTURED"),
    (107_028, "ACL_ERROR_RT_EVENT_CAPTURED"),
    (107_029, "ACL_ERROR_RT_STREAM_NOT_CAPTURED"),
    (107_030, "ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT"),
    (107_031, "ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT"),
    (107_035, "ACL_ERROR_RT_TASK_ABORT_STOP"),
    (107_036, "ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED"),
    (107_038, "ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD"),
    (107_039, "ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY"),
    (107_041, "ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC"),
    (107_042, "ACL_ERROR_RT_SYMBOL_NOT_FOUND"),
    (107_043, "ACL_ERROR_RT_INVALID_SYMBOL"),
    (200_000, "ACL_ERROR_BAD_ALLOC"),
    (200_001, "ACL_ERROR_API_NOT_SUPPORT"),
    (200_002, "ACL_ERROR_INVALID_DEVICE"),
    (200_003, "ACL_ERROR_MEMORY_ADDRESS_UNALIGNED"),
    (200_004, "ACL_ERROR_RESOURCE_NOT_MATCH"),
    (200_005, "ACL_ERROR_INVALID_RESOURCE_HANDLE"),
    (200_006, "ACL_ERROR_FEATURE_UNSUPPORTED"),
    (207_000, "ACL_ERROR_RT_FEATURE_NOT_SUPPORT"),
    (207_001, "ACL_ERROR_RT_MEMORY_ALLOCATION"),
    (207_002, "ACL_ERROR_RT_MEMORY_FREE"),
    (207_004, "ACL_ERROR_RT_NO_DEVICE"),
    (207_005, "ACL_ERROR_RT_RESOURCE_ALLOC_FAIL"),
    (207_006, "ACL_ERROR_RT_NO_PERMISSION"),
    (207_008, "ACL_ERROR_RT_NO_STREAM_RESOURCE"),
    (207_012, "ACL_ERROR_RT_OVER_LIMIT"),
    (207_018, "ACL_ERROR_RT_DEVICE_OOM"),
    (207_020, "ACL_ERROR_RT_TIMEOUT"),
    (300_000, "ACL_ERROR_STORAGE_OVER_LIMIT"),
    (500_000, "ACL_ERROR_INTERNAL_ERROR"),
    (500_001, "ACL_ERROR_FAILURE"),
    (500_003, "ACL_ERROR_RT_FAILURE"),
    (500_004, "ACL_ERROR_DRV_FAILURE"),
    (507_000, "ACL_ERROR_RT_INTERNAL_ERROR"),
    (507_002, "ACL_ERROR_RT_STREAM_TASK_FULL"),
    (507_004, "ACL_ERROR_RT_STREAM_NOT_COMPLETE"),
    (507_006, "ACL_ERROR_RT_EVENT_NOT_COMPLETE"),
    (507_010, "ACL_ERROR_RT_LOST_HEARTBEAT"),
    (507_012, "ACL_ERROR_RT_REPORT_TIMEOUT"),
    (507_013, "ACL_ERROR_RT_SYS_DMA"),
    (507_033, "ACL_ERROR_RT_DEV_SETUP_ERROR"),
    (507_046, "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT"),
    (507_047, "ACL_ERROR_RT_EVENT_SYNC_TIMEOUT"),
    (507_052, "ACL_ERROR_RT_COPY_DATA"),
    (507_053, "ACL_ERROR_RT_DEVICE_MEM_ERROR"),
    (507_054, "ACL_ERROR_RT_HBM_MULTI_BIT_ECC"),
    (507_056, "ACL_ERROR_RT_LINK_ERROR"),
    (507_899, "ACL_ERROR_RT_DRV_INTERNAL_ERROR"),
    (507_903, "ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED"),
    (507_910, "ACL_ERROR_RT_HOST_MEMORY_ALREADY_REGISTERED"),
    (507_911, "ACL_ERROR_RT_HOST_MEMORY_NOT_REGISTERED"),
];

/// The vendor's name of a code, if it is a known one.
pub fn name(code: aclError) -> Option<&'static str> {
    NAMES.binary_search_by_key(&code, |row| row.0).ok().map(|at| NAMES[at].1)
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
