//! The few lines that the shim itself has to say, as JSON, one object a line.
//!
//! Written on cold paths only, into a file of our own under `ACLSHIM_DIR`; never to the host's
//! output. What cannot be written is dropped: the host matters more. Buffers are small, because a
//! thread's stack may be.

use crate::settings::settings;
use aclshim_trace::text::Text;
use core::fmt::{self, Write};

/// Something that happened, as the log names it.
#[derive(Clone, Copy)]
pub enum Event {
    /// A function was called that no real library has.
    Unavailable,
    /// A setting's value made no sense.
    Setting,
    /// Calls are forwarded but cannot be counted.
    NotRecording,
    /// A lookup was answered with the vendor's own function because all private entries are taken.
    Bypassed,
}

impl Event {
    fn name(self) -> &'static str {
        match self {
            Event::Unavailable => "unavailable",
            Event::Setting => "setting",
            Event::NotRecording => "not-recording",
            Event::Bypassed => "bypassed",
        }
    }
}

/// Writes one line. The caller's errno is changed.
pub fn line(event: Event, subject: &str, message: fmt::Arguments<'_>) {
    if !settings().files {
        return;
    }
    // Cut where they are long, so that the line has room even if every byte is escaped.
    // SAFETY: plain system calls on values of our own.
    unsafe {
        let mut now = core::mem::zeroed::<libc::timespec>();
        libc::clock_gettime(libc::CLOCK_REALTIME, &mut now);
        let pid = libc::getpid();

        let mut said = Text::<240>::new();
        let _ = said.write_fmt(message);
        let mut line = Text::<2048>::new();
        let _ = write!(line, r#"{{"time_ns":{}{:09},"pid":{pid},"level":"warn","#, now.tv_sec, now.tv_nsec);
        let _ = write!(line, r#""event":"{}","subject":""#, event.name());
        line.push_json(subject.as_bytes().get(..64).unwrap_or(subject.as_bytes()))
            .push(br#"","message":""#)
            .push_json(said.as_bytes())
            .push(b"\"}\n");
        append(pid, line.as_bytes());
    }
}

/// # Safety
/// None that the caller has to keep; system calls only.
unsafe fn append(pid: libc::pid_t, line: &[u8]) {
    let dir = &settings().dir;
    let mut path = Text::<1024>::new();
    path.push(dir.as_bytes());
    let _ = write!(path, "/aclshim-{pid}.jsonl");
    if path.is_full() {
        return;
    }
    // SAFETY: C strings and buffers of ours; the descriptor is closed before we leave.
    unsafe {
        // A write beyond the limit would be a signal that kills the host.
        let mut limit = core::mem::zeroed::<libc::rlimit>();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) != 0 || limit.rlim_cur < 1 << 20 {
            return;
        }
        libc::mkdir(dir.as_c_str().as_ptr(), 0o700);
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND;
        let guarded = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
        let fd = libc::open(path.as_c_str().as_ptr(), guarded, 0o600);
        if fd < 0 {
            return;
        }
        let mut about = core::mem::zeroed::<libc::stat>();
        // A FIFO without a reader would be a SIGPIPE; only a plain file is written to.
        if libc::fstat(fd, &mut about) == 0 && about.st_mode & libc::S_IFMT == libc::S_IFREG {
            libc::write(fd, line.as_ptr().cast(), line.len());
        }
        libc::close(fd);
    }
}
