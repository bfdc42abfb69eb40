//! The `aclshim` command. Each subcommand is a module with its `Arguments` and its `main`.
//!
//! | | |
//! |---|---|
//! | [`recording`] | commands that start, observe and prepare programs |
//! | [`analysis`] | commands that show what was recorded |
//! | [`storage`] | commands that check, repair, merge and remove recorded files |
//! | [`config`], [`completions`] | settings; shell completions and manual pages |
//! | [`reading`] | what commands that read traces share |
//! | [`files`] | recognising and opening aclshim's files |
//! | [`output`] | texts for people: escaping, quantities, times, progress, output files |
//!
//! Modules use modules that stand below them in this order: `storage`, `recording`, `analysis`, `reading`, `output`, `files`.

#[macro_use]
mod output;

mod analysis;
mod completions;
mod config;
mod files;
mod reading;
mod recording;
mod storage;

use analysis::{diff, explain, export, findings, log, report, stat};
use clap::{Parser, Subcommand};
use recording::{collect, doctor, dropin, run, test};
use std::io::Write;
use std::process::ExitCode;
use storage::{clean, merge, recover, verify};

/// See what an unmodified program copies to and from an Ascend device.
#[derive(Parser)]
#[command(
    name = "aclshim",
    version,
    about,
    after_help = "A first look:\n  aclshim run -- program\n  aclshim findings aclshim-out"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[allow(clippy::large_enum_variant)] // there is one of them
enum Command {
    /// Run a program, record and check its copies, and say in short what was found
    Run(run::Arguments),
    /// Run a test program on the simulated device: its expectations, what breaks a rule, its golden run
    Test(test::Arguments),
    /// Write the records of all running and ended programs to their files, from outside
    Collect(collect::Arguments),
    /// Say what would be seen of a program, and what is in the way
    Doctor(doctor::Arguments),
    /// Write a libascendcl.so that brings the shim along, for programs that cannot be preloaded
    Dropin(dropin::Arguments),
    /// Show the calls, one a line
    Log(log::Arguments),
    /// Say what was recorded: calls, bytes and durations by function
    Stat(stat::Arguments),
    /// Say which calls break a rule, why, and what to do about it
    Findings(findings::Arguments),
    /// List the rules
    Rules(findings::RulesArguments),
    /// Explain a rule or a return code
    Explain(explain::Arguments),
    /// Show the settings, their values and where these come from
    Config(config::Arguments),
    /// Write one page for the browser
    Report(report::Arguments),
    /// Write the calls for other tools
    Export(export::Arguments),
    /// Write to files what ended processes have left in memory
    Recover(recover::Arguments),
    /// Say whether traces are whole
    Verify(verify::Arguments),
    /// Remove what is no longer needed
    Clean(clean::Arguments),
    /// Say what is different between two runs
    Diff(diff::Arguments),
    /// Write several traces as one
    Merge(merge::Arguments),
    /// Write completions for a shell, or man pages
    Completions(completions::Arguments),
}

fn main() -> ExitCode {
    // A reader that has seen enough ends us, as it ends any other command. (Rust ignores the signal, and panics instead.)
    // SAFETY: nothing else runs yet.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    std::panic::set_hook(Box::new(unprintable));
    let outcome = match Arguments::parse().command {
        Command::Run(arguments) => run::main(arguments),
        Command::Test(arguments) => test::main(arguments),
        Command::Collect(arguments) => collect::main(arguments),
        Command::Doctor(arguments) => doctor::main(arguments),
        Command::Dropin(arguments) => dropin::main(arguments),
        Command::Log(arguments) => log::main(arguments),
        Command::Stat(arguments) => stat::main(arguments),
        Command::Findings(arguments) => findings::main(arguments),
        Command::Rules(arguments) => findings::rules(arguments),
        Command::Explain(arguments) => explain::main(arguments),
        Command::Config(arguments) => config::main(arguments),
        Command::Report(arguments) => report::main(arguments),
        Command::Export(arguments) => export::main(arguments),
        Command::Recover(arguments) => recover::main(arguments),
        Command::Verify(arguments) => verify::main(arguments),
        Command::Clean(arguments) => clean::main(arguments),
        Command::Diff(arguments) => diff::main(arguments),
        Command::Merge(arguments) => merge::main(arguments),
        Command::Completions(arguments) => completions::main(arguments),
    };
    outcome.unwrap_or_else(|error| {
        errln!("aclshim: {error:#}");
        ExitCode::FAILURE
    })
}

/// Where standard output is full, `println!` panics: that is no fault of ours, and deserves one line.
fn unprintable(panic: &std::panic::PanicHookInfo<'_>) {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let message = text.unwrap_or("a panic without words");
    let mut errors = std::io::stderr();
    let _ = match message.strip_prefix("failed printing to ") {
        Some(why) => writeln!(errors, "aclshim: cannot print to {why}"),
        None => {
            let location = panic.location().map(ToString::to_string).unwrap_or_default();
            writeln!(errors, "aclshim: a mistake of ours, please report it: {message} ({location})")
        }
    };
    if message.starts_with("failed printing to stdout") {
        std::process::exit(1);
    }
}
