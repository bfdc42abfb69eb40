//! Rings as the recording process makes and writes them.
//!
//! Each thread has a ring of 64-byte slots in the process's ring file. Slot number `n` lies at index `n mod slots`; numbers
//! never repeat, and a writer may jump over some ([`room`]). The thread and its signal handlers are the only writers of a ring, one drain is its only reader, and
//! commands may look at it at any time.
//!
//! # Memory order
//!
//! | step | by | operation | guarantee |
//! |---|---|---|---|
//! | claim | writer | one read-modify-write instruction on [`RingCursor::next`](cursor::RingCursor), without a lock prefix | a signal handler of the thread gets other numbers; other threads do not write the cursor |
//! | room | writer | [`Control::drained`](layout::Control) is loaded with Acquire; its sum with the number of slots is cached in `limit` | pairs with the drain's Release: the drain has read a slot before the writer stores to it again |
//! | clear | writer | the head is stored as 0 with Relaxed, then a Release fence | no reader sees a new word under the old head |
//! | fill | writer | words 1 to 7 are stored with Relaxed | |
//! | publish | writer | the head "in flight" is stored with Release | a reader that sees this head sees the words |
//! | end | writer | word 2 is stored with Relaxed, the head "done" with Release | a reader that sees "done" sees code and duration |
//! | end, raced | writer | the head is changed from "in flight" to "done" by compare-exchange (AcqRel) | exactly one of writer and drain succeeds |
//! | pass by | drain | the head is changed from "in flight" to "passed by" by compare-exchange (AcqRel) | the writer then ends the call by a record of its own |
//! | read | reader | head with Acquire, words with Relaxed, an Acquire fence, head with Relaxed | equal heads: the words belong together |
//! | read in bulk | drain | up to 64 plain records at once: heads and words, one fence, all heads again | a record whose head is equal then belongs together, and so do those before it |
//! | give back | drain | `drained` is stored with Release | see "room" |
//! | jump | writer | the cursor moves by one instruction that fails if a signal handler has claimed since; the note of the jump is published like a record | a reader waits at the note's slot until it is there |
//! | storage | writer | [`Control::reserved`](layout::Control) is stored before a record is published behind the old bound | a reader that sees the old bound stops there |
//! | wake | writer and drain | see [`doorbell`] | no wake-up is lost |
//! | hand over | new owner | `since` is stored with Release, and loaded by the drain with Acquire | all stores of the former owner are visible: what is not there never comes |
//!
//! "end" may be used instead of "end, raced" only while no slot behind the record is claimed: the drain passes a call by
//! only if later records are shown, so it cannot be about to pass this one by. In flight mode the writer may overwrite a
//! slot while it is read; the second look at the head detects that.
//!
//! After SIGKILL the file holds what was stored, in an order that these rules allow: a slot is free, in flight or done,
//! and never a mixture. A reader without a mapping ([`crate::reader::RingReader`]) copies a slot by `pread` until two
//! copies are equal, which stands for the two looks at the head. `tests/loom.rs` checks the steps in every order that the
//! memory model allows.

pub mod annotate;
pub mod cursor;
pub mod doorbell;
#[cfg(not(loom))]
pub mod file;
#[cfg(not(loom))]
pub mod growth;
pub mod layout;
pub mod room;
pub mod storage;
