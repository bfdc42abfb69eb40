//! The order of rooms that docs/architecture.md draws.

use crate::modules::Edge;
use std::collections::{BTreeMap, BTreeSet};

/// The layers of a workspace or of one crate, from the top down. What stands in one layer does not use each other.
pub struct Order {
    /// `workspace`, or the folder of a crate's source.
    pub of: String,
    layers: BTreeMap<String, usize>,
}

/// Reads the block ```` ```rooms ```` of a page: names at the left margin, and below each its layers, indented.
pub fn orders(page: &str) -> Vec<Order> {
    let block = page.split("\n```rooms\n").nth(1).expect("the page has a block of rooms");
    let block = block.split("\n```").next().expect("a first part");
    let mut orders: Vec<Order> = Vec::new();
    for (layer, line) in block.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if !line.starts_with(' ') {
            orders.push(Order { of: line.trim().to_owned(), layers: BTreeMap::new() });
            continue;
        }
        let order = orders.last_mut().expect("layers stand below a name");
        for name in line.split(',') {
            let is_new = order.layers.insert(name.trim().to_owned(), layer).is_none();
            assert!(is_new, "{}: {} stands there twice", order.of, name.trim());
        }
    }
    orders
}

impl Order {
    /// What is against the order, each with its place: rooms that are not drawn, drawn rooms that are not there, and uses
    /// that do not point down.
    pub fn problems(&self, rooms: &BTreeSet<String>, edges: &[Edge]) -> Vec<String> {
        let drawn: BTreeSet<_> = self.layers.keys().cloned().collect();
        let missing = rooms.difference(&drawn).map(|room| format!("{}: {room} is not drawn", self.of));
        let gone = drawn.difference(rooms).map(|room| format!("{}: {room} is drawn and not there", self.of));
        let mut problems: Vec<_> = missing.chain(gone).collect();
        for edge in edges {
            let [Some(from), Some(to)] = [&edge.from, &edge.to].map(|module| module.first()) else { continue };
            if let [Some(above), Some(below)] = [from, to].map(|room| self.layers.get(room))
                && from != to
                && above >= below
            {
                problems.push(format!("{}: {from} uses {to}, which is not below it ({})", self.of, edge.place));
            }
        }
        problems
    }
}
