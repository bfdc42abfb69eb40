//! What is made from the tables and committed must be what the tables make today.
//! `make header` and `make docs` write the files (`ACLSHIM_UPDATE=1`).

mod support;

#[path = "generated/log_schema.rs"]
mod log_schema;
#[path = "generated/pages.rs"]
mod pages;
#[path = "generated/rulebook.rs"]
mod rulebook;
#[path = "generated/seeds.rs"]
mod seeds;
#[path = "generated/trace_format.rs"]
mod trace_format;

use aclshim_facts::rule::{Phase, Step};
use aclshim_facts::rules::{Check, RULES, checklist};
use aclshim_facts::{FUNCTIONS, Function};
use std::fs;

#[track_caller]
fn is_fresh(path: &str, made: &str) {
    let file = support::root().join(path);
    if std::env::var_os("ACLSHIM_UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, made).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == made, "{path} is stale: run `make docs` and commit it");
}

#[test]
fn the_c_header_is_the_one_that_the_types_make() {
    let config = cbindgen::Config::from_file(support::root().join("cbindgen.toml")).expect("cbindgen.toml");
    let bindings = cbindgen::Builder::new()
        .with_src(support::root().join("src/harness.rs"))
        .with_config(config)
        .generate()
        .expect("a header");
    let mut made = Vec::new();
    bindings.write(&mut made);
    is_fresh("include/aclshim.h", &String::from_utf8(made).unwrap());
}

#[test]
fn the_pages_are_the_ones_that_the_tables_make() {
    an_id_keeps_its_number();
    for (name, text) in pages::pages() {
        is_fresh(&format!("docs/{name}"), &text);
    }
    is_fresh("docs/trace-format.md", &trace_format::trace_format_page());
    is_fresh("docs/log-schema.md", &log_schema::log_schema_page());
}

/// For the hosts that do something with every function: `EACH_FUNCTION(X)` is `X(name, (parameters), (arguments))` of each.
#[test]
fn the_list_of_functions_for_the_hosts_is_the_table() {
    let mut made = String::from("/* The function table. Made by `make docs`. */\n#define EACH_FUNCTION(X)");
    for row in FUNCTIONS {
        let parameters = row.c_declaration().split_once('(').map(|(_, rest)| format!("({rest}")).unwrap();
        let arguments: Vec<_> = row.arguments.iter().map(|argument| argument.name).collect();
        made += &format!(" \\\n    X({}, {parameters}, ({}))", row.name, arguments.join(", "));
    }
    is_fresh("tests/hosts/functions.h", &(made + "\n"));
}

/// Records hold numbers of rules, logs and settings hold ids: a rule of the committed page may not be changed, not even by
/// writing the page anew.
#[test]
fn an_id_keeps_its_number() {
    let page = fs::read_to_string(support::root().join("docs/rules.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | ["));
    let committed = rows.filter_map(|(number, rest)| Some((number.parse::<usize>().ok()?, rest.split(']').next()?)));
    let mut count = 0;
    for (number, id) in committed {
        assert_eq!(RULES.get(number).map(|rule| rule.id), Some(id), "rule {number} was {id}");
        count += 1;
    }
    assert!(count >= 64, "{count} rules are on the page");
}

/// The order decides which code a call returns that breaks several rules: a step of a new rule must not move the others.
#[test]
fn the_order_of_checks_is_the_one_that_the_steps_of_the_rules_make() {
    let mut text = String::new();
    for function in Function::ALL {
        let checklist = checklist(&function.call(&[]));
        text += &format!("{}\n", function.row().name);
        for phase in [Phase::Vendor, Phase::Items, Phase::Advice, Phase::Always] {
            let mut checks: Vec<_> = checklist.checks(phase, *function).map(check_text).collect();
            if phase == Phase::Items {
                let shape = function.call(&[]).shape();
                let is_item = |step: &Step| step.phase == phase && step.shapes.has(shape);
                checks
                    .extend(RULES.iter().filter(|rule| rule.steps.iter().any(is_item)).map(|rule| rule.id.to_owned()));
            }
            if !checks.is_empty() {
                text += &format!("  {phase:?}: {}\n", checks.join(", "));
            }
        }
    }
    is_fresh("crates/facts/check-order.txt", &text);
}

fn check_text(check: Check) -> String {
    match check {
        Check::Accept(point) => format!("{} accepted?", point.position),
        Check::Rule(rule, step) => {
            let extent = if step.part.is_some() { " in part" } else { "" };
            format!("{} {}{extent}", step.position, rule.id)
        }
    }
}

/// The page names tests as `file::test`, or whole files.
#[test]
fn the_tests_that_the_threat_model_names_exist() {
    let page = fs::read_to_string(support::root().join("docs/security.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| part"));
    let cells: Vec<_> = rows.filter_map(|row| row.rsplit(" | ").next()?.strip_suffix(" |")).collect();
    let names =
        cells.iter().flat_map(|cell| cell.split(", ")).filter_map(|name| name.strip_prefix('`')?.strip_suffix('`'));
    let mut count = 0;
    for name in names.filter(|name| !name.contains(' ')) {
        let (file, test) = name.split_once("::").unwrap_or((name, ""));
        let source = fs::read_to_string(support::root().join(format!("tests/{file}.rs")));
        let source = source.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(test.is_empty() || source.contains(&format!("#[test]\nfn {test}() {{")), "{name} is not there");
        count += 1;
    }
    assert!(count > 20, "{count} tests are named");
}
