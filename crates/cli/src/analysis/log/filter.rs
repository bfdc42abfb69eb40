//! Which calls are shown.

use crate::output::time;
use aclshim_collect::interpreter::labels::Labels;
use aclshim_collect::interpreter::visitor::{AnnotationView, CallView};
use aclshim_facts::rules::RULES;
use aclshim_facts::{FUNCTIONS, written};
use aclshim_trace::record::annotation::Annotation;
use anyhow::{Result, ensure};

/// What is asked for; a call is shown if all of it holds.
#[derive(clap::Args, Default)]
pub struct Filter {
    /// Only these functions; `*` stands for anything
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,
    /// Only these kinds of copy, as in HOST_TO_DEVICE
    #[arg(long, value_name = "KIND", value_parser = parser(written::kind, written::KIND))]
    kind: Vec<i32>,
    /// Only calls of at least so many bytes, as in 4096, 64K, 1M
    #[arg(long, value_name = "SIZE", value_parser = parser(written::size, written::SIZE))]
    larger: Option<u64>,
    /// Only calls of at most so many bytes
    #[arg(long, value_name = "SIZE", value_parser = parser(written::size, written::SIZE))]
    smaller: Option<u64>,
    /// Only calls that took at least so long, as in 500ns, 20us, 3ms, 1s
    #[arg(long, value_name = "TIME", value_parser = parser(written::span, written::SPAN))]
    longer: Option<u64>,
    /// Only calls that took at most so long
    #[arg(long, value_name = "TIME", value_parser = parser(written::span, written::SPAN))]
    shorter: Option<u64>,
    /// Only calls that returned one of these codes, as in 107000 or ACL_ERROR_RT_PARAM_INVALID
    #[arg(long, value_name = "CODE", allow_negative_numbers = true, value_parser = parser(written::code, written::CODE))]
    code: Vec<i32>,
    /// Only calls that returned something else than 0
    #[arg(long)]
    failed: bool,
    /// Only calls that break one of these rules; `any` stands for all
    #[arg(long, value_name = "RULE")]
    rule: Vec<String>,
    /// Only calls of these threads
    #[arg(long, value_name = "ID")]
    thread: Vec<u32>,
    /// Only calls of these processes
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    /// Only calls on these streams, as in 0x7f00; 0 is the default stream
    #[arg(long, value_name = "ADDRESS", value_parser = parser(written::address, written::ADDRESS))]
    stream: Vec<u64>,
    /// Only calls on the streams that the program calls so
    #[arg(long, value_name = "NAME")]
    stream_name: Vec<String>,
    /// Only calls in the scopes that the program calls so, and in scopes within these; `*` stands for anything
    #[arg(long, value_name = "NAME")]
    scope: Vec<String>,
    /// Only calls that began at or after this moment, as in 2026-11-16T15:04 (UTC), or nanoseconds since 1970
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    from: Option<u64>,
    /// Only calls that began before this moment
    #[arg(long, value_name = "MOMENT", value_parser = moment)]
    to: Option<u64>,
    #[arg(skip)]
    rules: u128,
}

impl Filter {
    /// Looks whether the functions and rules exist.
    pub fn check(mut self) -> Result<Self> {
        for pattern in &self.function {
            let is_known = FUNCTIONS.iter().any(|row| written::is_like(pattern.as_bytes(), row.name.as_bytes()));
            ensure!(is_known, "{pattern}: no such function; docs/functions.md lists them, and `*` stands for anything");
        }
        for name in &self.rule {
            let is_it = |rule: &&&aclshim_facts::rule::Rule| rule.id.eq_ignore_ascii_case(&name.replace('_', "-"));
            let bits = match name.as_str() {
                // Those of a later release too.
                "any" => u128::MAX,
                _ => RULES.iter().filter(is_it).fold(0, |bits, rule| bits | 1u128 << rule.number),
            };
            ensure!(bits != 0, "{name}: no such rule; `aclshim rules` lists them");
            self.rules |= bits;
        }
        Ok(self)
    }

    /// Whether a call is shown.
    pub fn accepts(&self, seen: &CallView<'_>) -> bool {
        let is_among = |list: &[u32], value: u32| list.is_empty() || list.contains(&value);
        let is_within = |value: Option<u64>, least: Option<u64>, most: Option<u64>| match value {
            Some(value) => least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most),
            None => least.is_none() && most.is_none(),
        };
        let name = seen.function.row().name;
        (self.function.is_empty()
            || self.function.iter().any(|pattern| written::is_like(pattern.as_bytes(), name.as_bytes())))
            && (self.kind.is_empty() || seen.kind().is_some_and(|kind| self.kind.contains(&kind.0)))
            && is_within(Some(seen.bytes()), self.larger, self.smaller)
            && is_within(seen.duration_ns(), self.longer, self.shorter)
            && (self.code.is_empty() || seen.code().is_some_and(|code| self.code.contains(&code)))
            && (!self.failed || seen.code().is_some_and(|code| code != 0))
            && (self.rules == 0 || seen.rules & self.rules != 0)
            && is_among(&self.thread, seen.whose.thread)
            && is_among(&self.pid, seen.whose.origin.pid)
            && (self.stream.is_empty() || seen.stream().is_some_and(|stream| self.stream.contains(&stream)))
            && (self.stream_name.is_empty()
                || seen.stream_name().is_some_and(|name| self.stream_name.iter().any(|of| of == name)))
            && (self.scope.is_empty() || self.is_in_scope(seen.whose.labels, seen.call.scope))
            && is_within(seen.time_ns(), self.from, self.to.map(|to| to.saturating_sub(1)))
    }

    /// Whether an annotation is shown: only if the filter asks for nothing that only a call has.
    pub fn accepts_annotation(&self, remark: &AnnotationView<'_>) -> bool {
        let Self { function, kind, larger, smaller, longer, shorter, code, failed, rule, thread, pid, .. } = self;
        let names = [function.is_empty(), rule.is_empty(), self.stream_name.is_empty()];
        let numbers = [kind.is_empty(), code.is_empty(), self.stream.is_empty(), !failed];
        let bounds = [larger, smaller, longer, shorter].map(Option::is_none);
        let is_of_calls = [&names[..], &numbers, &bounds].concat().contains(&false);
        let time = remark.time_ns();
        let is_among = |list: &[u32], value: u32| list.is_empty() || list.contains(&value);
        !is_of_calls
            && is_among(thread, remark.whose.thread)
            && is_among(pid, remark.whose.origin.pid)
            && self.from.is_none_or(|from| time.is_some_and(|time| time >= from))
            && self.to.is_none_or(|to| time.is_some_and(|time| time < to))
            && (self.scope.is_empty() || self.is_in_named_scope(remark))
    }

    /// Whether a scope, or one that it lies in, is asked for.
    fn is_in_scope(&self, labels: &Labels, id: u32) -> bool {
        let mut id = id;
        // A scope lies in an older one: a damaged record may say otherwise.
        for _ in 0..64 {
            let Some(name) = labels.scope_name(id) else { return false };
            if self.scope.iter().any(|pattern| written::is_like(pattern.as_bytes(), name.as_bytes())) {
                return true;
            }
            id = labels.scope(id).map_or(0, |scope| scope.parent);
        }
        false
    }

    /// Whether it is about such a scope, or was made while one was open.
    fn is_in_named_scope(&self, remark: &AnnotationView<'_>) -> bool {
        let labels = remark.whose.labels;
        match remark.what {
            Annotation::Scope { id, .. } | Annotation::ScopeEnd { id, .. } => self.is_in_scope(labels, *id),
            Annotation::Mark { .. } | Annotation::Name { .. } => labels.scopes().any(|(id, scope)| {
                let end = scope.end.map_or(u64::MAX, |(end, _)| end);
                (scope.begin..=end).contains(&remark.ticks) && self.is_in_scope(labels, id)
            }),
        }
    }
}

/// A parser of an argument out of a function that reads what people write; `what` says what it should have been.
fn parser<T: 'static>(
    how: fn(&[u8]) -> Option<T>,
    what: &'static str,
) -> impl Fn(&str) -> Result<T, &'static str> + Clone + Send + Sync + 'static {
    move |text| how(text.as_bytes()).ok_or(what)
}

fn moment(text: &str) -> Result<u64, &'static str> {
    time::parse(text).ok_or("a moment in UTC, as in 2026-11-16T15:04:05, or nanoseconds since 1970")
}
