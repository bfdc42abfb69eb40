//! Records of processes that are gone: those that were killed before their drain had written all.
//!
//! A drain looks now and then through the ring folder. What a dead process has left for the same directory is
//! written to that process's own trace and log; a ring file with nothing left in it is removed.

use crate::directory::is_unfinished;
use crate::drain::Drain;
use crate::outside::is_blank;
use aclshim_trace::clock::monotonic_ns;
use aclshim_trace::layout::{Header, PREFIX, SUFFIX};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{Reading, Ring, RingFile, Unreadable};
use std::ffi::OsStr;
use std::fs::ReadDir;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// So long the looking may take in one go: the drain's own process must not wait for it.
const LOOK_NS: u64 = 2_000_000;

/// What a drain knows of others.
pub struct Adoption {
    own: PathBuf,
    dir: PathBuf,
    pid_ns: u64,
    /// How far the folder has been looked through.
    folder: Option<ReadDir>,
}

impl Adoption {
    /// By the drain of the process whose ring file is `own`.
    pub fn new(own: PathBuf, header: &Header) -> Self {
        let origin = Origin::new(header);
        Self { own, dir: origin.dir, pid_ns: origin.pid_ns, folder: None }
    }

    /// Looks for files of dead processes for a while, and takes care of them; `true` when all have been seen. Names
    /// are not collected: others may have put any number of them there.
    pub fn look(&mut self) -> bool {
        let Some(folder) = self.own.parent() else { return true };
        let begin = monotonic_ns();
        let Some(mut entries) = self.folder.take().or_else(|| std::fs::read_dir(folder).ok()) else { return true };
        while let Some(entry) = entries.next() {
            if let Ok(entry) = entry
                && is_nobody(&entry.file_name())
                && entry.path() != self.own
            {
                self.consider(&entry.path());
            }
            if monotonic_ns().saturating_sub(begin) > LOOK_NS {
                self.folder = Some(entries);
                return false;
            }
        }
        true
    }

    fn consider(&self, path: &Path) -> Option<()> {
        // SAFETY: asks for our own number.
        let me = unsafe { libc::geteuid() };
        let about = std::fs::symlink_metadata(path).ok().filter(|about| about.is_file() && about.uid() == me)?;
        let file = match RingFile::open(path) {
            Ok(file) => file,
            Err(Unreadable::NotOurs) => {
                // Its process was killed while it made it.
                if is_unfinished(&about) && is_blank(path) {
                    let _ = std::fs::remove_file(path);
                }
                return None;
            }
            Err(_) => return None,
        };
        let origin = Origin::new(file.header());
        if self.pid_ns == 0 || origin.pid_ns != self.pid_ns || !is_known(&origin) || !is_gone(&origin) {
            return None;
        }
        drop(file);
        let file = RingFile::open_to_drain(path).ok()?;
        // Names can change meanwhile, and a header says which files are written as us.
        let about = std::fs::symlink_metadata(path).ok()?;
        if file.owner().ok()? != me || file.inode().ok()? != about.ino() {
            return None;
        }
        if origin.dir == self.dir {
            finish(file);
        } else if is_empty(&mut { file }) {
            let _ = std::fs::remove_file(path);
        }
        Some(())
    }
}

/// Whether nobody has the number of the process that a file is named after: the others need not be opened.
fn is_nobody(name: &OsStr) -> bool {
    let name = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX));
    let pid = name.and_then(|rest| rest.split('-').next()?.parse::<libc::pid_t>().ok());
    // SAFETY: the null signal only asks.
    pid.is_some_and(|pid| pid > 0 && unsafe { libc::kill(pid, 0) } != 0)
}

/// Whether nothing is left to be drained.
fn is_empty(file: &mut RingFile) -> bool {
    let rings = file.look_for_rings();
    (0..rings).filter_map(|number| file.ring(number)).all(|ring| {
        let drained = ring.control.drained.load(Ordering::Relaxed);
        ring.end(drained) == drained
    })
}

/// Drains the file of a process that is gone, and removes it if all has been written.
pub fn finish(mut file: RingFile) {
    let mut drain = Drain::new(file.header(), "outside");
    finish_with(&mut file, &mut drain);
}

/// The same with a drain that may have begun while the process lived; whether all has been written.
pub fn finish_with(file: &mut RingFile, drain: &mut Drain) -> bool {
    file.look_for_rings();
    let moved = drain.pass(file.header(), |number| file.ring(number), Reading::Finish);
    if moved > 0 {
        drain.adopt(file.path.as_os_str().as_bytes(), moved);
    }
    if !drain.is_well() || !is_empty(file) {
        return false;
    }
    // Who wrote the rest was ended before it could say that this is the end, unless it has.
    let has_no_end =
        |ring: Ring<'_>| ring.control.drained.load(Ordering::Relaxed) != ring.control.ended.load(Ordering::Relaxed);
    if (0..file.look_for_rings()).filter_map(|number| file.ring(number)).any(has_no_end) {
        drain.begin(file.header());
    }
    // What was lost stands only here, if nobody has written it down since.
    drain.stop(file.header(), |number| file.ring(number), "the process is gone");
    let is_done = drain.is_well();
    if is_done {
        let _ = std::fs::remove_file(&file.path);
    }
    is_done
}

/// Whether the process of a file that is opened to be drained is known to be gone, wherever it ran; `pid_ns` is our own
/// pid namespace, 0 if we do not know it.
///
/// Of our own namespace `/proc` tells. In another one its number means nothing here, or somebody else: there it is gone
/// when nobody has the file mapped any more ([`RingFile::is_alone`]). Where the file system cannot say that either,
/// nothing is known before the next boot.
pub fn has_ended(file: &RingFile, origin: &Origin, pid_ns: u64) -> bool {
    if is_known(origin) && (!origin.is_of_this_boot() || (pid_ns != 0 && origin.pid_ns == pid_ns)) {
        return is_gone(origin);
    }
    file.is_alone() == Some(true)
}

/// Whether a file says which boot and which process it is of, and we know which boot this is.
fn is_known(origin: &Origin) -> bool {
    let here = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    !here.is_empty() && !origin.boot_id.is_empty() && (1..1 << 31).contains(&origin.pid)
}

/// Whether a process of our own pid namespace is known to be gone: nobody has its number, or
/// somebody who began later.
pub fn is_gone(origin: &Origin) -> bool {
    if !origin.is_of_this_boot() {
        return true;
    }
    let Ok(stat) = std::fs::read(format!("/proc/{}/stat", origin.pid)) else {
        // SAFETY: the null signal only asks.
        let asked = unsafe { libc::kill(origin.pid as libc::pid_t, 0) };
        return asked != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    };
    let behind = stat.iter().rposition(|&byte| byte == b')').map_or(0, |at| at + 1);
    let fields: Vec<_> = stat[behind..].split(|&byte| byte == b' ').filter(|field| !field.is_empty()).collect();
    let start_time = fields.get(19).and_then(|field| std::str::from_utf8(field).ok()?.parse::<u64>().ok());
    // A zombie has ended, though its parent has not asked yet.
    // (If only its first thread has, the others are counted.)
    let threads = fields.get(17).and_then(|field| std::str::from_utf8(field).ok()?.parse::<u64>().ok());
    let has_ended = matches!(fields.first(), Some(&b"Z" | &b"X")) && threads.is_none_or(|threads| threads <= 1);
    // 0 is not known.
    has_ended || start_time.is_some_and(|time| origin.start_time != 0 && time != origin.start_time)
}
