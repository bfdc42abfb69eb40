//! The quick check: whether a linear copy or a fill breaks no rule, by its arguments alone.
//!
//! Almost every call passes it. `false` says nothing: the call is then looked at rule by rule.

use crate::call::functions::{Function, Support};
use crate::call::{Call, Form};
use crate::rules::rule::Subject;
use crate::rules::world::{RunMode, Stream};
use std::ops::Range;

/// Whether a call breaks no rule, where nothing is known of memory.
#[inline(always)]
pub fn breaks_no_rule(subject: &Subject) -> bool {
    breaks_no_rule_but_alignment(subject) && is_aligned(&subject.call)
}

/// Whether a call breaks no rule other than ALIGN-64, where nothing is known of memory.
#[inline(always)]
pub fn breaks_no_rule_but_alignment(subject: &Subject) -> bool {
    let (call, world) = (&subject.call, &subject.world);
    let is_at_home = world.has_context != Some(false) && !world.memory.is_tracked();
    let is_free = match call.stream {
        None => world.is_capture_in_the_way != Some(true),
        Some(_) => !matches!(world.stream, Stream::Foreign { .. } | Stream::Invalid),
    };
    let is_valid = match call.form {
        Form::Linear { dst, dst_max, src, count, kind } => {
            has_valid_ranges([dst as usize, dst_max, src as usize, count])
                && valid_kinds(subject.function, call, world.run_mode).contains(&kind.0)
        }
        Form::Fill { dst, dst_max, count, .. } => {
            has_valid_range([dst as usize, dst_max, count]) && is_fill(subject.function, call)
        }
        _ => false,
    };
    is_at_home && is_free && is_valid
}

/// Whether no rule is broken by where a linear call reads and writes (dst, destMax, src and count).
#[inline(always)]
pub fn has_valid_ranges([dst, dst_max, src, count]: [usize; 4]) -> bool {
    let is_fitting = count.wrapping_sub(1) < dst_max && count <= dst_max && dst != 0 && src != 0;
    let is_apart = dst.abs_diff(src) >= count;
    let ends = dst.checked_add(count).is_some() && src.checked_add(count).is_some();
    is_fitting && is_apart && ends
}

/// The kinds of a linear call that break no rule, where nothing is known but the run mode.
#[inline(always)]
pub fn valid_kinds(function: Function, call: &Call, run_mode: Option<RunMode>) -> Range<i32> {
    let is_linear = matches!(call.form, Form::Linear { .. }) && function.row().support == Support::Stable;
    match call.stream {
        _ if !is_linear => 0..0,
        None => 0..6,
        // Host to host is forbidden at the host's side, and the host's kinds on the board.
        Some(_) if run_mode == Some(RunMode::RootComplex) => 3..6,
        Some(_) => 1..6,
    }
}

/// Whether no rule is broken by where a fill writes (dst, maxCount and count).
#[inline(always)]
pub fn has_valid_range([dst, dst_max, count]: [usize; 3]) -> bool {
    (1..=dst_max).contains(&count) && dst != 0 && dst.checked_add(count).is_some()
}

/// Whether a call is a fill of bytes that breaks a rule by where it writes only, if at all.
#[inline(always)]
pub fn is_fill(function: Function, call: &Call) -> bool {
    matches!(call.form, Form::Fill { .. }) && function.row().support == Support::Stable
}

/// The bits that ALIGN-64 demands to be 0 in the addresses of a linear call.
#[inline(always)]
pub fn alignment_bits(call: &Call) -> usize {
    if call.stream.is_some() { 63 } else { 0 }
}

#[inline(always)]
fn is_aligned(call: &Call) -> bool {
    let Form::Linear { dst, src, .. } = call.form else { return true };
    (dst as usize | src as usize) & alignment_bits(call) == 0
}
