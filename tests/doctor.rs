//! `aclshim doctor`: the right word, and the right remedy, for each kind of program and place.

#[path = "support/checking.rs"]
mod checking;
mod support;
#[allow(dead_code)]
#[path = "support/ways.rs"]
mod ways;

use aclshim_facts::FUNCTIONS;
use checking::cases;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{Build, Run, aclshim, has, runnable, scratch, shim, sim, target};

/// What the doctor said.
struct Told {
    json: Value,
    exit: Option<i32>,
    /// Where the program would have left its mark.
    mark: PathBuf,
}

/// The doctor, on the simulated device.
fn doctor() -> Run {
    Run::new(target("release/aclshim")).arg("doctor").arg("--json").sim()
}

/// The doctor about a program.
fn about(program: impl AsRef<Path>) -> Run {
    doctor().arg("--").arg(program.as_ref())
}

#[track_caller]
fn told(run: Run) -> Told {
    let mark = scratch("mark").join("mark");
    let output = run.env("DOCTOR_MARK", &mark).run();
    // What is preloaded may print something behind it.
    let json = serde_json::Deserializer::from_str(&output.stdout).into_iter().next();
    let json = json.and_then(Result::ok).unwrap_or_else(|| panic!("{output:?}"));
    Told { json, exit: output.status.code(), mark }
}

impl Told {
    /// The lines of an id.
    fn lines(&self, id: &str) -> Vec<&Value> {
        self.json["lines"].as_array().unwrap().iter().filter(|line| line["id"] == id).collect()
    }

    /// That there is a line of this id and level which holds all these words, in what was seen or in the remedy.
    #[track_caller]
    fn says(&self, id: &str, level: &str, words: &[&str]) -> &Self {
        let holds = |line: &&&Value| {
            let text = format!("{} {}", line["seen"], line["remedy"]);
            line["level"] == level && words.iter().all(|word| text.contains(word))
        };
        let found = self.lines(id);
        assert!(found.iter().find(holds).is_some(), "{id} {level} {words:?}: {:#}", self.json);
        self
    }

    /// That nothing is in the way.
    #[track_caller]
    fn is_well(&self) -> &Self {
        assert_eq!((self.exit, &self.json["problems"]), (Some(0), &0.into()), "{:#}", self.json);
        self
    }

    /// That something is in the way, and the calls are not seen.
    #[track_caller]
    fn is_not_well(&self) -> &Self {
        assert_eq!(self.exit, Some(1), "{:#}", self.json);
        for line in self.json["lines"].as_array().unwrap().iter().filter(|line| line["level"] != "ok") {
            assert!(line["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "a remedy for each: {line}");
        }
        self
    }

    /// Whether the calls will be seen.
    #[track_caller]
    fn sees(&self, what: &str) -> &Self {
        assert_eq!(self.json["seen"], what, "{:#}", self.json);
        self
    }

    /// That the program was not run.
    #[track_caller]
    fn has_not_run(&self) -> &Self {
        assert!(!self.mark.exists(), "the program was run");
        self
    }
}

fn build(arguments: &[&str]) -> PathBuf {
    arguments.iter().fold(Build::new("hosts/doctor_host.c"), Build::arg).program()
}

fn linked() -> PathBuf {
    build(&["-lascendcl"])
}

/// A copy of a file with some bytes changed.
fn changed(file: &Path, change: impl FnOnce(&mut Vec<u8>)) -> PathBuf {
    let copy = scratch("changed").join(file.file_name().unwrap());
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    runnable(&copy, &bytes);
    copy
}

fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|part| part == from).expect("what is to be replaced");
    bytes[at..at + to.len()].copy_from_slice(to);
}

fn script(first_line: &str, rest: &str) -> PathBuf {
    let file = scratch("script").join("script");
    runnable(&file, format!("{first_line}\n{rest}\n").as_bytes());
    file
}

// ---- The surroundings ----

#[test]
fn what_is_there_is_told_and_the_verdict_comes_first() {
    let told = told(doctor());
    told.is_well();
    told.says("shim", "ok", &["libaclshim.so", "version 0.1.0, as this command"]).says("shim-loads", "ok", &["glibc"]);
    told.says("preload", "ok", &["not set"]).says("vendor", "ok", &["sim/libascendcl.so", "simulated", "CANN 9"]);
    told.says("product", "ok", &["Ascend910B1", "Atlas A2"]).says(
        "vendor-functions",
        "ok",
        &[&format!("all {} functions", FUNCTIONS.len())],
    );
    told.says("dir", "ok", &["will be made", "free"]).says("settings", "ok", &["ACLSHIM_DIR="]);
    let text = Run::new(target("release/aclshim")).arg("doctor").sim().run().ok().stdout;
    assert!(text.starts_with("ready (no problem, "), "{text}");
    assert!(text.contains("\nthe vendor's library\n  ok       "), "{text}");
}

#[test]
fn product_and_release_are_the_librarys_own_and_what_it_lacks_is_named() {
    let older = Run::new(target("release/aclshim")).arg("doctor").arg("--json").library_path(target("sim/no-batch"));
    let told = told(older.env("ASCENDCL_SIM_SOC", "Ascend310P3"));
    told.is_well().says("product", "ok", &["Ascend310P3", "Atlas inference series"]);
    told.says("vendor-functions", "ok", &["lacks", "aclrtMemcpyBatchAsync"]);
}

#[test]
fn without_a_library_the_doctor_says_where_it_looked() {
    let told = told(Run::new(target("release/aclshim")).arg("doctor").arg("--json"));
    told.is_well().says("vendor", "warning", &["ASCEND_HOME_PATH", "set_env.sh", "--sim"]);
}

#[test]
fn a_library_that_cannot_be_loaded_or_crashes_harms_nobody() {
    let empty = scratch("vendor").join("libascendcl.so");
    fs::write(&empty, "not a library").unwrap();
    told(doctor().env("ACLSHIM_REAL", &empty)).is_not_well().says("vendor", "problem", &["not an ELF file"]);
    let crashing = scratch("vendor").join("crash.c");
    fs::write(&crashing, "__attribute__((constructor)) static void f(void) { *(volatile int *)0 = 1; } int aclInit;")
        .unwrap();
    let library = crashing.with_file_name("libascendcl.so");
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &crashing]).status().unwrap();
    assert!(made.success());
    told(doctor().env("ACLSHIM_REAL", &library)).is_well().says("vendor", "warning", &["ended by signal 11"]);
}

#[test]
fn a_shim_of_another_version_or_none_or_a_damaged_one_is_named() {
    let place = scratch("installed");
    let command = place.join("aclshim");
    runnable(&command, &fs::read(target("release/aclshim")).unwrap());
    let run = || Run::new(&command).arg("doctor").arg("--json").sim();
    told(run()).is_not_well().says("shim", "problem", &["was not found", "of one release"]);
    let other = changed(&shim(), |bytes| replace(bytes, b"aclshim\x000.1.0\0", b"aclshim\x009.8.7\0"));
    fs::copy(&other, place.join("libaclshim.so")).unwrap();
    told(run()).is_well().says("shim", "warning", &["is version 9.8.7, this command is 0.1.0"]);
    fs::write(place.join("libaclshim.so"), &fs::read(shim()).unwrap()[..4096]).unwrap();
    told(run()).is_not_well().says("shim", "problem", &["libaclshim.so"]);
}

#[test]
fn what_is_preloaded_already_is_told() {
    let interposer = ways::interposer(ways::BY_NEXT);
    let told = told(doctor().preload("/does/not/exist.so").preload(&interposer).preload(shim()));
    told.is_well().says("preload", "warning", &["/does/not/exist.so", "take it out"]);
    told.says("preload", "ok", &["libinterposer.so", &format!("{} functions", FUNCTIONS.len())]).says(
        "preload",
        "ok",
        &["holds the shim"],
    );
}

#[test]
fn settings_that_make_no_sense_are_named_with_what_holds_instead() {
    let run = doctor().env("ACLSHIM_MODE", "loud").env("ACLSHIM_MOED", "off").env("ACLSHIM_RING_SIZE", "1");
    let told = told(run.env("ACLSHIM_RULES", "ALGIN-64=off").env("ACLSHIM_RECORD", "off"));
    told.is_well().says("settings", "warning", &["ACLSHIM_MODE=loud", "observe, enforce, off"]);
    told.says("settings", "warning", &["ACLSHIM_MOED is no setting", "ACLSHIM_MODE"]);
    told.says("settings", "warning", &["ACLSHIM_RING_SIZE=1"]).says("settings", "warning", &["ALGIN-64=off"]);
    told.says("settings-off", "warning", &["ACLSHIM_RECORD=off", "unset"]);
}

#[test]
fn places_that_will_not_do_are_problems() {
    let file = scratch("place").join("file");
    fs::write(&file, "").unwrap();
    told(doctor().env("ACLSHIM_DIR", file.join("out"))).is_not_well().says("dir", "problem", &["not a folder"]);
    let deep = scratch("place").join("missing/out");
    told(doctor().env("ACLSHIM_DIR", &deep)).is_not_well().says("dir", "problem", &["does not exist", "mkdir -p"]);
    let rings = told(doctor().env("ACLSHIM_RING_DIR", "/does/not/exist"));
    rings.is_not_well().says("rings", "problem", &["/does/not/exist", "tmpfs"]);
    let limited =
        Run::new("sh").arg("-c").arg("ulimit -f 64; exec \"$0\" doctor --json").arg(target("release/aclshim"));
    told(limited.sim()).is_not_well().says("rings-limit", "problem", &["ulimit -f"]);
}

/// What is started and must end with the test, however it ends.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn rings_of_the_dead_are_counted_and_a_collector_is_seen() {
    let output = cases("good 3").env("ACLSHIM_DRAIN", "off").run().ok();
    let told = told(doctor().env("ACLSHIM_RING_DIR", &output.scratch));
    told.is_well().says("rings-left", "warning", &["1 ring of", "aclshim recover", "aclshim clean --rings"]);
    let rings = scratch("rings");
    let mut collector = aclshim();
    collector.arg("collect").arg(&rings).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let collector = Ends(collector.spawn().unwrap());
    let told = self::told(doctor().env("ACLSHIM_DRAIN", "outside"));
    drop(collector);
    told.is_well().says("collect", "ok", &["aclshim collect runs"]);
}

// ---- Programs ----

#[test]
fn the_calls_of_a_linked_program_are_seen_and_it_is_not_run() {
    let told = told(about(linked()));
    told.is_well().sees("yes").has_not_run();
    told.says("program", "ok", &["dynamic program"]).says(
        "linked",
        "ok",
        &["1 function (aclrtMemcpy)", "bound to the shim"],
    );
    told.says("vendor", "ok", &["the program needs it", "simulated"]);
    let objects = told.json["objects"].as_array().unwrap();
    assert_eq!(objects[0]["links"], serde_json::json!(["aclrtMemcpy"]), "{:#}", told.json);
    assert!(objects.iter().any(|object| object["vendor"] == true), "{:#}", told.json);
    let text = Run::new(target("release/aclshim")).arg("doctor").arg("--").arg(linked()).sim().run().ok().stdout;
    assert!(text.lines().next().unwrap().contains("its calls are seen (no problem"), "{text}");
}

#[test]
fn a_program_whose_libraries_are_missing_does_not_start() {
    let told = told(Run::new(target("release/aclshim")).arg("doctor").arg("--json").arg("--").arg(linked()));
    told.is_not_well().sees("no").has_not_run();
    told.says("libraries", "problem", &["libascendcl.so", "LD_LIBRARY_PATH", "set_env.sh"]);
}

/// A library or program of some lines of C in a folder.
fn compiled(file: &Path, source: &str, arguments: &[&str]) {
    let code = file.with_extension("c");
    fs::write(&code, source).unwrap();
    let folder = format!("-L{}", file.parent().unwrap().display());
    let made = Command::new("cc").arg("-o").args([file, &code]).arg(folder).args(arguments).status().unwrap();
    assert!(made.success(), "{}", file.display());
}

#[test]
fn a_missing_library_that_several_objects_need_is_named_once() {
    let folder = scratch("missing");
    let inner = folder.join("libinner.so");
    compiled(&inner, "int inner(void) { return 1; }", &["-shared", "-fPIC"]);
    let vendor = folder.join("libascendcl.so");
    let calls = "int inner(void); int aclInit(void) { return inner(); }";
    compiled(&vendor, calls, &["-shared", "-fPIC", "-Wl,--no-as-needed", "-linner"]);
    let program = folder.join("program");
    let main = "int inner(void); int aclInit(void); int main(void) { return inner() + aclInit(); }";
    compiled(&program, main, &["-lascendcl", "-linner"]);
    fs::remove_file(&inner).unwrap();
    let run = Run::new(target("release/aclshim")).arg("doctor").arg("--json").library_path(&folder);
    let told = told(run.arg("--").arg(&program));
    told.is_not_well().says("libraries", "problem", &["does not find libinner.so: the program"]);
    let naming = |line: &&Value| line["seen"].as_str().unwrap().contains("libinner.so");
    let named = told.json["lines"].as_array().unwrap().iter().filter(naming).count();
    assert_eq!((named, &told.json["problems"]), (1, &1.into()), "{:#}", told.json);
    told.says("vendor", "warning", &["libascendcl.so", "needs a library that was not found"]);
}

#[test]
fn a_program_that_looks_its_functions_up_is_seen_too() {
    let told = told(about(build(&["-DDOCTOR_LOOKUP"])));
    told.is_well().sees("yes").has_not_run();
    told.says("looked-up", "ok", &["1 function (aclrtMemcpy)", "dlsym"]).says("opens", "ok", &["RTLD_DEEPBIND or not"]);
}

#[test]
fn a_static_program_cannot_be_reached() {
    let told = told(about(build(&["-static", "-DDOCTOR_OWN"])));
    told.is_not_well().sees("no").has_not_run();
    told.says(
        "program",
        "problem",
        &["static program, with the vendor's functions inside", "without -static", "dropin cannot help"],
    );
}

#[test]
fn a_program_with_raised_privileges_is_told_from_one_that_is_ours() {
    let copy = changed(&linked(), |_| ());
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
    told(about(&copy)).is_well().has_not_run().says("privileges", "warning", &["setuid", "other users"]);
    // Only the superuser can give a file away.
    if chown(&copy, Some(65534), None).is_ok() {
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
        let told = told(about(&copy));
        told.is_not_well().sees("no").has_not_run();
        told.says("privileges", "problem", &["setuid bit of another user", "LD_PRELOAD is ignored", "run a copy"]);
    }
}

#[test]
fn programs_for_another_processor_or_another_libc_are_named() {
    let other = changed(&linked(), |bytes| bytes[18..20].copy_from_slice(&243u16.to_le_bytes()));
    told(about(&other)).is_not_well().says("program", "problem", &["processor number 243", "build it for"]);
    let small = changed(&linked(), |bytes| bytes[4] = 1);
    told(about(&small)).is_not_well().says("program", "problem", &["32-bit"]);
    let musl = changed(&linked(), |bytes| replace(bytes, b"/ld-linux-", b"/ld-musl-x"));
    told(about(&musl)).is_not_well().sees("no").says("program", "problem", &["musl", "glibc"]);
    let lost = changed(&linked(), |bytes| replace(bytes, b"/ld-linux-", b"/ld-lunix-"));
    told(about(&lost)).is_not_well().says("program", "problem", &["ld-lunix", "not there"]);
    told(about("/does/not/exist")).is_not_well().says("program", "problem", &["was not found"]);
    told(about(script("nothing", ""))).is_not_well().says("program", "problem", &["not an ELF file", "#!"]);
}

#[test]
fn a_script_leads_to_its_interpreter() {
    let told_of_shell = told(about(script("#!/bin/sh", "touch \"$DOCTOR_MARK\"")));
    told_of_shell.is_well().sees("unknown").has_not_run();
    told_of_shell.says("script", "ok", &["/bin/sh"]).says("shell", "warning", &["children inherit the preload"]);
    let python = script(&format!("#!{}", ways::python().display()), "open('/dev/null')");
    told(about(python)).is_well().sees("unknown").says("script", "ok", &["python"]).says("opens", "ok", &["--run"]);
    told(about(script("#!/usr/bin/env sh", ""))).is_well().says("script", "ok", &["/sh"]);
    let nowhere = told(about(script("#!/does/not/exist", "")));
    nowhere.is_not_well().says("program", "problem", &["wants /does/not/exist"]);
}

#[test]
fn what_goes_past_the_shim_is_named_with_its_reason() {
    let inside = told(about(build(&["-DDOCTOR_OWN"])));
    inside.is_not_well().sees("no").says("inside", "problem", &["1 function (aclrtMemcpy) inside", "-lascendcl"]);
    let own = told(about(build(&["-DDOCTOR_OWN", "-rdynamic"])));
    own.is_not_well().sees("no").says("own", "problem", &["before any preload"]);
    let below = told(about(build(&["-DDOCTOR_BELOW", "-Wl,-z,dynamic-undefined-weak", "-lascendcl"])));
    below.is_well().says("below", "warning", &["rtMemcpyAsync", "msprof"]);
    let implementation = told(about(build(&["-DDOCTOR_IMPL", "-Wl,-z,dynamic-undefined-weak", "-lascendcl"])));
    implementation.is_well().says("below", "warning", &["aclrtMemcpyImpl", "are not seen", "call aclrtMemcpy instead"]);
    assert_eq!(implementation.json["objects"][0]["below"], serde_json::json!(["aclrtMemcpyImpl"]));
    let namespace = told(about(build(&["-DDOCTOR_NAMESPACE"])));
    namespace.is_well().says("namespace", "warning", &["dlmopen", "dlopen"]);
    let symbolic = ways::build("bind_interposer.c", &["-Wl,-Bsymbolic"]).library("interposer");
    let symbolic = told(about(linked()).preload(symbolic));
    symbolic.is_well().says("symbolic", "warning", &["-Bsymbolic"]).says("linked", "ok", &["bound to the shim"]);
    let nothing = told(about("true"));
    nothing.is_well().sees("unknown").says("nothing", "warning", &["nothing to see"]);
    for told in [inside, own, below, implementation, namespace] {
        told.has_not_run();
    }
}

#[test]
fn a_function_that_this_cann_lacks_is_named() {
    let program = Build::new("hosts/check_one.c").link("ascendcl").program();
    let told = told(about(program).env("ACLSHIM_REAL", target("sim/no-batch/libascendcl.so")));
    told.is_well().says("lacking", "warning", &["aclrtMemcpyBatch", "207000", "update CANN"]);
}

// ---- With --run ----

/// As the linker's own tool has it.
fn build_id(library: &Path) -> String {
    let notes = Command::new("readelf").env("LC_ALL", "C").arg("-n").arg(library).output().unwrap().stdout;
    let notes = String::from_utf8_lossy(&notes).into_owned();
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    id.unwrap_or_else(|| panic!("{}: {notes}", library.display())).into()
}

fn run_of(program: &Path, arguments: &[&str]) -> Run {
    let run = doctor().arg("--run").arg("--").arg(program);
    arguments.iter().fold(run, Run::arg)
}

#[test]
fn a_run_tells_what_was_seen_and_whom_the_calls_were_passed_on_to() {
    let ways = [linked(), build(&["-DDOCTOR_LOOKUP"])];
    let in_a_script = script("#!/bin/sh", &format!("{0}\n{0}", linked().display()));
    for (program, calls) in [(&ways[0], 1), (&ways[1], 1), (&in_a_script, 2)] {
        let told = told(run_of(program, &[]));
        told.is_well().sees("yes");
        assert!(told.mark.exists(), "it was run");
        let run = &told.json["run"];
        assert_eq!(run["calls"], serde_json::json!({ "aclrtMemcpy": calls }), "{:#}", told.json);
        assert_eq!(run["status"], 0);
        let process = &run["processes"][0];
        assert_eq!(process["product"], "Ascend910B1");
        let library = process["library"].as_str().unwrap();
        assert!(library.ends_with("/sim/libascendcl.so"), "{process}");
        if has("readelf", "a_run_tells_what_was_seen_and_whom_the_calls_were_passed_on_to") {
            assert_eq!(process["build_id"], build_id(Path::new(library)), "{process}");
        }
        assert!(process["cann"].as_str().unwrap().starts_with("9."), "{process}");
        told.says("calls", "ok", &["seen"]);
    }
}

#[test]
fn a_run_shows_what_could_not_be_known_before() {
    let way = ways::plugin("now,deepbind", "bind_linked.c", &[ways::VENDOR], &[]);
    let arguments: Vec<&str> = way.arguments.iter().map(String::as_str).collect();
    told(about(&way.program)).is_well().sees("unknown").says("opens", "ok", &["RTLD_DEEPBIND or not"]);
    let told_of_off = told(about(&way.program).env("ACLSHIM_DEEPBIND", "off"));
    told_of_off.says("opens", "warning", &["binds past the shim", "unset ACLSHIM_DEEPBIND"]);
    let told = told(run_of(&way.program, &arguments));
    told.is_well().sees("yes").says("calls", "ok", &["aclrtMemcpyBatch"]);
}

#[test]
fn a_run_in_which_nothing_happens_is_not_taken_for_a_good_one() {
    let idle = told(run_of(Path::new("true"), &[]));
    idle.is_well().sees("unknown").says("calls", "warning", &["the shim was loaded", "nothing was copied"]);
    let unreached = told(run_of(&build(&["-static", "-DDOCTOR_OWN"]), &[]));
    unreached.is_not_well().sees("no").says("calls", "problem", &["was not loaded"]);
    let failing = told(run_of(Path::new("false"), &[]));
    failing.is_well().says("run", "warning", &["exit status: 1"]);
}

#[test]
fn a_run_leaves_nothing_behind_and_what_the_program_prints_stays_apart() {
    let talking = script("#!/bin/sh", "echo spoken");
    let temporary = scratch("tmp");
    let rings = scratch("rings");
    let run = run_of(&talking, &[]).env("TMPDIR", &temporary).env("ACLSHIM_RING_DIR", &rings);
    let output = run.run().ok();
    assert!(output.stderr.contains("spoken") && !output.stdout.contains("spoken\n"), "{output:?}");
    for folder in [temporary, rings] {
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{}", folder.display());
    }
}

#[test]
fn a_run_that_is_interrupted_leaves_nothing_behind_either() {
    let (temporary, rings) = (scratch("tmp"), scratch("rings"));
    let waiting = script("#!/bin/sh", "echo here; exec sleep 60");
    let run = run_of(&waiting, &[]).env("TMPDIR", &temporary).env("ACLSHIM_RING_DIR", &rings);
    let (mut child, _) = run.spawn();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "here"));
    assert_eq!(fs::read_dir(&rings).unwrap().count(), 1);
    // SAFETY: a child of ours.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    for folder in [temporary, rings] {
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "{}", folder.display());
    }
}

// ---- Where CANN is installed ----

#[test]
fn a_drop_in_is_told_from_the_library_behind_it() {
    let run = Run::new(target("release/aclshim")).arg("doctor").arg("--json").library_path(ways::dropin()).sim();
    let told = told(run.arg("--").arg(linked()));
    told.is_well().sees("yes").has_not_run().says("dropin", "ok", &["without a preload"]);
    told.says("vendor", "ok", &["simulated"]).says("linked", "ok", &["bound to the shim"]);
}

#[test]
fn two_different_installations_are_told() {
    let home = scratch("home");
    fs::create_dir(home.join("lib64")).unwrap();
    fs::copy(sim().join("libascendcl.so"), home.join("lib64/libascendcl.so")).unwrap();
    let told_of_two = told(doctor().env("ASCEND_HOME_PATH", &home));
    told_of_two.is_well().says("vendor-two", "warning", &["two runtimes"]).says(
        "vendor",
        "ok",
        &["$ASCEND_HOME_PATH/lib64"],
    );
    let same = scratch("home");
    symlink(sim(), same.join("lib64")).unwrap();
    let told = told(doctor().env("ASCEND_HOME_PATH", &same));
    assert!(told.is_well().lines("vendor-two").is_empty(), "{:#}", told.json);
}

#[test]
fn set_env_is_named_where_ascend_home_path_is_missing() {
    let home = scratch("cann");
    fs::create_dir(home.join("lib64")).unwrap();
    let set_env = home.join("set_env.sh");
    fs::write(&set_env, "").unwrap();
    // Imports what only the vendor's own may import.
    let vendor = "int aclrtMemcpyImpl(void) __attribute__((weak)); int aclInit(void) { return 0; }\n\
                  int aclrtMemcpy(void) { return aclrtMemcpyImpl ? aclrtMemcpyImpl() : 0; }";
    compiled(
        &home.join("lib64/libascendcl.so"),
        vendor,
        &["-shared", "-fPIC", "-Wl,-soname,libascendcl.so", "-Wl,-z,dynamic-undefined-weak"],
    );
    let set_env = set_env.to_str().unwrap();
    let run = || Run::new(target("release/aclshim")).arg("doctor").arg("--json").library_path(home.join("lib64"));
    let unset = told(run());
    unset.is_well().says("home", "warning", &["ASCEND_HOME_PATH is not set", set_env]);
    unset.says("vendor-release", "warning", &["release is not known", set_env]);
    let nowhere = told(run().env("ASCEND_HOME_PATH", "/does/not/exist"));
    nowhere.is_well().says("home", "warning", &["ASCEND_HOME_PATH=/does/not/exist", set_env]);
    let set = told(run().env("ASCEND_HOME_PATH", &home).arg("--").arg(linked()));
    assert!(set.is_well().lines("home").is_empty(), "{:#}", set.json);
    assert!(set.lines("below").is_empty(), "the vendor's own library is not accused: {:#}", set.json);
    let simulated = told(doctor());
    assert!(simulated.is_well().lines("home").is_empty(), "the simulated device needs none: {:#}", simulated.json);
}
