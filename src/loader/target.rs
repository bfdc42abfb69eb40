//! The real functions behind our entries: resolved once, and stored in the gates ([`gate`]) of the entries.

use crate::guest::edge;
use crate::guest::log::{self, Event, OncePerFunction};
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

/// The real function behind an entry, if it is resolved.
pub fn known(function: usize, slot: usize) -> Option<usize> {
    known_to(gate::gates().get(function)?.get(slot)?, function, slot)
}

/// The real function behind the entry of that gate, if it is resolved.
#[inline(always)]
pub fn known_to(gate: &Gate, function: usize, slot: usize) -> Option<usize> {
    let is_revoked = slot == 0 && contains(&REVOKED, function);
    gate.known().filter(|_| !is_revoked)
}

/// The gate of the exported entry.
fn export_gate(function: usize) -> Option<&'static Gate> {
    gate::gates().get(function)?.first()
}

/// The real function where no library has one.
extern "C-unwind" fn unavailable() -> aclError {
    ACL_ERROR_RT_FEATURE_NOT_SUPPORT
}

/// Resolves the target of an exported entry that was called from `caller`, and loads the vendor's library if it must; never 0.
#[cold]
#[inline(never)]
pub extern "C-unwind" fn resolve(function: Function, caller: usize) -> usize {
    let index = function as usize;
    if let Some(target) = edge::with_signals_blocked(|| find_without_libdl(index, caller)).flatten() {
        return target;
    }
    let found = edge::preserving_errno(|| {
        let found =
            next_definition(index).or_else(|| if state::current() == ShimState::Passive { None } else { load(index) });
        match found {
            Some(target) => bind(index, target),
            None => log_unavailable(index),
        }
        clear_dlerror();
        found
    });
    // Not bound when nothing was found: a library may still be loaded.
    found.flatten().unwrap_or(unavailable as *const () as usize)
}

/// For each function the target that [`find_without_libdl`] has found, and the number of unloads then (plus one).
static FOUND: [[AtomicUsize; 2]; COUNT] = [const { [const { AtomicUsize::new(0) }; 2] }; COUNT];

/// Whether targets were found that are not pinned: the next lookup binds and pins them.
#[unsafe(link_section = ".bss.startup")]
pub static IS_BINDING_WANTED: AtomicBool = AtomicBool::new(false);

/// The next definition, found without a call into libdl: the holder of its lock may be waiting for this copy, and the
/// host's `dlerror` must not change. The library cannot be pinned here, so the target is valid only until an object is
/// unloaded: that is checked with each call, until the library is watched.
fn find_without_libdl(function: usize, caller: usize) -> Option<usize> {
    let is_named = state::current() == ShimState::Active && !settings().real.as_bytes().is_empty();
    let unloads = objects::changes().filter(|_| !is_named)?.subs as usize + 1;
    let [target, after] = &FOUND[function];
    if after.load(Ordering::Acquire) == unloads {
        let target = target.load(Ordering::Relaxed);
        watch_after_some_calls(target, caller);
        return Some(target);
    }
    let found = in_any_object(function)?;
    vendor::add_holder(found);
    after.store(0, Ordering::Relaxed);
    target.store(found, Ordering::Release);
    after.store(unloads, Ordering::Release);
    IS_BINDING_WANTED.store(true, Ordering::Relaxed);
    Some(found)
}

/// A set of functions, a bit each.
type Functions = AtomicU32;
const _: () = assert!(COUNT <= 32);

fn contains(functions: &Functions, function: usize) -> bool {
    functions.load(Ordering::SeqCst) >> function & 1 == 1
}

/// Functions whose exported entry is bound to a library that is not pinned, but watched.
#[unsafe(link_section = ".bss.startup")]
static UNPINNED: Functions = Functions::new(0);
/// Functions whose exported entry was bound to a library that is being unloaded. The gate still holds the target, for calls
/// that are just past it.
#[unsafe(link_section = ".bss.startup")]
static REVOKED: Functions = Functions::new(0);
/// [`Gate::via`] of the [`UNPINNED`] functions before they were bound.
static VIA_BEFORE: [AtomicPtr<()>; COUNT] = [const { AtomicPtr::new(core::ptr::null_mut()) }; COUNT];

/// Number of calls to targets that are neither pinned nor watched, since a library was last unloaded.
static UNPINNED_CALLS: AtomicU32 = AtomicU32::new(0);

/// Whether a thread is binding gates to a watched library.
static IS_OPENING: AtomicBool = AtomicBool::new(false);

/// Watches the library at `target` and binds the gates to it: after a few calls, and then after twice as many each time. It
/// reads all objects and their dependencies, which a program that copies little must not pay for.
fn watch_after_some_calls(target: usize, caller: usize) {
    const FIRST: u32 = 16;
    let calls = UNPINNED_CALLS.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    if calls < FIRST || !calls.is_power_of_two() {
        return;
    }
    // One thread at a time: another would store the present `via` of a gate as the former one. (A fork child of a process
    // in which a thread was here never watches.)
    if !IS_OPENING.swap(true, Ordering::AcqRel) {
        if unload::watch(target, caller, revoke) {
            open_watched();
        }
        IS_OPENING.store(false, Ordering::Release);
    }
}

/// Binds the gates to libraries that are watched.
fn open_watched() {
    for function in (0..COUNT).filter(|&function| known(function, 0).is_none()) {
        if let Some(target) = in_any_object(function).filter(|&target| unload::is_watched(target)) {
            let Some(gate) = export_gate(function) else { continue };
            VIA_BEFORE[function].store(gate.via.load(Ordering::Relaxed), Ordering::Relaxed);
            gate.lead_to(target);
            // After `lead_to`: the finalizer of another library would revoke the former target.
            UNPINNED.fetch_or(1 << function, Ordering::SeqCst);
            REVOKED.fetch_and(!(1 << function), Ordering::SeqCst);
        }
    }
    // A finalizer that runs meanwhile has seen what was opened, or we see that its library is not watched any more.
    revoke();
}

/// Revokes the gates of libraries that are not watched any more: they are about to be unloaded.
fn revoke() {
    let is_over = |gate: &&Gate| !unload::is_watched(gate.target.load(Ordering::Relaxed));
    for function in (0..COUNT).filter(|&function| contains(&UNPINNED, function)) {
        let Some(gate) = export_gate(function).filter(is_over) else { continue };
        REVOKED.fetch_or(1 << function, Ordering::SeqCst);
        gate.slow_path.fetch_or(CLOSED, Ordering::AcqRel);
        gate.via.store(VIA_BEFORE[function].load(Ordering::Relaxed), Ordering::Release);
        UNPINNED.fetch_and(!(1 << function), Ordering::SeqCst);
        UNPINNED_CALLS.store(0, Ordering::Relaxed);
    }
}

/// Opens the gates whose targets were resolved while the shim was starting. Idempotent.
pub fn open_resolved() {
    for (function, gates) in gate::gates().iter().enumerate() {
        let resolved = gates.iter().enumerate().filter(|&(slot, gate)| known_to(gate, function, slot).is_some());
        resolved.for_each(|(_, gate)| gate.open());
    }
    // Opened first, and looked at then: a library may have been finalized in between.
    for function in (0..COUNT).filter(|&function| contains(&REVOKED, function)) {
        let Some(gate) = export_gate(function) else { continue };
        gate.slow_path.fetch_or(CLOSED, Ordering::AcqRel);
        gate.via.store(VIA_BEFORE[function].load(Ordering::Relaxed), Ordering::Release);
    }
}

/// Pins `target` and binds the exported entry to it.
pub fn bind(function: usize, target: usize) {
    pin(target);
    if let Some(gate) = export_gate(function) {
        gate.lead_to(target);
    }
    UNPINNED.fetch_and(!(1 << function), Ordering::SeqCst);
    REVOKED.fetch_and(!(1 << function), Ordering::SeqCst);
}

fn log_unavailable(function: usize) {
    static SAID: OncePerFunction = OncePerFunction::new();
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

/// Binds all exported entries if the vendor's library was loaded before us. A process without it pays for one pass over
/// its objects.
pub fn bind_at_start() {
    if objects::resident(|_| true).any(|object| is_vendor(&object)) {
        bind_all();
    }
}

/// Whether an object defines any function of the vendor's: a stub or an old release may lack each of them.
#[unsafe(link_section = ".text.startup")]
pub fn is_vendor(object: &Object) -> bool {
    !is_own(object.identity()) && (0..COUNT).any(|function| real_in(object, function).is_some())
}

/// Binds all exported entries before the first call, which may come in a signal handler, or while another thread holds
/// the loader's lock and waits for the caller.
#[unsafe(link_section = ".text.startup")]
pub fn bind_all() {
    for function in (0..COUNT).filter(|&function| known(function, 0).is_none() || contains(&UNPINNED, function)) {
        if let Some(target) = next_definition(function) {
            bind(function, target);
        }
    }
    clear_dlerror();
}

/// The address of a real function: not NULL, and not one of ours.
fn real(address: *mut c_void) -> Option<usize> {
    Some(address as usize).filter(|&address| address != 0 && !is_own(address))
}

/// The next definition behind ours, without loading anything but what `ACLSHIM_REAL` names.
#[unsafe(link_section = ".text.startup")]
pub fn next_definition(function: usize) -> Option<usize> {
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
#[unsafe(link_section = ".text.startup")]
pub fn in_vendor(function: usize) -> Option<usize> {
    if is_secure() {
        return None;
    }
    VENDOR.iter().find_map(|name| in_library(name, libc::RTLD_NOW | libc::RTLD_NOLOAD, function))
}

/// The function in the first object behind us that defines it, whatever the name of that object.
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
#[unsafe(link_section = ".text.startup")]
pub fn pin(target: usize) {
    if let Some(file) = libdl::file_of(target) {
        vendor::add_holder(target);
        // SAFETY: the loader's own name of a loaded object.
        unsafe { libc::dlopen(file, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
        vendor::set_library(file, target);
    }
}

/// Clears `dlerror`: the host must not see the message of a failed lookup of ours.
pub fn clear_dlerror() {
    // SAFETY: reads and clears the calling thread's own state.
    unsafe { libc::dlerror() };
}

/// Our export, if it forwards to `target` and no other interposer owns the name: a program may compare the address that it
/// looked up with the one that it linked.
pub fn export_for(function: usize, target: usize) -> Option<usize> {
    (bindings::is_first(function) && known(function, 0) == Some(target)).then(|| bindings::export(function))
}

/// The entry for `target`, which a handle of the host's has: our export or a private entry. `None` if all private entries
/// lead to other libraries.
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
pub fn real_behind_entry(address: usize) -> Option<usize> {
    (0..COUNT).find_map(|function| {
        if address == bindings::export(function) {
            return known(function, 0).or_else(|| {
                let found = next_definition(function);
                clear_dlerror();
                found
            });
        }
        let slot = gate::entries().get(function)?.iter().position(|entry| entry.address() == address)?;
        known(function, slot + 1)
    })
}
