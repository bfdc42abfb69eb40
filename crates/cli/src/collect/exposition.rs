//! Where metrics are told: on a UNIX socket to whoever asks, and in a file.

use super::metrics::{Format, Metrics};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many are answered at a time.
const MOST: usize = 16;
/// So long somebody may take to ask, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest request.
const LONGEST: usize = 16 * 1024;

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
        let asking = Arc::new(AtomicUsize::new(0));
        let listening = std::thread::Builder::new().spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else {
                    // No descriptor is free, most likely.
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                };
                if asking.load(Ordering::Relaxed) >= MOST {
                    continue;
                }
                asking.fetch_add(1, Ordering::Relaxed);
                let (asking, metrics) = (asking.clone(), metrics.clone());
                let asker = Asker(asking);
                // Where there is no thread to be had, whoever asks may ask again.
                let _ = std::thread::Builder::new().spawn(move || {
                    let _ = answer(stream, &metrics);
                    drop(asker);
                });
            }
        });
        listening.with_context(|| format!("{}: no thread can be started", path.display()))?;
        Ok(Self { path: path.to_owned(), inode })
    }
}

/// One of those who are being answered.
struct Asker(Arc<AtomicUsize>);

impl Drop for Asker {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Somebody else's may be there by now.
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

/// Answers one request of HTTP 1.
fn answer(mut stream: UnixStream, metrics: &Mutex<Metrics>) -> io::Result<()> {
    let begin = Instant::now();
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < LONGEST {
        let left = PATIENCE.checked_sub(begin.elapsed()).filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(io::ErrorKind::TimedOut)?))?;
        match stream.read(&mut buffer)? {
            0 => break,
            read => request.extend(&buffer[..read]),
        }
    }
    let line = request.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let (status, content, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => {
            let body = metrics.lock().unwrap_or_else(PoisonError::into_inner).render(Format::OpenMetrics);
            ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", body)
        }
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "Ask for /metrics.\n".to_owned()),
        _ => ("405 Method Not Allowed", "text/plain", "Ask by GET.\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    Ok(())
}

/// Replaces a file as a whole: whoever reads it sees the old one or the new one.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut unfinished = OsString::from(".");
    unfinished.push(name);
    unfinished.push(".unfinished");
    let unfinished = path.with_file_name(unfinished);
    // One that was killed may have left it.
    let _ = fs::remove_file(&unfinished);
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).custom_flags(flags).open(&unfinished)?;
    let written = file
        .write_all(text.as_bytes())
        // The umask may have taken the reader's rights away.
        .and_then(|()| file.set_permissions(Permissions::from_mode(0o644)))
        .and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}
