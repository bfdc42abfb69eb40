//! Commands that run a program, and what other commands print of its records, in a form that is equal from run to run.
//!
//! Left out: of `doctor` the room in the folders of the machine, and everywhere durations.

use crate::built;
use crate::live::numbers;
use crate::support::{host, root, scratch};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Commands that are run one after the other beside one program.
pub struct Session {
    /// Its name in `expected/`.
    pub name: &'static str,
    /// The program's source in `tests/hosts`; it is called `./program` here.
    source: &'static str,
    /// Settings that are in the environment of all commands.
    settings: &'static [(&'static str, &'static str)],
    lines: &'static [&'static str],
}

/// All sessions. A line is arguments of `aclshim`; `$ ` runs something else, and `cat FILE` prints what a command wrote.
pub const SESSIONS: &[Session] = &[
    Session {
        name: "run",
        source: "check_calls.c",
        settings: &[],
        lines: &[
            "run --sim --out out -- ./program",
            "run --sim --out out --quiet --error-exitcode 9 -- ./program",
            "run --sim --out refused --enforce --as Ascend310P3 -- ./program",
            "run --sim --out other --require-calls -- true",
            "run --sim -- ./no-such-program",
        ],
    },
    Session {
        name: "run_without_trace",
        source: "check_calls.c",
        settings: &[("ACLSHIM_CALLS", "off")],
        lines: &["run --sim --out out -- ./program"],
    },
    Session {
        name: "test",
        source: "test_scopes.c",
        settings: &[],
        lines: &[
            "test --out out --junit results.xml --sarif findings.sarif -- ./program well",
            "cat results.xml",
            "cat findings.sarif",
            "test --out out --golden new.golden --update -- ./program well",
            "test --out out --golden new.golden -- ./program well",
            "test --out out --junit results.xml -- ./program extra",
            "cat results.xml",
            "test --out out -- ./program open",
            "test --out out -- true",
        ],
    },
    Session {
        name: "doctor",
        source: "check_calls.c",
        settings: &[("ACLSHIM_MODE", "loud"), ("ACLSHIM_RECORD", "off"), ("ACLSHIM_RNIG_SIZE", "1M")],
        lines: &["doctor", "doctor -- ./program", "doctor --run -- ./program", "doctor -- ./no-such-program"],
    },
    Session {
        name: "symbols",
        source: "check_calls.c",
        settings: &[("ACLSHIM_STACK", "findings")],
        lines: &[
            "run --sim --quiet --out out -- ./program",
            "findings out",
            "findings --json out",
            "findings --sarif out",
            "log --json out",
        ],
    },
    Session {
        name: "follow",
        source: "check_calls.c",
        settings: &[],
        lines: &["run --sim --quiet --out out -- ./program", "log -f --json out", "log -f --json --failed out"],
    },
    // All at once from the ring: where a segment ends does not hang on how the drain was scheduled.
    Session {
        name: "rotated",
        source: "keep_calls.c",
        settings: &[
            ("ACLSHIM_DRAIN", "off"),
            ("ACLSHIM_RING_SIZE", "4M"),
            ("ACLSHIM_RING_LIMIT", "4M"),
            ("ACLSHIM_SEGMENT", "1M"),
        ],
        lines: &[
            "$ ./program 1 30000",
            "verify out",
            "recover --out out",
            "verify out",
            "verify --json out",
            "verify --apart --json out",
            "findings --json out",
            "merge out -o merged",
            "verify merged",
            "clean --dry-run --older-than 0s out",
        ],
    },
];

impl Session {
    /// Runs the commands; what each printed, and how it ended.
    pub fn outcome(&self) -> String {
        let folder = scratch(&format!("session-{}", self.name));
        // By another process: this one may have children that hold a file open which it has just written.
        let copied =
            Command::new("cp").arg(host(&format!("hosts/{}", self.source))).arg(folder.join("program")).status();
        assert!(copied.expect("cp").success());
        fs::create_dir(folder.join("rings")).unwrap();
        let mut all = String::new();
        for line in self.lines {
            let output = self.run(line, &folder);
            let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
            all.push_str(&format!("$ aclshim {line}\n{out}"));
            if !out.is_empty() && !out.ends_with('\n') {
                all.push_str("\n[no newline]\n");
            }
            if !err.is_empty() {
                all.push_str(&format!("[standard error]\n{err}"));
            }
            let code = output.status.code().map_or("by a signal".to_owned(), |code| code.to_string());
            all.push_str(&format!("[exit {code}]\n"));
        }
        fs::remove_dir_all(&folder).unwrap();
        normal(&all, &folder)
    }

    fn run(&self, line: &str, folder: &Path) -> Output {
        let mut words = line.split(' ');
        let mut command = match line {
            _ if line.starts_with("$ ") => Command::new(words.nth(1).unwrap()),
            _ if line.starts_with("cat ") => Command::new(words.next().unwrap()),
            _ => Command::new(built().join("release/aclshim")),
        };
        command.env_clear().envs([("PATH", "/usr/bin:/bin"), ("TZ", "UTC"), ("LC_ALL", "C")]);
        command.env("LD_LIBRARY_PATH", built().join("sim")).env("ACLSHIM_RING_DIR", folder.join("rings"));
        command.env("HOME", folder).env("ACLSHIM_DIR", folder.join("out")).envs(self.settings.iter().copied());
        if line.starts_with("$ ") {
            command.env("LD_PRELOAD", built().join("release/libaclshim.so"));
        }
        command.args(words).current_dir(folder).stdin(Stdio::null());
        if line.starts_with("log -f") { followed(command, folder) } else { command.output().expect("a command") }
    }
}

/// Runs a command that never ends, and ends it when it has printed nothing new for a while.
fn followed(mut command: Command, folder: &Path) -> Output {
    let path = folder.join("followed");
    let mut child = command.stdout(fs::File::create(&path).unwrap()).stderr(Stdio::piped()).spawn().expect("a command");
    let (begin, mut last, mut size) = (Instant::now(), Instant::now(), 0);
    while size == 0 && begin.elapsed() < Duration::from_secs(120) || last.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(50));
        let now = path.metadata().unwrap().len();
        if now != size {
            (size, last) = (now, Instant::now());
        }
    }
    child.kill().unwrap();
    Output { stdout: fs::read(&path).unwrap(), ..child.wait_with_output().unwrap() }
}

/// Output without what differs from run to run and from machine to machine: paths, processes, times, addresses, versions.
fn normal(text: &str, folder: &Path) -> String {
    let mut text = text.to_owned();
    let paths: [(PathBuf, &str); 4] = [
        (folder.to_owned(), "/corpus"),
        (fs::canonicalize(built()).unwrap(), "/built"),
        (built(), "/built"),
        (root(), "/source"),
    ];
    for (path, name) in &paths {
        let path = path.to_str().expect("a path that is text");
        // In a URI a blank is escaped.
        text = text.replace(path, name).replace(&path.replace(' ', "%20"), name);
    }
    let version = env!("CARGO_PKG_VERSION");
    text = text.replace(&format!("version {version}"), "version V");
    text = text.replace(&format!("\"semanticVersion\": \"{version}\""), "\"semanticVersion\": \"V\"");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    text = text.replace(&format!(" on {}:", host.trim()), " on HOST:");
    text = text.replace(&format!("\"host\": \"{}\"", host.trim()), "\"host\": \"HOST\"");
    text = text.replace("x86-64", "ARCH").replace("aarch64", "ARCH");
    let mut addresses = HashMap::new();
    let lines = text.lines().map(|line| numbers(&without_numbers(line), &mut addresses));
    without_rooms(lines.map(|line| line + "\n").collect())
}

/// Of the doctor's report without what the folders of this machine have room for.
fn without_rooms(text: String) -> String {
    let mut parts = text.split("\nwhere records go\n");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find("\n\n").into_iter().chain(part.find("[standard error]")).chain(part.find("[exit ")).min();
        kept.push_str("\nwhere records go: left out\n");
        kept.push_str(end.map_or("", |end| &part[end..]));
    }
    kept
}

/// A line with `N` for each number behind some words.
fn without_numbers(line: &str) -> String {
    const BEHIND: [&str; 10] = [
        "process ",
        "thread ",
        "aclshim-",
        "glibc ",
        "finds all ",
        "time=\"",
        "timestamp=\"",
        "build id ",
        "\"pid\": ",
        "would be removed, ",
    ];
    let (mut made, mut rest) = (String::new(), line);
    while let Some((at, word)) = BEHIND.iter().filter_map(|word| Some((rest.find(word)?, *word))).min() {
        let (before, behind) = rest.split_at(at + word.len());
        made.push_str(before);
        rest = behind;
        if behind.starts_with(|char: char| char.is_ascii_digit()) || word == "build id " {
            let is_part = |(at, char): (usize, char)| match char {
                // A stop or a colon behind a number belongs to the sentence, or to the name of a file.
                '.' | ':' => behind[at + 1..].starts_with(|next: char| next.is_ascii_digit()),
                _ => char.is_ascii_hexdigit() || char == 'T' || char == '-',
            };
            let end = behind.char_indices().find(|at| !is_part(*at)).map_or(behind.len(), |(at, _)| at);
            made.push('N');
            rest = &behind[end..];
        }
    }
    made + rest
}
