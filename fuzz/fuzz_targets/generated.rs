//! The target `generated` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: targets::seeds::write("generated"),
    |data: &[u8]| {
        targets::generated_program(data);
    }
);
