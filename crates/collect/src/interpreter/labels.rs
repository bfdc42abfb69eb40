//! What a program has called its scopes, streams and buffers.
//!
//! A name holds from when it was given until another takes its place or it is taken back. A stream's first name is also
//! shown for what came before it: a handle is often named after its first copies. Memory is used again for other things,
//! so a buffer's is not. What is learned twice, or in another order than it was said, makes no difference.

use aclshim_trace::record::annotation::{Annotation, NamedKind};
use aclshim_trace::record::slot::{Head, Layout, Note, Words};
use aclshim_trace::record::{Entry, decode};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of scopes, names of streams and names of buffers that a reader of traces remembers; of scopes the latest.
const MOST: [usize; 3] = [1 << 18, 1 << 16, 1 << 14];

/// A scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// What it is called.
    pub name: Arc<str>,
    /// The scope that it lies in, or 0.
    pub parent: u32,
    /// When it began, in ticks.
    pub begin: u64,
    /// When it ended, in ticks, and how many expectations had failed.
    pub end: Option<(u64, u64)>,
}

/// A name for memory, while it holds.
#[derive(Debug)]
struct Piece {
    end: u64,
    name: Arc<str>,
    from: u64,
    until: u64,
}

/// What a process calls its scopes, streams and buffers.
#[derive(Debug)]
pub struct Labels {
    scopes: BTreeMap<u32, Scope>,
    /// Ends of scopes whose beginnings have not been read.
    ends: BTreeMap<u32, (u64, u64)>,
    /// By handle: from when on which name holds.
    streams: BTreeMap<u64, Vec<(u64, Arc<str>)>>,
    /// How many names that are, and how many of buffers.
    names: [usize; 2],
    /// By first address.
    buffers: BTreeMap<u64, Vec<Piece>>,
    /// How long the longest is.
    longest: u64,
    most: [usize; 3],
}

impl Default for Labels {
    fn default() -> Self {
        Self::with_most(MOST)
    }
}

impl Labels {
    /// For a drain, which reads without end and does not ask for buffers.
    pub(crate) fn of_few() -> Self {
        Self::with_most([4096, 4096, 0])
    }

    fn with_most(most: [usize; 3]) -> Self {
        let (scopes, ends, streams, buffers) = Default::default();
        Self { scopes, ends, streams, names: [0; 2], buffers, longest: 0, most }
    }

    /// Takes over what the program said at that time, in ticks.
    pub fn learn(&mut self, ticks: u64, told: &Annotation) {
        match told {
            Annotation::Scope { id, parent, name } => {
                let end = self.ends.remove(id);
                let scope = || Scope { name: name.as_str().into(), parent: *parent, begin: ticks, end };
                self.scopes.entry(*id).or_insert_with(scope);
                if self.scopes.len() > self.most[0] {
                    self.scopes.pop_first();
                }
            }
            Annotation::ScopeEnd { id, failures } => match self.scopes.get_mut(id) {
                Some(scope) => scope.end = Some((ticks, *failures)),
                None => {
                    self.ends.insert(*id, (ticks, *failures));
                    if self.ends.len() > self.most[0] {
                        self.ends.pop_first();
                    }
                }
            },
            Annotation::Name { kind: NamedKind::Stream, begin, name, .. } => self.stream_is(*begin, ticks, name),
            Annotation::Name { kind: NamedKind::Buffer, begin, size, name } => {
                self.buffer_is(*begin, *size, ticks, name)
            }
            Annotation::Mark { .. } => {}
        }
    }

    /// Takes over what slots tell; whatever else they hold is none of its business.
    pub fn learn_slots(&mut self, first: u64, slots: &[Words]) {
        for (at, _) in slots.iter().enumerate().filter(|(_, slot)| is_told(slot)) {
            if let Some((Entry::Annotation { ticks, annotation: what }, _)) =
                decode(&slots[at..], first.saturating_add(at as u64))
            {
                self.learn(ticks, &what);
            }
        }
    }

    fn stream_is(&mut self, stream: u64, ticks: u64, name: &str) {
        if self.names[0] >= self.most[1] {
            // Only the last of each stream, and none that was taken back.
            for names in self.streams.values_mut() {
                names.drain(..names.len().saturating_sub(1));
            }
            self.streams.retain(|_, names| names.iter().any(|(_, name)| !name.is_empty()));
            self.names[0] = self.streams.len();
        }
        if self.names[0] >= self.most[1] {
            return;
        }
        let names = self.streams.entry(stream).or_default();
        let at = names.partition_point(|(from, _)| *from < ticks);
        if names.get(at).is_none_or(|(from, known)| *from != ticks || **known != *name) {
            names.insert(at, (ticks, name.into()));
            self.names[0] += 1;
        }
    }

    fn buffer_is(&mut self, begin: u64, size: u64, ticks: u64, name: &str) {
        let end = begin.saturating_add(size);
        let is_known = |piece: &Piece| piece.from == ticks && piece.end == end && *piece.name == *name;
        let known = self.buffers.get(&begin);
        if known.is_some_and(|pieces| pieces.iter().any(is_known)) || self.names[1] >= self.most[2] {
            return;
        }
        self.names[1] += 1;
        self.longest = self.longest.max(size);
        let mut until = u64::MAX;
        let near = self.buffers.range_mut(begin.saturating_sub(self.longest)..end).flat_map(|(_, pieces)| pieces);
        for other in near.filter(|other| other.end > begin) {
            if other.from <= ticks {
                other.until = other.until.min(ticks);
            } else {
                until = until.min(other.from);
            }
        }
        let pieces = self.buffers.entry(begin).or_default();
        let at = pieces.partition_point(|piece| piece.from <= ticks);
        pieces.insert(at, Piece { end, name: name.into(), from: ticks, until });
    }

    /// A scope by its number.
    pub fn scope(&self, id: u32) -> Option<&Scope> {
        self.scopes.get(&id)
    }

    /// All scopes by their numbers.
    pub fn scopes(&self) -> impl Iterator<Item = (u32, &Scope)> {
        self.scopes.iter().map(|(id, scope)| (*id, scope))
    }

    /// What a scope is called: if that is not known, its number; nothing if there is none.
    pub fn scope_name(&self, id: u32) -> Option<Cow<'_, str>> {
        let name = || self.scope(id).map_or_else(|| format!("#{id}").into(), |scope| Cow::from(&*scope.name));
        (id != 0).then(name)
    }

    /// What a stream was called at that time.
    pub fn stream(&self, stream: u64, ticks: u64) -> Option<&str> {
        let names = self.streams.get(&stream)?;
        let behind = names.partition_point(|(from, _)| *from <= ticks);
        let (_, name) = names.get(behind.saturating_sub(1))?;
        Some(&**name).filter(|name| !name.is_empty())
    }

    /// The last name that a stream has had.
    pub fn latest_stream(&self, stream: u64) -> Option<&str> {
        self.streams.get(&stream)?.iter().rev().map(|(_, name)| &**name).find(|name| !name.is_empty())
    }

    /// What the memory at an address was called at that time, and how far into it that is.
    pub fn buffer(&self, address: u64, ticks: u64) -> Option<(&str, u64)> {
        let near = self.buffers.range(address.saturating_sub(self.longest)..=address).rev();
        // Those that hold at one time lie apart: the nearest is the only one that may be it.
        let mut holding = near.filter_map(|(begin, pieces)| {
            let behind = pieces.partition_point(|piece| piece.from <= ticks);
            Some((begin, pieces.get(behind.checked_sub(1)?).filter(|piece| ticks < piece.until)?))
        });
        let (begin, piece) = holding.next()?;
        (address < piece.end && !piece.name.is_empty()).then(|| (&*piece.name, address - begin))
    }
}

/// Whether a slot begins an annotation.
pub(crate) fn is_told(slot: &Words) -> bool {
    let head = Head(slot[0]);
    head.layout() == Layout::Note && (Note::Scope as u16..=Note::Name as u16).contains(&head.function())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(kind: NamedKind, begin: u64, size: u64, name: &str) -> Annotation {
        Annotation::Name { kind, begin, size, name: name.into() }
    }

    /// What is told, learned in every order.
    fn in_every_order(told: &[(u64, Annotation)], check: impl Fn(&Labels)) {
        for turn in 0..told.len() {
            for is_reversed in [false, true] {
                let mut order: Vec<_> = told.iter().cycle().skip(turn).take(told.len()).collect();
                if is_reversed {
                    order.reverse();
                }
                let mut labels = Labels::default();
                order.iter().chain(&order).for_each(|(ticks, told)| labels.learn(*ticks, told));
                check(&labels);
            }
        }
    }

    #[test]
    fn a_stream_has_the_last_name_before_a_call_or_else_its_first() {
        let told = [
            (10, name(NamedKind::Stream, 7, 0, "copies")),
            (20, name(NamedKind::Stream, 7, 0, "")),
            (30, name(NamedKind::Stream, 7, 0, "weights")),
        ];
        in_every_order(&told, |labels| {
            let names = [5, 10, 19, 20, 29, 30, 99].map(|ticks| labels.stream(7, ticks));
            let [copies, weights] = [Some("copies"), Some("weights")];
            assert_eq!(names, [copies, copies, copies, None, None, weights, weights]);
            assert_eq!(labels.stream(8, 15), None);
        });
    }

    #[test]
    fn a_buffer_is_called_so_from_then_on_until_another_name_overlaps_it() {
        let told = [
            (10, name(NamedKind::Buffer, 0x1000, 0x1000, "a")),
            (20, name(NamedKind::Buffer, 0x3000, 0x10, "b")),
            (30, name(NamedKind::Buffer, 0x1800, 0x100, "c")),
            (40, name(NamedKind::Buffer, 0x3000, 1, "")),
        ];
        in_every_order(&told, |labels| {
            let at = |address, ticks| labels.buffer(address, ticks);
            assert_eq!([at(0x1000, 9), at(0xfff, 15), at(0x2000, 15)], [None; 3]);
            assert_eq!([at(0x1000, 10), at(0x1fff, 29)], [Some(("a", 0)), Some(("a", 0xfff))]);
            assert_eq!([at(0x1000, 30), at(0x18ff, 30), at(0x1900, 35)], [None, Some(("c", 0xff)), None]);
            assert_eq!([at(0x300f, 39), at(0x300f, 40)], [Some(("b", 0xf)), None]);
        });
    }

    #[test]
    fn a_scope_has_a_name_and_an_end_whichever_is_read_first() {
        let told = [
            (10, Annotation::Scope { id: 3, parent: 1, name: "inner".into() }),
            (20, Annotation::ScopeEnd { id: 3, failures: 2 }),
            (15, Annotation::Mark { text: "no name".into() }),
        ];
        in_every_order(&told, |labels| {
            let scope = Scope { name: "inner".into(), parent: 1, begin: 10, end: Some((20, 2)) };
            assert_eq!(labels.scopes().collect::<Vec<_>>(), [(3, &scope)]);
            let names = [0, 3, 4].map(|id| labels.scope_name(id));
            assert_eq!(names, [None, Some("inner".into()), Some("#4".into())]);
        });
    }

    #[test]
    fn however_much_is_told_it_takes_no_more_than_its_share() {
        let mut labels = Labels::with_most([16; 3]);
        for at in 0..1000u32 {
            labels.learn(at.into(), &Annotation::Scope { id: at + 1, parent: 0, name: "s".into() });
            labels.learn(at.into(), &Annotation::ScopeEnd { id: at + 100_000, failures: 0 });
            for kind in [NamedKind::Stream, NamedKind::Buffer] {
                labels.learn(at.into(), &name(kind, at.into(), u64::MAX, "n"));
                labels.learn(at.into(), &name(kind, 5, at.into(), "n"));
            }
        }
        let streams: usize = labels.streams.values().map(Vec::len).sum();
        let buffers: usize = labels.buffers.values().map(Vec::len).sum();
        assert_eq!((labels.scopes.len(), labels.ends.len()), (16, 16));
        assert!(streams <= 16 && buffers <= 16, "{streams} {buffers}");
        assert_eq!(labels.scope_name(1000), Some("s".into()), "the latest are kept");
    }
}
