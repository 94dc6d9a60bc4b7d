//! The target `capture` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: targets::seeds::write("capture"),
    |data: &[u8]| {
        targets::capture(data);
    }
);
