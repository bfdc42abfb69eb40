//! The program as our child: started with what we were given, sent the signals that we are sent, and waited for.

use super::group_signal::{GroupSignalDetector, only, take_pending};
use std::ffi::{CString, c_char, c_int};
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// What Rust's runtime changes before `main`: whether SIGPIPE was ignored, and which of the first three descriptors were closed.
static IGNORED_PIPE: AtomicBool = AtomicBool::new(false);
static CLOSED: AtomicU8 = AtomicU8::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    IGNORED_PIPE.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    for fd in 0..3 {
        // SAFETY: only asks.
        let is_closed = unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0;
        CLOSED.fetch_or(u8::from(is_closed) << fd, Ordering::Relaxed);
    }
}

fn is_ignored(signal: c_int) -> bool {
    // SAFETY: only asks.
    unsafe {
        let mut action = zeroed::<libc::sigaction>();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

fn set_default(signal: c_int) {
    // SAFETY: nothing here relies on a handler.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// All signals blocked; what was blocked before is blocked again when this is dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn new() -> Self {
        // SAFETY: sets of ours.
        unsafe {
            let mut before = zeroed();
            libc::pthread_sigmask(libc::SIG_SETMASK, &all(), &mut before);
            Self(before)
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // The signal that ended the program must not end us before the summary is printed.
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: sets and times of ours.
        unsafe {
            while libc::sigtimedwait(&all(), std::ptr::null_mut(), &none) > 0 {}
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut());
        }
    }
}

fn all() -> libc::sigset_t {
    // SAFETY: a set of ours.
    unsafe {
        let mut set = zeroed();
        libc::sigfillset(&mut set);
        set
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramEnd {
    Exited(u8),
    /// It was ended by this signal.
    Killed(c_int),
}

/// The running program.
pub struct Child {
    pid: libc::pid_t,
    detector: GroupSignalDetector,
    blocked: Blocked,
}

impl Child {
    /// Starts it. There must be one thread. The inner error is that of a program that could not be started.
    pub fn start(command: &[CString], environment: &[CString]) -> io::Result<Result<Self, io::Error>> {
        let blocked = Blocked::new();
        // A process that ignores it cannot wait for the status of its children.
        let ignored_child = is_ignored(libc::SIGCHLD);
        set_default(libc::SIGCHLD);
        let detector = GroupSignalDetector::start()?;
        let mut ends = [0; 2];
        // SAFETY: two descriptors of ours.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let pointers = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let (arguments, variables) = (pointers(command), pointers(environment));
        // SAFETY: there is one thread; the child makes system calls only.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: as above; all pointers are to C strings and end with NULL.
            unsafe {
                let action = |is_ignored| if is_ignored { libc::SIG_IGN } else { libc::SIG_DFL };
                libc::signal(libc::SIGPIPE, action(IGNORED_PIPE.load(Ordering::Relaxed)));
                libc::signal(libc::SIGCHLD, action(ignored_child));
                let closed = CLOSED.load(Ordering::Relaxed);
                (0..3).filter(|fd| closed >> fd & 1 == 1).for_each(|fd| _ = libc::close(fd));
                libc::pthread_sigmask(libc::SIG_SETMASK, &blocked.0, std::ptr::null_mut());
                libc::execvpe(arguments[0], arguments.as_ptr(), variables.as_ptr());
                let why = (*libc::__errno_location()).to_ne_bytes();
                libc::write(ends[1], why.as_ptr().cast(), why.len());
                libc::_exit(127);
            }
        }
        let forked = if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
        let mut why = [0; 4];
        // SAFETY: descriptors and a buffer of ours. The pipe ends without a word when the program has started.
        let is_refused = unsafe {
            libc::close(ends[1]);
            let read = libc::read(ends[0], why.as_mut_ptr().cast(), why.len());
            libc::close(ends[0]);
            read == 4
        };
        forked?;
        if is_refused {
            // SAFETY: our own child.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            detector.dismiss();
            return Ok(Err(io::Error::from_raw_os_error(i32::from_ne_bytes(why))));
        }
        Ok(Ok(Self { pid, detector, blocked }))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.pid as u32
    }

    /// Waits for its end. Signals are passed on meanwhile, and when it stops, so do we.
    pub fn wait(mut self) -> ProgramEnd {
        let end = loop {
            let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
            // SAFETY: values of ours, filled if a signal came.
            let (signal, info) = unsafe { (libc::sigwaitinfo(&all(), info.as_mut_ptr()), info.assume_init()) };
            match signal {
                libc::SIGCHLD => {
                    if let Some(end) = self.look() {
                        break end;
                    }
                }
                signal if signal > 0 => _ = self.pass_on(signal, &info),
                _ => {}
            }
        };
        self.detector.dismiss();
        drop(self.blocked);
        end
    }

    /// Looks how children are; others than the program are ours only as the first process of a container.
    fn look(&mut self) -> Option<ProgramEnd> {
        loop {
            let mut status = 0;
            // SAFETY: a value of ours.
            let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG | libc::WUNTRACED) };
            match pid {
                pid if pid <= 0 => return None,
                pid if pid == self.detector.pid => {
                    self.detector.is_gone = libc::WIFEXITED(status) || libc::WIFSIGNALED(status)
                }
                pid if pid != self.pid => {}
                _ if libc::WIFEXITED(status) => return Some(ProgramEnd::Exited(libc::WEXITSTATUS(status) as u8)),
                _ if libc::WIFSIGNALED(status) => return Some(ProgramEnd::Killed(libc::WTERMSIG(status))),
                _ if libc::WIFSTOPPED(status) => self.stop(libc::WSTOPSIG(status)),
                _ => {}
            }
        }
    }

    /// Stops when the program has stopped, so that a shell that waits for us sees it.
    ///
    /// By SIGSTOP, whatever stopped the program: a signal such as SIGTSTP stops only who does not block it, and between
    /// our continuation and blocking it again the next one would stop us without being passed on.
    fn stop(&mut self, signal: c_int) {
        match take_pending(libc::SIGCONT) {
            // To stop discards a pending SIGCONT: it may be the one that is to continue the program.
            Some(info) => {
                if self.pass_on(libc::SIGCONT, &info) {
                    return;
                }
            }
            // A later stop signal has discarded ours. The detector's must not be there when the next one comes.
            None => _ = self.detector.got(libc::SIGCONT),
        }
        // Sent to the whole group, the signal that stopped the program is pending here and at the detector.
        self.discard_of_group(signal);
        self.detector.wake_us_after(self.pid);
        // SAFETY: this thread, so that the process has stopped before the next statement; see `libc::raise`.
        unsafe { libc::raise(libc::SIGSTOP) };
        self.detector.forget();
        // To be continued discards the stop signals that are pending here, but not the detector's.
        self.discard_of_group(signal);
    }

    /// Discards a signal that the whole group was sent: the program has it already.
    fn discard_of_group(&mut self, signal: c_int) {
        if self.detector.got(signal) {
            take_pending(signal);
        }
    }

    /// Whether it had to be.
    fn pass_on(&mut self, signal: c_int, info: &libc::siginfo_t) -> bool {
        // Asked in any case: it must not be there when the next one comes.
        let is_of_group = self.detector.got(signal);
        // SAFETY: a signal that a process has sent names its sender.
        let sender = if info.si_code <= 0 { unsafe { info.si_pid() } } else { 0 };
        // SAFETY: asks for a number.
        let us = unsafe { libc::getpid() };
        if is_of_group || sender == us || sender == self.detector.pid {
            return false;
        }
        // A signal that the program sends to its parent is meant for the process that started us.
        // SAFETY: only asks.
        let to = if sender == self.pid { unsafe { libc::getppid() } } else { self.pid };
        // SAFETY: the child has not been waited for: its number is its own. The value is passed on as it came.
        unsafe {
            match info.si_code {
                libc::SI_QUEUE => libc::sigqueue(to, signal, info.si_value()),
                _ => libc::kill(to, signal),
            };
        }
        if signal == libc::SIGCONT && to == self.pid {
            self.repeat_stops();
        }
        true
    }

    /// Sends the program the stop signals that are pending here, also those that the whole group was sent.
    ///
    /// They came after the SIGCONT that was passed on just now, since a SIGCONT discards earlier ones, but may have reached
    /// the program before it, which then discarded them there.
    fn repeat_stops(&mut self) {
        for signal in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
            // Only what is pending here: the detector's may be older than the SIGCONT.
            self.detector.got(signal);
            if take_pending(signal).is_some() {
                // SAFETY: as in `pass_on`.
                unsafe { libc::kill(self.pid, signal) };
            }
        }
    }
}

/// Ends this process by a signal, as the program was; returns if that cannot be.
pub fn end_by(signal: c_int) {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    set_default(signal);
    // SAFETY: concerns this process only. What the program left as a core need not be written again by us.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::kill(libc::getpid(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &only(signal), std::ptr::null_mut());
    }
}
