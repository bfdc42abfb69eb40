//! Golden runs: the calls of a scope beside those that a file holds.
//!
//! The text is made under the lock, and so is what is said of it; the file is read and written elsewhere, with no memory of
//! the host's: no other thread waits for a slow file.

use super::aclshim_error;
use super::expectation::{Expectation, Failure};
use super::file::{self, Trouble};
use super::state::{Scope, State};
use super::{access, lock, wording};
use crate::guest::edge;
use crate::settings::settings;
use aclshim_facts::settings::Golden;
use aclshim_golden::{GoldenRun, compare, text};
use std::ffi::CString;
use std::io;

/// What is expected to be in a file. Made under the lock.
pub struct Actual {
    path: CString,
    /// Where it is written before it is whole.
    unfinished: CString,
    /// `None` if there was no memory for it.
    text: Option<String>,
}

/// The calls of a scope, once for each file that they are to be compared with. Only under the lock.
pub fn runs(state: &State, scope: &Scope) -> Vec<Actual> {
    let paths = scope.expectations.iter().filter_map(|expected| match expected {
        Expectation::Golden { path } => Some(path),
        _ => None,
    });
    // SAFETY: asks for our own number, which is the main thread's.
    let process = unsafe { libc::getpid() } as u32;
    let unfinished = |path: &CString| [path.as_bytes(), format!(".{process}.{}", scope.id).as_bytes()].concat();
    let actual = |path: &CString| Actual {
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

/// Compares with what the file holds, or writes it; what is to be said of that, if anything is. Not under the lock.
pub fn judge(actual: &Actual, scope: &str) -> Result<Option<Failure>, aclshim_error> {
    let said = |what: &str| {
        let text = format!("{}{} {what}\n", wording::title(scope), actual.path.to_string_lossy());
        Failure { kind: "golden", text }
    };
    let cannot = |verb: &str, trouble: Trouble, hint: &str| {
        access::with(|_| {
            let why = match trouble {
                Trouble::System(error) => io::Error::from_raw_os_error(error).to_string(),
                Trouble::NotPlain => "not a plain file".into(),
                Trouble::NotText => "not a text".into(),
                Trouble::Memory => "there is no memory left for the calls".into(),
            };
            Some(said(&format!("cannot be {verb}: {why}{hint}")))
        })
    };
    let is_update = settings().golden == Golden::Update;
    let (verb, hint) = if is_update { ("written", "") } else { ("read", " (write it: ACLSHIM_GOLDEN=update)") };
    let Some(new) = &actual.text else { return cannot(verb, Trouble::Memory, "") };
    let undisturbed = |work: &dyn Fn() -> Result<Option<file::Pages>, Trouble>| {
        edge::with_signals_blocked(work).unwrap_or(Err(Trouble::System(libc::EIO)))
    };
    let read = undisturbed(&|| file::read(&actual.path).map(Some));
    let old = match &read {
        Ok(Some(pages)) => core::str::from_utf8(pages.bytes()).map_err(|_| Trouble::NotText),
        Ok(None) => Err(Trouble::NotText),
        Err(trouble) => Err(*trouble),
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
                None => return cannot("compared", Trouble::Memory, ""),
                // Only its comments may be others: they stay.
                Some(None) => return Ok(None),
                Some(Some(failure)) if !is_update => return Ok(Some(failure)),
                Some(Some(failure)) => access::forget(failure),
            }
        }
        // There is none yet, or it holds something else.
        Err(Trouble::System(libc::ENOENT) | Trouble::NotText) if is_update => {}
        Err(trouble) => return cannot(verb, trouble, hint),
    }
    match undisturbed(&|| file::write(&actual.path, &actual.unfinished, new.as_bytes()).map(|()| None)) {
        Ok(_) => Ok(None),
        Err(trouble) => cannot("written", trouble, ""),
    }
}
