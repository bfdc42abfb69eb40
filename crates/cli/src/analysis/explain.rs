//! `aclshim explain`: a rule, a return code or a function, in words, without a network.

use aclshim_facts::code::{self, ACL_SUCCESS};
use aclshim_facts::rule::{Grade, Outcome, Rule};
use aclshim_facts::rules::RULES;
use aclshim_facts::{FUNCTIONS, Function};
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;
use strsim::osa_distance;

/// Arguments of `aclshim explain`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  aclshim explain BATCH-DEST-MAX\n  aclshim explain 107000\n  aclshim explain ACL_ERROR_RT_CONTEXT_NULL aclrtMemcpyBatch"
)]
pub struct Arguments {
    /// One JSON array instead of text
    #[arg(long)]
    json: bool,
    /// A rule (or how its name begins), a return code by number or name, or a function
    #[arg(required = true, value_name = "RULE|CODE|FUNCTION", allow_negative_numbers = true)]
    words: Vec<String>,
}

/// The rules with their examples; made from the rulebook, and a test sees to it that it is up to date.
static PAGE: &str = include_str!("../../../../docs/rules.md");

/// What a word stands for.
enum Meaning {
    Rule(&'static Rule),
    Code(i32),
    Function(Function),
    /// Nothing, and what may have been meant.
    Unknown(Vec<&'static str>),
}

/// Explains each word; fails if one is unknown.
pub fn main(arguments: Arguments) -> Result<ExitCode> {
    let meanings: Vec<_> = arguments.words.iter().map(|word| (word, Meaning::of(word))).collect();
    if arguments.json {
        let all: Vec<_> = meanings.iter().map(|(word, meaning)| meaning.json(word)).collect();
        println!("{}", serde_json::to_string_pretty(&all)?);
    } else {
        print(&meanings);
    }
    let is_known = !meanings.iter().any(|(_, meaning)| matches!(meaning, Meaning::Unknown(_)));
    Ok(if is_known { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(meanings: &[(&String, Meaning)]) {
    let mut between = "";
    for (word, meaning) in meanings {
        match meaning {
            Meaning::Unknown(near) => eprintln!("aclshim: {}", unknown(word, near)),
            _ => {
                print!("{between}{}", meaning.text());
                between = "\n";
            }
        }
    }
}

fn unknown(word: &str, near: &[&str]) -> String {
    let hint = match near {
        [] => "`aclshim rules` lists the rules".into(),
        [one] => format!("did you mean {one}?"),
        many => format!("did you mean one of {}?", many.join(", ")),
    };
    format!("{word} is no rule, no code and no function that is known; {hint}")
}

impl Meaning {
    fn of(word: &str) -> Self {
        if let Ok(number) = word.parse::<i32>() {
            let is_known = number == ACL_SUCCESS || code::name(number).is_some() || class(number).is_some();
            return if is_known { Meaning::Code(number) } else { Meaning::Unknown(near(word)) };
        }
        let folded = fold(word);
        let exact = |name: &str| fold(name) == folded;
        if let Some(rule) = RULES.iter().find(|rule| exact(rule.id)) {
            return Meaning::Rule(rule);
        }
        if let Some(function) = Function::ALL.iter().find(|function| exact(function.row().name)) {
            return Meaning::Function(*function);
        }
        if exact("ACL_SUCCESS") {
            return Meaning::Code(ACL_SUCCESS);
        }
        if let Some((code, ..)) =
            code::all().find(|(_, name, _)| exact(name) || exact(name.trim_start_matches("ACL_ERROR_")))
        {
            return Meaning::Code(code);
        }
        // How exactly one begins.
        let begins: Vec<_> = names().filter(|name| !folded.is_empty() && fold(name).starts_with(&folded)).collect();
        match begins[..] {
            [one] => Meaning::of(one),
            [] => Meaning::Unknown(near(&folded)),
            _ => Meaning::Unknown(begins),
        }
    }

    fn text(&self) -> String {
        match self {
            Meaning::Rule(rule) => rule_text(rule),
            Meaning::Code(code) => code_text(*code),
            Meaning::Function(function) => function_text(*function),
            Meaning::Unknown(_) => String::new(),
        }
    }

    fn json(&self, word: &str) -> Value {
        let mut explained = match self {
            Meaning::Rule(rule) => json!({
                "what": "rule",
                "id": rule.id,
                "severity": rule.severity.name(),
                "functions": names_of(rule),
                "codes": rule.codes.iter().map(|(code, _)| code).collect::<Vec<_>>(),
                "where": rule.scope.to_string(),
                "statement": rule.statement,
                "sources": rule.sources.iter().map(ToString::to_string).collect::<Vec<_>>(),
                "fix": rule.fix,
            }),
            Meaning::Code(code) => json!({
                "what": "code",
                "code": code,
                "name": code_name(*code),
                "meaning": meaning(*code),
                "rules": Rule::by_code(*code).map(|rule| rule.id).collect::<Vec<_>>(),
            }),
            Meaning::Function(function) => json!({
                "what": "function",
                "name": function.row().name,
                "summary": function.row().summary,
                "declaration": function.row().c_declaration(),
                "rules": rules_of(*function).map(|rule| rule.id).collect::<Vec<_>>(),
            }),
            Meaning::Unknown(near) => json!({ "what": "unknown", "near": near }),
        };
        explained["word"] = word.into();
        explained["text"] = self.text().into();
        explained
    }
}

fn names_of(rule: &Rule) -> Vec<&'static str> {
    rule.functions().map(|function| function.row().name).collect()
}

fn rules_of(function: Function) -> impl Iterator<Item = &'static Rule> {
    RULES.iter().copied().filter(move |rule| rule.applies_to(function))
}

fn code_name(code: i32) -> Option<&'static str> {
    if code == ACL_SUCCESS { Some("ACL_SUCCESS") } else { code::name(code) }
}

fn meaning(code: i32) -> Option<&'static str> {
    if code == ACL_SUCCESS { Some("the call was accepted") } else { code::meaning(code) }
}

/// What kind of code it is, where it has no entry: the vendor's first digit says so.
fn class(code: i32) -> Option<&'static str> {
    match code / 100_000 {
        1 => Some("an argument or a state that the caller can do something about"),
        2 => Some("something that is not supported here, or of which there is not enough"),
        3 => Some("a limit or a fault of the device's own work"),
        5 => Some("an internal error of the vendor's software, the driver or the device"),
        _ => None,
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

fn rule_text(rule: &Rule) -> String {
    let mut text = format!("{} (rule, {})\n\n{}\n\n", rule.id, rule.severity, sentence(rule.statement));
    let mut row = |name: &str, value: String| _ = writeln!(text, "{name:<12} {value}");
    for Grade { severity, when, .. } in rule.grades {
        row("severity", format!("{severity}: {when}"));
    }
    let functions = names_of(rule);
    row("functions", if functions.len() == FUNCTIONS.len() { "all".into() } else { functions.join(", ") });
    row("where", rule.scope.to_string());
    let said = |grade: &Grade| match grade.outcome {
        Outcome::Said(what) => Some(format!("{}: {what}", grade.severity)),
        _ => None,
    };
    let said: Vec<_> = rule.grades.iter().filter_map(said).collect();
    if rule.codes.is_empty() && said.is_empty() {
        row("returns", "0: the vendor accepts the call".into());
    }
    for (code, when) in rule.codes {
        row("returns", format!("{code} {} ({when})", code_name(*code).unwrap_or("?")));
    }
    for what in said {
        row("comes to", what);
    }
    row("fix", rule.fix.into());
    for source in rule.sources {
        row("source", source.to_string());
    }
    for (other, reason) in rule.implies {
        row("see also", format!("{other}: {reason}"));
    }
    let (bad, good) = examples(rule);
    let _ = write!(text, "\nBad:\n\n{}\nGood:\n\n{}", indented(bad), indented(good));
    text
}

/// The bad and the good calls of a rule, as C.
fn examples(rule: &Rule) -> (&'static str, &'static str) {
    let section = PAGE.split("\n## ").find(|section| section.split('\n').next() == Some(rule.id)).unwrap_or_default();
    let block = |title: &str| {
        let from = section.split_once(title).map_or("", |(_, from)| from);
        from.split_once("\n```").map_or("", |(block, _)| block)
    };
    (block("\nBad:\n```c\n"), block("\nGood:\n```c\n"))
}

fn indented(block: &str) -> String {
    block.lines().map(|line| format!("    {line}\n")).collect()
}

fn code_text(code: i32) -> String {
    let mut text = format!("{code} {} (return code)\n\n", code_name(code).unwrap_or("without a name here"));
    match (meaning(code), class(code)) {
        (Some(meaning), _) => text.push_str(&sentence(meaning)),
        (None, Some(class)) => {
            text.push_str(&sentence(&format!("not in the tables of this version; by its number: {class}")))
        }
        _ => {}
    }
    text.push('\n');
    if code == ACL_SUCCESS {
        text.push_str("\nA call on a stream may still fail later: the next synchronise of that stream returns it.\n");
        return text;
    }
    let rules: Vec<_> = Rule::by_code(code).collect();
    if rules.is_empty() {
        text.push_str(
            "\nNo rule predicts it: it does not come from the arguments of a copy alone. Look at the vendor's log\n",
        );
        text.push_str(
            "(~/ascend/log, or ASCEND_PROCESS_LOG_PATH) at the time of the call; `aclshim log` tells when that was.\n",
        );
        return text;
    }
    text.push_str("\nRules that predict it; `aclshim findings` says which of them a call breaks:\n\n");
    for rule in rules {
        let _ = writeln!(text, "  {:<22} {}", rule.id, sentence(rule.statement));
        let _ = writeln!(text, "  {:<22} Fix: {}", "", rule.fix);
    }
    text
}

fn function_text(function: Function) -> String {
    let row = function.row();
    let mut text =
        format!("{} (function)\n\n{}\n\n    {};\n\nIts rules:\n\n", row.name, row.summary, row.c_declaration());
    for rule in rules_of(function) {
        let _ = writeln!(text, "  {:<22} {:<12} {}", rule.id, rule.severity, sentence(rule.statement));
    }
    text
}

/// Everything that can be explained by a name.
fn names() -> impl Iterator<Item = &'static str> {
    let rules = RULES.iter().map(|rule| rule.id);
    rules.chain(FUNCTIONS.iter().map(|row| row.name)).chain(code::all().map(|(_, name, _)| name))
}

/// Letters and underscores as people mix them up.
fn fold(word: &str) -> String {
    word.trim().to_uppercase().replace('_', "-")
}

/// The names that are nearest to a word, if any is near.
fn near(word: &str) -> Vec<&'static str> {
    let folded = fold(word);
    // How it should begin is as good as the whole name, but for one letter.
    let from = |name: &str| {
        let name = fold(name);
        let begin = name.get(..folded.len()).map_or(usize::MAX, |begin| osa_distance(&folded, begin) + 1);
        osa_distance(&folded, &name).min(begin)
    };
    let mut all: Vec<_> = names().map(|name| (from(name), name)).collect();
    all.sort();
    let best = all.first().map_or(usize::MAX, |(distance, _)| *distance);
    let limit = (folded.len() / 3).max(2);
    all.into_iter()
        .filter(|(distance, _)| *distance <= limit && *distance <= best + 1)
        .map(|(_, name)| name)
        .take(4)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slip_of_the_finger_counts_one() {
        let cases =
            [("ALIGN-64", "ALIGN-64", 0), ("ALGIN-64", "ALIGN-64", 1), ("ALIGN64", "ALIGN-64", 1), ("", "AB", 2)];
        for (one, other, slips) in cases {
            assert_eq!((osa_distance(one, other), osa_distance(other, one)), (slips, slips), "{one} {other}");
        }
    }

    #[test]
    fn every_rule_has_a_bad_and_a_good_example() {
        for rule in RULES {
            let (bad, good) = examples(rule);
            assert!(bad.contains("aclrt") && good.contains("aclrt"), "{}", rule.id);
        }
    }
}
