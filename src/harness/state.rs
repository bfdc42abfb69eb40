//! The open scopes, and the calls that they see.

use crate::call::observer;
use crate::check::world;
use crate::guest::thread;
use crate::harness::aclshim_error::{self, *};
use aclshim_facts::selector::Selector;
use aclshim_golden::NamedObject;
use aclshim_trace::system::clock::monotonic_ns;
use core::cell::RefCell;
use core::ffi::c_char;
use core::sync::atomic::{AtomicI64, Ordering};
use std::collections::VecDeque;
use std::ffi::CString;

pub mod access;
pub mod entry;
pub mod expectation;
pub mod lock;
pub mod names;

use entry::{CallState, Entry};
use expectation::Expectation;
use names::Names;

/// The id of the next scope. A fork child goes on from its parent's: what was begun there is not known here.
static IDS: AtomicI64 = AtomicI64::new(1);

/// Whose calls a scope sees.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Those of the thread that has begun it.
    Thread,
    /// Those of all threads.
    Process,
}

impl Reach {
    /// Whether a scope with this reach that thread `owner` has begun sees the calls of `thread`.
    fn covers(self, owner: u64, thread: u64) -> bool {
        self == Reach::Process || owner == thread
    }
}

/// A scope.
pub struct Scope {
    pub id: i64,
    pub name: String,
    pub reach: Reach,
    /// The thread that has begun it, by our number and by the system's.
    pub thread: u64,
    pub system_thread: u32,
    /// The innermost scope of that thread when it began, or 0.
    pub parent: i64,
    pub begun_ns: u64,
    /// Calls from this one on.
    pub first: u64,
    /// Number of calls that no scope had seen when it began.
    unseen: u64,
    pub expectations: Vec<Expectation>,
    /// Number of expectations for which there was no memory.
    pub dropped_expectations: u64,
}

impl Scope {
    /// Whether anything is expected of it.
    pub fn has_expectations(&self) -> bool {
        !self.expectations.is_empty() || self.dropped_expectations > 0
    }

    /// Whether it cannot be ended any more: it is of one thread, which is gone. (Another one may have that thread's number.)
    fn is_orphan(&self) -> bool {
        let is_here = || self.system_thread == thread::id();
        self.reach == Reach::Thread
            && self.thread != thread::number()
            && (is_here() || !thread::is_alive(self.system_thread))
    }

    /// Whether it sees the calls of a thread.
    pub fn reaches(&self, thread: u64) -> bool {
        self.reach.covers(self.thread, thread)
    }

    /// How many calls it could not see.
    pub fn unseen(&self) -> u64 {
        let unseen = lock::unseen();
        unseen.saturating_sub(self.unseen)
    }
}

/// State of the harness: open scopes, and the calls that they see.
pub struct State {
    pub scopes: Vec<Scope>,
    /// The calls that some open scope sees, by their numbers.
    calls: VecDeque<Box<Entry>>,
    /// Numbers of the calls under way.
    open: Vec<u64>,
    /// Names that the program has given.
    pub names: Names,
    /// Static texts that were handed to C.
    texts: RefCell<Vec<(&'static str, CString)>>,
    /// Whether the first line of the results was written.
    pub has_first_line: bool,
    /// Product, form and release when calls were judged last, and the number of times that these have changed.
    known: ([usize; 3], u32),
}

impl State {
    /// No scope and no call.
    pub fn new() -> Self {
        Self {
            scopes: Vec::new(),
            calls: VecDeque::new(),
            open: Vec::new(),
            names: Names::default(),
            texts: RefCell::default(),
            has_first_line: false,
            known: (world::snapshot(), 1),
        }
    }

    /// Begins a scope.
    pub fn begin(&mut self, name: &str, reach: Reach) -> Result<&Scope, aclshim_error> {
        if !lock::has_room(0) {
            return Err(ACLSHIM_MEMORY);
        }
        let thread = thread::number();
        let parent = self.scopes.iter().rev().find(|scope| scope.thread == thread).map_or(0, |scope| scope.id);
        self.scopes.push(Scope {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            name: name.to_owned(),
            reach,
            thread,
            system_thread: thread::id(),
            parent,
            begun_ns: monotonic_ns(),
            first: self.calls.back().map_or(0, |last| last.number + 1),
            unseen: lock::unseen(),
            expectations: Vec::new(),
            dropped_expectations: 0,
        });
        observer::set_active(!self.scopes.is_empty());
        self.scopes.last().ok_or(ACLSHIM_MEMORY)
    }

    /// The scope, for a thread that may ask for it.
    pub fn scope(&mut self, id: i64) -> Result<&mut Scope, aclshim_error> {
        let scope = self.scopes.iter_mut().find(|scope| scope.id == id).ok_or(ACLSHIM_NO_SCOPE)?;
        if scope.reaches(thread::number()) { Ok(scope) } else { Err(ACLSHIM_THREAD) }
    }

    /// Removes a scope, to be judged.
    pub fn end(&mut self, id: i64) -> Result<Scope, aclshim_error> {
        self.scope(id)?;
        if self.scopes.iter().any(|scope| scope.parent == id) {
            return Err(ACLSHIM_ORDER);
        }
        let at = self.scopes.iter().position(|scope| scope.id == id).ok_or(ACLSHIM_NO_SCOPE)?;
        Ok(self.scopes.remove(at))
    }

    /// Removes a scope of a thread that has ended.
    pub fn take_orphan(&mut self) -> Option<Scope> {
        let at = self.scopes.iter().rposition(Scope::is_orphan)?;
        Some(self.scopes.remove(at))
    }

    /// Discards the calls from `first` on that no open scope sees any more, and releases the slow path with the last scope.
    pub fn discard_unseen(&mut self, first: u64) {
        let from = self.calls.partition_point(|entry| entry.number < first);
        let is_seen =
            |entry: &Entry| self.scopes.iter().any(|scope| scope.first <= entry.number && scope.reaches(entry.thread));
        let kept = self.calls.split_off(from).into_iter().filter(|entry| is_seen(entry));
        self.calls.extend(kept);
        let calls = &self.calls;
        self.open.retain(|number| calls.binary_search_by_key(number, |entry| entry.number).is_ok());
        observer::set_active(!self.scopes.is_empty());
    }

    /// Names something; an empty name takes the name back.
    pub fn name(&mut self, named: NamedObject, name: &str) {
        // A program that names and takes back for ever is not to fill the memory.
        if self.calls.is_empty() {
            self.names.forget(named);
        }
        self.names.give(named, name);
    }

    /// A call begins.
    pub fn push(&mut self, entry: Entry) {
        self.open.push(entry.number);
        self.calls.push_back(Box::new(entry));
    }

    /// The call with that number, if it is still of interest.
    pub fn entry(&mut self, number: u64) -> Option<&mut Entry> {
        let at = self.calls.binary_search_by_key(&number, |entry| entry.number).ok()?;
        self.calls.get_mut(at).map(|entry| &mut **entry)
    }

    /// A call has returned.
    pub fn close(&mut self, number: u64) {
        self.open.retain(|open| *open != number);
    }

    /// Those under way.
    pub fn open_calls(&self) -> impl Iterator<Item = &Entry> {
        self.open.iter().filter_map(|number| {
            let at = self.calls.binary_search_by_key(number, |entry| entry.number).ok()?;
            self.calls.get(at).map(|entry| &**entry)
        })
    }

    /// Marks the calls of a thread whose frames are gone as left; `is_gone` decides by the address of a frame.
    pub fn abandon(&mut self, thread: u64, is_gone: impl Fn(usize) -> bool) {
        self.abandon_where(|entry| entry.thread == thread && is_gone(entry.here));
    }

    /// Marks the calls of a thread that began after the call with that number as left.
    pub fn abandon_since(&mut self, thread: u64, number: u64) {
        self.abandon_where(|entry| entry.thread == thread && entry.number > number);
    }

    fn abandon_where(&mut self, is_gone: impl Fn(&Entry) -> bool) {
        let gone = |entry: &&Entry| is_gone(entry);
        let left: Vec<u64> = self.open_calls().filter(gone).map(|entry| entry.number).collect();
        for number in left {
            if let Some(entry) = self.entry(number) {
                entry.fate = CallState::Left;
            }
            self.close(number);
        }
    }

    /// Marks calls under way as left: those of threads that have ended, and those of this thread whose frames lie below
    /// `here`.
    pub fn abandon_left_calls(&mut self, here: usize) {
        self.names.forget_modules();
        let me = thread::number();
        // A frame of ours is smaller than that of any call.
        self.abandon(me, |other| other < here && thread::is_frame_gone(other, here));
        self.abandon_where(|entry| !thread::is_alive(entry.system_thread));
    }

    /// The calls that a scope sees, in order.
    pub fn seen(&self, scope: &Scope) -> impl Iterator<Item = &Entry> + Clone {
        let (first, reach, owner) = (scope.first, scope.reach, scope.thread);
        let from = self.calls.partition_point(|entry| entry.number < first);
        self.calls.range(from..).map(|entry| &**entry).filter(move |entry| reach.covers(owner, entry.thread))
    }

    /// The calls of a scope that a selector matches, each with its place.
    pub fn selected<'a>(
        &'a self,
        scope: &Scope,
        which: &'a Selector,
    ) -> impl Iterator<Item = (u64, &'a Entry)> + Clone {
        let is_selected = |entry: &Entry| entry.known(|known| which.matches(known, &self.names.at(entry.at)));
        (0..).zip(self.seen(scope)).filter(move |(_, entry)| is_selected(entry))
    }

    /// Judges the calls from number `first` on that were not judged with the present knowledge of the product.
    pub fn judge(&mut self, first: u64) {
        let (key, number) = &mut self.known;
        if core::mem::replace(key, world::snapshot()) != *key {
            *number += 1;
        }
        let from = self.calls.partition_point(|entry| entry.number < first);
        for entry in self.calls.range_mut(from..) {
            if !lock::has_room(0) {
                return lock::miss();
            }
            entry.judge(*number);
        }
    }

    /// A static text as a C string that stays valid.
    pub fn text(&self, text: &'static str) -> *const c_char {
        let mut texts = self.texts.borrow_mut();
        let known = texts.iter().position(|(known, _)| core::ptr::eq(*known, text));
        let at = known.unwrap_or_else(|| {
            texts.push((text, CString::new(text).unwrap_or_default()));
            texts.len() - 1
        });
        texts.get(at).map_or(c"".as_ptr(), |(_, text)| text.as_ptr())
    }
}
