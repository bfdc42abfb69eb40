//! Who sees whom: what the loader would find for an object beyond the global scope.
//!
//! An object sees what it needs itself, and what is needed by the objects that need it: whoever
//! was opened brought them all into one scope. The needs stand in the objects' own tables.
//! Everything here runs under the loader's lock, so that nobody's strings go away; it may be
//! taken again by its holder, but nothing else of libdl may be called.

use crate::boot::is_own;
use crate::elf::{self, Object};
use crate::names::NAMES;
use core::cell::UnsafeCell;
use core::ffi::c_char;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};

/// Objects by their identity, as many as matter.
struct Set {
    members: [Option<Names>; 256],
    len: usize,
}

/// The sets that are worked with: too large for a small stack. Who holds the loader's lock may use
/// them, but not a signal handler that has interrupted the user.
struct Work {
    is_taken: AtomicBool,
    sets: UnsafeCell<[Set; 2]>,
}

// SAFETY: used by one thread at a time, see `with_sets`.
unsafe impl Sync for Work {}

static WORK: Work = Work {
    is_taken: AtomicBool::new(false),
    sets: UnsafeCell::new([const { Set { members: [None; 256], len: 0 } }; 2]),
};

/// Calls `work` under the loader's lock with two empty sets.
fn with_sets<T>(work: impl FnOnce(&mut [Set; 2]) -> Option<T>) -> Option<T> {
    let mut work = Some(work);
    let mut answer = None;
    // The visit holds the lock while we look around.
    elf::each(|_, _| {
        if let Some(work) = work.take()
            && !WORK.is_taken.swap(true, Ordering::Acquire)
        {
            // SAFETY: the flag was ours to set, so nobody else uses the sets until we take it back.
            let sets = unsafe { &mut *WORK.sets.get() };
            sets.iter_mut().for_each(|set| set.len = 0);
            answer = work(sets);
            WORK.is_taken.store(false, Ordering::Release);
        }
        ControlFlow::Break(())
    });
    answer
}

/// What others may call an object in their needs.
#[derive(Clone, Copy)]
struct Names {
    identity: usize,
    soname: *const c_char,
    path: *const c_char,
}

impl Names {
    fn of(object: &Object) -> Self {
        Self { identity: object.identity(), soname: object.soname(), path: object.path }
    }

    /// Whether `need` means this object.
    fn are_meant_by(&self, need: *const c_char) -> bool {
        // SAFETY: strings of loaded objects, kept by the loader's lock; `soname` may be NULL.
        unsafe {
            (!self.soname.is_null() && elf::equal(need, self.soname))
                || elf::equal(need, self.path)
                || elf::equal(need, elf::file_name(self.path))
        }
    }
}

impl Set {
    fn iter(&self) -> impl Iterator<Item = &Names> {
        self.members[..self.len].iter().flatten()
    }

    fn has(&self, identity: usize) -> bool {
        self.iter().any(|member| member.identity == identity)
    }

    /// Whether the object was new and found room.
    fn add(&mut self, object: &Object) -> bool {
        if self.len == self.members.len() || self.has(object.identity()) {
            return false;
        }
        self.members[self.len] = Some(Names::of(object));
        self.len += 1;
        true
    }

    /// Makes this the set of `object` and of everybody who needs it, directly or not.
    fn fill_with_dependents(&mut self, object: &Object) {
        self.len = 0;
        self.add(object);
        loop {
            let mut is_new = false;
            for_each(|object| {
                let needs_one = || object.needs().any(|need| self.iter().any(|member| member.are_meant_by(need)));
                if !self.has(object.identity()) && needs_one() {
                    is_new |= self.add(object);
                }
            });
            if !is_new {
                return;
            }
        }
    }
}

fn for_each(mut visit: impl FnMut(&Object)) {
    elf::each(|_, object| {
        object().inspect(|object| visit(object));
        ControlFlow::Continue(())
    });
}

fn find(mut wanted: impl FnMut(&Object) -> bool) -> Option<Object> {
    let mut found = None;
    elf::each(|_, object| {
        found = object().filter(|object| wanted(object));
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}

/// The function that the code at `caller` sees in a scope of its own: in an object, not ours, that
/// shares a dependent with the caller's.
pub fn visible_from(caller: usize, function: usize) -> Option<usize> {
    with_sets(|[callers, holders]| {
        callers.fill_with_dependents(&find(|object| object.span.contains(&caller))?);
        let mut address = None;
        find(|object| {
            address = object.defined(NAMES[function]).filter(|&defined| {
                holders.fill_with_dependents(object);
                !is_own(defined) && holders.iter().any(|holder| callers.has(holder.identity))
            });
            address.is_some()
        });
        address
    })
}

/// The function that `object` itself brings: the first definition among what it needs, nearest first.
pub fn brought_by(object: &Object, function: usize) -> Option<usize> {
    with_sets(|[set, _]| {
        set.add(object);
        let mut next = 0;
        while next < set.len {
            let names = set.members[next]?;
            next += 1;
            let member = find(|object| object.identity() == names.identity)?;
            if let Some(defined) = member.defined(NAMES[function]).filter(|&defined| !is_own(defined)) {
                return Some(defined);
            }
            for need in member.needs() {
                if let Some(needed) = find(|object| Names::of(object).are_meant_by(need)) {
                    set.add(&needed);
                }
            }
        }
        None
    })
}
