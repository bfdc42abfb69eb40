//! What lies behind the end of a ring file when a ring is added.

use super::*;
use crate::ring::layout::FIRST;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

#[test]
fn a_ring_is_all_zero_when_it_is_added_whatever_was_written_behind_the_end_of_the_file() {
    let folder = std::env::temp_dir().join(format!("aclshim-file-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let dir = folder.as_os_str().as_bytes();
    let made = create(dir, RingSize::fixed(64), |_| ()).unwrap();
    let path = folder.join(format!("{PREFIX}{}-{:x}{SUFFIX}", made.pid, made.born_ns));
    let end = || std::fs::metadata(&path).unwrap().len();
    for ring in 0..3 {
        let mut appended = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        appended.write_all(&[0x7e; 200 << 10]).unwrap();
        let (control, slots) = made.add_ring(dir, ring).unwrap();
        assert_eq!(control.owner.load(Ordering::Relaxed), 0, "ring {ring}");
        let words = slots.iter().flat_map(|slot| slot.0.iter());
        assert!(words.map(|word| word.load(Ordering::Relaxed)).all(|word| word == 0), "ring {ring}");
        assert!(end() > FIRST + u64::from(ring) * stride(64));
    }
    std::fs::remove_dir_all(folder).unwrap();
}
