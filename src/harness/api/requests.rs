//! The functions of the table that expect something of a scope, and those by which a program annotates its own run.

use super::text::{self, CallerText};
use super::{Answer, answer, inject as injection, locked};
use crate::guest::edge;
use crate::harness::aclshim_error::*;
use crate::harness::aclshim_scope;
use crate::harness::outcome::exit;
use crate::harness::state::expectation::{Bounds, Expectation, NamedSelector};
use crate::harness::state::lock;
use crate::record::annotate::{annotate_mark, annotate_name};
use aclshim_facts::rule::Severity;
use aclshim_golden::NamedObject;
use aclshim_trace::record::annotation::NamedKind;
use core::ffi::{c_char, c_int, c_void};

/// Expects something of a scope.
fn expect(scope: aclshim_scope, expected: impl FnOnce() -> Expectation) -> Answer {
    locked(|state| {
        let scope = state.scope(scope)?;
        if !lock::has_room(0) {
            return Err(ACLSHIM_MEMORY);
        }
        scope.expectations.push(expected());
        Ok(0)
    })
}

/// Answers to a demand. One that is refused, because it makes no sense or there is no room, is an expectation that is not
/// met: a caller that mistypes it rarely looks at the answer, and would take the silence for a good sign.
fn demand(scope: aclshim_scope, function: &'static str, work: impl FnOnce() -> Answer) -> i64 {
    answer(|| {
        work().inspect_err(|error| {
            // Where there is no such scope, or it is another thread's, or the lock cannot be had, this fails too.
            let _ = locked(|state| {
                let scope = state.scope(scope)?;
                if lock::has_room(0) {
                    scope.expectations.push(Expectation::Refused { function, error: *error });
                } else {
                    scope.dropped_expectations += 1;
                }
                Ok(())
            });
        })
    })
}

/// Expects a number of calls or bytes within bounds.
///
/// # Safety
/// `selector` is NULL or a C string.
unsafe fn expect_bounds(
    scope: aclshim_scope,
    selector: *const c_char,
    [least, most]: [u64; 2],
    function: &'static str,
    kind: fn(Bounds) -> Expectation,
) -> i64 {
    demand(scope, function, || {
        if least > most {
            return Err(ACLSHIM_INVALID);
        }
        // SAFETY: the caller's promise.
        let given = unsafe { CallerText::new(selector) };
        let which = given.selector()?;
        let selected = || NamedSelector { which, text: given.lossy().into_owned() };
        expect(scope, || kind(Bounds { selected: selected(), least, most }))
    })
}

pub unsafe extern "C" fn expect_calls(
    scope: aclshim_scope,
    selector: *const c_char,
    at_least: u64,
    at_most: u64,
) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { expect_bounds(scope, selector, [at_least, at_most], "aclshim_expect_calls", Expectation::Calls) }
}

pub unsafe extern "C" fn expect_bytes(
    scope: aclshim_scope,
    selector: *const c_char,
    at_least: u64,
    at_most: u64,
) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { expect_bounds(scope, selector, [at_least, at_most], "aclshim_expect_bytes", Expectation::Bytes) }
}

pub unsafe extern "C" fn expect_order(scope: aclshim_scope, stream: *const c_void, selectors: *const c_char) -> i64 {
    demand(scope, "aclshim_expect_order", || {
        // SAFETY: the caller's promise.
        let given = unsafe { CallerText::new(selectors) };
        given.each().try_for_each(|part| part.selector().map(|_| ()))?;
        let selected = |part: CallerText<'_>| {
            let which = part.selector().ok()?;
            Some(NamedSelector { which, text: part.lossy().into_owned() })
        };
        expect(scope, || Expectation::Order {
            stream: stream as u64,
            each: given.each().filter_map(selected).collect(),
        })
    })
}

pub unsafe extern "C" fn expect_finding(scope: aclshim_scope, rule: *const c_char, count: u64) -> i64 {
    demand(scope, "aclshim_expect_finding", || {
        // SAFETY: the caller's promise.
        let rule = unsafe { CallerText::new(rule) }.rule()?.ok_or(ACLSHIM_INVALID)?;
        expect(scope, || Expectation::Finding { rule, count })
    })
}

pub extern "C" fn expect_clean(scope: aclshim_scope, severity: c_int) -> i64 {
    demand(scope, "aclshim_expect_clean", || {
        let severity = match severity {
            0 => Severity::Portability,
            1 => Severity::Perf,
            2 => Severity::Violation,
            3 => Severity::Error,
            _ => return Err(ACLSHIM_INVALID),
        };
        expect(scope, || Expectation::Clean { severity })
    })
}

pub unsafe extern "C" fn expect_golden(scope: aclshim_scope, path: *const c_char) -> i64 {
    demand(scope, "aclshim_expect_golden", || {
        // SAFETY: the caller's promise.
        let path = unsafe { CallerText::new(path) };
        if path.is_empty() {
            return Err(ACLSHIM_INVALID);
        }
        expect(scope, || Expectation::Golden { path: path.absolute() })
    })
}

pub unsafe extern "C" fn inject(scope: aclshim_scope, injections: *const c_char) -> i64 {
    demand(scope, "aclshim_inject", || {
        // SAFETY: the caller's promise.
        let given = unsafe { CallerText::new(injections) };
        if given.is_null() {
            return Err(ACLSHIM_INVALID);
        }
        injection::set(scope, &given)
    })
}

pub extern "C" fn injected(scope: aclshim_scope) -> i64 {
    answer(|| injection::injected(scope))
}

pub unsafe extern "C" fn mark(text: *const c_char) -> i64 {
    answer(|| {
        // SAFETY: the caller's promise.
        let given = unsafe { CallerText::new(text) };
        if given.is_null() {
            return Err(ACLSHIM_INVALID);
        }
        // What finds no room there is counted there, as lost.
        let _ = annotate_mark(given.cut(text::MOST));
        Ok(0)
    })
}

/// Gives something a name, or takes it back.
///
/// # Safety
/// `name` is NULL or a C string.
unsafe fn name(named: NamedObject, name: *const c_char) -> Answer {
    // SAFETY: the caller's promise.
    let given = unsafe { CallerText::new(name) };
    if !given.is_null() && !given.is_name() {
        return Err(ACLSHIM_INVALID);
    }
    locked(|state| {
        if !lock::has_room(0) {
            return Err(ACLSHIM_MEMORY);
        }
        state.name(named, &given.lossy());
        Ok(())
    })?;
    // As above: it holds here, whether or not there is room for it in the record.
    let (kind, begin, size) = match named {
        NamedObject::Stream(stream) => (NamedKind::Stream, stream, 0),
        NamedObject::Buffer { begin, size } => (NamedKind::Buffer, begin, size),
    };
    let _ = annotate_name(kind, begin, size, given.bytes());
    Ok(0)
}

pub unsafe extern "C" fn name_stream(stream: *const c_void, called: *const c_char) -> i64 {
    answer(|| {
        if stream.is_null() {
            return Err(ACLSHIM_INVALID);
        }
        // SAFETY: the caller's promise.
        unsafe { name(NamedObject::Stream(stream as u64), called) }
    })
}

pub unsafe extern "C" fn name_buffer(begin: *const c_void, size: usize, called: *const c_char) -> i64 {
    answer(|| {
        let (begin, size) = (begin as u64, size as u64);
        if begin == 0 || size == 0 || begin.checked_add(size).is_none() {
            return Err(ACLSHIM_INVALID);
        }
        // SAFETY: the caller's promise.
        unsafe { name(NamedObject::Buffer { begin, size }, called) }
    })
}

pub extern "C" fn failures() -> i64 {
    answer(|| Ok(i64::try_from(exit::failures()).unwrap_or(i64::MAX)))
}

pub extern "C" fn fail_exit(status: c_int) -> i64 {
    answer(|| {
        if !(0..=255).contains(&status) {
            return Err(ACLSHIM_INVALID);
        }
        // Not under the lock: libc takes its own lock, and memory.
        if edge::with_signals_blocked(|| exit::set(status)) == Some(true) { Ok(0) } else { Err(ACLSHIM_MEMORY) }
    })
}
