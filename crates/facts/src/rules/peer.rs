//! The rule of copies between two devices.

use super::role::Role;
use crate::case::{Case, DEVICE, OTHER, Scene, cases};
use crate::code::ACL_ERROR_INVALID_PARAM;
use crate::functions::Function::*;
use crate::rule::Source::{Doc, Ours};
use crate::rule::{Grade, Outcome, Rule, Scope, Severity, Step, Subject, Verdict};
use crate::shape::LINEAR;
use crate::world::Place;

/// PEER-ACCESS
pub static PEER_ACCESS: Rule = Rule {
    number: 63,
    id: "PEER-ACCESS",
    steps: &[Step::advice(120, LINEAR.synchronous())],
    scope: Scope {
        products: &["Ascend 950", "Atlas A2", "Atlas inference series", "Atlas training series"],
        ..Scope::ALL
    },
    severity: Severity::Violation,
    grades: &[Grade::accepted(Severity::Violation, "always")
        .comes_to(Outcome::Said("what the driver makes of it is not known"))
        .documented_as(ACL_ERROR_INVALID_PARAM)],
    statement: "a copy between two devices needs aclrtDeviceCanAccessPeer and aclrtDeviceEnablePeerAccess first",
    sources: &[
        Doc(
            "aclrtMemcpy: copies between two devices on Ascend 950, Atlas A2, Atlas inference and training series; A3 is not listed",
        ),
        Ours("the public runtime has no check of it, and what the driver does is not public"),
    ],
    fix: "ask aclrtDeviceCanAccessPeer, then call aclrtDeviceEnablePeerAccess, in both directions",
    check: peer_access,
    cases: cases![
        Case::bad(aclrtMemcpy, "to another device", &[OTHER, 64, DEVICE, 64, 3]).within(APART),
        Case::good(aclrtMemcpy, "to another device, with access to it", &[OTHER, 64, DEVICE, 64, 3]),
        Case::good(aclrtMemcpy, "inside one device", &[DEVICE + 64, 64, DEVICE, 64, 3]).within(APART),
        Case::good(aclrtMemcpy, "to another device of an Atlas A3", &[OTHER, 64, DEVICE, 64, 3])
            .within(Scene { soc: Some("Ascend910_9391"), ..APART }),
    ],
    ..Rule::DEFAULT
};

const APART: Scene = Scene { has_peer_access: Some(false), ..Scene::PLAIN };

fn peer_access(s: &Subject) -> Verdict {
    let (Some(dst), Some(src)) = (s.dst(), s.src()) else { return Verdict::Holds };
    match (dst.region.place, src.region.place, s.world.product, s.world.has_peer_access) {
        (Place::Device(to), Place::Device(from), ..) if to == from => Verdict::Holds,
        (Place::Device(_), Place::Device(_), Some(product), Some(false)) => {
            let is_bound = PEER_ACCESS.scope.products.contains(&product.name);
            Verdict::broken_if(is_bound, s.finding(Role::Src, Severity::Violation))
        }
        (Place::Device(_), Place::Device(_), Some(_), Some(true)) => Verdict::Holds,
        (Place::Device(_) | Place::Unknown, Place::Device(_) | Place::Unknown, ..) => Verdict::Unknown,
        _ => Verdict::Holds,
    }
}
