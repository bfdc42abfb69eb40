//! Ticks, and their conversion to nanoseconds.

use crate::sync::{AtomicU64, Ordering, fence};

/// Source of ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Clock {
    /// The processor's counter (x86-64: the invariant time-stamp counter, aarch64: cntvct_el0).
    Counter = 0,
    /// CLOCK_MONOTONIC in nanoseconds.
    Monotonic = 1,
}

/// One moment, read from three clocks; written by one process while others read it.
#[repr(C)]
#[derive(Debug)]
pub struct Moment {
    /// Ticks; written last, 0 while there is no moment.
    pub ticks: AtomicU64,
    /// CLOCK_REALTIME.
    pub realtime_ns: AtomicU64,
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: AtomicU64,
}

/// Reads the processor's counter.
#[inline(always)]
pub fn counter() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 processor has it.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let now: u64;
        // SAFETY: readable in user space on Linux.
        unsafe { core::arch::asm!("mrs {0}, cntvct_el0", out(reg) now, options(nomem, nostack)) };
        now
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    monotonic_ns()
}

/// The present time in ticks of `clock`.
#[inline(always)]
pub fn ticks(clock: u32) -> u64 {
    if clock == Clock::Counter as u32 { counter() } else { monotonic_ns() }
}

/// The clock to use on this machine: the counter, unless its frequency changes with the processor's.
pub fn choose() -> Clock {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::__cpuid;
        const POWER: u32 = 0x8000_0007;
        let invariant = __cpuid(0x8000_0000).eax >= POWER && __cpuid(POWER).edx >> 8 & 1 == 1;
        if !invariant {
            return Clock::Monotonic;
        }
    }
    Clock::Counter
}

/// Ticks a second if the clock has a known frequency, else 0.
pub fn hz(clock: Clock) -> u64 {
    match clock {
        Clock::Monotonic => 1_000_000_000,
        #[cfg(target_arch = "aarch64")]
        Clock::Counter => {
            let hz: u64;
            // SAFETY: readable in user space on Linux.
            unsafe { core::arch::asm!("mrs {0}, cntfrq_el0", out(reg) hz, options(nomem, nostack)) };
            hz
        }
        #[cfg(not(target_arch = "aarch64"))]
        Clock::Counter => 0,
    }
}

/// CLOCK_MONOTONIC.
#[cold]
pub fn monotonic_ns() -> u64 {
    system_ns(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME.
pub fn realtime_ns() -> u64 {
    system_ns(libc::CLOCK_REALTIME)
}

fn system_ns(clock: libc::clockid_t) -> u64 {
    // SAFETY: all zero is a valid value, which the system fills.
    unsafe {
        let mut now = core::mem::zeroed::<libc::timespec>();
        libc::clock_gettime(clock, &mut now);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

/// Ticks, realtime and monotonic time of one moment.
pub fn moment(clock: u32) -> [u64; 3] {
    closest(|| {
        let before = monotonic_ns();
        let [ticks, realtime] = [ticks(clock), realtime_ns()];
        let monotonic = monotonic_ns();
        (monotonic.saturating_sub(before), [ticks, realtime, monotonic])
    })
}

/// Of several readings the one that took the least time. A thread that is preempted between two clocks gets values that do
/// not belong together, and the tick frequency would be wrong for good.
fn closest(mut read: impl FnMut() -> (u64, [u64; 3])) -> [u64; 3] {
    let mut best = read();
    for _ in 1..10 {
        if best.0 <= 10_000 {
            break;
        }
        let next = read();
        if next.0 < best.0 {
            best = next;
        }
    }
    best.1
}

impl Moment {
    /// Stores the present moment.
    pub fn set(&self, clock: u32) {
        self.store(moment(clock));
    }

    /// Stores ticks, realtime and monotonic time. Ticks are cleared first and stored last: a reader that sees equal ticks
    /// twice has seen one moment.
    pub fn store(&self, [ticks, realtime, monotonic]: [u64; 3]) {
        self.ticks.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        self.realtime_ns.store(realtime, Ordering::Relaxed);
        self.monotonic_ns.store(monotonic, Ordering::Relaxed);
        self.ticks.store(ticks, Ordering::Release);
    }

    /// Ticks, realtime and monotonic time of one moment; ticks are 0 if there is none.
    pub fn get(&self) -> [u64; 3] {
        let look = || {
            let ticks = self.ticks.load(Ordering::Acquire);
            let rest = [self.realtime_ns.load(Ordering::Relaxed), self.monotonic_ns.load(Ordering::Relaxed)];
            fence(Ordering::Acquire);
            (self.ticks.load(Ordering::Relaxed) == ticks && ticks != 0).then_some([ticks, rest[0], rest[1]])
        };
        // The thread that stores it may have been stopped halfway.
        (0..1000).find_map(|_| look()).unwrap_or_default()
    }
}

/// Conversion of ticks to time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// A moment in ticks ...
    pub ticks: u64,
    /// ... and since 1970.
    pub realtime_ns: u64,
    /// Nanoseconds of a tick.
    pub ns_a_tick: f64,
}

impl Calibration {
    /// From two moments (ticks, realtime, monotonic), or from the frequency where it is known.
    pub fn new(first: [u64; 3], second: [u64; 3], hz: u64) -> Option<Self> {
        let ns_a_tick = if hz != 0 {
            1e9 / hz as f64
        } else {
            let ticks = second[0].checked_sub(first[0]).filter(|&ticks| ticks > 0)?;
            second[2].checked_sub(first[2])? as f64 / ticks as f64
        };
        Some(Self { ticks: first[0], realtime_ns: first[1], ns_a_tick })
    }

    /// A span of ticks in nanoseconds.
    pub fn span_ns(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_a_tick) as u64
    }

    /// As [`span_ns`](Self::span_ns) in fewer instructions, for a span that fits into 32 bits, as nearly all do.
    pub fn short_span_ns(&self, ticks: u32) -> u64 {
        (i64::from(ticks) as f64 * self.ns_a_tick) as i64 as u64
    }

    /// A moment in nanoseconds since 1970.
    pub fn at_ns(&self, ticks: u64) -> u64 {
        if ticks >= self.ticks {
            self.realtime_ns.saturating_add(self.span_ns(ticks - self.ticks))
        } else {
            self.realtime_ns.saturating_sub(self.span_ns(self.ticks - ticks))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_goes_through_its_first_moment_at_the_pace_of_both() {
        // 3 ticks a nanosecond; the wall clock has been set meanwhile, and that is not the pace.
        let clock = Calibration::new([3000, 50_000, 1000], [6000, 7, 2000], 0).unwrap();
        assert_eq!((clock.at_ns(3000), clock.at_ns(6000), clock.at_ns(0)), (50_000, 51_000, 49_000));
        assert_eq!((clock.span_ns(0), clock.span_ns(300)), (0, 100));
    }

    #[test]
    fn a_known_pace_needs_no_second_moment() {
        let clock = Calibration::new([100, 5000, 0], [0; 3], 25_000_000).unwrap();
        assert_eq!((clock.at_ns(101), clock.at_ns(99)), (5040, 4960));
    }

    #[test]
    fn without_a_second_moment_there_is_no_pace() {
        for second in [[0; 3], [100, 6000, 1000], [99, 6000, 1000], [200, 6000, 999]] {
            assert_eq!(Calibration::new([100, 5000, 1000], second, 0), None, "{second:?}");
        }
    }

    #[test]
    fn no_moment_is_out_of_range() {
        let clock = Calibration { ticks: 10, realtime_ns: 5, ns_a_tick: 1e9 };
        assert_eq!(clock.at_ns(0), 0);
        assert_eq!(clock.at_ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_moment_is_read_whole_or_not_at_all() {
        let moment = Moment { ticks: 0.into(), realtime_ns: 8.into(), monotonic_ns: 9.into() };
        assert_eq!(moment.get(), [0; 3], "it is just being set, or never was");
        moment.set(Clock::Monotonic as u32);
        let [ticks, realtime, monotonic] = moment.get();
        assert!(ticks > 0 && realtime > ticks && monotonic >= ticks);
    }

    #[test]
    fn of_several_readings_the_one_that_took_the_least_time_is_taken() {
        let read = |took: &[u64]| {
            let mut readings = took.iter().map(|took| (*took, [*took; 3]));
            let moment = closest(|| readings.next().unwrap());
            (moment[0], readings.count())
        };
        assert_eq!(read(&[90, 80]), (90, 1), "the first one is good enough");
        assert_eq!(read(&[4_000_000, 20_000, 100, 50]), (100, 1), "until one is");
        let slow = [50_000, 40_000, 30_000, 20_000, 11_000, 60_000, 70_000, 80_000, 90_000, 95_000, 1];
        assert_eq!(read(&slow), (11_000, 1), "but not for ever");
    }

    #[test]
    fn ticks_go_forward() {
        for clock in [Clock::Counter as u32, Clock::Monotonic as u32] {
            let first = ticks(clock);
            assert!(ticks(clock) >= first);
        }
    }
}
