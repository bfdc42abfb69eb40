//! The arrays of a batch are read as far as the vendor reads them, and no further: behind each array of these tests lies
//! memory that cannot be read.

use aclshim_core::{arrays, summary};
use aclshim_facts::abi::{aclrtMemLocation, aclrtMemcpyBatchAttr};
use aclshim_facts::call::{Batch, Call, Form};
use aclshim_facts::direction::Direction;
use aclshim_facts::product::{Product, Version};
use aclshim_facts::world::World;
use core::ffi::c_void;
use core::ptr;

/// An array whose last entry ends where readable memory ends.
fn guarded<T: Copy>(values: &[T]) -> *mut T {
    let page = 64 << 10;
    let size = size_of_val(values).next_multiple_of(page);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, checked; the array fits into the part that stays accessible.
    unsafe {
        let at = libc::mmap(ptr::null_mut(), size + page, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        let guard = at.byte_add(size);
        assert_eq!(libc::mprotect(guard, page, libc::PROT_NONE), 0);
        let array = guard.byte_sub(size_of_val(values)).cast::<T>();
        ptr::copy_nonoverlapping(values.as_ptr(), array, values.len());
        array
    }
}

fn attribute(dst: i32, src: i32) -> aclrtMemcpyBatchAttr {
    let place = |type_| aclrtMemLocation { id: 0, type_ };
    aclrtMemcpyBatchAttr { dstLoc: place(dst), srcLoc: place(src), rsv: [0; 16] }
}

fn pointers(count: usize) -> Vec<*mut c_void> {
    (1..=count).map(|nth| ptr::without_provenance_mut(0x1000 * nth)).collect()
}

/// A batch of these sizes and rooms, up to the device, with one attribute.
fn batch(sizes: &[usize], rooms: &[usize]) -> Batch {
    Batch {
        dsts: guarded(&pointers(sizes.len())),
        dst_maxs: guarded(rooms),
        srcs: guarded(&pointers(sizes.len())),
        sizes: guarded(sizes),
        items: sizes.len(),
        attrs: guarded(&[attribute(1, 0)]),
        attr_indexes: guarded(&[0usize]),
        attr_count: 1,
        fail_index: Some(guarded(&[0usize])),
    }
}

/// A product that has batches, with that release.
fn world(cann: Option<Version>) -> World<'static> {
    World { product: Product::of("Ascend910B1"), cann, ..World::UNKNOWN }
}

fn summarize(batch: &Batch) -> Option<summary::BatchSummary> {
    // SAFETY: all arrays are those of a test.
    unsafe { summary::summarize(batch, false, &world(Some(Version::V9_1))) }
}

fn call(batch: Batch) -> Call {
    Call { form: Form::Batch(batch), stream: None }
}

#[test]
fn a_look_at_a_sound_batch_sums_its_sizes_up() {
    let sizes: Vec<usize> = (1..=2000).collect();
    let found = summarize(&batch(&sizes, &sizes)).expect("nothing is wrong");
    assert_eq!((found.total, found.smallest, found.largest), (2_001_000, 1, 2000));
}

#[test]
fn a_sum_beyond_a_word_is_the_largest_word() {
    let sizes = [usize::MAX, 2, 3];
    assert_eq!(summarize(&batch(&sizes, &sizes)).map(|found| found.total), Some(u64::MAX));
}

#[test]
fn a_look_finds_what_may_be_wrong() {
    assert!(summarize(&batch(&[8, 8, 9], &[8, 8, 8])).is_none(), "an item does not fit");
    assert!(summarize(&batch(&[8, 0], &[8, 8])).is_none(), "an item of nothing");
    assert!(summarize(&batch(&[0, 0], &[8, 8])).is_none(), "a batch of nothing");
    let sound = batch(&[8, 8], &[8, 8]);
    assert!(summarize(&sound).is_some());
    let wrong = [
        ("no items", Batch { items: 0, ..sound }),
        ("no attributes", Batch { attr_count: 0, ..sound }),
        ("more attributes than items", Batch { attr_count: 3, ..sound }),
        ("no sizes", Batch { sizes: ptr::null_mut(), ..sound }),
        ("no destinations", Batch { dsts: ptr::null_mut(), ..sound }),
        ("no place for the index", Batch { fail_index: Some(ptr::null_mut()), ..sound }),
        ("misaligned sizes", Batch { sizes: sound.sizes.wrapping_byte_sub(1), ..sound }),
        (
            "a reserved byte",
            Batch { attrs: guarded(&[aclrtMemcpyBatchAttr { rsv: [1; 16], ..attribute(1, 0) }]), ..sound },
        ),
        ("an unusual direction", Batch { attrs: guarded(&[attribute(1, 1)]), ..sound }),
        ("an index that is not the first", Batch { attr_indexes: guarded(&[1usize]), ..sound }),
    ];
    for (what, wrong) in wrong {
        assert!(summarize(&wrong).is_none(), "{what}");
    }
}

#[test]
fn a_look_reads_no_page_behind_the_first_item_that_does_not_fit() {
    // The count says more than the arrays hold.
    let wrong = Batch { items: 4000, ..batch(&[8, 8, 9], &[8, 8, 8]) };
    assert!(summarize(&wrong).is_none());
}

#[test]
fn arrays_come_as_far_as_the_vendor_compares_them() {
    let wrong = Batch { items: 4000, ..batch(&[8, 8, 9], &[8, 8, 8]) };
    // SAFETY: the vendor would stop at the third item.
    let found = unsafe { arrays::before_call(&call(wrong), &world(Some(Version::V9_1))) };
    assert_eq!(found.sizes, Some(&[8, 8, 9][..]));
    assert_eq!(found.dst_maxs, Some(&[8, 8, 8][..]));
    assert!(found.attrs.is_none() && found.attr_indexes.is_none() && found.dsts.is_none() && found.srcs.is_none());
}

#[test]
fn of_a_batch_of_nothing_only_the_sizes_are_read() {
    let nothing = Batch { dst_maxs: ptr::without_provenance_mut(8), ..batch(&[0, 0, 0], &[8, 8, 8]) };
    // SAFETY: the vendor would read the sizes only.
    let found = unsafe { arrays::before_call(&call(nothing), &world(Some(Version::V9_1))) };
    assert_eq!((found.sizes, found.dst_maxs), (Some(&[0, 0, 0][..]), None));
}

#[test]
fn attributes_come_up_to_the_first_that_is_not_clean() {
    let attrs = [attribute(1, 0), aclrtMemcpyBatchAttr { rsv: [7; 16], ..attribute(1, 0) }];
    let wrong = Batch { attrs: guarded(&attrs), attr_count: 4, ..batch(&[8; 5], &[8; 5]) };
    // SAFETY: the vendor would stop at the second attribute.
    let found = unsafe { arrays::before_call(&call(wrong), &world(Some(Version::V9_1))) };
    assert_eq!(found.attrs.map(<[_]>::len), Some(2));
    assert!(found.attr_indexes.is_none());
}

#[test]
fn indexes_come_up_to_the_first_that_is_not_in_order() {
    for (indexes, ordered) in [(&[0usize, 2, 2][..], 2), (&[1], 0), (&[0, 5], 1), (&[0, 1, 2, 4], 4)] {
        let attrs = vec![attribute(1, 0); 4];
        let given =
            Batch { attrs: guarded(&attrs), attr_indexes: guarded(indexes), attr_count: 4, ..batch(&[8; 5], &[8; 5]) };
        // SAFETY: the vendor would stop where the order ends.
        let (found, count) =
            unsafe { (arrays::before_call(&call(given), &world(Some(Version::V9_1))), arrays::ordered(&given)) };
        assert_eq!(count, ordered, "{indexes:?}");
        assert_eq!(found.attr_indexes.map(<[_]>::len), Some((ordered + 1).min(4)), "{indexes:?}");
    }
}

#[test]
fn where_the_product_is_not_known_no_index_is_read() {
    let given = Batch { attr_indexes: ptr::without_provenance_mut(8), ..batch(&[8], &[8]) };
    // SAFETY: nothing is read but what the vendor reads on every product.
    let found = unsafe { arrays::before_call(&call(given), &World::UNKNOWN) };
    assert!(found.attrs.is_some() && found.attr_indexes.is_none());
}

#[test]
fn an_accepted_batch_has_copied_all_its_items() {
    let given = batch(&[8, 16], &[32, 32]);
    // SAFETY: the arrays are whole.
    let copied = unsafe { arrays::copied(&given, 0) }.expect("it was accepted");
    copied.touch();
    let item = copied.item(1).expect("the second");
    assert_eq!((item.dst.addr(), item.src.addr(), item.dst_max, item.size), (0x2000, 0x2000, 32, 16));
    assert!(copied.item(2).is_none());
    assert_eq!(copied.direction(), Direction::of_places(1, 0));
    assert!(copied.arrays().dsts.is_some());
}

#[test]
fn what_the_vendor_has_refused_or_overwritten_was_not_copied() {
    let given = batch(&[8, 16], &[32, 32]);
    // SAFETY: the arrays are whole.
    unsafe {
        assert!(arrays::copied(&given, 107_000).is_none(), "refused");
        let overwritten = Batch { fail_index: Some(given.sizes.add(1)), ..given };
        assert!(arrays::copied(&overwritten, 0).is_none(), "the index lies amid the sizes");
        let nothing = batch(&[0, 0], &[8, 8]);
        let copied = arrays::copied(&nothing, 0).expect("accepted");
        assert!(copied.dsts.is_empty() && copied.arrays().dsts.is_none(), "of nothing the rest is not read");
    }
}
