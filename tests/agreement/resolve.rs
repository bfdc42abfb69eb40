//! From a case to a call: its arguments as words, and the arrays of a batch in memory.
//!
//! A call from which the vendor would not return is changed into one from which it does: what the vendor does with
//! bad host memory between two host addresses is a crash, and so would it be here.

use crate::case::{Attribute, Case, Flat, Situation, Spot, Value};
use crate::scene::{Mapping, SLACK, Scene, WINDOW};
use aclshim_facts::abi::{aclrtMemLocation, aclrtMemcpyBatchAttr};
use aclshim_facts::call::Form;
use aclshim_facts::rule::Arrays;
use aclshim_facts::{FUNCTIONS, Function};
use std::ffi::c_void;
use std::fmt::{self, Display, Formatter};

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

/// The arrays of a batch, as numbers.
#[derive(Clone, Default)]
pub struct Numbers {
    pub dsts: Vec<u64>,
    pub dst_maxs: Vec<u64>,
    pub srcs: Vec<u64>,
    pub sizes: Vec<u64>,
    pub attributes: Vec<Attribute>,
    pub indexes: Vec<u64>,
}

/// Where the arrays of a batch lie: each ends where the unreachable begins, so that nobody reads too far unseen.
pub struct Shelf {
    places: [Mapping; 6],
}

impl Shelf {
    pub fn new() -> Self {
        Self { places: std::array::from_fn(|_| Mapping::new(256 * 1024)) }
    }

    fn place<T: Copy>(&self, at: usize, entries: &[T]) -> u64 {
        let start = self.places[at].end - size_of_val(entries);
        // SAFETY: the end of a mapping of ours, which is large enough for every array that is made.
        unsafe { std::ptr::copy_nonoverlapping(entries.as_ptr(), start as *mut T, entries.len()) };
        start as u64
    }

    /// Puts the arrays in their places; their addresses in the order of the arguments.
    fn fill(&self, numbers: &Numbers) -> [u64; 6] {
        let attributes: Vec<aclrtMemcpyBatchAttr> = numbers.attributes.iter().map(Attribute::as_c).collect();
        [
            self.place(0, &numbers.dsts),
            self.place(1, &numbers.dst_maxs),
            self.place(2, &numbers.srcs),
            self.place(3, &numbers.sizes),
            self.place(4, &attributes),
            self.place(5, &numbers.indexes),
        ]
    }
}

impl Attribute {
    fn as_c(&self) -> aclrtMemcpyBatchAttr {
        let mut rsv = [0; 16];
        if let Some((at, value)) = self.reserved {
            rsv[usize::from(at) % 16] = value;
        }
        aclrtMemcpyBatchAttr {
            dstLoc: aclrtMemLocation { id: self.dst_id, type_: self.dst_type },
            srcLoc: aclrtMemLocation { id: self.src_id, type_: self.src_type },
            rsv,
        }
    }
}

/// Makes the call of a case.
pub fn resolve(case: &Case, scene: &Scene, shelf: &Shelf) -> Resolved {
    let (arguments, flat, mut situation) = case.changed();
    if !scene.is_open() {
        situation = Situation { context: crate::case::Context::None, captures: Vec::new(), exchanged: 0 };
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

fn is_host(address: u64) -> bool {
    !WINDOW.contains(&(address as usize))
}

/// Between two host addresses an item is copied by the processor: both must be there.
fn tame_items(lists: &mut Numbers, scene: &Scene) {
    for at in 0..lists.dsts.len() {
        let (dst, src, size) = (lists.dsts[at], lists.srcs[at], lists.sizes[at]);
        if is_host(dst) && is_host(src) && size <= lists.dst_maxs[at] {
            lists.sizes[at] = size.min(both(dst, src, scene));
        }
    }
}

fn both(dst: u64, src: u64, scene: &Scene) -> u64 {
    scene.reach(dst as usize).min(scene.reach(src as usize)) as u64
}

/// The position of an argument.
fn position(function: Function, name: &str) -> usize {
    FUNCTIONS[function as usize].arguments.iter().position(|argument| argument.name == name).expect("an argument")
}

fn tame(function: Function, words: &mut [u64], scene: &Scene) {
    let pageable = scene.address(Spot::Pageable) as u64;
    match function.call(words).form {
        Form::Linear { dst, dst_max, src, count, kind } => {
            let (dst, src) = (dst as u64, src as u64);
            let is_buffered = kind.0 == 5;
            if count > dst_max || dst == 0 || src == 0 {
                return;
            }
            if is_host(src) && (is_host(dst) || is_buffered) {
                if scene.reach(src as usize) == 0 {
                    words[2] = pageable;
                }
                if is_host(dst) && scene.reach(dst as usize) == 0 {
                    words[0] = pageable;
                }
                let reach =
                    if is_host(dst) { both(words[0], words[2], scene) } else { scene.reach(words[2] as usize) as u64 };
                words[3] = words[3].min(reach);
            } else if is_buffered {
                // The buffer would be as large as it says.
                words[3] = words[3].min(1 << 16);
            }
        }
        Form::Pitched { dst, dst_pitch, src, src_pitch, width, height, .. } => {
            let sides = [(dst as u64, dst_pitch), (src as u64, src_pitch)];
            let extent = |pitch: usize| height.saturating_sub(1).saturating_mul(pitch).saturating_add(width);
            let runs_out =
                |(address, pitch): (u64, usize)| !is_host(address) && extent(pitch) > scene.reach(address as usize);
            let too_far = |(address, pitch): (u64, usize)| is_host(address) && extent(pitch) > SLACK;
            if !sides.into_iter().any(runs_out) && sides.into_iter().any(too_far) {
                words[position(function, "height")] = words[position(function, "height")].min(1);
                if width > SLACK && width <= dst_pitch.min(src_pitch) {
                    words[position(function, "width")] = 64;
                }
            }
        }
        Form::Fill { dst, dst_max, count, .. } if is_host(dst as u64) && count <= dst_max => {
            if scene.reach(dst as usize) == 0 && !dst.is_null() {
                words[0] = pageable;
            }
            words[3] = words[3].min(scene.reach(words[0] as usize).max(1) as u64);
        }
        Form::FillWords { dst, dst_max, words: count, .. }
            if is_host(dst as u64) && (scene.reach(dst as usize)..=dst_max).contains(&count.wrapping_mul(4)) =>
        {
            words[3] = words[3].min(1);
        }
        // Descriptors hold addresses, and those must not come among the data.
        Form::SetDesc { desc, .. } => {
            for spot in crate::case::DATA {
                let start = scene.address(spot);
                if !is_host(start as u64) && (start..start + crate::scene::SIZE).contains(&(desc as usize)) {
                    words[0] = (scene.address(Spot::Sheet) + (desc as usize - start)) as u64;
                }
            }
        }
        _ => {}
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

/// As a person reads it: the call, and where its pointers point.
pub struct Shown<'a>(pub &'a Resolved, pub &'a Scene);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let Self(resolved, scene) = *self;
        let row = resolved.function.row();
        write!(f, "{}(", row.name)?;
        for (at, (argument, word)) in row.arguments.iter().zip(&resolved.words).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            let name = argument.name;
            match argument.c_type {
                "aclrtStream" => write!(f, "{comma}{name}={}", stream_name(*word, resolved, scene))?,
                kind if kind.contains('*') => {
                    let is_array = resolved.lists.is_some() && *word != 0 && name != "failIndex";
                    let shown = if is_array { "array".into() } else { pointer_name(*word, scene) };
                    write!(f, "{comma}{name}={shown}")?;
                }
                "aclrtMemcpyKind" | "int32_t" => write!(f, "{comma}{name}={}", *word as i32)?,
                _ => write!(f, "{comma}{name}={}", size_name(*word))?,
            }
        }
        writeln!(f, ")")?;
        if let Some(lists) = &resolved.lists {
            for at in 0..lists.dsts.len().min(12) {
                writeln!(
                    f,
                    "  item {at}: dst={} destMax={} src={} size={}",
                    pointer_name(lists.dsts[at], scene),
                    size_name(lists.dst_maxs[at]),
                    pointer_name(lists.srcs[at], scene),
                    size_name(lists.sizes[at])
                )?;
            }
            if lists.dsts.len() > 12 {
                writeln!(f, "  ... {} items in all", lists.dsts.len())?;
            }
            for (at, attribute) in lists.attributes.iter().enumerate().take(8) {
                let Attribute { dst_type, dst_id, src_type, src_id, reserved } = attribute;
                let index = size_name(lists.indexes.get(at).copied().unwrap_or_default());
                writeln!(
                    f,
                    "  attribute {at} from item {index}: dst type {dst_type} id {dst_id}, src type {src_type} id {src_id}, \
                     rsv {reserved:?}"
                )?;
            }
        }
        let Situation { context, captures, exchanged } = &resolved.situation;
        writeln!(
            f,
            "  context {context:?}, captures {captures:?}, exchanged mode {exchanged}, open {}",
            scene.is_open()
        )
    }
}

fn size_name(size: u64) -> String {
    match size {
        u64::MAX => "SIZE_MAX".into(),
        0x1_0000..=u64::MAX => format!("{size:#x}"),
        _ => size.to_string(),
    }
}

fn pointer_name(word: u64, scene: &Scene) -> String {
    const NAMED: [Spot; 16] = {
        use Spot::*;
        [
            Window,
            Pageable,
            Edge,
            Pinned,
            Registered,
            Managed,
            Device0,
            Device1,
            Mirror,
            Freed,
            Unreachable,
            Cells,
            Sheet,
            Symbol,
            NoSymbol,
            Answer,
        ]
    };
    let address = word as usize;
    let size = |spot| if matches!(spot, Spot::Symbol | Spot::NoSymbol) { 1 } else { crate::scene::SIZE };
    let spot = NAMED.into_iter().find(|spot| {
        let start = scene.address(*spot);
        start != 0 && (start..start + size(*spot)).contains(&address)
    });
    match spot {
        _ if word == 0 => "NULL".into(),
        Some(spot) if address == scene.address(spot) => format!("{spot:?}"),
        Some(spot) => format!("{spot:?}+{}", address - scene.address(spot)),
        None => format!("{address:#x}"),
    }
}

fn stream_name(word: u64, resolved: &Resolved, scene: &Scene) -> String {
    format!("{:?}", scene.stream_is(word as usize, &resolved.situation))
}
