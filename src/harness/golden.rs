//! Golden runs: the calls of a scope beside those that a file holds.

use super::state::{Scope, State};
use crate::settings::{GOLDEN_UPDATE, settings};
use aclshim_golden::{Run, compare, text};
use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

/// What is different, if anything is.
pub fn judge(state: &State, scope: &Scope, path: &str) -> Option<String> {
    let calls: Vec<_> = state.seen(scope).collect();
    // SAFETY: asks for our own number, which is the main thread's.
    let process = unsafe { libc::getpid() } as u32;
    let main = calls.iter().find(|entry| entry.system_thread == process).map(|entry| entry.thread);
    let run =
        Run { calls: calls.iter().map(|entry| entry.golden()).collect(), names: state.names.given().to_vec(), main };
    let actual = text(&run, &[]);
    if settings().golden == GOLDEN_UPDATE {
        let written = fs::write(path, actual);
        return written.err().map(|error| format!("{path} cannot be written: {error}\n"));
    }
    match read(path) {
        Ok(expected) => compare(&expected, &actual)
            .map(|diff| format!("the calls are not those of {path} (accept them: ACLSHIM_GOLDEN=update)\n{diff}")),
        Err(error) => Some(format!("{path} cannot be read: {error} (write it: ACLSHIM_GOLDEN=update)\n")),
    }
}

/// A plain file: a pipe might never end.
fn read(path: &str) -> std::io::Result<String> {
    let mut file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("not a plain file"));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}
