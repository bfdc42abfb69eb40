//! The allocator of this library: the thread's own heap where it has one, else the system's.

use crate::guest::thread;
use aclshim_core::heap::heap_of;
use core::alloc::{GlobalAlloc, Layout};
use std::alloc::System;

struct Ours;

#[global_allocator]
static ALLOCATOR: Ours = Ours;

// SAFETY: a thread's heap is used by that thread alone while it is that thread's; blocks come from its own pages or from
// the system.
unsafe impl GlobalAlloc for Ours {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: NULL, or this thread's heap; else the caller's promise, passed on unchanged.
        unsafe {
            match thread::current().heap.get().as_mut() {
                Some(heap) => heap.take(&layout),
                None => System.alloc(layout),
            }
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let mine = thread::current().heap.get();
        match heap_of(block) {
            // SAFETY: this thread's heap.
            Some(heap) if heap == mine => unsafe { (*heap).give(block, &layout) },
            // Another thread must not touch the lists; the block stays unused.
            Some(_) => {}
            // SAFETY: the caller's promise, passed on unchanged.
            None => unsafe { System.dealloc(block, layout) },
        }
    }
}
