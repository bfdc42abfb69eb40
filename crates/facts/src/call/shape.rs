//! The shape of a call: the form of its arguments, and whether it is put on a stream. Calls of one shape are checked alike.

use crate::call::{Call, Form};

/// The shape of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape(u8);

impl Shape {
    /// Number of shapes.
    pub const COUNT: usize = 22;

    /// The shape of this number.
    pub const fn from_number(number: usize) -> Self {
        assert!(number < Self::COUNT);
        Self(number as u8)
    }

    /// Its number: below [`Self::COUNT`], even for a synchronous call.
    pub const fn number(self) -> usize {
        self.0 as usize
    }
}

impl Call {
    /// Its shape.
    pub const fn shape(&self) -> Shape {
        let form = match self.form {
            Form::Linear { .. } => LINEAR,
            Form::Pitched { .. } => PITCHED,
            Form::Batch(_) => BATCH,
            Form::Indirect { .. } => INDIRECT,
            Form::Described { .. } => DESCRIBED,
            Form::FromSymbol { .. } => FROM_SYMBOL,
            Form::ToSymbol { .. } => TO_SYMBOL,
            Form::DescSize { .. } => DESC_SIZE,
            Form::SetDesc { .. } => SET_DESC,
            Form::Fill { .. } => FILL,
            Form::FillWords { .. } => FILL_WORDS,
        };
        Shape(form.0.trailing_zeros() as u8 + self.stream.is_some() as u8)
    }
}

/// A set of shapes.
#[derive(Clone, Copy, Debug)]
pub struct Shapes(u32);

/// The synchronous shapes have even numbers.
const SYNCHRONOUS: u32 = 0x5555_5555;

impl Shapes {
    /// Both shapes of the form of this number.
    const fn form(number: u32) -> Self {
        Self(0b11 << (2 * number))
    }

    /// The union of both sets.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These shapes without those of the other set.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Those that are not put on a stream.
    pub const fn synchronous(self) -> Self {
        Self(self.0 & SYNCHRONOUS)
    }

    /// Those that are put on a stream.
    pub const fn asynchronous(self) -> Self {
        Self(self.0 & !SYNCHRONOUS)
    }

    /// Whether the shape is one of these.
    pub const fn has(self, shape: Shape) -> bool {
        self.0 >> shape.0 & 1 == 1
    }
}

/// Linear copies.
pub const LINEAR: Shapes = Shapes::form(0);
/// Copies of rows.
pub const PITCHED: Shapes = Shapes::form(1);
/// Batches.
pub const BATCH: Shapes = Shapes::form(2);
/// Copies between addresses that stand in device memory.
pub const INDIRECT: Shapes = Shapes::form(3);
/// Copies by descriptor.
pub const DESCRIBED: Shapes = Shapes::form(4);
/// Copies from a device variable.
pub const FROM_SYMBOL: Shapes = Shapes::form(5);
/// Copies to a device variable.
pub const TO_SYMBOL: Shapes = Shapes::form(6);
/// Queries for the size of a descriptor.
pub const DESC_SIZE: Shapes = Shapes::form(7);
/// Calls that fill a descriptor.
pub const SET_DESC: Shapes = Shapes::form(8);
/// Fills of bytes.
pub const FILL: Shapes = Shapes::form(9);
/// Fills of 32-bit words.
pub const FILL_WORDS: Shapes = Shapes::form(10);
/// Copies from or to a device variable.
pub const SYMBOLS: Shapes = FROM_SYMBOL.or(TO_SYMBOL);
/// Every shape.
pub const ALL: Shapes = Shapes((1 << Shape::COUNT) - 1);
