//! The end of the program: scopes that are still open are judged here.

use super::aclshim_error::ACLSHIM_BUSY;
use super::{api, exit, lock, text};

/// Runs after the program's own exit handlers: ends the scopes that are still open, and sees to the exit code.
pub fn at_end() {
    if lock::existing().is_none() {
        return;
    }
    if let Err(ACLSHIM_BUSY) = api::end_all() {
        text::print_line(format_args!(
            "a handler has jumped out of the harness, or its thread has ended there: what is expected of scopes that \
             were open then could not be judged"
        ));
        exit::fail(1);
    }
    exit::arm_if_failed();
}
