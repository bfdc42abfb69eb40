//! The program under `aclshim run`: it does not notice, and signals, stops and ends reach it and us as they should.

#[path = "support/running.rs"]
mod running;
mod support;

use aclshim_trace::reader;
use running::under;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use support::{Output, Run, Stat, aclshim, host, runnable, scratch, sim, target, until};

fn calls(output: &Output) -> u64 {
    output.stat().total("calls")
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

    /// Its state now, as its parent sees it.
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
    // TSTP would have no effect in an orphaned process group: the test is in its session.
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
