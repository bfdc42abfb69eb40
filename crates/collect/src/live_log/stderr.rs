//! What also goes to the program's standard error, if that is asked for (`ACLSHIM_STDERR`).

use aclshim_facts::settings::{self, Choice};

/// How much is written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stderr {
    /// Nothing.
    Off,
    /// What breaks a rule.
    Findings,
    /// Failed calls too.
    All,
}

impl Stderr {
    /// As much as the process has asked for, if it has a standard error.
    pub fn asked(settings: &str) -> Self {
        // SAFETY: asks about a number.
        if unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_GETFD) } < 0 {
            return Self::Off;
        }
        match settings::Stderr::recorded_in(settings) {
            Some(settings::Stderr::Findings) => Self::Findings,
            Some(settings::Stderr::All) => Self::All,
            _ => Self::Off,
        }
    }

    /// A call breaks a rule.
    pub fn finding(self, text: &str) {
        if self >= Self::Findings {
            write(text);
        }
    }

    /// A call has failed.
    pub fn failure(self, text: &str) {
        if self >= Self::All {
            write(text);
        }
    }
}

/// One line, if it can be written at once: whoever should read the other end may have stopped doing so.
fn write(text: &str) {
    let line = format!("aclshim: {}\n", text.replace('\n', " "));
    let mut ready = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: values and a buffer of ours.
    unsafe {
        if libc::poll(&mut ready, 1, 0) == 1 && ready.revents & libc::POLLOUT != 0 {
            libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len().min(libc::PIPE_BUF));
        }
    }
}
