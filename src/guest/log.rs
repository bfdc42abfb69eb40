//! The few lines that the shim itself has to say, as JSON, one object a line.
//!
//! Written on cold paths only, into a file of our own under `ACLSHIM_DIR`; not to the host's
//! output. What cannot be written is dropped: the host matters more. Only that calls are lost, where neither a ring
//! nor the log can say so, is said on its standard error.

use crate::guest::edge;
use crate::guest::state::wait_until;
use crate::settings::{may_write_files, settings};
use aclshim_facts::settings::file::FileError;
use aclshim_facts::settings::{CONFIG, Setting, Stderr, Value, bytes_text};
use aclshim_facts::text::Text;
use aclshim_trace::system::clock::realtime_ns;
use aclshim_trace::system::descriptor::Descriptor;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Something that happened, as the log names it.
#[derive(Clone, Copy)]
pub enum Event {
    /// A function was called that no real library has.
    Unavailable,
    /// A setting's value made no sense.
    Setting,
    /// Calls are forwarded but cannot be recorded.
    NotRecording,
    /// The number of calls that were not recorded, logged at the end.
    NotRecorded,
    /// No thread could be started, or it ended early: records stay in the ring.
    NotDraining,
    /// A rule has ended the program.
    Aborted,
    /// A lookup was answered with the vendor's own function because all private entries are taken.
    Bypassed,
}

/// What was said already, where once a function is enough.
pub struct OncePerFunction(AtomicU32);

impl OncePerFunction {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Whether it is the first time for this function.
    pub fn is_first(&self, function: usize) -> bool {
        self.0.fetch_or(1 << function, Ordering::Relaxed) >> function & 1 == 0
    }
}

impl Event {
    fn name(self) -> &'static str {
        match self {
            Event::Unavailable => "unavailable",
            Event::Setting => "setting",
            Event::NotRecording => "not-recording",
            Event::NotRecorded => "not-recorded",
            Event::NotDraining => "not-draining",
            Event::Aborted => "aborted",
            Event::Bypassed => "bypassed",
        }
    }
}

/// The one place where a line is put together: there may be no room for it on the caller's stack.
struct LineLock {
    /// The process whose thread sits here, or 0.
    owner: AtomicU32,
    buffers: UnsafeCell<Buffers>,
}

struct Buffers {
    message: Text<480>,
    line: Text<3584>,
    path: Text<1024>,
}

// SAFETY: used by the thread that has the lock, see `with_buffers`.
unsafe impl Sync for LineLock {}

static LOCK: LineLock = LineLock {
    owner: AtomicU32::new(0),
    buffers: UnsafeCell::new(Buffers { message: Text::new(), line: Text::new(), path: Text::new() }),
};

/// Works with the buffers under the lock, unless another thread does not release it in time. A thread that had it when the
/// process forked is not in the child.
fn with_buffers(work: impl FnOnce(&mut Buffers, u32)) {
    let pid = std::process::id();
    let take = || match LOCK.owner.load(Ordering::Relaxed) {
        owner if owner == pid => false,
        owner => LOCK.owner.compare_exchange(owner, pid, Ordering::Acquire, Ordering::Relaxed).is_ok(),
    };
    if !take() {
        wait_until(|| LOCK.owner.load(Ordering::Relaxed) == 0);
        if !take() {
            return;
        }
    }
    // SAFETY: the buffers are ours until we release the lock.
    work(unsafe { &mut *LOCK.buffers.get() }, pid);
    LOCK.owner.store(0, Ordering::Release);
}

/// Writes one line. The caller's errno is changed.
pub fn line(event: Event, subject: &str, message: fmt::Arguments<'_>) {
    is_written(event, subject, message);
}

/// Writes one line; whether that was possible.
fn is_written(event: Event, subject: &str, message: fmt::Arguments<'_>) -> bool {
    let mut is_written = false;
    if !may_write_files() {
        return is_written;
    }
    with_buffers(|buffers, pid| {
        let Buffers { message: said, line, path } = buffers;
        said.clear();
        let _ = said.write_fmt(message);
        // Subject and message are cut where they are long, so that the line has room for its end
        // even if every byte of them is escaped.
        let subject = subject.as_bytes().get(..64).unwrap_or(subject.as_bytes());
        line.clear();
        let _ = write!(line, r#"{{"time_ns":{},"pid":{pid},"level":"warn","#, realtime_ns());
        let _ = write!(line, r#""event":"{}","subject":""#, event.name());
        line.push_json(subject).push(br#"","message":""#).push_json(said.as_bytes()).push(b"\"}\n");
        path.clear();
        path.push(settings().dir.as_bytes());
        let _ = write!(path, "/aclshim-{pid}.jsonl");
        if !path.is_full() {
            // SAFETY: a C string of ours.
            unsafe { libc::mkdir(settings().dir.as_c_str().as_ptr(), 0o700) };
            is_written = append(path.as_c_str(), line.as_bytes());
        }
    });
    is_written
}

/// Writes one line; where the log cannot be written, to the program's standard error, if that may be ([`may_write_stderr`]): what it
/// says stands nowhere else. Only within [`crate::guest::edge::with_signals_blocked`].
pub fn loss(event: Event, subject: &str, message: fmt::Arguments<'_>) {
    if !is_written(event, subject, message) && settings().stderr != Stderr::Off {
        with_buffers(|buffers, _| {
            buffers.line.clear();
            let _ = writeln!(buffers.line, "aclshim: {message}");
            if may_write_stderr(buffers.line.as_bytes()) {
                to_stderr(buffers.line.as_bytes());
            }
        });
    }
}

/// The last words of a program that a rule ends: to its standard error, because it was asked for, and to the log.
pub fn log_abort(function: &str, rule: &str, statement: &str, fix: &str) {
    let said =
        format_args!("{function} breaks {rule}: {statement}. {fix}. The program is ended, as ACLSHIM_RULES says.");
    edge::with_signals_blocked(|| {
        line(Event::Aborted, rule, said);
        with_buffers(|buffers, _| {
            buffers.line.clear();
            let _ = writeln!(buffers.line, "aclshim: {said}");
            to_stderr(buffers.line.as_bytes());
        });
    });
}

/// A setting where it was given: its variable, or the line of the settings file and its key.
struct Given(&'static Setting, u32);

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            0 => f.write_str(self.0.variable),
            line => write!(f, "{}:{line}: {}", ConfigFile, self.0.key()),
        }
    }
}

/// The settings file; the end of its path, where all of it would leave no room for the rest.
struct ConfigFile;

impl fmt::Display for ConfigFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = settings().config.as_bytes();
        let end = path.get(path.len().saturating_sub(240)..).unwrap_or(path);
        end.utf8_chunks().try_for_each(|chunk| f.write_str(chunk.valid()))
    }
}

/// Names a setting whose value made no sense, and what holds instead; `at` is its line in the settings file, or 0.
pub fn invalid_setting(setting: &'static Setting, at: u32) {
    let (name, given) = (setting.variable, Given(setting, at));
    match setting.value {
        Value::Choice(words) => {
            line(Event::Setting, name, format_args!("{given} must be one of {words:?}; {:?} is in force", words[0]));
        }
        Value::Bytes(default, least, most) => {
            let [default, least, most] = [default, least, most].map(bytes_text);
            let must = format_args!("{given} must be from {}{} to {}{}", least.0, least.1, most.0, most.1);
            line(Event::Setting, name, format_args!("{must}; {}{} is in force", default.0, default.1));
        }
        Value::Count(default, least, most) => {
            line(Event::Setting, name, format_args!("{given} must be from {least} to {most}; {default} is in force"));
        }
        Value::Text(_) => line(Event::Setting, name, format_args!("{given} is too long; it is not in force")),
        Value::Pattern(_) | Value::Path { .. } | Value::Library { .. } => {}
    }
}

/// Names a line of the settings file that made no sense, or the file itself.
pub fn invalid_line(at: u32, why: FileError) {
    let name = CONFIG.variable;
    match at {
        0 => line(Event::Setting, name, format_args!("{ConfigFile}: {why}; nothing of it is in force")),
        at => line(Event::Setting, name, format_args!("{ConfigFile}:{at}: {why}")),
    }
}

/// Names a part of `ACLSHIM_RULES` that made no sense.
pub fn invalid_rule(part: &[u8]) {
    let part = part.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let part = part.get(..64).unwrap_or(part);
    let must = "RULE=ACTION with a rule of `aclshim rules` and off, log, warn, refuse or abort";
    line(Event::Setting, "ACLSHIM_RULES", format_args!("ACLSHIM_RULES must hold {must}; {part:?} is not in force"));
}

/// Device and inode of standard error when we were loaded; 0 where it was closed.
#[unsafe(link_section = ".bss.startup")]
static STDERR_AT_START: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Remembers what standard error is.
pub fn remember_stderr() {
    if let Some(about) = about_stderr() {
        STDERR_AT_START[0].store(about.st_dev, Ordering::Relaxed);
        STDERR_AT_START[1].store(about.st_ino, Ordering::Relaxed);
    }
}

fn about_stderr() -> Option<libc::stat> {
    // SAFETY: all zero is a valid value, which the system fills.
    unsafe {
        let mut about = core::mem::zeroed::<libc::stat>();
        (libc::fstat(libc::STDERR_FILENO, &mut about) == 0).then_some(about)
    }
}

/// Whether a text that the program did not ask for may be written to its standard error: it is still what it was at the
/// start, and not a file of the program's that got its number; the program does not wait for a reader; no limit is
/// exceeded, which would be a signal.
fn may_write_stderr(text: &[u8]) -> bool {
    let Some(about) = about_stderr() else { return false };
    let known = STDERR_AT_START.each_ref().map(|word| word.load(Ordering::Relaxed));
    let is_same = known != [0; 2] && known == [about.st_dev, about.st_ino];
    // SAFETY: values of ours, which the system fills; all zero is valid.
    unsafe {
        let mut limit = core::mem::zeroed::<libc::rlimit>();
        let end = about.st_size.max(libc::lseek(libc::STDERR_FILENO, 0, libc::SEEK_CUR));
        let fits = about.st_mode & libc::S_IFMT != libc::S_IFREG
            || libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) == 0
                && end.cast_unsigned().saturating_add(text.len() as u64) <= limit.rlim_cur;
        // Not by `poll`: that fails where the process may have no descriptor.
        let (mut ready, mut at_once) = (core::mem::zeroed::<libc::fd_set>(), core::mem::zeroed::<libc::timeval>());
        libc::FD_SET(libc::STDERR_FILENO, &mut ready);
        let null = core::ptr::null_mut();
        is_same && fits && libc::select(libc::STDERR_FILENO + 1, null, &mut ready, null, &mut at_once) == 1
    }
}

/// Writes to the program's standard error, where it was asked for. The caller's errno is changed. A pipe without a
/// reader is no reason for a signal that ends the program: it is taken back. Only within [`crate::guest::edge::with_signals_blocked`].
pub fn to_stderr(mut text: &[u8]) {
    // SAFETY: buffers and signal sets of ours.
    unsafe {
        let mut pipe = core::mem::zeroed();
        let mut pending = core::mem::zeroed();
        libc::sigemptyset(&mut pipe);
        libc::sigaddset(&mut pipe, libc::SIGPIPE);
        libc::sigpending(&mut pending);
        let was_pending = libc::sigismember(&pending, libc::SIGPIPE) == 1;
        while !text.is_empty() {
            let written = libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
            let error = *libc::__errno_location();
            match usize::try_from(written) {
                Ok(written) if written > 0 => text = text.get(written..).unwrap_or_default(),
                Err(_) if error == libc::EINTR => {}
                Err(_) if error == libc::EPIPE && !was_pending => {
                    libc::sigtimedwait(&pipe, core::ptr::null_mut(), &core::mem::zeroed());
                    return;
                }
                _ => return,
            }
        }
    }
}

/// Prints a line that the program has asked for on its standard error.
pub fn print_line(line: fmt::Arguments<'_>) {
    edge::with_signals_blocked(|| {
        let mut text = Text::<1024>::new();
        let _ = writeln!(text, "aclshim: {line}");
        to_stderr(text.as_bytes());
    });
}

/// Appends a line to a plain file, in one piece; whether that was possible.
pub fn append(path: &CStr, line: &[u8]) -> bool {
    // SAFETY: all zero is a valid value, which the system fills.
    let mut limit = unsafe { core::mem::zeroed::<libc::rlimit>() };
    // SAFETY: a value of ours.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } != 0 {
        return false;
    }
    // A write beyond the limit would be a signal that kills the host.
    let fits = |size: libc::off_t| size >= 0 && size as u64 + line.len() as u64 <= limit.rlim_cur;
    if !fits(0) {
        return false;
    }
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let Ok(file) = Descriptor::open(path, flags, 0o600) else { return false };
    // A FIFO without a reader would be a SIGPIPE; only a plain file is written to. Where a sandbox refuses the question,
    // one that has an end is plain.
    let size = match file.about() {
        Ok(about) if about.st_mode & libc::S_IFMT == libc::S_IFREG => about.st_size,
        Ok(_) => -1,
        // SAFETY: our descriptor.
        Err(_) => unsafe { libc::lseek(file.number(), 0, libc::SEEK_END) },
    };
    // SAFETY: our descriptor, and a buffer of ours.
    fits(size) && unsafe { libc::write(file.number(), line.as_ptr().cast(), line.len()) } == line.len() as isize
}
