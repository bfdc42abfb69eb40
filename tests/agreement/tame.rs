//! Changes a call from which the vendor would not return into one from which it does.
//!
//! Between two host addresses, and into host memory that is set, bytes are moved by the processor: what is not there is
//! a crash with the vendor too.

use crate::case::Spot;
use crate::scene::{SLACK, Scene, WINDOW};
use crate::shelf::Numbers;
use aclshim_facts::call::Form;
use aclshim_facts::{FUNCTIONS, Function};

fn is_host(address: u64) -> bool {
    !WINDOW.contains(&(address as usize))
}

/// Between two host addresses an item is copied by the processor: both must be there.
pub fn tame_items(lists: &mut Numbers, scene: &Scene) {
    for at in 0..lists.dsts.len() {
        let (dst, src, size) = (lists.dsts[at], lists.srcs[at], lists.sizes[at]);
        if is_host(dst) && is_host(src) && size <= lists.dst_maxs[at] {
            lists.sizes[at] = size.min(both(dst, src, scene));
        }
    }
}

fn both(dst: u64, src: u64, scene: &Scene) -> u64 {
    scene.reach(dst as usize).min(scene.reach(src as usize)) as u64
}

/// The position of an argument.
fn position(function: Function, name: &str) -> usize {
    FUNCTIONS[function as usize].arguments.iter().position(|argument| argument.name == name).expect("an argument")
}

pub fn tame(function: Function, words: &mut [u64], scene: &Scene) {
    let pageable = scene.address(Spot::Pageable) as u64;
    match function.call(words).form {
        Form::Linear { dst, dst_max, src, count, kind } => {
            let (dst, src) = (dst as u64, src as u64);
            let is_buffered = kind.0 == 5;
            if count > dst_max || dst == 0 || src == 0 {
                return;
            }
            if is_host(src) && (is_host(dst) || is_buffered) {
                if scene.reach(src as usize) == 0 {
                    words[2] = pageable;
                }
                if is_host(dst) && scene.reach(dst as usize) == 0 {
                    words[0] = pageable;
                }
                let reach =
                    if is_host(dst) { both(words[0], words[2], scene) } else { scene.reach(words[2] as usize) as u64 };
                words[3] = words[3].min(reach);
            } else if is_buffered {
                // The buffer would be as large as it says.
                words[3] = words[3].min(1 << 16);
            }
        }
        Form::Pitched { dst, dst_pitch, src, src_pitch, width, height, .. } => {
            let sides = [(dst as u64, dst_pitch), (src as u64, src_pitch)];
            let extent = |pitch: usize| height.saturating_sub(1).saturating_mul(pitch).saturating_add(width);
            let runs_out =
                |(address, pitch): (u64, usize)| !is_host(address) && extent(pitch) > scene.reach(address as usize);
            let too_far = |(address, pitch): (u64, usize)| is_host(address) && extent(pitch) > SLACK;
            if !sides.into_iter().any(runs_out) && sides.into_iter().any(too_far) {
                words[position(function, "height")] = words[position(function, "height")].min(1);
                if width > SLACK && width <= dst_pitch.min(src_pitch) {
                    words[position(function, "width")] = 64;
                }
            }
        }
        Form::Fill { dst, dst_max, count, .. } if is_host(dst as u64) && count <= dst_max => {
            if scene.reach(dst as usize) == 0 && !dst.is_null() {
                words[0] = pageable;
            }
            words[3] = words[3].min(scene.reach(words[0] as usize).max(1) as u64);
        }
        Form::FillWords { dst, dst_max, words: count, .. }
            if is_host(dst as u64) && (scene.reach(dst as usize)..=dst_max).contains(&count.wrapping_mul(4)) =>
        {
            words[3] = words[3].min(1);
        }
        // Descriptors hold addresses, and those must not come among the data.
        Form::SetDesc { desc, .. } => {
            for spot in crate::case::DATA {
                let start = scene.address(spot);
                if !is_host(start as u64) && (start..start + crate::scene::SIZE).contains(&(desc as usize)) {
                    words[0] = (scene.address(Spot::Sheet) + (desc as usize - start)) as u64;
                }
            }
        }
        _ => {}
    }
}
