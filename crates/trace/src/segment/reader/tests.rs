use super::*;
use crate::segment::format::{BlockHead, SLOT};

/// A small file and where its pieces end.
fn sample() -> (Vec<u8>, Vec<usize>) {
    let mut file = Preamble { segment: 3, first_ns: 5, evicted: 7, before: 9 }.to_bytes(b"who");
    let mut ends = vec![file.len()];
    for (kind, payload) in [(kind::CALIBRATION, &[][..]), (kind::SLOTS, &[1; 128]), (99, &[2; 11]), (kind::TOTALS, &[])]
    {
        let head = BlockHead { kind, ring: 1, first: 9, ..BlockHead::default() };
        file.extend(head.to_bytes(payload));
        file.extend(payload);
        ends.push(file.len());
    }
    (file, ends)
}

/// What is read up to the first damage, where it is, and what it is.
fn read(bytes: &[u8]) -> (Vec<Block>, u64, Option<SegmentError>) {
    let mut reader = match SegmentReader::open(bytes) {
        Ok(reader) => reader,
        Err(stop) => return (Vec::new(), 0, Some(stop)),
    };
    let mut blocks = Vec::new();
    let stop = loop {
        match reader.next_block() {
            Ok(Some(block)) => blocks.push(block),
            Ok(None) => break None,
            Err(stop) => break Some(stop),
        }
    };
    (blocks, reader.good(), stop)
}

#[test]
fn a_whole_file_is_read_and_unknown_kinds_are_skipped() {
    let (file, _) = sample();
    let mut reader = SegmentReader::open(&file[..]).unwrap();
    assert_eq!(reader.preamble, Preamble { segment: 3, first_ns: 5, evicted: 7, before: 9 });
    assert_eq!((&reader.header[..3], reader.header.len()), (&b"who"[..], 64));
    let kinds: Vec<u32> = reader.by_ref().map(|block| block.unwrap().head.kind).collect();
    assert_eq!(kinds, [kind::CALIBRATION, kind::SLOTS, kind::TOTALS]);
    assert_eq!((reader.skipped(), reader.good()), (1, file.len() as u64));
    let slots: Vec<_> = read(&file).0[1].slots().collect();
    assert_eq!(slots, [[0x0101_0101_0101_0101; 8]; 2]);
}

#[test]
fn wherever_a_file_is_cut_the_whole_blocks_before_are_read() {
    let (file, ends) = sample();
    let whole = read(&file).0;
    for cut in 0..file.len() {
        let (blocks, good, stop) = read(&file[..cut]);
        let expected = ends.iter().rev().find(|end| **end <= cut).copied().unwrap_or(0);
        assert_eq!(good, expected as u64, "cut at {cut}");
        assert_eq!(whole.get(..blocks.len()), Some(&blocks[..]), "cut at {cut}");
        match stop {
            None => assert!(ends.contains(&cut), "cut at {cut} is not said"),
            Some(SegmentError { offset, kind: SegmentErrorKind::Short { wanted, found } }) => {
                assert_eq!((offset, offset + found), (good, cut as u64), "cut at {cut}");
                assert!(
                    found < wanted && (cut < ends[0] || ends.contains(&((offset + wanted) as usize)) || wanted == 64)
                );
            }
            Some(stop) => {
                assert!(cut < MAGIC.len() && matches!(stop.kind, SegmentErrorKind::NotOurs), "cut at {cut}: {stop}")
            }
        }
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    let (file, ends) = sample();
    let whole = read(&file).0;
    for at in 0..file.len() {
        for change in [1u8, 0x80, 0xff] {
            let mut file = file.clone();
            file[at] ^= change;
            let (blocks, good, stop) = read(&file);
            let stop = stop.unwrap_or_else(|| panic!("byte {at} ^ {change:#x} is not noticed"));
            let before = ends.iter().rev().find(|end| **end <= at).copied().unwrap_or(0);
            assert_eq!((stop.offset, good), (before as u64, before as u64), "byte {at}: {stop}");
            assert_eq!(whole.get(..blocks.len()), Some(&blocks[..]));
        }
    }
}

#[test]
fn a_newer_version_and_a_foreign_file_are_named() {
    let (mut file, _) = sample();
    file[8] = 9;
    let said = read(&file).2.unwrap().to_string();
    assert!(said.contains("version 9") && said.contains("versions 1 and 2"), "{said}");
    assert!(matches!(read(b"hello").2.unwrap().kind, SegmentErrorKind::NotOurs));
    assert!(matches!(read(b"").2.unwrap().kind, SegmentErrorKind::NotOurs));
}

#[test]
fn a_damaged_length_costs_no_memory() {
    let (file, ends) = sample();
    let mut file = file[..ends[0] + HEAD].to_vec();
    for (at, number) in [(56, u32::MAX), (12, u32::MAX / SLOT as u32)] {
        file[ends[0] + at..ends[0] + at + 4].copy_from_slice(&number.to_le_bytes());
    }
    assert!(matches!(read(&file).2.unwrap().kind, SegmentErrorKind::Block));
}

#[test]
fn zeros_at_the_end_as_a_crash_of_the_system_leaves_them_are_no_block() {
    let (mut file, _) = sample();
    let good = file.len() as u64;
    file.resize(file.len() + 4096, 0);
    let stop = read(&file).2.unwrap();
    assert!(stop.offset == good && matches!(stop.kind, SegmentErrorKind::NoBlock), "{stop}");
}

/// All good blocks, and the bytes that were passed over.
fn read_on(bytes: &[u8]) -> (Vec<Block>, u64) {
    let mut reader = SegmentReader::open(bytes).unwrap();
    let blocks = reader.by_ref().filter_map(Result::ok).collect();
    assert_eq!(reader.good(), bytes.len() as u64, "to the end");
    assert_eq!(reader.damages().iter().map(|damage| damage.end - damage.offset).sum::<u64>(), reader.lost());
    (blocks, reader.lost())
}

#[test]
fn behind_a_damaged_block_all_others_are_read() {
    let (file, ends) = sample();
    let whole = read(&file).0;
    for at in ends[0]..file.len() {
        for change in [1u8, 0x80, 0xff] {
            let mut file = file.clone();
            file[at] ^= change;
            let begin = *ends.iter().rev().find(|end| **end <= at).unwrap();
            let end = *ends.iter().find(|end| **end > at).unwrap();
            let (blocks, lost) = read_on(&file);
            assert_eq!(lost, (end - begin) as u64, "byte {at} ^ {change:#x}");
            let is_unknown = begin == ends[2];
            assert_eq!(blocks.len(), whole.len() - usize::from(!is_unknown), "byte {at} ^ {change:#x}");
            assert!(blocks.iter().all(|block| whole.contains(block)));
        }
    }
}

#[test]
fn what_was_put_between_blocks_or_taken_out_is_passed_over() {
    let (file, ends) = sample();
    let whole = read(&file).0;
    for at in &ends {
        for garbage in [&b"B"[..], b"BLK1", &[0; 200], &b"BLK".repeat(70)] {
            let spoilt = [&file[..*at], garbage, &file[*at..]].concat();
            assert_eq!(read_on(&spoilt), (whole.clone(), garbage.len() as u64));
        }
    }
    // From the middle of one block to the middle of another.
    let spoilt = [&file[..ends[0] + 10], &file[ends[1] + 100..]].concat();
    assert_eq!(read_on(&spoilt).0, whole[2..]);
}

#[test]
fn a_file_that_is_cut_is_told_from_one_that_is_damaged_in_between() {
    let (file, ends) = sample();
    let damages = |bytes: &[u8]| {
        let mut reader = SegmentReader::open(bytes).unwrap();
        reader.by_ref().for_each(drop);
        reader.damages().to_vec()
    };
    let [cut] = &damages(&file[..ends[2] - 1])[..] else { panic!("one damage") };
    assert!(cut.is_cut && cut.offset == ends[1] as u64 && cut.end == ends[2] as u64 - 1, "{cut:?}");
    // A length that is too long looks the same at first.
    let mut spoilt = file.clone();
    spoilt[ends[1] + 12] = 200;
    spoilt[ends[1] + 57] = 50;
    let [damage] = &damages(&spoilt)[..] else { panic!("one damage") };
    assert!(!damage.is_cut && (damage.offset, damage.end) == (ends[1] as u64, ends[2] as u64), "{damage:?}");
}

#[test]
fn heads_that_lie_cost_no_more_time_than_the_file_is_long() {
    // Each says that it is as long as a block may be; and every other one is a good block, after which reading begins anew.
    let start = Preamble::default().to_bytes(b"who");
    let mut lie = BlockHead::default().to_bytes(&[]);
    lie[12..16].copy_from_slice(&((LONGEST_PAYLOAD / SLOT) as u32).to_le_bytes());
    lie[56..60].copy_from_slice(&(LONGEST_PAYLOAD as u32).to_le_bytes());
    let good = BlockHead { kind: kind::CALIBRATION, ..BlockHead::default() }.to_bytes(&[]);
    const PAIRS: usize = 50_000;
    for pair in [[lie, lie], [lie, good]] {
        let file = [&start[..], &pair.as_flattened().repeat(PAIRS)].concat();
        let mut reader = SegmentReader::open(&file[..]).unwrap();
        let blocks = reader.by_ref().filter_map(Result::ok).count();
        // By the quadratic way these would be 1 TB.
        assert_eq!(blocks, if pair[1] == good { PAIRS } else { 0 });
        assert!(reader.damages().len() <= MOST_DAMAGES);
    }
}
