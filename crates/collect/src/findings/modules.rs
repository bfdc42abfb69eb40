//! Which module of a process an address lies in, so that a call site means the same in every run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The files that are mapped into a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modules {
    /// By first address: the end, and the path.
    spans: BTreeMap<u64, (u64, String)>,
}

/// Maximum number of modules that are remembered.
const MOST: usize = 4096;

/// One line of `/proc/PID/maps` that is about a file.
struct Mapping<'a> {
    start: u64,
    end: u64,
    is_code: bool,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (range, rest) = line.split_once(' ')?;
        let path = rest.get(rest.find('/')?..)?;
        let (start, end) = range.split_once('-')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        Some(Self { start: number(start)?, end: number(end)?, is_code: rest.get(2..3) == Some("x"), path })
    }
}

/// An address as others can find it again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The module's file name.
    pub module: String,
    /// From where the module begins in memory.
    pub offset: u64,
}

impl std::fmt::Display for Site {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}+{:#x}", self.module, self.offset)
    }
}

impl Modules {
    /// The modules of a running process, as `/proc` tells them; `self` is this one.
    pub fn of(process: &str) -> Self {
        let maps = File::open(format!("/proc/{process}/maps"));
        maps.map(|maps| Self::read(BufReader::new(maps))).unwrap_or_default()
    }

    /// The same by such lines.
    pub fn of_lines(maps: &str) -> Self {
        Self::read(maps.as_bytes())
    }

    /// Line by line: a program may have mapped any number of files. Those that hold no code are none of ours.
    fn read(mut maps: impl BufRead) -> Self {
        let mut spans: BTreeMap<u64, (u64, String)> = BTreeMap::new();
        let mut line = String::new();
        // The file that the last mapping was of, and where its first one begins.
        let (mut file, mut first) = (String::new(), 0);
        while spans.len() < MOST && maps.read_line(&mut line).is_ok_and(|length| length > 0) {
            if let Some(Mapping { start, end, is_code, path }) = Mapping::parse(line.trim_end()) {
                if path != file {
                    file.clear();
                    file.push_str(path);
                    first = start;
                }
                if is_code || spans.contains_key(&first) {
                    spans.insert(first, (end, path.to_owned()));
                }
            } else {
                file.clear();
            }
            line.clear();
        }
        Self { spans }
    }

    /// The module that an address lies in.
    pub fn site(&self, address: u64) -> Option<Site> {
        let (start, (end, path)) = self.spans.range(..=address).next_back()?;
        // A program may be replaced while it runs; it has the same name for all that.
        let path = path.strip_suffix(" (deleted)").unwrap_or(path);
        let name = Path::new(path).file_name()?.to_string_lossy().into_owned();
        (address < *end).then_some(Site { module: name, offset: address - start })
    }

    /// The path of the module that an address lies in.
    pub fn path(&self, address: u64) -> Option<&Path> {
        let (_, (end, path)) = self.spans.range(..=address).next_back()?;
        (address < *end).then_some(Path::new(path))
    }

    /// As the payload of a block: for each, first address, end, length of the path, and the path.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (start, (end, path)) in &self.spans {
            bytes.extend([*start, *end, path.len() as u64].map(u64::to_le_bytes).as_flattened());
            bytes.extend(path.as_bytes());
        }
        bytes
    }

    /// From such a payload, as far as it is whole.
    pub fn from_bytes(mut bytes: &[u8]) -> Self {
        let mut spans = BTreeMap::new();
        while let Some((words, rest)) = bytes.split_at_checked(24) {
            let word = |at: usize| words[8 * at..8 * at + 8].try_into().map_or(0, u64::from_le_bytes);
            let Some((path, rest)) = rest.split_at_checked(word(2) as usize) else { break };
            spans.insert(word(0), (word(1), String::from_utf8_lossy(path).into_owned()));
            bytes = rest;
        }
        Self { spans }
    }

    /// Adds what another list knows, which is newer; whether that is anything.
    pub fn learn(&mut self, other: Self) -> bool {
        let is_new = other.spans.iter().any(|(start, span)| self.spans.get(start) != Some(span));
        self.spans.extend(other.spans);
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0c0a00000-55d0c0a02000 r--p 00000000 08:01 11  /opt/a program/host
55d0c0a02000-55d0c0a08000 r-xp 00002000 08:01 11  /opt/a program/host
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
7f0000200000-7f0000300000 r-xp 00000000 08:01 12  /lib/libx.so
7f0000400000-7f0000500000 r--p 00000000 08:01 13  /some/data
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0   [stack]
";

    #[test]
    fn a_module_that_was_replaced_meanwhile_keeps_its_name() {
        let modules = Modules::read("1000-2000 r-xp 00000000 08:01 11  /opt/host (deleted)\n".as_bytes());
        assert_eq!(modules.site(0x1010).unwrap().to_string(), "host+0x10");
    }

    #[test]
    fn an_address_is_named_by_its_module_and_the_distance_from_its_begin() {
        let modules = Modules::read(MAPS.as_bytes());
        let site = |address| modules.site(address).map(|site| site.to_string());
        assert_eq!(site(0x55d0_c0a0_2010).as_deref(), Some("host+0x2010"));
        assert_eq!(site(0x7f00_0020_0000).as_deref(), Some("libx.so+0x0"));
        assert_eq!(modules.path(0x55d0_c0a0_2010), Some(Path::new("/opt/a program/host")));
        assert_eq!(modules.path(0x55d0_c0a0_8000), None);
        for nowhere in [0, 0x55d0_c0a0_8000, 0x7f00_0000_0010, 0x7f00_0040_0000, 0x7ffc_0000_0000, u64::MAX] {
            assert_eq!(site(nowhere), None, "{nowhere:#x}");
        }
    }

    #[test]
    fn modules_are_read_back_as_they_were_written_and_cut_ones_as_far_as_they_go() {
        let modules = Modules::read(MAPS.as_bytes());
        let bytes = modules.to_bytes();
        assert_eq!(Modules::from_bytes(&bytes), modules);
        let cut = Modules::from_bytes(&bytes[..bytes.len() - 1]);
        assert_eq!((cut.spans.len(), modules.spans.len()), (1, 2));
    }

    #[test]
    fn this_process_has_modules() {
        let here = this_process_has_modules as *const () as u64;
        assert!(Modules::of("self").site(here).is_some());
    }
}
