//! The rulebook against the simulated library, call for call, over generated calls on every product and release.
//!
//! 1. A configuration is a product, a release, a form and what its driver can tell. The simulated library reads its
//!    settings once, so each configuration is a process of its own: this same test program, started as [`child`].
//! 2. A child makes memory, contexts and streams ([`scene`]), so that it knows them, and plays cases ([`generator`]):
//!    good calls of every function, most of them with a change or two, so that not quite half are accepted.
//! 3. Each case is predicted from what the child knows and then called. Where the two differ, the case is made smaller
//!    for as long as they differ in the same way, and shown.
//! 4. What was met is counted: a function that was never accepted, or a rule that never was the reason of a refusal,
//!    fails the test, because the generator would have become blind.
//!
//! `ACLSHIM_SEED` changes the cases, `ACLSHIM_AGREEMENT_CALLS` their number for each configuration. What was met is
//! written to `target/tests/agreement.txt`.

mod case;
mod child;
mod configuration;
mod coverage;
mod disagreements;
mod generator;
mod parent;
mod resolve;
mod scene;
mod shelf;
mod shown;
mod tally;
mod tame;
mod vendor;
mod worker;

#[path = "../support/mod.rs"]
mod support;

use configuration::Configuration;
use parent::{With, all, without};
use std::io::Write;

#[test]
fn the_rulebook_predicts_what_the_simulated_library_answers() {
    let runs = without();
    let table = coverage::table(runs);
    // Past the test harness, which shows nothing of a test that passes.
    let _ = writeln!(std::io::stderr(), "agreement: {}", table.lines().next().unwrap_or_default());
    std::fs::write(support::target("tests/agreement.txt"), &table).expect("a file under target/");
    let mut wrong: Vec<String> = runs.iter().flat_map(|run| run.disagreements.iter().cloned()).collect();
    // Most are met in many configurations; the first line says what sort it is.
    wrong.sort();
    wrong.dedup_by(|a, b| a.lines().next() == b.lines().next());
    wrong.extend(coverage::blind_spots(runs));
    assert!(wrong.is_empty(), "seed {}, {} findings:\n\n{}", parent::seed(), wrong.len(), wrong.join("\n"));
}

#[test]
fn what_is_observed_answers_and_copies_as_if_nobody_looked() {
    let (plain, observed) = (without(), all(With::Shim));
    for (plain, observed) in plain.iter().zip(&observed) {
        let configuration = plain.configuration;
        for (without, with) in plain.transcript.lines().zip(observed.transcript.lines()) {
            let number = without.split(' ').next().and_then(|number| number.parse().ok());
            let shown = || parent::show(configuration, With::Nothing, number.unwrap_or_default());
            assert_eq!(without, with, "{}, without and with the shim\n{}", configuration.name(), shown());
        }
        assert_eq!(plain.transcript.lines().count(), observed.transcript.lines().count());
        let made = observed.tally.total("made") + observed.tally.total("own");
        assert_eq!(observed.recorded, Some(made), "calls that the shim saw, {}", configuration.name());
    }
}

/// No context, a stream that is none or another context's, a capture, no device.
const HANDLES: [&str; 5] = ["107002", "107003", "107017", "107030", "107041"];

#[test]
fn what_is_refused_never_reaches_the_vendor_and_answers_as_the_vendor_would() {
    let (plain, enforced) = (without(), all(With::Enforcing));
    let mut refused = 0;
    for (plain, enforced) in plain.iter().zip(&enforced) {
        let configuration = plain.configuration;
        for (without, with) in plain.transcript.lines().zip(enforced.transcript.lines()) {
            let (without, with) = (parent::Line::read(without), parent::Line::read(with));
            let shown = || parent::show(configuration, With::Nothing, without.number);
            // What is wrong by a handle as well is refused for its arguments: the shim takes handles for good.
            let is_by_handle = HANDLES.contains(&without.code) && with.reached == 0;
            // The bytes may differ: the vendor copies the items of a batch that come before the bad one.
            let (vendors, ours) = ((without.code, without.fail_index), (with.code, with.fail_index));
            assert!(vendors == ours || is_by_handle, "{vendors:?} {ours:?}\n{}", shown());
            // What is wrong by the arguments alone: whatever else the shim knows, it knows these.
            assert!(!with.is_refused || with.reached == 0, "a refused call reached the vendor\n{}", shown());
            assert!(with.code != "0" || with.reached == 1, "an accepted call did not reach the vendor\n{}", shown());
            refused += u64::from(with.is_refused);
        }
    }
    assert!(refused > 0, "nothing was refused");
}

#[test]
fn child() {
    parent::be_a_child();
}

#[test]
fn a_library_that_does_something_else_is_caught_and_shown_by_a_small_case() {
    let configuration = Configuration::all()[0];
    let played = parent::play_with_fault(configuration, "fail=107001@aclrtMemcpy2d:*");
    let expected = "aclrtMemcpy2d: predicted accepted, came 107001\n";
    let caught = played.disagreements.iter().find(|one| one.starts_with(expected));
    let caught = caught.unwrap_or_else(|| panic!("not caught: {:?}", played.disagreements));
    // What it comes down to, whatever the seed: one row of one byte, in an ordinary situation.
    for part in ["dpitch=1, ", "spitch=1, width=1, height=1, ", "captures [], exchanged mode 0, "] {
        assert!(caught.contains(part), "{part}: {caught}");
    }
    assert!(played.disagreements.iter().all(|one| one.starts_with("aclrtMemcpy2d: ")), "{:?}", played.disagreements);
}

#[test]
fn there_is_a_configuration_for_every_product_of_the_rulebook() {
    for product in aclshim_facts::product::PRODUCTS {
        let is_there = Configuration::all().iter().any(|configuration| configuration.product() == product);
        assert!(is_there, "{}", product.name);
    }
}
