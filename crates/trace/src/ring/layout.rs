//! The layout of a process's ring file, version 2. `docs/trace-format.md` describes it for other readers.
//!
//! The file lives in memory (tmpfs) and is mapped by its process: every store is at once in the
//! file, nothing has to be flushed, and SIGKILL loses nothing. It begins with a [`Header`]; at
//! [`Header::first`], and then every [`Header::stride`] bytes, lies a ring: a [`Control`] page and
//! the slots behind it. Rings begin at multiples of the largest page size that we run on.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
pub use crate::system::clock::{Clock, Moment};
use core::sync::atomic::AtomicU8;

/// The first eight bytes of a finished file; written last.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ACLSHIM\0");
/// The version of this layout.
pub const VERSION: u32 = 2;
/// Begin of the names of ring files; the process id and the time of creation follow.
pub const PREFIX: &str = "aclshim-";
/// End of the names of ring files; see [`PREFIX`].
pub const SUFFIX: &str = ".ring";
/// Where rings may begin: a multiple of the largest page size.
pub const UNIT: u64 = 64 * 1024;
/// Bytes of a ring before its slots.
pub const CONTROL: usize = 4096;
/// Number of rings of a file at most: as many threads of a process record at once.
pub const RINGS: u32 = 16_384;
/// Bytes of a header for the names of functions, each with its NUL.
pub const NAMES: usize = 8192;

/// What a writer does when its ring is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// The newest call is not recorded, and counted.
    Audit = 0,
    /// The oldest record is overwritten.
    Flight = 1,
    /// The writer waits for room for a bounded time, then as `Audit`.
    Lossless = 2,
}

/// Who the process is and how its rings are laid out. Texts end with a NUL.
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: u32,
    /// The size of this structure.
    pub size: u32,
    /// The process, in its own pid namespace.
    pub pid: u32,
    /// The owner.
    pub uid: u32,
    /// The inode of its pid namespace; 0 if unknown.
    pub pid_ns: u64,
    /// When the process began, in clock ticks after boot (`/proc/PID/stat`, field 22), in its time namespace: with the
    /// pid it names the process until the next boot.
    pub start_time: u64,
    /// When the file was made, in nanoseconds since 1970.
    pub born_ns: u64,
    /// Where the first ring begins.
    pub first: u64,
    /// From one ring to the next.
    pub stride: u64,
    /// Slots of a ring, a power of two.
    pub slots: u32,
    /// A [`Mode`].
    pub mode: u32,
    /// A [`Clock`].
    pub clock: u32,
    /// How many items of a batch are recorded at most.
    pub batch_items: u32,
    /// Ticks a second where the processor says so, else 0.
    pub ticks_hz: u64,
    /// When the file was made.
    pub born: Moment,
    /// A later moment, renewed by the drain.
    pub later: Moment,
    /// How many rings there are.
    pub rings: AtomicU32,
    /// How many names stand in `names`.
    pub functions: u32,
    /// Calls that were forwarded and found no ring.
    pub not_recorded: AtomicU64,
    /// How many of them the log has reported.
    pub told: AtomicU64,
    /// Writes of the drain that failed.
    pub write_failures: AtomicU64,
    /// The size at which the drain begins a new file.
    pub segment: u64,
    /// The bytes that all files of the directory may take.
    pub budget: u64,
    /// What becomes of calls: which word of the setting `ACLSHIM_CALLS`.
    pub calls: u32,
    /// Where the program runs: 1 on a host beside the device, 2 on the device's own processor; 0 while unknown.
    pub form: AtomicU32,
    /// 0 while a drain is awake or absent, 1 while a drain sleeps: the writer that sees 1 stores 0 and wakes it. It begins a
    /// cache line on which writers store seldom.
    pub doorbell: AtomicU32,
    /// 0.
    pub doorbell_reserved: u32,
    /// Bytes by which the rings may still grow; renewed by the drain.
    pub growth: AtomicU64,
    /// Device of the output directory when the file was made; 0 if the directory did not exist.
    pub dir_device: u64,
    /// Inode of the output directory when the file was made; 0 if the directory did not exist.
    pub dir_inode: u64,
    /// Bytes that the rings of the process may take together.
    pub growth_limit: u64,
    /// Not 0 if the process cannot give storage to a ring itself (before Linux 5.14): then the drain does it, ahead of need.
    pub drain_allocates: AtomicU32,
    /// 0.
    pub reserved: [u8; 20],
    /// The functions' names, one after the other, each with a NUL behind it; a record holds the position in this list.
    pub names: [u8; NAMES],
    /// The machine's name.
    pub host: [u8; 72],
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: [u8; 40],
    /// The rank among the processes of a job, where one is set.
    pub rank: [u8; 16],
    /// The product, as `aclrtGetSocName` names it; empty while unknown.
    pub product: [AtomicU8; 64],
    /// The CANN version; empty while unknown.
    pub cann: [AtomicU8; 64],
    /// The build id of the real library in hexadecimal digits.
    pub build_id: [u8; 64],
    /// The pattern for the names of output files.
    pub pattern: [u8; 128],
    /// The program's path.
    pub executable: [u8; 1024],
    /// The real library's path.
    pub library: [u8; 1024],
    /// The settings in force, `NAME=value` a line.
    pub settings: [u8; 4096],
    /// The directory that this process's output goes to (`ACLSHIM_DIR`), absolute.
    pub dir: [u8; 4096],
    /// The files that held the process's code at its first copy, as lines of `/proc/PID/maps`, as far as there is room.
    pub maps: [AtomicU8; 6144],
    /// The inode of the process's time namespace when the file was made; 1 where the kernel has none, 0 if unknown.
    pub time_ns: u64,
}

/// Value of [`Control::owner`] while a ring is handed over.
pub const CHANGING: u32 = u32::MAX;

/// The state of a ring. What the owner writes (two cache lines) and what the drain writes lie on different cache lines.
#[derive(Default)]
#[repr(C, align(64))]
pub struct Control {
    /// The thread that writes here, or wrote here last; 0 before the first, 4294967295 while it changes.
    pub owner: AtomicU32,
    /// Number of slots from index 0 on that have storage; 0 means all of them.
    pub reserved: AtomicU32,
    /// The number of the slot with which the owner began.
    pub since: AtomicU64,
    /// Calls that found the ring full.
    pub not_recorded: AtomicU64,
    /// How many of them a record in the ring reports.
    pub told: AtomicU64,
    /// When the first of the others came, in ticks.
    pub lost_since: AtomicU64,
    /// Marks, names and scopes that found the ring full.
    pub notes_lost: AtomicU64,
    /// How many of them a record in the ring reports.
    pub notes_told: AtomicU64,
    /// Effect classes of the calls that no record reports, a bit each; see note 1.
    pub lost_classes: AtomicU64,
    /// Number behind the last slot that was claimed when the writer last crossed a quarter of its ring.
    pub mark: AtomicU64,
    /// The first number of the present lap that lies in storage which no earlier lap has used; of an earlier lap, or 0, if
    /// there is none. What a lap is: [`mod@crate::ring::room`].
    pub fresh: AtomicU64,
    /// When the writer began its present lap, in ticks.
    pub lap_began: AtomicU64,
    /// The target of a jump whose note has to be written by a claim that was interrupted; 0 if there is none.
    pub pending_jump: AtomicU64,
    /// The number up to which slots were free for that note.
    pub pending_room: AtomicU64,
    /// The first number of the laps that use fewer slots than have storage.
    pub shrunk_since: AtomicU64,
    /// `drained` as it was when a call last found no room.
    pub full_at: AtomicU64,
    /// Number of slots that only tracked calls may use.
    pub reserve: AtomicU32,
    /// Keeps the drain's line apart.
    pub apart: u32,
    /// All slots with smaller numbers have been drained; written by the drain alone.
    pub drained: AtomicU64,
    /// How many slots the drain found overwritten.
    pub overwritten: AtomicU64,
    /// How far `drained` was when the drain last wrote an orderly end.
    pub ended: AtomicU64,
    /// Number of slots that the drain has given storage to, where the process cannot ([`Header::drain_allocates`]).
    pub allocated: AtomicU32,
}

impl Control {
    /// Whether a record names every loss so far.
    pub fn are_losses_recorded(&self) -> bool {
        let pairs = [(&self.not_recorded, &self.told), (&self.notes_lost, &self.notes_told)];
        pairs.iter().all(|(lost, recorded)| lost.load(Ordering::Relaxed) == recorded.load(Ordering::Relaxed))
    }
}

/// The room for the header: what lies between it and the first ring is never touched.
pub const HEADER: usize = 28 * 1024;
const _: () = assert!(size_of::<Header>() <= HEADER && HEADER.is_multiple_of(4096));
#[cfg(not(loom))]
const _: () = assert!(core::mem::offset_of!(Header, doorbell).is_multiple_of(64));
/// Where the first ring begins in the files of this version.
pub const FIRST: u64 = (HEADER as u64).next_multiple_of(UNIT);
#[cfg(not(loom))]
const _: () = assert!(size_of::<Control>() <= CONTROL && core::mem::offset_of!(Control, drained) == 128);

/// Writes the names of functions to [`Header::names`]: each with a NUL behind it. Returns how many there was room for.
pub fn write_names<'a>(names: impl IntoIterator<Item = &'a str>, to: &mut [u8; NAMES]) -> u32 {
    let (mut at, mut count) = (0, 0);
    for name in names {
        let end = at + name.len();
        let Some(place) = to.get_mut(at..=end) else { break };
        place[..name.len()].copy_from_slice(name.as_bytes());
        place[name.len()] = 0;
        (at, count) = (end + 1, count + 1);
    }
    count
}

/// Distance in bytes from one ring of `slots` slots to the next.
pub const fn stride(slots: u32) -> u64 {
    (CONTROL as u64 + slots as u64 * 64).next_multiple_of(UNIT)
}
