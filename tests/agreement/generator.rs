//! What is generated: good calls of every function, most of them with one change or two.
//!
//! A call of random arguments is refused by the first check and says nothing of the others.

mod mutation;

use crate::case::{Attribute, Case, Context, DATA, Item, Lists, Situation, Spot, Stream, Value};
use aclshim_facts::Function;
use aclshim_facts::call::Form;
use mutation::mutation;
use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::select;
use proptest::strategy::Union;

type Good = (Vec<Value>, Option<Lists>);

/// Cases of these functions.
pub fn cases(functions: &[Function]) -> impl Strategy<Value = Case> + use<> {
    Union::new(functions.iter().map(|function| case(*function)))
}

fn case(function: Function) -> BoxedStrategy<Case> {
    let context = prop_oneof![8 => Just(Context::Zero), 1 => Just(Context::Another), 1 => Just(Context::One)];
    let changes = prop_oneof![
        5 => Just(Vec::new()),
        8 => vec(mutation(function), 1),
        // The order of the vendor's checks shows only where two of them fail.
        6 => vec(mutation(function), 2),
    ];
    (good(function), context, changes)
        .prop_map(move |((arguments, lists), context, mutations)| {
            let situation = Situation { context, captures: Vec::new(), exchanged: 0 };
            Case { function, arguments, lists, situation, mutations }
        })
        .boxed()
}

const HOST: [Spot; 5] = [Spot::Pageable, Spot::Pinned, Spot::Registered, Spot::Edge, Spot::Managed];
const DEVICE: [Spot; 3] = [Spot::Device0, Spot::Device1, Spot::Mirror];

fn number(number: impl TryInto<u64>) -> Value {
    Value::Number(number.try_into().unwrap_or_default())
}

fn kind(kind: i32) -> Value {
    Value::Number(i64::from(kind) as u64)
}

fn at(spots: &'static [Spot], step: u16) -> impl Strategy<Value = Value> {
    (select(spots), 0u16..8).prop_map(move |(spot, steps)| Value::Pointer(spot, steps * step))
}

fn fits() -> impl Strategy<Value = Value> {
    (0u16..1024).prop_map(Value::Fits)
}

fn own_stream() -> impl Strategy<Value = Value> {
    select(&[Stream::First, Stream::Null, Stream::Second, Stream::Default][..]).prop_map(Value::Stream)
}

fn bytes() -> impl Strategy<Value = Value> {
    // Its upper bit is set: no eight bytes of data are an address that the device might follow.
    (0x80u8..=0xff).prop_map(|byte| number(u32::from_ne_bytes([byte; 4])))
}

/// Ways that a copy goes, with the kinds that fit.
fn route(ways: &'static [(&[Spot], &[Spot], &[i32])]) -> impl Strategy<Value = (Value, Value, Value)> {
    Union::new(ways.iter().map(|(from, to, kinds)| {
        (at(to, 32), at(from, 32), select(*kinds)).prop_map(|(dst, src, value)| (dst, src, kind(value))).boxed()
    }))
}

const LINEAR: &[(&[Spot], &[Spot], &[i32])] =
    &[(&HOST, &DEVICE, &[1, 4, 5]), (&DEVICE, &HOST, &[2, 4]), (&DEVICE, &DEVICE, &[3, 4, 3, 4, 5])];
const NOW: &[(&[Spot], &[Spot], &[i32])] =
    &[(&HOST, &DEVICE, &[1, 4, 5]), (&DEVICE, &HOST, &[2, 4]), (&DEVICE, &DEVICE, &[3, 4]), (&HOST, &HOST, &[0, 4])];
const ROWS_HOST: [Spot; 4] = [Spot::Pageable, Spot::Pinned, Spot::Registered, Spot::Edge];
const ROWS_NOW: &[(&[Spot], &[Spot], &[i32])] = &[(&ROWS_HOST, &DEVICE, &[1, 4]), (&DEVICE, &ROWS_HOST, &[2, 4])];
const ROWS: &[(&[Spot], &[Spot], &[i32])] =
    &[(&ROWS_HOST, &DEVICE, &[1, 4]), (&DEVICE, &ROWS_HOST, &[2, 4]), (&DEVICE, &DEVICE, &[3])];

/// A call of the function that most products accept.
fn good(function: Function) -> BoxedStrategy<Good> {
    let plain = |arguments: BoxedStrategy<Vec<Value>>| arguments.prop_map(|values| (values, None)).boxed();
    let call = function.call(&[]);
    match (call.form, call.stream.is_some()) {
        (Form::Linear { .. }, false) => plain(linear(NOW).boxed()),
        (Form::Linear { .. }, true) => plain(on(linear(LINEAR))),
        (Form::Pitched { .. }, false) => plain(pitched(ROWS_NOW).boxed()),
        (Form::Pitched { .. }, true) => plain(on(pitched(ROWS))),
        (Form::Batch(_), false) => batch(function, Just(Vec::new()).boxed()),
        (Form::Batch(_), true) => batch(function, own_stream().prop_map(|stream| vec![stream]).boxed()),
        (Form::Indirect { .. }, _) => {
            let cell = || (0u16..16).prop_map(|cell| Value::Pointer(Spot::Cells, cell * 8));
            let cells = (cell(), 64u64..256, 0u64..32, cell(), 1u64..32, 0u64..64);
            plain(on(cells.prop_map(|(dst, max, dst_offset, src, count, src_offset)| {
                vec![dst, number(max), number(dst_offset), src, number(count), number(src_offset), kind(6)]
            })))
        }
        (Form::Described { .. }, _) => plain(on(sheet().prop_map(|desc| vec![desc, kind(6)]))),
        (Form::FromSymbol { .. }, false) => plain(from_symbol().boxed()),
        (Form::FromSymbol { .. }, true) => plain(on(from_symbol())),
        (Form::ToSymbol { .. }, false) => plain(to_symbol().boxed()),
        (Form::ToSymbol { .. }, true) => plain(on(to_symbol())),
        (Form::DescSize { .. }, _) => plain(Just(vec![kind(6), Value::Pointer(Spot::Answer, 0)]).boxed()),
        (Form::SetDesc { .. }, _) => {
            let described = (sheet(), select(&DEVICE[..2]), 0u16..8, 0u16..8, fits());
            plain(
                described
                    .prop_map(|(desc, device, from, to, count)| {
                        let (src, dst) = (Value::Pointer(device, from * 64), Value::Pointer(device, to * 64));
                        vec![desc, kind(6), src, dst, count, Value::Pointer(Spot::Null, 0)]
                    })
                    .boxed(),
            )
        }
        (Form::Fill { .. }, false) => plain(fill().boxed()),
        (Form::Fill { .. }, true) => plain(on(fill())),
        (Form::FillWords { .. }, false) => plain(fill_words().boxed()),
        (Form::FillWords { .. }, true) => plain(on(fill_words())),
    }
}

fn on(arguments: impl Strategy<Value = Vec<Value>> + 'static) -> BoxedStrategy<Vec<Value>> {
    (arguments, own_stream())
        .prop_map(|(mut arguments, stream)| {
            arguments.push(stream);
            arguments
        })
        .boxed()
}

fn linear(ways: &'static [(&[Spot], &[Spot], &[i32])]) -> impl Strategy<Value = Vec<Value>> {
    (route(ways), 0i8..3, fits())
        .prop_map(|((dst, src, kind), more, count)| vec![dst, Value::Room(more), src, count, kind])
}

fn pitched(ways: &'static [(&[Spot], &[Spot], &[i32])]) -> impl Strategy<Value = Vec<Value>> {
    (route(ways), 1u64..64, 1u64..4, 0u64..64, 0u64..64).prop_map(|((dst, src, kind), width, height, more, most)| {
        vec![dst, number(width + more), src, number(width + most), number(width), number(height), kind]
    })
}

fn sheet() -> impl Strategy<Value = Value> {
    (0u16..16).prop_map(|desc| Value::Pointer(Spot::Sheet, desc * 64))
}

fn symbol() -> Value {
    Value::Pointer(Spot::Symbol, 0)
}

fn from_symbol() -> impl Strategy<Value = Vec<Value>> {
    (at(&DATA, 32), 1u64..64, 0u64..64, select(&[2, 4][..])).prop_map(|(dst, count, offset, value)| {
        vec![dst, Value::Room(0), symbol(), number(count), number(offset), kind(value)]
    })
}

fn to_symbol() -> impl Strategy<Value = Vec<Value>> {
    (at(&DATA, 32), 1u64..64, 0u64..64, select(&[1, 4][..]))
        .prop_map(|(src, count, offset, value)| vec![symbol(), src, number(count), number(offset), kind(value)])
}

fn fill() -> impl Strategy<Value = Vec<Value>> {
    (at(&DATA, 32), bytes(), fits()).prop_map(|(dst, value, count)| vec![dst, Value::Room(0), value, count])
}

const WORDS: [Spot; 5] = [Spot::Device0, Spot::Device1, Spot::Pinned, Spot::Registered, Spot::Mirror];

fn fill_words() -> impl Strategy<Value = Vec<Value>> {
    (at(&WORDS, 4), bytes(), 1u64..64).prop_map(|(dst, value, words)| vec![dst, Value::Room(0), value, number(words)])
}

/// The types of a place: host 0, device 1, unregistered 2, managed 3, the host's NUMA node 4.
const HOST_TYPE: i32 = 0;
const DEVICE_TYPE: i32 = 1;

fn batch(function: Function, stream: BoxedStrategy<Vec<Value>>) -> BoxedStrategy<Good> {
    let has_fail_index = function.row().arguments.iter().any(|argument| argument.name == "failIndex");
    let length = prop_oneof![150 => Just(0usize), 1 => select(&[4095usize, 4096, 4097, 4100][..])];
    (vec(group(), 1..4), length, stream)
        .prop_map(move |(groups, at_least, stream)| {
            let mut arguments = vec![Value::Array; 4];
            arguments.extend([Value::Items, Value::Array, Value::Array, Value::Attributes]);
            if has_fail_index {
                arguments.push(Value::Pointer(Spot::Answer, 0));
            }
            arguments.extend(stream);
            (arguments, Some(Lists { groups, at_least }))
        })
        .boxed()
}

/// Items of one direction.
fn group() -> impl Strategy<Value = (Attribute, Vec<Item>)> {
    let host = select(&[Spot::Pinned, Spot::Pageable, Spot::Registered, Spot::Edge][..]);
    let host_type = prop_oneof![4 => Just(HOST_TYPE), 1 => Just(4)];
    let items = vec((0u16..8, 0u16..8, fits()), 1..4);
    (any::<bool>(), select(&DEVICE[..]), host, host_type, items).prop_map(|(up, device, host, host_type, items)| {
        let id = u32::from(device == Spot::Device1);
        let attribute = match up {
            true => Attribute { dst_type: DEVICE_TYPE, dst_id: id, src_type: host_type, ..Attribute::default() },
            false => Attribute { dst_type: host_type, src_type: DEVICE_TYPE, src_id: id, ..Attribute::default() },
        };
        let (to, from) = if up { (device, host) } else { (host, device) };
        let item = |(dst, src, size)| Item {
            dst: Value::Pointer(to, dst * 64),
            dst_max: Value::Room(0),
            src: Value::Pointer(from, src * 64),
            size,
        };
        (attribute, items.into_iter().map(item).collect())
    })
}
