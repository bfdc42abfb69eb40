//! A call site is shown by its function and line where these can be known, and by its module and offset everywhere.

#[path = "support/checking.rs"]
mod checking;
mod support;

use checking::{findings, printed, text, watched};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};
use support::{Build, Output, aclshim, has, root, scratch};

/// A host that makes one bad call from `call_room`.
fn built(arguments: &[&str]) -> PathBuf {
    arguments.iter().fold(Build::new("hosts/check_one.c").link("ascendcl"), Build::arg).program()
}

fn run(program: &Path) -> Output {
    watched(program).arg("room").arg("1").run().ok()
}

/// The line of a source that holds some text.
fn line_of(source: &str, part: &str) -> usize {
    let source = fs::read_to_string(root().join("tests/hosts").join(source)).unwrap();
    source.lines().position(|line| line.contains(part)).unwrap() + 1
}

fn finding(output: &Output) -> Value {
    let found = findings(output);
    let [finding] = &found[..] else { panic!("{found:?}") };
    finding.clone()
}

/// What a command of binutils makes of a program.
fn made(program: &Path, command: &str, arguments: &[&str]) -> PathBuf {
    let copy = scratch("made").join(program.file_name().unwrap());
    let status = Command::new(command).args(arguments).arg(program).arg(&copy).status().unwrap();
    assert!(status.success(), "{command}");
    copy
}

#[track_caller]
fn is_named(output: &Output) {
    let finding = finding(output);
    assert_eq!(finding["symbol"], "call_room", "{finding}");
    assert!(text(&finding["file"]).ends_with("tests/hosts/check_one.c"), "{finding}");
    assert_eq!(finding["line"], line_of("check_one.c", "int call_room(void)"), "{finding}");
}

#[test]
fn a_finding_names_the_function_and_the_line_wherever_the_program_is_loaded() {
    for arguments in
        [&[][..], &["-no-pie", "-fno-pie"], &["-Wl,-z,noseparate-code"], &["-Wl,-Ttext-segment=0x12345000"]]
    {
        let program = built(arguments);
        let output = run(&program);
        is_named(&output);
        let name = program.file_name().unwrap().to_str().unwrap();
        let line = line_of("check_one.c", "int call_room(void)");
        let shown = printed(&output, &[]);
        assert!(shown.contains(&format!("    call from call_room (check_one.c:{line}) {name}+0x")), "{shown}");
    }
}

#[test]
fn a_program_that_is_gone_before_anybody_looks_still_names_its_modules() {
    let output = watched(built(&[])).arg("room").arg("1").env("ACLSHIM_DRAIN", "off").run().ok();
    assert!(!output.scratch.join("out").exists(), "there is nothing but the ring");
    is_named(&output);
}

#[test]
fn a_name_is_read_back_from_what_the_linker_made_of_it() {
    if !has("c++", "a_name_is_read_back_from_what_the_linker_made_of_it") {
        return;
    }
    let program = Build::new("hosts/symbols_names.cpp").link("ascendcl").program();
    let finding = finding(&watched(program).run().ok());
    assert_eq!(finding["symbol"], "cache::Offload<long>::copy(long*, long const*)", "{finding}");
    assert_eq!(finding["line"], line_of("symbols_names.cpp", "// the line"), "{finding}");
}

#[test]
fn a_stripped_library_still_names_what_it_exports() {
    if !has("c++", "a_stripped_library_still_names_what_it_exports") {
        return;
    }
    let plugin =
        Build::new("hosts/symbols_names.cpp").arg("-DSYMBOLS_PLUGIN").arg("-s").link("ascendcl").library("names");
    let finding = finding(&watched(Build::new("hosts/bind_open.c").program()).arg("now").arg(plugin).run().ok());
    assert_eq!((&finding["module"], &finding["line"]), (&"libnames.so".into(), &Value::Null), "{finding}");
    assert_eq!(finding["symbol"], "cache::Offload<long>::copy(long*, long const*)", "{finding}");
}

#[test]
fn with_symbols_alone_the_function_is_named_and_without_them_the_offset_is_left() {
    let program = built(&[]);
    let bare = made(&program, "objcopy", &["--strip-debug"]);
    let output = run(&bare);
    let found = finding(&output);
    assert_eq!((&found["symbol"], &found["line"]), (&"call_room".into(), &Value::Null), "{found}");
    let stripped = made(&program, "objcopy", &["--strip-all"]);
    let output = run(&stripped);
    let found = finding(&output);
    assert_eq!([&found["symbol"], &found["file"], &found["line"]], [&Value::Null; 3], "{found}");
    let name = stripped.file_name().unwrap().to_str().unwrap();
    let shown = printed(&output, &[]);
    let offset = found["offset"].as_u64().unwrap();
    assert!(shown.contains(&format!("    call from {name}+{offset:#x}, process")), "{shown}");
}

#[test]
fn debug_information_in_a_file_of_its_own_is_found() {
    let program = built(&[]);
    let debug = made(&program, "objcopy", &["--only-keep-debug"]);
    let link = format!("--add-gnu-debuglink={}", debug.display());
    let stripped = made(&program, "objcopy", &["--strip-all", &link]);
    let output = run(&stripped);
    assert_eq!(finding(&output)["symbol"], Value::Null);
    let beside = stripped.parent().unwrap().join(".debug");
    fs::create_dir(&beside).unwrap();
    fs::rename(&debug, beside.join(debug.file_name().unwrap())).unwrap();
    is_named(&output);
}

/// A section of debug information of this many zeros, packed as `objcopy --compress-debug-sections=zlib-gnu` does.
const PACKED_ZEROS: &str = "import sys, zlib
size, packer = int(sys.argv[1]), zlib.compressobj(1)
with open(sys.argv[2], 'wb') as to:
    to.write(b'ZLIB' + size.to_bytes(8, 'big'))
    for _ in range(size >> 20):
        to.write(packer.compress(bytes(1 << 20)))
    to.write(packer.flush())";

/// The most memory that a command had, in bytes.
fn most_memory(command: &mut Command) -> u64 {
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    // SAFETY: zero is a valid answer, which is filled in; the child is ours.
    let (status, usage) = unsafe {
        let (mut status, mut usage) = (0, std::mem::zeroed::<libc::rusage>());
        assert_eq!(libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage), child.id() as libc::pid_t);
        (status, usage)
    };
    // It is gone already.
    let _ = child.wait();
    assert_eq!(status, 0);
    usage.ru_maxrss as u64 * 1024
}

#[test]
fn debug_information_that_would_take_much_memory_is_left_packed_and_said_so() {
    const SIZE: u64 = 768 << 20;
    if !has("python3", "debug_information_that_would_take_much_memory_is_left_packed_and_said_so") {
        return;
    }
    let packed = scratch("packed").join("section");
    let made_of = Command::new("python3").args(["-c", PACKED_ZEROS, &SIZE.to_string()]).arg(&packed).status();
    assert!(made_of.unwrap().success());
    let bare = made(&built(&[]), "objcopy", &["--strip-debug"]);
    let section = format!("--add-section=.zdebug_info={}", packed.display());
    let output = run(&made(&bare, "objcopy", &[&section]));
    let out = output.scratch.join("out");
    let command = |arguments: &[&str]| {
        let mut command = aclshim();
        command.env("ACLSHIM_RING_DIR", &output.scratch).args(arguments).arg(&out);
        command
    };
    let most = most_memory(command(&["stat"]).stderr(std::process::Stdio::null()));
    assert!(most < SIZE / 2, "{most} bytes");
    let shown = command(&["findings"]).output().unwrap();
    let [out, said] = [shown.stdout, shown.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(shown.status.success() && out.contains("+0x"), "the address is told: {out}{said}");
    assert_eq!(said.matches("debug information").count(), 1, "and why it has no name, once: {said}");
}

#[test]
fn debug_information_that_is_packed_as_usual_is_read() {
    for how in ["zlib-gnu", "zlib-gabi"] {
        let program = made(&built(&[]), "objcopy", &[&format!("--compress-debug-sections={how}")]);
        is_named(&run(&program));
    }
}

#[test]
fn nothing_is_said_of_a_file_that_is_not_the_one_that_ran() {
    let program = made(&built(&[]), "cp", &[]);
    let output = run(&program);
    is_named(&output);
    let later = SystemTime::now() + Duration::from_secs(10);
    fs::File::open(&program).unwrap().set_modified(later).unwrap();
    assert_eq!(finding(&output)["symbol"], Value::Null, "it was built again since");
    fs::write(&program, "something else").unwrap();
    fs::File::open(&program).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(finding(&output)["symbol"], Value::Null, "it is no program any more");
    fs::remove_file(&program).unwrap();
    assert_eq!(finding(&output)["symbol"], Value::Null, "it is gone");
}
