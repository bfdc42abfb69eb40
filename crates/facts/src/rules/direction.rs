//! The direction of a copy: what the caller says, and what the runtime makes of it when it knows the addresses.

pub use crate::abi::{
    DEFAULT, DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_BUF_TO_DEVICE, HOST_TO_DEVICE, HOST_TO_HOST,
    INNER_DEVICE_TO_DEVICE,
};
use crate::call::Form;
use crate::functions::Function::aclrtMemcpy2d;
use crate::rule::Subject;
use crate::world::{self, Place};

/// What becomes of the kind that the caller names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Too little is known.
    Unknown,
    /// It does not fit the places: 107000.
    Misfit,
    /// This one is carried out.
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
                Some(self.world.form? == world::Form::EndPoint)
            }
            Form::Linear { .. } | Form::Pitched { .. } | Form::FromSymbol { .. } | Form::ToSymbol { .. } => {
                self.world.tells_pageable
            }
            _ => Some(true),
        }
    }

    /// What becomes of the kind of a copy that the runtime looks at the places of: those on a stream, and
    /// `aclrtMemcpy2d`.
    pub fn outcome(&self) -> Outcome {
        let kind = match self.call.form {
            Form::Linear { kind, .. } | Form::Pitched { kind, .. } => kind.0,
            Form::FromSymbol { .. } => DEVICE_TO_HOST,
            Form::ToSymbol { .. } => HOST_TO_DEVICE,
            _ => return Outcome::Unknown,
        };
        let (Some(src), Some(dst)) = (self.src(), self.dst()) else { return Outcome::Unknown };
        let (src, dst) = (src.region.place, dst.region.place);
        if kind == HOST_TO_BUF_TO_DEVICE {
            return Outcome::Settled { kind, is_replaced: false, is_pageable: false };
        }
        match self.looks_at_places() {
            None => return Outcome::Unknown,
            Some(false) => return Outcome::Settled { kind, is_replaced: false, is_pageable: false },
            Some(true) => {}
        }
        let settled = match self.world.form {
            _ if self.function == aclrtMemcpy2d => revise(kind, src, dst),
            Some(world::Form::EndPoint) => revise(kind, src, dst),
            Some(world::Form::RootComplex) if is_known(src) && is_known(dst) => Revised::To(kind),
            _ => Revised::Unknown,
        };
        match settled {
            Revised::Unknown => Outcome::Unknown,
            Revised::Misfit => Outcome::Misfit,
            Revised::To(new) => Outcome::Settled {
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
