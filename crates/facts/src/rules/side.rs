//! The two sides of a copy: where each is, and how many bytes of it take part.

use super::role::Role;
use crate::call::Form;
use crate::rules::rule::Subject;
use crate::rules::world::{Place, Region, Symbol};

/// The source or the destination of a copy.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// Its first byte; 0 where that is not known.
    pub address: usize,
    /// Number of bytes; `None` if that is more than there can be.
    pub size: Option<usize>,
    /// What is known of it.
    pub region: Region,
    /// Which argument it is.
    pub role: Role,
}

/// No product's descriptor is smaller.
const LEAST_DESCRIPTOR: usize = 32;

/// Bytes from the first of the first row to the last of the last.
fn extent(height: usize, pitch: usize, width: usize) -> Option<usize> {
    height.checked_sub(1)?.checked_mul(pitch)?.checked_add(width)
}

impl Subject<'_> {
    fn side(&self, role: Role, address: usize, size: Option<usize>) -> Option<Side> {
        let region = match address {
            0 => Region { place: Place::Unknown, room: None },
            _ => self.world.memory.region(address),
        };
        Some(Side { address, size, region, role })
    }

    fn variable(&self, role: Role, symbol: usize, offset: usize, count: usize) -> Option<Side> {
        let (region, address) = match self.world.memory.symbol(symbol) {
            Symbol::Variable { size, address } => {
                let room = Some(size.saturating_sub(offset));
                let place = address.map(|address| self.world.memory.region(address).place);
                let place = place.filter(|place| matches!(place, Place::Device(_))).unwrap_or(Place::Device(0));
                (Region { place, room }, address.map_or(0, |address| address.wrapping_add(offset)))
            }
            Symbol::Unknown | Symbol::None => (Region { place: Place::Unknown, room: None }, 0),
        };
        Some(Side { address, size: Some(count), region, role })
    }

    /// Where bytes are written; `None` for a form that names no such place.
    pub fn dst(&self) -> Option<Side> {
        match self.call.form {
            Form::Linear { dst, count, .. } | Form::FromSymbol { dst, count, .. } | Form::Fill { dst, count, .. } => {
                self.side(Role::Dst, dst as usize, Some(count))
            }
            Form::Pitched { dst, dst_pitch, width, height, .. } => {
                self.side(Role::Dst, dst as usize, extent(height, dst_pitch, width))
            }
            // The vendor multiplies without looking at the overflow; RANGE-OVERFLOW does.
            Form::FillWords { dst, words, .. } => self.side(Role::Dst, dst as usize, Some(words.wrapping_mul(4))),
            Form::SetDesc { dst, count, .. } => self.side(Role::Dst, dst as usize, Some(count)),
            Form::Indirect { dst, .. } => self.side(Role::Dst, dst as usize, Some(size_of::<usize>())),
            Form::ToSymbol { symbol, count, offset, .. } => self.variable(Role::Dst, symbol as usize, offset, count),
            Form::Batch(_) | Form::Described { .. } | Form::DescSize { .. } => None,
        }
    }

    /// Where bytes are read.
    pub fn src(&self) -> Option<Side> {
        match self.call.form {
            Form::Linear { src, count, .. } | Form::ToSymbol { src, count, .. } => {
                self.side(Role::Src, src as usize, Some(count))
            }
            Form::Pitched { src, src_pitch, width, height, .. } => {
                self.side(Role::Src, src as usize, extent(height, src_pitch, width))
            }
            Form::SetDesc { src, count, .. } => self.side(Role::Src, src as usize, Some(count)),
            Form::Indirect { src, .. } => self.side(Role::Src, src as usize, Some(size_of::<usize>())),
            Form::FromSymbol { symbol, count, offset, .. } => self.variable(Role::Src, symbol as usize, offset, count),
            Form::Fill { .. }
            | Form::FillWords { .. }
            | Form::Batch(_)
            | Form::Described { .. }
            | Form::DescSize { .. } => None,
        }
    }

    /// The descriptor in device memory.
    pub fn desc(&self) -> Option<Side> {
        match self.call.form {
            Form::SetDesc { desc, .. } | Form::Described { desc, .. } => {
                let size = self.world.product.map_or(LEAST_DESCRIPTOR, |product| product.descriptor_size);
                self.side(Role::Desc, desc as usize, Some(size))
            }
            _ => None,
        }
    }
}
