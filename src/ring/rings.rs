//! The rings of this process: which there are, and which of them a thread takes.
//!
//! A thread that copies for the first time takes the ring of one that is gone, or adds one. It asks about a bounded number
//! of threads, from a cursor that goes around: the cost of an attach does not depend on the number of threads. So a ring that could
//! be used again may be missed, and one more is added; the cursor reaches the other with a later attach.
//! All of it lies on pages that a fork child finds wiped: see [`crate::ring::process`].

use crate::guest::thread::is_alive;
use crate::ring::inherited;
use crate::settings::settings;
use aclshim_facts::settings::Record;
use aclshim_trace::reader::Ring;
use aclshim_trace::record::slot::Slot;
use aclshim_trace::record::{ATTRIBUTES, batch_slots};
use aclshim_trace::ring::file::{OwnRingFile, populate};
use aclshim_trace::ring::layout::{CHANGING, CONTROL, Control, RINGS};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Number of rings that an attach scans.
const SCANNED: u32 = 8;
/// How many rings are added at once, at most.
const MANY: u32 = 32;
/// When only this many of them are left, more are added.
const LOW: u32 = 12;
/// While this many rings of gone threads are more than half full, as far as that shows in those that an attach
/// scans, no more are added: the drain is behind.
const CROWDED: u32 = 24;
/// A ring with room for fewer slots is full.
const FEW: u64 = 8;

/// The rings of a process. All zero: none.
#[repr(C)]
pub struct Rings {
    /// How many numbers were given out.
    numbered: AtomicU32,
    /// Slots of each, and how many of these have storage from the beginning.
    slots: AtomicU32,
    stored: AtomicU32,
    /// How many rings were looked at.
    cursor: AtomicU32,
    /// Rings that were added and not used yet: the first one's number in the upper half, how many in the lower.
    spares: [AtomicU64; 2],
    /// Whether a thread adds several rings, or failed to.
    is_adding: AtomicBool,
    /// Where each is mapped; NULL where it could not be made, or is just being made.
    controls: [AtomicPtr<Control>; RINGS as usize],
}

/// A ring that the calling thread has taken: its owner is [`CHANGING`].
pub struct TakenRing {
    /// The ring.
    pub ring: Ring<'static>,
    /// Number of its slots that have storage.
    pub stored: u32,
    /// The number of its next slot.
    pub next: u64,
}

impl Rings {
    /// A ring; `None` where it could not be made, or is just being made.
    pub fn get(&self, number: usize) -> Option<Ring<'static>> {
        let control = self.controls.get(number)?.load(Ordering::Acquire);
        // SAFETY: NULL, or a mapping that stays: a control page, and this many slots behind it.
        unsafe {
            let slots = control.byte_add(CONTROL).cast::<Slot>();
            let count = self.slots.load(Ordering::Relaxed) as usize;
            control.as_ref().map(|control| Ring { control, slots: core::slice::from_raw_parts(slots, count) })
        }
    }

    /// Takes a ring for thread `me`: one that was added and not used yet; that of a thread that is gone, with room for half
    /// of what it holds; a new one; or, where that cannot or should not be, one with any room.
    pub fn take(&self, me: u32, file: &OwnRingFile) -> Option<TakenRing> {
        if let Some((taken, left)) = self.take_spare() {
            // Ahead of time: those that come meanwhile find the rest.
            if left == LOW && self.scan(me).0.is_none() {
                self.add(file, Caller::HasOne);
            }
            return Some(taken);
        }
        let (found, scan) = self.scan(me);
        if let Some(taken) = found.and_then(|(ring, owner)| self.take_over(ring, owner)) {
            return Some(taken);
        }
        // A caller that is to wait rather than lose a call gets one more.
        let may_add = !scan.is_crowded || settings().record == Record::Lossless;
        let added = may_add.then(|| self.add(file, Caller::WantsOne)).flatten();
        added.or_else(|| scan.last_choice.and_then(|(ring, owner)| self.take_over(ring, owner)))
    }

    /// Looks at the next few rings: the first that can be taken, with its owner, and what else was seen up to there.
    fn scan(&self, me: u32) -> (Option<(Ring<'static>, u32)>, Scan) {
        let numbered = self.numbered.load(Ordering::Acquire);
        let scanned = SCANNED.min(numbered);
        let start = self.cursor.fetch_add(scanned, Ordering::Relaxed);
        let (mut last_choice, mut crowded) = (None, 0u32);
        let mut found = None;
        for nth in 0..scanned {
            let Some(ring) = self.get((start.wrapping_add(nth) % numbered) as usize) else { continue };
            let owner = ring.control.owner.load(Ordering::Relaxed);
            // This thread's own id: an earlier thread with that id is gone.
            if owner != 0 && (owner == CHANGING || owner != me && is_alive(owner)) {
                continue;
            }
            if owner == 0 || is_half_empty(&ring) {
                found = Some((ring, owner));
                break;
            }
            crowded += 1;
            if has_any_room(&ring) {
                last_choice = Some((ring, owner));
            }
        }
        // If the others are as these are. (One of them alone says little.)
        let is_crowded = crowded > 1 && u64::from(crowded) * u64::from(numbered) >= u64::from(CROWDED * scanned);
        (found, Scan { last_choice, is_crowded })
    }

    /// Takes the next ring that was added and not used yet; how many are left behind it.
    fn take_spare(&self) -> Option<(TakenRing, u32)> {
        let next = |spare: u64| (spare as u32 > 0).then(|| spare + (1 << 32) - 1);
        let spares = self.spares.iter();
        let spare = { spares }.find_map(|spare| spare.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next).ok())?;
        Some((self.take_over(self.get((spare >> 32) as usize)?, 0)?, spare as u32 - 1))
    }

    /// Takes a ring from an owner that is gone, or from none, unless another thread was faster.
    fn take_over(&self, ring: Ring<'static>, owner: u32) -> Option<TakenRing> {
        ring.control.owner.compare_exchange(owner, CHANGING, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        let at_first = self.stored.load(Ordering::Relaxed);
        if owner == 0 {
            return Some(TakenRing { ring, stored: at_first, next: 0 });
        }
        let Some(stored) = confirmed(&ring, at_first) else {
            ring.control.owner.store(owner, Ordering::Release);
            return None;
        };
        // What its thread has claimed last and never shown is as if it had not been claimed. Not more are claimed at once: a
        // call's slots, and those of the handlers that have interrupted it.
        let next = ring.end_near(ring.control.drained.load(Ordering::Acquire), 4 * most_slots());
        Some(TakenRing { ring, stored, next })
    }

    /// Adds rings, the more the more there are: a process with many threads will have more.
    #[inline(never)]
    fn add(&self, file: &OwnRingFile, caller: Caller) -> Option<TakenRing> {
        let numbered = self.numbered.load(Ordering::Relaxed);
        let many = (numbered / 8).clamp(1, MANY);
        // While another thread adds some, or after they could not be had: one.
        let place = self.spares.iter().find(|spare| spare.load(Ordering::Acquire) as u32 == 0);
        let place = place.filter(|_| many > 1 && !self.is_adding.swap(true, Ordering::AcqRel));
        if place.is_none() && caller == Caller::HasOne {
            return None;
        }
        let count = if place.is_some() { many } else { 1 };
        let next = |numbered: u32| (numbered < RINGS).then(|| numbered + count.min(RINGS - numbered));
        let first = self.numbered.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next).ok()?;
        let count = count.min(RINGS - first);
        let added = file.add_rings(settings().ring_dir.as_bytes(), first, count).ok();
        let made = added.as_ref().map_or(0, |added| added.count);
        if made < count {
            // These numbers are not used; the next thread tries again with them, if it can.
            let _ = self.numbered.compare_exchange(first + count, first + made, Ordering::AcqRel, Ordering::Relaxed);
        }
        let added = added?;
        let (at, bytes) = added.memory();
        inherited::remember(at, bytes);
        self.slots.store(file.size.capacity, Ordering::Relaxed);
        self.stored.store(file.size.stored, Ordering::Relaxed);
        let own = (caller == Caller::WantsOne).then(|| added.get(0)).flatten();
        if let Some((control, _)) = own {
            control.owner.store(CHANGING, Ordering::Relaxed);
        }
        for (nth, place) in (0..made).zip(self.controls.iter().skip(first as usize)) {
            let control = added.get(nth).map_or(ptr::null_mut(), |(control, _)| ptr::from_ref(control).cast_mut());
            // Stored last: who sees it sees the rest.
            place.store(control, Ordering::Release);
        }
        file.header.rings.fetch_max(first + made, Ordering::AcqRel);
        if let Some(place) = place {
            let used = u32::from(own.is_some());
            place.store(u64::from(first + used) << 32 | u64::from(made - used), Ordering::Release);
            self.is_adding.store(made < count, Ordering::Release);
        }
        own.map(|(control, slots)| TakenRing { ring: Ring { control, slots }, stored: file.size.stored, next: 0 })
    }
}

/// What was seen of rings that were not the first choice.
struct Scan {
    /// One of a gone thread with any room, and its owner.
    last_choice: Option<(Ring<'static>, u32)>,
    /// Whether the drain is behind.
    is_crowded: bool,
}

/// Whether the thread that adds rings takes one of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Caller {
    WantsOne,
    HasOne,
}

/// The most slots that a record takes.
fn most_slots() -> u64 {
    batch_slots(ATTRIBUTES, settings().batch_items).min(u64::from(settings().slots()) / 4)
}

/// Number of slots that its thread had claimed and the drain has not taken when it last crossed a quarter of the ring.
fn fill(ring: &Ring) -> u64 {
    let drained = ring.control.drained.load(Ordering::Acquire);
    ring.control.mark.load(Ordering::Relaxed).saturating_sub(drained)
}

/// Whether a ring whose thread is gone has room for half of what it holds, or a quarter: what came behind the mark is
/// less than that.
fn is_half_empty(ring: &Ring) -> bool {
    settings().record == Record::Flight || fill(ring) <= ring.stored() as u64 / 4
}

/// Whether a ring whose thread is gone has room for some slots.
fn has_any_room(ring: &Ring) -> bool {
    settings().record == Record::Flight || fill(ring) + FEW <= ring.stored() as u64 / 2
}

/// Number of slots of a ring that have storage, before another thread takes it; `None` if that is not certain. What the
/// ring itself says may have been overwritten. Changes errno.
fn confirmed(ring: &Ring<'static>, at_first: u32) -> Option<u32> {
    let stored = ring.stored();
    let more = ring.slots.get(at_first as usize..stored)?;
    // SAFETY: whole pages of a ring, which stays mapped.
    let populated = unsafe { populate(more.as_ptr().cast_mut().cast(), size_of_val(more)) };
    // Before Linux 5.14 it cannot be confirmed.
    (more.is_empty() || matches!(populated, Ok(()) | Err(libc::EINVAL))).then_some(stored as u32)
}
