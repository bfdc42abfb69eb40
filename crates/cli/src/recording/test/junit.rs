//! Test results as JUnit XML, as far as Jenkins and GitLab agree about it.
//!
//! Both count a test case by its one `failure` or `error` child, and know it again by its class and name.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The test cases of one process.
pub struct JunitSuite {
    pub name: String,
    /// When it began, as in `2026-11-16T15:04:05`.
    pub timestamp: String,
    pub seconds: f64,
    pub cases: Vec<JunitCase>,
}

/// A test case.
pub struct JunitCase {
    pub name: String,
    pub seconds: f64,
    pub outcome: CaseOutcome,
}

/// The outcome of a test case.
#[derive(PartialEq, Eq)]
pub enum CaseOutcome {
    Passed,
    /// Something was expected and not so: in a word, and in full.
    Failed(String, String),
    /// The program was ended before it could say so.
    Error(String, String),
}

/// The XML document of all suites.
pub fn document(suites: &[JunitSuite]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all = || suites.iter().flat_map(|suite| &suite.cases);
    let seconds: f64 = suites.iter().map(|suite| suite.seconds).sum();
    let _ = writeln!(text, "<testsuites name=\"aclshim\" {} time=\"{seconds:.6}\">", counts(all()));
    let mut names = BTreeMap::new();
    for suite in suites {
        let (name, counts) = (escaped(&suite.name), counts(suite.cases.iter()));
        let _ = writeln!(
            text,
            "  <testsuite name=\"{name}\" {counts} skipped=\"0\" time=\"{:.6}\" timestamp=\"{}\">",
            suite.seconds, suite.timestamp
        );
        for case in &suite.cases {
            // A scope may be opened many times; a name stands for one test case.
            let times = names.entry((&suite.name, &case.name)).or_insert(0);
            *times += 1;
            let case_name = if *times == 1 { case.name.clone() } else { format!("{} ({times})", case.name) };
            let head = format!(
                "    <testcase classname=\"{name}\" name=\"{}\" time=\"{:.6}\"",
                escaped(&case_name),
                case.seconds
            );
            let _ = match &case.outcome {
                CaseOutcome::Passed => writeln!(text, "{head}/>"),
                CaseOutcome::Failed(kind, why) => write_child(&mut text, &head, "failure", kind, why),
                CaseOutcome::Error(kind, why) => write_child(&mut text, &head, "error", kind, why),
            };
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn write_child(text: &mut String, head: &str, element: &str, kind: &str, why: &str) -> std::fmt::Result {
    let (first, kind) = (escaped(why.lines().next().unwrap_or_default()), escaped(kind));
    writeln!(text, "{head}>")?;
    writeln!(text, "      <{element} message=\"{first}\" type=\"{kind}\">{}</{element}>", escaped(why))?;
    writeln!(text, "    </testcase>")
}

fn counts<'a>(cases: impl Iterator<Item = &'a JunitCase>) -> String {
    let (mut tests, mut failures, mut errors) = (0, 0, 0);
    for case in cases {
        tests += 1;
        failures += u32::from(matches!(case.outcome, CaseOutcome::Failed(..)));
        errors += u32::from(matches!(case.outcome, CaseOutcome::Error(..)));
    }
    format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"")
}

/// Text for an element or an attribute. What XML cannot hold at all stands there as C would write it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\r' => escaped.push_str("&#13;"),
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => _ = write!(escaped, "\\x{:02x}", letter as u32),
            '\u{fffe}' | '\u{ffff}' => _ = write!(escaped, "\\u{:x}", letter as u32),
            _ => escaped.push(letter),
        }
    }
    escaped
}
