//! Where prediction and simulated library are known to differ, and why.

use crate::resolve::Resolved;
use crate::scene::{Scene, WINDOW};
use aclshim_facts::call::Form;
use aclshim_facts::rule::Prediction;

/// A known difference.
pub struct Known {
    /// One word, for the counters.
    pub name: &'static str,
    /// Why it is so.
    pub reason: &'static str,
    /// Whether a call that they differ on is of this sort.
    is_it: fn(&Resolved, &Scene, Prediction, i32) -> bool,
}

/// All of them. A row that is never met fails the test.
pub static KNOWN: &[Known] = &[
    Known {
        name: "host-memory-that-is-not-there",
        reason: "nobody checks the length of host memory: what is not there is a fault of the program or 507052, what lies \
                 behind is read or written, and which of them comes is not a matter of the call; the prediction is unknown; \
                 where the items of a batch go out one by one, one behind it may then be refused",
        is_it: |resolved, scene, prediction, code| {
            let runs_out =
                |(address, size): &(usize, usize)| !WINDOW.contains(address) && *size > scene.reach(*address);
            let call = resolved.function.call(&resolved.words);
            let goes_on = matches!(call.form, Form::Batch(_)) && call.stream.is_some();
            prediction == Prediction::Unknown
                && (matches!(code, 0 | 507_052) || goes_on && matches!(code, 107_000 | 107_030 | 507_899))
                && ranges(resolved).iter().any(runs_out)
        },
    },
    Known {
        name: "device-memory-that-is-too-short-on-a-stream",
        reason: "a copy on a stream is handed to the copy engine: whether anybody looks at the length of device memory when the \
                 call is made is not public; the prediction is unknown, the simulated library answers 107000",
        is_it: |resolved, scene, prediction, code| {
            let runs_out = |(address, size): &(usize, usize)| WINDOW.contains(address) && *size > scene.reach(*address);
            let is_on_stream = resolved.function.call(&resolved.words).stream.is_some();
            prediction == Prediction::Unknown
                && code == 107_000
                && is_on_stream
                && ranges(resolved).iter().any(runs_out)
        },
    },
    Known {
        name: "source-of-a-buffered-copy-runs-out",
        reason: "with kind 5 the source is read into a buffer before anybody has looked at its length; who reads it, and what \
                 it says then, is not public; the prediction is unknown, the simulated library answers 507899",
        is_it: |resolved, scene, prediction, code| {
            let Form::Linear { src, count, kind, .. } = resolved.function.call(&resolved.words).form else {
                return false;
            };
            prediction == Prediction::Unknown
                && code == 507_899
                && kind.0 == 5
                && WINDOW.contains(&(src as usize))
                && count > scene.reach(src as usize)
        },
    },
];

/// The row that a disagreement belongs to.
pub fn known(resolved: &Resolved, scene: &Scene, prediction: Prediction, code: i32) -> Option<&'static str> {
    KNOWN.iter().find(|known| (known.is_it)(resolved, scene, prediction, code)).map(|known| known.name)
}

/// Every range that the call reads or writes: where it begins, and its length.
fn ranges(resolved: &Resolved) -> Vec<(usize, usize)> {
    let extent =
        |height: usize, pitch: usize, width| height.saturating_sub(1).saturating_mul(pitch).saturating_add(width);
    match resolved.function.call(&resolved.words).form {
        Form::Linear { dst, src, count, .. } => vec![(dst as usize, count), (src as usize, count)],
        Form::Pitched { dst, dst_pitch, src, src_pitch, width, height, .. } => {
            vec![(dst as usize, extent(height, dst_pitch, width)), (src as usize, extent(height, src_pitch, width))]
        }
        Form::FromSymbol { dst, count, .. } | Form::Fill { dst, count, .. } => vec![(dst as usize, count)],
        Form::FillWords { dst, words, .. } => vec![(dst as usize, words.wrapping_mul(4))],
        Form::ToSymbol { src, count, .. } => vec![(src as usize, count)],
        Form::Batch(_) => {
            let Some(lists) = &resolved.lists else { return Vec::new() };
            let of = |list: &[u64]| -> Vec<_> {
                list.iter().zip(&lists.sizes).map(|(start, size)| (*start as usize, *size as usize)).collect()
            };
            [of(&lists.dsts), of(&lists.srcs)].concat()
        }
        _ => Vec::new(),
    }
}

/// Rules that refuse calls, and with which code, but cannot on the simulated library: with the reason. One that does fails
/// the test.
pub static NEVER_HERE: &[(&str, i32, &str)] = &[];
