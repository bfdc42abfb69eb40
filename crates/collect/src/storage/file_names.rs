//! File names from a pattern (setting `ACLSHIM_FILE`).
//!
//! | in the pattern | becomes |
//! |---|---|
//! | `%p` | the process id |
//! | `%h` | the host's name |
//! | `%e` | the base name of the executable |
//! | `%t` | when the process was first seen, UTC: `20261116T063012-123456789` |
//! | `%r` | the rank in a distributed job |
//! | `%%` | a percent sign, which then becomes `_` like all that is unsafe in a name |
//!
//! Two processes do not meet: `exec` keeps the process id, so the default has both `%p` and `%t`;
//! a pattern without `%p` gets it; and where names are equal all the same, whoever comes second
//! finds the file there and takes the next name (see [`file()`]).

use std::fmt::Write;

/// The pattern where none is set.
pub const DEFAULT_PATTERN: &str = "aclshim-%p-%t";
/// The longest stem: a file name has 255 bytes, and segment, turn and extension follow.
pub const LONGEST: usize = 255 - 40;

/// Who writes: what a pattern may ask for.
#[derive(Clone, Debug, Default)]
pub struct FileNameValues {
    /// The process.
    pub pid: u32,
    /// When it was first seen, in nanoseconds since 1970.
    pub born_ns: u64,
    /// The host's name.
    pub host: Vec<u8>,
    /// The base name of the executable.
    pub executable: Vec<u8>,
    /// The rank: see [`rank`].
    pub rank: Vec<u8>,
}

/// The variables that launchers put a process's rank in, the first set one holds.
pub const RANK_VARIABLES: [&str; 5] = ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK_ID"];

/// The rank, given what each variable holds.
pub fn rank(mut variable: impl FnMut(&str) -> Option<Vec<u8>>) -> Vec<u8> {
    let set = RANK_VARIABLES.iter().find_map(|name| variable(name).filter(|value| !value.is_empty()));
    set.unwrap_or_else(|| b"0".to_vec())
}

/// What a kind of file ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The binary trace.
    Trace,
    /// The JSON log.
    Log,
}

impl Kind {
    /// The end of the file's name, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Kind::Trace => "acltrace",
            Kind::Log => "jsonl",
        }
    }
}

/// The name that all files of a process begin with. It cannot leave its directory: no `/`, no dot
/// in front, and at most [`LONGEST`] bytes.
pub fn stem(pattern: &[u8], who: &FileNameValues) -> String {
    let mut text = Vec::new();
    let mut has_pid = false;
    let mut rest = pattern;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let Some((&letter, after)) = rest.split_first().filter(|_| byte == b'%') else {
            text.push(byte);
            continue;
        };
        match letter {
            b'p' => text.extend(who.pid.to_string().bytes()),
            b'h' => text.extend(&who.host),
            b'e' => text.extend(&who.executable),
            b't' => text.extend(time(who.born_ns).bytes()),
            b'r' => text.extend(&who.rank),
            b'%' => text.push(b'%'),
            _ => text.extend([byte, letter]),
        }
        has_pid |= letter == b'p';
        rest = after;
    }
    // What we add is not cut off again.
    let tail = if has_pid { String::new() } else { format!("-{}", who.pid) };
    text.truncate(LONGEST - tail.len());
    text.extend(tail.bytes());
    let safe = |(at, &byte): (usize, &u8)| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'+' | b'-' => byte as char,
        b'.' if at > 0 => '.',
        _ => '_',
    };
    text.iter().enumerate().map(safe).collect()
}

/// The name of one file. `turn` 1 is the first try; the next ones are for names that are taken,
/// and are marked so that they cannot be read as a segment's number.
pub fn file(stem: &str, segment: u64, turn: u64, kind: Kind) -> String {
    let mut name = String::from(stem);
    if segment > 0 {
        let _ = write!(name, ".{segment}");
    }
    if turn > 1 {
        let _ = write!(name, "+{turn}");
    }
    name + "." + kind.extension()
}

/// A time in UTC that sorts as text.
fn time(ns: u64) -> String {
    let (seconds, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their leap day at the end; counted from 1 March 0000.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, turned) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + turned;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}-{ns:09}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who() -> FileNameValues {
        FileNameValues {
            pid: 42,
            born_ns: 1_794_810_612_123_456_789,
            host: b"node-7.example".to_vec(),
            executable: b"python3.11".to_vec(),
            rank: b"3".to_vec(),
        }
    }

    fn of(pattern: &str) -> String {
        stem(pattern.as_bytes(), &who())
    }

    #[test]
    fn every_letter_of_the_pattern_stands_for_its_value() {
        assert_eq!(of(DEFAULT_PATTERN), "aclshim-42-20261116T063012-123456789");
        assert_eq!(of("%h_%e.%r+%p"), "node-7.example_python3.11.3+42");
        assert_eq!(of("100%%-%p"), "100_-42");
    }

    #[test]
    fn what_is_not_known_stays_as_it_is_made_safe() {
        assert_eq!(of("%q%p%"), "_q42_");
    }

    #[test]
    fn a_pattern_without_the_process_gets_it() {
        assert_eq!(of("run"), "run-42");
        assert_eq!(of(""), "-42");
        assert_eq!(of("%%p"), "_p-42");
    }

    #[test]
    fn a_name_never_leaves_its_directory() {
        assert_eq!(of("../../etc/%p"), "_._.._etc_42");
        assert_eq!(of("/%p"), "_42");
        assert_eq!(of(".%p"), "_42");
        let forged = FileNameValues { executable: b"../a b\n\xff\0".to_vec(), ..who() };
        assert_eq!(stem(b"%e-%p", &forged), "_._a_b___-42");
    }

    #[test]
    fn a_long_name_is_cut_and_keeps_room_for_what_follows() {
        let long = "x".repeat(1000);
        assert_eq!(of(&long).len(), LONGEST);
        assert!(of(&long).ends_with("x-42"));
        assert!(file(&of(&long), u64::MAX, 9999, Kind::Trace).len() <= 255);
    }

    #[test]
    fn segments_and_turns_are_told_apart() {
        assert_eq!(file("a", 0, 1, Kind::Trace), "a.acltrace");
        assert_eq!(file("a", 2, 1, Kind::Log), "a.2.jsonl");
        assert_eq!(file("a", 0, 2, Kind::Log), "a+2.jsonl");
        assert_eq!(file("a", 3, 2, Kind::Log), "a.3+2.jsonl");
    }

    #[test]
    fn times_are_dates() {
        assert_eq!(time(0), "19700101T000000-000000000");
        assert_eq!(time(951_782_400_000_000_001), "20000229T000000-000000001");
        assert_eq!(time(4_107_542_399_999_999_999), "21000228T235959-999999999");
        assert_eq!(time(4_107_542_400_000_000_000), "21000301T000000-000000000");
    }

    #[test]
    fn the_first_rank_that_is_set_holds() {
        let given = |set: &'static [(&str, &str)]| {
            rank(|name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_bytes().to_vec()))
        };
        assert_eq!(given(&[]), b"0");
        assert_eq!(given(&[("RANK_ID", "5"), ("RANK", "")]), b"5");
        assert_eq!(given(&[("SLURM_PROCID", "5"), ("PMI_RANK", "6")]), b"6");
    }
}
