//! Starting a process that has the rights of another user and no others.

use super::real_user::{PasswdKey, passwd_entry};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Memory limit of the process: the content of a user's rings must not exhaust the machine.
const MOST_MEMORY: u64 = 1 << 30;

/// Has a command run as a user: nothing of ours is within that user's reach, no terminal and no descriptor.
pub fn run_as(command: &mut Command, user: u32, groups: Vec<libc::gid_t>) {
    // SAFETY: system calls only.
    unsafe {
        command.pre_exec(move || {
            done(libc::setsid().min(0))?;
            close_at_exec();
            done(libc::setgroups(groups.len(), groups.as_ptr()))?;
            done(libc::setresgid(groups[0], groups[0], groups[0]))?;
            done(libc::setresuid(user, user, user))?;
            let most = libc::rlimit { rlim_cur: MOST_MEMORY, rlim_max: MOST_MEMORY };
            done(libc::setrlimit(libc::RLIMIT_DATA, &most))
        });
    }
}

/// The outcome of a system call that returns 0 or sets errno.
pub fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has all descriptors but the first three closed by exec; between fork and exec.
fn close_at_exec() {
    // SAFETY: system calls on descriptors of the new process.
    unsafe {
        let flags = libc::CLOSE_RANGE_CLOEXEC as libc::c_uint;
        if libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, libc::c_uint::MAX, flags) != 0 {
            (3..4096).for_each(|fd| _ = libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC));
        }
    }
}

/// The groups of a user, the primary group first. For a user without an entry on this machine, as in containers, the group of
/// the ring: a file has its creator's group, unless the folder hands down its own.
pub fn groups(folder: &Path, user: u32, of_ring: u32) -> Vec<libc::gid_t> {
    const NOBODY: libc::gid_t = 65534;
    let gives_own = fs::metadata(folder).is_ok_and(|about| about.mode() & libc::S_ISGID != 0);
    let unknown = vec![if gives_own { NOBODY } else { of_ring }];
    passwd_entry(PasswdKey::User(user), |entry| {
        let (primary, mut groups) = (entry.pw_gid, vec![0; 1024]);
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the name is a C string of the entry; the list has that length.
        if unsafe { libc::getgrouplist(entry.pw_name, primary, groups.as_mut_ptr(), &mut count) } < 0 {
            return vec![primary];
        }
        groups.truncate(count as usize);
        groups.retain(|group| *group != primary);
        groups.insert(0, primary);
        groups
    })
    .unwrap_or(unknown)
}
