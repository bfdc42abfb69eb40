//! The threads of ours in a host: they run as any thread of the process may, whichever of its threads copied first.

mod support;

use std::fs;
use std::process::Child;
use support::{Build, Output, Run, has_that, host, until};

/// A host whose first copier is set apart, with its drain at work; it ends when its input does.
struct Host {
    child: Child,
    output: Output,
}

impl Host {
    fn new(how: &str) -> Self {
        let (mut child, scratch) = Run::new(host("hosts/drain_first.c")).sim().shim().arg(how).input().spawn();
        let output = Output { status: Default::default(), stdout: String::new(), stderr: String::new(), scratch };
        // What the drain writes it writes when it has set itself up, and the thread that watches it.
        let out = output.scratch.join("out");
        until("the drain has written something", || {
            assert!(child.try_wait().unwrap().is_none(), "ended by itself");
            support::log(&out).iter().any(|line| line["event"] == "started")
        });
        Self { child, output }
    }

    /// The threads of ours: their numbers.
    fn threads(&self) -> Vec<i32> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let tasks = tasks.map(|task| task.unwrap().path());
        let ours = tasks.filter(|task| fs::read_to_string(task.join("comm")).unwrap_or_default() == "aclshim\n");
        let threads: Vec<i32> = ours.map(|task| task.file_name().unwrap().to_str().unwrap().parse().unwrap()).collect();
        assert_eq!(threads.len(), 2, "the drain, and the thread that waits for it");
        threads
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.output.status = self.child.wait().unwrap();
        let output = self.output.ok();
        assert_eq!(output.stat().total("calls"), 10);
    }
}

/// The processors that a thread may run on, as the system says it.
fn may_run_on(process: u32, thread: i32) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/task/{thread}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:")).unwrap().trim().to_owned()
}

#[test]
fn the_drain_runs_wherever_the_program_may_although_the_first_copier_is_bound_to_one_processor() {
    let name = "the_drain_runs_wherever_the_program_may_although_the_first_copier_is_bound_to_one_processor";
    if !has_that(std::thread::available_parallelism().is_ok_and(|many| many.get() > 1), "two processors", name) {
        return;
    }
    let host = Host::new("pinned");
    let process = host.child.id();
    let all = may_run_on(process, process as i32);
    for thread in host.threads() {
        assert_eq!(may_run_on(process, thread), all);
    }
    host.end();
}

/// Whether this test may have a program scheduled in real time.
fn may_be_fifo() -> bool {
    std::thread::spawn(|| {
        let param = libc::sched_param { sched_priority: 1 };
        // SAFETY: this thread's own, which ends with it.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &param) == 0 }
    })
    .join()
    .unwrap()
}

#[test]
fn the_drain_is_scheduled_as_any_thread_is_whatever_the_policy_of_the_first_copier() {
    let name = "the_drain_is_scheduled_as_any_thread_is_whatever_the_policy_of_the_first_copier";
    let mut policies = vec!["batch"];
    if has_that(may_be_fifo(), "the right to real-time scheduling", name) {
        policies.push("fifo");
    }
    for policy in policies {
        let host = Host::new(policy);
        for thread in host.threads() {
            // SAFETY: only asks.
            assert_eq!(unsafe { libc::sched_getscheduler(thread) }, libc::SCHED_OTHER, "{policy}");
        }
        host.end();
    }
}

#[test]
fn the_drain_uses_neither_the_heap_of_the_host_nor_destructors_of_its_threads() {
    let program = Build::new("hosts/drain_allocates.c").arg("-rdynamic").link("ascendcl").program();
    // Small files and a small budget: the drain also begins new ones, and looks which to remove.
    let run = Run::new(&program).sim().shim().env("ACLSHIM_SEGMENT", "1M").env("ACLSHIM_BUDGET", "4M");
    let output = run.run();
    let called = fs::read_to_string(output.scratch.join("called")).unwrap_or_default();
    assert_eq!((called.as_str(), output.status.code()), ("", Some(0)), "{output:?}");
    assert_eq!(output.stdout, "threads of the shim were seen: yes\n");
}
