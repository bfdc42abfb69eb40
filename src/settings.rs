//! The settings in force in this process: read once, at boot, from the environment, and from the file that it names.
//!
//! A program with more privileges than its caller ([`is_secure`]) takes no setting from anywhere: its caller chooses the
//! environment and the working directory.

use aclshim_facts::settings::file::{FileError, FileValues, MOST};
use aclshim_facts::settings::value::{Given, SettingValue};
use aclshim_facts::settings::{CONFIG, DIR, Mode, PATH, SETTINGS, Setting, Settings, Source};
use aclshim_facts::text::Text;
use aclshim_trace::system::contents::{Contents, ReadError};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};

/// Complaints about lines of the settings file that are kept, at most.
const COMPLAINTS: usize = 8;

/// What is in force, and what was refused.
#[repr(C)] // what is always written comes first, in one page with the small fields of the settings
struct InForce {
    may_write_files: bool,
    rank: Text<16>,
    settings: Settings,
    complaints: Complaints,
}

/// What makes no sense in the environment and in the settings file.
pub struct Complaints {
    /// Settings whose value is refused, and the line of the file, or 0.
    values: [Option<(&'static Setting, u32)>; SETTINGS.len()],
    /// The first lines of the file that make no sense, and why; line 0 is the whole file. (Not optional: the static that
    /// holds it has to be all zero, so that it takes no memory.)
    lines: [(u32, FileError); COMPLAINTS],
    line_count: usize,
}

impl Complaints {
    /// The settings whose value is refused, and the line of the file, or 0.
    pub fn values(&self) -> impl Iterator<Item = (&'static Setting, u32)> {
        self.values.iter().flatten().copied()
    }

    /// The lines of the file that make no sense, and why; line 0 is the whole file.
    pub fn lines(&self) -> impl Iterator<Item = (u32, FileError)> {
        self.lines.iter().take(self.line_count).copied()
    }

    fn add_value(&mut self, setting: &'static Setting, line: u32) {
        if let Some(free) = self.values.iter_mut().find(|place| place.is_none()) {
            *free = Some((setting, line));
        }
    }

    fn add_line(&mut self, line: u32, why: FileError) {
        if let Some(free) = self.lines.get_mut(self.line_count) {
            *free = (line, why);
            self.line_count += 1;
        }
    }
}

struct Shared(UnsafeCell<InForce>);
// SAFETY: written by the one thread that boots, before `boot` says that it is done; read after that.
unsafe impl Sync for Shared {}

#[unsafe(link_section = ".bss.startup")]
static IN_FORCE: Shared = Shared(UnsafeCell::new(InForce {
    may_write_files: false,
    rank: Text::new(),
    settings: Settings::UNREAD,
    complaints: Complaints {
        values: [None; SETTINGS.len()],
        lines: [(0, FileError::Unreadable); COMPLAINTS],
        line_count: 0,
    },
}));

fn in_force() -> &'static InForce {
    // SAFETY: see `Shared`.
    unsafe { &*IN_FORCE.0.get() }
}

/// The settings. Before [`read`] no file is made by them: there is no directory for it.
pub fn settings() -> &'static Settings {
    &in_force().settings
}

/// Whether files may be made in the directory of the settings.
pub fn may_write_files() -> bool {
    in_force().may_write_files
}

/// The rank among the processes of a job.
pub fn rank() -> &'static [u8] {
    in_force().rank.as_bytes()
}

/// What was refused.
pub fn complaints() -> &'static Complaints {
    &in_force().complaints
}

/// Reads the environment, and the file.
///
/// # Safety
/// Called once, by the thread that boots, before another thread may call [`settings`].
pub unsafe fn read() {
    // SAFETY: the caller's promise.
    let in_force = unsafe { &mut *IN_FORCE.0.get() };
    match environment(CONFIG.variable) {
        Some(path) => take_over_with_file(in_force, path),
        None => take_over(in_force, None),
    }
}

/// Takes over what the environment and the settings file at `path` say.
#[inline(never)] // what it reads is not to lie on the stack of a program without a settings file
fn take_over_with_file(in_force: &mut InForce, path: &[u8]) {
    let InForce { settings, complaints, .. } = in_force;
    settings.config.read(&CONFIG, Some(path), working_directory);
    let mut wrong = |line, why| complaints.add_line(line, why);
    let text = read_file(settings.config.as_c_str()).map_err(|why| wrong(0, why)).ok();
    let file = text.as_ref().map(|text| FileValues::read(text.as_bytes(), &mut wrong));
    take_over(in_force, file.as_ref());
}

/// Where the values come from, and the complaints about them.
struct Sources<'a> {
    file: Option<&'a FileValues<'a>>,
    complaints: &'a mut Complaints,
}

impl Sources<'_> {
    #[unsafe(link_section = ".text.startup")]
    fn given(&self, setting: &'static Setting) -> Option<(&[u8], Source)> {
        setting.given(environment(setting.variable), self.file)
    }
}

impl Given for Sources<'_> {
    #[unsafe(link_section = ".text.startup")]
    fn value(&self, setting: &'static Setting) -> Option<&[u8]> {
        self.given(setting).map(|(value, _)| value)
    }

    fn refuse(&mut self, setting: &'static Setting) {
        let line = if let Some((_, Source::File(line))) = self.given(setting) { line } else { 0 };
        self.complaints.add_value(setting, line);
    }
}

/// Takes over what the environment and the settings file say.
#[unsafe(link_section = ".text.startup")]
fn take_over(in_force: &mut InForce, file: Option<&FileValues>) {
    let InForce { settings, may_write_files, rank, complaints } = in_force;
    let mut sources = Sources { file, complaints };
    settings.read(working_directory, &mut sources);
    settings.ring_size = 1 << settings.ring_size.ilog2();
    // The default directories would be a way for the caller to have files made in this program's name.
    if is_secure() {
        settings.mode = Mode::Off;
        settings.dir.clear();
        settings.ring_dir.clear();
        return;
    }
    let ranks = ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK_ID"];
    rank.push(ranks.into_iter().find_map(environment).unwrap_or(b"0"));
    // A daemon that lives in `/` was not asked where to write: it gets no files.
    let is_asked = sources.given(&DIR).is_some() || settings.dir.as_bytes() != b"//aclshim-out";
    *may_write_files = !settings.dir.is_full() && is_asked;
}

/// The text of the settings file, in a mapping: the heap and the stack of the host are not ours.
fn read_file(path: &CStr) -> Result<Contents, FileError> {
    let text = Contents::read(path, Some(MOST + 1)).map_err(|error| match error {
        ReadError::NotPlain => FileError::NotAFile,
        _ => FileError::Unreadable,
    })?;
    if text.as_bytes().len() > MOST { Err(FileError::TooLong) } else { Ok(text) }
}

/// The working directory; empty if there is none.
fn working_directory(buffer: &mut [u8; PATH]) -> &[u8] {
    // SAFETY: a buffer of ours with its length.
    match unsafe { libc::getcwd(buffer.as_mut_ptr().cast(), buffer.len()).is_null() } {
        true => &[],
        false => CStr::from_bytes_until_nul(buffer).map_or(&[], CStr::to_bytes),
    }
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
#[unsafe(link_section = ".text.startup")]
pub fn environment(name: &str) -> Option<&'static [u8]> {
    let mut c_name = Text::<64>::new();
    c_name.push(name.as_bytes());
    // SAFETY: a C string of ours. The value stays where it is as long as the program does not
    // change its environment, and every caller copies it at once.
    let value = unsafe {
        let value = secure_getenv(c_name.as_c_str().as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_bytes())
    };
    value.filter(|value| !value.is_empty())
}
