//! The rulebook against itself, over calls that a generator makes up: what it finds wrong with a call, and what it says
//! that the vendor will do, must fit together.

use super::entries::batch::attribute;
use super::*;
use crate::call::functions::Function;
use crate::rules::case::{ARRAY, DEVICE, FREED, LARGE, MANAGED, Map, OTHER, PAGEABLE, PINNED, STREAM, SYMBOL};
use crate::rules::rule::Arrays;
use crate::rules::world::{RunMode, Stream, Untracked};
use crate::vendor::abi::aclrtMemcpyBatchAttr;
use crate::vendor::product::{Product, Version};
use core::ffi::c_void;

/// A generator of numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.next() as usize % choices.len()]
    }

    fn option<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        let choice = self.of(choices);
        (!self.next().is_multiple_of(8)).then_some(choice)
    }

    fn list<T: Copy>(&mut self, choices: &[T]) -> Vec<T> {
        (0..4).map(|_| self.of(choices)).collect()
    }
}

const ADDRESSES: &[u64] = &[
    0,
    DEVICE,
    DEVICE,
    DEVICE + 64,
    DEVICE + (1 << 20) - 32,
    OTHER,
    LARGE,
    FREED,
    PINNED,
    PINNED + 18,
    MANAGED,
    PAGEABLE,
    SYMBOL,
];
const SIZES: &[u64] = &[0, 1, 4, 64, 64, 64, 128, 4096, 1 << 20, 1 << 32, (1 << 32) + 1, u64::MAX];

fn word(random: &mut Random, name: &str) -> u64 {
    match name {
        "kind" => random.of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, u64::MAX]),
        "stream" => random.of(&[0, STREAM, STREAM]),
        "symbol" => random.of(&[SYMBOL, SYMBOL, DEVICE, 0]),
        "config" => random.of(&[0, 0, 0, ARRAY]),
        "dsts" | "srcs" | "sizes" | "destMaxs" | "attrs" | "attrsIndexes" | "failIndex" | "descSize" => {
            random.of(&[ARRAY, ARRAY, ARRAY, ARRAY, ARRAY, ARRAY, ARRAY, 0])
        }
        "numBatches" => random.of(&[0, 1, 2, 3, 4, 4, 4097]),
        "numAttrs" => random.of(&[0, 1, 1, 2, 3, 4, 5]),
        "height" => random.of(&[0, 1, 2, 4, 5_242_881, u64::MAX]),
        "dst" | "src" | "desc" | "dstAddr" | "srcAddr" | "devPtr" | "ptr" => random.of(ADDRESSES),
        _ => random.of(SIZES),
    }
}

/// Hands `count` made-up calls to `look`.
fn each(count: u32, mut look: impl FnMut(&Subject)) {
    let random = &mut Random(0x5eed_cafe_f00d);
    let many = vec![64; 4097];
    let attrs = [
        attribute((1, 0), (0, 9)),
        attribute((0, 0), (1, 0)),
        attribute((1, 1), (4, 0)),
        attribute((2, 0), (1, 0)),
        attribute((1, 0), (1, 0)),
        aclrtMemcpyBatchAttr { rsv: [1; 16], ..attribute((1, 0), (0, 0)) },
    ];
    for _ in 0..count {
        let function = random.of(Function::ALL);
        let words: Vec<u64> = function.row().arguments.iter().map(|argument| word(random, argument.name)).collect();
        let call = function.call(&words);
        let pointers = |random: &mut Random| -> Vec<*mut c_void> {
            random.list(ADDRESSES).into_iter().map(|address| address as *mut c_void).collect()
        };
        let (dsts, srcs) = (pointers(random), pointers(random));
        let sizes = random.list(&[0, 64, 64, 64, 4096]);
        let maxs = random.list(&[64, 4096, 4096, 4096, 4096]);
        let attrs: Vec<aclrtMemcpyBatchAttr> = random.list(&attrs);
        let indexes: Vec<usize> = match random.next() % 2 {
            0 => vec![0, 1, 2, 3],
            _ => random.list(&[0, 0, 1, 2, 3, 4, 7]),
        };
        let is_read = !random.next().is_multiple_of(8);
        let is_many = matches!(call.form, crate::call::Form::Batch(batch) if batch.items > sizes.len());
        let arrays = Arrays {
            dsts: is_read.then_some(&dsts[..]),
            dst_maxs: Some(if is_many { &many } else { &maxs }),
            srcs: is_read.then_some(&srcs[..]),
            sizes: Some(if is_many { &many } else { &sizes }),
            attrs: is_read.then_some(&attrs[..]),
            attr_indexes: Some(&indexes),
        };
        let stream = match call.stream {
            Some(stream) if stream.is_null() => Stream::Default,
            _ => random.of(&[
                Stream::Own { is_captured: false },
                Stream::Own { is_captured: true },
                Stream::Foreign { is_captured: false },
                Stream::Invalid,
                Stream::Unknown,
            ]),
        };
        let socs = ["Ascend910B1", "Ascend950", "Ascend310P3", "Ascend310B1", "Ascend910A"];
        let versions = [(8, 5), (9, 0), (9, 1), (9, 2)].map(|(major, minor)| Version { major, minor });
        let world = World {
            product: random.option(&socs).and_then(Product::of),
            run_mode: random.option(&[RunMode::EndPoint, RunMode::EndPoint, RunMode::RootComplex]),
            cann: random.option(&versions),
            tells_pageable: random.option(&[true, true, false]),
            is_open: random.option(&[true, true, false]),
            has_context: random.option(&[true, true, true, false]),
            has_peer_access: random.option(&[true, false]),
            is_capture_in_the_way: random.option(&[false, false, true]),
            stream,
            memory: if random.next().is_multiple_of(4) { &Untracked } else { &Map },
        };
        look(&Subject { function, call, arrays, world });
    }
}

#[test]
fn a_refusal_is_found_and_an_error_that_is_found_is_refused() {
    let (mut accepted, mut refused, mut unknown) = (0, 0, 0);
    each(200_000, |subject| {
        let findings = judge(subject);
        match predict(subject) {
            Prediction::Accepted => {
                accepted += 1;
                assert_ne!(findings.worst, Some(Severity::Error), "{:?} {:?}", subject.call, findings.iter().last());
            }
            Prediction::Refused { rule, code, .. } => {
                refused += 1;
                assert!(findings.set & 1 << rule != 0, "{:?}: {} is not found", subject.call, RULES[rule].id);
                let kept = findings.iter().find(|(number, _)| *number as usize == rule);
                let is_same = kept.is_none_or(|(_, finding)| finding.severity == Severity::Error);
                assert!(is_same, "{:?}: {} is found as {kept:?}, predicted {code}", subject.call, RULES[rule].id);
                assert!(RULES[rule].codes.iter().any(|(other, _)| *other == code), "{code} of {}", RULES[rule].id);
            }
            Prediction::Unknown => unknown += 1,
        }
    });
    assert!(accepted > 10_000 && refused > 100_000 && unknown > 1_000, "{accepted} {refused} {unknown}");
}

#[test]
fn of_a_plain_call_there_is_nothing_to_say() {
    let mut plain = 0;
    each(400_000, |subject| {
        if quick::breaks_no_rule(subject) {
            plain += 1;
            look_at(subject, &mut |rule, _| panic!("{}: {:?}", rule.id, subject.call));
        }
    });
    assert!(plain > 100, "{plain}");
}

#[test]
fn a_rule_speaks_only_of_its_own_functions_and_of_an_argument_that_is_there() {
    each(100_000, |subject| {
        judge_each(subject, &mut |rule, finding| {
            assert!(rule.applies_to(subject.function), "{} of {:?}", rule.id, subject.function);
            assert!((finding.argument as usize) < subject.function.row().arguments.len(), "{}", rule.id);
            assert!(finding.severity <= rule.severity, "{}", rule.id);
            let is_graded = rule.grade(finding.severity).is_some();
            let is_plain = rule.grades.is_empty() && finding.severity == rule.severity;
            assert!(is_graded || is_plain, "{} {:?}", rule.id, finding.severity);
            assert_eq!(finding.code != 0, finding.severity == Severity::Error, "{}", rule.id);
        });
    });
}

#[test]
fn every_rule_that_may_refuse_a_call_does() {
    let mut seen = 0u128;
    each(400_000, |subject| {
        if let Prediction::Refused { rule, .. } = predict(subject) {
            seen |= 1 << rule;
        }
    });
    let never: Vec<_> = RULES
        .iter()
        .filter(|rule| rule.severity == Severity::Error && seen & 1 << rule.number == 0)
        .map(|rule| rule.id)
        .collect();
    assert!(never.is_empty(), "{never:?}");
}
