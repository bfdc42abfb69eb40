//! Every reading command of `aclshim` on recorded runs prints exactly what it printed when the corpus was made.
//!
//! `tests/corpus/README.md` says what is in the corpus, and how expected outputs are written anew.

#[path = "corpus/commands.rs"]
mod commands;
#[path = "corpus/live.rs"]
mod live;
#[path = "corpus/normal.rs"]
mod normal;
#[path = "corpus/runs.rs"]
mod runs;
#[path = "corpus/sessions.rs"]
mod sessions;
mod support;

use commands::{Script, scripts};
use live::LIVE;
use sessions::SESSIONS;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use support::{root, target};

/// Where the expected outputs are.
fn expected(name: &str) -> PathBuf {
    root().join("tests/corpus/expected").join(format!("{name}.txt"))
}

/// Where the outputs of the last run are, in full.
fn printed(name: &str) -> PathBuf {
    root().join("target/corpus").join(format!("{name}.txt"))
}

/// The folder with what is built: this tree's, or the one that `ACLSHIM_CORPUS_BUILT` names.
fn built() -> PathBuf {
    std::env::var_os("ACLSHIM_CORPUS_BUILT").map_or_else(|| target(""), PathBuf::from)
}

/// The command that is built there.
fn command() -> &'static Path {
    static COMMAND: OnceLock<PathBuf> = OnceLock::new();
    COMMAND.get_or_init(|| built().join("release/aclshim"))
}

fn prepare() {
    fs::create_dir_all(root().join("target/corpus")).unwrap();
    fs::create_dir_all(root().join("tests/corpus/expected")).unwrap();
}

/// Compares an output with the expected one, or writes that. Says what is different.
fn compare(name: &str, full: &str, short: &str) -> Result<(), String> {
    let file = expected(name);
    fs::write(printed(name), full).unwrap();
    if std::env::var_os("ACLSHIM_UPDATE").is_some() {
        fs::write(&file, short).unwrap();
    }
    let wanted = fs::read_to_string(&file).unwrap_or_default();
    if wanted == short {
        return Ok(());
    }
    let line = wanted.lines().zip(short.lines()).take_while(|(wanted, short)| wanted == short).count();
    let of = |text: &str| text.lines().nth(line).unwrap_or("(nothing)").to_owned();
    let command = short.lines().take(line + 1).filter(|text| text.starts_with("$ ")).last().unwrap_or("").to_owned();
    Err(format!(
        "{name}.txt:{}, {command}\n  expected: {}\n  printed:  {}\n  all that was printed: {}",
        line + 1,
        of(&wanted),
        of(short),
        printed(name).display()
    ))
}

/// Runs all scripts, some at once, and says which printed something else.
fn all(scripts: &[Script]) -> Vec<String> {
    prepare();
    command();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let full = script.outcome(command());
                    wrong.lock().unwrap().extend(compare(&script.name, &full, &normal::shortened(&full)).err());
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

#[test]
fn every_reading_command_prints_of_recorded_runs_what_it_always_did() {
    let scripts = scripts();
    let wrong = all(&scripts);
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), scripts.len(), wrong.join("\n"));
    let known: Vec<_> = scripts.iter().map(|script| expected(&script.name)).collect();
    for file in fs::read_dir(root().join("tests/corpus/expected")).unwrap().flatten() {
        let is_live = file.file_name().to_string_lossy().starts_with("live-");
        assert!(is_live || known.contains(&file.path()), "no commands for {}", file.path().display());
    }
}

#[test]
fn the_log_of_a_program_that_runs_with_the_shim_says_what_it_always_did() {
    prepare();
    let compared = LIVE.iter().map(|live| {
        let log = live.log();
        let short = if live.is_example() { log.clone() } else { normal::lines_shortened(&log) };
        compare(&format!("live-{}", live.name), &log, &short)
    });
    let wrong: Vec<_> = compared.filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), LIVE.len(), wrong.join("\n"));
}

#[test]
fn commands_that_run_a_program_print_what_they_always_did() {
    prepare();
    let compared = SESSIONS.iter().map(|session| {
        let full = session.outcome();
        compare(&format!("live-{}", session.name), &full, &normal::shortened(&full))
    });
    let wrong: Vec<_> = compared.filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), SESSIONS.len(), wrong.join("\n"));
}
