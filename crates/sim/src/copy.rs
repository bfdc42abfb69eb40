//! The functions that copy and set memory, by form. Each file holds its checks in the vendor's order.

#[cfg(not(feature = "no-batch"))]
mod batch;
mod indirect;
mod kind;
mod linear;
mod pitched;
mod set;
#[cfg(not(feature = "cann-8-5"))]
mod symbol;
mod transfer;
