//! What the vendor defines: types, return codes and products.

pub mod abi;
pub mod code;
pub mod product;
