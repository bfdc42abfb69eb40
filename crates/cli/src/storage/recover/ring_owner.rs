//! Whose a ring is, and recovering it with the rights of its owner.

use crate::files::own_user;
use crate::recording::collect::user_rights::{groups, run_as};
use anyhow::{Context, Result, bail};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A user, and the group of a file of that user.
#[derive(Clone, Copy)]
pub struct OwningUser {
    pub id: u32,
    group: u32,
}

/// The outcome of recovering a ring in a process of its owner.
pub struct Recovered {
    /// Its standard output.
    pub stdout: String,
    pub stderr: String,
    /// Whether all of it is written.
    pub is_done: bool,
}

/// The owner of a file, of a link not of what it leads to; `None` if it is ours.
pub fn other_owner(path: &Path) -> io::Result<Option<OwningUser>> {
    let about = std::fs::symlink_metadata(path)?;
    Ok((about.uid() != own_user()).then(|| OwningUser { id: about.uid(), group: about.gid() }))
}

/// Recovers a ring of another user in a process that has the rights of that user and no others. Only root can.
pub fn recover_as(path: &Path, user: OwningUser, out: Option<&Path>) -> Result<Recovered> {
    if own_user() != 0 {
        bail!(
            "it belongs to user {}: only that user and root can recover it; `aclshim merge -o DIR {}` copies what it holds",
            user.id,
            path.display()
        );
    }
    let path = std::path::absolute(path)?;
    // Not by its path: that may be out of the user's reach.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("aclshim").args(["recover", "--as-owner"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(out) = out {
        command.arg("--out").arg(out);
    }
    command.arg("--").arg(&path).env_clear().current_dir("/").stdin(Stdio::null());
    let groups = groups(path.parent().unwrap_or(Path::new("/")), user.id, user.group);
    run_as(&mut command, user.id, groups);
    let mut child = command.spawn().with_context(|| format!("cannot become user {}", user.id))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = std::thread::scope(|scope| {
        let stdout = scope.spawn(|| beginning(stdout));
        let stderr = beginning(stderr);
        (stdout.join().unwrap_or_default(), stderr)
    });
    Ok(Recovered { stdout, stderr, is_done: child.wait()?.success() })
}

/// The first part of what a process says that its user may steer: it must not fill root's memory.
fn beginning(pipe: Option<impl Read>) -> String {
    const MOST: u64 = 1 << 20;
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let _ = pipe.take(MOST).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Keeps the user from steering this process, which has begun with root's rights.
pub fn close_to_the_user() {
    // SAFETY: concerns this process alone.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
}
