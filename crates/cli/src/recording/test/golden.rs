//! The golden run of a whole program, from its trace.

use crate::analysis::sarif::SiteCounts;
use aclshim_collect::interpreter::visitor::{AnnotationView, CallView, CallVisitor};
use aclshim_collect::trace_set::{Process, TraceSet};
use aclshim_golden::{Attribute, Call, End, GoldenRun, Item, MARK_INJECTED, MARK_REFUSED, Name, NamedObject};
use aclshim_trace::record::annotation::{self, Annotation};
use aclshim_trace::record::{self, INJECTED, REFUSED};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// Maximum number of lines of a difference that are shown.
const MOST_LINES: usize = 200;

/// What is gathered while the trace is read.
pub struct GoldenVisitor {
    /// How often rules were broken where.
    pub counts: SiteCounts,
    /// The calls by process, if a golden file is compared or written.
    runs: Option<BTreeMap<usize, GoldenRun>>,
    /// Scopes that have begun and not ended, by process and number.
    open: BTreeMap<(usize, u32), String>,
}

/// How a run compares with its golden file.
#[derive(PartialEq, Eq)]
pub enum GoldenOutcome {
    /// The run is equal to the golden file.
    Same,
    Updated,
    /// They differ; the text says how.
    Differs(String),
}

impl GoldenVisitor {
    /// A visitor that also gathers the calls, if `with_calls`.
    pub fn new(with_calls: bool) -> Self {
        Self { counts: SiteCounts::default(), runs: with_calls.then(BTreeMap::new), open: BTreeMap::new() }
    }
}

impl CallVisitor for GoldenVisitor {
    fn call(&mut self, seen: &CallView<'_>) {
        self.counts.call(seen);
        if let Some(runs) = self.runs.as_mut().filter(|_| !seen.call.is_nested) {
            runs.entry(seen.whose.process).or_default().calls.push(golden_call(seen));
        }
    }

    fn remark(&mut self, remark: &AnnotationView<'_>) {
        let process = remark.whose.process;
        match remark.what {
            Annotation::Scope { id, name, .. } => _ = self.open.insert((process, *id), name.clone()),
            Annotation::ScopeEnd { id, .. } => _ = self.open.remove(&(process, *id)),
            Annotation::Name { kind, begin, size, name } => {
                let named = match kind {
                    annotation::NamedKind::Stream => NamedObject::Stream(*begin),
                    annotation::NamedKind::Buffer => NamedObject::Buffer { begin: *begin, size: *size },
                };
                if let Some(runs) = &mut self.runs {
                    let name = Name { at: remark.ticks, named, name: name.clone() };
                    runs.entry(process).or_default().names.push(name);
                }
            }
            Annotation::Mark { .. } => {}
        }
    }
}

fn golden_call(seen: &CallView<'_>) -> Call {
    let batch = seen.call.batch.as_ref();
    let halves = |word: u64| ((word >> 32) as i32, word as u32);
    let attribute = |of: &record::Attribute| Attribute { first: of.first, dst: halves(of.dst), src: halves(of.src) };
    let item = |of: &record::Item| Item {
        dst: of.dst,
        dst_max: of.size.saturating_add_signed(of.room.into()),
        src: of.src,
        size: of.size,
    };
    let mark = |flag: u16, mark: u16| if seen.call.flags & flag != 0 { mark } else { 0 };
    Call {
        thread: seen.whose.thread.into(),
        at: seen.call.begin,
        function: seen.function,
        arguments: seen.call.arguments,
        end: match seen.code() {
            Some(code) => End::Returned(code),
            None if seen.is_left => End::Left,
            None => End::UnderWay,
        },
        marks: mark(INJECTED, MARK_INJECTED) | mark(REFUSED, MARK_REFUSED),
        attributes: batch.map(|batch| batch.attributes.iter().map(attribute).collect()).unwrap_or_default(),
        items: batch.map(|batch| batch.items.iter().map(item).collect()).unwrap_or_default(),
    }
}

impl GoldenVisitor {
    /// The scopes that have begun and not ended.
    pub fn open_scopes(&self, set: &TraceSet, takes: &dyn Fn(&Process) -> bool) -> Vec<String> {
        let of_the_run = self.open.iter().filter(|((process, _), _)| set.process(*process).is_some_and(takes));
        of_the_run.map(|(_, name)| name.clone()).collect()
    }

    /// The text of the run: the program is the process `pid`, or the only one that there is.
    pub fn text(&mut self, set: &TraceSet, pid: u32, takes: &dyn Fn(&Process) -> bool) -> String {
        let mut runs = self.runs.take().unwrap_or_default();
        let mut numbers: Vec<usize> = runs.keys().copied().filter(|at| set.process(*at).is_some_and(takes)).collect();
        let born = |at: &usize| set.process(*at).map(|process| process.origin.born_ns);
        numbers.sort_by_key(born);
        let is_program = |at: &usize| set.process(*at).is_some_and(|process| process.origin.pid == pid);
        let program = match (numbers.iter().position(is_program), &numbers[..]) {
            (Some(first), _) => Some(numbers.remove(first)),
            // A shell started it.
            (None, [_]) => numbers.pop(),
            _ => None,
        };
        let mut run = |at: usize| {
            let main = set.process(at).map(|process| process.origin.pid.into());
            let mut run = GoldenRun { main, ..runs.remove(&at).unwrap_or_default() };
            // They come thread by thread.
            run.names.sort_by_key(|name| name.at);
            run
        };
        let program = program.map(&mut run).unwrap_or_default();
        let children: Vec<GoldenRun> = numbers.into_iter().map(run).collect();
        aclshim_golden::text(&program, &children)
    }
}

/// Compares a run with a golden file.
pub fn compare(path: &Path, actual: &str) -> Result<GoldenOutcome> {
    let expected = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(why) if why.kind() == ErrorKind::NotFound => {
            return Ok(GoldenOutcome::Differs("there is no such file yet; --update writes it".into()));
        }
        Err(why) => return Err(why).with_context(|| path.display().to_string()),
    };
    Ok(match aclshim_golden::compare(&expected, actual) {
        None => GoldenOutcome::Same,
        Some(diff) => {
            let diff = aclshim_golden::cut(&diff, MOST_LINES);
            GoldenOutcome::Differs(format!(
                "the calls are not what it holds; --update accepts them\n{}",
                diff.trim_end()
            ))
        }
    })
}

/// Writes a golden file, unless its calls are equal already: comments of its authors stay.
pub fn update(path: &Path, actual: &str) -> Result<GoldenOutcome> {
    if std::fs::read_to_string(path).is_ok_and(|expected| aclshim_golden::compare(&expected, actual).is_none()) {
        return Ok(GoldenOutcome::Same);
    }
    super::write(path, actual)?;
    Ok(GoldenOutcome::Updated)
}
