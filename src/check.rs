//! What the rules say of a call before it is forwarded, and what is done about it.
//!
//! While nothing may be refused, only batches are judged here: their arrays are the caller's, and gone when the call has
//! returned. All other calls are judged by whoever reads their records, which hold all that the rules look at, so a
//! call that breaks no rule pays nothing for them.

use crate::settings::{MODE_ENFORCE, STACK_FINDINGS, settings};
use crate::{arrays, edge, world};
use aclshim_facts::Function;
use aclshim_facts::abi::aclError;
use aclshim_facts::call::{Call, Form};
use aclshim_facts::code::ACL_ERROR_INVALID_PARAM;
use aclshim_facts::policy::{Action, Policy};
use aclshim_facts::rule::{self, Prediction, Severity, Subject};
use aclshim_facts::rules;
use aclshim_trace::record::{FRAMES, Finding, REFUSED};
use aclshim_trace::slot::Note;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};
