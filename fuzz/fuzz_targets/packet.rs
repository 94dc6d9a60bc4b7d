//! The target `packet` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: targets::seeds::write("packet"),
    |data: &[u8]| {
        targets::packet(data);
    }
);
