//! `aclshim run`: the program runs as without it, and everything it copied is told.

mod support;
#[allow(dead_code)]
#[path = "support/ways.rs"]
mod ways;

use aclshim_trace::reader;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{
    Build, Output, Run, Stat, aclshim, has_that, host, log, root, runnable, scratch, shim, sim, target, until,
};

/// `aclshim run OPTIONS -- program`, on the simulated device.
fn under(options: &[&str], program: impl AsRef<Path>) -> Run {
    let run = Run::new(target("release/aclshim")).sim().arg("run");
    options.iter().fold(run, |run, option| run.arg(option)).arg("--").arg(program.as_ref())
}

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
    let output = under(&[], host("hosts/guest_calls.c")).arg("100000").env("ACLSHIM_RING_SIZE", "4K");
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
    // Its owner could cut it short at any time, and so end whoever has it mapped.
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
    let output = run.env("ACLSHIM_RING_SIZE", "4K").run();
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

// ---- Signals ----

/// A program under `aclshim run` in a process group of its own, that says a line when it is ready.
struct Ordered {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    program: libc::pid_t,
    scratch: PathBuf,
}

impl Ordered {
    fn start(arguments: &[&str]) -> Self {
        let scratch = scratch("ordered");
        let mut command = aclshim();
        command.args(["run", "--sim", "--"]).arg(host("hosts/run_signals.c")).args(arguments);
        Self::spawn(&mut command, scratch)
    }

    fn spawn(command: &mut Command, scratch: PathBuf) -> Self {
        command.env("ACLSHIM_DIR", scratch.join("out")).env("ACLSHIM_RING_DIR", &scratch).process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut ordered = Self { child, lines, program: 0, scratch };
        ordered.program = ordered.line().strip_prefix("ready ").expect("ready").parse().unwrap();
        ordered
    }

    #[track_caller]
    fn line(&mut self) -> String {
        self.lines.next().expect("one more line").unwrap()
    }

    fn pid(&self) -> libc::pid_t {
        self.child.id() as libc::pid_t
    }

    fn send(&self, signal: libc::c_int) {
        // SAFETY: our own child.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    /// How it is now, as whoever started it is told.
    fn changed(&self) -> libc::c_int {
        let mut status = 0;
        // SAFETY: our own child, and a value of ours.
        assert!(unsafe { libc::waitpid(self.pid(), &mut status, libc::WUNTRACED | libc::WCONTINUED) } > 0);
        status
    }

    fn end(mut self) -> (std::process::ExitStatus, String, PathBuf) {
        let rest: Vec<String> = self.lines.map(Result::unwrap).collect();
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        let status = self.child.wait().unwrap();
        assert!(rest.is_empty() || rest == ["got 10"], "{rest:?}");
        (status, errors, self.scratch)
    }
}

#[test]
fn a_signal_reaches_the_program_once_whether_it_was_sent_to_us_or_to_all() {
    let mut ordered = Ordered::start(&[]);
    let mark = libc::SIGRTMIN() + 5;
    let mut signals = vec![libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];
    signals.extend([libc::SIGWINCH, libc::SIGCONT, libc::SIGTSTP, libc::SIGPIPE, libc::SIGURG, libc::SIGRTMIN() + 1]);
    for signal in signals {
        ordered.send(signal);
        assert_eq!(ordered.line(), format!("{signal} 0"), "sent to us");
        // SAFETY: the group of our own child.
        assert_eq!(unsafe { libc::kill(-ordered.pid(), signal) }, 0);
        assert_eq!(ordered.line(), format!("{signal} 0"), "sent to the group");
        // Whatever we were to pass on would be passed on before this.
        ordered.send(mark);
        assert_eq!(ordered.line(), format!("{mark} 0"), "{signal}: not twice");
    }
    let value = libc::sigval { sival_ptr: 42 as *mut libc::c_void };
    // SAFETY: our own child.
    assert_eq!(unsafe { libc::sigqueue(ordered.pid(), mark, value) }, 0);
    assert_eq!(ordered.line(), format!("{mark} 42"), "with its value");
    ordered.send(libc::SIGRTMAX());
    assert_eq!(ordered.line(), format!("{} 0", libc::SIGRTMAX()));
    let (status, errors, scratch) = ordered.end();
    assert!(status.success() && errors.starts_with("aclshim: 2 calls"), "{status:?} {errors}");
    assert_eq!(Stat::of(&scratch.join("out"), &scratch).total("calls"), 2);
}

/// A terminal: our end, and what a program has of it.
fn terminal() -> (fs::File, fs::File) {
    // Not by openpty: programs that other tests start meanwhile would inherit it.
    // SAFETY: two descriptors that are made here, and owned from here on; a buffer of ours.
    unsafe {
        let ours = libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        let mut name = [0; 64];
        assert!(libc::grantpt(ours) == 0 && libc::unlockpt(ours) == 0);
        assert_eq!(libc::ptsname_r(ours, name.as_mut_ptr(), name.len()), 0);
        let theirs = libc::open(name.as_ptr(), libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC);
        assert!(theirs >= 0);
        (fs::File::from_raw_fd(ours), fs::File::from_raw_fd(theirs))
    }
}

#[test]
fn a_key_of_the_terminal_reaches_the_program_once() {
    let (mut keys, theirs) = terminal();
    let scratch = scratch("terminal");
    let mut command = aclshim();
    command.args(["run", "--sim", "--quiet", "--"]).arg(host("hosts/run_signals.c"));
    command.env("ACLSHIM_DIR", scratch.join("out")).env("ACLSHIM_RING_DIR", &scratch);
    command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
    // SAFETY: system calls only: a session whose terminal this is.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut lines = BufReader::new(keys.try_clone().unwrap()).lines();
    // What was typed is shown, too.
    let mut line = || lines.next().unwrap().unwrap().trim_end().replace("^C", "").replace("^\\", "").replace("^Z", "");
    assert!(line().starts_with("ready"));
    let mark = libc::SIGRTMIN() + 5;
    let send = |signal| {
        // SAFETY: our own child.
        assert_eq!(unsafe { libc::kill(child.id() as libc::pid_t, signal) }, 0);
    };
    for (key, signal) in [(b"\x03", libc::SIGINT), (b"\x1c", libc::SIGQUIT), (b"\x1a", libc::SIGTSTP)] {
        keys.write_all(key).unwrap();
        assert_eq!(line(), format!("{signal} 0"));
        send(mark);
        assert_eq!(line(), format!("{mark} 0"), "{signal}: not twice");
    }
    send(libc::SIGRTMAX());
    assert_eq!(line(), format!("{} 0", libc::SIGRTMAX()));
    assert!(child.wait().unwrap().success());
    assert_eq!(Stat::of(&scratch.join("out"), &scratch).total("calls"), 2);
}

#[test]
fn a_signal_that_the_program_dies_of_ends_us_after_the_summary() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        for to_all in [false, true] {
            let ordered = Ordered::start(&["plain"]);
            let to = if to_all { -ordered.pid() } else { ordered.pid() };
            // SAFETY: our own child, or its group.
            assert_eq!(unsafe { libc::kill(to, signal) }, 0);
            let (status, errors, _) = ordered.end();
            assert_eq!(status.signal(), Some(signal));
            assert!(errors.starts_with("aclshim: 1 call, "), "{errors}");
        }
    }
}

#[test]
fn when_the_program_stops_so_do_we_and_both_go_on_when_either_is_continued() {
    // TSTP would have no effect where nobody is left to continue the group: the test is in its session.
    let mut ordered = Ordered::start(&["plain"]);
    for (signal, stopped, continued) in [
        (libc::SIGTSTP, ordered.pid(), ordered.pid()),
        (libc::SIGTSTP, ordered.pid(), ordered.program),
        (libc::SIGTSTP, -ordered.pid(), -ordered.pid()),
        (libc::SIGSTOP, ordered.program, ordered.program),
        (libc::SIGSTOP, ordered.program, ordered.pid()),
    ] {
        // SAFETY: our own child, its child, or their group.
        assert_eq!(unsafe { libc::kill(stopped, signal) }, 0);
        let status = ordered.changed();
        assert!(libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGSTOP, "{status:x}");
        // Sent to all, it may have stopped us first.
        until("the program has stopped", || state(ordered.program) == 'T');
        // SAFETY: as above.
        assert_eq!(unsafe { libc::kill(continued, libc::SIGCONT) }, 0);
        assert!(libc::WIFCONTINUED(ordered.changed()));
        until("the program runs", || state(ordered.program) != 'T');
    }
    ordered.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(ordered.line(), "got 10");
    let (status, errors, _) = ordered.end();
    assert!(status.success() && errors.starts_with("aclshim: 2 calls"), "{errors}");
}

/// The state of a process, as the kernel shows it: T if it is stopped.
fn state(pid: libc::pid_t) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}

#[test]
fn a_stop_right_behind_a_continue_is_passed_on() {
    let mut ordered = Ordered::start(&["plain"]);
    let (us, program) = (ordered.pid(), ordered.program);
    let send = |to: libc::pid_t, signal| {
        // SAFETY: our own child, or its group.
        assert_eq!(unsafe { libc::kill(to, signal) }, 0);
    };
    let both_stopped = || state(us) == 'T' && state(program) == 'T';
    for round in 0..40 {
        let again = if round % 2 == 0 { us } else { -us };
        send(us, libc::SIGTSTP);
        until("both have stopped", both_stopped);
        // Neither is stopped when the first call returns: what is stopped afterwards was stopped by the second.
        send(-us, libc::SIGCONT);
        send(again, libc::SIGTSTP);
        until(&format!("both have stopped again in round {round}"), both_stopped);
        send(us, libc::SIGCONT);
        until("both run", || state(us) != 'T' && state(program) != 'T');
    }
    ordered.child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(ordered.line(), "got 10");
    assert!(ordered.end().0.success());
}

#[test]
fn a_group_that_was_stopped_and_continued_in_part_goes_on() {
    let ordered = Ordered::start(&["plain"]);
    let send = |to: libc::pid_t, signal| {
        // SAFETY: our own children.
        assert_eq!(unsafe { libc::kill(to, signal) }, 0);
    };
    send(-ordered.pid(), libc::SIGSTOP);
    assert!(libc::WIFSTOPPED(ordered.changed()));
    send(ordered.pid(), libc::SIGCONT);
    send(ordered.program, libc::SIGCONT);
    std::thread::sleep(std::time::Duration::from_millis(100));
    ordered.send(libc::SIGTERM);
    let pid = ordered.pid();
    let began = std::time::Instant::now();
    while std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        if began.elapsed() > std::time::Duration::from_secs(120) {
            send(-pid, libc::SIGKILL);
            panic!("it hangs");
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn what_the_program_sends_to_its_parent_reaches_ours() {
    let script = "trap 'echo told; exit 3' USR1; \"$@\" & wait; wait";
    let run = |run: Run| run.arg("-c").arg(script).arg("sh");
    let sender = |run: Run| run.arg("sh").arg("-c").arg("kill -USR1 $PPID");
    let alone = sender(run(Run::new("sh"))).run();
    let seen = sender(run(Run::new("sh")).arg(target("release/aclshim")).arg("run").arg("--quiet").arg("--")).run();
    assert_eq!((alone.stdout.as_str(), alone.status.code()), ("told\n", Some(3)));
    assert_eq!(seen.seen(), alone.seen());
}

// ---- What outlives it, and what outlives us ----

#[test]
fn a_daemon_keeps_a_collector_until_it_has_ended() {
    for arguments in [&[][..], &["copied"]] {
        let program = host("hosts/run_daemon.c");
        let run = arguments.iter().fold(under(&[], &program), |run, argument| run.arg(argument));
        // Read to the end of its output: nobody who is left holds it open.
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
    // Nothing of ours is its own: if this test fails, nobody waits for it.
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
        assert_eq!(calls(&output), 21, "{list:?}");
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
