//! A bar on a terminal while there is much to read; elsewhere nothing.

use crate::output::escape;
use indicatif::{ProgressBar, ProgressBarIter, ProgressStyle};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Number of bytes from which on a bar is shown.
const MUCH: u64 = 64 << 20;

/// A bar for a number of bytes. It is drawn on a terminal only, and removed when it is dropped.
pub fn bar(what: &str, bytes: u64) -> ProgressBar {
    if bytes < MUCH {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(bytes).with_message(what.to_owned());
    match ProgressStyle::with_template("{msg} {wide_bar} {bytes} of {total_bytes}, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A bar for one file.
pub fn of_file(path: &Path) -> ProgressBar {
    bar(&escape::line(&path.file_name().unwrap_or_default().to_string_lossy()), length(path))
}

/// A file whose bar moves as it is read.
pub fn reading(path: &Path, file: File) -> ProgressBarIter<File> {
    of_file(path).wrap_read(file)
}

/// A callback that moves one bar for all traces that are named or lie in named folders; `None` where no bar is drawn.
pub fn of_traces(paths: &[PathBuf]) -> Option<Box<dyn FnMut(u64) + Send>> {
    let in_folder = |path: &PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = paths.iter().flat_map(|path| in_folder(path).chain([path.clone()]));
    let traces = files.filter(|path| path.extension().is_some_and(|extension| extension == "acltrace"));
    let bar = bar("reading", traces.map(|path| length(&path)).sum());
    (!bar.is_hidden()).then(|| -> Box<dyn FnMut(u64) + Send> { Box::new(move |bytes| bar.inc(bytes)) })
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |about| about.len())
}
