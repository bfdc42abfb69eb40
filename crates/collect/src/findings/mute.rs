//! Findings that are known already, and are counted but not reported (`ACLSHIM_MUTE`, `ACLSHIM_BASELINE`).

use crate::findings::modules::Site;
use aclshim_facts::Function;
use aclshim_facts::rule::Rule;
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

/// What is not reported.
#[derive(Clone, Debug, Default)]
pub struct Mute {
    patterns: Vec<Pattern>,
    /// As the lines of a baseline: rule, function and call site.
    known: BTreeSet<String>,
}

/// `RULE`, `RULE@MODULE` or `RULE@MODULE+0xOFFSET`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    rule: String,
    module: Option<String>,
    offset: Option<u64>,
}

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let (rule, place) = text.split_once('@').map_or((text, None), |(rule, place)| (rule, Some(place)));
        let (module, offset) = match place.and_then(|place| place.rsplit_once("+0x")) {
            Some((module, offset)) => (Some(module), Some(u64::from_str_radix(offset, 16).ok()?)),
            None => (place, None),
        };
        Some(Self { rule: rule.into(), module: module.map(str::to_owned), offset }).filter(|it| !it.rule.is_empty())
    }

    fn fits(&self, rule: &str, site: Option<&Site>) -> bool {
        let fits_module = self.module.as_ref().is_none_or(|module| site.is_some_and(|site| site.module == *module));
        let fits_offset = self.offset.is_none_or(|offset| site.is_some_and(|site| site.offset == offset));
        (self.rule == "*" || self.rule == rule) && fits_module && fits_offset
    }
}

impl Mute {
    /// A list of patterns, and the path of a baseline; either may be empty. What makes no sense is named in `nonsense`.
    pub fn new(list: &str, baseline: &str, nonsense: &mut Vec<String>) -> Self {
        let is_rule = |id: &str| id == "*" || Rule::by_id(id).is_some();
        for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if !Pattern::parse(part).is_some_and(|pattern| is_rule(&pattern.rule)) {
                nonsense.push(format!("ACLSHIM_MUTE: {part:?} names no rule"));
            }
        }
        let lines = match baseline {
            "" => String::new(),
            path => contents(path).unwrap_or_else(|error| {
                nonsense.push(format!("ACLSHIM_BASELINE: {path}: {error}"));
                String::new()
            }),
        };
        Self {
            patterns: list.split(',').map(str::trim).filter_map(Pattern::parse).collect(),
            known: lines.lines().map(|line| line.trim().to_owned()).collect(),
        }
    }

    /// Whether a finding is known.
    pub fn is_known(&self, rule: &str, function: Function, site: Option<&Site>) -> bool {
        self.patterns.iter().any(|pattern| pattern.fits(rule, site))
            || (!self.known.is_empty() && self.known.contains(&line(rule, function, site)))
    }
}

/// The longest baseline.
const LONGEST: u64 = 1 << 20;

/// A plain file of some length: whatever else stands there may never end, or never begin.
fn contents(path: &str) -> io::Result<String> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.len() > LONGEST {
        return Err(io::Error::other("not a file of a megabyte at most"));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// A finding as a line of a baseline.
pub fn line(rule: &str, function: Function, site: Option<&Site>) -> String {
    let site = site.map_or_else(|| "?".into(), Site::to_string);
    format!("{rule} {} {site}", function.row().name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(module: &str, offset: u64) -> Site {
        Site { module: module.into(), offset }
    }

    #[test]
    fn a_pattern_mutes_a_rule_a_module_or_one_call_site() {
        let mut nonsense = Vec::new();
        let list = "ONE, TWO@libx.so,THREE@liby.so+0x10,*@libz.so,@,FOUR@a+0xg,ALIGN-64@x";
        let mute = Mute::new(list, "/does/not/exist", &mut nonsense);
        assert_eq!(nonsense.len(), 6, "none of these is a rule, and there is no such file: {nonsense:?}");
        let is_known = |rule, at: Option<Site>| mute.is_known(rule, Function::aclrtMemcpy, at.as_ref());
        assert!(is_known("ONE", None) && is_known("ONE", Some(site("any", 1))));
        assert!(is_known("TWO", Some(site("libx.so", 7))) && !is_known("TWO", Some(site("liby.so", 7))));
        assert!(!is_known("TWO", None), "nobody knows where it was");
        assert!(is_known("THREE", Some(site("liby.so", 16))) && !is_known("THREE", Some(site("liby.so", 17))));
        assert!(is_known("FIVE", Some(site("libz.so", 0))) && !is_known("FIVE", Some(site("liba.so", 0))));
        assert!(!is_known("FOUR", Some(site("a", 0))));
    }

    #[test]
    fn what_a_baseline_lists_is_known_at_that_call_site_only() {
        let folder = crate::scratch::Scratch::new("mute");
        let path = folder.path().join("baseline.txt");
        let known = line("ONE", Function::aclrtMemcpy, Some(&site("host", 16)));
        std::fs::write(&path, format!("# known\n{known}\n")).unwrap();
        let mute = Mute::new("", path.to_str().unwrap(), &mut Vec::new());
        assert!(mute.is_known("ONE", Function::aclrtMemcpy, Some(&site("host", 16))));
        assert!(!mute.is_known("ONE", Function::aclrtMemcpy, Some(&site("host", 32))));
        assert!(!mute.is_known("ONE", Function::aclrtMemcpyAsync, Some(&site("host", 16))));
        assert!(!mute.is_known("TWO", Function::aclrtMemcpy, Some(&site("host", 16))));
    }
}
