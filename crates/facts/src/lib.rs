//! The tables that everything else is made from: functions, decoded calls, rules, settings, codes.
//!
//! This crate exports nothing to C and holds no state, so that the command, the documents and
//! the shim can all use it. One row a function ([`api!`]), one entry a rule ([`rules`]), one row a
//! setting ([`settings`]).

pub mod abi;
pub mod call;
pub mod case;
pub mod code;
pub mod direction;
pub mod documents;
pub mod functions;
pub mod injection;
pub mod message;
pub mod policy;
pub mod product;
pub mod rule;
pub mod rulebook;
pub mod rules;
pub mod seeds;
pub mod selector;
pub mod settings;
pub mod shape;
pub mod subject;
pub mod text;
pub mod world;
pub mod written;

pub use functions::{FUNCTIONS, Function};
