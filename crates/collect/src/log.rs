//! The JSON log of one process. Only the thread that drains writes to it.

use crate::json;
use crate::log::line::Line;
use crate::storage::failure::{Failure, Report, Step, Trouble};
use crate::storage::file_names::Kind;
use crate::storage::rotation::{OutputLocation, RotatedFiles};
use std::path::Path;

pub mod line;
pub mod lines;
mod report;
mod subscriber;

pub use subscriber::install;

/// The log of one process.
#[derive(Debug)]
pub struct Log {
    files: RotatedFiles,
    pid: u32,
    /// The line that is put together; its memory is used again.
    text: Option<Box<json::Line>>,
}

impl Log {
    /// A log; it makes no file before there is a line. `pid` is the process that the lines are
    /// about, which is not the one that writes them where records are drained from outside.
    pub fn new(place: OutputLocation, pid: u32) -> Self {
        Self { files: RotatedFiles::new(place, Kind::Log), pid, text: None }
    }

    /// Writes one line, all of it or nothing. `time_ns` is when what it says happened, in
    /// nanoseconds since 1970. After a failure the line may be tried again.
    pub fn line(&mut self, time_ns: u64, line: &dyn Line) -> Result<(), Failure> {
        let mut text = self.text.take().unwrap_or_default();
        text.begin(time_ns, self.pid);
        self.text = subscriber::capture(text, &|| line.emit());
        let Some(text) = self.text.as_ref().and_then(|line| line.text()) else {
            return Err(self.files.fail(Step::Subscriber, libc::ENOTSUP));
        };
        self.files.append([text.as_bytes(), &[]], &mut |_, _| Vec::new())
    }

    /// The file that is written now.
    pub fn path(&self) -> Option<&Path> {
        self.files.path()
    }

    /// What happened besides the writing since this was last asked; [`Log::write_report`] writes it.
    pub fn take_report(&mut self) -> Report {
        self.files.take_report()
    }

    /// What goes wrong now, if anything.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.files.trouble()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::line::Address;
    use crate::log::lines::{self, LINES, Note};
    use crate::scratch::Scratch;
    use crate::storage::budget::Sizes;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    fn log(scratch: &Scratch, segment: u64) -> Log {
        let sizes = Sizes { segment, budget: 1 << 30 };
        Log::new(OutputLocation { dir: scratch.path().to_path_buf(), stem: "l".into(), sizes }, 42)
    }

    /// The keys of an object in the order in which they stand: strings at depth 1 before a colon.
    fn keys(line: &str) -> Vec<String> {
        let (mut keys, mut text, mut inside, mut escaped) = (Vec::new(), String::new(), false, false);
        for char in line.chars() {
            match char {
                _ if escaped => escaped = false,
                '\\' if inside => escaped = true,
                '"' => {
                    inside = !inside;
                    if inside {
                        text.clear();
                    }
                }
                ':' if !inside => keys.push(std::mem::take(&mut text)),
                _ if inside => text.push(char),
                _ => {}
            }
        }
        keys
    }

    #[test]
    fn every_line_has_the_documented_keys_in_order() {
        let scratch = Scratch::new("log-schema");
        let mut log = log(&scratch, 1 << 20);
        let samples = lines::samples();
        for sample in &samples {
            log.line(7, sample.as_ref()).unwrap();
        }
        let text = fs::read_to_string(scratch.path().join("l.jsonl")).unwrap();
        assert_eq!((text.lines().count(), samples.len()), (2 * LINES.len(), 2 * LINES.len()));
        for (line, sample) in text.lines().zip(&samples) {
            let schema = sample.schema();
            let documented = schema.fields.iter().map(|key| key.name);
            let expected: Vec<&str> = ["time_ns", "pid", "level", "event"].into_iter().chain(documented).collect();
            assert_eq!(keys(line), expected);
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!((&value["time_ns"], &value["pid"]), (&7.into(), &42.into()));
            assert_eq!((&value["event"], &value["level"]), (&schema.name.into(), &schema.level.into()));
            for key in schema.fields {
                let value = &value[key.name];
                let json = key.json.strip_suffix(" or null").filter(|_| value.is_null()).map_or(key.json, |_| "null");
                let fits = match json.split(' ').next() {
                    Some("null") => value.is_null(),
                    Some("number") => value.is_number(),
                    Some("boolean") => value.is_boolean(),
                    Some("string") => value.is_string(),
                    _ => false,
                };
                assert!(fits, "{}.{} is {value}, documented as {}", schema.name, key.name, key.json);
            }
        }
        assert_eq!(Address(255).to_string(), "0xff");
    }

    #[test]
    fn lines_go_to_files_of_ours_that_follow_each_other() {
        let scratch = Scratch::new("log-rotation");
        let mut log = log(&scratch, 500);
        for n in 0..20 {
            log.line(n, &Note { topic: "test", message: &"x".repeat(50) }).unwrap();
        }
        let mut times = Vec::new();
        for name in ["l.jsonl", "l.1.jsonl", "l.2.jsonl", "l.3.jsonl", "l.4.jsonl", "l.5.jsonl", "l.6.jsonl"] {
            let Ok(about) = fs::metadata(scratch.path().join(name)) else { break };
            assert!(about.mode() & 0o7777 == 0o600 && about.len() <= 500, "{name}");
            let text = fs::read_to_string(scratch.path().join(name)).unwrap();
            times.extend(text.lines().map(|line| {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                value["time_ns"].as_u64().unwrap()
            }));
        }
        assert_eq!(times, (0..20).collect::<Vec<u64>>());
        assert!(scratch.names().len() >= 5, "{:?}", scratch.names());
        assert!(log.take_report().is_empty());
    }

    #[test]
    fn what_happened_to_the_files_is_said_in_the_log() {
        let scratch = Scratch::new("log-report");
        let mut log = log(&scratch, 1 << 20);
        let note = Note { topic: "test", message: "m" };
        log.line(1, &note).unwrap();
        fs::remove_file(scratch.path().join("l.jsonl")).unwrap();
        log.line(2, &note).unwrap();
        log.files.fill_disk(5);
        log.line(3, &note).unwrap_err();
        log.line(3, &note).unwrap_err();
        log.files.fill_disk(1 << 20);
        log.line(3, &note).unwrap();
        let report = log.take_report();
        log.write_report(4, &report).unwrap();
        let text = fs::read_to_string(scratch.path().join("l.1.jsonl")).unwrap();
        let said: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let events: Vec<&str> = said.iter().map(|line| line["event"].as_str().unwrap()).collect();
        assert_eq!(events, ["note", "note", "write_failed", "replaced"]);
        assert_eq!((&said[2]["errno"], &said[2]["count"]), (&libc::ENOSPC.into(), &2.into()));
        assert_eq!(said[3]["reason"], "removed by somebody");
    }

    #[test]
    fn a_long_list_of_removed_files_is_summed_up() {
        let scratch = Scratch::new("log-removed");
        let mut log = log(&scratch, 1 << 20);
        let mut report = Report::default();
        for n in 0..Report::KEPT as u64 + 10 {
            report.note_removed(format!("/out/{n}.jsonl").into(), 100 + n);
        }
        report.over_budget = 5;
        log.write_report(1, &report).unwrap();
        let text = fs::read_to_string(log.path().unwrap()).unwrap();
        let said: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let sum = |key: &str| said.iter().filter_map(|line| line[key].as_u64()).sum::<u64>();
        assert_eq!((sum("files"), sum("bytes")), (report.removed_files, report.removed_bytes));
        assert_eq!((said.len(), &said[0]["file"]), (Report::KEPT + 2, &"/out/0.jsonl".into()));
        assert!(said[Report::KEPT]["file"].is_null() && said[Report::KEPT + 1]["topic"] == "budget");
    }

    #[test]
    fn several_logs_may_be_written_in_turn_and_at_once() {
        let scratch = Scratch::new("log-several");
        std::thread::scope(|scope| {
            for stem in ["a", "b"] {
                let place =
                    OutputLocation { dir: scratch.path().to_path_buf(), stem: stem.into(), sizes: Sizes::default() };
                scope.spawn(move || {
                    let mut log = Log::new(place, 1);
                    for n in 0..200 {
                        log.line(n, &Note { topic: stem, message: "" }).unwrap();
                    }
                });
            }
        });
        for stem in ["a", "b"] {
            let text = fs::read_to_string(scratch.path().join(format!("{stem}.jsonl"))).unwrap();
            assert_eq!(text.lines().filter(|line| line.contains(&format!("\"topic\":\"{stem}\""))).count(), 200);
        }
    }
}
