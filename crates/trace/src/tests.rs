//! Tests of what is written to a ring and read back from it: writer and reader together.

mod annotation;
mod cursor;
mod model;
mod reading;
mod room;
pub mod sample;
