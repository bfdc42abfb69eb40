//! `aclshim doctor`: what would be seen of a program, and what is in the way.
//!
//! It reads files and asks the loader, and starts neither the program nor, in its own process, anything of the
//! vendor's. Only `--run` starts the program.

mod ask;
mod binding;
mod folders;
mod image;
mod loader;
mod program;
mod report;
mod setup;
mod trial;
mod vendor;

use anyhow::Result;
use report::{DoctorReport, Sight};
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};

/// Arguments of `aclshim doctor`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  aclshim doctor\n  aclshim doctor -- ./program\n  aclshim doctor --run -- ./program --with its arguments\n\nThe exit status is 0 if there is no problem, and 1 if there is one."
)]
pub struct Arguments {
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Start the program once, with the shim, and say what was seen of it
    #[arg(long, requires = "program")]
    run: bool,
    /// Ask a library who it is, in this process
    #[arg(long, hide = true, value_name = "LIBRARY")]
    ask: Option<PathBuf>,
    /// A program to look at, and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Looks, and says what it has seen.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    if let Some(library) = &arguments.ask {
        ask::answer(library);
        return Ok(ExitCode::SUCCESS);
    }
    let mut report = DoctorReport::default();
    let shim = setup::shim(&mut report);
    setup::preload(&mut report, shim.as_ref());
    let program = arguments.program.first().map(|name| program::look(&mut report, name, shim.as_ref()));
    let vendor = vendor::look(&mut report, program.as_ref());
    if let Some(program) = &program {
        binding::look(&mut report, program, shim.as_ref(), vendor.as_ref());
    }
    setup::settings(&mut report);
    folders::output(&mut report);
    folders::rings(&mut report);
    if let (true, Some(shim)) = (arguments.run, &shim) {
        // The answer for programs is alone on standard output.
        let output =
            if arguments.json { std::io::stderr().as_fd().try_clone_to_owned()?.into() } else { Stdio::inherit() };
        trial::run(&mut report, &shim.path, &arguments.program, output)?;
    }
    if report.problems() > 0 && program.is_some() {
        report.sight = Some(Sight::No);
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&report.json())?);
    } else {
        print!("{}", crate::output::escape::lines(&report.text()));
    }
    Ok(if report.problems() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
