//! `aclshim report`: the page of real runs, looked at in a real browser.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use support::{Build, Output, Run, Stat, aclshim, has, root, runnable, scratch, target};

/// `report/host.c` under any name.
fn host() -> PathBuf {
    Build::new("report/host.c").link("ascendcl").program()
}

/// A run with the shim on the simulated device, with rings that hold all of it.
fn watched(program: impl AsRef<Path>, threads: u32, rounds: u32) -> Run {
    let run = Run::new(program.as_ref()).arg(threads.to_string()).arg(rounds.to_string());
    run.sim().shim().env("ACLSHIM_RING_SIZE", "1M").env("ACLSHIM_RING_LIMIT", "1M")
}

/// What `aclshim report` writes about a path.
#[track_caller]
fn report(of: &Path, rings: &Path) -> PathBuf {
    let page = scratch("page").join("report.html");
    let mut command = aclshim();
    command.env("ACLSHIM_RING_DIR", rings).arg("report").arg(of).arg("-o").arg(&page);
    let output = command.output().expect("aclshim report");
    assert!(output.status.success(), "aclshim report: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty(), "the page is in its file");
    page
}

fn page_of(output: &Output) -> PathBuf {
    report(&output.scratch.join("out"), &output.scratch)
}

/// Asks a browser: `report/check.py`. One at a time: several that start at once would keep each other waiting.
#[track_caller]
fn look(what: &str, page: &Path, expected: &[&str]) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new("python3");
    command.arg("-B").arg(root().join("tests/report/check.py")).arg(what).arg(page).args(expected);
    let output = command.output().expect("python3");
    let [said, errors] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{what} {}:\n{said}{errors}", page.display());
}

/// Whether there is a browser to look with.
#[track_caller]
fn has_browser(test: &str) -> bool {
    ["python3", "chromium", "chromedriver"].iter().all(|tool| has(tool, test))
}

/// The data that a page is made of.
fn data(page: &Path) -> serde_json::Value {
    let text = fs::read_to_string(page).unwrap();
    let data = text.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script>").next()).expect("the data");
    serde_json::from_str(data).expect("JSON")
}

/// The ring that a run without a drain has left, as if it came from another machine: with a clock of that many ticks a
/// second, or (0) of an unknown pace. Other places are those of docs/trace-format.md.
fn of_another_boot(output: &Output, hz: u64) -> PathBuf {
    let mut files = fs::read_dir(&output.scratch).unwrap().map(|file| file.unwrap().path());
    let ring = files.find(|path| path.extension() == Some("ring".as_ref())).expect("a ring");
    let mut bytes = fs::read(&ring).unwrap();
    bytes[80..88].copy_from_slice(&hz.to_le_bytes());
    let boot_id = std::mem::offset_of!(aclshim_trace::ring::layout::Header, boot_id);
    bytes[boot_id..boot_id + 36].fill(b'0');
    // A day ago: clocks that agree with ours would be taken for ours.
    let realtime = u64::from_le_bytes(bytes[96..104].try_into().unwrap());
    bytes[96..104].copy_from_slice(&(realtime - 86_400_000_000_000).to_le_bytes());
    fs::write(&ring, bytes).unwrap();
    ring
}

fn separated(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

#[test]
fn the_page_of_a_run_shows_everything_and_can_be_used() {
    if !has_browser("the_page_of_a_run_shows_everything_and_can_be_used") {
        return;
    }
    let output = watched(host(), 4, 64).run().ok();
    let page = page_of(&output);
    let calls = separated(output.stat().total("calls"));
    let values = data(&page)["rules"][0]["sites"][0]["examples"][0]["values"].as_str().unwrap().to_owned();
    let room = values.split(", ").find(|part| part.starts_with("destMax = ")).expect("the room");
    look("whole", &page, &["DEST-MAX", room, "pass the real size of the destination", "4", &calls]);
}

#[test]
fn the_page_says_the_same_as_stat_and_findings() {
    let output = watched(host(), 3, 64).run().ok();
    let (stat, data) = (output.stat().0, data(&page_of(&output)));
    for key in ["calls", "nested", "bytes", "errors", "in_flight"] {
        assert_eq!(data["totals"][key], stat[key], "{key}");
    }
    let id = data["processes"][0]["build_id"].as_str().unwrap();
    assert!(id.len() >= 16 && id.bytes().all(|digit| digit.is_ascii_hexdigit()), "the vendor's library: {id:?}");
    for function in data["functions"].as_array().unwrap() {
        let same = &stat["functions"][function["name"].as_str().unwrap()];
        for key in ["calls", "bytes", "errors"] {
            assert_eq!(function[key], same[key], "{key}: {function}");
        }
        let longest = function["max_ns"].as_f64().unwrap();
        for key in ["p50_ns", "p99_ns"] {
            // Times follow from the pace of the clock, which is known a little better each time: enough to move a
            // call into the next bucket, a sixteenth away.
            let [here, there] = [&function[key], &same[key]].map(|time| time.as_f64().unwrap());
            assert!((here - there).abs() <= there / 8.0 && here <= longest, "{key}: {function}, {same}");
        }
        let calls = |key: &str, at: usize| -> u64 {
            function[key].as_array().unwrap().iter().map(|bucket| bucket[at].as_u64().unwrap()).sum()
        };
        assert_eq!([calls("sizes", 1), calls("durations", 2)].map(Some), [function["calls"].as_u64(); 2], "{function}");
    }
    let rules = data["rules"].as_array().unwrap();
    assert_eq!(rules.len(), stat["findings"].as_object().unwrap().len());
    for rule in rules {
        assert_eq!(rule["count"], stat["findings"][rule["name"].as_str().unwrap()], "{rule}");
        let at_sites: u64 = rule["sites"].as_array().unwrap().iter().map(|site| site["count"].as_u64().unwrap()).sum();
        assert_eq!(Some(at_sites), rule["count"].as_u64(), "{rule}");
        let place = rule["sites"][0]["place"].as_str().unwrap();
        assert!(place.starts_with("work (host.c:") && place.contains("+0x"), "{place}");
        let example = &rule["sites"][0]["examples"][0];
        assert!(example["values"].as_str().unwrap().starts_with("aclrtMemcpy"), "{example}");
        assert!(example["outcome"].as_str().unwrap().starts_with("The vendor "), "{example}");
        let call = example["call"].as_u64().unwrap() as usize;
        assert_eq!(data["calls"]["number"][call], example["number"]);
    }
    for track in data["timeline"]["tracks"].as_array().unwrap() {
        let sum = |key: &str| track["bins"][key].as_array().unwrap().iter().map(|of| of.as_u64().unwrap()).sum::<u64>();
        assert_eq!([sum("calls"), sum("bytes")].map(Some), [track["calls"].as_u64(), track["bytes"].as_u64()]);
    }
    let causes: Vec<_> = data["failures"].as_array().unwrap().iter().map(|row| row["rules"].clone()).collect();
    assert!(causes.contains(&serde_json::json!(["DEST-MAX"])), "{causes:?}");
}

#[test]
fn the_same_trace_gives_the_same_bytes() {
    // Here and now the pace of the clock is measured anew each time; that of another machine is what the file says.
    let output = watched(host(), 3, 64).env("ACLSHIM_DRAIN", "off").run().ok();
    let ring = of_another_boot(&output, 2_500_000_000);
    let [one, other] = [0, 1].map(|_| fs::read(report(&ring, &output.scratch)).unwrap());
    assert!(one == other);
    // And the same times as elsewhere, to the nanosecond.
    let stat = Stat::of(&ring, &output.scratch).0;
    for function in data(&report(&ring, &output.scratch))["functions"].as_array().unwrap() {
        let same = &stat["functions"][function["name"].as_str().unwrap()];
        assert_eq!(
            ["p50_ns", "p99_ns", "max_ns"].map(|key| &function[key]),
            ["p50_ns", "p99_ns", "max_ns"].map(|key| &same[key])
        );
    }
    let text = String::from_utf8(one).unwrap();
    for outside in ["http:", "https:", "src=\"", "@import", "url("] {
        let found =
            text.match_indices(outside).filter(|(at, _)| !text[*at..].starts_with("http://www.w3.org/2000/svg"));
        assert_eq!(found.count(), 0, "{outside}");
    }
}

#[test]
fn losses_are_told_first() {
    if !has_browser("losses_are_told_first") {
        return;
    }
    let losing = |record: &str| {
        let run = watched(host(), 1, 2000)
            .env("ACLSHIM_RING_SIZE", "16K")
            .env("ACLSHIM_RING_LIMIT", "16K")
            .env("ACLSHIM_DRAIN", "off");
        run.env("ACLSHIM_RECORD", record).run().ok()
    };
    let flight = losing("flight");
    let slots = separated(flight.stat().total("overwritten"));
    look("told", &page_of(&flight), &["Not everything", &format!("{slots} slots"), "overwritten", "ACLSHIM_RING_SIZE"]);
    let full = losing("audit");
    let calls = separated(full.stat().total("not_recorded"));
    look("told", &page_of(&full), &["Not everything", &format!("{calls} calls"), "not recorded"]);
}

#[test]
fn names_that_are_markup_are_shown_as_text() {
    if !has_browser("names_that_are_markup_are_shown_as_text") {
        return;
    }
    let names =
        ["<img src=x onerror=window.ran=1>.bin", "<script>window.ran=1<", "\" onload=\"window.ran=1", "{{data}}'&lt;"];
    for name in names {
        let program = scratch("hostile").join(name);
        runnable(&program, &fs::read(host()).unwrap());
        let output = watched(&program, 1, 16).env("RANK", name).run().ok();
        look("hostile", &page_of(&output), &[name]);
    }
    // A name cannot have a slash, a path can.
    let folder = scratch("hostile").join("<").join("script><script>window.ran=1<").join("script><!--");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("host");
    runnable(&program, &fs::read(host()).unwrap());
    let output = watched(&program, 1, 16).run().ok();
    let page = page_of(&output);
    assert!(!fs::read_to_string(&page).unwrap().contains("script><script>"), "escaped");
    look("hostile", &page, &["host"]);
}

#[test]
fn an_empty_trace_one_call_and_an_unknown_time_make_good_pages_too() {
    if !has_browser("an_empty_trace_one_call_and_an_unknown_time_make_good_pages_too") {
        return;
    }
    // Without rounds it copies once.
    let output = watched(host(), 1, 0).run().ok();
    let page = page_of(&output);
    assert_eq!(data(&page)["totals"]["calls"], 1);
    look("small", &page, &["Nothing was lost", "1 MiB", "No rule is broken", "Every call that returned, returned 0"]);

    let output = watched(host(), 1, 0).env("ACLSHIM_DRAIN", "off").run().ok();
    let ring = of_another_boot(&output, 0);
    let page = report(&ring, &output.scratch);
    assert_eq!((&data(&page)["totals"]["calls"], &data(&page)["begin_ns"]), (&1.into(), &serde_json::Value::Null));
    look("small", &page, &["1 MiB", "time of the calls is not known", "How long calls took is not known"]);
}

#[test]
fn a_damaged_trace_is_told_first_and_read_as_far_as_it_goes() {
    if !has_browser("a_damaged_trace_is_told_first_and_read_as_far_as_it_goes") {
        return;
    }
    let output = watched(host(), 2, 16).run().ok();
    let whole = output.stat().total("calls");
    let mut files = fs::read_dir(output.scratch.join("out")).unwrap().map(|file| file.unwrap().path());
    let trace = files.find(|path| path.extension() == Some("acltrace".as_ref())).expect("a trace");
    let bytes = fs::read(&trace).unwrap();
    // Block by block towards the begin, until no call is left.
    let cut = scratch("cut").join("cut.acltrace");
    let mut length = bytes.len();
    let calls = loop {
        fs::write(&cut, &bytes[..length - 1]).unwrap();
        let stat = aclshim().arg("stat").arg("--json").arg(&cut).output().unwrap();
        let said = String::from_utf8(stat.stderr).unwrap();
        let good = said.split("cut off at byte ").nth(1).and_then(|rest| rest.split(':').next()?.parse().ok());
        length = good.unwrap_or_else(|| panic!("no place: {said}"));
        let data = data(&report(&cut, &output.scratch));
        let calls = data["totals"]["calls"].as_u64().unwrap();
        assert!(calls <= whole && data["losses"][0]["what"] == "cut.acltrace could not be read in full.");
        if calls == 0 {
            break calls;
        }
    };
    let page = report(&cut, &output.scratch);
    look("told", &page, &["Not everything", "cut.acltrace could not be read", "cut off at byte"]);
    // Cut where a block ends it is whole, and there is nothing in it.
    fs::write(&cut, &bytes[..length]).unwrap();
    let page = report(&cut, &output.scratch);
    assert_eq!(data(&page)["totals"]["calls"], calls);
    look("small", &page, &["Nothing was lost", "There are no calls", "No function was called"]);
}

#[test]
fn a_long_trace_makes_a_small_page_and_takes_little_memory() {
    let output = watched(host(), 4, 20_000).env("ACLSHIM_RECORD", "lossless").run().ok();
    let page = scratch("page").join("report.html");
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 40000 && exec \"$0\" report \"$1\" -o \"$2\""]).arg(target("release/aclshim"));
    let done =
        limited.arg(output.scratch.join("out")).arg(&page).env("ACLSHIM_RING_DIR", &output.scratch).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let size = fs::metadata(&page).unwrap().len();
    assert!(size < 4 << 20, "{size} bytes");
    let data = data(&page);
    assert_eq!((&data["totals"]["calls"], &data["is_complete"]), (&output.stat().0["calls"], &false.into()));
    if has_browser("a_long_trace_makes_a_small_page_and_takes_little_memory") {
        look("large", &page, &[&separated(output.stat().total("calls"))]);
    }
}

#[test]
fn a_page_that_cannot_be_written_and_a_directory_without_calls_are_said_so() {
    let folder = scratch("nothing");
    let said = |of: &Path, page: &Path| {
        let mut command = aclshim();
        let output =
            command.env("ACLSHIM_RING_DIR", &folder).arg("report").arg(of).arg("-o").arg(page).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(said(&folder, &folder.join("a.html")).contains("no process has recorded a call here"));
    assert!(!folder.join("a.html").exists());
    let output = watched(host(), 1, 1).run().ok();
    let mut traces = fs::read_dir(output.scratch.join("out")).unwrap().map(|file| file.unwrap().path());
    let trace = traces.find(|path| path.extension() == Some("acltrace".as_ref())).expect("a trace");
    assert!(said(&output.scratch.join("out"), &trace).contains("is not overwritten"));
    let nowhere = folder.join("nowhere/report.html");
    let text = said(&output.scratch.join("out"), &nowhere);
    assert!(text.contains("cannot be written") && text.contains("nowhere/report.html"), "{text}");
}

#[test]
fn a_page_takes_the_place_of_its_file_at_once_and_never_that_of_what_a_link_leads_to() {
    let output = watched(host(), 1, 1).run().ok();
    let folder = scratch("page");
    let [page, victim, link] = ["page.html", "victim", "link.html"].map(|name| folder.join(name));
    let write = |page: &Path| {
        let mut command = aclshim();
        command.env("ACLSHIM_RING_DIR", &output.scratch).arg("report").arg(output.scratch.join("out"));
        let done = command.arg("-o").arg(page).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    fs::write(&victim, "not to be touched").unwrap();
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    write(&link);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "not to be touched");
    assert!(fs::symlink_metadata(&link).unwrap().is_file() && data(&link)["totals"]["calls"].is_u64());
    // A reader of the page before keeps that page whole.
    fs::write(&page, "the page before").unwrap();
    let before = fs::File::open(&page).unwrap();
    write(&page);
    assert_eq!(std::io::read_to_string(before).unwrap(), "the page before");
    assert!(data(&page)["totals"]["calls"].is_u64());
    let mut left: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["link.html", "page.html", "victim"], "nothing unfinished is left");
}
