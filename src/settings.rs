//! The settings in force in this process: read once, at boot, from the environment, and from the file that it names.
//!
//! A program with more privileges than its caller ([`is_secure`]) takes no setting from anywhere: its caller chooses the
//! environment and the working directory.

use aclshim_facts::settings::file::Wrong;
use aclshim_facts::settings::{
    AS, BASELINE, BATCH_ITEMS, BUDGET, CALLS, CANN, CONFIG, DEEPBIND, DIR, DRAIN, END_WAIT, FILE, FORM, GOLDEN, INJECT,
    MODE, MUTE, PRESET, REAL, RECORD, RESULTS, RING_DIR, RING_SIZE, RULES, SEGMENT, SETTINGS, SOC, STACK, STDERR,
    Setting, Value, bytes_text,
};
use aclshim_facts::text::Text;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use core::fmt;

mod from_file;

use from_file::FromFile;

/// The room for a path.
pub const PATH: usize = 4096;
/// So many lines of the settings file are complained about.
const COMPLAINTS: usize = 8;

/// What is in force.
pub struct Settings {
    /// Which word of [`MODE`].
    pub mode: usize,
    /// Which word of [`RECORD`].
    pub record: usize,
    /// Which word of [`DRAIN`].
    pub drain: usize,
    /// Which word of [`CALLS`].
    pub calls: usize,
    /// Which word of [`DEEPBIND`].
    pub deepbind: usize,
    /// [`RING_SIZE`].
    pub ring_size: u64,
    /// [`END_WAIT`].
    pub end_wait: u64,
    /// [`BATCH_ITEMS`].
    pub batch_items: u64,
    /// [`SEGMENT`].
    pub segment: u64,
    /// [`BUDGET`].
    pub budget: u64,
    /// Which word of [`FORM`].
    pub form: usize,
    /// Which word of [`STACK`].
    pub stack: usize,
    /// Which word of [`STDERR`].
    pub stderr: usize,
    /// [`RULES`].
    pub rules: Text<2048>,
    /// [`SOC`].
    pub soc: Text<64>,
    /// [`CANN`].
    pub cann: Text<64>,
    /// [`AS`].
    pub as_products: Text<256>,
    /// [`MUTE`].
    pub mute: Text<1024>,
    /// [`INJECT`].
    pub inject: Text<2048>,
    /// Which word of [`PRESET`].
    pub preset: usize,
    /// [`BASELINE`], absolute; empty if not set.
    pub baseline: Text<PATH>,
    /// [`FILE`].
    pub file: Text<128>,
    /// The rank among the processes of a job.
    pub rank: Text<16>,
    /// [`DIR`], absolute.
    pub dir: Text<PATH>,
    /// Whether files may be made in `dir`.
    pub files: bool,
    /// [`RING_DIR`].
    pub ring_dir: Text<PATH>,
    /// [`REAL`]; empty if not set.
    pub real: Text<PATH>,
    /// [`RESULTS`], absolute; empty if not set.
    pub results: Text<PATH>,
    /// Which word of [`GOLDEN`].
    pub golden: usize,
    /// [`CONFIG`], absolute; empty if not set.
    pub config: Text<PATH>,
    /// Settings whose value made no sense, as many as there are, and the line of the file, or 0.
    pub nonsense: [Option<(&'static Setting, u32)>; SETTINGS.len()],
    /// What is wrong with the file.
    pub wrong: Complaints,
}

/// What is wrong with the settings file, as far as it is said.
pub struct Complaints {
    count: usize,
    first: [(u32, Wrong); COMPLAINTS],
}

impl Complaints {
    const NONE: Self = Self { count: 0, first: [(0, Wrong::Unreadable); COMPLAINTS] };

    fn add(&mut self, line: u32, why: Wrong) {
        if let Some(place) = self.first.get_mut(self.count) {
            *place = (line, why);
            self.count += 1;
        }
    }

    /// Each of them, and its line, or 0 for the whole file.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Wrong)> {
        self.first.iter().take(self.count).copied()
    }
}

/// `enforce` among the words of [`MODE`].
pub const MODE_ENFORCE: usize = 1;
/// `findings` among the words of [`STACK`].
pub const STACK_FINDINGS: usize = 1;
/// `update` among the words of [`GOLDEN`].
pub const GOLDEN_UPDATE: usize = 1;
/// `production` among the words of [`PRESET`].
pub const PRESET_PRODUCTION: usize = 1;
/// `off` among the words of [`MODE`].
pub const MODE_OFF: usize = 2;
/// `off` among the words of [`STDERR`].
pub const STDERR_OFF: usize = 1;
/// `off` among the words of [`RECORD`].
const RECORD_OFF: usize = 3;
/// `outside` among the words of [`DRAIN`]; from there on no thread of ours is started.
pub const DRAIN_OUTSIDE: usize = 2;
/// `fix` among the words of [`DEEPBIND`].
pub const DEEPBIND_FIX: usize = 0;

struct Shared(UnsafeCell<Settings>);
// SAFETY: written by the one thread that boots, before `boot` says that it is done; read after that.
unsafe impl Sync for Shared {}

// All zero: what is never set takes no memory, and nothing is copied from the file.
static IN_FORCE: Shared = Shared(UnsafeCell::new(Settings {
    mode: 0,
    record: 0,
    drain: 0,
    calls: 0,
    deepbind: 0,
    form: 0,
    stack: 0,
    stderr: 0,
    rules: Text::new(),
    soc: Text::new(),
    cann: Text::new(),
    as_products: Text::new(),
    mute: Text::new(),
    inject: Text::new(),
    preset: 0,
    baseline: Text::new(),
    ring_size: 0,
    end_wait: 0,
    batch_items: 0,
    segment: 0,
    budget: 0,
    file: Text::new(),
    rank: Text::new(),
    dir: Text::new(),
    files: false,
    ring_dir: Text::new(),
    real: Text::new(),
    results: Text::new(),
    golden: 0,
    config: Text::new(),
    nonsense: [None; SETTINGS.len()],
    wrong: Complaints::NONE,
}));

/// The settings. Before [`read`] no file is made by them: there is no directory for it.
pub fn settings() -> &'static Settings {
    // SAFETY: see `Shared`.
    unsafe { &*IN_FORCE.0.get() }
}

/// Reads the environment, and the file.
///
/// # Safety
/// Called once, by the thread that boots, before anybody else may call [`settings`].
pub unsafe fn read() {
    // SAFETY: the caller's promise.
    let settings = unsafe { &mut *IN_FORCE.0.get() };
    let mut file = None;
    if let Some(path) = environment(CONFIG.variable) {
        push_absolute(&mut settings.config, path);
        file = FromFile::read(settings.config.as_c_str(), &mut settings.wrong);
    }
    let file = file.as_ref();
    // What was given, and on which line of the file.
    let given = |setting: &Setting| {
        let variable = environment(setting.variable).map(|value| (value, 0));
        variable.or_else(|| file?.value(setting))
    };
    let variable = |setting: &Setting| given(setting).map(|(value, _)| value);
    let mut nonsense = settings.nonsense.iter_mut();
    let mut refused = |setting| {
        if let Some(place) = nonsense.next() {
            *place = Some((setting, given(setting).map_or(0, |(_, line)| line)));
        }
    };
    for (setting, value) in [
        (&MODE, &mut settings.mode),
        (&RECORD, &mut settings.record),
        (&DRAIN, &mut settings.drain),
        (&CALLS, &mut settings.calls),
        (&DEEPBIND, &mut settings.deepbind),
        (&FORM, &mut settings.form),
        (&STACK, &mut settings.stack),
        (&STDERR, &mut settings.stderr),
        (&GOLDEN, &mut settings.golden),
        (&PRESET, &mut settings.preset),
    ] {
        let Some(given) = variable(setting) else { continue };
        match setting.choices().iter().position(|word| word.as_bytes() == given) {
            Some(known) => *value = known,
            None => refused(setting),
        }
    }
    for (setting, value) in [
        (&RING_SIZE, &mut settings.ring_size),
        (&END_WAIT, &mut settings.end_wait),
        (&BATCH_ITEMS, &mut settings.batch_items),
        (&SEGMENT, &mut settings.segment),
        (&BUDGET, &mut settings.budget),
    ] {
        *value = setting.default_number();
        let Some(given) = variable(setting) else { continue };
        match setting.number(given) {
            Some(number) => *value = number,
            None => refused(setting),
        }
    }
    // The default directories would be a way for the caller to have files made in this program's name.
    if is_secure() {
        settings.mode = MODE_OFF;
        return;
    }
    let Value::Text(pattern) = FILE.value else { return };
    settings.file.push(variable(&FILE).unwrap_or(pattern.as_bytes()));
    let ranks = ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK_ID"];
    settings.rank.push(ranks.into_iter().find_map(environment).unwrap_or(b"0"));
    // A list that does not fit holds nothing: half of one would be another.
    let mut text = |setting: &'static Setting, push: &mut dyn FnMut(&[u8]) -> bool| {
        if variable(setting).is_some_and(|given| !push(given)) {
            refused(setting);
        }
    };
    text(&RULES, &mut |given| settings.rules.set(given));
    if let Some(file) = file.filter(|_| variable(&RULES).is_none()) {
        settings.rules = file.rules;
    }
    text(&SOC, &mut |given| settings.soc.set(given));
    text(&CANN, &mut |given| settings.cann.set(given));
    text(&AS, &mut |given| settings.as_products.set(given));
    text(&MUTE, &mut |given| settings.mute.set(given));
    text(&INJECT, &mut |given| settings.inject.set(given));
    settings.real.push(variable(&REAL).unwrap_or_default());
    // Absolute: the program may go elsewhere before its first copy.
    push_absolute(&mut settings.ring_dir, variable(&RING_DIR).unwrap_or(b"/dev/shm"));
    if let Some(results) = variable(&RESULTS) {
        push_absolute(&mut settings.results, results);
    }
    if let Some(baseline) = variable(&BASELINE) {
        push_absolute(&mut settings.baseline, baseline);
    }
    let asked = variable(&DIR);
    push_absolute(&mut settings.dir, asked.unwrap_or(b"aclshim-out"));
    // A daemon that lives in `/` was not asked where to write: it gets no files.
    settings.files = !settings.dir.is_full() && (asked.is_some() || settings.dir.as_bytes() != b"//aclshim-out");
}

fn push_absolute(to: &mut Text<PATH>, path: &[u8]) {
    let mut here = [0u8; PATH];
    // SAFETY: a buffer of ours with its length.
    if !path.starts_with(b"/") && !unsafe { libc::getcwd(here.as_mut_ptr().cast(), here.len()) }.is_null() {
        to.push(&here).push(b"/");
    }
    to.push(path);
}

/// Whether this program has more privileges than its caller (AT_SECURE): it is set-user-id or set-group-id, or its file has
/// capabilities. Then calls are forwarded, and nothing else is done.
pub fn is_secure() -> bool {
    // SAFETY: reads a value that the kernel has handed to the process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
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

impl Settings {
    /// Whether calls are recorded.
    pub fn records(&self) -> bool {
        self.record != RECORD_OFF
    }

    /// Slots of a ring.
    pub fn slots(&self) -> u32 {
        1 << (self.ring_size / 64).ilog2()
    }

    /// The values in force, `NAME=value` a line; paths last, because the room may end amid a long one.
    pub fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let is_path = |setting: &&&Setting| matches!(setting.value, Value::Path(_));
        for setting in SETTINGS.iter().filter(|it| !is_path(it)).chain(SETTINGS.iter().filter(is_path)) {
            let of = |other: &Setting| core::ptr::eq(*setting, other);
            let word = [
                (&MODE, self.mode),
                (&RECORD, self.record),
                (&DRAIN, self.drain),
                (&CALLS, self.calls),
                (&DEEPBIND, self.deepbind),
                (&FORM, self.form),
                (&STACK, self.stack),
                (&STDERR, self.stderr),
                (&GOLDEN, self.golden),
                (&PRESET, self.preset),
            ];
            let number = [
                (&RING_SIZE, u64::from(self.slots()) * 64),
                (&END_WAIT, self.end_wait),
                (&BATCH_ITEMS, self.batch_items),
                (&SEGMENT, self.segment),
                (&BUDGET, self.budget),
            ];
            write!(out, "{}=", setting.variable)?;
            if let Some((_, word)) = word.into_iter().find(|(other, _)| of(other)) {
                out.write_str(setting.choices()[word])?;
            } else if let Some((_, number)) = number.into_iter().find(|(other, _)| of(other)) {
                let (number, unit) = match setting.value {
                    Value::Bytes(..) => bytes_text(number),
                    _ => (number, ""),
                };
                write!(out, "{number}{unit}")?;
            } else {
                let text: &[(&Setting, &[u8])] = &[
                    (&DIR, self.dir.as_bytes()),
                    (&RING_DIR, self.ring_dir.as_bytes()),
                    (&REAL, self.real.as_bytes()),
                    (&FILE, self.file.as_bytes()),
                    (&RULES, self.rules.as_bytes()),
                    (&SOC, self.soc.as_bytes()),
                    (&CANN, self.cann.as_bytes()),
                    (&AS, self.as_products.as_bytes()),
                    (&MUTE, self.mute.as_bytes()),
                    (&INJECT, self.inject.as_bytes()),
                    (&BASELINE, self.baseline.as_bytes()),
                    (&RESULTS, self.results.as_bytes()),
                    (&CONFIG, self.config.as_bytes()),
                ];
                let found = text.iter().find(|(other, _)| of(other)).map_or(&b""[..], |(_, text)| text);
                for chunk in found.utf8_chunks() {
                    // One line, whatever stands in it.
                    chunk.valid().split('\n').enumerate().try_for_each(|(nth, line)| {
                        out.write_str(if nth == 0 { "" } else { " " })?;
                        out.write_str(line)
                    })?;
                }
            }
            out.write_str("\n")?;
        }
        Ok(())
    }
}
