//! The gate in front of the 21 functions that copy and set memory: counts each call and commits the fault asked for.

mod commit;

use crate::config::fault::FaultKind;
use crate::config::functions::NAMES;
use crate::config::settings::settings;
use crate::edge::error::{INVALID_PARAM, answer, fail, set_errno};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

static CALLS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

/// Makes exports that pass the gate before their body runs.
macro_rules! gated {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) => $body:expr;)*) => {$(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub extern "C-unwind" fn $name($($arg: $type),*) -> i32 {
            const INDEX: usize = $crate::config::functions::index(stringify!($name));
            match $crate::gate::enter(INDEX) {
                $crate::gate::Decision::Run => {}
                $crate::gate::Decision::Answer(code) => return code,
                $crate::gate::Decision::Reenter => {
                    let public = $crate::gate::public(INDEX);
                    if !public.is_null() {
                        type Function = extern "C-unwind" fn($($type),*) -> i32;
                        // SAFETY: an interposer of this function's public name keeps its signature.
                        let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Function>(public) };
                        function($($arg),*);
                    }
                    $crate::gate::reentered();
                }
            }
            $crate::edge::error::answer(stringify!($name), || $body)
        }
    )*};
}
pub(crate) use gated;

/// What the export does after the gate.
pub enum Decision {
    /// Runs its body.
    Run,
    /// Answers this code without running its body.
    Answer(i32),
    /// Calls the function's public name, then runs its body.
    Reenter,
}

thread_local! {
    static REENTERING: Cell<bool> = const { Cell::new(false) };
}

/// Counts a call and commits its faults. Holds nothing with a destructor: an exception or a jump may leave from here.
pub fn enter(index: usize) -> Decision {
    let call = CALLS[index].fetch_add(1, Ordering::Relaxed) + 1;
    let mut decision = Decision::Run;
    for fault in &settings().faults {
        if fault.function != index || fault.nth.is_some_and(|nth| nth != call) {
            continue;
        }
        match fault.kind {
            FaultKind::Throw => commit::throw(),
            FaultKind::LongJump => commit::long_jump(),
            FaultKind::Hang => commit::hang(),
            FaultKind::Errno(value) => set_errno(value),
            FaultKind::Fail(code) => return Decision::Answer(code),
            FaultKind::Reenter => {
                // The nested call has another number; only `*` matches it again, and must not do so without end.
                if fault.nth.is_some() || !REENTERING.replace(true) {
                    decision = Decision::Reenter;
                }
            }
        }
    }
    decision
}

/// The function that the process sees under the name at `index`: an interposer's, if one is in front.
pub fn public(index: usize) -> *mut c_void {
    commit::symbol(libc::RTLD_DEFAULT, NAMES[index])
}

/// The nested call of `reenter` is over.
pub fn reentered() {
    REENTERING.set(false);
}

/// How often `function`, one of the 21, was entered in this process; 0 for any other name.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ascendclSimCalls(function: *const c_char) -> u64 {
    let mut calls = 0;
    answer("ascendclSimCalls", || {
        if function.is_null() {
            return fail(INVALID_PARAM, "function must not be NULL");
        }
        // SAFETY: the caller's promise: a C string.
        let name = unsafe { CStr::from_ptr(function) };
        if let Some(at) = NAMES.iter().position(|known| *known == name) {
            calls = CALLS[at].load(Ordering::Relaxed);
        }
        Ok(())
    });
    calls
}
