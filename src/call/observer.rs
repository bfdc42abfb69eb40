//! Who else sees the calls that take the slow path: the open scopes of the harness, which stands above this module.

use crate::check::judgement::Judgement;
use crate::check::pre_call::PreCall;
use crate::loader::gate::{self, Reason};
use crate::record::frame::{Frame, Words};
use aclshim_facts::Function;
use aclshim_facts::call::Call;
use aclshim_trace::system::clock::monotonic_ns;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// What became of a call.
#[derive(Clone, Copy)]
pub struct Answer {
    /// What the program gets.
    pub code: i32,
    /// What the vendor's function has returned, if it was called.
    pub of_vendor: Option<i32>,
}

/// A call that begins.
pub struct BegunCall<'a> {
    /// The function.
    pub function: Function,
    /// Where the call came from.
    pub caller: usize,
    /// Where the stack of the frame ends that makes it.
    pub here: usize,
    /// Its arguments.
    pub words: &'a Words,
    /// Whether it is nested in another call, where it is recorded.
    pub nesting: Option<bool>,
}

/// The number that an observer has given to a call, and the scope that sees it.
pub struct Observed {
    /// Not 0.
    pub number: u64,
    /// The scope's id.
    pub scope: u32,
}

/// Sees calls while it is [active](set_active). A call that never ends needs no clean-up.
pub trait CallObserver: Sync {
    /// A call begins; `None` if it is not for this observer.
    fn begin(&self, call: &BegunCall<'_>) -> Option<Observed>;

    /// The rules have found something in the call with that number.
    fn found(&self, number: u64, judgement: &Judgement);

    /// An injection strikes the call with that number.
    fn injected(&self, number: u64);

    /// The call with that number has got its answer, after `ns` nanoseconds.
    ///
    /// # Safety
    /// By the vendor's function, for the arguments of `call`, or in its place.
    unsafe fn end(&self, number: u64, answer: Answer, ns: u64, call: &Call, before: &PreCall);
}

static OBSERVER: AtomicPtr<&'static dyn CallObserver> = AtomicPtr::new(core::ptr::null_mut());

/// Whether calls are shown to the observer.
#[unsafe(link_section = ".bss.startup")]
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);

/// Has calls shown to `observer` while that is [active](set_active).
pub fn install(observer: &'static &'static dyn CallObserver) {
    OBSERVER.store(core::ptr::from_ref(observer).cast_mut(), Ordering::Release);
}

/// From now on calls are shown to the observer, and take the slow path for that, or not any more. Only by one thread at a
/// time.
pub fn set_active(is_active: bool) {
    if is_active {
        IS_ACTIVE.store(true, Ordering::Release);
        gate::require_slow_path(Reason::Scope);
    } else {
        gate::release_slow_path(Reason::Scope);
        IS_ACTIVE.store(false, Ordering::Release);
    }
}

/// A call under way, if an observer sees it.
#[derive(Clone, Copy)]
pub struct Ticket {
    observer: Option<&'static dyn CallObserver>,
    number: u64,
    begun: u64,
}

impl Ticket {
    const NONE: Self = Self { observer: None, number: 0, begun: 0 };

    /// Whether an observer sees the call.
    pub fn is_some(self) -> bool {
        self.observer.is_some()
    }

    /// A call begins.
    #[inline(always)]
    pub fn begin(function: Function, caller: usize, here: usize, words: &Words, frame: &Frame) -> Self {
        // Relaxed: a scope that was opened before this call, on this thread or on one that is ordered before it, is seen.
        if !IS_ACTIVE.load(Ordering::Relaxed) {
            return Self::NONE;
        }
        Self::of(&BegunCall { function, caller, here, words, nesting: frame.nesting() }, frame)
    }

    #[cold]
    #[inline(never)]
    fn of(call: &BegunCall<'_>, frame: &Frame) -> Self {
        // SAFETY: NULL, or a static reference.
        let Some(observer) = (unsafe { OBSERVER.load(Ordering::Acquire).as_ref() }).copied() else { return Self::NONE };
        let Some(Observed { number, scope }) = observer.begin(call) else { return Self::NONE };
        frame.note_scope(scope);
        Self { observer: Some(observer), number, begun: 0 }
    }

    /// The call is about to be forwarded.
    #[inline(always)]
    pub fn go(&mut self) {
        if self.is_some() {
            self.begun = monotonic_ns();
        }
    }

    /// How many nanoseconds ago that was.
    #[inline(always)]
    pub fn elapsed(self) -> u64 {
        if self.is_some() { monotonic_ns().saturating_sub(self.begun) } else { 0 }
    }

    /// The rules have found something.
    pub fn found(self, judgement: &Judgement) {
        self.observer.inspect(|observer| observer.found(self.number, judgement));
    }

    /// An injection strikes the call.
    pub fn injected(self) {
        self.observer.inspect(|observer| observer.injected(self.number));
    }

    /// The call has got its answer, after `ns` nanoseconds.
    ///
    /// # Safety
    /// By the vendor's function, for the arguments of `call`, or in its place.
    #[inline(always)]
    pub unsafe fn end(self, answer: Answer, ns: u64, call: &Call, before: &PreCall) {
        // SAFETY: the caller's promise.
        self.observer.inspect(|observer| unsafe { observer.end(self.number, answer, ns, call, before) });
    }
}
