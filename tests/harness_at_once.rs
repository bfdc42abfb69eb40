//! The harness under threads, forks and signal handlers.

#[path = "support/harnessed.rs"]
mod harnessed;
mod support;

use harnessed::seen;
use support::host;

#[test]
fn many_threads_at_once_on_scopes_that_others_end_do_no_harm() {
    let output = seen(&host("hosts/harness_misuse.c"), &["threads"]).run().ok();
    assert!(output.stdout.contains("last 1\nlast end 0\n"), "{}", output.stdout);
    assert_eq!(output.stderr, "");
}

#[test]
fn a_fork_child_begins_without_scopes_whoever_was_at_the_desk() {
    let output = seen(&host("hosts/harness_misuse.c"), &["fork"]).run().ok();
    assert!(output.stdout.contains("parent end 0\n"), "{}", output.stdout);
}

#[test]
fn handlers_copy_and_ask_at_any_time() {
    let program = host("hosts/harness_signals.c");
    let output = seen(&program, &["async"]).run().ok();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("all 1 strange 0 busy 0\nend 0\n", ""));
}

#[test]
fn a_handler_that_jumps_out_of_a_fault_leaves_nothing_taken() {
    let output = seen(&host("hosts/harness_signals.c"), &["fault"]).run().ok();
    let expected = "in the handler 1\nstate 2\na bad selector 1\nbad room 1\nstill 2\nend 0\n";
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), (expected, ""));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_handler_that_interrupts_the_harness_itself_is_sent_away_and_what_it_copied_is_missed_aloud() {
    let program = host("hosts/harness_signals.c");
    for every in ["61", "97", "211", "499"] {
        let output = seen(&program, &["step", every]).run().ok();
        let expected = "strange 0, ours seen 1, inner 0, sent away some\nbalance 1\ntold 1\nthen 1\nend 0\n";
        assert_eq!(output.stdout, expected, "{every}: {}", output.stderr);
        assert!(output.stderr.contains("could not be seen, so nothing here is certain"), "{every}: {}", output.stderr);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_call_costs_after_the_last_scope_what_it_did_before_the_first() {
    let fault = "fail=5@aclrtMemset:*";
    let output = seen(&host("hosts/harness_cost.c"), &[]).env("ASCENDCL_SIM_FAULT", fault).run().ok();
    assert_eq!(output.stdout, "more within, as before\n", "{}", output.stderr);
}
