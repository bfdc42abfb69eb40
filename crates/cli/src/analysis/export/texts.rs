//! Interning of texts that recur: each is stored once and identified by a number.

use std::collections::HashMap;
use std::sync::Arc;

/// The number of a text in [`Texts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Text(u32);

/// All texts: names of machines, programs, functions, modules. There are few of them, however long the trace.
#[derive(Default)]
pub struct Texts {
    numbers: HashMap<Arc<str>, Text>,
    all: Vec<Arc<str>>,
}

impl Text {
    /// Its number, from 0 on.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

impl Texts {
    /// The number of a text.
    pub fn intern(&mut self, text: &str) -> Text {
        if let Some(known) = self.numbers.get(text) {
            return *known;
        }
        let (number, text) = (Text(self.all.len() as u32), Arc::<str>::from(text));
        self.all.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    /// Interns a text; an empty one is no text.
    pub fn intern_if_any(&mut self, text: &str) -> Option<Text> {
        (!text.is_empty()).then(|| self.intern(text))
    }

    /// The text with this number.
    pub fn get(&self, text: Text) -> &str {
        &self.all[text.number()]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Texts;

    #[test]
    fn a_text_has_one_number() {
        let mut texts = Texts::default();
        let [a, b, again] = ["a", "b", "a"].map(|text| texts.intern(text));
        assert!(a == again && a != b && texts.len() == 2);
        assert_eq!((texts.get(a), texts.get(b)), ("a", "b"));
        assert_eq!((texts.intern_if_any(""), texts.intern_if_any("b")), (None, Some(b)));
    }
}
