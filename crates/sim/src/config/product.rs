//! Which product is simulated, and which of the copy features its chip has.

use std::ffi::CStr;

/// A product by its SoC name.
#[derive(Debug, PartialEq)]
pub struct Product {
    /// What `aclrtGetSocName` answers.
    pub name: &'static CStr,
    /// The batch copies.
    pub batch: bool,
    /// `aclrtMemcpyAsyncWithOffset`.
    pub offset: bool,
    /// Bytes of a copy descriptor; `None` on a chip without STARS.
    pub descriptor: Option<usize>,
    /// `aclrtMemsetD32`; where it is missing the vendor answers 0 and sets nothing.
    pub words: bool,
    /// A batch on a stream is checked whole before its first item is sent.
    pub batch_checked_whole: bool,
}

const A2: Product = Product {
    name: c"Ascend910B1",
    batch: true,
    offset: true,
    descriptor: Some(32),
    words: true,
    batch_checked_whole: false,
};

/// Every product the simulator knows; the first is the default.
pub static PRODUCTS: [Product; 6] = [
    A2,
    Product { name: c"Ascend910_9391", ..A2 },
    Product { name: c"Ascend950", descriptor: Some(64), batch_checked_whole: true, ..A2 },
    Product { name: c"Ascend310P3", batch: false, offset: false, descriptor: None, words: false, ..A2 },
    Product { name: c"Ascend310B1", batch: false, offset: false, words: false, ..A2 },
    Product { name: c"Ascend910A", batch: false, descriptor: None, words: false, ..A2 },
];

/// The product with this SoC name.
pub fn named(name: &str) -> Option<&'static Product> {
    PRODUCTS.iter().find(|product| product.name.to_bytes() == name.as_bytes())
}
