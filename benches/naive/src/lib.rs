//! The shim one would write first: each call is logged as JSON on the caller's thread, then it is done.

use core::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::time::Instant;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};

type Copy = unsafe extern "C" fn(*mut c_void, usize, *const c_void, usize, c_int, *mut c_void) -> c_int;

struct Naive {
    real: Copy,
    _guard: WorkerGuard,
}

fn naive() -> &'static Naive {
    static NAIVE: OnceLock<Naive> = OnceLock::new();
    NAIVE.get_or_init(|| {
        let folder = std::env::var_os("ACLSHIM_DIR").unwrap_or_else(|| "aclshim-out".into());
        let appender = tracing_appender::rolling::daily(folder, "naive.jsonl");
        // Not lossy: a record that goes missing without a word is no record.
        let (writer, guard) = NonBlockingBuilder::default().lossy(false).finish(appender);
        tracing_subscriber::fmt().json().with_writer(writer).init();
        // SAFETY: a pseudo handle and a C string.
        let real = unsafe { libc::dlsym(libc::RTLD_NEXT, c"aclrtMemcpyAsync".as_ptr()) };
        assert!(!real.is_null(), "no aclrtMemcpyAsync behind us");
        // SAFETY: what the next library holds under this name has this signature.
        Naive { real: unsafe { core::mem::transmute::<*mut c_void, Copy>(real) }, _guard: guard }
    })
}

/// Forwards the call and logs it.
///
/// # Safety
/// As the vendor's function of this name.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aclrtMemcpyAsync(
    dst: *mut c_void,
    destMax: usize,
    src: *const c_void,
    count: usize,
    kind: c_int,
    stream: *mut c_void,
) -> c_int {
    let naive = naive();
    let begin = Instant::now();
    // SAFETY: the caller's promise, passed on unchanged.
    let code = unsafe { (naive.real)(dst, destMax, src, count, kind, stream) };
    tracing::info!(
        function = "aclrtMemcpyAsync",
        ?dst,
        destMax,
        ?src,
        count,
        kind,
        ?stream,
        code,
        duration_ns = begin.elapsed().as_nanos() as u64,
    );
    code
}
