//! The order of the segments of a process.

use crate::segment::format::{BlockHead, Preamble};
use crate::segment::reader::SegmentReader;
use std::io::Read;

/// Sort key of a segment among those of its process.
///
/// Ticks come first: the wall clock may be set back between two segments, the ticks of a boot are not. A segment that was
/// drained after the next boot has no ticks and comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentOrder {
    ticks: u64,
    first_ns: u64,
    segment: u64,
}

impl SegmentOrder {
    /// The key of a segment with this preamble; `first` is the head of its first valid block, if it has one.
    pub fn new(preamble: &Preamble, first: Option<&BlockHead>) -> Self {
        let ticks = first.map_or(0, |head| head.ticks);
        Self {
            ticks: if ticks == 0 { u64::MAX } else { ticks },
            first_ns: preamble.first_ns,
            segment: preamble.segment,
        }
    }

    /// The key of a segment that has just been opened; reads its first block.
    pub fn of(reader: &mut SegmentReader<impl Read>) -> Self {
        let first = reader.find_map(Result::ok);
        Self::new(&reader.preamble, first.map(|block| block.head).as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_go_before_the_wall_clock_and_what_has_none_comes_last() {
        let turn = |ticks, first_ns, segment| {
            let preamble = Preamble { segment, first_ns, ..Preamble::default() };
            SegmentOrder::new(&preamble, Some(&BlockHead { ticks, ..BlockHead::default() }))
        };
        assert!(turn(10, 2000, 0) < turn(20, 1000, 1));
        assert!(turn(20, 1000, 1) < turn(0, 500, 0));
        assert!(turn(0, 500, 1) < turn(0, 600, 0) && turn(0, 500, 0) < turn(0, 500, 1));
    }
}
