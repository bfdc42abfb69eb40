//! ReadMode rings: of threads that run and of threads that are gone, to drain them or to look.

use crate::record::slot::{Head, Layout, Slot, State, Words};
use crate::record::{self, annotation};
use crate::ring::layout::{CHANGING, Control};
use crate::sync::{Ordering, spin_loop};

/// How a ring is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// To drain a living process: a call in flight is waited for, until a quarter of the ring is behind it.
    Drain,
    /// The same at its end: not where an outermost call has ended behind it.
    Flush,
    /// To drain what a dead process has left.
    Finish,
    /// Only to look; nothing is marked.
    Peek,
}

impl ReadMode {
    /// Whether what is not there yet may still come.
    fn is_of_the_living(self) -> bool {
        matches!(self, ReadMode::Drain | ReadMode::Flush)
    }
}

/// Consecutive slots: whole records.
#[derive(Debug, Default)]
pub struct SlotRun {
    /// The number of the first.
    pub first: u64,
    /// The slots.
    pub slots: Vec<Words>,
    /// Where to go on.
    pub next: u64,
    /// Slots that were overwritten before they could be read.
    pub overwritten: u64,
}

/// One ring of a process.
#[derive(Clone, Copy)]
pub struct Ring<'a> {
    /// Its state.
    pub control: &'a Control,
    /// Its slots; their number is a power of two.
    pub slots: &'a [Slot],
}

enum Lookup {
    /// A record, whole.
    Record(usize),
    /// Not what was looked for: not there yet, or never to come.
    Gap,
    /// Something newer stands there.
    Lapped,
}

impl Ring<'_> {
    /// The thread that writes here, and the number from which on it does; `None` while it changes.
    pub fn owner(&self) -> Option<(u32, u64)> {
        let owner = self.control.owner.load(Ordering::Acquire);
        let since = self.control.since.load(Ordering::Acquire);
        let is_same = self.control.owner.load(Ordering::Acquire) == owner;
        (is_same && owner != 0 && owner != CHANGING).then_some((owner, since))
    }

    fn slot(&self, number: u64) -> &Slot {
        &self.slots[number as usize & (self.slots.len() - 1)]
    }

    /// The number behind the newest slot, at least `from`.
    pub fn end(&self, from: u64) -> u64 {
        let newest = |slot: &Slot| match slot.head() {
            head if head.state() == State::Free => from,
            head => head.number(from).saturating_add(1).max(from),
        };
        // A number far from `from` is an old one that was never overwritten, and lies below it.
        self.slots.iter().map(newest).max().unwrap_or(from)
    }

    /// Whether a slot shows its number.
    pub fn is_shown(&self, number: u64) -> bool {
        let head = self.slot(number).head();
        head.state() != State::Free && head.number(number) == number
    }

    /// As [`end`](Self::end), where no more than `gap` slots in a row are missing: looks no further than it must. (A look at
    /// memory that was never written to would make it.)
    pub fn end_near(&self, from: u64, gap: u64) -> u64 {
        let mut end = from;
        for number in from..from + self.slots.len() as u64 {
            let head = self.slot(number).head();
            match (head.state() != State::Free).then(|| head.number(number)) {
                // Overwritten: so all of it was written to.
                Some(shown) if shown > number => return self.end(from),
                Some(shown) if shown == number => end = number + 1,
                _ if number >= end + gap => break,
                _ => {}
            }
        }
        end
    }

    /// Whether a call at this number has been left so far behind that it is not waited for.
    fn is_overtaken(&self, number: u64) -> bool {
        let slots = self.slots.len() as u64;
        // At more than one place: what stands at the first may be a gap itself.
        // (A plain look is enough: the fence of the next `Slot::read` orders it.)
        [slots / 4, slots / 4 + 1, slots / 2, slots / 4 * 3, slots - 1].into_iter().any(|ahead| {
            let probe = number.wrapping_add(ahead);
            let head = self.slot(probe).head();
            head.state() != State::Free && head.number(probe) >= probe
        })
    }

    /// Whether an outermost call that begins at this number has ended: then none before it is still under way, unless
    /// a signal handler made this one; and who was passed by in vain says so itself.
    fn has_outermost(&self, number: u64) -> bool {
        let head = self.slot(number).head();
        head.state() == State::Done
            && head.number(number) == number
            && matches!(head.layout(), Layout::Linear | Layout::Fill | Layout::Long)
            && !head.is_nested()
    }

    /// Whether a slot is a part of a record whose beginning was overwritten.
    fn is_rest(&self, number: u64) -> bool {
        let head = self.slot(number).head();
        head.state() == State::Done
            && head.number(number) == number
            && (matches!(head.layout(), Layout::More | Layout::Batch | Layout::Attributes | Layout::Items)
                || annotation::is_rest(head))
    }

    /// Whether the thread that claimed this number is gone: the ring is another's by now, and nobody will write it.
    fn is_forsaken(&self, number: u64) -> bool {
        let ahead = self.control.since.load(Ordering::Acquire).checked_sub(number);
        // Nobody can be further ahead of a slot that has not been overwritten. (A damaged ring must not keep us for ever.)
        ahead.is_some_and(|ahead| (1..=2 * self.slots.len() as u64).contains(&ahead))
    }

    /// The record at a number, appended to `out`.
    fn see(&self, number: u64, out: &mut Vec<Words>) -> Lookup {
        let is_there = |at: u64| loop {
            let slot = self.slot(at);
            // A slot that changes under the reader is looked at again: it changes a few times at most.
            let Some(words) = slot.read() else {
                spin_loop();
                continue;
            };
            let head = Head(words[0]);
            break match head.state() {
                State::Free => Err(Lookup::Gap),
                _ if head.number(at) == at => Ok(words),
                _ if head.number(at) > at => Err(Lookup::Lapped),
                _ => Err(Lookup::Gap),
            };
        };
        let first = match is_there(number) {
            Ok(words) => words,
            Err(seen) => return seen,
        };
        let head = Head(first[0]);
        match head.layout() {
            Layout::More | Layout::Batch | Layout::Attributes | Layout::Items => return Lookup::Gap,
            Layout::Note if annotation::is_rest(head) => return Lookup::Gap,
            Layout::Long | Layout::Note => {}
            Layout::Linear | Layout::Fill => {
                out.push(first);
                return Lookup::Record(1);
            }
        }
        let before = out.len();
        out.push(first);
        let mut count = record::slots(&first, None).min(self.slots.len());
        let mut at = 1;
        while at < count {
            match is_there(number.wrapping_add(at as u64)) {
                Ok(words) => out.push(words),
                // A batch has returned, and its items are just being written down, or were when the
                // process was killed. The call is there without them, as it was when its first slot was read.
                Err(Lookup::Gap) if at > 1 && head.state() != State::Done => {
                    out.push([Head::done(number.wrapping_add(at as u64), Layout::Items, 0).0, 0, 0, 0, 0, 0, 0, 0]);
                }
                Err(seen) => {
                    out.truncate(before);
                    return seen;
                }
            }
            if at == 1 {
                count = record::slots(&first, out.last()).min(self.slots.len());
            }
            at += 1;
        }
        Lookup::Record(count)
    }

    /// Where reading from number `from` on comes to an end, if it does: of the living it does not.
    pub fn reach(&self, from: u64, how: ReadMode) -> u64 {
        if how.is_of_the_living() { u64::MAX } else { self.end(from) }
    }

    /// Reads records from number `from` on, `most` slots or a few more.
    pub fn read(&self, from: u64, how: ReadMode, most: usize) -> SlotRun {
        self.read_to(self.reach(from, how), from, how, most)
    }

    /// The same as far as the ring [reaches](Self::reach): who reads in small pieces need not look for that each time.
    pub fn read_to(&self, end: u64, from: u64, how: ReadMode, most: usize) -> SlotRun {
        let left = usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX);
        let slots = Vec::with_capacity(most.min(self.slots.len()).min(left) + 64);
        let mut run = SlotRun { first: from, slots, next: from, overwritten: 0 };
        let mut gaps = 0;
        while run.slots.len() < most && run.next < end {
            // No more of them can be in a ring than it has slots: what stands there makes no sense.
            if gaps > self.slots.len() {
                if !how.is_of_the_living() {
                    run.next = end;
                }
                break;
            }
            let at = run.next;
            let start = run.slots.len();
            let mut seen = self.see(at, &mut run.slots);
            // Of the living nobody can tell a slot that was given up from one whose writer is held up by its signal
            // handlers, however many calls these make: it is waited for, and if the ring is full, that is counted.
            // (Given back too early, it would hold a newer record when that writer comes to store its own.)
            if how.is_of_the_living() && matches!(seen, Lookup::Gap) && !self.is_rest(at) {
                if !self.is_forsaken(at) {
                    break;
                }
                // Its thread may have written it after the first look, and ended then.
                seen = self.see(at, &mut run.slots);
            }
            match seen {
                Lookup::Record(count) => {
                    let head = Head(run.slots[start][0]);
                    if head.state() == State::InFlight && how != ReadMode::Peek {
                        let is_left = how == ReadMode::Flush && self.has_outermost(at.wrapping_add(count as u64));
                        let waits = how.is_of_the_living() && !is_left && !self.is_overtaken(at);
                        if waits || !self.slot(at).pass(head) {
                            run.slots.truncate(start);
                            if waits {
                                break;
                            }
                            continue; // it has ended meanwhile
                        }
                        run.slots[start][0] = head.passed().0;
                    }
                    run.next = run.next.saturating_add(count as u64);
                }
                // A run has no holes: the caller comes again.
                Lookup::Gap | Lookup::Lapped if start > 0 => break,
                Lookup::Gap => {
                    // Behind a lap it is the rest of a record whose beginning was overwritten. Elsewhere it stands for
                    // no call: whoever jumped away from it had not made its call yet, or has counted it.
                    run.overwritten += u64::from(run.overwritten > 0);
                    run.next = run.next.saturating_add(1);
                    gaps += 1;
                }
                Lookup::Lapped => {
                    let oldest = self.end(at).saturating_sub(self.slots.len() as u64).max(at.saturating_add(1));
                    run.overwritten = run.overwritten.saturating_add(oldest - at);
                    run.next = oldest;
                }
            }
            if run.slots.is_empty() {
                run.first = run.next;
            }
        }
        run
    }

    /// Gives the slots before number `next` back to the writer: nobody needs them any more.
    pub fn give_back(&self, next: u64) {
        self.control.drained.store(next, Ordering::Release);
    }
}
