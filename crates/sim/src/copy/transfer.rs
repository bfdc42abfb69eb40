//! Moving bytes between host and device memory, wherever they are.

use crate::edge::error::{Fail, Outcome, RT_COPY_DATA, RT_DRV_INTERNAL_ERROR, RT_PARAM_INVALID, RT_SYS_DMA, fail};
use crate::state::registry::{Piece, in_window, piece};
use std::io::{Error, ErrorKind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Copies `size` bytes as the driver does for a caller who waits. Host memory that is not there gives 507052 if a
/// device takes part; between two host addresses it is a fault, as with the vendor.
pub fn copy(dst: usize, src: usize, size: usize) -> Outcome {
    if !in_window(dst) && !in_window(src) {
        plain(dst, src, size);
        return Ok(());
    }
    in_pieces(dst, src, size)
}

/// Copies `size` bytes as a stream's copy engine does: no address is a fault of this process.
pub fn copy_by_engine(dst: usize, src: usize, size: usize) -> Outcome {
    in_pieces(dst, src, size).map_err(engine_fault)
}

fn in_pieces(dst: usize, src: usize, size: usize) -> Outcome {
    let mut done = 0;
    while done < size {
        let (to, room) = piece(dst.wrapping_add(done))?;
        let (from, stock) = piece(src.wrapping_add(done))?;
        let length = (size - done).min(room).min(stock);
        match (to, from) {
            (Piece::Backed(to, _keep), Piece::Backed(from, _keep_too)) => plain(to, from, length),
            (Piece::Host(to), Piece::Backed(from, _keep)) => guarded(from, to, length, Guard::Write)?,
            (Piece::Backed(to, _keep), Piece::Host(from)) => guarded(to, from, length, Guard::Read)?,
            (Piece::Host(to), Piece::Host(from)) => guarded(to, from, length, Guard::Read)?,
        }
        done += length;
    }
    Ok(())
}

/// Copies `height` rows of `width` bytes.
pub fn copy_rows(
    (dst, dst_pitch): (usize, usize),
    (src, src_pitch): (usize, usize),
    width: usize,
    height: usize,
) -> Outcome {
    for row in 0..height {
        let to = dst.wrapping_add(row.wrapping_mul(dst_pitch));
        let from = src.wrapping_add(row.wrapping_mul(src_pitch));
        in_pieces(to, from, width)?;
    }
    Ok(())
}

/// Sets `count` bytes to `value`. A host address is set as `memset` does it, with its faults.
pub fn set(dst: usize, value: u8, count: usize) -> Outcome {
    each_stretch(dst, count, |bytes, length| {
        // SAFETY: the bytes of a kept backing, or of host memory by the caller's promise.
        unsafe { ptr::with_exposed_provenance_mut::<u8>(bytes).write_bytes(value, length) };
    })
}

/// Sets `count` words of 32 bits to `value`; `dst` is aligned to 4.
pub fn set_words(dst: usize, value: u32, count: usize) -> Outcome {
    each_stretch(dst, count.wrapping_mul(4), |bytes, length| {
        let words = ptr::with_exposed_provenance_mut::<u32>(bytes);
        for at in 0..length / 4 {
            // SAFETY: as in `set`; the start is aligned and stretches end at multiples of 4.
            unsafe { words.add(at).write(value) };
        }
    })
}

fn each_stretch(dst: usize, count: usize, mut work: impl FnMut(usize, usize)) -> Outcome {
    let mut done = 0;
    while done < count {
        let (to, room) = piece(dst.wrapping_add(done))?;
        let length = (count - done).min(room);
        match to {
            Piece::Backed(bytes, _keep) => work(bytes, length),
            Piece::Host(bytes) => work(bytes, length),
        }
        done += length;
    }
    Ok(())
}

/// The value of a cell of 8 bytes, in host or device memory, as the engine reads it.
pub fn word(address: usize) -> Outcome<usize> {
    let mut cell = [0u8; 8];
    copy_by_engine(cell.as_mut_ptr().expose_provenance(), address, cell.len())?;
    Ok(usize::from_ne_bytes(cell))
}

fn plain(dst: usize, src: usize, size: usize) {
    let (dst, src) = (ptr::with_exposed_provenance_mut::<u8>(dst), ptr::with_exposed_provenance::<u8>(src));
    // SAFETY: bytes of kept backings, or of host memory by the caller's promise.
    unsafe { ptr::copy(src, dst, size) };
}

/// Which way the kernel moves bytes for us.
#[derive(Clone, Copy)]
enum Guard {
    /// From the host address to ours.
    Read,
    /// From ours to the host address.
    Write,
}

/// Set when the kernel refuses to copy for us (seccomp, ptrace rules): from then on a bad address is a fault.
static UNGUARDED: AtomicBool = AtomicBool::new(false);

/// Moves bytes between ours and an address of the host that may not be there, as the driver does: in the kernel.
fn guarded(ours: usize, host: usize, size: usize, guard: Guard) -> Outcome {
    let mut done = 0;
    while done < size && !UNGUARDED.load(Ordering::Relaxed) {
        let left = size - done;
        match kernel_copy(ours.wrapping_add(done), host.wrapping_add(done), left, guard) {
            Ok(0) => break,
            Ok(moved) => done += moved,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                let at = host.wrapping_add(done);
                return fail(RT_COPY_DATA, format!("host memory at {at:#x} cannot be reached"));
            }
            Err(_) => UNGUARDED.store(true, Ordering::Relaxed),
        }
    }
    match guard {
        Guard::Read => plain(ours.wrapping_add(done), host.wrapping_add(done), size - done),
        Guard::Write => plain(host.wrapping_add(done), ours.wrapping_add(done), size - done),
    }
    Ok(())
}

fn kernel_copy(ours: usize, host: usize, size: usize, guard: Guard) -> Result<usize, Error> {
    let vector = |start: usize| libc::iovec { iov_base: ptr::with_exposed_provenance_mut(start), iov_len: size };
    let (local, remote) = (vector(ours), vector(host));
    // SAFETY: takes no memory of ours.
    let process = unsafe { libc::getpid() };
    let moved = match guard {
        // SAFETY: the kernel checks both ranges; one it may write is a kept backing, or what the copy was asked to write.
        Guard::Read => unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) },
        // SAFETY: as above.
        Guard::Write => unsafe { libc::process_vm_writev(process, &local, 1, &remote, 1, 0) },
    };
    usize::try_from(moved).map_err(|_| Error::last_os_error())
}

/// How a stream reports an address that is gone: by its copy engine.
pub fn engine_fault(failure: Fail) -> Fail {
    match failure.code {
        RT_DRV_INTERNAL_ERROR | RT_PARAM_INVALID => Fail { code: RT_SYS_DMA, ..failure },
        _ => failure,
    }
}
