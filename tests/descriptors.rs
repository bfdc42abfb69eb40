//! A host's descriptors and ours share one table: neither does harm to the other.

mod support;

use std::fs;
use support::{Output, Run, host};

fn run(how: &str, number: u32, drain: &str) -> Output {
    Run::new(host("hosts/guest_closed.c"))
        .sim()
        .shim()
        .arg(how)
        .arg(number.to_string())
        .env("ACLSHIM_DRAIN", drain)
        .run()
}

/// What the host says it has called.
fn own(output: &Output) -> u64 {
    fs::read_to_string(output.scratch.join("own")).unwrap().trim().parse().unwrap()
}

#[test]
fn a_host_that_prints_with_its_standard_output_closed_lives_and_all_its_calls_are_known() {
    for round in 0..20 {
        for (how, drain) in [("print", "auto"), ("print", "off"), ("large", "auto"), ("large", "off")] {
            let output = run(how, 200, drain).ok();
            let stat = output.stat();
            let sums = ["calls", "not_recorded"].map(|key| stat.total(key));
            assert_eq!(sums.iter().sum::<u64>(), own(&output), "round {round}, {how}, {drain}: {sums:?}");
            assert_eq!(
                (stat.total("in_flight"), stat.total("nested"), stat.total("errors")),
                (0, 0, 0),
                "{how} {drain}"
            );
            assert_eq!(
                stat.calls().into_iter().collect::<Vec<_>>(),
                [("aclrtMemcpy".into(), sums[0])],
                "{how} {drain}"
            );
            fs::remove_dir_all(output.scratch).unwrap();
        }
    }
}

#[test]
fn what_stands_in_the_header_of_a_ring_file_does_not_say_where_its_process_writes() {
    let output = run("scribble", 50, "off").ok();
    let sums = ["calls", "not_recorded"].map(|key| output.stat().total(key));
    assert_eq!(sums, [own(&output), 0]);
}

#[test]
fn a_fork_amid_first_calls_of_other_threads_leaves_the_child_no_ring_descriptor() {
    let output = run("fork", 1500, "off").ok();
    assert_eq!(output.stdout, "0 leaks\n");
}
