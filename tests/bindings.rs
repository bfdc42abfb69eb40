//! Every way of binding: all 21 functions reach the vendor exactly once and are counted exactly once.
//!
//! The hosts (`tests/hosts/bind_*`) make the same 21 calls and differ in how they found the functions. Each runs
//! without the shim and with it, and must not notice: output, errors and exit are the same. The last tests show that
//! the counts can come out otherwise.

mod support;

use aclshim_facts::FUNCTIONS;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Build, Output, Run, Stat, aclshim, has, scratch, shim, sim};

const LAZY: &str = "-Wl,-z,lazy";
const NOW: &str = "-Wl,-z,now,-z,relro";
const FIXED: &str = "-no-pie";
const VENDOR: &str = "-lascendcl";

/// A host and its arguments.
struct Way {
    program: PathBuf,
    arguments: Vec<String>,
    libraries: Vec<PathBuf>,
}

impl Way {
    fn new(program: impl Into<PathBuf>, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|argument| argument.to_string()).collect();
        Self { program: program.into(), arguments, libraries: Vec::new() }
    }

    /// A run of it without the shim.
    fn run(&self) -> Run {
        let run = self.arguments.iter().fold(Run::new(&self.program), Run::arg);
        self.libraries.iter().fold(run, Run::library_path).sim()
    }
}

fn build(source: &str, arguments: &[&str]) -> Build {
    arguments.iter().fold(Build::new(&format!("hosts/{source}")), Build::arg)
}

/// A program that was linked to the vendor's library.
fn linked(source: &str, arguments: &[&str]) -> Way {
    Way::new(build(source, arguments).arg(VENDOR).program(), &[])
}

/// A program that opens `library` and looks the functions up.
fn lookup(library: impl AsRef<Path>, scope: &str, how: &str) -> Way {
    Way::new(build("bind_lookup.c", &[]).program(), &[&library.as_ref().to_string_lossy(), scope, how])
}

/// A plugin of a program that knows nothing of the vendor.
fn plugin(flags: &str, source: &str, arguments: &[&str], passed: &[&str]) -> Way {
    let plugin = build(source, &["-DBIND_PLUGIN"]);
    let plugin = arguments.iter().fold(plugin, Build::arg).library("plugin");
    Way::new(build("bind_open.c", &[]).program(), &[&[flags, &plugin.to_string_lossy()], passed].concat())
}

/// The same, in a program that was itself linked to the vendor and took the functions' addresses.
fn in_a_fixed_program(way: Way) -> Way {
    Way { program: build("bind_open.c", &["-DBIND_TAKES_ADDRESSES", "-fno-pie", FIXED, VENDOR]).program(), ..way }
}

/// A program whose library looks the functions up in its constructor.
fn early(arguments: &[&str]) -> Way {
    let library = build("bind_early.c", &["-DBIND_PLUGIN"]);
    let library = arguments.iter().fold(library, Build::arg).library("early");
    let folder = library.parent().unwrap();
    let program = build("bind_cached.c", &[&format!("-L{}", folder.display()), "-learly"]).program();
    Way { libraries: vec![folder.into()], ..Way::new(program, &[]) }
}

/// A library that depends on the vendor's and has nothing of it itself.
fn dependent() -> PathBuf {
    build("bind_linked.c", &["-DBIND_PLUGIN", VENDOR]).library("dependent")
}

/// A library that has the functions with a version and forwards them.
fn versioned() -> PathBuf {
    let map = support::root().join("tests/hosts/bind_version.map");
    build("bind_interposer.c", &[&format!("-Wl,--version-script={}", map.display())]).library("versioned")
}

/// Another interposer of the same functions.
fn interposer(how: &str) -> PathBuf {
    build("bind_interposer.c", &[how]).library("interposer")
}
const BY_NEXT: &str = "-DBIND_NEXT";
const BY_LOOKUP: &str = "-UBIND_NEXT";

/// The interpreter itself, not a script in front of it.
fn python() -> PathBuf {
    let path = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().expect("python3");
    String::from_utf8_lossy(&path.stdout).trim().into()
}

/// A second copy of the shim: another file.
fn copy_of_the_shim() -> PathBuf {
    let copy = scratch("copy").join("libaclshim.so");
    fs::copy(shim(), &copy).expect("a copy of the shim");
    copy
}

/// A fresh drop-in folder.
fn dropin() -> PathBuf {
    let folder = scratch("dropin");
    let made = aclshim().arg("dropin").arg(&folder).arg("--real").arg(sim().join("libascendcl.so")).output();
    let made = made.expect("aclshim dropin");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    folder
}

/// A run with a drop-in folder in front.
fn dropped_in(way: &Way, folder: PathBuf) -> Run {
    let run = way.arguments.iter().fold(Run::new(&way.program), Run::arg).library_path(folder);
    way.libraries.iter().fold(run, Run::library_path).sim()
}

/// Every line `name code=0 vendor=1 bytes=N`: 21 different functions, each entered once. Gives the bytes.
#[track_caller]
fn reached_once(output: &Output) -> BTreeMap<String, u64> {
    let told = output.stdout.lines().filter_map(|line| line.split_once(" code=0 vendor=1 bytes="));
    let told: BTreeMap<_, _> = told.map(|(name, bytes)| (name.to_owned(), bytes.parse().unwrap())).collect();
    assert!(told.keys().map(String::as_str).eq(names()), "{:?}\n{}{}", output.status, output.stdout, output.stderr);
    told
}

fn names() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<_> = FUNCTIONS.iter().map(|row| row.name).collect();
    names.sort_unstable();
    names.into_iter()
}

/// Runs both and checks that the host notices nothing and each function was counted once.
#[track_caller]
fn seen_once(plain: Run, shimmed: Run, nested: u64) -> (Stat, Output) {
    let (plain, shimmed) = (plain.run(), shimmed.run());
    reached_once(&plain);
    assert_eq!(shimmed.seen(), plain.seen(), "the host notices the shim");
    let stat = shimmed.stat();
    let once: BTreeMap<_, _> = names().map(|name| (name.to_owned(), 1)).collect();
    assert_eq!(stat.calls(), once, "counted");
    let totals = ["processes", "calls", "nested", "errors", "not_recorded", "in_flight"].map(|key| stat.total(key));
    assert_eq!(totals, [1, 21, nested, 0, 0, 0], "{}", stat.0);
    (stat, shimmed)
}

/// Runs it and checks that each function reached the vendor once and nothing was counted: there is no file at all.
#[track_caller]
fn unseen(plain: Run, shimmed: Run) {
    let (plain, shimmed) = (plain.run(), shimmed.run());
    reached_once(&plain);
    assert_eq!(shimmed.seen(), plain.seen(), "the host notices the shim");
    let left: Vec<_> = fs::read_dir(&shimmed.scratch).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A test for each way of binding, with the shim preloaded; `+ 21` where a call is to be seen nested too.
macro_rules! preloaded {
    ($($name:ident: $way:expr $(, nested $nested:literal)?;)*) => {$(
        #[test]
        fn $name() {
            let way: Way = $way;
            seen_once(way.run(), way.run().shim(), 0 $(+ $nested)?);
        }
    )*};
}

/// A test for each host, with a drop-in folder instead of a preload.
macro_rules! dropped_in {
    ($($name:ident: $way:expr;)*) => {$(
        #[test]
        fn $name() {
            let way: Way = $way;
            seen_once(way.run(), dropped_in(&way, dropin()), 0);
        }
    )*};
}

/// A test for each host, with another interposer in front of the shim or behind it.
macro_rules! interposed {
    ($($name:ident: $way:expr, $interposer:expr, $place:ident $(, nested $nested:literal)?;)*) => {$(
        #[test]
        fn $name() {
            let (way, other): (Way, PathBuf) = ($way, $interposer);
            let both = interposed!(@$place way.run(), &other);
            seen_once(way.run().preload(&other), both, 0 $(+ $nested)?);
        }
    )*};
    (@in_front $run:expr, $other:expr) => { $run.preload($other).shim() };
    (@behind $run:expr, $other:expr) => { $run.shim().preload($other) };
}
