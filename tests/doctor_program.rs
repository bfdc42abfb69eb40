//! `aclshim doctor -- program`: the right word, and the right remedy, for each kind of program.

#[path = "support/examination.rs"]
mod examination;
mod support;
#[allow(dead_code)]
#[path = "support/ways.rs"]
mod ways;

use examination::{about, build, changed, compiled, linked, replace, script, told};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use support::{Build, Run, scratch, target};

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
