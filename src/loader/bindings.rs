//! Bindings of the names that the shim exports: the addresses of our exports, which definition comes first, and which one
//! the program sees. Read once, at the start.

use crate::guest::state::{self, is_own};
use crate::loader::{libdl, names, objects};
use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

#[unsafe(link_section = ".bss.startup")]
static EXPORTS: [AtomicUsize; names::COUNT] = [const { AtomicUsize::new(0) }; names::COUNT];
#[unsafe(link_section = ".bss.startup")]
static LIBDL_EXPORTS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
/// One bit for each function of the table whose first definition in this process is ours.
#[unsafe(link_section = ".bss.startup")]
static FIRST: AtomicU32 = AtomicU32::new(0);
/// One bit for each function of libdl whose first definition in this process is ours.
#[unsafe(link_section = ".bss.startup")]
static LIBDL_FIRST: AtomicU32 = AtomicU32::new(0);
/// The address that the program sees under each name: our export, another interposer's, or a stub of its own.
#[unsafe(link_section = ".bss.startup")]
static VISIBLE: [AtomicUsize; names::COUNT] = [const { AtomicUsize::new(0) }; names::COUNT];
/// Number of objects that were loaded at the start.
#[unsafe(link_section = ".bss.startup")]
static RESIDENT: AtomicUsize = AtomicUsize::new(0);
const _: () = assert!(names::COUNT <= 32);

/// Finds our own address range and exports, and counts the objects that came with the program.
pub fn read_own() {
    if let Some(own) = objects::own() {
        state::set_own(own.span.start..own.span.end);
        // From our own table, not the address of our own function: that name may belong to another interposer in this
        // process.
        for (export, name) in EXPORTS.iter().zip(names::NAMES) {
            export.store(own.defined(name).unwrap_or(0), Ordering::Relaxed);
        }
        for (export, (name, _)) in LIBDL_EXPORTS.iter().zip(&libdl::INTERPOSED) {
            export.store(own.defined(name).unwrap_or(0), Ordering::Relaxed);
        }
    }
    RESIDENT.store(objects::resident(|_| true).count(), Ordering::Relaxed);
}

/// Finds which definition comes first, and what the program sees.
pub fn read_order() {
    // Asked of the objects, not of the loader: to it a stub in the program is a definition.
    let is_first =
        |name: &CStr| objects::resident(|_| true).find_map(|object| object.defined(name)).is_some_and(is_own);
    for (bit, name) in names::NAMES.iter().enumerate() {
        FIRST.fetch_or(u32::from(is_first(name)) << bit, Ordering::Relaxed);
        VISIBLE[bit].store(seen_as(name), Ordering::Relaxed);
    }
    for (bit, (name, _)) in libdl::INTERPOSED.iter().enumerate() {
        LIBDL_FIRST.fetch_or(u32::from(is_first(name)) << bit, Ordering::Relaxed);
    }
}

/// The address that the program sees under a name, or 0.
fn seen_as(name: &CStr) -> usize {
    // SAFETY: a pseudo handle and a C string.
    unsafe { libdl::dlsym(libdl::DEFAULT, name.as_ptr()) as usize }
}

/// Whether another copy of the shim stands in front of this one. A program that is not position-independent has a copy of
/// our table of the harness, which is not another shim's.
#[unsafe(link_section = ".text.startup")]
pub fn has_another_shim() -> bool {
    let harness = seen_as(c"aclshim_harness");
    let holder = || objects::resident(|_| true).find(|object| object.defined(c"aclshim_harness") == Some(harness));
    harness != 0 && !is_own(harness) && holder().is_none_or(|holder| holder.defined(names::NAMES[0]).is_some())
}

/// The address of our export of a function of the table.
pub fn export(function: usize) -> usize {
    EXPORTS[function].load(Ordering::Relaxed)
}

/// The address of our export of a function of libdl.
pub fn libdl_export(which: usize) -> usize {
    LIBDL_EXPORTS[which].load(Ordering::Relaxed)
}

/// What the program sees under the name of a function of the table.
pub fn visible(function: usize) -> usize {
    VISIBLE[function].load(Ordering::Relaxed)
}

/// Whether our export is the first definition of a function of the table in this process.
pub fn is_first(function: usize) -> bool {
    FIRST.load(Ordering::Relaxed) >> function & 1 == 1
}

/// Whether our export is the first definition of a function of libdl in this process.
pub fn is_libdl_first(which: usize) -> bool {
    LIBDL_FIRST.load(Ordering::Relaxed) >> which & 1 == 1
}

/// Number of objects that came with the program: they stand first in the loader's list and never leave.
pub fn resident_objects() -> usize {
    RESIDENT.load(Ordering::Relaxed)
}

/// Whether the program runs under ThreadSanitizer. It ends a fork child of a threaded program that starts a thread, and takes
/// the descriptors of a thread with a descriptor table of its own for the program's. Asks the objects that came with the
/// program, without the loader's lock: a thread that is about to copy may hold it, or be absent in a fork child.
pub fn has_thread_sanitizer() -> bool {
    objects::resident(|_| true).take(resident_objects()).any(|object| object.defined(c"__tsan_init").is_some())
}
