//! Parts of the shim that need no export of ours.
//!
//! The shim itself exports `dlsym` and the vendor's functions, so no test can be linked with it. What needs none of its
//! exports, and nothing of its state, stands here: readers of what the loader ([`elf`]) and the kernel ([`maps`]) have laid
//! out in memory, the [`heap`] of its threads, and the [`arrays`] of a batch with the [`summary`] of them before a call.
//!
//! All of it runs in the host's process: nothing here takes a lock, and nothing but the heap allocates.

pub mod arrays;
pub mod elf;
pub mod heap;

pub mod maps;
pub mod summary;
