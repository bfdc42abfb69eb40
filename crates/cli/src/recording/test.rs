//! `aclshim test`: runs a test program on the simulated device, and sums up: its scopes, what breaks a rule, its golden run.
//!
//! Any program will do. The expectations of one that uses the harness (`aclshim.h`) are reported one by one.

mod folder;
mod golden;
mod junit;
mod results;
mod verdict;

use crate::analysis::sarif;
use crate::config::InForce;
use crate::files;
use crate::recording::run::{self, OUR_FAILURE, ProgramEnd, RunRequest, Summary, ignore_closed_pipes, own_name, say};
use aclshim_collect::trace_set::Process;
use aclshim_facts::injection;
use aclshim_facts::rule::Severity;
use aclshim_facts::settings::{BATCH_ITEMS, CALLS, GOLDEN, INJECT, Preset, RECORD, RESULTS};
use anyhow::{Context, Result, bail};
use folder::RecordFolder;
use golden::GoldenVisitor;
use results::Results;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;
use verdict::{TestVerdict, counted};

/// What a failed test ends with.
const FAILED: u8 = 1;

/// Arguments of `aclshim test`.
#[derive(clap::Args)]
#[command(
    after_help = "The exit status is that of the program unless it is 0 (if a signal ended it, the same signal ends aclshim); \
                        then 1 if an expectation failed, a finding counts, the golden run differs or nothing was watched, and \
                        else 0. 127: the program was not found; 126: it could not be started; 125: aclshim itself failed.\n\n\
                        Examples:\n  aclshim test -- ./test_offload\n  \
                        aclshim test --junit results.xml --sarif findings.sarif -- ./test_offload\n  \
                        aclshim test --golden offload.golden -- ./program        # --update accepts what it does now\n  \
                        aclshim test --inject 'aclrtMemcpyBatch* return=207000' -- ./test_fallback"
)]
pub struct Arguments {
    /// Compare the calls of the whole run with this file
    #[arg(long, value_name = "FILE")]
    golden: Option<PathBuf>,
    /// Write golden files, this one and those of the program's own scopes, instead of comparing
    #[arg(long)]
    update: bool,
    /// Make calls fail, as ACLSHIM_INJECT does
    #[arg(long, value_name = "TEXT", value_parser = injections)]
    inject: Option<String>,
    /// Write the results as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the findings as SARIF 2.1.0
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// From which severity on a finding fails the test: error, violation, perf, portability, or off
    #[arg(long, value_name = "SEVERITY", default_value = "violation", value_parser = severity)]
    severity: Least,
    /// On the real device, not the simulated one
    #[arg(long)]
    no_sim: bool,
    /// Keep traces and logs in this directory; without it they are kept only if the test fails
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A settings file (see `aclshim config --template`)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Say nothing if the test passes
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// The severity from which on a finding fails the test; `None` is off.
#[derive(Clone, Copy)]
struct Least(Option<Severity>);

fn severity(text: &str) -> Result<Least, String> {
    let known = || run::severity(text).map(Some).map_err(|words| format!("off, {words}"));
    Ok(Least(if text == "off" { None } else { known()? }))
}

/// A test that is to be failed on purpose and is not would show nothing.
fn injections(text: &str) -> Result<String, String> {
    match injection::each(text.as_bytes()).find_map(Result::err) {
        None => Ok(text.into()),
        Some(nonsense) => Err(nonsense.in_text(text.as_bytes()).to_string()),
    }
}

/// Runs the test.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    ignore_closed_pipes();
    test(&arguments).or_else(|error| {
        say(format_args!("aclshim: {error:#}"));
        Ok(ExitCode::from(OUR_FAILURE))
    })
}

fn test(arguments: &Arguments) -> Result<ExitCode> {
    let program = &arguments.command[0];
    let preset: Preset = InForce::read(arguments.config.as_deref()).choice();
    if arguments.inject.is_some() && preset == Preset::Production {
        bail!("--inject is refused, because ACLSHIM_PRESET=production");
    }
    let folder = RecordFolder::new(arguments.out.as_deref(), arguments.config.as_deref(), program)?;
    let written = absolute(folder.path.join(format!("results-{}", std::process::id())))?;
    let mut variables: Vec<(&'static str, OsString)> =
        vec![(RESULTS.variable, written.clone().into()), (CALLS.variable, "trace".into())];
    variables.extend(arguments.update.then(|| (GOLDEN.variable, "update".into())));
    variables.extend(arguments.inject.as_ref().map(|text| (INJECT.variable, text.into())));
    let request = RunRequest {
        out: Some(&folder.path),
        config: arguments.config.as_deref(),
        sim: !arguments.no_sim,
        quiet: arguments.quiet,
        command: &arguments.command,
        variables,
        // A test rather waits than misses a call.
        unless_set: &[(&RECORD, "lossless"), (&BATCH_ITEMS, "4096")],
        ..RunRequest::default()
    };
    let ran = match request.run()? {
        Ok(ran) => ran,
        Err(not_started) => {
            folder.remove();
            return Ok(not_started);
        }
    };
    let mut visitor = GoldenVisitor::new(arguments.golden.is_some());
    let (mut summary, set) = Summary::read(&ran.folders, ran.since_ns, ran.record_source, &mut visitor);
    let is_of_the_run = |process: &Process| process.origin.born_ns >= ran.since_ns;
    let results = Results::read(&written);
    let expected = results.expected();
    let findings = counted(set.processes().filter(|process| is_of_the_run(process)), arguments.severity.0, &expected);
    let is_watched = summary.has_calls() || !results.processes.is_empty();
    let is_sound = ran.end == ProgramEnd::Exited(0) && results.failed().next().is_none() && is_watched;
    let golden = match &arguments.golden {
        None => None,
        Some(path) => {
            let text = visitor.text(&set, ran.pid, &is_of_the_run);
            let differs = |why: &str| Ok(golden::GoldenOutcome::Differs(why.into()));
            let outcome = match arguments.update {
                _ if !summary.is_whole() => differs("calls were not recorded: it cannot be compared"),
                false => golden::compare(path, &text),
                true if is_sound => golden::update(path, &text),
                true => differs("the program did not do what it should: not written"),
            };
            Some((path.clone(), outcome?))
        }
    };
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let open = visitor.open_scopes(&set, &is_of_the_run);
    let verdict =
        TestVerdict { program: name, ran: &ran, is_watched, results: &results, open, findings: &findings, golden };
    if let Some(path) = &arguments.junit {
        write(path, &junit::document(&verdict.suites()))?;
    }
    if let Some(path) = &arguments.sarif {
        // A rule whose findings are all expected; where there are more, it is unknown which of them were expected.
        let is_all = |rule: &&str| !findings_beyond(&set, rule, expected.get(rule), &is_of_the_run);
        let all_expected: BTreeSet<&str> = expected.keys().copied().filter(is_all).collect();
        let report = sarif::report(&set, &visitor.counts, &all_expected, &is_of_the_run);
        write(path, &serde_json::to_string_pretty(&report)?)?;
    }
    let has_passed = verdict.reasons().is_empty();
    let is_kept = !(has_passed && folder.is_own() && ran.is_over());
    if !is_kept {
        summary.files.clear();
        folder.remove();
    } else if has_passed {
        let _ = std::fs::remove_file(&written);
    }
    if !(arguments.quiet && has_passed) {
        let of_run = if summary.has_calls() { summary.text(&folder.path, &own_name(), None) } else { String::new() };
        say(format_args!("{}{}", of_run, verdict.text().trim_end()));
    }
    ran.say_who_goes_on(arguments.quiet);
    Ok(match ran.end {
        ProgramEnd::Killed(signal) => {
            run::end_by(signal);
            ExitCode::from(128u8.wrapping_add(signal as u8))
        }
        ProgramEnd::Exited(0) if !has_passed => ExitCode::from(FAILED),
        ProgramEnd::Exited(status) => ExitCode::from(status),
    })
}

/// Whether a rule is broken more often than was expected.
fn findings_beyond(
    set: &aclshim_collect::trace_set::TraceSet,
    rule: &str,
    expected: Option<&u64>,
    takes: &dyn Fn(&Process) -> bool,
) -> bool {
    let totals = set.processes().filter(|process| takes(process)).filter_map(|of| of.judge.totals().get(rule));
    totals.map(|total| total.found.saturating_sub(total.known)).sum::<u64>() > expected.copied().unwrap_or(0)
}

/// Writes a file whole or not at all, and its folder.
fn write(path: &Path, text: &str) -> Result<()> {
    let named = || path.display().to_string();
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).with_context(named)?;
    }
    // What is no plain file, such as /dev/stdout, is not replaced.
    if path.symlink_metadata().is_ok_and(|about| !about.is_file()) {
        return std::fs::write(path, text).with_context(named);
    }
    files::replace(path, |new| files::write_new(new, text.as_bytes())).with_context(named)
}
