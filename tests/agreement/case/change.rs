//! The changes that are made of a good call.

use super::{Attribute, Capture, Case, Context, DATA, Item, Lists, Situation, Spot, Value};

/// One change of a good call.
#[derive(Clone, Debug)]
pub enum Mutation {
    Argument(usize, Value),
    /// The destination is the source.
    Alias,
    /// From close to the end of its memory, more than there is: on one side or on both.
    RunsOut(Sides),
    /// A size and a room of this many bytes.
    Large(u64),
    /// From anywhere to anywhere, of any kind.
    Route(Spot, Spot, i32),
    /// Rows of this width, with pitches to match.
    Wide(u64),
    ItemDst(usize, Value),
    ItemMax(usize, Value),
    ItemSrc(usize, Value),
    ItemSize(usize, Value),
    /// All items are of this size.
    Sizes(Value),
    DstType(usize, i32),
    SrcType(usize, i32),
    DstId(usize, u32),
    SrcId(usize, u32),
    Reserved(usize, u8, u8),
    Index(usize, u64),
    /// The items of the first attribute stay on one side, and it says so.
    OneSide,
    Context(Context),
    Captures(Vec<Capture>, i32),
}
/// Which sides of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    Both,
    /// All but the destination.
    Source,
}

/// The lists of a batch, flat and with their indexes.
#[derive(Clone, Debug, Default)]
pub struct Flat {
    pub items: Vec<Item>,
    pub attributes: Vec<Attribute>,
    pub indexes: Vec<u64>,
}

/// The arguments that are sizes of what is copied or set, and of the room for it.
const SIZES: [&str; 4] = ["destMax", "dstMax", "maxCount", "count"];

/// The bytes that are left there.
const LAST_BYTES: u64 = 8;
const NEAR_THE_END: u16 = crate::scene::SIZE as u16 - LAST_BYTES as u16;

impl Lists {
    fn flat(&self) -> Flat {
        let mut flat = Flat::default();
        for (attribute, items) in &self.groups {
            flat.attributes.push(*attribute);
            flat.indexes.push(flat.items.len() as u64);
            flat.items.extend(items.iter().cloned());
        }
        if let Some(last) = flat.items.last().cloned() {
            flat.items.resize(flat.items.len().max(self.at_least), last);
        }
        flat
    }
}

impl Case {
    /// The call with its changes made.
    pub fn changed(&self) -> (Vec<Value>, Option<Flat>, Situation) {
        let mut arguments = self.arguments.clone();
        let mut flat = self.lists.as_ref().map(Lists::flat);
        let mut situation = self.situation.clone();
        for mutation in &self.mutations {
            match mutation {
                Mutation::Argument(at, value) => arguments[*at] = *value,
                Mutation::Alias => self.alias(&mut arguments, flat.as_mut()),
                Mutation::RunsOut(sides) => self.run_out(*sides, &mut arguments, flat.as_mut()),
                Mutation::Large(size) => self.set(&mut arguments, &SIZES, Value::Number(*size)),
                Mutation::Route(dst, src, kind) => {
                    self.set(&mut arguments, &["dst"], Value::Pointer(*dst, 0));
                    self.set(&mut arguments, &["src"], Value::Pointer(*src, 0));
                    self.set(&mut arguments, &["kind"], Value::Number(*kind as u64));
                }
                Mutation::Wide(width) => {
                    self.set(&mut arguments, &["width", "dpitch", "spitch"], Value::Number(*width))
                }
                Mutation::Context(context) => situation.context = *context,
                Mutation::Captures(captures, exchanged) => {
                    situation.captures.clone_from(captures);
                    situation.exchanged = *exchanged;
                }
                _ => {
                    if let Some(flat) = &mut flat {
                        flat.change(mutation);
                    }
                }
            }
        }
        (arguments, flat, situation)
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.function.row().arguments.iter().position(|argument| argument.name == name)
    }

    fn set(&self, arguments: &mut [Value], names: &[&str], value: Value) {
        for at in names.iter().filter_map(|name| self.position(name)) {
            arguments[at] = value;
        }
    }

    fn run_out(&self, sides: Sides, arguments: &mut [Value], flat: Option<&mut Flat>) {
        let near_its_end = |value: Value| match value {
            Value::Pointer(spot, _) if DATA.contains(&spot) => Value::Pointer(spot, NEAR_THE_END),
            other => other,
        };
        for (value, argument) in arguments.iter_mut().zip(self.function.row().arguments) {
            if sides == Sides::Both || !argument.name.starts_with("dst") {
                *value = near_its_end(*value);
            }
        }
        self.set(arguments, &SIZES, Value::Room(1));
        self.set(arguments, &["memSize"], Value::Number(4 * LAST_BYTES));
        self.set(arguments, &["N"], Value::Number(LAST_BYTES));
        if let Some(item) = flat.and_then(|flat| flat.items.last_mut()) {
            item.src = near_its_end(item.src);
            if sides == Sides::Both {
                item.dst = near_its_end(item.dst);
            }
            (item.dst_max, item.size) = (Value::Room(1), Value::Room(1));
        }
    }

    fn alias(&self, arguments: &mut [Value], flat: Option<&mut Flat>) {
        let at = |name| self.position(name);
        if let (Some(dst), Some(src)) = (at("dst"), at("src")) {
            arguments[dst] = arguments[src];
        }
        if let Some(item) = flat.and_then(|flat| flat.items.first_mut()) {
            item.dst = item.src;
        }
    }
}

impl Flat {
    fn one_side(&mut self) {
        let group = self.indexes.get(1).map_or(self.items.len(), |next| *next as usize).min(self.items.len());
        for item in &mut self.items[..group] {
            if let (Value::Pointer(spot, _), Value::Pointer(_, offset)) = (item.dst, item.src) {
                item.src = Value::Pointer(spot, offset);
            }
        }
        if let Some(attribute) = self.attributes.first_mut() {
            (attribute.src_type, attribute.src_id) = (attribute.dst_type, attribute.dst_id);
        }
    }

    fn change(&mut self, mutation: &Mutation) {
        fn nth<T>(list: &mut [T], at: usize) -> Option<&mut T> {
            let at = at.checked_rem(list.len())?;
            list.get_mut(at)
        }
        match *mutation {
            Mutation::ItemDst(at, value) => nth(&mut self.items, at).into_iter().for_each(|item| item.dst = value),
            Mutation::ItemMax(at, value) => nth(&mut self.items, at).into_iter().for_each(|item| item.dst_max = value),
            Mutation::ItemSrc(at, value) => nth(&mut self.items, at).into_iter().for_each(|item| item.src = value),
            Mutation::ItemSize(at, value) => nth(&mut self.items, at).into_iter().for_each(|item| item.size = value),
            Mutation::Sizes(value) => self.items.iter_mut().for_each(|item| item.size = value),
            Mutation::DstType(at, value) => nth(&mut self.attributes, at).into_iter().for_each(|a| a.dst_type = value),
            Mutation::SrcType(at, value) => nth(&mut self.attributes, at).into_iter().for_each(|a| a.src_type = value),
            Mutation::DstId(at, value) => nth(&mut self.attributes, at).into_iter().for_each(|a| a.dst_id = value),
            Mutation::SrcId(at, value) => nth(&mut self.attributes, at).into_iter().for_each(|a| a.src_id = value),
            Mutation::Reserved(at, byte, value) => {
                nth(&mut self.attributes, at).into_iter().for_each(|a| a.reserved = Some((byte, value)));
            }
            Mutation::Index(at, value) => nth(&mut self.indexes, at).into_iter().for_each(|index| *index = value),
            Mutation::OneSide => self.one_side(),
            Mutation::Argument(..)
            | Mutation::Alias
            | Mutation::RunsOut(_)
            | Mutation::Large(_)
            | Mutation::Route(..)
            | Mutation::Wide(_)
            | Mutation::Context(_)
            | Mutation::Captures(..) => {}
        }
    }
}
