//! States what the page may do: apply its own style and run its own script, each recognised by its hash, nothing else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The page's Content-Security-Policy: nothing is loaded, and only these two texts take effect.
pub fn policy(style: &str, script: &str) -> String {
    let [style, script] = [style, script].map(|text| STANDARD.encode(sha256(text.as_bytes())));
    format!(
        "default-src 'none'; img-src data:; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; \
         form-action 'none'"
    )
}

/// The hash by which browsers recognise a style or a script: SHA-256 (FIPS 180-4).
fn sha256(message: &[u8]) -> [u8; 32] {
    let constants: Vec<u32> = primes().take(64).map(|prime| fraction_of_root(prime, 3)).collect();
    let mut hash: Vec<u32> = primes().take(8).map(|prime| fraction_of_root(prime, 2)).collect();
    for block in padded(message).chunks_exact(64) {
        let mut words: Vec<u32> = block
            .chunks_exact(4)
            .map(|word| word.iter().fold(0, |all, &byte| all << 8 | u32::from(byte)))
            .collect();
        for t in 16..64 {
            let [a, b] = [words[t - 2], words[t - 15]];
            let a = a.rotate_right(17) ^ a.rotate_right(19) ^ (a >> 10);
            let b = b.rotate_right(7) ^ b.rotate_right(18) ^ (b >> 3);
            words.push(a.wrapping_add(words[t - 7]).wrapping_add(b).wrapping_add(words[t - 16]));
        }
        let mut state = hash.clone();
        words
            .iter()
            .zip(&constants)
            .for_each(|(&word, &constant)| turn(&mut state, word.wrapping_add(constant)));
        hash.iter_mut().zip(state).for_each(|(hash, state)| *hash = hash.wrapping_add(state));
    }
    let mut bytes = [0; 32];
    bytes.chunks_exact_mut(4).zip(hash).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_be_bytes()));
    bytes
}

/// One of the 64 steps of a block.
fn turn(state: &mut [u32], word: u32) {
    let (a, e) = (state[0], state[4]);
    let choice = (e & state[5]) ^ (!e & state[6]);
    let majority = (a & state[1]) ^ (a & state[2]) ^ (state[1] & state[2]);
    let from_e = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
    let from_a = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
    let first = state[7].wrapping_add(from_e).wrapping_add(choice).wrapping_add(word);
    state.rotate_right(1);
    state[0] = first.wrapping_add(from_a).wrapping_add(majority);
    state[4] = state[4].wrapping_add(first);
}

/// The message, a bit that is set, zeros, and the length in bits: a whole number of blocks.
fn padded(message: &[u8]) -> Vec<u8> {
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((message.len() + 9).next_multiple_of(64) - 8, 0);
    padded.extend((8 * message.len() as u64).to_be_bytes());
    padded
}

fn primes() -> impl Iterator<Item = u128> {
    (2..).filter(|&n| (2..n).take_while(|d| d * d <= n).all(|d| n % d != 0))
}

/// The first 32 bits after the point of the square or cube root of a number: the algorithm's constants.
fn fraction_of_root(number: u128, degree: u32) -> u32 {
    let scaled = number << (32 * degree);
    let mut root = 0_u128;
    for bit in (0..40).rev().map(|bit| 1 << bit) {
        if (root + bit).pow(degree) <= scaled {
            root += bit;
        }
    }
    root as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_hex(bytes: &[u8; 32]) -> String {
        let halves = [&bytes[..16], &bytes[16..]];
        let [high, low] =
            halves.map(|half| half.iter().fold(0_u128, |all, &byte| all << 8 | u128::from(byte)));
        format!("{high:032x}{low:032x}")
    }

    #[test]
    fn fingerprints_are_those_of_the_standard() {
        let hex = |text: &str| in_hex(&sha256(text.as_bytes()));
        assert_eq!(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(two_blocks), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    }
}
