//! Where records go: the folder for files, and the one for rings.

use super::report::{DoctorReport, many};
use super::setup::is;
use crate::files::{c_path, may, processes};
use aclshim_collect::liveness::{Liveness, View};
use aclshim_facts::settings::{BUDGET, DIR, DRAIN, RING_DIR, RING_SIZE, Setting};
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{RingReader, files};
use aclshim_trace::ring::layout::{CONTROL, UNIT};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes as people read them.
fn human(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// A path that a setting names.
fn path_of(setting: &Setting) -> Option<PathBuf> {
    std::env::var_os(setting.variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A number that a setting names, or its default.
fn number_of(setting: &Setting) -> u64 {
    let given = std::env::var(setting.variable).ok();
    given.and_then(|given| setting.number(given.as_bytes())).unwrap_or(setting.default_number())
}

/// Whether files may be made in a folder.
fn is_writable(folder: &Path) -> bool {
    may(folder, libc::W_OK | libc::X_OK)
}

/// The bytes that are free in a folder, and the kind of its file system.
fn free_space(folder: &Path) -> Option<(u64, i64)> {
    let path = c_path(folder)?;
    // SAFETY: zero is a valid answer, which is filled in.
    unsafe {
        let mut about = std::mem::zeroed::<libc::statfs>();
        (libc::statfs(path.as_ptr(), &mut about) == 0)
            .then(|| (about.f_bavail as u64 * about.f_bsize as u64, about.f_type as i64))
    }
}

/// Looks at the folder for traces and logs.
pub fn output(report: &mut DoctorReport) {
    report.group = "where records go";
    let given = path_of(&DIR);
    let here = std::env::current_dir().unwrap_or_default();
    if given.is_none() && here == Path::new("/") {
        report.problem("dir", "ACLSHIM_DIR is not set, and in / no files are made", "set ACLSHIM_DIR to a folder");
        return;
    }
    let dir = here.join(given.unwrap_or_else(|| "aclshim-out".into()));
    let nearest = dir.ancestors().find(|folder| folder.exists()).unwrap_or(&dir);
    let shown = dir.display();
    if !nearest.is_dir() {
        let seen = format!("{}, on the way to ACLSHIM_DIR {shown}, is not a folder", nearest.display());
        return report.problem("dir", seen, "set ACLSHIM_DIR to a folder");
    }
    // It is made if need be, but not the folders above it.
    if !dir.exists() && dir.parent() != Some(nearest) {
        let above = dir.parent().unwrap_or(&dir).display();
        let seen = format!("{above} does not exist, and ACLSHIM_DIR {shown} is not made without it");
        return report.problem("dir", seen, format!("mkdir -p {shown}"));
    }
    if !is_writable(nearest) {
        let seen = format!("no files can be made in {}, for ACLSHIM_DIR {shown}", nearest.display());
        return report.problem("dir", seen, "set ACLSHIM_DIR to a folder that you may write to");
    }
    let (free, _) = free_space(nearest).unwrap_or((u64::MAX, 0));
    let budget = number_of(&BUDGET);
    let will = if dir.exists() { "" } else { " (will be made)" };
    if free < BUDGET.number(b"4M").unwrap_or(0) {
        report.problem(
            "dir",
            format!("ACLSHIM_DIR {shown}: only {} are free", human(free)),
            "make room, or set ACLSHIM_DIR",
        );
    } else if free < budget {
        let seen = format!("ACLSHIM_DIR {shown}: {} are free, and traces may take {}", human(free), human(budget));
        report.warning(
            "dir",
            seen,
            "make room, or set ACLSHIM_BUDGET to less: the oldest traces are then removed in time",
        );
    } else {
        report.ok("dir", format!("ACLSHIM_DIR {shown}{will}: {} are free", human(free)));
    }
}

/// Looks at the folder for rings, and at what is in it.
pub fn rings(report: &mut DoctorReport) {
    let folder = path_of(&RING_DIR).unwrap_or_else(|| "/dev/shm".into());
    let shown = folder.display();
    if !folder.is_dir() || !is_writable(&folder) {
        let what = if folder.is_dir() { "cannot be written to" } else { "is not a folder" };
        let remedy = "mount a tmpfs there (docker: --tmpfs /dev/shm), or set ACLSHIM_RING_DIR to one";
        return report.problem("rings", format!("ACLSHIM_RING_DIR {shown} {what}: nothing is recorded"), remedy);
    }
    let (free, kind) = free_space(&folder).unwrap_or((0, 0));
    let ring = number_of(&RING_SIZE) + CONTROL as u64;
    let threads = free.saturating_sub(UNIT) / ring;
    let remedy = "give it more (docker: --shm-size=1g; Kubernetes: an emptyDir of medium Memory), or set ACLSHIM_RING_SIZE to less";
    if threads == 0 {
        let seen = format!(
            "{shown}: {} are free, not enough for one ring of {}: nothing is recorded",
            human(free),
            human(ring)
        );
        report.problem("rings", seen, remedy);
    } else if threads < 64 {
        let seen = format!("{shown}: {} are free, enough for the rings of {threads} threads", human(free));
        report.warning("rings", seen, remedy);
    } else {
        let more = if threads > 1000 { "1000 threads and more".into() } else { format!("{threads} threads") };
        report.ok("rings", format!("{shown}: {} are free, enough for the rings of {more}", human(free)));
    }
    const RAMFS: i64 = 0x8584_58f6;
    if kind != libc::TMPFS_MAGIC && kind != RAMFS {
        let seen = format!("{shown} is not in memory: the kernel will write records to its disk");
        report.warning("rings-memory", seen, "set ACLSHIM_RING_DIR to a tmpfs such as /dev/shm");
    }
    limit(report, ring);
    leftovers(report, &folder);
    collectors(report);
}

/// The largest file that a process may make.
fn limit(report: &mut DoctorReport, ring: u64) {
    // SAFETY: zero is a valid answer, which is filled in.
    let most = unsafe {
        let mut limit = std::mem::zeroed::<libc::rlimit>();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) == 0 { limit.rlim_cur } else { libc::RLIM_INFINITY }
    };
    if most < UNIT + ring {
        let seen = format!("files may be {} at most (ulimit -f): nothing is recorded", human(most));
        report.problem("rings-limit", seen, "raise the limit: ulimit -f unlimited");
    }
}

/// Rings of processes that have ended.
fn leftovers(report: &mut DoctorReport, folder: &Path) {
    let (mut alive, mut dead, mut bytes) = (0, 0, 0);
    let view = View::new();
    for file in files(folder).unwrap_or_default() {
        let Ok(ring) = RingReader::open(&file) else { continue };
        match view.of_ring(ring.file(), &Origin::new(ring.header())) {
            Liveness::Gone => {
                dead += 1;
                bytes += fs::metadata(&file).map_or(0, |about| about.blocks() * 512);
            }
            Liveness::Alive => alive += 1,
            Liveness::Elsewhere => {}
        }
    }
    if dead > 0 {
        let seen = format!(
            "{} holds {} of processes that have ended ({})",
            folder.display(),
            many(dead, "ring"),
            human(bytes)
        );
        let remedy = "aclshim recover writes what is in them to files; aclshim clean --rings removes them";
        report.warning("rings-left", seen, remedy);
    }
    if alive > 0 {
        report.ok("rings-alive", format!("rings in use now: {alive}"));
    }
}

/// Reports whether a collector drains rings from outside.
fn collectors(report: &mut DoctorReport) {
    let is_collector = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|&byte| byte == 0);
        let program = words.next().and_then(|word| word.rsplit(|&byte| byte == b'/').next());
        program == Some(b"aclshim") && words.next() == Some(b"collect")
    };
    let outside = is(&DRAIN, "outside");
    match (processes().find(is_collector), outside) {
        (Some(pid), _) => report.ok("collect", format!("aclshim collect runs (process {pid})")),
        (None, true) => report.warning(
            "collect",
            "ACLSHIM_DRAIN=outside, and no aclshim collect runs: records stay in the ring, and when it is full they are lost",
            "start aclshim collect, or use aclshim run",
        ),
        (None, false) => {}
    }
}
