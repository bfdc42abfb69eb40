//! Rings of another user, and rings that are made to harm their reader.

#[path = "support/places.rs"]
mod places;
#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use aclshim_trace::reader;
use aclshim_trace::ring::layout::{Control, Header, stride};
use aclshim_trace::segment::format::MAGIC;
use places::has_another;
use recording::{hammer, watched};
use std::fs::{self, File};
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{Stat, aclshim, has_that, scratch, target};

/// The user that `places::AS_ANOTHER` becomes.
const ANOTHER: u32 = 54321;

/// Whether these tests can be: root alone can be two users.
#[track_caller]
fn has_two_users(test: &str) -> bool {
    // SAFETY: asks for our own number.
    has_that(unsafe { libc::geteuid() } == 0, "root", test) && has_another(test)
}

/// The ring file of a process that has ended, with this number of calls of one thread.
fn leftover(calls: u64, ring_size: &str) -> Vec<u8> {
    let run = watched(hammer()).arg("1").arg(calls.to_string()).env("ACLSHIM_DRAIN", "off");
    let output = run.env("ACLSHIM_RING_SIZE", ring_size).env("ACLSHIM_RING_LIMIT", ring_size).run().ok();
    let [ring] = &reader::files(&output.scratch).unwrap()[..] else { panic!("one ring") };
    fs::read(ring).unwrap()
}

fn put(ring: &mut [u8], at: usize, value: &[u8]) {
    ring[at..at + value.len()].copy_from_slice(value);
}

/// Has a ring name a directory, and ask for a budget of one byte there.
fn naming(ring: &[u8], dir: &Path) -> Vec<u8> {
    let mut copy = ring.to_vec();
    put(&mut copy, offset_of!(Header, dir), &[0; 4096]);
    put(&mut copy, offset_of!(Header, dir), dir.as_os_str().as_bytes());
    put(&mut copy, offset_of!(Header, budget), &1u64.to_le_bytes());
    copy
}

/// Folders for rings and for traces that all users can reach and write to.
struct Place {
    folder: PathBuf,
    rings: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = scratch("hostile");
        let place = Self { rings: folder.join("rings"), folder };
        fs::create_dir(&place.rings).unwrap();
        for open in [&place.folder, &place.rings] {
            fs::set_permissions(open, PermissionsExt::from_mode(0o777)).unwrap();
        }
        place
    }

    fn ring(&self, name: &str, content: &[u8], owner: u32, mode: u32) -> PathBuf {
        let path = self.rings.join(format!("aclshim-{name}.ring"));
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        chown(&path, Some(owner), Some(owner)).unwrap();
        path
    }

    /// A folder with six old traces.
    fn traces(&self, name: &str, owner: u32) -> PathBuf {
        let dir = self.folder.join(name);
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
        for number in 0..6 {
            let path = dir.join(format!("{number}.acltrace"));
            fs::write(&path, [&MAGIC[..], &[0; 1000]].concat()).unwrap();
            chown(&path, Some(owner), Some(owner)).unwrap();
        }
        chown(&dir, Some(owner), Some(owner)).unwrap();
        dir
    }
}

/// The names in a folder and who owns them.
fn listing(dir: &Path) -> Vec<(String, u32)> {
    let about = |entry: fs::DirEntry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().uid());
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| about(entry.unwrap())).collect();
    names.sort();
    names
}

/// What a command answered: its exit status, and what it printed.
#[track_caller]
fn answer(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stderr);
    let status = output.status;
    (status.code().unwrap_or_else(|| panic!("{status}: {said}")), text(&output.stdout), said)
}

// ---- recover ----

#[test]
fn root_recovers_another_users_ring_with_that_users_rights_and_no_others() {
    if !has_two_users("root_recovers_another_users_ring_with_that_users_rights_and_no_others") {
        return;
    }
    let place = Place::new();
    let (roots, theirs) = (place.traces("roots", 0), place.traces("theirs", ANOTHER));
    let before = listing(&roots);
    let ring = leftover(100, "64K");
    let hostile = place.ring("4000001-1", &naming(&ring, &roots), ANOTHER, 0o600);
    let (status, out, said) = answer(aclshim().arg("recover").arg(&hostile));
    assert_eq!(listing(&roots), before, "root's traces stay, and nothing is made as root");
    assert_eq!(status, 1, "{out}{said}");
    assert!(said.contains(hostile.to_str().unwrap()) && said.contains("54321"), "{said}");
    assert!(hostile.exists());
    // Nor in a directory that root names.
    let (status, out, said) = answer(aclshim().arg("recover").arg("--out").arg(&roots).arg(&hostile));
    assert_eq!((listing(&roots), status), (before, 1), "{out}{said}");
    assert!(said.contains("aclshim merge"), "what root can do instead: {said}");
    // An honest ring is written where its owner may write, as the owner.
    let honest = place.ring("4000002-1", &naming(&ring, &theirs), ANOTHER, 0o600);
    let (status, out, said) = answer(aclshim().arg("recover").arg(&honest));
    assert!(status == 0 && out.contains("100 calls written") && said.is_empty(), "{out}{said}");
    assert!(!honest.exists());
    let written = listing(&theirs);
    assert!(!written.is_empty() && written.iter().all(|(_, owner)| *owner == ANOTHER), "{written:?}");
}

#[test]
fn a_user_does_not_recover_what_another_has_left_for_everybody_to_write() {
    if !has_two_users("a_user_does_not_recover_what_another_has_left_for_everybody_to_write") {
        return;
    }
    let place = Place::new();
    let theirs = place.traces("theirs", ANOTHER);
    let before = listing(&theirs);
    // Any user but his: root has given this one away to a third.
    let hostile = place.ring("4000001-1", &naming(&leftover(100, "64K"), &theirs), ANOTHER + 1, 0o666);
    for action in [&["recover"][..], &["clean", "--force"]] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=54321", "--regid=54321", "--clear-groups", "--"]).arg(target("release/aclshim"));
        let (status, out, said) = answer(command.args(action).arg(&hostile));
        assert_eq!(listing(&theirs), before, "{out}{said}");
        assert!(hostile.exists(), "{out}{said}");
        if action == ["recover"] {
            assert!(status == 1 && said.contains("54322"), "{out}{said}");
        }
    }
}

#[test]
fn a_budget_is_for_the_directory_that_the_process_named_and_for_no_other() {
    let place = Place::new();
    // SAFETY: asks for our own number.
    let me = unsafe { libc::geteuid() };
    let dir = place.traces("other", me);
    let before = listing(&dir);
    let ring = place.ring("4000001-1", &naming(&leftover(100, "64K"), &place.folder.join("out")), me, 0o600);
    let (status, out, said) = answer(aclshim().arg("recover").arg("--out").arg(&dir).arg(&ring));
    assert!(status == 0 && out.contains("100 calls written"), "{out}{said}");
    let after = listing(&dir);
    assert!(before.iter().all(|file| after.contains(file)) && after.len() > before.len(), "{after:?}");
}

// ---- Commands that only read ----

#[test]
fn rings_of_others_that_name_my_directory_are_named_and_not_counted() {
    if !has_two_users("rings_of_others_that_name_my_directory_are_named_and_not_counted") {
        return;
    }
    let place = Place::new();
    let mine = place.folder.join("mine");
    watched(hammer()).arg("1").arg("10").env("ACLSHIM_DIR", &mine).run().ok();
    let ring = leftover(777, "1M");
    let foreign = place.ring("4000001-1", &naming(&ring, &mine), ANOTHER, 0o644);
    let ask = |arguments: &[&str]| {
        let (status, out, said) = answer(aclshim().env("ACLSHIM_RING_DIR", &place.rings).args(arguments).arg(&mine));
        let lines = said.lines().filter(|line| line.contains(foreign.to_str().unwrap())).collect::<Vec<_>>();
        let [line] = lines[..] else { panic!("{arguments:?}: one line about it: {said}") };
        assert!(line.contains("54321") && line.contains("ignored"), "{arguments:?}: {said}");
        assert_eq!(status, 0, "{arguments:?}: {out}{said}");
        out
    };
    let stat: serde_json::Value = serde_json::from_str(&ask(&["stat", "--json"])).unwrap();
    assert_eq!((&stat["calls"], &stat["processes"]), (&10.into(), &1.into()), "{stat}");
    assert_eq!(stat["ignored_rings"][0]["path"], foreign.to_str().unwrap(), "{stat}");
    assert_eq!(stat["ignored_rings"][0]["uid"], ANOTHER, "{stat}");
    assert_eq!(ask(&["log"]).lines().count(), 10);
    assert_eq!(ask(&["export", "--format", "csv", "-o", "-"]).lines().count(), 11);
    ask(&["findings", "--json"]);
    ask(&["report", "-o", "-"]);
    let verified: serde_json::Value = serde_json::from_str(&ask(&["verify", "--json"])).unwrap();
    assert_eq!(verified["processes"].as_array().unwrap().len(), 1, "{verified}");
    let all = place.folder.join("all");
    ask(&["merge", "-o", all.to_str().unwrap()]);
    assert_eq!(Stat::of(&all, &scratch("none")).total("calls"), 10);
    // Named by root, it is read.
    assert_eq!(Stat::of(&foreign, &scratch("none")).total("calls"), 777);
    // Root's own count in any directory, and so do those of a directory's owner.
    let theirs = place.folder.join("theirs");
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(ANOTHER), Some(ANOTHER)).unwrap();
    let mut second = naming(&ring, &theirs);
    put(&mut second, offset_of!(Header, pid), &4_000_003u32.to_le_bytes());
    place.ring("4000002-1", &naming(&ring, &theirs), ANOTHER, 0o644);
    place.ring("4000003-1", &second, 0, 0o644);
    assert_eq!(Stat::of(&theirs, &place.rings).total("calls"), 2 * 777);
}

/// Has what runs beside a test end when the test does, also by a failure.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_ring_that_is_cut_short_again_and_again_does_not_end_its_readers() {
    let place = Place::new();
    let dir = place.folder.join("out");
    let ring = naming(&leftover(60_000, "4M"), &dir);
    // SAFETY: asks for our own number.
    let me = unsafe { libc::geteuid() };
    let path = place.ring("4000001-1", &ring, me, 0o600);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let file = File::options().write(true).open(&path).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                file.set_len(80 << 10).unwrap();
                file.write_all_at(&ring, 0).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        let _over = Over(&is_over);
        let all = place.folder.join("all");
        for turn in 0..24 {
            let mut command = aclshim();
            match turn % 4 {
                0 => command.args(["stat", "--json"]).arg(&path),
                1 => command.args(["verify", "--json"]).arg(&path),
                2 => command.args(["merge", "-o"]).arg(&all).arg(&path),
                _ => command.args(["stat", "--json"]).arg(&dir),
            };
            let output = command.env("ACLSHIM_RING_DIR", &place.rings).output().unwrap();
            assert_eq!(output.status.signal(), None, "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
    });
}

/// Reads a ring on a small disk in memory, with little memory; says how large the file is before and after.
const ON_A_SMALL_DISK: &str = "mount -t tmpfs -o size=128m none \"$DISK\" && cp --sparse=always \"$RING\" \"$DISK/a.ring\" \
     && du -k \"$DISK/a.ring\" | cut -f1 && (ulimit -d 262144; \"$@\" \"$DISK/a.ring\" >/dev/null); echo \"exit $?\"; \
     du -k \"$DISK/a.ring\" | cut -f1";

#[test]
fn a_sparse_ring_takes_neither_memory_nor_room_in_the_ring_folder() {
    if !places::has_disks("a_sparse_ring_takes_neither_memory_nor_room_in_the_ring_folder") {
        return;
    }
    let folder = scratch("sparse");
    let (path, most) = (folder.join("sparse.ring"), 1u32 << 20);
    let (rings, disk) = (reader::MOST_RINGS, folder.join("disk"));
    fs::create_dir(&disk).unwrap();
    let mut ring = leftover(10, "4K");
    put(&mut ring, offset_of!(Header, slots), &most.to_le_bytes());
    put(&mut ring, offset_of!(Header, stride), &stride(most).to_le_bytes());
    put(&mut ring, offset_of!(Header, rings), &rings.to_le_bytes());
    let first = u64::from_le_bytes(*ring[offset_of!(Header, first)..].first_chunk().unwrap());
    let file = File::create(&path).unwrap();
    file.set_len(first + u64::from(rings) * stride(most)).unwrap();
    file.write_all_at(&ring[..first as usize], 0).unwrap();
    for number in 0..u64::from(rings) {
        // A ring with an owner, and no slot.
        let at = first + number * stride(most) + offset_of!(Control, owner) as u64;
        file.write_all_at(&1u32.to_le_bytes(), at).unwrap();
    }
    drop(file);
    let all = folder.join("all");
    for command in [&["stat", "--json"][..], &["verify"], &["merge", "-o", all.to_str().unwrap()]] {
        let mut unshare = Command::new("unshare");
        unshare.args(["-rm", "sh", "-c", ON_A_SMALL_DISK, "sh"]).arg(target("release/aclshim")).args(command);
        let (_, out, said) = answer(unshare.env("DISK", &disk).env("RING", &path));
        let lines: Vec<&str> = out.lines().collect();
        let [before, status, after] = lines[..] else { panic!("{command:?}: {out}{said}") };
        assert_eq!((status, after), ("exit 0", before), "{command:?}: {said}");
    }
}

// ---- Names ----

/// A name that sets the title of the terminal, changes colours, turns the line around, and begins as a formula does.
const NAME: &str = "=1+1\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}x";

/// Whether a terminal would do more with it than show it.
fn has_unseen(text: &str) -> bool {
    text.contains(|letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}')
}

#[test]
fn names_of_programs_and_files_do_not_act_on_the_terminal() {
    let folder = scratch("names");
    let program = folder.join(NAME);
    support::runnable(&program, &fs::read(support::host("hosts/keep_calls.c")).unwrap());
    let run = |how: &[&str], drain: &str| {
        let run = how.iter().fold(support::Run::new(&program), support::Run::arg);
        run.sim().shim().env("ACLSHIM_DRAIN", drain).env("ACLSHIM_DIR", folder.join("out")).run()
    };
    run(&["1", "5"], "inside").ok();
    // And a ring that holds something, and one that cannot be read, under names of that kind.
    let killed = run(&["1", "5", "kill"], "off");
    let [ring] = &reader::files(&killed.scratch).unwrap()[..] else { panic!("one ring") };
    let rings = scratch("names");
    let copied = rings.join(format!("aclshim-4000001-{NAME}.ring"));
    fs::copy(ring, &copied).unwrap();
    let mut strange = fs::read(ring).unwrap();
    put(&mut strange, offset_of!(Header, version), &99u32.to_le_bytes());
    fs::write(rings.join(format!("aclshim-4000002-{NAME}.ring")), strange).unwrap();
    let out = folder.join("out");
    let all = folder.join("all");
    let ask = |arguments: &[&str], path: &Path| {
        let output = aclshim().env("ACLSHIM_RING_DIR", &rings).args(arguments).arg(path).output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    for (arguments, path) in [
        (&["stat"][..], &out),
        (&["findings"], &out),
        (&["log"], &out),
        (&["verify"], &out),
        (&["verify"], &rings),
        (&["verify"], &copied),
        (&["stat"], &folder.join(NAME)),
        (&["report", "-o", all.to_str().unwrap()], &out),
        (&["merge", "-o", folder.join("merged").to_str().unwrap()], &out),
        (&["clean", "--dry-run"], &rings),
        (&["doctor", "--"], &program),
        (&["recover"], &rings),
    ] {
        let [shown, said] = ask(arguments, path);
        assert!(!has_unseen(&shown) && !has_unseen(&said), "{arguments:?}: {shown:?} {said:?}");
    }
    let module = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["module"].clone();
    let [lines, _] = ask(&["log", "--json"], &out);
    assert!(lines.lines().any(|line| module(line) == NAME), "programs read names as they are: {lines}");
    let [cells, _] = ask(&["export", "--format", "csv", "-o", "-"], &out);
    let mut cells = cells.split([',', '\n']);
    assert!(cells.clone().any(|cell| cell.trim_start_matches('"').starts_with("'=")), "a formula is made a text");
    assert!(!cells.any(|cell| cell.trim_start_matches('"').starts_with(['=', '@', '+', '\t'])));
}
