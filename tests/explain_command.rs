//! `aclshim explain`, and `aclshim completions`.

mod support;

use aclshim_facts::rule::Rule;
use aclshim_facts::rules::RULES;
use aclshim_facts::{FUNCTIONS, code};
use serde_json::Value;
use std::fs;
use std::process::Command;
use support::{aclshim, has, scratch};

/// What is explained, and the exit status.
fn explained(words: &[&str]) -> (Vec<Value>, Option<i32>) {
    let output = aclshim().args(["explain", "--json", "--"]).args(words).output().unwrap();
    (serde_json::from_slice(&output.stdout).expect("one JSON array"), output.status.code())
}

/// What is printed for people: output and errors.
fn printed(words: &[&str]) -> (String, String) {
    let output = aclshim().arg("explain").args(words).output().unwrap();
    [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).into()
}

#[test]
fn every_rule_is_explained_with_its_fix_its_sources_and_examples() {
    let ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    let (all, exit) = explained(&ids);
    assert_eq!((all.len(), exit), (RULES.len(), Some(0)));
    for (rule, told) in RULES.iter().zip(&all) {
        assert_eq!((&told["what"], &told["id"]), (&"rule".into(), &rule.id.into()));
        let text = told["text"].as_str().unwrap();
        let mut parts: Vec<String> = rule.sources.iter().map(ToString::to_string).collect();
        parts.extend([rule.fix.to_owned(), rule.statement[1..].to_owned(), "Bad:".into(), "Good:".into()]);
        parts.extend(rule.codes.iter().map(|(code, _)| code.to_string()));
        for part in parts {
            assert!(text.contains(&part), "{}: {part}\n{text}", rule.id);
        }
        assert!(text.matches("aclrt").count() >= 2 && !text.contains("```"), "{text}");
    }
}

#[test]
fn every_code_is_explained_by_number_and_by_name() {
    let numbers: Vec<String> = code::all().map(|(code, ..)| code.to_string()).collect();
    let names: Vec<&str> = code::all().map(|(_, name, _)| name).collect();
    let (by_number, exit) = explained(&numbers.iter().map(String::as_str).collect::<Vec<_>>());
    let (by_name, _) = explained(&names);
    assert!(exit == Some(0) && by_number.len() > 60);
    for ((number, name, meaning), (one, other)) in code::all().zip(by_number.iter().zip(&by_name)) {
        assert_eq!((&one["code"], &one["name"], &one["meaning"]), (&number.into(), &name.into(), &meaning.into()));
        assert_eq!(one["text"], other["text"]);
        let text = one["text"].as_str().unwrap();
        assert!(text.contains(&meaning[1..]), "{text}");
        for rule in Rule::by_code(number) {
            assert!(text.contains(rule.id) && text.contains(rule.fix), "{number}: {}", rule.id);
        }
        if Rule::by_code(number).next().is_none() {
            assert!(text.contains("the vendor's log"), "what to look at: {text}");
        }
    }
    let (text, _) = printed(&["107002", "0"]);
    assert!(text.contains("CONTEXT-MISSING") && text.contains("ACL_SUCCESS"), "{text}");
}

#[test]
fn a_code_that_is_in_no_table_is_told_by_its_kind_and_nonsense_is_not() {
    let (all, exit) = explained(&["507999"]);
    assert!(exit == Some(0) && all[0]["name"].is_null(), "{all:?}");
    assert!(all[0]["text"].as_str().unwrap().contains("internal error of the vendor"), "{all:?}");
    assert_eq!(explained(&["-7"]).1, Some(1));
    assert_eq!(explained(&["42"]).1, Some(1));
}

#[test]
fn every_function_is_explained_with_its_rules() {
    let names: Vec<&str> = FUNCTIONS.iter().map(|row| row.name).collect();
    let (all, exit) = explained(&names);
    assert_eq!((all.len(), exit), (FUNCTIONS.len(), Some(0)));
    for (row, told) in FUNCTIONS.iter().zip(&all) {
        let text = told["text"].as_str().unwrap();
        assert!(text.contains(&row.c_declaration()) && text.contains(row.summary), "{text}");
        let rules: Vec<_> = RULES.iter().filter(|rule| rule.functions().any(|it| it.row().name == row.name)).collect();
        assert!(!rules.is_empty() && rules.iter().all(|rule| text.contains(rule.id)), "{text}");
    }
}

#[test]
fn a_name_may_be_written_small_short_or_with_underscores() {
    for (word, meant) in
        [("align-64", "ALIGN-64"), ("ALIGN_64", "ALIGN-64"), ("align", "ALIGN-64"), ("Overlap", "OVERLAP")]
    {
        let (all, exit) = explained(&[word]);
        assert_eq!((&all[0]["id"], exit), (&meant.into(), Some(0)), "{word}");
    }
    for word in ["acl_error_rt_param_invalid", "RT_PARAM_INVALID"] {
        assert_eq!(explained(&[word]).0[0]["code"], 107_000, "{word}");
    }
    assert_eq!(explained(&["ACLRTMEMCPYASYNC"]).0[0]["name"], "aclrtMemcpyAsync", "a whole name, and how others begin");
}

#[test]
fn what_is_not_known_gets_the_nearest_names() {
    for (word, meant) in [
        ("ALGIN-64", "ALIGN-64"),
        ("BATCH-DESTMAX", "BATCH-DEST-MAX"),
        ("aclrtMemcopy", "aclrtMemcpy"),
        ("ACL_ERROR_RT_PARAM_INVALD", "ACL_ERROR_RT_PARAM_INVALID"),
        ("BATCH-INDEX", "BATCH-INDEX-ORDER"),
        ("algin", "ALIGN-64"),
    ] {
        let (all, exit) = explained(&[word]);
        assert_eq!(exit, Some(1), "{word}");
        assert!(all[0]["near"].as_array().unwrap().contains(&meant.into()), "{word}: {}", all[0]);
        let (_, said) = printed(&[word]);
        assert!(said.contains("did you mean") && said.contains(meant) && said.lines().count() == 1, "{said}");
    }
    let (text, said) = printed(&["ALIGN-64", "zzzzzzzzzzzz"]);
    assert!(text.contains("ALIGN-64 (rule") && said.contains("aclshim rules"), "{said}");
}

// ---- Help ----

/// The subcommands that the help names.
fn subcommands() -> Vec<String> {
    let help = aclshim().arg("--help").output().unwrap().stdout;
    let help = String::from_utf8(help).unwrap();
    let commands = help.split("Commands:\n").nth(1).unwrap().lines().take_while(|line| !line.is_empty());
    let names: Vec<String> = commands.map(|line| line.split_whitespace().next().unwrap().into()).collect();
    assert!(names.len() > 15, "{help}");
    names.into_iter().filter(|name| name != "help").collect()
}

#[test]
fn the_help_of_each_subcommand_has_an_example_of_it() {
    for name in subcommands() {
        let help = aclshim().args([&name, "--help"]).output().unwrap().stdout;
        let help = String::from_utf8(help).unwrap();
        let examples = help.split_once("Example").map_or("", |(_, examples)| examples);
        assert!(examples.contains(&format!("aclshim {name}")), "{help}");
    }
}

// ---- Completions and man pages ----

#[test]
fn bash_completes_a_subcommand_and_its_options() {
    let script = aclshim().args(["completions", "bash"]).output().unwrap();
    assert!(script.status.success());
    let file = scratch("completions").join("aclshim.bash");
    fs::write(&file, script.stdout).unwrap();
    let complete = r#"
        set -eu
        source "$0"
        words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _aclshim aclshim "${!#}" "${COMP_WORDS[COMP_CWORD-1]}"; echo "${COMPREPLY[@]}"; }
        words aclshim sta
        words aclshim doctor --j
        words aclshim completions z
        words aclshim completions ma
    "#;
    let output = Command::new("bash").args(["--norc", "-c", complete]).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "stat\n--json\nzsh\nman\n");
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = aclshim().args(["completions", shell]).output().unwrap();
        let text = String::from_utf8(script.stdout).unwrap();
        assert!(script.status.success() && text.contains("doctor") && text.contains("findings"), "{shell}");
    }
}

#[test]
fn each_subcommand_has_a_man_page_without_a_mistake() {
    let folder = scratch("man").join("man1");
    let written = aclshim().args(["completions", "man"]).arg(&folder).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let pages: Vec<String> =
        subcommands().iter().map(|name| format!("aclshim-{name}.1")).chain(["aclshim.1".into()]).collect();
    let is_read = has("groff", "each_subcommand_has_a_man_page_without_a_mistake");
    for page in &pages {
        let path = folder.join(page);
        let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{page}: {why}"));
        assert!(text.contains("NAME") && text.contains("SYNOPSIS") && text.contains("DESCRIPTION"), "{page}");
        // What reads such pages has nothing to say.
        if is_read {
            let read = Command::new("groff").args(["-man", "-ww", "-z", "-Tutf8"]).arg(&path).output().unwrap();
            assert!(
                read.status.success() && read.stderr.is_empty(),
                "{page}: {}",
                String::from_utf8_lossy(&read.stderr)
            );
        }
    }
    let no_folder = aclshim().args(["completions", "man"]).output().unwrap();
    assert_eq!(no_folder.status.code(), Some(2));
}
