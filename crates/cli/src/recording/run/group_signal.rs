//! A helper process in our process group that detects whether a signal was sent to the whole group or to us alone.
//!
//! A Ctrl-C on a terminal, or a shell's `kill %1`, reaches the program without us; a plain `kill` of our number does not.
//! The signal itself does not say which it was. The helper blocks all signals: a signal that is pending there was sent to the
//! group.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Our end of the helper process.
pub struct GroupSignalDetector {
    pub pid: libc::pid_t,
    line: UnixStream,
    /// Whether it has been waited for: its number may be another's.
    pub is_gone: bool,
}

const ASK: u8 = 0;
const WATCH: u8 = 1;
const FORGET: u8 = 2;

impl GroupSignalDetector {
    /// Starts it. All signals must be blocked, and there must be one thread.
    pub fn start() -> io::Result<Self> {
        let (line, other) = UnixStream::pair()?;
        // SAFETY: asks for our own number.
        let us = unsafe { libc::getpid() };
        // SAFETY: there is one thread: the child may do what it likes.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(line);
                stand(other, us);
                // SAFETY: nothing of ours is to be done at the end of this process.
                unsafe { libc::_exit(0) }
            }
            pid => {
                line.set_read_timeout(Some(Duration::from_millis(50)))?;
                Ok(Self { pid, line, is_gone: false })
            }
        }
    }

    /// Whether the whole group was sent a signal that we have got.
    pub fn got(&mut self, signal: libc::c_int) -> bool {
        // The kernel sends a signal to a group under a lock that setpgid waits for: afterwards the signal is pending at the
        // helper, if it was sent to the group.
        if self.is_gone {
            return false;
        }
        // SAFETY: leaves the detector in the group where it is.
        unsafe { libc::setpgid(self.pid, libc::getpgrp()) };
        self.ask(ASK, signal)
    }

    /// Has us continued when the program is no longer stopped and we are: only the program may have been continued.
    pub fn wake_us_after(&mut self, program: libc::pid_t) {
        self.ask(WATCH, program);
    }

    /// We are awake: from here on it does not continue us any more.
    pub fn forget(&mut self) {
        self.ask(FORGET, 0);
    }

    fn ask(&mut self, kind: u8, of: i32) -> bool {
        let [a, b, c, d] = of.to_le_bytes();
        let mut answer = [0];
        let mut asked = self.line.write_all(&[kind, a, b, c, d]);
        let mut was_woken = false;
        while asked.is_ok() {
            asked = self.line.read_exact(&mut answer);
            match &asked {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => asked = Ok(()),
                _ => break,
            }
            // The whole group was stopped, and only a part of it continued.
            if !self.is_gone && is_stopped(self.pid) {
                was_woken = true;
                // SAFETY: our own child.
                unsafe { libc::kill(self.pid, libc::SIGCONT) };
            }
        }
        let is_yes = asked.is_ok() && answer[0] == 1;
        if !was_woken {
            return is_yes;
        }
        if kind == ASK && of == libc::SIGCONT {
            // It has ours: had the group been sent one, it would not have been stopped.
            return false;
        }
        self.ask(ASK, libc::SIGCONT);
        is_yes
    }

    /// Ends the helper.
    pub fn dismiss(self) {
        let Self { pid, line, is_gone } = self;
        drop(line);
        if is_gone {
            return;
        }
        // It may be stopped, and has nothing left to do.
        // SAFETY: our own child.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), 0);
        }
    }
}

/// The loop of the helper process, until we are gone.
fn stand(mut line: UnixStream, us: libc::pid_t) {
    close_others(std::os::fd::AsRawFd::as_raw_fd(&line));
    let mut order = [0; 5];
    let mut watched = None;
    let mut was_left = false;
    loop {
        let _ = line.set_read_timeout(watched.map(|_| Duration::from_millis(20)));
        match line.read_exact(&mut order) {
            Ok(()) => {
                let [kind, of @ ..] = order;
                let of = i32::from_le_bytes(of);
                let answer = kind == ASK && take_pending(of).is_some();
                if kind != ASK {
                    watched = (kind == WATCH).then_some(of);
                    was_left = false;
                }
                if line.write_all(&[u8::from(answer)]).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let is_left = watched.is_some_and(|program| !is_stopped(program)) && is_stopped(us);
                // Seen twice: a signal that continues the group reaches one process after the other. One SIGCONT too many
                // would discard a stop signal that has come since.
                if is_left && was_left {
                    watched = None;
                    // SAFETY: our parent, as long as it is that.
                    unsafe { (libc::getppid() == us).then(|| libc::kill(us, libc::SIGCONT)) };
                }
                was_left = is_left;
            }
            Err(_) => return,
        }
    }
}

/// Closes all descriptors but one: a pipe that the helper held open would never reach its end.
fn close_others(except: libc::c_int) {
    let except = except as libc::c_uint;
    // SAFETY: concerns this process's descriptors only, and the others are not used.
    unsafe {
        if libc::syscall(libc::SYS_close_range, except + 1, libc::c_uint::MAX, 0) != 0 {
            (0..1024).filter(|&fd| fd != except).for_each(|fd| _ = libc::close(fd as libc::c_int));
        }
        (0..except).for_each(|fd| _ = libc::close(fd as libc::c_int));
    }
}

/// A signal that is pending for this process, taken; `None` if it is not pending.
pub fn take_pending(signal: libc::c_int) -> Option<libc::siginfo_t> {
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: values of ours, filled if a signal came.
    unsafe {
        let mut info = std::mem::zeroed::<libc::siginfo_t>();
        (libc::sigtimedwait(&only(signal), &mut info, &now) == signal).then_some(info)
    }
}

/// The set of one signal.
pub fn only(signal: libc::c_int) -> libc::sigset_t {
    // SAFETY: a set of ours.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        set
    }
}

fn is_stopped(process: libc::pid_t) -> bool {
    let stat = std::fs::read(format!("/proc/{process}/stat")).unwrap_or_default();
    let behind = stat.iter().rposition(|&byte| byte == b')').map_or(0, |at| at + 2);
    stat.get(behind) == Some(&b'T')
}
