//! What the entries of rules are written with.

pub(super) use crate::call::Form;
pub(super) use crate::call::functions::Function::*;
pub(super) use crate::call::functions::Support;
pub(super) use crate::call::shape::*;
pub(super) use crate::rules::case::{
    ARRAY, Case, DEVICE, FREED, LARGE, MANAGED, OTHER, PAGEABLE, PINNED, STREAM, SYMBOL, Scene, cases,
};
pub(super) use crate::rules::direction::*;
pub(super) use crate::rules::role::Role;
pub(super) use crate::rules::rule::Source::*;
pub(super) use crate::rules::rule::{Finding, Grade, Outcome, Rule, Scope, Severity, Step, Subject, Verdict};
pub(super) use crate::rules::side::Side;
pub(super) use crate::rules::world::{Place, RunMode, Stream, Symbol};
pub(super) use crate::vendor::code::*;
pub(super) use crate::vendor::product::Version;
