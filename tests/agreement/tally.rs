//! What was met: calls by function, and how often each rule was the reason of a refusal.

use crate::case::Situation;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Counters by name. Written down as lines of `what name number`.
#[derive(Clone, Default, Debug)]
pub struct Tally(BTreeMap<(String, String), u64>);

impl Tally {
    fn add(&mut self, what: &str, name: &str, number: u64) {
        *self.0.entry((what.into(), name.into())).or_default() += number;
    }

    pub fn call(&mut self, function: &str, is_accepted: bool) {
        self.add("made", function, 1);
        self.add("accepted", function, u64::from(is_accepted));
    }

    pub fn rule(&mut self, refusal: &str) {
        self.add("rule", refusal, 1);
    }

    /// Where a call was made: the thread's context, how many captures were under way, and the mode it had exchanged to.
    pub fn situation(&mut self, situation: &Situation) {
        self.add("context", &format!("{:?}", situation.context), 1);
        self.add("captures", &situation.captures.len().to_string(), 1);
        self.add("exchanged", &situation.exchanged.to_string(), 1);
    }

    /// All of a sort, by name.
    pub fn named(&self, what: &str) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().filter(move |((sort, _), _)| sort == what).map(|((_, name), number)| (name.as_str(), *number))
    }

    /// A disagreement of the table was met.
    pub fn known(&mut self, name: &str) {
        self.add("known", name, 1);
    }

    pub fn own_calls(&mut self, number: u64) {
        self.add("own", "calls", number);
    }

    pub fn number(&self, what: &str, name: &str) -> u64 {
        self.0.get(&(what.into(), name.into())).copied().unwrap_or_default()
    }

    /// All of a sort.
    pub fn total(&self, what: &str) -> u64 {
        self.0.iter().filter(|((sort, _), _)| sort == what).map(|(_, number)| number).sum()
    }

    pub fn merge(&mut self, other: &Self) {
        for ((what, name), number) in &other.0 {
            self.add(what, name, *number);
        }
    }

    pub fn write(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, ((what, name), number)| {
            writeln!(text, "{what} {name} {number}").expect("a string");
            text
        })
    }

    pub fn read(text: &str) -> Self {
        let mut tally = Self::default();
        for line in text.lines() {
            let mut parts = line.split(' ');
            if let (Some(what), Some(name), Some(Ok(number))) =
                (parts.next(), parts.next(), parts.next().map(str::parse))
            {
                tally.add(what, name, number);
            }
        }
        tally
    }
}
