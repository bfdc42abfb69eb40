//! The function table: one row for each function that the shim stands in front of.
//!
//! A row holds the vendor's signature with the vendor's argument names, on its right side what the arguments mean, and
//! behind a comma its [`Support`] where that is not `Stable`. Exports, forwarding, dispatch slots, decoding, record fields,
//! the rules that apply and documents are made from it, the first four by macros that are handed to [`api!`](crate::api!).

/// Hands every row of the table to the macro `$with`.
#[macro_export]
macro_rules! api {
    ($with:ident) => {
        $with! {
            /// Copies `count` bytes and returns when they are there.
            fn aclrtMemcpy(dst: *mut c_void, destMax: usize, src: *const c_void, count: usize,
                           kind: aclrtMemcpyKind)
                => linear(dst, destMax, src, count, kind);

            /// Copies `count` bytes on `stream`.
            fn aclrtMemcpyAsync(dst: *mut c_void, destMax: usize, src: *const c_void, count: usize,
                                kind: aclrtMemcpyKind, stream: aclrtStream)
                => linear(dst, destMax, src, count, kind).on(stream);

            /// Copies `count` bytes on `stream`, with the vendor's test for pinned memory (deprecated).
            fn aclrtMemcpyAsyncWithCondition(dst: *mut c_void, destMax: usize, src: *const c_void, count: usize,
                                             kind: aclrtMemcpyKind, stream: aclrtStream)
                => linear(dst, destMax, src, count, kind).on(stream), Deprecated;

            /// Copies `height` rows of `width` bytes and returns when they are there.
            fn aclrtMemcpy2d(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize,
                             width: usize, height: usize, kind: aclrtMemcpyKind)
                => pitched(dst, dpitch, src, spitch, width, height, kind);

            /// Copies `height` rows of `width` bytes on `stream`.
            fn aclrtMemcpy2dAsync(dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize,
                                  width: usize, height: usize, kind: aclrtMemcpyKind, stream: aclrtStream)
                => pitched(dst, dpitch, src, spitch, width, height, kind).on(stream);

            /// Makes `numBatches` copies and names the first that failed.
            fn aclrtMemcpyBatch(dsts: *mut *mut c_void, destMaxs: *mut usize, srcs: *mut *mut c_void,
                                sizes: *mut usize, numBatches: usize, attrs: *mut aclrtMemcpyBatchAttr,
                                attrsIndexes: *mut usize, numAttrs: usize, failIndex: *mut usize)
                => batch(dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs).reporting(failIndex);

            /// Makes `numBatches` copies.
            fn aclrtMemcpyBatchV2(dsts: *mut *mut c_void, destMaxs: *mut usize, srcs: *mut *mut c_void,
                                  sizes: *mut usize, numBatches: usize, attrs: *mut aclrtMemcpyBatchAttr,
                                  attrsIndexes: *mut usize, numAttrs: usize)
                => batch(dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs), Since9_1;

            /// Makes `numBatches` copies on `stream` and names the first that failed.
            fn aclrtMemcpyBatchAsync(dsts: *mut *mut c_void, destMaxs: *mut usize, srcs: *mut *mut c_void,
                                     sizes: *mut usize, numBatches: usize, attrs: *mut aclrtMemcpyBatchAttr,
                                     attrsIndexes: *mut usize, numAttrs: usize, failIndex: *mut usize,
                                     stream: aclrtStream)
                => batch(dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs)
                    .reporting(failIndex).on(stream), Experimental;

            /// Makes `numBatches` copies on `stream`.
            fn aclrtMemcpyBatchAsyncV2(dsts: *mut *mut c_void, destMaxs: *mut usize, srcs: *mut *mut c_void,
                                       sizes: *mut usize, numBatches: usize, attrs: *mut aclrtMemcpyBatchAttr,
                                       attrsIndexes: *mut usize, numAttrs: usize, stream: aclrtStream)
                => batch(dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs).on(stream), Since9_1;

            /// Copies between addresses that stand in device memory, each with an offset, on `stream`.
            fn aclrtMemcpyAsyncWithOffset(dst: *mut *mut c_void, destMax: usize, dstDataOffset: usize,
                                          src: *mut *const c_void, count: usize, srcDataOffset: usize,
                                          kind: aclrtMemcpyKind, stream: aclrtStream)
                => indirect(dst, destMax, dstDataOffset, src, count, srcDataOffset, kind).on(stream);

            /// Makes the copy that a descriptor in device memory describes, on `stream`.
            fn aclrtMemcpyAsyncWithDesc(desc: *mut c_void, kind: aclrtMemcpyKind, stream: aclrtStream)
                => described(desc, kind).on(stream);

            /// Copies `count` bytes out of a device variable.
            fn aclrtMemcpyFromSymbol(dst: *mut c_void, dstMax: usize, symbol: *const c_void, count: usize,
                                     offset: usize, kind: aclrtMemcpyKind)
                => from_symbol(dst, dstMax, symbol, count, offset, kind), Since9_1;

            /// Copies `count` bytes out of a device variable, on `stream`.
            fn aclrtMemcpyFromSymbolAsync(dst: *mut c_void, dstMax: usize, symbol: *const c_void, count: usize,
                                          offset: usize, kind: aclrtMemcpyKind, stream: aclrtStream)
                => from_symbol(dst, dstMax, symbol, count, offset, kind).on(stream), Since9_1;

            /// Copies `count` bytes into a device variable.
            fn aclrtMemcpyToSymbol(symbol: *const c_void, src: *const c_void, count: usize, offset: usize,
                                   kind: aclrtMemcpyKind)
                => to_symbol(symbol, src, count, offset, kind), Since9_1;

            /// Copies `count` bytes into a device variable, on `stream`.
            fn aclrtMemcpyToSymbolAsync(symbol: *const c_void, src: *const c_void, count: usize, offset: usize,
                                        kind: aclrtMemcpyKind, stream: aclrtStream)
                => to_symbol(symbol, src, count, offset, kind).on(stream), Since9_1;

            /// Asks how many bytes a copy descriptor takes.
            fn aclrtGetMemcpyDescSize(kind: aclrtMemcpyKind, descSize: *mut usize)
                => desc_size(kind, descSize);

            /// Fills a copy descriptor in device memory; copies nothing itself.
            fn aclrtSetMemcpyDesc(desc: *mut c_void, kind: aclrtMemcpyKind, srcAddr: *mut c_void,
                                  dstAddr: *mut c_void, count: usize, config: *mut c_void)
                => set_desc(desc, kind, srcAddr, dstAddr, count, config);

            /// Sets `count` bytes and returns when they are set.
            fn aclrtMemset(devPtr: *mut c_void, maxCount: usize, value: i32, count: usize)
                => fill(devPtr, maxCount, value, count);

            /// Sets `count` bytes on `stream`.
            fn aclrtMemsetAsync(devPtr: *mut c_void, maxCount: usize, value: i32, count: usize, stream: aclrtStream)
                => fill(devPtr, maxCount, value, count).on(stream);

            /// Sets `N` 32-bit words and returns when they are set.
            fn aclrtMemsetD32(ptr: *mut c_void, memSize: usize, value: u32, N: usize)
                => fill_words(ptr, memSize, value, N), Since9_1;

            /// Sets `N` 32-bit words on `stream`.
            fn aclrtMemsetD32Async(ptr: *mut c_void, memSize: usize, value: u32, N: usize, stream: aclrtStream)
                => fill_words(ptr, memSize, value, N).on(stream), Since9_1;
        }
    };
}

/// A row as data.
#[derive(Debug)]
pub struct Row {
    /// The exported name.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The arguments in order.
    pub arguments: &'static [Argument],
    /// Which releases have it.
    pub support: Support,
}

/// Which releases of CANN have a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// All releases.
    Stable,
    /// All releases so far; the vendor has deprecated it.
    Deprecated,
    /// All releases; for trial use before CANN 9.0.
    Experimental,
    /// CANN 9.1 and later.
    Since9_1,
}

/// One argument of a row.
#[derive(Debug)]
pub struct Argument {
    /// The vendor's name.
    pub name: &'static str,
    /// The type as C spells it.
    pub c_type: &'static str,
}

impl Row {
    /// The C declaration, without a semicolon.
    pub fn c_declaration(&self) -> String {
        let arguments: Vec<_> = self.arguments.iter().map(|a| format!("{} {}", a.c_type, a.name)).collect();
        format!("aclError {}({})", self.name, arguments.join(", ")).replace("* ", "*")
    }
}

macro_rules! rows {
    ($(#[doc = $doc:literal] fn $name:ident($($arg:ident: $ty:ty),* $(,)?) => $role:expr $(, $support:ident)?;)*) => {
        /// The functions of the table, by number: an index into [`FUNCTIONS`].
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Function { $(#[doc = $doc] $name),* }

        /// All rows, in the order of [`Function`].
        pub static FUNCTIONS: &[Row] = &[$(Row {
            name: stringify!($name),
            summary: $doc.trim_ascii(),
            arguments: &[$(Argument { name: stringify!($arg), c_type: spelling_of(stringify!($ty), <$ty as CType>::SPELLING) }),*],
            support: [$(Support::$support,)? Support::Stable][0],
        }),*];

        impl Function {
            /// Every function, in order.
            pub const ALL: &[Function] = &[$(Function::$name),*];

            /// The call that these arguments make, as words in the order of the row. What is missing is 0.
            #[allow(non_snake_case)]
            pub fn call(self, words: &[u64]) -> Call {
                let mut words = words.iter().copied();
                match self {
                    $(Function::$name => {
                        $(let $arg: $ty = Word::from_word(words.next().unwrap_or_default());)*
                        $role
                    })*
                }
            }
        }
    };
}

use crate::call::*;
use crate::vendor::abi::{CType, Word, aclrtMemcpyBatchAttr, aclrtMemcpyKind, aclrtStream};
use core::ffi::c_void;
api!(rows);

// A stream handle is a `void *` to the compiler, and a type of its own to the reader.
const fn spelling_of(rust: &'static str, spelling: &'static str) -> &'static str {
    if matches!(rust.as_bytes(), b"aclrtStream") { "aclrtStream" } else { spelling }
}

impl Function {
    /// The function of that name.
    pub fn by_name(name: &str) -> Option<Function> {
        Function::ALL.iter().copied().find(|function| function.row().name == name)
    }

    /// This function's row.
    pub fn row(self) -> &'static Row {
        &FUNCTIONS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_the_call_that_they_were() {
        let call = Function::aclrtMemcpyAsync.call(&[1, 2, 3, 4, 5 | 7 << 32, 6]);
        let Form::Linear { dst, dst_max, src, count, kind } = call.form else { panic!("a linear copy") };
        assert_eq!((dst as u64, dst_max, src as u64, count, kind.0), (1, 2, 3, 4, 5));
        assert_eq!(call.stream.map(|stream| stream as u64), Some(6));
        assert_eq!(Function::by_name("aclrtMemcpyAsync"), Some(Function::aclrtMemcpyAsync));
    }

    #[test]
    fn a_declaration_reads_as_the_vendor_writes_it() {
        assert_eq!(
            Function::aclrtMemcpyAsync.row().c_declaration(),
            "aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, \
             aclrtMemcpyKind kind, aclrtStream stream)"
        );
    }
}
