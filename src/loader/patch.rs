//! Replacement of pointers in loaded objects.

use crate::loader::maps;
use aclshim_core::elf::Object;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Replaces a pointer of an object if it is still `old`, also where the loader has made it read-only,
/// and then puts the protection back. While another thread still loads the object its page is
/// writable and stays so.
pub fn replace(object: &Object, at: *mut usize, old: usize, new: usize) {
    // A relocation of the code itself (-z notext) is left alone.
    if !object.is_data(at as usize) {
        return;
    }
    // SAFETY: asks the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let start = at as usize & !(page - 1);
    // The loader protects whole pages only: up to the last one that the range fills.
    let may_be_guarded = (object.relro.start & !(page - 1)..object.relro.end & !(page - 1)).contains(&start);
    let is_guarded = match may_be_guarded.then(|| maps::is_writable(start)) {
        None => false,
        Some(Some(is_writable)) => !is_writable,
        // Not known: made read-only by us it might stop the loader in its work.
        Some(None) => return,
    };
    // SAFETY: a pointer-sized word of a loaded object that its own relocation names.
    unsafe {
        if may_be_guarded && libc::mprotect(start as _, page, libc::PROT_READ | libc::PROT_WRITE) != 0 {
            return;
        }
        let _ = (*at.cast::<AtomicUsize>()).compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed);
        if is_guarded {
            libc::mprotect(start as _, page, libc::PROT_READ);
        }
    }
}
