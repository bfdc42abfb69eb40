//! A simulated `libascendcl.so`: the vendor's functions, checks and codes, with real asynchrony and no NPU.
//!
//! One call, from the edge inwards:
//! 1. An export (`exports!`, or `gated!` for the 21 functions that copy and set memory) takes C values as they are.
//! 2. `gate` counts a gated call and commits the fault `ASCENDCL_SIM_FAULT` asks for, from a frame without destructors.
//! 3. `edge::error::answer` runs the body: panics end here, a failure becomes its code and the thread's last error.
//! 4. `copy` holds the checks of each form in the vendor's order; `state::registry` knows what every address is.
//! 5. `copy::transfer` moves the bytes: at once on the caller's thread, or as a `Task` on the worker of a `stream`.
//!
//! Rooms depend on each other in this order: `edge`, `config`, `gate` and `state`, `stream`, `runtime` (devices and
//! contexts), `memory`, `copy`. `state` holds everything that changes under two locks, the world (streams, events,
//! captures, contexts) and the registry of memory; a fork holds both.
#![allow(non_snake_case, reason = "exports and their arguments keep the vendor's spelling")]
#![cfg_attr(feature = "cann-8-5", allow(dead_code, unused_imports, reason = "what only the functions of 9.1 need"))]

mod config;
mod copy;
mod edge;
mod fork;
mod gate;
mod memory;
mod runtime;
mod state;
mod stream;

/// Runs when the library is loaded: what is set up once must not be half done in a thread that a fork leaves behind.
extern "C" fn loaded() {
    config::settings::settings();
    fork::watch();
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;
