//! Sends any bytes to the server of `leukos live`: it answers or hangs up, and shows nothing without the token.

#![no_main]

use leukos_lab::live::answer_bytes;
use libfuzzer_sys::fuzz_target;

const TOKEN: &str = "0123456789abcdef";

fuzz_target!(|input: &[u8]| {
    let answer = answer_bytes(input, TOKEN).expect("an answer");
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."));
    let has = |bytes: &[u8], word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
    assert!(has(input, TOKEN.as_bytes()) || !has(&answer, b"\"mode\":\"toy\""));
    assert!(has(input, TOKEN.as_bytes()) || !has(&answer, TOKEN.as_bytes()));
});
