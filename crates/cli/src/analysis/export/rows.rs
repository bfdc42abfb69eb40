//! Recorded calls as rows, on their way to a sink.

use super::Sink;
use super::row::Row;
use super::texts::{Text, Texts};
use aclshim_collect::findings::modules::Modules;
use aclshim_collect::interpreter::visitor::{AnnotationView, CallView, CallVisitor, ProcessView};
use aclshim_facts::abi::KINDS;
use aclshim_facts::call::{Batch, Call, Form};
use aclshim_facts::direction::Direction;
use aclshim_facts::{FUNCTIONS, code};
use aclshim_trace::origin::Origin;
use aclshim_trace::record::annotation::Annotation;
use anyhow::Result;
use std::collections::HashMap;

/// Turns calls into rows and passes them to a sink.
pub struct Rows {
    sink: Box<dyn Sink>,
    texts: Texts,
    functions: Vec<Text>,
    kinds: [Text; KINDS.len()],
    directions: [Option<Text>; Direction::ALL.len()],
    states: [Text; 3],
    /// The columns of each process, by its number.
    processes: Vec<Option<ProcessColumns>>,
    /// The first failure; nothing is handed on behind it.
    failure: Option<anyhow::Error>,
    /// How many calls have no known time.
    pub timeless: u64,
}

/// The columns that are equal in all rows of a process, and its call sites.
struct ProcessColumns {
    row: Row,
    /// How long the names of product and version are, which are empty at first.
    known: [usize; 2],
    sites: HashMap<u64, ModuleOffset>,
    /// The last one, which is often the next.
    last: Option<(u64, ModuleOffset)>,
}

/// A module, and where in it.
type ModuleOffset = (Text, u64);

/// A duration that did not fit; the whole end comes in a record of its own, if it does.
const NO_END: u64 = u32::MAX as u64;

impl Rows {
    /// Rows that are passed to `sink`.
    pub fn new(sink: Box<dyn Sink>) -> Self {
        let mut texts = Texts::default();
        Self {
            kinds: KINDS.map(|kind| texts.intern(kind)),
            functions: FUNCTIONS.iter().map(|row| texts.intern(row.name)).collect(),
            directions: Direction::ALL.map(|way| (way != Direction::Unknown).then(|| texts.intern(way.name()))),
            states: ["done", "left", "in flight"].map(|state| texts.intern(state)),
            texts,
            sink,
            processes: Vec::new(),
            failure: None,
            timeless: 0,
        }
    }

    /// Ends the export.
    pub fn finish(self) -> Result<()> {
        match self.failure {
            Some(failure) => Err(failure),
            None => self.sink.finish(&self.texts),
        }
    }

    fn row(&mut self, seen: &CallView<'_>) -> Row {
        let CallView { whose, function, call, rules, is_left } = *seen;
        self.process(&whose);
        let Some(process) = self.processes.get_mut(whose.process).and_then(Option::as_mut) else {
            return Row::default();
        };
        let decoded = seen.decoded();
        let kind = decoded.kind();
        let end = call.end.filter(|end| end.duration != NO_END);
        let site = process.site(call.site, whose.modules, &mut self.texts);
        let [done, left, in_flight] = self.states;
        let direction = kind.map_or_else(|| seen.direction(), |kind| Direction::of_kind(kind.0));
        let mut row = Row {
            thread: (whose.thread != 0).then_some(whose.thread),
            ring: Some(whose.ring),
            number: Some(call.number),
            function: self.functions.get(function as usize).copied(),
            time_ns: seen.time_ns().and_then(|time| i64::try_from(time).ok()),
            duration_ns: end.and_then(|_| seen.duration_ns()).and_then(|time| i64::try_from(time).ok()),
            state: Some(match (end, is_left) {
                (Some(_), _) => done,
                (None, true) => left,
                (None, false) => in_flight,
            }),
            code: end.map(|end| end.code),
            code_name: end.filter(|end| end.code != 0).and_then(|end| Some(self.texts.intern(code::name(end.code)?))),
            nested: call.is_nested,
            refused: seen.is_refused(),
            injected: call.is_injected(),
            rules,
            kind: kind.map(|kind| kind.0),
            kind_name: kind.and_then(|kind| self.kinds.get(usize::try_from(kind.0).ok()?).copied()),
            direction: self.directions[direction as usize],
            site: Some(call.site),
            module: site.map(|(module, _)| module),
            module_offset: site.map(|(_, offset)| offset),
            scope: seen.scope().map(|name| self.texts.intern(&name)),
            scope_id: (call.scope != 0).then_some(call.scope),
            stream_name: seen.stream_name().map(|name| self.texts.intern(name)),
            ..process.row
        };
        arguments(&mut row, &decoded, seen);
        [row.dst_name, row.src_name] = [row.dst, row.src].map(|at| at.and_then(|at| seen.buffer(at))).map(|at| {
            let (name, _) = at?;
            Some(self.texts.intern(name))
        });
        row
    }

    /// A row that says whose it is and when.
    fn about(&mut self, remark: &AnnotationView<'_>) -> Row {
        let whose = remark.whose;
        let thread = (whose.thread != 0).then_some(whose.thread);
        let time_ns = remark.time_ns().and_then(|time| i64::try_from(time).ok());
        let process = self.process(&whose);
        Row { thread, ring: Some(whose.ring), time_ns, ..process.row }
    }

    fn process(&mut self, whose: &ProcessView<'_>) -> &mut ProcessColumns {
        if self.processes.len() <= whose.process {
            self.processes.resize_with(whose.process + 1, || None);
        }
        let process = self.processes[whose.process].get_or_insert_with(|| ProcessColumns::new(whose, &mut self.texts));
        process.learn(whose.origin, &mut self.texts);
        process
    }
}

impl ProcessColumns {
    fn new(whose: &ProcessView<'_>, texts: &mut Texts) -> Self {
        let origin = whose.origin;
        let row = Row {
            process: whose.process,
            host: texts.intern_if_any(&origin.host),
            boot: texts.intern_if_any(&origin.boot_id),
            pid: Some(origin.pid),
            born_ns: i64::try_from(origin.born_ns).ok(),
            rank: texts.intern_if_any(&origin.rank),
            executable: texts.intern_if_any(&origin.executable.to_string_lossy()),
            ..Row::default()
        };
        Self { row, known: [0; 2], sites: HashMap::new(), last: None }
    }

    /// What may not have been known at first.
    fn learn(&mut self, origin: &Origin, texts: &mut Texts) {
        let lengths = [origin.product.len(), origin.cann.len()];
        if self.known != lengths {
            self.known = lengths;
            self.row.product = texts.intern_if_any(&origin.product);
            self.row.cann = texts.intern_if_any(&origin.cann);
        }
    }

    fn site(&mut self, address: u64, modules: &Modules, texts: &mut Texts) -> Option<ModuleOffset> {
        if let Some((_, site)) = self.last.filter(|(last, _)| *last == address) {
            return Some(site);
        }
        let known = self.sites.get(&address).copied();
        let site = known.or_else(|| modules.site(address).map(|site| (texts.intern(&site.module), site.offset)))?;
        self.sites.insert(address, site);
        self.last = Some((address, site));
        Some(site)
    }
}

/// The arguments by role.
fn arguments(row: &mut Row, decoded: &Call, seen: &CallView<'_>) {
    let size = |size: usize| Some(size as u64);
    row.stream = decoded.stream.map(|stream| stream as u64);
    row.bytes = Some(seen.bytes());
    match decoded.form {
        Form::Linear { dst, dst_max, src, count, .. } => {
            (row.dst, row.src) = (Some(dst as u64), Some(src as u64));
            (row.dst_max, row.count) = (size(dst_max), size(count));
        }
        Form::Pitched { dst, dst_pitch, src, src_pitch, width, height, .. } => {
            (row.dst, row.src) = (Some(dst as u64), Some(src as u64));
            (row.dst_pitch, row.src_pitch) = (size(dst_pitch), size(src_pitch));
            (row.width, row.height) = (size(width), size(height));
        }
        Form::Batch(Batch { items, .. }) => {
            let batch = seen.call.batch.as_ref();
            row.items = size(items);
            row.bytes = batch.map(|batch| batch.total);
            (row.smallest, row.largest) = (batch.map(|batch| batch.smallest), batch.map(|batch| batch.largest));
            row.too_large = batch.map(|batch| batch.too_large);
        }
        Form::Indirect { dst, dst_max, dst_offset, src, count, src_offset, .. } => {
            (row.dst, row.src) = (Some(dst as u64), Some(src as u64));
            (row.dst_max, row.count) = (size(dst_max), size(count));
            (row.dst_offset, row.src_offset) = (size(dst_offset), size(src_offset));
        }
        Form::Described { desc, .. } => (row.descriptor, row.bytes) = (Some(desc as u64), None),
        Form::FromSymbol { dst, dst_max, symbol, count, offset, .. } => {
            (row.dst, row.src) = (Some(dst as u64), Some(symbol as u64));
            (row.dst_max, row.count, row.src_offset) = (size(dst_max), size(count), size(offset));
        }
        Form::ToSymbol { symbol, src, count, offset, .. } => {
            (row.dst, row.src) = (Some(symbol as u64), Some(src as u64));
            (row.count, row.dst_offset) = (size(count), size(offset));
        }
        Form::DescSize { .. } => {}
        Form::SetDesc { desc, src, dst, count, .. } => {
            (row.dst, row.src) = (Some(dst as u64), Some(src as u64));
            (row.descriptor, row.count) = (Some(desc as u64), size(count));
        }
        Form::Fill { dst, dst_max, value, count } => {
            (row.dst, row.dst_max) = (Some(dst as u64), size(dst_max));
            (row.value, row.count) = (Some(value.into()), size(count));
        }
        Form::FillWords { dst, dst_max, value, words } => {
            (row.dst, row.dst_max) = (Some(dst as u64), size(dst_max));
            (row.value, row.count) = (Some(value.into()), size(words));
        }
    }
}

impl CallVisitor for Rows {
    fn call(&mut self, seen: &CallView<'_>) {
        if self.failure.is_some() {
            return;
        }
        let row = self.row(seen);
        self.failure = self.sink.row(&row, &self.texts).err();
        self.timeless += u64::from(row.time_ns.is_none());
    }

    fn remark(&mut self, remark: &AnnotationView<'_>) {
        if self.failure.is_some() {
            return;
        }
        let row = self.about(remark);
        let name = match remark.what {
            Annotation::ScopeEnd { id, .. } => remark.whose.labels.scope_name(*id).unwrap_or_default(),
            Annotation::Mark { text: name } | Annotation::Scope { name, .. } | Annotation::Name { name, .. } => {
                name.into()
            }
        };
        self.failure = self.sink.remark(&row, remark.what, &name, &self.texts).err();
    }
}
