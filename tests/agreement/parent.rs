//! Starts a child for each configuration, two at a time, and reads what it wrote.

use crate::child::{self, Order};
use crate::configuration::Configuration;
use crate::support::{Output, Run, target};
use crate::tally::Tally;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

const SEED: u64 = 20_260_822;

/// For each configuration; there are 96.
const CALLS: usize = 2000;

/// Children at a time.
const AT_A_TIME: usize = 2;

/// What stands in front of the library.
#[derive(Clone, Copy, PartialEq)]
pub enum With {
    Nothing,
    Shim,
    Enforcing,
}

/// What one child did.
pub struct Played {
    pub configuration: Configuration,
    pub tally: Tally,
    pub transcript: String,
    pub disagreements: Vec<String>,
    /// How many calls the shim saw, where it was there.
    pub recorded: Option<u64>,
}

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

pub fn seed() -> u64 {
    variable("ACLSHIM_SEED").unwrap_or(SEED)
}

fn calls() -> usize {
    variable("ACLSHIM_AGREEMENT_CALLS").unwrap_or(CALLS)
}

/// Whether as many calls are made as usual.
pub fn is_whole() -> bool {
    variable::<usize>("ACLSHIM_AGREEMENT_CALLS").is_none()
}

/// Every configuration without the shim. Two tests need it; it is run once.
pub fn without() -> &'static [Played] {
    static RUNS: OnceLock<Vec<Played>> = OnceLock::new();
    RUNS.get_or_init(|| all(With::Nothing))
}

/// Every configuration.
pub fn all(with: With) -> Vec<Played> {
    let (configurations, next) = (Configuration::all(), AtomicUsize::new(0));
    let played = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(configuration) = configurations.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let run = play(*configuration, with);
                    played.lock().expect("no panic").push(run);
                }
            });
        }
    });
    let mut played = played.into_inner().expect("no panic");
    played.sort_by_key(|run| run.configuration.number());
    played
}

fn run(configuration: Configuration, with: With, extra: Option<(&str, String)>) -> Output {
    let program = std::env::current_exe().expect("this program");
    let mut run = Run::new(program).library_path(target(configuration.library()));
    for argument in ["--exact", "child", "--nocapture"] {
        run = run.arg(argument);
    }
    for (name, value) in configuration.settings() {
        run = run.env(name, value);
    }
    run = run.env("AGREEMENT_SEED", seed().to_string()).env("AGREEMENT_CALLS", calls().to_string());
    if with != With::Nothing {
        run = run.shim();
    }
    if with == With::Enforcing {
        let [(_, soc), (_, cann), (_, form), _] = configuration.settings();
        run = run.env("ACLSHIM_MODE", "enforce").env("ACLSHIM_SOC", soc).env("ACLSHIM_CANN", cann);
        run = run.env("ACLSHIM_FORM", if form == "host" { "ep" } else { "rc" });
    }
    if let Some((name, value)) = extra {
        run = run.env(name, value);
    }
    run.run()
}

fn play(configuration: Configuration, with: With) -> Played {
    read(configuration, with, run(configuration, with, None))
}

/// One configuration of a library that does not do what it should.
pub fn play_with_fault(configuration: Configuration, fault: &str) -> Played {
    let output = run(configuration, With::Nothing, Some(("ASCENDCL_SIM_FAULT", fault.into())));
    read(configuration, With::Nothing, output)
}

fn read(configuration: Configuration, with: With, output: Output) -> Played {
    let name = configuration.name();
    if !output.status.success() {
        let traced = run(configuration, with, Some(("AGREEMENT_TRACE", "1".into())));
        let last = traced.stderr.rfind("case Some").map_or(traced.stderr.as_str(), |at| &traced.stderr[at..]);
        panic!("{name}: {:?}\n{}\n{}\nthe last case:\n{last}", output.status, output.stdout, output.stderr);
    }
    let read = |file: &str| fs::read_to_string(output.scratch.join(file)).unwrap_or_else(|_| panic!("{name}: {file}"));
    let played = Played {
        configuration,
        tally: Tally::read(&read("tally")),
        transcript: read("transcript"),
        disagreements: read("disagreements").split('\0').filter(|one| !one.is_empty()).map(Into::into).collect(),
        recorded: (with != With::Nothing).then(|| {
            let stat = output.stat();
            // A ring that is full is no reason to wait.
            stat.total("calls") + stat.total("not_recorded")
        }),
    };
    let _ = fs::remove_dir_all(&output.scratch);
    played
}

/// One case of a configuration, as a person reads it.
pub fn show(configuration: Configuration, with: With, number: usize) -> String {
    run(configuration, with, Some(("AGREEMENT_SHOW", number.to_string()))).stdout
}

/// What a child does: the order stands in its environment, the answer in files of its working directory.
pub fn be_a_child() {
    // By itself it is no test.
    let Some(seed) = variable("AGREEMENT_SEED") else { return };
    let setting = |name: &str| std::env::var(name).unwrap_or_default();
    let is_meant = |configuration: &Configuration| {
        configuration.settings().into_iter().all(|(name, value)| setting(name) == value)
    };
    let configuration = Configuration::all().into_iter().find(is_meant).expect("started by another test of this file");
    let order = Order {
        configuration,
        seed,
        calls: variable("AGREEMENT_CALLS").expect("a number of calls"),
        is_tracing: std::env::var_os("AGREEMENT_TRACE").is_some(),
        show: variable("AGREEMENT_SHOW"),
    };
    let report = child::play(order);
    let texts: Vec<String> = report.disagreements.into_iter().map(|one| one.text).collect();
    for (file, text) in
        [("tally", report.tally.write()), ("transcript", report.transcript), ("disagreements", texts.join("\0"))]
    {
        fs::write(Path::new(file), text).expect("a file in the working directory");
    }
}

/// A line of a transcript.
pub struct Line<'a> {
    pub number: usize,
    pub code: &'a str,
    pub fail_index: &'a str,
    /// By its arguments alone.
    pub is_refused: bool,
    pub reached: u64,
}

impl<'a> Line<'a> {
    pub fn read(line: &'a str) -> Self {
        let mut parts = line.split(' ');
        let mut next = || parts.next().expect("a whole line");
        let (number, _name) = (next().parse().expect("a number"), next());
        let (code, fail_index, is_refused) = (next(), next(), next() == "refused");
        Self { number, code, fail_index, is_refused, reached: next().parse().expect("a number") }
    }
}
