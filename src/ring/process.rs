//! What this process has of ours: its ring file, and a ring for each thread that copies.
//!
//! All of it lies on pages that the kernel wipes in a fork child: the child finds nothing, and
//! begins anew with its first copy. (An atfork handler alone would miss children of a raw clone.)
//! It does so on other pages: a frame that was at work on these when the process forked must find nothing.
//! Where the rings were there still is memory ([`inherited`]): a child whose parent was inside a call when it
//! forked, perhaps in a signal handler, goes on where its parent was.

use crate::guest::log::{self, Event};
use crate::guest::state::{self, wait_until};
use crate::guest::{edge, thread, wiped};
use crate::loader::maps;
use crate::ring::handshake::DrainHandshake;
use crate::ring::rings::{Rings, TakenRing};
use crate::ring::{identity, inherited};
use crate::settings::settings;
use aclshim_facts::FUNCTIONS;
use aclshim_facts::settings::Record;
use aclshim_facts::text::Text;
use aclshim_trace::reader::Ring;
use aclshim_trace::record::slot::{FUNCTION_MAX, Note};
use aclshim_trace::ring::cursor::{RingCursor, add_local};
use aclshim_trace::ring::file::{self, OwnRingFile, RingSize};
use aclshim_trace::ring::layout::{self, Control, Header, Mode};
use aclshim_trace::system::clock::monotonic_ns;
use aclshim_trace::system::generation;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

/// Bytes that the names of all functions take in a header, each with its NUL.
const fn names_length() -> usize {
    let (mut nth, mut length) = (0, 0);
    while nth < FUNCTIONS.len() {
        length += FUNCTIONS[nth].name.len() + 1;
        nth += 1;
    }
    length
}
const _: () = assert!(names_length() <= layout::NAMES && FUNCTIONS.len() <= FUNCTION_MAX as usize + 1);

/// The wiped pages.
#[repr(C)]
pub struct Process {
    /// Whether it is this process's: 0 on pages that were wiped.
    is_own: AtomicU32,
    /// One of the states below.
    state: AtomicU32,
    header: AtomicPtr<Header>,
    /// What was put into the header when it was made, as [`OwnRingFile`] has it. Stored before `header`.
    inode: AtomicU64,
    born_ns: AtomicU64,
    pid: AtomicU32,
    capacity: AtomicU32,
    stored: AtomicU32,
    clock: AtomicU32,
    /// Calls that no file could count.
    pub missed: AtomicU64,
    /// Marks, scopes and names that found no ring.
    pub notes_missed: AtomicU64,
    /// What the drain in this process and its host have to say to each other.
    pub drain: DrainHandshake,
    rings: Rings,
    /// The cursor of the thread that made this process by a fork, if it had one already: see [`crate::guest::thread::Thread::own`].
    cursor: RingCursor,
}

const NEW: u32 = 0;
const BUSY: u32 = 1;
const READY: u32 = 2;
const OFF: u32 = 3;

const SIZE: usize = 192 * 1024;
const _: () = assert!(size_of::<Process>() <= SIZE);

/// Whether a fork child has to wipe what the kernel does not wipe (before Linux 4.14).
static MUST_WIPE_IN_CHILD: AtomicBool = AtomicBool::new(false);

#[unsafe(link_section = ".bss.startup")]
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());

/// What there is, if a thread has copied in this process.
pub fn process() -> Option<&'static Process> {
    // SAFETY: NULL, or pages that are never unmapped.
    let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref() };
    process.filter(|process| process.is_own())
}

/// Counts a call that found nothing to be counted in.
pub fn count_early_miss() {
    generation::early().fetch_add(1, Ordering::Relaxed);
}

/// The wiped pages, made with the first copy.
pub fn own() -> Option<&'static Process> {
    let before = PROCESS.load(Ordering::Acquire);
    if let Some(process) = process() {
        return Some(process);
    }
    let (at, is_wiped) = wiped::map(SIZE)?;
    // Before it is used: a fork in between would leave a child that knows of nothing.
    let is_wiped = generation::begin() & is_wiped;
    // SAFETY: a mapping of our own of that size, for which zero is valid; it is published once and never unmapped.
    unsafe {
        let fresh = at.cast::<Process>();
        (*fresh).is_own.store(1, Ordering::Relaxed);
        if PROCESS.compare_exchange(before, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
            libc::munmap(at, SIZE);
        } else if !is_wiped {
            // A kernel before 4.14.
            MUST_WIPE_IN_CHILD.store(true, Ordering::Relaxed);
        }
    }
    process()
}

/// In a fork child: wipes what the kernel has not wiped.
pub fn wipe_in_child() {
    if !MUST_WIPE_IN_CHILD.load(Ordering::Relaxed) {
        return;
    }
    generation::forget();
    let at = PROCESS.load(Ordering::Acquire);
    if !at.is_null() {
        // SAFETY: the child has this one thread, and zero is a valid value.
        unsafe { ptr::write_bytes(at.cast::<u8>(), 0, size_of::<Process>()) };
    }
}

/// The mapped header of this process, if there is a file.
pub fn header() -> Option<&'static Header> {
    process()?.header()
}

impl Process {
    /// Whether it is this process's, and not what is left of its parent's.
    pub fn is_own(&self) -> bool {
        self.is_own.load(Ordering::Relaxed) != 0
    }

    /// The mapped header, if there is a file.
    pub fn header(&self) -> Option<&'static Header> {
        // SAFETY: NULL, or a mapping that stays.
        unsafe { self.header.load(Ordering::Acquire).as_ref() }
    }

    /// The file, if there is one.
    fn file(&self) -> Option<OwnRingFile> {
        Some(OwnRingFile {
            header: self.header()?,
            inode: self.inode.load(Ordering::Relaxed),
            pid: self.pid.load(Ordering::Relaxed),
            size: RingSize {
                capacity: self.capacity.load(Ordering::Relaxed),
                stored: self.stored.load(Ordering::Relaxed),
            },
            clock: self.clock.load(Ordering::Relaxed),
            born_ns: self.born_ns.load(Ordering::Relaxed),
        })
    }

    fn remember(&self, file: &OwnRingFile) {
        self.inode.store(file.inode, Ordering::Relaxed);
        self.pid.store(file.pid, Ordering::Relaxed);
        self.capacity.store(file.size.capacity, Ordering::Relaxed);
        self.stored.store(file.size.stored, Ordering::Relaxed);
        self.clock.store(file.clock, Ordering::Relaxed);
        self.born_ns.store(file.born_ns, Ordering::Relaxed);
        self.header.store(ptr::from_ref(file.header).cast_mut(), Ordering::Release);
    }

    /// Counts a call that found no ring.
    pub fn count_missed(&self) {
        match self.header() {
            Some(header) => _ = header.not_recorded.fetch_add(1, Ordering::Relaxed),
            None => {
                self.missed.fetch_add(1, Ordering::Relaxed);
                self.hand_over();
            }
        }
    }

    /// Has the file count what was missed before it was there: by the thread that made it, and by one that missed a call meanwhile,
    /// because neither may come again.
    fn hand_over(&self) {
        // Either sees what the other has stored.
        fence(Ordering::SeqCst);
        if let Some(header) = self.header() {
            let missed = generation::early().swap(0, Ordering::Relaxed) + self.missed.swap(0, Ordering::Relaxed);
            header.not_recorded.fetch_add(missed, Ordering::Relaxed);
        }
    }

    /// Makes the file unless that was done, or another thread is at it; `made` is called when this thread has tried.
    pub fn make_file(&self, made: fn()) -> Option<OwnRingFile> {
        // The file of a child that shares its parent's memory would have the child's pid, and be that of a dead process as
        // soon as the child ends; but the parent would go on with it.
        if self.state.load(Ordering::Acquire) == NEW
            && !generation::is_anothers_memory()
            && self.state.compare_exchange(NEW, BUSY, Ordering::AcqRel, Ordering::Acquire).is_ok()
        {
            self.make();
            made();
        }
        let is_busy = || self.state.load(Ordering::Acquire) == BUSY;
        let has_waited = thread::current().waited.get();
        wait_until(|| !is_busy());
        // On a busy machine the thread that makes the file may have to wait for a processor. It takes no lock of the
        // host's, so that a wait ends soon; bounded, because what it calls may be replaced by the host. Not in a handler that may
        // have interrupted it.
        let may_wait = !has_waited || settings().record == Record::Lossless;
        if may_wait && is_busy() && !edge::may_be_in_a_handler() {
            let end = monotonic_ns() + edge::LONG_WAIT_NS;
            while is_busy() && monotonic_ns() < end {
                edge::pause(edge::WAIT_PAUSE_NS);
            }
        }
        self.file()
    }

    #[inline(never)] // what it has on the stack is not to lie under the rest
    fn make(&self) {
        let settings = settings();
        let ring_dir = settings.ring_dir.as_bytes();
        let size = RingSize { capacity: settings.most_slots(), stored: settings.slots() };
        let made = file::create(ring_dir, size, identity::fill);
        match made {
            Ok(file) => {
                inherited::remember(file.header, layout::HEADER);
                self.remember(&file);
                self.state.store(READY, Ordering::Release);
                self.hand_over();
                // When others see the file: until then a kill would leave one that cannot be read.
                maps::of_code(&file.header.maps);
            }
            Err(failure) => {
                self.state.store(OFF, Ordering::Release);
                let shown = core::str::from_utf8(ring_dir).unwrap_or("(not UTF-8)");
                // A fork child's parent has said so.
                let say = if state::is_fork_child() { log::line } else { log::loss };
                say(
                    Event::NotRecording,
                    shown,
                    format_args!("calls are forwarded but not recorded: no file could be made in {shown}: {failure}"),
                );
            }
        }
    }

    /// Opens a cursor for thread `me`, `own` if that is new: in its own ring, that of a thread that is gone, or a new one.
    pub fn open(&'static self, own: &'static RingCursor, me: u32, file: &OwnRingFile) -> Option<&'static RingCursor> {
        // A child that shares its parent's memory, by vfork: it would take its parent's threads for gone, and leave this one
        // with a ring of its own, which is gone soon.
        // SAFETY: only asks.
        if unsafe { libc::getppid() } as u32 == file.pid {
            return None;
        }
        let taken = self.rings.take(me, file)?;
        let Ring { control, .. } = taken.ring;
        // A handler of a signal that cannot be blocked may have come before us: then the ring may even be that of its cursor.
        if let Some(cursor) = thread::cursor() {
            control.owner.store(me, Ordering::Release);
            return Some(cursor);
        }
        let Some(cursor) = self.open_either(own, &taken) else {
            // Both are open, or about to be: this is a handler that has interrupted that.
            control.owner.store(me, Ordering::Release);
            return None;
        };
        self.begin(cursor, control, me, file.clock);
        Some(cursor)
    }

    /// Opens the thread's own cursor, or the one of this process, in a ring that the thread has taken.
    fn open_either(&'static self, own: &'static RingCursor, taken: &TakenRing) -> Option<&'static RingCursor> {
        let mode = match settings().record {
            Record::Flight => Mode::Flight,
            Record::Lossless => Mode::Lossless,
            Record::Audit | Record::Off => Mode::Audit,
        };
        let TakenRing { ring: Ring { control, slots }, stored, next } = *taken;
        [own, &self.cursor].into_iter().find(|cursor| cursor.open(control, slots, stored, mode, next))
    }

    /// Records that thread `me` begins at a cursor that was just opened: first what its former owner lost, and what was
    /// missed before there was a ring.
    fn begin(&self, cursor: &RingCursor, control: &Control, me: u32, clock: u32) {
        cursor.set_clock(clock);
        let now = cursor.now();
        control.lap_began.store(now, Ordering::Relaxed);
        let missed = self.notes_missed.swap(0, Ordering::Relaxed);
        if missed > 0 && control.are_losses_recorded() {
            control.lost_since.store(now, Ordering::Relaxed);
        }
        add_local(&control.notes_lost, missed);
        let [first, second] = thread::name();
        // SAFETY: the cursor is open, and this thread's.
        unsafe {
            cursor.record_losses(control, now);
            control.since.store(cursor.next.load(Ordering::Relaxed), Ordering::Release);
            control.owner.store(me, Ordering::Release);
            cursor.write_note(Note::Thread, &[now, u64::from(me), first, second]);
        }
    }

    /// A ring; `None` where it could not be made, or is just being made.
    pub fn ring(&self, ring: usize) -> Option<Ring<'static>> {
        self.rings.get(ring)
    }
}

/// Says at the end what was lost where there is no file to say it in.
pub fn log_missed() {
    let missed = match process() {
        // None could be made, or none was to be: see `make_file`.
        Some(process) if process.header().is_none() => {
            process.missed.load(Ordering::Relaxed) + generation::early().load(Ordering::Relaxed)
        }
        Some(_) => 0,
        // There was no memory for anything.
        None => generation::early().load(Ordering::Relaxed),
    };
    if missed > 0 {
        let mut subject = Text::<24>::new();
        let _ = core::fmt::Write::write_fmt(&mut subject, format_args!("{missed}"));
        let shown = core::str::from_utf8(subject.as_bytes()).unwrap_or_default();
        let said = format_args!("{missed} calls were forwarded and not recorded");
        edge::with_signals_blocked(|| log::loss(Event::NotRecorded, shown, said));
    }
}
