//! Whether a process still runs, as far as that can be told from here.

use aclshim_trace::origin::Origin;
use aclshim_trace::reader::RingFile;
use std::os::unix::fs::MetadataExt;

/// What is known of a process's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Alive,
    /// It has ended.
    Gone,
    /// It is of another pid namespace, or does not say of which, or there is no `/proc` to ask: nobody here can tell.
    Elsewhere,
}

/// Whether a process runs.
pub fn life(origin: &Origin) -> Life {
    let is_here = || (1..1 << 31).contains(&origin.pid) && pid_namespace() == Some(origin.pid_ns);
    match origin.is_of_this_boot {
        Some(false) => Life::Gone,
        Some(true) if is_here() && is_gone(origin) => Life::Gone,
        Some(true) if is_here() => Life::Alive,
        _ => Life::Elsewhere,
    }
}

/// Whether the process of a file that is opened to be drained is known to be gone, wherever it ran.
///
/// In another namespace its number means nothing here, or somebody else: there it is gone when nobody has the file mapped
/// any more ([`RingFile::is_alone`]). Where the file system cannot say that either, nothing is known before the next boot.
pub fn has_ended(file: &RingFile, origin: &Origin) -> bool {
    match life(origin) {
        Life::Alive => false,
        Life::Gone => true,
        Life::Elsewhere => file.is_alone() == Some(true),
    }
}

/// Our own pid namespace, if `/proc` is of it. In a new one under an old mount the numbers there are others': our own
/// is not ours either.
fn pid_namespace() -> Option<u64> {
    let own = std::fs::read_link("/proc/self").ok()?;
    let is_of_it = own.to_str()?.parse() == Ok(std::process::id());
    is_of_it.then(|| std::fs::metadata("/proc/self/ns/pid").ok().map(|about| about.ino()))?
}

/// Whether a process of our own pid namespace is known to be gone: nobody has its number, or
/// somebody who began later.
fn is_gone(origin: &Origin) -> bool {
    let Ok(stat) = std::fs::read(format!("/proc/{}/stat", origin.pid)) else {
        // SAFETY: the null signal only asks.
        let asked = unsafe { libc::kill(origin.pid as libc::pid_t, 0) };
        return asked != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
    };
    let behind = stat.iter().rposition(|&byte| byte == b')').map_or(0, |at| at + 1);
    let fields: Vec<_> = stat[behind..].split(|&byte| byte == b' ').filter(|field| !field.is_empty()).collect();
    let start_time = fields.get(19).and_then(|field| std::str::from_utf8(field).ok()?.parse::<u64>().ok());
    // A zombie has ended, though its parent has not asked yet.
    // (If only its first thread has, the others are counted.)
    let threads = fields.get(17).and_then(|field| std::str::from_utf8(field).ok()?.parse::<u64>().ok());
    let has_ended = matches!(fields.first(), Some(&b"Z" | &b"X")) && threads.is_none_or(|threads| threads <= 1);
    // 0 is not known.
    has_ended || start_time.is_some_and(|time| origin.start_time != 0 && time != origin.start_time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aclshim_trace::layout::Header;

    #[test]
    fn only_a_process_of_our_own_namespace_and_boot_is_asked_for_and_one_of_an_unknown_boot_is_not_dead() {
        let here = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap();
        // SAFETY: zero is a valid header.
        let mut header = unsafe { Box::new(std::mem::zeroed::<Header>()) };
        header.pid = std::process::id();
        header.pid_ns = pid_namespace().unwrap();
        assert_eq!(life(&Origin::new(&header)), Life::Elsewhere, "it does not say which boot");
        header.boot_id[..36].copy_from_slice(&here[..36]);
        assert_eq!(life(&Origin::new(&header)), Life::Alive);
        header.start_time = 1;
        assert_eq!(life(&Origin::new(&header)), Life::Gone, "another has its number");
        header.pid_ns += 1;
        assert_eq!(life(&Origin::new(&header)), Life::Elsewhere);
        header.pid_ns -= 1;
        header.pid = 0;
        assert_eq!(life(&Origin::new(&header)), Life::Elsewhere);
        header.boot_id[0] ^= 1;
        assert_eq!(life(&Origin::new(&header)), Life::Gone);
    }
}
