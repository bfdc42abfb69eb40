//! Where metrics are published: on a UNIX socket, and in a file.

use super::diagnostics::report;
use super::metrics::{Metrics, MetricsFormat};
use super::server;
use crate::files;
use anyhow::{Context, Result, bail};
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// A socket that answers requests for metrics; removed in the end.
pub struct Socket {
    path: PathBuf,
    inode: u64,
}

impl Socket {
    /// Answers on a socket at `path` from now on.
    pub fn serve(path: &Path, metrics: Arc<Mutex<Metrics>>) -> Result<Self> {
        let listener = listen(path).with_context(|| path.display().to_string())?;
        let inode = fs::symlink_metadata(path)?.ino();
        listener.set_nonblocking(true)?;
        let listening = std::thread::Builder::new().spawn(move || server::serve(&listener, &metrics));
        listening.with_context(|| format!("{}: no thread can be started", path.display()))?;
        Ok(Self { path: path.to_owned(), inode })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Another collector's socket may be there by now.
        if fs::symlink_metadata(&self.path).is_ok_and(|about| about.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn listen(path: &Path) -> Result<UnixListener> {
    if let Ok(about) = fs::symlink_metadata(path) {
        if !about.file_type().is_socket() {
            bail!("there is a file of that name, and it is no socket; give another path, or remove it");
        }
        match UnixStream::connect(path) {
            Ok(_) => bail!("somebody answers there already; stop the other collector, or give another path"),
            // One that was killed has left it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            Err(error) => return Err(error.into()),
        }
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o666))?;
    Ok(listener)
}

/// Writes a text to a file; a reader sees the old content or the new one.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o644).custom_flags(flags);
    files::replace(path, |new| {
        let mut file = options.open(new)?;
        file.write_all(text.as_bytes())?;
        // The umask may have taken the reader's rights away.
        file.set_permissions(Permissions::from_mode(0o644))
    })
}

/// The file that metrics are written to.
pub struct Textfile<'a> {
    path: &'a Path,
    /// When it was last written.
    pub written: Option<Instant>,
    is_troubled: bool,
}

impl<'a> Textfile<'a> {
    /// The file is written when it is asked for.
    pub fn new(path: &'a Path) -> Self {
        Self { path, written: None, is_troubled: false }
    }

    /// Writes the metrics to the file; a failure is reported once.
    pub fn write(&mut self, metrics: &Mutex<Metrics>) {
        self.written = Some(Instant::now());
        let text = metrics.lock().unwrap_or_else(PoisonError::into_inner).render(MetricsFormat::Text);
        match write(self.path, &text) {
            Ok(()) => self.is_troubled = false,
            Err(error) if !self.is_troubled => {
                let path = self.path.display();
                report(format_args!("aclshim: {path}: the metrics cannot be written: {error}; tried again"));
                self.is_troubled = true;
            }
            Err(_) => {}
        }
    }
}
