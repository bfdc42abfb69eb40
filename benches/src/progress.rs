//! The progress of a run, on a terminal.

use std::fmt::Arguments;
use std::io::{IsTerminal, stderr};

/// Shows the current step in place of the one before.
pub fn show(step: Arguments) {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{step} ");
    }
}

/// Clears the line.
pub fn clear() {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}
