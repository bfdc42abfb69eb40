//! What is done once in a process: when we are loaded, or by the first who needs us before that.

use crate::check::{judgement, world};
use crate::guest::{log, thread};
use crate::loader::{libdl, names, objects, rebind, target};
use crate::ring::fork;
use crate::{inject, settings};
use aclshim_trace::system::generation;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

/// What we are in this process.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Standing {
    /// Not known: the boot is under way in another thread, or in the frame that we interrupted.
    Unready,
    /// We see and record.
    Active,
    /// We forward only: the settings say so, or the program has more privileges than its caller. From here on nobody records.
    Off,
    /// We forward only: another copy of the shim stands in front of us.
    Passive,
}

const NEW: u8 = 0;
const BUSY: u8 = 1;
const DONE: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(NEW);
/// A [`Standing`].
static STANDING: AtomicU8 = AtomicU8::new(Standing::Unready as u8);
/// The address of the TLS block of the thread that boots.
static BOOTING: AtomicUsize = AtomicUsize::new(0);

static OWN: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
static EXPORTS: [AtomicUsize; names::COUNT] = [const { AtomicUsize::new(0) }; names::COUNT];
static LIBDL_EXPORTS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];
/// One bit for each function whose first definition in this process is ours.
static FIRST: AtomicU32 = AtomicU32::new(0);
/// The same for the functions of libdl.
static LIBDL_FIRST: AtomicU32 = AtomicU32::new(0);
/// What the program sees under each name: ours, another interposer's, or a stub of its own.
static VISIBLE: [AtomicUsize; names::COUNT] = [const { AtomicUsize::new(0) }; names::COUNT];
/// How many objects were loaded when we booted.
static RESIDENT: AtomicUsize = AtomicUsize::new(0);
/// The process that booted.
static PID: AtomicU32 = AtomicU32::new(0);
const _: () = assert!(names::COUNT <= 32);

#[ctor::ctor(unsafe)]
fn loaded() {
    // Without a look first: a page that is read before it is written to is brought in twice.
    crate::guest::edge::kept(boot);
    if glance() == Standing::Active {
        generation::take_memory();
        fork::register();
    }
}

/// What we are; boots if nobody has yet. Bounded: who comes while another boots waits 2 ms at most.
pub fn standing() -> Standing {
    if STATE.load(Ordering::Acquire) != DONE {
        boot();
    }
    glance()
}

/// What we are as far as it is known; never boots.
#[inline(always)]
pub fn glance() -> Standing {
    match STANDING.load(Ordering::Acquire) {
        1 => Standing::Active,
        2 => Standing::Off,
        3 => Standing::Passive,
        _ => Standing::Unready,
    }
}

#[cold]
fn boot() {
    let me = thread::current() as *const _ as usize;
    if STATE.compare_exchange(NEW, BUSY, Ordering::Acquire, Ordering::Acquire).is_err() {
        if BOOTING.load(Ordering::Relaxed) != me {
            wait_until(|| STATE.load(Ordering::Acquire) == DONE);
        }
        return;
    }
    BOOTING.store(me, Ordering::Relaxed);
    // If we cannot even begin, we forward.
    let standing = crate::guest::edge::kept(prepare).unwrap_or(Standing::Off);
    STANDING.store(standing as u8, Ordering::Release);
    STATE.store(DONE, Ordering::Release);
    if standing != Standing::Passive {
        crate::guest::edge::kept(|| {
            target::warm_at_start();
            rebind::refresh(rebind::Trigger::Lookup);
        });
    }
}

fn prepare() -> Standing {
    // SAFETY: asks for our own number.
    PID.store(unsafe { libc::getpid() } as u32, Ordering::Relaxed);
    // A panic of ours must not print into the host's output; it is caught where it matters.
    std::panic::set_hook(Box::new(|_| {}));
    libdl::find();
    learn_own();
    RESIDENT.store(objects::resident(|_| true).count(), Ordering::Relaxed);
    // SAFETY: we are the one thread that boots.
    unsafe {
        settings::read();
        judgement::read();
        inject::read();
    }
    world::read();

    let visible = |name: &CStr| {
        // SAFETY: a pseudo handle and a C string.
        unsafe { libdl::dlsym(libdl::DEFAULT, name.as_ptr()) as usize }
    };
    let harness = visible(c"aclshim_harness");
    let standing = if harness != 0 && !is_own(harness) && is_another(harness) {
        Standing::Passive
    } else if settings::settings().mode == settings::MODE_OFF
        || !(settings::settings().records() || judgement::is_strict() || inject::is_asked_for())
    {
        Standing::Off
    } else {
        inject::start();
        log::note_stderr();
        Standing::Active
    };
    // Asked of the objects, not of the loader: to it a stub in the program is a definition.
    let is_first =
        |name: &CStr| objects::resident(|_| true).find_map(|object| object.defined(name)).is_some_and(is_own);
    for (bit, name) in names::NAMES.iter().enumerate() {
        FIRST.fetch_or(u32::from(is_first(name)) << bit, Ordering::Relaxed);
        VISIBLE[bit].store(visible(name), Ordering::Relaxed);
    }
    for (bit, (name, _)) in libdl::INTERPOSED.iter().enumerate() {
        LIBDL_FIRST.fetch_or(u32::from(is_first(name)) << bit, Ordering::Relaxed);
    }
    standing
}

/// Whether the table at `harness` is another shim's. A program that is not position-independent has a copy of ours.
fn is_another(harness: usize) -> bool {
    let holder = objects::resident(|_| true).find(|object| object.defined(c"aclshim_harness") == Some(harness));
    holder.is_none_or(|holder| holder.defined(names::NAMES[0]).is_some())
}

fn learn_own() {
    let Some(own) = objects::own() else { return };
    OWN[0].store(own.span.start, Ordering::Relaxed);
    OWN[1].store(own.span.end, Ordering::Relaxed);
    // Our own table, not the address of our own function: that name may belong to another
    // interposer in this process.
    for (export, name) in EXPORTS.iter().zip(names::NAMES) {
        export.store(own.defined(name).unwrap_or(0), Ordering::Relaxed);
    }
    for (export, (name, _)) in LIBDL_EXPORTS.iter().zip(&libdl::INTERPOSED) {
        export.store(own.defined(name).unwrap_or(0), Ordering::Relaxed);
    }
}

/// Whether an address is one of ours.
pub fn is_own(address: usize) -> bool {
    (OWN[0].load(Ordering::Relaxed)..OWN[1].load(Ordering::Relaxed)).contains(&address)
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

/// How many objects came with the program: they stand first in the loader's list and never leave.
pub fn resident_objects() -> usize {
    RESIDENT.load(Ordering::Relaxed)
}

/// Whether this process was forked from the one that booted.
pub fn is_fork_child() -> bool {
    // SAFETY: asks for our own number.
    let here = unsafe { libc::getpid() } as u32;
    !matches!(PID.load(Ordering::Relaxed), pid if pid == 0 || pid == here)
}

/// Whether the program runs under ThreadSanitizer. It ends a fork child of a threaded program that starts a thread, and takes
/// the descriptors of a thread with a descriptor table of its own for the program's. Asks the objects that came with the
/// program, without the loader's lock: a thread that is about to copy may hold it, or be absent in a fork child.
pub fn has_thread_sanitizer() -> bool {
    objects::resident(|_| true).take(resident_objects()).any(|object| object.defined(c"__tsan_init").is_some())
}

/// Whether our export is the first definition of a function of the table in this process.
pub fn is_first(function: usize) -> bool {
    FIRST.load(Ordering::Relaxed) >> function & 1 == 1
}

/// The same for a function of libdl.
pub fn is_libdl_first(which: usize) -> bool {
    LIBDL_FIRST.load(Ordering::Relaxed) >> which & 1 == 1
}

/// Waits 2 ms at most, without a lock, for what another thread is about to finish; a thread that has
/// waited in vain does not wait again.
pub fn wait_until(done: impl Fn() -> bool) {
    let waited = &thread::current().waited;
    if done() || waited.get() {
        return;
    }
    let now = || {
        // SAFETY: a value of ours.
        unsafe {
            let mut now = core::mem::zeroed::<libc::timespec>();
            libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now);
            now.tv_sec * 1_000_000_000 + now.tv_nsec
        }
    };
    let end = now() + 2_000_000;
    while !done() && now() < end {
        // SAFETY: gives the processor to whoever we wait for.
        unsafe { libc::sched_yield() };
    }
    waited.set(!done());
}
