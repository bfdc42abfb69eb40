//! `aclshim run`: runs a program under the shim, drains it from outside, and says in short what was seen.
//!
//! The program is to run as without us: it gets our descriptors, terminal, process group, signals and their dispositions;
//! what we need for ourselves it does not see. Its end is ours.

mod child;
mod environment;
mod group_signal;
mod launch;
mod plan;
mod program;
mod rings;
mod summary;

pub use child::{ProgramEnd, end_by};
pub use launch::CompletedRun;
pub use plan::RunRequest;
pub use summary::Summary;

use aclshim_collect::interpreter::visitor::NoVisitor;
use aclshim_facts::rule::Severity;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Our own failure, as `env` and `timeout` have it.
pub const OUR_FAILURE: u8 = 125;
/// The program was found, but cannot be started.
const NOT_STARTED: u8 = 126;
/// The program was not found.
const NOT_FOUND: u8 = 127;

/// Why there may be no call.
pub const WHY_NONE: &str =
    "the program made no copy, or the shim was not loaded: `aclshim doctor -- program` looks closer";

/// Arguments of `aclshim run`.
#[derive(clap::Args)]
#[command(
    after_help = "The exit status is that of the program; if a signal ended it, the same signal ends aclshim. 127: it was \
                        not found; 126: it could not be started; 125: aclshim itself failed, or --require-calls was not met.\n\n\
                        Examples:\n  aclshim run -- ./program --its-option\n  \
                        aclshim run --out seen --error-exitcode 9 -- python3 infer.py\n  \
                        aclshim run --enforce --as Ascend310P3 -- ./program\n  \
                        aclshim run --sim --require-calls -- ./program        # no NPU needed"
)]
pub struct Arguments {
    /// Where traces and logs go; by default ACLSHIM_DIR, and else aclshim-out
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Refuse what the vendor would refuse by its arguments: return its code and do not forward the call
    #[arg(long)]
    enforce: bool,
    /// Judge the run for another product, too; may be given several times
    #[arg(long = "as", value_name = "PRODUCT")]
    as_products: Vec<String>,
    /// A settings file (see `aclshim config --template`)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// End with this status if there are findings, unless a signal ended the program
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    error_exitcode: Option<u8>,
    /// How bad a finding must be for --error-exitcode: error, violation, perf or portability
    #[arg(long, value_name = "SEVERITY", default_value = "error", value_parser = severity, requires = "error_exitcode")]
    on: Severity,
    /// Fail if no call was seen: a shim that was not loaded is not to look like a clean run
    #[arg(long)]
    require_calls: bool,
    /// Put the simulated device in front of the real library
    #[arg(long)]
    sim: bool,
    /// Say nothing but what went wrong with aclshim itself
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// A severity by its word.
pub fn severity(text: &str) -> Result<Severity, String> {
    let all = [Severity::Error, Severity::Violation, Severity::Perf, Severity::Portability];
    all.into_iter().find(|known| known.name() == text).ok_or_else(|| "error, violation, perf or portability".into())
}

/// Runs the program.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    ignore_closed_pipes();
    run(&arguments).or_else(|error| {
        say(format_args!("aclshim: {error:#}"));
        Ok(ExitCode::from(OUR_FAILURE))
    })
}

/// Ignores SIGPIPE: a closed or full standard error must not end the command while the program runs.
pub fn ignore_closed_pipes() {
    // SAFETY: nothing here relies on a handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Prints an escaped line to standard error; a failure to do so is ignored.
pub fn say(what: std::fmt::Arguments<'_>) {
    let text = format!("{}\n", crate::output::escape::lines(&what.to_string()));
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let request = RunRequest {
        out: arguments.out.as_deref(),
        enforce: arguments.enforce,
        as_products: &arguments.as_products,
        config: arguments.config.as_deref(),
        sim: arguments.sim,
        quiet: arguments.quiet,
        command: &arguments.command,
        ..RunRequest::default()
    };
    let ran = match request.run()? {
        Ok(ran) => ran,
        Err(not_started) => return Ok(not_started),
    };
    let (summary, _) = Summary::read(&ran.folders, ran.since_ns, ran.record_source, &mut NoVisitor);
    if !arguments.quiet {
        let dir = arguments.out.as_deref().unwrap_or(&ran.folders.dir);
        // With --require-calls it is reported below.
        let why_none = (!arguments.require_calls).then(|| ran.silent.unwrap_or(WHY_NONE));
        let text = summary.text(dir, &own_name(), why_none);
        if !text.is_empty() {
            say(format_args!("{}", text.trim_end()));
        }
    }
    ran.say_who_goes_on(arguments.quiet);
    Ok(outcome(arguments, ran.end, &summary, ran.silent))
}

/// This command as it was typed.
pub fn own_name() -> String {
    std::env::args().next().unwrap_or_else(|| "aclshim".into())
}

fn outcome(arguments: &Arguments, end: ProgramEnd, summary: &Summary, silent: Option<&str>) -> ExitCode {
    if arguments.require_calls && !summary.has_calls() {
        match silent {
            Some(why) => say(format_args!("aclshim: no call was seen (--require-calls): {why}")),
            None => say(format_args!(
                "aclshim: no call was seen (--require-calls). Likely reasons: the program made no copy; it is linked \
                 statically; it is setuid; something that started it dropped LD_PRELOAD or ACLSHIM_DIR (a wrapper, sudo, a \
                 container). `aclshim doctor -- program` looks closer."
            )),
        }
    }
    match end {
        ProgramEnd::Killed(signal) => {
            child::end_by(signal);
            ExitCode::from(128u8.wrapping_add(signal as u8))
        }
        ProgramEnd::Exited(status) => {
            let findings = summary.findings_from(arguments.on);
            ExitCode::from(match arguments.error_exitcode {
                Some(code) if findings > 0 => code,
                _ if status == 0 && arguments.require_calls && !summary.has_calls() => OUR_FAILURE,
                _ => status,
            })
        }
    }
}
