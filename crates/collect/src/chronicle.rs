//! What the log tells of one process: its beginning and its end, failed calls or all, losses, and sums.
//!
//! Nothing here waits for the log: a line that cannot be written is lost, the trace has what it was about, and the
//! log's trouble is said when it is over.

use crate::account::Account;
use crate::chain::Place;
use crate::failure::{Report, Trouble};
use crate::inspector::{Failed, Inspector, Looked, Said};
use crate::judge::Total;
use crate::labels::Labels;
use crate::line::Address;
use crate::lines;
use crate::log::Log;
use crate::shape::Shape;
use crate::stderr::Stderr;
use aclshim_facts::Function;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{Ring, SlotRun};
use aclshim_trace::record::annotation::{Annotation, NamedKind};
use aclshim_trace::record::slot::{self, Words};
use aclshim_trace::record::{Call, Entry, decode};
use aclshim_trace::ring::layout::Header;
use aclshim_trace::segment::format::BlockHead;
use aclshim_trace::system::clock::{Calibration, realtime_ns};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering;

/// So many calls that have not ended are remembered.
const OPEN: usize = 256;

/// What was lost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Calls that were forwarded and not recorded.
    pub not_recorded: u64,
    /// Slots that were overwritten before they could be read.
    pub overwritten: u64,
    /// Marks, scopes and names of the program's that were not recorded.
    pub notes: u64,
}

/// The log of one process, and what has to be known to write it.
pub(crate) struct Chronicle {
    log: Log,
    account: Account,
    inspector: Inspector,
    functions: Vec<Option<Function>>,
    /// What the process calls its scopes, streams and buffers.
    labels: Labels,
    /// The thread that writes to each ring, as far as its records have been read.
    threads: Vec<u32>,
    /// Calls that have not ended: the drain went past them, and their ends come later, or never.
    open: BTreeMap<(u32, u64), (Function, Call)>,
    /// Whether it tells of every call, not only of those that failed.
    tells_all: bool,
    /// How many calls the sums were of when they were last told.
    told: u64,
}

impl Chronicle {
    pub fn new(place: Place, origin: &Origin, tells_all: bool, inspector: Inspector) -> Self {
        Self {
            log: Log::new(place, origin.pid),
            account: Account::default(),
            inspector,
            functions: origin.functions.iter().map(|name| Function::by_name(name)).collect(),
            labels: Labels::of_few(),
            threads: Vec::new(),
            open: BTreeMap::new(),
            tells_all,
            told: 0,
        }
    }

    /// That the process is here; whether that could be written.
    pub fn started(&mut self, origin: &Origin, drain: &str) -> bool {
        let line = lines::Started {
            version: env!("CARGO_PKG_VERSION"),
            executable: origin.executable.as_os_str().as_bytes(),
            host: origin.host.as_bytes(),
            rank: origin.rank.as_bytes(),
            born_ns: origin.born_ns,
            drain,
            settings: &origin.settings,
        };
        self.log.line(realtime_ns(), &line).is_ok()
    }

    /// What also goes to standard error.
    pub fn speak(&mut self, stderr: Stderr) {
        self.inspector.speak(stderr);
    }

    /// Takes over what the process has found out of itself by now.
    pub fn learn(&mut self, origin: &Origin) {
        self.inspector.learn(origin, &mut self.log);
    }

    /// The modules of the process as a block's payload, if calls that are about to be written come from new ones.
    pub fn new_modules(&mut self, run: &SlotRun) -> Option<Vec<u8>> {
        self.inspector.new_modules(&run.slots)
    }

    /// They are written.
    pub fn modules_written(&mut self) {
        self.inspector.modules_written();
    }

    /// That this was the last, and why.
    pub fn stopped(&mut self, reason: &str, losses: Losses) {
        self.inspector.stopped(&mut self.log);
        let total = self.account.total();
        let line = lines::Stopped {
            reason,
            calls: total.calls,
            errors: total.errors,
            bytes: total.bytes,
            not_recorded: losses.not_recorded,
            overwritten: losses.overwritten,
            notes_lost: losses.notes,
        };
        let _ = self.log.line(realtime_ns(), &line);
    }

    /// That so many slots were left behind by a process that is gone.
    pub fn adopted(&mut self, ring_file: &[u8], slots: u64) {
        let in_flight = self.account.total().in_flight;
        let _ = self.log.line(realtime_ns(), &lines::Adopted { ring_file, slots, in_flight, gone: true });
    }

    /// The thread that has written the slots of a run: the owner, or the last one that said so in the ring. 0 if nobody
    /// knows: that may stand in what was overwritten.
    pub fn thread(&mut self, number: u32, ring: &Ring<'_>, run: &SlotRun) -> u32 {
        let number = number as usize;
        if self.threads.len() <= number {
            self.threads.resize(number + 1, 0);
        }
        match ring.owner() {
            Some((owner, since)) if run.first >= since => self.threads[number] = owner,
            _ if run.overwritten > 0 => self.threads[number] = 0,
            _ => {}
        }
        self.threads[number]
    }

    /// Adds up what was written, and tells what is worth telling. [`thread`](Self::thread) was asked about it.
    pub fn records(&mut self, ring: u32, run: &SlotRun, clock: Option<&Calibration>) {
        let mut rest = run.slots.as_slice();
        while let Some((slot, others)) = rest.split_first() {
            let number = run.first + (run.slots.len() - rest.len()) as u64;
            if !self.tells_all && Account::takes(slot) && self.is_plain(ring, slot) {
                self.account.leave(ring, number);
                self.account.take(slot, clock.map(|clock| clock.span_ns(slot[2])));
                rest = others;
                continue;
            }
            let Some((entry, count)) = decode(rest, number) else {
                rest = others;
                continue;
            };
            rest = &rest[count..];
            self.record(ring, entry, clock);
        }
    }

    /// That nothing more of a ring is there now: notes about its last call would be.
    pub fn settle(&mut self, ring: u32, clock: Option<&Calibration>) {
        self.look(ring, Looked::End, clock);
    }

    fn is_plain(&mut self, ring: u32, slot: &Words) -> bool {
        let function = self.functions.get(usize::from(slot::Head(slot[0]).function())).copied().flatten();
        function.is_none_or(|function| self.inspector.is_plain(ring, function, slot))
    }

    fn record(&mut self, ring: u32, entry: Entry, clock: Option<&Calibration>) {
        let function = match &entry {
            Entry::Call(call) => self.functions.get(usize::from(call.function)).copied().flatten(),
            _ => None,
        };
        self.account.add(ring, &entry, function, clock);
        match (entry, function) {
            (Entry::Thread { id, .. }, _) => self.threads[ring as usize] = id,
            (Entry::Call(call), Some(function)) => self.call(ring, &call, function, clock),
            (Entry::Annotation { ticks, annotation: what }, _) => self.remark(ring, ticks, &what, clock),
            (Entry::Lost { from, to, calls, notes }, _) => {
                let at = |ticks| clock.map(|clock| clock.at_ns(ticks));
                let line = lines::Lost {
                    calls,
                    ring: Some(ring.into()),
                    thread: Some(self.threads[ring as usize].into()),
                    from_ns: at(from),
                    to_ns: at(to),
                    reason: "the ring was full",
                    notes,
                };
                let _ = self.log.line(realtime_ns(), &line);
            }
            (entry @ (Entry::Finding { .. } | Entry::Stack { .. }), _) => self.look(ring, Looked::Note(&entry), clock),
            (Entry::End { of, end }, _) => {
                if let Some((function, call)) = self.open.remove(&(ring, of)) {
                    self.tell(ring, &Call { end: Some(end), ..call }, function, clock);
                }
            }
            (Entry::Call(_), None) => {}
        }
    }

    /// What the program tells of itself, in its own words.
    fn remark(&mut self, ring: u32, ticks: u64, what: &Annotation, clock: Option<&Calibration>) {
        self.labels.learn(ticks, what);
        let time_ns = clock.map_or_else(realtime_ns, |clock| clock.at_ns(ticks));
        let thread = self.threads[ring as usize].into();
        let _ = match what {
            Annotation::Mark { text } => self.log.line(time_ns, &lines::Mark { thread, message: text }),
            Annotation::Scope { id, parent, name } => {
                let parent = (*parent != 0).then_some(u64::from(*parent));
                self.log.line(time_ns, &lines::Scope { id: (*id).into(), parent, name, thread })
            }
            Annotation::ScopeEnd { id, failures } => {
                let begin = self.labels.scope(*id).map(|scope| scope.begin);
                let name = self.labels.scope_name(*id).unwrap_or_default();
                let line = lines::ScopeEnd {
                    id: (*id).into(),
                    name: &name,
                    duration_ns: begin.and_then(|begin| Some(clock?.span_ns(ticks.saturating_sub(begin)))),
                    failures: *failures,
                    thread,
                };
                self.log.line(time_ns, &line)
            }
            Annotation::Name { kind, begin, size, name } => {
                let (kind, bytes) = match kind {
                    NamedKind::Stream => ("stream", None),
                    NamedKind::Buffer => ("buffer", Some(*size)),
                };
                let name = Some(name.as_str()).filter(|name| !name.is_empty());
                self.log.line(time_ns, &lines::Name { kind, address: Address(*begin), bytes, name, thread })
            }
        };
    }

    fn look(&mut self, ring: u32, at: Looked<'_>, clock: Option<&Calibration>) {
        let thread = self.threads[ring as usize].into();
        let said = |call: &Call| (clock.map_or_else(realtime_ns, |clock| clock.at_ns(call.begin)), thread);
        self.inspector.look(ring, at, said, &mut self.log);
    }

    fn call(&mut self, ring: u32, call: &Call, function: Function, clock: Option<&Calibration>) {
        self.look(ring, Looked::Call(function, call), clock);
        if call.end.is_none() {
            // One that was left by a jump never ends: the oldest are forgotten.
            if self.open.len() >= OPEN {
                self.open.pop_first();
            }
            self.open.insert((ring, call.number), (function, call.clone()));
        }
        self.tell(ring, call, function, clock);
    }

    /// Tells of a call that has failed, or of any where all are asked for.
    fn tell(&mut self, ring: u32, call: &Call, function: Function, clock: Option<&Calibration>) {
        let code = call.end.map_or(0, |end| end.code);
        if code == 0 && !self.tells_all {
            return;
        }
        let time_ns = clock.map_or_else(realtime_ns, |clock| clock.at_ns(call.begin));
        let said = Said { time_ns, thread: self.threads[ring as usize].into(), function, call };
        let Shape { direction, bytes, dst_max, dst, src, stream } = Shape::of(function, call);
        let scope = self.labels.scope_name(call.scope);
        let line = lines::Call {
            function: function.row().name,
            state: if call.end.is_some() { "returned" } else { "open" },
            code: call.end.map(|end| end.code.into()),
            thread: said.thread,
            number: call.number,
            duration_ns: call.end.and_then(|end| Some(clock?.span_ns(end.duration))),
            direction,
            bytes,
            dst_max,
            dst,
            src,
            stream,
            site: Some(Address(call.site)),
            nested: call.is_nested,
            injected: call.is_injected(),
            scope: scope.as_deref(),
            stream_name: stream.and_then(|stream| self.labels.stream(stream.0, call.begin)),
        };
        let _ = match code {
            0 => self.log.line(time_ns, &line),
            _ => match self.inspector.failed(ring, &said, code) {
                Failed::Tell(message) => self.log.line(time_ns, &failed(line, code, &message)),
                // Where every call is asked for, one that failed is still one.
                Failed::Keep if self.tells_all => self.log.line(time_ns, &line),
                Failed::Keep => Ok(()),
            },
        };
    }

    /// That slots from number `first` on were overwritten before they could be read.
    pub fn overwritten(&mut self, head: &BlockHead, first: u64, slots: u64) {
        let line = lines::Overwritten {
            slots,
            ring: head.ring.into(),
            thread: Some(head.thread.into()),
            first,
            from_ns: None,
            to_ns: Some(head.realtime_ns),
        };
        let _ = self.log.line(head.realtime_ns, &line);
    }

    /// What found no ring, and what happened to the files; `of_trace` is what happened to the trace's.
    pub fn troubles(&mut self, header: &Header, of_trace: &Report) {
        let now = realtime_ns();
        let (missed, told) = (header.not_recorded.load(Ordering::Relaxed), header.told.load(Ordering::Relaxed));
        if missed > told {
            let line = lines::Lost {
                calls: missed - told,
                ring: None,
                thread: None,
                from_ns: None,
                to_ns: Some(now),
                reason: "there was no ring",
                notes: 0,
            };
            if self.log.line(now, &line).is_ok() {
                header.told.store(missed, Ordering::Relaxed);
            }
        }
        let of_log = self.log.take_report();
        for report in [of_trace, &of_log] {
            let _ = lines::report(&mut self.log, now, report);
        }
    }

    /// What the calls add up to, if there are new ones.
    pub fn sums(&mut self, names: &[String], losses: Losses) {
        let total = self.account.total();
        if total.calls + total.nested == self.told {
            return;
        }
        self.told = total.calls + total.nested;
        let now = realtime_ns();
        let functions = self.account.by_function();
        let named = functions.iter().enumerate().filter(|(_, sums)| sums.calls + sums.nested > 0);
        let named = named.map(|(number, sums)| (names.get(number).map(String::as_str), sums));
        for (function, sums) in named.chain([(None, &total)]) {
            let of_all = |value| if function.is_none() { value } else { 0 };
            let line = lines::Statistics {
                function,
                calls: sums.calls,
                nested: sums.nested,
                errors: sums.errors,
                bytes: sums.bytes,
                in_flight: sums.in_flight,
                not_recorded: of_all(losses.not_recorded),
                overwritten: of_all(losses.overwritten),
                p50_ns: sums.durations.percentile(50),
                p99_ns: sums.durations.percentile(99),
            };
            let _ = self.log.line(now, &line);
        }
    }

    /// Counts calls by the kind of copy, too.
    pub fn count_kinds(&mut self) {
        self.account = Account::of_kinds();
    }

    /// What the calls add up to.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// How often each rule was broken.
    pub fn findings(&self) -> &BTreeMap<String, Total> {
        self.inspector.findings()
    }

    /// What goes wrong with the log now, if anything.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.log.trouble()
    }
}

/// The line of a call that did not return 0.
fn failed<'a>(call: lines::Call<'a>, code: i32, message: &'a str) -> lines::FailedCall<'a> {
    let lines::Call { function, thread, number, duration_ns, direction, bytes, .. } = call;
    let lines::Call { dst_max, dst, src, stream, site, nested, injected, scope, stream_name, .. } = call;
    lines::FailedCall {
        function,
        code: code.into(),
        code_name: aclshim_facts::code::name(code),
        thread,
        number,
        duration_ns,
        direction,
        bytes,
        dst_max,
        dst,
        src,
        stream,
        site,
        nested,
        injected,
        scope,
        stream_name,
        message,
    }
}
