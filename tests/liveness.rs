//! Which processes are dead: those whose rings are finished, and those whose rings must stay.

#[path = "support/collecting.rs"]
mod collecting;
#[path = "support/recording/mod.rs"]
mod recording;
mod support;
#[path = "support/surroundings.rs"]
mod surroundings;

use collecting::Folders;
use recording::ordered::{Ordered, steps};
use recording::{hammer, vendor};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Run, Stat, has_that, host, scratch, target, until};
use surroundings::Environment::{Boot, Container, Here, Pid, Time};
use surroundings::{Environment, Environments, SLACK, kill, looks, now_ns};

// ---- The living ----

#[test]
fn a_collector_keeps_every_call_of_a_living_process_and_notices_its_death() {
    let test = "a_collector_keeps_every_call_of_a_living_process_and_notices_its_death";
    for environment in Environment::ALL {
        if !environment.is_there(test) {
            continue;
        }
        let folders = Folders::new("liveness");
        let collector = folders.collector();
        let begin_ns = now_ns();
        let mut host = folders.host_in(environment);
        for _ in 0..4 {
            host.order("calls 250");
            looks(&collector);
            assert_eq!(folders.ring_files().len(), 1, "{environment:?}: the ring of a living process");
        }
        host.until_drained();
        kill(host.id());
        until("the ring of a dead process is removed", || folders.ring_files().is_empty());
        collector.end(libc::SIGTERM);
        folders.holds(1000, begin_ns, &format!("{environment:?}"));
        let lines = support::log(&folders.out);
        assert_eq!(lines.iter().filter(|line| line["event"] == "stopped").count(), 1, "{environment:?}: {lines:?}");
    }
}

#[test]
fn recover_and_clean_leave_the_ring_of_a_living_process_alone_and_take_that_of_a_dead_one() {
    let test = "recover_and_clean_leave_the_ring_of_a_living_process_alone_and_take_that_of_a_dead_one";
    for environment in Environment::ALL {
        if !environment.is_there(test) {
            continue;
        }
        let folders = Folders::new("liveness");
        let begin_ns = now_ns();
        let mut host = folders.host_in(environment);
        host.order("calls 100");
        let [ring] = &folders.ring_files()[..] else { panic!("one ring") };
        let recovered = folders.command(&["recover", ring.to_str().unwrap()]);
        let said = String::from_utf8(recovered.stdout).unwrap();
        assert!(recovered.status.success() && said.contains("left alone"), "{environment:?}: {said}");
        let cleaned = folders.command(&["clean", "--force", folders.rings.to_str().unwrap()]);
        let said = String::from_utf8(cleaned.stdout).unwrap();
        assert!(said.contains("0 files removed"), "{environment:?}: {said}");
        host.order("calls 100");
        assert_eq!(folders.stat().total("calls"), 200, "{environment:?}");
        kill(host.id());
        // The kill of a process in a namespace follows that of its parent.
        until("the ring of a dead process is recovered", || {
            assert!(folders.command(&["recover", ring.to_str().unwrap()]).status.success());
            folders.ring_files().is_empty()
        });
        folders.holds(200, begin_ns, &format!("{environment:?}"));
    }
}

#[test]
fn a_run_is_recorded_whole_wherever_its_program_goes() {
    let test = "a_run_is_recorded_whole_wherever_its_program_goes";
    for environment in Environment::ALL {
        if !environment.is_there(test) {
            continue;
        }
        let folders = Folders::new("liveness");
        let begin_ns = now_ns();
        let run = Run::new(target("release/aclshim")).library_path(vendor()).arg("run").arg("--");
        let run = folders.run(run).arg(environment.starter(&hammer()));
        let run = environment.enter(run, &hammer()).arg("1").arg("1000").env("ACLSHIM_RECORD", "lossless");
        let output = run.run().ok();
        assert!(output.stderr.starts_with("aclshim: 1000 calls, "), "{}", output.stderr);
        assert!(folders.ring_files().is_empty(), "{environment:?}");
        folders.holds(1000, begin_ns, &format!("{environment:?}"));
    }
}

#[test]
fn a_process_whose_first_thread_has_ended_is_not_taken_for_dead() {
    let folders = Folders::new("liveness");
    let collector = folders.collector();
    let begin_ns = now_ns();
    let run = |run: Run, pipe: &Path| folders.run(run.arg(pipe).arg("leaderless")).env("ACLSHIM_DRAIN", "outside");
    let mut host = Ordered::new(run, steps()).with_rings(&folders.rings);
    for _ in 0..4 {
        host.order("calls 250");
        looks(&collector);
        assert_eq!(folders.ring_files().len(), 1, "the ring of a living process");
    }
    host.end();
    until("the ring of a dead process is removed", || folders.ring_files().is_empty());
    collector.end(libc::SIGTERM);
    folders.holds(1000, begin_ns, "without a leader");
}

#[test]
fn a_process_whose_first_copy_comes_from_a_child_that_shares_its_memory_has_a_ring_of_its_own() {
    let folders = Folders::new("liveness");
    let collector = folders.collector();
    let run = Run::new(host("hosts/life_vfork.c")).sim().shim().env("ACLSHIM_DRAIN", "outside");
    let (mut child, folder) = folders.run(run).spawn();
    until("it has copied", || folder.join("here").exists());
    looks(&collector);
    let [ring] = &folders.ring_files()[..] else { panic!("one ring: {:?}", folders.ring_files()) };
    let name = ring.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with(&format!("aclshim-{}-", child.id())), "{name}: not that of the child");
    fs::write(folder.join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    until("the ring of a dead process is removed", || folders.ring_files().is_empty());
    collector.end(libc::SIGTERM);
    let stat = folders.stat();
    assert_eq!(stat.total("calls") + stat.total("not_recorded"), 25);
    assert!(stat.total("calls") >= 10, "the last ones at least are recorded: {}", stat.total("calls"));
}

#[test]
fn a_program_that_drains_itself_takes_the_rings_of_the_dead_and_leaves_those_of_the_living() {
    let test = "a_program_that_drains_itself_takes_the_rings_of_the_dead_and_leaves_those_of_the_living";
    for environment in Environment::ALL {
        if !environment.is_there(test) {
            continue;
        }
        let folders = Folders::new("liveness");
        let begin_ns = now_ns();
        let mut neighbour = folders.host_in(environment);
        neighbour.order("calls 100");
        let host = || Ordered::new(|run, pipe| folders.run(run.arg(pipe)), steps());
        let mut first = host();
        // It looks when it has written its first records, and once a second after that.
        for _ in 0..3 {
            first.order("calls 100");
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
        assert_eq!(folders.ring_files().len(), 2, "{environment:?}: the rings of living processes");
        neighbour.order("calls 100");
        kill(neighbour.id());
        first.end();
        let mut second = host();
        second.order("calls 100");
        until("the rings of dead processes are removed", || folders.ring_files().len() == 1);
        second.end();
        folders.holds(600, begin_ns, &format!("{environment:?}"));
    }
}

#[test]
fn a_file_system_that_grants_a_lease_on_a_mapped_file_proves_no_death() {
    let test = "a_file_system_that_grants_a_lease_on_a_mapped_file_proves_no_death";
    // On overlayfs a mapping belongs to another inode than the file.
    const OVERLAY: &str = "mount -t tmpfs none \"$LAYERS\" && mkdir \"$LAYERS/upper\" \"$LAYERS/work\" && \
                           mount -t overlay -o lowerdir=\"$RINGS\",upperdir=\"$LAYERS/upper\",workdir=\"$LAYERS/work\" \
                           none \"$RINGS\" && ";
    let folders = Folders::new("liveness");
    let layers = scratch("layers");
    let script = |rest: &str| format!("{OVERLAY}{rest}");
    let mut probe = Command::new("unshare");
    probe.args(["-rm", "sh", "-c", &script("true")]).env("LAYERS", &layers).env("RINGS", &folders.rings);
    let has_overlay = probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !has_that(has_overlay, "overlayfs in a user namespace", test) || !Pid.is_there(test) {
        return;
    }
    let file = folders.metrics.join("metrics.prom");
    // The collector is outside of the host's pid namespace.
    let script = script(
        "{ \"$1\" collect --metrics-file \"$2\" --metrics-interval 0.05 \"$RINGS\" </dev/null >/dev/null 2>&1 & } && \
         shift 2 && exec unshare -p --fork --kill-child \"$@\"",
    );
    let begin_ns = now_ns();
    let run = |run: Run, pipe: &Path| {
        let run =
            ["-rmp", "--fork", "--kill-child", "--mount-proc", "sh", "-c", &script, "sh"].iter().fold(run, Run::arg);
        let run = run.arg(target("release/aclshim")).arg(&file).arg(steps()).arg(pipe);
        folders.run(run).env("LAYERS", &layers).env("RINGS", &folders.rings).env("ACLSHIM_DRAIN", "outside")
    };
    let mut host = Ordered::new(run, "unshare");
    for _ in 0..4 {
        host.order("calls 250");
        for _ in 0..12 {
            let inode = || fs::metadata(&file).map_or(0, |about| about.ino());
            let before = inode();
            until("the file is written again", || inode() != before);
        }
    }
    until("all is written", || Stat::asked(&folders.out, &folders.rings).is_ok_and(|stat| stat.total("calls") >= 1000));
    host.end();
    let stat = folders.stat();
    assert_eq!((stat.total("calls"), stat.total("not_recorded")), (1000, 0));
    assert!(stat.total("first_ns") >= begin_ns - SLACK && stat.total("last_ns") <= now_ns() + SLACK);
}

// ---- The dead ----

#[test]
fn the_ring_of_a_process_is_finished_while_its_child_lives_on() {
    let test = "the_ring_of_a_process_is_finished_while_its_child_lives_on";
    for (environment, how) in
        [(Here, "fork"), (Here, "clone"), (Boot, "clone"), (Time, "clone"), (Pid, "fork"), (Container, "fork")]
    {
        if !environment.is_there(test) {
            continue;
        }
        let folders = Folders::new("liveness");
        let collector = folders.collector();
        let program = host("hosts/life_child.c");
        // The first process of a pid namespace takes all others with it: a shell waits in its folders.
        let wait = "\"$@\"; while [ ! -e gone ]; do sleep 0.02; done";
        let run = environment.enter(Run::new(environment.starter("sh".as_ref())), "sh".as_ref()).sim().shim();
        let run = run.arg("-c").arg(wait).arg("sh").arg(&program).arg(how).env("ACLSHIM_DRAIN", "outside");
        let (mut child, folder) = folders.run(run).spawn();
        let make = |name: &str| fs::write(folder.join(name), "").unwrap();
        until("it has a child", || folder.join("here").exists());
        looks(&collector);
        assert_eq!(folders.ring_files().len(), 1, "{environment:?}: the ring of a living process");
        make("end");
        until("the ring of a dead process is removed", || folders.ring_files().is_empty());
        make("go");
        make("gone");
        assert!(child.wait().unwrap().success());
        collector.end(libc::SIGTERM);
        let stat = folders.stat();
        assert_eq!((stat.total("calls"), stat.total("not_recorded")), (10, 0), "{environment:?} {how}");
    }
}

#[test]
fn a_program_that_executes_itself_again_and_again_keeps_one_ring() {
    const TIMES: u64 = 100;
    let program = host("hosts/life_exec.c");
    for way in ["inside", "collect", "run"] {
        let folders = Folders::new("liveness");
        let collector = (way == "collect").then(|| folders.collector());
        let begin_ns = now_ns();
        let run = match way {
            "inside" => Run::new(&program).sim().shim(),
            "collect" => Run::new(&program).sim().shim().env("ACLSHIM_DRAIN", "outside"),
            _ => Run::new(target("release/aclshim")).sim().arg("run").arg("--").arg(&program),
        };
        let (mut child, folder) = folders.run(run.arg(TIMES.to_string())).spawn();
        until("it is the last of itself", || folder.join("here").exists());
        until("only the last ring is left", || folders.ring_files().len() == 1);
        fs::write(folder.join("go"), "").unwrap();
        assert!(child.wait().unwrap().success(), "{way}");
        if let Some(collector) = collector {
            until("all is written", || folders.ring_files().is_empty());
            collector.end(libc::SIGTERM);
        }
        assert_eq!(folders.stat().total("processes"), TIMES + 1, "{way}");
        folders.holds(TIMES + 1, begin_ns, way);
    }
}

// ---- The child of another user ----

#[test]
fn a_fork_child_that_has_given_up_its_rights_cannot_spoil_the_ring_of_its_parent() {
    let program = host("hosts/life_dropped.c");
    for drain in ["inside", "outside"] {
        let folders = Folders::new("liveness");
        let begin_ns = now_ns();
        let run = Run::new(&program).sim().shim().env("ACLSHIM_DRAIN", drain);
        folders.run(run).run().ok();
        if drain == "outside" {
            let said = folders.command(&["recover", folders.rings.to_str().unwrap()]);
            assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        }
        folders.holds(60, begin_ns, drain);
    }
}
