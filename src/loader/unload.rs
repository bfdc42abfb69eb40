//! Watched libraries: they notify us when they are unloaded, so that their functions can be called without a pin.
//!
//! What a copy finds by itself cannot be pinned: `dlopen` takes the loader's lock, and its holder, such as a plugin's
//! constructor, may be waiting for the thread that copies. Nor may it be called after the library is gone. But the loader
//! runs the finalizers of every library that it has initialised before it unmaps it. So one entry of the library's
//! DT_FINI_ARRAY, the last, which is called first, is replaced by a function of ours: it closes the gates that lead into
//! the library ([`crate::loader::target`]) and goes on to that entry.
//!
//! This cannot deadlock: the one lock that is taken is that of `dl_iterate_phdr`, which the loader never holds while it runs
//! code of a library. It starts no thread and keeps nothing loaded. A library that has no finalizer, or whose entry cannot be
//! replaced, is searched for with each call, as before.

use crate::loader::patch::replace;
use crate::loader::{objects, visibility};
use aclshim_core::elf::Object;
use core::sync::atomic::{AtomicUsize, Ordering};

type Finalizer = extern "C-unwind" fn();

/// A library whose last finalizer is replaced by one of ours.
struct Watched {
    /// The start of its span, stored last, and the end; 0 where no library is watched.
    start: AtomicUsize,
    end: AtomicUsize,
    /// The finalizer that ours was put in the place of.
    finalizer: AtomicUsize,
}

impl Watched {
    const fn new() -> Self {
        Self { start: AtomicUsize::new(0), end: AtomicUsize::new(0), finalizer: AtomicUsize::new(0) }
    }

    fn holds(&self, address: usize) -> bool {
        let start = self.start.load(Ordering::SeqCst);
        start != 0 && (start..self.end.load(Ordering::Relaxed)).contains(&address)
    }
}

/// The finalizers of ours, one for each library that can be watched. (The runtime is one library, or two.)
const FINALIZERS: [Finalizer; 2] = [finalize::<0>, finalize::<1>];
static WATCHED: [Watched; FINALIZERS.len()] = [const { Watched::new() }; FINALIZERS.len()];

/// What is called when a watched library is about to be unloaded, a `fn()`.
static UNLOADED: AtomicUsize = AtomicUsize::new(0);

/// Stands in for a finalizer of a library; called by the thread that unloads it, or ends the program.
extern "C-unwind" fn finalize<const NUMBER: usize>() {
    let watched = &WATCHED[NUMBER];
    let finalizer = watched.finalizer.load(Ordering::Acquire);
    watched.start.store(0, Ordering::SeqCst);
    // SAFETY: stored before the library was watched, from a function of this type.
    let unloaded = unsafe { core::mem::transmute::<usize, Option<fn()>>(UNLOADED.load(Ordering::Acquire)) };
    unloaded.inspect(|unloaded| unloaded());
    // SAFETY: what stood in the library's array in our place; that is stored before we are.
    let finalizer = unsafe { core::mem::transmute::<usize, Finalizer>(finalizer) };
    finalizer();
}

/// Whether the library that holds `address` is watched.
pub fn is_watched(address: usize) -> bool {
    WATCHED.iter().any(|watched| watched.holds(address))
}

/// Has the library that holds `address` watched, if that can be done; whether it is. `unloaded` is called by the thread that
/// unloads it, before that; it is one function for all libraries.
///
/// Only for a `caller` in an object that needs the library: the code of that object runs, so the library is initialised, and
/// not finalized yet. (One that is just being loaded, and then cannot be, is unmapped without a call of ours.)
pub fn watch(address: usize, caller: usize, unloaded: fn()) -> bool {
    UNLOADED.store(unloaded as usize, Ordering::Release);
    if !is_watched(address) && visibility::is_needed(address, caller) {
        objects::with_holder(address, replace_finalizer);
    }
    is_watched(address)
}

/// Puts ours in the place of a library's last finalizer. Under the loader's lock, and so by one thread at a time.
fn replace_finalizer(object: &Object) {
    let free = WATCHED.iter().zip(FINALIZERS).find(|(watched, _)| watched.start.load(Ordering::Relaxed) == 0);
    let (Some((watched, ours)), Some(place)) = (free, object.last_finalizer()) else { return };
    let ours = ours as usize;
    // SAFETY: an entry of an array of a loaded object, which the loader's lock keeps loaded.
    let finalizer = unsafe { place.read_volatile() };
    if finalizer == 0 || is_watched(object.span.start) {
        return;
    }
    watched.finalizer.store(finalizer, Ordering::Release);
    replace(object, place, finalizer, ours);
    // SAFETY: as above.
    if unsafe { place.read_volatile() } == ours {
        watched.end.store(object.span.end, Ordering::Relaxed);
        watched.start.store(object.span.start, Ordering::SeqCst);
    }
}
