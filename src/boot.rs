//! The start of the shim, once in a process: when it is loaded, or by the first call that needs it before that.
//!
//! Every program that the shim is preloaded into pays for its start, and most of that is page faults. So functions that run
//! then are in the section `.text.startup`, and what they write is in `.bss.startup`: both lie together, instead of being
//! spread over the library. What each first call needs is there too. (Functions of other crates have `#[inline]` as well, to be compiled into this one. A
//! static in `.bss.startup` must be all zero; the compiler refuses others.)

use crate::check::{policy, world};
use crate::guest::state::{self, ShimState};
use crate::guest::{edge, first_thread, log, thread};
use crate::inject;
use crate::loader::gate::{self, Table};
use crate::loader::{bindings, libdl, rebind, target};
use crate::ring::fork;
use crate::settings;
use aclshim_facts::settings::Mode;
use aclshim_trace::system::generation;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

const NEW: u8 = 0;
const BUSY: u8 = 1;
const DONE: u8 = 2;

#[unsafe(link_section = ".bss.startup")]
static PROGRESS: AtomicU8 = AtomicU8::new(NEW);
/// The address of the TLS block of the thread that starts the shim.
#[unsafe(link_section = ".bss.startup")]
static BOOTING: AtomicUsize = AtomicUsize::new(0);

/// Whether the shim has started.
pub fn is_done() -> bool {
    PROGRESS.load(Ordering::Acquire) == DONE
}

/// Starts the shim, when it is loaded; `table` is that of all entries.
#[unsafe(link_section = ".text.startup")]
pub fn load(table: &'static Table) {
    // Without a look first: a page that is read before it is written to is brought in twice.
    edge::preserving_errno(|| boot(table));
    if state::current() == ShimState::Active {
        generation::take_memory();
        fork::register();
        edge::preserving_errno(first_thread::remember);
    }
}

/// What the shim is in this process; starts it unless that was done.
pub fn ensure(table: &'static Table) -> ShimState {
    if !is_done() {
        boot(table);
    }
    state::current()
}

/// Starts the shim unless that was done. Bounded: a caller that comes while another thread is at it waits 2 ms at most.
#[cold]
#[unsafe(link_section = ".text.startup")]
fn boot(table: &'static Table) {
    gate::install(table);
    let me = thread::current() as *const _ as usize;
    if PROGRESS.compare_exchange(NEW, BUSY, Ordering::Acquire, Ordering::Acquire).is_err() {
        if BOOTING.load(Ordering::Relaxed) != me {
            state::wait_until(is_done);
        }
        return;
    }
    BOOTING.store(me, Ordering::Relaxed);
    // If we cannot even begin, we forward.
    let shim = edge::preserving_errno(prepare).unwrap_or(ShimState::Off);
    state::set(shim);
    target::open_resolved();
    PROGRESS.store(DONE, Ordering::Release);
    if shim != ShimState::Passive {
        edge::preserving_errno(|| {
            target::bind_at_start();
            rebind::refresh(rebind::Trigger::Lookup);
        });
    }
}

fn prepare() -> ShimState {
    state::set_process();
    // A panic of ours must not print into the host's output; it is caught where it matters.
    std::panic::set_hook(Box::new(|_| {}));
    libdl::find();
    bindings::read_own();
    // SAFETY: we are the one thread that boots.
    unsafe {
        settings::read();
        policy::read();
        if policy::is_strict() {
            gate::close_for_good();
        }
        inject::read();
    }
    world::read();
    let settings = settings::settings();
    let is_of_use = settings.records() || policy::is_strict() || inject::is_asked_for();
    let shim = if bindings::has_another_shim() {
        ShimState::Passive
    } else if settings.mode == Mode::Off || !is_of_use {
        ShimState::Off
    } else {
        inject::start();
        log::remember_stderr();
        ShimState::Active
    };
    bindings::read_order();
    shim
}
