//! `libaclshim.so`: stands in front of the vendor's copy functions inside another program's process.
//!
//! The story of one call:
//! 1. The program's call reaches one of our entries ([`call::entry`]): the exported one if it was linked or preloaded, a
//!    private one if the program asked our `dlsym` ([`call::lookup`]) for it, and either one if [`loader::rebind`] had to
//!    redirect an object that was opened with RTLD_DEEPBIND.
//! 2. The entry goes through its gate ([`loader::gate`]), which leads to the real function, found on the first call
//!    ([`loader::target`]).
//! 3. [`record::frame`] writes the call into this thread's ring in shared memory ([`ring::process`]), in flight, and reads
//!    from the stack whether it came from inside another call.
//! 4. The real function runs once, from a frame without clean-up code and outside every
//!    `catch_unwind`: an exception, a longjmp or a thread's end passes through as if we were not there.
//! 5. The record gets code and duration, and is complete. The code goes back to the program, errno as the vendor left it.
//! 6. A call with anything unusual about it takes the slow path ([`call::slow_path`]): a batch, whose arrays are judged
//!    ([`check`]) and recorded ([`record::batch`]); every call while a test of the program has a scope open ([`harness`]),
//!    or injections are set ([`inject`]).
//! 7. Beside all that the [`drain`], a thread of our own with a [heap](aclshim_core::heap) of its own, writes records to
//!    disk.
//!
//! Everything else ([`boot`], [`settings`], [`guest::log`], [`shutdown`]) happens once, before, beside or after that.
//! The rooms depend on each other in one direction: `docs/architecture.md` draws it.

#[cfg(not(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("aclshim is for Linux with glibc on x86-64 and aarch64, like the vendor's runtime");

mod boot;
mod call;
mod check;
mod drain;
mod guest;
mod harness;
mod inject;
mod loader;
mod record;
mod ring;
mod settings;
mod shutdown;
mod version;
