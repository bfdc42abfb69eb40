//! One ring as its reader sees it, mapped or copied.

use crate::record::slot::{Head, Layout, Note, Slot, State, Words};
use crate::record::{self, annotation};
use crate::ring::layout::{CHANGING, Control};
use crate::sync::{Ordering, spin_loop};

/// How a ring is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// Drains a living process. A call in flight is waited for until a quarter of the ring is behind it.
    Drain,
    /// Drains a process that ends: as `Drain`, but a call in flight is passed by if an outermost call has ended behind it.
    Flush,
    /// Drains what a dead process has left.
    Finish,
    /// Looks without a change to the ring.
    Peek,
}

impl ReadMode {
    /// Whether a missing slot may still be written.
    fn is_live(self) -> bool {
        matches!(self, ReadMode::Drain | ReadMode::Flush)
    }
}

/// Consecutive slots that hold whole records.
#[derive(Debug, Default)]
pub struct SlotRun {
    /// Number of the first slot.
    pub first: u64,
    /// The slots.
    pub slots: Vec<Words>,
    /// Number of the slot with which to continue.
    pub next: u64,
    /// Number of slots that were overwritten before they were read.
    pub overwritten: u64,
}

impl SlotRun {
    /// Number of slots behind the last record that the writer has jumped over.
    pub fn jumped(&self) -> u64 {
        if self.slots.is_empty() { 0 } else { self.next - (self.first + self.slots.len() as u64) }
    }
}

/// One ring of a process.
#[derive(Clone, Copy)]
pub struct Ring<'a> {
    /// Its state.
    pub control: &'a Control,
    /// Its slots; their number is a power of two. Those without storage must not be read: that would allocate them.
    pub slots: &'a [Slot],
}

/// What is found at a slot number.
enum Lookup {
    /// A whole record of this many slots.
    Record(usize),
    /// No record with this number: not written yet, or never to be.
    Gap,
    /// A newer record.
    Lapped,
}

impl Ring<'_> {
    /// The owning thread and the number of its first slot; `None` while the owner changes.
    pub fn owner(&self) -> Option<(u32, u64)> {
        let owner = self.control.owner.load(Ordering::Acquire);
        let since = self.control.since.load(Ordering::Acquire);
        let is_same = self.control.owner.load(Ordering::Acquire) == owner;
        (is_same && owner != 0 && owner != CHANGING).then_some((owner, since))
    }

    fn slot(&self, number: u64) -> &Slot {
        &self.slots[number as usize & (self.slots.len() - 1)]
    }

    /// Number of slots that have storage.
    pub fn stored(&self) -> usize {
        match self.control.reserved.load(Ordering::Relaxed) as usize {
            0 => self.slots.len(),
            stored => stored.min(self.slots.len()),
        }
    }

    fn has_storage(&self, number: u64) -> bool {
        (number as usize & (self.slots.len() - 1)) < self.stored()
    }

    /// The first number of the lap behind that of `number`: see [`crate::ring::room`].
    fn next_lap(&self, number: u64) -> u64 {
        (number | (self.slots.len() as u64 - 1)).saturating_add(1)
    }

    /// The number with which the writer went on behind this slot, if that is not the next one.
    fn jump(&self, number: u64, slot: &Words) -> Option<u64> {
        let head = Head(slot[0]);
        let is_jump = head.layout() == Layout::Note && head.function() == Note::Skip as u16;
        // A damaged ring must not lead far away.
        let is_near = |to: &u64| (2..=self.slots.len() as u64).contains(&to.wrapping_sub(number));
        Some(slot[2]).filter(|to| is_jump && is_near(to))
    }

    /// The number behind the newest slot, at least `from`.
    pub fn end(&self, from: u64) -> u64 {
        newest(&self.slots[..self.stored()], from)
    }

    /// Whether the slot of this number is published.
    pub fn is_shown(&self, number: u64) -> bool {
        let head = self.slot(number).head();
        head.state() != State::Free && head.number(number) == number
    }

    /// As [`end`](Self::end), where no more than `gap` slots in a row are missing. Reads no further than it must: a load from
    /// a page that was never written to would allocate it.
    pub fn end_near(&self, from: u64, gap: u64) -> u64 {
        let (mut end, mut number) = (from, from);
        for _ in 0..self.slots.len() {
            if !self.has_storage(number) {
                break;
            }
            let head = self.slot(number).head();
            match (head.state() != State::Free).then(|| head.number(number)) {
                // Overwritten: the whole ring was written to.
                Some(shown) if shown > number => return self.end(from),
                Some(shown) if shown == number => {
                    let jump = self.slot(number).read().and_then(|slot| self.jump(number, &slot));
                    end = jump.unwrap_or(number + 1);
                    number = end;
                    continue;
                }
                _ if number >= end + gap => break,
                _ => {}
            }
            number += 1;
        }
        end
    }

    /// Whether the writer is so far ahead of a call in flight that it is not waited for.
    fn is_overtaken(&self, number: u64) -> bool {
        let slots = self.stored() as u64;
        let ahead = self.control.mark.load(Ordering::Relaxed).saturating_sub(number);
        let has_laps = slots < self.slots.len() as u64;
        if ahead > slots / 4 || has_laps && ahead > self.next_lap(number) - number {
            return true;
        }
        // Several probes, because one may hit a gap. (A relaxed load is enough: the fence of the next `Slot::read` orders it.)
        !has_laps
            && [slots / 4, slots / 4 + 1, slots / 2, slots / 4 * 3, slots - 1].into_iter().any(|ahead| {
                let probe = number.wrapping_add(ahead);
                let head = self.slot(probe).head();
                head.state() != State::Free && head.number(probe) >= probe
            })
    }

    /// Whether an outermost call that begins at this number has ended. Then no earlier call is in flight, unless a signal
    /// handler made this one; a call that is passed by for that reason writes its end as a record of its own.
    fn has_outermost(&self, number: u64) -> bool {
        let head = self.slot(number).head();
        head.state() == State::Done && head.number(number) == number && head.is_outermost_call()
    }

    /// Whether a slot is a part of a record whose beginning was overwritten.
    fn is_rest(&self, number: u64) -> bool {
        let head = self.slot(number).head();
        head.state() == State::Done
            && head.number(number) == number
            && (matches!(head.layout(), Layout::More | Layout::Batch | Layout::Attributes | Layout::Items)
                || annotation::is_rest(head))
    }

    /// Whether the thread that claimed this number is gone: the ring has another owner, and the slot is never written.
    fn is_forsaken(&self, number: u64) -> bool {
        let ahead = self.control.since.load(Ordering::Acquire).checked_sub(number);
        // No writer is further ahead of a slot that is not overwritten. (A damaged ring must not cause an endless loop.)
        ahead.is_some_and(|ahead| (1..=2 * self.slots.len() as u64).contains(&ahead))
    }

    /// Appends the record at `number` to `out`.
    fn see(&self, number: u64, out: &mut Vec<Words>) -> Lookup {
        let is_there = |at: u64| loop {
            let slot = self.slot(at);
            // A slot that changes during the copy is read again: it changes a few times at most.
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
            Layout::Linear | Layout::Fill | Layout::Tracked | Layout::Unknown => {
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
                // A batch has returned and its items are being written, or were when the process was killed. The
                // call is read without them, as it was when its first slot was read.
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

    /// Whether a drain of a living process may find anything at number `from`, where it continues. A few loads: most rings
    /// are empty most of the time.
    #[inline]
    pub fn has_more(&self, from: u64) -> bool {
        let is_shown = |head: Head| head.state() != State::Free && head.number(from) >= from;
        self.has_storage(from) && is_shown(self.slot(from).head()) || self.is_forsaken(from)
    }

    /// Number behind the last slot to read, from `from` on; no limit for a living process.
    pub fn reach(&self, from: u64, how: ReadMode) -> u64 {
        if how.is_live() { u64::MAX } else { self.end(from) }
    }

    /// Reads records from number `from` on, `most` slots or a few more.
    pub fn read(&self, from: u64, how: ReadMode, most: usize) -> SlotRun {
        self.read_to(self.reach(from, how), from, how, most)
    }

    /// As [`read`](Self::read), up to `end`, which [`reach`](Self::reach) returned: for a caller that reads in pieces.
    pub fn read_to(&self, end: u64, from: u64, how: ReadMode, most: usize) -> SlotRun {
        self.read_into(end, from, how, most, Vec::new())
    }

    /// As [`read_to`](Self::read_to), with the memory of `slots`, whatever is in it: for a caller that reads often.
    pub fn read_into(&self, end: u64, from: u64, how: ReadMode, most: usize, mut slots: Vec<Words>) -> SlotRun {
        slots.clear();
        let mut run = SlotRun { first: from, slots, next: from, overwritten: 0 };
        let mut gaps = 0;
        while run.slots.len() < most && run.next < end {
            // A ring has no more gaps than slots: this one is damaged.
            if gaps > self.slots.len() {
                if !how.is_live() {
                    run.next = end;
                }
                break;
            }
            let at = run.next;
            let start = run.slots.len();
            if !self.has_storage(at) {
                // Nothing was ever written there: the writer was ended before it could say where it goes on.
                if start > 0 || how.is_live() && !self.is_forsaken(at) {
                    break;
                }
                run.next = self.next_lap(at).min(end);
                run.first = run.next;
                continue;
            }
            let left = usize::try_from(end - at).unwrap_or(usize::MAX);
            let plain = self.plain_run(at, left.min(most - start), &mut run.slots);
            if plain > 0 {
                run.next += plain as u64;
                continue;
            }
            let mut seen = self.see(at, &mut run.slots);
            // In a living process a slot that was given up looks like one whose writer is delayed by its signal handlers,
            // however many calls these make. It is waited for, and calls that find the ring full are counted. (Given
            // back too early, it would hold a newer record when that writer stores its own.)
            if how.is_live() && matches!(seen, Lookup::Gap) && !self.is_rest(at) {
                if !self.is_forsaken(at) {
                    break;
                }
                // Its thread may have written it after the first lookup, and ended then.
                seen = self.see(at, &mut run.slots);
            }
            match seen {
                Lookup::Record(count) => {
                    let head = Head(run.slots[start][0]);
                    if head.state() == State::InFlight && how != ReadMode::Peek {
                        let is_left = how == ReadMode::Flush && self.has_outermost(at.wrapping_add(count as u64));
                        let waits = how.is_live() && !is_left && !self.is_overtaken(at);
                        if waits || !self.slot(at).pass(head) {
                            run.slots.truncate(start);
                            if waits {
                                break;
                            }
                            continue; // it has ended in the meantime
                        }
                        run.slots[start][0] = head.passed().0;
                    }
                    run.next = run.next.saturating_add(count as u64);
                    if let Some(to) = self.jump(at, &run.slots[start]) {
                        run.next = to;
                        break;
                    }
                }
                // A run has no holes: the next call continues here.
                Lookup::Gap | Lookup::Lapped if start > 0 => break,
                Lookup::Gap => {
                    // Behind overwritten slots it is the rest of a record whose beginning was overwritten. Elsewhere it is
                    // no call: code that jumped away from it had not made its call yet, or has counted it.
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

    /// Gives the slots before number `next` back to the writer.
    pub fn give_back(&self, next: u64) {
        self.control.drained.store(next, Ordering::Release);
    }
}

/// The number behind the newest of some slots, at least `from`.
pub(crate) fn newest(slots: &[Slot], from: u64) -> u64 {
    let end = |slot: &Slot| match slot.head() {
        head if head.state() == State::Free => from,
        head => head.number(from).saturating_add(1).max(from),
    };
    // A number far from `from` is an old one that was never overwritten, and lies below it.
    slots.iter().map(end).max().unwrap_or(from)
}
