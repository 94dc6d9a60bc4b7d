//! The target `parse` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: targets::seeds::write("parse"),
    |data: &[u8]| {
        targets::parse(data);
    }
);
