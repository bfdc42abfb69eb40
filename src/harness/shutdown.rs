//! The end of the program: what it did not end itself is ended here.

use super::aclshim_error::ACLSHIM_BUSY;
use super::{api, exit, lock, text};

/// The program ends, and all that it has for its end is done: no scope is ended any more.
pub fn at_end() {
    if lock::existing().is_none() {
        return;
    }
    if let Err(ACLSHIM_BUSY) = api::end_all() {
        text::say(format_args!(
            "a handler has jumped out of the harness, or its thread has ended there: what is expected of scopes that \
             were open then could not be judged"
        ));
        exit::fail(1);
    }
    exit::arm_if_failed();
}
