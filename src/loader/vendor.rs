//! The vendor's objects in this process, and what the vendor's library reports of itself.
//!
//! A call that comes from one of these objects while another call is under way was made inside it. They are the objects
//! with our targets, and all others behind us that define a function of the table (interposers that we do not forward to
//! directly).

use crate::guest::state::is_own;
use crate::loader::objects;
use crate::settings::environment;
use aclshim_core::elf::Object;
use aclshim_facts::text::Text;
use aclshim_trace::system::contents;
use core::ffi::{CStr, c_char};
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Start and end of each object; one for which there is no room counts as the host's.
#[unsafe(link_section = ".bss.startup")]
static SPANS: [[AtomicUsize; 2]; 8] = [const { [const { AtomicUsize::new(0) }; 2] }; 8];

/// Whether the code at `caller` is the vendor's. Ours counts too: a function of the vendor's that ends in a jump to another
/// one seems to be called from there.
#[cold]
pub fn contains(caller: usize) -> bool {
    is_own(caller)
        || SPANS.iter().any(|[start, end]| {
            // 0 while another thread is about to store one.
            let start = start.load(Ordering::Acquire);
            start != 0 && (start..end.load(Ordering::Relaxed)).contains(&caller)
        })
}

/// Adds an object.
pub fn add(object: &Object) {
    let (start, end) = (object.span.start, object.span.end);
    for span in &SPANS {
        let known = span[0].load(Ordering::Acquire);
        if known == start {
            return;
        }
        // The end first: who sees the start sees the end.
        if known == 0 && span[1].compare_exchange(0, end, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            span[0].store(start, Ordering::Release);
            return;
        }
    }
}

/// Adds the object that holds `address`.
pub fn add_holder(address: usize) {
    if !contains(address) {
        objects::with_holder(address, add);
    }
}

/// The path of the first library that was pinned, and where its build id lies.
#[unsafe(link_section = ".bss.startup")]
static PATH: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
#[unsafe(link_section = ".bss.startup")]
static BUILD_ID: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Functions of the library that report product and release. (Another interposer, if it was pinned first, has none.)
const QUERY_NAMES: [&CStr; 4] =
    [c"aclrtGetSocName", c"aclrtGetRunMode", c"aclsysGetVersionStr", c"aclsysGetCANNVersion"];
static QUERY_FUNCTIONS: [AtomicUsize; QUERY_NAMES.len()] = [const { AtomicUsize::new(0) }; QUERY_NAMES.len()];

/// These functions in the first objects behind us that have them. libdl is not called: the holder of its lock may be waiting
/// for the caller. Nothing is pinned: the addresses must be used at once.
fn find_query_functions() -> [usize; QUERY_NAMES.len()] {
    let mut found = [0; QUERY_NAMES.len()];
    objects::each_behind(|object| {
        for (place, name) in found.iter_mut().zip(QUERY_NAMES).filter(|(place, _)| **place == 0) {
            *place = object.defined(name).unwrap_or(0);
        }
        if found.contains(&0) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    found
}

/// A property that the real library reports.
pub enum LibraryInfo<'a> {
    /// The product's name.
    Product(&'a CStr),
    /// Where the program runs, an `aclrtRunMode`.
    RunMode(i32),
    /// The CANN version.
    Version(&'a CStr),
}

/// `aclCANNPackageVersion`, which begins with the version as text.
const PACKAGE_VERSION: usize = 512;

/// The text that `aclsysGetVersionStr` writes.
const VERSION_TEXT: usize = 128;

/// The file under `ASCEND_HOME_PATH` that the library reads its release from, and what stands before the release.
const RELEASE_FILE: &[u8] = b"/share/info/runtime/version.info";
const RELEASE_KEY: &[u8] = b"Version=";

/// Reads the release from the file of an installation; out of line, because there may be little room on the stack.
#[inline(never)]
fn read_release(home: &[u8], report: &mut impl FnMut(LibraryInfo<'_>)) {
    let mut path = Text::<1024>::new();
    path.push(home).push(RELEASE_FILE);
    if path.is_full() {
        return;
    }
    let mut buffer = [0u8; 1024];
    let text = contents::read_into(path.as_c_str(), &mut buffer);
    let begin = text.windows(RELEASE_KEY.len()).position(|window| window == RELEASE_KEY);
    let rest = begin.and_then(|at| text.get(at + RELEASE_KEY.len()..)).unwrap_or_default();
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    let mut release = Text::<VERSION_TEXT>::new();
    if !line.is_empty() && release.set(line) {
        report(LibraryInfo::Version(release.as_c_str()));
    }
}

/// Queries the release, by the newer function or by the older one.
///
/// # Safety
/// `version` and `package` are 0, or the vendor's `aclsysGetVersionStr` and `aclsysGetCANNVersion`.
unsafe fn query_release(version: usize, package: usize, report: &mut impl FnMut(LibraryInfo<'_>)) {
    if version != 0 {
        // SAFETY: the caller's promise.
        let ask: extern "C" fn(*const c_char, *mut c_char) -> i32 = unsafe { core::mem::transmute(version) };
        let mut text = [0u8; VERSION_TEXT + 1];
        if ask(c"runtime".as_ptr(), text.as_mut_ptr().cast()) == 0
            && let Ok(text) = CStr::from_bytes_until_nul(&text)
        {
            return report(LibraryInfo::Version(text));
        }
    }
    // Where the newer function is missing, or fails.
    if package != 0 {
        // SAFETY: the caller's promise.
        unsafe { query_package(package, report) };
    }
}

/// Queries the release by the function of older releases; out of line, because there may be little room on the stack.
///
/// # Safety
/// `ask` is the vendor's `aclsysGetCANNVersion`.
#[inline(never)]
unsafe fn query_package(ask: usize, report: &mut impl FnMut(LibraryInfo<'_>)) {
    const CANN: i32 = 0;
    // SAFETY: the caller's promise.
    let ask: extern "C" fn(i32, *mut u8) -> i32 = unsafe { core::mem::transmute(ask) };
    let mut text = [0u8; PACKAGE_VERSION + 1];
    if ask(CANN, text.as_mut_ptr()) == 0
        && let Ok(text) = CStr::from_bytes_until_nul(&text)
    {
        report(LibraryInfo::Version(text));
    }
}

/// Whether no object had a query function at the last query, and none was loaded since.
#[unsafe(link_section = ".bss.startup")]
static HAS_NO_ANSWER: AtomicBool = AtomicBool::new(false);

/// Whether a query may get an answer.
pub fn may_answer() -> bool {
    !HAS_NO_ANSWER.load(Ordering::Relaxed)
}

/// Lets the library be queried again: objects were loaded, and one of them may have the functions.
pub fn query_again() {
    if !may_answer() {
        HAS_NO_ANSWER.store(false, Ordering::Relaxed);
    }
}

/// Queries product, release and form of the real library; `false` if no object has the functions. Not before it has copied
/// something: it may not be ready.
///
/// A query must not show in the program's output, and the library's log is part of that with
/// `ASCEND_LOG_PRINT_TO_STDOUT=1` (before 9.2: `ASCEND_SLOG_PRINT_TO_STDOUT`). By default the log holds errors only. By its
/// source, these functions log an error:
///
/// | function | when |
/// |---|---|
/// | `aclrtGetSocName` | if the driver cannot tell the product, which the runtime has asked it before the first copy |
/// | `aclrtGetRunMode` | if the driver's `ioctl` fails, as a copy would |
/// | `aclsysGetVersionStr` | with `ASCEND_HOME_PATH`, if the file of the release is missing, or holds none: then it is not called |
/// | `aclsysGetCANNVersion` | with `ASCEND_HOME_PATH`, if that file holds none: then it is not called |
///
/// Neither function for the release is called where `ASCEND_HOME_PATH` is set: the file has the release. Where it is not
/// set, both fail with a warning.
pub fn query(mut report: impl FnMut(LibraryInfo<'_>)) -> bool {
    let known = QUERY_FUNCTIONS.each_ref().map(|place| place.load(Ordering::Relaxed));
    let asked = if known == [0; QUERY_NAMES.len()] { find_query_functions() } else { known };
    let [product, mode, version, package] = asked;
    // SAFETY: what the vendor's library holds under these names has these signatures; the version is at most
    // 128 bytes long, and the structure of the last one 512.
    unsafe {
        match environment("ASCEND_HOME_PATH") {
            Some(home) => read_release(home, &mut report),
            None => query_release(version, package, &mut report),
        }
        if mode != 0 {
            let ask: extern "C" fn(*mut i32) -> i32 = core::mem::transmute(mode);
            let mut found = -1;
            if ask(&mut found) == 0 {
                report(LibraryInfo::RunMode(found));
            }
        }
        if product != 0 {
            let ask: extern "C" fn() -> *const c_char = core::mem::transmute(product);
            let name = ask();
            if !name.is_null() {
                report(LibraryInfo::Product(CStr::from_ptr(name)));
            }
        }
    }
    let is_answered = asked != [0; QUERY_NAMES.len()];
    HAS_NO_ANSWER.store(!is_answered, Ordering::Relaxed);
    is_answered
}

/// Stores path, build id and query functions of the library that holds `target`, which is pinned.
pub fn set_library(path: *const c_char, target: usize) {
    if !PATH.load(Ordering::Acquire).is_null() {
        return;
    }
    objects::with_holder(target, |object| {
        let id = object.build_id();
        BUILD_ID[0].store(id.as_ptr() as usize, Ordering::Relaxed);
        BUILD_ID[1].store(id.len(), Ordering::Relaxed);
        for (place, name) in QUERY_FUNCTIONS.iter().zip(QUERY_NAMES) {
            place.store(object.defined(name).unwrap_or(0), Ordering::Relaxed);
        }
    });
    PATH.store(path.cast_mut(), Ordering::Release);
}

/// The path and the build id of the real library, if one was pinned.
pub fn library() -> Option<(&'static CStr, &'static [u8])> {
    let path = PATH.load(Ordering::Acquire);
    let [at, length] = BUILD_ID.each_ref().map(|word| word.load(Ordering::Relaxed));
    // SAFETY: the loader's name of a pinned library, and a part of it.
    let id = if at == 0 { &[] } else { unsafe { core::slice::from_raw_parts(at as *const u8, length) } };
    // SAFETY: as above.
    (!path.is_null()).then(|| (unsafe { CStr::from_ptr(path) }, id))
}
