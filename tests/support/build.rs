//! Host programs, compiled.

use super::{root, sim, target};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Compiles `tests/<source>` as a program linked to the simulated device.
pub fn host(source: &str) -> PathBuf {
    Build::new(source).link("ascendcl").program()
}

/// How a C or C++ file of `tests/` is compiled.
pub struct Build {
    source: PathBuf,
    name: String,
    arguments: Vec<OsString>,
}

impl Build {
    /// `tests/<source>`.
    pub fn new(source: &str) -> Self {
        let name = source.replace(['/', '.'], "_");
        Self { source: root().join("tests").join(source), name, arguments: Vec::new() }
    }

    /// One more argument of the compiler; part of the output's name, so that variants do not meet.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        let shown = argument.as_ref().to_string_lossy();
        let shown: String = shown.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        self.name = format!("{}_{}", self.name, shown.trim_matches('_'));
        if self.name.len() > 200 {
            self.name = self.name[..200].into();
        }
        self.arguments.push(argument.as_ref().into());
        self
    }

    /// Links a library of the simulated device, or of `target/release`.
    pub fn link(self, library: &str) -> Self {
        self.arg(format!("-l{library}"))
    }

    /// As a program.
    pub fn program(self) -> PathBuf {
        let name = self.name.clone();
        self.compile(&[], &name)
    }

    /// As a shared library called `lib<name>.so`, in a folder of its own.
    pub fn library(self, name: &str) -> PathBuf {
        let file = format!("{}.d/lib{name}.so", self.name);
        let soname = format!("-Wl,-soname,lib{name}.so");
        self.compile(&["-shared", "-fPIC", &soname], &file)
    }

    fn compile(self, extra: &[&str], file: &str) -> PathBuf {
        let output = target("tests/built").join(file);
        fs::create_dir_all(output.parent().unwrap()).unwrap();
        let is_cpp = self.source.extension() == Some("cpp".as_ref());
        let (compiler, standard) = if is_cpp { ("c++", "-std=c++17") } else { ("cc", "-std=gnu11") };
        // Made beside its place and moved there: two tests may want the same program at once.
        let unfinished = output.with_extension(format!("{}-{:?}", std::process::id(), std::thread::current().id()));
        let result = Command::new(compiler)
            .args([standard, "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-Wl,--no-as-needed", "-o"])
            .arg(&unfinished)
            .args(extra)
            .arg(&self.source)
            .arg("-I")
            .arg(root().join("include"))
            .arg("-L")
            .arg(sim())
            .arg("-L")
            .arg(target("release"))
            .args(&self.arguments)
            .args(["-ldl", "-lpthread"])
            .output()
            .unwrap_or_else(|error| panic!("{compiler}: {error}"));
        assert!(result.status.success(), "{}: {}", self.source.display(), String::from_utf8_lossy(&result.stderr));
        fs::rename(unfinished, &output).unwrap();
        output
    }
}
