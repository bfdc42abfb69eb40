//! The settings in force in this process: read once, at boot, from the environment.
//!
//! `secure_getenv` only: in a program with raised privileges nobody's environment steers us.

use aclshim_facts::settings::{DEEPBIND, DIR, MODE, REAL, RING_DIR, Setting};
use aclshim_trace::text::Text;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};

/// The room for a path.
pub const PATH: usize = 4096;

/// What is in force.
pub struct Settings {
    /// Which word of [`MODE`].
    pub mode: usize,
    /// Which word of [`DEEPBIND`].
    pub deepbind: usize,
    /// [`DIR`], absolute.
    pub dir: Text<PATH>,
    /// Whether files may be made in `dir`.
    pub files: bool,
    /// [`RING_DIR`].
    pub ring_dir: Text<PATH>,
    /// [`REAL`]; empty if not set.
    pub real: Text<PATH>,
    /// Settings whose value made no sense.
    pub nonsense: [Option<&'static Setting>; 2],
}

/// `off` among the words of [`MODE`].
pub const MODE_OFF: usize = 2;
/// `fix` among the words of [`DEEPBIND`].
pub const DEEPBIND_FIX: usize = 0;

struct Shared(UnsafeCell<Settings>);
// SAFETY: written by the one thread that boots, before `boot` says that it is done; read after that.
unsafe impl Sync for Shared {}

static SETTINGS: Shared = Shared(UnsafeCell::new(Settings {
    mode: 0,
    deepbind: 0,
    dir: Text::new(),
    files: false,
    ring_dir: Text::new(),
    real: Text::new(),
    nonsense: [None; 2],
}));

/// The settings. Before [`read`] they are the defaults without a directory: no file is made.
pub fn settings() -> &'static Settings {
    // SAFETY: see `Shared`.
    unsafe { &*SETTINGS.0.get() }
}

/// Reads the environment.
///
/// # Safety
/// Called once, by the thread that boots, before anybody else may call [`settings`].
pub unsafe fn read() {
    // SAFETY: the caller's promise.
    let settings = unsafe { &mut *SETTINGS.0.get() };
    settings.mode = choice(&MODE, &mut settings.nonsense[0]);
    settings.deepbind = choice(&DEEPBIND, &mut settings.nonsense[1]);
    settings.ring_dir.push(variable(&RING_DIR).unwrap_or(b"/dev/shm"));
    settings.real.push(variable(&REAL).unwrap_or_default());

    let asked = variable(&DIR);
    let relative = !asked.is_some_and(|dir| dir.starts_with(b"/"));
    let mut here = [0u8; PATH];
    // SAFETY: a buffer of ours with its length.
    if relative && !unsafe { libc::getcwd(here.as_mut_ptr().cast(), here.len()) }.is_null() {
        settings.dir.push(&here).push(b"/");
    }
    settings.dir.push(asked.unwrap_or(b"aclshim-out"));
    // A daemon that lives in `/` was not asked where to write: it gets no files.
    settings.files = !settings.dir.is_full() && (asked.is_some() || settings.dir.as_bytes() != b"//aclshim-out");
}

unsafe extern "C" {
    fn secure_getenv(name: *const c_char) -> *const c_char;
}

/// The value of an environment variable; an empty one counts as not set.
pub fn environment(name: &str) -> Option<&'static [u8]> {
    let mut c_name = Text::<64>::new();
    c_name.push(name.as_bytes());
    // SAFETY: a C string of ours. The value stays where it is as long as the program does not
    // change its environment, and is copied at once by everybody who asks.
    let value = unsafe {
        let value = secure_getenv(c_name.as_c_str().as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes())
    };
    value.filter(|value| !value.is_empty())
}

fn variable(setting: &Setting) -> Option<&'static [u8]> {
    environment(setting.variable)
}

fn choice(setting: &'static Setting, nonsense: &mut Option<&'static Setting>) -> usize {
    let Some(value) = variable(setting) else { return 0 };
    let known = setting.choices().iter().position(|word| word.as_bytes() == value);
    if known.is_none() {
        *nonsense = Some(setting);
    }
    known.unwrap_or(0)
}
