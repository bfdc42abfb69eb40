//! What can be changed of a good call, and into what.

use super::{bytes, fits, kind, number};
use crate::case::{ANYWHERE, Capture, Context, Mutation, Sides, Spot, Stream, Value, Who};
use crate::scene::SHEET;
use aclshim_facts::Function;
use proptest::prelude::{BoxedStrategy, Just, Strategy};
use proptest::sample::select;
use proptest::strategy::Union;
use proptest::{option, prop_oneof};

/// One change of a call of this function.
pub fn mutation(function: Function) -> BoxedStrategy<Mutation> {
    let is_batch = function.row().name.contains("Batch");
    let arguments: Vec<_> = (0..function.row().arguments.len()).map(|position| argument(function, position)).collect();
    let situation = prop_oneof![
        2 => select(&[Context::None, Context::Another, Context::One][..]).prop_map(Mutation::Context),
        3 => captures(),
    ];
    let mut choices: Vec<(u32, BoxedStrategy<Mutation>)> = vec![
        (arguments.len() as u32, Union::new(arguments).boxed()),
        (1, Just(Mutation::Alias).boxed()),
        (1, select(&[Sides::Both, Sides::Source][..]).prop_map(Mutation::RunsOut).boxed()),
        (1, select(vec![1 << 32, (1 << 32) + 1, 1 << 48, u64::MAX]).prop_map(Mutation::Large).boxed()),
        (2, situation.boxed()),
    ];
    if !is_batch && function.row().arguments.iter().any(|argument| argument.name == "src") {
        let route = (select(&ANYWHERE[1..]), select(&ANYWHERE[1..]), 0..6);
        choices.push((4, route.prop_map(|(dst, src, kind)| Mutation::Route(dst, src, kind)).boxed()));
    }
    if function.row().name.contains("2d") {
        choices.push((3, select(vec![2049, 5_000_000, 5_000_001]).prop_map(Mutation::Wide).boxed()));
    }
    if is_batch {
        choices.push((12, of_lists().boxed()));
    }
    Union::new_weighted(choices).boxed()
}

fn captures() -> impl Strategy<Value = Mutation> {
    let capture =
        (select(&[Stream::First, Stream::Foreign][..]), 0..3, select(&[Who::ThisThread, Who::AnotherThread][..]))
            .prop_map(|(stream, mode, by)| Capture { stream, mode, by });
    (
        capture,
        option::weighted(0.2, (0..3, select(&[Who::ThisThread, Who::AnotherThread][..]))),
        prop_oneof![2 => Just(0), 1 => 1..3],
    )
        .prop_map(|(first, second, exchanged)| {
            let other = if first.stream == Stream::First { Stream::Second } else { Stream::First };
            let second = second.map(|(mode, by)| Capture { stream: other, mode, by });
            Mutation::Captures([first].into_iter().chain(second).collect(), exchanged)
        })
}

fn anywhere() -> impl Strategy<Value = Value> {
    let offset = select(&[0u16, 1, 2, 3, 4, 32, 64, 65, 100, 1024, 2000, 2016, 2047][..]);
    (select(&ANYWHERE[..]), offset).prop_map(|(spot, offset)| Value::Pointer(spot, offset))
}

fn any_size() -> impl Strategy<Value = Value> {
    let numbers = [
        0,
        1,
        3,
        63,
        64,
        65,
        2047,
        2048,
        2049,
        4096,
        4097,
        5_000_000,
        5_000_001,
        5_242_880,
        5_242_881,
        (1 << 32) - 1,
        1 << 32,
        (1 << 32) + 1,
        (1 << 48) - 1,
        1 << 48,
        1 << 62,
        (1 << 62) + 1,
        u64::MAX - 63,
        u64::MAX,
    ];
    prop_oneof![
        2 => Just(number(0u64)),
        6 => select(numbers.to_vec()).prop_map(Value::Number),
        3 => select(&[0i8, 1, -1, 64][..]).prop_map(Value::Room),
        2 => fits(),
    ]
}

fn any_kind() -> impl Strategy<Value = Value> {
    prop_oneof![9 => -1..10, 1 => select(&[i32::MIN, i32::MAX][..])].prop_map(kind)
}

fn any_stream() -> impl Strategy<Value = Value> {
    use Stream::{Default, Destroyed, First, Foreign, Garbage, Null, Second};
    select(&[Null, Default, First, Second, Foreign, Foreign, Destroyed, Garbage][..]).prop_map(Value::Stream)
}

/// Another value for an argument.
fn argument(function: Function, position: usize) -> BoxedStrategy<Mutation> {
    let argument = &function.row().arguments[position];
    let is_batch = function.row().name.contains("Batch");
    let null = || Just(Value::Pointer(Spot::Null, 0));
    let value: BoxedStrategy<Value> = match (argument.name, argument.c_type) {
        ("numBatches", _) => select(vec![0, 1, 2, 5, 4096, 4097, u64::MAX]).prop_map(Value::Number).boxed(),
        ("numAttrs", _) => select(vec![0, 1, 2, 3, 5, 4098, u64::MAX]).prop_map(Value::Number).boxed(),
        ("failIndex" | "descSize", _) => null().boxed(),
        (_, kind) if is_batch && kind.contains('*') => null().boxed(),
        (_, "aclrtMemcpyKind") => any_kind().boxed(),
        (_, "aclrtStream") => any_stream().boxed(),
        (_, "size_t") => any_size().boxed(),
        ("value", _) => bytes().boxed(),
        ("desc", _) => {
            let last = Just(Value::Pointer(Spot::Sheet, SHEET as u16 / 64 * 64));
            prop_oneof![1 => null(), 2 => last, 8 => anywhere()].boxed()
        }
        ("symbol", _) => {
            let symbols = select(&[Spot::Null, Spot::NoSymbol][..]).prop_map(|spot| Value::Pointer(spot, 0));
            prop_oneof![3 => symbols, 1 => anywhere()].boxed()
        }
        _ => prop_oneof![1 => null(), 8 => anywhere()].boxed(),
    };
    value.prop_map(move |value| Mutation::Argument(position, value)).boxed()
}

/// A change in the lists of a batch.
fn of_lists() -> impl Strategy<Value = Mutation> {
    let nth = 0usize..9;
    let place = || -1i32..6;
    prop_oneof![
        1 => Just(Mutation::OneSide),
        3 => (nth.clone(), anywhere()).prop_map(|(at, value)| Mutation::ItemDst(at, value)),
        3 => (nth.clone(), anywhere()).prop_map(|(at, value)| Mutation::ItemSrc(at, value)),
        2 => (nth.clone(), any_size()).prop_map(|(at, value)| Mutation::ItemMax(at, value)),
        2 => (nth.clone(), any_size()).prop_map(|(at, value)| Mutation::ItemSize(at, value)),
        1 => prop_oneof![2 => Just(number(0u64)), 1 => fits()].prop_map(Mutation::Sizes),
        2 => (nth.clone(), place()).prop_map(|(at, value)| Mutation::DstType(at, value)),
        2 => (nth.clone(), place()).prop_map(|(at, value)| Mutation::SrcType(at, value)),
        1 => (nth.clone(), 0u32..3).prop_map(|(at, value)| Mutation::DstId(at, value)),
        1 => (nth.clone(), 0u32..3).prop_map(|(at, value)| Mutation::SrcId(at, value)),
        1 => (nth.clone(), 0u8..16, 0u8..3).prop_map(|(at, byte, value)| Mutation::Reserved(at, byte, value)),
        3 => (nth, prop_oneof![5 => 0u64..6, 1 => Just(u64::MAX)]).prop_map(|(at, value)| Mutation::Index(at, value)),
    ]
}
