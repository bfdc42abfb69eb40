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
