//! What the commands that read traces share: their paths, and the reading.

use crate::files::ring_folders;
use crate::output::escape;
use crate::output::progress;
use aclshim_collect::interpreter::visitor::{CallVisitor, ParallelVisitor};
use aclshim_collect::ownership::Ignored;
use aclshim_collect::trace_set::{CallOrder, FileError, ReadOptions, TraceSet};
use anyhow::{Result, anyhow, bail};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The paths that a reading command is given.
#[derive(clap::Args)]
pub struct Traces {
    /// An ACLSHIM_DIR (running and ended processes that named it are found in the ring directory), a trace or a ring file
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

/// What happens if there is nothing to read: for a program that is a valid answer, for a person most likely a mistake.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    /// It is reported, and the command succeeds.
    IsFine,
    IsAnError,
}

/// The numbers of the rules in a set that has one bit a rule.
pub fn rule_numbers(rules: u128) -> impl Iterator<Item = u8> {
    let mut rest = rules;
    std::iter::from_fn(move || {
        let number = (rest != 0).then(|| rest.trailing_zeros() as u8)?;
        rest &= rest - 1;
        Some(number)
    })
}

/// Reports the rings that name a directory but do not count, because they belong to other users.
pub fn say_ignored(ignored: &BTreeSet<Ignored>) {
    const MOST: usize = 8;
    for Ignored { path, uid } in ignored.iter().take(MOST) {
        errln!(
            "aclshim: {}: ignored: it belongs to user {uid}, and only rings of the directory's owner and of root count",
            escape::path(path)
        );
    }
    if ignored.len() > MOST {
        eprintln!("aclshim: {} more rings of other users are ignored", ignored.len() - MOST);
    }
}

/// Reports the files that could not be read, and what can be done about the first of them.
pub fn say_troubles(set: &TraceSet) {
    say_ignored(&set.ignored);
    for FileError { path, cause } in &set.troubles {
        errln!("aclshim: {}: {}", escape::path(path), escape::line(&cause.to_string()));
    }
    if let Some(remedy) = set.troubles.iter().find_map(remedy) {
        errln!("aclshim: {}", escape::line(&remedy));
    }
}

/// What can be done about a damaged trace.
fn remedy(error: &FileError) -> Option<String> {
    let file = error.path.display();
    error.cause.is_recoverable().then(|| {
        format!(
            "`aclshim verify {file}` says more; `aclshim recover --out DIR {file}` writes what is good to a new file"
        )
    })
}

impl Traces {
    /// Reads everything, shows every call in that order, and reports what could not be read.
    pub fn read<W: CallVisitor + ?Sized>(
        &self,
        order: CallOrder,
        nothing: Nothing,
        visitor: &mut W,
    ) -> Result<TraceSet> {
        self.read_with(order, nothing, visitor, |set, visitor| set.read(&self.paths, visitor))
    }

    /// Reads everything with two threads, for a visitor that adds up.
    pub fn read_parallel<W: ParallelVisitor>(&self, nothing: Nothing, visitor: &mut W) -> Result<TraceSet> {
        let read = |set: &mut TraceSet, visitor: &mut W| set.read_parallel(&self.paths, visitor);
        self.read_with(CallOrder::ByThread, nothing, visitor, read)
    }

    fn read_with<W: CallVisitor + ?Sized>(
        &self,
        order: CallOrder,
        nothing: Nothing,
        visitor: &mut W,
        read: impl FnOnce(&mut TraceSet, &mut W) -> Result<(), FileError>,
    ) -> Result<TraceSet> {
        let progress = progress::of_traces(&self.paths);
        let options = ReadOptions { ring_folders: ring_folders(), order, progress, ..ReadOptions::default() };
        let mut set = TraceSet::new(options);
        let outcome = read(&mut set, visitor);
        set.finish(visitor);
        say_troubles(&set);
        outcome.map_err(|error| match remedy(&error) {
            Some(remedy) => anyhow!("{error}; {remedy}"),
            None => error.into(),
        })?;
        say_nothing_in(&set, nothing)?;
        Ok(set)
    }
}

/// Reports the paths under which there was nothing to read.
fn say_nothing_in(set: &TraceSet, nothing: Nothing) -> Result<()> {
    for path in &set.nothing_in {
        let what = match path.exists() {
            false => "no such file or directory, and no process writes there",
            true => "no process has recorded a call here",
        };
        let hint = format!(
            "{}: {what}. Was the program started by `aclshim run --out {0}` (or with LD_PRELOAD=libaclshim.so and \
             ACLSHIM_DIR={0}), and did it copy anything?",
            path.display()
        );
        match nothing {
            Nothing::IsFine => errln!("aclshim: {hint}"),
            Nothing::IsAnError => bail!(hint),
        }
    }
    if set.processes().next().is_none() && nothing == Nothing::IsAnError {
        bail!("nothing could be read");
    }
    Ok(())
}
