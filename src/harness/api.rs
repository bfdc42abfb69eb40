//! What stands behind the members of the table: the arguments of C come in, and answers go out.
//!
//! The caller's memory is touched here and in [`text`] only, and not under the lock: a fault that is handled by
//! a jump leaves nothing taken.

use crate::boot;
use crate::call::entry::TABLE;
use crate::guest::edge;
use crate::guest::state::ShimState;
use crate::guest::thread::{self, stack};
use crate::harness::aclshim_error::{self, *};
use crate::harness::outcome::end::{self, Ended};
use crate::harness::outcome::expect;
use crate::harness::state::{Reach, Scope, State, access, lock};
use crate::harness::{aclshim_call, aclshim_finding, aclshim_item, aclshim_scope, observer};
use crate::loader::names::NAMES;
use crate::record::annotate::annotate_scope_begin;
use core::ffi::{c_char, c_int};
use core::ptr;

mod inject;
pub mod requests;
mod text;

use text::CallerText;

type Answer = Result<i64, aclshim_error>;

/// The answer to C: 0 where the shim is not active, as without it. Not inlined, so that the caller's frame is small: its
/// address decides which calls were left.
#[inline(never)]
fn answer(work: impl FnOnce() -> Answer) -> i64 {
    if edge::preserving_errno(|| boot::ensure(&TABLE)) != Some(ShimState::Active) {
        return 0;
    }
    observer::install();
    work().unwrap_or_else(|error| error as i64)
}

/// Works on the state under the lock.
fn locked<T>(work: impl FnOnce(&mut State) -> Result<T, aclshim_error>) -> Result<T, aclshim_error> {
    access::with(work)?
}

/// Works on the state under the lock, after the scopes of threads that have ended were ended, and reports these.
fn with_orphans_ended<T>(work: impl FnOnce(&mut State) -> Result<T, aclshim_error>) -> Result<T, aclshim_error> {
    let (gone, answer) = access::with(|state| (end::end_orphans(state), work(state)))?;
    end::report_all(gone);
    answer
}

/// Room for `count` values to be handed out. Only under the lock.
fn room_for<T>(count: usize) -> Result<Vec<T>, aclshim_error> {
    // SAFETY: NULL, or the heap that is ours under the lock.
    let heap = unsafe { thread::current().heap.get().as_ref() };
    let has_block = heap.is_some_and(|heap| heap.has_block(count.saturating_mul(size_of::<T>())));
    if has_block && lock::has_room(0) { Ok(Vec::with_capacity(count)) } else { Err(ACLSHIM_MEMORY) }
}

/// Works on a scope after its calls were judged; `here` is where the caller's stack ends.
fn with_scope<T>(
    scope: aclshim_scope,
    here: usize,
    work: impl FnOnce(&State, &Scope) -> Result<T, aclshim_error>,
) -> Result<T, aclshim_error> {
    with_orphans_ended(|state| {
        let first = state.scope(scope)?.first;
        state.abandon_left_calls(here);
        state.judge(first);
        let state = &*state;
        work(state, state.scopes.iter().find(|other| other.id == scope).ok_or(ACLSHIM_NO_SCOPE)?)
    })
}

/// Copies values that were made under the lock to the caller: `size` bytes of each, and as many as it has room for.
///
/// # Safety
/// There is room for `room` structures of `size` bytes at `to`.
unsafe fn hand_out<T>(made: Vec<T>, to: *mut T, size: usize, room: usize) -> Answer {
    let taken = made.len().min(room);
    for (nth, one) in made.iter().take(taken).enumerate() {
        // SAFETY: the caller's promise; what it has more room for than we know is zero.
        unsafe {
            let place = to.cast::<u8>().add(nth * size);
            ptr::write_bytes(place, 0, size);
            ptr::copy_nonoverlapping(ptr::from_ref(one).cast(), place, size.min(size_of::<T>()));
        }
    }
    let is_all = taken == made.len();
    access::drop_locked(made);
    if is_all { Ok(taken as i64) } else { Err(ACLSHIM_ROOM) }
}

/// An error unless the caller has given room for structures.
fn check_room<T>(to: *mut T, size: usize, room: usize) -> Result<(), aclshim_error> {
    if room > 0 && (to.is_null() || size == 0) { Err(ACLSHIM_INVALID) } else { Ok(()) }
}

pub extern "C" fn active() -> c_int {
    edge::preserving_errno(|| c_int::from(boot::ensure(&TABLE) == ShimState::Active)).unwrap_or(0)
}

pub unsafe extern "C" fn scope_begin(name: *const c_char, reach: c_int) -> aclshim_scope {
    answer(|| {
        let reach = match reach {
            0 => Reach::Thread,
            1 => Reach::Process,
            _ => return Err(ACLSHIM_INVALID),
        };
        // SAFETY: the caller's promise.
        let name = unsafe { CallerText::new(name) };
        let (id, parent) =
            with_orphans_ended(|state| state.begin(&name.lossy(), reach).map(|scope| (scope.id, scope.parent)))?;
        let _ = annotate_scope_begin(id as u32, parent as u32, name.cut(text::MOST));
        Ok(id)
    })
}

pub extern "C" fn scope_end(scope: aclshim_scope) -> i64 {
    let here = stack();
    answer(|| {
        let ended = with_orphans_ended(|state| {
            let scope = state.end(scope)?;
            state.abandon_left_calls(here);
            Ok(Ended::judged(state, scope))
        })?;
        Ok(ended.report() as i64)
    })
}

pub unsafe extern "C" fn count(scope: aclshim_scope, selector: *const c_char) -> i64 {
    let here = stack();
    answer(|| {
        // SAFETY: the caller's promise.
        let which = unsafe { CallerText::new(selector) }.selector()?;
        with_scope(scope, here, |state, scope| Ok(state.selected(scope, &which).count() as i64))
    })
}

pub unsafe extern "C" fn bytes(scope: aclshim_scope, selector: *const c_char) -> i64 {
    let here = stack();
    answer(|| {
        // SAFETY: the caller's promise.
        let which = unsafe { CallerText::new(selector) }.selector()?;
        with_scope(scope, here, |state, scope| {
            let sum = state.selected(scope, &which).fold(0u64, |sum, (_, entry)| sum.saturating_add(entry.moved()));
            Ok(i64::try_from(sum).unwrap_or(i64::MAX))
        })
    })
}

/// Answers with a list of structures for the caller; `list` makes it from the scope, with one more than there is room for at
/// most.
///
/// # Safety
/// There is room for `room` structures of `size` bytes at `to`.
unsafe fn answer_list<T>(
    (scope, here): (aclshim_scope, usize),
    (to, size, room): (*mut T, usize, usize),
    list: impl FnOnce(&State, &Scope) -> Result<Vec<T>, aclshim_error>,
) -> Answer {
    let made = with_scope(scope, here, list)?;
    // SAFETY: the caller's promise.
    unsafe { hand_out(made, to, size, room) }
}

/// A list of as many structures as `each` yields. Only under the lock.
fn list<T>(each: impl Iterator<Item = T> + Clone) -> Result<Vec<T>, aclshim_error> {
    let mut made = room_for(each.clone().count())?;
    made.extend(each);
    Ok(made)
}

pub unsafe extern "C" fn calls(
    scope: aclshim_scope,
    selector: *const c_char,
    calls: *mut aclshim_call,
    size: usize,
    room: usize,
) -> i64 {
    let here = stack();
    // SAFETY: the caller's promise.
    answer(|| unsafe {
        check_room(calls, size, room)?;
        let which = CallerText::new(selector).selector()?;
        answer_list((scope, here), (calls, size, room), |state, scope| {
            list(state.selected(scope, &which).take(room.saturating_add(1)).map(|(order, entry)| entry.to_c(order)))
        })
    })
}

pub unsafe extern "C" fn items(
    scope: aclshim_scope,
    order: u64,
    items: *mut aclshim_item,
    size: usize,
    room: usize,
) -> i64 {
    let here = stack();
    // SAFETY: the caller's promise.
    answer(|| unsafe {
        check_room(items, size, room)?;
        answer_list((scope, here), (items, size, room), |state, scope| {
            let nth = usize::try_from(order).map_err(|_| ACLSHIM_INVALID)?;
            list(state.seen(scope).nth(nth).ok_or(ACLSHIM_INVALID)?.items().iter().copied())
        })
    })
}

pub unsafe extern "C" fn findings(
    scope: aclshim_scope,
    rule: *const c_char,
    findings: *mut aclshim_finding,
    size: usize,
    room: usize,
) -> i64 {
    let here = stack();
    // SAFETY: the caller's promise.
    answer(|| unsafe {
        check_room(findings, size, room)?;
        let rule = CallerText::new(rule).rule()?;
        answer_list((scope, here), (findings, size, room), |state, scope| {
            let is_selected = |other: u8| rule.is_none_or(|rule| rule.number == other);
            let selected = expect::findings(state, scope).filter(|(_, _, found)| is_selected(found.rule.number));
            list(selected.take(room.saturating_add(1)).map(|(order, entry, found)| {
                let argument = entry.function.row().arguments.get(usize::from(found.argument));
                aclshim_finding {
                    rule: state.text(found.rule.id),
                    function: NAMES[entry.function as usize].as_ptr(),
                    argument: state.text(argument.map_or("", |argument| argument.name)),
                    message: found.message.as_ptr(),
                    fix: state.text(found.rule.fix),
                    severity: found.severity as i32,
                    code: found.code,
                    index: found.index.map_or(-1, |index| index as i64),
                    values: found.values,
                    call: order,
                }
            }))
        })
    })
}
