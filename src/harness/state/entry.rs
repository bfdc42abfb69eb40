//! A call that a scope sees.

use crate::check::judgement::{JudgedFinding, Judgement};
use crate::check::{policy, world};
use crate::harness::aclshim_direction::*;
use crate::harness::aclshim_flag::*;
use crate::harness::aclshim_state::*;
use crate::harness::{aclshim_call, aclshim_item};
use crate::loader::names::NAMES;
use crate::record::frame::Words;
use aclshim_core::arrays::Copied;
use aclshim_facts::Function;
use aclshim_facts::abi::aclrtMemcpyBatchAttr;
use aclshim_facts::call::{Call, Ends, Form};
use aclshim_facts::direction::Direction;
use aclshim_facts::message::noted_message;
use aclshim_facts::rule::{self, Arrays, Rule, Severity, Subject};
use aclshim_facts::rules::judge_each;
use aclshim_facts::selector::Known;
use aclshim_golden as golden;
use aclshim_trace::system::clock::monotonic_ns;
use core::ffi::c_void;
use core::ptr;
use std::ffi::CString;

/// State of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// The call has returned.
    Done,
    /// The call has not returned yet.
    UnderWay,
    /// The call never returns: an exception, a longjmp or the end of its thread has left it.
    Left,
}

/// A call that an open scope sees.
pub struct Entry {
    /// Number of the call, in the order of begins.
    pub number: u64,
    pub function: Function,
    words: Words,
    pub site: u64,
    /// Where the stack of its frame ends.
    pub here: usize,
    /// Time when it began, CLOCK_MONOTONIC.
    pub at: u64,
    /// The thread, by our number and by its id.
    pub thread: u64,
    pub system_thread: u32,
    pub fate: CallState,
    pub code: i32,
    pub flags: i32,
    pub duration_ns: u64,
    batch: Option<Box<Contents>>,
    pub findings: Vec<EntryFinding>,
    /// Number of the state of knowledge that it was judged with; 0 if it was not judged yet.
    judged: u32,
}

/// Contents of the arrays of a batch.
struct Contents {
    items: Vec<aclshim_item>,
    attributes: Vec<golden::Attribute>,
    ends: Vec<Ends>,
    bytes: u64,
    direction: Direction,
}

/// A finding about a call, with its message.
pub struct EntryFinding {
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
            fate: CallState::UnderWay,
            code: 0,
            flags: 0,
            duration_ns: 0,
            batch: None,
            findings: Vec::new(),
            judged: 0,
        }
    }

    /// Its arguments. What they point to must not be read any more.
    pub fn call(&self) -> Call {
        self.function.call(&self.words)
    }

    /// Its arguments with their names and types.
    pub fn arguments(&self) -> impl Iterator<Item = (&'static aclshim_facts::functions::Argument, u64)> {
        self.function.row().arguments.iter().zip(self.words)
    }

    /// Copies the arrays of a batch that the vendor has accepted.
    pub fn copy_arrays(&mut self, copied: &Copied<'_>) {
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
        let is_done = self.fate == CallState::Done && self.code == 0;
        if is_done { self.bytes().unwrap_or(0) } else { 0 }
    }

    fn direction(&self, call: &Call) -> Direction {
        match &self.batch {
            Some(batch) => batch.direction,
            None => call.kind().map_or(Direction::Unknown, |kind| Direction::of_kind(kind.0)),
        }
    }

    /// Calls `asked`, which selects calls, with the properties of this call.
    pub fn known<T>(&self, asked: impl FnOnce(&Known<'_>) -> T) -> T {
        let call = self.call();
        let one = call.ends();
        let ends = self.batch.as_ref().map_or(one.as_slice(), |batch| &batch.ends);
        asked(&Known {
            bytes: self.bytes(),
            direction: self.direction(&call),
            code: (self.fate == CallState::Done).then_some(self.code),
            ends,
            ..Known::new(self.function, &call, self.site)
        })
    }

    /// As the C interface shows it; `order` is its place in the scope.
    pub fn to_c(&self, order: u64) -> aclshim_call {
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
                CallState::Done => ACLSHIM_DONE,
                CallState::UnderWay => ACLSHIM_UNDER_WAY,
                CallState::Left => ACLSHIM_LEFT,
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
                CallState::Done => golden::End::Returned(self.code),
                CallState::UnderWay => golden::End::UnderWay,
                CallState::Left => golden::End::Left,
            },
            marks: marks.fold(0, |all, (_, mark)| all | mark),
            attributes: self.batch.as_ref().map_or(Vec::new(), |batch| batch.attributes.clone()),
            items: self.items().iter().map(item).collect(),
        }
    }

    /// Adds the findings about a batch that were made while its arrays could be read.
    pub fn add_findings(&mut self, judgement: &Judgement) {
        for JudgedFinding { rule, finding, values } in judgement.findings() {
            if !self.is_found(rule) {
                self.findings.push(self.found(rule, &finding, values));
            }
        }
    }

    fn is_found(&self, rule: &Rule) -> bool {
        self.findings.iter().any(|known| known.rule.number == rule.number)
    }

    fn subject(&self) -> Subject<'static> {
        let call = self.call();
        Subject { function: self.function, call, arrays: Arrays::default(), world: world::of(&call) }
    }

    fn found(&self, rule: &'static Rule, finding: &rule::Finding, values: [u64; 2]) -> EntryFinding {
        let is_vendors = self.flags & (ACLSHIM_INJECTED as i32 | ACLSHIM_WAS_REFUSED as i32) == 0;
        let returned = (self.fate == CallState::Done && is_vendors).then_some(self.code);
        let message = noted_message(rule, &self.subject(), finding, values, returned);
        EntryFinding {
            rule,
            severity: finding.severity,
            argument: finding.argument,
            code: finding.code,
            index: finding.index.map(|index| index as u64),
            values,
            message: CString::new(message).unwrap_or_default(),
        }
    }

    /// Judges it by its arguments alone, as a reader of its record would, unless that was done with the present knowledge of
    /// the product, whose number is `known`, more than 0: it may have come after the call. (The arrays of a batch were judged
    /// while they could be read.)
    pub fn judge(&mut self, known: u32) {
        if core::mem::replace(&mut self.judged, known) == known {
            return;
        }
        let subject = self.subject();
        let mut new = Vec::new();
        judge_each(&subject, &mut |rule, finding| {
            if !self.is_found(rule) && !policy::is_off(rule, finding.severity) {
                new.push(self.found(rule, &finding, [0; 2]));
            }
        });
        self.findings.extend(new);
    }

    /// Whether an injection has changed it.
    pub fn is_injected(&self) -> bool {
        self.flags & ACLSHIM_INJECTED as i32 != 0
    }

    /// Sets its flags.
    pub fn set_flags(&mut self, is_refused: bool, is_injected: bool) {
        let flags = [(is_refused, ACLSHIM_WAS_REFUSED), (is_injected, ACLSHIM_INJECTED)];
        self.flags = flags.into_iter().filter(|(is_it, _)| *is_it).fold(0, |all, (_, flag)| all | flag as i32);
    }
}
