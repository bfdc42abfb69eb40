//! Heaps on pages of their own, for threads that must not use the host's allocator.
//!
//! Host threads never allocate on the path of a call. The drain thread does. If it used the host's allocator, a fork, a
//! raw clone above all, could catch it with that allocator's lock in hand, and the child would hang.
//! (What libc allocates for itself, to read a directory, still comes from there.)
//! So everything that Rust allocates on that thread comes from lists of free blocks by powers of two. One thread uses a
//! heap: no lock. The drain of a fork child goes on with the copy that it inherits, which is whole at every instant: each
//! change becomes visible with one store.
//!
//! The harness has another heap, used by the thread that has its lock: in a signal handler, or for a thread that another
//! one with the allocator's lock waits for, the host's allocator would hang. A fork child gets a new one; what its
//! parent's holds stays as it is, for the frames that still use it.

use core::alloc::{GlobalAlloc, Layout};
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering, fence};
use std::alloc::System;

const CLASSES: usize = 26;
const SMALLEST: usize = 16;
/// The largest block of the drain's heap that is used again: its address space is small.
const LARGEST: usize = 8 << 20;
/// The largest block of the harness's heap that is used again: it lives as long as the process.
const LARGEST_OF_HARNESS: usize = SMALLEST << (CLASSES - 1);
/// A page, or a part of one.
const PAGE: usize = 4096;
/// Address space of the drain's heap; what is not touched costs nothing.
const RESERVED: usize = 32 << 20;
/// Bytes that are made accessible at a time: in a program that locks its memory all of them are touched.
const STEP: usize = 1 << 20;
/// Address space of the harness's heap, and the least that will do where that is limited.
const RESERVED_FOR_HARNESS: [usize; 2] = [1 << 30, 16 << 20];

/// The drain's heap, made for the first drain.
static HEAP: AtomicPtr<Heap> = AtomicPtr::new(ptr::null_mut());
/// The harness's heap in this process.
static HARNESS: AtomicPtr<Heap> = AtomicPtr::new(ptr::null_mut());

/// A heap, at the beginning of its own pages.
pub struct Heap {
    free: [*mut Free; CLASSES],
    next: usize,
    /// The end of what is accessible.
    open: usize,
    end: usize,
    /// Called when it is used up; without it the system has to serve.
    exhausted: Option<fn() -> !>,
    /// Bytes in the lists.
    listed: usize,
    /// The heap of the parent process, whose blocks may still be in use here.
    before: *mut Heap,
}

struct Free {
    next: *mut Free,
}

impl Heap {
    /// The drain's heap, for the one thread that may use it. `exhausted` is called when it is used up: without memory Rust
    /// would end the process.
    pub fn for_drain(exhausted: fn() -> !) -> Option<*mut Heap> {
        let known = HEAP.load(Ordering::Acquire);
        if !known.is_null() {
            return Some(known);
        }
        let heap = Self::make(RESERVED, Some(exhausted), ptr::null_mut())?;
        HEAP.store(heap, Ordering::Release);
        Some(heap)
    }

    /// A new heap for the harness of this process; what the one before holds stays as it is.
    pub fn for_harness() -> Option<*mut Heap> {
        let [most, least] = RESERVED_FOR_HARNESS;
        let sizes = core::iter::successors(Some(most), |size| Some(size / 4)).take_while(|&size| size >= least);
        let before = HARNESS.load(Ordering::Acquire);
        let heap = { sizes }.find_map(|size| Self::make(size, None, before))?;
        HARNESS.store(heap, Ordering::Release);
        Some(heap)
    }

    /// Number of bytes that are free.
    pub fn spare(&self) -> usize {
        self.end - self.next + self.listed
    }

    /// Whether a block of that many bytes is available.
    pub fn has_block(&self, bytes: usize) -> bool {
        let size = match Layout::from_size_align(bytes, SMALLEST).ok().and_then(|layout| self.class(&layout)) {
            Some(class) if self.free[class..].iter().any(|list| !list.is_null()) => return true,
            Some(class) => SMALLEST << class,
            None => bytes,
        };
        self.next.next_multiple_of(size.clamp(SMALLEST, PAGE)).checked_add(size).is_some_and(|after| after <= self.end)
    }

    fn make(reserved: usize, exhausted: Option<fn() -> !>, before: *mut Heap) -> Option<*mut Heap> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, checked, and not shared yet.
        unsafe {
            let at = libc::mmap(ptr::null_mut(), reserved, libc::PROT_NONE, flags, -1, 0);
            if at == libc::MAP_FAILED {
                return None;
            }
            if !open(at as usize, STEP) {
                libc::munmap(at, reserved);
                return None;
            }
            let heap = at.cast::<Heap>();
            let begin = at as usize + size_of::<Heap>().next_multiple_of(SMALLEST);
            let (open, end) = (at as usize + STEP, at as usize + reserved);
            heap.write(Heap { free: [ptr::null_mut(); CLASSES], next: begin, open, end, exhausted, listed: 0, before });
            Some(heap)
        }
    }

    /// The list for a layout; `None` if it is too large for any.
    fn class(&self, layout: &Layout) -> Option<usize> {
        let size = layout.size().max(layout.align()).max(SMALLEST).next_power_of_two();
        if layout.align() > PAGE {
            return None;
        }
        let largest = if self.exhausted.is_some() { LARGEST } else { LARGEST_OF_HARNESS };
        (size <= largest).then(|| (size / SMALLEST).trailing_zeros() as usize)
    }

    /// A block for that layout; never NULL while the heap or the system has memory.
    pub fn take(&mut self, layout: &Layout) -> *mut u8 {
        let size = match self.class(layout) {
            Some(class) => {
                let first = self.free[class];
                if !first.is_null() {
                    // SAFETY: a free block of ours.
                    self.free[class] = unsafe { (*first).next };
                    self.listed = self.listed.saturating_sub(SMALLEST << class);
                    return first.cast();
                }
                SMALLEST << class
            }
            None => layout.size(),
        };
        // As its class is large, so that its next user may ask for any alignment of that class.
        let at = self.next.next_multiple_of(layout.align().max(size.min(PAGE)).max(SMALLEST));
        match at.checked_add(size).filter(|&after| self.reaches(after)) {
            Some(after) => {
                self.next = after;
                at as *mut u8
            }
            // Not a reason to give up while a larger block is free.
            None => match self.class(layout).and_then(|class| self.split(class)) {
                Some(block) => block,
                None => self.without(layout),
            },
        }
    }

    /// Whether everything before `after` is accessible; makes it so where it can.
    fn reaches(&mut self, after: usize) -> bool {
        if after > self.open && after <= self.end {
            let size = (after - self.open).next_multiple_of(STEP).min(self.end - self.open);
            if open(self.open, size) {
                self.open += size;
            }
        }
        after <= self.open
    }

    /// A block of a class, cut off from a larger one that is free.
    fn split(&mut self, class: usize) -> Option<*mut u8> {
        let larger = (class + 1..CLASSES).find(|larger| !self.free[*larger].is_null())?;
        let block = self.free[larger];
        // SAFETY: a free block of ours.
        self.free[larger] = unsafe { (*block).next };
        self.listed = self.listed.saturating_sub(SMALLEST << larger);
        let block = block.cast::<u8>();
        for half in class..larger {
            // SAFETY: within the block: its parts behind the first are as large as all before them.
            self.list(unsafe { block.add(SMALLEST << half) }, half);
        }
        Some(block)
    }

    /// What a caller gets when there is no memory left.
    fn without(&self, layout: &Layout) -> *mut u8 {
        match self.exhausted {
            Some(exhausted) => exhausted(),
            // SAFETY: the caller's promise, passed on unchanged. The harness looks how much is left before it takes
            // much: this is for what it did not think of.
            None => unsafe { System.alloc(*layout) },
        }
    }

    /// Takes back a block that [`take`](Self::take) has returned for that layout.
    ///
    /// # Safety
    /// It is a block of this heap, and not used any more.
    pub unsafe fn give(&mut self, block: *mut u8, layout: &Layout) {
        // One that fits no list stays where it is: there are few, and the drain's thread ends.
        if let Some(class) = self.class(layout) {
            self.list(block, class);
            if SMALLEST << class > LARGEST {
                // Its place is kept, not the memory. The system's pages may be larger than ours.
                // SAFETY: asks the system.
                let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
                let Range { start, end } = pages_behind_link(block as usize, SMALLEST << class, page);
                if start < end {
                    // SAFETY: pages of a free block of ours, and of no other.
                    unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_DONTNEED) };
                }
            }
        }
    }

    /// Puts an unused block on its list.
    fn list(&mut self, block: *mut u8, class: usize) {
        let free = block.cast::<Free>();
        // SAFETY: an unused block of ours that is large enough.
        unsafe { free.write(Free { next: self.free[class] }) };
        fence(Ordering::Release); // a fork must not see the list without the link
        self.free[class] = free;
        self.listed += SMALLEST << class;
    }

    fn holds(&self, block: *mut u8) -> bool {
        let begin = ptr::from_ref(self) as usize;
        (begin..self.end).contains(&(block as usize))
    }
}

/// Makes a part of what a heap has reserved accessible; whether that was possible.
fn open(at: usize, size: usize) -> bool {
    // SAFETY: pages of our own that are not used yet.
    unsafe { libc::mprotect(at as *mut _, size, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// The whole pages of a free block that its link does not lie on; possibly none.
const fn pages_behind_link(block: usize, size: usize, page: usize) -> Range<usize> {
    (block + size_of::<Free>()).next_multiple_of(page)..(block + size) / page * page
}

// Of a block that is misaligned to pages of 64 KiB nothing of its neighbours'.
const _: () = {
    let Range { start, end } = pages_behind_link(0x1_1000, 16 << 20, 64 << 10);
    assert!(start == 0x2_0000 && end == 0x101_0000);
    let Range { start, end } = pages_behind_link(0x1_1000, 16 << 20, PAGE);
    assert!(start == 0x1_2000 && end == 0x101_1000);
};

/// The heap that a block lies in, if it is one of ours.
pub fn heap_of(block: *mut u8) -> Option<*mut Heap> {
    let is_in = |heap: *mut Heap| {
        // SAFETY: NULL, or a heap that is never unmapped.
        unsafe { heap.as_ref() }.is_some_and(|heap| heap.holds(block))
    };
    let drain = HEAP.load(Ordering::Acquire);
    // SAFETY: as above.
    let before = |heap: &*mut Heap| unsafe { heap.as_ref() }.map(|heap| heap.before);
    core::iter::once(drain)
        .chain(core::iter::successors(Some(HARNESS.load(Ordering::Acquire)), before))
        .find(|heap| is_in(*heap))
}

#[cfg(test)]
mod tests;
