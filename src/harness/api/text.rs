//! Texts that C passes. One that is invalid is reported on standard error.

use crate::guest::log::print_line;
use crate::harness::aclshim_error::{self, *};
use aclshim_facts::rule::Rule;
use aclshim_facts::rules::RULES;
use aclshim_facts::selector::Selector;
use core::ffi::{CStr, c_char};
use std::borrow::Cow;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Bytes of a text that are used.
pub const MOST: usize = 256;
/// Bytes of a name at most: as many as a selector can contain.
const NAME: usize = 127;

/// A text of the caller's, read to its end once.
#[derive(Clone, Copy)]
pub struct CallerText<'a>(Option<&'a [u8]>);

impl<'a> CallerText<'a> {
    /// A text that C passes.
    ///
    /// # Safety
    /// NULL or a C string, which stays as it is for as long as this lives.
    pub unsafe fn new(text: *const c_char) -> Self {
        // SAFETY: the caller's promise.
        Self((!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes()))
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        self.0.is_none()
    }

    /// Its bytes; none for NULL.
    pub fn bytes(&self) -> &'a [u8] {
        self.0.unwrap_or_default()
    }

    /// At most that many bytes of it.
    pub fn cut(&self, most: usize) -> &'a [u8] {
        self.bytes().get(..most).unwrap_or(self.bytes())
    }

    /// Whether it is NULL or empty.
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// The first bytes of it as UTF-8. Only under the lock.
    pub fn lossy(&self) -> Cow<'a, str> {
        let bytes = self.bytes();
        let mut text = String::from_utf8_lossy(self.cut(MOST));
        // A letter that was cut in two is none.
        if bytes.len() > MOST && text.ends_with('\u{fffd}') {
            text.to_mut().pop();
        }
        text
    }

    /// Whether it can be the name of a stream or a buffer, that is a selector can contain it.
    pub fn is_name(&self) -> bool {
        let bytes = self.bytes();
        let is_letter = |byte: &u8| !byte.is_ascii_whitespace() && !byte.is_ascii_control() && !b";,*".contains(byte);
        (1..=NAME).contains(&bytes.len())
            && bytes.iter().all(is_letter)
            && ![&b"default"[..], b"none"].contains(&bytes)
            && !bytes.starts_with(b"0x")
    }

    /// The parts between semicolons; nothing behind the last one is none.
    pub fn each(&self) -> impl Iterator<Item = CallerText<'a>> {
        let bytes = self.bytes().trim_ascii_end();
        let bytes = bytes.strip_suffix(b";").unwrap_or(bytes);
        let parts = bytes.split(|byte| *byte == b';').map(|part| CallerText(Some(part.trim_ascii())));
        parts.filter(move |_| !bytes.trim_ascii().is_empty())
    }

    /// The selector that it describes; an invalid one is reported on standard error.
    pub fn selector(&self) -> Result<Selector, aclshim_error> {
        Selector::parse(self.bytes()).map_err(|nonsense| {
            print_line(format_args!("a selector makes no sense: {}", nonsense.in_text(self.bytes())));
            ACLSHIM_NONSENSE
        })
    }

    /// The rule that it names, or `None` for NULL; an unknown name is reported on standard error.
    pub fn rule(&self) -> Result<Option<&'static Rule>, aclshim_error> {
        if self.is_null() {
            return Ok(None);
        }
        let found = RULES.iter().find(|rule| rule.id.as_bytes() == self.bytes());
        found.map(|rule| Some(*rule)).ok_or_else(|| {
            let shown = self.bytes().get(..64).unwrap_or(self.bytes());
            let shown = shown.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            print_line(format_args!("there is no rule {shown:?} (docs/rules.md lists them)"));
            ACLSHIM_NONSENSE
        })
    }

    /// As a path, from the working directory as it is now. Only under the lock.
    pub fn absolute(&self) -> CString {
        let given = Path::new(OsStr::from_bytes(self.bytes()));
        let path = std::path::absolute(given).unwrap_or_else(|_| given.to_owned());
        CString::new(path.into_os_string().into_vec()).unwrap_or_default()
    }
}
