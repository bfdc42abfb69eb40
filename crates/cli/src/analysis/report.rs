//! `aclshim report`: one page for the browser.
//!
//! Calls are gathered one by one ([`aggregate`]) into bins over time ([`timeline`]), some are sampled as they are ([`sample`]);
//! [`summing`] and [`findings`] make of it, and of what is known of the processes, what the page shows ([`model`]).

mod aggregate;
mod event;
mod findings;
mod model;
mod page;
mod sample;
mod sha256;
mod summing;
mod timeline;

use crate::files;
use crate::output::file::OutputFile;
use crate::reading::symbols::Symbols;
use crate::reading::traces::{Nothing, Traces};
use aclshim_collect::trace_set::CallOrder;
use aggregate::Aggregate;
use anyhow::Result;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `aclshim report`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  aclshim report aclshim-out\n  aclshim report rank0-out rank1-out -o both.html\n\nThe page needs no network and no other file: open it in a browser, or send it to somebody."
)]
pub struct Arguments {
    #[command(flatten)]
    traces: Traces,
    /// The page; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

/// Writes the page.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    if arguments.output != Path::new("-") {
        files::refuse_to_overwrite(&arguments.output)?;
    }
    let mut aggregate = Aggregate::default();
    let set = arguments.traces.read(CallOrder::ByThread, Nothing::IsAnError, &mut aggregate)?;
    let sources = arguments.traces.paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let mut symbols = Symbols::default();
    let mut name = |process: usize, address: u64| match set.process(process) {
        Some(process) => symbols.site(&process.origin, process.modules(), address),
        None => format!("{address:#x}"),
    };
    let model = summing::model(aggregate, &set, sources, &mut name);
    let page = page::page(&model)?;
    let output = &arguments.output;
    let mut file = OutputFile::create(output)?;
    file.write_all(page.as_bytes())?;
    file.finish()?;
    if output != Path::new("-") {
        errln!("aclshim: {} is written; open it in a browser", output.display());
    }
    Ok(ExitCode::SUCCESS)
}
