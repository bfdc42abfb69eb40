//! `aclshim run`: runs a program under the shim, drains it from outside, and says in short what was seen.
//!
//! The program is to run as without us: it gets our descriptors, terminal, process group, signals and their dispositions;
//! what we need for ourselves it does not see. Its end is ours.

mod child;
mod environment;
mod program;
mod rings;
mod sentry;
mod summary;

use crate::config::InForce;
use crate::dropin::find_shim;
use aclshim_facts::product::Product;
use aclshim_facts::rule::Severity;
use aclshim_facts::settings::{AS, CALLS, CONFIG, DIR, DRAIN, MODE, RECORD, RING_DIR, RING_SIZE};
use aclshim_trace::clock::realtime_ns;
use anyhow::{Context, Result, bail};
use child::{Child, End};
use rings::{Place, Rings};
use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;
use summary::{Summary, Told};

/// Our own failure, as `env` and `timeout` have it.
const OUR_FAILURE: u8 = 125;
/// The program was found, but cannot be started.
const NOT_STARTED: u8 = 126;
/// The program was not found.
const NOT_FOUND: u8 = 127;

/// A thread's ring, unless it was chosen: a program that calls in a tight loop from its first moment has filled one of
/// the default size before we have found it.
const RING: (&str, u64) = ("2M", 2 << 20);
/// For so many threads there must be room, or the default holds.
const THREADS: u64 = 16;
/// Why there may be no call.
const WHY_NONE: &str = "the program made no copy, or the shim was not loaded: `aclshim doctor -- program` looks closer";

/// What `aclshim run` is told.
#[derive(clap::Args)]
#[command(
    after_help = "The exit status is that of the program; if a signal ended it, the same signal ends aclshim. 127: it was \
                        not found; 126: it could not be started; 125: aclshim itself failed, or --require-calls was not met.\n\n\
                        Examples:\n  aclshim run -- ./program --its-option\n  \
                        aclshim run --out seen --error-exitcode 9 -- python3 infer.py\n  \
                        aclshim run --enforce --as Ascend310P3 -- ./program\n  \
                        aclshim run --sim --require-calls -- ./program        # no NPU needed"
)]
pub struct Arguments {
    /// Where traces and logs go; by default ACLSHIM_DIR, and else aclshim-out
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Refuse what the vendor would refuse by its arguments: return its code and do not forward the call
    #[arg(long)]
    enforce: bool,
    /// Judge the run for another product, too; may be given several times
    #[arg(long = "as", value_name = "PRODUCT")]
    as_products: Vec<String>,
    /// A settings file (see `aclshim config --template`)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// End with this status if there are findings, unless a signal ended the program
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    error_exitcode: Option<u8>,
    /// How bad a finding must be for --error-exitcode: error, violation, perf or portability
    #[arg(long, value_name = "SEVERITY", default_value = "error", value_parser = severity, requires = "error_exitcode")]
    on: Severity,
    /// Fail if no call was seen: a shim that was not loaded is not to look like a clean run
    #[arg(long)]
    require_calls: bool,
    /// Put the simulated device in front of the real library
    #[arg(long)]
    sim: bool,
    /// Say nothing but what went wrong with aclshim itself
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

fn severity(text: &str) -> Result<Severity, String> {
    let all = [Severity::Error, Severity::Violation, Severity::Perf, Severity::Portability];
    all.into_iter().find(|known| known.name() == text).ok_or_else(|| "error, violation, perf or portability".into())
}

/// Runs the program.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    ignore_closed_pipes();
    run(&arguments).or_else(|error| {
        say(format_args!("aclshim: {error:#}"));
        Ok(ExitCode::from(OUR_FAILURE))
    })
}

/// Nobody who reads what we say, or no room for it, is no reason to end: the program is what counts.
pub fn ignore_closed_pipes() {
    // SAFETY: nothing here relies on a handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Says something on standard error, if it can be said there, without what a terminal would act on.
pub fn say(what: std::fmt::Arguments<'_>) {
    let plain = |letter: char| if letter.is_control() && letter != '\n' { '?' } else { letter };
    let text: String = what.to_string().chars().map(plain).chain(['\n']).collect();
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let name = &arguments.command[0];
    let found = program::find(name);
    let about = found.as_deref().map(program::look).unwrap_or_default();
    let plan = Plan::new(arguments, about.sanitizer.as_deref())?;
    if !arguments.quiet {
        for complaint in &plan.complaints {
            say(format_args!("aclshim: {complaint}"));
        }
        if let (Some(obstacle), Some(path)) = (about.obstacle, &found) {
            say(format_args!("aclshim: {} {}", path.display(), obstacle.sentence()));
        }
    }
    let command = arguments.command.iter().map(|word| CString::new(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
    let since_ns = realtime_ns();
    let child = match Child::start(&command, &plan.environment).context("the program could not be started")? {
        Ok(child) => child,
        Err(why) => {
            let said = why.to_string();
            // "No such file or directory (os error 2)"
            let said = said.split(" (os error").next().unwrap_or_default();
            say(format_args!("aclshim: {}: {said}{}", name.display(), not_started_hint(name, &why)));
            let is_missing = why.raw_os_error() == Some(libc::ENOENT);
            return Ok(ExitCode::from(if is_missing { NOT_FOUND } else { NOT_STARTED }));
        }
    };
    let rings = Rings::start(&plan.place);
    let end = child.wait();
    let going_on = rings.finish();
    let still_running = rings::still_running(&plan.marks);
    let collector =
        (going_on > 0 || !still_running.is_empty()).then(|| rings::detach(&plan.place, &plan.marks)).transpose();
    let summary = Summary::read(&plan.place, since_ns, plan.told);
    if !arguments.quiet {
        let dir = arguments.out.as_deref().unwrap_or(&plan.place.dir);
        let command = std::env::args().next().unwrap_or_else(|| "aclshim".into());
        // With --require-calls it is said below.
        let why_none = (!arguments.require_calls).then(|| plan.silent.unwrap_or(WHY_NONE));
        let text = summary.text(dir, &command, why_none);
        if !text.is_empty() {
            say(format_args!("{}", text.trim_end()));
        }
        if let Some(line) = about_collector(&still_running, &collector) {
            say(format_args!("aclshim: {line}"));
        }
    }
    if let Err(why) = collector {
        say(format_args!(
            "aclshim: no collector could be left behind ({why}): records stay in memory, see `aclshim collect`"
        ));
    }
    Ok(outcome(arguments, end, &summary, plan.silent))
}

/// Why a file that is there is not found, and the like.
fn not_started_hint(name: &OsStr, why: &std::io::Error) -> &'static str {
    match why.raw_os_error() {
        Some(libc::ENOENT) if Path::new(name).exists() => " (the interpreter or loader that it names is missing)",
        Some(libc::ENOENT) if !name.as_bytes().contains(&b'/') => " (not on PATH)",
        _ => "",
    }
}

fn about_collector(still_running: &[u32], collector: &std::io::Result<Option<u32>>) -> Option<String> {
    let Ok(Some(collector)) = collector else { return None };
    let numbers = still_running.iter().take(8).map(u32::to_string).collect::<Vec<_>>().join(", ");
    let who = match still_running.len() {
        0 => "processes of the program still run".into(),
        1 => format!("process {numbers} of the program still runs"),
        _ => format!("processes {numbers} of the program still run"),
    };
    Some(format!("{who}: a collector (process {collector}) goes on writing until they have ended"))
}

fn outcome(arguments: &Arguments, end: End, summary: &Summary, silent: Option<&str>) -> ExitCode {
    if arguments.require_calls && !summary.has_calls() {
        match silent {
            Some(why) => say(format_args!("aclshim: no call was seen (--require-calls): {why}")),
            None => say(format_args!(
                "aclshim: no call was seen (--require-calls). Likely reasons: the program made no copy; it is linked \
                 statically; it is setuid; something that started it dropped LD_PRELOAD or ACLSHIM_DIR (a wrapper, sudo, a \
                 container). `aclshim doctor -- program` looks closer."
            )),
        }
    }
    match end {
        End::Killed(signal) => {
            child::end_by(signal);
            ExitCode::from(128u8.wrapping_add(signal as u8))
        }
        End::Exited(status) => {
            let findings = summary.findings_from(arguments.on);
            ExitCode::from(match arguments.error_exitcode {
                Some(code) if findings > 0 => code,
                _ if status == 0 && arguments.require_calls && !summary.has_calls() => OUR_FAILURE,
                _ => status,
            })
        }
    }
}

/// What a run needs.
struct Plan {
    place: Place,
    environment: Vec<CString>,
    /// The entries of the environment that tell processes of the run from others.
    marks: Vec<Vec<u8>>,
    complaints: Vec<String>,
    told: Told,
    /// Why no call can be seen.
    silent: Option<&'static str>,
}

impl Plan {
    fn new(arguments: &Arguments, sanitizer: Option<&str>) -> Result<Self> {
        let config = arguments.config.as_deref().map(full).transpose()?;
        if let Some(path) = &config {
            std::fs::metadata(path).with_context(|| format!("--config {}", path.display()))?;
        }
        let mut in_force = InForce::read(config.as_deref());
        for name in arguments.as_products.iter().flat_map(|names| names.split(',')).map(str::trim) {
            if !name.is_empty() && Product::of(name).is_none() {
                in_force.complaints.push(format!("--as {name}: {name:?} is no product that is known here"));
            }
        }
        let asked = arguments.out.as_deref().or_else(|| in_force.value(&DIR).map(Path::new));
        let dir = full(asked.unwrap_or(Path::new("aclshim-out")))?;
        let rings = full(in_force.value(&RING_DIR).map_or(Path::new("/dev/shm"), Path::new))?;
        if std::fs::metadata(&dir).is_ok_and(|about| !about.is_dir()) {
            bail!("{} is not a directory", dir.display());
        }
        // The last part is made by whoever has something to write there.
        if let Some(parent) = dir.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("the folder of {}", dir.display()))?;
        }
        let shim = find_shim()?;
        let preload = environment::preload(&shim, std::env::var_os("LD_PRELOAD").as_deref(), sanitizer)?;
        let mut variables: Vec<(&str, OsString)> =
            vec![("LD_PRELOAD", preload), (DIR.variable, dir.clone().into()), (DRAIN.variable, "outside".into())];
        let marks = variables.iter().map(|(name, value)| entry(name, value)).collect();
        // It is to be the same one wherever the program, or a child of it, goes.
        if in_force.value(&RING_DIR).is_some_and(|given| !Path::new(given).is_absolute()) {
            variables.push((RING_DIR.variable, rings.clone().into()));
        }
        let has_size = std::env::var_os(RING_SIZE.variable).is_some_and(|size| !size.is_empty());
        if !has_size && in_force.value(&RING_SIZE).is_none() && has_room(&rings) {
            variables.push((RING_SIZE.variable, RING.0.into()));
        }
        if arguments.enforce {
            variables.push((MODE.variable, "enforce".into()));
        }
        if !arguments.as_products.is_empty() {
            variables.push((AS.variable, arguments.as_products.join(",").into()));
        }
        // One that the environment names is to be the same one in other folders.
        if let Some(path) = &in_force.file {
            variables.push((CONFIG.variable, full(path)?.into()));
        }
        if arguments.sim {
            let before = std::env::var_os("LD_LIBRARY_PATH");
            variables.push(("LD_LIBRARY_PATH", environment::in_front(&find_sim()?, before.as_deref())));
        }
        let environment = own_environment().into_iter();
        let is_kept = |entry: &CString| !variables.iter().any(|(name, _)| is_of(entry.as_bytes(), name));
        let mut environment: Vec<CString> = environment.filter(is_kept).collect();
        for (name, value) in &variables {
            environment.push(CString::new(entry(name, value)).with_context(|| format!("{name}: a NUL byte"))?);
        }
        let told = if in_force.value(&CALLS) == Some("off".as_ref()) { Told::Log } else { Told::Trace };
        let is_off = |setting| in_force.value(setting) == Some("off".as_ref());
        let silent = match () {
            () if is_off(&MODE) && !arguments.enforce => Some("ACLSHIM_MODE is off"),
            () if is_off(&RECORD) => Some("ACLSHIM_RECORD is off"),
            () => None,
        };
        Ok(Self { place: Place { rings, dir }, environment, marks, complaints: in_force.complaints, told, silent })
    }
}

/// Whether half of what is free in the folder of the rings holds our larger ones.
fn has_room(folder: &Path) -> bool {
    let Ok(path) = CString::new(folder.as_os_str().as_bytes()) else { return false };
    // SAFETY: a C string and a value of ours; all zero is a valid one.
    let free = unsafe {
        let mut about = std::mem::zeroed::<libc::statvfs>();
        if libc::statvfs(path.as_ptr(), &mut about) == 0 { about.f_bavail * about.f_frsize } else { 0 }
    };
    free / 2 >= THREADS * RING.1
}

fn full(path: &Path) -> Result<PathBuf> {
    absolute(path).with_context(|| path.display().to_string())
}

fn entry(name: &str, value: &OsStr) -> Vec<u8> {
    [name.as_bytes(), b"=", value.as_bytes()].concat()
}

fn is_of(entry: &[u8], name: &str) -> bool {
    entry.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
}

/// The environment as it came, also what Rust would not show.
fn own_environment() -> Vec<CString> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    let mut all = Vec::new();
    // SAFETY: C strings behind each other with a NULL at the end; nobody changes them.
    unsafe {
        let mut at = environ;
        while !at.is_null() && !(*at).is_null() {
            all.push(CStr::from_ptr(*at).to_owned());
            at = at.add(1);
        }
    }
    all
}

/// The folder of the simulated device: beside what was built, or installed.
fn find_sim() -> Result<PathBuf> {
    let program = std::env::current_exe().context("where this command is")?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let candidates = ["../sim", "../lib/aclshim/sim", "../lib64/aclshim/sim"].map(|path| folder.join(path));
    let is_there = |path: &PathBuf| path.join("libascendcl.so").exists();
    match candidates.iter().find(|path| is_there(path)).and_then(|path| path.canonicalize().ok()) {
        Some(sim) => Ok(sim),
        None => bail!(
            "--sim: no simulated libascendcl.so in {} or {}; `make build` makes it",
            candidates[0].display(),
            candidates[1].display()
        ),
    }
}
