//! What the commands that read traces share: their arguments, reading, and the names of call sites.

pub mod symbols;
pub mod traces;
