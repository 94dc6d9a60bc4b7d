//! The target `report` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(
    init: targets::seeds::write("report"),
    |data: &[u8]| {
        targets::report(data);
    }
);
