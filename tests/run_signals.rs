//! Signals and stops under `aclshim run`: they reach the program once, and its end is ours.

#[path = "support/ordered.rs"]
mod ordered;
mod support;

use ordered::{Ordered, state, terminal};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use support::{Run, Stat, aclshim, host, scratch, target, until};

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
