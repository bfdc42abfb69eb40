//! The directory that files are made in: opened for each new file and not kept, so that one that
//! was removed and made again is found, and so that a host's `chroot` or `closefrom` meets little.
//!
//! The directory itself may be reached through a link (users put large output elsewhere that
//! way); a file of ours is never made, written or removed through one.

use crate::storage::failure::{Failure, Step};
use std::ffi::{CString, OsStr};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file's identity: device and inode.
pub(crate) type Identity = (u64, u64);

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    file: File,
}

impl Directory {
    /// Opens a directory; makes it (0700), but not its parents, if it is missing. The path must be
    /// absolute: the host may change its working directory at any time.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: &io::Error| Failure::new(Step::Directory, path, error);
        if !path.is_absolute() {
            return Err(failed(&io::Error::from_raw_os_error(libc::EINVAL)));
        }
        let open = || OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path);
        let mut file = open();
        if file.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENOENT)) {
            match DirBuilder::new().mode(0o700).create(path) {
                // The umask may have taken the owner's own rights away.
                Ok(()) => std::fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(|e| failed(&e))?,
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {}
                Err(error) => return Err(failed(&error)),
            }
            file = open();
        }
        let file = file.map_err(|error| failed(&error))?;
        Ok(Self { path: path.to_path_buf(), file })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file that was not there, readable and writable for its owner only, and holds it
    /// so that others see that it is in use.
    pub fn create(&self, name: &str) -> Result<File, Failure> {
        let failed = |error: &io::Error| Failure::new(Step::Create, &self.path.join(name), error);
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_APPEND;
        let file = self.open_at(OsStr::new(name), flags).map_err(|error| failed(&error))?;
        // A file system that knows no locks knows none for others either: then no process removes it.
        hold(&file);
        let settled = file
            .set_permissions(Permissions::from_mode(0o600))
            .and_then(|()| file.metadata())
            .and_then(|about| about.is_file().then_some(()).ok_or(io::Error::from_raw_os_error(libc::EINVAL)));
        match settled {
            Ok(()) => Ok(file),
            Err(error) => {
                let _ = self.remove(OsStr::new(name));
                Err(failed(&error))
            }
        }
    }

    /// Opens a file that is there, never through a link and never waiting for one that is a pipe.
    pub fn open_at(&self, name: &OsStr, flags: i32) -> io::Result<File> {
        let name = CString::new(name.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        let flags = flags | libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let mode: libc::mode_t = 0o600;
        // SAFETY: an open descriptor and a C string, both ours.
        let fd = unsafe { libc::openat(self.file.as_raw_fd(), name.as_ptr(), flags, mode) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        Ok(unsafe { File::from_raw_fd(fd) })
    }

    /// Removes a file.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        let name = CString::new(name.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        // SAFETY: an open descriptor and a C string, both ours.
        match unsafe { libc::unlinkat(self.file.as_raw_fd(), name.as_ptr(), 0) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Takes the lock that says "in use", without waiting. Whether it was free.
pub(crate) fn hold(file: &File) -> bool {
    // SAFETY: an open descriptor of ours.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// A file's identity.
pub(crate) fn identity(about: &std::fs::Metadata) -> Identity {
    (about.dev(), about.ino())
}

/// Whether a file without a beginning is so old that no process is just making it: the one that did was killed.
pub(crate) fn is_unfinished(about: &std::fs::Metadata) -> bool {
    const OLD: Duration = Duration::from_secs(60);
    about.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age > OLD))
}

/// How long a file of this process may become. A write beyond it would be SIGXFSZ.
pub(crate) fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the system fills a value of ours.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    if known { limit.rlim_cur } else { libc::RLIM_INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn the_last_component_is_made_and_no_more() {
        let scratch = Scratch::new("made");
        let path = scratch.path().join("out");
        Directory::open(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        let failure = Directory::open(&path.join("a/b")).unwrap_err();
        assert_eq!((failure.step, failure.errno), (Step::Directory, libc::ENOENT));
    }

    #[test]
    fn a_file_or_a_relative_path_is_no_directory() {
        let scratch = Scratch::new("file");
        let path = scratch.path().join("file");
        fs::write(&path, "").unwrap();
        assert_eq!(Directory::open(&path).unwrap_err().errno, libc::ENOTDIR);
        assert_eq!(Directory::open(Path::new("out")).unwrap_err().errno, libc::EINVAL);
    }

    #[test]
    fn a_directory_may_be_a_link_and_a_file_may_not() {
        let scratch = Scratch::new("link");
        let (real, link) = (scratch.path().join("real"), scratch.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        let directory = Directory::open(&link).unwrap();

        let victim = scratch.path().join("victim");
        symlink(&victim, real.join("dangling.jsonl")).unwrap();
        assert_eq!(directory.create("dangling.jsonl").unwrap_err().errno, libc::EEXIST);
        assert!(!victim.exists());
        assert_eq!(
            directory.open_at(OsStr::new("dangling.jsonl"), libc::O_WRONLY).unwrap_err().raw_os_error(),
            Some(libc::ELOOP)
        );

        directory.create("a.jsonl").unwrap();
        assert_eq!(mode(&real.join("a.jsonl")), 0o600);
        assert_eq!(directory.create("a.jsonl").unwrap_err().errno, libc::EEXIST);
    }

    #[test]
    fn a_file_that_is_written_is_seen_to_be_in_use() {
        let scratch = Scratch::new("held");
        let directory = Directory::open(scratch.path()).unwrap();
        let file = directory.create("a.jsonl").unwrap();
        let other = File::open(scratch.path().join("a.jsonl")).unwrap();
        assert!(!hold(&other));
        drop(file);
        assert!(hold(&other));
    }
}
