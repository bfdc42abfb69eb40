//! How far a run has come, for somebody who watches it.

use std::fmt::Arguments;
use std::io::{IsTerminal, stderr};

/// Shows where we are, in place of what was shown before.
pub fn show(step: Arguments) {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{step} ");
    }
}

/// Leaves no trace.
pub fn clear() {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}
