//! What the settings file says. It is read only where `ACLSHIM_CONFIG` names it.

use super::Complaints;
use aclshim_facts::settings::file::{self, Said, Wrong};
use aclshim_facts::settings::{SETTINGS, Setting};
use aclshim_facts::text::Text;
use aclshim_trace::system::descriptor::Descriptor;
use core::ffi::CStr;
use core::fmt::Write;
use core::ptr;

/// The file's text in memory of our own, and what it says of each setting: the host's heap and stack are not ours.
pub struct FromFile {
    text: *mut libc::c_void,
    /// A part of the text for each setting, and its line; 0 where nothing is said.
    values: [(u32, usize, usize); SETTINGS.len()],
    /// What is done about rules, as `ACLSHIM_RULES` has it.
    pub rules: Text<2048>,
}

impl FromFile {
    /// Reads it; what makes no sense goes into `wrong`.
    #[inline(never)] // what it has on the stack is not to lie under the rest
    pub fn read(path: &CStr, wrong: &mut Complaints) -> Option<Self> {
        let mut complain = |line: u32, why: Wrong| wrong.add(line, why);
        let (text, length) = load(path).map_err(|why| complain(0, why)).ok()?;
        let mut found = Self { text, values: [(0, 0, 0); SETTINGS.len()], rules: Text::new() };
        // SAFETY: memory of our own that is that long, and stays until we are dropped.
        let text = unsafe { core::slice::from_raw_parts(text.cast::<u8>(), length) };
        file::read(text, &mut |line, said| match said {
            Said::Value(setting, value) => {
                if let Some(number) = SETTINGS.iter().position(|known| ptr::eq(*known, setting)) {
                    found.values[number] = (line, value.as_ptr() as usize - text.as_ptr() as usize, value.len());
                }
            }
            // Half of a list would be another one: what does not fit is not in it.
            Said::Rule(rule, action) => {
                let before = found.rules;
                let _ = write!(found.rules, "{}={},", rule.id, action.name());
                if found.rules.is_full() {
                    found.rules = before;
                    complain(line, Wrong::TooMany);
                }
            }
            Said::Wrong(why) => complain(line, why),
        });
        Some(found)
    }

    /// What it says of a setting, and on which line; an empty value counts as not set.
    pub fn value(&self, setting: &Setting) -> Option<(&[u8], u32)> {
        let number = SETTINGS.iter().position(|known| ptr::eq(*known, setting))?;
        let (line, at, length) = self.values[number];
        // SAFETY: a part of the text.
        let value = unsafe { core::slice::from_raw_parts(self.text.cast::<u8>().add(at), length) };
        (line != 0 && !value.is_empty()).then_some((value, line))
    }
}

impl Drop for FromFile {
    fn drop(&mut self) {
        // SAFETY: our own mapping; references into it cannot outlive us.
        unsafe { libc::munmap(self.text, file::MOST + 1) };
    }
}

/// The file's text and its length, in a mapping of [`file::MOST`] bytes and one.
fn load(path: &CStr) -> Result<(*mut libc::c_void, usize), Wrong> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // A pipe without a writer must not stop the host, and a terminal must not become its own.
    let read_only = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = Descriptor::open(path, read_only, 0).map_err(|_| Wrong::Unreadable)?;
    let is_file = opened.about().is_ok_and(|about| about.st_mode & libc::S_IFMT == libc::S_IFREG);
    // SAFETY: a descriptor and a mapping of our own.
    unsafe {
        let text = libc::mmap(ptr::null_mut(), file::MOST + 1, protection, flags, -1, 0);
        let mut length = 0;
        let mut read = if is_file && text != libc::MAP_FAILED { 1 } else { -1 };
        while read > 0 && length <= file::MOST {
            read = libc::read(opened.number(), text.add(length), file::MOST + 1 - length);
            length += usize::try_from(read).unwrap_or(0);
        }
        drop(opened);
        let why = match () {
            () if !is_file => Wrong::NotAFile,
            () if read < 0 => Wrong::Unreadable,
            () if length > file::MOST => Wrong::TooLong,
            () => return Ok((text, length)),
        };
        if text != libc::MAP_FAILED {
            libc::munmap(text, file::MOST + 1);
        }
        Err(why)
    }
}
