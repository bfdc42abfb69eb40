//! The real user behind a user id, to whom limits apply.
//!
//! A user may have tens of thousands of subordinate ids, and run programs under each of them in a user namespace. All
//! of them are that user's. Which user that is, `/etc/subuid` says, or the system: each user namespace has an owner.

use crate::files::processes;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long an answer holds.
const FRESH: Duration = Duration::from_secs(60);
/// How often processes are scanned for users that neither the user database nor `/etc/subuid` knows.
const PROCESSES: Duration = Duration::from_secs(1);
/// Questions to the user database while answers hold: it may be slow, and ids may be many.
const QUESTIONS: usize = 1000;
/// User namespaces inside each other: the system allows 32.
const DEPTH: usize = 33;

/// The user to whom limits apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RealUser {
    User(u32),
    /// Unknown: all such ids of one block of 65536, the size that containers are given, share the limits of one user.
    Unknown(u16),
}

impl std::fmt::Display for RealUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::User(user) => write!(f, "user {user}"),
            Self::Unknown(block) => {
                let first = u32::from(*block) << 16;
                write!(f, "unknown users from {first} to {}", first | 0xffff)
            }
        }
    }
}

/// What is known of user ids.
#[derive(Default)]
pub struct RealUsers {
    known: BTreeMap<u32, RealUser>,
    /// Subordinate ids: the first, how many, and whose.
    ranges: Vec<(u32, u32, u32)>,
    /// Ids that the user database does not have.
    strangers: BTreeSet<u32>,
    /// How often the user database was asked.
    questions: usize,
    /// When the above was asked for.
    asked: Option<Instant>,
    /// The real user of each user id that has a running process.
    running: BTreeMap<u32, u32>,
    looked: Option<Instant>,
}

impl RealUsers {
    /// The real user behind a user id.
    pub fn of(&mut self, user: u32) -> RealUser {
        if self.asked.is_none_or(|asked| asked.elapsed() > FRESH) {
            *self = Self { ranges: ranges(&fs::read_to_string("/etc/subuid").unwrap_or_default()), ..Self::default() };
            self.asked = Some(Instant::now());
        }
        if let Some(owner) = self.known.get(&user) {
            return *owner;
        }
        let owner = self.find(user);
        // Of one who is unknown a process may run later.
        if matches!(owner, RealUser::User(_)) {
            self.known.insert(user, owner);
        }
        owner
    }

    /// Whether the user database has an id, as far as it may be asked.
    fn is_known(&mut self, user: u32) -> bool {
        if self.strangers.contains(&user) || self.questions >= QUESTIONS {
            return false;
        }
        self.questions += 1;
        let is_known = passwd_entry(PasswdKey::User(user), |_| ()).is_some();
        if !is_known {
            self.strangers.insert(user);
        }
        is_known
    }

    fn find(&mut self, user: u32) -> RealUser {
        let is_in = |(first, count, _): &&(u32, u32, u32)| user.checked_sub(*first).is_some_and(|at| at < *count);
        if let Some((_, _, owner)) = self.ranges.iter().find(is_in) {
            return RealUser::User(*owner);
        }
        if user == 0 || self.is_known(user) {
            return RealUser::User(user);
        }
        if self.looked.is_none_or(|looked| looked.elapsed() > PROCESSES) {
            self.running = running();
            self.looked = Some(Instant::now());
        }
        self.running.get(&user).map_or(RealUser::Unknown((user >> 16) as u16), |owner| RealUser::User(*owner))
    }
}

/// What `/etc/subuid` says. A line is `USER:FIRST:COUNT`, with the name or the number of a user.
fn ranges(text: &str) -> Vec<(u32, u32, u32)> {
    let range = |line: &str| {
        let mut fields = line.trim().split(':');
        let [user, first, count] = [fields.next()?, fields.next()?, fields.next()?];
        let by_name = || passwd_entry(PasswdKey::Name(&CString::new(user).ok()?), |entry| entry.pw_uid);
        let owner = user.parse().ok().or_else(by_name)?;
        Some((first.parse().ok()?, count.parse().ok()?, owner))
    };
    text.lines().filter_map(range).collect()
}

/// What an entry of the user database is looked up by.
pub enum PasswdKey<'a> {
    /// The number of a user.
    User(u32),
    /// The name of a user.
    Name(&'a CStr),
}

/// What `read` makes of an entry of the user database; `None` if there is no such entry.
pub fn passwd_entry<T>(key: PasswdKey<'_>, read: impl FnOnce(&libc::passwd) -> T) -> Option<T> {
    let mut text = vec![0; 64 * 1024];
    let (buffer, length) = (text.as_mut_ptr(), text.len());
    let mut found = std::ptr::null_mut();
    // SAFETY: all zero is a valid entry; it points into a buffer of that length, which outlives it.
    unsafe {
        let mut entry = std::mem::zeroed::<libc::passwd>();
        match key {
            PasswdKey::User(user) => libc::getpwuid_r(user, &mut entry, buffer, length, &mut found),
            PasswdKey::Name(name) => libc::getpwnam_r(name.as_ptr(), &mut entry, buffer, length, &mut found),
        };
        (!found.is_null()).then(|| read(&entry))
    }
}

/// The users of all processes, and who that is: themselves in our own user namespace, in another one its owner.
fn running() -> BTreeMap<u32, u32> {
    let mut running = BTreeMap::new();
    for process in processes().map(|pid| PathBuf::from(format!("/proc/{pid}"))) {
        let user = process.symlink_metadata().ok().map(|about| about.uid());
        let Some(user) = user.filter(|user| !running.contains_key(user)) else { continue };
        // Our own workers run as whatever user has a ring: they prove nothing.
        if parent(&process) == Some(std::process::id()) {
            continue;
        }
        let map = |path: &Path| fs::read_to_string(path.join("uid_map")).ok();
        let is_of_ours = map(&process).is_some_and(|of| Some(of) == map("/proc/self".as_ref()));
        let owner = if is_of_ours { Some(user) } else { namespace_owner(&process.join("ns/user")) };
        if let Some(owner) = owner {
            running.insert(user, owner);
        }
    }
    running
}

/// The parent of a process: the second field behind its name, which may hold anything.
fn parent(process: &Path) -> Option<u32> {
    let text = fs::read_to_string(process.join("stat")).ok()?;
    text.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// The owner of a user namespace. Of one inside others, that of the outermost below our own: the inner ones are owned by
/// ids that are subordinate themselves.
fn namespace_owner(path: &Path) -> Option<u32> {
    const NS_GET_PARENT: libc::c_ulong = 0xb702;
    const NS_GET_OWNER_UID: libc::c_ulong = 0xb704;
    let inode = |file: &File| file.metadata().ok().map(|about| about.ino());
    let ours = inode(&File::open("/proc/self/ns/user").ok()?);
    let mut namespace = File::open(path).ok()?;
    for _ in 0..DEPTH {
        // SAFETY: asks about an open descriptor, and gets a new one.
        let parent = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_PARENT as _) } as RawFd;
        if parent < 0 {
            break;
        }
        // SAFETY: the descriptor is new and has no other owner.
        let parent = unsafe { File::from_raw_fd(parent) };
        if inode(&parent) == ours {
            let mut owner: libc::uid_t = 0;
            // SAFETY: asks about an open descriptor; the system fills a value of ours.
            let asked = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_OWNER_UID as _, &mut owner) };
            return (asked == 0).then_some(owner);
        }
        namespace = parent;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subordinate_id_is_that_of_its_user_by_name_or_number() {
        let text = "root:100000:65536\n\n1000:165536:65536\nnobody-of-that-name:1:9\nbad\n5:x:1\n";
        let ranges = ranges(text);
        assert_eq!(ranges, [(100_000, 65_536, 0), (165_536, 65_536, 1000)]);
        let mut owners = RealUsers { ranges, asked: Some(Instant::now()), ..RealUsers::default() };
        assert_eq!(owners.of(100_000), RealUser::User(0));
        assert_eq!(owners.of(165_535), RealUser::User(0));
        assert_eq!(owners.of(165_536), RealUser::User(1000));
        assert_eq!(owners.of(231_071), RealUser::User(1000));
        assert_eq!(owners.of(231_072), RealUser::Unknown(3));
        assert_eq!(owners.of(0), RealUser::User(0));
    }

    #[test]
    fn a_user_of_a_running_process_is_known() {
        // SAFETY: asks for a number.
        let me = unsafe { libc::geteuid() };
        assert_eq!(running().get(&me), Some(&me));
        assert_eq!(parent("/proc/self".as_ref()), Some(std::os::unix::process::parent_id()));
    }
}
