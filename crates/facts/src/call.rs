//! One call with its arguments named by role: what a row of the function table decodes to.
//!
//! A row ends in one of the constructors below, for example
//! `linear(dst, destMax, src, count, kind).on(stream)`. Nothing here follows a pointer.

pub mod direction;
pub mod functions;
pub mod shape;

use crate::vendor::abi::{aclrtMemcpyBatchAttr, aclrtMemcpyKind, aclrtStream};
use core::ffi::c_void;

/// A decoded call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its arguments.
    pub form: Form,
    /// The stream argument of an asynchronous call (NULL is the default stream).
    pub stream: Option<aclrtStream>,
}

/// The forms of arguments that the functions of the table have.
#[allow(missing_docs)] // the fields are the vendor's arguments by role
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// One run of bytes.
    Linear { dst: *mut c_void, dst_max: usize, src: *const c_void, count: usize, kind: aclrtMemcpyKind },
    /// `height` rows of `width` bytes.
    Pitched {
        dst: *mut c_void,
        dst_pitch: usize,
        src: *const c_void,
        src_pitch: usize,
        width: usize,
        height: usize,
        kind: aclrtMemcpyKind,
    },
    /// Many runs of bytes in one call.
    Batch(Batch),
    /// One run between addresses that stand in device memory.
    Indirect {
        dst: *mut *mut c_void,
        dst_max: usize,
        dst_offset: usize,
        src: *mut *const c_void,
        count: usize,
        src_offset: usize,
        kind: aclrtMemcpyKind,
    },
    /// A copy whose addresses and length stand in a descriptor on the device.
    Described { desc: *mut c_void, kind: aclrtMemcpyKind },
    /// From a device variable.
    FromSymbol {
        dst: *mut c_void,
        dst_max: usize,
        symbol: *const c_void,
        count: usize,
        offset: usize,
        kind: aclrtMemcpyKind,
    },
    /// To a device variable.
    ToSymbol { symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: aclrtMemcpyKind },
    /// Asks how large a descriptor is.
    DescSize { kind: aclrtMemcpyKind, size: *mut usize },
    /// Fills a descriptor; copies nothing itself.
    SetDesc {
        desc: *mut c_void,
        kind: aclrtMemcpyKind,
        src: *mut c_void,
        dst: *mut c_void,
        count: usize,
        config: *mut c_void,
    },
    /// Sets `count` bytes.
    Fill { dst: *mut c_void, dst_max: usize, value: i32, count: usize },
    /// Sets `words` 32-bit words.
    FillWords { dst: *mut c_void, dst_max: usize, value: u32, words: usize },
}

/// The arguments of a batch, arrays unread.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// The destinations, `items` of them.
    pub dsts: *mut *mut c_void,
    /// The room at each destination.
    pub dst_maxs: *mut usize,
    /// The sources.
    pub srcs: *mut *mut c_void,
    /// The length of each copy.
    pub sizes: *mut usize,
    /// How many copies.
    pub items: usize,
    /// The attributes, `attr_count` of them.
    pub attrs: *mut aclrtMemcpyBatchAttr,
    /// The first item that each attribute applies to.
    pub attr_indexes: *mut usize,
    /// How many attributes.
    pub attr_count: usize,
    /// Where the vendor writes the index of a failing item; the V2 forms have none.
    pub fail_index: Option<*mut usize>,
}

/// Where one run of bytes goes, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The destination.
    pub dst: *const c_void,
    /// The source.
    pub src: *const c_void,
}

/// How many bytes a call moves or sets once it has been accepted.
#[allow(missing_docs)] // an array and its length
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// This many bytes.
    Bytes(u64),
    /// The sum of an array of the caller's, readable once the vendor has accepted the call.
    Sum { sizes: *const usize, items: usize },
}

impl Call {
    /// Puts the call on `stream`.
    #[inline(always)]
    pub fn on(self, stream: aclrtStream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// Names the address to which a batch reports the index of a failing item.
    #[inline(always)]
    pub fn reporting(self, fail_index: *mut usize) -> Self {
        match self.form {
            Form::Batch(batch) => Self { form: Form::Batch(Batch { fail_index: Some(fail_index), ..batch }), ..self },
            _ => self,
        }
    }

    /// The kind of copy that it asks for; a fill or a batch has none.
    pub fn kind(&self) -> Option<aclrtMemcpyKind> {
        match self.form {
            Form::Linear { kind, .. }
            | Form::Pitched { kind, .. }
            | Form::Indirect { kind, .. }
            | Form::Described { kind, .. }
            | Form::FromSymbol { kind, .. }
            | Form::ToSymbol { kind, .. }
            | Form::DescSize { kind, .. }
            | Form::SetDesc { kind, .. } => Some(kind),
            Form::Batch(_) | Form::Fill { .. } | Form::FillWords { .. } => None,
        }
    }

    /// Where it goes and where it comes from, as far as that is not left to arrays, descriptors or device memory; NULL
    /// where there is none.
    pub fn ends(&self) -> Option<Ends> {
        let ends = |dst, src| Some(Ends { dst, src });
        match self.form {
            Form::Linear { dst, src, .. } | Form::Pitched { dst, src, .. } => ends(dst.cast_const(), src),
            Form::FromSymbol { dst, symbol, .. } => ends(dst.cast_const(), symbol),
            Form::ToSymbol { symbol, src, .. } => ends(symbol, src),
            Form::SetDesc { dst, src, .. } => ends(dst.cast_const(), src.cast_const()),
            Form::Fill { dst, .. } | Form::FillWords { dst, .. } => ends(dst.cast_const(), core::ptr::null()),
            Form::Batch(_) | Form::Indirect { .. } | Form::Described { .. } | Form::DescSize { .. } => None,
        }
    }

    /// How many bytes the call moves if it is accepted. A described copy is counted as none: its
    /// length stands in device memory.
    #[inline(always)]
    pub fn amount(&self) -> Amount {
        let product = |a: usize, b: usize| (a as u64).saturating_mul(b as u64);
        match self.form {
            Form::Linear { count, .. }
            | Form::Indirect { count, .. }
            | Form::FromSymbol { count, .. }
            | Form::ToSymbol { count, .. }
            | Form::Fill { count, .. } => Amount::Bytes(count as u64),
            Form::Pitched { width, height, .. } => Amount::Bytes(product(width, height)),
            Form::FillWords { words, .. } => Amount::Bytes(product(words, 4)),
            Form::Batch(Batch { sizes, items, .. }) => Amount::Sum { sizes, items },
            Form::Described { .. } | Form::DescSize { .. } | Form::SetDesc { .. } => Amount::Bytes(0),
        }
    }
}

#[inline(always)]
fn form(form: Form) -> Call {
    Call { form, stream: None }
}

/// `aclrtMemcpy` and its asynchronous forms.
#[inline(always)]
pub fn linear(dst: *mut c_void, dst_max: usize, src: *const c_void, count: usize, kind: aclrtMemcpyKind) -> Call {
    form(Form::Linear { dst, dst_max, src, count, kind })
}

/// `aclrtMemcpy2d` and its asynchronous form.
#[inline(always)]
pub fn pitched(
    dst: *mut c_void,
    dst_pitch: usize,
    src: *const c_void,
    src_pitch: usize,
    width: usize,
    height: usize,
    kind: aclrtMemcpyKind,
) -> Call {
    form(Form::Pitched { dst, dst_pitch, src, src_pitch, width, height, kind })
}

/// The four batch forms.
#[inline(always)]
#[allow(clippy::too_many_arguments)] // the vendor's own eight
pub fn batch(
    dsts: *mut *mut c_void,
    dst_maxs: *mut usize,
    srcs: *mut *mut c_void,
    sizes: *mut usize,
    items: usize,
    attrs: *mut aclrtMemcpyBatchAttr,
    attr_indexes: *mut usize,
    attr_count: usize,
) -> Call {
    form(Form::Batch(Batch { dsts, dst_maxs, srcs, sizes, items, attrs, attr_indexes, attr_count, fail_index: None }))
}

/// `aclrtMemcpyAsyncWithOffset`.
#[inline(always)]
pub fn indirect(
    dst: *mut *mut c_void,
    dst_max: usize,
    dst_offset: usize,
    src: *mut *const c_void,
    count: usize,
    src_offset: usize,
    kind: aclrtMemcpyKind,
) -> Call {
    form(Form::Indirect { dst, dst_max, dst_offset, src, count, src_offset, kind })
}

/// `aclrtMemcpyAsyncWithDesc`.
#[inline(always)]
pub fn described(desc: *mut c_void, kind: aclrtMemcpyKind) -> Call {
    form(Form::Described { desc, kind })
}

/// `aclrtMemcpyFromSymbol` and its asynchronous form.
#[inline(always)]
pub fn from_symbol(
    dst: *mut c_void,
    dst_max: usize,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: aclrtMemcpyKind,
) -> Call {
    form(Form::FromSymbol { dst, dst_max, symbol, count, offset, kind })
}

/// `aclrtMemcpyToSymbol` and its asynchronous form.
#[inline(always)]
pub fn to_symbol(
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: aclrtMemcpyKind,
) -> Call {
    form(Form::ToSymbol { symbol, src, count, offset, kind })
}

/// `aclrtGetMemcpyDescSize`.
#[inline(always)]
pub fn desc_size(kind: aclrtMemcpyKind, size: *mut usize) -> Call {
    form(Form::DescSize { kind, size })
}

/// `aclrtSetMemcpyDesc`: the vendor names the source before the destination.
#[inline(always)]
pub fn set_desc(
    desc: *mut c_void,
    kind: aclrtMemcpyKind,
    src: *mut c_void,
    dst: *mut c_void,
    count: usize,
    config: *mut c_void,
) -> Call {
    form(Form::SetDesc { desc, kind, src, dst, count, config })
}

/// `aclrtMemset` and its asynchronous form.
#[inline(always)]
pub fn fill(dst: *mut c_void, dst_max: usize, value: i32, count: usize) -> Call {
    form(Form::Fill { dst, dst_max, value, count })
}

/// `aclrtMemsetD32` and its asynchronous form.
#[inline(always)]
pub fn fill_words(dst: *mut c_void, dst_max: usize, value: u32, words: usize) -> Call {
    form(Form::FillWords { dst, dst_max, value, words })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::{null, null_mut};

    const KIND: aclrtMemcpyKind = aclrtMemcpyKind(1);

    #[test]
    fn a_pitched_copy_moves_width_times_height_and_never_wraps() {
        let amount = |w, h| pitched(null_mut(), 0, null(), 0, w, h, KIND).amount();
        assert_eq!(amount(3, 5), Amount::Bytes(15));
        assert_eq!(amount(usize::MAX, 2), Amount::Bytes(u64::MAX));
    }

    #[test]
    fn words_are_four_bytes() {
        assert_eq!(fill_words(null_mut(), 64, 7, 16).amount(), Amount::Bytes(64));
    }

    #[test]
    fn naming_a_fail_index_keeps_the_rest_of_the_batch() {
        let mut index = 0;
        let fail_index = &raw mut index;
        let call = batch(null_mut(), null_mut(), null_mut(), null_mut(), 3, null_mut(), null_mut(), 1);
        for call in [call.reporting(fail_index).on(null_mut()), call.on(null_mut()).reporting(fail_index)] {
            let Form::Batch(batch) = call.form else { panic!("still a batch") };
            assert_eq!((batch.items, batch.attr_count, call.stream), (3, 1, Some(null_mut())));
            assert_eq!(batch.fail_index, Some(fail_index));
        }
    }
}
