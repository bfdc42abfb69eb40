//! What the dynamic linker would load: it is asked itself, in the way that lists and does not run.

use super::image::Image;
use anyhow::{Context, Result, ensure};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The objects that the dynamic loader would load.
#[derive(Default)]
pub struct Listed {
    /// Name and path, in the order in which names are looked for in them.
    pub found: Vec<(String, PathBuf)>,
    /// What would not be found, each once.
    pub missing: Vec<String>,
    /// What the linker complained about.
    pub complaints: String,
}

/// The dynamic linker of this command, which is the system's.
pub fn own() -> Result<PathBuf> {
    let here = Image::read(Path::new("/proc/self/exe")).context("this command")?;
    here.interpreter.context("this command is a static program, and cannot tell what the system's loader would do")
}

/// Lists what the linker would load for `object` with these preloads.
pub fn list(object: &Path, preload: &OsStr) -> Result<Listed> {
    // SAFETY: only asks. Who runs with raised privileges cannot ask the linker: it would run the program.
    ensure!(unsafe { libc::getauxval(libc::AT_SECURE) } == 0, "this command runs with raised privileges");
    let own = own()?;
    let mut command = Command::new(&own);
    command.arg(std::path::absolute(object)?).stdin(Stdio::null()).env("LD_PRELOAD", preload);
    // As ldd does it. (The linker's own `--list` stops at the first library that is missing.)
    command.env("LD_TRACE_LOADED_OBJECTS", "1");
    for variable in ["LD_DEBUG", "LD_BIND_NOW", "LD_WARN"] {
        command.env_remove(variable);
    }
    let output = command.output().with_context(|| own.display().to_string())?;
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut listed = Listed { complaints, ..Listed::default() };
    String::from_utf8_lossy(&output.stdout).lines().for_each(|line| listed.line(line));
    Ok(listed)
}

impl Listed {
    fn line(&mut self, line: &str) {
        let line = line.trim();
        if let Some(name) = line.strip_suffix(" => not found") {
            // The linker names it for each object that needs it.
            if !self.missing.iter().any(|missing| missing == name) {
                self.missing.push(name.to_owned());
            }
        } else if let Some((file, _)) = line.rsplit_once(" (0x") {
            let (name, path) = file.split_once(" => ").unwrap_or((file, file));
            // The kernel's own has no path.
            if path.starts_with('/') {
                self.found.push((name.to_owned(), path.into()));
            }
        }
    }
}

/// Where the linker would find a library by its bare name.
pub fn find(name: &str) -> Option<PathBuf> {
    let listed = list(Path::new("/proc/self/exe").canonicalize().ok()?.as_path(), OsStr::new(name)).ok()?;
    listed.found.into_iter().find(|(found, _)| found == name).map(|(_, path)| path)
}

/// The preloads of a run: the shim in front of what is there already.
pub fn with_preload(shim: &Path) -> OsString {
    let mut all = shim.as_os_str().to_owned();
    for other in entries().filter(|other| other != shim) {
        all.push(":");
        all.push(other);
    }
    all
}

/// What `LD_PRELOAD` holds now.
pub fn entries() -> impl Iterator<Item = PathBuf> {
    let all = std::env::var("LD_PRELOAD").unwrap_or_default();
    let all: Vec<_> = all.split([':', ' ']).filter(|entry| !entry.is_empty()).map(PathBuf::from).collect();
    all.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_with_what_is_missing() {
        let mut listed = Listed::default();
        for line in [
            "\tlinux-vdso.so.1 (0x00007ffe)",
            "\t/opt/a b/libaclshim.so (0x00007f01)",
            "\tlibx.so => /lib/libx.so (0x00007f02)",
            "\tlibgone.so => not found",
            "\tlibgone.so => not found",
            "\t/lib64/ld-linux-x86-64.so.2 (0x00007f03)",
        ] {
            listed.line(line);
        }
        let names: Vec<_> = listed.found.iter().map(|(_, path)| path.to_str().unwrap()).collect();
        assert_eq!(names, ["/opt/a b/libaclshim.so", "/lib/libx.so", "/lib64/ld-linux-x86-64.so.2"]);
        assert_eq!(listed.missing, ["libgone.so"]);
    }
}
