//! Who sees whom: what the loader would find for an object beyond the global scope.
//!
//! An object sees what it needs itself, and what is needed by the objects that need it: whoever
//! was opened brought them all into one scope. The needs stand in the objects' own tables.
//! Everything here runs under the loader's lock, so that nobody's strings go away; it may be
//! taken again by its holder, but nothing else of libdl may be called.

use crate::boot::is_own;
use crate::elf::{self, Object};
use crate::names::NAMES;
use core::ffi::c_char;
use core::ops::ControlFlow;

/// Objects by their identity, as many as matter.
struct Set {
    members: [Option<Names>; 64],
    len: usize,
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
    fn with(object: &Object) -> Self {
        let mut set = Self { members: [None; 64], len: 0 };
        set.add(object);
        set
    }

    fn has(&self, identity: usize) -> bool {
        self.members.iter().flatten().any(|member| member.identity == identity)
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

    /// Adds everybody who needs a member, directly or not.
    fn add_dependents(&mut self) {
        loop {
            let mut is_new = false;
            for_each(|object| {
                let needs_one =
                    || object.needs().any(|need| self.members.iter().flatten().any(|member| member.are_meant_by(need)));
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
    let mut seen = None;
    // The outer visit holds the lock while we look around.
    elf::each(|_, _| {
        seen = (|| {
            let mut callers = Set::with(&find(|object| object.span.contains(&caller))?);
            callers.add_dependents();
            let mut address = None;
            find(|object| {
                let defined = object.defined(NAMES[function]).filter(|&defined| !is_own(defined));
                address = defined.filter(|_| {
                    let mut holders = Set::with(object);
                    holders.add_dependents();
                    holders.members.iter().flatten().any(|holder| callers.has(holder.identity))
                });
                address.is_some()
            });
            address
        })();
        ControlFlow::Break(())
    });
    seen
}

/// The function that `object` itself brings: the first definition among what it needs, nearest
/// first. Called under the loader's lock.
pub fn brought_by(object: &Object, function: usize) -> Option<usize> {
    let mut set = Set::with(object);
    let mut next = 0;
    while let Some(Some(names)) = set.members.get(next).copied() {
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
}
