//! `aclshim export`: traces for other tools.

mod batch;
mod chrome;
mod output;
mod parquet;
mod partition;
mod perfetto;
mod proto;
mod row;
mod rows;
mod text;
mod texts;
mod timeline;

use crate::stat::Traces;
use anyhow::Result;
use clap::ValueEnum;
use output::Output;
use row::Row;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use texts::Texts;

/// What `aclshim export` is told.
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
    #[arg(long, value_enum)]
    format: Format,
    /// Where to: a file (`-` is standard output); for parquet a folder
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Add to folders of parquet files that have some
    #[arg(long)]
    append: bool,
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

/// Where rows go.
trait Sink {
    /// One more.
    fn row(&mut self, row: &Row, texts: &Texts) -> Result<()>;
    /// There are no more.
    fn finish(self: Box<Self>, texts: &Texts) -> Result<()>;
}
