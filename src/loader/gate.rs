//! Gates: the words in memory through which each entry jumps, to the real function or to our own code.
//!
//! Each function has one gate for its exported entry (the next in line behind us) and a few for private entries, each
//! bound to what one handle of the host's holds.

use crate::guest::state::{self, ShimState};
use crate::guest::thread;
use crate::loader::names::COUNT;
use aclshim_facts::Function;
use aclshim_trace::ring::cursor::RingCursor;
use aclshim_trace::system::clock;
use aclshim_trace::system::clock::Clock;
use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicUsize, Ordering, fence};

/// Number of private entries of a function, and so of libraries that it can lead to.
pub const PRIVATE: usize = 4;

/// The gate of an entry, which jumps to `via`. All of it lies in one cache line.
#[repr(C, align(32))]
pub struct Gate {
    /// Our own code, or the target itself where calls are only forwarded.
    pub via: AtomicPtr<()>,
    /// The real function, or 0.
    pub target: AtomicUsize,
    /// Not 0 while calls take the slow path. [`CLOSED`]: the target is not resolved, the clock is a slow one, or every call is
    /// judged first. The other bits are [`Reason`]s.
    pub slow_path: AtomicUsize,
    /// Where a thread's block lies, from its thread pointer: here, because the loader's own place for it would be
    /// one more cache line.
    thread: AtomicIsize,
}

/// The bit of a gate that is not [open](Gate::open).
pub const CLOSED: usize = 1;

/// Reasons why every call takes the slow path for a while, a bit each.
#[derive(Clone, Copy)]
#[repr(usize)]
pub enum Reason {
    /// Injections are set.
    Injection = 2,
    /// A scope of a test is open.
    Scope = 4,
}

/// The start of a private entry.
pub struct Entry(pub unsafe extern "C-unwind" fn());

impl Entry {
    /// As a number.
    pub fn address(&self) -> usize {
        self.0 as *const () as usize
    }
}

/// All gates and private entries, by function. Made where the entries are, which stand above this module.
pub struct Table {
    /// The gate of the exported entry first.
    pub gates: &'static [Gates; COUNT],
    /// The private entries.
    pub entries: &'static [[Entry; PRIVATE]; COUNT],
}

#[unsafe(link_section = ".bss.startup")]
static TABLE: AtomicPtr<Table> = AtomicPtr::new(core::ptr::null_mut());
/// Whether all gates stay closed.
#[unsafe(link_section = ".bss.startup")]
static IS_CLOSED_FOR_GOOD: AtomicBool = AtomicBool::new(false);

/// Makes the table known; before the shim starts.
pub fn install(table: &'static Table) {
    TABLE.store(core::ptr::from_ref(table).cast_mut(), Ordering::Release);
}

/// Closes all gates for good: every call is judged before it is forwarded. Before the shim has started, when none is open.
pub fn close_for_good() {
    IS_CLOSED_FOR_GOOD.store(true, Ordering::Relaxed);
}

fn table() -> Option<&'static Table> {
    // SAFETY: NULL, or a static table.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

/// The gates by function; none before the table is known.
pub fn gates() -> &'static [Gates] {
    table().map_or(&[], |table| table.gates)
}

/// The private entries by function; none before the table is known.
pub fn entries() -> &'static [[Entry; PRIVATE]] {
    table().map_or(&[], |table| table.entries)
}

/// Sends every call from now on to the slow path for this reason. Idempotent.
pub fn require_slow_path(reason: Reason) {
    gates().as_flattened().iter().for_each(|gate| _ = gate.slow_path.fetch_or(reason as usize, Ordering::AcqRel));
}

/// Removes a reason for the slow path; others may remain.
pub fn release_slow_path(reason: Reason) {
    gates().as_flattened().iter().for_each(|gate| _ = gate.slow_path.fetch_and(!(reason as usize), Ordering::AcqRel));
}

/// The gates of one function: that of its export and those of its private entries.
pub type Gates = [Gate; 1 + PRIVATE];

impl Gate {
    /// The gate of an entry whose code goes on at `stub`.
    pub const fn new(stub: *const ()) -> Self {
        Self {
            via: AtomicPtr::new(stub.cast_mut()),
            target: AtomicUsize::new(0),
            slow_path: AtomicUsize::new(CLOSED),
            thread: AtomicIsize::new(0),
        }
    }

    /// Where the calling thread records; only where there is no [`slow_path`](Self::slow_path).
    #[inline(always)]
    pub fn cursor(&self) -> *const RingCursor {
        thread::cursor_at(self.thread.load(Ordering::Relaxed))
    }

    /// Whether a call must not take the fast path; a word, so that it can be added to other reasons.
    #[inline(always)]
    pub fn slow_path(&self) -> usize {
        self.slow_path.load(Ordering::Acquire)
    }

    /// The real function; 0 only where there is a [`slow_path`](Self::slow_path).
    #[inline(always)]
    pub fn target(&self) -> usize {
        self.target.load(Ordering::Relaxed)
    }

    /// The real function, if it is resolved.
    pub fn known(&self) -> Option<usize> {
        Some(self.target.load(Ordering::Acquire)).filter(|&target| target != 0)
    }

    /// Stores the real function, and opens the gate.
    pub fn lead_to(&self, target: usize) {
        self.target.store(target, Ordering::Release);
        self.open();
    }

    /// Opens the gate of a resolved target: to the target itself where calls are only forwarded, else to the fast path if
    /// the clock is a fast one. While the shim is starting it stays closed, because the policy is not known:
    /// [`open_resolved`] opens it then.
    pub fn open(&self) {
        // Of a thread that stores a target and one that stores the state, at least one sees both.
        fence(Ordering::SeqCst);
        let Some(target) = self.known() else { return };
        match state::current() {
            ShimState::Unready => {}
            ShimState::Off | ShimState::Passive => self.via.store(target as *mut (), Ordering::Release),
            ShimState::Active => {
                if clock::choose() == Clock::Counter && !IS_CLOSED_FOR_GOOD.load(Ordering::Relaxed) {
                    self.thread.store(thread::offset(), Ordering::Relaxed);
                    self.slow_path.fetch_and(!CLOSED, Ordering::AcqRel);
                }
            }
        }
    }
}

/// Where the gate of an entry stands in a [`Table`], in bytes.
pub const fn offset(function: Function, slot: usize) -> usize {
    (function as usize * (1 + PRIVATE) + slot) * size_of::<Gate>()
}
