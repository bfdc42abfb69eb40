//! Batches whose arrays are not what they should be, or that come from everywhere at once: never a crash, and never
//! another answer than without the shim.

#[path = "support/checking.rs"]
mod checking;
mod support;

use checking::{counted, findings, same};
use std::fs;
use support::{Build, Output, Run, Stat, host};

// ---- Arrays that end too early ----

/// Products with and without batches, and the releases before and after nothing to copy was no error any more.
const VENDORS: [(&str, &str); 5] = [
    ("Ascend910B1", "9.2"),
    ("Ascend910B1", "8.5"),
    ("Ascend950", "9.2"),
    ("Ascend310P3", "9.2"),
    ("Ascend310P3", "8.5"),
];

/// Runs `hosts/check_malformed.c` for each vendor, before and after it is known what the vendor is.
#[track_caller]
fn malformed(prepare: impl Fn(Run) -> Run) -> Vec<Output> {
    let program = host("hosts/check_malformed.c");
    let mut outputs = Vec::new();
    for (soc, cann) in VENDORS {
        for warm in ["", "warm"] {
            let run = |run: Run| {
                let run = checking::words(run, warm).env("ASCENDCL_SIM_SOC", soc).env("ASCENDCL_SIM_CANN", cann);
                prepare(run)
            };
            println!("{soc} {cann} {warm}");
            outputs.push(same(program.clone(), run).ok());
        }
    }
    outputs
}

#[test]
fn arrays_that_end_behind_what_the_vendor_reads_are_read_no_further() {
    let outputs = malformed(|run| run);
    // And as far as the vendor reads them: the wrong entry is named.
    for rule in ["NULL-POINTER", "BATCH-EMPTY", "BATCH-DEST-MAX", "BATCH-RESERVED"] {
        assert!(outputs.iter().all(|output| counted(output, rule) > 0), "{rule}");
    }
    for rule in ["BATCH-ATTRS", "BATCH-INDEX-FIRST", "BATCH-INDEX-ORDER", "BATCH-INDEX-RANGE", "BATCH-LIMIT"] {
        assert!(counted(&outputs[1], rule) > 0, "{rule}");
    }
}

#[test]
fn arrays_that_end_behind_what_the_vendor_reads_are_refused_with_what_the_vendor_returns() {
    let outputs = malformed(|run| run.env("ACLSHIM_MODE", "enforce"));
    let refused = |output: &Output| findings(output).iter().filter(|finding| finding["refused"] == true).count();
    assert!(outputs.iter().all(|output| refused(output) > 20));
}

#[test]
fn arrays_that_end_too_early_do_no_harm_where_every_call_is_judged_and_none_is_recorded() {
    malformed(|run| run.env("ACLSHIM_STACK", "findings").env("ACLSHIM_RECORD", "off"));
}

// ---- Handlers, threads and children ----

/// How many calls the host says that it has made, in all of its processes.
fn made(output: &Output) -> u64 {
    let own = fs::read_to_string(output.scratch.join("own")).unwrap();
    own.lines().map(|line| line.parse::<u64>().unwrap()).sum()
}

#[test]
fn bad_batches_of_a_handler_of_threads_and_of_children_are_all_recorded_or_counted() {
    let vendor = Build::new("hosts/check_vendor.c").library("ascendcl");
    let program = host("hosts/check_signals.c");
    let (signals, forks, threads) = (200, 5, 2);
    for (mode, record, drain, stack) in [
        ("observe", "audit", "auto", "off"),
        ("observe", "lossless", "auto", "off"),
        ("observe", "audit", "off", "findings"),
        ("enforce", "audit", "auto", "findings"),
        ("enforce", "audit", "off", "off"),
    ] {
        let run = Run::new(&program).library_path(vendor.parent().unwrap()).shim();
        let run = [signals, forks, threads].iter().fold(run, |run, number| run.arg(number.to_string()));
        let run = run.env("ACLSHIM_MODE", mode).env("ACLSHIM_RECORD", record).env("ACLSHIM_DRAIN", drain);
        let run = run.env("ACLSHIM_STACK", stack);
        // Small rings: what is written must not fill the disk.
        let output = run.env("ACLSHIM_RING_SIZE", "4K").env("ACLSHIM_RING_LIMIT", "4K").run().ok();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("handled\n", ""), "{mode} {record} {drain}");
        let stat = output.stat();
        let sums = ["calls", "not_recorded"].map(|key| stat.total(key));
        assert_eq!(sums[0] + sums[1], made(&output), "{mode} {record} {drain}: {sums:?}");
        assert_eq!((stat.total("nested"), stat.total("in_flight")), (0, 0));
        assert_eq!(stat.total("processes"), 1 + forks, "{mode} {record} {drain}");
        // Each recorded call has its finding, and one only.
        assert_eq!(stat.0["findings"]["BATCH-DEST-MAX"], sums[0], "{mode} {record} {drain}: {}", stat.0);
        assert_eq!(stat.0["findings"].as_object().unwrap().len(), 1, "{}", stat.0);
        children_have_told(&output, &stat, mode, drain);
        fs::remove_dir_all(&output.scratch).unwrap();
    }
}

/// Every process has findings of its own, and they name the item.
#[track_caller]
fn children_have_told(output: &Output, stat: &Stat, mode: &str, drain: &str) {
    let found = findings(output);
    let pids: std::collections::BTreeSet<_> = found.iter().map(|finding| finding["pid"].as_u64()).collect();
    assert_eq!(pids.len() as u64, stat.total("processes"), "{mode} {drain}");
    for finding in &found {
        // Where the ring had no room for the item, the record itself says which rule it was.
        let (index, is_refused) = (&finding["index"], mode == "enforce");
        assert!(index.is_null() || *index == 1, "{finding}");
        assert_eq!(finding["refused"], is_refused, "{finding}");
    }
    assert!(found.iter().any(|finding| finding["index"] == 1), "{mode} {drain}");
}
