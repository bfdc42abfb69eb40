//! The record of a call, and of what a program says about itself.

pub mod annotate;
pub mod attach;
pub mod batch;
pub mod frame;
