//! The variables that a program is started with.

use anyhow::{Result, bail};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The runtimes of sanitizers refuse to work unless they come first.
const SANITIZERS: [&str; 6] = ["libasan.", "liblsan.", "libtsan.", "libmsan.", "libhwasan.", "libclang_rt."];

/// Whether a preloaded library is the runtime of a sanitizer.
pub fn is_sanitizer(library: &[u8]) -> bool {
    let name = library.rsplit(|&byte| byte == b'/').next().unwrap_or(library);
    SANITIZERS.iter().any(|known| name.starts_with(known.as_bytes()))
}

/// The list of libraries to be preloaded: the shim before all others, but behind sanitizers. `needed` is the sanitizer
/// that the program itself brings; it would find the shim before it. What was in the list stays, in its order.
pub fn preload(shim: &Path, before: Option<&OsStr>, needed: Option<&str>) -> Result<OsString> {
    let shim = shim.as_os_str().as_bytes();
    let is_break = |byte: &u8| matches!(byte, b' ' | b':');
    if shim.iter().any(is_break) {
        bail!(
            "{}: the loader takes spaces and colons in LD_PRELOAD as the end of a path; put the library elsewhere",
            String::from_utf8_lossy(shim)
        );
    }
    let before = before.unwrap_or_default().as_bytes();
    let others: Vec<&[u8]> = before.split(is_break).filter(|path| !path.is_empty()).collect();
    let has_needed = others.iter().any(|other| is_sanitizer(other));
    let needed = needed.map(str::as_bytes).filter(|_| !has_needed);
    let first = others.iter().take_while(|other| is_sanitizer(other)).count();
    let (sanitizers, rest) = others.split_at(first);
    let is_there = others.contains(&shim);
    let own = (!is_there).then_some(shim);
    let all: Vec<&[u8]> =
        needed.into_iter().chain(sanitizers.iter().copied()).chain(own).chain(rest.iter().copied()).collect();
    Ok(OsString::from_vec(all.join(&b':')))
}

/// A folder in front of a search path.
pub fn in_front(folder: &Path, before: Option<&OsStr>) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    // An empty part would be the working directory.
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        path.push(":");
        path.push(before);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preloaded(before: &str, needed: Option<&str>) -> String {
        preload(Path::new("/x/libaclshim.so"), Some(before.as_ref()), needed).unwrap().into_string().unwrap()
    }

    #[test]
    fn the_shim_comes_first_but_behind_sanitizers_and_everything_else_stays() {
        let cases = [
            ("", "/x/libaclshim.so"),
            ("/a.so:/b.so", "/x/libaclshim.so:/a.so:/b.so"),
            ("  /a.so  /b.so", "/x/libaclshim.so:/a.so:/b.so"),
            ("/l/libasan.so.8:/a.so", "/l/libasan.so.8:/x/libaclshim.so:/a.so"),
            ("libtsan.so.2 libmspti.so", "libtsan.so.2:/x/libaclshim.so:libmspti.so"),
            ("/a.so:/x/libaclshim.so", "/a.so:/x/libaclshim.so"),
            ("/other/libaclshim.so", "/x/libaclshim.so:/other/libaclshim.so"),
        ];
        for (before, after) in cases {
            assert_eq!(preloaded(before, None), after, "{before}");
        }
        assert_eq!(preloaded("/a.so", Some("libasan.so.8")), "libasan.so.8:/x/libaclshim.so:/a.so");
        assert_eq!(preloaded("/l/libasan.so.8", Some("libasan.so.8")), "/l/libasan.so.8:/x/libaclshim.so");
        assert!(preload(Path::new("/a b/libaclshim.so"), None, None).is_err());
    }

    #[test]
    fn a_folder_in_front_of_nothing_does_not_add_the_working_directory() {
        assert_eq!(in_front(Path::new("/s"), None), "/s");
        assert_eq!(in_front(Path::new("/s"), Some("".as_ref())), "/s");
        assert_eq!(in_front(Path::new("/s"), Some("/a:/b".as_ref())), "/s:/a:/b");
    }
}
