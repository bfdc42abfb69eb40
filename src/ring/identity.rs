//! Who this process is: what its ring file's header tells.
//!
//! Read with plain system calls on a cold path, straight into the header: the stack may be small.

use crate::check::world;
use crate::guest::edge;
use crate::guest::state::{self, ShimState};
use crate::loader::vendor::{self, LibraryInfo};
use crate::settings::{rank, settings};
use aclshim_facts::FUNCTIONS;
use aclshim_facts::call::{Amount, Call};
use aclshim_facts::settings::Choice;
use aclshim_facts::text::Text;
use aclshim_facts::world::RunMode;
use aclshim_trace::ring::layout::{Header, write_names};
use aclshim_trace::system::{contents, namespace};
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::fmt;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Writes text into a field and leaves a NUL behind it; what does not fit is cut off.
struct Field<'a> {
    left: &'a mut [u8],
}

impl<'a> Field<'a> {
    fn of(field: &'a mut [u8]) -> Self {
        let room = field.len().saturating_sub(1);
        Self { left: &mut field[..room] }
    }

    fn push(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(self.left.len());
        let (now, later) = core::mem::take(&mut self.left).split_at_mut(taken);
        now.copy_from_slice(&bytes[..taken]);
        self.left = later;
    }
}

impl fmt::Write for Field<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// Completes a header.
pub fn fill(header: &mut Header) {
    let settings = settings();
    header.mode = settings.record.number();
    header.calls = settings.calls.number();
    header.batch_items = settings.batch_items as u32;
    header.growth_limit = settings.ring_total;
    (header.segment, header.budget) = (settings.segment, settings.budget);
    header.functions = write_names(FUNCTIONS.iter().map(|row| row.name), &mut header.names);
    Field::of(&mut header.dir).push(settings.dir.as_bytes());
    Field::of(&mut header.pattern).push(settings.file.as_bytes());
    Field::of(&mut header.rank).push(rank());
    let _ = settings.write(&mut Field::of(&mut header.settings));
    about_system(header);
    about_library(header);
    about_product(header);
}

#[inline(never)]
fn about_system(header: &mut Header) {
    // SAFETY: plain system calls on values of ours.
    unsafe {
        let mut name = core::mem::zeroed::<libc::utsname>();
        if libc::uname(&mut name) == 0 {
            Field::of(&mut header.host).push(CStr::from_ptr(name.nodename.as_ptr()).to_bytes());
        }
        let room = header.executable.len() - 1;
        libc::readlink(c"/proc/self/exe".as_ptr(), header.executable.as_mut_ptr().cast(), room);
    }
    (header.pid_ns, header.time_ns) = (namespace::pid(), namespace::time());
    let mut buffer = [0u8; 512];
    let boot_id = contents::read_into(c"/proc/sys/kernel/random/boot_id", &mut buffer);
    Field::of(&mut header.boot_id).push(boot_id.trim_ascii());
    // The program's name stands in brackets and may hold anything: fields are counted from the last one.
    let stat = contents::read_into(c"/proc/self/stat", &mut buffer);
    let behind = stat.iter().rposition(|&byte| byte == b')').map_or(0, |at| at + 1);
    let start_time = stat[behind..].split(|&byte| byte == b' ').filter(|field| !field.is_empty()).nth(19);
    header.start_time =
        start_time.unwrap_or_default().iter().fold(0, |sum, digit| sum * 10 + u64::from(digit.wrapping_sub(b'0')));
}

/// The real library, if it is known by now. Nothing is asked of the loader: the thread that holds its lock
/// may be waiting for this copy.
fn about_library(header: &mut Header) {
    let Some((path, id)) = vendor::library() else { return };
    Field::of(&mut header.library).push(path.to_bytes());
    let mut build_id = Field::of(&mut header.build_id);
    for byte in id {
        let _ = fmt::Write::write_fmt(&mut build_id, format_args!("{byte:02x}"));
    }
}

/// What the real library has said of itself, for the headers of this process and of its fork children.
struct KnownLibrary {
    /// One of those below, or the process that is just asking: not this one, if it was forked meanwhile.
    state: AtomicU32,
    product: UnsafeCell<Text<64>>,
    cann: UnsafeCell<Text<64>>,
    form: AtomicU32,
    /// How often a call was sent on the longer way.
    attempts_scheduled: AtomicU32,
    /// How many calls might have asked.
    attempts: AtomicU32,
}

// SAFETY: the texts are written by the one thread that has made the state its process, and read when it is KNOWN.
unsafe impl Sync for KnownLibrary {}

const NEW: u32 = 0;
const KNOWN: u32 = u32::MAX;

#[unsafe(link_section = ".bss.startup")]
static LIBRARY: KnownLibrary = KnownLibrary {
    state: AtomicU32::new(NEW),
    product: UnsafeCell::new(Text::new()),
    cann: UnsafeCell::new(Text::new()),
    form: AtomicU32::new(0),
    attempts_scheduled: AtomicU32::new(0),
    attempts: AtomicU32::new(0),
};

/// Whether the real library is still to be asked who it is.
pub fn is_wanted() -> bool {
    match LIBRARY.state.load(Ordering::Relaxed) {
        NEW => vendor::may_answer(),
        KNOWN => false,
        asking => asking != std::process::id(),
    }
}

/// After how many calls of a thread the next one should look whether it can ask, if that was not done. It takes the slow
/// path for that: where no call succeeds, fewer and fewer do.
pub fn calls_to_next_attempt() -> Option<u64> {
    is_wanted().then(|| 1 << LIBRARY.attempts_scheduled.fetch_add(1, Ordering::Relaxed).min(10))
}

/// The vendor has accepted a call from `caller`: after the first one that moved anything, the library can say who it is.
/// (Asked by the thread that made the call, before its record shows that it has returned: a reader of the record knows the
/// product. A thread of ours might come to ask when the program is at its end, and parts of the library are gone.)
#[cold]
#[inline(never)]
pub fn accepted(call: &Call, caller: usize, header: impl Fn() -> Option<&'static Header>) {
    let moves = match call.amount() {
        Amount::Bytes(bytes) => bytes > 0,
        Amount::Sum { sizes, .. } if sizes.is_null() => false,
        // SAFETY: the vendor has accepted the call, and so has read the sizes, up to the first that is not 0.
        Amount::Sum { sizes, items } => (0..items).any(|at| unsafe { sizes.add(at).read_unaligned() } > 0),
    };
    // Where calls are only forwarded nothing is asked. Inside a function of the library's own that may have its lock nothing
    // can be asked. Nor before it is pinned: it may be
    // just coming, and what it does to answer may need the loader's lock, whose holder may be waiting for this thread.
    let may_ask = state::current() == ShimState::Active && !vendor::contains(caller) && vendor::library().is_some();
    if !moves || !may_ask {
        return;
    }
    // Where none may ask, because each might be in a handler, fewer and fewer look: a look takes system calls.
    let nth = LIBRARY.attempts.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    if !nth.is_power_of_two() && !nth.is_multiple_of(1024) {
        return;
    }
    edge::with_signals_blocked(|| {
        let (state, me) = (LIBRARY.state.load(Ordering::Relaxed), std::process::id());
        let take = || LIBRARY.state.compare_exchange(state, me, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // A handler may have interrupted the library itself: then it is not asked.
        if is_wanted() && !edge::may_be_in_a_handler() && take() {
            // A fork may have caught its parent amid the answers.
            // SAFETY: we have the texts.
            unsafe {
                (*LIBRARY.product.get()).clear();
                (*LIBRARY.cann.get()).clear();
            }
            let is_answered = vendor::query(|answer| match answer {
                // SAFETY: as above.
                LibraryInfo::Product(text) => _ = unsafe { &mut *LIBRARY.product.get() }.push(text.to_bytes()),
                // SAFETY: as above.
                LibraryInfo::Version(text) => _ = unsafe { &mut *LIBRARY.cann.get() }.push(text.to_bytes()),
                // ACL_DEVICE is 0, ACL_HOST is 1.
                LibraryInfo::RunMode(mode) => {
                    let form = if mode == 0 { RunMode::RootComplex } else { RunMode::EndPoint };
                    LIBRARY.form.store(form as u32, Ordering::Relaxed);
                }
            });
            LIBRARY.state.store(if is_answered { KNOWN } else { NEW }, Ordering::Release);
            if is_answered {
                publish_all(header());
            }
        }
    });
}

/// Passes on what the library has said: to the rules, and to the readers of the ring file.
fn publish_all(header: Option<&Header>) {
    // SAFETY: the texts are not written any more.
    let (product, cann) = unsafe { (&*LIBRARY.product.get(), &*LIBRARY.cann.get()) };
    let form = LIBRARY.form.load(Ordering::Relaxed);
    world::set_reported(product.as_bytes(), cann.as_bytes(), RunMode::from_number(form));
    if let Some(header) = header {
        header.form.store(form, Ordering::Relaxed);
        // The product last: who sees it sees the rest.
        publish(&header.cann, cann.as_array());
        publish(&header.product, product.as_array());
    }
}

/// Writes a text into a field of a header that others can see already; its first byte last, and so all of it or nothing.
fn publish<const N: usize>(field: &[AtomicU8; N], text: &[u8; N]) {
    for at in (1..N).chain([0]) {
        field[at].store(text[at], Ordering::Release);
    }
}

/// What is known of the library in a header that is not visible yet: a fork child does not ask again.
fn about_product(header: &mut Header) {
    if LIBRARY.state.load(Ordering::Acquire) == KNOWN {
        // SAFETY: the texts are not written any more.
        let (product, cann) = unsafe { (&*LIBRARY.product.get(), &*LIBRARY.cann.get()) };
        header.product = product.as_array().map(AtomicU8::new);
        header.cann = cann.as_array().map(AtomicU8::new);
        header.form.store(LIBRARY.form.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}
