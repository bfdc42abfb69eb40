//! Asking the vendor's library who it is: always in a process of its own, which may crash or hang.

use crate::files::c_path;
use aclshim_facts::FUNCTIONS;
use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for the question: the vendor's library loads dozens of others.
const LONGEST: Duration = Duration::from_secs(30);

/// How the line with the answer begins; the library may print lines of its own.
const MARK: &str = "aclshim-doctor-answer ";

/// What a library says of itself.
#[derive(Default, Serialize, Deserialize)]
pub struct LibraryAnswer {
    pub error: Option<String>,
    pub cann: Option<String>,
    pub product: Option<String>,
    /// Whether the program runs on the device's own processor.
    pub is_root_complex: Option<bool>,
    pub is_simulated: bool,
    pub has: Vec<String>,
    pub lacks: Vec<String>,
}

/// Asks a library in a process of its own.
pub fn ask(library: &Path) -> Result<LibraryAnswer> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["doctor", "--ask"])
        .arg(library)
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("a process to load it in")?;
    let begin = Instant::now();
    while child.try_wait()?.is_none() {
        if begin.elapsed() > LONGEST {
            child.kill()?;
            child.wait()?;
            bail!("it did not answer within {} seconds", LONGEST.as_secs());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.lines().find_map(|line| line.split_once(MARK)).map(|(_, answer)| answer);
    match (answer, output.status.signal()) {
        (Some(answer), _) => Ok(serde_json::from_str(answer)?),
        (None, Some(signal)) => Err(anyhow!("the process that loaded it was ended by signal {signal}")),
        (None, None) => Err(anyhow!("the process that loaded it ended without an answer ({})", output.status)),
    }
}

/// Loads a library in this process, asks it, and prints the answer.
pub fn answer(library: &Path) {
    let answer = load(library);
    println!("\n{MARK}{}", serde_json::to_string(&answer).unwrap_or_default());
}

fn load(library: &Path) -> LibraryAnswer {
    let path = c_path(library).unwrap_or_default();
    // SAFETY: a C string; whatever its constructors do they do to this process, which is made for it.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: the loader's own message, which is there after a failure.
        let error = unsafe { CStr::from_ptr(libc::dlerror()) };
        return LibraryAnswer { error: Some(error.to_string_lossy().into_owned()), ..LibraryAnswer::default() };
    }
    let has = |name: &str| !symbol(handle, name).is_null();
    let (there, lacking) = FUNCTIONS.iter().map(|row| row.name.to_owned()).partition(|name| has(name));
    LibraryAnswer {
        error: None,
        cann: version(handle),
        product: product(handle),
        is_root_complex: run_mode(handle).map(|mode| mode == 0),
        is_simulated: has("ascendclSimCalls"),
        has: there,
        lacks: lacking,
    }
}

fn symbol(handle: *mut c_void, name: &str) -> *mut c_void {
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: a handle of ours and a C string.
    unsafe { libc::dlsym(handle, name.as_ptr()) }
}

fn text_of(bytes: &[u8]) -> Option<String> {
    let text = CStr::from_bytes_until_nul(bytes).ok()?.to_string_lossy().into_owned();
    (!text.is_empty()).then_some(text)
}

fn version(handle: *mut c_void) -> Option<String> {
    let (text, package) = (symbol(handle, "aclsysGetVersionStr"), symbol(handle, "aclsysGetCANNVersion"));
    // It writes 128 bytes, or a structure of 512 that begins with the version as text.
    let mut bytes = [0u8; 513];
    let code = if !text.is_null() {
        // SAFETY: the vendor's function of that name, with this signature.
        let ask: extern "C" fn(*const c_char, *mut u8) -> i32 = unsafe { std::mem::transmute(text) };
        ask(c"runtime".as_ptr(), bytes.as_mut_ptr())
    } else if !package.is_null() {
        // SAFETY: as above.
        let ask: extern "C" fn(i32, *mut u8) -> i32 = unsafe { std::mem::transmute(package) };
        ask(0, bytes.as_mut_ptr())
    } else {
        return None;
    };
    (code == 0).then(|| text_of(&bytes))?
}

fn product(handle: *mut c_void) -> Option<String> {
    let function = symbol(handle, "aclrtGetSocName");
    if function.is_null() {
        return None;
    }
    // SAFETY: the vendor's function of that name, with this signature.
    let ask: extern "C" fn() -> *const c_char = unsafe { std::mem::transmute(function) };
    let name = ask();
    // SAFETY: a C string of the library's, if it is there.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

fn run_mode(handle: *mut c_void) -> Option<i32> {
    let function = symbol(handle, "aclrtGetRunMode");
    if function.is_null() {
        return None;
    }
    // SAFETY: the vendor's function of that name, with this signature.
    let ask: extern "C" fn(*mut i32) -> i32 = unsafe { std::mem::transmute(function) };
    let mut mode = -1;
    (ask(&mut mode) == 0).then_some(mode)
}
