//! The file that an export or a page becomes: whole at the end, or not there at all.

use crate::files;
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

/// Where an export or a page goes.
pub struct OutputFile {
    to: BufWriter<To>,
    /// The unfinished file, and the name that it gets.
    names: Option<(PathBuf, PathBuf)>,
}

enum To {
    /// A file and its path, for error messages.
    File(File, PathBuf),
    Stdout(StdoutLock<'static>),
}

impl Write for To {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            To::File(file, path) => file.write(bytes).map_err(|error| named(path, &error)),
            To::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            To::File(file, path) => file.flush().map_err(|error| named(path, &error)),
            To::Stdout(stdout) => stdout.flush(),
        }
    }
}

/// The error with the path that it is about.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: cannot be written: {error}", path.display()))
}

impl OutputFile {
    /// A file, or standard output for `-`. What is no regular file (a pipe, a device) is written to as it is.
    pub fn create(path: &Path) -> Result<Self> {
        let say = |path: &Path| format!("{}: cannot be written", path.display());
        let (to, names) = if path == Path::new("-") {
            (To::Stdout(io::stdout().lock()), None)
        } else if path.metadata().is_ok_and(|about| !about.is_file()) {
            let file = File::options().write(true).open(path).with_context(|| say(path))?;
            (To::File(file, path.to_owned()), None)
        } else {
            files::refuse_to_overwrite(path)?;
            let unfinished = files::unfinished(path);
            let file = File::create_new(&unfinished)
                .with_context(|| unfinished.display().to_string())
                .with_context(|| say(path))?;
            (To::File(file, path.to_owned()), Some((unfinished, path.to_owned())))
        };
        Ok(Self { to: BufWriter::with_capacity(1 << 20, to), names })
    }

    /// Puts it in its place.
    pub fn finish(mut self) -> Result<()> {
        self.to.flush()?;
        if let Some((unfinished, path)) = &self.names {
            fs::rename(unfinished, path).with_context(|| format!("{}: cannot be made", path.display()))?;
        }
        self.names = None;
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some((unfinished, _)) = &self.names {
            let _ = fs::remove_file(unfinished);
        }
    }
}
