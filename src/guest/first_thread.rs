//! The end of the program's first thread, noticed without asking for it again and again.
//!
//! A process goes on when its first thread ends by `pthread_exit`; it ends with its last thread, and that must not be one
//! of ours. At the end of a thread the kernel clears the word in which libc has the thread's id, and wakes one thread that
//! waits for that. Ours passes the wake on: a thread of the program may wait for it too (`pthread_join`).

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The word with the id of the first thread; NULL where it is not known.
static ID_WORD: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

const PR_GET_TID_ADDRESS: libc::c_int = 40;

/// Remembers the word, if the calling thread is the first one and the system says where it is. Changes errno.
pub fn remember() {
    let mut word: *mut AtomicU32 = ptr::null_mut();
    // SAFETY: asks about the calling thread, into a value of ours.
    unsafe {
        let pid = libc::getpid();
        if libc::syscall(libc::SYS_gettid) as libc::pid_t == pid
            && libc::prctl(PR_GET_TID_ADDRESS, &raw mut word) == 0
            && !word.is_null()
            && (*word).load(Ordering::Relaxed) == pid as u32
        {
            ID_WORD.store(word, Ordering::Release);
        }
    }
}

/// The word: 0 once the first thread has ended.
pub fn id_word() -> Option<&'static AtomicU32> {
    // SAFETY: NULL, or a word of the first thread, whose memory libc does not free.
    unsafe { ID_WORD.load(Ordering::Acquire).as_ref() }
}

/// Waits until the first thread has ended, or for a minute: another thread of ours may have [woken](wake) us just before.
/// Changes errno.
pub fn wait(word: &AtomicU32) {
    let id = word.load(Ordering::Acquire);
    let minute = libc::timespec { tv_sec: 60, tv_nsec: 0 };
    if id != 0 {
        // SAFETY: a word that stays.
        let waited =
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, id, &raw const minute, 0, 0) };
        // SAFETY: errno is the calling thread's own.
        let errno = unsafe { *libc::__errno_location() };
        if waited < 0 && ![libc::EAGAIN, libc::ETIMEDOUT, libc::EINTR].contains(&errno) {
            super::edge::pause(999_999_999);
        }
    }
    if word.load(Ordering::Acquire) == 0 {
        wake(word);
    }
}

/// Wakes every thread that waits for the end of the first thread. Changes errno.
pub fn wake(word: &AtomicU32) {
    // SAFETY: a word that stays.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX, 0, 0, 0) };
}
