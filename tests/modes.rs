//! When a ring is full: each of the modes does what it says, and what is lost is counted and said.

#[path = "support/recording/mod.rs"]
mod recording;
mod support;

use aclshim_trace::record::Entry;
use recording::balance::{balanced, balanced_in_flight_mode, content, lost_in_vain};
use recording::left::entries;
use recording::pattern::slots_of;
use recording::truth::Truth;
use recording::{MODES, done, hammer, same};
use std::collections::BTreeMap;
use support::Run;

// ---- Small rings ----

#[test]
fn sixteen_threads_on_the_smallest_rings_lose_nothing_that_is_not_counted() {
    for mode in MODES {
        for drain in ["auto", "off"] {
            let calls = if (mode, drain) == ("lossless", "off") { "38" } else { "10000" };
            let run = |run: Run| {
                let run = run.arg("16").arg(calls).env("ACLSHIM_RING_SIZE", "4K").env("ACLSHIM_RING_LIMIT", "4K");
                run.env("ACLSHIM_RECORD", mode).env("ACLSHIM_DRAIN", drain)
            };
            let output = same(hammer(), run).ok();
            let found = if mode == "flight" { balanced_in_flight_mode(&output) } else { balanced(&output) };
            if (mode, drain) == ("lossless", "auto") {
                assert_eq!(found.not_recorded, lost_in_vain(&output), "{found:?}");
            }
            done(output);
        }
    }
}

// ---- Modes ----

#[test]
fn flight_keeps_the_newest_records_and_says_how_many_slots_were_overwritten() {
    const CALLS: u64 = 50_000;
    for drain in ["off", "auto"] {
        let run = |run: Run| {
            let run = run.arg("1").arg(CALLS.to_string());
            run.env("ACLSHIM_RECORD", "flight").env("ACLSHIM_DRAIN", drain)
        };
        let output = same(hammer(), run).ok();
        let found = balanced_in_flight_mode(&output);
        // The thread's own note, and every call; the first one comes the long way, which takes two, and so may a few more
        // until one has succeeded.
        let claimed = 2 + (0..CALLS).map(slots_of).sum::<u64>();
        assert!((claimed..claimed + 12).contains(&(found.overwritten + found.slots)), "{claimed} {drain}: {found:?}");
        assert_eq!(found.not_recorded, 0);
        if drain == "off" {
            assert!((1020..=1024).contains(&found.slots), "the ring is full of the newest: {found:?}");
        } else {
            let said: u64 = output.events("overwritten").iter().map(|line| line["slots"].as_u64().unwrap()).sum();
            assert_eq!(said, found.overwritten, "as the log says");
        }
        done(output);
    }
}

#[test]
fn audit_says_in_band_and_in_the_log_how_many_calls_it_did_not_record_and_when() {
    let run = |run: Run| run.arg("2").arg("200000").env("ACLSHIM_RING_SIZE", "4K").env("ACLSHIM_RING_LIMIT", "4K");
    let output = same(hammer(), run).ok();
    let found = balanced(&output);
    assert!(found.not_recorded > 0 && found.told > 0, "two threads at full speed on rings of 64 slots: {found:?}");
    assert!(found.told <= found.not_recorded, "{found:?}");
    let entries = entries(&output);
    let notes: Vec<u64> =
        entries.iter().filter_map(|of| if let Entry::Lost { calls, .. } = of { Some(*calls) } else { None }).collect();
    let full: Vec<_> = output.events("lost").into_iter().filter(|line| line["reason"] == "the ring was full").collect();
    assert_eq!(
        full.iter().map(|line| line["calls"].as_u64().unwrap()).collect::<Vec<_>>().iter().sum::<u64>(),
        found.told
    );
    assert_eq!(full.len(), notes.len());
    for line in &full {
        assert!(line["from_ns"].as_u64() <= line["to_ns"].as_u64() && line["thread"].as_u64() > Some(0), "{line}");
    }
    // When: between the call before and the call behind.
    let mut last = 0;
    let mut lost = None;
    for entry in &entries {
        match entry {
            Entry::Thread { .. } => (last, lost) = (0, None),
            Entry::Lost { from, to, .. } => lost = Some((*from, *to)),
            Entry::Call(call) => {
                if let Some((from, to)) = lost.take() {
                    assert!(from <= to && to <= call.begin, "{from} {to} {}", call.begin);
                }
                last = last.max(call.begin);
            }
            _ => {}
        }
    }
    done(output);
}

#[test]
fn a_ring_that_passes_from_thread_to_thread_gives_each_its_own_records() {
    for mode in MODES {
        let run = |run: Run| {
            let run = run.arg("40").arg("1000").arg("relay");
            run.env("ACLSHIM_RING_SIZE", "4K").env("ACLSHIM_RING_LIMIT", "4K").env("ACLSHIM_RECORD", mode)
        };
        let output = same(hammer(), run).ok();
        // Whose a record is, is compared for each of them.
        let found = if mode == "flight" { content(&output) } else { balanced(&output) };
        assert_eq!(found.open, 0);
        done(output);
    }
}

#[test]
fn every_living_thread_has_a_ring_however_many_there_are() {
    let output = same(hammer(), |run: Run| run.arg("60").arg("40")).ok();
    assert_eq!(balanced(&output).not_recorded, 0);
    done(output);
}

#[test]
fn calls_that_were_lost_are_said_to_be_those_of_the_thread_that_made_them() {
    // More threads than there are rings of their own for each.
    let run = |run: Run| {
        run.arg("40").arg("2000").arg("relay").env("ACLSHIM_RING_SIZE", "4K").env("ACLSHIM_RING_LIMIT", "4K")
    };
    let output = same(hammer(), run).ok();
    let (truth, found) = (Truth::of(&output.scratch), balanced(&output));
    let mut said: BTreeMap<u64, u64> = BTreeMap::new();
    for line in output.events("lost").iter().filter(|line| line["reason"] == "the ring was full") {
        *said.entry(line["thread"].as_u64().unwrap()).or_default() += line["calls"].as_u64().unwrap();
    }
    for lane in 0..40 {
        let of = truth.lane(lane);
        let lost = of.begun - found.lanes.get(&lane).map_or(0, |seen| seen.0);
        let said = said.get(&of.thread).copied().unwrap_or(0);
        assert!(said <= lost, "lane {lane} has lost {lost}, and {said} are said");
    }
    done(output);
}

#[test]
fn lossless_loses_nothing_where_a_drain_keeps_writing() {
    let run = |run: Run| run.arg("4").arg("50000").env("ACLSHIM_RECORD", "lossless");
    let output = same(hammer(), run).ok();
    let found = balanced(&output);
    assert_eq!([found.not_recorded, found.told], [lost_in_vain(&output); 2], "{found:?}");
    done(output);
}

#[test]
fn lossless_without_a_drain_lets_the_host_go_on_and_counts_what_is_lost() {
    // A ring of 64 slots holds about 30 of these calls; each of the others waits, and goes on.
    let run = |run: Run| {
        let run = run.arg("1").arg("38").env("ACLSHIM_RING_SIZE", "4K").env("ACLSHIM_RING_LIMIT", "4K");
        run.env("ACLSHIM_RECORD", "lossless").env("ACLSHIM_DRAIN", "off")
    };
    let found = balanced(&same(hammer(), run).ok());
    assert!((1..38).contains(&found.not_recorded), "{found:?}");
}
