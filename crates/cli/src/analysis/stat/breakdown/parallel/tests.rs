use super::super::{Clocked, SlowCall};
use super::*;
use aclshim_collect::trace_set::TraceSet;
use aclshim_facts::Function;
use aclshim_facts::direction::Direction;
use aclshim_trace::system::clock::Calibration;
use std::path::PathBuf;

#[path = "../../../../../../collect/tests/mixed/mod.rs"]
mod mixed;

/// All that a breakdown knows.
fn known(mut breakdown: Breakdown, set: &TraceSet) -> Vec<String> {
    let mut known = vec![format!("{:?} {}", breakdown.span(), breakdown.least)];
    known.extend(breakdown.sizes().iter().map(|size| format!("{size:?}")));
    known.extend(breakdown.sites().iter().map(|site| format!("{site:?}")));
    known.extend(breakdown.slowest.iter().map(|slow| format!("{slow:?}")));
    known.extend(breakdown.scopes.by_name(set).iter().map(|scope| format!("{scope:?}")));
    known
}

#[test]
fn two_threads_add_up_to_what_one_does_of_one_trace_and_of_two() {
    let path =
        |name: &str| std::env::temp_dir().join(format!("aclshim-breakdown-{}-{name}.acltrace", std::process::id()));
    let paths: Vec<PathBuf> = ["one", "other"].map(path).into();
    for (path, seed) in paths.iter().zip([4, 5]) {
        std::fs::write(path, mixed::trace(seed, 90_000).0).unwrap();
    }
    for paths in [&paths[..1], &paths] {
        let ((mut one, mut two), (mut alone, mut joined)) = <((TraceSet, TraceSet), (Breakdown, Breakdown))>::default();
        one.read(paths, &mut alone).unwrap();
        two.read_parallel(paths, &mut joined).unwrap();
        one.finish(&mut alone);
        two.finish(&mut joined);
        assert_eq!(known(alone, &one), known(joined, &two), "{paths:?}");
    }
    paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn ticks_go_by_the_clock_of_the_first_turn_whoever_it_was_shown_to() {
    let breakdown = |turn: u64, ns_a_tick: f64| {
        let clock = Some(Calibration { ticks: 0, realtime_ns: 0, ns_a_tick });
        Breakdown {
            process: Some(Clocked { process: 3, clock, turn }),
            ticks: (turn, 1000 + turn),
            ..Breakdown::default()
        }
    };
    for (mut one, others) in [
        (breakdown(9, 1.0), vec![breakdown(12, 7.0), breakdown(6, 2.0)]),
        (breakdown(6, 2.0), vec![breakdown(9, 7.0), breakdown(12, 1.0)]),
        (Breakdown::default(), vec![breakdown(12, 1.0), breakdown(6, 2.0), breakdown(9, 7.0)]),
    ] {
        one.join(others);
        assert_eq!(one.span(), Some((12, 2024)));
    }
}

#[test]
fn of_call_sites_that_are_equal_the_one_that_came_first_stands_first() {
    let [first, second, third] = [Function::aclrtMemsetAsync, Function::aclrtMemcpy, Function::aclrtMemcpyAsync];
    let breakdown = |calls: &[(u64, Function)]| {
        let mut breakdown = Breakdown::default();
        for (turn, function) in calls {
            breakdown.at(*turn);
            breakdown.site((0, 0x40, *function)).add(64, 5);
        }
        breakdown
    };
    let mut one = breakdown(&[(7, second), (8, third)]);
    one.join(vec![breakdown(&[(9, third), (10, first)]), breakdown(&[(1, first), (5, second)])]);
    let sites: Vec<Function> = one.sites().iter().map(|((_, _, function), _)| *function).collect();
    assert_eq!(sites, [first, second, third]);
}

#[test]
fn of_the_slowest_calls_those_that_came_first_are_kept() {
    // As many calls as are kept, each a nanosecond quicker than the one before or as quick, from this turn on.
    let breakdown = |turn: u64, quicker: u64| {
        let mut breakdown = Breakdown::default();
        for nth in 0..SLOWEST as u64 {
            breakdown.at(turn + nth);
            breakdown.slow(SlowCall {
                duration_ns: 10_000 - quicker * nth,
                function: Function::aclrtMemcpy,
                bytes: 0,
                direction: Direction::Unknown,
                code: None,
                time_ns: None,
                process: 0,
                thread: 0,
                number: turn + nth,
                site: 0,
                turn: breakdown.turn,
            });
        }
        breakdown
    };
    let mut one = breakdown(500, 0);
    one.join(vec![breakdown(600, 0), breakdown(400, 1), breakdown(100, 250), breakdown(495, 0)]);
    let numbers: Vec<u64> = one.slowest.iter().map(|slow| slow.number).collect();
    assert_eq!(numbers, [100, 400, 495, 496, 497, 498, 499, 500, 500, 501]);
    assert_eq!(one.least, 10_000);
}
