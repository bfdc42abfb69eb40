//! `aclshim export`: traces for other tools.

mod array;
mod batch;
mod chrome;
mod parquet;
mod partition;
mod perfetto;
mod proto;
mod row;
mod rows;
mod text;
mod texts;
mod timeline;

use crate::output::file::OutputFile;
use crate::reading::traces::{Nothing, Traces};
use aclshim_collect::trace_set::{CallOrder, Process};
use aclshim_trace::record::annotation::Annotation;
use anyhow::Result;
use chrome::Chrome;
use clap::ValueEnum;
use parquet::{Existing, Parquet};
use perfetto::Perfetto;
use row::Row;
use rows::Rows;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use text::{Csv, Jsonl};
use texts::Texts;

/// Arguments of `aclshim export`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  aclshim export aclshim-out --format perfetto -o trace.pftrace   then open it at https://ui.perfetto.dev
  aclshim export aclshim-out --format parquet -o lake             then ask in SQL, with DuckDB or Spark
  aclshim export aclshim-out --format csv -o - | head
Formats, columns and queries: docs/exporting.md")]
pub struct Arguments {
    #[command(flatten)]
    traces: Traces,
    /// What to write
    #[arg(long, value_enum, required = true)]
    format: Option<Format>,
    /// Where to: a file (`-` is standard output); for parquet a folder
    #[arg(short, long, value_name = "OUT", required = true)]
    output: Option<PathBuf>,
    /// Add to folders of parquet files that have some
    #[arg(long)]
    append: bool,
    /// Say which columns there are, and what they mean
    #[arg(long, exclusive = true)]
    columns: bool,
}

/// What can be written.
#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// For ui.perfetto.dev and trace_processor
    Perfetto,
    /// For chrome://tracing and other readers of trace events
    Chrome,
    /// Comma-separated values
    Csv,
    /// One JSON object a line
    Jsonl,
    /// For DuckDB, Spark and others, in folders by host and date
    Parquet,
}

/// An output format: what rows are written to.
trait Sink {
    /// Writes a row.
    fn row(&mut self, row: &Row, texts: &Texts) -> Result<()>;
    /// An annotation of a program, at the time and on the thread of `row`; a sink without annotations ignores it.
    fn remark(&mut self, _row: &Row, _what: &Annotation, _name: &str, _texts: &Texts) -> Result<()> {
        Ok(())
    }
    /// Ends the output; there are no more rows.
    fn finish(self: Box<Self>, texts: &Texts) -> Result<()>;
}

impl Format {
    fn sink(self, out: &Path, existing: Existing) -> Result<Box<dyn Sink>> {
        let file = || OutputFile::create(out);
        Ok(match self {
            Format::Perfetto => Box::new(Perfetto::new(file()?)),
            Format::Chrome => Box::new(Chrome::new(file()?)),
            Format::Csv => Box::new(Csv::new(file()?)?),
            Format::Jsonl => Box::new(Jsonl(file()?)),
            Format::Parquet => Box::new(Parquet::new(out, existing)?),
        })
    }

    fn is_timeline(self) -> bool {
        matches!(self, Format::Perfetto | Format::Chrome)
    }
}

/// Writes the export, and says what it lacks.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let (Some(format), Some(out)) = (arguments.format, &arguments.output) else {
        print!("{}", row::table());
        return Ok(ExitCode::SUCCESS);
    };
    let existing = if arguments.append { Existing::Append } else { Existing::Refuse };
    let mut rows = Rows::new(format.sink(out, existing)?);
    let traces = &arguments.traces;
    let order = match format {
        // A table has no order, and this one is faster.
        Format::Parquet => CallOrder::ByThreadNamesFirst,
        _ => CallOrder::ByTime,
    };
    let set = traces.read(order, Nothing::IsAnError, &mut rows)?;
    let sum = |of: fn(&Process) -> u64| set.processes().map(of).sum::<u64>();
    for (count, what) in [
        (sum(|process| process.not_recorded), "calls were not recorded, and are not in the export"),
        (sum(|process| process.notes_lost), "marks, scopes or names were not recorded, and are not in the export"),
        (sum(Process::overwritten), "slots of records were overwritten, and are not in the export"),
        (sum(|process| process.evicted), "calls were removed to stay within ACLSHIM_BUDGET, and are not in the export"),
        (if format.is_timeline() { rows.timeless } else { 0 }, "calls have no known time, and are not in the export"),
    ] {
        if count > 0 {
            eprintln!("aclshim: {count} {what}");
        }
    }
    rows.finish()?;
    Ok(ExitCode::SUCCESS)
}
