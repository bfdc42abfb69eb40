//! Where calls go: the real functions, found once and kept.
//!
//! They stand in the gates ([`gate`]) of the entries.

use crate::guest::edge;
use crate::guest::log::{self, Event, Once};
use crate::guest::state::{self, ShimState, is_own};
use crate::loader::gate::{self, CLOSED, Gate};
use crate::loader::names::{COUNT, NAMES, real_in};
use crate::loader::{bindings, libdl, objects, unload, vendor};
use crate::settings::{environment, is_secure, settings};
use aclshim_core::elf::Object;
use aclshim_facts::Function;
use aclshim_facts::abi::aclError;
use aclshim_facts::code::ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
use aclshim_facts::text::Text;
use core::ffi::{CStr, c_void};
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// The real function behind an entry as far as it is known.
pub fn known(function: usize, slot: usize) -> Option<usize> {
    known_to(gate::gates().get(function)?.get(slot)?, function, slot)
}

/// The real function behind the entry of that gate as far as it is known.
#[inline(always)]
pub fn known_to(gate: &Gate, function: usize, slot: usize) -> Option<usize> {
    let is_revoked = slot == 0 && is_in(&REVOKED, function);
    gate.known().filter(|_| !is_revoked)
}

/// The gate of the exported entry.
fn export_gate(function: usize) -> Option<&'static Gate> {
    gate::gates().get(function)?.first()
}

/// What a call answers that no library can serve.
extern "C-unwind" fn unavailable() -> aclError {
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT
}

/// Finds the next in line for an exported entry called from `caller`, loading the vendor's library if it must; never 0.
#[cold]
#[inline(never)]
pub extern "C-unwind" fn resolve(function: Function, caller: usize) -> usize {
    let index = function as usize;
    if let Some(target) = edge::with_signals_blocked(|| find_quietly(index, caller)).flatten() {
        return target;
    }
    let found = edge::preserving_errno(|| {
        let found =
            next_in_line(index).or_else(|| if state::current() == ShimState::Passive { None } else { load(index) });
        match found {
            Some(target) => keep(index, target),
            None => say_unavailable(index),
        }
        forget_dlerror();
        found
    });
    // Not kept when nothing was found: a library may still come.
    found.flatten().unwrap_or(unavailable as *const () as usize)
}

/// What was found quietly for each function, and after how many unloads (plus one).
static QUIET: [[AtomicUsize; 2]; COUNT] = [const { [const { AtomicUsize::new(0) }; 2] }; COUNT];

/// Whether something was found quietly: the next lookup finds it again, and pins it.
pub static IS_WARM_WANTED: AtomicBool = AtomicBool::new(false);

/// The next in line without a call into libdl: the holder of its lock may be waiting for this
/// copy, and the host's `dlerror` is not ours to touch. What is found cannot be pinned here, so it
/// holds only until something is unloaded: it is looked at again with each call, until the library is watched.
fn find_quietly(function: usize, caller: usize) -> Option<usize> {
    let is_named = state::current() == ShimState::Active && !settings().real.as_bytes().is_empty();
    let unloads = objects::changes().filter(|_| !is_named)?.subs as usize + 1;
    let [target, after] = &QUIET[function];
    if after.load(Ordering::Acquire) == unloads {
        let target = target.load(Ordering::Relaxed);
        open_in_time(target, caller);
        return Some(target);
    }
    let found = in_any_object(function)?;
    vendor::learn_holder(found);
    after.store(0, Ordering::Relaxed);
    target.store(found, Ordering::Release);
    after.store(unloads, Ordering::Release);
    IS_WARM_WANTED.store(true, Ordering::Relaxed);
    Some(found)
}

/// A bit for each function.
type Functions = AtomicU32;
const _: () = assert!(COUNT <= 32);

fn is_in(functions: &Functions, function: usize) -> bool {
    functions.load(Ordering::SeqCst) >> function & 1 == 1
}

/// Functions whose exported entry leads into a library that is not pinned, but watched.
static UNPINNED: Functions = Functions::new(0);
/// Functions whose exported entry led there before the library was finalized. The gate still holds that target, for calls
/// that have just come past it.
static REVOKED: Functions = Functions::new(0);
/// Where the gates of [`UNPINNED`] functions led before.
static BEFORE: [AtomicPtr<()>; COUNT] = [const { AtomicPtr::new(core::ptr::null_mut()) }; COUNT];

/// How many calls were served by what was found quietly, since a library was last unloaded.
static QUIET_CALLS: AtomicU32 = AtomicU32::new(0);

/// Whether a thread opens gates into a library that is watched.
static IS_OPENING: AtomicBool = AtomicBool::new(false);

/// Opens the gates into the library at `target`, after a few calls and then ever more rarely: it takes a look at all objects
/// and what they need, which a program that copies little, or looks something up soon, is not to pay for.
fn open_in_time(target: usize, caller: usize) {
    const FIRST: u32 = 16;
    let calls = QUIET_CALLS.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    if calls < FIRST || !calls.is_power_of_two() {
        return;
    }
    // One thread at a time: another would take where a gate leads now for where it led before. (A fork child of a process
    // in which one was at it goes on searching.)
    if !IS_OPENING.swap(true, Ordering::AcqRel) {
        if unload::watch(target, caller, revoke) {
            open_watched();
        }
        IS_OPENING.store(false, Ordering::Release);
    }
}

/// Opens the gates into libraries that are watched.
fn open_watched() {
    for function in (0..COUNT).filter(|&function| known(function, 0).is_none()) {
        if let Some(target) = in_any_object(function).filter(|&target| unload::is_watched(target)) {
            let Some(gate) = export_gate(function) else { continue };
            BEFORE[function].store(gate.via.load(Ordering::Relaxed), Ordering::Relaxed);
            gate.lead_to(target);
            // Behind it: the finalizer of another library would take the target that stood there before for its own.
            UNPINNED.fetch_or(1 << function, Ordering::SeqCst);
            REVOKED.fetch_and(!(1 << function), Ordering::SeqCst);
        }
    }
    // A finalizer that runs meanwhile has seen what was opened, or we see that its library is not watched any more.
    revoke();
}

/// Closes the gates that lead into libraries that are not watched any more: they are about to be unloaded.
fn revoke() {
    let is_over = |gate: &&Gate| !unload::is_watched(gate.target.load(Ordering::Relaxed));
    for function in (0..COUNT).filter(|&function| is_in(&UNPINNED, function)) {
        let Some(gate) = export_gate(function).filter(is_over) else { continue };
        REVOKED.fetch_or(1 << function, Ordering::SeqCst);
        gate.slow_path.fetch_or(CLOSED, Ordering::AcqRel);
        gate.via.store(BEFORE[function].load(Ordering::Relaxed), Ordering::Release);
        UNPINNED.fetch_and(!(1 << function), Ordering::SeqCst);
        QUIET_CALLS.store(0, Ordering::Relaxed);
    }
}

/// Makes `target` the next in line for good.
pub fn keep(function: usize, target: usize) {
    pin(target);
    if let Some(gate) = export_gate(function) {
        gate.lead_to(target);
    }
    UNPINNED.fetch_and(!(1 << function), Ordering::SeqCst);
    REVOKED.fetch_and(!(1 << function), Ordering::SeqCst);
}

fn say_unavailable(function: usize) {
    static SAID: Once = Once::new();
    if SAID.is_first(function) {
        let name = NAMES[function].to_str().unwrap_or_default();
        log::line(
            Event::Unavailable,
            name,
            format_args!(
                "{name} was called, but no real library has it: the call returned \
                 {ACL_ERROR_RT_FEATURE_NOT_SUPPORT}. If one does, name its path in ACLSHIM_REAL."
            ),
        );
    }
}

/// Warms up if the vendor's library was loaded before us. A process that has nothing to do with
/// it pays one look into its objects.
pub fn warm_at_start() {
    if objects::resident(|_| true).any(|object| is_vendor(&object)) {
        warm();
    }
}

/// Whether an object brings functions of the vendor's: any, since a stub or an old release may lack each of them.
pub fn is_vendor(object: &Object) -> bool {
    !is_own(object.identity()) && (0..COUNT).any(|function| real_in(object, function).is_some())
}

/// Finds the targets of the exported entries ahead of the first call, which may come in a signal
/// handler, or while another thread holds the loader's lock and waits for the caller.
pub fn warm() {
    for function in (0..COUNT).filter(|&function| known(function, 0).is_none() || is_in(&UNPINNED, function)) {
        if let Some(target) = next_in_line(function) {
            keep(function, target);
        }
    }
    forget_dlerror();
}

/// A real function: there, and not one of ours.
fn real(address: *mut c_void) -> Option<usize> {
    Some(address as usize).filter(|&address| address != 0 && !is_own(address))
}

/// The next in line behind us without loading anything, unless a setting names it.
pub fn next_in_line(function: usize) -> Option<usize> {
    // A passive copy is a link in a chain: it looks behind itself only, or the chain might close.
    if state::current() == ShimState::Passive {
        return in_scope(function).or_else(|| in_any_object(function));
    }
    named_by_setting(function)
        .or_else(|| in_scope(function))
        .or_else(|| in_vendor(function))
        .or_else(|| in_any_object(function))
}

fn named_by_setting(function: usize) -> Option<usize> {
    if state::current() == ShimState::Unready {
        return None; // another thread is just reading the settings
    }
    let path = settings().real.as_c_str();
    if path.is_empty() { None } else { in_library(path, libc::RTLD_NOW | libc::RTLD_NODELETE, function) }
}

/// The next definition in the scope that we were loaded into.
pub fn in_scope(function: usize) -> Option<usize> {
    // SAFETY: a pseudo handle and a C string. Asked from here, it means "behind the shim".
    real(unsafe { libdl::dlsym(libdl::NEXT, NAMES[function].as_ptr()) })
}

const VENDOR: [&CStr; 2] = [c"libascendcl.so", c"libacl_rt.so"];

/// The vendor's library if it is loaded, in whatever scope: what a plugin opened with RTLD_LOCAL
/// brought in is invisible to RTLD_NEXT. Not in a program with more privileges than its caller: to compare files, the loader
/// opens those of that name wherever it would search for one.
pub fn in_vendor(function: usize) -> Option<usize> {
    if is_secure() {
        return None;
    }
    VENDOR.iter().find_map(|name| in_library(name, libc::RTLD_NOW | libc::RTLD_NOLOAD, function))
}

/// The function in the first object behind us that defines it, under whatever name that goes.
fn in_any_object(function: usize) -> Option<usize> {
    let mut found = None;
    objects::each_behind(|object| {
        found = real_in(object, function);
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}

/// Loads the vendor's library from where it is installed, or from wherever the loader finds it. Not in a program with more
/// privileges than its caller: it calls what the loader has brought with it, or nothing.
#[inline(never)] // its buffer is not to lie on the stack of every caller that resolves
fn load(function: usize) -> Option<usize> {
    if is_secure() {
        return None;
    }
    let flags = libc::RTLD_NOW | libc::RTLD_NODELETE;
    let installed = environment("ASCEND_HOME_PATH").and_then(|home| {
        VENDOR.iter().find_map(|name| {
            let mut path = Text::<1024>::new();
            path.push(home).push(b"/lib64/").push(name.to_bytes());
            in_library(path.as_c_str(), flags, function)
        })
    });
    installed.or_else(|| VENDOR.iter().find_map(|name| in_library(name, flags, function)))
}

fn in_library(path: &CStr, flags: i32, function: usize) -> Option<usize> {
    // SAFETY: C strings; the handle is asked for what it may hold and given back. Where something
    // was found the library is pinned before it is called.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), flags);
        if handle.is_null() {
            return None;
        }
        let found = real(libdl::dlsym(handle, NAMES[function].as_ptr()));
        found.inspect(|&target| pin(target));
        libc::dlclose(handle);
        found
    }
}

/// Keeps the library that holds `target` loaded for good: its address is in our tables now.
pub fn pin(target: usize) {
    if let Some(file) = libdl::file_of(target) {
        vendor::learn_holder(target);
        // SAFETY: the loader's own name of a loaded object.
        unsafe { libc::dlopen(file, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
        vendor::learn_library(file, target);
    }
}

/// Our failed lookups are not the host's: it must not find their message.
pub fn forget_dlerror() {
    // SAFETY: reads and clears the calling thread's own state.
    unsafe { libc::dlerror() };
}

/// Our export, if it forwards to `target` anyway and no other interposer owns the name: a program
/// may compare what it looked up with what it linked.
pub fn export_for(function: usize, target: usize) -> Option<usize> {
    (bindings::is_first(function) && known(function, 0) == Some(target)).then(|| bindings::export(function))
}

/// The address to hand out for `target`, which a handle of the host's holds: our export or a
/// private entry. `None` if all are taken by other libraries.
pub fn entry_for(function: usize, target: usize) -> Option<usize> {
    if let Some(export) = export_for(function, target) {
        return Some(export);
    }
    let slot = gate::gates().get(function)?[1..].iter().position(|gate| {
        let taken = gate.target.compare_exchange(0, target, Ordering::AcqRel, Ordering::Acquire);
        let leads_there = taken.is_ok() || taken == Err(target);
        if leads_there {
            gate.open();
        }
        leads_there
    });
    Some(gate::entries().get(function)?.get(slot?)?.address())
}

/// The real function behind one of our entries, if `address` is the start of one.
pub fn behind(address: usize) -> Option<usize> {
    (0..COUNT).find_map(|function| {
        if address == bindings::export(function) {
            return known(function, 0).or_else(|| {
                let found = next_in_line(function);
                forget_dlerror();
                found
            });
        }
        let slot = gate::entries().get(function)?.iter().position(|entry| entry.address() == address)?;
        known(function, slot + 1)
    })
}
