//! The header for C test programs.

mod support;

use std::process::Command;
use support::{Build, Run};

#[test]
fn one_binary_runs_with_and_without_the_shim_and_knows_which() {
    let program = Build::new("hosts/harness_active.c").program();
    assert_eq!(Run::new(&program).run().ok().stdout, "active 0\n");
    assert_eq!(Run::new(&program).shim().run().ok().stdout, "active 1\n");
    assert_eq!(Run::new(&program).shim().env("ACLSHIM_MODE", "off").run().ok().stdout, "active 0\n");
}

/// What `pkg-config --variable=link aclshim` says, but for the folder. A weak symbol alone makes no linker keep a library.
const LINK: [&str; 3] = ["-Wl,--push-state,--no-as-needed", "-laclshim", "-Wl,--pop-state"];

#[test]
fn a_program_at_a_fixed_address_links_the_shim_and_is_seen() {
    let fixed = || Build::new("hosts/harness_active.c").arg("-fno-pic").arg("-no-pie");
    // The linker has settled that there is no shim.
    assert_eq!(Run::new(fixed().program()).shim().run().ok().stdout, "active 0\n");
    let linked = LINK.iter().fold(fixed(), Build::arg).program();
    let release = support::target("release");
    for preloaded in [Run::new(&linked).shim(), Run::new(&linked)] {
        assert_eq!(preloaded.library_path(&release).run().ok().stdout, "active 1\n");
    }
    // And the copies themselves, where the shim comes first.
    let calls = LINK.iter().fold(Build::new("hosts/bind_linked.c").arg("-fno-pie").arg("-no-pie"), Build::arg);
    let output = Run::new(calls.link("ascendcl").program()).library_path(&release).sim().run().ok();
    assert_eq!(output.stat().total("calls"), 21);
}

#[test]
fn the_headers_compile_cleanly_as_c99_and_as_cpp17_in_either_order() {
    let test = "the_headers_compile_cleanly_as_c99_and_as_cpp17_in_either_order";
    for (compiler, language, standard) in [("cc", "c", "-std=c99"), ("c++", "c++", "-std=c++17")] {
        if !support::has(compiler, test) {
            continue;
        }
        for order in [["aclshim.h", "acl/acl.h"], ["acl/acl.h", "aclshim.h"]] {
            let source = support::scratch("headers").join("both.c");
            let text =
                format!("#include \"{}\"\n#include \"{}\"\nint main(void) {{ return 0; }}\n", order[0], order[1]);
            std::fs::write(&source, text).unwrap();
            let result = Command::new(compiler)
                .args(["-x", language, standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"])
                .arg(support::root().join("include"))
                .arg(&source)
                .output()
                .unwrap();
            assert!(result.status.success(), "{compiler}: {}", String::from_utf8_lossy(&result.stderr));
        }
    }
}
