//! The modules of a crate, and which of them uses which.

use crate::source::{Kind, Source, Token, group_end};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The path of a module, from the crate's root on; the root itself is empty.
pub type Module = Vec<String>;

/// One module uses something of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    pub from: Module,
    pub to: Module,
    /// Where it is written, for the first time: `file:line`.
    pub place: String,
}

/// The name of a module, as it is shown.
pub fn shown(module: &[String]) -> String {
    if module.is_empty() { "the crate's root".to_owned() } else { module.join("::") }
}

/// The modules of one crate.
#[derive(Default)]
pub struct Crate {
    /// Those that are files, each with its file.
    files: BTreeMap<Module, (String, Vec<Token>)>,
    /// All, also those within a file.
    all: BTreeSet<Module>,
    /// What the names that a `use` brings into a module stand for: paths from the root on.
    imports: BTreeMap<(Module, String), Module>,
    /// What `use path::*` names, by module.
    globs: BTreeMap<Module, Vec<Module>>,
    /// The modules that define a macro.
    macros: BTreeMap<String, BTreeSet<Module>>,
    /// Items that are defined in a module.
    items: BTreeSet<(Module, String)>,
}

impl Crate {
    /// Reads the files below `folder`, shown as below `name`.
    pub fn read(folder: &Path, name: &str) -> Self {
        let mut files = Vec::new();
        collect(folder, name, &mut files);
        Self::new(files)
    }

    /// Of files: their paths, as they are shown, below a folder, and their text.
    pub fn new(files: Vec<(String, Module, String)>) -> Self {
        let mut made = Self::default();
        let (mut sources, mut for_tests) = (Vec::new(), BTreeSet::new());
        for (file, module, text) in files {
            let source = Source::new(&text);
            for_tests.extend(source.test_modules.iter().map(|name| child(&module, name)));
            sources.push((file, module, source.tokens));
        }
        let is_test = |module: &Module| {
            let mut above = (1..=module.len()).map(|length| &module[..length]);
            above.any(|part| part.last().is_some_and(|name| name == "tests") || for_tests.contains(part))
        };
        for (file, module, tokens) in sources.into_iter().filter(|(_, module, _)| !is_test(module)) {
            made.all.insert(module.clone());
            assert!(!made.files.contains_key(&module), "two files for {}", shown(&module));
            made.files.insert(module, (file, tokens));
        }
        for (module, (_, tokens)) in made.files.clone() {
            made.declare(&module, &tokens);
        }
        made
    }

    /// How many modules there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// The topmost modules.
    pub fn rooms(&self) -> BTreeSet<String> {
        self.files.keys().filter_map(|module| module.first().cloned()).collect()
    }

    /// Notes what a file defines and imports.
    fn declare(&mut self, file: &Module, tokens: &[Token]) {
        for (index, scope) in scopes(file, tokens) {
            self.all.insert(scope.clone());
            let name = tokens.get(index + 1).map_or("", Token::ident);
            match tokens[index].ident() {
                "use" => {
                    for (path, name, _) in use_paths(&tokens[index + 1..]) {
                        let path = self.absolute(&scope, &path, false);
                        match (name.as_str(), path) {
                            ("*", Some(path)) => self.globs.entry(scope.clone()).or_default().push(path),
                            (_, Some(path)) => drop(self.imports.insert((scope.clone(), name), path)),
                            (_, None) => {}
                        }
                    }
                }
                "macro_rules" => {
                    let name = tokens.get(index + 2).map_or("", Token::ident);
                    self.macros.entry(name.to_owned()).or_default().insert(file.clone());
                }
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" => {
                    // Of a module within a file also as the file's: a glob is followed to the file.
                    self.items.insert((file.clone(), name.to_owned()));
                    self.items.insert((scope, name.to_owned()));
                }
                _ => {}
            }
        }
    }

    /// A path as written in `scope`, from the root on, without a look at what its names stand for. `None`: of another crate.
    fn absolute(&self, scope: &Module, path: &[String], has_imports: bool) -> Option<Module> {
        let first = path.first()?;
        let (mut base, mut rest) = (scope.clone(), path);
        match first.as_str() {
            "crate" => (base, rest) = (Module::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    base.pop()?;
                    rest = &rest[1..];
                }
            }
            name if has_imports && self.imports.contains_key(&(scope.clone(), name.to_owned())) => {}
            name => drop(self.is_module(&child(scope, name)).then_some(())?),
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// A module is also known before its file's turn has come.
    fn is_module(&self, module: &[String]) -> bool {
        self.all.contains(module) || self.files.contains_key(module)
    }

    /// The files' modules that a path leads through: the one it names, and, as imports and re-exports lead on, the one that
    /// defines the item.
    fn led_through(&self, path: &[String], depth: usize) -> Vec<Module> {
        let mut module = Module::new();
        let mut further = Vec::new();
        for (index, name) in path.iter().enumerate() {
            if self.is_module(&child(&module, name)) {
                module.push(name.clone());
                continue;
            }
            if depth < 16 && !self.items.contains(&(module.clone(), name.clone())) {
                if let Some(import) = self.imports.get(&(module.clone(), name.clone())) {
                    let led = import.iter().chain(&path[index + 1..]).cloned().collect::<Vec<_>>();
                    further = self.led_through(&led, depth + 1);
                } else {
                    let globs = self.globs.get(&module).into_iter().flatten();
                    let led = globs.map(|glob| self.led_through(glob, depth + 1));
                    let has_item = |led: &Vec<Module>| {
                        led.last().is_some_and(|last| self.items.contains(&(last.clone(), name.clone())))
                    };
                    further = led.into_iter().find(has_item).unwrap_or_default();
                }
            }
            break;
        }
        std::iter::once(self.file_of(module)).chain(further).collect()
    }

    fn file_of(&self, mut module: Module) -> Module {
        while !self.files.contains_key(&module) && !module.is_empty() {
            module.pop();
        }
        module
    }

    /// Who uses whom, each pair once.
    pub fn edges(&self) -> Vec<Edge> {
        let mut edges = BTreeMap::new();
        for (from, (file, tokens)) in &self.files {
            for (to, line) in self.uses(from, tokens) {
                if to != *from {
                    let place = format!("{file}:{line}");
                    edges.entry((from.clone(), to)).or_insert(place);
                }
            }
        }
        edges.into_iter().map(|((from, to), place)| Edge { from, to, place }).collect()
    }

    /// What a file uses, with the lines.
    fn uses(&self, file: &Module, tokens: &[Token]) -> Vec<(Module, usize)> {
        let mut uses = Vec::new();
        let mut behind = 0; // what a `use` has dealt with
        for (index, scope) in scopes(file, tokens) {
            let token = &tokens[index];
            if index < behind {
                continue;
            }
            if token.ident() == "use" {
                for (path, _, line) in use_paths(&tokens[index + 1..]) {
                    let Some(path) = self.absolute(&scope, &path, false) else { continue };
                    uses.extend(self.led_through(&path, 0).into_iter().map(|to| (to, line)));
                }
                behind = index + 1 + tokens[index..].iter().position(|token| token.is(';')).unwrap_or(0);
                continue;
            }
            if token.ident().is_empty() || index > 0 && is_inner(tokens, index) {
                continue;
            }
            let path = path_at(tokens, index);
            let next = index + 2 * path.len() - 1;
            if path.len() > 1 {
                if let Some(path) = self.absolute(&scope, &path, true) {
                    uses.extend(self.led_through(&path, 0).into_iter().map(|to| (to, token.line)));
                }
            } else if tokens.get(next).is_some_and(|token| token.is('!')) {
                let definers = self.macros.get(token.ident()).filter(|definers| !definers.contains(file));
                uses.extend(definers.into_iter().flatten().map(|definer| (definer.clone(), token.line)));
            }
        }
        uses
    }
}

fn collect(folder: &Path, shown: &str, files: &mut Vec<(String, Module, String)>) {
    let mut folders = vec![(folder.to_owned(), Module::new())];
    while let Some((folder_now, module)) = folders.pop() {
        for entry in fs::read_dir(&folder_now).unwrap_or_else(|error| panic!("{}: {error}", folder_now.display())) {
            let path = entry.expect("an entry").path();
            let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push((path, child(&module, &stem)));
            } else if path.extension() == Some("rs".as_ref()) {
                let is_own = ["lib", "main", "mod"].contains(&stem.as_str());
                let module = if is_own { module.clone() } else { child(&module, &stem) };
                let below = path.strip_prefix(folder).expect("it lies below").display();
                files.push((format!("{shown}/{below}"), module, fs::read_to_string(&path).expect("text")));
            }
        }
    }
}

fn child(module: &[String], name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// The indexes of all tokens, each with the module it stands in: that of the file, or one within it.
fn scopes(file: &Module, tokens: &[Token]) -> Vec<(usize, Module)> {
    let (mut scope, mut ends, mut made) = (file.clone(), Vec::new(), Vec::new());
    for (index, token) in tokens.iter().enumerate() {
        if ends.last() == Some(&index) {
            ends.pop();
            scope.pop();
        }
        if let [module, name, open, ..] = &tokens[index..]
            && module.ident() == "mod"
            && open.is('{')
        {
            ends.push(group_end(tokens, index + 2));
            scope.push(name.ident().to_owned());
        }
        made.push((index, if token.ident().is_empty() { Module::new() } else { scope.clone() }));
    }
    made
}

/// Whether the identifier at `index` goes on a path or follows a dot, or says where an item is visible.
fn is_inner(tokens: &[Token], index: usize) -> bool {
    let before = &tokens[index - 1];
    let is_range = index > 1 && tokens[index - 2].is('.');
    let is_visibility = index > 2 && before.ident() == "in" && tokens[index - 3].ident() == "pub";
    before.kind == Kind::Separator || before.is('.') && !is_range || is_visibility
}

/// The path that begins at `index`.
fn path_at(tokens: &[Token], index: usize) -> Module {
    let mut path = vec![tokens[index].ident().to_owned()];
    let mut rest = &tokens[index + 1..];
    while let [Token { kind: Kind::Separator, .. }, Token { kind: Kind::Ident(name), .. }, after @ ..] = rest {
        path.push(name.clone());
        rest = after;
    }
    path
}

/// All paths of a `use`, each with the name it gets (`*` for all names) and its line.
fn use_paths(tokens: &[Token]) -> Vec<(Module, String, usize)> {
    let mut made = Vec::new();
    let end = tokens.iter().position(|token| token.is(';')).unwrap_or(tokens.len());
    use_tree(&tokens[..end], &Module::new(), &mut made);
    made
}

fn use_tree(tokens: &[Token], before: &Module, made: &mut Vec<(Module, String, usize)>) {
    let (mut path, mut name, mut line) = (before.clone(), None, tokens.first().map_or(0, |token| token.line));
    let mut index = 0;
    while index < tokens.len() {
        let token = &tokens[index];
        match &token.kind {
            Kind::Ident(word) if word == "as" => {
                name = tokens.get(index + 1).map(|token| token.ident().to_owned());
                index += 1;
            }
            Kind::Ident(word) if word == "self" && !path.is_empty() => {}
            Kind::Ident(word) => (path, line) = (child(&path, word), token.line),
            Kind::Punct('*') => name = Some("*".to_owned()),
            Kind::Punct('{') => {
                let group = &tokens[index + 1..group_end(tokens, index) - 1];
                let mut from = 0;
                while from < group.len() {
                    let mut to = from;
                    while to < group.len() && !group[to].is(',') {
                        to = if group[to].is('{') { group_end(group, to) } else { to + 1 };
                    }
                    if from < to {
                        use_tree(&group[from..to], &path, made);
                    }
                    from = to + 1;
                }
                return;
            }
            _ => {}
        }
        index += 1;
    }
    let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
    made.push((path, name, line));
}
