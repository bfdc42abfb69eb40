//! A program that has more privileges than its caller (AT_SECURE) and meets the shim by a drop-in: calls are forwarded, and
//! nothing that the caller chooses is used, neither variables nor working directory.

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{Build, Run, aclshim, has, has_that, scratch, target};

/// The caller, who owns the working directory.
const CALLER: u32 = 54321;

/// A drop-in folder in front of a library that lacks some of the functions.
fn dropin() -> PathBuf {
    let folder = scratch("dropin");
    let real = target("sim/no-batch").join("libascendcl.so");
    let made = aclshim().arg("dropin").arg(&folder).arg("--real").arg(real).output().expect("aclshim dropin");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // The newer name is left for the caller to fill.
    fs::remove_file(folder.join("libacl_rt.so")).unwrap();
    folder
}

/// A copy of the host whose libraries are searched for in the drop-in folder, and then in the working directory.
fn program() -> PathBuf {
    let path = format!("-Wl,--disable-new-dtags,-rpath,{}:.,-z,lazy", dropin().display());
    let built = Build::new("hosts/secure_calls.c").arg(path).link("ascendcl").program();
    let copy = scratch("secure").join("program");
    assert!(Command::new("cp").arg(built).arg(&copy).status().unwrap().success());
    copy
}

fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<_> = files.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// What a process has of ours: threads by their names, mapped and open files by theirs.
fn ours(pid: u32) -> Vec<String> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let comms = fs::read_dir(proc.join("task")).unwrap().map(|task| task.unwrap().path().join("comm"));
    let threads = comms.map(|comm| fs::read_to_string(comm).unwrap()).filter(|name| name.starts_with("aclshim"));
    let maps = fs::read_to_string(proc.join("maps")).unwrap();
    let files = fs::read_dir(proc.join("fd")).unwrap().filter_map(|fd| fs::read_link(fd.unwrap().path()).ok());
    let files = files.map(|file| file.display().to_string()).chain(maps.lines().map(str::to_owned));
    let marks = [".ring", ".acltrace", ".jsonl"];
    threads.chain(files.filter(|file| marks.iter().any(|mark| file.contains(mark)))).collect()
}

/// Runs a program as the caller, with everything set that steers the shim. `false` if the system does not take it for one
/// with more privileges.
#[track_caller]
fn forwards_only(program: &Path) -> bool {
    let folder = scratch("caller");
    let (hostile, elsewhere) = (folder.join("hostile"), folder.join("elsewhere"));
    let cwd = folder.join("cwd");
    for folder in [&hostile, &elsewhere, &cwd, &hostile.join("lib64")] {
        fs::create_dir_all(folder).unwrap();
        chown(folder, Some(CALLER), Some(CALLER)).unwrap();
    }
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    // Where the caller himself may not write.
    chown(&elsewhere, Some(0), Some(0)).unwrap();
    fs::set_permissions(&elsewhere, PermissionsExt::from_mode(0o700)).unwrap();
    symlink(&elsewhere, cwd.join("aclshim-out")).unwrap();
    let evil = Build::new("hosts/secure_evil.c").library("evil");
    for file in [cwd.join("libacl_rt.so"), hostile.join("lib64/libascendcl.so")] {
        fs::copy(&evil, file).unwrap();
    }
    fs::write(hostile.join("aclshim.toml"), format!("dir = \"{}\"\n", hostile.join("out").display())).unwrap();
    let before = (names(&cwd), names(&hostile));
    let rings_before = names(Path::new("/dev/shm"));

    let script = "cd \"$CWD\" && exec setpriv --reuid=$CALLER --regid=$CALLER --clear-groups -- \"$@\"";
    let run = Run::new("sh").arg("-c").arg(script).arg("sh").arg(program).input();
    let run =
        run.env("CWD", &cwd).env("CALLER", CALLER.to_string()).env("ACLSHIM_CONFIG", hostile.join("aclshim.toml"));
    let run = run.env("ASCEND_HOME_PATH", &hostile).env("ACLSHIM_REAL", hostile.join("lib64/libascendcl.so"));
    let run = run.env("ACLSHIM_DIR", hostile.join("out")).env("ACLSHIM_RING_DIR", &hostile);
    let (mut child, scratch) = run.spawn();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    while !said.ends_with("waiting\n") {
        assert!(stdout.read_line(&mut said).unwrap() > 0, "it ended early: {said}{:?}", child.wait_with_output());
    }
    let (ours, pid) = (ours(child.id()), child.id());
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    stdout.read_to_string(&mut said).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{:?} {said}{stderr}", output.status);
    if said.starts_with("secure 0\n") {
        return false;
    }
    let copies = "copy 0 copied\n".repeat(3);
    assert_eq!(said, format!("secure 1\n{copies}batch 207000\nbatch 207000\nlookup 1\nwaiting\n"));
    assert_eq!(stderr, "");
    assert_eq!(ours, [""; 0], "in the process");
    assert_eq!((names(&elsewhere), names(&scratch)), (Vec::new(), Vec::new()), "where the link leads");
    assert_eq!((names(&cwd), names(&hostile)), before, "where the caller wants files");
    let rings: Vec<_> = names(Path::new("/dev/shm"));
    let is_new = |name: &&String| name.starts_with(&format!("aclshim-{pid}-")) && !rings_before.contains(name);
    assert_eq!(rings.iter().filter(is_new).collect::<Vec<_>>(), [""; 0]);
    true
}

/// Whether the caller can be another user here, who may reach what is built.
#[track_caller]
fn has_a_caller(program: &Path, test: &str) -> bool {
    // SAFETY: asks for our own number.
    if !has_that(unsafe { libc::geteuid() } == 0, "root", test) || !has("setpriv", test) {
        return false;
    }
    let mut probe = Command::new("setpriv");
    let caller = CALLER.to_string();
    probe.args(["--reuid", &caller, "--regid", &caller, "--clear-groups", "--", "test", "-x"]).arg(program);
    has_that(probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success()), "a path for other users", test)
}

#[test]
fn a_set_user_id_program_with_a_drop_in_only_forwards() {
    const TEST: &str = "a_set_user_id_program_with_a_drop_in_only_forwards";
    let program = program();
    if has_a_caller(&program, TEST) {
        fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
        has_that(forwards_only(&program), "a file system without nosuid", TEST);
    }
}

#[test]
fn a_program_with_file_capabilities_and_a_drop_in_only_forwards() {
    const TEST: &str = "a_program_with_file_capabilities_and_a_drop_in_only_forwards";
    let program = program();
    if has_a_caller(&program, TEST) && has("setcap", TEST) {
        let set = Command::new("setcap").arg("cap_net_bind_service+ep").arg(&program).stderr(Stdio::null()).status();
        let is_set = set.is_ok_and(|status| status.success());
        has_that(is_set && forwards_only(&program), "file capabilities", TEST);
    }
}
