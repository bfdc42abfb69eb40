//! The vendor's side of this process: the objects that a call passes through behind us.
//!
//! A call that comes from one of them while another is under way was made inside it. They are the
//! objects that hold our targets, and all others behind us that define a function of the table
//! (interposers that we do not forward to directly).

use crate::guest::file;
use crate::guest::state::is_own;
use crate::loader::objects;
use crate::settings::environment;
use aclshim_core::elf::Object;
use aclshim_facts::text::Text;
use core::ffi::{CStr, c_char};
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Start and end of each; what finds no room is taken for the host.
static SPANS: [[AtomicUsize; 2]; 8] = [const { [const { AtomicUsize::new(0) }; 2] }; 8];

/// Whether the code at `caller` is on the vendor's side. Ours is too: it is what a vendor's function
/// that ends in a jump to another one seems to be called from.
#[cold]
pub fn calls_from(caller: usize) -> bool {
    is_own(caller)
        || SPANS.iter().any(|[start, end]| {
            // 0 while another thread is about to store one.
            let start = start.load(Ordering::Acquire);
            start != 0 && (start..end.load(Ordering::Relaxed)).contains(&caller)
        })
}

/// Remembers an object.
pub fn learn(object: &Object) {
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

/// Remembers the object that holds `address`.
pub fn learn_holder(address: usize) {
    if !calls_from(address) {
        objects::with_holder(address, learn);
    }
}

/// The path of the first library that was pinned, and where its build id lies.
static PATH: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());
static BUILD_ID: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Its functions that tell who it is, where it has them. (Another interposer, if it was pinned first, has none.)
const QUESTIONS: [&CStr; 4] = [c"aclrtGetSocName", c"aclrtGetRunMode", c"aclsysGetVersionStr", c"aclsysGetCANNVersion"];
static ASKED: [AtomicUsize; QUESTIONS.len()] = [const { AtomicUsize::new(0) }; QUESTIONS.len()];

/// These functions in the first objects behind us that have them. Nothing is asked of libdl: the holder of its lock may be
/// waiting for the caller. Nothing is pinned either: to be used at once.
fn questions_behind_us() -> [usize; QUESTIONS.len()] {
    let mut found = [0; QUESTIONS.len()];
    objects::each_behind(|object| {
        for (place, name) in found.iter_mut().zip(QUESTIONS).filter(|(place, _)| **place == 0) {
            *place = object.defined(name).unwrap_or(0);
        }
        if found.contains(&0) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    found
}

/// What the real library says of itself.
pub enum Answer<'a> {
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
fn read_release(home: &[u8], told: &mut impl FnMut(Answer<'_>)) {
    let mut path = Text::<1024>::new();
    path.push(home).push(RELEASE_FILE);
    if path.is_full() {
        return;
    }
    let mut buffer = [0u8; 1024];
    let text = file::contents(path.as_c_str(), &mut buffer);
    let begin = text.windows(RELEASE_KEY.len()).position(|window| window == RELEASE_KEY);
    let rest = begin.and_then(|at| text.get(at + RELEASE_KEY.len()..)).unwrap_or_default();
    let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    let mut release = Text::<VERSION_TEXT>::new();
    if !line.is_empty() && release.set(line) {
        told(Answer::Version(release.as_c_str()));
    }
}

/// Asks for the release, by the newer question or by the older one.
///
/// # Safety
/// `version` and `package` are 0, or the vendor's `aclsysGetVersionStr` and `aclsysGetCANNVersion`.
unsafe fn ask_release(version: usize, package: usize, told: &mut impl FnMut(Answer<'_>)) {
    if version != 0 {
        // SAFETY: the caller's promise.
        let ask: extern "C" fn(*const c_char, *mut c_char) -> i32 = unsafe { core::mem::transmute(version) };
        let mut text = [0u8; VERSION_TEXT + 1];
        if ask(c"runtime".as_ptr(), text.as_mut_ptr().cast()) == 0
            && let Ok(text) = CStr::from_bytes_until_nul(&text)
        {
            return told(Answer::Version(text));
        }
    }
    // Where the newer question is not there, or fails.
    if package != 0 {
        // SAFETY: the caller's promise.
        unsafe { ask_package(package, told) };
    }
}

/// What older releases have instead; out of line, because there may be little room on the stack.
///
/// # Safety
/// `ask` is the vendor's `aclsysGetCANNVersion`.
#[inline(never)]
unsafe fn ask_package(ask: usize, told: &mut impl FnMut(Answer<'_>)) {
    const CANN: i32 = 0;
    // SAFETY: the caller's promise.
    let ask: extern "C" fn(i32, *mut u8) -> i32 = unsafe { core::mem::transmute(ask) };
    let mut text = [0u8; PACKAGE_VERSION + 1];
    if ask(CANN, text.as_mut_ptr()) == 0
        && let Ok(text) = CStr::from_bytes_until_nul(&text)
    {
        told(Answer::Version(text));
    }
}

/// Whether no object had an answer when the library was last asked who it is, and none was loaded since.
static HAS_NO_ANSWER: AtomicBool = AtomicBool::new(false);

/// Whether the real library may know who it is.
pub fn may_answer() -> bool {
    !HAS_NO_ANSWER.load(Ordering::Relaxed)
}

/// Other objects are loaded than before: one of them may have an answer.
pub fn reconsider() {
    if !may_answer() {
        HAS_NO_ANSWER.store(false, Ordering::Relaxed);
    }
}

/// Asks the real library who it is; `false` if no object has an answer. Not before it has copied something: it may not be
/// ready to answer.
///
/// A question must not show in the program's output, and the library's log is part of that with
/// `ASCEND_LOG_PRINT_TO_STDOUT=1` (before 9.2: `ASCEND_SLOG_PRINT_TO_STDOUT`). By default the log holds errors only. By its
/// source, these questions log an error:
///
/// | question | when |
/// |---|---|
/// | `aclrtGetSocName` | if the driver cannot tell the product, which the runtime has asked it before the first copy |
/// | `aclrtGetRunMode` | if the driver's `ioctl` fails, as a copy would |
/// | `aclsysGetVersionStr` | with `ASCEND_HOME_PATH`, if the file of the release is missing, or holds none: then it is not asked |
/// | `aclsysGetCANNVersion` | with `ASCEND_HOME_PATH`, if that file holds none: then it is not asked |
///
/// Neither question about the release is asked where `ASCEND_HOME_PATH` is set: the file has that answer. Where it is not
/// set, both fail with a warning.
pub fn ask(mut told: impl FnMut(Answer<'_>)) -> bool {
    let known = ASKED.each_ref().map(|place| place.load(Ordering::Relaxed));
    let asked = if known == [0; QUESTIONS.len()] { questions_behind_us() } else { known };
    let [product, mode, version, package] = asked;
    // SAFETY: what the vendor's library holds under these names has these signatures; the version is at most
    // 128 bytes long, and the structure of the last one 512.
    unsafe {
        match environment("ASCEND_HOME_PATH") {
            Some(home) => read_release(home, &mut told),
            None => ask_release(version, package, &mut told),
        }
        if mode != 0 {
            let ask: extern "C" fn(*mut i32) -> i32 = core::mem::transmute(mode);
            let mut found = -1;
            if ask(&mut found) == 0 {
                told(Answer::RunMode(found));
            }
        }
        if product != 0 {
            let ask: extern "C" fn() -> *const c_char = core::mem::transmute(product);
            let name = ask();
            if !name.is_null() {
                told(Answer::Product(CStr::from_ptr(name)));
            }
        }
    }
    let is_answered = asked != [0; QUESTIONS.len()];
    HAS_NO_ANSWER.store(!is_answered, Ordering::Relaxed);
    is_answered
}

/// Remembers who holds `target`: the library at `path`, which is pinned.
pub fn learn_library(path: *const c_char, target: usize) {
    if !PATH.load(Ordering::Acquire).is_null() {
        return;
    }
    objects::with_holder(target, |object| {
        let id = object.build_id();
        BUILD_ID[0].store(id.as_ptr() as usize, Ordering::Relaxed);
        BUILD_ID[1].store(id.len(), Ordering::Relaxed);
        for (place, name) in ASKED.iter().zip(QUESTIONS) {
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
