//! `aclshim export`: what other tools read is what was called.

#[path = "export/another.rs"]
mod another;
#[path = "support/checking.rs"]
mod checking;
mod support;

use another::Machine;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use support::{Run, Stat, aclshim, has, has_that, host, limited, root, scratch};

/// Where tests/requirements.txt is installed.
fn python() -> PathBuf {
    root().join("target/python/bin/python3")
}

/// Whether a package of tests/requirements.txt can be had.
#[track_caller]
fn has_package(package: &str, test: &str) -> bool {
    let import = Command::new(python()).args(["-c", &format!("import {package}")]).output();
    let found = import.is_ok_and(|output| output.status.success());
    has_that(found, &format!("{package} in target/python (see .ci/run)"), test)
}

/// Runs a script of tests/export; what it prints.
#[track_caller]
fn script(name: &str, arguments: &[&Path]) -> String {
    let mut command = Command::new(python());
    let output = command.arg(root().join("tests/export").join(name)).args(arguments).output().expect("python");
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{name}: {stdout}\n{stderr}");
    stdout
}

/// Runs `aclshim export`.
fn export(traces: &[&Path], rings: &Path, format: &str, out: &Path, more: &[&str]) -> Output {
    let mut command = aclshim();
    command.env("ACLSHIM_RING_DIR", rings).arg("export").args(traces).args(["--format", format, "-o"]).arg(out);
    command.args(more).output().expect("aclshim export")
}

/// Runs an export that must succeed without a message.
#[track_caller]
fn exported(traces: &[&Path], rings: &Path, format: &str, out: &Path) {
    let output = export(traces, rings, format, out, &[]);
    assert!(output.status.success() && output.stderr.is_empty(), "{format}: {output:?}");
}

fn traces(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension() == Some("acltrace".as_ref())).collect()
}

/// A program that makes calls of every form: `hosts/export_calls.c`.
fn calls() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| host("hosts/export_calls.c")).clone()
}

/// A run of it on two threads.
fn run(program: &Path, rounds: &str) -> support::Output {
    checking::watched(program).arg("2").arg(rounds).env("RANK", "3").run().ok()
}

/// What several machines have left: two days of one, two processes with the same pid, one that died amid a call, one
/// that was left by a jump.
struct Fleet {
    dir: PathBuf,
    rings: PathBuf,
}

const ODD: &str = "node \"7\", a/b=c%\nü";

fn fleet() -> &'static Fleet {
    static BUILT: OnceLock<Fleet> = OnceLock::new();
    BUILT.get_or_init(|| {
        let dir = scratch("fleet");
        let one = run(&calls(), "5");
        let [trace] = &traces(&one.scratch.join("out"))[..] else { panic!("one trace") };
        for (at, (host, boot, days)) in
            [("007", "one", 1), ("007", "two", 2), (ODD, "three", 2), (ODD, "four", 41)].into_iter().enumerate()
        {
            Machine { host, boot, days }.write(trace, &dir.join(format!("{at}.acltrace")));
        }
        let died = checking::watched(calls()).arg("1").arg("2").arg("die").env("ACLSHIM_DIR", &dir).env("RANK", "1");
        // Without a drain: one that is killed while it writes leaves a file that is cut off, which each export reports.
        let died = died.env("ACLSHIM_DRAIN", "off").run();
        assert_eq!(died.status.signal(), Some(libc::SIGSEGV), "{died:?}");
        let left = Run::new(host("hosts/record_left.cpp")).sim().shim().arg("jump").arg("9");
        left.env("ASCENDCL_SIM_FAULT", "longjmp@aclrtMemcpy:2").env("ACLSHIM_DIR", &dir).run().ok();
        Fleet { dir, rings: died.scratch }
    })
}

#[test]
fn csv_and_json_lines_hold_each_call_as_the_program_made_it() {
    let name = "csv_and_json_lines_hold_each_call_as_the_program_made_it";
    if !has_package("json", name) {
        return;
    }
    let folder = scratch("tables");
    let odd = folder.join("odd, \"name\"\n\u{fc} ");
    support::runnable(&odd, &fs::read(calls()).unwrap());
    let output = run(&odd, "3");
    let [trace] = &traces(&output.scratch.join("out"))[..] else { panic!("one trace") };
    let moved = folder.join("moved.acltrace");
    Machine { host: ODD, boot: "another", days: 1 }.write(trace, &moved);
    let [csv, jsonl] = ["csv", "jsonl"].map(|format| {
        let out = folder.join(format);
        exported(&[&moved], &folder, format, &out);
        out
    });
    let rows: Vec<Value> = serde_json::from_str(&script("tables.py", &[&csv, &jsonl])).unwrap();
    let mut made: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for line in output.stdout.lines() {
        let call: Value = serde_json::from_str(line).unwrap();
        made.entry(call["thread"].as_u64().unwrap()).or_default().push(call);
    }
    assert_eq!(rows.len(), output.stdout.lines().count());
    let mut next: BTreeMap<u64, usize> = BTreeMap::new();
    for row in &rows {
        let thread = row["thread"].as_u64().unwrap();
        let at = next.entry(thread).or_default();
        for (key, value) in made[&thread][*at].as_object().unwrap() {
            assert_eq!(&row[key], value, "{key} of {row}");
        }
        *at += 1;
        let same = [("host", ODD), ("boot", "another"), ("rank", "3"), ("state", "done")];
        assert!(same.iter().all(|(key, value)| row[key] == *value), "{row}");
        assert_eq!(Path::new(row["executable"].as_str().unwrap()), odd);
        assert!(row["module"].as_str().unwrap().starts_with("odd, \"name\""), "{row}");
    }
    let short = rows.iter().find(|row| row["dst_max"] == 63).unwrap();
    assert!(!short["rules"].as_array().unwrap().is_empty(), "{short}");
}

#[test]
fn timelines_hold_every_call_with_slices_that_balance_and_arrows_to_streams() {
    let name = "timelines_hold_every_call_with_slices_that_balance_and_arrows_to_streams";
    if !has_package("perfetto", name) {
        return;
    }
    let (Fleet { dir, rings }, folder) = (fleet(), scratch("timelines"));
    let one = dir.join("0.acltrace");
    for (case, source) in [("one", &one), ("fleet", dir)] {
        let [chrome, perfetto, jsonl] = ["chrome", "perfetto", "jsonl"].map(|format| {
            let out = folder.join(format!("{case}.{format}"));
            exported(&[source], rings, format, &out);
            out
        });
        println!("{case}: {}", script("timelines.py", &[&chrome, &perfetto, &jsonl]));
    }
}

#[test]
fn duckdb_and_spark_say_what_stat_says() {
    let name = "duckdb_and_spark_say_what_stat_says";
    if !has_package("duckdb, pyspark", name) || !has("java", name) {
        return;
    }
    let (Fleet { dir, rings }, folder) = (fleet(), scratch("lake"));
    let (lake, stat) = (folder.join("lake"), folder.join("stat.json"));
    exported(&[dir], rings, "parquet", &lake);
    let said = Stat::of(dir, rings);
    assert_eq!([said.total("processes"), said.total("in_flight")], [6, 1], "{}", said.0);
    fs::write(&stat, said.0.to_string()).unwrap();
    let printed = script("queries.py", &[&root().join("docs/exporting.md"), &lake, &stat]);
    let about: Value = serde_json::from_str(printed.trim()).unwrap();
    let set = |key: &str| about[key].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect();
    let [hosts, dates, ranks]: [BTreeSet<String>; 3] = ["hosts", "dates", "ranks"].map(set);
    assert!(hosts.len() == 3 && hosts.contains("007") && hosts.contains(ODD), "{about}");
    assert!(dates.len() >= 3 && ranks == ["0", "1", "3"].map(String::from).into(), "{about}");
    // Not in one process, as a driver by itself would do it.
    if std::env::var_os("SPARK_MASTER").is_none() {
        assert!(about["master"].as_str().unwrap().starts_with("local-cluster["), "{about}");
        assert!(about["executors"].as_u64() >= Some(2), "{about}");
    }
    // One that died, and one that was left by a jump.
    assert_eq!(about["open"], 2, "{about}");
}

/// The files of a lake.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn parquet_is_not_added_to_files_that_are_there_unless_told() {
    let (Fleet { dir, rings }, lake) = (fleet(), scratch("append").join("lake"));
    exported(&[dir], rings, "parquet", &lake);
    let first = files(&lake);
    assert!(first.iter().all(|file| file.extension() == Some("parquet".as_ref())), "{first:?}");
    // Every host and day has one file: what several processes have left is put together.
    let folders: BTreeSet<_> = first.iter().map(|file| file.parent().unwrap()).collect();
    assert_eq!(folders.len(), first.len(), "{first:?}");
    let refused = export(&[dir], rings, "parquet", &lake, &[]);
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && why.contains("--append"), "{why}");
    assert_eq!(files(&lake), first, "nothing is left of what was refused");
    assert!(export(&[dir], rings, "parquet", &lake, &["--append"]).status.success());
    assert_eq!(files(&lake).len(), 2 * first.len());
}

#[test]
fn parquet_holds_more_machines_than_files_are_open_at_once() {
    let name = "parquet_holds_more_machines_than_files_are_open_at_once";
    if !has_package("duckdb", name) {
        return;
    }
    let (Fleet { dir, .. }, folder) = (fleet(), scratch("machines"));
    let (many, lake) = (folder.join("many"), folder.join("lake"));
    fs::create_dir(&many).unwrap();
    for at in 0..40 {
        let (host, boot) = (format!("node{}", at % 20), format!("boot{at}"));
        let to = many.join(format!("{at}.acltrace"));
        Machine { host: &host, boot: &boot, days: 1 }.write(&dir.join("1.acltrace"), &to);
    }
    exported(&[&many], &folder, "parquet", &lake);
    let count = "import duckdb, sys; print(*duckdb.connect().execute(f\"SELECT count(*), count(DISTINCT host), count(DISTINCT boot) \
                 FROM read_parquet('{sys.argv[1]}/*/*/*.parquet', hive_partitioning = true)\").fetchall()[0])";
    let output = Command::new(python()).args(["-c", count]).arg(&lake).output().unwrap();
    let calls = Stat::of(&many, &folder).total("calls");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), format!("{calls} 20 40"), "{output:?}");
}

#[test]
fn what_cannot_be_exported_is_said_and_leaves_no_file() {
    let folder = scratch("nothing");
    let empty = folder.join("empty");
    fs::create_dir(&empty).unwrap();
    let file = folder.join("file");
    fs::write(&file, "mine").unwrap();
    let cases =
        [("perfetto", "missing/out"), ("chrome", "missing/out"), ("csv", "missing/out"), ("jsonl", "missing/out")];
    for (format, place) in cases.into_iter().chain([("parquet", "file")]) {
        let output = export(&[&empty], &folder, format, &folder.join("out"), &[]);
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && why.contains("no process has recorded a call"), "{format}: {why}");
        let output = export(&[&fleet().dir], &folder, format, &folder.join(place), &[]);
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && why.contains(place), "{format}: {why}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "{format}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let output = export(&[&fleet().dir], &folder, "csv", Path::new("/dev/full"), &[]);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && why.contains("/dev/full"), "{why}");
    // A trace is not overwritten.
    let trace = &traces(&fleet().dir)[0];
    let before = fs::read(trace).unwrap();
    let output = export(&[&fleet().dir], &folder, "csv", trace, &[]);
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && why.contains("is not overwritten"), "{why}");
    assert_eq!(fs::read(trace).unwrap(), before);
}

#[test]
fn an_export_goes_to_standard_output_too() {
    let (Fleet { dir, rings }, folder) = (fleet(), scratch("stdout"));
    exported(&[dir], rings, "csv", &folder.join("csv"));
    let output = export(&[dir], rings, "csv", Path::new("-"), &[]);
    let lines = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap().lines().count();
    assert_eq!(lines(&output.stdout), lines(&fs::read(folder.join("csv")).unwrap()));
    let output = export(&[dir], rings, "parquet", Path::new("-"), &[]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("name one with -o"));
}

#[test]
fn a_long_trace_takes_less_memory_than_it_has_bytes() {
    let (Fleet { dir, rings }, folder) = (fleet(), scratch("long"));
    let trace = |calls: u64| {
        let trace = folder.join(format!("{calls}.acltrace"));
        another::long(&dir.join("0.acltrace"), &trace, calls);
        trace
    };
    let (long, longer) = (trace(300_000), trace(1_500_000));
    for (format, trace, most) in [
        ("perfetto", &long, 12 << 20),
        ("chrome", &long, 12 << 20),
        ("csv", &long, 12 << 20),
        ("jsonl", &long, 12 << 20),
        ("parquet", &longer, 64 << 20),
    ] {
        assert!(fs::metadata(trace).unwrap().len() > most * 5 / 4);
        let mut command = aclshim();
        command.env("ACLSHIM_RING_DIR", rings).arg("export").arg(trace).args(["--format", format, "-o"]);
        let output = limited(command.arg(folder.join(format)), most).output().unwrap();
        assert!(output.status.success(), "{format}: {}", String::from_utf8_lossy(&output.stderr));
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_page_has_the_columns_that_there_are() {
    let output = aclshim().args(["export", "--columns"]).output().unwrap();
    let made = String::from_utf8(output.stdout).unwrap();
    let page = root().join("docs/exporting.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once("`aclshim export --columns` -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of columns -->").unwrap();
    let fresh = format!("{before}`aclshim export --columns` -->\n{made}<!-- end of columns -->{after}");
    if std::env::var_os("ACLSHIM_UPDATE").is_some() {
        fs::write(&page, &fresh).unwrap();
    } else {
        assert!(text == fresh, "docs/exporting.md is stale: run ACLSHIM_UPDATE=1 cargo test --test export");
    }
}
