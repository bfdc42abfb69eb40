//! Findings as SARIF 2.1.0, for code review: one result a rule and call site, at the line where the call stands written.
//!
//! <https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>

use crate::reading::symbols::{SourceLocation, Symbols};
use crate::reading::traces::rule_numbers;
use aclshim_collect::interpreter::visitor::{CallView, CallVisitor, CommonCallView};
use aclshim_collect::trace_set::{Found, Process, TraceSet};
use aclshim_facts::rule::{Rule, Severity};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// How often each rule was broken at each call site: only the first findings are recorded one by one.
#[derive(Default)]
pub struct SiteCounts(BTreeMap<(usize, u8, u64), u64>);

impl SiteCounts {
    /// Takes a call into account.
    pub fn add(&mut self, process: usize, rules: u128, site: u64) {
        for number in rule_numbers(rules) {
            *self.0.entry((process, number, site)).or_default() += 1;
        }
    }
}

impl CallVisitor for SiteCounts {
    fn call(&mut self, seen: &CallView<'_>) {
        self.add(seen.whose.process, seen.rules, seen.call.site);
    }

    fn plain(&mut self, plain: &CommonCallView<'_>) {
        self.add(plain.whose.process, plain.rules, plain.site());
    }
}

/// What a rule is called in a report: one that is about another product is a rule of its own.
pub fn name(found: &Found) -> String {
    match &found.told.on {
        Some(on) => format!("{} on {on}", found.told.rule.id),
        None => found.told.rule.id.into(),
    }
}

/// What identifies a result to the reader: the rule, and the source location of the call.
struct ResultKey<'a> {
    process: &'a Process,
    found: &'a Found,
    location: Option<SourceLocation>,
    count: u64,
    severity: Severity,
}

/// The report. Of processes that `takes` takes; findings of rules in `expected` are marked as suppressed.
pub fn report(
    set: &TraceSet,
    counts: &SiteCounts,
    expected: &BTreeSet<&str>,
    takes: &dyn Fn(&Process) -> bool,
) -> Value {
    let folder = std::env::current_dir().unwrap_or_default();
    let mut symbols = Symbols::default();
    // By rule, file or module, and line or offset.
    let mut rows: BTreeMap<(String, String, u64), ResultKey> = BTreeMap::new();
    let mut counted = BTreeSet::new();
    for (number, process) in set.processes().enumerate().filter(|(_, process)| takes(process)) {
        for found in &process.findings {
            let location = symbols.location(&process.origin, process.modules(), found.site);
            let key = match &location {
                Some(SourceLocation { file: Some(file), line: Some(line), .. }) => {
                    (name(found), file.clone(), u64::from(*line))
                }
                _ => {
                    let site = process.modules().site(found.site);
                    let (module, offset) = site.map_or((String::new(), found.site), |site| (site.module, site.offset));
                    (name(found), module, offset)
                }
            };
            let row = rows.entry(key).or_insert(ResultKey {
                process,
                found,
                location,
                count: 0,
                severity: found.told.severity,
            });
            row.severity = row.severity.max(found.told.severity);
            let is_first = counted.insert((number, name(found), found.site));
            row.count += match counts.0.get(&(number, found.told.rule.number, found.site)) {
                // What was counted is about the product at hand.
                Some(count) if found.told.on.is_none() => count * u64::from(is_first),
                _ => 1,
            };
        }
    }
    let ids: BTreeSet<&'static str> = rows.values().map(|row| row.found.told.rule.id).collect();
    let ids: Vec<&'static str> = ids.into_iter().collect();
    let rules: Vec<Value> = ids.iter().filter_map(|id| Rule::by_id(id)).map(rule).collect();
    let results: Vec<Value> = rows.values().map(|row| result(row, &ids, expected, &folder)).collect();
    json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "aclshim",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "originalUriBaseIds": { BASE: { "uri": format!("file://{}/", encoded(&folder).trim_end_matches('/')) } },
            "columnKind": "utf16CodeUnits",
            "results": results,
        }],
    })
}

/// What paths are relative to.
const BASE: &str = "SRCROOT";

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Violation => "warning",
        Severity::Perf | Severity::Portability => "note",
    }
}

fn rule(rule: &'static Rule) -> Value {
    let sources: Vec<String> = rule.sources.iter().map(ToString::to_string).collect();
    let help = format!("{}\n\nFix: {}.\n\nSource: {}.\n", rule.statement, rule.fix, sources.join("; "));
    json!({
        "id": rule.id,
        "shortDescription": { "text": rule.statement },
        "fullDescription": { "text": format!("{}. Fix: {}. Holds for {}.", rule.statement, rule.fix, rule.scope) },
        "help": { "text": help },
        "defaultConfiguration": { "level": level(rule.severity) },
        "properties": { "tags": [rule.severity.name()], "severity": rule.severity.name() },
    })
}

fn result(row: &ResultKey, ids: &[&str], expected: &BTreeSet<&str>, folder: &Path) -> Value {
    let finding = &row.found.told;
    let site = row.process.modules().site(row.found.site);
    let function = row.found.function.row().name;
    let mut logical = Vec::new();
    let line = row.location.as_ref().and_then(|source| Some((source.file.as_deref()?, source.line?)));
    if let Some(source) = &row.location {
        logical.push(json!({ "fullyQualifiedName": source.symbol, "kind": "function" }));
    }
    if let Some(site) = &site {
        logical.push(json!({ "fullyQualifiedName": site.to_string(), "kind": "module" }));
    }
    let mut location = json!({ "logicalLocations": logical });
    let whose = match line {
        Some((file, line)) => {
            let artifact = artifact(Path::new(file), folder);
            location["physicalLocation"] = json!({ "artifactLocation": artifact, "region": { "startLine": line } });
            format!("{}:{line}", artifact["uri"].as_str().unwrap_or(file))
        }
        None => {
            if let Some(module) = row.process.modules().path(row.found.site) {
                location["physicalLocation"] = json!({ "artifactLocation": artifact(module, folder) });
            }
            site.map_or_else(|| "unknown".into(), |site| site.to_string())
        }
    };
    let mut result = json!({
        "ruleId": finding.rule.id,
        "ruleIndex": ids.iter().position(|id| *id == finding.rule.id),
        "level": level(row.severity),
        "kind": "fail",
        "message": { "text": finding.message },
        "locations": [location],
        "occurrenceCount": row.count,
        // Addresses in the message differ from run to run; this does not.
        "partialFingerprints": { "aclshimRuleAndSite/v1": format!("{}:{function}:{whose}", name(row.found)) },
        "properties": {
            "severity": row.severity.name(),
            "function": function,
            "argument": finding.argument,
            "code": finding.code,
            "on": finding.on,
        },
    });
    if expected.contains(finding.rule.id) && finding.on.is_none() {
        result["suppressions"] = json!([{ "kind": "external", "justification": "a scope of the program expects it" }]);
    }
    result
}

/// A file: relative where it lies below the folder.
fn artifact(file: &Path, folder: &Path) -> Value {
    let whole = plain(&folder.join(file));
    match whole.strip_prefix(plain(folder)) {
        Ok(below) => json!({ "uri": encoded(below), "uriBaseId": BASE }),
        Err(_) => json!({ "uri": uri(&whole) }),
    }
}

/// A path without `.` and `..`: as it was written, since the file may not be here any more.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = plain.pop(),
            _ => plain.push(part),
        }
    }
    plain
}

fn uri(path: &Path) -> String {
    format!("file://{}", encoded(path))
}

fn encoded(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b'+' => {
                text.push(*byte as char)
            }
            _ => _ = write!(text, "%{byte:02X}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_below_the_folder_is_relative_to_it_and_any_other_is_not() {
        let folder = Path::new("/build/it's here");
        let of = |file: &str| artifact(Path::new(file), folder);
        assert_eq!(of("/build/it's here/./src/../a b.c"), json!({ "uri": "a%20b.c", "uriBaseId": "SRCROOT" }));
        assert_eq!(of("src/a.c"), json!({ "uri": "src/a.c", "uriBaseId": "SRCROOT" }));
        assert_eq!(of("/build/it/a.c"), json!({ "uri": "file:///build/it/a.c" }));
        assert_eq!(of("../ü.c"), json!({ "uri": "file:///build/%C3%BC.c" }));
    }

    #[test]
    fn every_bit_of_a_call_counts_once() {
        let mut counts = SiteCounts::default();
        counts.add(1, 1 << 127 | 1, 7);
        counts.add(1, 1, 7);
        assert_eq!(counts.0, BTreeMap::from([((1, 0, 7), 2), ((1, 127, 7), 1)]));
    }
}
