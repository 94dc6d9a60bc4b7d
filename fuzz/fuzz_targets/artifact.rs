//! The target `artifact` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: targets::seeds::write("artifact"),
    |data: &[u8]| {
        targets::artifact(data);
    }
);
