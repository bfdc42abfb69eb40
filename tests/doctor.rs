//! `aclshim doctor`: the shim, the vendor's library, settings and folders.

#[path = "support/checking.rs"]
mod checking;
#[path = "support/examination.rs"]
mod examination;
mod support;
#[allow(dead_code)]
#[path = "support/ways.rs"]
mod ways;

use aclshim_facts::FUNCTIONS;
use checking::cases;
use examination::{changed, compiled, doctor, linked, replace, told};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use support::{Run, aclshim, runnable, scratch, shim, sim, target};

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
    let run = doctor()
        .env("ACLSHIM_MODE", "loud")
        .env("ACLSHIM_MOED", "off")
        .env("ACLSHIM_RING_SIZE", "1")
        .env("ACLSHIM_RING_LIMIT", "1");
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
