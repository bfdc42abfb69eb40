//! The program under `aclshim run`: it does not notice, and its end, its children and its records are told.

#[path = "support/ordered.rs"]
mod ordered;
#[path = "support/running.rs"]
mod running;
mod support;

use aclshim_trace::reader;
use ordered::{Ordered, calls};
use running::under;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use support::{Run, Stat, aclshim, host, runnable, scratch, sim, target, until};

// ---- The program does not notice ----

#[test]
fn a_program_sees_the_same_of_itself() {
    let state = host("hosts/run_state.c");
    let alone = Run::new(&state).sim().arg("a b").arg("--c").run().ok();
    let seen = under(&["--quiet"], &state).arg("a b").arg("--c").run();
    assert_eq!(seen.seen(), alone.seen());
    assert_eq!(calls(&seen), 3);
}

#[test]
fn a_program_sees_the_same_strange_state_that_we_were_started_in() {
    let state = host("hosts/run_state.c");
    let alone = Run::new(&state).sim().arg("strange").arg(&state).run().ok();
    assert!(alone.stdout.contains("entry ODD\n") && alone.stdout.contains("descriptor 500"), "{}", alone.stdout);
    assert!(!alone.stdout.contains("descriptor 0:"), "{}", alone.stdout);
    let seen = Run::new(&state).sim().arg("strange").arg(target("release/aclshim"));
    let seen = seen.arg("run").arg("--quiet").arg("--").arg(&state).run();
    assert_eq!(seen.seen(), alone.seen());
    assert_eq!(calls(&seen), 3);
}

#[test]
fn whatever_ends_the_program_ends_us_and_all_its_calls_are_told() {
    let program = host("hosts/run_end.c");
    let signals =
        [libc::SIGKILL, libc::SIGSEGV, libc::SIGTERM, libc::SIGABRT, libc::SIGINT, libc::SIGPIPE, libc::SIGHUP];
    let signals = signals.into_iter().chain([libc::SIGRTMIN() + 1]).map(|signal| format!("s{signal}"));
    for how in ["0", "1", "77", "255"].into_iter().map(str::to_owned).chain(signals) {
        let alone = Run::new(&program).sim().arg(&how).run();
        let seen = under(&["--quiet"], &program).arg(&how).run();
        assert_eq!(seen.seen(), alone.seen(), "{how}");
        assert_eq!(calls(&seen), 7, "{how}");
        assert_eq!(reader::files(&seen.scratch).unwrap().len(), 0, "{how}: no ring is left");
    }
}

#[test]
fn children_and_programs_that_it_becomes_are_told_of_too() {
    let output = under(&[], host("hosts/guest_exec.c")).run().ok();
    assert_eq!((calls(&output), output.stat().total("processes")), (17, 4));
    assert!(output.stderr.starts_with("aclshim: 17 calls, 0 B, 0 errors in 4 processes\n"), "{}", output.stderr);

    let program = host("hosts/guest_fork.c");
    let run = under(&[], program).arg("warm").arg(sim().join("libascendcl.so")).env("ACLSHIM_RECORD", "lossless");
    // Small rings, so that the thread that calls all the while does not fill the budget.
    let output = run.env("ACLSHIM_RING_SIZE", "4K").env("ACLSHIM_RING_LIMIT", "4K").run();
    let own: u64 =
        fs::read_to_string(output.scratch.join("own")).unwrap().lines().map(|n| n.parse::<u64>().unwrap()).sum();
    let stat = output.stat();
    assert_eq!(stat.total("calls") + stat.total("not_recorded"), own);
    assert!(stat.total("processes") == 201 && stat.0["slots"]["ring"] == 0, "{}", stat.0);
}

#[test]
fn a_script_and_its_programs_are_told_of() {
    let program = host("hosts/guest_calls.c");
    let folder = scratch("script");
    let script = folder.join("script");
    runnable(&script, format!("#!/bin/sh\n{0} 3; {0} 4\nexit 5\n", program.display()).as_bytes());
    let output = under(&[], &script).run();
    assert_eq!((output.status.code(), calls(&output)), (Some(5), 7));
}

#[test]
fn a_program_that_cannot_be_started_is_named_and_gives_the_status_of_a_shell() {
    let folder = scratch("refused");
    let write = |name: &str, text: &str, mode: u32| {
        fs::write(folder.join(name), text).unwrap();
        fs::set_permissions(folder.join(name), PermissionsExt::from_mode(mode)).unwrap();
        folder.join(name)
    };
    let cases = [
        (PathBuf::from("no-such-program"), 127, "not on PATH"),
        (folder.join("none"), 127, "No such file"),
        (write("interpreter", "#!/no/such/interpreter\n", 0o755), 127, "interpreter"),
        (write("plain", "text", 0o644), 126, "Permission denied"),
        (folder.clone(), 126, "Permission denied"),
    ];
    for (program, status, why) in cases {
        let output = under(&[], &program).run();
        assert_eq!(output.status.code(), Some(status), "{}", output.stderr);
        assert!(output.stderr.contains(program.to_str().unwrap()) && output.stderr.contains(why), "{}", output.stderr);
        assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    }
}

// ---- What outlives it, and what outlives us ----

#[test]
fn a_daemon_keeps_a_collector_until_it_has_ended() {
    for arguments in [&[][..], &["copied"]] {
        let program = host("hosts/run_daemon.c");
        let run = arguments.iter().fold(under(&[], &program), |run, argument| run.arg(argument));
        // Read to the end of its output: no process that is left holds it open.
        let output = run.run().ok();
        assert_eq!(output.stdout, "left\n");
        let line = output.stderr.lines().find(|line| line.contains("a collector")).expect("a line about it");
        assert!(line.contains("still runs"), "{line}");
        let number = line.split("(process ").nth(1).unwrap().split(')').next().unwrap();
        let about = |what: &str| fs::read_to_string(format!("/proc/{number}/{what}")).unwrap_or_default();
        let fields: Vec<String> = about("stat").rsplit(") ").next().unwrap().split(' ').map(str::to_owned).collect();
        assert_eq!((fields[3].as_str(), fields[4].as_str()), (number, "0"), "a session of its own, and no terminal");
        fs::write(output.scratch.join("go"), "").unwrap();
        let is_gone = |stat: String| stat.is_empty() || stat.contains(") Z ") || stat.contains(") X ");
        until("the collector ends", || is_gone(about("stat")));
        let stat = output.stat();
        assert_eq!((stat.total("calls"), &stat.0["slots"]["ring"]), (14, &0.into()));
        assert_eq!(reader::files(&output.scratch).unwrap().len(), 0, "no ring is left");
    }
}

#[test]
fn when_we_are_killed_nothing_is_lost() {
    let mut ordered = Ordered::start(&["plain"]);
    let mut orders = ordered.child.stdin.take().unwrap();
    ordered.send(libc::SIGKILL);
    ordered.child.wait().unwrap();
    orders.write_all(b"\n").unwrap();
    assert_eq!(ordered.line(), "got 10");
    let gone =
        || fs::read_to_string(format!("/proc/{}/stat", ordered.program)).map_or(true, |stat| stat.contains(") Z"));
    until("the program ends", gone);
    let (out, rings) = (ordered.scratch.join("out"), ordered.scratch.clone());
    assert_eq!(Stat::of(&out, &rings).total("calls"), 2, "as they are left");
    assert!(aclshim().args(["collect", "--once"]).arg(&rings).status().unwrap().success());
    let stat = Stat::of(&out, &rings);
    assert_eq!((stat.total("calls"), &stat.0["slots"]["ring"]), (2, &0.into()));
}

#[test]
fn two_runs_at_once_and_a_collector_beside_them_share_the_rings_and_tell_of_their_own() {
    let rings = scratch("rings");
    // It has none of our descriptors: if this test fails, nothing waits for it.
    let mut collector = aclshim();
    collector.arg("collect").arg(&rings).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut collector = collector.spawn().unwrap();
    let start = || {
        let scratch = scratch("one");
        let mut command = aclshim();
        command.args(["run", "--sim", "--out"]).arg(scratch.join("mine")).arg("--");
        command.arg(host("hosts/run_signals.c")).arg("plain").env("ACLSHIM_RING_DIR", &rings).process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("ready"));
        (child, scratch)
    };
    let both = [start(), start()];
    for (mut child, scratch) in both {
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && said.starts_with("aclshim: 2 calls, "), "{said}");
        assert!(said.contains("in 1 process\n"), "{said}");
        assert_eq!(Stat::of(&scratch.join("mine"), &rings).total("calls"), 2);
    }
    collector.kill().unwrap();
    collector.wait().unwrap();
}
