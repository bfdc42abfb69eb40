//! The collector's messages: on standard error, and with `--log-dir` in files, one a day.

use crate::output::{escape, time};
use crate::recording::run::say;
use aclshim_trace::system::clock::realtime_ns;
use anyhow::{Context, Result};
use std::fmt::Arguments;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use tracing_appender::rolling::{RollingFileAppender, Rotation};

/// Number of files that are not removed, one a day.
const FILES: usize = 14;

static LOG: OnceLock<Mutex<RollingFileAppender>> = OnceLock::new();

/// From now on messages also go to files in `folder`, which is made if it does not exist.
pub fn write_to(folder: &Path) -> Result<()> {
    let why = || format!("{}: no log can be written there", folder.display());
    // Otherwise the appender complains that it cannot look for old files.
    std::fs::create_dir_all(folder).with_context(why)?;
    let name = RollingFileAppender::builder().filename_prefix("aclshim-collect").filename_suffix("log");
    let log = name.rotation(Rotation::DAILY).max_log_files(FILES).build(folder);
    let _ = LOG.set(Mutex::new(log.with_context(why)?));
    Ok(())
}

/// Whether messages go to files.
pub fn has_files() -> bool {
    LOG.get().is_some()
}

/// Reports a message of the collector. A failure to do so is ignored.
pub fn report(message: Arguments<'_>) {
    say(message);
    if let Some(log) = LOG.get() {
        let line = format!("{} {}\n", time::moment(realtime_ns()), escape::lines(&message.to_string()));
        let _ = log.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}
