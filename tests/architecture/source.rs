//! Rust source as tokens, without comments, literals and test code.

use std::collections::BTreeSet;

/// One token and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub line: usize,
}

/// What a path can consist of, and everything else by its character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Ident(String),
    /// `::`
    Separator,
    Punct(char),
}

impl Token {
    /// The identifier, or nothing.
    pub fn ident(&self) -> &str {
        if let Kind::Ident(name) = &self.kind { name } else { "" }
    }

    pub fn is(&self, punct: char) -> bool {
        self.kind == Kind::Punct(punct)
    }
}

/// The code of one file that is part of the product.
pub struct Source {
    pub tokens: Vec<Token>,
    /// Modules that are declared (`mod name;`) for tests only.
    pub test_modules: BTreeSet<String>,
}

impl Source {
    pub fn new(text: &str) -> Self {
        without_tests(tokens(text))
    }
}

/// All tokens but comments and literals of text and numbers.
pub fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let (mut tokens, mut index, mut line) = (Vec::new(), 0, 1);
    while index < chars.len() {
        let (begin, char) = (index, chars[index]);
        let mut token = None;
        match char {
            '/' if at(index + 1) == '/' => index = find(&chars, index, |rest| rest[0] == '\n'),
            '/' if at(index + 1) == '*' => index = after_comment(&chars, index),
            '"' => index = after_string(&chars, index + 1),
            'r' | 'b' | 'c' if literal_prefix(&chars, index).is_some() => {
                index = literal_prefix(&chars, index).expect("just looked");
            }
            '\'' => index = after_quote(&chars, index),
            _ if char == '_' || char.is_alphabetic() => {
                index = find(&chars, index, |rest| rest[0] != '_' && !rest[0].is_alphanumeric());
                token = Some(Kind::Ident(chars[begin..index].iter().collect()));
            }
            _ if char.is_numeric() => {
                index = find(&chars, index, |rest| rest[0] != '_' && !rest[0].is_alphanumeric());
            }
            ':' if at(index + 1) == ':' => (token, index) = (Some(Kind::Separator), index + 2),
            _ if char.is_whitespace() => index += 1,
            _ => (token, index) = (Some(Kind::Punct(char)), index + 1),
        }
        tokens.extend(token.map(|kind| Token { kind, line }));
        line += chars[begin..index].iter().filter(|char| **char == '\n').count();
    }
    tokens
}

fn find(chars: &[char], from: usize, is_end: impl Fn(&[char]) -> bool) -> usize {
    (from..chars.len()).find(|index| is_end(&chars[*index..])).unwrap_or(chars.len())
}

/// Behind a block comment, which may hold others.
fn after_comment(chars: &[char], from: usize) -> usize {
    let (mut depth, mut index) = (0, from);
    while index < chars.len() {
        match chars[index..] {
            ['/', '*', ..] => (depth, index) = (depth + 1, index + 2),
            ['*', '/', ..] => (depth, index) = (depth - 1, index + 2),
            _ => index += 1,
        }
        if depth == 0 {
            break;
        }
    }
    index
}

/// Behind a string whose opening quote is before `index`.
fn after_string(chars: &[char], mut index: usize) -> usize {
    while index < chars.len() {
        match chars[index] {
            '"' => return index + 1,
            '\\' => index += 2,
            _ => index += 1,
        }
    }
    chars.len()
}

/// Behind a literal with a prefix (`r"..."`, `b'x'`, `cr#"..."#`), if one begins here.
fn literal_prefix(chars: &[char], index: usize) -> Option<usize> {
    let letters = find(chars, index, |rest| !matches!(rest[0], 'r' | 'b' | 'c'));
    let hashes = find(chars, letters, |rest| rest[0] != '#');
    let is_raw = chars[index..letters].contains(&'r');
    match chars.get(hashes)? {
        '"' if is_raw => {
            let closing: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes - letters)).collect();
            Some(find(chars, hashes + 1, |rest| rest.starts_with(&closing)) + closing.len())
        }
        '"' if letters == hashes => Some(after_string(chars, hashes + 1)),
        '\'' if letters == hashes && chars[index..letters] == ['b'] => Some(after_quote(chars, hashes)),
        _ => None,
    }
}

/// Behind a character literal, or behind the quote of a lifetime.
fn after_quote(chars: &[char], index: usize) -> usize {
    match chars[index + 1..] {
        ['\\', ..] => find(chars, index + 3, |rest| rest[0] == '\'') + 1,
        [_, '\'', ..] => index + 3,
        _ => index + 1,
    }
}

/// Takes out what `#[cfg(test)]` and `#[cfg(all(test, ...))]` stand before.
fn without_tests(tokens: Vec<Token>) -> Source {
    let (mut product, mut test_modules, mut index) = (Vec::new(), BTreeSet::new(), 0);
    while index < tokens.len() {
        let attribute = attribute_end(&tokens, index);
        if let Some(end) = attribute.filter(|end| is_for_tests(&tokens[index..*end])) {
            if tokens[index + 1].is('!') {
                return Source { tokens: Vec::new(), test_modules }; // the whole file
            }
            let item_end = item_end(&tokens, end);
            if let [module, name, semicolon] = &tokens[item_end.saturating_sub(3)..item_end]
                && module.ident() == "mod"
                && semicolon.is(';')
            {
                test_modules.insert(name.ident().to_owned());
            }
            index = item_end;
        } else {
            product.push(tokens[index].clone());
            index += 1;
        }
    }
    Source { tokens: product, test_modules }
}

/// Behind the attribute that begins at `index`, if one does.
fn attribute_end(tokens: &[Token], index: usize) -> Option<usize> {
    let open = index + 1 + usize::from(tokens.get(index + 1)?.is('!'));
    (tokens[index].is('#') && tokens.get(open)?.is('[')).then(|| group_end(tokens, open))
}

fn is_for_tests(attribute: &[Token]) -> bool {
    let words: Vec<_> = attribute.iter().map(Token::ident).filter(|word| !word.is_empty()).collect();
    words.starts_with(&["cfg", "test"]) || words.starts_with(&["cfg", "all", "test"])
}

/// Behind the group that the bracket at `open` begins.
pub fn group_end(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Punct('(' | '[' | '{') => depth += 1,
            Kind::Punct(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// Behind the item, field or arm that begins at `index`, with all its attributes.
fn item_end(tokens: &[Token], mut index: usize) -> usize {
    while let Some(end) = tokens.get(index).and_then(|_| attribute_end(tokens, index)) {
        index = end;
    }
    const ITEMS: [&str; 14] = [
        "pub",
        "mod",
        "fn",
        "impl",
        "struct",
        "enum",
        "use",
        "const",
        "static",
        "type",
        "trait",
        "unsafe",
        "extern",
        "macro_rules",
    ];
    let is_item = tokens.get(index).is_some_and(|token| ITEMS.contains(&token.ident()));
    let is_use = (index..index + 5).any(|near| tokens.get(near).is_some_and(|token| token.ident() == "use"));
    while let Some(token) = tokens.get(index) {
        match token.kind {
            Kind::Punct(';') => return index + 1,
            Kind::Punct(',') if !is_item => return index + 1,
            Kind::Punct('{') if !is_use => return group_end(tokens, index),
            Kind::Punct('(' | '[' | '{') => index = group_end(tokens, index),
            Kind::Punct(')' | ']' | '}') => return index, // the end of what it lies in
            _ => index += 1,
        }
    }
    index
}
