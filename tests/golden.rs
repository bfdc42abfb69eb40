//! A golden run is the same text in every run, and a change of the program is a readable difference.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use support::{Output, Run, aclshim, has_that, host, scratch, target};

/// Threads, streams, batches, heap, stack and device memory; with one thing done otherwise if asked.
fn work() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| host("hosts/golden_work.c")).clone()
}

/// `aclshim test --golden FILE OPTIONS -- program`. The program breaks rules on purpose.
fn test(golden: &Path, options: &[&str], command: &[&str]) -> Output {
    let run = Run::new(target("release/aclshim")).arg("test").arg("--severity").arg("off").arg("--golden").arg(golden);
    let run = options.iter().fold(run, |run, option| run.arg(option)).arg("--");
    command.iter().fold(run, |run, word| run.arg(word)).run()
}

/// A golden file of [`work`].
fn written() -> PathBuf {
    let golden = scratch("golden").join("a/work.golden");
    let output = test(&golden, &["--update"], &[work().to_str().unwrap()]).ok();
    assert!(output.stderr.contains(&format!("golden run: written to {}\n", golden.display())), "{}", output.stderr);
    golden
}

/// The lines that a difference adds and removes.
fn changed(output: &Output) -> Vec<&str> {
    let is_change = |line: &&str| line.starts_with(['+', '-']) && !line.starts_with("+++") && !line.starts_with("---");
    output.stderr.lines().filter(is_change).collect()
}

#[test]
fn a_golden_run_is_the_same_in_a_hundred_runs_with_random_addresses_and_threads() {
    let is_random = fs::read_to_string("/proc/sys/kernel/randomize_va_space").is_ok_and(|text| text.trim() != "0");
    if !has_that(is_random, "randomised addresses", "a_golden_run_is_the_same_in_a_hundred_runs") {
        return;
    }
    let golden = written();
    let text = fs::read_to_string(&golden).unwrap();
    assert!(text.starts_with("# aclshim golden run 1: "), "{text}");
    for part in
        ["\nmain thread:\n", "\n3 threads:\n", "\n2 threads:\n", "\n  20 times: aclrtMemcpy(", "\n    [4] dst=b9"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (program, mut addresses) = (work(), std::collections::BTreeSet::new());
    // And the file of a scope, which is compared within the program.
    let of_scope = golden.with_file_name("scope.golden");
    let run = Run::new(target("release/aclshim")).arg("test").arg("--severity").arg("off").arg("--update").arg("--");
    run.arg(&program).env("SCOPE_GOLDEN", &of_scope).run().ok();
    let text = fs::read_to_string(&of_scope).unwrap();
    assert!(text.contains("3 threads:\n") && text.contains("\n    [4] dst=b9"), "{text}");
    for number in 0..100 {
        let run = Run::new(target("release/aclshim")).arg("test").arg("--severity").arg("off").arg("--out").arg("kept");
        // An environment of another size moves the stack, too.
        let run = run
            .env("SCOPE_GOLDEN", &of_scope)
            .env("PADDING", "x".repeat(number * 37))
            .arg("--golden")
            .arg(&golden)
            .arg("--")
            .arg(&program);
        let output = run.run().ok();
        assert!(output.stderr.contains("golden run: as in "), "{}", output.stderr);
        if number % 20 == 0 {
            let log = aclshim().arg("log").arg("--json").arg(output.scratch.join("kept")).output().unwrap();
            let log = String::from_utf8(log.stdout).unwrap();
            let mut lines = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
            // Before the first call stands that its scope begins.
            let source = lines.find_map(|line| Some(line["arguments"]["src"].as_str()?.to_owned()));
            addresses.insert(source.expect("a copy"));
        }
        fs::remove_dir_all(&output.scratch).unwrap();
    }
    assert!(addresses.len() > 1, "the addresses themselves are not the same: {addresses:?}");
}

#[test]
fn every_change_of_the_program_is_shown_where_it_is() {
    let golden = written();
    let program = work();
    let ends = "kind=HOST_TO_DEVICE) = ACL_SUCCESS";
    let cases = [
        ("add", vec![format!("+  aclrtMemcpy(dst=b1+0x0, destMax=4096, src=b2+0x0, count=64, {ends}")]),
        (
            "enlarge",
            vec![
                format!("-  aclrtMemcpy(dst=b1+0x400, destMax=1024, src=b2+0x0, count=256, {ends}"),
                format!("+  aclrtMemcpy(dst=b1+0x400, destMax=1024, src=b2+0x0, count=512, {ends}"),
            ],
        ),
        (
            "misalign",
            vec![
                format!("-  aclrtMemcpy(dst=b1+0x400, destMax=1024, src=b2+0x0, count=256, {ends}"),
                format!("+  aclrtMemcpy(dst=b1+0x401, destMax=1024, src=b2+0x0, count=256, {ends}"),
            ],
        ),
        (
            "turn",
            vec![
                format!("-  aclrtMemcpy(dst=b1+0x0, destMax=4096, src=b2+0x0, count=128, {ends}"),
                "+  aclrtMemcpy(dst=b2+0x0, destMax=4096, src=b1+0x0, count=128, kind=DEVICE_TO_HOST) = ACL_SUCCESS"
                    .into(),
            ],
        ),
        (
            "batch",
            vec![
                "-    [2] dst=b5+0x0 destMax=4096 src=b6+0x0 size=192".into(),
                "+    [2] dst=b5+0x0 destMax=4096 src=b6+0x0 size=1024".into(),
            ],
        ),
    ];
    for (change, lines) in cases {
        let output = test(&golden, &[], &[program.to_str().unwrap(), change]);
        assert_eq!(output.status.code(), Some(1), "{change}: {}", output.stderr);
        assert_eq!(changed(&output), lines, "{change}: {}", output.stderr);
        assert!(output.stderr.contains("@@ ") && output.stderr.contains("--update accepts them"), "{}", output.stderr);
        assert!(output.stderr.ends_with("aclshim: test failed: the golden run differs\n"), "{}", output.stderr);
    }
    // What comes later in a buffer of its own has another number then.
    let dropped = test(&golden, &[], &[program.to_str().unwrap(), "drop"]);
    assert!(changed(&dropped)[0].starts_with("-  aclrtMemset(devPtr=b3+0x0, maxCount=4096,"), "{}", dropped.stderr);
    let stream = test(&golden, &[], &[program.to_str().unwrap(), "stream"]);
    let ends: Vec<&str> = changed(&stream).iter().map(|line| line.rsplit("stream=").next().unwrap()).collect();
    assert_eq!(ends, ["default) = ACL_SUCCESS", "s1) = ACL_SUCCESS"], "{}", stream.stderr);
}

#[test]
fn update_accepts_and_without_it_nothing_is_written() {
    let golden = written();
    let program = work();
    let before = fs::read_to_string(&golden).unwrap();
    assert_eq!(test(&golden, &[], &[program.to_str().unwrap(), "add"]).status.code(), Some(1));
    assert_eq!(fs::read_to_string(&golden).unwrap(), before);
    test(&golden, &["--update"], &[program.to_str().unwrap(), "add"]).ok();
    assert_ne!(fs::read_to_string(&golden).unwrap(), before);
    test(&golden, &[], &[program.to_str().unwrap(), "add"]).ok();
    // A file that says the same keeps its comments.
    let commented = format!("# why: see the wiki\n{}", fs::read_to_string(&golden).unwrap());
    fs::write(&golden, &commented).unwrap();
    test(&golden, &[], &[program.to_str().unwrap(), "add"]).ok();
    test(&golden, &["--update"], &[program.to_str().unwrap(), "add"]).ok();
    assert_eq!(fs::read_to_string(&golden).unwrap(), commented);
    let names: Vec<_> = fs::read_dir(golden.parent().unwrap()).unwrap().map(|of| of.unwrap().file_name()).collect();
    assert_eq!(names, ["work.golden"], "nothing else is left there");
}

#[test]
fn a_file_that_is_not_there_fails_and_a_run_that_failed_is_never_written() {
    let golden = scratch("golden").join("none.golden");
    let program = work();
    let missing = test(&golden, &[], &[program.to_str().unwrap()]);
    assert_eq!(missing.status.code(), Some(1), "{}", missing.stderr);
    assert!(missing.stderr.contains("there is no such file yet; --update writes it\n"), "{}", missing.stderr);
    let failing = format!("{} && exit 5", program.display());
    let failed = test(&golden, &["--update"], &["sh", "-c", &failing]);
    assert_eq!(failed.status.code(), Some(5), "{}", failed.stderr);
    assert!(failed.stderr.contains("not written") && !golden.exists(), "{}", failed.stderr);
}

#[test]
fn processes_that_a_program_starts_have_sections_of_their_own() {
    let golden = scratch("golden").join("children.golden");
    let twice = format!("{0}; {0}; {0} add", work().display());
    test(&golden, &["--update"], &["sh", "-c", &twice]).ok();
    let text = fs::read_to_string(&golden).unwrap();
    let sections: Vec<&str> = text.lines().filter(|line| !line.starts_with([' ', '#'])).collect();
    let mut sorted = sections.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["2 child processes:", "child process:"], "{text}");
    // In another order, and one of them the shell itself.
    let other = format!("{0} add; {0}; {0}; true", work().display());
    test(&golden, &[], &["sh", "-c", &other]).ok();
}
