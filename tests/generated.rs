//! What is made from the tables and committed must be what the tables make today.
//! `make header` and `make docs` write the files (`ACLSHIM_UPDATE=1`).

mod support;

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
    for (name, text) in aclshim_facts::documents::pages() {
        is_fresh(&format!("docs/{name}"), &text);
    }
    is_fresh("docs/trace-format.md", &aclshim_trace::documents::trace_format_page());
    is_fresh("docs/log-schema.md", &aclshim_collect::log::schema::log_schema_page());
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
