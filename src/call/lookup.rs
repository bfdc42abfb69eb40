//! What our `dlsym` and `dlvsym` answer.
//!
//! Only names of the function table are answered by us, and only if the real lookup finds one:
//! a program that probes for a function which this CANN lacks must still get NULL, and
//! "undefined symbol" from `dlerror`. The last libdl call of every answer is one whose `dlerror`
//! fits it: the tail jump, a successful lookup, or one that fails on that very name.

use crate::boot;
use crate::call::entry::TABLE;
use crate::guest::edge;
use crate::guest::log::{self, Event, OncePerFunction};
use crate::guest::state::{self, ShimState, is_own};
use crate::loader::objects::LinkMap;
use crate::loader::rebind::{self, Trigger};
use crate::loader::visibility::NotVisible;
use crate::loader::{bindings, libdl, names, target, visibility};
use core::ffi::{c_char, c_void};

/// Let the real function answer.
const PASS: usize = 0;
/// Answer NULL.
const NULL: usize = 1;

/// Decides about `dlsym(handle, name)` asked from `caller`.
pub unsafe extern "C-unwind" fn filter(handle: *mut c_void, name: *const c_char, caller: usize) -> usize {
    // SAFETY: the caller's promise: a handle of the loader's and a C string.
    decide(handle, name, caller, |handle| unsafe { libdl::dlsym(handle, name) as usize })
}

/// Decides about `dlvsym(handle, name, version)` asked from `caller`.
pub unsafe extern "C-unwind" fn filter_versioned(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
    caller: usize,
) -> usize {
    // SAFETY: the caller's promise: a handle of the loader's and C strings.
    decide(handle, name, caller, |handle| unsafe { libdl::dlvsym(handle, name, version) as usize })
}

fn decide(handle: *mut c_void, name: *const c_char, caller: usize, find: impl Fn(*mut c_void) -> usize) -> usize {
    libdl::find();
    if handle == libdl::NEXT || name.is_null() {
        return PASS;
    }
    // SAFETY: not NULL, and the caller's promise that it is a C string.
    let Some(function) = (unsafe { names::function(name) }) else {
        // Sanitizers look up what is behind them before anything else works: no lookup of a
        // name that is not ours starts the shim.
        if matches!(state::current(), ShimState::Active | ShimState::Off) {
            edge::preserving_errno(|| rebind::refresh(Trigger::Lookup));
        }
        return PASS;
    };
    edge::preserving_errno(|| match boot::ensure(&TABLE) {
        shim @ (ShimState::Active | ShimState::Off) => {
            rebind::refresh(Trigger::Lookup);
            answer(function as usize, handle, caller, shim, find)
        }
        ShimState::Unready | ShimState::Passive => PASS,
    })
    .unwrap_or(PASS)
}

fn answer(
    function: usize,
    handle: *mut c_void,
    caller: usize,
    shim: ShimState,
    find: impl Fn(*mut c_void) -> usize,
) -> usize {
    let found = find(handle);
    let is_default = handle == libdl::DEFAULT;
    let is_in_front =
        |found| (is_default || found == bindings::visible(function)) && target::in_scope(function) != Some(found);
    match found {
        0 => return PASS,
        // Another interposer in front of us, or a stub of the program's own: what it does with the
        // call is its business, and through it the call comes to us.
        found if !is_own(found) && is_in_front(found) => return PASS,
        found if !is_own(found) => {
            let answer = hand_out(function, found, shim);
            find(handle);
            return answer;
        }
        _ => {}
    }
    // Ours was found, in the global scope. It is the truth if there is a real one behind it.
    if target::in_scope(function).is_some() {
        return PASS;
    }
    // Or if it belongs to a library that brings us along and the real one behind us (the drop-in).
    if !is_default && is_of_a_library(handle) && target::next_definition(function).is_some() {
        return PASS;
    }
    // Or if the caller could see one in a scope of its own.
    if is_default && let Some(found) = visible_from(caller, function) {
        let answer = hand_out(function, found, shim);
        target::clear_dlerror();
        return answer;
    }
    null_with_dlerror(function)
}

fn hand_out(function: usize, found: usize, shim: ShimState) -> usize {
    // So that the export is known to lead there, if it does.
    if target::known(function, 0).is_none() && target::next_definition(function) == Some(found) {
        target::bind(function, found);
    }
    if shim == ShimState::Off {
        return target::export_for(function, found).unwrap_or(found);
    }
    target::pin(found);
    target::entry_for(function, found).unwrap_or_else(|| {
        static SAID: OncePerFunction = OncePerFunction::new();
        if SAID.is_first(function) {
            let name = names::NAMES[function].to_str().unwrap_or_default();
            log::line(
                Event::Bypassed,
                name,
                format_args!("too many libraries define {name}; calls to those looked up last are not seen"),
            );
        }
        PASS
    })
}

/// What `dlsym(RTLD_DEFAULT)` would find from `caller` beyond the global scope.
fn visible_from(caller: usize, function: usize) -> Option<usize> {
    match visibility::visible_from(caller, function) {
        Ok(found) => return Some(found),
        Err(NotVisible::Nothing) => return None,
        Err(NotVisible::Unknown) => {}
    }
    // By the loader's own means then (a fork child may not walk the objects): in what the caller's
    // object needs, and failing that in the vendor's library, which the opener of the caller may
    // have brought along.
    let file = libdl::file_of(caller)?;
    // SAFETY: the loader's own name of a loaded object; the handle is given back.
    unsafe {
        let handle = libc::dlopen(file, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None; // the program itself
        }
        let found = libdl::dlsym(handle, names::NAMES[function].as_ptr()) as usize;
        libc::dlclose(handle);
        Some(found).filter(|&found| found != 0 && !is_own(found)).or_else(|| target::in_vendor(function))
    }
}

/// Whether a handle is that of a library, not of the program itself.
fn is_of_a_library(handle: *mut c_void) -> bool {
    let mut map: *const LinkMap = core::ptr::null();
    // SAFETY: a handle that the loader has just looked something up in.
    unsafe {
        libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) == 0
            && !map.is_null()
            && !(*map).name.is_null()
            && *(*map).name != 0
    }
}

/// NULL, with the `dlerror` of a lookup that failed on this name.
fn null_with_dlerror(function: usize) -> usize {
    // SAFETY: C strings; libc is always loaded and has none of these functions.
    unsafe {
        let libc = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if !libc.is_null() {
            libc::dlclose(libc);
            libdl::dlsym(libc, names::NAMES[function].as_ptr());
        }
    }
    NULL
}

/// For the start of one of our entries the address of the real function, else `address` itself.
pub fn real_address(address: usize) -> usize {
    edge::preserving_errno(|| {
        if boot::ensure(&TABLE) == ShimState::Unready || !is_own(address) {
            return address;
        }
        let libdl = (0..libdl::INTERPOSED.len()).find(|&which| bindings::libdl_export(which) == address);
        let real = match libdl {
            Some(which) => Some(libdl::INTERPOSED[which].1.load(core::sync::atomic::Ordering::Relaxed)),
            None => target::real_behind_entry(address),
        };
        real.filter(|&real| real != 0).unwrap_or(address)
    })
    .unwrap_or(address)
}
