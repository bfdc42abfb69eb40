//! For which product, form and release a call is judged, and how that is found out.

#[path = "support/checking.rs"]
mod checking;
mod support;
#[path = "support/ways.rs"]
#[allow(dead_code)] // for the tests of bindings
mod ways;

use checking::{about, cases, counted, findings, ids, one, rules, same, text, words};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use support::{Build, Output, Run, host, scratch};

#[test]
fn a_run_is_judged_for_other_products_too() {
    let run = |cases: &str| same(one(), |run| words(run, cases).env("ACLSHIM_AS", "Ascend310P3,Ascend950")).ok();
    for (calls, function) in [("good 1 batch 1", "aclrtMemcpyBatch"), ("good 1 offset 1", "aclrtMemcpyAsyncWithOffset")]
    {
        let output = run(calls);
        let found = findings(&output);
        let [finding] = &found[..] else {
            panic!("{calls}: one finding, {found:?}, log {:?}", checking::said(&output))
        };
        assert_eq!((text(&finding["rule"]), text(&finding["function"])), ("UNSUPPORTED-PRODUCT", function));
        assert_eq!((text(&finding["on"]), text(&finding["severity"])), ("Ascend310P3", "portability"));
        assert!(text(&finding["message"]).starts_with("would be refused on Ascend310P3: "), "{finding}");
        let told = output.events("finding");
        assert_eq!((told.len(), &told[0]["on"]), (1, &json!("Ascend310P3")));
    }
    // Nor is what the documents do not list there and nothing checks kept back: the vendor would return 0 and set nothing.
    let run_on = |product: &str, cases: &str| same(one(), |run| words(run, cases).env("ACLSHIM_AS", product)).ok();
    for (calls, rule) in [("good 1 words 1", "WORDS-IGNORED"), ("good 1 rows_inside 1", "PITCH-PRODUCT")] {
        let found = findings(&run_on("Ascend310P3,Ascend950", calls));
        let [finding] = &found[..] else { panic!("{calls}: one finding, {found:?}") };
        assert_eq!((text(&finding["rule"]), text(&finding["on"])), (rule, "Ascend310P3"));
        assert!(text(&finding["message"]).starts_with("would be unsupported on Ascend310P3: "), "{finding}");
    }
    assert_eq!(rules(&run("good 20 from_host 20")), [""; 0]);
}

#[test]
fn what_the_settings_say_of_product_form_and_release_comes_before_what_the_library_says() {
    // The library: Ascend910B1, ACL_HOST, 9.2.0.
    let rules = |calls: &str, name: &str, value: &str| {
        let output = same(one(), |run| words(run, calls).env(name, value)).ok();
        rules(&output)
    };
    assert_eq!(rules("good 1 offset 1", "ACLSHIM_SOC", "Ascend310P3"), ["UNSUPPORTED-PRODUCT"]);
    assert_eq!(rules("good 1 offset 1", "ACLSHIM_SOC", "Ascend910B4"), [""; 0]);
    assert_eq!(
        rules("offset 1", "ACLSHIM_SOC", "Ascend310P3"),
        ["UNSUPPORTED-PRODUCT"],
        "known from the first call on"
    );
    assert_eq!(rules("from_host 1", "ACLSHIM_FORM", "rc"), ["KIND-ROOT-COMPLEX"]);
    assert_eq!(rules("from_host 1", "ACLSHIM_FORM", "ep"), [""; 0]);
    assert_eq!(rules("good 1 experimental 1", "ACLSHIM_CANN", "8.5.0"), ["EXPERIMENTAL"]);
    assert_eq!(rules("good 1 experimental 1", "ACLSHIM_CANN", "9.1.0"), [""; 0]);
    assert_eq!(rules("words 1", "ACLSHIM_CANN", "9.0"), ["UNSUPPORTED-RELEASE"]);
    assert_eq!(rules("rows 1", "ACLSHIM_FORM", "rc"), ["PITCH-ROOT-COMPLEX"]);
    assert_eq!(rules("words 1", "ACLSHIM_SOC", "Ascend310B1"), ["WORDS-IGNORED"]);
    assert_eq!(rules("rows_inside 1", "ACLSHIM_SOC", "Ascend910A"), ["PITCH-PRODUCT"]);
    // Names that begin like another product's.
    assert_eq!(rules("good 1 batch 1", "ACLSHIM_SOC", "Ascend910_9599"), [""; 0]);
    assert_eq!(rules("good 1 batch 1", "ACLSHIM_SOC", "Ascend910B"), ["UNSUPPORTED-PRODUCT"]);
}

#[test]
fn an_unknown_product_is_said_once_and_what_depends_on_the_product_is_not_judged() {
    let output =
        cases("good 5 offset 5 batch 5 room 1").env("ACLSHIM_SOC", "Kirin").env("ACLSHIM_MODE", "enforce").run().ok();
    let said = about(&output, "warning", "product");
    assert_eq!(said.len(), 1, "{:?}", checking::said(&output));
    assert!(text(&said[0]["message"]).contains("Kirin"), "{}", said[0]);
    assert_eq!(rules(&output), ["DEST-MAX"]);
    assert!(output.stdout.contains("batch: 0, 5 good\n"), "{}", output.stdout);
    assert_eq!(about(&cases("good 5").run().ok(), "warning", "product").len(), 0);
}

#[test]
fn what_the_product_is_may_be_found_out_when_the_log_has_begun_long_ago() {
    let run = |name: &str, value: &str| cases("room 1 wait 1 good 5 offset 1").env(name, value).run().ok();
    let output = run("ACLSHIM_SOC", "Kirin");
    assert_eq!(about(&output, "warning", "product").len(), 1, "said once: {:?}", checking::said(&output));
    let output = run("ASCENDCL_SIM_SOC", "Ascend310P3");
    let found = ["DEST-MAX", "UNSUPPORTED-PRODUCT"];
    assert_eq!(
        (rules(&output), ids(&output.events("finding"))),
        (found.map(String::from).to_vec(), found.map(String::from).to_vec())
    );
}

#[test]
fn the_library_is_asked_once_and_not_before_it_has_copied_something() {
    let vendor = Build::new("hosts/check_vendor.c").library("ascendcl");
    let folder = vendor.parent().unwrap();
    let program = host("hosts/check_asked.c");
    let run = || Run::new(&program).library_path(folder).shim();
    let times = |n: u32| {
        let lines = ["nothing", "a failure", "copies of nothing", "a batch of nothing", "copies of threads"];
        lines
            .iter()
            .map(|line| format!("{line}: {0} {0} {0}\n", if line.ends_with("threads") { n } else { 0 }))
            .collect::<String>()
    };
    for drain in ["auto", "outside", "off"] {
        assert_eq!(run().env("ACLSHIM_DRAIN", drain).run().ok().stdout, times(1), "{drain}");
    }
    assert_eq!(run().env("ACLSHIM_MODE", "enforce").run().ok().stdout, times(1));
    assert_eq!(run().env("ACLSHIM_MODE", "off").run().ok().stdout, times(0));
}

#[test]
fn where_the_newer_question_about_the_release_is_missing_or_fails_the_older_one_is_asked() {
    let program = host("hosts/check_release.c");
    for how in [None, Some("-DVERSION_TEXT_FAILS"), Some("-DNO_VERSION_TEXT")] {
        let build = Build::new("hosts/check_vendor.c");
        let vendor = how.into_iter().fold(build, Build::arg).library("ascendcl");
        let output = Run::new(&program).library_path(vendor.parent().unwrap()).shim().run().ok();
        // A copy of nothing is an error in that release, and nothing to speak of in later ones.
        let found = findings(&output);
        let errors: Vec<_> = found.iter().filter(|finding| finding["severity"] == "error").cloned().collect();
        assert_eq!(ids(&errors), ["ZERO-SIZE"], "{how:?}: {found:?}");
    }
}

/// An installation with this file of its release, or without one.
fn installation(release: Option<&str>) -> PathBuf {
    let home = scratch("home");
    let folder = home.join("share/info/runtime");
    fs::create_dir_all(&folder).unwrap();
    if let Some(text) = release {
        fs::write(folder.join("version.info"), text).unwrap();
    }
    home
}

#[test]
fn no_question_of_ours_shows_in_what_the_library_logs_to_the_programs_output() {
    let long = format!("Version={}\n", "9".repeat(200));
    for release in
        [None, Some(""), Some("Versions are elsewhere\n"), Some("Version=\n"), Some(&long), Some("Version=9.2.0\n")]
    {
        let home = installation(release);
        for variable in ["ASCEND_LOG_PRINT_TO_STDOUT", "ASCEND_SLOG_PRINT_TO_STDOUT"] {
            let run = |run: Run| words(run, "good 3").env("ASCEND_HOME_PATH", &home).env(variable, "1");
            same(one(), run).ok();
        }
    }
    // The simulated library does log there what the real one would.
    let program = host("hosts/check_home.c");
    let run =
        Run::new(&program).sim().env("ASCEND_HOME_PATH", installation(None)).env("ASCEND_SLOG_PRINT_TO_STDOUT", "1");
    let said = run.run().ok().stdout;
    assert!(said.starts_with("[ERROR] ") && said.ends_with("version 100003\n"), "{said}");
}

#[test]
fn the_release_of_an_installation_is_read_from_its_file() {
    let vendor = Build::new("hosts/check_vendor.c").arg("-DRELEASE=\"9.2.0\"").library("ascendcl");
    let program = host("hosts/check_release.c");
    for (release, rules) in [
        (Some("Version=8.5.0\n"), &["ZERO-SIZE"][..]),
        (Some("# 1\nruntime_Version= 8.5.0 \r\nVersion=9.2.0"), &["ZERO-SIZE"]),
        (Some("Version=9.2.0\n"), &[]),
        (None, &[]),
    ] {
        let run = Run::new(&program).library_path(vendor.parent().unwrap()).shim();
        let output = run.env("ASCEND_HOME_PATH", installation(release)).run().ok();
        let found = findings(&output);
        let errors: Vec<_> = found.iter().filter(|finding| finding["severity"] == "error").cloned().collect();
        assert_eq!(ids(&errors), rules, "{release:?}: {found:?}");
    }
    // And the library is not asked for it.
    let program = host("hosts/check_asked.c");
    let vendor = Build::new("hosts/check_vendor.c").library("ascendcl");
    for release in [None, Some("Version=9.2.0\n")] {
        let run = Run::new(&program).library_path(vendor.parent().unwrap()).shim();
        let said = run.env("ASCEND_HOME_PATH", installation(release)).run().ok().stdout;
        assert!(said.ends_with("copies of threads: 1 1 0\n"), "{said}");
    }
}

#[test]
fn whoever_reads_the_ring_later_knows_the_product_and_the_release() {
    for drain in ["auto", "outside", "off"] {
        let run = |soc: &str, cann: &str| {
            let run = cases("good 1 offset 1 zero 1").env("ACLSHIM_DRAIN", drain);
            run.env("ASCENDCL_SIM_SOC", soc).env("ASCENDCL_SIM_CANN", cann).run().ok()
        };
        let errors = |output: Output| -> Vec<String> {
            let found = findings(&output);
            let errors = ids(&found.into_iter().filter(|finding| finding["severity"] == "error").collect::<Vec<_>>());
            assert!(errors.iter().all(|rule| counted(&output, rule) == 1), "{drain}");
            errors
        };
        assert_eq!(errors(run("Ascend310P3", "9.2")), ["UNSUPPORTED-PRODUCT"], "{drain}");
        assert_eq!(errors(run("Ascend910B1", "8.5")), ["ZERO-SIZE"], "{drain}");
        assert_eq!(errors(run("Ascend910B1", "9.2")), [""; 0], "{drain}");
    }
}

#[test]
fn another_interposer_behind_the_shim_does_not_hide_the_product() {
    for how in [ways::BY_NEXT, ways::BY_LOOKUP] {
        let run = cases("good 1 offset 1").preload(ways::interposer(how));
        let output = run.env("ASCENDCL_SIM_SOC", "Ascend310P3").run().ok();
        assert!(rules(&output).contains(&"UNSUPPORTED-PRODUCT".to_owned()), "{how}: {:?}", findings(&output));
    }
}

#[test]
fn a_library_that_copies_before_it_is_pinned_is_asked_once_it_is() {
    let vendor = Build::new("hosts/check_vendor.c").library("ascendcl");
    let plugin = Build::new("hosts/check_late.c").arg("-DPLUGIN").link("ascendcl").library("plugin");
    let program = Build::new("hosts/check_late.c").program();
    for drain in ["auto", "off"] {
        let run = Run::new(&program).arg(&plugin).library_path(vendor.parent().unwrap()).shim();
        let output = run.env("ACLSHIM_DRAIN", drain).run().ok();
        assert_eq!(output.stdout, "0 0 0, then 1 1 1\n", "{drain}");
    }
}

#[test]
fn the_library_is_not_asked_inside_a_signal_handler_which_may_have_interrupted_it() {
    let vendor = Build::new("hosts/check_vendor.c").library("ascendcl");
    let program = host("hosts/check_handler.c");
    for drain in ["auto", "off"] {
        for arguments in ["0", "3", "0 stack", "3 stack"] {
            let run = words(Run::new(&program), arguments).library_path(vendor.parent().unwrap()).shim();
            let output = run.env("ACLSHIM_DRAIN", drain).run().ok();
            let said = "copies of a handler: 0 0 0\ncopies of the program: 1 1 1\n";
            assert_eq!(output.stdout, said, "{drain}, {arguments}");
        }
    }
}

#[test]
fn the_library_is_not_asked_by_a_call_that_it_makes_inside_another() {
    let vendor = Build::new("hosts/check_vendor.c").arg("-DNESTS").library("ascendcl");
    let run = Run::new(host("hosts/check_nested.c")).library_path(vendor.parent().unwrap()).shim();
    let output = run.run().ok();
    assert_eq!(output.stdout, "1 1 1, inside 0\n");
    assert_eq!(output.stat().total("nested"), 100);
}
