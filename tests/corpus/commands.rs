//! The commands that are run on the corpus.

use crate::runs;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Commands on a copy of some runs, one after the other.
pub struct Script {
    /// How its expected output is called.
    pub name: String,
    runs: Vec<String>,
    lines: Vec<String>,
}

/// All of them.
pub fn scripts() -> Vec<Script> {
    let mut all: Vec<_> = runs::names().iter().map(|run| of_run(run)).collect();
    all.extend(others());
    all
}

/// What is read of every run. The folder of a run is the folder of its rings, too.
fn of_run(run: &str) -> Script {
    let mut lines = vec![];
    for reading in [
        "stat",
        "stat --json",
        "stat --top 2",
        "findings",
        "findings --json",
        "findings --baseline",
        "findings --sarif",
        "log",
        "log --json",
        "report -o -",
        "export --format csv -o -",
        "export --format jsonl -o -",
        "export --format chrome -o -",
        "export --format perfetto -o -",
        "export --format parquet -o lake",
        "verify",
        "verify --json",
        "verify --apart --json",
        "clean --dry-run",
        "clean --dry-run --force --older-than 30d",
    ] {
        lines.push(format!("{reading} {run}/out"));
    }
    // Each file by itself.
    for command in ["stat --json", "findings --json", "log --json", "verify --json"] {
        lines.push(format!("{command} FILES"));
    }
    // What is written anew, and what is read of that.
    lines.push(format!("merge {run}/out -o merged"));
    lines.extend(["stat --json", "findings --json", "log --json", "verify"].map(|command| format!("{command} merged")));
    lines.push(format!("clean --force --older-than 30d {run}/out"));
    lines.push(format!("stat --json {run}/out"));
    Script { name: run.to_owned(), runs: vec![run.to_owned()], lines }
}

fn script(name: &str, runs: &[&str], lines: &[&str]) -> Script {
    Script {
        name: name.to_owned(),
        runs: runs.iter().map(|run| run.to_string()).collect(),
        lines: lines.iter().map(|line| line.to_string()).collect(),
    }
}

fn others() -> Vec<Script> {
    let all = runs::names();
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    let rings: Vec<_> = all.iter().copied().filter(|run| has_rings(run)).collect();
    let recovered: Vec<_> = rings
        .iter()
        .flat_map(|run| {
            let mut lines = vec![format!("recover --out recovered-{run} {run}")];
            for command in ["stat --json", "findings --json", "log --json"] {
                lines.push(format!("{command} recovered-{run}"));
            }
            lines
        })
        .collect();
    vec![
        script(
            "_filters",
            &["forms", "scopes", "rules"],
            &[
                "log --function *Async forms/out",
                "log --kind HOST_TO_DEVICE forms/out",
                "log --larger 4096 --smaller 64K forms/out",
                "log --longer 3us --shorter 1s rules/out",
                "log --code 107000 --json rules/out",
                "log --code ACL_ERROR_INVALID_PARAM rules/out",
                "log --failed rules/out",
                "log --rule ALIGN-64 rules/out",
                "log --rule any --json rules/out",
                "log --pid 1 forms/out scopes/out",
                "log --thread 1 forms/out",
                "log --stream 0 forms/out",
                "log --stream-name copies scopes/out",
                "log --scope prefill scopes/out",
                "log --scope pre* --json scopes/out",
                "log --from 2025-11-17T00:00 --to 2025-11-18T00:00 scopes/out",
                "log --from 2026-01-01T00:00 scopes/out",
                "log --rule NO-SUCH-RULE rules/out",
                "log --code x rules/out",
                "stat nowhere",
                "findings nowhere",
                "log nowhere",
                "export --format csv -o - nowhere",
                "report -o - nowhere",
                "verify nowhere",
                "diff nowhere rules/out",
                "merge nowhere -o merged",
            ],
        ),
        script(
            "_several",
            &all,
            &[
                "stat ALL",
                "stat --json ALL",
                "findings --json ALL",
                "findings --sarif ALL",
                "log --json ALL",
                "report -o - ALL",
                "export --format jsonl -o - ALL",
                "export --format perfetto -o - ALL",
                "verify ALL",
                "verify --json ALL",
                "merge ALL -o merged",
                "stat --json merged",
                "verify merged",
            ],
        ),
        script(
            "_diff",
            &["threads", "threads_more", "kv_offload", "batch", "batch_items", "rules", "rules_ring", "lost", "scopes"],
            &[
                "diff threads/out threads/out",
                "diff threads/out threads_more/out",
                "diff --json threads/out threads_more/out",
                "diff threads_more/out threads/out",
                "diff kv_offload/out batch/out",
                "diff --json kv_offload/out batch/out",
                "diff batch/out batch_items/out",
                "diff rules/out rules_ring/out",
                "diff --json rules/out rules_ring/out",
                "diff lost/out scopes/out",
            ],
        ),
        Script {
            name: "_recover".to_owned(),
            runs: rings.iter().map(|run| run.to_string()).collect(),
            lines: recovered,
        },
        script(
            "_recover_damaged",
            &["damaged_cut", "damaged_flipped", "damaged_foreign"],
            &[
                "recover --out mended-cut damaged_cut/out",
                "verify --json mended-cut",
                "stat --json mended-cut",
                "recover --out mended-flipped FILES",
                "verify --json mended-flipped",
                "stat --json mended-flipped",
            ],
        ),
        script(
            "_tables",
            &[],
            &[
                "rules",
                "rules --json",
                "explain RULES",
                "explain --json RULES",
                "explain 0 100000 107000 107002 107017 207000 507899 123456",
                "explain --json ACL_ERROR_RT_CONTEXT_NULL aclrtMemcpyBatch",
                "explain aclrtMemcpyAsyncWithCondition aclrtMemset BATCH nonsense",
                "config",
                "config --json",
                "config --template",
                "config --config settings.toml",
                "config --json --config settings.toml",
                "config --config nonsense.toml",
                "config --config missing.toml",
                "export --format csv --columns -o - x",
                "export --format parquet --columns -o - x",
            ],
        ),
        script(
            "_help",
            &[],
            &[
                "help",
                "--help",
                "--version",
                "nonsense",
                "stat",
                "run --help",
                "test --help",
                "collect --help",
                "doctor --help",
                "dropin --help",
                "log --help",
                "stat --help",
                "findings --help",
                "rules --help",
                "explain --help",
                "config --help",
                "report --help",
                "export --help",
                "export -h",
                "recover --help",
                "verify --help",
                "clean --help",
                "diff --help",
                "merge --help",
                "completions --help",
                "completions bash",
                "completions zsh",
                "completions fish",
            ],
        ),
    ]
}

fn has_rings(run: &str) -> bool {
    let files = fs::read_dir(crate::root().join("tests/corpus/runs").join(run)).unwrap().flatten();
    files.map(|file| file.path()).any(|path| path.to_string_lossy().ends_with(".ring.packed"))
}

const SETTINGS: &str =
    "mode = \"enforce\"\nrules = \"ALIGN-64=off\"\nring_size = \"1M\"\nbatch_items = 8\nas = \"Ascend310P3\"\n";
const NONSENSE: &str = "mode = \"both\"\nring_size = \"9\"\nno_such_key = 1\nbatch_items = \"many\"\n[table]\n";

impl Script {
    /// Every command with what it printed and how it ended.
    pub fn outcome(&self, command: &Path) -> String {
        let runs: Vec<_> = self.runs.iter().map(String::as_str).collect();
        let folder = runs::copied(&self.name, &runs);
        fs::write(folder.join("settings.toml"), SETTINGS).unwrap();
        fs::write(folder.join("nonsense.toml"), NONSENSE).unwrap();
        let rules = match self.lines.iter().any(|line| line.contains("RULES")) {
            true => rules(command, &folder),
            false => Vec::new(),
        };
        let files = files(&folder);
        let mut all = String::new();
        for line in &self.lines {
            let arguments: Vec<String> = line
                .split(' ')
                .flat_map(|word| match word {
                    "FILES" => files.clone(),
                    "ALL" => self.runs.iter().map(|run| format!("{run}/out")).collect(),
                    "RULES" => rules.clone(),
                    word => vec![word.to_owned()],
                })
                .collect();
            all.push_str(&outcome(command, &folder, line, &arguments, &runs));
        }
        fs::remove_dir_all(&folder).unwrap();
        all
    }
}

/// The command with an environment that says nothing.
fn prepared(command: &Path, folder: &Path) -> Command {
    let mut command = Command::new(command);
    command.env_clear().envs([("PATH", "/usr/bin:/bin"), ("TZ", "UTC"), ("LC_ALL", "C"), ("COLUMNS", "100")]);
    command.env("HOME", folder).current_dir(folder).stdin(Stdio::null());
    command
}

fn outcome(command: &Path, folder: &Path, line: &str, arguments: &[String], runs: &[&str]) -> String {
    let mut command = prepared(command, folder);
    // Of several, the rings of all would have to be in one folder: they are given as files then.
    let rings = if let [run] = runs { folder.join(run) } else { folder.join("no-rings") };
    let output = command.env("ACLSHIM_RING_DIR", rings).args(arguments).output().expect("aclshim");
    let normal = |bytes: &[u8]| {
        let is_packets = line.contains("perfetto") && bytes.first() == Some(&0x0a);
        let text: String = match std::str::from_utf8(bytes) {
            Ok(text) if !is_packets => text.to_owned(),
            _ => format!("[{} bytes, digest {:016x}]\n", bytes.len(), crate::normal::digest(bytes)),
        };
        let path = folder.to_str().expect("a path that is text");
        // In a URI a blank is escaped.
        let text = text.replace(path, "/corpus").replace(&path.replace(' ', "%20"), "/corpus");
        let text = if text.is_empty() || text.ends_with('\n') { text } else { text + "\n[no newline]\n" };
        match line {
            "--version" => text.replace(env!("CARGO_PKG_VERSION"), "VERSION"),
            line if line.contains("--sarif") => text.replace(env!("CARGO_PKG_VERSION"), "VERSION"),
            _ => text,
        }
    };
    let (out, err) = (normal(&output.stdout), normal(&output.stderr));
    let mut all = format!("$ aclshim {line}\n{out}");
    if !err.is_empty() {
        all.push_str("[standard error]\n");
        all.push_str(&err);
    }
    if line.contains("-o lake") {
        for path in files_below(&folder.join("lake")) {
            let bytes = fs::read(&path).unwrap();
            // The name of the file holds the time and the process of the export.
            let path = path.strip_prefix(folder).unwrap().parent().unwrap().display();
            all.push_str(&format!("[{path}: {} bytes, digest {:016x}]\n", bytes.len(), crate::normal::digest(&bytes)));
        }
    }
    all.push_str(&format!(
        "[exit {}]\n",
        output.status.code().map_or("by a signal".to_owned(), |code| code.to_string())
    ));
    all
}

/// All rules, by their names.
fn rules(command: &Path, folder: &Path) -> Vec<String> {
    let output = prepared(command, folder).args(["rules", "--json"]).output().expect("aclshim rules");
    let rules: serde_json::Value = serde_json::from_slice(&output.stdout).expect("an array");
    rules.as_array().expect("an array").iter().map(|rule| rule["id"].as_str().expect("an id").to_owned()).collect()
}

/// All recorded files below a folder, by their names in it.
fn files(folder: &Path) -> Vec<String> {
    let paths = files_below(folder);
    let names = paths.iter().map(|path| path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
    names.filter(|name| [".acltrace", ".ring"].iter().any(|kind| name.ends_with(kind))).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
