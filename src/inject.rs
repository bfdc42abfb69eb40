//! Fault injection: codes and delays that a setting or a test puts into calls.
//!
//! While no injection is set, no call comes here. While one is, every call takes the slow path; the record of a call that
//! was changed is flagged, and has the code that the program got and the time with all delays. A call that a rule refuses
//! is not changed, and neither is one that the vendor makes inside another. Nothing is locked: a copy in a signal handler is
//! treated like any other.

use crate::check::world;
use crate::guest::edge;
use crate::guest::log::{self, Event};
use crate::loader::gate::{self, Reason};
use crate::settings::settings;
use aclshim_core::arrays;
use aclshim_facts::Function;
use aclshim_facts::abi::aclError;
use aclshim_facts::call::{Call, Form};
use aclshim_facts::direction::Direction;
use aclshim_facts::injection::{Injection, What, each};
use aclshim_facts::selector::Known;
use aclshim_facts::selector::words::Nonsense;
use aclshim_facts::settings::{INJECT, Mode, Preset};
use core::sync::atomic::{AtomicBool, Ordering};

pub mod naming;
mod table;

pub use table::Reach;
use table::{CountersOf, MOST};

/// Whether an injection may be set.
#[unsafe(link_section = ".bss.startup")]
static IS_SET: AtomicBool = AtomicBool::new(false);

/// Why injections are not set.
#[derive(Clone, Copy)]
pub enum Refused {
    /// The text cannot be read.
    Nonsense(Nonsense),
    /// There is no room for all of them.
    Room,
    /// There is no memory.
    Memory,
    /// `ACLSHIM_PRESET=production`.
    Production,
}

/// Number of injections in a text, if all of them are valid.
fn count(text: &[u8]) -> Result<usize, Refused> {
    if settings().preset == Preset::Production {
        return Err(Refused::Production);
    }
    let count = each(text).try_fold(0, |count, one| one.map(|_| count + 1)).map_err(Refused::Nonsense)?;
    if count > MOST { Err(Refused::Room) } else { Ok(count) }
}

/// Sets the injections of the settings.
///
/// # Safety
/// Called once, by the thread that boots.
pub unsafe fn read() {
    let text = settings().inject.as_bytes();
    if settings().mode != Mode::Off && count(text).is_ok_and(|count| count > 0) {
        // SAFETY: the caller's promise.
        unsafe { table::set_permanent(each(text).flatten()) };
    }
}

/// Whether the settings ask for injections that can be made.
pub fn is_asked_for() -> bool {
    !settings().inject.as_bytes().is_empty() && table::has_any()
}

/// Puts the injections of the settings in force.
pub fn start() {
    if is_asked_for() {
        IS_SET.store(true, Ordering::SeqCst);
        gate::require_slow_path(Reason::Injection);
    }
}

/// Logs why the injections of the settings are not in force, if they are not.
pub fn log_refusal() {
    let text = settings().inject.as_bytes();
    let log = |why: core::fmt::Arguments<'_>| log::line(Event::Setting, INJECT.variable, why);
    match count(text) {
        Err(_) if text.is_empty() => {}
        Err(Refused::Production) => log(format_args!(
            "ACLSHIM_INJECT is refused, because ACLSHIM_PRESET=production: calls are forwarded as they are"
        )),
        Err(Refused::Nonsense(nonsense)) => {
            log(format_args!("ACLSHIM_INJECT: {}; nothing of it is in force", nonsense.in_text(text)));
        }
        Err(Refused::Room) => log(format_args!("ACLSHIM_INJECT holds more than {MOST}; nothing of it is in force")),
        Ok(0) => {}
        Ok(_) | Err(Refused::Memory) => {
            if !is_asked_for() {
                log(format_args!("there is no memory for what ACLSHIM_INJECT says; nothing of it is in force"));
            }
        }
    }
}

/// Sets injections for a scope; returns their number. Only under the harness's lock, as [`remove`]: both also change the
/// path of calls.
pub fn add(scope: u64, reach: Reach, text: &[u8]) -> Result<usize, Refused> {
    let count = count(text)?;
    if count > 0 {
        table::add(scope, reach, each(text).flatten())?;
        IS_SET.store(true, Ordering::SeqCst);
        gate::require_slow_path(Reason::Injection);
    }
    Ok(count)
}

/// Removes the injections of a scope. Only under the lock.
pub fn remove(scope: u64) {
    table::remove(scope);
    release_if_empty();
}

/// Number of calls that the injections of a scope have changed.
pub fn injected(scope: u64) -> u64 {
    table::injected(scope)
}

/// Releases the slow path if no injection is set any more. Only under the lock.
fn release_if_empty() {
    if !table::has_any() {
        IS_SET.store(false, Ordering::SeqCst);
        gate::release_slow_path(Reason::Injection);
    }
}

/// The fault of a call. It lies on the caller's stack while the vendor works.
#[derive(Clone, Copy)]
pub struct InjectedFault(What);

impl InjectedFault {
    /// Delays the call, if it is to be delayed before it is forwarded.
    pub fn delay(&self) {
        wait(self.0.delay_ns);
    }
}

/// Whether an injection may be set.
#[inline(always)]
pub fn is_set() -> bool {
    IS_SET.load(Ordering::Relaxed)
}

/// Whether an injection is set. A fork child begins without those of its parent's scopes.
pub fn has_any() -> bool {
    let has_any = table::has_any();
    if !has_any {
        naming::harness().inspect(|harness| harness.locked(release_if_empty));
    }
    has_any
}

/// Selects the fault of a call that is about to be forwarded, if injections match it; `total` is the sum of the sizes of a
/// batch, if it is known.
///
/// # Safety
/// The arguments of `call` are the caller's.
pub unsafe fn select(function: Function, call: &Call, caller: usize, total: Option<u64>) -> Option<InjectedFault> {
    // SAFETY: the caller's promise.
    edge::catching_panics(|| unsafe { select_all(function, call, caller, total) }).flatten().map(InjectedFault)
}

/// The combined fault of all injections that match a call: delays are added, and of several codes the first is taken.
unsafe fn select_all(function: Function, call: &Call, caller: usize, total: Option<u64>) -> Option<What> {
    let ends = call.ends();
    let mut known = Known { ends: ends.as_slice(), ..Known::new(function, call, caller as u64) };
    let mut is_read = false;
    let mut selected: Option<What> = None;
    table::visit(|injection: &Injection, counters: &CountersOf<'_>| {
        if !injection.selector.has(function) {
            return;
        }
        if let Form::Batch(_) = call.form
            && injection.selector.asks_for_arrays()
            && !is_read
        {
            // SAFETY: the caller's promise.
            (known.bytes, known.direction) = unsafe { sums(call, total) };
            is_read = true;
        }
        if injection.selector.matches(&known, counters) && counters.count_call(injection) {
            let all = selected.get_or_insert_default();
            let What { instead, then, delay_ns, delay_after_ns, fail_index } = injection.what;
            all.instead = all.instead.or(instead);
            all.then = all.then.or(then);
            all.delay_ns = all.delay_ns.saturating_add(delay_ns);
            all.delay_after_ns = all.delay_after_ns.saturating_add(delay_after_ns);
            all.fail_index = all.fail_index.or(fail_index);
        }
    });
    selected
}

/// How many bytes a batch moves, and which way, as far as the arrays may be read before the call.
unsafe fn sums(call: &Call, total: Option<u64>) -> (Option<u64>, Direction) {
    let Form::Batch(batch) = &call.form else { return (None, Direction::Unknown) };
    // SAFETY: the caller's promise.
    let arrays = unsafe { arrays::before_call(call, &world::of(call)) };
    let sizes = arrays.sizes.filter(|sizes| sizes.len() == batch.items);
    let sum = || sizes.map(|sizes| sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size as u64)));
    let ways = arrays.attrs.filter(|attrs| attrs.len() == batch.attr_count).unwrap_or_default();
    let mut ways = ways.iter().map(|attr| Direction::of_places(attr.dstLoc.type_, attr.srcLoc.type_));
    let first = ways.next().unwrap_or(Direction::Unknown);
    let direction = if ways.all(|way| way == first) { first } else { Direction::Unknown };
    (total.or_else(sum), direction)
}

/// The code that is returned instead of forwarding the call, if the fault has one.
#[inline(always)]
pub fn instead(fault: &Option<InjectedFault>) -> Option<aclError> {
    fault.as_ref()?.0.instead
}

/// The code for the program, after the vendor has returned `code`, or the call was not forwarded.
///
/// # Safety
/// The arguments of `call` are the caller's, and `fault` is its own.
#[inline(always)]
pub unsafe fn after(fault: &Option<InjectedFault>, call: &Call, code: Option<aclError>) -> aclError {
    match (fault, code) {
        (None, Some(code)) => code,
        // SAFETY: the caller's promise.
        (Some(fault), code) => unsafe { end(fault, call, code) },
        (None, None) => 0,
    }
}

#[cold]
#[inline(never)]
unsafe fn end(InjectedFault(fault): &InjectedFault, call: &Call, of_vendor: Option<aclError>) -> aclError {
    let code = fault.instead.or(fault.then).or(of_vendor).unwrap_or(0);
    // SAFETY: the caller's promise.
    unsafe { arrays::write_fail_index(call, fault.fail_index.map(|index| index as usize)) };
    wait(fault.delay_after_ns);
    code
}

/// Waits that long, also when signals interrupt it; a handler may jump out.
fn wait(ns: u64) {
    if ns == 0 {
        return;
    }
    // SAFETY: values of ours; errno is the calling thread's own. By the raw call: the function is a cancellation point.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let mut end = core::mem::zeroed::<libc::timespec>();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut end);
        let ns = ns.saturating_add(end.tv_nsec as u64);
        end.tv_sec = end.tv_sec.saturating_add((ns / 1_000_000_000) as libc::time_t);
        end.tv_nsec = (ns % 1_000_000_000) as _;
        let (clock, flags) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
        // The handler of what interrupts may set errno to anything.
        let sleep = || {
            *errno = 0;
            libc::syscall(libc::SYS_clock_nanosleep, clock, flags, &raw const end, 0)
        };
        while sleep() != 0 && *errno == libc::EINTR {}
        *errno = before;
    }
}
