//! Host programs, compiled.

use super::{root, sim, target};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

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

    /// One more argument of the compiler; shown in the output's name as far as there is room.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        let shown = argument.as_ref().to_string_lossy();
        let shown: String = shown.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        self.name = format!("{}_{}", self.name, shown.trim_matches('_'));
        self.name.truncate(180);
        self.arguments.push(argument.as_ref().into());
        self
    }

    /// Links a library of the simulated device, or of `target/release`.
    pub fn link(self, library: &str) -> Self {
        self.arg(format!("-l{library}"))
    }

    /// As a program.
    pub fn program(self) -> PathBuf {
        let name = self.known_by(&[]);
        self.compiled(&[], &name)
    }

    /// As a shared library called `lib<name>.so`, in a folder of its own.
    pub fn library(self, name: &str) -> PathBuf {
        let soname = format!("-Wl,-soname,lib{name}.so");
        let extra = ["-shared", "-fPIC", &soname];
        let file = format!("{}.d/lib{name}.so", self.known_by(&extra));
        self.compiled(&extra, &file)
    }

    /// A name that no other variant has, nor what was built before one of the sources changed.
    fn known_by(&self, extra: &[&str]) -> String {
        static SOURCES: OnceLock<u64> = OnceLock::new();
        let sources = SOURCES.get_or_init(|| {
            let mut hasher = DefaultHasher::new();
            ["tests", "include"].iter().for_each(|folder| read_all(&root().join(folder), &mut hasher));
            hasher.finish()
        });
        let mut hasher = DefaultHasher::new();
        (sources, &self.source, &self.arguments, extra).hash(&mut hasher);
        format!("{}-{:016x}", self.name, hasher.finish())
    }

    /// The file, compiled once: a program that is built anew is, for a reader of its symbols, not the one that ran.
    fn compiled(self, extra: &[&str], file: &str) -> PathBuf {
        static KNOWN: Mutex<BTreeMap<PathBuf, Arc<OnceLock<()>>>> = Mutex::new(BTreeMap::new());
        let output = target("tests/built").join(file);
        let once = KNOWN.lock().unwrap().entry(output.clone()).or_default().clone();
        once.get_or_init(|| {
            if !output.exists() {
                self.compile(extra, &output);
            }
        });
        output
    }

    fn compile(self, extra: &[&str], output: &Path) {
        fs::create_dir_all(output.parent().unwrap()).unwrap();
        let is_cpp = self.source.extension() == Some("cpp".as_ref());
        let (compiler, standard) = if is_cpp { ("c++", "-std=c++17") } else { ("cc", "-std=gnu11") };
        // Made beside its place and moved there: another test run may want the same program at once.
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
        fs::rename(unfinished, output).unwrap();
    }
}

/// Everything that a source may be made of, and how it is compiled.
fn read_all(folder: &Path, hasher: &mut DefaultHasher) {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let is_source = |kind: &OsStr| ["c", "cpp", "h", "map"].iter().any(|one| kind == *one);
        if path.is_dir() {
            read_all(&path, hasher);
        } else if path.extension().is_some_and(is_source) || path.ends_with("support/build.rs") {
            (&path, fs::read(&path).unwrap()).hash(hasher);
        }
    }
}
