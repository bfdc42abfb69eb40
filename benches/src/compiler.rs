//! C and C++ files, compiled with what `pkg-config` knows of a package.

use anyhow::{Context, Result, ensure};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file in `benches/c`.
pub fn source(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("c").join(file)
}

/// Compiles and links; `more` comes last, libraries among it.
pub fn compile(sources: &[PathBuf], output: &Path, more: &[String]) -> Result<()> {
    let plus = sources.iter().any(|file| file.extension() == Some(OsStr::new("cpp")));
    let (compiler, standard) =
        if plus { (chosen("CXX", "c++"), "-std=c++17") } else { (chosen("CC", "cc"), "-std=gnu11") };
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include");
    let status = Command::new(&compiler)
        .args([standard, "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-unused-command-line-argument"])
        .args([OsStr::new("-I"), include.as_os_str(), OsStr::new("-I"), source("").as_os_str()])
        .args([OsStr::new("-o"), output.as_os_str()])
        .args(sources)
        .args(more)
        .status()
        .with_context(|| format!("{} cannot be run", compiler.display()))?;
    ensure!(status.success(), "{sources:?} does not compile");
    Ok(())
}

/// Compiles a library to preload.
pub fn compile_library(file: &str, output: PathBuf, flags: &[String]) -> Result<PathBuf> {
    let always = ["-shared", "-fPIC", "-Wl,-z,now", "-ldl"].map(String::from);
    compile(&[source(file)], &output, &[&always, flags].concat())?;
    Ok(output)
}

/// What a package needs, if it is installed.
pub fn package(name: &str) -> Option<Vec<String>> {
    let mut command = Command::new("pkg-config");
    let output = command.args(["--cflags", "--libs", name]).stderr(Stdio::null()).output().ok()?;
    let flags = String::from_utf8_lossy(&output.stdout).split_whitespace().map(String::from).collect();
    output.status.success().then_some(flags)
}

/// Whether a program answers when asked for its version.
pub fn runs(program: impl AsRef<OsStr>) -> bool {
    let mut command = Command::new(program);
    let asked = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

/// The compiler that the environment names, or the usual one.
pub fn chosen(variable: &str, usual: &str) -> OsString {
    std::env::var_os(variable).unwrap_or_else(|| usual.into())
}
