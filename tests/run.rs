//! `aclshim run`: what it says of the program, and its options.

#[path = "support/running.rs"]
mod running;
mod support;
#[allow(dead_code)]
#[path = "support/ways.rs"]
mod ways;

use aclshim_facts::FUNCTIONS;
use running::under;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{
    Build, Output, Run, Stat, aclshim, has_that, host, log, root, runnable, scratch, shim, sim, target, until,
};

fn calls(output: &Output) -> u64 {
    output.stat().total("calls")
}

// ---- What it says ----

#[test]
fn one_line_gives_a_summary_a_trace_a_log_and_findings() {
    let out = scratch("fresh").join("a/b");
    let run = |command: &mut Command| command.current_dir(root()).output().unwrap();
    let program = target("c-examples/kv_offload");
    let alone = run(Command::new(&program).env("LD_LIBRARY_PATH", sim()));
    let seen = run(aclshim().args(["run", "--sim", "--out"]).arg(&out).arg("--").arg("target/c-examples/kv_offload"));
    assert_eq!((seen.status.code(), &seen.stdout), (alone.status.code(), &alone.stdout));
    let stat = Stat::of(&out, Path::new("/dev/shm"));
    let said = String::from_utf8(seen.stderr).unwrap();
    let all = format!("aclshim: {} calls, ", stat.total("calls"));
    assert!(stat.total("calls") > 50 && said.starts_with(&all), "{said}");
    assert!(said.contains(&format!(" {} errors in 1 process\n", stat.total("errors"))), "{said}");
    assert!(said.contains("nothing was lost") && stat.total("not_recorded") == 0, "{said}");
    for (rule, count) in stat.0["findings"].as_object().unwrap() {
        assert!(said.contains(&format!(" {count} x {rule}\n")), "{rule}: {said}");
    }
    let severities = ["error", "violation", "perf", "portability"];
    let of_line = |line: &str| {
        let word = line.strip_prefix("aclshim:   ")?.split_whitespace().next()?;
        severities.iter().position(|severity| *severity == word)
    };
    let order: Vec<usize> = said.lines().filter_map(of_line).collect();
    assert!(order.len() > 1 && order.is_sorted(), "the most severe first: {said}");
    assert!(said.ends_with(&format!("findings {}\n", out.display())), "{said}");
    let names: Vec<String> =
        fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    for ending in [".acltrace", ".jsonl"] {
        let name = names.iter().find(|name| name.ends_with(ending)).expect(ending);
        assert!(said.contains(name.as_str()), "{name}: {said}");
    }
    assert!(log(&out).iter().any(|line| line["event"] == "finding"));
    assert_eq!(stat.0["slots"]["ring"], 0, "all is on disk");
}

#[test]
fn without_a_trace_the_summary_is_the_same() {
    // One whose memory is aligned in every run.
    let bad = host("hosts/keep_calls.c");
    let run = |calls: &str| {
        let run = under(&["--error-exitcode", "9", "--require-calls"], &bad).arg("1").arg("50");
        run.env("ACLSHIM_CALLS", calls).run()
    };
    let (with, without) = (run("trace"), run("off"));
    let told = |output: &Output| {
        let lines = output.stderr.lines().filter(|line| !line.contains("trace and log") && !line.contains("next:"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(told(&with).len() > 3 && told(&without) == told(&with), "{}\n{}", with.stderr, without.stderr);
    assert_eq!((with.status.code(), without.status.code()), (Some(9), Some(9)));
}

#[test]
fn a_second_run_into_the_same_directory_tells_of_itself_only() {
    let program = host("hosts/guest_calls.c");
    let out = scratch("same").join("out");
    let run = |n: &str| under(&[], &program).arg(n).env("ACLSHIM_DIR", &out).run().ok();
    run("5");
    let second = run("8");
    assert!(second.stderr.starts_with("aclshim: 8 calls, 0 B, 0 errors in 1 process\n"), "{}", second.stderr);
    assert_eq!(Stat::of(&out, &second.scratch).total("calls"), 13);
}

#[test]
fn the_summary_never_goes_to_standard_output_and_can_be_silenced() {
    let program = host("hosts/guest_calls.c");
    for (options, is_silent) in [(&[][..], false), (&["--quiet"], true)] {
        let output = under(options, &program).run().ok();
        assert_eq!((output.stdout.as_str(), output.stderr.is_empty()), ("done\n", is_silent), "{}", output.stderr);
        assert_eq!(calls(&output), 1);
    }
}

#[test]
fn where_nothing_can_be_said_the_programs_status_is_still_ours() {
    let run = |stderr: Stdio| {
        let out = scratch("unheard").join("out");
        aclshim().arg("run").arg("--out").arg(out).args(["--", "sh", "-c", "exit 3"]).stderr(stderr).status().unwrap()
    };
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert_eq!(run(full.into()).code(), Some(3), "no room");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(run(writer.into()).code(), Some(3), "nobody reads it");
}

#[test]
fn calls_in_a_tight_loop_from_the_beginning_are_not_lost() {
    let output = under(&[], host("hosts/guest_calls.c")).arg("10000").run().ok();
    assert!(output.stderr.contains("nothing was lost"), "{}", output.stderr);
    assert_eq!(calls(&output), 10_000);
}

#[test]
fn losses_are_told_with_what_keeps_the_calls() {
    let output = under(&[], host("hosts/guest_calls.c"))
        .arg("100000")
        .env("ACLSHIM_RING_SIZE", "4K")
        .env("ACLSHIM_RING_LIMIT", "4K");
    let output = output.env("ACLSHIM_RULES", "ZERO-SIZE=off").run().ok();
    assert!(output.stat().total("not_recorded") > 0, "{}", output.stderr);
    for part in
        ["is broken in what was recorded\n", "calls not recorded\n", "ACLSHIM_RING_SIZE", "ACLSHIM_RECORD=lossless"]
    {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
}

#[test]
fn what_is_no_directory_is_refused_before_the_program_runs() {
    let file = scratch("file").join("file");
    fs::write(&file, "mine").unwrap();
    let output = under(&["--out", file.to_str().unwrap()], "echo").run();
    let said = format!("aclshim: {} is not a directory\n", file.display());
    assert_eq!(output.seen(), (Some(125), None, "", said.as_str()));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_pipe_among_the_logs_does_not_keep_us() {
    let out = scratch("pipe");
    let pipe = std::ffi::CString::new(out.join("aclshim-1.jsonl").to_str().unwrap()).unwrap();
    // SAFETY: a C string of ours.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    let mut child =
        aclshim().arg("run").arg("--out").arg(&out).args(["--", "true"]).stderr(Stdio::null()).spawn().unwrap();
    until("it does not wait for the pipe", || child.try_wait().unwrap().is_some());
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_unknown_product_is_named_and_a_missing_call_is_told_once_with_its_reason() {
    let output = under(&["--as", "Foo", "--require-calls"], "true").run();
    assert!(output.stderr.starts_with("aclshim: --as Foo: "), "{}", output.stderr);
    assert_eq!(output.stderr.matches("no call was seen").count(), 1, "{}", output.stderr);
    let output = under(&[], host("hosts/guest_calls.c")).env("ACLSHIM_MODE", "off").run().ok();
    assert_eq!(output.stderr, "aclshim: no call was seen (ACLSHIM_MODE is off)\n");
}

#[test]
fn a_folder_of_rings_that_is_not_absolute_is_the_same_one_everywhere() {
    let folder = scratch("relative");
    fs::create_dir(folder.join("rings")).unwrap();
    let program = host("hosts/guest_calls.c");
    let script = format!("cd / && {} 5", program.display());
    let mut command = aclshim();
    command.args(["run", "--sim", "--out", "out", "--", "sh", "-c", &script]).env("ACLSHIM_RING_DIR", "rings");
    let output = command.current_dir(&folder).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("aclshim: 5 calls, "), "{said}");
}

#[test]
fn another_users_ring_is_not_mapped() {
    let name = "another_users_ring_is_not_mapped";
    // SAFETY: asks for a number.
    if !has_that(unsafe { libc::geteuid() } == 0, "root, to make another's file", name) {
        return;
    }
    let folder = scratch("others");
    let ring = folder.join("aclshim-1-1.ring");
    // Its owner could cut it short at any time, and so end every process that has it mapped.
    fs::write(&ring, [&b"ACLSHIM\0"[..], &1u32.to_le_bytes(), &[0; 1 << 16]].concat()).unwrap();
    chown(&ring, Some(54321), None).unwrap();
    let trace = folder.join("opened");
    let strace = Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !has_that(strace.is_ok_and(|status| status.success()), "strace", name) {
        return;
    }
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=openat,mmap", "-y", "-o"]).arg(&trace).arg(target("release/aclshim"));
    command.args(["run", "--quiet", "--out"]).arg(folder.join("out")).args(["--", "sleep", "0.2"]);
    assert!(command.env("ACLSHIM_RING_DIR", &folder).status().unwrap().success());
    let trace = fs::read_to_string(trace).unwrap();
    let mapped = trace.lines().find(|line| line.contains("mmap") && line.contains("aclshim-1-1.ring"));
    assert_eq!(mapped, None);
}

// ---- Options ----

#[test]
fn other_preloads_are_kept_and_work_in_either_order() {
    let way = ways::linked("bind_linked.c", &[ways::LAZY]);
    let other = ways::interposer(ways::BY_NEXT);
    let alone = way.run().preload(&other).run().ok();
    let seen = |list: &[PathBuf]| {
        let inner = under(&["--quiet"], &way.program);
        list.iter().fold(inner, |run, library| run.preload(library)).run()
    };
    for list in [vec![other.clone()], vec![other.clone(), shim()], vec![shim(), other.clone()]] {
        let output = seen(&list);
        // We ourselves have it, too, and copy nothing.
        let of_program = output.stdout.strip_suffix("the interposer was entered 0 times\n");
        assert_eq!(of_program, Some(alone.stdout.as_str()), "{list:?}");
        assert_eq!(calls(&output), FUNCTIONS.len() as u64, "{list:?}");
    }
}

#[test]
fn a_sanitized_program_runs_without_further_ado() {
    let runtime = Command::new("cc").arg("-print-file-name=libasan.so").output().expect("cc").stdout;
    let has_runtime = String::from_utf8_lossy(&runtime).contains('/');
    if !has_that(has_runtime, "libasan", "a_sanitized_program_runs_without_further_ado") {
        return;
    }
    let program = Build::new("hosts/sanitizer.c").link("ascendcl").arg("-fsanitize=address").program();
    let alone = Run::new(&program).sim().env("ASAN_OPTIONS", "detect_leaks=0").run().ok();
    let seen = under(&["--quiet"], &program).env("ASAN_OPTIONS", "detect_leaks=0").run();
    assert_eq!(seen.seen(), alone.seen());
    assert_eq!(calls(&seen), 2);
}

#[test]
fn findings_give_the_chosen_status_unless_a_signal_ended_the_program() {
    let (bad, good) = (target("c-examples/kv_offload"), host("hosts/run_end.c"));
    let status = |options: &[&str], program: &Path, argument: &str| under(options, program).arg(argument).run().status;
    assert_eq!(status(&["--error-exitcode", "9"], &bad, "").code(), Some(9));
    assert_eq!(status(&["-q"], &bad, "").code(), Some(0));
    assert_eq!(status(&["--error-exitcode", "9"], &good, "0").code(), Some(0));
    assert_eq!(status(&["--error-exitcode", "9"], &good, "3").code(), Some(3));
    let muted = under(&["--error-exitcode", "9"], &bad).env("ACLSHIM_MUTE", "*").run();
    assert_eq!(muted.status.code(), Some(0), "{}", muted.stderr);
    let script = |end: &str| format!("'{}' >/dev/null; {end}", bad.display());
    let run = |options: &[&str], end: &str| under(options, "/bin/sh").arg("-c").arg(script(end)).run().status;
    assert_eq!(run(&["--error-exitcode", "9"], "exit 4").code(), Some(9), "also of a program that failed");
    assert_eq!(run(&["--error-exitcode", "9"], "kill -TERM $$").signal(), Some(libc::SIGTERM));
}

#[test]
fn only_findings_that_are_bad_enough_count() {
    let bad = target("c-examples/kv_offload");
    // All is off but for one, which other products would refuse.
    let rules = aclshim().args(["rules", "--json"]).output().unwrap().stdout;
    let rules: serde_json::Value = serde_json::from_slice(&rules).unwrap();
    let names = rules.as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap());
    let off: String = names.filter(|name| *name != "ALIGN-64").map(|name| format!("{name} = \"off\"\n")).collect();
    let config = scratch("soft").join("aclshim.toml");
    fs::write(&config, format!("[rules]\n{off}")).unwrap();
    let run = |options: &[&str]| under(options, &bad).env("ACLSHIM_CONFIG", &config).run();
    for (on, status) in [("error", 0), ("violation", 0), ("perf", 0), ("portability", 9)] {
        let output = run(&["--error-exitcode", "9", "--on", on]);
        assert_eq!(output.status.code(), Some(status), "{on}: {}", output.stderr);
    }
    let output = run(&["--error-exitcode", "9", "--on", "loud"]);
    assert!(output.status.code() == Some(2) && output.stderr.contains("portability"), "{}", output.stderr);
}

#[test]
fn a_run_without_a_call_fails_where_calls_are_required_and_says_why() {
    for (program, status) in [("true", 125), ("false", 1)] {
        let output = under(&["--require-calls", "--quiet"], program).run();
        assert_eq!(output.status.code(), Some(status));
        for reason in ["no call was seen", "statically", "setuid", "LD_PRELOAD", "no copy"] {
            assert!(output.stderr.contains(reason), "{reason}: {}", output.stderr);
        }
        assert_eq!(output.stderr.lines().count(), 1);
    }
    let output = under(&["--require-calls"], host("hosts/guest_calls.c")).run().ok();
    assert_eq!(calls(&output), 1);
    let output = under(&["--require-calls"], host("hosts/guest_calls.c")).env("ACLSHIM_MODE", "off").run();
    assert_eq!(output.status.code(), Some(125));
}

#[test]
fn a_program_that_a_preload_cannot_reach_is_named_before_it_runs() {
    let program = Build::new("hosts/run_static.c").arg("-static").program();
    let output = under(&[], &program).run().ok();
    assert!(
        output.stderr.lines().next().unwrap().contains(&format!("{} is linked statically", program.display())),
        "{}",
        output.stderr
    );
    assert_eq!(under(&["--quiet"], &program).run().ok().seen(), (Some(0), None, "static\n", ""));

    let name = "a_program_that_a_preload_cannot_reach_is_named_before_it_runs";
    // SAFETY: asks for a number.
    if !has_that(unsafe { libc::geteuid() } == 0, "root, to make a setuid program", name) {
        return;
    }
    let raised = scratch("raised").join("raised");
    runnable(&raised, &fs::read(host("hosts/guest_calls.c")).unwrap());
    chown(&raised, Some(54321), None).unwrap();
    fs::set_permissions(&raised, PermissionsExt::from_mode(0o4755)).unwrap();
    let output = under(&[], &raised).run();
    assert!(output.stderr.lines().next().unwrap().contains("raised is setuid"), "{}", output.stderr);
}

#[test]
fn enforce_refuses_and_other_products_are_judged_for() {
    let bad = target("c-examples/kv_offload");
    let findings = |output: &Output| -> Vec<serde_json::Value> {
        let mut command = aclshim();
        let command = command.args(["findings", "--json"]).arg(output.scratch.join("out"));
        let text = command.env("ACLSHIM_RING_DIR", &output.scratch).output().unwrap().stdout;
        String::from_utf8(text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let plain = findings(&under(&[], &bad).run().ok());
    assert!(!plain.is_empty() && plain.iter().all(|finding| finding["refused"] == false));
    assert!(findings(&under(&["--enforce"], &bad).run()).iter().any(|finding| finding["refused"] == true));

    let config = scratch("config").join("my.toml");
    fs::write(&config, "mode = \"enforce\" # and one mistake:\nmood = 1\n").unwrap();
    let output = under(&["--config", config.to_str().unwrap()], &bad).run();
    assert!(findings(&output).iter().any(|finding| finding["refused"] == true));
    let complaint = format!("aclshim: {}:2: no setting has this key", config.display());
    assert!(output.stderr.starts_with(&complaint) && output.stderr.contains("did you mean mode?"), "{}", output.stderr);

    let output = under(&["--as", "Ascend310P3", "--as", "Ascend950"], &bad).run().ok();
    let on: std::collections::BTreeSet<String> =
        findings(&output).iter().filter_map(|finding| Some(finding["on"].as_str()?.to_owned())).collect();
    assert!(on.contains("Ascend310P3"), "{on:?}");
    let missing = under(&["--config", "none.toml"], &bad).run();
    assert!(missing.status.code() == Some(125) && missing.stderr.contains("none.toml"), "{}", missing.stderr);
}

#[test]
fn without_a_simulated_device_that_is_said() {
    let folder = scratch("installed");
    runnable(&folder.join("aclshim"), &fs::read(target("release/aclshim")).unwrap());
    let run =
        || Command::new(folder.join("aclshim")).args(["run", "--sim", "true"]).current_dir(&folder).output().unwrap();
    let output = run();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("libaclshim.so was not found"), "{output:?}");
    fs::copy(shim(), folder.join("libaclshim.so")).unwrap();
    let output = run();
    assert_eq!(output.status.code(), Some(125));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("--sim: no simulated libascendcl.so") && said.contains("make build"), "{said}");
}
