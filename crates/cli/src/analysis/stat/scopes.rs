//! Calls by the scope that was open: those of one name together.

use aclshim_collect::interpreter::totals::Histogram;
use aclshim_collect::interpreter::visitor::CallView;
use aclshim_collect::trace_set::TraceSet;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of names with sums of their own.
const MOST: usize = 4096;
/// The name under which further ones are added up.
const OTHERS: &str = "(others)";

/// What is known of the scopes of one name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScopeStat {
    pub scopes: u64,
    /// Outermost calls while one of them was the innermost.
    pub calls: u64,
    /// Bytes of those that returned 0.
    pub bytes: u64,
    /// Calls that returned something else.
    pub errors: u64,
    /// Half of the calls took no longer.
    pub p50_ns: Option<u64>,
    /// Expectations that have failed.
    pub failures: u64,
    #[serde(skip)]
    durations: Histogram,
}

/// A scope by its name, or by process and number while that is not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ScopeKey {
    Name(String),
    Number(usize, u32),
}

/// Sums by scope.
#[derive(Default)]
pub struct Scopes {
    sums: BTreeMap<ScopeKey, ScopeStat>,
}

impl Scopes {
    /// Adds an outermost call.
    pub fn add(&mut self, seen: &CallView<'_>) {
        let id = seen.call.scope;
        if id == 0 {
            return;
        }
        let known = seen.whose.labels.scope(id);
        let key =
            known.map_or(ScopeKey::Number(seen.whose.process, id), |scope| ScopeKey::Name(scope.name.to_string()));
        let sum = self.at(key);
        sum.calls += 1;
        match seen.code() {
            Some(0) => sum.bytes = sum.bytes.saturating_add(seen.bytes()),
            Some(_) => sum.errors += 1,
            None => {}
        }
        if let Some(duration) = seen.duration_ns() {
            sum.durations.add(duration);
        }
    }

    fn at(&mut self, key: ScopeKey) -> &mut ScopeStat {
        let is_full = self.sums.len() >= MOST && !self.sums.contains_key(&key);
        self.sums.entry(if is_full { ScopeKey::Name(OTHERS.into()) } else { key }).or_default()
    }

    /// The sums by name, once everything is read; also of scopes without a call.
    pub fn by_name(mut self, set: &TraceSet) -> BTreeMap<String, ScopeStat> {
        for scope in set.processes().flat_map(|process| process.labels.scopes().map(|(_, scope)| scope)) {
            let sum = self.at(ScopeKey::Name(scope.name.to_string()));
            sum.scopes += 1;
            sum.failures = sum.failures.saturating_add(scope.end.map_or(0, |(_, failures)| failures));
        }
        let mut named: BTreeMap<String, ScopeStat> = BTreeMap::new();
        for (key, sum) in self.sums {
            let name = match key {
                ScopeKey::Name(name) => name,
                ScopeKey::Number(process, id) => {
                    let labels = set.process(process).map(|process| &process.labels);
                    labels.and_then(|labels| labels.scope_name(id)).unwrap_or_default().into_owned()
                }
            };
            let into = named.entry(name).or_default();
            into.scopes += sum.scopes;
            into.calls += sum.calls;
            into.bytes = into.bytes.saturating_add(sum.bytes);
            into.errors += sum.errors;
            into.failures = into.failures.saturating_add(sum.failures);
            into.durations.merge(&sum.durations);
        }
        for sum in named.values_mut() {
            sum.p50_ns = sum.durations.percentile(50);
        }
        named
    }
}
