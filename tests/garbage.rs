//! Bad input: whatever a program passes, the outcome is the vendor's own, with the shim and without it.

mod support;

use aclshim_facts::FUNCTIONS;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use support::{Output, Run, host};

/// Runs the cases without and with the shim; every outcome must be the same. Gives the run with the shim.
#[track_caller]
fn same(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let program = host("hosts/garbage_cases.c");
    let prepared = |run: Run| {
        let run = arguments.iter().fold(run.sim(), |run, argument| run.arg(argument));
        environment.iter().fold(run, |run, (name, value)| run.env(name, value))
    };
    let without = prepared(Run::new(&program)).run().ok();
    let with = prepared(Run::new(&program).shim()).run().ok();
    for (with, without) in with.stdout.lines().zip(without.stdout.lines()) {
        assert_eq!(with, without, "with the shim, and without it");
        assert!(!with.ends_with("signal 14"), "hung: {with}");
    }
    assert_eq!(with.stdout.lines().count(), without.stdout.lines().count());
    assert_eq!(with.stderr, "");
    with
}

/// The different outcomes of each function: a code, or a signal.
fn outcomes(output: &Output) -> BTreeMap<&str, BTreeSet<String>> {
    let mut by_function = BTreeMap::<_, BTreeSet<_>>::new();
    for line in output.stdout.lines() {
        let words: Vec<_> = line.split(' ').collect();
        by_function.entry(words[0]).or_default().insert(format!("{} {}", words[2], words[3]));
    }
    by_function
}

fn cases(output: &Output) -> usize {
    output.stdout.lines().count()
}

#[track_caller]
fn counted_exactly(output: &Output) {
    let own = fs::read_to_string(output.scratch.join("own")).unwrap();
    let stat = output.stat();
    let (calls, lost) = (stat.total("calls") + stat.total("nested"), stat.total("not_recorded"));
    assert_eq!((calls, lost), (own.trim().parse().unwrap(), 0));
    let deaths = output.stdout.lines().filter(|line| line.contains(": signal")).count() as u64;
    // Some calls have returned when a stream's thread meets the bad address, however many; the others are still open.
    let open = stat.total("in_flight");
    assert!(open > 0 && open <= deaths, "{open} calls are open, {deaths} cases were fatal");
}

fn forget(folder: &Path) {
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn each_bad_argument_of_each_function_has_the_same_outcome_and_every_call_is_counted() {
    let output = same(&["each"], &[]);
    assert!(cases(&output) > 1000, "{} cases", cases(&output));
    let outcomes = outcomes(&output);
    assert_eq!(outcomes.len(), FUNCTIONS.len());
    for (function, seen) in &outcomes {
        // Good arguments work and bad ones are refused for more than one reason: the cases reach all the way in.
        assert!(seen.contains("code 0") && seen.len() >= 3, "{function}: {seen:?}");
    }
    let fatal = outcomes.values().filter(|seen| seen.contains("signal 11")).count();
    assert!(fatal >= 15, "only {fatal} functions have cases that are fatal");
    counted_exactly(&output);
    forget(&output.scratch);
}

#[test]
fn random_combinations_of_bad_arguments_have_the_same_outcome() {
    let output = same(&["sweep", "2000"], &[]);
    assert_eq!(cases(&output), FUNCTIONS.len() * 2000);
    assert!(outcomes(&output).values().all(|seen| seen.len() >= 3));
    forget(&output.scratch);
}

#[test]
fn on_other_products_and_releases_the_outcomes_are_the_same_too() {
    for environment in
        [("ASCENDCL_SIM_SOC", "Ascend310P3"), ("ASCENDCL_SIM_SOC", "Ascend950"), ("ASCENDCL_SIM_CANN", "8.5")]
    {
        let output = same(&["sweep", "200"], &[environment]);
        assert_eq!(cases(&output), FUNCTIONS.len() * 200);
        forget(&output.scratch);
    }
}

#[test]
fn without_a_device_the_outcomes_are_the_same_too() {
    let output = same(&["sweep", "200", "bare"], &[]);
    assert!(output.stdout.contains("code 107002"), "no context");
    forget(&output.scratch);
}

#[test]
fn with_the_shim_off_the_outcomes_are_the_same_too() {
    let output = same(&["sweep", "200"], &[("ACLSHIM_MODE", "off")]);
    forget(&output.scratch);
}
