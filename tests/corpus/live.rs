//! Programs that are run with the shim, and their logs in a form that is equal from run to run.

use crate::built;
use crate::support::{host, scratch};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// The program of a live log: its name in `expected/`, a source in `tests/hosts` (or an example of that name), arguments,
/// settings.
pub struct Live {
    pub name: &'static str,
    source: &'static str,
    arguments: &'static [&'static str],
    settings: &'static [(&'static str, &'static str)],
}

/// Whether an address that an example has from malloc is aligned to 64 bytes is chance.
const fn example(name: &'static str) -> Live {
    Live { name, source: "", arguments: &[], settings: &[("ACLSHIM_RULES", "ALIGN-64=off")] }
}

/// All of them.
pub const LIVE: &[Live] = &[
    example("async"),
    example("batch"),
    example("condition"),
    example("kv_offload"),
    example("linear"),
    example("pitched"),
    Live { name: "rules", source: "check_calls.c", arguments: &[], settings: &[] },
    Live { name: "marks", source: "marks_all.c", arguments: &["names"], settings: &[("ACLSHIM_CALLS", "json")] },
    Live {
        name: "abandoned",
        source: "guest_longjmp.c",
        arguments: &[],
        settings: &[("ACLSHIM_CALLS", "json"), ("ASCENDCL_SIM_FAULT", "longjmp@aclrtMemcpy:2,longjmp@aclrtMemcpy:5")],
    },
];

impl Live {
    /// Whether the program is one of the C examples.
    pub fn is_example(&self) -> bool {
        self.source.is_empty()
    }

    /// Runs the program; its log, a line each.
    pub fn log(&self) -> String {
        let (built, folder) = (built(), scratch("live"));
        let program = match self.source {
            "" => built.join("c-examples").join(self.name),
            source => host(&format!("hosts/{source}")),
        };
        // The log has the path without links.
        let program = fs::canonicalize(program).expect("a program");
        let mut command = Command::new(&program);
        command.args(self.arguments).env_clear().env("LD_PRELOAD", built.join("release/libaclshim.so"));
        command.env("LD_LIBRARY_PATH", built.join("sim")).env("TZ", "UTC");
        command.env("ACLSHIM_DIR", folder.join("out")).env("ACLSHIM_RING_DIR", &folder);
        command
            .env("ACLSHIM_RING_SIZE", "1M")
            .env("ACLSHIM_RING_LIMIT", "1M")
            .env("ACLSHIM_END_WAIT", "60000")
            .envs(self.settings.iter().copied());
        let output = command.current_dir(&folder).stdin(Stdio::null()).output().expect("a program that starts");
        assert!(output.status.code().is_some(), "{}: {output:?}", self.name);
        let mut logs: Vec<_> = fs::read_dir(folder.join("out")).unwrap().map(|file| file.unwrap().path()).collect();
        logs.retain(|path| path.extension() == Some("jsonl".as_ref()));
        logs.sort();
        let log: String = logs.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        fs::remove_dir_all(&folder).unwrap();
        normal(&log, &[(&folder, "/corpus"), (&program, "/program"), (&built, "/built")])
    }
}

/// A log without what differs from run to run: paths, processes, times, addresses.
fn normal(log: &str, paths: &[(&Path, &str)]) -> String {
    let mut log = log.to_owned();
    for (path, name) in paths {
        log = log.replace(path.to_str().expect("a path that is text"), name);
        let file = path.file_name().expect("a name").to_str().expect("a name that is text");
        if *name == "/program" {
            log = log.replace(file, "program");
        }
    }
    let mut addresses = HashMap::new();
    log.lines().map(|line| numbers(line, &mut addresses) + "\n").collect()
}

/// A line with the values of some keys as `N`, and addresses by the order in which they come in the log.
pub fn numbers(line: &str, addresses: &mut HashMap<String, usize>) -> String {
    const KEYS: [&str; 4] = ["\"pid\":", "\"thread\":", "\"offset\":", "_ns\":"];
    let (mut made, mut rest) = (String::new(), line);
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix("0x") {
            let end = behind.find(|char: char| !char.is_ascii_hexdigit()).unwrap_or(behind.len());
            let next = addresses.len() + 1;
            let number = addresses.entry(behind[..end].to_owned()).or_insert(next);
            made.push_str(&format!("0x#{number}"));
            rest = &behind[end..];
        } else if let Some(behind) = KEYS.iter().find_map(|key| rest.strip_prefix(key)) {
            made.push_str(&rest[..rest.len() - behind.len()]);
            let digits = behind.len() - behind.trim_start_matches(|char: char| char.is_ascii_digit()).len();
            made.push_str(if digits > 0 { "N" } else { "" });
            rest = &behind[digits..];
        } else if let Some(behind) = rest.strip_prefix("\"host\":\"") {
            made.push_str("\"host\":\"H");
            rest = behind.trim_start_matches(|char| char != '"');
        } else {
            let char = rest.chars().next().expect("it is not empty");
            made.push(char);
            rest = &rest[char.len_utf8()..];
        }
    }
    made.replace(&format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION")), "\"version\":\"V\"")
}
