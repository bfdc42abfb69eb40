//! What kind of program it is, and whether the loader lets the shim in.

use super::image::{HERE, Image, machine_name};
use super::loader::{self, Listed};
use super::report::{DoctorReport, Sight, list};
use crate::files::{c_path, has_capabilities};
use crate::recording::executable::{find, interpreter, is_executable};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The program that is examined.
#[derive(Default)]
pub struct DoctoredProgram {
    /// The file that the kernel starts in the end, if it is one that can be looked at.
    pub image: Option<Image>,
    /// What the loader would load with it.
    pub listed: Listed,
    /// Whether it is a script of a shell: it does nothing itself.
    pub is_shell: bool,
}

/// Examines a program.
pub fn look(report: &mut DoctorReport, name: &OsStr, shim: Option<&Image>) -> DoctoredProgram {
    report.group = "the program";
    report.program = Some(name.to_string_lossy().into_owned());
    report.sight = Some(Sight::Unknown);
    let mut program = DoctoredProgram::default();
    let Some(mut path) = find(name).filter(|path| is_executable(path)) else {
        let seen = format!("{} was not found, or cannot be executed", name.to_string_lossy());
        report.problem("program", seen, "give its path; for a file of a script language name the interpreter too");
        return program;
    };
    // As often as the kernel does it.
    for _ in 0..4 {
        let Some(interpreter) = interpreter(&path) else { break };
        let found = find(interpreter.as_os_str()).filter(|path| is_executable(path));
        let Some(next) = found else {
            let seen = format!("{} wants {}, which is not there", path.display(), interpreter.display());
            report.problem("program", seen, "mend its first line");
            return program;
        };
        report.ok("script", format!("{} is a script for {}", path.display(), next.display()));
        program.is_shell = is_shell(&next);
        path = next;
    }
    let image = match Image::read(&path) {
        Ok(image) => image,
        Err(why) => {
            let seen = format!("{}: {why:#}", path.display());
            report.problem("program", seen, "a script needs #! in its first line; or name its interpreter");
            return program;
        }
    };
    if can_be_preloaded(report, &image) {
        let preload = shim.map(|shim| loader::with_preload(&shim.path)).unwrap_or_default();
        match loader::list(&image.path, &preload) {
            Ok(listed) => program.listed = listed,
            Err(why) => report.warning("libraries", format!("{why:#}"), "--run tells what is seen"),
        }
        libraries(report, &program.listed);
    }
    program.image = Some(image);
    program
}

/// Whether a preload reaches it at all.
fn can_be_preloaded(report: &mut DoctorReport, image: &Image) -> bool {
    let shown = image.path.display();
    if image.machine != HERE {
        let seen = format!("{shown} is for {}, and the shim for {}", machine_name(image.machine), machine_name(HERE));
        report.problem("program", seen, format!("build it for {}", machine_name(HERE)));
        return false;
    }
    let Some(loader) = &image.interpreter else {
        let inner = if image.inner.is_empty() { "" } else { ", with the vendor's functions inside" };
        report.problem(
            "program",
            format!("{shown} is a static program{inner}: no loader runs, and LD_PRELOAD is not looked at"),
            "link it dynamically (without -static); aclshim dropin cannot help here either",
        );
        return false;
    };
    let loader_name = loader.file_name().unwrap_or_default().to_string_lossy();
    if loader_name.starts_with("ld-musl") {
        let seen = format!("{shown} is for musl libc ({}), and the shim for glibc", loader.display());
        report.problem("program", seen, "build the program for glibc, as the vendor's library is");
        return false;
    }
    if !loader.exists() {
        let seen = format!("{shown} asks for the loader {}, which is not there", loader.display());
        report.problem("program", seen, "it does not start on this system: build it here");
        return false;
    }
    let same = |one: &Path, other: &Path| one.canonicalize().ok() == other.canonicalize().ok();
    if loader::own().is_ok_and(|own| !same(&own, loader)) {
        let seen = format!("{shown} has a loader of its own, {}; the lists below are the system's", loader.display());
        report.warning("loader", seen, "--run tells what its own loader does");
    }
    match raised(&image.path) {
        Some(Raised::Here(what)) => {
            let remedy = "run a copy without that (cp, then aclshim run), or run it as its owner: the loader ignores LD_PRELOAD and LD_LIBRARY_PATH for raised privileges";
            report.problem("privileges", format!("{shown} {what}: LD_PRELOAD is ignored"), remedy);
            false
        }
        Some(Raised::ForOthers(what)) => {
            let seen = format!("{shown} {what}; not for you, but for other users LD_PRELOAD is ignored");
            report.warning("privileges", seen, "other users have to run a copy without that");
            true
        }
        None => {
            report.ok("program", format!("{shown} is a dynamic program for {}", machine_name(image.machine)));
            true
        }
    }
}

/// A program that runs with more rights than the user who starts it.
enum Raised {
    /// Also when we start it.
    Here(&'static str),
    /// Only when other users start it.
    ForOthers(&'static str),
}

fn raised(path: &Path) -> Option<Raised> {
    let about = fs::metadata(path).ok()?;
    let c_path = c_path(path)?;
    // SAFETY: a C string; only asks.
    let (uid, gid, is_kept_down) = unsafe {
        let mut volume = std::mem::zeroed::<libc::statvfs>();
        let is_nosuid = libc::statvfs(c_path.as_ptr(), &mut volume) == 0 && volume.f_flag & libc::ST_NOSUID != 0;
        let is_kept_down = is_nosuid || libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
        (libc::getuid(), libc::getgid(), is_kept_down)
    };
    let is_set = |bit: u32| about.mode() & bit != 0;
    let has_group_bit = is_set(libc::S_ISGID) && is_set(libc::S_IXGRP);
    let at = |is_here: bool, what| if is_here && !is_kept_down { Raised::Here(what) } else { Raised::ForOthers(what) };
    if is_set(libc::S_ISUID) && about.uid() != uid {
        Some(at(true, "has the setuid bit of another user"))
    } else if has_group_bit && about.gid() != gid {
        Some(at(true, "has the setgid bit of another group"))
    } else if has_capabilities(path) {
        // The superuser has them anyway.
        Some(at(uid != 0, "has file capabilities"))
    } else if is_set(libc::S_ISUID) || has_group_bit {
        Some(at(false, "has the setuid or setgid bit"))
    } else {
        None
    }
}

fn libraries(report: &mut DoctorReport, listed: &Listed) {
    if listed.missing.is_empty() {
        report.ok("libraries", format!("the loader finds all {} libraries that it needs", listed.found.len()));
    } else {
        let seen = format!("the loader does not find {}: the program will not start", list(&listed.missing, 8));
        report.problem("libraries", seen, "put their folder on LD_LIBRARY_PATH; for CANN source its set_env.sh");
    }
    let complaints: Vec<_> = listed.complaints.lines().filter(|line| !line.trim().is_empty()).collect();
    if !complaints.is_empty() {
        report.warning(
            "libraries",
            format!("the loader says: {}", list(complaints, 3)),
            "see whether the program starts without the shim",
        );
    }
}

fn is_shell(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ["sh", "bash", "dash", "ash", "ksh", "zsh", "fish"].contains(&&*name)
}
