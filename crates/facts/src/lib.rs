//! The tables that everything else is made from: functions, decoded calls, rules, settings, codes.
//!
//! This crate exports nothing to C and holds no state, so that the command, the documents and
//! the shim can all use it. One row a function ([`api!`]), one entry a rule ([`rules`]), one row a
//! setting ([`settings`]).

pub mod call;
pub mod injection;
pub mod message;
pub mod rules;
pub mod selector;
pub mod settings;
pub mod text;
mod vendor;
pub mod written;

pub use call::functions::{FUNCTIONS, Function};
pub use call::{direction, functions, shape};
pub use rules::{case, rule, world};
pub use settings::policy;
pub use vendor::{abi, code, product};
