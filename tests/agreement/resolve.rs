//! From a case to a call: its arguments as words, and the arrays of a batch in memory.

use crate::case::{Case, Context, Flat, Situation, Spot, Value};
use crate::scene::Scene;
use crate::shelf::{Numbers, Shelf};
use crate::tame::{tame, tame_items};
use aclshim_facts::Function;
use aclshim_facts::call::Form;
use aclshim_facts::rule::Arrays;
use std::ffi::c_void;

/// What `failIndex` and `descSize` hold before a call.
pub const UNTOUCHED: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// The most entries that an array really has.
const MOST: u64 = 5000;

/// A call that can be made.
pub struct Resolved {
    pub function: Function,
    pub words: Vec<u64>,
    pub situation: Situation,
    pub lists: Option<Numbers>,
}

/// Makes the call of a case.
pub fn resolve(case: &Case, scene: &Scene, shelf: &Shelf) -> Resolved {
    let (arguments, flat, mut situation) = case.changed();
    if !scene.is_open() {
        situation = Situation { context: Context::None, captures: Vec::new(), exchanged: 0 };
    }
    let function = case.function;
    let numbers = |values: &[Value], counts: (u64, u64)| -> Vec<u64> {
        let room = room(values, scene);
        values.iter().map(|value| word(*value, room, counts, &situation, scene)).collect()
    };
    let counts = flat.as_ref().map_or((0, 0), |flat| (flat.items.len() as u64, flat.attributes.len() as u64));
    let mut words = numbers(&arguments, counts);
    let mut lists = flat.map(|flat| lists(flat, numbers));
    if let Some(lists) = &mut lists {
        stretch(lists, words[4], words[7]);
        tame_items(lists, scene);
        let places = shelf.fill(lists);
        for (argument, place) in [0, 1, 2, 3, 5, 6].into_iter().zip(places) {
            if arguments[argument] == Value::Array {
                words[argument] = place;
            }
        }
    }
    tame(function, &mut words, scene);
    Resolved { function, words, situation, lists }
}

fn word(value: Value, room: usize, (items, attributes): (u64, u64), situation: &Situation, scene: &Scene) -> u64 {
    match value {
        Value::Number(number) => number,
        Value::Fits(number) => (1 + usize::from(number) % room) as u64,
        Value::Room(more) => (room as u64).saturating_add_signed(i64::from(more)),
        Value::Pointer(Spot::Null, _) => 0,
        Value::Pointer(spot, offset) => (scene.address(spot) + usize::from(offset)) as u64,
        Value::Stream(stream) => scene.stream(stream, situation.context) as u64,
        Value::Array => 0,
        Value::Items => items,
        Value::Attributes => attributes,
    }
}

/// How many bytes fit where all of the pointers point.
fn room(values: &[Value], scene: &Scene) -> usize {
    let rooms = values.iter().filter_map(|value| match value {
        Value::Pointer(spot, offset) => Some(scene.reach(scene.address(*spot) + usize::from(*offset))),
        _ => None,
    });
    rooms.filter(|room| *room > 0).min().unwrap_or(crate::scene::SIZE)
}

fn lists(flat: Flat, numbers: impl Fn(&[Value], (u64, u64)) -> Vec<u64>) -> Numbers {
    let mut lists = Numbers { attributes: flat.attributes, indexes: flat.indexes, ..Numbers::default() };
    for item in flat.items {
        let item = numbers(&[item.dst, item.dst_max, item.src, item.size], (0, 0));
        lists.dsts.push(item[0]);
        lists.dst_maxs.push(item[1]);
        lists.srcs.push(item[2]);
        lists.sizes.push(item[3]);
    }
    lists
}

/// Gives the arrays as many entries as the call says that they have; where that is beyond all measure, the call is
/// made one that is refused for its first entry.
fn stretch(lists: &mut Numbers, items: u64, attributes: u64) {
    let cycle = |list: &mut Vec<u64>, size: u64| {
        let old = list.clone();
        list.extend((old.len() as u64..size).map(|at| old[at as usize % old.len()]));
        list.truncate(size.max(1) as usize);
    };
    if items <= MOST {
        for list in [&mut lists.dsts, &mut lists.dst_maxs, &mut lists.srcs, &mut lists.sizes] {
            cycle(list, items);
        }
    } else {
        (lists.sizes[0], lists.dst_maxs[0]) = (8, 7);
    }
    if attributes <= MOST {
        let (last, number) = (lists.attributes[lists.attributes.len() - 1], attributes.max(1));
        lists.attributes.resize(number as usize, last);
        let next = lists.indexes.len() as u64..number;
        lists.indexes.extend(next);
        lists.indexes.truncate(number as usize);
    } else {
        lists.attributes[0].reserved = Some((0, 1));
    }
}

impl Resolved {
    /// The stream argument.
    pub fn stream(&self) -> Option<usize> {
        self.function.call(&self.words).stream.map(|stream| stream as usize)
    }

    /// Where `failIndex` goes, if there is one.
    pub fn fail_index(&self) -> Option<*mut u64> {
        match self.function.call(&self.words).form {
            Form::Batch(batch) => batch.fail_index.filter(|place| !place.is_null()).map(<*mut usize>::cast),
            _ => None,
        }
    }

    /// The arrays as far as they may be read: none longer than it is, none longer than the call says.
    pub fn arrays(&self) -> Arrays<'_> {
        let (Form::Batch(batch), Some(lists)) = (self.function.call(&self.words).form, &self.lists) else {
            return Arrays::default();
        };
        fn array<'a, T>(start: *mut T, has: usize, said: usize) -> Option<&'a [T]> {
            // SAFETY: an array on the shelf, which stays there as it is until the next case.
            (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, has.min(said)) })
        }
        let items = lists.dsts.len();
        Arrays {
            dsts: array::<*mut c_void>(batch.dsts, items, batch.items),
            dst_maxs: array(batch.dst_maxs, items, batch.items),
            srcs: array(batch.srcs, items, batch.items),
            sizes: array(batch.sizes, items, batch.items),
            attrs: array(batch.attrs, lists.attributes.len(), batch.attr_count),
            attr_indexes: array(batch.attr_indexes, lists.indexes.len(), batch.attr_count),
        }
    }
}
