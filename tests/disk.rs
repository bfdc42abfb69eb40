//! Where nothing can be written, or no longer, or only sometimes: the host goes on as without the shim, and what was lost
//! is counted and said.

mod support;

use aclshim_trace::reader::{self, RingFile};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use support::{Build, Output, Run, Stat, aclshim, has_that, scratch};

/// A host that says in the file `truth` how many calls it has made, linked to the vendor that only answers.
fn patterned(source: &str) -> PathBuf {
    Build::new(source).arg("-no-pie").link("ascendcl").program()
}

/// The folder of that vendor.
fn vendor() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let library = BUILT.get_or_init(|| Build::new("hosts/record_vendor.c").library("ascendcl"));
    library.parent().unwrap().to_owned()
}

fn hammer() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| patterned("hosts/record_hammer.c")).clone()
}

/// Runs a program without and with the shim. What it shows must be the same, and nothing of it an error.
#[track_caller]
fn same(program: impl AsRef<Path>, prepare: impl Fn(Run) -> Run) -> Output {
    let without = prepare(Run::new(program.as_ref()).library_path(vendor())).run();
    let with = prepare(Run::new(program.as_ref()).library_path(vendor()).shim()).run();
    assert_eq!(with.seen(), without.seen(), "with the shim, and without it");
    assert_ne!(with.status.signal(), Some(libc::SIGALRM), "hung: {with:?}");
    assert_eq!(with.stderr, "");
    with.ok()
}

/// How many calls the host says it has made.
fn made(output: &Output) -> u64 {
    let truth = fs::read(output.scratch.join("truth")).expect("the host's own count");
    let word = |at: usize| u64::from_le_bytes(truth[8 * at..8 * at + 8].try_into().unwrap());
    let calls = (1..truth.len() / 64).map(|lane| (word(8 * lane), word(8 * lane + 1)));
    calls.map(|(begun, ended)| if begun == ended { begun } else { panic!("{begun} begun, {ended} ended") }).sum()
}

/// What `aclshim stat` says of a directory and the rings in a folder.
#[track_caller]
fn stat(dir: &Path, rings: &Path) -> Stat {
    let output = aclshim().env("ACLSHIM_RING_DIR", rings).args(["stat", "--json"]).arg(dir).output().expect("stat");
    assert!(output.status.success(), "aclshim stat: {}", String::from_utf8_lossy(&output.stderr));
    Stat(serde_json::from_slice(&output.stdout).expect("one JSON object"))
}

/// The balance: each call that was made is recorded, or counted as not recorded, or went with a file that was removed.
#[track_caller]
fn balanced(output: &Output, stat: &Stat) -> [u64; 3] {
    let sums = ["calls", "not_recorded", "evicted"].map(|key| stat.total(key));
    assert_eq!(sums.iter().sum::<u64>(), made(output), "calls, not recorded, evicted: {sums:?}");
    assert_eq!((stat.total("nested"), stat.total("in_flight")), (0, 0));
    sums
}

fn events(output: &Output, event: &str) -> Vec<serde_json::Value> {
    output.log().into_iter().filter(|line| line["event"] == event).collect()
}

/// Nothing could be recorded: the log says why, and how many calls that were.
#[track_caller]
fn not_recording(output: &Output) {
    let [why] = &events(output, "not-recording")[..] else { panic!("one line: {:?}", output.log()) };
    assert!(!why["message"].as_str().unwrap().is_empty());
    let [lost] = &events(output, "not-recorded")[..] else { panic!("one line: {:?}", output.log()) };
    assert_eq!(lost["subject"], made(output).to_string());
    assert_eq!(output.stat().total("processes"), 0);
}

/// The traces in a directory, by name.
fn traces(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).into_iter().flatten().map(|file| file.unwrap().path());
    let mut traces: Vec<_> = files.filter(|path| path.extension() == Some("acltrace".as_ref())).collect();
    traces.sort();
    traces
}

// ---- As somebody else, and on a disk of one's own ----

/// Starts a program, where we are root as another user, to whom files can be refused. The working directory is his.
const AS_ANOTHER: &str = "if [ $(id -u) = 0 ]; then chmod 777 . && \
                          exec setpriv --reuid=54321 --regid=54321 --clear-groups -- \"$@\"; fi; exec \"$@\"";

/// Whether that can be done with what is built here.
#[track_caller]
fn has_another(test: &str) -> bool {
    let mut probe = Command::new("sh");
    probe.args(["-c", AS_ANOTHER, "sh", "test", "-x"]).arg(hammer()).current_dir(scratch("another"));
    has_that(
        probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()),
        "setpriv, and a path for others",
        test,
    )
}

fn as_another(run: Run, program: &Path) -> Run {
    run.arg("-c").arg(AS_ANOTHER).arg("sh").arg(program)
}

/// Starts a program with a disk of the size `SIZE` at `DISK`; what is in its folder `out` at the end is saved in `SAVED`.
const ON_A_DISK: &str = "mount -t tmpfs -o size=$SIZE none \"$DISK\" && \"$@\"; code=$?; \
                         [ ! -d \"$DISK/out\" ] || cp -r \"$DISK/out\" \"$SAVED\"; exit $code";

#[track_caller]
fn has_disks(test: &str) -> bool {
    let mut probe = Command::new("unshare");
    probe.args(["-rm", "sh", "-c", ON_A_DISK, "sh", "true"]).env("SIZE", "16k").env("DISK", scratch("disk"));
    has_that(probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()), "a mount namespace", test)
}

fn on_a_disk(run: Run, size: &str, disk: &Path, program: &Path) -> Run {
    let saved = disk.with_extension("saved");
    let run = run.arg("-rm").arg("sh").arg("-c").arg(ON_A_DISK).arg("sh").arg(program);
    run.env("SIZE", size).env("DISK", disk).env("SAVED", saved)
}

/// Puts what was on the disk where the disk was.
fn bring_back(disk: &Path) {
    let saved = disk.with_extension("saved");
    if saved.exists() {
        fs::rename(saved, disk.join("out")).unwrap();
    }
}

/// A host that does what it is told to.
struct Ordered {
    child: std::process::Child,
    scratch: PathBuf,
    orders: fs::File,
    given: u64,
}

impl Ordered {
    fn new(prepare: impl FnOnce(Run, &Path) -> Run, program: impl AsRef<Path>) -> Self {
        let pipe = scratch("orders").join("pipe");
        let path = std::ffi::CString::new(pipe.as_os_str().as_bytes()).unwrap();
        // SAFETY: a C string.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        // For both, so that opening does not wait for a host that may never come.
        let orders = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let run = prepare(Run::new(program.as_ref()).library_path(vendor()).shim(), &pipe);
        let (child, scratch) = run.spawn();
        Self { child, scratch, orders, given: 0 }
    }

    /// Gives an order and waits until it is done.
    #[track_caller]
    fn order(&mut self, line: &str) {
        writeln!(self.orders, "{line}").unwrap();
        self.given += 1;
        let steps = |truth: Vec<u8>| truth.get(16..24).map_or(0, |word| u64::from_le_bytes(word.try_into().unwrap()));
        while fs::read(self.scratch.join("truth")).map_or(0, steps) < self.given {
            assert!(self.child.try_wait().unwrap().is_none(), "the host ended at: {line}");
            std::thread::yield_now();
        }
    }

    /// Waits until something can be seen in the ring.
    #[track_caller]
    fn until(&mut self, what: &str, is_so: impl Fn(&mut RingFile) -> bool) {
        loop {
            let files = reader::files(&self.scratch).unwrap();
            if files.iter().filter_map(|file| RingFile::open(file).ok()).any(|mut ring| is_so(&mut ring)) {
                return;
            }
            // A host that waits too long is ended by its alarm.
            assert!(self.child.try_wait().unwrap().is_none(), "the host ended before {what}");
            std::thread::yield_now();
        }
    }

    /// Waits until all is written.
    #[track_caller]
    fn until_drained(&mut self) {
        self.until("all was written", |file| {
            let rings = file.look_for_rings();
            rings > 0
                && (0..rings).all(|number| {
                    let ring = file.ring(number).unwrap();
                    let drained = ring.control.drained.load(Ordering::Acquire);
                    drained > 0 && ring.end(drained) == drained
                })
        });
    }

    #[track_caller]
    fn end(mut self) -> Output {
        writeln!(self.orders, "end").unwrap();
        let output = self.child.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let output = Output {
            status: output.status,
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            scratch: self.scratch,
        };
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("done\n", ""));
        output.ok()
    }
}

fn steps() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| patterned("hosts/record_steps.c")).clone()
}

// ---- The folder of the ring ----

#[test]
fn without_a_folder_for_the_ring_the_log_says_why_and_how_many_calls_were_not_recorded() {
    let folder = scratch("ring");
    fs::write(folder.join("file"), "mine").unwrap();
    symlink(folder.join("nowhere"), folder.join("link")).unwrap();
    for name in ["missing", "file", "link", "missing/below"] {
        let run = |run: Run| run.arg("2").arg("250").env("ACLSHIM_RING_DIR", folder.join(name));
        let output = same(hammer(), run);
        assert_eq!(made(&output), 501);
        not_recording(&output);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "{name}: nothing was made");
    }
    assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "mine");
}

#[test]
fn in_a_ring_folder_that_is_not_ours_to_write_to_nothing_is_recorded_and_that_is_said() {
    if !has_another("in_a_ring_folder_that_is_not_ours_to_write_to_nothing_is_recorded_and_that_is_said") {
        return;
    }
    let folder = scratch("ring");
    fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
    let run = |run: Run| as_another(run, &hammer()).arg("2").arg("250").env("ACLSHIM_RING_DIR", &folder);
    let output = same("sh", run);
    not_recording(&output);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn a_ring_folder_may_be_reached_by_a_link() {
    let folder = scratch("ring");
    fs::create_dir(folder.join("real")).unwrap();
    symlink(folder.join("real"), folder.join("link")).unwrap();
    let output = same(hammer(), |run| run.arg("2").arg("250").env("ACLSHIM_RING_DIR", folder.join("link")));
    let sums = balanced(&output, &stat(&output.scratch.join("out"), &folder.join("link")));
    assert_eq!(sums, [501, 0, 0]);
    assert_eq!(reader::files(&folder.join("real")).unwrap().len(), 1);
}

#[test]
fn on_a_full_ring_disk_nothing_is_recorded_and_that_is_said() {
    if !has_disks("on_a_full_ring_disk_nothing_is_recorded_and_that_is_said") {
        return;
    }
    let disk = scratch("disk");
    let run = |run: Run| on_a_disk(run, "16k", &disk, &hammer()).arg("2").arg("250").env("ACLSHIM_RING_DIR", &disk);
    not_recording(&same("unshare", run));
}

#[test]
fn threads_that_find_no_room_for_a_ring_are_forwarded_and_counted() {
    if !has_disks("threads_that_find_no_room_for_a_ring_are_forwarded_and_counted") {
        return;
    }
    let disk = scratch("disk");
    let run = |run: Run| on_a_disk(run, "400k", &disk, &hammer()).arg("16").arg("200").env("ACLSHIM_RING_DIR", &disk);
    let output = same("unshare", run);
    let [calls, missed, _] = balanced(&output, &output.stat());
    assert!(calls >= 200 && missed >= 200, "{calls} calls, {missed} not recorded");
    let lost = events(&output, "lost").into_iter().filter(|line| line["reason"] == "there was no ring");
    let said: u64 = lost.map(|line| line["calls"].as_u64().unwrap()).sum();
    assert!((1..=missed).contains(&said), "{said} of {missed}: {:?}", output.log());
    assert_eq!(events(&output, "stopped")[0]["not_recorded"], missed);
}

// ---- The folder of the trace ----

#[test]
fn without_a_folder_for_the_trace_records_stay_in_the_ring_and_the_rest_is_counted() {
    let folder = scratch("dir");
    fs::write(folder.join("file"), "mine").unwrap();
    for dir in [folder.join("missing/out"), folder.join("file"), PathBuf::from("/proc/nothing")] {
        for (calls, fits) in [("300", true), ("5000", false)] {
            let output = same(hammer(), |run| run.arg("1").arg(calls).env("ACLSHIM_DIR", &dir));
            let [ring] = &reader::files(&output.scratch).unwrap()[..] else { panic!("one ring") };
            let [recorded, missed, _] = balanced(&output, &stat(ring, &output.scratch));
            assert_eq!(missed == 0, fits, "{}: {recorded} recorded, {missed} not", dir.display());
            assert!(!folder.join("missing").exists());
        }
    }
    assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "mine");
}

#[test]
fn in_a_folder_that_is_not_ours_to_write_to_no_trace_is_made_and_records_stay_in_the_ring() {
    if !has_another("in_a_folder_that_is_not_ours_to_write_to_no_trace_is_made_and_records_stay_in_the_ring") {
        return;
    }
    let dir = scratch("dir");
    fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o555)).unwrap();
    let output = same("sh", |run| as_another(run, &hammer()).arg("1").arg("5000").env("ACLSHIM_DIR", &dir));
    let [recorded, missed, _] = balanced(&output, &stat(&dir, &output.scratch));
    assert!(recorded > 0 && missed > 0, "{recorded} recorded, {missed} not");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn the_folder_of_the_trace_may_be_a_link() {
    let folder = scratch("dir");
    fs::create_dir(folder.join("real")).unwrap();
    symlink(folder.join("real"), folder.join("link")).unwrap();
    let output = same(hammer(), |run| run.arg("2").arg("250").env("ACLSHIM_DIR", folder.join("link")));
    for dir in ["real", "link"] {
        assert_eq!(balanced(&output, &stat(&folder.join(dir), &output.scratch)), [501, 0, 0], "{dir}");
    }
    assert_eq!(traces(&folder.join("real")).len(), 1);
}

#[test]
fn a_link_in_the_place_of_a_file_is_never_followed() {
    // The shell's process becomes the host, so the names are known before it starts.
    let script = "mkdir \"$ACLSHIM_DIR\"; echo mine >victim; for end in acltrace jsonl; do \
                  ln -s ../victim \"$ACLSHIM_DIR/run-$$.$end\"; ln -s ../none \"$ACLSHIM_DIR/run-$$+2.$end\"; done; \
                  exec \"$@\"";
    let run =
        |run: Run| run.arg("-c").arg(script).arg("sh").arg(hammer()).arg("2").arg("250").env("ACLSHIM_FILE", "run");
    let output = same("sh", run);
    assert_eq!(balanced(&output, &output.stat()), [501, 0, 0]);
    assert_eq!(fs::read_to_string(output.scratch.join("victim")).unwrap(), "mine\n");
    assert!(!output.scratch.join("none").exists(), "made through a link");
    let made = traces(&output.scratch.join("out"));
    let made: Vec<_> = made.iter().filter(|path| !path.is_symlink()).collect();
    assert!(made.len() == 1 && made[0].to_str().unwrap().ends_with("+3.acltrace"), "{made:?}");
}

#[test]
fn files_are_named_as_asked_for_and_are_for_their_owner_only() {
    let run = |run: Run| run.arg("1").arg("100").env("ACLSHIM_FILE", "%e-%p-%h-%r-%t").env("RANK", "3");
    let with = same(hammer(), run);
    assert_eq!(balanced(&with, &with.stat()), [100, 0, 0]);
    let [trace] = &traces(&with.scratch.join("out"))[..] else { panic!("one trace") };
    let name = trace.file_stem().unwrap().to_str().unwrap();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let executable = hammer().file_name().unwrap().to_str().unwrap().to_owned();
    let rest = name.strip_prefix(&format!("{executable}-")).unwrap_or_else(|| panic!("{name}"));
    let (pid, rest) = rest.split_once('-').unwrap();
    assert!(pid.parse::<u32>().is_ok(), "{name}");
    let time = rest.strip_prefix(&format!("{}-3-", host.trim())).unwrap_or_else(|| panic!("{name}"));
    assert!(time.len() == 25 && time.as_bytes()[8] == b'T', "{name}");
    for file in [trace.clone(), trace.with_extension("jsonl"), reader::files(&with.scratch).unwrap().remove(0)] {
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600, "{}", file.display());
    }
    assert_eq!(fs::metadata(with.scratch.join("out")).unwrap().mode() & 0o7777, 0o700);
}

#[test]
fn a_umask_that_takes_the_owners_own_rights_away_takes_no_record() {
    if !has_another("a_umask_that_takes_the_owners_own_rights_away_takes_no_record") {
        return;
    }
    let script = format!("umask 277; {AS_ANOTHER}");
    let output = same("sh", |run| run.arg("-c").arg(&script).arg("sh").arg(hammer()).arg("1").arg("100"));
    assert_eq!(balanced(&output, &output.stat()), [100, 0, 0]);
}

// ---- A disk that is full for a while ----

#[test]
fn while_the_disk_is_full_records_wait_and_then_all_of_them_are_written() {
    if !has_disks("while_the_disk_is_full_records_wait_and_then_all_of_them_are_written") {
        return;
    }
    let disk = scratch("disk");
    let run = |run, pipe: &Path| on_a_disk(run, "1m", &disk, &steps()).arg(pipe).env("ACLSHIM_DIR", disk.join("out"));
    let mut host = Ordered::new(run, "unshare");
    let ballast = disk.join("ballast");
    host.order("calls 100");
    host.until_drained();
    host.order(&format!("fill {}", ballast.display()));
    host.order("calls 300");
    host.until("writing failed", |file| file.header().write_failures.load(Ordering::Relaxed) > 0);
    host.order(&format!("remove {}", ballast.display()));
    host.until_drained();
    let mut output = host.end();
    bring_back(&disk);
    let dir = disk.join("out");
    assert_eq!(balanced(&output, &stat(&dir, &output.scratch)), [400, 0, 0]);
    let slots = &stat(&dir, &output.scratch).0["slots"];
    assert_eq!(slots["ring"], 0, "all is in the trace");
    output.scratch = disk;
    let failed = events(&output, "write_failed");
    assert!(failed.iter().any(|line| line["errno"] == libc::ENOSPC), "{:?}", output.log());
}

#[test]
fn what_does_not_fit_into_the_ring_while_the_disk_is_full_is_counted_and_said() {
    if !has_disks("what_does_not_fit_into_the_ring_while_the_disk_is_full_is_counted_and_said") {
        return;
    }
    let disk = scratch("disk");
    let run = |run, pipe: &Path| on_a_disk(run, "1m", &disk, &steps()).arg(pipe).env("ACLSHIM_DIR", disk.join("out"));
    let mut host = Ordered::new(run, "unshare");
    let ballast = disk.join("ballast");
    host.order("calls 100");
    host.until_drained();
    host.order(&format!("fill {}", ballast.display()));
    host.order("calls 3000");
    host.until("writing failed", |file| file.header().write_failures.load(Ordering::Relaxed) > 0);
    host.order(&format!("remove {}", ballast.display()));
    host.until_drained();
    host.order("calls 10");
    let mut output = host.end();
    bring_back(&disk);
    let [_, missed, _] = balanced(&output, &stat(&disk.join("out"), &output.scratch));
    assert!(missed > 1000, "{missed}");
    output.scratch = disk;
    let lost: u64 = events(&output, "lost").iter().map(|line| line["calls"].as_u64().unwrap()).sum();
    assert_eq!(lost, missed, "{:?}", output.log());
}

#[test]
fn a_host_that_ends_while_the_disk_is_full_ends_as_it_would_and_its_records_stay_in_the_ring() {
    if !has_disks("a_host_that_ends_while_the_disk_is_full_ends_as_it_would_and_its_records_stay_in_the_ring") {
        return;
    }
    let disk = scratch("disk");
    let run = |run, pipe: &Path| on_a_disk(run, "1m", &disk, &steps()).arg(pipe).env("ACLSHIM_DIR", disk.join("out"));
    let mut host = Ordered::new(run, "unshare");
    host.order("calls 100");
    host.until_drained();
    host.order(&format!("fill {}", disk.join("ballast").display()));
    host.order("calls 300");
    let output = host.end();
    bring_back(&disk);
    assert_eq!(balanced(&output, &stat(&disk.join("out"), &output.scratch)), [400, 0, 0]);
}

// ---- Others at our files ----

#[test]
fn a_trace_that_somebody_removes_is_followed_by_another_and_its_calls_are_counted() {
    let mut host = Ordered::new(|run, pipe| run.arg(pipe), steps());
    host.order("calls 200");
    host.until_drained();
    let out = host.scratch.join("out");
    let [trace] = &traces(&out)[..] else { panic!("one trace") };
    host.order(&format!("remove {}", trace.display()));
    host.order("calls 150");
    let output = host.end();
    assert_eq!(balanced(&output, &output.stat()), [150, 0, 200]);
    assert_eq!(events(&output, "replaced")[0]["reason"], "removed by somebody");
}

#[test]
fn a_trace_that_somebody_changes_is_followed_by_another_and_later_calls_are_whole() {
    for size in [0, 20_000, 1 << 20] {
        let mut host = Ordered::new(|run, pipe| run.arg(pipe), steps());
        host.order("calls 200");
        host.until_drained();
        let out = host.scratch.join("out");
        let [trace] = &traces(&out)[..] else { panic!("one trace") };
        host.order(&format!("cut {} {size}", trace.display()));
        host.order("calls 150");
        let output = host.end();
        let stat = output.stat();
        let calls = stat.total("calls");
        // What stands before the cut is good, and so is all that came later.
        assert!((150..=350).contains(&calls) && (size < 1 << 20 || calls == 350), "{size}: {calls}");
        assert_eq!((stat.total("not_recorded"), stat.total("in_flight")), (0, 0), "{size}");
        assert_eq!(events(&output, "replaced")[0]["reason"], "changed by somebody");
        assert_eq!(fs::metadata(trace).unwrap().len(), size, "{size}: nothing was written behind the cut");
    }
}

#[test]
fn what_dead_children_have_left_is_written_by_their_parent_and_their_rings_are_removed() {
    let mut host = Ordered::new(|run, pipe| run.arg(pipe), steps());
    host.order("calls 10");
    host.order("forks 20");
    let scratch = host.scratch.clone();
    host.until("the children's rings were gone", |_| reader::files(&scratch).unwrap().len() == 1);
    let output = host.end();
    let stat = output.stat();
    assert_eq!(balanced(&output, &stat), [410, 0, 0]);
    assert_eq!((stat.total("processes"), &stat.0["slots"]["ring"]), (21, &0.into()));
    // A child may have had the time to write all of it itself.
    assert!(events(&output, "adopted").iter().all(|line| line["gone"] == true && line["in_flight"] == 0));
}

#[test]
fn a_host_that_closes_all_descriptors_and_has_its_own_there_finds_its_files_untouched() {
    let program = patterned("hosts/record_descriptors.c");
    // In a sandbox the drain has to share the host's table, and then it must not keep anything open.
    for how in [None, Some("refused")] {
        let output = same(&program, |run| how.into_iter().fold(run, |run, how| run.arg(how)));
        assert_eq!(output.stdout, "all mine\n");
        balanced(&output, &output.stat());
        for file in (0..38).map(|number| format!("mine-{number}")) {
            assert_eq!(fs::read_to_string(output.scratch.join(&file)).unwrap(), file, "{how:?}");
        }
    }
}

// ---- Sizes ----

#[test]
fn beyond_the_budget_the_oldest_traces_are_removed_and_their_calls_are_counted() {
    let run = |run: Run| {
        let run = run.arg("2").arg("60000").env("ACLSHIM_RECORD", "lossless");
        run.env("ACLSHIM_SEGMENT", "1M").env("ACLSHIM_BUDGET", "4M")
    };
    let output = same(hammer(), run);
    let [calls, missed, evicted] = balanced(&output, &output.stat());
    assert!(calls > 0 && evicted > 0 && missed == 0, "{calls} calls, {missed} not recorded, {evicted} evicted");
    assert!(!events(&output, "removed").is_empty());
    let files = fs::read_dir(output.scratch.join("out")).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
    let sizes: Vec<u64> = files.collect();
    assert!(sizes.iter().all(|size| *size <= 1 << 20) && sizes.iter().sum::<u64>() <= 4 << 20, "{sizes:?}");
    assert!(sizes.len() >= 3, "{sizes:?}");
}

#[test]
fn a_trace_that_becomes_too_long_is_followed_by_the_next_and_nothing_is_lost() {
    let run = |run: Run| run.arg("2").arg("30000").env("ACLSHIM_RECORD", "lossless").env("ACLSHIM_SEGMENT", "1M");
    let output = same(hammer(), run);
    assert_eq!(balanced(&output, &output.stat()), [60_001, 0, 0]);
    let sizes: Vec<u64> =
        traces(&output.scratch.join("out")).iter().map(|path| fs::metadata(path).unwrap().len()).collect();
    assert!(sizes.len() >= 7 && sizes.iter().all(|size| *size <= 1 << 20), "{sizes:?}");
}

// ---- Limits of the system ----

#[test]
fn under_a_limit_of_file_size_the_host_gets_no_signal_and_what_was_recorded_is_in_balance() {
    let program = patterned("hosts/record_limits.c");
    for (size, has_ring) in [("0", false), ("4096", false), ("100000", true), ("200000", true), ("1000000", true)] {
        // Without a loss, so that there is more to write than one file may hold.
        let output = same(&program, |run| run.arg("fsize").arg(size).arg("5000").env("ACLSHIM_RECORD", "lossless"));
        assert_eq!(reader::files(&output.scratch).unwrap().len(), usize::from(has_ring), "{size}");
        if has_ring {
            let [calls, ..] = balanced(&output, &output.stat());
            assert_eq!(
                calls > 0,
                size != "100000",
                "{size}: the first of them has room for the count, and for no ring"
            );
            let limit = size.parse::<u64>().unwrap();
            let traces = traces(&output.scratch.join("out"));
            assert!(traces.iter().all(|path| fs::metadata(path).unwrap().len() <= limit), "{size}");
        }
    }
}

#[test]
fn under_a_limit_of_descriptors_the_host_runs_and_what_was_recorded_is_in_balance() {
    let program = patterned("hosts/record_limits.c");
    for (most, has_ring) in [("0", false), ("3", false), ("4", true), ("5", true), ("6", true), ("7", true)] {
        let output = same(&program, |run| run.arg("nofile").arg(most).arg("5000"));
        assert_eq!(reader::files(&output.scratch).unwrap().len(), usize::from(has_ring), "{most}");
        if has_ring {
            let [calls, ..] = balanced(&output, &output.stat());
            assert!(calls > 0, "{most}");
        }
    }
}

#[test]
fn where_no_thread_can_be_started_records_stay_in_the_ring_and_that_is_said() {
    let name = "where_no_thread_can_be_started_records_stay_in_the_ring_and_that_is_said";
    // SAFETY: asks for a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !has_that(is_root, "root, who can be another user", name) || !has_another(name) {
        return;
    }
    let program = patterned("hosts/record_limits.c");
    let output = same("sh", |run| as_another(run, &program).arg("nproc").arg("1").arg("5000"));
    let [calls, missed, _] = balanced(&output, &output.stat());
    assert!(calls > 0 && missed > 0, "{calls} calls, {missed} not recorded");
    assert_eq!(events(&output, "not-draining").len(), 1, "{:?}", output.log());
    assert_eq!(traces(&output.scratch.join("out")).len(), 0);
}

#[test]
fn whatever_system_call_is_refused_the_host_runs_and_what_was_recorded_is_in_balance() {
    let program = patterned("hosts/record_refused.c");
    for call in ["none", "openat", "clone", "close_range", "unshare", "futex", "flock", "mmap"] {
        let output = same(&program, |run| run.arg(call).arg("3000"));
        assert_eq!(output.stdout, "called\n", "{call}");
        let has_ring = !["openat", "mmap"].contains(&call);
        assert_eq!(reader::files(&output.scratch).unwrap().len(), usize::from(has_ring), "{call}");
        if has_ring {
            let [calls, ..] = balanced(&output, &output.stat());
            assert!(calls > 0, "{call}");
        }
        // Without descriptors of its own the drain would meet the host's; without futex libc ends what has threads.
        let drains = !["openat", "mmap", "clone", "unshare", "futex"].contains(&call);
        assert_eq!(!traces(&output.scratch.join("out")).is_empty(), drains, "{call}: {:?}", output.log());
        if ["clone", "unshare", "futex"].contains(&call) {
            assert_eq!(events(&output, "not-draining").len(), 1, "{:?}", output.log());
        }
    }
}
