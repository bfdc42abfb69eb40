//! What a host process must not feel: limits, a full disk, an odd umask, a fork. Each case runs in
//! a process of its own (this program again, with one test), because limits and masks are the
//! whole process's and a signal would end it.

use aclshim_collect::log::Log;
use aclshim_collect::log::lines::Note;
use aclshim_collect::storage::budget::Sizes;
use aclshim_collect::storage::failure::Step;
use aclshim_collect::storage::rotation::OutputLocation;
use aclshim_collect::storage::segment::TraceWriter;
use aclshim_trace::segment::format::{BlockHead, kind};
use aclshim_trace::segment::reader::SegmentReader;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// In the child: the directory to write to.
const DIR: &str = "ACLSHIM_COLLECT_TEST_DIR";

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("aclshim-host-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    path
}

/// Runs the test `name` again in a process of its own, in a shell after `first` (with the directory
/// as `$1`), and checks that it ended well and printed nothing.
fn in_a_process(name: &str, first: &str) {
    let dir = scratch(name);
    let shell = format!("{first}; exec \"$2\" --exact \"$3\" --nocapture --quiet");
    let me = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", &shell, "sh"]).arg(&dir).arg(me).arg(name).env(DIR, &dir).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{name}: {}\n{out}\n{err}", output.status);
    assert_eq!(err, "", "{name}: on stderr");
    let harness = |line: &str| {
        line.is_empty() || line == "." || line.starts_with("running ") || line.starts_with("test result: ok")
    };
    let foreign: Vec<&str> = out.lines().filter(|line| !harness(line)).collect();
    assert!(foreign.is_empty() && out.contains("1 passed"), "{name}: on stdout: {out}");
    fs::remove_dir_all(dir).unwrap();
}

/// The directory, in the child only.
fn child() -> Option<PathBuf> {
    std::env::var_os(DIR).map(|dir| PathBuf::from(dir).join("out"))
}

fn place(dir: &Path) -> OutputLocation {
    OutputLocation { dir: dir.to_path_buf(), stem: "a".into(), sizes: Sizes::default() }
}

fn block(first: u64) -> BlockHead {
    BlockHead { kind: kind::SLOTS, first, ..BlockHead::default() }
}

/// All whole blocks of all traces in a directory, by number; each file must be read to its end.
fn blocks(dir: &Path) -> Vec<u64> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "acltrace") {
            let reader = SegmentReader::open(File::open(&path).unwrap()).unwrap();
            all.extend(reader.map(|block| block.unwrap().head.first));
        }
    }
    all.sort();
    all
}

/// Sets how long a file of this process may become.
fn limit(soft: u64) {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a value of ours; the process is only here for one test.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
}

fn note(message: &str) -> Note<'_> {
    Note { topic: "test", message }
}

#[test]
fn a_file_size_limit_is_respected_and_no_signal_comes() {
    let Some(dir) = child() else {
        return in_a_process("a_file_size_limit_is_respected_and_no_signal_comes", ":");
    };
    limit(2000);
    let (mut trace, mut log) = (TraceWriter::new(place(&dir), b""), Log::new(place(&dir), 1));
    for n in 0..10 {
        trace.append(&block(n), &[0; 640]).unwrap();
        log.line(n, &note(&"x".repeat(600))).unwrap();
    }
    assert_eq!(blocks(&dir), (0..10).collect::<Vec<_>>());
    let names = || fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap());
    assert!(names().all(|entry| entry.metadata().unwrap().len() <= 2000));

    // What fits into no file at all is a failure, each time, and leaves no files behind.
    let before = names().count();
    for _ in 0..3 {
        let failure = trace.append(&block(99), &[0; 1920]).unwrap_err();
        assert_eq!((failure.step, failure.errno), (Step::Write, libc::EFBIG));
        assert_eq!(log.line(99, &note(&"x".repeat(3000))).unwrap_err().errno, libc::EFBIG);
    }
    limit(0);
    assert_eq!(log.line(99, &note("")).unwrap_err().errno, libc::EFBIG);
    assert_eq!(names().count(), before);
    limit(libc::RLIM_INFINITY);
    trace.append(&block(10), &[0; 1920]).unwrap();
    assert_eq!(blocks(&dir).len(), 11);
    assert_eq!(trace.take_report().mended.unwrap().count, 3);
}

#[test]
fn a_full_disk_leaves_whole_blocks_and_lines_and_heals() {
    let name = "a_full_disk_leaves_whole_blocks_and_lines_and_heals";
    let mount = "mkdir \"$1\"/disk && exec unshare -rm sh -c 'mount -t tmpfs -o size=256k none \"$1\"/disk && exec \"$2\" \
                 --exact \"$3\" --nocapture --quiet' sh \"$@\"";
    let Some(dir) = child() else {
        let mut probe = Command::new("unshare");
        probe.args(["-rm", "mount", "-t", "tmpfs", "none", "/tmp"]);
        if has_that(quiet(&mut probe), "a user namespace with mounts (unshare -rm)", name) {
            in_a_process(name, mount);
        }
        return;
    };
    let disk = dir.parent().unwrap().join("disk");
    let dir = disk.join("out");
    let (mut trace, mut log) = (TraceWriter::new(place(&dir), b""), Log::new(place(&dir), 1));
    let mut written = 0;
    log.line(0, &note("first")).unwrap();
    let failure = loop {
        match trace.append(&block(written), &[1; 6400]) {
            Ok(()) => written += 1,
            Err(failure) => break failure,
        }
    };
    assert_eq!((failure.step, failure.errno), (Step::Write, libc::ENOSPC));
    assert_eq!(blocks(&dir), (0..written).collect::<Vec<_>>());
    assert!(written > 20);
    // The rest of the disk is filled with what is not ours; then a line ends in the middle.
    let _ = fs::write(disk.join("ballast"), vec![0; 1 << 20]);
    let line = (0..).find(|n| log.line(*n, &note(&"x".repeat(999))).is_err()).unwrap();
    let text = fs::read_to_string(log.path().unwrap()).unwrap();
    assert!(text.ends_with("}\n") && text.lines().count() as u64 == line + 1);

    fs::remove_file(disk.join("ballast")).unwrap();
    fs::remove_file(trace.path().unwrap()).unwrap();
    trace.append(&block(written), &[1; 6400]).unwrap();
    assert_eq!(blocks(&dir), [written]);
    let report = trace.take_report();
    assert_eq!(report.mended.as_ref().unwrap().first, failure);
    log.write_report(5, &report).unwrap();
    let text = fs::read_to_string(log.path().unwrap()).unwrap();
    assert!(text.contains("\"event\":\"write_failed\"") && text.contains("\"event\":\"replaced\""));

    // One page is left: a file can begin, and its first block has to wait. Meanwhile a limit falls.
    let _ = fs::write(disk.join("ballast"), vec![0; 1 << 20]);
    let ballast = File::options().write(true).open(disk.join("ballast")).unwrap();
    ballast.set_len(ballast.metadata().unwrap().len() - 4096).unwrap();
    let mut late = TraceWriter::new(OutputLocation { stem: "late".into(), ..place(&dir) }, b"");
    assert_eq!(late.append(&block(99), &[1; 6400]).unwrap_err().errno, libc::ENOSPC);
    assert_eq!(fs::metadata(late.path().unwrap()).unwrap().len(), 64);
    fs::remove_file(disk.join("ballast")).unwrap();
    drop(ballast);
    limit(6500);
    assert_eq!(late.append(&block(99), &[1; 6400]).unwrap_err().errno, libc::EFBIG);
    limit(libc::RLIM_INFINITY);
    late.append(&block(99), &[1; 6400]).unwrap();
    assert_eq!(blocks(&dir), [written, 99]);
}

#[test]
fn the_umask_does_not_matter() {
    let Some(dir) = child() else {
        return in_a_process("the_umask_does_not_matter", ":");
    };
    for mask in [0, 0o777] {
        // SAFETY: this process is only here for this.
        unsafe { libc::umask(mask) };
        let dir = dir.with_file_name(format!("out-{mask}"));
        TraceWriter::new(place(&dir), b"").append(&block(0), &[]).unwrap();
        Log::new(place(&dir), 1).line(0, &note("")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&dir), 0o700);
        assert_eq!([mode(&dir.join("a.acltrace")), mode(&dir.join("a.jsonl"))], [0o600; 2]);
        let usage = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
        let usage: Vec<_> = usage.filter(|path| path.extension().is_none()).collect();
        assert_eq!((usage.len(), mode(&usage[0]), fs::read_dir(&dir).unwrap().count()), (1, 0o600, 3));
    }
}

#[test]
fn a_forked_child_writes_its_own_log() {
    let Some(dir) = child() else {
        return in_a_process("a_forked_child_writes_its_own_log", ":");
    };
    let mut log = Log::new(place(&dir), 1);
    log.line(1, &note("parent")).unwrap();
    // SAFETY: the child only writes a log, as the drain of a forked host does, and ends.
    match unsafe { libc::fork() } {
        0 => {
            let done = Log::new(OutputLocation { stem: "child".into(), ..place(&dir) }, 2).line(2, &note("child"));
            // SAFETY: ends this process.
            unsafe { libc::_exit(i32::from(done.is_err())) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the child just made, and a value of ours.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
    log.line(3, &note("parent")).unwrap();
    let text = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(text("a.jsonl").lines().filter(|line| line.contains("\"pid\":1,")).count(), 2);
    assert_eq!(text("child.jsonl").lines().filter(|line| line.contains("\"pid\":2,")).count(), 1);
}

#[test]
fn descriptors_of_a_thread_with_a_table_of_its_own_are_not_mixed_up() {
    let Some(dir) = child() else {
        return in_a_process("descriptors_of_a_thread_with_a_table_of_its_own_are_not_mixed_up", ":");
    };
    let victims: Vec<PathBuf> = (0..20).map(|n| dir.with_file_name(format!("victim-{n}"))).collect();
    std::thread::scope(|scope| {
        let (start, wait) = std::sync::mpsc::channel::<()>();
        let thread = scope.spawn(move || {
            // SAFETY: gives this thread a table of its own.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0);
            wait.recv().unwrap();
            let mut log = Log::new(place(&dir), 1);
            (0..10).for_each(|n| log.line(n, &note("mine")).unwrap());
            assert_eq!(fs::read_to_string(dir.join("a.jsonl")).unwrap().lines().count(), 10);
        });
        std::thread::sleep(std::time::Duration::from_millis(50));
        // The same numbers mean other files in the rest of the process.
        let open: Vec<File> = victims.iter().map(|path| File::create(path).unwrap()).collect();
        start.send(()).unwrap();
        thread.join().unwrap();
        drop(open);
    });
    assert!(victims.iter().all(|path| fs::metadata(path).unwrap().len() == 0));
}

#[test]
fn no_descriptor_left_is_a_failure_and_no_more() {
    let Some(dir) = child() else {
        return in_a_process("no_descriptor_left_is_a_failure_and_no_more", ":");
    };
    let limit = libc::rlimit { rlim_cur: 32, rlim_max: 32 };
    // SAFETY: a value of ours; this process is only here for this.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
    let mut open: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let (mut trace, mut log) = (TraceWriter::new(place(&dir), b""), Log::new(place(&dir), 1));
    // From none to plenty: wherever it stops, it is a failure or it is done.
    let mut failures = 0;
    loop {
        let (a, b) = (trace.append(&block(0), &[]), log.line(0, &note("")));
        for failure in [&a, &b].into_iter().filter_map(|done| done.as_ref().err()) {
            assert_eq!(failure.errno, libc::EMFILE, "{failure}");
            failures += 1;
        }
        if a.is_ok() && b.is_ok() {
            break;
        }
        open.pop().unwrap();
    }
    assert!(failures > 3, "{failures}");
    let mut names: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    // The first one is the directory's total, which is for all.
    assert!(names.remove(0).to_string_lossy().starts_with(".aclshim-usage-"));
    assert_eq!(names, ["a.acltrace", "a.jsonl"], "failed tries leave nothing");
}

fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Whether something can be had. Where not, the test is skipped by name; in CI that is a failure.
fn has_that(found: bool, what: &str, test: &str) -> bool {
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{test}: {what} is missing, and in CI nothing is skipped");
        let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/skipped.txt");
        let mut list = File::options().create(true).append(true).open(list).unwrap();
        std::io::Write::write_all(&mut list, format!("{test}: needs {what}\n").as_bytes()).unwrap();
    }
    found
}
