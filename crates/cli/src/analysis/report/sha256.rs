//! SHA-256 in base64, as a Content-Security-Policy names a script.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The fractions of the cube roots of the first 64 primes.
const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98,
    0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8,
    0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819,
    0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2,
];

/// The fractions of the square roots of the first eight primes.
const START: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

fn digest(text: &[u8]) -> [u8; 32] {
    let mut padded = text.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if text.len() % 64 >= 56 {
        padded.resize(padded.len() + 64, 0);
    }
    let length = padded.len();
    padded[length - 8..].copy_from_slice(&(text.len() as u64 * 8).to_be_bytes());
    let mut state = START;
    for block in padded.chunks_exact(64) {
        let mut words = [0u32; 64];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        for at in 16..64 {
            let [a, b] = [words[at - 15], words[at - 2]];
            let low = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let high = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            words[at] = words[at - 16].wrapping_add(low).wrapping_add(words[at - 7]).wrapping_add(high);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (round, word) in ROUNDS.iter().zip(words) {
            let high = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = e & f ^ !e & g;
            let one = h.wrapping_add(high).wrapping_add(choice).wrapping_add(*round).wrapping_add(word);
            let low = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let two = low.wrapping_add(a & b ^ a & c ^ b & c);
            (h, g, f, e, d, c, b, a) = (g, f, e, d.wrapping_add(one), c, b, a, one.wrapping_add(two));
        }
        for (sum, more) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *sum = sum.wrapping_add(more);
        }
    }
    let mut digest = [0; 32];
    digest.as_chunks_mut::<4>().0.iter_mut().zip(state).for_each(|(bytes, word)| *bytes = word.to_be_bytes());
    digest
}

/// The source expression that allows exactly this inline script or style.
pub fn source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(digest(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::source;

    #[test]
    fn known_digests_come_out() {
        for (text, digest) in [
            ("", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
            ("abc", "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0="),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "JI1qYdIGOLjlwCaTDD5gOaM85Flk/yFn9uzt1BnbBsE=",
            ),
        ] {
            assert_eq!(source(text), format!("'sha256-{digest}'"));
        }
    }
}
