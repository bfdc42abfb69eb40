//! The arrays of a batch, and where they lie.

use crate::case::Attribute;
use crate::scene::Mapping;
use aclshim_facts::abi::{aclrtMemLocation, aclrtMemcpyBatchAttr};

/// The arrays of a batch, as numbers.
#[derive(Clone, Default)]
pub struct Numbers {
    pub dsts: Vec<u64>,
    pub dst_maxs: Vec<u64>,
    pub srcs: Vec<u64>,
    pub sizes: Vec<u64>,
    pub attributes: Vec<Attribute>,
    pub indexes: Vec<u64>,
}

/// Where the arrays of a batch lie: each ends where the unreachable begins, so that a read beyond the end is seen.
pub struct Shelf {
    places: [Mapping; 6],
}

impl Shelf {
    pub fn new() -> Self {
        Self { places: std::array::from_fn(|_| Mapping::new(256 * 1024)) }
    }

    fn place<T: Copy>(&self, at: usize, entries: &[T]) -> u64 {
        let start = self.places[at].end - size_of_val(entries);
        // SAFETY: the end of a mapping of ours, which is large enough for every array that is made.
        unsafe { std::ptr::copy_nonoverlapping(entries.as_ptr(), start as *mut T, entries.len()) };
        start as u64
    }

    /// Puts the arrays in their places; their addresses in the order of the arguments.
    pub fn fill(&self, numbers: &Numbers) -> [u64; 6] {
        let attributes: Vec<aclrtMemcpyBatchAttr> = numbers.attributes.iter().map(Attribute::as_c).collect();
        [
            self.place(0, &numbers.dsts),
            self.place(1, &numbers.dst_maxs),
            self.place(2, &numbers.srcs),
            self.place(3, &numbers.sizes),
            self.place(4, &attributes),
            self.place(5, &numbers.indexes),
        ]
    }
}

impl Attribute {
    fn as_c(&self) -> aclrtMemcpyBatchAttr {
        let mut rsv = [0; 16];
        if let Some((at, value)) = self.reserved {
            rsv[usize::from(at) % 16] = value;
        }
        aclrtMemcpyBatchAttr {
            dstLoc: aclrtMemLocation { id: self.dst_id, type_: self.dst_type },
            srcLoc: aclrtMemLocation { id: self.src_id, type_: self.src_type },
            rsv,
        }
    }
}
