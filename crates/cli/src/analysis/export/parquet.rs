//! Parquet files for DuckDB, Spark and other programs that query in SQL: `OUT/host=NAME/date=YYYY-MM-DD/part-….parquet`.
//!
//! Rows are collected by folder, and become columns here. A thread of its own encodes and writes them meanwhile.

use super::Sink;
use super::batch;
use super::partition;
use super::row::Row;
use super::texts::{Text, Texts};
use crate::files::unfinished;
use crate::output::time;
use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, Encoding};
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::schema::types::ColumnPath;
use anyhow::{Context, Result, anyhow, bail};
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Number of rows that become columns at once.
const BATCH: usize = 16 * 1024;
/// Number of rows in a row group, which is held in memory until it is complete.
pub const ROW_GROUP: usize = 128 * 1024;
/// At about this size a file ends and the next one begins.
const FILE: usize = 256 << 20;
/// Maximum number of folders that are written to at once. Calls come roughly in the order of time: an old day does not return.
const MOST_OPEN: usize = 16;

/// Whether files may be added to a folder that has some.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It is refused: the calls might be there already.
    Refuse,
    Append,
}

/// Collects rows by folder.
pub struct Parquet {
    out: PathBuf,
    schema: Arc<Schema>,
    /// Few, and mostly used several times in a row.
    parts: Vec<(PartitionKey, Part)>,
    /// Counts rows, to find the least recently used folder.
    clock: u64,
    batches: Option<SyncSender<WriterCommand>>,
    writer: Option<JoinHandle<Result<()>>>,
}

/// Host, and day since 1970.
type PartitionKey = (Option<Text>, u64);

const DAY: u64 = 86_400_000_000_000;

struct Part {
    folder: Arc<Path>,
    rows: Vec<Row>,
    used: u64,
}

enum WriterCommand {
    Write(Arc<Path>, RecordBatch),
    Close(Arc<Path>),
    /// All is written: the files get their names.
    Publish,
}

impl Parquet {
    /// Starts the thread that writes to folders below `out`.
    pub fn new(out: &Path, existing: Existing) -> Result<Self> {
        if out == Path::new("-") {
            bail!("parquet is a folder of files, and cannot go to standard output: name one with -o");
        }
        let schema = Arc::new(batch::schema());
        let (batches, orders) = sync_channel(2);
        let writer = Writer::new(Arc::clone(&schema), existing);
        let writer = std::thread::spawn(move || writer.run(&orders));
        let (out, parts) = (out.to_owned(), Vec::new());
        Ok(Self { out, schema, parts, clock: 0, batches: Some(batches), writer: Some(writer) })
    }

    /// Which part a row belongs to.
    fn part(&mut self, key: PartitionKey, texts: &Texts) -> Result<usize> {
        if let Some(known) = self.parts.iter().position(|(other, _)| *other == key) {
            return Ok(known);
        }
        if self.parts.len() >= MOST_OPEN {
            let oldest = self.parts.iter().enumerate().min_by_key(|(_, (_, part))| part.used);
            self.close(oldest.map_or(0, |(at, _)| at), texts)?;
        }
        let folder = self.folder(key, texts);
        self.parts.push((key, Part { folder, rows: Vec::with_capacity(BATCH), used: 0 }));
        Ok(self.parts.len() - 1)
    }

    fn folder(&self, (host, day): PartitionKey, texts: &Texts) -> Arc<Path> {
        let host = partition::folder("host", host.map_or("", |host| texts.get(host)));
        self.out.join(host).join(partition::folder("date", &time::day(day * DAY))).into()
    }

    fn flush(&mut self, at: usize, texts: &Texts) -> Result<()> {
        let (_, part) = &mut self.parts[at];
        let batch = batch::batch(&self.schema, &part.rows, texts)?;
        part.rows.clear();
        let order = WriterCommand::Write(Arc::clone(&part.folder), batch);
        self.send(order)
    }

    fn close(&mut self, at: usize, texts: &Texts) -> Result<()> {
        self.flush(at, texts)?;
        let (_, part) = self.parts.swap_remove(at);
        self.send(WriterCommand::Close(part.folder))
    }

    fn send(&mut self, order: WriterCommand) -> Result<()> {
        match self.batches.as_ref().map(|batches| batches.send(order)) {
            Some(Ok(())) => Ok(()),
            // It has stopped, and knows why.
            _ => self.join().and_then(|()| bail!("the writer of Parquet files has stopped")),
        }
    }

    fn join(&mut self) -> Result<()> {
        drop(self.batches.take());
        let writer = self.writer.take().context("the writer of Parquet files has stopped before")?;
        writer.join().map_err(|_| anyhow!("the writer of Parquet files has failed"))?
    }
}

impl Sink for Parquet {
    fn row(&mut self, row: &Row, texts: &Texts) -> Result<()> {
        // A call whose time is not known goes to the day on which its process was born.
        let time = row.time_ns.or(row.born_ns).unwrap_or_default();
        let key = (row.host, time.unsigned_abs() / DAY);
        self.clock += 1;
        let at = self.part(key, texts)?;
        let (_, part) = &mut self.parts[at];
        part.used = self.clock;
        part.rows.push(*row);
        if part.rows.len() == BATCH { self.flush(at, texts) } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>, texts: &Texts) -> Result<()> {
        while !self.parts.is_empty() {
            self.close(0, texts)?;
        }
        self.send(WriterCommand::Publish)?;
        self.join()
    }
}

/// The thread that encodes record batches and writes files.
struct Writer {
    schema: Arc<Schema>,
    existing: Existing,
    /// What the names of this export's files begin with.
    stem: String,
    open: HashMap<Arc<Path>, (PathBuf, ArrowWriter<File>)>,
    /// The files that are whole: they get their names when all are.
    whole: Vec<PathBuf>,
    parts: u64,
}

impl Writer {
    fn new(schema: Arc<Schema>, existing: Existing) -> Self {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos());
        let stem = format!("part-{now:x}-{:x}-", std::process::id());
        Self { schema, existing, stem, open: HashMap::new(), whole: Vec::new(), parts: 0 }
    }

    fn run(mut self, orders: &Receiver<WriterCommand>) -> Result<()> {
        for order in orders {
            match order {
                WriterCommand::Write(folder, batch) => self.write(folder, &batch)?,
                WriterCommand::Close(folder) => self.close(&folder)?,
                WriterCommand::Publish => self.publish()?,
            }
        }
        Ok(())
    }

    fn write(&mut self, folder: Arc<Path>, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if !self.open.contains_key(&folder) {
            let opened = self.create(&folder)?;
            self.open.insert(Arc::clone(&folder), opened);
        }
        let Some((path, writer)) = self.open.get_mut(&folder) else { return Ok(()) };
        writer.write(batch).with_context(|| format!("{}: cannot be written", path.display()))?;
        if writer.bytes_written() >= FILE { self.close(&folder) } else { Ok(()) }
    }

    fn create(&mut self, folder: &Path) -> Result<(PathBuf, ArrowWriter<File>)> {
        fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
        if self.existing == Existing::Refuse && self.has_others(folder)? {
            bail!(
                "{}: there are files already, and the same calls may be in them. Remove the folder, name another with \
                 -o, or say --append to add to it",
                folder.display()
            );
        }
        let path = folder.join(format!("{}{}.parquet", self.stem, self.parts));
        self.parts += 1;
        let say = || format!("{}: cannot be written", path.display());
        let file = File::create_new(unfinished(&path)).with_context(say)?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&self.schema), Some(properties())).with_context(say)?;
        Ok((path, writer))
    }

    fn has_others(&self, folder: &Path) -> Result<bool> {
        let files = fs::read_dir(folder).with_context(|| format!("{}: cannot be read", folder.display()))?;
        let names = files.filter_map(|file| Some(file.ok()?.file_name().to_string_lossy().into_owned()));
        Ok(names.into_iter().any(|name| name.ends_with(".parquet") && !name.starts_with(&self.stem)))
    }

    fn close(&mut self, folder: &Path) -> Result<()> {
        let Some((path, writer)) = self.open.remove(folder) else { return Ok(()) };
        let closed = writer.close().with_context(|| format!("{}: cannot be written", path.display()));
        self.whole.push(path);
        closed.map(|_| ())
    }

    fn publish(&mut self) -> Result<()> {
        // Those that have no name yet are removed if this fails.
        while let Some(path) = self.whole.last() {
            fs::rename(unfinished(path), path).with_context(|| format!("{}: cannot be made", path.display()))?;
            self.whole.pop();
        }
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let open = self.open.values().map(|(path, _)| path);
        for path in self.whole.iter().chain(open) {
            let _ = fs::remove_file(unfinished(path));
        }
    }
}

fn properties() -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(ROW_GROUP));
    // They grow from row to row: what is between two of them is small, and no value comes again.
    for name in ["number", "time_ns"] {
        let column = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}
