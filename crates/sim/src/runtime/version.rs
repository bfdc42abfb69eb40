//! Who the library says it is.

use crate::config::settings::settings;
use crate::edge::argument::{exports, put, required};
use crate::edge::error::{INVALID_FILE, INVALID_PARAM, check};
use std::ffi::{CStr, c_char};
use std::fs::{File, read_to_string};
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::path::PathBuf;

const TEXT: usize = 128;
const PART: usize = 64;

/// `aclCANNPackageVersion`
#[repr(C)]
pub struct PackageVersion {
    version: [u8; TEXT],
    major: [u8; PART],
    minor: [u8; PART],
    release: [u8; PART],
    patch: [u8; PART],
    reserved: [u8; TEXT],
}

/// The packages `aclsysGetCANNVersion` knows are 0 to 7.
const PACKAGES: i32 = 8;

exports! {
    /// The version of the ACL interface, which is not CANN's.
    fn aclrtGetVersion(majorVersion: *mut i32, minorVersion: *mut i32, patchVersion: *mut i32) => {
        required(majorVersion, "majorVersion")?;
        required(minorVersion, "minorVersion")?;
        required(patchVersion, "patchVersion")?;
        put(majorVersion, "majorVersion", 1)?;
        put(minorVersion, "minorVersion", 17)?;
        put(patchVersion, "patchVersion", 0)
    };
    /// The version of a CANN package: all are of one release here.
    fn aclsysGetCANNVersion(name: i32, version: *mut PackageVersion) => {
        required(version, "version")?;
        check((0..PACKAGES).contains(&name), INVALID_PARAM, || format!("name={name} is not a package"))?;
        let text = settings().cann.text();
        let mut parts = text.split('.');
        let mut part = || text_of(parts.next().unwrap_or("0"));
        put(version, "version", PackageVersion {
            version: text_of(text),
            major: part(),
            minor: part(),
            release: part(),
            patch: part(),
            reserved: [0; TEXT],
        })
    };
    /// The version of a CANN package as text, in 128 bytes.
    fn aclsysGetVersionStr(pkgName: *const c_char, versionStr: *mut c_char) => {
        required(versionStr, "versionStr")?;
        required(pkgName, "pkgName")?;
        // SAFETY: the caller's promise: a C string.
        let package = unsafe { CStr::from_ptr(pkgName) };
        check(!package.is_empty(), INVALID_PARAM, || "pkgName must not be empty".into())?;
        check(is_installed(package), INVALID_FILE, || "there is no version of the package".into())?;
        put(versionStr.cast::<[u8; TEXT]>(), "versionStr", text_of(settings().cann.text()))
    };
}

/// Whether the installation has a version of a package. Without an installation all packages are of the simulated release;
/// in one, a version that is missing is an error of the log.
fn is_installed(package: &CStr) -> bool {
    let Some(home) = std::env::var_os("ASCEND_HOME_PATH").map(PathBuf::from) else { return true };
    if !home.exists() {
        return false;
    }
    let file = home.join("share/info").join(package.to_string_lossy().as_ref()).join("version.info");
    let is_there = read_to_string(&file).is_ok_and(|text| {
        let release = text.lines().find_map(|line| line.split_once("Version="));
        release.is_some_and(|(_, release)| !release.trim().is_empty())
    });
    if !is_there {
        log_error(&format!("{}: no version of this package was found", file.display()));
    }
    is_there
}

/// Writes a line of the log to standard output, where the program's environment asks for that.
fn log_error(message: &str) {
    let names = ["ASCEND_LOG_PRINT_TO_STDOUT", "ASCEND_SLOG_PRINT_TO_STDOUT"];
    if names.into_iter().find_map(std::env::var_os).is_some_and(|value| value == "1") {
        // By the descriptor, as the vendor does it: in front of what the program still has in its buffer.
        // SAFETY: the descriptor is not closed by this.
        let mut stdout = ManuallyDrop::new(unsafe { File::from_raw_fd(1) });
        let _ = stdout.write_all(format!("[ERROR] ASCENDCL({}): {message}\n", std::process::id()).as_bytes());
    }
}

/// The text in a C array, with its NUL.
fn text_of<const SIZE: usize>(text: &str) -> [u8; SIZE] {
    let mut array = [0; SIZE];
    let length = text.len().min(SIZE - 1);
    array[..length].copy_from_slice(&text.as_bytes()[..length]);
    array
}
