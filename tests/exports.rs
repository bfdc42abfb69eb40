//! The C surface of the library, held to the function table.

mod support;

use aclshim_facts::FUNCTIONS;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

fn printed(command: &str, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(command).args(arguments).arg(file).output().expect(command);
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_library_exports_the_table_and_nothing_else() {
    if !support::has("nm", "the_library_exports_the_table_and_nothing_else") {
        return;
    }
    let listed = printed("nm", &["-D", "--defined-only", "--format=posix"], &support::shim());
    let exported: BTreeSet<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    let others = ["aclshim_harness", "dlsym", "dlvsym", "dladdr", "dladdr1"];
    let expected: BTreeSet<&str> = FUNCTIONS.iter().map(|row| row.name).chain(others).collect();
    assert_eq!(exported, expected);
}

#[test]
fn each_build_of_the_simulated_device_has_the_functions_of_its_release() {
    let since_9_1 = ["V2", "D32", "Symbol"];
    let builds = [("sim", &[][..]), ("sim/cann-8.5", &since_9_1), ("sim/no-batch", &["V2", "D32", "Symbol", "Batch"])];
    for (folder, lacks) in builds {
        let is_missing = |name: &str| lacks.iter().any(|part| name.contains(part));
        // SAFETY: the simulated device does nothing when it is loaded.
        let library = unsafe { libloading::Library::new(support::target(folder).join("libacl_rt.so")) }.unwrap();
        for row in FUNCTIONS {
            // SAFETY: only looked up, never called.
            let found = unsafe { library.get::<unsafe extern "C" fn()>(row.name) };
            assert_eq!(found.is_err(), is_missing(row.name), "{folder}: {}", row.name);
        }
    }
}

#[test]
fn the_library_is_never_unloaded_binds_at_once_and_takes_little_static_tls() {
    if !support::has("readelf", "the_library_is_never_unloaded_binds_at_once_and_takes_little_static_tls") {
        return;
    }
    let dynamic = printed("readelf", &["-dW"], &support::shim());
    let flags = dynamic.lines().find(|line| line.contains("FLAGS_1")).expect("DT_FLAGS_1");
    assert!(flags.contains("NODELETE") && flags.contains("NOW"), "{flags}");
    assert!(dynamic.contains("soname: [libaclshim.so]"), "{dynamic}");

    let segments = printed("readelf", &["-lW"], &support::shim());
    let tls = segments.lines().find(|line| line.trim_start().starts_with("TLS")).expect("a TLS segment");
    let number = |column: usize| {
        let word = tls.split_whitespace().nth(column).expect("its size in memory is the sixth, its alignment the last");
        u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap()
    };
    let (size, align) = (number(5), number(7));
    assert!(size <= 320, "{size} bytes of static TLS: a library that is opened late lives off a small surplus");
    // The loader aligns what comes late no better than its own block for a thread.
    let most = if cfg!(target_arch = "x86_64") { 64 } else { 16 };
    assert!(align <= most, "static TLS at multiples of {align}: the library could not be opened late");
}

/// Redeclares every function of the table behind a header that declares them.
fn redeclared(header: &str) -> String {
    let mut source = format!("#include \"{header}\"\n");
    for row in FUNCTIONS {
        let _ = writeln!(source, "{};", row.c_declaration());
    }
    source
}

fn compiles(name: &str, source: &str, include: &Path) -> Result<(), String> {
    let file = support::scratch(name).join("redeclare.c");
    fs::write(&file, source).unwrap();
    let mut command = Command::new("cc");
    command.env("LC_ALL", "C").arg("-fsyntax-only").arg("-I").arg(include).arg(&file);
    let result = command.output().expect("cc");
    if result.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&result.stderr).into_owned()) }
}

#[test]
fn the_signatures_are_those_of_the_header() {
    let include = support::root().join("include");
    compiles("signatures", &redeclared("acl/acl.h"), &include).unwrap();
    // The check can fail: one argument of another type is a conflict.
    let wrong = redeclared("acl/acl.h").replacen("size_t destMax", "uint32_t destMax", 1);
    let error = compiles("signatures-wrong", &wrong, &include).unwrap_err();
    assert!(error.contains("conflicting types"), "{error}");
}

/// The header is written by hand, as the vendor has it, and not made from the table.
#[test]
fn the_header_declares_every_function_of_the_table() {
    let header = fs::read_to_string(support::root().join("include/acl/acl_rt.h")).unwrap();
    let words: BTreeSet<&str> = header.split(|letter: char| !letter.is_alphanumeric()).collect();
    let lacking: Vec<_> = FUNCTIONS.iter().map(|row| row.name).filter(|name| !words.contains(name)).collect();
    assert_eq!(lacking, [""; 0], "the header lacks functions of the table");
}

#[test]
fn the_signatures_are_those_of_an_installed_cann() {
    // Where CANN is not installed there is nothing to compare with.
    if let Some(home) = std::env::var_os("ASCEND_HOME_PATH") {
        compiles("signatures-cann", &redeclared("acl/acl.h"), &Path::new(&home).join("include")).unwrap();
    }
}
