//! The error codes that the shim itself may return or has to tell apart.

use crate::abi::aclError;

/// The call was accepted.
pub const ACL_SUCCESS: aclError = 0;

/// What a call answers when the real library lacks the function, or there is no real library.
pub const ACL_ERROR_RT_FEATURE_NOT_SUPPORT: aclError = 207_000;
