use super::*;

/// A heap with that much address space; a caller that uses it up is served by the system.
fn heap(reserved: usize) -> &'static mut Heap {
    // SAFETY: a new heap, which nothing else uses and which is never unmapped.
    unsafe { &mut *Heap::make(reserved, None, ptr::null_mut()).unwrap() }
}

fn layout(size: usize, align: usize) -> Layout {
    Layout::from_size_align(size, align).unwrap()
}

#[test]
fn blocks_are_aligned_apart_and_writable() {
    let heap = heap(8 << 20);
    let mut taken: Vec<(usize, usize)> = Vec::new();
    for align in (0..=12).map(|bits| 1 << bits) {
        for size in [1, 7, 16, 17, 100, 4095, 4096, 5000, 70_000] {
            let block = heap.take(&layout(size, align));
            assert!(heap.holds(block) && (block as usize).is_multiple_of(align), "{size} {align}");
            // SAFETY: a block of that size.
            unsafe { block.write_bytes(0xa5, size) };
            let range = (block as usize, block as usize + size);
            assert!(taken.iter().all(|other| range.1 <= other.0 || other.1 <= range.0), "{size} {align}");
            taken.push(range);
        }
    }
}

#[test]
fn a_block_that_was_given_back_is_used_again() {
    let heap = heap(4 << 20);
    let (small, large) = (layout(100, 8), layout(300, 8));
    let first = heap.take(&small);
    let free = heap.spare();
    // SAFETY: it was just taken.
    unsafe { heap.give(first, &small) };
    assert_eq!(heap.spare(), free + 128, "as large as its class");
    let other = heap.take(&large);
    assert_ne!(other, first, "of another class");
    assert_eq!(heap.take(&layout(65, 64)), first, "any layout of the class");
}

#[test]
fn all_memory_can_be_taken_given_back_and_taken_again() {
    let heap = heap(2 << 20);
    let each = layout(1000, 8);
    let fill = |heap: &mut Heap| {
        let mut blocks = Vec::new();
        while heap.has_block(1000) {
            blocks.push(heap.take(&each));
        }
        blocks
    };
    let first = fill(heap);
    assert!(first.len() > 1900 && first.iter().all(|block| heap.holds(*block)), "{}", first.len());
    for block in first.iter().rev() {
        // SAFETY: each was taken once.
        unsafe { heap.give(*block, &each) };
    }
    assert_eq!(fill(heap), first, "last in, first out");
}

#[test]
fn a_large_free_block_is_split_when_nothing_else_is_left() {
    let heap = heap(1 << 20);
    let large = layout(256 << 10, 8);
    let block = heap.take(&large);
    let small = layout(16, 8);
    while heap.end - heap.next >= 16 {
        heap.take(&small);
    }
    // SAFETY: it was taken above.
    unsafe { heap.give(block, &large) };
    let parts: Vec<_> = (0..(256 << 10) / 16).map(|_| heap.take(&small)).collect();
    let within = block as usize..block as usize + (256 << 10);
    assert!(parts.iter().all(|part| within.contains(&(*part as usize))));
    assert_eq!(heap.spare(), 0);
    assert!(!heap.has_block(1));
}

#[test]
fn an_exhausted_heap_without_a_handler_takes_from_the_system() {
    let heap = heap(1 << 20);
    let much = layout(2 << 20, 8);
    assert!(!heap.has_block(much.size()));
    let block = heap.take(&much);
    assert!(!block.is_null() && !heap.holds(block));
    // SAFETY: the system's block of that layout.
    unsafe { System.dealloc(block, much) };
    let small = heap.take(&layout(64, 8));
    assert!(heap.holds(small), "what fits is still served");
}

#[test]
#[should_panic(expected = "used up")]
fn an_exhausted_heap_with_a_handler_calls_it() {
    let heap = Heap::make(1 << 20, Some(|| panic!("used up")), ptr::null_mut()).unwrap();
    // SAFETY: a new heap, which nothing else uses.
    unsafe { &mut *heap }.take(&layout(2 << 20, 8));
}

#[test]
fn more_is_made_accessible_as_it_is_needed() {
    let heap = heap(16 << 20);
    assert_eq!(heap.open - ptr::from_ref(heap) as usize, STEP);
    let block = heap.take(&layout(3 << 20, 8));
    // SAFETY: a block of that size.
    unsafe { block.write_bytes(1, 3 << 20) };
    assert!(heap.open >= block as usize + (3 << 20) && heap.open < heap.end);
}

#[test]
fn a_block_knows_its_heap() {
    let drain = Heap::for_drain(|| panic!("used up")).unwrap();
    assert_eq!(Heap::for_drain(|| panic!("used up")), Some(drain), "one for all drains");
    // SAFETY: the heap of this test alone.
    let block = unsafe { &mut *drain }.take(&layout(64, 8));
    assert_eq!(heap_of(block), Some(drain));
    let before = Heap::for_harness().unwrap();
    // SAFETY: as above.
    let old = unsafe { &mut *before }.take(&layout(64, 8));
    let after = Heap::for_harness().unwrap();
    assert_ne!(before, after, "a fork child gets a new one");
    assert_eq!(heap_of(old), Some(before), "and knows the blocks of its parent's");
    let foreign = Box::into_raw(Box::new(0u8));
    assert_eq!(heap_of(foreign), None);
    // SAFETY: from the box above.
    drop(unsafe { Box::from_raw(foreign) });
}
