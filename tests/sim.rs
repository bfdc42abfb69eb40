//! The simulated device against the vendor's behaviour: C programs in `tests/sim/`, made of named cases.
//!
//! They were written from the facts about the vendor's library, not from the simulator, and each prints a
//! line a case. A program that prints no case proves nothing, so that fails too.

mod support;

use aclshim_facts::FUNCTIONS;
use aclshim_facts::functions::Support;
use std::path::{Path, PathBuf};

use support::{Build, Run, host, root, target};

/// Runs a conformance program and shows every case that failed.
#[track_caller]
fn conforms(source: &str, settings: &[(&str, &str)]) {
    passes(&host(source), settings);
}

/// Runs a program that is already built with several settings.
#[track_caller]
fn passes(program: &Path, settings: &[(&str, &str)]) {
    let run = settings.iter().fold(Run::new(program).sim(), |run, (name, value)| run.env(name, value));
    let output = run.run();
    let failed: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with("FAIL")).collect();
    let name = program.display();
    assert!(failed.is_empty(), "{name} {settings:?}\n{}", failed.join("\n"));
    assert!(output.status.success(), "{name} {settings:?}: {:?}\n{}\n{}", output.status, output.stdout, output.stderr);
    assert!(output.stdout.lines().any(|line| line.starts_with("ok ")), "{name}: not one case was run");
}

#[test]
fn the_header_has_the_sizes_offsets_and_numbers_of_the_vendors() {
    conforms("sim/layout.c", &[]);
}

#[test]
fn every_check_of_the_linear_copies_answers_as_the_vendor_does() {
    conforms("sim/linear.c", &[]);
}

#[test]
fn every_cell_of_the_kind_and_location_table_answers_as_the_vendor_does() {
    conforms("sim/kinds.c", &[]);
}

#[test]
fn every_check_of_the_pitched_copies_answers_as_the_vendor_does() {
    conforms("sim/pitched.c", &[]);
}

#[test]
fn every_check_of_the_batches_answers_as_the_vendor_does_and_fail_index_is_left_as_it_leaves_it() {
    let program = host("sim/batch.c");
    for product in ["Ascend910B1", "Ascend910_9391", "Ascend950"] {
        passes(&program, &[("ASCENDCL_SIM_SOC", product)]);
    }
}

#[test]
fn every_check_of_the_offset_and_descriptor_copies_answers_as_the_vendor_does() {
    let program = host("sim/indirect.c");
    for product in ["Ascend910B1", "Ascend910_9391", "Ascend950"] {
        passes(&program, &[("ASCENDCL_SIM_SOC", product)]);
    }
}

#[test]
fn every_check_of_the_symbol_copies_answers_as_the_vendor_does() {
    conforms("sim/symbol.c", &[]);
}

#[test]
fn every_check_of_the_sets_answers_as_the_vendor_does() {
    conforms("sim/set.c", &[]);
}

#[test]
fn a_pinned_copy_is_asynchronous_and_in_order_and_a_pageable_one_is_complete_on_return() {
    conforms("sim/stream.c", &[]);
}

#[test]
fn a_stream_of_another_context_is_waited_for_and_takes_pageable_copies_only() {
    let program = host("sim/foreign.c");
    for product in ["Ascend910B1", "Ascend910_9391", "Ascend950"] {
        passes(&program, &[("ASCENDCL_SIM_SOC", product)]);
    }
    passes(&program, &[("ASCENDCL_SIM_LATENCY_US", "2000")]);
    passes(&program, &[("ASCENDCL_SIM_USER_MALLOC_ATTR", "off")]);
}

#[test]
fn the_same_holds_on_a_slow_device() {
    conforms("sim/stream.c", &[("ASCENDCL_SIM_BANDWIDTH", "8M")]);
    conforms("sim/stream.c", &[("ASCENDCL_SIM_BANDWIDTH", "8M"), ("ASCENDCL_SIM_LATENCY_US", "200")]);
}

#[test]
fn a_captured_copy_runs_at_execution_and_a_capture_forbids_what_the_vendor_forbids() {
    conforms("sim/capture.c", &[]);
}

#[test]
fn device_memory_cannot_be_touched_and_every_pointer_is_known_for_what_it_is() {
    conforms("sim/memory.c", &[]);
}

#[test]
fn there_are_as_many_devices_as_were_asked_for() {
    for number in ["1", "4"] {
        conforms("sim/memory.c", &[("ASCENDCL_SIM_DEVICES", number)]);
    }
}

#[test]
fn a_full_device_says_so() {
    conforms("sim/memory.c", &[("ASCENDCL_SIM_MEMORY", "1M")]);
}

#[test]
fn contexts_errors_and_the_end_are_as_the_vendors() {
    conforms("sim/life.c", &[]);
}

#[test]
fn each_product_has_and_lacks_what_the_vendor_lists() {
    let program = host("sim/product.c");
    for product in ["Ascend910B1", "Ascend910_9391", "Ascend950", "Ascend310P3", "Ascend310B1", "Ascend910A"] {
        passes(&program, &[("ASCENDCL_SIM_SOC", product)]);
    }
    passes(&program, &[]);
}

#[test]
fn nothing_to_copy_is_an_error_until_9_0_and_success_since_9_1() {
    let program = host("sim/version.c");
    for version in ["8.5", "9.0", "9.1", "9.2"] {
        passes(&program, &[("ASCENDCL_SIM_CANN", version)]);
    }
    passes(&program, &[]);
}

#[test]
fn on_the_device_itself_host_to_host_is_an_ordinary_copy() {
    conforms("sim/mode.c", &[("ASCENDCL_SIM_RUN_MODE", "device"), ("ASCENDCL_SIM_SOC", "Ascend310B1")]);
}

#[test]
fn each_fault_strikes_the_call_it_was_set_for() {
    let cases = [
        ("throw", "throw@aclrtMemcpy:2"),
        ("throw-always", "throw@aclrtMemcpy:*"),
        ("longjmp", "longjmp@aclrtMemcpy:2"),
        ("reenter", "reenter@aclrtMemcpy:2"),
        ("fail", "fail=507899@aclrtMemcpy:2"),
        ("errno", "errno=99@aclrtMemcpy:2"),
        ("hang", "hang@aclrtMemcpy:2"),
    ];
    let program = host("sim/fault.cpp");
    for (case, fault) in cases {
        passes(&program, &[("FAULT_CASE", case), ("ASCENDCL_SIM_FAULT", fault)]);
    }
}

#[test]
fn a_fault_can_be_set_for_each_of_the_functions() {
    let program = host("sim/fault.cpp");
    for function in FUNCTIONS.iter().map(|row| row.name) {
        let of = |fault: &str| format!("{fault}@{function}:*");
        for (case, fault) in [("each-fails", of("fail=123456")), ("each-throws", of("throw"))] {
            let settings = [("FAULT_CASE", case), ("FAULT_FUNCTION", function), ("ASCENDCL_SIM_FAULT", &fault)];
            passes(&program, &settings);
        }
    }
}

#[test]
fn an_old_library_lacks_the_functions_that_came_later() {
    let since_9_1 = FUNCTIONS.iter().filter(|row| row.support == Support::Since9_1).map(|row| row.name);
    let since_9_1: Vec<&str> = since_9_1.collect();
    let batches = ["aclrtMemcpyBatch", "aclrtMemcpyBatchAsync"];
    let builds: [(&str, Vec<&str>); 3] = [
        ("sim/libascendcl.so", vec![]),
        ("sim/cann-8.5/libascendcl.so", since_9_1.clone()),
        ("sim/no-batch/libascendcl.so", [since_9_1.as_slice(), &batches].concat()),
    ];
    let program = Build::new("sim/absent.c").program();
    for (library, mut lacking) in builds {
        let output =
            FUNCTIONS.iter().fold(Run::new(&program).arg(target(library)), |run, row| run.arg(row.name)).run().ok();
        let mut said: Vec<&str> = output.stdout.lines().filter_map(|line| line.strip_prefix("lacks ")).collect();
        said.sort_unstable();
        lacking.sort_unstable();
        assert_eq!(said, lacking, "{library}");
        assert_eq!(output.stdout.lines().count(), FUNCTIONS.len(), "{library}");
    }
}

/// The examples are user code: they must build without a warning, run to the end, and print the same each time.
#[test]
fn every_example_builds_cleanly_and_prints_the_same_twice() {
    for name in ["linear", "async", "condition", "pitched", "batch", "kv_offload"] {
        let program = example(name);
        let first = Run::new(&program).sim().run().ok();
        let second = Run::new(&program).sim().env("ASCENDCL_SIM_BANDWIDTH", "64M").run().ok();
        assert!(!first.stdout.is_empty(), "{name} prints something");
        assert_eq!(first.stdout, second.stdout, "{name}");
        assert_eq!(first.stderr, "", "{name}");
    }
}

#[test]
fn the_examples_with_batches_run_on_a_product_without_them() {
    for name in ["batch", "kv_offload"] {
        let output = Run::new(example(name)).sim().env("ASCENDCL_SIM_SOC", "Ascend310P3").run().ok();
        assert!(output.stdout.contains("calls needed: 8") || name != "batch", "{}", output.stdout);
    }
}

#[test]
fn the_offload_example_takes_steps_and_layers() {
    let program = example("kv_offload");
    let long = Run::new(&program).sim().arg("40").arg("7").run().ok();
    let tokens = long.stdout.lines().find_map(|line| line.strip_prefix("tokens: ")).expect("a line of tokens");
    assert_eq!(tokens.split(' ').count(), 40);
    assert_eq!(Run::new(&program).sim().arg("5").arg("0").run().status.code(), Some(2));
}

/// Compiles an example as its first lines say, every warning an error.
fn example(name: &str) -> PathBuf {
    let source = root().join("c-examples").join(format!("{name}.c"));
    Build::new(source.to_str().expect("a path in UTF-8")).arg("-std=c99").arg("-Wpedantic").link("ascendcl").program()
}
