//! The harness in long and large tests: what it keeps, what it gives back, and what it does not wait for.

mod support;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use support::{Run, host, scratch};

fn program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| host("hosts/harness_much_calls.c")).clone()
}

/// The program under the shim, without a thread of ours beside it.
fn seen(what: &str) -> Run {
    Run::new(program()).arg(what).sim().shim().env("ACLSHIM_DRAIN", "off")
}

#[test]
fn a_large_scope_is_asked_as_often_as_one_likes() {
    let output = seen("queries").run().ok();
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("wrong 0\ntoo much 0\ninner 1\ninner end 0\nend 0\n", "")
    );
}

/// There is room for a few of its scopes at once.
#[test]
fn calls_that_no_open_scope_sees_go_when_theirs_ends() {
    let output = seen("workers").run().ok();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("wrong 0\nmine 1\nend 0\n", ""));
}

#[test]
fn scopes_of_a_thread_that_is_gone_have_failed_and_are_in_nobodys_way() {
    let output = seen("orphans").env("ACLSHIM_RESULTS", "results.jsonl").run().ok();
    let expected = "failures 1\ntheirs -2\nmine 1\nmine end 0\nasked -2\nfailures 2\nwhole end 0\nfailures 3\n";
    assert_eq!(output.stdout, expected, "{}", output.stderr);
    let said = "aclshim: scope \"theirs\": never ended, so 1 expectation could not be judged\n";
    assert_eq!(output.stderr, said.repeat(3));
    let results = fs::read_to_string(output.scratch.join("results.jsonl")).unwrap();
    assert_eq!(results.matches("\"kind\":\"unended\"").count(), 3, "{results}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_call_costs_what_it_did_after_the_scope_of_a_gone_thread_has_ended() {
    let run = Run::new(host("hosts/harness_cost.c")).arg("gone").sim().shim().env("ACLSHIM_DRAIN", "off");
    let output = run.env("ASCENDCL_SIM_FAULT", "fail=5@aclrtMemset:*").run().ok();
    assert_eq!(output.stdout, "more within, as before\n", "{}", output.stderr);
}

#[test]
fn the_first_batch_of_a_process_has_the_findings_of_the_second() {
    let output = seen("batches").env("ASCENDCL_SIM_CANN", "8.5").run().ok();
    let of = |call: &str| output.stdout.lines().filter_map(|line| line.strip_prefix(call)).collect::<Vec<_>>();
    assert_eq!(of("0 "), of("1 "), "{}", output.stdout);
    assert!(of("0 ").contains(&"EXPERIMENTAL"), "{}", output.stdout);
}

#[test]
fn names_and_marks_hold_also_where_the_record_is_full() {
    let output = seen("names").env("ACLSHIM_RING_SIZE", "4K").env("ACLSHIM_RING_LIMIT", "4K").run().ok();
    assert_eq!(output.stdout, "wrong 0\nby name 1\nend 0\n");
}

#[test]
fn a_fork_in_a_handler_that_has_interrupted_an_answer_does_no_harm() {
    let output = seen("fork").run().ok();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("parent 2\nchild 0 7\nend 0\n", ""));
}

#[test]
fn what_is_refused_and_not_looked_at_was_not_met() {
    let output = seen("refused").env("ACLSHIM_PRESET", "production").run();
    assert_eq!(output.status.code(), Some(2), "{}", output.stderr);
    let said = "what was said to aclshim_inject is refused, because ACLSHIM_PRESET=production";
    assert!(output.stderr.contains(said), "{}", output.stderr);
    assert!(output.stderr.contains("what was said to aclshim_expect_calls makes no sense"), "{}", output.stderr);
}

fn updated(path: &Path) -> support::Output {
    seen("golden").arg(path).env("ACLSHIM_GOLDEN", "update").run()
}

#[test]
fn a_golden_file_that_cannot_be_written_is_one_that_is_not_met() {
    let folder = scratch("golden");
    let pipe = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (path, why) in [(pipe.clone(), "not a plain file"), (folder.join("none/run.golden"), "No such file")] {
        let output = updated(&path);
        assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
        let said = format!("{} cannot be written: {why}", path.display());
        assert!(output.stderr.contains(&said), "{}", output.stderr);
    }
    let read = seen("golden").arg(&pipe).run();
    assert!(read.stderr.contains("cannot be read: not a plain file"), "{}", read.stderr);
    // A limit on files is no reason for a signal.
    let path = folder.join("limited");
    let limited = Run::new("/bin/sh").arg("-c").arg("ulimit -f 0; exec \"$0\" golden \"$1\"").arg(program()).arg(&path);
    let limited = limited.sim().shim().env("ACLSHIM_DRAIN", "off").env("ACLSHIM_GOLDEN", "update").run();
    assert_eq!(limited.status.code(), Some(1), "{}", limited.stderr);
    assert!(limited.stderr.contains("cannot be written: File too large") && !path.exists(), "{}", limited.stderr);
}

#[test]
fn an_update_keeps_comments_links_and_names_that_are_not_utf_8() {
    let folder = scratch("golden");
    let path = folder.join(std::ffi::OsStr::from_bytes(b"caf\xe9.golden"));
    updated(&path).ok();
    let text = fs::read_to_string(&path).unwrap();
    let commented = format!("# why: see the wiki\n{text}");
    fs::write(&path, &commented).unwrap();
    updated(&path).ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), commented);
    fs::write(&path, commented.replace("count=64", "count=65")).unwrap();
    let link = folder.join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    updated(&link).ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    fs::write(&path, "old").unwrap();
    updated(&path).ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert!(link.is_symlink() && fs::read_dir(&folder).unwrap().count() == 2, "nothing else is left there");
    seen("golden").arg(&path).run().ok();
}
