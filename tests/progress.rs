//! Long work shows how far it is on a terminal, and nothing anywhere else.

#[path = "support/keeping.rs"]
mod keeping;
mod support;

use aclshim_trace::segment::reader::SegmentReader;
use keeping::{command, kept, only};
use std::fs;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::scratch;

/// A trace that is long to read and takes no room: there is a hole before its last block.
fn long() -> PathBuf {
    let output = kept(&["2", "12"]).ok();
    let bytes = fs::read(only(&output.scratch.join("out"), "acltrace")).unwrap();
    let mut reader = SegmentReader::open(&bytes[..]).unwrap();
    let mut last = 0;
    while reader.next_block().unwrap().is_some() {
        last = reader.began() as usize;
    }
    let path = scratch("long").join("long.acltrace");
    let file = fs::File::create(&path).unwrap();
    file.write_all_at(&bytes[..last], 0).unwrap();
    file.write_all_at(&bytes[last..], (65 << 20) + last as u64).unwrap();
    path
}

/// The commands that read all of it.
fn commands(trace: &Path) -> Vec<Command> {
    let (rings, out) = (scratch("none"), scratch("out"));
    let of = |arguments: &[&str]| {
        let mut command = command(&rings, arguments);
        command.env("TERM", "xterm").stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    let [mut stat, mut log, mut verify] = [&["stat"][..], &["log"], &["verify"]].map(of);
    let [mut diff, mut recover, mut merge] = [&["diff"][..], &["recover", "--out"], &["merge", "-o"]].map(of);
    for command in [&mut stat, &mut log, &mut verify] {
        command.arg(trace);
    }
    diff.args([trace, trace]);
    recover.arg(out.join("recovered")).arg(trace);
    merge.arg(out.join("merged")).arg(trace);
    vec![stat, log, verify, diff, recover, merge]
}

/// What a command shows on a terminal.
fn on_a_terminal(mut command: Command) -> String {
    let (mut ours, mut theirs) = (0, 0);
    let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let none = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: two descriptors that are made here, and owned from here on.
    let (mut ours, theirs) = unsafe {
        assert_eq!(libc::openpty(&mut ours, &mut theirs, none.cast(), none.cast(), (&raw const size).cast_mut()), 0);
        (fs::File::from_raw_fd(ours), fs::File::from_raw_fd(theirs))
    };
    let mut child = command.stderr(theirs).spawn().unwrap();
    drop(command);
    let mut shown = Vec::new();
    let mut piece = [0; 4096];
    // It ends with an error when the other end is closed.
    while let Ok(count @ 1..) = ours.read(&mut piece) {
        shown.extend(&piece[..count]);
    }
    child.wait().unwrap();
    String::from_utf8_lossy(&shown).into_owned()
}

#[test]
fn on_a_terminal_there_is_a_bar_and_it_is_gone_in_the_end() {
    for command in commands(&long()) {
        let what = format!("{command:?}");
        let shown = on_a_terminal(command);
        assert!(shown.contains(" of 65.") && shown.contains(" left"), "{what}: {shown:?}");
        let (_, behind) = shown.rsplit_once(" left").unwrap();
        assert!(behind.contains("\x1b[2K"), "{what}: {behind:?}");
    }
}

#[test]
fn where_nobody_looks_there_is_none() {
    for mut command in commands(&long()) {
        let what = format!("{command:?}");
        let said = String::from_utf8(command.stderr(Stdio::piped()).output().unwrap().stderr).unwrap();
        assert!(!said.contains(" left") && !said.contains('\x1b'), "{what}: {said:?}");
    }
}
