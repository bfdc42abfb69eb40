//! What the page shows, as it is embedded in it. `page.js` reads these names.

use super::aggregate::{GapRow, SiteSums};
use super::timeline::Bin;
use aclshim_facts::rule::Severity;
use serde::Serialize;
use std::borrow::Cow;
use std::path::Path;

/// Maximum number of call sites, in total and for each rule.
pub const SITES: usize = 100;

/// The data of a page.
#[derive(Default, Serialize)]
pub struct PageModel {
    pub version: &'static str,
    /// What was read, as it was named.
    pub sources: Vec<String>,
    /// When the first call began, in nanoseconds since 1970. As text: it does not fit into a number there.
    pub begin_ns: Option<String>,
    /// From then until the end of the last call.
    pub span_ns: u64,
    pub totals: PageTotals,
    pub losses: Vec<Loss>,
    /// Calls that were under way when the recording ends, and other things to know.
    pub notes: Vec<String>,
    pub processes: Vec<ProcessRow>,
    /// How many more there are than are listed.
    pub more_processes: usize,
    pub functions: Vec<FunctionRow>,
    /// The names of the directions, which others refer to by position.
    pub directions: Vec<&'static str>,
    pub timeline: TimelineRows,
    /// Calls one by one.
    pub calls: CallColumns,
    pub is_complete: bool,
    /// The slowest, by position in `calls`.
    pub slowest: Vec<usize>,
    /// The busiest call sites.
    pub sites: Vec<SiteRow>,
    pub more_sites: usize,
    /// What breaks a rule.
    pub rules: Vec<RuleRow>,
    pub failures: Vec<FailureRow>,
    pub codes: Vec<CodeRow>,
}

/// Sums of calls and findings.
#[derive(Clone, Default, Serialize)]
pub struct PageTotals {
    /// Outermost calls.
    pub calls: u64,
    /// Calls inside another.
    pub nested: u64,
    /// Bytes of calls that returned 0.
    pub bytes: u64,
    /// Calls that returned something else.
    pub errors: u64,
    /// Calls that have not returned.
    pub in_flight: u64,
    /// Calls whose time is not known.
    pub untimed: u64,
    /// Findings by severity: error, violation, perf, portability.
    pub findings: [u64; 4],
}

/// Something that is missing from what is shown.
#[derive(Serialize)]
pub struct Loss {
    /// How many; 0 where that does not say anything.
    pub count: u64,
    pub what: String,
    /// Why, and what can be done.
    pub remedy: String,
    /// The process, or the file.
    pub of: String,
}

/// A row of the table of processes.
#[derive(Default, Serialize)]
pub struct ProcessRow {
    pub executable: String,
    /// Its file name.
    pub name: String,
    pub host: String,
    pub pid: u32,
    /// The rank, or empty.
    pub rank: String,
    /// The product, or empty.
    pub product: String,
    /// The release of CANN, or empty.
    pub cann: String,
    /// Where it runs.
    pub form: &'static str,
    /// The real library.
    pub library: String,
    /// Its build id in hexadecimal digits, or empty.
    pub build_id: String,
    pub settings: Vec<String>,
    /// When its first call began and its last ended, in nanoseconds since 1970, as text.
    pub span_ns: Option<[String; 2]>,
    /// Its sums.
    #[serde(flatten)]
    pub totals: PageTotals,
}

/// A row of the table of functions.
#[derive(Default, Serialize)]
pub struct FunctionRow {
    pub name: String,
    pub summary: &'static str,
    /// Outermost calls.
    pub calls: u64,
    /// Bytes of those that returned 0.
    pub bytes: u64,
    /// Calls that returned something else.
    pub errors: u64,
    /// Half of the calls took no longer.
    pub p50_ns: Option<u64>,
    /// 99 of 100 calls took no longer.
    pub p99_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// Calls by size: the first size of a bucket (as a power of two), and how many.
    pub sizes: Vec<(u64, u64)>,
    /// Calls by duration: where a bucket begins, where it ends, and how many.
    pub durations: Vec<(u64, u64, u64)>,
}

/// The timeline: tracks with their bins.
#[derive(Default, Serialize)]
pub struct TimelineRows {
    /// How wide a bin is.
    pub width_ns: u64,
    /// Where bin 0 begins, counted from the first call: before it, or there.
    pub origin_ns: i64,
    pub tracks: Vec<TrackRow>,
    /// Where calls are missing.
    pub gaps: Vec<GapRow>,
    /// What the programs have marked, and their scopes.
    pub said: Vec<ProgramNoteRow>,
    pub more_said: u64,
}

/// A mark or a scope.
#[derive(Serialize)]
pub struct ProgramNoteRow {
    /// By position of the track.
    pub track: usize,
    /// When, counted from the first call.
    pub at: i64,
    /// Until when, for a scope that has ended.
    pub to: Option<i64>,
    /// `mark` or `scope`.
    pub kind: &'static str,
    /// What it says, or is called.
    pub text: String,
    /// How many expectations have failed in a scope.
    pub failures: u64,
}

/// A track of the timeline.
#[derive(Serialize)]
pub struct TrackRow {
    /// `thread`, `stream` or `direction`.
    pub kind: &'static str,
    pub name: String,
    /// The process, by position; of a shared track none.
    pub process: Option<usize>,
    pub direction: Option<u8>,
    /// All its calls together.
    #[serde(flatten)]
    pub total: Bin,
    /// Its bins that are not empty.
    pub bins: BinColumns,
}

/// Bins, column by column.
#[derive(Default, Serialize)]
pub struct BinColumns {
    /// The distance from the bin before.
    pub step: Vec<u64>,
    pub calls: Vec<u64>,
    pub busy: Vec<u64>,
    pub bytes: Vec<u64>,
    pub errors: Vec<u64>,
    pub findings: Vec<u64>,
    pub longest: Vec<u64>,
    pub direction: Vec<u8>,
    pub function: Vec<usize>,
}

/// Calls, column by column.
#[derive(Default, Serialize)]
pub struct CallColumns {
    /// From the first outermost call on.
    pub time: Vec<Option<i64>>,
    pub duration: Vec<Option<u64>>,
    pub function: Vec<usize>,
    pub direction: Vec<u8>,
    pub bytes: Vec<u64>,
    pub code: Vec<Option<i32>>,
    /// By position in `rule_sets`.
    pub rules: Vec<usize>,
    /// By position in `places`.
    pub site: Vec<usize>,
    /// By position of the track.
    pub thread: Vec<usize>,
    pub stream: Vec<Option<usize>>,
    pub number: Vec<u64>,
    /// 1 nested, 2 refused, 4 injected.
    pub flags: Vec<u8>,
    /// The ids of the rules that calls break.
    pub rule_sets: Vec<Vec<Cow<'static, str>>>,
    /// The names of call sites.
    pub places: Vec<String>,
    /// By position in `scopes`.
    pub scope: Vec<usize>,
    /// The names of scopes; the first is none.
    pub scopes: Vec<String>,
}

/// A row of the table of call sites.
#[derive(Serialize)]
pub struct SiteRow {
    pub place: String,
    pub functions: Vec<&'static str>,
    #[serde(flatten)]
    pub sums: SiteSums,
}

/// A rule that is broken.
#[derive(Serialize)]
pub struct RuleRow {
    /// The rule; with the product where that is another one.
    pub name: String,
    /// How bad it is at worst.
    pub severity: &'static str,
    pub count: u64,
    /// Of these, how many are known or muted.
    pub known: u64,
    pub statement: &'static str,
    pub fix: &'static str,
    /// The documents and sources that the rule is from.
    pub sources: Vec<String>,
    /// The products and versions that the rule holds for.
    pub products: String,
    /// What the vendor returns for it.
    pub codes: Vec<i32>,
    /// Where it is broken.
    pub sites: Vec<RuleSite>,
    pub more_sites: usize,
}

/// A call site that breaks a rule.
#[derive(Serialize)]
pub struct RuleSite {
    pub place: String,
    pub function: &'static str,
    pub program: String,
    /// How often, if that was counted.
    pub count: Option<u64>,
    pub examples: Vec<Example>,
}

/// One finding of a rule at a call site.
#[derive(Serialize)]
pub struct Example {
    /// The call with its values.
    pub values: String,
    /// The argument that is wrong.
    pub argument: Option<&'static str>,
    /// What the vendor does.
    pub outcome: String,
    /// How bad it is here.
    pub severity: &'static str,
    pub pid: u32,
    pub thread: u32,
    /// The call's number on its thread.
    pub number: u64,
    /// When, from the first call on.
    pub time: Option<u64>,
    pub returned: Option<i32>,
    pub is_refused: bool,
    /// The callers of the call site, innermost first.
    pub stack: Vec<String>,
    /// The call, by position in `calls`, if it is there.
    pub call: Option<usize>,
}

/// Calls of a function that failed with a code.
#[derive(Serialize)]
pub struct FailureRow {
    pub code: i32,
    pub function: &'static str,
    pub count: u64,
    /// The rules that the vendor returns this for, if one of them is broken by these calls; else all that it may be.
    pub rules: Vec<&'static str>,
    /// Whether they are known to be broken.
    pub is_known: bool,
    /// One of them, by position in `calls`.
    pub call: Option<usize>,
}

/// A return code in words.
#[derive(Serialize)]
pub struct CodeRow {
    pub code: i32,
    pub name: Option<&'static str>,
    pub meaning: Option<&'static str>,
}

/// The position of a severity, the worst first.
pub fn rank(severity: &str) -> usize {
    let names = [Severity::Error, Severity::Violation, Severity::Perf].map(Severity::name);
    names.iter().position(|name| *name == severity).unwrap_or(names.len())
}

/// A path as text.
pub fn lossy(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The last part of a path.
pub fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| lossy(path), |name| name.to_string_lossy().into_owned())
}
