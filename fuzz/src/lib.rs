//! Fuzz targets. A finding is a panic: the code under test must not panic on any input, and where two ways lead to the same result
//! the targets panic themselves when they differ.
//!
//! The targets know no fuzzer. `fuzz_targets/` hands them to libFuzzer, `bin/mutate` runs them in a plain loop.
#![forbid(unsafe_code)]

pub mod seeds;

use compile::Options;
use conformance::{Subject, apps, history};
use std::path::Path;
use std::sync::OnceLock;
use syntax::MemoryLoader;

/// Longest input, in bytes: enough for everything, and no time is lost on giants.
pub const MAX_INPUT: usize = 1 << 15;

/// The targets by name.
pub const TARGETS: [(&str, fn(&[u8])); 4] = [
    ("parse", parse),
    ("compile", compile),
    ("artifact", artifact),
    ("packet", packet),
];

/// The name that inputs have for the compiler.
const INPUT: &str = "input.p4";

/// Any bytes as a program that can include what is built in and nothing else.
fn loader(text: &str) -> MemoryLoader {
    let mut loader = MemoryLoader::new().file(INPUT, text);
    for (name, text) in seeds::includes() {
        loader = loader.file(name, text);
    }
    loader
}

/// Preprocessor and parser: a tree and diagnostics that can be shown.
pub fn parse(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let parsed = syntax::parse(Path::new(INPUT), &loader(&text), &[]);
    let shown = parsed.render();
    assert_eq!(shown.is_empty(), parsed.diagnostics.is_empty());
}

/// All of the compiler. What it accepts is a valid program, and its text form means the same.
pub fn compile(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let options = Options::default();
    let outcome = compile::compile_with(Path::new(INPUT), &loader(&text), &options);
    let failed = outcome.diagnostics.iter().any(|d| d.is_error());
    assert_eq!(failed, outcome.compiled.is_none(), "{}", outcome.render());
    if let Some(compiled) = outcome.compiled {
        let text = ir::text::print(&compiled.program);
        let again = ir::text::parse(&text).expect("the text form of a program can be read");
        assert!(
            again == compiled.program,
            "the text form means something else"
        );
    }
}

/// The text form of a program, as it comes in a device configuration. If it is valid both executors must run it, and alike.
pub fn artifact(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    // The packets come after the program.
    let (text, packets) = text.split_once("\n===\n").unwrap_or((&text, ""));
    let Ok(program) = ir::text::parse(text) else {
        return;
    };
    if ir::verify::verify(&program).is_err() || is_giant(&program) {
        return;
    }
    let Ok(subject) = Subject::new(program) else {
        return;
    };
    let packets = if packets.is_empty() {
        data
    } else {
        packets.as_bytes()
    };
    if let Err(difference) = history::run_packets(&subject, packets) {
        panic!("{difference}");
    }
}

/// Valid, but not worth the time and memory: that a switch refuses to be as large as it is told is tested elsewhere.
fn is_giant(program: &ir::Program) -> bool {
    let bits: u64 = program.slots.iter().map(|s| u64::from(s.width)).sum();
    let cells = program
        .registers
        .iter()
        .map(|r| r.size)
        .chain(program.counters.iter().filter_map(|c| c.size));
    bits > 1 << 16 || cells.fold(0, u64::saturating_add) > 1 << 16
}

/// The applications under packets and control operations.
pub fn packet(data: &[u8]) {
    static SUBJECTS: OnceLock<Vec<Subject>> = OnceLock::new();
    let subjects = SUBJECTS.get_or_init(|| {
        let subjects = [
            apps::router(),
            apps::protect(),
            apps::protect_small_numbers(),
        ];
        subjects
            .into_iter()
            .map(|s| s.unwrap_or_else(|why| panic!("{why}")))
            .collect()
    });
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    let subject = &subjects[usize::from(first) % subjects.len()];
    if let Err(difference) = history::run(subject, rest) {
        panic!("{difference}");
    }
}
