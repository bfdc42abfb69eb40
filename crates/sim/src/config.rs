//! What is simulated: the `ASCENDCL_SIM_*` settings, and the releases, products and functions they choose from.

pub mod cann;
pub mod fault;
pub mod functions;
pub mod product;
pub mod settings;
