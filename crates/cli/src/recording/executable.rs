//! Finding a program as the system does, and the interpreter of a script.

use crate::files::may;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where a program is: a name with a slash is its path, any other is looked for on `PATH`.
pub fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(name.into());
    }
    let folders = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| is_executable(path))
}

/// Whether a path is a file that we may execute.
pub fn is_executable(path: &Path) -> bool {
    path.is_file() && may(path, libc::X_OK)
}

/// The program that a script names in its first line; the argument of `env`, not `env`.
pub fn interpreter(path: &Path) -> Option<PathBuf> {
    let mut begin = Vec::new();
    // Not of a pipe or a device: reading one could wait for ever.
    let file = path.is_file().then(|| File::open(path).ok())??;
    file.take(256).read_to_end(&mut begin).ok()?;
    let line = begin.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line).into_owned();
    let mut words = line.split_whitespace();
    let first = PathBuf::from(words.next()?);
    if first.file_name() != Some(OsStr::new("env")) {
        return Some(first);
    }
    words.find(|word| !word.starts_with('-') && !word.contains('=')).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_first_line_names_the_interpreter() {
        let file = std::env::temp_dir().join(format!("aclshim-doctor-{}", std::process::id()));
        let cases = [
            ("#!/bin/sh -e\nexit", Some("/bin/sh")),
            ("#! /usr/bin/env python3\n", Some("python3")),
            ("#!/usr/bin/env -S A=1 python3 -u", Some("python3")),
            ("no script", None),
            ("", None),
        ];
        for (text, expected) in cases {
            fs::write(&file, text).unwrap();
            assert_eq!(interpreter(&file), expected.map(PathBuf::from), "{text}");
        }
        fs::remove_file(&file).unwrap();
    }
}
