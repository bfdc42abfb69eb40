//! Whether the cases met everything that there is to meet.

use crate::configuration::PRODUCTS;
use crate::disagreements::{KNOWN, NEVER_HERE};
use crate::parent::{Played, seed};
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
    for rule in refusing() {
        writeln!(text, "{:8} refusals  {}", all.number("rule", rule), rule).expect("a string");
    }
    for known in KNOWN {
        writeln!(text, "{:8} known disagreements  {}: {}", all.number("known", known.name), known.name, known.reason)
            .expect("a string");
    }
    text
}

fn refusing() -> impl Iterator<Item = &'static str> {
    RULES.iter().filter(|rule| rule.severity == Severity::Error).map(|rule| rule.id)
}

/// What was never met and should have been, a sentence each.
pub fn blind_spots(runs: &[Played]) -> Vec<String> {
    let mut blind = Vec::new();
    for soc in PRODUCTS {
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
    for rule in refusing() {
        let is_met = all.number("rule", rule) > 0;
        let why_not = NEVER_HERE.iter().find(|(id, _)| *id == rule);
        match (is_met, why_not) {
            (false, None) => blind.push(format!("{rule} was never the reason of a refusal")),
            (true, Some((_, reason))) => blind.push(format!("{rule} was met, although: {reason}")),
            _ => {}
        }
    }
    let stale = KNOWN.iter().filter(|known| all.number("known", known.name) == 0);
    blind.extend(stale.map(|known| format!("the known disagreement {} was never met", known.name)));
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
