//! The events of the interpreter, and the visitors that they are shown to.

use crate::findings::judge::ReportedFinding;
use crate::findings::modules::{Modules, Site};
use crate::findings::platform::Platform;
use crate::interpreter::labels::Labels;
use crate::interpreter::totals;
use aclshim_facts::Function;
use aclshim_facts::abi::aclrtMemcpyKind;
use aclshim_facts::call;
use aclshim_facts::direction::Direction;
use aclshim_trace::origin::Origin;
use aclshim_trace::record::annotation::Annotation;
use aclshim_trace::record::slot::{Head, Layout, Words};
use aclshim_trace::record::{Call, REFUSED, one_slot};
use aclshim_trace::system::clock::Calibration;
use std::borrow::Cow;

/// Where a call was made.
#[derive(Clone, Copy)]
pub struct ProcessView<'a> {
    /// The process.
    pub origin: &'a Origin,
    /// Its number among those that were read.
    pub process: usize,
    /// The ring that it was recorded in.
    pub ring: u32,
    /// The thread, 0 if that is not known.
    pub thread: u32,
    /// The modules of the process, as far as they are known by now.
    pub modules: &'a Modules,
    /// What the process calls its scopes, streams and buffers, as far as that is known by now.
    pub labels: &'a Labels,
    /// What the process runs on, as far as that is known by now.
    pub platform: &'a Platform,
}

impl<'a> ProcessView<'a> {
    /// How ticks become time, if that is known.
    pub fn clock(&self) -> Option<&'a Calibration> {
        self.origin.calibration.as_ref()
    }
}

/// A recorded call, with all that is known of it.
#[derive(Clone, Copy)]
pub struct CallView<'a> {
    /// Where it was made.
    pub whose: ProcessView<'a>,
    /// The function.
    pub function: Function,
    /// The record.
    pub call: &'a Call,
    /// The rules that it breaks, a bit each by their numbers.
    pub rules: u128,
    /// Whether it has no end and never will: an exception or a jump passed through it.
    pub is_left: bool,
}

impl<'a> CallView<'a> {
    /// When it began, in nanoseconds since 1970, if that is known.
    pub fn time_ns(&self) -> Option<u64> {
        self.whose.clock().map(|clock| clock.at_ns(self.call.begin))
    }

    /// How long it took; `None` if it has not ended, or that is not known.
    pub fn duration_ns(&self) -> Option<u64> {
        Some(self.whose.clock()?.span_ns(self.call.end?.duration))
    }

    /// What it returned, if it did.
    pub fn code(&self) -> Option<i32> {
        self.call.end.map(|end| end.code)
    }

    /// How many bytes it asks to move or set.
    pub fn bytes(&self) -> u64 {
        totals::bytes(self.function, self.call)
    }

    /// The arguments by role. Its pointers are those of another process.
    pub fn decoded(&self) -> call::Call {
        self.function.call(&self.call.arguments)
    }

    /// The kind of copy that was asked for; a fill or a batch has none.
    pub fn kind(&self) -> Option<aclrtMemcpyKind> {
        self.decoded().kind()
    }

    /// Which way the bytes went, as far as the arguments tell.
    pub fn direction(&self) -> Direction {
        totals::direction(self.kind(), self.call)
    }

    /// The stream of an asynchronous call; 0 is the default stream.
    pub fn stream(&self) -> Option<u64> {
        self.decoded().stream.map(|stream| stream as u64)
    }

    /// The name of that stream, if it has one.
    pub fn stream_name(&self) -> Option<&'a str> {
        self.whose.labels.stream(self.stream()?, self.call.begin)
    }

    /// The name of the memory at an address, and how far into it that is, if it has one.
    pub fn buffer(&self, address: u64) -> Option<(&'a str, u64)> {
        self.whose.labels.buffer(address, self.call.begin)
    }

    /// The scope that was open, if one was: its name, or its number where the name is not known.
    pub fn scope(&self) -> Option<Cow<'a, str>> {
        self.whose.labels.scope_name(self.call.scope)
    }

    /// Where it came from, if the module is known.
    pub fn site(&self) -> Option<Site> {
        self.whose.modules.site(self.call.site)
    }

    /// Whether it was refused by a rule, and not forwarded.
    pub fn is_refused(&self) -> bool {
        self.call.flags & REFUSED != 0
    }
}

/// A call of the common kind, still in its slot: outermost, ended with 0, and no rule but ALIGN-64 has anything to say.
#[derive(Clone, Copy)]
pub struct CommonCallView<'a> {
    /// Where it was made.
    pub whose: ProcessView<'a>,
    /// The function.
    pub function: Function,
    /// Its number on its ring.
    pub number: u64,
    /// The slot.
    pub slot: &'a Words,
    /// The rules that it breaks, a bit each by their numbers.
    pub rules: u128,
    /// How long it took, if that is known.
    pub duration_ns: Option<u64>,
}

impl CommonCallView<'_> {
    /// How many bytes it has moved.
    pub fn bytes(&self) -> u64 {
        self.slot[6]
    }

    /// When it began, in nanoseconds since 1970, if that is known.
    pub fn time_ns(&self) -> Option<u64> {
        Some(self.whose.clock()?.at_ns(self.slot[1]))
    }

    /// When it began and how long it took, in ticks.
    pub fn ticks(&self) -> (u64, u64) {
        (self.slot[1], self.slot[2])
    }

    /// The address behind the call.
    pub fn site(&self) -> u64 {
        self.slot[3]
    }

    /// Which way its bytes went.
    pub fn direction(&self) -> Direction {
        let head = Head(self.slot[0]);
        if head.layout() == Layout::Linear { Direction::of_kind(head.kind().into()) } else { Direction::Unknown }
    }

    /// The record, as of any other call.
    pub fn call(&self) -> Call {
        one_slot(self.slot, self.number)
    }
}

/// Calls that were forwarded and not recorded.
#[derive(Clone, Copy)]
pub struct Lost<'a> {
    /// Where they were made.
    pub whose: ProcessView<'a>,
    /// How many.
    pub calls: u64,
    /// Number of marks, names and scopes of the program that were not recorded either.
    pub notes: u64,
    /// When the first came, in nanoseconds since 1970, if that is known.
    pub from_ns: Option<u64>,
    /// When there was room again.
    pub to_ns: Option<u64>,
}

/// What a program tells of itself: a mark, a scope, a name.
#[derive(Clone, Copy)]
pub struct AnnotationView<'a> {
    /// The thread that recorded it.
    pub whose: ProcessView<'a>,
    /// When, in ticks.
    pub ticks: u64,
    /// What.
    pub what: &'a Annotation,
}

impl AnnotationView<'_> {
    /// When, in nanoseconds since 1970, if that is known.
    pub fn time_ns(&self) -> Option<u64> {
        Some(self.whose.clock()?.at_ns(self.ticks))
    }
}

/// A finding to report, and the call that it is about.
#[derive(Clone, Copy)]
pub struct FindingView<'a> {
    /// Where the call was made.
    pub whose: ProcessView<'a>,
    /// The function.
    pub function: Function,
    /// The call's record, as far as it was read when the call was judged.
    pub call: &'a Call,
    /// What was found.
    pub finding: &'a ReportedFinding,
}

impl FindingView<'_> {
    /// When the call began, in nanoseconds since 1970, if that is known.
    pub fn time_ns(&self) -> Option<u64> {
        self.whose.clock().map(|clock| clock.at_ns(self.call.begin))
    }
}

/// A consumer of the events that the [interpreter](crate::interpreter) makes of the records of a process.
///
/// Events of one ring come in two ways. [`begun`](Self::begun), [`returned`](Self::returned), [`finding`](Self::finding),
/// [`lost`](Self::lost) and [`annotated`](Self::annotated) come as soon as their records are read. [`call`](Self::call),
/// [`plain`](Self::plain) and [`remark`](Self::remark) come in the order in which the calls of the ring began, each once,
/// when nothing more is to be learned of it.
pub trait CallVisitor {
    /// A call of which all is known: it has ended, was left or is still under way where the records end, and it is judged.
    fn call(&mut self, seen: &CallView<'_>);

    /// The record of a call was read, of one that has not ended as well. Not for [common](Self::plain) calls.
    fn begun(&mut self, _call: &CallView<'_>) {}

    /// The end of a call was read; the call may not be judged yet. Not for [common](Self::plain) calls.
    fn returned(&mut self, _call: &CallView<'_>) {}

    /// A finding about a call is to be reported.
    fn finding(&mut self, _finding: &FindingView<'_>) {}

    /// The program said something of itself.
    fn annotated(&mut self, _remark: &AnnotationView<'_>) {}

    /// A call of the common kind, in place of [`call`](Self::call): for consumers that need less than the whole record.
    fn plain(&mut self, plain: &CommonCallView<'_>) {
        let call = plain.call();
        let CommonCallView { whose, function, rules, .. } = *plain;
        self.call(&CallView { whose, function, call: &call, rules, is_left: false });
    }

    /// Whether [`plain`](Self::plain) does anything with the next calls of a ring, until the visitor is shown another event.
    #[inline(always)]
    fn wants_plain(&self, _whose: &ProcessView<'_>) -> bool {
        true
    }

    /// Calls are missing here.
    fn lost(&mut self, _lost: &Lost<'_>) {}

    /// The program tells something of itself, between the calls of its thread.
    fn remark(&mut self, _remark: &AnnotationView<'_>) {}

    /// Whether [`begun`](Self::begun) and [`returned`](Self::returned) are wanted for every call where calls are
    /// [merged](crate::interpreter::merge) by time: the begin and the end of a call are then shown each at its own time.
    fn wants_merged_events(&self) -> bool {
        false
    }
}

/// Shows all events to two visitors.
pub(crate) struct Both<'a, A: ?Sized, B: ?Sized>(pub &'a mut A, pub &'a mut B);

impl<A: CallVisitor + ?Sized, B: CallVisitor + ?Sized> CallVisitor for Both<'_, A, B> {
    fn call(&mut self, call: &CallView<'_>) {
        self.0.call(call);
        self.1.call(call);
    }

    fn begun(&mut self, call: &CallView<'_>) {
        self.0.begun(call);
        self.1.begun(call);
    }

    fn returned(&mut self, call: &CallView<'_>) {
        self.0.returned(call);
        self.1.returned(call);
    }

    fn finding(&mut self, finding: &FindingView<'_>) {
        self.0.finding(finding);
        self.1.finding(finding);
    }

    fn annotated(&mut self, remark: &AnnotationView<'_>) {
        self.0.annotated(remark);
        self.1.annotated(remark);
    }

    #[inline(always)]
    fn plain(&mut self, plain: &CommonCallView<'_>) {
        self.0.plain(plain);
        self.1.plain(plain);
    }

    #[inline(always)]
    fn wants_plain(&self, whose: &ProcessView<'_>) -> bool {
        self.0.wants_plain(whose) || self.1.wants_plain(whose)
    }

    fn lost(&mut self, lost: &Lost<'_>) {
        self.0.lost(lost);
        self.1.lost(lost);
    }

    fn remark(&mut self, remark: &AnnotationView<'_>) {
        self.0.remark(remark);
        self.1.remark(remark);
    }
}

/// A visitor that adds up what it is shown, so that several can do so in parallel.
pub trait ParallelVisitor: CallVisitor + Send + Sized {
    /// One more, which was shown nothing yet. It is shown [common](CallVisitor::plain) calls, and such that are like them but for
    /// having failed; of modules and names nothing is known there.
    fn another(&self) -> Self;

    /// What is shown from now on comes at this turn, to whichever of the visitors it is shown. Turns begin with 0 and are unique.
    fn at(&mut self, turn: u64);

    /// Takes over what the others were shown, as if everything had been shown to this one, turn by turn.
    fn join(&mut self, others: Vec<Self>);
}

impl<F: FnMut(&CallView<'_>)> CallVisitor for F {
    fn call(&mut self, seen: &CallView<'_>) {
        self(seen);
    }
}

/// Ignores all events.
pub struct NoVisitor;

impl CallVisitor for NoVisitor {
    fn call(&mut self, _: &CallView<'_>) {}
    fn plain(&mut self, _: &CommonCallView<'_>) {}
    fn wants_plain(&self, _: &ProcessView<'_>) -> bool {
        false
    }
}
