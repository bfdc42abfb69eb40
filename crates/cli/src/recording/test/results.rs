//! Reads what `src/harness/results.rs` writes about the scopes of a program: one JSON object a line, with keys that both know.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The results that the harness has written.
#[derive(Default)]
pub struct Results {
    /// Processes that have used the harness, and their programs.
    pub processes: BTreeMap<u32, String>,
    /// Scopes that have ended, in that order.
    pub scopes: Vec<ScopeResult>,
    /// What could not be read.
    pub troubles: Vec<String>,
}

/// The first line of a process.
#[derive(Deserialize)]
struct Harness {
    #[allow(dead_code)] // its presence identifies the line
    harness: u64,
    pid: u32,
    #[serde(default)]
    executable: String,
}

/// A scope that has ended.
#[derive(Deserialize, Debug)]
pub struct ScopeResult {
    /// Its name.
    #[serde(rename = "scope")]
    pub name: String,
    pub pid: u32,
    /// How long it was open.
    #[serde(default)]
    pub duration_ns: u64,
    /// Number of expectations.
    #[serde(default)]
    pub expectations: u64,
    /// What was found in it.
    #[serde(default)]
    pub findings: Vec<ScopeFinding>,
    /// Expectations that failed.
    #[serde(default)]
    pub failures: Vec<FailedExpectation>,
}

/// A rule that was broken in a scope.
#[derive(Deserialize, Debug)]
pub struct ScopeFinding {
    pub rule: String,
    /// Number of its findings that the scope had declared.
    #[serde(default)]
    pub expected: u64,
}

/// An expectation that failed.
#[derive(Deserialize, Debug)]
pub struct FailedExpectation {
    /// What kind of expectation it was.
    #[serde(default)]
    pub kind: String,
    pub text: String,
}

impl Results {
    /// Reads a file; a missing file means that no process had results to write.
    pub fn read(path: &Path) -> Self {
        match std::fs::read(path) {
            Ok(bytes) => Self::parse(&String::from_utf8_lossy(&bytes)),
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => Self::default(),
            Err(why) => Self { troubles: vec![format!("{}: {why}", path.display())], ..Self::default() },
        }
    }

    fn parse(text: &str) -> Self {
        let mut results = Self::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            if let Ok(Harness { pid, executable, .. }) = serde_json::from_str(line) {
                results.processes.insert(pid, executable);
                continue;
            }
            match serde_json::from_str::<ScopeResult>(line) {
                Ok(mut scope) => {
                    for failure in &mut scope.failures {
                        // As it was printed by the program; here it stands among lines of ours.
                        failure.text = failure.text.strip_prefix("aclshim: ").unwrap_or(&failure.text).into();
                    }
                    results.processes.entry(scope.pid).or_default();
                    results.scopes.push(scope);
                }
                Err(why) => results.troubles.push(format!("line {} of the results: {why}", number + 1)),
            }
        }
        results
    }

    /// How many findings of each rule were expected.
    pub fn expected(&self) -> BTreeMap<&str, u64> {
        let mut expected = BTreeMap::new();
        for finding in self.scopes.iter().flat_map(|scope| &scope.findings).filter(|finding| finding.expected > 0) {
            let sum = expected.entry(finding.rule.as_str()).or_insert(0u64);
            *sum = sum.saturating_add(finding.expected);
        }
        expected
    }

    /// Scopes that expected something else.
    pub fn failed(&self) -> impl Iterator<Item = &ScopeResult> {
        self.scopes.iter().filter(|scope| !scope.failures.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_and_what_makes_no_sense_is_said() {
        let text = r#"{"harness":1,"pid":7,"executable":"/x/program"}
{"scope":"one","reach":"thread","pid":7,"thread":8,"begin_ns":1,"duration_ns":2,"calls":3,"bytes":4,"unseen":0,"expectations":2,"findings":[{"rule":"ALIGN-64","severity":"portability","count":3,"expected":2}],"failures":[]}

{"scope":"two","pid":7,"findings":[{"rule":"ALIGN-64","count":1,"expected":1},{"rule":"DEST-MAX"}],"failures":[{"kind":"calls","text":"aclshim: expected 2\n  saw 3"}]}
{"scope":"half
"#;
        let results = Results::parse(text);
        assert_eq!(results.processes, BTreeMap::from([(7, "/x/program".into())]));
        assert_eq!(results.scopes.iter().map(|scope| scope.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
        assert_eq!(results.expected(), BTreeMap::from([("ALIGN-64", 3)]));
        assert_eq!(
            results.failed().map(|scope| scope.failures[0].text.as_str()).collect::<Vec<_>>(),
            ["expected 2\n  saw 3"]
        );
        assert!(
            results.troubles.len() == 1 && results.troubles[0].starts_with("line 5 of the results: "),
            "{:?}",
            results.troubles
        );
    }

    #[test]
    fn nobody_who_wrote_is_no_trouble() {
        let results = Results::read(Path::new("/nowhere/at/all"));
        assert!(results.processes.is_empty() && results.troubles.is_empty());
    }
}
