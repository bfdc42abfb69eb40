//! That the test sees what it is there for.

use crate::cycles::cycles;
use crate::modules::{Crate, shown};
use crate::rooms::orders;
use crate::source::{Kind, Source, tokens};

/// A crate of files: paths below its source folder, and text.
fn made(files: &[(&str, &str)]) -> Crate {
    let of = |(path, text): &(&str, &str)| {
        let module = path.trim_end_matches(".rs").split('/').map(str::to_owned);
        let module = module.filter(|name| !["lib", "mod"].contains(&name.as_str())).collect();
        (path.to_string(), module, text.to_string())
    };
    Crate::new(files.iter().map(of).collect())
}

/// Who uses whom, as text.
fn edges(files: &[(&str, &str)]) -> Vec<String> {
    let edges = made(files).edges();
    edges.iter().map(|edge| format!("{} -> {} {}", shown(&edge.from), shown(&edge.to), edge.place)).collect()
}

#[test]
fn comments_and_literals_are_no_code() {
    let text = r####"
        // crate::a::b
        /* crate::a /* crate::b */ crate::c */
        let x = "crate::a \" crate::b"; let y = r#"crate::a " crate::b"#; let z = b"crate::a"; let c = c"crate::a";
        let q = '"'; let e = '\''; let n = b'"'; fn f<'a>(x: &'a str) {} let last = 'x';
    "####;
    let words: Vec<_> = tokens(text)
        .iter()
        .filter_map(|token| match &token.kind {
            Kind::Ident(word) => Some(word.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(words.join(" "), "let x let y let z let c let q let e let n fn f a x a str let last");
    assert_eq!(tokens("a\n\n/*\n*/b").last().unwrap().line, 4);
}

#[test]
fn test_code_does_not_count() {
    let source = Source::new(
        "use a::b; #[cfg(test)] mod tests { use c::d; } #[cfg(all(test, not(loom)))] mod sample; fn e() {}
         #[cfg(test)] pub use f::{g, h}; #[cfg(not(test))] fn i() {} struct J { #[cfg(test)] k: u8, l: u8 }
         #[cfg(test)] impl<A, B> M<A, B> { fn n() {} } fn o() {}",
    );
    let words: Vec<_> = source.tokens.iter().map(|token| token.ident()).filter(|word| !word.is_empty()).collect();
    assert_eq!(words.join(" "), "use a b fn e cfg not test fn i struct J l u8 fn o");
    assert!(source.test_modules.contains("sample"));
    assert!(Source::new("#![cfg(test)] use a::b;").tokens.is_empty());
    let files = [
        ("lib.rs", "mod a; #[cfg(test)] mod sample;"),
        ("a.rs", "#[cfg(test)] mod tests;"),
        ("a/tests.rs", "use crate::sample::x;"),
        ("sample.rs", "use crate::a::y;"),
    ];
    assert_eq!(edges(&files), [""; 0]);
}

#[test]
fn every_way_to_name_a_module_is_seen() {
    let text = "use crate::{b::{self, c::{X, Y as Z}}, d::*};\nuse super::e;\nfn f() {\n  crate::g::h(1);\n  self::i::j();\n  \
                (0..k::L).map(super::m::n);\n}\nmacro_rules! o { () => { $crate::p::q() } }\npub(in crate::r) fn s() {}";
    let mut files =
        vec![("lib.rs", ""), ("a.rs", text), ("a/i.rs", ""), ("a/k.rs", ""), ("b/mod.rs", ""), ("b/c.rs", "")];
    files.extend(["d.rs", "e.rs", "g.rs", "m.rs", "p.rs", "r.rs"].map(|path| (path, "")));
    let expected = [
        "a::i a.rs:5",
        "a::k a.rs:6",
        "b a.rs:1",
        "b::c a.rs:1",
        "d a.rs:1",
        "e a.rs:2",
        "g a.rs:4",
        "m a.rs:6",
        "p a.rs:8",
    ];
    assert_eq!(edges(&files), expected.map(|edge| format!("a -> {edge}")));
}

#[test]
fn a_name_is_followed_to_where_it_is_defined() {
    let files = [
        ("lib.rs", "pub use b::inner::Deep;"),
        ("a.rs", "use crate::b::Item;\nuse crate::c;\nfn f() { c::d::g(); crate::Deep::new(); Item::new() }"),
        ("b.rs", "pub use inner::Item; pub use inner::deeper::*; mod inner;"),
        ("b/inner.rs", "pub struct Item; pub struct Deep; pub mod deeper { pub struct Glob; }"),
        ("c.rs", ""),
        ("c/d.rs", "use crate::b::Glob;"),
    ];
    assert_eq!(
        edges(&files),
        [
            "the crate's root -> b::inner lib.rs:1",
            "a -> the crate's root a.rs:3",
            "a -> b a.rs:1",
            "a -> b::inner a.rs:1",
            "a -> c a.rs:2",
            "a -> c::d a.rs:3",
            "b -> b::inner b.rs:1",
            "c::d -> b c/d.rs:1",
            "c::d -> b::inner c/d.rs:1",
        ]
    );
}

#[test]
fn a_macro_and_a_module_within_a_file_belong_to_their_file() {
    let files = [
        ("a.rs", "macro_rules! say { () => {} }"),
        ("b.rs", "fn f() { say!(); } mod within { use super::g; use crate::c::X; pub fn h() {} }"),
        ("c.rs", "use crate::b::within::h;\npub struct X;"),
    ];
    assert_eq!(edges(&files), ["b -> a b.rs:1", "b -> c b.rs:1", "c -> b c.rs:1"]);
}

#[test]
fn a_cycle_is_found_and_named_with_its_places() {
    let mut files = vec![
        ("a.rs", "use crate::b::X;"),
        ("b.rs", "fn f() {\n crate::c::g() }"),
        ("c.rs", "mod d;"),
        ("c/d.rs", "pub fn h() {}"),
        ("e.rs", "use crate::a::Y;"),
    ];
    assert!(cycles(&made(&files).edges()).is_empty());
    files[2].1 = "\nuse crate::a::Y;";
    let found = cycles(&made(&files).edges());
    let [cycle] = &found[..] else { panic!("{}", found.len()) };
    assert_eq!(
        cycle.to_string(),
        "3 modules reach each other; the shortest way:\n    a uses b (a.rs:1)\n    b uses c (b.rs:2)\n    c uses a (c.rs:2)\n"
    );
}

#[test]
fn a_cycle_between_folders_is_one_although_no_two_files_use_each_other() {
    let files = [
        ("a.rs", ""),
        ("a/x.rs", "use crate::b::y::Y;"),
        ("b.rs", ""),
        ("b/y.rs", ""),
        ("b/z.rs", "use crate::a::w::W;"),
        ("a/w.rs", ""),
    ];
    let found = cycles(&made(&files).edges());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].modules.iter().map(|module| shown(module)).collect::<Vec<_>>(), ["a", "b"]);
    // A module and its own parts are one.
    let files = [("a.rs", "use x::X;"), ("a/x.rs", "use super::Y;")];
    assert!(cycles(&made(&files).edges()).is_empty());
}

#[test]
fn an_edge_against_the_drawn_order_is_named() {
    let page = "# Page\n\n```rooms\nworkspace\n    a\nhouse\n    attic\n    hall, kitchen\n    cellar\n```\n";
    let orders = orders(page);
    assert_eq!(orders.iter().map(|order| order.of.as_str()).collect::<Vec<_>>(), ["workspace", "house"]);
    let problems = |files: &[(&str, &str)]| orders[1].problems(&made(files).rooms(), &made(files).edges());
    let mut files = vec![
        ("attic.rs", "use crate::cellar::wine::X;"),
        ("hall.rs", ""),
        ("kitchen.rs", "use crate::cellar::Y;"),
        ("cellar/wine.rs", "use crate::cellar::z::Z;"),
        ("cellar/z.rs", ""),
    ];
    assert_eq!(problems(&files), [""; 0]);
    files[4].1 = "fn f() {}\nfn g() { crate::attic::f() }";
    assert_eq!(problems(&files), ["house: cellar uses attic, which is not below it (cellar/z.rs:2)"]);
    files[4].1 = "";
    files[1].1 = "use crate::kitchen::K;";
    assert_eq!(problems(&files), ["house: hall uses kitchen, which is not below it (hall.rs:1)"]);
    files[1] = ("stairs.rs", "");
    assert_eq!(problems(&files), ["house: stairs is not drawn", "house: hall is drawn and not there"]);
}
