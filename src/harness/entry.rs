//! A call that a scope sees.

use super::aclshim_direction::*;
use super::aclshim_flag::*;
use super::aclshim_state::*;
use super::{aclshim_call, aclshim_item};
use crate::check::judgement::{self, ReportedFinding};
use crate::check::world;
use crate::loader::names::NAMES;
use crate::record::frame::Words;
use aclshim_core::arrays::Copied;
use aclshim_facts::Function;
use aclshim_facts::abi::aclrtMemcpyBatchAttr;
use aclshim_facts::call::{Call, Ends, Form};
use aclshim_facts::direction::Direction;
use aclshim_facts::message::noted_message;
use aclshim_facts::rule::{self, Arrays, Rule, Severity, Subject};
use aclshim_facts::rules::{RULES, judge_each};
use aclshim_facts::selector::Known;
use aclshim_golden as golden;
use aclshim_trace::system::clock::monotonic_ns;
use core::ffi::c_void;
use core::ptr;
use std::ffi::CString;

/// What became of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It has returned.
    Done,
    /// It has not.
    UnderWay,
    /// It never will.
    Left,
}

/// A call.
pub struct Entry {
    /// Its ticket.
    pub number: u64,
    pub function: Function,
    words: Words,
    pub site: u64,
    /// Where the stack of its frame ends.
    pub here: usize,
    /// When it began.
    pub at: u64,
    /// The thread, by our number and by the system's.
    pub thread: u64,
    pub system_thread: u32,
    pub fate: Fate,
    pub code: i32,
    pub flags: i32,
    pub duration_ns: u64,
    batch: Option<Box<Contents>>,
    pub findings: Vec<Found>,
    /// What was known when it was judged, by its number; 0 if it never was.
    judged: u32,
}

/// What the arrays of a batch held.
struct Contents {
    items: Vec<aclshim_item>,
    attributes: Vec<golden::Attribute>,
    ends: Vec<Ends>,
    bytes: u64,
    direction: Direction,
}

/// Something that is wrong with a call.
pub struct Found {
    pub rule: &'static Rule,
    pub severity: Severity,
    pub argument: u8,
    pub code: i32,
    pub index: Option<u64>,
    pub values: [u64; 2],
    pub message: CString,
}

impl Entry {
    /// A call that begins.
    pub fn new(number: u64, function: Function, words: &Words, site: usize, here: usize, thread: [u64; 2]) -> Self {
        Self {
            number,
            function,
            words: *words,
            site: site as u64,
            here,
            at: monotonic_ns(),
            thread: thread[0],
            system_thread: thread[1] as u32,
            fate: Fate::UnderWay,
            code: 0,
            flags: 0,
            duration_ns: 0,
            batch: None,
            findings: Vec::new(),
            judged: 0,
        }
    }

    /// Its arguments. What they point to must not be looked at any more.
    pub fn call(&self) -> Call {
        self.function.call(&self.words)
    }

    /// Its arguments with their names and types.
    pub fn arguments(&self) -> impl Iterator<Item = (&'static aclshim_facts::functions::Argument, u64)> {
        self.function.row().arguments.iter().zip(self.words)
    }

    /// Keeps what the arrays of a batch hold, which the vendor has accepted.
    pub fn keep(&mut self, copied: &Copied<'_>) {
        let items = || (0..copied.dsts.len()).filter_map(|at| copied.item(at));
        let item = |item: aclshim_core::arrays::Item| aclshim_item {
            dst: item.dst,
            src: item.src,
            dst_max: item.dst_max as u64,
            size: item.size as u64,
        };
        let attribute = |(attr, first): (&aclrtMemcpyBatchAttr, &usize)| golden::Attribute {
            first: *first as u64,
            dst: (attr.dstLoc.type_, attr.dstLoc.id),
            src: (attr.srcLoc.type_, attr.srcLoc.id),
        };
        self.batch = Some(Box::new(Contents {
            items: items().map(item).collect(),
            attributes: copied.attrs.iter().zip(copied.attr_indexes).map(attribute).collect(),
            ends: items().map(|item| Ends { dst: item.dst, src: item.src }).collect(),
            bytes: copied.sizes.iter().fold(0, |sum, size| sum.saturating_add(*size as u64)),
            direction: copied.direction(),
        }));
    }

    /// The items of a batch, where it was accepted.
    pub fn items(&self) -> &[aclshim_item] {
        self.batch.as_ref().map_or(&[], |batch| &batch.items)
    }

    /// How many bytes it moves, if that is known.
    pub fn bytes(&self) -> Option<u64> {
        match (self.call().amount(), &self.batch) {
            (aclshim_facts::call::Amount::Bytes(bytes), _) => Some(bytes),
            (_, batch) => batch.as_ref().map(|batch| batch.bytes),
        }
    }

    /// How many bytes it has moved.
    pub fn moved(&self) -> u64 {
        let is_done = self.fate == Fate::Done && self.code == 0;
        if is_done { self.bytes().unwrap_or(0) } else { 0 }
    }

    fn direction(&self, call: &Call) -> Direction {
        match &self.batch {
            Some(batch) => batch.direction,
            None => call.kind().map_or(Direction::Unknown, |kind| Direction::of_kind(kind.0)),
        }
    }

    /// Hands what is known of the call to `asked`, which selects calls.
    pub fn known<T>(&self, asked: impl FnOnce(&Known<'_>) -> T) -> T {
        let call = self.call();
        let one = call.ends();
        let ends = self.batch.as_ref().map_or(one.as_slice(), |batch| &batch.ends);
        asked(&Known {
            bytes: self.bytes(),
            direction: self.direction(&call),
            code: (self.fate == Fate::Done).then_some(self.code),
            ends,
            ..Known::new(self.function, &call, self.site)
        })
    }

    /// As C sees it, at a place in a scope.
    pub fn shown(&self, order: u64) -> aclshim_call {
        let call = self.call();
        let mut shown = aclshim_call {
            function: NAMES[self.function as usize].as_ptr(),
            dst: ptr::null(),
            src: ptr::null(),
            dst_max: 0,
            count: 0,
            bytes: self.bytes().unwrap_or(0),
            items: 0,
            width: 0,
            height: 0,
            dst_pitch: 0,
            src_pitch: 0,
            kind: call.kind().map_or(-1, |kind| kind.0),
            direction: match self.direction(&call) {
                Direction::HostToHost => ACLSHIM_HOST_TO_HOST,
                Direction::HostToDevice => ACLSHIM_HOST_TO_DEVICE,
                Direction::DeviceToHost => ACLSHIM_DEVICE_TO_HOST,
                Direction::DeviceToDevice => ACLSHIM_DEVICE_TO_DEVICE,
                Direction::Unknown => ACLSHIM_UNKNOWN,
            } as i32,
            stream: call.stream.unwrap_or(ptr::null_mut()),
            has_stream: i32::from(call.stream.is_some()),
            code: self.code,
            state: match self.fate {
                Fate::Done => ACLSHIM_DONE,
                Fate::UnderWay => ACLSHIM_UNDER_WAY,
                Fate::Left => ACLSHIM_LEFT,
            } as i32,
            flags: self.flags,
            duration_ns: self.duration_ns,
            thread: self.system_thread.into(),
            order,
            site: self.site as *const c_void,
            findings: self.findings.len() as u64,
        };
        if let Some(Ends { dst, src }) = call.ends() {
            (shown.dst, shown.src) = (dst, src);
        }
        match call.form {
            Form::Linear { dst_max, count, .. } | Form::FromSymbol { dst_max, count, .. } => {
                (shown.dst_max, shown.count) = (dst_max as u64, count as u64);
            }
            Form::Indirect { dst, dst_max, src, count, .. } => {
                (shown.dst, shown.src) = (dst.cast(), src.cast());
                (shown.dst_max, shown.count) = (dst_max as u64, count as u64);
            }
            Form::Fill { dst_max, count, .. } | Form::FillWords { dst_max, words: count, .. } => {
                (shown.dst_max, shown.count) = (dst_max as u64, count as u64);
            }
            Form::ToSymbol { count, .. } | Form::SetDesc { count, .. } => shown.count = count as u64,
            Form::Pitched { dst_pitch, src_pitch, width, height, .. } => {
                (shown.dst_pitch, shown.src_pitch) = (dst_pitch as u64, src_pitch as u64);
                (shown.width, shown.height) = (width as u64, height as u64);
            }
            Form::Batch(batch) => shown.items = batch.items as u64,
            Form::Described { desc, .. } => shown.dst = desc,
            Form::DescSize { .. } => {}
        }
        shown
    }

    /// As a golden run holds it.
    pub fn golden(&self) -> golden::Call {
        let item = |item: &aclshim_item| golden::Item {
            dst: item.dst as u64,
            dst_max: item.dst_max,
            src: item.src as u64,
            size: item.size,
        };
        let marks = [(ACLSHIM_INJECTED, golden::MARK_INJECTED), (ACLSHIM_WAS_REFUSED, golden::MARK_REFUSED)];
        let marks = marks.into_iter().filter(|(flag, _)| self.flags & *flag as i32 != 0);
        golden::Call {
            thread: self.thread,
            at: self.at,
            function: self.function,
            arguments: self.words,
            end: match self.fate {
                Fate::Done => golden::End::Returned(self.code),
                Fate::UnderWay => golden::End::UnderWay,
                Fate::Left => golden::End::Left,
            },
            marks: marks.fold(0, |all, (_, mark)| all | mark),
            attributes: self.batch.as_ref().map_or(Vec::new(), |batch| batch.attributes.clone()),
            items: self.items().iter().map(item).collect(),
        }
    }

    /// Takes in what was found wrong with a batch while its arrays could be read.
    pub fn find(&mut self, told: &[ReportedFinding]) {
        for told in told {
            let Some(rule) = RULES.get(usize::from(told.rule)).filter(|rule| !self.is_found(rule)) else { continue };
            let finding = rule::Finding {
                argument: told.argument,
                index: told.index.map(|index| index as usize),
                severity: told.severity,
                code: told.code,
                fail_index: told.fail_index.map(|index| index as usize),
            };
            let found = self.found(rule, &finding, told.values);
            self.findings.push(found);
        }
    }

    fn is_found(&self, rule: &Rule) -> bool {
        self.findings.iter().any(|known| known.rule.number == rule.number)
    }

    fn subject(&self) -> Subject<'static> {
        let call = self.call();
        Subject { function: self.function, call, arrays: Arrays::default(), world: world::of(&call) }
    }

    fn found(&self, rule: &'static Rule, finding: &rule::Finding, values: [u64; 2]) -> Found {
        let is_vendors = self.flags & (ACLSHIM_INJECTED as i32 | ACLSHIM_WAS_REFUSED as i32) == 0;
        let returned = (self.fate == Fate::Done && is_vendors).then_some(self.code);
        let message = noted_message(rule, &self.subject(), finding, values, returned);
        Found {
            rule,
            severity: finding.severity,
            argument: finding.argument,
            code: finding.code,
            index: finding.index.map(|index| index as u64),
            values,
            message: CString::new(message).unwrap_or_default(),
        }
    }

    /// Judges it by its arguments alone, as a reader of its record would, if that was not done with what is known now:
    /// `known` is the number of that, more than 0. What is known of the product may have come after the call. (The arrays
    /// of a batch have been looked at, when they could be read.)
    pub fn judge(&mut self, known: u32) {
        if core::mem::replace(&mut self.judged, known) == known {
            return;
        }
        let subject = self.subject();
        let mut new = Vec::new();
        judge_each(&subject, &mut |rule, finding| {
            if !self.is_found(rule) && !judgement::is_off(rule, finding.severity) {
                new.push(self.found(rule, &finding, [0; 2]));
            }
        });
        self.findings.extend(new);
    }

    /// Whether an injection has struck it.
    pub fn is_struck(&self) -> bool {
        self.flags & ACLSHIM_INJECTED as i32 != 0
    }

    /// What else is to be said of it.
    pub fn set_flags(&mut self, is_refused: bool, is_struck: bool) {
        let flags = [(is_refused, ACLSHIM_WAS_REFUSED), (is_struck, ACLSHIM_INJECTED)];
        self.flags = flags.into_iter().filter(|(is_it, _)| *is_it).fold(0, |all, (_, flag)| all | flag as i32);
    }
}
