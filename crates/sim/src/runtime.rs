//! Devices and contexts, the versions of the library, and device variables.

mod context;
mod device;
mod variable;
mod version;
