//! `aclshim report`: one page for the browser.
//!
//! Calls are gathered one by one ([`gather`]) into bins over time ([`timeline`]), some are kept as they are ([`kept`]);
//! [`summing`] makes of it, and of what is known of the processes, what the page shows ([`model`]).

mod gather;
mod happening;
mod kept;
mod model;
mod page;
mod sha256;
mod summing;
mod timeline;

use crate::stat::Traces;
use aclshim_collect::modules::Modules;
use aclshim_collect::seen::{Seen, Watch};
use aclshim_collect::survey::Survey;
use aclshim_facts::settings::RING_DIR;
use anyhow::{Context, Result, bail};
use gather::Gather;
use happening::Happening;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `aclshim report` is told.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  aclshim report aclshim-out\n  aclshim report rank0-out rank1-out -o both.html\n\nThe page needs no network and no other file: open it in a browser, or send it to somebody."
)]
pub struct Arguments {
    #[command(flatten)]
    traces: Traces,
    /// The page; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
}

/// Gathers, and says how far it is.
struct Watcher {
    gather: Gather,
    progress: ProgressBar,
}

impl Watch for Watcher {
    fn call(&mut self, seen: &Seen<'_>) {
        self.gather.add(&Happening::new(seen));
        if self.gather.seen.is_multiple_of(1 << 16) {
            self.progress.set_position(self.gather.seen);
        }
    }
}

/// Writes the page.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let paths = &arguments.traces.paths;
    // Shown on a terminal only.
    let style = ProgressStyle::with_template("{spinner} {human_pos} calls read, {per_sec}")?;
    let progress = ProgressBar::new_spinner().with_style(style);
    let mut watcher = Watcher { gather: Gather::default(), progress };
    let mut survey = read(paths, &mut watcher)?;
    watcher.progress.finish_and_clear();
    let sources = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let count = survey.processes().count();
    let modules: Vec<Modules> =
        (0..count).filter_map(|at| survey.process(at).map(|process| process.judge.modules().clone())).collect();
    let mut name = |process: usize, address: u64| {
        let site = modules.get(process).and_then(|modules| modules.site(address));
        site.map_or_else(|| format!("{address:#x}"), |site| site.to_string())
    };
    let model = summing::model(watcher.gather, &survey, sources, &mut name);
    let page = page::page(&model)?;
    let output = &arguments.output;
    if output == Path::new("-") {
        std::io::stdout().write_all(page.as_bytes())?;
    } else {
        std::fs::write(output, &page).with_context(|| format!("cannot write {}", output.display()))?;
        eprintln!("aclshim: {} calls in {}; open it in a browser", model.totals.calls, output.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads everything, to the end. What could not be read is told by the page, if anything could.
fn read(paths: &[PathBuf], watcher: &mut Watcher) -> Result<Survey> {
    let ring_dir = std::env::var_os(RING_DIR.variable).map(PathBuf::from);
    let folders: Vec<PathBuf> = ring_dir.into_iter().chain(["/dev/shm".into()]).collect();
    let mut survey = Survey::default();
    for path in paths {
        let before = survey.processes().count();
        let outcome = survey.watch(path, &folders, watcher);
        let is_empty = survey.processes().count() == before;
        match outcome {
            Err(why) if is_empty => bail!("{}: {why}", path.display()),
            Err(why) => survey.troubles.push((path.clone(), why)),
            Ok(()) if is_empty && survey.troubles.is_empty() => bail!(
                "{}: no process has recorded a call here. Was the program started with LD_PRELOAD=libaclshim.so and \
                 ACLSHIM_DIR={0}, and did it copy anything?",
                path.display()
            ),
            Ok(()) => {}
        }
    }
    survey.finish(watcher);
    for (file, why) in &survey.troubles {
        eprintln!("aclshim: {}: {why}", file.display());
    }
    Ok(survey)
}
