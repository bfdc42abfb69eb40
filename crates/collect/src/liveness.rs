//! Whether the process of a ring or a trace is dead, as far as that can be known from here.
//!
//! Two things prove a death: the pid is absent in the process's own pid namespace, or its ring file is not mapped any more.
//! Either alone is not enough. A pid of another namespace means nothing here; and the file stays mapped in a child that was
//! made without libc's `fork`, and while a reader looks at it.
//!
//! A boot id proves nothing: a container may have its own. A start time proves something only within one time namespace.

use aclshim_trace::origin::Origin;
use aclshim_trace::reader::is_alone;
use aclshim_trace::system::namespace;
use std::fs::File;

/// What is known of a process's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It runs.
    Alive,
    /// It has ended, or has become another program by `exec`.
    Gone,
    /// It may run: it is of another pid namespace or time namespace, or there is no `/proc` to ask.
    Elsewhere,
}

/// Whether a process runs, of which there may be no ring.
pub fn liveness(origin: &Origin) -> Liveness {
    View::new().liveness(origin)
}

/// Whether the process of a ring runs.
pub fn of_ring(file: &File, origin: &Origin) -> Liveness {
    View::new().of_ring(file, origin)
}

/// What this process sees of others under `/proc`.
pub struct View {
    /// Our pid namespace, if `/proc` shows it.
    pid_ns: Option<u64>,
    /// Our time namespace: `/proc` shows start times as the reading process's clocks count them. 0 if unknown.
    time_ns: u64,
}

impl View {
    /// As it is now.
    pub fn new() -> Self {
        Self { pid_ns: pid_namespace(), time_ns: namespace::time() }
    }

    /// Whether the process of a ring runs.
    pub fn of_ring(&self, file: &File, origin: &Origin) -> Liveness {
        match self.liveness(origin) {
            // The initial pid namespace has the same inode on every machine: a folder that machines share, on a file system
            // that knows nothing of their mappings, may hold rings of processes that run on another one.
            Liveness::Gone if origin.is_of_this_boot == Some(false) && is_alone(file).is_none() => Liveness::Elsewhere,
            // Also where the pid lives on: `exec` unmaps the ring of the program that was there before.
            Liveness::Alive | Liveness::Elsewhere if is_alone(file) == Some(true) => Liveness::Gone,
            liveness => liveness,
        }
    }

    fn liveness(&self, origin: &Origin) -> Liveness {
        if !(1..1 << 31).contains(&origin.pid) || self.pid_ns != Some(origin.pid_ns) {
            return Liveness::Elsewhere;
        }
        let Some(seen) = Seen::of(origin.pid) else {
            // SAFETY: the null signal only asks.
            let asked = unsafe { libc::kill(origin.pid as libc::pid_t, 0) };
            let is_absent = asked != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH);
            return if is_absent { Liveness::Gone } else { Liveness::Elsewhere };
        };
        let has_same_time = origin.time_ns != 0 && origin.time_ns == self.time_ns;
        match (origin.start_time, seen.start_time) {
            _ if seen.has_ended => Liveness::Gone,
            // 0 is not known: nothing speaks against it.
            (0, _) | (_, None) => Liveness::Alive,
            (began, Some(seen)) if began == seen => Liveness::Alive,
            // Another process has its pid.
            _ if has_same_time => Liveness::Gone,
            _ => Liveness::Elsewhere,
        }
    }
}

impl Default for View {
    fn default() -> Self {
        Self::new()
    }
}

/// Our own pid namespace, if `/proc` is of it. In a new one under an old mount the numbers there are others': our own
/// is not ours either.
fn pid_namespace() -> Option<u64> {
    let link = std::fs::read_link("/proc/self").ok()?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    // One number for each namespace from that of `/proc` down to our own. Linux before 4.1 does not have the line.
    let levels = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let is_one = levels.is_none_or(|levels| levels.split_whitespace().count() == 1);
    let is_own = is_one && link.to_str()?.parse() == Ok(std::process::id());
    is_own.then(namespace::pid).filter(|inode| *inode != 0)
}

/// What `/proc/PID/stat` says about a process.
struct Seen {
    has_ended: bool,
    start_time: Option<u64>,
}

impl Seen {
    fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let behind = stat.iter().rposition(|&byte| byte == b')').map_or(0, |at| at + 1);
        let fields: Vec<_> = stat[behind..].split(|&byte| byte == b' ').filter(|field| !field.is_empty()).collect();
        let number = |at: usize| fields.get(at).and_then(|field| std::str::from_utf8(field).ok()?.parse::<u64>().ok());
        // A zombie has ended, though its parent has not asked yet.
        // (If only its first thread has, the others are counted.)
        let is_zombie = matches!(fields.first(), Some(&b"Z" | &b"X"));
        Some(Self { has_ended: is_zombie && number(17).is_none_or(|threads| threads <= 1), start_time: number(19) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aclshim_trace::ring::layout::Header;

    fn us() -> Box<Header> {
        // SAFETY: zero is a valid header.
        let mut header = unsafe { Box::new(std::mem::zeroed::<Header>()) };
        header.pid = std::process::id();
        header.pid_ns = pid_namespace().unwrap();
        header.time_ns = namespace::time();
        header.start_time = Seen::of(header.pid).unwrap().start_time.unwrap();
        header
    }

    #[test]
    fn a_pid_counts_in_its_own_namespace_only() {
        let mut header = us();
        assert_eq!(liveness(&Origin::new(&header)), Liveness::Alive);
        header.pid_ns += 1;
        assert_eq!(liveness(&Origin::new(&header)), Liveness::Elsewhere);
        header.pid_ns = 0;
        assert_eq!(liveness(&Origin::new(&header)), Liveness::Elsewhere);
        header = us();
        header.pid = 0;
        assert_eq!(liveness(&Origin::new(&header)), Liveness::Elsewhere);
        // More than any system has.
        header.pid = (1 << 22) + 1;
        assert_eq!(liveness(&Origin::new(&header)), Liveness::Gone);
    }

    #[test]
    fn a_start_time_counts_in_its_own_time_namespace_only() {
        let mut header = us();
        header.start_time += 1;
        assert_eq!(liveness(&Origin::new(&header)), Liveness::Gone, "another process has its pid");
        header.time_ns += 1;
        assert_eq!(liveness(&Origin::new(&header)), Liveness::Elsewhere);
        header.time_ns = 0;
        assert_eq!(liveness(&Origin::new(&header)), Liveness::Elsewhere, "an older file");
        header.start_time -= 1;
        assert_eq!(liveness(&Origin::new(&header)), Liveness::Alive);
        header.start_time = 0;
        assert_eq!(liveness(&Origin::new(&header)), Liveness::Alive, "it is not known");
    }

    #[test]
    fn a_boot_id_is_no_proof() {
        let mut header = us();
        header.boot_id[..8].copy_from_slice(b"not here");
        assert_eq!(liveness(&Origin::new(&header)), Liveness::Alive);
    }
}
