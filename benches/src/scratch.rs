//! Where a run works: folders of its own, the host, the vendor and the C libraries compiled into them.

use aclshim_facts::FUNCTIONS;
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folders; this run's own are removed at its end.
pub struct Scratch {
    /// Where cargo has built us and the libraries that are measured.
    pub built: PathBuf,
    /// `target/bench`.
    pub bench: PathBuf,
    /// The host program.
    pub host: PathBuf,
    /// `ACLSHIM_RING_DIR` of the children: on tmpfs, as in production.
    pub ring: PathBuf,
    /// `ACLSHIM_DIR` of the children.
    pub log: PathBuf,
    own: PathBuf,
}

impl Scratch {
    /// Makes the folders and compiles the host and its vendor library.
    pub fn new() -> Result<Self> {
        let exe = std::env::current_exe()?;
        let built = exe.parent().context("a program lies in a folder")?.to_path_buf();
        let bench = built.parent().context("cargo's folder lies in target")?.join("bench");
        let id = std::process::id();
        let own = bench.join(format!("run-{id}"));
        let shared = std::env::var_os("ACLSHIM_RING_DIR").unwrap_or_else(|| "/dev/shm".into());
        let scratch = Self {
            host: own.join("host"),
            ring: Path::new(&shared).join(format!("aclshim-bench-{id}")),
            log: own.join("log"),
            built,
            bench,
            own,
        };
        for folder in [&scratch.own, &scratch.ring, &scratch.log] {
            fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        scratch.compile_vendor()?;
        scratch.compile(
            &source("host"),
            &scratch.host,
            &["-Wl,-z,now,-rpath,$ORIGIN", "-L", &scratch.own.to_string_lossy(), "-lascendcl", "-lpthread"],
        )?;
        Ok(scratch)
    }

    /// A library whose functions return at once; all of the table, as the vendor's has them all.
    fn compile_vendor(&self) -> Result<()> {
        let mut text = String::new();
        for row in FUNCTIONS {
            writeln!(text, "int {}(void) {{ return 0; }}", row.name)?;
        }
        let file = self.own.join("vendor.c");
        fs::write(&file, text)?;
        let library = self.own.join("libascendcl.so");
        self.compile(&file, &library, &["-shared", "-fPIC", "-Wl,-soname,libascendcl.so"])
    }

    /// Compiles `benches/c/<name>.c` as a library to preload.
    pub fn compile_library(&self, name: &str) -> Result<PathBuf> {
        let library = self.own.join(format!("lib{name}.so"));
        self.compile(&source(name), &library, &["-shared", "-fPIC", "-Wl,-z,now", "-ldl"])?;
        Ok(library)
    }

    fn compile(&self, source: &Path, output: &Path, more: &[&str]) -> Result<()> {
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include");
        let arguments = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unused-command-line-argument"];
        let status = Command::new(&compiler)
            .args(arguments)
            .args([OsStr::new("-I"), include.as_os_str(), OsStr::new("-o"), output.as_os_str(), source.as_os_str()])
            .args(more)
            .status()
            .with_context(|| format!("{} cannot be run", compiler.display()))?;
        ensure!(status.success(), "{} does not compile", source.display());
        Ok(())
    }

    /// Whether a child has left a file in `ring` and in `log`; they are empty afterwards.
    pub fn sweep(&self) -> Result<[bool; 2]> {
        let mut found = [false; 2];
        for (folder, found) in [&self.ring, &self.log].into_iter().zip(&mut found) {
            for file in fs::read_dir(folder)? {
                *found = true;
                fs::remove_file(file?.path())?;
            }
        }
        Ok(found)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in nobody's way.
        let _ = fs::remove_dir_all(&self.own);
        let _ = fs::remove_dir_all(&self.ring);
    }
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("c").join(format!("{name}.c"))
}
