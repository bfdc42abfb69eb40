//! The calls of one ring that are not done with: the only place where open calls are remembered.
//!
//! A call stays here until it has ended, is judged and was delivered to the visitor, in the order of the ring. The last
//! few stay longer, because notes about a call may come behind those of a signal handler; and so does a call that was
//! delivered without an end, because its end may still come.

use crate::findings::judge::JudgedCall;
use crate::findings::quick_check::LAST;
use aclshim_facts::Function;
use aclshim_trace::record::annotation::Annotation;
use aclshim_trace::record::{Call, End, FRAMES, RecordedFinding};
use std::collections::VecDeque;

/// Number of notes about one call that are remembered: more than the host ever makes.
const MOST_NOTES: usize = 1024;
/// Number of calls that wait behind one that seems to have been left by a jump.
const MOST_BEHIND_LEFT: usize = 64;
/// How much is remembered of one ring.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Number of calls that wait behind one that has not ended.
    pub waiting: usize,
    /// Number of calls that were delivered without an end, and whose ends are still recognised.
    pub left: usize,
    /// Number of annotations that wait behind a call; those beyond it come before the call.
    pub annotations: usize,
}

/// A call, and what is known of it so far.
pub(super) struct TrackedCall {
    /// `None` for a function of another release, which cannot be decoded.
    pub function: Option<Function>,
    pub call: Call,
    /// What the host has noted about it, until it is judged.
    notes: Vec<RecordedFinding>,
    pub frames: [u64; FRAMES],
    /// The rules that it breaks, once it is judged.
    pub rules: Option<u128>,
    /// Whether a record of its end is awaited: it has none yet, or the duration did not fit.
    awaits_end: bool,
    /// Whether it seems to have been left by a jump or an exception, or its thread is gone.
    is_left: bool,
    /// Whether the visitor was shown that it returned, although the record of its end is awaited.
    pub is_returned: bool,
    /// What the program said of itself behind it.
    pub annotations: Vec<(u64, Annotation)>,
}

impl TrackedCall {
    /// A call whose record was just read.
    pub fn new(function: Option<Function>, call: Call) -> Self {
        let awaits_end = call.end.is_none_or(|end| end.duration >= u64::from(u32::MAX));
        Self {
            function,
            call,
            notes: Vec::new(),
            frames: [0; FRAMES],
            rules: None,
            awaits_end,
            is_left: false,
            is_returned: false,
            annotations: Vec::new(),
        }
    }

    /// Whether a record of its end is awaited.
    pub fn awaits_end(&self) -> bool {
        self.awaits_end
    }

    /// Whether it has no end and never will.
    pub fn is_left(&self) -> bool {
        self.is_left && self.call.end.is_none()
    }

    /// Whether it counts as under way.
    pub fn is_in_flight(&self) -> bool {
        self.awaits_end && !self.is_left
    }

    /// The call as the rulebook takes it; `None` for a function that is not known.
    pub fn judged(&self) -> Option<JudgedCall<'_>> {
        Some(JudgedCall { function: self.function?, call: &self.call, frames: &self.frames })
    }

    /// The notes that came before the call is judged.
    pub fn take_notes(&mut self) -> Vec<RecordedFinding> {
        std::mem::take(&mut self.notes)
    }

    /// Adds a note. Returns `true` if the call is judged already and the note says something new: it must be reported now.
    pub fn note(&mut self, finding: RecordedFinding) -> bool {
        // A number beyond the bits of a record makes no sense.
        let Some(bit) = 1u128.checked_shl(finding.rule.into()) else { return false };
        match &mut self.rules {
            Some(rules) => {
                let is_new = *rules & bit == 0;
                *rules |= bit;
                is_new
            }
            None => {
                if self.notes.len() < MOST_NOTES {
                    self.notes.push(finding);
                }
                false
            }
        }
    }
}

/// The calls of one ring: first those that were delivered, then those that were not.
#[derive(Default)]
pub(super) struct TrackedCalls {
    calls: VecDeque<TrackedCall>,
    delivered: usize,
    /// Number of calls under way, not counting those that were left.
    in_flight: usize,
}

impl TrackedCalls {
    /// Adds the newest call, which was not delivered yet.
    pub fn push(&mut self, call: TrackedCall) {
        self.in_flight += usize::from(call.is_in_flight());
        // First, so that few take the least memory.
        if let Some(at) = self.calls.len().checked_sub(LAST) {
            self.forget(at);
        }
        self.calls.push_back(call);
    }

    /// Adds a call that needed no tracking, but that a note may be about.
    pub fn push_delivered(&mut self, function: Function, call: Call) {
        if self.delivered == self.calls.len() {
            self.delivered += 1;
            self.push(TrackedCall { rules: Some(0), ..TrackedCall::new(Some(function), call) });
        }
    }

    /// How many are remembered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// The newest call, if it was not delivered yet.
    pub fn last_waiting(&mut self) -> Option<&mut TrackedCall> {
        if self.is_waiting() { self.calls.back_mut() } else { None }
    }

    /// Whether there are calls that were not delivered.
    pub fn is_waiting(&self) -> bool {
        self.delivered < self.calls.len()
    }

    /// The call with this number.
    pub fn find(&mut self, number: u64) -> Option<&mut TrackedCall> {
        let at = self.calls.binary_search_by_key(&number, |tracked| tracked.call.number).ok()?;
        self.calls.get_mut(at)
    }

    /// Ends a call whose end is awaited; hands it to `ended`, and whether it counted as under way.
    pub fn end(&mut self, number: u64, end: End, ended: impl FnOnce(&TrackedCall, bool)) {
        let Ok(at) = self.calls.binary_search_by_key(&number, |tracked| tracked.call.number) else { return };
        let tracked = &mut self.calls[at];
        if !tracked.awaits_end {
            return;
        }
        let was_in_flight = tracked.is_in_flight();
        tracked.call.end = Some(end);
        tracked.awaits_end = false;
        ended(tracked, was_in_flight);
        self.in_flight -= usize::from(was_in_flight);
        self.forget_old(at);
    }

    /// Marks all calls under way as left: an outermost call follows, or another thread has the ring. Each is handed to
    /// `left`.
    #[inline]
    pub fn leave(&mut self, left: impl FnMut(&TrackedCall)) {
        if self.in_flight > 0 {
            self.leave_all(left);
        }
    }

    #[inline(never)]
    fn leave_all(&mut self, mut left: impl FnMut(&TrackedCall)) {
        for tracked in self.calls.iter_mut().rev() {
            if self.in_flight == 0 {
                return;
            }
            if tracked.is_in_flight() {
                tracked.is_left = true;
                self.in_flight -= 1;
                left(tracked);
            }
        }
    }

    /// Takes what the program said behind the newest call, or gives it back if there is no call that it has to wait for.
    pub fn annotate(&mut self, ticks: u64, annotation: Annotation, most: usize) -> Option<Annotation> {
        match self.last_waiting() {
            Some(last) if last.annotations.len() < most => last.annotations.push((ticks, annotation)),
            _ => return Some(annotation),
        }
        None
    }

    /// The next call to deliver, if nothing more is to be learned of it, or more than `most` wait already. It counts as
    /// delivered once [`delivered`](Self::delivered) is called.
    pub fn next_complete(&mut self, most: usize) -> Option<&mut TrackedCall> {
        let waiting = self.calls.len() - self.delivered;
        let next = self.calls.get_mut(self.delivered)?;
        let most = if next.is_left { MOST_BEHIND_LEFT.min(most) } else { most };
        (waiting > most || (next.rules.is_some() && !next.awaits_end)).then_some(next)
    }

    /// The next call to deliver, whatever may follow about it.
    pub fn next_waiting(&mut self) -> Option<&mut TrackedCall> {
        self.calls.get_mut(self.delivered)
    }

    /// The call that was last returned by one of the two is delivered. If more than `most_left` are remembered without an end, returns
    /// one of them, whose end will not be recognised: one that was left, or a nested one, before one that may be under way.
    pub fn delivered(&mut self, most_left: usize) -> Option<TrackedCall> {
        self.delivered += 1;
        self.forget_old(self.delivered - 1);
        if self.delivered <= most_left + LAST {
            return None;
        }
        let is_first_choice = |tracked: &TrackedCall| tracked.is_left || tracked.call.is_nested;
        let at = self.calls.iter().take(self.delivered).position(is_first_choice).unwrap_or(0);
        let dropped = self.calls.remove(at)?;
        self.delivered -= 1;
        self.in_flight -= usize::from(dropped.is_in_flight());
        Some(dropped)
    }

    /// Forgets the call at this index, unless it is one of the last few or its end may still come.
    fn forget_old(&mut self, at: usize) {
        if at + LAST < self.calls.len() {
            self.forget(at);
        }
    }

    /// Forgets the call at this index, unless its end may still come.
    fn forget(&mut self, at: usize) {
        if at < self.delivered && !self.calls[at].awaits_end {
            self.calls.remove(at);
            self.delivered -= 1;
            if self.calls.len() <= LAST && self.calls.capacity() > 16 * LAST {
                self.calls.shrink_to_fit();
            }
        }
    }
}
