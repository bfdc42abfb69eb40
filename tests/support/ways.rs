//! How the hosts of `tests/bindings.rs` are built and started.

use crate::support::{Build, Run, aclshim, root, scratch, shim, sim};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Binds each function with its first call.
pub const LAZY: &str = "-Wl,-z,lazy";
/// Binds everything at load, and write-protects the pointers afterwards.
pub const NOW: &str = "-Wl,-z,now,-z,relro";
/// Not to be moved.
pub const FIXED: &str = "-no-pie";
/// Linked to the vendor's library.
pub const VENDOR: &str = "-lascendcl";

/// A host and its arguments.
pub struct Way {
    /// What is started.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where its own libraries are.
    pub libraries: Vec<PathBuf>,
}

impl Way {
    /// Without libraries of its own.
    pub fn new(program: impl Into<PathBuf>, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|argument| argument.to_string()).collect();
        Self { program: program.into(), arguments, libraries: Vec::new() }
    }

    /// A run of it without the shim.
    pub fn run(&self) -> Run {
        let run = self.arguments.iter().fold(Run::new(&self.program), Run::arg);
        self.libraries.iter().fold(run, Run::library_path).sim()
    }
}

/// A file of `tests/hosts/`.
pub fn build(source: &str, arguments: &[&str]) -> Build {
    arguments.iter().fold(Build::new(&format!("hosts/{source}")), Build::arg)
}

/// A program that was linked to the vendor's library.
pub fn linked(source: &str, arguments: &[&str]) -> Way {
    Way::new(build(source, arguments).arg(VENDOR).program(), &[])
}

/// A program that opens `library` and looks the functions up.
pub fn lookup(library: impl AsRef<Path>, scope: &str, how: &str) -> Way {
    Way::new(build("bind_lookup.c", &[]).program(), &[&library.as_ref().to_string_lossy(), scope, how])
}

/// A plugin of a program that knows nothing of the vendor.
pub fn plugin(flags: &str, source: &str, arguments: &[&str], passed: &[&str]) -> Way {
    let plugin = build(source, &["-DBIND_PLUGIN"]);
    let plugin = arguments.iter().fold(plugin, Build::arg).library("plugin");
    Way::new(build("bind_open.c", &[]).program(), &[&[flags, &plugin.to_string_lossy()], passed].concat())
}

/// A plugin of a program that was itself linked to the vendor and took the functions' addresses.
pub fn in_a_fixed_program(way: Way) -> Way {
    Way { program: build("bind_open.c", &["-DBIND_TAKES_ADDRESSES", "-fno-pie", FIXED, VENDOR]).program(), ..way }
}

/// A program whose library looks the functions up in its constructor.
pub fn early(arguments: &[&str]) -> Way {
    let library = build("bind_early.c", &["-DBIND_PLUGIN"]);
    let library = arguments.iter().fold(library, Build::arg).library("early");
    let folder = library.parent().unwrap();
    let program = build("bind_cached.c", &[&format!("-L{}", folder.display()), "-learly"]).program();
    Way { libraries: vec![folder.into()], ..Way::new(program, &[]) }
}

/// A library that asks for the default, which sees the vendor's library only because a local plugin needs both.
pub fn needed_by_a_local_plugin() -> Way {
    let inner = build("bind_lookup.c", &["-DBIND_PLUGIN"]).library("inner");
    let folder = inner.parent().unwrap();
    let outer = build("bind_cached.c", &[&format!("-L{}", folder.display()), "-linner", VENDOR]).library("outer");
    let arguments = ["local", &outer.to_string_lossy(), "libascendcl.so", "local", "default"];
    Way { libraries: vec![folder.into()], ..Way::new(build("bind_open.c", &[]).program(), &arguments) }
}

/// A library that depends on the vendor's and has nothing of it itself.
pub fn dependent() -> PathBuf {
    build("bind_linked.c", &["-DBIND_PLUGIN", VENDOR]).library("dependent")
}

/// A library that has the functions with a version and forwards them.
pub fn versioned() -> PathBuf {
    let map = root().join("tests/hosts/bind_version.map");
    build("bind_interposer.c", &[&format!("-Wl,--version-script={}", map.display())]).library("versioned")
}

/// Another interposer of the same functions.
pub fn interposer(how: &str) -> PathBuf {
    build("bind_interposer.c", &[how]).library("interposer")
}
/// It asks for the next in line.
pub const BY_NEXT: &str = "-DBIND_NEXT";
/// It opens the vendor's library and looks up.
pub const BY_LOOKUP: &str = "-UBIND_NEXT";

/// The interpreter itself, not a script in front of it.
pub fn python() -> PathBuf {
    let path = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().expect("python3");
    String::from_utf8_lossy(&path.stdout).trim().into()
}

/// A second copy of the shim: another file.
pub fn copy_of_the_shim() -> PathBuf {
    let copy = scratch("copy").join("libaclshim.so");
    fs::copy(shim(), &copy).expect("a copy of the shim");
    copy
}

/// A fresh drop-in folder.
pub fn dropin() -> PathBuf {
    let folder = scratch("dropin");
    let made = aclshim().arg("dropin").arg(&folder).arg("--real").arg(sim().join("libascendcl.so")).output();
    let made = made.expect("aclshim dropin");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    folder
}

/// A run with a drop-in folder in front.
pub fn dropped_in(way: &Way, folder: PathBuf) -> Run {
    let run = way.arguments.iter().fold(Run::new(&way.program), Run::arg).library_path(folder);
    way.libraries.iter().fold(run, Run::library_path).sim()
}
