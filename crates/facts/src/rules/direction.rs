//! The direction of a copy: what the caller says, and what the runtime makes of it when it knows the addresses.

use crate::call::Form;
use crate::call::functions::Function::aclrtMemcpy2d;
use crate::rules::rule::Subject;
use crate::rules::world::{self, Place};
pub use crate::vendor::abi::{
    DEFAULT, DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_BUF_TO_DEVICE, HOST_TO_DEVICE, HOST_TO_HOST,
    INNER_DEVICE_TO_DEVICE,
};

/// The kind that the runtime carries out, given the kind that the caller names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectiveKind {
    /// Too little is known.
    Unknown,
    /// It does not fit the places: 107000.
    Misfit,
    /// This kind is carried out.
    Settled {
        /// The kind.
        kind: i32,
        /// Whether it is another one than the caller's, who did not leave it open.
        is_replaced: bool,
        /// Whether pageable memory takes part, so that the runtime copies at once instead of on the stream.
        is_pageable: bool,
    },
}

impl Subject<'_> {
    /// The kind that the caller names; a fill or a batch has none.
    pub fn kind(&self) -> Option<i32> {
        self.call.kind().map(|kind| kind.0)
    }

    /// Whether the runtime asks the driver where the pointers of a copy with a kind point.
    pub fn looks_at_places(&self) -> Option<bool> {
        match self.call.form {
            Form::Pitched { .. } if self.function == aclrtMemcpy2d => Some(true),
            Form::Linear { kind, .. } if kind.0 == HOST_TO_BUF_TO_DEVICE => {
                Some(self.world.run_mode? == world::RunMode::EndPoint)
            }
            Form::Linear { .. } | Form::Pitched { .. } | Form::FromSymbol { .. } | Form::ToSymbol { .. } => {
                self.world.tells_pageable
            }
            _ => Some(true),
        }
    }

    /// What becomes of the kind of a copy that the runtime looks at the places of: those on a stream, and
    /// `aclrtMemcpy2d`.
    pub fn effective_kind(&self) -> EffectiveKind {
        let kind = match self.call.form {
            Form::Linear { kind, .. } | Form::Pitched { kind, .. } => kind.0,
            Form::FromSymbol { .. } => DEVICE_TO_HOST,
            Form::ToSymbol { .. } => HOST_TO_DEVICE,
            _ => return EffectiveKind::Unknown,
        };
        let (Some(src), Some(dst)) = (self.src(), self.dst()) else { return EffectiveKind::Unknown };
        let (src, dst) = (src.region.place, dst.region.place);
        if kind == HOST_TO_BUF_TO_DEVICE {
            return EffectiveKind::Settled { kind, is_replaced: false, is_pageable: false };
        }
        match self.looks_at_places() {
            None => return EffectiveKind::Unknown,
            Some(false) => return EffectiveKind::Settled { kind, is_replaced: false, is_pageable: false },
            Some(true) => {}
        }
        let settled = match self.world.run_mode {
            _ if self.function == aclrtMemcpy2d => revise(kind, src, dst),
            Some(world::RunMode::EndPoint) => revise(kind, src, dst),
            Some(world::RunMode::RootComplex) if is_known(src) && is_known(dst) => Revised::To(kind),
            _ => Revised::Unknown,
        };
        match settled {
            Revised::Unknown => EffectiveKind::Unknown,
            Revised::Misfit => EffectiveKind::Misfit,
            Revised::To(new) => EffectiveKind::Settled {
                kind: new,
                is_replaced: new != kind && kind != DEFAULT,
                is_pageable: new != HOST_TO_HOST
                    && new != DEVICE_TO_DEVICE
                    && (src == Place::Pageable || dst == Place::Pageable),
            },
        }
    }
}

fn is_known(place: Place) -> bool {
    !matches!(place, Place::Unknown | Place::Unallocated)
}

enum Revised {
    Unknown,
    Misfit,
    To(i32),
}

/// The runtime's table (MemcpyKindReviseMap): it forces the kind where both sides are known to it, accepts some kinds
/// where one is pageable, leaves managed memory alone, and refuses the rest.
fn revise(kind: i32, src: Place, dst: Place) -> Revised {
    use Place::{Device, Managed, Pageable, Pinned};
    let (allowed, default): (&[i32], i32) = match (src, dst) {
        (Device(_), Device(_)) => return Revised::To(DEVICE_TO_DEVICE),
        (Device(_), Pinned) => return Revised::To(DEVICE_TO_HOST),
        (Pinned, Device(_)) => return Revised::To(HOST_TO_DEVICE),
        (Pinned, Pinned) => return Revised::To(HOST_TO_HOST),
        (Managed, place) | (place, Managed) if is_known(place) => return Revised::To(kind),
        (Device(_), Pageable) => (&[DEVICE_TO_HOST, DEVICE_TO_DEVICE], DEVICE_TO_HOST),
        (Pageable, Device(_)) => (&[HOST_TO_DEVICE, DEVICE_TO_DEVICE], HOST_TO_DEVICE),
        (Pinned, Pageable) => (&[HOST_TO_HOST, HOST_TO_DEVICE], HOST_TO_HOST),
        (Pageable, Pinned) => (&[HOST_TO_HOST, DEVICE_TO_HOST], HOST_TO_HOST),
        (Pageable, Pageable) => (&[HOST_TO_HOST, HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE], HOST_TO_HOST),
        _ => return Revised::Unknown,
    };
    match kind {
        DEFAULT => Revised::To(default),
        kind if allowed.contains(&kind) => Revised::To(kind),
        _ => Revised::Misfit,
    }
}
