//! The loader's side: which objects are loaded, what they define and bind, and where the real functions are.

pub mod bindings;
pub mod gate;
pub mod libdl;
pub mod maps;
pub mod names;
pub mod objects;
pub mod patch;
pub mod rebind;
pub mod target;
pub mod unload;
pub mod vendor;
pub mod visibility;
