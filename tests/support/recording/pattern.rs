//! The calls that the hosts make: `hosts/record_pattern.h` and `hosts/record_host.h`, in Rust.

use super::truth::LANES;
use aclshim_trace::record::{Attribute, Batch, Call, Item};

/// A number that looks like no other.
pub fn mix(id: u64, salt: u64) -> u64 {
    let z = id.wrapping_add(salt.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// What a call returns.
pub fn code_of(id: u64) -> i32 {
    let chance = mix(id, 99);
    if chance.is_multiple_of(251) { 100_000 + (chance % 1009) as i32 } else { 0 }
}

/// How many slots call number `n` takes.
pub fn slots_of(n: u64) -> u64 {
    match n % 7 {
        0..=3 => 1,
        4 | 5 => 2,
        _ => 3 + 1 + (1 + n % 5).div_ceil(2),
    }
}

/// Lane and number of a recorded call, if all of it is as the host made it.
pub fn identify(call: &Call, function: &str) -> Result<(usize, u64), String> {
    let id = call.arguments[if function == "aclrtMemcpyBatch" { 8 } else { 0 }];
    let (lane, n) = ((id >> 40 & 0xffff) as usize, id & 0xff_ffff_ffff);
    if id >> 56 != 0x5A || lane >= LANES {
        return Err(format!("no call of the host: {id:x}"));
    }
    let (src, count, stream) = (mix(id, 1), mix(id, 2) >> 20, mix(id, 3));
    let (kind, value) = (mix(id, 4) & 15, mix(id, 5) as i32);
    let low = |word: u64| word & 0xffff_ffff;
    let mut found = call.arguments;
    let (name, expected): (&str, Vec<u64>) = match n % 7 {
        0 => ("aclrtMemcpy", vec![id, count, src, count, kind]),
        1 => ("aclrtMemcpyAsync", vec![id, count, src, count, kind, stream]),
        2 => ("aclrtMemset", vec![id, count, low(value as u64), count]),
        3 => ("aclrtMemsetAsync", vec![id, count, low(value as u64), count, stream]),
        4 => ("aclrtMemcpyAsync", vec![id, count + 1 + (mix(id, 6) & 255), src, count, kind + 16, stream]),
        5 => ("aclrtMemcpy2dAsync", vec![id, mix(id, 6), src, mix(id, 7), mix(id, 8), mix(id, 9), kind, stream]),
        _ => {
            found[..4].fill(0); // where the host's arrays were is its own affair
            found[5..7].fill(0);
            ("aclrtMemcpyBatch", vec![0, 0, 0, 0, 1 + n % 5, 0, 0, 1, id])
        }
    };
    // Of narrow arguments the upper half is undefined.
    match n % 7 {
        0 | 1 | 4 => found[4] = low(found[4]),
        2 | 3 => found[2] = low(found[2]),
        5 => found[6] = low(found[6]),
        _ => {}
    }
    if (function, &found[..expected.len()]) != (name, &expected[..]) {
        return Err(format!("{function} {found:x?} instead of {name} {expected:x?}"));
    }
    let batch = (n % 7 == 6 && code_of(id) == 0 && call.end.is_some()).then(|| batch_of(id, n));
    if call.batch != batch {
        return Err(format!("{:?} instead of {batch:?}", call.batch));
    }
    Ok((lane, n))
}

/// The batch that call number `n` has.
fn batch_of(id: u64, n: u64) -> Batch {
    let size = |item: u64| 1 + (mix(id, 30 + item) & 0xffff);
    let sizes: Vec<u64> = (0..1 + n % 5).map(size).collect();
    let items = (0..1 + n % 5).map(|item| Item {
        dst: mix(id, 10 + item),
        src: mix(id, 20 + item),
        size: size(item),
        room: (mix(id, 40 + item) & 7) as i32,
    });
    Batch {
        total: sizes.iter().sum(),
        smallest: *sizes.iter().min().unwrap(),
        largest: *sizes.iter().max().unwrap(),
        too_large: 0,
        direction: Some((0, 1)),
        attributes: vec![Attribute { first: 0, dst: mix(id, 6) & 255, src: 1 << 32 }],
        items: items.collect(),
    }
}
