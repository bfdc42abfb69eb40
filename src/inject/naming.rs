//! What has a name in this process, for those who select calls by names.

use crate::harness::watch::with_names;
use crate::loader::maps;
use aclshim_facts::selector::Names;

/// This process.
pub struct Here;

impl Names for Here {
    fn stream(&self, stream: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        with_names(|names| names.stream(stream, is))
    }

    fn buffer(&self, address: u64, is: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        with_names(|names| names.buffer(address, is))
    }

    fn module(&self, address: u64, is: &mut dyn FnMut(&[u8], u64) -> bool) -> bool {
        maps::is_module(address, is)
    }
}
