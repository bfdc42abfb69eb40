//! The log of one process: its beginning and its end, failed calls or all, findings, losses, and statistics.
//!
//! Nothing here waits for the log: a line that cannot be written is lost, the trace has what it was about, and the
//! log's trouble is reported when it is over.

use crate::findings::judge::{Judge, Total};
use crate::interpreter::totals::Totals;
use crate::interpreter::visitor::{
    AnnotationView, CallView, CallVisitor, CommonCallView, FindingView, Lost, ProcessView,
};
use crate::live_log::arguments::Arguments;
use crate::live_log::failures::{Failures, ProbeEnd, failed};
use crate::live_log::stderr::Stderr;
use crate::log::Log;
use crate::log::line::Address;
use crate::log::lines;
use crate::storage::failure::{Report, Trouble};
use crate::storage::rotation::OutputLocation;
use aclshim_facts::policy::Action;
use aclshim_trace::origin::Origin;
use aclshim_trace::record::REFUSED;
use aclshim_trace::record::annotation::{Annotation, NamedKind};
use aclshim_trace::ring::layout::Header;
use aclshim_trace::segment::format::BlockHead;
use aclshim_trace::system::clock::realtime_ns;
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering;

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

/// Writes the log of one process: a visitor of the [interpreter](crate::interpreter).
pub(crate) struct LogWriter {
    log: Log,
    stderr: Stderr,
    failures: Failures,
    /// Whether it has a line for every call, not only for those that failed.
    writes_all: bool,
    /// How many calls the statistics were of when they were last written.
    counted: u64,
    is_product_reported: bool,
}

impl LogWriter {
    pub fn new(place: OutputLocation, pid: u32, writes_all: bool) -> Self {
        Self {
            log: Log::new(place, pid),
            stderr: Stderr::Off,
            failures: Failures::default(),
            writes_all,
            counted: 0,
            is_product_reported: false,
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
        self.stderr = stderr;
    }

    /// What makes no sense in the settings, and a product that is not known, each once.
    pub fn settings(&mut self, judge: &mut Judge, origin: &Origin) {
        for message in judge.take_nonsense() {
            let _ = self.log.line(realtime_ns(), &lines::Warning { topic: "setting", message: &message });
        }
        if let Some(name) = judge.unknown_product(origin).filter(|_| !self.is_product_reported) {
            let message = format!(
                "{name} is a product that this version of aclshim does not know: rules that depend on the product are \
                 off. ACLSHIM_SOC can name one that it resembles."
            );
            let _ = self.log.line(realtime_ns(), &lines::Warning { topic: "product", message: &message });
            self.is_product_reported = true;
        }
    }

    /// That this was the last, and why.
    pub fn stopped(&mut self, reason: &str, totals: &Totals, findings: &BTreeMap<String, Total>, losses: Losses) {
        for end in self.failures.end_probes() {
            self.probe_ended(end);
        }
        for (rule, total) in findings {
            let line = lines::Findings { rule, found: total.found, told: total.told, known: total.known };
            let _ = self.log.line(realtime_ns(), &line);
        }
        let total = totals.total();
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

    /// That this many slots were left behind by a process that is gone.
    pub fn adopted(&mut self, ring_file: &[u8], slots: u64, totals: &Totals) {
        let in_flight = totals.total().in_flight;
        let _ = self.log.line(realtime_ns(), &lines::Adopted { ring_file, slots, in_flight, gone: true });
    }

    /// A line of its own for a call, or for a failure.
    fn write_call(&mut self, call: &CallView<'_>) {
        let code = call.code().unwrap_or(0);
        if code == 0 && !self.writes_all {
            return;
        }
        let time_ns = call.time_ns().unwrap_or_else(realtime_ns);
        let message = if code == 0 { None } else { self.failures.failed(call, code, time_ns) };
        let Arguments { direction, bytes, dst_max, dst, src, stream } = Arguments::of(call.function, call.call);
        let scope = call.scope();
        let line = lines::Call {
            function: call.function.row().name,
            state: match call.code() {
                Some(_) => "returned",
                None if call.is_left => "left",
                None => "open",
            },
            code: call.code().map(i64::from),
            thread: call.whose.thread.into(),
            number: call.call.number,
            duration_ns: call.duration_ns(),
            direction,
            bytes,
            dst_max,
            dst,
            src,
            stream,
            site: Some(Address(call.call.site)),
            nested: call.call.is_nested,
            injected: call.call.is_injected(),
            scope: scope.as_deref(),
            stream_name: call.stream_name(),
        };
        let _ = match message {
            Some(message) => {
                self.stderr.failure(&message);
                self.log.line(time_ns, &failed(line, code, &message))
            }
            // Where every call is asked for, one that failed is still one.
            None if self.writes_all => self.log.line(time_ns, &line),
            None => Ok(()),
        };
    }

    fn write_drift(&mut self, call: &CallView<'_>) {
        let Some(drift) = self.failures.drift(call) else { return };
        let CallView { whose, function, call: record, .. } = *call;
        let row = function.row();
        let arguments: Vec<String> =
            record.arguments.iter().take(row.arguments.len()).map(|word| format!("{word:#x}")).collect();
        let message = format!(
            "{} was expected to return {} and returned {}: the rulebook or the vendor's release is another than thought",
            row.name, drift.expected, drift.returned
        );
        let cann = whose.platform.cann.map(|cann| format!("{}.{}", cann.major, cann.minor)).unwrap_or_default();
        let line = lines::Drift {
            function: row.name,
            rule: drift.rule,
            expected: drift.expected.into(),
            returned: drift.returned.into(),
            thread: whose.thread.into(),
            number: record.number,
            arguments: &arguments.join(" "),
            product: whose.platform.product.map(|product| product.name),
            cann: &cann,
            message: &message,
        };
        let _ = self.log.line(call.time_ns().unwrap_or_else(realtime_ns), &line);
    }

    fn probe_ended(&mut self, end: ProbeEnd) {
        let _ = match end {
            ProbeEnd::Answered(time_ns, message) => {
                self.log.line(time_ns, &lines::Note { topic: "probe", message: &message })
            }
            ProbeEnd::Failed(time_ns, message) => {
                self.stderr.failure(&message);
                self.log.line(time_ns, &lines::Warning { topic: "unsupported", message: &message })
            }
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
            let _ = self.log.write_report(now, report);
        }
    }

    /// What the calls add up to, if there are new ones.
    pub fn statistics(&mut self, totals: &Totals, names: &[String], losses: Losses) {
        let total = totals.total();
        if total.calls + total.nested == self.counted {
            return;
        }
        self.counted = total.calls + total.nested;
        let now = realtime_ns();
        let functions = totals.by_function();
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

    /// What goes wrong with the log now, if anything.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.log.trouble()
    }
}

impl CallVisitor for LogWriter {
    /// A call that has ended has its line by now.
    fn call(&mut self, call: &CallView<'_>) {
        if call.call.end.is_none() {
            self.write_call(call);
        }
    }

    #[inline]
    fn plain(&mut self, plain: &CommonCallView<'_>) {
        if self.wants_plain(&plain.whose) {
            let call = plain.call();
            let CommonCallView { whose, function, rules, .. } = *plain;
            let view = CallView { whose, function, call: &call, rules, is_left: false };
            self.begun(&view);
            self.write_call(&view);
        }
    }

    #[inline]
    fn wants_plain(&self, whose: &ProcessView<'_>) -> bool {
        self.writes_all || self.failures.is_probed(whose.ring)
    }

    fn begun(&mut self, call: &CallView<'_>) {
        if let Some(end) = self.failures.end_probe(call) {
            self.probe_ended(end);
        }
    }

    fn returned(&mut self, call: &CallView<'_>) {
        self.write_drift(call);
        self.write_call(call);
    }

    fn finding(&mut self, view: &FindingView<'_>) {
        let FindingView { whose, function, call, finding } = *view;
        let stack = (!finding.stack.is_empty()).then(|| finding.stack.join(" "));
        let source = finding.rule.sources.first().map(ToString::to_string).unwrap_or_default();
        let line = lines::Finding {
            rule: finding.rule.id,
            severity: finding.severity.name(),
            action: finding.action.name(),
            function: function.row().name,
            argument: finding.argument,
            index: finding.index,
            code: finding.code.map(i64::from),
            returned: call.end.map(|end| end.code.into()),
            refused: call.flags & REFUSED != 0,
            on: finding.on.as_deref(),
            thread: whose.thread.into(),
            number: call.number,
            site: Some(Address(call.site)),
            module: finding.site.as_ref().map(|site| site.module.as_str()),
            offset: finding.site.as_ref().map(|site| site.offset),
            stack: stack.as_deref(),
            source: &source,
            products: &finding.rule.scope.products(),
            versions: &finding.rule.scope.versions(),
            fix: finding.rule.fix,
            message: &finding.message,
        };
        let _ = self.log.line(view.time_ns().unwrap_or_else(realtime_ns), &line);
        let place = finding.site.as_ref().map_or_else(|| Address(call.site).to_string(), ToString::to_string);
        if finding.action >= Action::Warn {
            self.stderr.finding(&format!("{} (call from {place}, thread {})", finding.message, whose.thread));
        }
    }

    fn lost(&mut self, lost: &Lost<'_>) {
        let line = lines::Lost {
            calls: lost.calls,
            ring: Some(lost.whose.ring.into()),
            thread: Some(lost.whose.thread.into()),
            from_ns: lost.from_ns,
            to_ns: lost.to_ns,
            reason: "the ring was full",
            notes: lost.notes,
        };
        let _ = self.log.line(realtime_ns(), &line);
    }

    fn annotated(&mut self, remark: &AnnotationView<'_>) {
        let AnnotationView { whose, ticks, what } = *remark;
        let time_ns = remark.time_ns().unwrap_or_else(realtime_ns);
        let (labels, thread) = (whose.labels, whose.thread.into());
        let _ = match what {
            Annotation::Mark { text } => self.log.line(time_ns, &lines::Mark { thread, message: text }),
            Annotation::Scope { id, parent, name } => {
                let parent = (*parent != 0).then_some(u64::from(*parent));
                self.log.line(time_ns, &lines::Scope { id: (*id).into(), parent, name, thread })
            }
            Annotation::ScopeEnd { id, failures } => {
                let begin = labels.scope(*id).map(|scope| scope.begin);
                let name = labels.scope_name(*id).unwrap_or_default();
                let line = lines::ScopeEnd {
                    id: (*id).into(),
                    name: &name,
                    duration_ns: begin.and_then(|begin| Some(whose.clock()?.span_ns(ticks.saturating_sub(begin)))),
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
}
