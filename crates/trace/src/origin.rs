//! The process that wrote a ring or a trace, as its header describes it.

use crate::ring::layout::Header;
use crate::sync::{AtomicU64, Ordering};
use crate::system::clock::{self, Calibration, Clock, Moment};
use crate::system::namespace;
use crate::version1::present_header;
use aclshim_facts::settings::{Calls, Choice};
use aclshim_facts::world::RunMode;
use core::sync::atomic::AtomicU8;
use std::ffi::OsStr;
use std::mem::offset_of;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

/// The process that a header describes.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// The process, in its own pid namespace.
    pub pid: u32,
    /// Its owner.
    pub uid: u32,
    /// The inode of its pid namespace.
    pub pid_ns: u64,
    /// When it began, in clock ticks after boot, as its time namespace counts them.
    pub start_time: u64,
    /// The inode of its time namespace; 0 if unknown.
    pub time_ns: u64,
    /// When its file was made, in nanoseconds since 1970.
    pub born_ns: u64,
    /// The machine.
    pub host: String,
    /// The machine's boot.
    pub boot_id: String,
    /// Whether its ticks are those of this machine since its last boot; `None` if unknown. This says nothing about whether
    /// the process lives: a container may have a boot id of its own.
    pub is_of_this_boot: Option<bool>,
    /// The program.
    pub executable: PathBuf,
    /// The directory of its output.
    pub dir: PathBuf,
    /// The rank among the processes of a job.
    pub rank: String,
    /// The pattern of its file names.
    pub pattern: String,
    /// Size in bytes at which a new file begins.
    pub segment: u64,
    /// Bytes that all files of the directory may take.
    pub budget: u64,
    /// Which files every call is written to.
    pub calls: Calls,
    /// The names of the functions.
    pub functions: Vec<String>,
    /// The product, or empty.
    pub product: String,
    /// The CANN version, or empty.
    pub cann: String,
    /// Where the program runs, if that is known.
    pub form: Option<RunMode>,
    /// The real library.
    pub library: PathBuf,
    /// Its build id.
    pub build_id: String,
    /// The settings in force, `NAME=value` a line.
    pub settings: String,
    /// The files that held its code at its first copy, as lines of `/proc/PID/maps`.
    pub maps: String,
    /// Whether the frequency of its clock is known; else it is calculated from two moments.
    pub knows_its_pace: bool,
    /// Conversion of its ticks to time, if it is known.
    pub calibration: Option<Calibration>,
}

fn bytes(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(bytes(field)).into_owned()
}

/// The text of a field that the process may write during the read: its first byte is stored last.
fn late_text(field: &[AtomicU8]) -> String {
    let byte = |byte: &AtomicU8| byte.load(Ordering::Acquire);
    let length = field.iter().position(|at| byte(at) == 0).unwrap_or(field.len());
    text(&field[..length].iter().map(byte).collect::<Vec<_>>())
}

fn path(field: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes(field)).into()
}

/// A header from its bytes, of this version or the first one; `None` if there are too few.
pub(crate) fn header_of(copy: &[u8]) -> Option<Box<Header>> {
    let copy = present_header(copy);
    // The last fields may be missing.
    let copy = copy.get(..size_of::<Header>()).unwrap_or(&copy);
    if copy.len() < offset_of!(Header, maps) {
        return None;
    }
    let mut header = Box::<Header>::new_uninit();
    // SAFETY: the box is as long as the copy, or longer, and every bit pattern is a valid header.
    unsafe {
        header.as_mut_ptr().write_bytes(0, 1);
        std::ptr::copy_nonoverlapping(copy.as_ptr(), header.as_mut_ptr().cast(), copy.len());
        Some(header.assume_init())
    }
}

impl Origin {
    /// Reads a header.
    pub fn new(header: &Header) -> Self {
        let names = header.names.split(|&byte| byte == 0).take_while(|name| !name.is_empty());
        let functions = names.take(header.functions as usize).map(text).collect();
        let mut origin = Self {
            pid: header.pid,
            uid: header.uid,
            pid_ns: header.pid_ns,
            start_time: header.start_time,
            time_ns: header.time_ns,
            born_ns: header.born_ns,
            host: text(&header.host),
            boot_id: text(&header.boot_id),
            is_of_this_boot: is_of_this_boot(header),
            executable: path(&header.executable),
            dir: path(&header.dir),
            rank: text(&header.rank),
            pattern: text(&header.pattern),
            segment: header.segment,
            budget: header.budget,
            calls: Calls::from_number(header.calls),
            functions,
            product: late_text(&header.product),
            cann: late_text(&header.cann),
            form: RunMode::from_number(header.form.load(Ordering::Relaxed)),
            library: path(&header.library),
            build_id: text(&header.build_id),
            settings: text(&header.settings),
            maps: late_text(&header.maps),
            knows_its_pace: header.ticks_hz != 0,
            calibration: None,
        };
        origin.calibration = origin.calibrate(header);
        origin
    }

    /// Takes over what may have changed in the header since it was read: product, CANN version, form, modules, and the
    /// later moment. Everything else is constant while the process lives.
    pub fn renew(&mut self, header: &Header) {
        self.product = late_text(&header.product);
        self.cann = late_text(&header.cann);
        self.form = RunMode::from_number(header.form.load(Ordering::Relaxed));
        if self.maps.is_empty() {
            self.maps = late_text(&header.maps);
        }
        self.calibration = self.calibrate(header);
    }

    /// The conversion of its ticks, by what the header says now.
    fn calibrate(&self, header: &Header) -> Option<Calibration> {
        let (born, later) = (header.born.get(), header.later.get());
        let is_far = later[0] > born[0] && later[2].saturating_sub(born[2]) > 100_000_000;
        if is_far || self.knows_its_pace || self.is_of_this_boot != Some(true) {
            Calibration::new(born, later, header.ticks_hz)
        } else {
            // The counter still runs: the present is a second moment.
            Calibration::new(born, moment_of(header), 0)
        }
    }

    /// From the copy of a header in a trace file; `None` if it is too short.
    pub fn from_bytes(copy: &[u8]) -> Option<Self> {
        header_of(copy).map(|header| Self::new(&header))
    }

    /// As [`from_bytes`](Self::from_bytes), with a moment (ticks, realtime, monotonic) that may be later than the copy's
    /// own: the farther two moments are apart, the more exact is the frequency calculated from them.
    pub fn with_moment(copy: &[u8], moment: [u64; 3]) -> Option<Self> {
        let mut header = header_of(copy)?;
        if moment[0] > header.later.get()[0] {
            let [ticks, realtime, monotonic] = moment.map(AtomicU64::new);
            header.later = Moment { ticks, realtime_ns: realtime, monotonic_ns: monotonic };
        }
        Some(Self::new(&header))
    }
}

/// The present moment (ticks, realtime, monotonic) by the clocks of the process that a header describes, where its ticks
/// are ours.
///
/// CLOCK_MONOTONIC of another time namespace has an offset that is not known here. The time since the birth then comes from
/// CLOCK_REALTIME, which all namespaces share.
pub fn moment_of(header: &Header) -> [u64; 3] {
    moment_in(header, namespace::is_other_time(header.time_ns, namespace::time()))
}

/// As [`moment_of`], for a caller that knows whether the time namespace of the process is another one than its own.
pub fn moment_in(header: &Header, is_other_time: bool) -> [u64; 3] {
    let [ticks, realtime, monotonic] = clock::moment(header.clock);
    let born = header.born.get();
    let monotonic = match is_other_time {
        true => born[2].saturating_add(realtime.saturating_sub(born[1])),
        false => monotonic,
    };
    [ticks, realtime, monotonic]
}

/// Whether the ticks of a header are those of this machine since its last boot; `None` if unknown. They are if the boot ids
/// are equal, or if its clocks agree with ours: a container may have a boot id of its own.
fn is_of_this_boot(header: &Header) -> Option<bool> {
    let here = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let (here, there) = (here.trim_ascii(), bytes(&header.boot_id));
    let is_known = !here.is_empty() && !there.is_empty();
    // Ticks that are CLOCK_MONOTONIC belong to a time namespace.
    let is_shifted =
        || header.clock == Clock::Monotonic as u32 && namespace::is_other_time(header.time_ns, namespace::time());
    if is_known && here == there && !is_shifted() || agrees(header) { Some(true) } else { is_known.then_some(false) }
}

/// Whether as many ticks as nanoseconds have passed since a header was made. After another boot the counter began anew;
/// on another machine it began at another time.
fn agrees(header: &Header) -> bool {
    // The wall clock may have been adjusted since, and the frequency is measured in a short time.
    const SLACK_NS: f64 = 5e8;
    const SLACK: f64 = 2e-3;
    let born = header.born.get();
    let now = clock::moment(header.clock);
    let [Some(ticks), Some(ns)] = [0, 1].map(|of| now[of].checked_sub(born[of])) else { return false };
    let is_near = |pace: f64| (ticks as f64 * pace - ns as f64).abs() <= SLACK_NS + SLACK * ns as f64;
    born[0] != 0 && pace(header.clock).is_some_and(is_near)
}

/// Nanoseconds of a tick of this machine; measured once where the frequency is not known.
fn pace(clock: u32) -> Option<f64> {
    static MEASURED: OnceLock<Option<f64>> = OnceLock::new();
    let measure = || {
        let hz = clock::hz(Clock::Counter);
        let first = clock::moment(Clock::Counter as u32);
        if hz == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        Calibration::new(first, clock::moment(Clock::Counter as u32), hz).map(|clock| clock.ns_a_tick)
    };
    if clock == Clock::Monotonic as u32 { Some(1.0) } else { *MEASURED.get_or_init(measure) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::layout::NAMES;
    use crate::sync::Ordering;

    fn header() -> Box<Header> {
        // SAFETY: zero is a valid header.
        let mut header = unsafe { Box::new(std::mem::zeroed::<Header>()) };
        (header.pid, header.born_ns, header.functions) = (7, 8, 2);
        header.names[..8].copy_from_slice(b"one\0two\0");
        header.host[..6].copy_from_slice(b"h\xffst\0z");
        header.dir[..4].copy_from_slice(b"/d\xff\0");
        header
    }

    fn bytes_of(header: &Header) -> &[u8] {
        // SAFETY: a plain structure, read as bytes.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(header).cast(), size_of::<Header>()) }
    }

    #[test]
    fn a_header_is_read_from_a_copy_and_from_nothing_shorter() {
        let header = header();
        let bytes = bytes_of(&header);
        let origin = Origin::from_bytes(bytes).unwrap();
        assert_eq!(origin, Origin::new(&header));
        assert_eq!((origin.pid, origin.born_ns, origin.host.as_str()), (7, 8, "h\u{fffd}st"));
        assert_eq!(origin.dir.as_os_str().as_bytes(), b"/d\xff", "a path keeps its bytes");
        assert_eq!(origin.functions, ["one", "two"]);
        let longer = [bytes, &[1; 64]].concat();
        assert_eq!(Origin::from_bytes(&longer), Some(origin));
        // The last field is not in older files.
        let older = &bytes[..offset_of!(Header, maps)];
        assert_eq!(Origin::from_bytes(older), Origin::from_bytes(bytes));
        assert_eq!(Origin::from_bytes(&older[..older.len() - 1]), None);
    }

    #[test]
    fn a_boot_that_is_not_told_is_not_another_one() {
        let mut header = header();
        assert_eq!(Origin::new(&header).is_of_this_boot, None);
        header.boot_id[..8].copy_from_slice(b"not here");
        assert_eq!(Origin::new(&header).is_of_this_boot, Some(false));
        let here = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap();
        header.boot_id[..36].copy_from_slice(&here[..36]);
        assert_eq!(Origin::new(&header).is_of_this_boot, Some(true));
    }

    #[test]
    fn a_header_with_another_boot_id_whose_clocks_agree_with_ours_has_our_ticks() {
        let mut header = header();
        header.boot_id[..8].copy_from_slice(b"not here");
        for clock in [Clock::Counter, Clock::Monotonic] {
            header.clock = clock as u32;
            header.born.set(clock as u32);
            assert_eq!(Origin::new(&header).is_of_this_boot, Some(true), "{clock:?}");
            let [ticks, realtime, monotonic] = header.born.get();
            // An hour of the wall clock in which the counter did not move, as after a boot.
            header.born.store([ticks, realtime - 3_600_000_000_000, monotonic]);
            assert_eq!(Origin::new(&header).is_of_this_boot, Some(false), "{clock:?}");
            // It will have been made only in the future of this counter.
            header.born.store([u64::MAX, realtime, monotonic]);
            assert_eq!(Origin::new(&header).is_of_this_boot, Some(false), "{clock:?}");
        }
    }

    #[test]
    fn the_monotonic_clock_of_another_time_namespace_is_not_ours() {
        let mut header = header();
        header.clock = Clock::Counter as u32;
        header.born.set(header.clock);
        let [ticks, realtime, _] = header.born.get();
        header.born.store([ticks, realtime, 7]);
        header.time_ns = namespace::time() + 1;
        let now = moment_of(&header);
        assert_eq!(now[2] - 7, now[1] - realtime, "the time since the birth is that of the wall clock");
        header.time_ns = namespace::time();
        assert!(moment_of(&header)[2] - 7 > now[2], "in our own one it is the clock itself");
    }

    #[test]
    fn a_count_of_functions_beyond_the_table_is_cut() {
        let mut header = header();
        header.functions = u32::MAX;
        assert_eq!(Origin::new(&header).functions, ["one", "two"]);
        header.names.fill(b'x');
        assert_eq!(Origin::new(&header).functions, ["x".repeat(NAMES)], "a name without a NUL ends with the table");
    }

    #[test]
    fn the_pace_of_another_boot_comes_from_the_file_alone() {
        let header = header();
        assert_eq!(Origin::new(&header).calibration, None);
        let set = |moment: &crate::system::clock::Moment, values: [u64; 3]| {
            let fields = [&moment.ticks, &moment.realtime_ns, &moment.monotonic_ns];
            fields.iter().zip(values).for_each(|(field, value)| field.store(value, Ordering::Relaxed));
        };
        set(&header.born, [1000, 500, 100]);
        set(&header.later, [3000, 900, 1100]);
        let clock = Origin::new(&header).calibration.unwrap();
        assert_eq!((clock.at_ns(1000), clock.at_ns(3000)), (500, 1500));
        let with = |moment| Origin::with_moment(bytes_of(&header), moment).unwrap().calibration.unwrap();
        assert_eq!(with([2000, 0, 9999]), clock, "an earlier moment tells nothing new");
        assert_eq!(with([9000, 0, 8100]).at_ns(3000), 2500);
    }
}
