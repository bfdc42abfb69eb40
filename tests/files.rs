//! The files of a run: how they are named, how large they become, and what others may do to them.

#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use aclshim_trace::reader;
use recording::balance::{content, lost_in_vain};
use recording::left::open;
use recording::ordered::{Ordered, steps};
use recording::truth::tally;
use recording::{hammer, patterned, traces, unharmed, watched};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;
use support::{Run, Stat, aclshim, has, scratch, target};

// ---- Names ----

#[test]
fn the_folder_of_the_trace_may_be_a_link() {
    let folder = scratch("dir");
    fs::create_dir(folder.join("real")).unwrap();
    symlink(folder.join("real"), folder.join("link")).unwrap();
    let output = unharmed(hammer(), |run| run.arg("2").arg("250").env("ACLSHIM_DIR", folder.join("link")));
    for dir in ["real", "link"] {
        assert_eq!(tally(&output, &Stat::of(&folder.join(dir), &output.scratch)), [501, 0, 0], "{dir}");
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
    let output = unharmed("sh", run);
    assert_eq!(tally(&output, &output.stat()), [501, 0, 0]);
    assert_eq!(fs::read_to_string(output.scratch.join("victim")).unwrap(), "mine\n");
    assert!(!output.scratch.join("none").exists(), "made through a link");
    let made = traces(&output.scratch.join("out"));
    let made: Vec<_> = made.iter().filter(|path| !path.is_symlink()).collect();
    assert!(made.len() == 1 && made[0].to_str().unwrap().ends_with("+3.acltrace"), "{made:?}");
}

#[test]
fn files_are_named_as_asked_for_and_are_for_their_owner_only() {
    let run = |run: Run| run.arg("1").arg("100").env("ACLSHIM_FILE", "%e-%p-%h-%r-%t").env("RANK", "3");
    let with = unharmed(hammer(), run);
    assert_eq!(tally(&with, &with.stat()), [100, 0, 0]);
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
    assert_eq!(tally(&output, &output.stat()), [150, 0, 200]);
    assert_eq!(output.events("replaced")[0]["reason"], "removed by somebody");
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
        assert_eq!(output.events("replaced")[0]["reason"], "changed by somebody");
        assert_eq!(fs::metadata(trace).unwrap().len(), size, "{size}: nothing was written behind the cut");
    }
}

#[test]
fn a_trace_that_is_cut_off_within_its_beginning_is_said_and_hides_nothing() {
    // What a process leaves that is killed while it writes the first bytes: all records are in its ring.
    let output = unharmed(hammer(), |run| run.arg("2").arg("250").env("ACLSHIM_DRAIN", "off"));
    let (out, said) = (output.scratch.join("out"), output.stat());
    assert_eq!(tally(&output, &said), [501, 0, 0]);
    let [ring] = &reader::files(&output.scratch).unwrap()[..] else { panic!("one ring") };
    let records = fs::read(ring).unwrap();
    let drain = || assert!(aclshim().args(["collect", "--once"]).arg(&output.scratch).status().unwrap().success());
    drain();
    let [trace] = &traces(&out)[..] else { panic!("one trace") };
    let whole = fs::read(trace).unwrap();
    let beginning = open(trace).unwrap().unwrap().good() as usize;
    // All but the durations: how fast the clock is becomes known better with time.
    let counts = |stat: &Stat| {
        let sums = ["processes", "calls", "errors", "bytes", "not_recorded", "in_flight"].map(|key| stat.total(key));
        (sums, stat.calls(), stat.0["slots"]["ring"].as_u64().unwrap() + stat.0["slots"]["trace"].as_u64().unwrap())
    };
    for size in [0, 1, 8, 12, 64, 100, 8192, beginning - 1] {
        fs::write(trace, &whole[..size]).unwrap();
        fs::write(ring, &records).unwrap();
        let found = content(&output);
        assert_eq!((found.calls, found.torn), (501, 1), "{size}");
        assert_eq!(counts(&output.stat()), counts(&said), "{size}");
        let table = aclshim().env("ACLSHIM_RING_DIR", &output.scratch).arg("stat").arg(&out).output().unwrap();
        let troubles = String::from_utf8(table.stderr).unwrap();
        // An empty one may be just being made.
        assert!(table.status.success() && troubles.lines().count() == usize::from(size > 0), "{size}: {troubles}");
        assert!(size == 0 || troubles.contains(trace.to_str().unwrap()), "{size}: {troubles}");
        // Who comes later leaves it as it is, and writes another one.
        drain();
        let found = content(&output);
        assert_eq!((found.calls, found.torn, ring.exists()), (501, 1, false), "{size}");
        assert_eq!(counts(&output.stat()), counts(&said), "{size}");
        let [first, second] = &traces(&out)[..] else { panic!("two traces") };
        let other = if first == trace { second } else { first };
        assert_eq!(fs::read(trace).unwrap(), whole[..size], "{size}");
        fs::remove_file(other).unwrap();
    }
    // A beginning that is all there is no cut, and one that is not as it was written is damage.
    fs::write(trace, &whole[..beginning]).unwrap();
    assert!(open(trace).unwrap().is_some());
    for at in [0, 50, 100, beginning - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(trace, damaged).unwrap();
        assert!(open(trace).is_err(), "byte {at}");
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
    assert_eq!(tally(&output, &stat), [410, 0, 0]);
    assert_eq!((stat.total("processes"), &stat.0["slots"]["ring"]), (21, &0.into()));
    // A child may have had the time to write all of it itself.
    assert!(output.events("adopted").iter().all(|line| line["gone"] == true && line["in_flight"] == 0));
}

#[test]
fn a_host_that_closes_all_descriptors_and_has_its_own_there_finds_its_files_untouched() {
    let program = patterned("hosts/record_descriptors.c");
    // In a sandbox the drain has to share the host's table, and then it must not keep anything open.
    for how in [None, Some("refused")] {
        let output = unharmed(&program, |run| how.into_iter().fold(run, |run, how| run.arg(how)));
        assert_eq!(output.stdout, "all mine\n");
        tally(&output, &output.stat());
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
    let output = unharmed(hammer(), run);
    let [calls, missed, evicted] = tally(&output, &output.stat());
    assert!(calls > 0 && evicted > 0, "{calls} calls, {evicted} evicted");
    assert_eq!(missed, lost_in_vain(&output));
    assert!(!output.events("removed").is_empty());
    let files = fs::read_dir(output.scratch.join("out")).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
    let sizes: Vec<u64> = files.collect();
    assert!(sizes.iter().all(|size| *size <= 1 << 20) && sizes.iter().sum::<u64>() <= 4 << 20, "{sizes:?}");
    assert!(sizes.len() >= 3, "{sizes:?}");
}

#[test]
fn a_trace_that_becomes_too_long_is_followed_by_the_next_and_nothing_is_lost() {
    let run = |run: Run| run.arg("2").arg("30000").env("ACLSHIM_RECORD", "lossless").env("ACLSHIM_SEGMENT", "1M");
    let output = unharmed(hammer(), run);
    let lost = lost_in_vain(&output);
    assert_eq!(tally(&output, &output.stat()), [60_001 - lost, lost, 0]);
    let sizes: Vec<u64> =
        traces(&output.scratch.join("out")).iter().map(|path| fs::metadata(path).unwrap().len()).collect();
    assert!(sizes.len() >= 7 && sizes.iter().all(|size| *size <= 1 << 20), "{sizes:?}");
}

// ---- Many processes, one directory ----

/// A directory with traces and logs of many earlier processes.
fn crowded() -> std::path::PathBuf {
    let dir = scratch("crowded");
    for number in 0..300 {
        fs::write(dir.join(format!("earlier-{number}.acltrace")), aclshim_trace::segment::format::MAGIC).unwrap();
        fs::write(dir.join(format!("earlier-{number}.jsonl")), "").unwrap();
    }
    dir
}

/// What a program does to the directory that it writes to, or the files of earlier processes there, besides its own files.
fn looks_at(dir: &Path, calls: &Path) -> Vec<String> {
    let listed = format!("<{}>", dir.display());
    let text = fs::read_to_string(calls).unwrap();
    assert!(text.contains(".acltrace"), "it wrote a trace");
    let is_look = |line: &&str| line.contains("getdents") && line.contains(&listed) || line.contains("earlier-");
    text.lines().filter(is_look).map(str::to_owned).collect()
}

#[test]
fn a_process_does_not_look_at_the_files_of_those_before_it() {
    if !has("strace", "a_process_does_not_look_at_the_files_of_those_before_it") {
        return;
    }
    let (dir, calls) = (crowded(), scratch("strace").join("calls"));
    // The files have not been counted yet: the first process does that.
    watched(hammer()).arg("2").arg("250").env("ACLSHIM_DIR", &dir).run().ok();
    let run = watched("strace").arg("-f").arg("-y").arg("-o").arg(&calls).arg(hammer()).arg("2").arg("250");
    let output = run.env("ACLSHIM_DIR", &dir).run().ok();
    assert_eq!(looks_at(&dir, &calls), [""; 0]);
    let stat = Stat::of(&dir, &output.scratch);
    assert_eq!((stat.total("calls"), stat.total("processes")), (1002, 2));
}

#[test]
fn what_a_killed_process_has_left_is_written_without_a_look_at_all_other_files() {
    if !has("strace", "what_a_killed_process_has_left_is_written_without_a_look_at_all_other_files") {
        return;
    }
    let (dir, calls) = (crowded(), scratch("strace").join("calls"));
    let mut host = Ordered::new(|run, pipe| run.arg(pipe).env("ACLSHIM_DIR", &dir), steps());
    host.order("calls 100");
    host.until_drained();
    let scratch = host.scratch.clone();
    host.kill();
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-o"]).arg(&calls).arg(target("release/aclshim")).args(["collect", "--once"]);
    assert!(command.arg(&scratch).status().unwrap().success());
    assert_eq!(looks_at(&dir, &calls), [""; 0]);
    assert!(reader::files(&scratch).unwrap().is_empty());
    assert_eq!(Stat::of(&dir, &scratch).total("calls"), 100);
}
