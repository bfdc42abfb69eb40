//! What writes into a file that we made: the trace by ourselves, the log by tracing-appender.
//!
//! The appender (0.2) is given a file that is there, by a path that cannot lead elsewhere. On the
//! paths that we use it neither prints nor panics: it prints when it rotates or prunes, and
//! `Rotation::NEVER` without a maximum of files does neither; it panics in its constructors
//! `new`, `never` and so on, and we use the builder, which returns an error.

use crate::directory::identity;
use crate::failure::{Failure, Step};
use crate::names::Kind;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, IoSlice, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use tracing_appender::rolling::{RollingFileAppender, Rotation};

/// What writes.
#[derive(Debug)]
pub(crate) enum Pen {
    /// The file itself.
    File,
    /// The appender, with a descriptor of its own for the same file.
    Appender(Box<RollingFileAppender>),
    /// A disk that takes so many more bytes.
    #[cfg(test)]
    Full(usize),
}

impl Pen {
    /// A pen for `file`, which is open and stands at `path`.
    pub fn new(kind: Kind, file: &File, path: &Path) -> Result<Self, Failure> {
        match kind {
            Kind::Trace => Ok(Pen::File),
            Kind::Log => hand_over(file, path)
                .map(|appender| Pen::Appender(Box::new(appender)))
                .map_err(|error| Failure::new(Step::HandOver, path, &error)),
        }
    }

    /// One write; how many bytes were taken.
    pub fn write(&mut self, mut file: &File, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Pen::File => file.write_vectored(parts),
            Pen::Appender(appender) => {
                let part = parts.iter().find(|part| !part.is_empty());
                part.map_or(Ok(0), |part| appender.write(part))
            }
            #[cfg(test)]
            Pen::Full(0) => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            #[cfg(test)]
            Pen::Full(room) => {
                let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).take(*room).collect();
                *room -= all.len();
                file.write(&all)
            }
        }
    }
}

/// Opens the appender on exactly this file.
///
/// By its name in the directory the appender would follow a link, and would make directory and
/// file anew, readable for all, if somebody had removed them meanwhile. So it gets the name of
/// our open descriptor. `/proc/self` would be the main thread's descriptors, and ours may be in a
/// table of their own; `thread-self` came with Linux 3.17. Without `/proc` the name has to do.
fn hand_over(file: &File, path: &Path) -> io::Result<RollingFileAppender> {
    let mine = identity(&file.metadata()?);
    let descriptor = file.as_raw_fd().to_string();
    // SAFETY: asks for a number; it cannot fail.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    let by_thread = PathBuf::from(format!("/proc/self/task/{thread}/fd"));
    let is_mine = |about: io::Result<fs::Metadata>| about.is_ok_and(|about| identity(&about) == mine);
    for directory in [Path::new("/proc/thread-self/fd"), &by_thread] {
        // Only a name that leads to our file: for another the appender would make directories.
        if is_mine(fs::metadata(directory.join(&descriptor))) {
            return build(directory, &descriptor);
        }
    }
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    if !is_mine(fs::symlink_metadata(path)) {
        return Err(io::Error::from_raw_os_error(libc::ESTALE));
    }
    let appender = build(directory, name)?;
    match is_mine(fs::symlink_metadata(path)) {
        true => Ok(appender),
        false => Err(io::Error::from_raw_os_error(libc::ESTALE)),
    }
}

fn build(directory: &Path, name: &str) -> io::Result<RollingFileAppender> {
    let builder = RollingFileAppender::builder().rotation(Rotation::NEVER).filename_prefix(name);
    builder.build(directory).map_err(|error| {
        let errno = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()?.raw_os_error());
        io::Error::from_raw_os_error(errno.unwrap_or(libc::EIO))
    })
}
