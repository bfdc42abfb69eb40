//! Golden runs: the calls of a scope compared with those in a file.
//!
//! Texts and messages are made under the lock. The file is read and written without the lock, in no memory of the host's,
//! so that no thread waits for a slow file.

use super::{file, wording};
use crate::guest::edge;
use crate::harness::aclshim_error;
use crate::harness::state::expectation::{Expectation, Failure};
use crate::harness::state::{Scope, State, access, lock};
use crate::settings::settings;
use aclshim_facts::settings::Golden;
use aclshim_golden::{GoldenRun, compare, text};
use aclshim_trace::system::contents::{Contents, ReadError};
use std::ffi::CString;
use std::io;

/// The calls of a scope as the text of a golden file. Made under the lock.
pub struct ActualRun {
    path: CString,
    /// Path of the temporary file.
    unfinished: CString,
    /// `None` if there was no memory for it.
    text: Option<String>,
}

/// The calls of a scope, once for each file that they are to be compared with. Only under the lock.
pub fn runs(state: &State, scope: &Scope) -> Vec<ActualRun> {
    let paths = scope.expectations.iter().filter_map(|expected| match expected {
        Expectation::Golden { path } => Some(path),
        _ => None,
    });
    let process = std::process::id();
    let unfinished = |path: &CString| [path.as_bytes(), format!(".{process}.{}", scope.id).as_bytes()].concat();
    let actual = |path: &CString| ActualRun {
        path: path.clone(),
        unfinished: CString::new(unfinished(path)).unwrap_or_default(),
        text: run(state, scope, process),
    };
    paths.map(actual).collect()
}

fn run(state: &State, scope: &Scope, process: u32) -> Option<String> {
    /// As much as a call takes in all its forms, for all we know.
    const EACH: usize = 1024;
    let calls: Vec<_> = state.seen(scope).collect();
    let items: usize = calls.iter().map(|entry| entry.items().len()).sum();
    if !lock::has_room((calls.len() + items).saturating_mul(EACH)) {
        return None;
    }
    let main = calls.iter().find(|entry| entry.system_thread == process).map(|entry| entry.thread);
    let calls = calls.iter().map(|entry| entry.golden()).collect();
    Some(text(&GoldenRun { calls, names: state.names.given().to_vec(), main }, &[]))
}

/// Compares the calls with the file, or writes it; the failure, if there is one. Not under the lock.
pub fn judge(actual: &ActualRun, scope: &str) -> Result<Option<Failure>, aclshim_error> {
    let said = |what: &str| {
        let text = format!("{}{} {what}\n", wording::title(scope), actual.path.to_string_lossy());
        Failure { kind: "golden", text }
    };
    let cannot = |verb: &str, error: ReadError, hint: &str| {
        access::with(|_| {
            let why = match error {
                ReadError::System(error) => io::Error::from_raw_os_error(error).to_string(),
                ReadError::NotPlain => "not a plain file".into(),
                ReadError::NotText => "not a text".into(),
                ReadError::Memory => "there is no memory left for the calls".into(),
            };
            Some(said(&format!("cannot be {verb}: {why}{hint}")))
        })
    };
    let is_update = settings().golden == Golden::Update;
    let (verb, hint) = if is_update { ("written", "") } else { ("read", " (write it: ACLSHIM_GOLDEN=update)") };
    let Some(new) = &actual.text else { return cannot(verb, ReadError::Memory, "") };
    let blocking_signals = |work: &dyn Fn() -> Result<Option<Contents>, ReadError>| {
        edge::with_signals_blocked(work).unwrap_or(Err(ReadError::System(libc::EIO)))
    };
    let read = blocking_signals(&|| Contents::read(&actual.path, None).map(Some));
    let old = match &read {
        Ok(Some(contents)) => contents.as_str(),
        Ok(None) => Err(ReadError::NotText),
        Err(error) => Err(*error),
    };
    match old {
        Ok(old) => {
            let compared = access::with(|_| {
                let is_room = lock::has_room((old.len() + new.len()).saturating_mul(4));
                is_room.then(|| {
                    let diff = compare(old, new)?;
                    let accept = "(accept them: ACLSHIM_GOLDEN=update)";
                    let path = actual.path.to_string_lossy();
                    let text = format!("{}the calls are not those of {path} {accept}\n{diff}", wording::title(scope));
                    Some(Failure { kind: "golden", text })
                })
            })?;
            match compared {
                None => return cannot("compared", ReadError::Memory, ""),
                // Only its comments may be others: they stay.
                Some(None) => return Ok(None),
                Some(Some(failure)) if !is_update => return Ok(Some(failure)),
                Some(Some(failure)) => access::drop_locked(failure),
            }
        }
        // There is none yet, or it holds something else.
        Err(ReadError::System(libc::ENOENT) | ReadError::NotText) if is_update => {}
        Err(error) => return cannot(verb, error, hint),
    }
    match blocking_signals(&|| file::write(&actual.path, &actual.unfinished, new.as_bytes()).map(|()| None)) {
        Ok(_) => Ok(None),
        Err(error) => cannot("written", error, ""),
    }
}
