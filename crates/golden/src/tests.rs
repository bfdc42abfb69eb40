//! Runs are the same text wherever their memory lies, and a diff is what is different.

use super::*;
use aclshim_facts::Function;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const HEAP: u64 = 0x5555_0000_0000;

fn call(thread: u64, function: Function, words: &[u64], code: i32) -> Call {
    let mut arguments = [0; 10];
    arguments[..words.len()].copy_from_slice(words);
    let (attributes, items) = (Vec::new(), Vec::new());
    Call { thread, at: 0, function, arguments, end: End::Returned(code), marks: 0, attributes, items }
}

fn copy(thread: u64, dst: u64, src: u64, count: u64) -> Call {
    call(thread, Function::aclrtMemcpy, &[dst, count, src, count, 1], 0)
}

fn run(calls: Vec<Call>) -> GoldenRun {
    GoldenRun { calls, names: Vec::new(), main: Some(1) }
}

/// The text without its comments.
fn body(run: &GoldenRun) -> String {
    text(run, &[]).lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect()
}

fn buffer(begin: u64, size: u64, name: &str) -> Name {
    Name { at: 0, named: NamedObject::Buffer { begin, size }, name: name.into() }
}

#[test]
fn a_call_is_a_line_with_its_arguments_by_name_and_its_code() {
    let stream = 0x7f00_0000_1000;
    let async_copy = [HEAP, 64, HEAP + 0x1000, 64, 7 << 32 | 1, stream];
    let calls = vec![
        call(1, Function::aclrtMemcpyAsync, &async_copy, 0),
        call(1, Function::aclrtMemcpyAsync, &[HEAP, 64, 0, 64, 9, 0], 107_000),
        call(1, Function::aclrtMemset, &[HEAP + 32, 32, u64::MAX, 32], -7),
        call(1, Function::aclrtMemcpyToSymbol, &[HEAP + 0x9000, HEAP, 8, 0, 1], 0),
    ];
    assert_eq!(
        body(&run(calls)),
        "main thread:\n  \
         aclrtMemcpyAsync(dst=b1+0x0, destMax=64, src=b2+0x0, count=64, kind=HOST_TO_DEVICE, stream=s1) = ACL_SUCCESS\n  \
         aclrtMemcpyAsync(dst=b1+0x0, destMax=64, src=NULL, count=64, kind=9, stream=default) = ACL_ERROR_RT_PARAM_INVALID\n  \
         aclrtMemset(devPtr=b1+0x20, maxCount=32, value=-1, count=32) = -7\n  \
         aclrtMemcpyToSymbol(symbol=symbol1, src=b1+0x0, count=8, offset=0, kind=HOST_TO_DEVICE) = ACL_SUCCESS\n"
    );
}

#[test]
fn ranges_that_overlap_are_one_buffer_and_those_that_touch_are_two() {
    let lines = body(&run(vec![
        copy(1, HEAP, HEAP + 0x1000, 64),
        copy(1, HEAP + 64, HEAP + 0x1020, 64),
        copy(1, HEAP + 80, HEAP + 0x1000, 16),
    ]));
    let aliases: Vec<&str> =
        lines.split(['(', ',', ' ']).filter(|word| word.starts_with("dst=") || word.starts_with("src=")).collect();
    assert_eq!(aliases, ["dst=b1+0x0", "src=b2+0x0", "dst=b3+0x0", "src=b2+0x20", "dst=b3+0x10", "src=b2+0x0"]);
}

#[test]
fn what_a_refused_call_says_of_its_size_joins_nothing() {
    let mut calls = vec![copy(1, HEAP, HEAP + 0x1000, 64), copy(1, HEAP + 0x2000, HEAP + 0x1000, 64)];
    calls.insert(0, call(1, Function::aclrtMemcpy, &[HEAP, u64::MAX, HEAP + 0x1000, u64::MAX, 1], 107_000));
    let text = body(&run(calls));
    assert!(text.contains("dst=b1+0x0, destMax=SIZE_MAX, src=b2+0x0") && text.contains("dst=b3+0x0"), "{text}");
}

#[test]
fn an_address_that_is_not_aligned_shows_it_even_if_it_is_the_only_one_of_its_buffer() {
    let text = body(&run(vec![copy(1, HEAP + 4, 0x10, 64)]));
    assert!(text.contains("dst=b1+0x4, destMax=64, src=0x10,"), "{text}");
}

#[test]
fn a_name_holds_from_the_moment_it_is_given_until_another_is() {
    let stream = 0x7f00_0000_1000;
    let mut calls: Vec<Call> = (0..4)
        .map(|_| call(1, Function::aclrtMemcpyAsync, &[HEAP + 16, 16, HEAP + 0x1000, 16, 1, stream], 0))
        .collect();
    calls.iter_mut().enumerate().for_each(|(at, call)| call.at = at as u64);
    let names = vec![
        Name { at: 1, named: NamedObject::Stream(stream), name: "upload".into() },
        Name { at: 1, ..buffer(HEAP, 64, "weights") },
        Name { at: 2, ..buffer(HEAP + 16, 16, "b1") },
        Name { at: 3, ..buffer(HEAP, 64, "") },
    ];
    let text = body(&GoldenRun { names, ..run(calls) });
    let dsts: Vec<&str> = text.lines().skip(1).map(|line| line.split(['(', ',']).nth(1).unwrap()).collect();
    assert_eq!(dsts, ["dst=b1+0x0", "dst=weights+0x10", "dst=\"b1\"+0x0", "dst=b1+0x0"]);
    let streams: Vec<&str> =
        text.lines().skip(1).map(|line| line.split("stream=").nth(1).unwrap().split(')').next().unwrap()).collect();
    assert_eq!(streams, ["s1", "upload", "upload", "upload"]);
}

#[test]
fn items_of_a_batch_have_lines_of_their_own() {
    let arrays = HEAP + 0x10_0000;
    let words = [arrays, arrays + 64, arrays + 128, arrays + 192, 3, arrays + 256, arrays + 320, 1, 0];
    let mut batch = call(1, Function::aclrtMemcpyBatch, &words, 0);
    batch.attributes.push(Attribute { first: 0, dst: (1, 0), src: (0, 0) });
    batch.items.push(Item { dst: HEAP, dst_max: 80, src: HEAP + 0x1000, size: 64 });
    batch.items.push(Item { dst: HEAP + 32, dst_max: 64, src: HEAP + 0x2000, size: 64 });
    batch.marks = MARK_INJECTED;
    assert_eq!(
        body(&run(vec![batch])),
        "main thread:\n  aclrtMemcpyBatch(numBatches=3, numAttrs=1, failIndex=NULL) = ACL_SUCCESS (injected)\n    \
         attribute from item 0: dst DEVICE 0, src HOST\n    \
         [0] dst=b1+0x0 destMax=80 src=b2+0x0 size=64\n    \
         [1] dst=b1+0x20 destMax=64 src=b3+0x0 size=64\n    \
         ... and 1 more\n"
    );
}

#[test]
fn threads_and_processes_that_do_the_same_stand_there_once_and_repeated_calls_too() {
    let of = |thread: u64, times: usize| vec![copy(thread, HEAP + thread * 0x1000, HEAP, 64); times];
    let program = run([of(7, 2), of(1, 1), of(5, 2), of(6, 1)].concat());
    let children = [run(of(1, 1)), run(Vec::new()), run(of(1, 1))];
    let line = "aclrtMemcpy(dst=b1+0x0, destMax=64, src=b2+0x0, count=64, kind=HOST_TO_DEVICE) = ACL_SUCCESS\n";
    let expected = format!(
        "{HEAD}main thread:\n  {line}2 threads:\n  2 times: {line}thread:\n  {line}\
         2 child processes:\n  main thread:\n    {line}"
    );
    assert_eq!(text(&program, &children), expected);
    assert_eq!(body(&run(Vec::new())), "no call\n");
}

#[test]
fn comments_and_carriage_returns_are_no_difference_and_a_changed_line_is() {
    let run = |count| run(vec![copy(1, HEAP, HEAP + 0x1000, 64), copy(1, HEAP, HEAP + 0x1000, count)]);
    let actual = text(&run(32), &[]);
    let file = actual.replace('\n', "\r\n").replace("# aclshim", "# reviewed\r\n# aclshim");
    assert_eq!(compare(&file, &actual), None);
    let diff = compare(&file, &text(&run(48), &[])).expect("a difference");
    let changed: Vec<&str> =
        diff.lines().filter(|line| line.starts_with(['+', '-']) && !line.contains("= ACL_SUCCESS")).collect();
    assert_eq!(changed, ["--- expected", "+++ actual"], "{diff}");
    assert!(diff.contains("\n-  aclrtMemcpy(dst=b1+0x0, destMax=32,") && diff.contains("\n+  aclrtMemcpy("), "{diff}");
}

#[test]
fn huge_texts_that_have_nothing_in_common_are_compared_in_bounded_time() {
    let lines = |from: usize| (from..from + 40_000).map(|line| format!("{line}\n")).collect::<String>();
    let diff = diff(&lines(0), &lines(40_000)).expect("a difference");
    assert_eq!(diff.lines().count(), 80_003);
    assert_eq!(cut(&diff, 2), "--- expected\n+++ actual\n... and 80001 more lines\n");
    assert_eq!(cut("a\nb\n", 2), "a\nb\n");
}

#[test]
fn a_hunk_says_which_section_it_is_in() {
    let before = (0..9).map(|line| format!("  {line}\n")).collect::<String>();
    let diff = diff(&format!("thread:\n{before}"), &format!("thread:\n{before}  more\n")).expect("a difference");
    assert_eq!(diff, "--- expected\n+++ actual\n@@ -8,3 +8,4 @@ thread:\n   6\n   7\n   8\n+  more\n");
}

/// What `patch` does.
fn apply(diff: &str, to: &[String]) -> Vec<String> {
    let (mut result, mut at) = (Vec::new(), 0);
    for line in diff.lines().skip(2) {
        let (sign, text) = line.split_at(1);
        match sign {
            "@" => {
                let mut numbers = line[4..].split([',', ' ']).map(|number| number.parse::<usize>().unwrap());
                let (first, count) = (numbers.next().unwrap(), numbers.next().unwrap());
                let begin = first - usize::from(count > 0);
                result.extend_from_slice(&to[at..begin]);
                at = begin;
            }
            "+" => result.push(text.to_owned()),
            _ => {
                assert_eq!(to[at], text);
                result.extend((sign == " ").then(|| text.to_owned()));
                at += 1;
            }
        }
    }
    result.extend_from_slice(&to[at..]);
    result
}

fn shortest(a: &[String], b: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (x, one) in a.iter().enumerate() {
        let mut last = std::mem::replace(&mut row[0], x + 1);
        for (y, other) in b.iter().enumerate() {
            let best = if one == other { last } else { 1 + row[y].min(row[y + 1]) };
            last = std::mem::replace(&mut row[y + 1], best);
        }
    }
    row[b.len()]
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec((0..6u8).prop_map(|line| format!("line {line}")), 0..40)
}

/// Which buffer, the offset in it and how many bytes, of a destination and a source; which stream; what it returned.
type Use = ((usize, u64, u64), (usize, u64), usize, bool);

fn uses() -> impl Strategy<Value = Vec<Use>> {
    // Up to the very end of a buffer, where the next one may begin.
    let offset = || prop_oneof![0..=192u64, Just(192)];
    let to = (0..5usize, offset(), prop_oneof![0..=64u64, Just(64)]);
    prop::collection::vec((to, (0..5usize, offset()), 0..3usize, prop::bool::weighted(0.8)), 1..30)
}

fn laid_out(uses: &[Use], buffers: &[u64], streams: &[u64], thread: u64) -> Vec<Call> {
    let call = |&((to, dst, bytes), (from, src), stream, is_accepted): &Use| {
        let (dst, src) = (buffers[to] + dst, buffers[from] + src);
        // A refused call may have said anything.
        let count = if is_accepted { bytes } else { bytes << 40 };
        let words = [dst, 256, src, count, 3, streams[stream]];
        let code = if is_accepted { 0 } else { 107_000 };
        call(thread, Function::aclrtMemcpyAsync, &words, code)
    };
    uses.iter().map(call).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1), // deterministic
        ..ProptestConfig::default()
    })]

    #[test]
    fn wherever_buffers_and_streams_lie_and_however_threads_run_the_text_is_the_same(
        uses_of in prop::collection::vec(uses(), 1..4),
        // Buffers of 256 bytes; side by side, too.
        order in Just((0..5u64).collect::<Vec<_>>()).prop_shuffle(),
        gaps in prop::collection::vec(0..3u64, 5),
        ids in Just((1..4u64).collect::<Vec<_>>()).prop_shuffle(),
        base in 0..1u64 << 30,
        is_mixed: bool,
    ) {
        let plain: Vec<u64> = (0..5).map(|at| HEAP + at * 0x1000).collect();
        let (mut moved, mut at) = (vec![0; 5], HEAP + base * 16);
        for (gap, which) in gaps.iter().zip(&order) {
            at += gap * 16;
            moved[*which as usize] = at;
            at += 256;
        }
        let of = |buffers: &[u64], streams: &[u64], ids: &[u64]| {
            uses_of.iter().zip(ids).map(|(uses, id)| laid_out(uses, buffers, streams, *id)).collect::<Vec<_>>()
        };
        let one = GoldenRun { main: None, ..run(of(&plain, &[0, 0x7000_0000, 0x7000_0100], &[1, 2, 3]).concat()) };
        let mut other = of(&moved, &[0, 0x9000_0300, 0x9000_0200], &ids);
        if is_mixed {
            other.reverse();
        }
        let other = GoldenRun { main: None, ..run(other.concat()) };
        prop_assert_eq!(text(&one, &[]), text(&other, &[]));
    }

    #[test]
    fn a_diff_makes_the_one_text_of_the_other_and_is_the_shortest(old in lines(), new in lines()) {
        match diff(&old.join("\n"), &new.join("\n")) {
            None => prop_assert_eq!(old, new),
            Some(diff) => {
                prop_assert_eq!(apply(&diff, &old), new.clone(), "{}", diff);
                let changed = diff.lines().skip(2).filter(|line| line.starts_with(['+', '-'])).count();
                prop_assert_eq!(changed, shortest(&old, &new), "{}", diff);
            }
        }
    }
}
