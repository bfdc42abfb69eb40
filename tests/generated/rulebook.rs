//! The page of all rules, made from their entries: one section a rule with a bad and a good call as C, then what became
//! of each sentence of the original pages.

use crate::seeds::{Coverage, PAGES};
use aclshim_facts::abi::{aclrtMemLocation, aclrtMemcpyBatchAttr};
use aclshim_facts::code;
use aclshim_facts::message::value;
use aclshim_facts::rules::RULES;
use aclshim_facts::rules::case::{self, BLOCKS, Case, Scene};
use aclshim_facts::rules::rule::{Grade, Outcome, Rule, Severity};
use aclshim_facts::rules::world::{RunMode, Stream};
use std::fmt::Write;

const SEVERITIES: &[(Severity, &str)] = &[
    (Severity::Error, "the vendor refuses the call; `ACLSHIM_MODE=enforce` refuses it first"),
    (Severity::Violation, "documented, or plainly wrong, and not checked by the runtime: the call goes through"),
    (Severity::Perf, "correct, and slower than it looks"),
    (Severity::Portability, "fine here; refused on, or not promised by, another product, form or release"),
];

/// The body of the page, below its title.
pub fn body() -> String {
    let mut page = String::from(
        "What the vendor's documents, header, runtime and driver demand of a call, and what the shim looks for. Line \
         numbers are of the public sources (runtime 681ef7610, driver ef377e9). A rule whose facts are not known says \
         nothing. Ids and numbers are never changed or reused.\n\n| severity | meaning |\n|---|---|\n",
    );
    for (severity, meaning) in SEVERITIES {
        let _ = writeln!(page, "| {severity} | {meaning} |");
    }
    page.push_str("\n| number | rule | severity | demands |\n|---|---|---|---|\n");
    for rule in RULES {
        let link = rule.id.to_lowercase();
        let _ = writeln!(page, "| {} | [{}](#{link}) | {} | {} |", rule.number, rule.id, rule.severity, rule.statement);
    }
    for rule in RULES {
        section(&mut page, rule);
    }
    sentences(&mut page);
    page
}

fn section(page: &mut String, rule: &Rule) {
    let _ = write!(page, "\n## {}\n\n{}.\n\n", rule.id, capital(rule.statement));
    let _ = writeln!(page, "- Severity: {}", severity(rule));
    let functions: Vec<_> = rule.functions().map(|function| function.row().name).collect();
    let all = functions.len() == aclshim_facts::FUNCTIONS.len();
    let _ = writeln!(page, "- Functions: {}", if all { "all".into() } else { functions.join(", ") });
    let _ = writeln!(page, "- Where: {}", rule.scope);
    match rule.codes {
        [] if rule.grades.iter().any(|grade| matches!(grade.outcome, Outcome::Said(_))) => {}
        [] => page.push_str("- The vendor returns: 0\n"),
        codes => {
            let codes = codes.iter().map(|(code, when)| {
                let name = code::name(*code).unwrap_or("?");
                format!("{code} {name} ({when})")
            });
            let _ = writeln!(page, "- The vendor returns: {}", codes.collect::<Vec<_>>().join("; "));
        }
    }
    for grade in rule.grades {
        if let Outcome::Said(what) = grade.outcome {
            let _ = writeln!(page, "- What comes of a {}: {what}", grade.severity);
        }
    }
    let _ = writeln!(page, "- Fix: {}", rule.fix);
    for source in rule.sources {
        let _ = writeln!(page, "- Source, {source}");
    }
    for (id, reason) in rule.implies {
        let _ = writeln!(page, "- A call that breaks it may break {id} too: {reason}");
    }
    for (word, breaks) in [("Bad", true), ("Good", false)] {
        let cases: Vec<_> = rule.cases.iter().filter(|case| case.breaks == breaks).map(c_text).collect();
        let _ = write!(page, "\n{word}:\n```c\n{}\n```\n", cases.join("\n"));
    }
}

fn severity(rule: &Rule) -> String {
    if rule.grades.is_empty() {
        return rule.severity.to_string();
    }
    let grades = rule.grades.iter().map(|Grade { severity, when, .. }| match *when {
        "always" => severity.to_string(),
        when => format!("{severity} ({when})"),
    });
    grades.collect::<Vec<_>>().join("; ")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// What differs from an ordinary world, for people.
fn circumstances(scene: &Scene, has_stream: bool) -> Vec<String> {
    let plain = Scene::PLAIN;
    let mut said = Vec::new();
    let mut say = |differs: bool, text: String| said.extend(differs.then_some(text));
    say(scene.soc != plain.soc, format!("on {}", scene.soc.unwrap_or("an unknown product")));
    say(scene.run_mode == Some(RunMode::RootComplex), "in the Ascend RC form".into());
    if let Some(release) = scene.cann {
        say(scene.cann != plain.cann, format!("CANN {}.{}", release.major, release.minor));
    }
    say(scene.tells_pageable == Some(false), "a driver that cannot tell pageable memory".into());
    say(scene.is_open == Some(false), "no device is open".into());
    say(scene.has_context == Some(false), "the thread has no context".into());
    say(scene.has_peer_access == Some(false), "the devices have no access to each other".into());
    say(scene.is_capture_in_the_way == Some(true), "a capture is under way".into());
    if has_stream {
        say(matches!(scene.stream, Stream::Foreign { .. }), "the stream is another context's".into());
        say(scene.stream == Stream::Own { is_captured: true }, "the stream is being captured".into());
        say(scene.stream == Stream::Invalid, "the stream was destroyed".into());
    }
    said
}

/// A case as C text.
pub fn c_text(case: &Case) -> String {
    let row = case.function.row();
    let call = case.function.call(case.words);
    let mut said = vec![case.says.to_owned()];
    said.extend(circumstances(&case.scene, call.stream.is_some()));
    let mut text = format!("// {}\n", said.join("; "));
    arrays(&mut text, case);
    let arguments = row.arguments.iter().zip(case.words).map(|(argument, word)| match argument.name {
        "dsts" | "srcs" | "sizes" | "destMaxs" | "attrs" | "attrsIndexes" if *word != 0 => argument.name.to_owned(),
        "failIndex" | "descSize" if *word != 0 => format!("&{}", argument.name),
        _ => named(argument.c_type, *word),
    });
    let _ = write!(text, "{}({});", row.name, arguments.collect::<Vec<_>>().join(", "));
    text
}

/// A word, by the name of the memory that it points into.
fn named(c_type: &str, word: u64) -> String {
    let is_pointer = c_type.contains('*') || c_type == "aclrtStream";
    let block = BLOCKS.iter().find(|(_, start, size, _)| (*start..start + size).contains(&word));
    match (word, block) {
        _ if !is_pointer => value(c_type, word),
        (case::STREAM, _) => "stream".into(),
        (case::SYMBOL, _) => "&variable".into(),
        (case::ARRAY, _) => "&config".into(),
        (_, Some((name, start, ..))) if word == *start => (*name).into(),
        (_, Some((name, start, ..))) => format!("{name} + {}", word - start),
        _ => value(c_type, word),
    }
}

fn arrays(text: &mut String, case: &Case) {
    let row = case.function.row();
    if !row.arguments.iter().any(|argument| argument.name == "dsts") {
        return;
    }
    let scene = &case.scene;
    let pointers = |words: &[u64]| words.iter().map(|word| named("void *", *word)).collect::<Vec<_>>().join(", ");
    let numbers = |words: &[usize]| words.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let attrs: Vec<_> = scene.attrs.iter().map(attribute).collect();
    let _ = writeln!(text, "void *dsts[] = {{{}}}, *srcs[] = {{{}}};", pointers(scene.dsts), pointers(scene.srcs));
    let _ =
        writeln!(text, "size_t destMaxs[] = {{{}}}, sizes[] = {{{}}};", numbers(scene.dst_maxs), numbers(scene.sizes));
    let _ = writeln!(text, "aclrtMemcpyBatchAttr attrs[] = {{{}}};", attrs.join(", "));
    let _ = writeln!(text, "size_t attrsIndexes[] = {{{}}};", numbers(scene.attr_indexes));
}

fn attribute(attr: &aclrtMemcpyBatchAttr) -> String {
    let location = |location: aclrtMemLocation| {
        let names = ["HOST", "DEVICE", "UNREGISTERED", "MANAGED", "HOST_NUMA"];
        let name = usize::try_from(location.type_).ok().and_then(|at| names.get(at));
        let name = name.map_or(location.type_.to_string(), |name| format!("ACL_MEM_LOCATION_TYPE_{name}"));
        format!("{{{}, {name}}}", location.id)
    };
    let reserved = attr.rsv.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    let reserved = if attr.rsv == [0; 16] { "0".into() } else { reserved };
    format!("{{{}, {}, {{{reserved}}}}}", location(attr.dstLoc), location(attr.srcLoc))
}

fn sentences(page: &mut String) {
    page.push_str("\n# The original pages, sentence by sentence\n");
    for seed in PAGES {
        let _ = write!(page, "\n## {}\n\n| sentence | rules |\n|---|---|\n", seed.title);
        for sentence in seed.sentences {
            let coverage = match sentence.coverage {
                Coverage::Rules(ids) => {
                    let links = ids.iter().map(|id| format!("[{id}](#{})", id.to_lowercase()));
                    links.collect::<Vec<_>>().join(", ")
                }
                Coverage::NoRestriction(reason) => format!("no restriction: {reason}"),
            };
            let _ = writeln!(page, "| {} | {coverage} |", sentence.text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_reads_as_c() {
        let rule = Rule::by_id("ALIGN-64").unwrap();
        assert_eq!(
            c_text(&rule.cases[1]),
            "// 16 bytes off, from the host; CANN 8.5\n\
             aclrtMemcpyAsync(device, 64, pinned + 16, 64, ACL_MEMCPY_HOST_TO_DEVICE, stream);"
        );
    }

    #[test]
    fn no_cell_of_a_table_breaks_its_table() {
        for rule in RULES {
            assert!(!rule.statement.contains('|'), "{}", rule.id);
        }
        for line in body().lines().filter(|line| line.starts_with('|')) {
            assert!(line.ends_with('|') && !line.contains("| |"), "{line}");
        }
    }
}
