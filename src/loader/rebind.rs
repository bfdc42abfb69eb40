//! GOT entries and other pointers of loaded objects that have to be bound anew.
//!
//! An object that was opened with RTLD_DEEPBIND is bound past us: it is redirected. A weak reference to a function that the
//! vendor's library lacks is bound to our export: it becomes NULL again.
//!
//! Looked for when the set of loaded objects has changed, by our `dlsym` and by each thread's
//! first copy. Under the loader's lock nothing of libdl may be called (a `dlclose` in another
//! thread would wait for us and we for it): everything that has to be known is known before.

use crate::guest::state::{self, ShimState, is_own};
use crate::loader::objects::{self, Changes};
use crate::loader::patch::replace;
use crate::loader::{bindings, libdl, names, target, vendor, visibility};
use crate::settings::settings;
use aclshim_core::elf::{self, Object, PointerKind};
use aclshim_facts::settings::Deepbind;
use core::ffi::c_char;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The changes up to the last scan.
#[unsafe(link_section = ".bss.startup")]
static ADDS: AtomicU64 = AtomicU64::new(0);
#[unsafe(link_section = ".bss.startup")]
static SUBS: AtomicU64 = AtomicU64::new(0);

/// Objects that need not be scanned again, in a hash table by their identity. One for which there is no room is scanned
/// each time.
static SEEN: [AtomicUsize; 1024] = [const { AtomicUsize::new(0) }; 1024];
/// The hash table in front of [`SEEN`]: enough for a program with few objects, which then does not touch the pages of that one.
#[unsafe(link_section = ".bss.startup")]
static SEEN_FIRST: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];

/// The reason for a scan.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A lookup, which may take any lock of the loader.
    Lookup,
    /// A copy, which may not: the holder of the lock of `dlopen` may be waiting for it.
    Copy,
}

/// Scans the objects that were loaded since the last scan, and redirects their pointers.
#[unsafe(link_section = ".text.startup")]
pub fn refresh(trigger: Trigger) {
    let looked_at =
        |changes: Changes| changes.adds == ADDS.load(Ordering::Acquire) && changes.subs == SUBS.load(Ordering::Acquire);
    if trigger == Trigger::Lookup && target::IS_BINDING_WANTED.swap(false, Ordering::Relaxed) {
        target::bind_all();
    }
    if objects::changes().is_none_or(looked_at) {
        return;
    }
    vendor::query_again();
    match (vendor_came(), trigger) {
        (true, Trigger::Lookup) => target::bind_all(),
        (true, Trigger::Copy) => target::IS_BINDING_WANTED.store(true, Ordering::Relaxed),
        (false, _) => {}
    }
    // Callbacks run under the loader's lock, so that this is one scan at a time.
    let mut all_bound = true;
    let mut latest = None;
    let mut found = [0; 16];
    objects::each(|changes, object| {
        if latest.is_none() && changes.subs != SUBS.load(Ordering::Relaxed) {
            // An identity may have come back with another object.
            SEEN_FIRST.iter().chain(&SEEN).for_each(|seen| seen.store(0, Ordering::Relaxed));
        }
        latest = Some(changes);
        let Some(object) = object() else { return ControlFlow::Continue(()) };
        if !is_seen(&object) && !is_own(object.identity()) {
            match redirect(&object, &mut found) {
                Binding::Done => mark_seen(&object),
                Binding::UnderWay => all_bound = false,
            }
        }
        ControlFlow::Continue(())
    });
    if trigger == Trigger::Lookup {
        found.iter().filter(|&&target| target != 0).for_each(|&target| target::pin(target));
    }
    if let Some(changes) = latest.filter(|_| all_bound) {
        ADDS.store(changes.adds, Ordering::Release);
        SUBS.store(changes.subs, Ordering::Release);
    }
}

/// Whether a new object behind us defines functions of the vendor's; adds all such objects to [`vendor`].
fn vendor_came() -> bool {
    let mut came = false;
    objects::each_behind(|object| {
        if !is_seen(object) && target::is_vendor(object) {
            came = true;
            vendor::add(object);
        }
        ControlFlow::Continue(())
    });
    came
}

fn probe(object: &Object) -> impl Iterator<Item = &'static AtomicUsize> {
    let hash = (object.identity() >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let first = (0..4).map(move |step| &SEEN_FIRST[((hash >> 58) + step) % SEEN_FIRST.len()]);
    first.chain((0..8).map(move |step| &SEEN[((hash >> 54) + step) % SEEN.len()]))
}

fn is_seen(object: &Object) -> bool {
    // An object takes its first free place, and places become free all at once: none lies behind a free one.
    let mut taken = probe(object).map(|seen| seen.load(Ordering::Relaxed)).take_while(|&seen| seen != 0);
    taken.any(|seen| seen == object.identity())
}

fn mark_seen(object: &Object) {
    let free = probe(object).find(|seen| seen.load(Ordering::Relaxed) == 0);
    free.inspect(|seen| seen.store(object.identity(), Ordering::Relaxed));
}

/// Progress of the loader with an object.
#[derive(PartialEq, Eq)]
enum Binding {
    /// Everything that concerns us is bound.
    Done,
    /// Another thread is loading it: it must be scanned again.
    UnderWay,
}

fn redirect(object: &Object, found: &mut [usize]) -> Binding {
    let mut binding = Binding::Done;
    for (at, kind, symbol, name) in object.references() {
        // What an object defines itself it may call as it likes.
        if symbol.is_defined() {
            continue;
        }
        // SAFETY: a symbol's name in a loaded object is a C string.
        let Some(wanted) = (unsafe { wanted(name) }) else { continue };
        // SAFETY: a relocated word of a loaded object, which the loader's lock keeps loaded.
        let value = unsafe { at.read_volatile() };
        let is_bound_by_the_loader = kind != PointerKind::Data;
        let state = match value {
            0 if symbol.is_weak() => continue,
            0 if is_bound_by_the_loader => State::Unbound,
            value if wanted.is_export(value) => State::Ours,
            value if is_own(value) || wanted.is_visible_as(value) => continue,
            value if object.span.holds(value) && kind == PointerKind::Call => State::Lazy,
            // An offset that was not made an address yet.
            value if is_bound_by_the_loader && value < 1 << 32 && object.span.start > 1 << 32 => State::Unbound,
            value => State::Bound(value),
        };
        // Whether a function is there is asked by address; a call would still come to us.
        if state == State::Ours {
            if symbol.is_weak() && kind != PointerKind::Call && wanted.is_missing() {
                replace(object, at, value, 0);
            }
            continue;
        }
        if state == State::Unbound {
            binding = Binding::UnderWay;
        } else if let Some(instead) = wanted.instead(object, state, found) {
            replace(object, at, value, instead);
        }
    }
    binding
}

/// The value of a pointer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing yet: the object is being loaded.
    Unbound,
    /// One of our functions.
    Ours,
    /// A PLT stub: the loader binds it with the first call.
    Lazy,
    /// A function.
    Bound(usize),
}

/// A name that the shim exports.
#[derive(Clone, Copy)]
enum Wanted {
    Copy(usize),
    Libdl(usize),
}

/// # Safety
/// `name` is a C string.
unsafe fn wanted(name: *const c_char) -> Option<Wanted> {
    // SAFETY: the caller's promise, passed on unchanged.
    unsafe {
        match name.read() as u8 {
            b'a' => names::function(name).map(|function| Wanted::Copy(function as usize)),
            b'd' => libdl::INTERPOSED.iter().position(|(known, _)| elf::equals(name, known)).map(Wanted::Libdl),
            _ => None,
        }
    }
}

impl Wanted {
    /// Whether `value` is what the program sees under this name: another interposer's, or a stub.
    fn is_visible_as(self, value: usize) -> bool {
        matches!(self, Wanted::Copy(function) if value == bindings::visible(function))
    }

    /// Whether `value` is our export of it.
    fn is_export(self, value: usize) -> bool {
        value
            == match self {
                Wanted::Copy(function) => bindings::export(function),
                Wanted::Libdl(which) => bindings::libdl_export(which),
            }
    }

    /// Whether no object has a real function behind ours. Then a weak reference must be NULL, as it
    /// would be without us.
    fn is_missing(self) -> bool {
        matches!(self, Wanted::Copy(function) if target::known(function, 0).is_none() && !visibility::is_real(function, None))
    }

    /// The new value of the pointer. A bound pointer is redirected if it leads past us, and past what the program sees, to a
    /// real function.
    fn instead(self, object: &Object, state: State, found: &mut [usize]) -> Option<usize> {
        match (self, state) {
            _ if state::current() == ShimState::Off || settings().deepbind == Deepbind::Off => None,
            // The loader would find us, or in a DEEPBIND object what that brings itself. Where
            // there is another interposer between the two it is left to the loader.
            (Wanted::Copy(function), State::Lazy) => {
                let brought = visibility::brought_by(object, function).ok()?;
                target::export_for(function, brought)
            }
            (Wanted::Libdl(which), State::Lazy) => {
                bindings::is_libdl_first(which).then(|| bindings::libdl_export(which))
            }
            (Wanted::Libdl(which), State::Bound(value)) => {
                let is_real = value == libdl::INTERPOSED[which].1.load(Ordering::Relaxed);
                (is_real && bindings::is_libdl_first(which)).then(|| bindings::libdl_export(which))
            }
            // Only what a library has under this name: the program may keep a pointer of its own there.
            (Wanted::Copy(function), State::Bound(value)) if visibility::is_real(function, Some(value)) => {
                if let Some(free) = found.iter_mut().find(|target| **target == 0 || **target == value) {
                    *free = value;
                }
                target::entry_for(function, value)
            }
            _ => None,
        }
    }
}
