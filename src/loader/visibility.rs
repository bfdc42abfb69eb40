//! Symbol visibility: what the loader would find for an object beyond the global scope.
//!
//! An object that was opened late sees what it needs itself, and what is needed by the objects
//! that need it: the object that was opened brought them all into one scope. The needs stand in the
//! objects' own tables. Everything here runs under the loader's lock, so that no object's strings go
//! away; its holder may take it again, but nothing else of libdl may be called.

use crate::loader::names::real_in;
use crate::loader::{bindings, objects};
use aclshim_core::elf::{self, Object};
use core::cell::UnsafeCell;
use core::ffi::c_char;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};

/// How many objects can be looked at.
const ROOM: usize = 1024;

/// The objects of the process in the loader's order, with what others may call them in their needs.
struct Map {
    nodes: [Option<Node>; ROOM],
    len: usize,
}

#[derive(Clone, Copy)]
struct Node {
    object: Object,
    names: [u64; 3],
}

/// The map that is worked with: too large for any stack. Who holds the loader's lock may use it,
/// but not a signal handler that has interrupted the user.
struct Shared {
    is_taken: AtomicBool,
    map: UnsafeCell<Map>,
}

// SAFETY: used by one thread at a time, see `with_map`.
unsafe impl Sync for Shared {}

static SHARED: Shared =
    Shared { is_taken: AtomicBool::new(false), map: UnsafeCell::new(Map { nodes: [None; ROOM], len: 0 }) };

/// Why there is no answer.
#[derive(PartialEq, Eq, Debug)]
pub enum NotVisible {
    /// There is nothing to see.
    Nothing,
    /// It cannot be found out here: too many objects, a fork child, or an interrupted user of the map.
    Unknown,
}

/// Calls `work` under the loader's lock with a map of all objects.
fn with_map<T>(work: impl FnOnce(&Map) -> Option<T>) -> Result<T, NotVisible> {
    let mut work = Some(work);
    let mut answer = Err(NotVisible::Unknown);
    // The outer visit holds the lock during the inner one.
    objects::each(|_, _| {
        if let Some(work) = work.take()
            && !SHARED.is_taken.swap(true, Ordering::Acquire)
        {
            // SAFETY: the flag was ours to set, so no other thread uses the map until we clear it.
            let map = unsafe { &mut *SHARED.map.get() };
            if map.fill() {
                answer = work(map).ok_or(NotVisible::Nothing);
            }
            SHARED.is_taken.store(false, Ordering::Release);
        }
        ControlFlow::Break(())
    });
    answer
}

impl Map {
    /// Whether all objects found room.
    fn fill(&mut self) -> bool {
        let mut all = true;
        self.len = 0;
        objects::each(|_, object| {
            let Some(object) = object() else { return ControlFlow::Continue(()) };
            // SAFETY: strings of a loaded object, kept by the loader's lock.
            let names = unsafe {
                let soname = object.soname().map_or(0, |soname| hash(soname));
                [soname, hash(object.path), hash(elf::file_name(object.path))]
            };
            match self.nodes.get_mut(self.len) {
                Some(free) => *free = Some(Node { object, names }),
                None => all = false,
            }
            self.len = (self.len + 1).min(ROOM);
            ControlFlow::Continue(())
        });
        all
    }

    fn nodes(&self) -> impl DoubleEndedIterator<Item = (usize, &Node)> {
        self.nodes[..self.len].iter().enumerate().filter_map(|(at, node)| Some((at, node.as_ref()?)))
    }

    /// The place of the object that holds `address`.
    fn holder(&self, address: usize) -> Option<usize> {
        self.nodes().find(|(_, node)| node.object.span.holds(address)).map(|(at, _)| at)
    }

    /// The object at a place and all objects that need it, directly or not.
    fn dependents(&self, of: usize) -> Set {
        let mut set = Set::default();
        set.add(of);
        loop {
            let mut is_new = false;
            // Who needs an object mostly stands in front of it: backwards, one pass finds a chain.
            for (at, node) in self.nodes().rev().filter(|&(at, _)| at != of) {
                let needs_a_member = || {
                    node.object.needs().any(|need| {
                        // SAFETY: a string of a loaded object, kept by the loader's lock.
                        let need = unsafe { hash(need) };
                        self.nodes().any(|(other, node)| set.has(other) && node.names.contains(&need))
                    })
                };
                is_new |= !set.has(at) && needs_a_member() && set.add(at);
            }
            if !is_new {
                return set;
            }
        }
    }
}

/// Places in a map.
#[derive(Default)]
struct Set([u64; ROOM / 64]);

impl Set {
    fn has(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    /// Always true: something was added.
    fn add(&mut self, at: usize) -> bool {
        self.0[at / 64] |= 1 << (at % 64);
        true
    }

    fn meets(&self, other: &Set) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }
}

/// A hash of a C string; read without libc, see [`elf`].
///
/// # Safety
/// `text` is a C string.
unsafe fn hash(text: *const c_char) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for at in 0.. {
        // SAFETY: the string has not ended before `at`.
        let byte = unsafe { text.add(at).read_volatile() } as u8;
        if byte == 0 {
            break;
        }
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// The function that the code at `caller` sees in a scope of its own: in an object that shares a
/// dependent with the caller's. An object that came with the program has no such scope.
pub fn visible_from(caller: usize, function: usize) -> Result<usize, NotVisible> {
    with_map(|map| {
        let at = map.holder(caller).filter(|&at| at >= bindings::resident_objects())?;
        let callers = map.dependents(at);
        map.nodes().find_map(|(at, node)| {
            real_in(&node.object, function).filter(|_| callers.has(at) || callers.meets(&map.dependents(at)))
        })
    })
}

/// Whether the object that holds `caller` needs the one that holds `address`, directly or not. `false` where that is not known.
pub fn is_needed(address: usize, caller: usize) -> bool {
    with_map(|map| map.dependents(map.holder(address)?).has(map.holder(caller)?).then_some(())).is_ok()
}

/// The function that `object` itself brings: the first definition among what it needs, nearest first.
pub fn brought_by(object: &Object, function: usize) -> Result<usize, NotVisible> {
    with_map(|map| {
        let (first, _) = map.nodes().find(|(_, node)| node.object.identity() == object.identity())?;
        let mut seen = Set::default();
        let mut queue = [0u16; ROOM];
        let mut len = 0;
        let mut put = |at: usize, len: &mut usize, queue: &mut [u16; ROOM]| {
            if !seen.has(at) && *len < ROOM {
                seen.add(at);
                queue[*len] = at as u16;
                *len += 1;
            }
        };
        put(first, &mut len, &mut queue);
        let mut next = 0;
        while next < len {
            let node = map.nodes[usize::from(queue[next])]?;
            next += 1;
            if let Some(real) = real_in(&node.object, function) {
                return Some(real);
            }
            for need in node.object.needs() {
                // SAFETY: a string of a loaded object, kept by the loader's lock.
                let need = unsafe { hash(need) };
                if let Some((at, _)) = map.nodes().find(|(_, node)| node.names.contains(&need)) {
                    put(at, &mut len, &mut queue);
                }
            }
        }
        None
    })
}

/// Whether any object but ours defines the function at `address`, or at any address.
pub fn is_real(function: usize, address: Option<usize>) -> bool {
    let mut found = false;
    objects::each(|_, object| {
        let real = object().and_then(|object| real_in(&object, function));
        found = real.is_some_and(|real| address.is_none_or(|address| address == real));
        if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}
