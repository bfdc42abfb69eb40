//! Whether the cases met everything that there is to meet.

use crate::case::Context;
use crate::configuration::products;
use crate::disagreements::{KNOWN, NEVER_HERE};
use crate::parent::{Played, is_whole, seed};
use crate::tally::Tally;
use aclshim_facts::Function;
use aclshim_facts::product::Product;
use aclshim_facts::rule::Severity;
use aclshim_facts::rules::RULES;
use std::fmt::Write;

fn sum<'a>(runs: impl IntoIterator<Item = &'a Played>) -> Tally {
    runs.into_iter().fold(Tally::default(), |mut sum, run| {
        sum.merge(&run.tally);
        sum
    })
}

/// The number of calls that a run makes at least.
const LEAST: u64 = 100_000;

/// A known disagreement is at most one in this many calls.
const MOST_KNOWN: u64 = 20;

fn made(all: &Tally) -> u64 {
    all.total("made")
}

/// What was met, in figures.
pub fn table(runs: &[Played]) -> String {
    let all = sum(runs);
    let (made, accepted) = (all.total("made"), all.total("accepted"));
    let mut text = format!("seed {}: {made} calls in {} configurations, {accepted} accepted\n", seed(), runs.len());
    for function in Function::ALL {
        let name = function.row().name;
        let (made, accepted) = (all.number("made", name), all.number("accepted", name));
        writeln!(text, "{made:8} calls {accepted:8} accepted  {name}").expect("a string");
    }
    for (rule, code) in refusals() {
        writeln!(text, "{:8} refusals  {rule} {code}", all.number("rule", &refusal(rule, code))).expect("a string");
    }
    for what in ["context", "captures", "exchanged"] {
        for (name, number) in all.named(what) {
            writeln!(text, "{number:8} calls  {what} {name}").expect("a string");
        }
    }
    for known in KNOWN {
        writeln!(text, "{:8} known disagreements  {}: {}", all.number("known", known.name), known.name, known.reason)
            .expect("a string");
    }
    text
}

/// Every rule that refuses calls, with each of its codes.
fn refusals() -> impl Iterator<Item = (&'static str, i32)> {
    let refusing = RULES.iter().filter(|rule| rule.severity == Severity::Error);
    refusing.flat_map(|rule| rule.codes.iter().map(|(code, _)| (rule.id, *code)))
}

/// How a refusal is counted.
pub fn refusal(rule: &str, code: i32) -> String {
    format!("{rule}:{code}")
}

/// What was never met and should have been, a sentence each.
pub fn blind_spots(runs: &[Played]) -> Vec<String> {
    let mut blind = Vec::new();
    for soc in products() {
        let tally = sum(runs.iter().filter(|run| run.configuration.soc == soc));
        let product = Product::of(soc).expect("a product that we know");
        for function in Function::ALL {
            let name = function.row().name;
            if has(product, *function) && tally.number("accepted", name) == 0 {
                blind.push(format!("{name} was never accepted on {soc}"));
            }
        }
    }
    let all = sum(runs);
    for (rule, code) in refusals() {
        let is_met = all.number("rule", &refusal(rule, code)) > 0;
        let why_not = NEVER_HERE.iter().find(|(id, of, _)| (*id, *of) == (rule, code));
        match (is_met, why_not) {
            (false, None) => blind.push(format!("{rule} was never the reason of a refusal with {code}")),
            (true, Some((_, _, reason))) => blind.push(format!("{rule} was met with {code}, although: {reason}")),
            _ => {}
        }
    }
    // Every sort of context, with and without captures, and in every mode.
    let contexts = Context::ALL.into_iter().chain([Context::None]).map(|context| ("context", format!("{context:?}")));
    let captures = (0..=1).map(|count| ("captures", count.to_string()));
    let modes = (0..=2).map(|mode| ("exchanged", mode.to_string()));
    for (what, name) in contexts.chain(captures).chain(modes) {
        if all.number(what, &name) < made(&all) / 100 {
            blind.push(format!("fewer than one call in a hundred was made with {what} {name}"));
        }
    }
    if is_whole() && made(&all) < LEAST {
        blind.push(format!("{} calls were made, and {LEAST} are promised", made(&all)));
    }
    for known in KNOWN {
        let met = all.number("known", known.name);
        if met == 0 || met > made(&all) / MOST_KNOWN {
            blind.push(format!("the known disagreement {} was met {met} times: never, or too often", known.name));
        }
    }
    blind
}

/// Whether the product accepts the function at all.
fn has(product: &Product, function: Function) -> bool {
    let name = function.row().name;
    if name.contains("Batch") {
        product.has_batch
    } else if name.ends_with("WithOffset") {
        product.has_offset
    } else if name.contains("Desc") {
        product.has_descriptor
    } else {
        true
    }
}
