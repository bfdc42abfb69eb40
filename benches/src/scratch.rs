//! Where a run works: folders of its own, the host and the vendor compiled into them.

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
    /// `ACLSHIM_RING_DIR` of the children: on tmpfs, as in production.
    pub ring: PathBuf,
    /// `ACLSHIM_DIR` of the children.
    pub log: PathBuf,
}

const HOST: [&str; 4] = ["host.c", "host_batch.c", "host_threads.c", "host_paced.c"];

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
        let vendor = format!("-L{}", scratch.own.display());
        let libraries = ["-Wl,-z,now,-rpath,$ORIGIN", &vendor, "-lascendcl", "-lpthread"].map(String::from);
        compile(&HOST.map(source), &scratch.host, &libraries)?;
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
        let options = ["-shared", "-fPIC", "-Wl,-soname,libascendcl.so"].map(String::from);
        compile(&[file], &self.own.join("libascendcl.so"), &options)
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

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in nobody's way.
        let _ = fs::remove_dir_all(&self.own);
        let _ = fs::remove_dir_all(&self.ring);
    }
}
