use super::*;

/// A small file and where its pieces end.
fn sample() -> (Vec<u8>, Vec<usize>) {
    let mut file = Preamble { segment: 3, first_ns: 5, evicted: 7 }.to_bytes(b"who");
    let mut ends = vec![file.len()];
    for (kind, payload) in [(kind::CALIBRATION, &[][..]), (kind::SLOTS, &[1; 128]), (99, &[2; 11]), (kind::TOTALS, &[])]
    {
        let head = Head { kind, ring: 1, first: 9, ..Head::default() };
        file.extend(head.to_bytes(payload));
        file.extend(payload);
        ends.push(file.len());
    }
    (file, ends)
}

fn read(bytes: &[u8]) -> (Vec<Block>, u64, Option<Stop>) {
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
    assert!(reader.next().is_none(), "nothing after the end");
    (blocks, reader.good(), stop)
}

#[test]
fn a_whole_file_is_read_and_unknown_kinds_are_skipped() {
    let (file, _) = sample();
    let mut reader = SegmentReader::open(&file[..]).unwrap();
    assert_eq!(reader.preamble, Preamble { segment: 3, first_ns: 5, evicted: 7 });
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
            Some(Stop { offset, wrong: Wrong::Short { wanted, found } }) => {
                assert_eq!((offset, offset + found), (good, cut as u64), "cut at {cut}");
                assert!(
                    found < wanted && (cut < ends[0] || ends.contains(&((offset + wanted) as usize)) || wanted == 64)
                );
            }
            Some(stop) => {
                assert!(cut < MAGIC.len() && matches!(stop.wrong, Wrong::NotOurs), "cut at {cut}: {stop}")
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
    assert!(said.contains("version 9") && said.contains("version 1"), "{said}");
    assert!(matches!(read(b"hello").2.unwrap().wrong, Wrong::NotOurs));
    assert!(matches!(read(b"").2.unwrap().wrong, Wrong::NotOurs));
}

#[test]
fn a_damaged_length_costs_no_memory() {
    let (file, ends) = sample();
    let mut file = file[..ends[0] + HEAD].to_vec();
    for (at, number) in [(56, u32::MAX), (12, u32::MAX / SLOT as u32)] {
        file[ends[0] + at..ends[0] + at + 4].copy_from_slice(&number.to_le_bytes());
    }
    assert!(matches!(read(&file).2.unwrap().wrong, Wrong::Block));
}

#[test]
fn zeros_at_the_end_as_a_crash_of_the_system_leaves_them_are_no_block() {
    let (mut file, _) = sample();
    let good = file.len() as u64;
    file.resize(file.len() + 4096, 0);
    let stop = read(&file).2.unwrap();
    assert!(stop.offset == good && matches!(stop.wrong, Wrong::NoBlock), "{stop}");
}
