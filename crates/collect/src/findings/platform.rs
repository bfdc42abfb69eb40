//! What a process runs on, and what the rulebook expects of the vendor there.

use aclshim_facts::Function;
use aclshim_facts::product::{Product, Version};
use aclshim_facts::rule::{Arrays, Prediction, Subject};
use aclshim_facts::rules::{RULES, predict};
use aclshim_facts::world::{RunMode, Stream, World};
use aclshim_trace::record::Call;

/// What a process runs on, as far as that is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Platform {
    /// The product.
    pub product: Option<&'static Product>,
    /// The release of the vendor's software.
    pub cann: Option<Version>,
    /// On a host, or on the device's own processor.
    pub form: Option<RunMode>,
}

impl Platform {
    /// The call as the rules look at it.
    pub fn subject(&self, function: Function, call: &Call) -> Subject<'static> {
        let decoded = function.call(&call.arguments);
        let is_default = decoded.stream.is_some_and(|stream| stream.is_null());
        // Of the arrays of a batch this is all that is known: it is not a batch of nothing if it moved something, nor if
        // it failed.
        let has_moved = call.batch.as_ref().is_some_and(|batch| batch.total > 0);
        let is_something = has_moved || call.end.is_some_and(|end| end.code != 0);
        Subject {
            function,
            call: decoded,
            arrays: Arrays { sizes: is_something.then_some(&[1]), ..Arrays::default() },
            world: World {
                product: self.product,
                run_mode: self.form,
                cann: self.cann,
                stream: if is_default { Stream::Default } else { Stream::Unknown },
                ..World::UNKNOWN
            },
        }
    }

    /// Whether the vendor did something else with a call than the rulebook says.
    pub fn drift(&self, function: Function, call: &Call) -> Option<Drift> {
        let returned = returned(call)?;
        match predict(&self.subject(function, call)) {
            Prediction::Refused { rule, code, .. } if code != returned => {
                Some(Drift { rule: RULES.get(rule).map(|rule| rule.id), expected: code, returned })
            }
            Prediction::Accepted if returned != 0 => Some(Drift { rule: None, expected: 0, returned }),
            _ => None,
        }
    }
}

/// The rulebook and the vendor do not agree about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The rule that the vendor was expected to refuse it for, if it was.
    pub rule: Option<&'static str>,
    /// What was expected.
    pub expected: i32,
    /// What came.
    pub returned: i32,
}

/// What the vendor itself has returned for a call.
pub(super) fn returned(call: &Call) -> Option<i32> {
    call.end.filter(|_| call.is_of_vendor()).map(|end| end.code)
}
