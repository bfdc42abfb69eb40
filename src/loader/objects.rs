//! Iteration over the objects that are loaded in this process.
//!
//! The loader's own functions are of little use here: some of them are ours to the outside, and
//! inside a `dl_iterate_phdr` callback none may be called at all (it would deadlock against a
//! `dlclose`).

use crate::guest::state;
use aclshim_core::elf::{Object, from_headers};
use core::ffi::{c_char, c_int, c_void};
use core::ops::ControlFlow;

/// The loader's list of objects, as debuggers read it.
#[repr(C)]
struct RDebug {
    version: c_int,
    map: *const LinkMap,
}

/// An entry of that list, as far as it is public.
#[repr(C)]
pub struct LinkMap {
    base: usize,
    /// The object's name; empty for the program.
    pub name: *const c_char,
    dynamic: *const c_void,
    next: *const LinkMap,
}

unsafe extern "C" {
    static _r_debug: RDebug;
    // Of ourselves, from the linker.
    static __ehdr_start: libc::Elf64_Ehdr;
}

/// The objects of the loader's list that `wanted` accepts by their names, without a lock or a
/// call. Only for objects that were there at the start and stay for good: the front of the list
/// does not change.
pub fn resident(wanted: impl Fn(*const c_char) -> bool) -> impl Iterator<Item = Object> {
    // SAFETY: the loader fills the list before it runs any code, and only ever appends to
    // its front part's end.
    let mut next = unsafe { _r_debug.map };
    core::iter::from_fn(move || {
        while !next.is_null() {
            // SAFETY: an entry of the list.
            let map = unsafe { &*next };
            next = map.next;
            if !map.name.is_null() && wanted(map.name) {
                // SAFETY: the entry of a resident object names its base and dynamic section.
                if let Some(object) = unsafe { Object::new(map.base, map.dynamic, map.name) } {
                    return Some(object);
                }
            }
        }
        None
    })
}

/// Ourselves.
pub fn own() -> Option<Object> {
    // SAFETY: the linker puts our own ELF header there, and the program headers behind it.
    unsafe {
        let header = &raw const __ehdr_start;
        let headers = header.byte_add((*header).e_phoff as usize).cast::<libc::Elf64_Phdr>();
        from_headers(header as usize, headers, (*header).e_phnum as usize, c"".as_ptr())
    }
}

/// How many objects were ever loaded and unloaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Changes {
    /// Loads.
    pub adds: u64,
    /// Unloads.
    pub subs: u64,
}

/// Visits every loaded object under the loader's lock. `visit` must not call into libdl. In a fork
/// child no object is visited: the lock may be held by a thread that is not there.
pub fn each(mut visit: impl FnMut(Changes, &mut dyn FnMut() -> Option<Object>) -> ControlFlow<()>) {
    type Visit<'a> = &'a mut dyn FnMut(Changes, &mut dyn FnMut() -> Option<Object>) -> ControlFlow<()>;

    #[unsafe(link_section = ".text.startup")]
    unsafe extern "C" fn one(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the loader hands over a valid description, and `data` as we gave it below.
        let (info, visit) = unsafe { (&*info, &mut *data.cast::<Visit<'_>>()) };
        let changes = Changes { adds: info.dlpi_adds, subs: info.dlpi_subs };
        let mut object = || {
            // SAFETY: the description of an object that the loader's lock keeps loaded.
            unsafe { from_headers(info.dlpi_addr as usize, info.dlpi_phdr, info.dlpi_phnum.into(), info.dlpi_name) }
        };
        visit(changes, &mut object).is_break().into()
    }
    if state::is_fork_child() {
        return;
    }
    let mut visit: Visit<'_> = &mut visit;
    // SAFETY: the callback does not unwind, and `visit` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(one), (&raw mut visit).cast()) };
}

/// Visits the object that holds `address`, if there is one, under the rules of [`each`].
pub fn with_holder(address: usize, mut visit: impl FnMut(&Object)) {
    each(|_, object| match object() {
        Some(object) if object.span.holds(address) => {
            visit(&object);
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
}

/// Visits the objects behind this library in the loader's order, under the rules of [`each`]. (One in front is an
/// interposer that forwards to us.)
pub fn each_behind(mut visit: impl FnMut(&Object) -> ControlFlow<()>) {
    let mut is_behind = false;
    each(|_, object| match object() {
        Some(object) if state::is_own(object.identity()) => {
            is_behind = true;
            ControlFlow::Continue(())
        }
        Some(object) if is_behind => visit(&object),
        _ => ControlFlow::Continue(()),
    });
}

/// How often the set of loaded objects has changed.
pub fn changes() -> Option<Changes> {
    let mut answer = None;
    each(|changes, _| {
        answer = Some(changes);
        ControlFlow::Break(())
    });
    answer
}
