//! The folders of one run in memory: its rings, its traces, LTTng's traces.

use anyhow::{Context, Result, ensure};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Folders on tmpfs; removed at the end.
pub struct Place {
    /// `ACLSHIM_RING_DIR`.
    pub rings: PathBuf,
    /// `ACLSHIM_DIR`.
    pub out: PathBuf,
    /// A folder that stays empty: where `aclshim stat` looks for rings if it is to find none.
    pub empty: PathBuf,
    own: PathBuf,
    is_mounted: bool,
}

impl Place {
    /// New folders below `shared`, a folder in memory.
    pub fn new(shared: &Path) -> Result<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let own = shared.join(format!("keeping-{number}"));
        let [rings, out, empty] = ["rings", "out", "empty"].map(|name| own.join(name));
        for folder in [&rings, &out, &empty] {
            fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        Ok(Self { rings, out, empty, own, is_mounted: false })
    }

    /// New folders, the rings in a file system of `mib` MiB. It requires [`own_mounts`].
    pub fn limited(shared: &Path, mib: u32) -> Result<Self> {
        let mut place = Self::new(shared)?;
        let folder = CString::new(place.rings.as_os_str().as_bytes())?;
        let options = CString::new(format!("size={mib}m,mode=0700"))?;
        // SAFETY: four C strings of ours, which the system reads.
        let mounted =
            unsafe { libc::mount(c"none".as_ptr(), folder.as_ptr(), c"tmpfs".as_ptr(), 0, options.as_ptr().cast()) };
        ensure!(mounted == 0, "{}: {}", place.rings.display(), io::Error::last_os_error());
        place.is_mounted = true;
        Ok(place)
    }

    /// Shared memory that the rings take now, in KiB.
    pub fn ring_kib(&self) -> f64 {
        let files = fs::read_dir(&self.rings).into_iter().flatten().flatten();
        let blocks: u64 = files.filter_map(|file| Some(file.metadata().ok()?.blocks())).sum();
        blocks as f64 / 2.0
    }

    /// Bytes of all traces.
    pub fn trace_bytes(&self) -> u64 {
        let files = fs::read_dir(&self.out).into_iter().flatten().flatten().map(|file| file.path());
        let traces = files.filter(|path| path.extension().is_some_and(|end| end == "acltrace"));
        traces.filter_map(|path| Some(path.metadata().ok()?.len())).sum()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_mounted
            && let Ok(folder) = CString::new(self.rings.as_os_str().as_bytes())
        {
            // SAFETY: a C string of ours.
            unsafe { libc::umount2(folder.as_ptr(), libc::MNT_DETACH) };
        }
        // What cannot be removed goes with the folder of the run.
        let _ = fs::remove_dir_all(&self.own);
    }
}

/// Gives this process and its future children a mount namespace of their own: what is mounted from now on is gone with the
/// last of them, however it ends.
pub fn own_mounts() -> io::Result<()> {
    // SAFETY: a system call without memory of ours.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: C strings of ours; the other arguments are not used for a change of propagation.
    let private = unsafe {
        libc::mount(c"none".as_ptr(), c"/".as_ptr(), ptr::null(), libc::MS_REC | libc::MS_PRIVATE, ptr::null())
    };
    if private == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
