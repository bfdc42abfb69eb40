//! Gates: the words that each entry goes through to the real function.
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
use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicUsize, Ordering};

/// Number of private entries of a function, and so of libraries that it can lead to.
pub const PRIVATE: usize = 4;

/// What an entry goes through. The entry jumps to `via`; all lies in one cache line.
#[repr(C, align(32))]
pub struct Gate {
    /// Our own code, or the target itself where calls are only forwarded.
    pub via: AtomicPtr<()>,
    /// The real function, or 0.
    pub target: AtomicUsize,
    /// Not 0 while a call must not take the fast path. [`CLOSED`]: the target is not known, the clock is a slow one, or
    /// every call is judged first. The other bits are [`Reason`]s.
    pub slow_path: AtomicUsize,
    /// Where a thread's block lies, from its thread pointer: here, because the loader's own place for it would be
    /// one more cache line.
    thread: AtomicIsize,
}

/// The bit of a gate that is not open by itself.
pub const CLOSED: usize = 1;

/// Why every call takes the slow path for a while, a bit each.
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

static TABLE: AtomicPtr<Table> = AtomicPtr::new(core::ptr::null_mut());
/// Whether every call takes the slow path, whatever the gate leads to.
static IS_KEPT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Makes the table known; before the shim starts.
pub fn install(table: &'static Table) {
    TABLE.store(core::ptr::from_ref(table).cast_mut(), Ordering::Release);
}

/// From now on no gate is opened by itself: every call is judged before it is forwarded.
pub fn keep_closed() {
    IS_KEPT_CLOSED.store(true, Ordering::Relaxed);
    gates().as_flattened().iter().for_each(|gate| _ = gate.slow_path.fetch_or(CLOSED, Ordering::AcqRel));
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

/// From now on every call takes the slow path; those under way are not changed. Neither counted nor locked: a reason
/// may be given again.
pub fn require_slow_path(reason: Reason) {
    gates().as_flattened().iter().for_each(|gate| _ = gate.slow_path.fetch_or(reason as usize, Ordering::AcqRel));
}

/// There is no such reason any more; others may be left.
pub fn release_slow_path(reason: Reason) {
    gates().as_flattened().iter().for_each(|gate| _ = gate.slow_path.fetch_and(!(reason as usize), Ordering::AcqRel));
}

/// The gates of one function: that of its export and those of its private entries.
pub type Gates = [Gate; 1 + PRIVATE];

impl Gate {
    /// The gate of an entry whose code goes on at `watched`.
    pub const fn new(watched: *const ()) -> Self {
        Self {
            via: AtomicPtr::new(watched.cast_mut()),
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

    /// Where it leads, as far as that is known.
    pub fn known(&self) -> Option<usize> {
        Some(self.target.load(Ordering::Acquire)).filter(|&target| target != 0)
    }

    pub fn lead_to(&self, target: usize) {
        self.target.store(target, Ordering::Release);
        self.open();
    }

    /// Takes what is not needed out of the way: our own code where calls are only forwarded, the reason for the slow path where
    /// the clock is a fast one.
    pub fn open(&self) {
        let Some(target) = self.known() else { return };
        match state::current() {
            ShimState::Off | ShimState::Passive => self.via.store(target as *mut (), Ordering::Release),
            _ if clock::choose() == Clock::Counter && !IS_KEPT_CLOSED.load(Ordering::Relaxed) => {
                self.thread.store(thread::offset(), Ordering::Relaxed);
                self.slow_path.fetch_and(!CLOSED, Ordering::AcqRel);
            }
            _ => {}
        }
    }
}

/// Where the gate of an entry stands in a [`Table`], in bytes.
pub const fn offset(function: Function, slot: usize) -> usize {
    (function as usize * (1 + PRIVATE) + slot) * size_of::<Gate>()
}
