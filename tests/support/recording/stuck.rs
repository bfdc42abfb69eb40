//! The threads of ours in a host, stopped where they are.

use super::ordered::Ordered;
use std::fs;
use std::ptr::null_mut;

/// Threads that do nothing any more, and whose end the thread that stopped them must take note of: until then their
/// process is not gone.
pub struct Stuck(Vec<libc::pid_t>);

fn ask(request: u32, thread: libc::pid_t) -> bool {
    // SAFETY: a request without memory, about a thread of a child of ours.
    unsafe { libc::ptrace(request, thread, null_mut::<()>(), null_mut::<()>()) == 0 }
}

/// Waits until a thread has stopped or ended.
fn wait(thread: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: a place for the answer.
    assert_eq!(unsafe { libc::waitpid(thread, &mut status, libc::__WALL) }, thread);
    status
}

impl Stuck {
    /// Stops all that is ours in a host; `None` where the system does not allow that.
    #[track_caller]
    pub fn stop(host: &Ordered) -> Option<Self> {
        let tasks = fs::read_dir(format!("/proc/{}/task", host.id())).unwrap().map(|task| task.unwrap().path());
        let ours = tasks.filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "aclshim\n"));
        let ours: Vec<libc::pid_t> =
            ours.map(|task| task.file_name().unwrap().to_str().unwrap().parse().unwrap()).collect();
        assert!(!ours.is_empty(), "a drain inside the host");
        for &thread in &ours {
            if !ask(libc::PTRACE_SEIZE, thread) || !ask(libc::PTRACE_INTERRUPT, thread) {
                return None;
            }
            assert!(libc::WIFSTOPPED(wait(thread)));
        }
        Some(Self(ours))
    }

    /// Waits for their end, which is that of the host.
    #[track_caller]
    pub fn until_ended(self) {
        for thread in self.0 {
            let status = wait(thread);
            assert!(libc::WIFEXITED(status) || libc::WIFSIGNALED(status), "{status:x}");
        }
    }
}
