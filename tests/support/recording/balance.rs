//! What was recorded and what was counted, against what was called.

use super::content::{Content, compare};
use super::left::left;
use super::truth::Truth;
use crate::support::Output;

/// Reads a run back, compares all of it, and finds that `aclshim stat` says the same.
#[track_caller]
pub fn content(output: &Output) -> Content {
    let truth = Truth::of(&output.scratch);
    let remains = left(&output.scratch.join("out"), &output.scratch);
    let mut sum = Content { torn: remains.cut, ..Content::default() };
    for left in &remains.processes {
        sum += compare(left, &truth);
    }
    let stat = output.stat();
    let said = ["processes", "calls", "nested", "not_recorded", "overwritten", "evicted"].map(|key| stat.total(key));
    let found = [sum.processes, sum.calls, 0, sum.not_recorded, sum.overwritten, sum.evicted];
    assert_eq!(said, found, "as stat says, and as was read");
    assert!(stat.total("in_flight") <= sum.open, "{} in flight, {} open", stat.total("in_flight"), sum.open);
    sum
}

/// The balance of a run that ended in order: each call is recorded or counted, none twice, none is open.
#[track_caller]
pub fn balanced(output: &Output) -> Content {
    let found = balanced_at_any_end(output);
    assert_eq!([found.twice, found.torn], [0; 2], "{found:?}");
    found
}

/// The balance where the end did not wait for the drain: what it was just writing may be cut off, and still be in the ring.
#[track_caller]
pub fn balanced_at_any_end(output: &Output) -> Content {
    let (truth, found) = (Truth::of(&output.scratch), content(output));
    assert_eq!(truth.begun(), truth.ended(), "the host came to its end");
    assert_eq!(found.calls + found.not_recorded, truth.begun(), "{found:?}");
    assert_eq!([found.open, found.overwritten, found.missing], [0; 3], "{found:?}");
    found
}

/// The balance where older records were overwritten: all that is missing is counted.
#[track_caller]
pub fn balanced_in_flight_mode(output: &Output) -> Content {
    let (truth, found) = (Truth::of(&output.scratch), content(output));
    assert_eq!([found.open, found.twice, found.torn], [0; 3], "{found:?}");
    assert_eq!(found.overwritten, found.missing, "slots that are missing, {found:?}");
    for (lane, (_, last)) in &found.lanes {
        assert_eq!(last + 1, truth.lane(*lane).begun, "lane {lane}: the newest call is there");
    }
    found
}

/// The balance of a process that was killed amid the calls of this many threads.
#[track_caller]
pub fn balanced_to_the_last(output: &Output, threads: u64, mode: &str) -> Content {
    let (truth, found) = (Truth::of(&output.scratch), content(output));
    assert!(found.open <= threads, "{found:?}");
    if mode != "flight" {
        let sum = found.calls + found.not_recorded;
        // A call that came while another thread made the file is counted there with its thread's next one.
        let ended = truth.lanes().map(|lane| lane.ended).filter(|ended| *ended > 1).sum::<u64>();
        let begun = truth.begun();
        assert!((ended..=begun).contains(&sum), "{ended} <= {sum} <= {begun}, {found:?}");
        // Slots that were claimed for a call that did not begin any more, with a note of what was lost behind them.
        assert!(found.missing <= 2 * threads, "{found:?}");
    } else {
        // What each of them had just begun to write had taken the place of an older record already.
        let unsaid = found.missing.checked_sub(found.overwritten);
        assert!(unsaid.is_some_and(|slots| slots <= 7 * threads), "{found:?}");
    }
    found
}

/// How many calls a run in the mode `lossless` has lost, which is only where a call has waited for 100 ms in vain:
/// the machine gave the drain no turn for so long.
#[track_caller]
pub fn lost_in_vain(output: &Output) -> u64 {
    let lost = |line: serde_json::Value| {
        let [calls, from, to] = ["calls", "from_ns", "to_ns"].map(|key| line[key].as_u64().expect("a number"));
        // But for what the clocks differ, and for how little is known of their pace at first.
        assert!(to - from >= 97_000_000 * calls && line["reason"] == "the ring was full", "{line}");
        calls
    };
    output.events("lost").into_iter().map(lost).sum()
}
