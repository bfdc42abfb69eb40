//! What stands in front of the vendor's library, and the variants that can run here.

use crate::compiler::{self, chosen};
use crate::scratch::Scratch;
use crate::session::Session;
use crate::variant::{SHIM, VARIANTS, Variant};
use anyhow::{Context, Result, ensure};
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

/// A preloaded library.
pub enum Preload {
    /// None.
    Nothing,
    /// One of ours: a file in `benches/c`.
    Source(&'static str),
    /// One that cargo has built beside the benchmark.
    Cargo(&'static str),
    /// Another tool: a file in `benches/c`, if its package is installed.
    Peer {
        /// The file.
        source: &'static str,
        /// What `pkg-config` calls the package.
        package: &'static str,
    },
    /// LTTng, which records only while a session runs.
    Lttng(&'static str),
}

/// A variant that can run here.
pub struct Ready {
    /// Its key in `bench.json`: that of its row, with [`OTHER`] behind it for the other build.
    pub name: String,
    /// Its row.
    pub row: &'static Variant,
    /// The library to preload.
    pub library: Option<PathBuf>,
    /// The session that listens to it.
    pub session: Option<Session>,
}

/// Why a variant cannot run on this machine; this is not an error.
#[derive(Debug)]
pub struct LeftOut(pub String);

impl Display for LeftOut {
    fn fmt(&self, to: &mut Formatter) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl Error for LeftOut {}

/// What the name of a variant ends with whose library is that of the other build.
pub const OTHER: &str = "@other";

/// All variants with their libraries built; one that cannot run here is named and left out. Variants of the shim are there
/// twice if there is another build `against` which they are measured.
pub fn available(scratch: &Scratch, against: Option<&Path>) -> Result<Vec<Ready>> {
    let mut ready = Vec::new();
    for row in VARIANTS {
        match prepared(row, scratch) {
            Ok(variant) => {
                ready.push(variant);
                if let (Some(folder), Preload::Cargo(file @ SHIM)) = (against, &row.preload) {
                    let library = folder.join(file).canonicalize();
                    let library = library.with_context(|| format!("there is no {file} in {}", folder.display()))?;
                    ready.push(Ready {
                        name: format!("{}{OTHER}", row.name),
                        row,
                        library: Some(library),
                        session: None,
                    });
                }
            }
            Err(error) => {
                let why: LeftOut = error.downcast()?;
                eprintln!("left out: {}: {why}", row.name);
            }
        }
    }
    Ok(ready)
}

fn prepared(row: &'static Variant, scratch: &Scratch) -> Result<Ready> {
    let output = scratch.own.join(format!("lib{}.so", row.name));
    let library = match row.preload {
        Preload::Nothing => None,
        Preload::Source(file) => Some(compiler::compile_library(file, output, &[])?),
        Preload::Cargo(file) => Some(built(scratch.built.join(file))?),
        Preload::Peer { source, package } => Some(compile_peer(source, package, output)?),
        Preload::Lttng(source) => Some(compile_peer(source, "lttng-ust >= 2.13", output)?),
    };
    let mut ready = Ready { name: row.name.to_owned(), row, library, session: None };
    if let Preload::Lttng(_) = row.preload {
        // A tracer that does not work here is no reason to measure nothing.
        ready.session = Some(Session::start(scratch, &ready).map_err(|error| LeftOut(format!("{error:#}")))?);
    }
    Ok(ready)
}

fn built(library: PathBuf) -> Result<PathBuf> {
    ensure!(library.exists(), LeftOut(format!("there is no {}", library.display())));
    Ok(library)
}

fn compile_peer(source: &str, package: &str, output: PathBuf) -> Result<PathBuf> {
    ensure!(
        !source.ends_with(".cpp") || compiler::runs(chosen("CXX", "c++")),
        LeftOut("there is no C++ compiler".into())
    );
    let flags = compiler::package(package).ok_or_else(|| LeftOut(format!("{package} is not installed")))?;
    compiler::compile_library(source, output, &flags)
}
