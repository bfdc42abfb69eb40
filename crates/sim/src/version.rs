//! Who the library says it is.

use crate::argument::{exports, put, required};
use crate::error::{INVALID_PARAM, check};
use crate::settings::settings;
use std::ffi::{CStr, c_char};

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
        put(versionStr.cast::<[u8; TEXT]>(), "versionStr", text_of(settings().cann.text()))
    };
}

/// The text in a C array, with its NUL.
fn text_of<const SIZE: usize>(text: &str) -> [u8; SIZE] {
    let mut array = [0; SIZE];
    let length = text.len().min(SIZE - 1);
    array[..length].copy_from_slice(&text.as_bytes()[..length]);
    array
}
