//! Modules depend on each other in one direction: no cycles in any crate, and the order of rooms that docs/architecture.md
//! draws.

#[path = "architecture/cycles.rs"]
mod cycles;
#[path = "architecture/modules.rs"]
mod modules;
#[path = "architecture/rooms.rs"]
mod rooms;
#[path = "architecture/source.rs"]
mod source;
#[path = "architecture/tests.rs"]
mod tests;

use cycles::cycles;
use modules::{Crate, Edge, Module};
use rooms::orders;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The source folders of the shim and of all crates.
fn folders() -> Vec<String> {
    let crates = fs::read_dir(root().join("crates")).expect("the crates").map(|entry| entry.expect("an entry"));
    let mut folders: Vec<_> = crates.map(|entry| format!("crates/{}/src", entry.file_name().display())).collect();
    folders.sort();
    folders.insert(0, "src".to_owned());
    folders
}

fn read(folder: &str) -> Crate {
    Crate::read(&root().join(folder), folder)
}

fn page() -> String {
    fs::read_to_string(root().join("docs/architecture.md")).expect("docs/architecture.md")
}

#[test]
fn no_module_of_a_crate_uses_one_that_uses_it() {
    let mut problems = Vec::new();
    for folder in folders() {
        let modules = read(&folder);
        assert!(modules.len() > 1, "{folder} has modules");
        problems.extend(cycles(&modules.edges()).iter().map(|cycle| format!("{folder}: {cycle}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn rooms_use_only_rooms_that_the_architecture_page_draws_below_them() {
    let mut problems = Vec::new();
    for order in orders(&page()) {
        let (rooms, edges) = match order.of.as_str() {
            "workspace" => workspace(),
            folder => (read(folder).rooms(), read(folder).edges()),
        };
        problems.extend(order.problems(&rooms, &edges));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The packages by their folders, and the dependencies that their Cargo.toml names.
fn workspace() -> (BTreeSet<String>, Vec<Edge>) {
    let (mut packages, mut edges) = (BTreeSet::new(), Vec::new());
    for folder in folders() {
        let package = folder.strip_suffix("/src").unwrap_or("src").to_owned();
        let manifest = if package == "src" { "Cargo.toml".to_owned() } else { format!("{package}/Cargo.toml") };
        let text = fs::read_to_string(root().join(&manifest)).expect("a manifest");
        let section = text.split("\n[dependencies]\n").nth(1).unwrap_or_default();
        for line in section.lines().take_while(|line| !line.starts_with('[')) {
            let Some((name, _)) = line.strip_prefix("aclshim-").and_then(|line| line.split_once(' ')) else { continue };
            let module = |name: &str| -> Module { vec![name.to_owned()] };
            edges.push(Edge { from: module(&package), to: module(&format!("crates/{name}")), place: manifest.clone() });
        }
        packages.insert(package);
    }
    (packages, edges)
}

/// Paths in backticks, and the targets of links.
fn paths_in(page: &str, folder: &str) -> Vec<String> {
    let prose: String = page.split("```").step_by(2).collect();
    let spans = prose.split('`').skip(1).step_by(2).map(str::to_owned);
    let is_path = |span: &String| span.contains('/') && !span.contains(' ') && !span.starts_with('/');
    let links = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let links = links.map(|(link, _)| format!("{folder}{link}")).filter(|link| !link.contains("://"));
    spans.filter(is_path).chain(links).collect()
}

#[test]
fn every_file_that_the_pages_for_contributors_name_exists() {
    let mut missing = Vec::new();
    for (page, folder) in [("docs/architecture.md", "docs/"), ("CONTRIBUTING.md", "")] {
        let text = fs::read_to_string(root().join(page)).expect(page);
        let paths = paths_in(&text, folder);
        assert!(paths.len() > 10, "{page}: {paths:?}");
        missing.extend(paths.iter().filter(|path| !root().join(path).exists()).map(|path| format!("{page}: {path}")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
