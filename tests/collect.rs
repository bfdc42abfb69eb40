//! `aclshim collect` for several users: each has what is his, and keeps nothing from the others.

#[path = "support/collecting.rs"]
mod collecting;
#[path = "support/places.rs"]
mod places;
#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use aclshim_trace::reader;
use collecting::{Collector, Folders, as_stat_says, leftover};
use places::{AS_ANOTHER, has_two_users};
use recording::{hammer, traces, watched};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use support::{Run, Stat, aclshim, has, has_that, scratch, target, until};

// ---- Users ----

/// A program that becomes another user's where we are root.
fn as_another(folders: &Folders, program: &Path) -> Run {
    folders.run_outside(watched("sh").arg("-c").arg(AS_ANOTHER).arg("sh").arg(program))
}

#[test]
fn root_drains_for_all_and_writes_as_the_owner_of_each_ring() {
    if !has_two_users("root_drains_for_all_and_writes_as_the_owner_of_each_ring") {
        return;
    }
    let folders = Folders::new("collect");
    for folder in [&folders.rings, folders.out.parent().unwrap()] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o1777)).unwrap();
    }
    // Where only root may write, also by a link that the user has put there.
    let closed = scratch("collect");
    fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    let link = folders.out.with_file_name("link");
    symlink(&closed, &link).unwrap();
    let collector = folders.collector();
    let mine = folders.hammer(&["1", "1000"]).0.wait().unwrap();
    assert!(mine.success());
    let theirs = folders.out.with_file_name("theirs");
    let run = as_another(&folders, &hammer()).arg("1").arg("1000").env("ACLSHIM_DIR", &theirs);
    run.env("ACLSHIM_RECORD", "lossless").run().ok();
    folders.until_finished();
    for dir in [closed.join("out"), closed.clone(), link] {
        as_another(&folders, &hammer()).arg("1").arg("100").env("ACLSHIM_DIR", &dir).run().ok();
    }
    until("it is said that three cannot be written", || {
        collector.errors().matches("cannot be written and stay in the ring").count() == 3
    });
    collector.end(libc::SIGTERM);
    assert_eq!(fs::read_dir(&closed).unwrap().count(), 0, "nothing is written where the user may not");
    assert_eq!(reader::files(&folders.rings).unwrap().len(), 3);
    for (dir, owner) in [(&folders.out, 0), (&theirs, 54321)] {
        let stat = Stat::of(dir, &folders.rings);
        assert_eq!(stat.total("calls") + stat.total("not_recorded"), 1000);
        for file in fs::read_dir(dir).unwrap() {
            let about = file.unwrap().metadata().unwrap();
            assert_eq!((about.uid(), about.gid(), about.mode() & 0o777), (owner, owner, 0o600));
        }
    }
}

#[test]
fn a_worker_for_another_user_has_nothing_of_roots() {
    if !has_two_users("a_worker_for_another_user_has_nothing_of_roots") {
        return;
    }
    let folders = Folders::new("collect");
    for folder in [&folders.rings, folders.out.parent().unwrap()] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o1777)).unwrap();
    }
    // With a descriptor that was left open.
    let mut command = Command::new("sh");
    command.args(["-c", "exec 9</etc/shadow; exec \"$@\"", "sh"]).arg(target("release/aclshim"));
    let collector = Collector::with(command, &folders.rings, &folders.metrics).ready();
    let theirs = folders.out.with_file_name("theirs");
    as_another(&folders, &hammer()).arg("1").arg("100").env("ACLSHIM_DIR", &theirs).run().ok();
    folders.until_finished();
    let worker = collector.worker();
    let fds = PathBuf::from(format!("/proc/{worker}/fd"));
    // SAFETY: asks for a number.
    assert_eq!(unsafe { libc::getsid(worker) }, worker, "its session is its own");
    assert_eq!(fs::metadata(&fds).unwrap().uid(), 0, "its user cannot look into it");
    // It opens and closes files meanwhile.
    let open = fs::read_dir(&fds).unwrap().filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    let open: Vec<String> = open.map(|path| path.display().to_string()).collect();
    assert_eq!(open.iter().filter(|path| path.starts_with("pipe:")).count(), 3, "{open:?}");
    assert!(!open.iter().any(|path| path.contains("shadow") || path.contains("errors")), "{open:?}");
    collector.end(libc::SIGTERM);
}

#[test]
fn a_normal_user_drains_his_own_rings_and_no_others() {
    if !has_two_users("a_normal_user_drains_his_own_rings_and_no_others") {
        return;
    }
    let folders = Folders::new("collect");
    for folder in [&*folders.rings, &*folders.metrics, folders.out.parent().unwrap()] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).unwrap();
    }
    // Root's, which everybody may read and write, and which asks for files where the user may write.
    let ring = leftover(&folders.metrics.join("traces"));
    let roots = folders.rings.join("aclshim-4000001-1.ring");
    fs::write(&roots, ring).unwrap();
    fs::set_permissions(&roots, PermissionsExt::from_mode(0o666)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=54321", "--regid=54321", "--clear-groups", "--"]).arg(target("release/aclshim"));
    let collector = Collector::with(command, &folders.rings, &folders.metrics).ready();
    let run = as_another(&folders, &hammer()).arg("1").arg("1000").env("ACLSHIM_RECORD", "lossless");
    run.run().ok();
    until("his own is written", || reader::files(&folders.rings).unwrap().len() == 1);
    let metrics = collector.end(libc::SIGTERM);
    let stat = folders.stat();
    assert_eq!(stat.total("calls") + stat.total("not_recorded"), 1000);
    as_stat_says(&[&metrics], &stat);
    assert!(roots.exists() && !folders.metrics.join("traces").exists());
}

// ---- One user among others ----

/// Ids that no user of a machine has, nor as subordinate ones; the first of a block of 65,536. Each test has its own:
/// a collector looks for the user behind an id at all processes of the machine, those of the other tests included.
const MANY_IDS: u32 = 45_000 << 16;
const ONE_TURN_EACH: u32 = 45_001 << 16;
const MANY_FILES: u32 = 45_002 << 16;
/// The first of five blocks.
const IN_A_NAMESPACE: u32 = 45_003 << 16;

/// Files that are named as rings and are none, and so are never done with, each of another user.
fn false_rings(rings: &Path, users: impl IntoIterator<Item = u32>) {
    for (number, user) in users.into_iter().enumerate() {
        // By name they come before those of real processes.
        let path = rings.join(format!("aclshim-0-{number:x}.ring"));
        fs::write(&path, "no ring").unwrap();
        chown(&path, Some(user), Some(user)).unwrap();
    }
}

/// A program of another user whose calls all fit into its ring: none can be lost if the ring is drained at all.
#[track_caller]
fn is_drained_for_another(folders: &Folders) {
    let theirs = folders.out.with_file_name("theirs");
    as_another(folders, &hammer()).arg("1").arg("500").env("ACLSHIM_DIR", &theirs).run().ok();
    let is_theirs = |path: &PathBuf| fs::metadata(path).is_ok_and(|about| about.uid() == 54321);
    until("his ring is written and removed", || !reader::files(&folders.rings).unwrap().iter().any(is_theirs));
    let stat = Stat::of(&theirs, &folders.rings);
    assert_eq!((stat.total("calls"), stat.total("not_recorded")), (500, 0));
}

#[test]
fn one_user_with_many_ids_does_not_keep_others_from_being_drained() {
    if !has_two_users("one_user_with_many_ids_does_not_keep_others_from_being_drained") {
        return;
    }
    let folders = Folders::new("collect");
    for folder in [&folders.rings, folders.out.parent().unwrap()] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o1777)).unwrap();
    }
    false_rings(&folders.rings, MANY_IDS..MANY_IDS + 300);
    let collector = folders.collector();
    is_drained_for_another(&folders);
    until("it is told who waits", || collector.metrics().sum("aclshim_users_held_back", &[]) == 268);
    let errors = collector.errors();
    let said: Vec<&str> = errors.lines().filter(|line| line.contains("waits for a worker")).collect();
    assert!(
        said.len() == 1
            && said[0]
                .contains(&format!("unknown users from {MANY_IDS} to {} may have 32 at a time", MANY_IDS | 0xffff)),
        "{errors}"
    );
    for ring in reader::files(&folders.rings).unwrap() {
        fs::remove_file(ring).unwrap();
    }
    until("nobody waits", || collector.metrics().sum("aclshim_users_held_back", &[]) == 0);
    collector.end(libc::SIGTERM);
}

#[test]
fn once_gives_each_user_his_turn_where_there_are_more_than_one_may_have_workers_for() {
    if !has_two_users("once_gives_each_user_his_turn_where_there_are_more_than_one_may_have_workers_for") {
        return;
    }
    let folders = Folders::new("collect");
    fs::create_dir(&folders.out).unwrap();
    for folder in [&folders.rings, &folders.out] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o1777)).unwrap();
    }
    let ring = leftover(&folders.out);
    for user in ONE_TURN_EACH..ONE_TURN_EACH + 40 {
        let path = folders.rings.join(format!("aclshim-4000001-{user:x}.ring"));
        fs::write(&path, &ring).unwrap();
        chown(&path, Some(user), Some(user)).unwrap();
    }
    let output = aclshim().args(["collect", "--once"]).arg(&folders.rings).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && errors.contains("waits for a worker"), "{errors}");
    assert!(reader::files(&folders.rings).unwrap().is_empty());
    assert_eq!(traces(&folders.out).len(), 40);
}

#[test]
fn ids_of_a_user_namespace_have_the_limits_of_its_owner() {
    let test = "ids_of_a_user_namespace_have_the_limits_of_its_owner";
    if !has_two_users(test) {
        return;
    }
    let spawn = |mut command: Command| command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().ok();
    let mut owner = Command::new("setpriv");
    owner.args(["--reuid=54321", "--regid=54321", "--clear-groups", "unshare", "--user", "sh", "-c"]);
    owner.arg("echo ready; exec sleep 1000");
    let mut owner = Ended::of(spawn(owner));
    let is_ready = owner.line() == "ready\n";
    let map = |of: &str| fs::write(format!("/proc/{}/{of}", owner.id()), format!("0 {IN_A_NAMESPACE} 300000")).is_ok();
    if !has_that(is_ready && map("uid_map") && map("gid_map"), "a user namespace with many ids", test) {
        return;
    }
    // In five blocks of 65536, eight in each: nothing but their namespace shows that they belong together.
    let users: Vec<u32> = (0..40).map(|number| IN_A_NAMESPACE + number * 7000).collect();
    let processes = users.iter().map(|user| {
        let mut command = Command::new("nsenter");
        let inside = (user - IN_A_NAMESPACE).to_string();
        command.args(["--user", "--target", &owner.id().to_string(), "--setuid", &inside, "--setgid", &inside]);
        command.args(["sh", "-c", "echo ready; exec sleep 1000"]);
        let mut process = Ended::of(spawn(command));
        assert_eq!(process.line(), "ready\n");
        process
    });
    let processes: Vec<Ended> = processes.collect();
    let folders = Folders::new("collect");
    false_rings(&folders.rings, users);
    let collector = folders.collector();
    until("some wait", || collector.metrics().sum("aclshim_users_held_back", &[]) == 8);
    let errors = collector.errors();
    assert!(errors.contains("user 54321 may have 32 at a time"), "{errors}");
    collector.end(libc::SIGTERM);
    drop(processes);
}

/// A process that is killed in the end.
struct Ended(Option<Child>);

impl Ended {
    fn of(child: Option<Child>) -> Self {
        Self(child)
    }

    fn id(&self) -> u32 {
        self.0.as_ref().map_or(0, Child::id)
    }

    /// A line that it prints.
    fn line(&mut self) -> String {
        let mut line = String::new();
        if let Some(pipe) = self.0.as_mut().and_then(|child| child.stdout.as_mut()) {
            let _ = BufReader::new(pipe).read_line(&mut line);
        }
        line
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The most files that one process of a collector has looked at between two waits, by the calls that strace saw.
fn most_looks_at_once(calls: &Path) -> usize {
    let (mut looks, mut most) = (BTreeMap::<String, usize>::new(), 0);
    for line in fs::read_to_string(calls).unwrap().lines() {
        let (pid, call) = line.split_once(' ').unwrap_or_default();
        let now = looks.entry(pid.to_owned()).or_default();
        if call.contains("poll(") {
            *now = 0;
        } else if call.contains("aclshim-0-") {
            *now += 1;
            most = most.max(*now);
        }
    }
    most
}

#[test]
fn a_folder_full_of_files_does_not_keep_the_collector_from_its_work() {
    let test = "a_folder_full_of_files_does_not_keep_the_collector_from_its_work";
    if !has_two_users(test) || !has("strace", test) {
        return;
    }
    const FILES: usize = 12_000;
    let folders = Folders::new("collect");
    for folder in [&folders.rings, folders.out.parent().unwrap()] {
        fs::set_permissions(folder, PermissionsExt::from_mode(0o1777)).unwrap();
    }
    false_rings(&folders.rings, std::iter::repeat_n(MANY_FILES, FILES));
    let calls = folders.metrics.join("calls");
    // The one that watches is not in between: signals are for the collector.
    let mut command = Command::new("strace");
    command
        .args(["-D", "-f", "--seccomp-bpf", "-qq", "-e", "trace=poll,ppoll,stat,lstat,newfstatat,statx,openat", "-o"])
        .arg(&calls);
    command.arg(target("release/aclshim"));
    let collector = Collector::with(command, &folders.rings, &folders.metrics).ready();
    is_drained_for_another(&folders);
    until("all files were looked at", || collector.metrics().sum("aclshim_ring_files", &[]) >= FILES as u64);
    until("it is said whose they are", || {
        collector.errors().contains(&format!("user {MANY_FILES} has 12000 ring files there"))
    });
    // Under strace an orderly end takes long.
    collector.kill();
    let most = most_looks_at_once(&calls);
    assert!((1..FILES / 2).contains(&most), "{most} files were looked at while rings had to wait");
}

#[test]
fn the_socket_answers_while_thousands_of_connections_ask_for_nothing_or_read_nothing() {
    let folders = Folders::new("collect");
    let collector = folders.collector();
    let socket = collector.folder.join("metrics.sock");
    support::most_descriptors();
    let connect = || UnixStream::connect(&socket).unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let kinds: [&[u8]; 3] = [b"", b"GET /metr", request];
    for begin in kinds {
        // What it sends may find the connection closed again.
        let open = |_| {
            let mut stream = connect();
            let _ = stream.write_all(begin);
            stream
        };
        let half_open: Vec<UnixStream> = (0..2000).map(open).collect();
        // Once, and not again and again until it is answered.
        let mut answer = String::new();
        let mut stream = connect();
        stream.write_all(request).unwrap();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"), "{begin:?}: {answer}");
        drop(half_open);
    }
    collector.end(libc::SIGTERM);
}
