//! Records of processes that are gone: those that were killed before their drain had written all.
//!
//! A drain looks now and then through the ring folder. What a dead process has left for its own directory is
//! written to that process's own trace and log; a ring file with nothing left in it is removed.

use crate::drain::{Drain, Losses, losses};
use crate::liveness::{Liveness, View};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{ReadMode, RingFile};
use aclshim_trace::ring::layout::{Header, PREFIX, SUFFIX};
use aclshim_trace::system::clock::monotonic_ns;
use std::ffi::OsStr;
use std::fs::ReadDir;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// So long the looking may take in one go: the drain's own process must not wait for it.
const LOOK_NS: u64 = 2_000_000;
/// Number of looks from one that opens each file to the next such look: see [`is_likely`].
const THOROUGH: u64 = 60;

/// What a drain knows of others.
pub struct Adoption {
    own: PathBuf,
    dir: PathBuf,
    /// How far the folder has been looked through.
    folder: Option<ReadDir>,
    /// How often all of it has been.
    looks: u64,
}

impl Adoption {
    /// By the drain of the process whose ring file is `own`.
    pub fn new(own: PathBuf, header: &Header) -> Self {
        Self { own, dir: Origin::new(header).dir, folder: None, looks: 0 }
    }

    /// Looks for files of dead processes for a while, and takes care of them; `true` when all have been seen. Names
    /// are not collected: others may have put any number of them there.
    pub fn look(&mut self) -> bool {
        let Some(folder) = self.own.parent() else { return true };
        let begin = monotonic_ns();
        let Some(mut entries) = self.folder.take().or_else(|| std::fs::read_dir(folder).ok()) else { return true };
        let is_thorough = self.looks.is_multiple_of(THOROUGH);
        // Made when it is needed: it costs more system calls than the rest of the look.
        let mut view = None;
        while let Some(entry) = entries.next() {
            if let Ok(entry) = entry
                && pid_of(&entry.file_name()).is_some_and(|pid| is_thorough || is_likely(pid))
                && entry.path() != self.own
            {
                self.consider(&entry.path(), view.get_or_insert_with(View::new));
            }
            if monotonic_ns().saturating_sub(begin) > LOOK_NS {
                self.folder = Some(entries);
                return false;
            }
        }
        self.looks += 1;
        true
    }

    fn consider(&self, path: &Path, view: &View) -> Option<()> {
        // SAFETY: asks for our own number.
        let me = unsafe { libc::geteuid() };
        std::fs::symlink_metadata(path).ok().filter(|about| about.is_file() && about.uid() == me)?;
        let mut file = RingFile::open(path).ok()?;
        let origin = Origin::new(file.header());
        let is_for_us = origin.dir == self.dir;
        // Losses that are in no log yet are left to the drains of that directory.
        if !is_for_us && !is_told(&mut file) {
            return None;
        }
        if view.of_ring(file.file(), &origin) != Liveness::Gone {
            return None;
        }
        drop(file);
        let mut file = RingFile::open_to_drain(path).ok()?;
        // Names can change meanwhile, and a header says which files are written as us.
        let about = std::fs::symlink_metadata(path).ok()?;
        if file.owner().ok()? != me || file.inode().ok()? != about.ino() {
            return None;
        }
        if is_for_us {
            finish(file);
        } else if is_told(&mut file) && is_empty(&mut file) {
            let _ = std::fs::remove_file(path);
        }
        Some(())
    }
}

/// The pid that a file is named after.
fn pid_of(name: &OsStr) -> Option<libc::pid_t> {
    let name = name.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    name.split('-').next()?.parse().ok().filter(|pid| *pid > 0)
}

/// Whether a file named after this pid is worth opening: no process has it, or it is our own, and the program that was here
/// before `exec` has left the file.
///
/// This is not proof of anything: the name may be of another pid namespace. It saves opening the files of all living
/// processes each time.
fn is_likely(pid: libc::pid_t) -> bool {
    // SAFETY: the null signal only asks.
    pid as u32 == std::process::id() || unsafe { libc::kill(pid, 0) } != 0
}

/// Whether nothing is left to be drained.
fn is_empty(file: &mut RingFile) -> bool {
    let rings = file.look_for_rings();
    let is_drained = (0..rings).filter_map(|number| file.ring(number)).all(|ring| {
        let drained = ring.control.drained.load(Ordering::Relaxed);
        ring.end(drained) == drained
    });
    is_drained && file.is_whole()
}

/// Whether an orderly end is written behind all that was drained.
fn is_ended(file: &mut RingFile) -> bool {
    let rings = file.look_for_rings();
    let mut controls = (0..rings).filter_map(|number| file.ring(number)).map(|ring| ring.control);
    controls.all(|control| control.drained.load(Ordering::Relaxed) == control.ended.load(Ordering::Relaxed))
}

/// Whether its end is written, and there is no loss that may stand only here.
fn is_told(file: &mut RingFile) -> bool {
    is_ended(file) && losses(file.header(), |number| file.ring(number)) == Losses::default()
}

/// Drains the file of a process that is gone, and removes it if all has been written.
pub fn finish(mut file: RingFile) {
    let mut drain = Drain::outside(file.header());
    finish_with(&mut file, &mut drain);
}

/// As [`finish`], with a drain that may have begun while the process lived. Returns whether all has been written.
pub fn finish_with(file: &mut RingFile, drain: &mut Drain) -> bool {
    let is_done = write_all(file, drain);
    if is_done {
        let _ = std::fs::remove_file(&file.path);
    }
    is_done
}

/// As [`finish_with`], and leaves the file where it is.
pub fn write_all(file: &mut RingFile, drain: &mut Drain) -> bool {
    let is_done = drain_all(file, drain);
    file.write_back();
    is_done
}

fn drain_all(file: &mut RingFile, drain: &mut Drain) -> bool {
    file.look_for_rings();
    let moved = drain.pass(file.header(), |number| file.ring(number), ReadMode::Finish);
    if moved > 0 {
        drain.adopt(file.path.as_os_str().as_bytes(), moved);
    }
    if !is_empty(file) {
        return false;
    }
    // Who wrote the rest was ended before it could say that this is the end, unless it has; and what was lost stands
    // only here, unless a drain has written it since.
    if !is_told(file) {
        drain.begin(file.header());
    }
    drain.stop(file.header(), |number| file.ring(number), "the process is gone");
    // What went wrong earlier is over by now if it could be written.
    drain.is_well()
}
