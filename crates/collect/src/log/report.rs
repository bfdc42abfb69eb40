//! What happened to the files of a process, as lines of its log.

use crate::log::Log;
use crate::log::lines::{Removed, Replaced, Warning, WriteFailed};
use crate::storage::failure::{Failure, Report};
use std::os::unix::ffi::OsStrExt;

impl Log {
    /// Writes what happened while files were written. Stops at the first line that cannot be written.
    pub fn write_report(&mut self, time_ns: u64, report: &Report) -> Result<(), Failure> {
        if let Some(trouble) = &report.mended {
            self.write_failed(time_ns, &trouble.first, trouble.count)?;
        }
        for replaced in &report.replaced {
            let file = replaced.path.as_os_str().as_bytes();
            self.line(time_ns, &Replaced { file, reason: replaced.why.word() })?;
        }
        for removed in &report.removed {
            let file = Some(removed.path.as_os_str().as_bytes());
            self.line(time_ns, &Removed { file, files: 1, bytes: removed.bytes })?;
        }
        let files = report.removed_files.saturating_sub(report.removed.len() as u64);
        if files > 0 {
            let listed = report.removed.iter().map(|removed| removed.bytes).sum::<u64>();
            let bytes = report.removed_bytes.saturating_sub(listed);
            self.line(time_ns, &Removed { file: None, files, bytes })?;
        }
        if report.over_budget > 0 {
            let over = report.over_budget;
            let message = format!("{over} bytes over ACLSHIM_BUDGET, and all files are in use; segments are short now");
            self.line(time_ns, &Warning { topic: "budget", message: &message })?;
        }
        Ok(())
    }

    fn write_failed(&mut self, time_ns: u64, first: &Failure, count: u64) -> Result<(), Failure> {
        let line = WriteFailed {
            file: first.path.as_os_str().as_bytes(),
            step: first.step.word(),
            errno: i64::from(first.errno),
            count,
            message: &first.to_string(),
        };
        self.line(time_ns, &line)
    }
}
