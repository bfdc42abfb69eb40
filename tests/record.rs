//! Every call is recorded as it was, or counted as not recorded, whatever the program does to itself.

#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use aclshim_trace::record::{Attribute, Batch, Entry, Item};
use recording::balance::{balanced, balanced_at_any_end, balanced_in_flight_mode, balanced_to_the_last, lost_in_vain};
use recording::left::{calls, calls_of_all, entries, left, missing};
use recording::pattern::mix;
use recording::truth::Truth;
use recording::{MODES, done, hammer, patterned, same, watched};
use std::os::unix::process::ExitStatusExt;
use support::{Build, Output, Run, Stat, has, host};

// ---- Ends ----

#[test]
fn however_a_process_ends_each_of_its_calls_is_recorded_as_it_was_and_the_end_is_its_own() {
    let program = patterned("hosts/record_end.c");
    let ends = ["return", "exit", "_exit", "quick_exit", "abort", "fault", "kill", "exec", "daemon", "last", "leaves"];
    for how in ends {
        for (drain, mode) in [("auto", "audit"), ("off", "audit"), ("auto", "flight"), ("auto", "lossless")] {
            let run = |run: Run| run.arg(how).env("ACLSHIM_DRAIN", drain).env("ACLSHIM_RECORD", mode);
            let output = same(&program, run);
            // What was printed is in the buffer, and only some ends write it out.
            let ends_well = ["return", "exit", "exec", "daemon", "last", "leaves"].contains(&how);
            assert_eq!(output.stdout.contains("at exit"), ends_well, "{how}: {output:?}");
            let waits = ["return", "exit", "last", "leaves"].contains(&how);
            let found = if waits { balanced(&output) } else { balanced_at_any_end(&output) };
            assert_eq!(found.not_recorded, 0, "{how} {drain} {mode}");
            assert_eq!(found.processes, if ["exec", "daemon"].contains(&how) { 2 } else { 1 }, "{how}");
            done(output);
        }
    }
}

#[test]
fn after_an_end_in_order_all_is_in_the_trace_and_the_log_says_so() {
    for mode in MODES {
        let output = same(hammer(), |run| run.arg("2").arg("300").env("ACLSHIM_RECORD", mode));
        let found = balanced(&output);
        let stat = output.stat();
        let slots = &stat.0["slots"];
        assert_eq!((&slots["trace"], &slots["ring"]), (&found.slots.into(), &0.into()), "{mode}");
        let [started, stopped] = ["started", "stopped"].map(|event| output.events(event));
        assert_eq!((started.len(), stopped.len()), (1, 1), "{mode}: {:?}", output.log());
        assert_eq!((&stopped[0]["calls"], &stopped[0]["not_recorded"]), (&601.into(), &0.into()), "{mode}");
        assert_eq!(output.events("failed_call").len() as u64, stat.total("errors"), "{mode}");
    }
}

/// A generator of numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 += 1;
        mix(self.0, 7) % sides
    }
}

#[test]
fn a_process_killed_at_any_instant_leaves_whole_records_of_every_call() {
    let program = hammer();
    let mut dice = Dice(20_261_116);
    for round in 0..200 {
        // Mostly early, where everything happens for the first time; now and then late.
        let most = 1 << (10 + dice.roll(13));
        let spin = dice.roll(most);
        let mode = if round % 5 < 3 { "audit" } else { MODES[round % 5 - 2] };
        let drain = if round % 8 == 7 { "off" } else { "auto" };
        let run = watched(&program).arg("4").arg("0").arg(spin.to_string());
        let output = run.env("ACLSHIM_RECORD", mode).env("ACLSHIM_DRAIN", drain).run();
        assert_eq!(output.status.signal(), Some(libc::SIGKILL), "round {round}: {output:?}");
        balanced_to_the_last(&output, 4, mode);
        done(output);
    }
}

// ---- fork ----

#[test]
fn a_thousand_children_of_a_calling_process_record_for_themselves() {
    // Small rings, so that the thread that calls all the while does not fill the disk; and whatever it does is kept.
    let run = |run: Run| {
        run.arg("1000")
            .arg("50")
            .env("ACLSHIM_RING_SIZE", "8K")
            .env("ACLSHIM_RING_LIMIT", "8K")
            .env("ACLSHIM_BUDGET", "8G")
    };
    let output = same(patterned("hosts/record_forks.c"), run).ok();
    let found = balanced_at_any_end(&output);
    assert_eq!(found.processes, 1001);
    let children = found.lanes.iter().filter(|(lane, _)| **lane >= 2);
    assert_eq!(children.clone().count(), 1000);
    assert!(children.clone().all(|(_, of)| *of == (50, 49)), "each child has recorded all of its calls");
    done(output);
}

#[test]
fn a_thread_that_forks_shares_no_ring_with_one_that_calls_before_it_in_the_child() {
    let program = patterned("hosts/record_inherited.c");
    for drain in ["auto", "off"] {
        let run = |run: Run| run.arg("20000").env("ACLSHIM_DRAIN", drain).env("ACLSHIM_RECORD", "audit");
        let output = same(&program, run).ok();
        let found = balanced_at_any_end(&output);
        assert_eq!(found.processes, 2, "{drain}");
        // That each stands under its own thread is looked at record by record.
        assert_eq!(found.lanes.keys().copied().collect::<Vec<_>>(), [0, 1, 2], "{drain}");
        done(output);
    }
}

#[test]
fn a_child_that_shares_the_memory_of_its_parent_takes_no_ring_from_it() {
    let program = patterned("hosts/record_vfork.c");
    for drain in ["auto", "off"] {
        let run = |run: Run| {
            run.arg("2000").env("ACLSHIM_DRAIN", drain).env("ACLSHIM_RING_SIZE", "1M").env("ACLSHIM_RING_LIMIT", "1M")
        };
        let output = same(&program, run).ok();
        let found = balanced_at_any_end(&output);
        // The child's own calls are counted, and so are a few behind them.
        assert_eq!(found.lanes.keys().copied().collect::<Vec<_>>(), [0, 2, 3], "{drain}");
        assert!(found.processes == 1 && (5..20).contains(&found.not_recorded), "{drain}: {found:?}");
        done(output);
    }
}

#[test]
fn a_call_in_which_the_process_forks_is_ended_by_the_parent_alone() {
    let vendor = Build::new("hosts/record_forking_vendor.c").library("ascendcl");
    let program = Build::new("hosts/record_forking.c").arg(&vendor).program();
    for drain in ["auto", "off"] {
        // Among them those after which the child's ring is exactly where its parent's was.
        for inside in 0..8 {
            let run = Run::new(&program).library_path(vendor.parent().unwrap()).shim();
            let run = run.arg("3").arg(inside.to_string()).env("ACLSHIM_DRAIN", drain);
            let output = run.run().ok();
            assert_eq!(output.stdout, "5, then 0\n");
            let mut told: Vec<_> =
                calls_of_all(&output).iter().map(|call| (call.arguments[3], call.end.map(|end| end.code))).collect();
            told.sort();
            let expected = [vec![(8, 0); inside], vec![(16, 0); 3], vec![(32, 0)], vec![(77, 5)]].concat();
            let expected: Vec<_> = expected.into_iter().map(|(bytes, code)| (bytes, Some(code))).collect();
            assert_eq!(told, expected, "{drain}, {inside} calls in the child");
            done(output);
        }
    }
}

// ---- Signals ----

#[test]
fn calls_of_a_handler_that_interrupts_calls_five_thousand_times_a_second_are_whole() {
    let program = patterned("hosts/record_signals.c");
    for stack in ["here", "stack"] {
        for mode in MODES {
            for drain in ["auto", "off"] {
                if (mode, drain) == ("lossless", "off") {
                    continue; // each call would wait
                }
                // The longest where least is kept of it.
                let signals = if (mode, drain) == ("flight", "off") { 5000 } else { 500 };
                let run = watched(&program).arg(stack).arg(signals.to_string());
                let output = run.env("ACLSHIM_RECORD", mode).env("ACLSHIM_DRAIN", drain).run().ok();
                assert_eq!(output.stdout, "handled\n");
                let truth = Truth::of(&output.scratch);
                assert!(truth.lane(1).begun >= signals);
                let found = if mode == "flight" { balanced_in_flight_mode(&output) } else { balanced(&output) };
                assert!(found.lanes.contains_key(&0) && (mode == "audit" || found.lanes.contains_key(&1)), "{found:?}");
                done(output);
            }
        }
    }
}

/// A signal after each instruction of a call in turn, the first call of its thread or a later one, one that fits into a slot
/// or one with a finding. A slot that is never filled would stop the drain there.
#[cfg(target_arch = "x86_64")]
#[test]
fn a_handler_that_calls_or_forks_after_any_instruction_of_a_call_leaves_no_gap_and_spoils_no_record() {
    let program = host("hosts/record_stepped.c");
    for (how, before, stride, less, place) in [
        ("copy", 3, 1, 0, "open"),
        ("fork", 3, 1, 0, "open"),
        ("copy", 0, 1, 0, "open"),
        ("fork", 0, 5, 0, "open"),
        ("copy", 3, 1, 1, "open"),
        ("fork", 3, 5, 1, "open"),
        ("copy", 0, 11, 0, "anywhere"),
        ("fork", 0, 23, 0, "anywhere"),
    ] {
        let what = format!("{how} {before} {stride} {less} {place}");
        let run = what.split(' ').fold(watched(&program), Run::arg);
        let output = run.env("ACLSHIM_RING_SIZE", "1M").env("ACLSHIM_RING_LIMIT", "1M").run().ok();
        let threads: usize = output.stdout.trim().parse().unwrap();
        let signals = threads - 1;
        assert!(signals > 20, "{what}: {signals} signals");
        let all = calls_of_all(&output);
        let mut sizes = [0; 6];
        all.iter().for_each(|call| sizes[call.arguments[3] as usize] += 1);
        let [_, earlier, interrupted, of_handlers, of_children, later] = sizes;
        assert_eq!((earlier, later), (1 + before * threads, 5 * threads), "{what}");
        // In the child it is the same call: recorded by the parent, or by both, by when the child came.
        let by_both = if how == "fork" { signals } else { 0 };
        let lost = output.stat().total("not_recorded") as usize;
        if place == "open" {
            assert!((threads..=threads + by_both).contains(&interrupted), "{what}: {interrupted} of {threads}");
            assert_eq!((of_handlers, of_children, lost), (signals, 2 * by_both, 0), "{what}");
        } else {
            // A handler that interrupts a thread which is about to get its ring has none: its call is counted.
            let sure = threads + signals + 2 * by_both;
            let told = interrupted + of_handlers + of_children + lost;
            assert!((sure..=sure + by_both).contains(&told), "{what}: {sizes:?} and {lost} lost, of {sure}");
        }
        assert_eq!(missing(&output), 0, "{what}: slots that nobody filled");
        assert!(all.iter().all(|call| call.end.is_some_and(|end| end.code == 0)), "{what}");
        done(output);
    }
}

// ---- What leaves a call by another way than its end ----

#[test]
fn after_a_call_that_was_left_a_million_more_are_all_recorded_and_none_is_in_flight() {
    let name = "after_a_call_that_was_left_a_million_more_are_all_recorded_and_none_is_in_flight";
    if !has("c++", name) {
        return;
    }
    let program = host("hosts/record_left.cpp");
    for (how, fault) in [("throw", "throw@aclrtMemcpy:2"), ("jump", "longjmp@aclrtMemcpy:2")] {
        let run = |run: Run| run.sim().arg(how).arg("1000000").env("ASCENDCL_SIM_FAULT", fault);
        let without = run(Run::new(&program)).run().ok();
        let with = run(Run::new(&program).shim().env("ACLSHIM_RECORD", "lossless")).run().ok();
        assert_eq!(with.seen(), without.seen(), "{how}");
        let stat = with.stat();
        let sums = ["calls", "not_recorded", "nested", "in_flight"].map(|key| stat.total(key));
        let lost = lost_in_vain(&with);
        assert_eq!(sums, [1_000_002 - lost, lost, 0, 0], "{how}");
        done(with);
    }
}

#[test]
fn a_call_that_hangs_is_seen_in_flight_with_its_arguments_and_so_after_a_kill() {
    let program = host("hosts/record_hangs.c");
    for drain in ["auto", "off"] {
        let run = Run::new(&program).sim().shim().env("ASCENDCL_SIM_FAULT", "hang@aclrtMemcpy:3");
        let (mut child, scratch) = run.env("ACLSHIM_DRAIN", drain).spawn();
        let mut output = Output { status: Default::default(), stdout: String::new(), stderr: String::new(), scratch };
        let in_flight = |output: &Output| {
            let stat = output.stat();
            (stat.total("calls"), stat.total("in_flight"))
        };
        let is_there = || Stat::asked(&output.scratch.join("out"), &output.scratch).is_ok();
        while !is_there() || in_flight(&output) != (3, 1) {
            assert!(child.try_wait().unwrap().is_none(), "ended by itself");
        }
        let as_it_was_made = |output: &Output| {
            let calls = calls(output);
            let [.., call] = &calls[..] else { panic!("no call") };
            assert_eq!((call.end, &call.arguments[..4]), (None, &[0x1111, 0x44, 0x2222, 0x33][..]), "{drain}");
            let all = left(&output.scratch.join("out"), &output.scratch).processes;
            assert_eq!(all[0].origin.functions[usize::from(call.function)], "aclrtMemcpy", "{drain}");
        };
        as_it_was_made(&output);
        child.kill().unwrap();
        output.status = child.wait().unwrap();
        assert_eq!(in_flight(&output), (3, 1), "{drain}: after the kill");
        as_it_was_made(&output);
    }
}

// ---- Batches and long calls ----

/// The items that hosts/record_batch.c has.
fn batch_item(i: u64) -> Item {
    let size = 1 + (mix(i, 3) & 0xff_ffff);
    Item { dst: mix(i, 1), src: mix(i, 2), size, room: i as i32 }
}

#[test]
fn a_batch_is_recorded_with_its_summary_attributes_arguments_and_as_many_items_as_are_asked_for() {
    let program = patterned("hosts/record_batch.c");
    let counts = [1u64, 2, 3, 63, 64, 65, 100, 300, 0, 5, 7];
    for (asked, most) in [(None, 64), (Some("0"), 0), (Some("1"), 1), (Some("200"), 200), (Some("4096"), 300)] {
        let run = |run: Run| match asked {
            Some(items) => run.env("ACLSHIM_BATCH_ITEMS", items),
            None => run,
        };
        let output = same(&program, run).ok();
        let truth = Truth::of(&output.scratch);
        let calls = calls(&output);
        assert_eq!(calls.len(), counts.len());
        for (at, (call, items)) in calls.into_iter().zip(counts).enumerate() {
            let (attributes, fails) = (at as u64 + 1, at + 1 == counts.len());
            let mark = if fails { 0x5B } else { 0x5C };
            let known = [truth.word(3), 0, 0, truth.word(4), items, 0, 0, attributes, mark << 56 | at as u64];
            let mut arguments = call.arguments;
            for unknown in [1, 2, 5, 6] {
                arguments[unknown] = 0;
            }
            assert_eq!(arguments[..9], known, "batch {at}");
            assert_eq!(call.end.map(|end| end.code), Some(if fails { 107_000 } else { 0 }), "batch {at}");
            if fails || items == 0 {
                assert_eq!(call.batch, None, "batch {at}: nothing was read");
                continue;
            }
            let sizes = || (0..items).map(|i| batch_item(i).size);
            let expected = Batch {
                total: sizes().sum(),
                smallest: sizes().min().unwrap(),
                largest: sizes().max().unwrap(),
                too_large: 0,
                direction: Some((1, 0)),
                attributes: (0..attributes.min(8))
                    .map(|i| Attribute { first: 5 * i, dst: i | 1 << 32, src: 100 + i })
                    .collect(),
                items: (0..items.min(most)).map(batch_item).collect(),
            };
            assert_eq!(call.batch, Some(expected), "batch {at} with ACLSHIM_BATCH_ITEMS={asked:?}");
        }
    }
}

#[test]
fn a_call_of_three_seconds_has_its_duration() {
    for drain in ["auto", "off"] {
        let run = watched(patterned("hosts/record_batch.c")).arg("slow").env("ACLSHIM_DRAIN", drain);
        let output = run.run().ok();
        let stat = output.stat();
        let sums = ["calls", "in_flight", "not_recorded", "errors"].map(|key| stat.total(key));
        assert_eq!(sums, [1, 0, 0, 0], "{drain}");
        let took = stat.0["functions"]["aclrtMemcpy"]["p50_ns"].as_u64().unwrap();
        // At least what was slept, but for a histogram's width; how much more is the machine's affair.
        assert!((2_700_000_000..600_000_000_000).contains(&took), "{drain}: {took} ns");
        let all = left(&output.scratch.join("out"), &output.scratch).processes;
        let clock = all[0].origin.calibration.unwrap();
        let entries = entries(&output);
        let duration = entries.iter().rev().find_map(|of| match of {
            Entry::End { end, .. } => Some(end.duration),
            Entry::Call(call) => call.end.map(|end| end.duration),
            _ => None,
        });
        let took = clock.span_ns(duration.unwrap());
        assert!((2_700_000_000..600_000_000_000).contains(&took), "{drain}: {took} ns");
    }
}

// ---- The host beside its drain ----

#[test]
fn errno_codes_and_output_are_the_hosts_with_a_drain_inside() {
    // The host itself looks at errno and the code of each call, and ends early if one is wrong.
    for mode in MODES {
        let run = |run: Run| run.arg("2").arg("20000").env("ACLSHIM_RECORD", mode).env("ACLSHIM_CALLS", "json");
        done(same(hammer(), run).ok());
        // Threads that take the rings of others, which they find gone by a system call that fails.
        let run = |run: Run| run.arg("40").arg("50").arg("relay").env("ACLSHIM_RECORD", mode);
        done(same(hammer(), run).ok());
    }
}

#[test]
fn a_reader_beside_four_threads_never_sees_less_than_before_or_more_than_was_called() {
    // Small rings, so that the trace stays short: it is read each time.
    let run = watched(hammer())
        .arg("4")
        .arg("0")
        .env("ACLSHIM_RING_SIZE", "4K")
        .env("ACLSHIM_RING_LIMIT", "4K")
        .env("ACLSHIM_BUDGET", "8G");
    let (mut child, scratch) = run.spawn();
    // Not before there is something to read.
    while Truth::of(&scratch).ended() == 0 {
        assert!(child.try_wait().unwrap().is_none(), "ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let mut before = [0; 3];
    for round in 0..8 {
        let ended = Truth::of(&scratch).ended();
        let stat = Stat::of(&scratch.join("out"), &scratch);
        assert!(child.try_wait().unwrap().is_none(), "ended by itself");
        let begun = Truth::of(&scratch).begun();
        let now = ["calls", "not_recorded", "errors"].map(|key| stat.total(key));
        let sum = now[0] + now[1];
        assert!(sum <= begun, "round {round}: {sum} of {begun}");
        assert!(sum >= ended, "round {round}: {sum}, and {ended} had ended");
        assert!(before.iter().zip(now).all(|(before, now)| *before <= now), "round {round}: {before:?}, then {now:?}");
        assert!(stat.total("in_flight") <= 4 && stat.total("nested") == 0, "{}", stat.0);
        before = now;
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    let output = Output { status, stdout: String::new(), stderr: String::new(), scratch };
    balanced_to_the_last(&output, 4, "audit");
    done(output);
}
