//! The target `compile` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: targets::seeds::write("compile"),
    |data: &[u8]| {
        targets::compile(data);
    }
);
