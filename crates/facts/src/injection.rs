//! Faults that are put into calls on purpose: which calls, when, and what is done to them.
//!
//! The words of a [`selector`](crate::selector), and beside them:
//!
//! | word | |
//! |---|---|
//! | `nth=3` | the third of these calls |
//! | `every=10` | the tenth, the twentieth, ... |
//! | `probability=0.01 seed=42` | one in a hundred, by chance: in every run with this seed the same calls (0 if none is named) |
//! | `times=2` | at most this often |
//! | `return=CODE` | the call is not forwarded, and returns this code |
//! | `then_return=CODE` | it is forwarded, and returns this code |
//! | `delay=5ms`, `delay_after=5ms` | it waits before it is forwarded, or before it returns |
//! | `fail_index=2` | this is written to `failIndex`, where the function has one |
//!
//! Several injections stand in one text with `;` between them. Each counts the calls that its selector means.

use crate::selector::Selector;
use crate::selector::words::{Nonsense, Word, split_from};
use crate::written;
use core::fmt;

#[cfg(test)]
mod tests;

/// One injection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injection {
    /// Which calls.
    pub selector: Selector,
    /// Which of the selected calls.
    pub when: When,
    /// Maximum number of calls that it is applied to.
    pub times: Option<u64>,
    /// What is done to them.
    pub what: What,
}

/// Which of the calls that a selector selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All of them.
    Always,
    /// The one with this number, from 1 on.
    Nth(u64),
    /// Each whose number is a multiple of this.
    Every(u64),
    /// Some by chance.
    Chance {
        /// The probability of each call.
        probability: Probability,
        /// The seed of the random numbers.
        seed: u64,
    },
}

/// A probability, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probability(u64);

/// The denominator of a [`Probability`]: an `f64` holds its numerators exactly.
const CERTAIN: u64 = 1 << 53;

/// What is done to a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct What {
    /// Returned instead of forwarding it.
    pub instead: Option<i32>,
    /// Returned after forwarding it.
    pub then: Option<i32>,
    /// Nanoseconds before the call is forwarded.
    pub delay_ns: u64,
    /// Nanoseconds before the call returns.
    pub delay_after_ns: u64,
    /// Written to `failIndex`.
    pub fail_index: Option<u64>,
}

/// The injections of a text, each as it can be read.
pub fn each(text: &[u8]) -> impl Iterator<Item = Result<Injection, Nonsense>> {
    let mut at = 0;
    text.split(|letter| *letter == b';').filter_map(move |part| {
        let begin = at;
        at += part.len() + 1;
        let is_blank = part.iter().all(u8::is_ascii_whitespace);
        (!is_blank).then(|| Injection::parse(part, begin))
    })
}

impl Injection {
    /// One injection, which begins at `base` in a longer text.
    fn parse(text: &[u8], base: usize) -> Result<Self, Nonsense> {
        let mut draft = Draft::default();
        let mut selector = Selector::EVERY;
        for word in split_from(text, base) {
            if !draft.take(&word)? {
                if word.key.is_some_and(|key| !Selector::KEYS.contains(&key)) {
                    return Err(word.nonsense("is a word of neither a selector nor an injection (docs/injecting.md)"));
                }
                selector.add(&word)?;
            }
        }
        let wrong = |why| {
            let begin = text.iter().take_while(|letter| letter.is_ascii_whitespace()).count();
            Err(Nonsense::of_part(base + begin, text.trim_ascii().len(), why))
        };
        if selector.asks_for_code() {
            return wrong("asks for a code, which nobody knows before the call is made");
        }
        let when = match (draft.nth, draft.every, draft.probability) {
            (None, None, None) => When::Always,
            (Some(nth), None, None) => When::Nth(nth),
            (None, Some(every), None) => When::Every(every),
            (None, None, Some(probability)) => When::Chance { probability, seed: draft.seed.unwrap_or(0) },
            _ => return wrong("has more than one of nth=, every= and probability="),
        };
        if draft.seed.is_some() && draft.probability.is_none() {
            return wrong("has a seed= without probability=");
        }
        if draft.instead.is_some() && draft.then.is_some() {
            return wrong("has both return= and then_return=");
        }
        let what = What {
            instead: draft.instead,
            then: draft.then,
            delay_ns: draft.delay.unwrap_or(0),
            delay_after_ns: draft.delay_after.unwrap_or(0),
            fail_index: draft.fail_index,
        };
        if what == What::default() {
            return wrong("does nothing: it has none of return=, then_return=, delay=, delay_after= and fail_index=");
        }
        Ok(Self { selector, when, times: draft.times, what })
    }

    /// Whether it is applied to the call with this number, from 1 on, among those that its selector selects. The answer depends
    /// on the number alone. [`times`](Self::times) is left to the caller where [`numbers`](Self::is_numbered) cannot tell.
    pub fn strikes(&self, number: u64) -> bool {
        let (is_hit, before) = match self.when {
            When::Always => (true, number - 1),
            When::Nth(nth) => (number == nth, 0),
            When::Every(every) => (number.is_multiple_of(every), number / every - u64::from(number >= every)),
            When::Chance { probability, seed } => (probability.holds(seed, number), 0),
        };
        is_hit && self.times.is_none_or(|times| before < times)
    }

    /// Whether [`strikes`](Self::strikes) respects the limit: the number says how often it was applied before.
    pub fn is_numbered(&self) -> bool {
        !matches!(self.when, When::Chance { .. })
    }
}

/// The words that were read.
#[derive(Default)]
struct Draft {
    nth: Option<u64>,
    every: Option<u64>,
    probability: Option<Probability>,
    seed: Option<u64>,
    times: Option<u64>,
    instead: Option<i32>,
    then: Option<i32>,
    delay: Option<u64>,
    delay_after: Option<u64>,
    fail_index: Option<u64>,
}

impl Draft {
    /// Takes a word; not one of a selector.
    fn take(&mut self, word: &Word<'_>) -> Result<bool, Nonsense> {
        const NUMBER: &str = "must be a number from 1 on";
        const CODE: &str = "must be a code, as in 207000 or ACL_ERROR_RT_FEATURE_NOT_SUPPORT";
        const SPAN: &str = "must be a time, as in 500ns, 20us, 3ms or 1s";
        let counted: fn(&[u8]) -> Option<u64> = |text| written::number(text).filter(|number| *number > 0);
        match word.key {
            Some(b"nth") => set(&mut self.nth, word, counted, NUMBER)?,
            Some(b"every") => set(&mut self.every, word, counted, NUMBER)?,
            Some(b"times") => set(&mut self.times, word, counted, NUMBER)?,
            Some(b"probability") => {
                set(&mut self.probability, word, Probability::parse, "must be a number from 0 to 1, as in 0.01")?;
            }
            Some(b"seed") => set(&mut self.seed, word, written::address, "must be a number")?,
            Some(b"return") => set(&mut self.instead, word, written::code, CODE)?,
            Some(b"then_return") => set(&mut self.then, word, written::code, CODE)?,
            Some(b"delay") => set(&mut self.delay, word, written::span, SPAN)?,
            Some(b"delay_after") => set(&mut self.delay_after, word, written::span, SPAN)?,
            Some(b"fail_index") => set(&mut self.fail_index, word, written::number, "must be a number")?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn set<T>(
    slot: &mut Option<T>,
    word: &Word<'_>,
    read: fn(&[u8]) -> Option<T>,
    must: &'static str,
) -> Result<(), Nonsense> {
    let value = read(word.value).ok_or_else(|| word.nonsense(must))?;
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(word.nonsense("stands there twice")),
    }
}

impl Probability {
    fn parse(text: &[u8]) -> Option<Self> {
        let number = core::str::from_utf8(text).ok()?.parse::<f64>().ok()?;
        (0.0..=1.0).contains(&number).then_some(Self((number * CERTAIN as f64) as u64))
    }

    /// Whether it holds for a number: drawn from the seed and the number alone, so that threads which take their numbers
    /// in another order get equal results.
    fn holds(self, seed: u64, number: u64) -> bool {
        // SplitMix64, at that position of its sequence.
        let mut drawn = seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        drawn = (drawn ^ drawn >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ drawn >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (drawn ^ drawn >> 31) >> 11 < self.0
    }
}

impl fmt::Display for Injection {
    /// The text of an equal injection.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.selector.fmt(f)?;
        match self.when {
            When::Always => {}
            When::Nth(nth) => write!(f, " nth={nth}")?,
            When::Every(every) => write!(f, " every={every}")?,
            When::Chance { probability, seed } => {
                write!(f, " probability={} seed={seed}", probability.0 as f64 / CERTAIN as f64)?;
            }
        }
        let What { instead, then, delay_ns, delay_after_ns, fail_index } = self.what;
        let mut number = |key: &str, value: Option<i128>, unit: &str| match value {
            Some(value) => write!(f, " {key}={value}{unit}"),
            None => Ok(()),
        };
        let span = |ns: u64| (ns > 0).then_some(ns.into());
        number("times", self.times.map(Into::into), "")?;
        number("return", instead.map(Into::into), "")?;
        number("then_return", then.map(Into::into), "")?;
        number("delay", span(delay_ns), "ns")?;
        number("delay_after", span(delay_after_ns), "ns")?;
        number("fail_index", fail_index.map(Into::into), "")
    }
}
