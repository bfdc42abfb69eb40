use super::*;
use crate::origin::Origin;
use crate::record::slot::{Head, KIND_MAX, Layout, Note, State};
use crate::record::{Entry, decode};

/// A head as version 1 wrote it.
fn old_head(state: u64, layout: u64, nested: u64, kind: u64, function: u64, number: u64) -> u64 {
    state | layout << 2 | nested << 5 | kind << 6 | function << 10 | number << 16
}

#[test]
fn every_head_says_the_same_after_the_conversion() {
    let numbers = [0, 1, (1 << 40) - 1, 1 << 40, (1 << 40) + 7, (1 << 48) - 1];
    let states = [State::Free, State::InFlight, State::Done, State::Passed];
    for (layout, state, nested) in (0..8).flat_map(|layout| (0..8).map(move |rest| (layout, rest & 3, rest >> 2))) {
        for (function, number) in (0..64).flat_map(|function| numbers.map(|number| (function, number))) {
            for kind in 0..=u64::from(KIND_MAX) {
                let head = Head(upgrade_head(old_head(state, layout, nested, kind, function, number)));
                assert_eq!((head.state(), head.layout() as u64), (states[state as usize], layout));
                assert_eq!((head.is_nested(), u64::from(head.kind())), (nested == 1, kind));
                assert_eq!((u64::from(head.function()), head.number(number)), (function, number));
                assert_eq!(head.0 & (1 << 7 | 3 << 22), 0, "reserved bits stay 0");
            }
        }
    }
    assert_eq!(upgrade_head(0), 0);
}

#[test]
fn every_note_is_the_same_after_the_conversion() {
    for note in Note::Thread as u64..=Note::Text as u64 {
        let head = Head(upgrade_head(old_head(2, 7, 0, 0, note, 3)));
        assert_eq!(head, Head::done(3, Layout::Note, note as u16));
    }
    let mut slots = [[old_head(2, 7, 0, 0, 1, 3), 1, 2, 3, 4, 0, 0, 0]; 2].map(|slot| slot.map(u64::to_le_bytes));
    upgrade_slots(slots.as_flattened_mut().as_flattened_mut());
    let slots = slots.map(|slot| slot.map(u64::from_le_bytes));
    let classes = crate::record::EffectClasses::COPY;
    assert_eq!(decode(&slots, 3), Some((Entry::Lost { from: 1, to: 2, calls: 3, notes: 4, classes }, 1)));
    assert_eq!(slots[0], slots[1]);
}

/// A header as version 1 wrote it, with these bytes at these offsets.
fn old_header(fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut header = vec![0; HEADER];
    for (at, bytes) in fields {
        header[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    header
}

#[test]
fn a_header_says_the_same_after_the_conversion() {
    let longest = [b'x'; NAME];
    // The offsets are those that the page of version 1 lists.
    let old = old_header(&[
        (8, &1u32.to_le_bytes()),
        (12, &19_648u32.to_le_bytes()),
        (16, &77u32.to_le_bytes()),
        (40, &88u64.to_le_bytes()),
        (140, &3u32.to_le_bytes()),
        (176, &99u64.to_le_bytes()),
        (188, &2u32.to_le_bytes()),
        (192, b"one"),
        (232, b"second"),
        (272, &longest),
        (2752, b"machine"),
        (2824, b"boot"),
        (2944, b"8.3.RC1"),
        (4224, b"/lib/real.so"),
        (9344, b"/out"),
        (13_440, b"maps"),
        (19_584, &4_026_531_834u64.to_le_bytes()),
    ]);
    let origin = Origin::from_bytes(&old).unwrap();
    assert_eq!(origin, Origin::from_bytes(&upgrade_header(&old)).unwrap());
    assert_eq!((origin.pid, origin.born_ns, origin.budget, origin.time_ns), (77, 88, 99, 4_026_531_834));
    assert_eq!(origin.functions, ["one".to_owned(), "second".to_owned(), "x".repeat(NAME)]);
    let texts = [&origin.host, &origin.boot_id, &origin.cann, &origin.maps];
    assert_eq!(texts, ["machine", "boot", "8.3.RC1", "maps"]);
    assert_eq!((origin.library.to_str(), origin.dir.to_str()), (Some("/lib/real.so"), Some("/out")));
    assert!(origin.form.is_some());
    let header = present_header(&old).into_owned();
    assert_eq!(header[8..16], [2u32, size_of::<Header>() as u32].map(u32::to_le_bytes).concat());
    assert_eq!(present_header(&header), header, "what is converted stays as it is");
}

#[test]
fn a_full_table_of_names_fits_and_a_short_header_is_none() {
    let mut old = old_header(&[(8, &1u32.to_le_bytes()), (140, &u32::MAX.to_le_bytes())]);
    old[NAMES..BEHIND_NAMES].fill(b'n');
    assert_eq!(Origin::from_bytes(&old).unwrap().functions, vec!["n".repeat(NAME); FUNCTIONS]);
    assert!(Origin::from_bytes(&old[..SHORTEST]).is_some());
    assert_eq!(Origin::from_bytes(&old[..SHORTEST - 1]), None);
}

#[test]
fn the_state_of_a_ring_is_the_same_after_the_conversion() {
    let mut old = [0; CONTROL];
    (0u64..).zip(old.as_chunks_mut().0).for_each(|(nth, word)| *word = (100 + nth).to_le_bytes());
    let new = upgrade_control(&old);
    let load = |word: &crate::sync::AtomicU64| word.load(Ordering::Relaxed);
    assert_eq!(new.owner.load(Ordering::Relaxed), 100);
    let owners = [&new.since, &new.not_recorded, &new.told, &new.lost_since, &new.notes_lost, &new.notes_told];
    assert_eq!(owners.map(load), [101, 102, 103, 104, 105, 106]);
    assert_eq!([&new.drained, &new.overwritten, &new.ended].map(load), [108, 109, 110]);
    assert_eq!([load(&new.lost_classes), new.reserved.load(Ordering::Relaxed).into()], [0, 0]);
}
