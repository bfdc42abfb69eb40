//! Cycles between modules.

use crate::modules::{Edge, Module, shown};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Modules that all reach each other, and the shortest way from the first of them back to it.
pub struct Cycle {
    pub modules: BTreeSet<Module>,
    pub way: Vec<Edge>,
}

/// The cycles between modules, seen from near and from far: first each file is a module of its own, then a folder counts as
/// one with everything below it, and in the end each of the crate's topmost folders does.
///
/// A module and its own parts are one to everyone else: that they use each other is no cycle.
pub fn cycles(edges: &[Edge]) -> Vec<Cycle> {
    let deepest = edges.iter().flat_map(|edge| [edge.from.len(), edge.to.len()]).max().unwrap_or(0);
    let mut found: Vec<Cycle> = Vec::new();
    for depth in (1..=deepest).rev() {
        for cycle in cycles_among(&seen_from(edges, depth)) {
            if found.iter().all(|known| known.modules != cycle.modules) {
                found.push(cycle);
            }
        }
    }
    found
}

/// The edges between modules of at most this depth; what lies deeper counts as the one that it lies in.
fn seen_from(edges: &[Edge], depth: usize) -> Vec<Edge> {
    let folded = |module: &Module| module[..module.len().min(depth)].to_vec();
    let mut seen = BTreeMap::new();
    for edge in edges {
        let (from, to) = (folded(&edge.from), folded(&edge.to));
        if !from.starts_with(&to) && !to.starts_with(&from) {
            seen.entry((from, to)).or_insert_with(|| edge.place.clone());
        }
    }
    seen.into_iter().map(|((from, to), place)| Edge { from, to, place }).collect()
}

/// All sets of modules that reach each other.
fn cycles_among(edges: &[Edge]) -> Vec<Cycle> {
    let mut next: BTreeMap<&Module, Vec<&Edge>> = BTreeMap::new();
    edges.iter().for_each(|edge| next.entry(&edge.from).or_default().push(edge));
    let mut found: Vec<Cycle> = Vec::new();
    for &module in next.keys() {
        if found.iter().any(|cycle| cycle.modules.contains(module)) {
            continue;
        }
        let Some(way) = way_back(module, &next) else { continue };
        let reached = reached(module, &next);
        let is_back = |other: &&Module| self::reached(other, &next).contains(module);
        let modules = reached.iter().copied().filter(is_back).cloned().collect();
        found.push(Cycle { modules, way });
    }
    found
}

fn reached<'a>(from: &Module, next: &BTreeMap<&'a Module, Vec<&'a Edge>>) -> BTreeSet<&'a Module> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for edge in next.get(module).into_iter().flatten() {
            if reached.insert(&edge.to) {
                open.push(&edge.to);
            }
        }
    }
    reached
}

/// The shortest way from a module to itself.
fn way_back(module: &Module, next: &BTreeMap<&Module, Vec<&Edge>>) -> Option<Vec<Edge>> {
    let mut came_by: BTreeMap<&Module, &Edge> = BTreeMap::new();
    let mut open = VecDeque::from([module]);
    while let Some(now) = open.pop_front() {
        for edge in next.get(now).into_iter().flatten() {
            if came_by.contains_key(&edge.to) {
                continue;
            }
            came_by.insert(&edge.to, edge);
            if edge.to == *module {
                let mut way = vec![(*edge).clone()];
                while way[0].from != *module {
                    way.insert(0, came_by[&way[0].from].clone());
                }
                return Some(way);
            }
            open.push_back(&edge.to);
        }
    }
    None
}

impl std::fmt::Display for Cycle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(out, "{} modules reach each other; the shortest way:", self.modules.len())?;
        for edge in &self.way {
            writeln!(out, "    {} uses {} ({})", shown(&edge.from), shown(&edge.to), edge.place)?;
        }
        Ok(())
    }
}
