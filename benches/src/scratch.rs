//! The folders of a run, with the host and the vendor's library compiled into them.

use crate::compiler::{compile, source};
use crate::leaves::{Found, swept};
use aclshim_facts::FUNCTIONS;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The folders; this run's own are removed at its end.
pub struct Scratch {
    /// Where cargo has built us and the libraries that are measured.
    pub built: PathBuf,
    /// `target/bench`.
    pub bench: PathBuf,
    /// This run's own folder.
    pub own: PathBuf,
    /// The host program.
    pub host: PathBuf,
    /// The host as a plugin that brings the vendor's library, and looks nothing up.
    pub brought: PathBuf,
    /// The host with a vendor library that lacks `aclrtMemcpy`.
    pub partial: PathBuf,
    /// `ACLSHIM_RING_DIR` of the children: on tmpfs, as in production.
    pub ring: PathBuf,
    /// `ACLSHIM_DIR` of the children.
    pub log: PathBuf,
}

const HOST: [&str; 5] = ["host.c", "host_batch.c", "host_threads.c", "host_paced.c", "host_keeping.c"];

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
            brought: own.join("brought"),
            partial: own.join("partial/host"),
            ring: Path::new(&shared).join(format!("aclshim-bench-{id}")),
            log: own.join("log"),
            built,
            bench,
            own,
        };
        let partial = scratch.own.join("partial");
        for folder in [&scratch.own, &scratch.ring, &scratch.log, &partial] {
            fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        compile_vendor(&scratch.own, |_| true)?;
        compile_vendor(&partial, |name| name != "aclrtMemcpy")?;
        compile(&HOST.map(source), &scratch.host, &linked(&scratch.own))?;
        compile(&HOST.map(source), &scratch.partial, &linked(&partial))?;
        scratch.compile_brought()?;
        Ok(scratch)
    }

    fn compile_brought(&self) -> Result<()> {
        let plugin = self.own.join("libhost.so");
        let sources: Vec<_> = HOST.into_iter().chain(["plugin.c"]).map(source).collect();
        let options = ["-shared", "-fPIC", "-Dmain=host_main"].map(String::from);
        compile(&sources, &plugin, &[&options[..], &linked(&self.own)].concat())?;
        let options = [format!("-DPLUGIN=\"{}\"", plugin.display()), "-rdynamic".into(), "-ldl".into()];
        compile(&[source("opener.c")], &self.brought, &options)
    }

    /// `LTTNG_HOME` of the children.
    pub fn lttng(&self) -> PathBuf {
        self.own.join("lttng")
    }

    /// What a child has left in `ring` and in `log`; they are empty afterwards.
    pub fn sweep(&self) -> Result<Found> {
        Ok(Found { ring: swept(&self.ring)?, log: swept(&self.log)? })
    }
}

/// How a host is linked to the vendor library in `folder`.
fn linked(folder: &Path) -> Vec<String> {
    let vendor = format!("-L{}", folder.display());
    ["-Wl,-z,now,-rpath,$ORIGIN", &vendor, "-lascendcl", "-lpthread"].map(String::from).into()
}

/// A library whose functions return at once: those of the table that it `has`, as the vendor's has them all.
fn compile_vendor(folder: &Path, has: impl Fn(&str) -> bool) -> Result<()> {
    let mut text = String::new();
    for row in FUNCTIONS.iter().filter(|row| has(row.name)) {
        writeln!(text, "int {}(void) {{ return 0; }}", row.name)?;
    }
    let file = folder.join("vendor.c");
    fs::write(&file, text)?;
    let options = ["-shared", "-fPIC", "-Wl,-soname,libascendcl.so"].map(String::from);
    compile(&[file], &folder.join("libascendcl.so"), &options)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A file that cannot be removed does no harm.
        let _ = fs::remove_dir_all(&self.own);
        let _ = fs::remove_dir_all(&self.ring);
    }
}
