//! What the commands that read traces share: their paths, and the reading.

use crate::progress;
use crate::spoken;
use aclshim_collect::ownership::Ignored;
use aclshim_collect::seen::{Abreast, Nobody, Watch};
use aclshim_collect::survey::Survey;
use aclshim_facts::settings::RING_DIR;
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is read.
#[derive(clap::Args)]
pub struct Traces {
    /// An ACLSHIM_DIR (running and ended processes that named it are found in the ring directory), a trace or a ring file
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

/// What happens if there is nothing to read: that is an answer to a program, and a question to a person.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    /// It is said, and no more.
    IsFine,
    /// It is an error.
    IsAnError,
}

/// The folders that rings are looked for in.
pub fn ring_folders() -> Vec<PathBuf> {
    std::env::var_os(RING_DIR.variable).map(PathBuf::from).into_iter().chain(["/dev/shm".into()]).collect()
}

/// Says which rings name a directory and do not count, because they are other users'.
pub fn say_ignored(ignored: &BTreeSet<Ignored>) {
    const MOST: usize = 8;
    for Ignored { path, uid } in ignored.iter().take(MOST) {
        errln!(
            "aclshim: {}: ignored: it belongs to user {uid}, and only rings of the directory's owner and of root count",
            spoken::path(path)
        );
    }
    if ignored.len() > MOST {
        eprintln!("aclshim: {} more rings of other users are ignored", ignored.len() - MOST);
    }
}

/// Says what could not be read, and what can be done about the first of it.
pub fn say_troubles(survey: &Survey) {
    say_ignored(&survey.ignored);
    for (file, why) in &survey.troubles {
        errln!("aclshim: {}: {}", spoken::path(file), spoken::spoken(why));
    }
    if let Some(remedy) = survey.troubles.iter().find_map(|(file, why)| remedy(file, why)) {
        errln!("aclshim: {}", spoken::spoken(&remedy));
    }
}

/// What can be done about a trace that is damaged. One that is cut off in its header holds nothing to be saved, and one
/// of a newer version says itself who reads it.
fn remedy(file: &Path, why: &str) -> Option<String> {
    let file = file.display();
    let is_partly_good = why.contains("was read") || why.contains("header was damaged");
    is_partly_good.then(|| {
        format!(
            "`aclshim verify {file}` says more; `aclshim recover --out DIR {file}` writes what is good to a new file"
        )
    })
}

impl Traces {
    /// Reads everything, and says what could not be read.
    pub fn read(&self, nothing: Nothing) -> Result<Survey> {
        self.watch(nothing, &mut Nobody)
    }

    /// The same, and shows every call, those of a thread in their order.
    pub fn watch<W: Watch + ?Sized>(&self, nothing: Nothing, watch: &mut W) -> Result<Survey> {
        self.watch_in(Survey::default(), nothing, watch)
    }

    /// The same, and what programs call things is known before the first call is shown: everything is read twice.
    pub fn watch_named<W: Watch + ?Sized>(&self, nothing: Nothing, watch: &mut W) -> Result<Survey> {
        let mut survey = Survey::default();
        survey.names_first = true;
        self.watch_in(survey, nothing, watch)
    }

    /// Reads everything for somebody who only adds up: with two threads.
    pub fn add_up<W: Abreast>(&self, nothing: Nothing, watch: &mut W) -> Result<Survey> {
        let mut survey = Survey::default();
        survey.progress = progress::of_traces(&self.paths);
        let outcome = survey.add_up(&self.paths, &ring_folders(), watch);
        self.finish(survey, outcome, nothing, watch)
    }

    fn watch_in<W: Watch + ?Sized>(&self, mut survey: Survey, nothing: Nothing, watch: &mut W) -> Result<Survey> {
        survey.progress = progress::of_traces(&self.paths);
        let outcome = survey.watch_all(&self.paths, &ring_folders(), watch);
        self.finish(survey, outcome, nothing, watch)
    }

    fn finish<W: Watch + ?Sized>(
        &self,
        mut survey: Survey,
        outcome: Result<(), String>,
        nothing: Nothing,
        watch: &mut W,
    ) -> Result<Survey> {
        survey.finish(watch);
        self.say(&survey, outcome, nothing)?;
        Ok(survey)
    }

    /// The same in the order in which the calls began, over all threads and processes.
    pub fn in_order<W: Watch + ?Sized>(&self, nothing: Nothing, watch: &mut W) -> Result<Survey> {
        let mut survey = Survey::default();
        survey.progress = progress::of_traces(&self.paths);
        let outcome = survey.in_order(&self.paths, &ring_folders(), watch);
        self.say(&survey, outcome, nothing)?;
        Ok(survey)
    }

    /// Says what could not be read, and where nothing was.
    fn say(&self, survey: &Survey, outcome: Result<(), String>, nothing: Nothing) -> Result<()> {
        say_troubles(survey);
        match (outcome, &self.paths[..]) {
            (Err(why), [path]) => match remedy(path, &why) {
                Some(remedy) => bail!("{}: {why}; {remedy}", path.display()),
                None => bail!("{}: {why}", path.display()),
            },
            (Err(why), _) => bail!(why),
            (Ok(()), _) => {}
        }
        for path in &survey.nothing_in {
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
        if survey.processes().next().is_none() && nothing == Nothing::IsAnError {
            bail!("nothing could be read");
        }
        Ok(())
    }
}
