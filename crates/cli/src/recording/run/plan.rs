//! What a run needs before its program is started: where its records go, and its environment.

use super::environment;
use super::rings::RunFolders;
use super::summary::RecordSource;
use crate::config::InForce;
use crate::files::c_path;
use crate::recording::dropin::find_shim;
use aclshim_facts::product::Product;
use aclshim_facts::settings::{AS, CALLS, CONFIG, DIR, DRAIN, MODE, RECORD, RING_DIR, RING_SIZE, Setting};
use anyhow::{Context, Result, bail};
use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};

/// A thread's ring, unless it was chosen: a program that calls in a tight loop from its first moment has filled one of
/// the default size before we have found it.
const RING: (&str, u64) = ("2M", 2 << 20);
/// Number of threads that there must be room for; otherwise the default size is used.
const THREADS: u64 = 16;

/// A program to run, and how.
#[derive(Default)]
pub struct RunRequest<'a> {
    /// Where traces and logs go.
    pub out: Option<&'a Path>,
    /// Whether what the vendor would refuse is refused.
    pub enforce: bool,
    /// Other products that the run is judged for.
    pub as_products: &'a [String],
    pub config: Option<&'a Path>,
    /// Whether the simulated device goes in front.
    pub sim: bool,
    /// Whether only our own failures are reported.
    pub quiet: bool,
    pub command: &'a [OsString],
    pub variables: Vec<(&'static str, OsString)>,
    /// Settings for which something else holds than their default.
    pub unless_set: &'a [(&'static Setting, &'a str)],
}

/// What is prepared before the program starts.
pub struct Plan {
    /// Where its rings and files are.
    pub folders: RunFolders,
    pub environment: Vec<CString>,
    /// The entries of the environment that identify processes of the run.
    pub marks: Vec<Vec<u8>>,
    /// What makes no sense in the settings.
    pub complaints: Vec<String>,
    pub record_source: RecordSource,
    /// Why no call can be seen.
    pub silent: Option<&'static str>,
}

impl Plan {
    /// Plans the run of a program that brings this sanitizer along, if any.
    pub fn new(request: &RunRequest, sanitizer: Option<&str>) -> Result<Self> {
        let config = request.config.map(full).transpose()?;
        if let Some(path) = &config {
            std::fs::metadata(path).with_context(|| format!("--config {}", path.display()))?;
        }
        let mut in_force = InForce::read(config.as_deref());
        for name in request.as_products.iter().flat_map(|names| names.split(',')).map(str::trim) {
            if !name.is_empty() && Product::of(name).is_none() {
                in_force.complaints.push(format!("--as {name}: {name:?} is no product that is known here"));
            }
        }
        let asked = request.out.or_else(|| in_force.value(&DIR).map(Path::new));
        let dir = full(asked.unwrap_or(Path::new("aclshim-out")))?;
        let rings = full(in_force.value(&RING_DIR).map_or(Path::new("/dev/shm"), Path::new))?;
        if std::fs::metadata(&dir).is_ok_and(|about| !about.is_dir()) {
            bail!("{} is not a directory", dir.display());
        }
        // The last folder is created by the process that has something to write there.
        if let Some(parent) = dir.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("the folder of {}", dir.display()))?;
        }
        let shim = find_shim()?;
        let preload = environment::preload(&shim, std::env::var_os("LD_PRELOAD").as_deref(), sanitizer)?;
        let mut variables: Vec<(&str, OsString)> =
            vec![("LD_PRELOAD", preload), (DIR.variable, dir.clone().into()), (DRAIN.variable, "outside".into())];
        let marks = variables.iter().map(|(name, value)| entry(name, value)).collect();
        // An absolute path, so that it is one folder wherever the program or a child of it changes to.
        if in_force.value(&RING_DIR).is_some_and(|given| !Path::new(given).is_absolute()) {
            variables.push((RING_DIR.variable, rings.clone().into()));
        }
        let has_size = std::env::var_os(RING_SIZE.variable).is_some_and(|size| !size.is_empty());
        if !has_size && in_force.value(&RING_SIZE).is_none() && has_room(&rings) {
            variables.push((RING_SIZE.variable, RING.0.into()));
        }
        if request.enforce {
            variables.push((MODE.variable, "enforce".into()));
        }
        if !request.as_products.is_empty() {
            variables.push((AS.variable, request.as_products.join(",").into()));
        }
        // An absolute path, so that it is one file in all folders.
        if let Some(path) = &in_force.file {
            variables.push((CONFIG.variable, full(path)?.into()));
        }
        if request.sim {
            let before = std::env::var_os("LD_LIBRARY_PATH");
            variables.push(("LD_LIBRARY_PATH", environment::in_front(&find_sim()?, before.as_deref())));
        }
        variables.extend(request.variables.iter().cloned());
        let is_unset = |(setting, _): &&(&'static Setting, &str)| in_force.value(setting).is_none();
        variables.extend(
            request.unless_set.iter().filter(is_unset).map(|(setting, value)| (setting.variable, (*value).into())),
        );
        let environment = own_environment().into_iter();
        let is_kept = |entry: &CString| !variables.iter().any(|(name, _)| is_of(entry.as_bytes(), name));
        let mut environment: Vec<CString> = environment.filter(is_kept).collect();
        for (name, value) in &variables {
            environment.push(CString::new(entry(name, value)).with_context(|| format!("{name}: a NUL byte"))?);
        }
        let is_ours = |setting: &Setting| request.variables.iter().any(|(name, _)| *name == setting.variable);
        let is_off = |setting: &Setting| !is_ours(setting) && in_force.value(setting) == Some("off".as_ref());
        let record_source = if is_off(&CALLS) { RecordSource::Log } else { RecordSource::Trace };
        let silent = match () {
            () if is_off(&MODE) && !request.enforce => Some("ACLSHIM_MODE is off"),
            () if is_off(&RECORD) => Some("ACLSHIM_RECORD is off"),
            () => None,
        };
        Ok(Self {
            folders: RunFolders { rings, dir },
            environment,
            marks,
            complaints: in_force.complaints,
            record_source,
            silent,
        })
    }
}

/// Whether half of what is free in the folder of the rings holds our larger ones.
fn has_room(folder: &Path) -> bool {
    let Some(path) = c_path(folder) else { return false };
    // SAFETY: a C string and a value of ours; all zero is a valid one.
    let free = unsafe {
        let mut about = std::mem::zeroed::<libc::statvfs>();
        if libc::statvfs(path.as_ptr(), &mut about) == 0 { about.f_bavail * about.f_frsize } else { 0 }
    };
    free / 2 >= THREADS * RING.1
}

/// A path from the root on.
pub fn full(path: &Path) -> Result<PathBuf> {
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
    // SAFETY: C strings behind each other with a NULL at the end; they are not changed meanwhile.
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
