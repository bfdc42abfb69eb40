//! How far the rings of a process may grow, in a file system that others use too.
//!
//! The header has the number of bytes that the rings may still take ([`Header::growth`]). A writer subtracts what it takes,
//! without a system call; the drain renews the number when it has changed. New rings may take more of the file system
//! than growing ones: a thread without a ring loses all of its calls.

use crate::ring::layout::Header;
use crate::sync::Ordering;
use core::ffi::c_int;

/// Bytes of a file system that new rings leave free, at most: an eighth of a smaller one.
const LEFT_BY_RINGS: u64 = 16 << 20;
/// Bytes of a file system that growing rings leave free, at most: a quarter of a smaller one.
const LEFT_BY_GROWTH: u64 = 64 << 20;

/// Total and free bytes of a file system.
fn space(about: &libc::statvfs) -> (u64, u64) {
    let bytes = |blocks: u64| blocks.saturating_mul(about.f_frsize);
    (bytes(about.f_blocks), bytes(about.f_bavail))
}

/// Whether a ring may be added on this file system.
pub(super) fn has_space_for_a_ring(about: &libc::statvfs) -> bool {
    let (total, free) = space(about);
    free >= (total / 8).min(LEFT_BY_RINGS)
}

/// Sets how far the rings of a process may grow: up to its limit, and to a share of what the file system has. `file` is
/// an open descriptor of its ring file. Changes errno.
pub fn renew(header: &Header, file: c_int) {
    // SAFETY: a descriptor of the caller's; all zero is a valid value, which the system fills.
    let (system, about) = unsafe {
        let (mut system, mut about) = (core::mem::zeroed::<libc::statvfs>(), core::mem::zeroed::<libc::stat>());
        if libc::fstatvfs(file, &mut system) != 0 || libc::fstat(file, &mut about) != 0 {
            return;
        }
        (system, about)
    };
    let (total, free) = space(&system);
    let taken = (about.st_blocks as u64).saturating_mul(512);
    let of_limit = header.growth_limit.saturating_sub(taken);
    let of_system = free.saturating_sub((total / 4).min(LEFT_BY_GROWTH));
    header.growth.store(of_limit.min(of_system), Ordering::Relaxed);
}

/// Takes bytes for a ring that grows; `false` if there are not as many left.
pub fn take(header: &Header, bytes: u64) -> bool {
    let left = |left: u64| left.checked_sub(bytes);
    header.growth.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).is_ok()
}

/// Returns bytes of a ring that has shrunk, or could not grow.
pub fn give_back(header: &Header, bytes: u64) {
    header.growth.fetch_add(bytes, Ordering::Relaxed);
}
