//! The drain of one process: records from its rings into its trace and its log.
//!
//! A record is on disk before its slot is given back; if writing fails, the slot stays and is
//! tried again. Whoever drains holds the ring file ([`aclshim_trace::reader::lock`]), so there is one at a time,
//! and the next one goes on where the last one stopped.

use crate::account::{self, Account};
use crate::budget::Sizes;
use crate::chain::Place;
use crate::failure::Failure;
use crate::line::Address;
use crate::lines;
use crate::log::Log;
use crate::names::{Who, stem};
use crate::segment::TraceWriter;
use aclshim_facts::Function;
use aclshim_facts::call::Form;
use aclshim_trace::clock::{monotonic_ns, realtime_ns, ticks};
use aclshim_trace::layout::Header;
use aclshim_trace::origin::Origin;
use aclshim_trace::reader::{Reading, Ring, Run};
use aclshim_trace::record::{Call, Entry, INJECTED, decode};
use aclshim_trace::segment::{Head, kind};
use aclshim_trace::slot::{self, Layout, Words};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering;

/// So many slots are written at once.
const RUN: usize = 1024;
/// How often the pace of the ticks and the sums are written down.
const MINUTE_NS: u64 = 60_000_000_000;

/// What becomes of calls (`ACLSHIM_CALLS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    Trace,
    Json,
    Off,
}

/// The drain of one process.
pub struct Drain {
    origin: Origin,
    functions: Vec<Option<Function>>,
    calls: Calls,
    trace: TraceWriter,
    log: Log,
    account: Account,
    /// The thread that writes to each ring, as far as its records have been read.
    threads: Vec<u32>,
    overwritten: u64,
    drain: &'static str,
    has_begun: bool,
    minute: u64,
    second: u64,
    said: u64,
    /// The totals that the trace tells of.
    totals: [u64; 2],
}

/// The bytes of a header.
fn bytes_of(header: &Header) -> &[u8] {
    // SAFETY: a plain structure without padding that anybody would mind.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(header).cast(), size_of::<Header>()) }
}

impl Drain {
    /// The drain of the process that `header` describes; `drain` says where it runs.
    pub fn new(header: &Header, drain: &'static str) -> Self {
        let origin = Origin::new(header);
        let executable = origin.executable.file_name().unwrap_or_default().as_bytes().to_vec();
        let who = Who {
            pid: origin.pid,
            born_ns: origin.born_ns,
            host: origin.host.clone().into_bytes(),
            executable,
            rank: origin.rank.clone().into_bytes(),
        };
        let sizes = Sizes { segment: origin.segment, budget: origin.budget };
        let place = Place { dir: origin.dir.clone(), stem: stem(origin.pattern.as_bytes(), &who), sizes };
        Self {
            functions: origin.functions.iter().map(|name| Function::by_name(name)).collect(),
            calls: match origin.calls {
                1 => Calls::Json,
                2 => Calls::Off,
                _ => Calls::Trace,
            },
            trace: TraceWriter::new(place.clone(), bytes_of(header)),
            log: Log::new(place, origin.pid),
            account: Account::default(),
            threads: Vec::new(),
            overwritten: 0,
            drain,
            has_begun: false,
            minute: monotonic_ns(),
            second: 0,
            said: 0,
            totals: [0; 2],
            origin,
        }
    }

    /// Whose drain it is.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Writes what there is, and returns how many slots that were. Errors are counted in the header,
    /// remembered, and said in the log as soon as it can be written.
    pub fn pass<'a>(&mut self, header: &Header, ring: impl Fn(usize) -> Option<Ring<'a>>, how: Reading) -> u64 {
        let rings = header.rings.load(Ordering::Acquire) as usize;
        let mut moved = 0;
        for number in 0..rings {
            let Some(one) = ring(number) else { continue };
            match self.ring(header, number as u32, one, how) {
                Ok(slots) => moved += slots,
                Err(_) => {
                    header.write_failures.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            }
        }
        self.housekeeping(header, ring);
        moved
    }

    fn ring(&mut self, header: &Header, number: u32, ring: Ring<'_>, how: Reading) -> Result<u64, Failure> {
        let mut moved = 0;
        loop {
            let from = ring.control.drained.load(Ordering::Relaxed);
            let run = ring.read(from, how, RUN);
            if run.next == from {
                return Ok(moved);
            }
            self.begin(header);
            let head = Head {
                ring: number,
                first: run.first,
                thread: self.thread(number as usize, &ring, run.first),
                ticks: ticks(header.clock),
                realtime_ns: realtime_ns(),
                ..Head::default()
            };
            if self.calls != Calls::Off && !run.slots.is_empty() {
                let calls = self.outermost(&run);
                self.trace.append(&Head { kind: kind::SLOTS, flags: calls, ..head }, little_endian(&run.slots))?;
            }
            // On disk: the writer may have the slots back. What is said of them can wait.
            ring.give_back(run.next);
            moved += run.slots.len() as u64;
            if run.overwritten > 0 {
                ring.control.overwritten.fetch_add(run.overwritten, Ordering::Relaxed);
                self.say_overwritten(&head, from, run.overwritten);
            }
            self.tell(number, &run);
            if run.slots.len() < RUN / 2 && how != Reading::Finish {
                return Ok(moved);
            }
        }
    }

    /// Says in the trace and in the log that slots were overwritten before they could be read.
    fn say_overwritten(&mut self, head: &Head, first: u64, slots: u64) {
        self.overwritten += slots;
        if self.calls != Calls::Off {
            let _ = self.trace.append(&Head { kind: kind::LOSS, first, ..*head }, &slots.to_le_bytes());
        }
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

    /// How many outermost calls a run holds.
    fn outermost(&self, run: &Run) -> u32 {
        let is_one = |slot: &&Words| {
            let head = slot::Head(slot[0]);
            matches!(head.layout(), Layout::Linear | Layout::Fill | Layout::Long) && !head.is_nested()
        };
        run.slots.iter().filter(is_one).count() as u32
    }

    /// The thread that has written the slots from number `first` on: the owner, or the last one that said so in the ring.
    fn thread(&mut self, number: usize, ring: &Ring<'_>, first: u64) -> u32 {
        if self.threads.len() <= number {
            self.threads.resize(number + 1, 0);
        }
        if let Some((owner, since)) = ring.owner()
            && (first >= since || self.threads[number] == 0)
        {
            self.threads[number] = owner;
        }
        self.threads[number]
    }

    /// Adds up what was written, and says in the log what is worth saying.
    fn tell(&mut self, ring: u32, run: &Run) {
        let says_all = self.calls == Calls::Json;
        let mut rest = run.slots.as_slice();
        while let Some((slot, others)) = rest.split_first() {
            let number = run.first + (run.slots.len() - rest.len()) as u64;
            if !says_all && Account::takes(slot) {
                self.account.take(ring, number, slot, self.origin.calibration.as_ref());
                rest = others;
                continue;
            }
            let Some((entry, count)) = decode(rest, number) else {
                rest = others;
                continue;
            };
            rest = &rest[count..];
            self.tell_one(ring, entry);
        }
    }

    fn tell_one(&mut self, ring: u32, entry: Entry) {
        let function = match &entry {
            Entry::Call(call) => self.functions.get(usize::from(call.function)).copied().flatten(),
            _ => None,
        };
        self.account.add(ring, &entry, function, self.origin.calibration.as_ref());
        match entry {
            Entry::Thread { id, .. } => self.threads[ring as usize] = id,
            Entry::Call(call) => self.say_call(ring, &call, function),
            Entry::Lost { from, to, calls } => {
                let at = |ticks| self.origin.calibration.map(|clock| clock.at_ns(ticks));
                let line = lines::Lost {
                    calls,
                    ring: Some(ring.into()),
                    thread: Some(self.threads[ring as usize].into()),
                    from_ns: at(from),
                    to_ns: at(to),
                    reason: "the ring was full",
                };
                let _ = self.log.line(realtime_ns(), &line);
            }
            Entry::End { .. } | Entry::Findings { .. } => {}
        }
    }

    fn say_call(&mut self, ring: u32, call: &Call, function: Option<Function>) {
        let code = call.end.map_or(0, |end| end.code);
        if code == 0 && self.calls != Calls::Json {
            return;
        }
        let Some(function) = function else { return };
        let shape = Shape::of(function, call);
        let clock = self.origin.calibration;
        let time_ns = clock.map_or_else(realtime_ns, |clock| clock.at_ns(call.begin));
        let duration_ns = call.end.and_then(|end| Some(clock?.span_ns(end.duration)));
        let thread = self.threads[ring as usize].into();
        let address = |word: u64| Some(Address(word));
        let injected = call.flags & INJECTED != 0;
        let name = function.row().name;
        let said = if code == 0 {
            self.log.line(
                time_ns,
                &lines::Call {
                    function: name,
                    state: if call.end.is_some() { "returned" } else { "open" },
                    code: call.end.map(|end| end.code.into()),
                    thread,
                    number: call.number,
                    duration_ns,
                    direction: shape.direction,
                    bytes: shape.bytes,
                    dst_max: shape.dst_max,
                    dst: shape.dst.and_then(address),
                    src: shape.src.and_then(address),
                    stream: shape.stream.and_then(address),
                    site: address(call.site),
                    nested: call.is_nested,
                    injected,
                },
            )
        } else {
            self.log.line(
                time_ns,
                &lines::FailedCall {
                    function: name,
                    code: code.into(),
                    code_name: aclshim_facts::code::name(code),
                    thread,
                    number: call.number,
                    duration_ns,
                    direction: shape.direction,
                    bytes: shape.bytes,
                    dst_max: shape.dst_max,
                    dst: shape.dst.and_then(address),
                    src: shape.src.and_then(address),
                    stream: shape.stream.and_then(address),
                    site: address(call.site),
                    nested: call.is_nested,
                    injected,
                    message: &format!("{name} returned {code}"),
                },
            )
        };
        let _ = said; // the trace has the call, and the log's trouble is said when it is over
    }

    /// Says that the process is here, before anything else.
    fn begin(&mut self, header: &Header) {
        if self.has_begun {
            return;
        }
        // The pace of the ticks is told by two moments, and these must not be too close.
        let born_ns = header.born.monotonic_ns.load(Ordering::Relaxed);
        let age = monotonic_ns().saturating_sub(born_ns);
        if let Some(missing) = 2_000_000u64.checked_sub(age) {
            std::thread::sleep(std::time::Duration::from_nanos(missing));
        }
        if self.origin.is_of_this_boot() {
            header.later.set(header.clock);
        }
        self.origin = Origin::new(header);
        self.trace.set_header(bytes_of(header));
        let line = lines::Started {
            version: env!("CARGO_PKG_VERSION"),
            executable: self.origin.executable.as_os_str().as_bytes(),
            host: self.origin.host.as_bytes(),
            rank: self.origin.rank.as_bytes(),
            born_ns: self.origin.born_ns,
            drain: self.drain,
            settings: &self.origin.settings,
        };
        self.has_begun = self.log.line(realtime_ns(), &line).is_ok();
    }

    /// What is done now and then.
    fn housekeeping<'a>(&mut self, header: &Header, ring: impl Fn(usize) -> Option<Ring<'a>>) {
        let now = monotonic_ns();
        if now.saturating_sub(self.second) < 1_000_000_000 {
            return;
        }
        self.second = now;
        header.later.set(header.clock);
        self.origin = Origin::new(header);
        self.say_troubles(header);
        self.write_totals(header, &ring);
        if now.saturating_sub(self.minute) >= MINUTE_NS && self.has_begun {
            self.minute = now;
            self.calibrate(header);
            self.say_sums(header, ring);
        }
    }

    /// Writes down what was lost, so that it is known when the ring is gone.
    fn write_totals<'a>(&mut self, header: &Header, ring: impl Fn(usize) -> Option<Ring<'a>>) {
        let totals = [not_recorded(header, ring), self.overwritten];
        if totals == self.totals || self.calls == Calls::Off {
            return;
        }
        let head =
            Head { kind: kind::TOTALS, ticks: ticks(header.clock), realtime_ns: realtime_ns(), ..Head::default() };
        if self.trace.append(&head, totals.map(u64::to_le_bytes).as_flattened()).is_ok() {
            self.totals = totals;
        }
    }

    fn say_troubles(&mut self, header: &Header) {
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
            };
            if self.log.line(now, &line).is_ok() {
                header.told.store(missed, Ordering::Relaxed);
            }
        }
        for report in [self.trace.take_report(), self.log.take_report()] {
            let _ = lines::report(&mut self.log, now, &report);
        }
    }

    fn calibrate(&mut self, header: &Header) {
        let head =
            Head { kind: kind::CALIBRATION, ticks: ticks(header.clock), realtime_ns: realtime_ns(), ..Head::default() };
        if self.calls != Calls::Off {
            let _ = self.trace.append(&head, &monotonic_ns().to_le_bytes());
        }
    }

    fn say_sums<'a>(&mut self, header: &Header, ring: impl Fn(usize) -> Option<Ring<'a>>) {
        let total = self.account.total();
        if total.calls + total.nested == self.said {
            return;
        }
        self.said = total.calls + total.nested;
        let not_recorded = not_recorded(header, ring);
        let now = realtime_ns();
        let named = self.account.functions().iter().enumerate().filter(|(_, sums)| sums.calls + sums.nested > 0);
        let named = named.map(|(number, sums)| (self.origin.functions.get(number).map(String::as_str), sums));
        for (function, sums) in named.chain([(None, &total)]) {
            let of_all = |value| if function.is_none() { value } else { 0 };
            let line = lines::Statistics {
                function,
                calls: sums.calls,
                nested: sums.nested,
                errors: sums.errors,
                bytes: sums.bytes,
                in_flight: sums.in_flight,
                not_recorded: of_all(not_recorded),
                overwritten: of_all(self.overwritten),
                p50_ns: sums.durations.percentile(50),
                p99_ns: sums.durations.percentile(99),
            };
            let _ = self.log.line(now, &line);
        }
    }

    /// Whether a call has copied anything, as far as was drained.
    pub fn has_copied(&self) -> bool {
        self.account.functions().iter().any(|sums| sums.bytes > 0)
    }

    /// Writes the header down once more: it tells more than at the beginning.
    pub fn introduce(&mut self, header: &Header) -> bool {
        // A copy: what the host changes between the sum and the writing would spoil the trace from here on.
        let bytes = bytes_of(header).to_vec();
        self.trace.set_header(&bytes);
        self.origin = Origin::new(header);
        let head =
            Head { kind: kind::HEADER, ticks: ticks(header.clock), realtime_ns: realtime_ns(), ..Head::default() };
        self.calls == Calls::Off || self.trace.append(&head, &bytes).is_ok()
    }

    /// Says that this was the last of a process, and why.
    pub fn stop<'a>(&mut self, header: &Header, ring: impl Fn(usize) -> Option<Ring<'a>>, reason: &str) {
        self.say_troubles(header);
        self.write_totals(header, &ring);
        if !self.has_begun {
            return;
        }
        self.calibrate(header);
        let total = self.account.total();
        let line = lines::Stopped {
            reason,
            calls: total.calls,
            errors: total.errors,
            bytes: total.bytes,
            not_recorded: not_recorded(header, ring),
            overwritten: self.overwritten,
        };
        let _ = self.log.line(realtime_ns(), &line);
    }

    /// Says that these records were left behind by a process that is gone.
    pub fn adopt(&mut self, ring_file: &[u8], slots: u64) {
        let in_flight = self.account.total().in_flight;
        let _ = self.log.line(realtime_ns(), &lines::Adopted { ring_file, slots, in_flight, gone: true });
    }

    /// Whether everything that was asked for has been written.
    pub fn is_well(&self) -> bool {
        self.trace.trouble().is_none() && self.log.trouble().is_none()
    }
}

/// Calls of a process that were not recorded: those without a ring, and those that found theirs full.
fn not_recorded<'a>(header: &Header, ring: impl Fn(usize) -> Option<Ring<'a>>) -> u64 {
    let rings = header.rings.load(Ordering::Acquire) as usize;
    let full = (0..rings).filter_map(ring).map(|ring| ring.control.not_recorded.load(Ordering::Relaxed));
    header.not_recorded.load(Ordering::Relaxed) + full.sum::<u64>()
}

/// Slots as bytes. All processors that we run on have the file's order of bytes.
fn little_endian(slots: &[Words]) -> &[u8] {
    const { assert!(cfg!(target_endian = "little")) };
    // SAFETY: whole words, read as bytes.
    unsafe { std::slice::from_raw_parts(slots.as_ptr().cast(), size_of_val(slots)) }
}

/// A call's arguments by role, as far as it has them.
struct Shape {
    direction: Option<&'static str>,
    bytes: Option<u64>,
    dst_max: Option<u64>,
    dst: Option<u64>,
    src: Option<u64>,
    stream: Option<u64>,
}

impl Shape {
    fn of(function: Function, call: &Call) -> Self {
        let decoded = function.call(&call.arguments);
        let mut shape = Self {
            direction: None,
            bytes: Some(account::bytes(function, call)),
            dst_max: None,
            dst: None,
            src: None,
            stream: decoded.stream.map(|stream| stream as u64),
        };
        let kind = match decoded.form {
            Form::Linear { dst, dst_max, src, kind, .. } => {
                (shape.dst, shape.src, shape.dst_max) = (Some(dst as u64), Some(src as u64), Some(dst_max as u64));
                Some(kind)
            }
            Form::Pitched { dst, src, kind, .. } => {
                (shape.dst, shape.src) = (Some(dst as u64), Some(src as u64));
                Some(kind)
            }
            Form::Indirect { dst, dst_max, src, kind, .. } => {
                (shape.dst, shape.src, shape.dst_max) = (Some(dst as u64), Some(src as u64), Some(dst_max as u64));
                Some(kind)
            }
            Form::FromSymbol { dst, dst_max, symbol, kind, .. } => {
                (shape.dst, shape.src, shape.dst_max) = (Some(dst as u64), Some(symbol as u64), Some(dst_max as u64));
                Some(kind)
            }
            Form::ToSymbol { symbol, src, kind, .. } => {
                (shape.dst, shape.src) = (Some(symbol as u64), Some(src as u64));
                Some(kind)
            }
            Form::SetDesc { src, dst, kind, .. } => {
                (shape.dst, shape.src) = (Some(dst as u64), Some(src as u64));
                Some(kind)
            }
            Form::Described { kind, .. } | Form::DescSize { kind, .. } => Some(kind),
            Form::Fill { dst, dst_max, .. } | Form::FillWords { dst, dst_max, .. } => {
                (shape.dst, shape.dst_max) = (Some(dst as u64), Some(dst_max as u64));
                None
            }
            Form::Batch(_) => {
                shape.bytes = call.batch.as_ref().map(|batch| batch.total);
                None
            }
        };
        shape.direction = kind.and_then(|kind| kind.name());
        shape
    }
}
