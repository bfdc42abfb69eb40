//! `libaclshim.so`: stands in front of the vendor's copy functions inside somebody else's process.
//!
//! The story of one call:
//! 1. The program's call reaches one of our [`entry`] functions: the exported one if it was
//!    linked or preloaded, a private one if the program asked [`libdl`]'s `dlsym` for it, and
//!    either one if [`rebind`] had to redirect an object that was opened with RTLD_DEEPBIND.
//! 2. The entry goes through its gate in [`target`], which knows the real function, found on the first call.
//! 3. [`record`] writes the call into this thread's ring in shared memory ([`process`]), in flight, and
//!    tells from the stack whether it came from inside another call.
//! 4. The real function runs once, from a frame without clean-up code and outside every
//!    `catch_unwind`: an exception, a longjmp or a thread's end passes through as if we were not there.
//! 5. The record gets code and duration ([`batch`]: and what the arrays held), and is done. The code goes
//!    back to the program, errno as the vendor left it.
//! 6. While a test of the program has a scope open ([`harness`]), or injections are set ([`inject`]), calls take a longer
//!    way, on which they are noted, judged and perhaps struck. With the last one that way is closed again.
//! 7. Beside all that the [`drain`], a thread of our own with a [`heap`] of its own, writes records to disk.
//!
//! Everything else ([`boot`], [`settings`], [`log`]) happens once, before or beside that.

#[cfg(not(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("aclshim is for Linux with glibc on x86-64 and aarch64, like the vendor's runtime");

mod arrays;
mod batch;
mod boot;
mod check;
mod drain;
mod edge;
mod elf;
mod entry;
mod fork;
mod harness;
mod heap;
mod identity;
mod inherited;
mod inject;
mod libdl;
mod log;
mod look;
mod lookup;
mod maps;
mod names;
mod naming;
mod objects;
mod process;
mod rebind;
mod record;
mod rings;
mod scope;
mod settings;
mod stack;
mod target;
mod tell;
mod thread;
mod unload;
mod vendor;
mod version;
mod world;
