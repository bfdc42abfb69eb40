//! What has a name in this process, for those who select calls by names.

use crate::maps;
use aclshim_facts::selector::Names;

/// This process.
pub struct Here;

impl Names for Here {
    fn stream(&self, _: u64, _: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        false
    }

    fn buffer(&self, _: u64, _: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        false
    }

    fn module(&self, address: u64, is: &mut dyn FnMut(&[u8], u64) -> bool) -> bool {
        maps::is_module(address, is)
    }
}
