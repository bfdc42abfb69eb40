//! The settings file, and what `aclshim config` says of settings.

mod support;

use serde_json::Value;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use support::{Output, Run, aclshim, host, scratch};

/// A settings file.
fn file(text: &str) -> PathBuf {
    let path = scratch("config").join("aclshim.toml");
    fs::write(&path, text).unwrap();
    path
}

/// Twenty calls with a settings file.
fn run(config: &Path, prepare: impl FnOnce(Run) -> Run) -> Output {
    let run = Run::new(host("hosts/guest_calls.c")).sim().shim().arg("20").env("ACLSHIM_CONFIG", config);
    let output = prepare(run).run().ok();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("done\n", ""));
    output
}

/// The settings that the log says were in force.
fn in_force(output: &Output, name: &str) -> String {
    let started = output.events("started");
    let settings = started[0]["settings"].as_str().unwrap();
    let value = settings.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    value.unwrap_or_else(|| panic!("{name} in {settings}")).to_owned()
}

fn complaints(output: &Output) -> Vec<String> {
    output.events("setting").iter().map(|line| line["message"].as_str().unwrap().to_owned()).collect()
}

// ---- In the program ----

#[test]
fn what_the_file_says_is_in_force_and_a_variable_comes_first() {
    let config = file(
        "# mine\nring_size = \"128K\"\nbatch_items = 7\ncalls = 'json'\n[rules]\nALIGN-64 = \"off\"\nDEST-MAX = \"log\"\n",
    );
    let output = run(&config, |run| run.env("ACLSHIM_BATCH_ITEMS", "9"));
    let values = ["ACLSHIM_RING_SIZE", "ACLSHIM_BATCH_ITEMS", "ACLSHIM_CALLS", "ACLSHIM_RULES", "ACLSHIM_MODE"];
    assert_eq!(
        values.map(|name| in_force(&output, name)),
        ["128K", "9", "json", "ALIGN-64=off,DEST-MAX=log,", "observe"]
    );
    assert_eq!(in_force(&output, "ACLSHIM_CONFIG"), config.to_str().unwrap());
    assert_eq!(output.events("call").len(), 20, "every call is in the log");
    assert_eq!(complaints(&output), [""; 0]);
    let output = run(&config, |run| run.env("ACLSHIM_RULES", "DEST-MAX=off"));
    assert_eq!(in_force(&output, "ACLSHIM_RULES"), "DEST-MAX=off", "all of it");
}

#[test]
fn a_file_can_turn_everything_off_and_name_the_directory() {
    let config = file("mode = \"off\"\n");
    let output = run(&config, |run| run);
    assert_eq!(output.stat().total("calls"), 0);
    let elsewhere = scratch("elsewhere");
    let config = file(&format!("dir = \"{}\"\n", elsewhere.join("out").display()));
    run(&config, |run| run.env("ACLSHIM_DIR", ""));
    assert!(!support::log(&elsewhere.join("out")).is_empty());
}

#[test]
fn nonsense_in_the_file_gets_one_line_each_with_its_place_and_the_rest_holds() {
    let config = file(
        "mode = \"Observe\"\nring_size = 1\nnone = 2\nwhat\nbatch_items = 7\n[rules]\nNO-RULE = \"off\"\n[more]\nx = 1\n",
    );
    let output = run(&config, |run| run);
    let said = complaints(&output);
    let expected = [
        "aclshim.toml:3: no setting has this key",
        "aclshim.toml:4: expected `key = value`",
        "aclshim.toml:7: there is no such rule",
        "aclshim.toml:8: the only table is [rules]",
        "aclshim.toml:1: mode must be one of",
        "aclshim.toml:2: ring_size must be from 4K to 64M; 64K is in force",
    ];
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(in_force(&output, "ACLSHIM_BATCH_ITEMS"), "7");
    assert_eq!(output.stat().total("calls"), 20);
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_never_stops_the_program() {
    let folder = scratch("strange");
    let path = |name: &str| folder.join(name);
    let fifo = CString::new(path("fifo").as_os_str().as_bytes()).unwrap();
    // SAFETY: a C string.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    fs::write(path("long"), "#".repeat(70_000)).unwrap();
    let cases = [
        (path("none"), "cannot be read"),
        (path("fifo"), "not a plain file"),
        (folder.clone(), "not a plain file"),
        (PathBuf::from("/dev/zero"), "not a plain file"),
        (path("long"), "more than 64 KiB"),
    ];
    for (config, why) in cases {
        let output = run(&config, |run| run);
        let [said] = &complaints(&output)[..] else { panic!("one line: {:?}", output.log()) };
        assert!(said.contains(config.to_str().unwrap()) && said.contains(why), "{said}");
        assert_eq!(output.stat().total("calls"), 20);
    }
    fs::write(path("real.toml"), "batch_items = 3").unwrap();
    symlink(path("real.toml"), path("link.toml")).unwrap();
    let output = run(&path("link.toml"), |run| run);
    assert_eq!(in_force(&output, "ACLSHIM_BATCH_ITEMS"), "3", "a link may lead to it");
}

#[test]
fn any_bytes_in_the_file_leave_the_program_as_it_is() {
    let all: Vec<u8> = (0..=255).cycle().take(5000).collect();
    let texts: [&[u8]; 6] = [&all, b"mode = \"", b"[", b"=\n=\n=", b"\xef\xbb\xbf", b"mode = \"off\"\0\nrules = \"x\""];
    for text in texts {
        let path = scratch("bytes").join("aclshim.toml");
        fs::write(&path, text).unwrap();
        let output = run(&path, |run| run);
        output.log(); // every line is JSON
        assert_eq!(output.stat().total("calls"), 20, "{text:?}");
    }
}

// ---- The command ----

fn config(arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut command = aclshim();
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ACLSHIM_")) {
        command.env_remove(name);
    }
    let output = command.arg("config").args(arguments).envs(variables.iter().copied()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn row(text: &str, variable: &str) -> Value {
    let answer: Value = serde_json::from_str(text).unwrap();
    answer["settings"].as_array().unwrap().iter().find(|row| row["variable"] == variable).unwrap().clone()
}

#[test]
fn every_setting_is_shown_with_its_value_its_origin_and_its_meaning() {
    let path = file("ring_size = \"1M\"\nbatch_items = 7\n");
    let named = path.to_str().unwrap();
    let (status, text, errors) = config(&["--config", named], &[("ACLSHIM_BATCH_ITEMS", "9")]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    for setting in aclshim_facts::settings::SETTINGS {
        assert!(text.contains(&format!("{} = ", setting.variable)), "{}", setting.variable);
    }
    assert!(text.contains(&format!("ACLSHIM_RING_SIZE = 1M  ({named}:1)")), "{text}");
    assert!(text.contains("ACLSHIM_BATCH_ITEMS = 9  (environment)"), "{text}");
    assert!(text.contains("ACLSHIM_MODE = observe  (default)\n    observe forwards every call"), "{text}");

    let (_, text, _) = config(&["--json"], &[("ACLSHIM_CONFIG", named), ("ACLSHIM_BATCH_ITEMS", "9")]);
    let of = |variable: &str, keys: [&str; 3]| keys.map(|key| row(&text, variable)[key].clone());
    let keys = ["value", "source", "line"];
    assert_eq!(of("ACLSHIM_RING_SIZE", keys), [Value::from("1M"), Value::from("file"), Value::from(1)]);
    assert_eq!(of("ACLSHIM_BATCH_ITEMS", ["value", "source", "key"]), ["9", "environment", "batch_items"]);
    assert_eq!(of("ACLSHIM_MODE", keys), [Value::from("observe"), Value::from("default"), Value::Null]);
    assert_eq!(row(&text, "ACLSHIM_REAL")["value"], Value::Null);
    assert_eq!(row(&text, "ACLSHIM_RING_DIR")["value"], "/dev/shm");
}

#[test]
fn what_makes_no_sense_is_told_with_what_may_have_been_meant() {
    let path = file("mood = 1\nsegment = 5\n[rules]\nALIGN-46 = \"off\"\n");
    let variables = [
        ("ACLSHIM_MOED", "off"),
        ("ACLSHIM_MODE", "Enforce"),
        ("ACLSHIM_RULES", "ALIGN-65=off,X"),
        ("ACLSHIM_AS", "Ascend310P3,Ascent"),
    ];
    let (status, text, errors) = config(&["--json", "--config", path.to_str().unwrap()], &variables);
    assert_eq!(status, Some(1));
    let lines: Vec<&str> = errors.lines().collect();
    let expected = [
        "aclshim.toml:1: no setting has this key (`aclshim config` lists them); did you mean mode?",
        "aclshim.toml:4: there is no such rule (`aclshim rules` lists them); did you mean ALIGN-64?",
        "ACLSHIM_MODE = Enforce: must be one of observe, enforce, off; observe is in force",
        "\"ALIGN-65\" is no rule; did you mean ALIGN-64?",
        "\"X\" is not RULE=ACTION",
        "\"Ascent\" is no product",
        "aclshim.toml:2: segment = 5: must be from 1M to 1024G; 64M is in force",
        "ACLSHIM_MOED: no setting has this name; did you mean ACLSHIM_MODE?",
    ];
    assert_eq!(lines.len(), expected.len(), "{errors}");
    for expected in expected {
        assert!(lines.iter().any(|line| line.contains(expected)), "{expected}\n{errors}");
    }
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["complaints"].as_array().unwrap().len(), expected.len());
    assert_eq!(
        (row(&text, "ACLSHIM_MODE")["value"].clone(), row(&text, "ACLSHIM_MODE")["source"].clone()),
        ("observe".into(), "default".into())
    );
}

#[test]
fn the_template_is_a_settings_file_that_says_nothing() {
    let (status, text, errors) = config(&["--template"], &[]);
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    let path = file(&text);
    let (status, shown, errors) = config(&["--config", path.to_str().unwrap()], &[]);
    assert_eq!((status, errors.as_str()), (Some(0), ""), "{shown}");
    assert!(!shown.contains("aclshim.toml:"), "{shown}");
}
