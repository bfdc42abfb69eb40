//! Who this process is: what its ring file's header tells.
//!
//! Read with plain system calls on a cold path, straight into the header: the stack may be small.

use crate::settings::settings;
use crate::vendor::{self, Answer};
use crate::world;
use crate::{edge, process};
use aclshim_facts::FUNCTIONS;
use aclshim_facts::call::{Amount, Call};
use aclshim_trace::layout::{Header, NAME};
use aclshim_trace::text::Text;
use core::ffi::CStr;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

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
    header.mode = settings.record as u32;
    header.calls = settings.calls as u32;
    header.batch_items = settings.batch_items as u32;
    (header.segment, header.budget) = (settings.segment, settings.budget);
    for (place, row) in header.names.iter_mut().zip(FUNCTIONS) {
        *place = *Text::<NAME>::new().push(row.name.as_bytes()).as_array();
    }
    header.functions = FUNCTIONS.len() as u32;
    Field::of(&mut header.dir).push(settings.dir.as_bytes());
    Field::of(&mut header.pattern).push(settings.file.as_bytes());
    Field::of(&mut header.rank).push(settings.rank.as_bytes());
    let _ = settings.write(&mut Field::of(&mut header.settings));
    about_system(header);
    about_library(header);
}

#[inline(never)]
fn about_system(header: &mut Header) {
    // SAFETY: plain system calls on values of ours.
    unsafe {
        let mut name = core::mem::zeroed::<libc::utsname>();
        if libc::uname(&mut name) == 0 {
            Field::of(&mut header.host).push(CStr::from_ptr(name.nodename.as_ptr()).to_bytes());
        }
        let mut about = core::mem::zeroed::<libc::stat>();
        if libc::stat(c"/proc/self/ns/pid".as_ptr(), &mut about) == 0 {
            header.pid_ns = about.st_ino;
        }
        let room = header.executable.len() - 1;
        libc::readlink(c"/proc/self/exe".as_ptr(), header.executable.as_mut_ptr().cast(), room);
    }
    let mut buffer = [0u8; 512];
    let boot_id = contents(c"/proc/sys/kernel/random/boot_id", &mut buffer);
    Field::of(&mut header.boot_id).push(boot_id.trim_ascii());
    // The program's name stands in brackets and may hold anything: fields are counted from the last one.
    let stat = contents(c"/proc/self/stat", &mut buffer);
    let behind = stat.iter().rposition(|&byte| byte == b')').map_or(0, |at| at + 1);
    let start_time = stat[behind..].split(|&byte| byte == b' ').filter(|field| !field.is_empty()).nth(19);
    header.start_time =
        start_time.unwrap_or_default().iter().fold(0, |sum, digit| sum * 10 + u64::from(digit.wrapping_sub(b'0')));
}

/// The real library, if it is known by now. Nothing is asked of the loader: whoever holds its lock may
/// be waiting for this copy.
fn about_library(header: &mut Header) {
    let Some((path, id)) = vendor::library() else { return };
    Field::of(&mut header.library).push(path.to_bytes());
    let mut build_id = Field::of(&mut header.build_id);
    for byte in id {
        let _ = fmt::Write::write_fmt(&mut build_id, format_args!("{byte:02x}"));
    }
}

/// Whether the real library has been asked who it is.
static IS_ASKED: AtomicBool = AtomicBool::new(false);

/// Whether the real library is still to be asked who it is.
pub fn is_wanted() -> bool {
    !IS_ASKED.load(Ordering::Relaxed)
}

/// The vendor has accepted a call: after the first one that moved anything, the library can say who it is. (Asked by
/// the thread that made the call, while nobody knows yet that it has returned: whoever reads its record knows the
/// product. A thread of ours might come to ask when the program is at its end, and parts of the library are gone.)
#[cold]
#[inline(never)]
pub fn accepted(call: &Call) {
    let moves = match call.amount() {
        Amount::Bytes(bytes) => bytes > 0,
        // SAFETY: the vendor has accepted the call, and so has read the sizes, up to the first that is not 0.
        Amount::Sum { sizes, items } => (0..items).any(|at| unsafe { sizes.add(at).read_unaligned() } > 0),
    };
    if !moves || !is_wanted() {
        return;
    }
    edge::undisturbed(|| {
        // A handler may have interrupted the library itself.
        if !edge::may_be_in_a_handler() && !IS_ASKED.swap(true, Ordering::Relaxed) {
            ask_library(process::process().and_then(|process| process.header()));
        }
    });
}

/// Has the real library say who it is, and completes a header that others can see already with that.
fn ask_library(header: Option<&Header>) {
    vendor::ask(|answer| {
        match answer {
            Answer::Product(text) => world::tell_product(text.to_bytes()),
            Answer::Version(text) => world::tell_cann(text.to_bytes()),
            Answer::RunMode(mode) => world::tell_form(form(mode)),
        }
        let Some(header) = header else { return };
        let (field, text): (&[u8], _) = match answer {
            Answer::Product(text) => (&header.product, text),
            Answer::Version(text) => (&header.cann, text),
            Answer::RunMode(mode) => return header.form.store(form(mode), Ordering::Relaxed),
        };
        let length = text.to_bytes().len().min(field.len() - 1);
        // SAFETY: within the field, in a mapping that may be written; the NUL behind it is there already. Who reads
        // it meanwhile reads a part of the text.
        unsafe { core::ptr::copy_nonoverlapping(text.as_ptr().cast(), field.as_ptr().cast_mut(), length) };
    });
}

/// As the header names it: `ACL_DEVICE` is 0, `ACL_HOST` is 1.
fn form(run_mode: i32) -> u32 {
    if run_mode == 0 { 2 } else { 1 }
}

/// The beginning of a small file.
fn contents<'a>(path: &CStr, buffer: &'a mut [u8]) -> &'a [u8] {
    // SAFETY: a C string and a buffer of ours; the descriptor is closed before we leave.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return &[];
        }
        let read = libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len());
        libc::close(fd);
        &buffer[..usize::try_from(read).unwrap_or(0)]
    }
}

/// The calling thread's number. (The function of that name is newer than some systems we run on.)
pub fn thread_id() -> u32 {
    // SAFETY: asks for our own number.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// The calling thread's name, 16 bytes as two words.
pub fn thread_name() -> [u64; 2] {
    let mut name = [0u8; 16];
    // SAFETY: the buffer is as large as names are.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let (first, second) = name.split_at(8);
    [first, second].map(|half| u64::from_le_bytes(half.try_into().unwrap_or_default()))
}
