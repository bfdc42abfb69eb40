//! What the commands that read traces share: their paths, and the reading.

use aclshim_collect::seen::{Nobody, Watch};
use aclshim_collect::survey::Survey;
use aclshim_facts::settings::RING_DIR;
use anyhow::{Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::path::PathBuf;

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

    fn watch_in<W: Watch + ?Sized>(&self, mut survey: Survey, nothing: Nothing, watch: &mut W) -> Result<Survey> {
        survey.progress = self.progress();
        let outcome = survey.watch_all(&self.paths, &ring_folders(), watch);
        survey.finish(watch);
        self.say(&survey, outcome, nothing)?;
        Ok(survey)
    }

    /// The same in the order in which the calls began, over all threads and processes.
    pub fn in_order<W: Watch + ?Sized>(&self, nothing: Nothing, watch: &mut W) -> Result<Survey> {
        let mut survey = Survey::default();
        survey.progress = self.progress();
        let outcome = survey.in_order(&self.paths, &ring_folders(), watch);
        self.say(&survey, outcome, nothing)?;
        Ok(survey)
    }

    /// Says what could not be read, and where nothing was.
    fn say(&self, survey: &Survey, outcome: Result<(), String>, nothing: Nothing) -> Result<()> {
        for (file, why) in &survey.troubles {
            eprintln!("aclshim: {}: {why}", file.display());
        }
        match (outcome, &self.paths[..]) {
            (Err(why), [path]) => bail!("{}: {why}", path.display()),
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
                Nothing::IsFine => eprintln!("aclshim: {hint}"),
                Nothing::IsAnError => bail!(hint),
            }
        }
        if survey.processes().next().is_none() && nothing == Nothing::IsAnError {
            bail!("nothing could be read");
        }
        Ok(())
    }

    /// A bar on a terminal, if there is much to read.
    fn progress(&self) -> Option<Box<dyn FnMut(u64)>> {
        const MUCH: u64 = 256 << 20;
        let in_folder =
            |path: &PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        let files = self.paths.iter().flat_map(|path| in_folder(path).chain([path.clone()]));
        let traces = files.filter(|path| path.extension().is_some_and(|extension| extension == "acltrace"));
        let total: u64 = traces.filter_map(|path| path.metadata().ok()).map(|about| about.len()).sum();
        if total < MUCH || !std::io::stderr().is_terminal() {
            return None;
        }
        let bar = ProgressBar::new(total);
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {eta} left") {
            bar.set_style(style);
        }
        Some(Box::new(move |bytes| {
            bar.inc(bytes);
            if bar.position() >= total {
                bar.finish_and_clear();
            }
        }))
    }
}
