//! docs/testing.md: every file of the page is written and every command of it run, from the first to the last, in an
//! empty folder; what the page shows as output is what is printed.
//!
//! A block of code whose first line names a file is that file; where it names one again, it is its new text. A block
//! `console` holds commands after `$ `, and parts of their output: each line must be printed, in that order; `…` stands
//! for anything, a line of it for any lines. `console fails` is one whose last command must fail.

#[path = "examples/copy.rs"]
mod copy;
mod support;

use copy::{Outside, copied, user};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use support::{has, root, target};

struct Block<'a> {
    info: &'a str,
    text: &'a str,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut pieces = page.split("\n```").skip(1);
    let mut found = Vec::new();
    while let (Some(piece), Some(_)) = (pieces.next(), pieces.next()) {
        let (info, text) = piece.split_once('\n').expect("a line");
        found.push(Block { info, text });
    }
    found
}

/// The file that a block is.
fn file_of<'a>(block: &Block<'a>) -> Option<&'a str> {
    let first = block.text.lines().next()?;
    let name = first.split([' ', ':']).find(|word| word.contains('.') && !word.starts_with('.'))?;
    let is_comment = ["/* ", "// ", "# "].iter().any(|mark| first.starts_with(mark));
    (is_comment && block.info != "console").then_some(name)
}

/// Whether `line` is what `shown` says.
fn is_like(line: &str, shown: &str) -> bool {
    let parts: Vec<_> = shown.split('…').collect();
    let [first, middle @ .., last] = &parts[..] else { return line == shown };
    let Some(rest) = line.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else { return false };
    let after = |rest: &str, part: &str| Some(rest.find(part)? + part.len());
    middle.iter().try_fold(rest, |rest, part| after(rest, part).map(|at| &rest[at..])).is_some()
}

#[test]
fn a_line_is_like_what_is_shown_of_it() {
    assert!(is_like("a b c", "a b c") && is_like("a b c", "a …") && is_like("a b c", "… c") && is_like("a b c", "a…c"));
    assert!(!is_like("a b c", "a b") && !is_like("a b c", "b…") && !is_like("a b c", "a…b") && !is_like("a", "a b"));
}

/// Runs the commands of a block with the exports before it; gives the exports of this one.
#[track_caller]
fn run(block: &Block, exports: &mut String, folder: &Path) {
    let mut lines = block.text.lines().peekable();
    while let Some(line) = lines.next() {
        let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("no command: {line}"));
        let command = command.replace("/path/to/aclshim", root().to_str().unwrap());
        let mut shown = Vec::new();
        while let Some(output) = lines.next_if(|line| !line.starts_with("$ ")) {
            shown.push(output);
        }
        if command.starts_with("export ") {
            *exports += &format!("{command}\n");
            continue;
        }
        let mut shell = user("bash", folder);
        let output =
            shell.env_remove("PKG_CONFIG_PATH").arg("-c").arg(format!("{exports}exec 2>&1\n{command}")).output();
        let output = output.expect("bash");
        let printed = String::from_utf8_lossy(&output.stdout);
        let must_fail = block.info == "console fails" && lines.peek().is_none();
        assert_eq!(!output.status.success(), must_fail, "{command}: {:?}\n{printed}", output.status);
        let mut rest = printed.lines();
        for line in shown.iter().filter(|line| **line != "…") {
            assert!(rest.any(|told| is_like(told, line)), "{command}\ndoes not print\n{line}\nbut\n{printed}");
        }
    }
}

/// The commands of a recipe for CI that do not fetch something first: that is done.
fn recipe<'a>(block: &Block<'a>) -> Vec<&'a str> {
    let lines = block.text.lines().map(|line| line.trim_start().trim_start_matches("- "));
    let lines = lines.map(|line| line.strip_prefix("run: ").unwrap_or(line));
    lines.filter(|line| line.contains("make -C ") && !line.contains("make -C aclshim build")).collect()
}

#[test]
fn every_command_of_the_page_does_what_the_page_says() {
    let test = "every_command_of_the_page_does_what_the_page_says";
    if !["bash", "pkg-config", "cmake", "python3", "c++"].iter().all(|tool| has(tool, test)) {
        return;
    }
    let page = fs::read_to_string(root().join("docs/testing.md")).unwrap();
    target("");
    let outside = Outside::new();
    let (mut exports, mut commands, mut recipes) = (String::new(), 0, 0);
    for block in blocks(&page) {
        if let Some(name) = file_of(&block) {
            fs::write(outside.0.join(name), block.text).unwrap();
        } else if block.info.starts_with("console") {
            commands += 1;
            run(&block, &mut exports, &outside.0);
        } else if block.info == "yaml" {
            let checkout = Outside::new();
            symlink(root(), checkout.0.join("aclshim")).unwrap();
            copied(&root().join("c-examples/testing"), &checkout.0.join("tests"));
            let commands = recipe(&block);
            assert_eq!(commands.len(), 1, "{commands:?}");
            let text = commands.iter().map(|command| format!("$ {command}\n")).collect::<String>();
            run(&Block { info: "console", text: &text }, &mut String::new(), &checkout.0);
            assert!(checkout.0.join("tests/test_kv.xml").exists() && checkout.0.join("tests/test_kv.sarif").exists());
            recipes += 1;
        }
    }
    assert_eq!(recipes, 2, "recipes for CI");
    assert!(commands >= 8, "{commands} blocks of commands");
}
