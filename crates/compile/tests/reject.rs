//! Programs that are wrong, or have nothing to run, with the exact text that says so.
//!
//! `tests/p4/reject/semantic/NAME.p4` must give `NAME.expect`. Set `UPDATE_EXPECT=1` to write what is given now, and read it
//! before committing.

mod programs;

use std::collections::BTreeSet;
use std::path::Path;

use compile::{Options, compile_text};
use programs::programs;

const FOLDER: &str = "tests/p4/reject/semantic";

#[test]
fn each_program_is_rejected_with_its_text() {
    let programs = programs(FOLDER);
    assert!(programs.len() >= 90, "only {} programs", programs.len());
    for path in programs {
        let source = std::fs::read_to_string(&path).expect("a program");
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let outcome = compile_text(&source, &name, &Options::default());
        assert!(outcome.compiled.is_none(), "{name} is accepted");
        let internal = outcome.diagnostics.iter().any(|d| d.code == "E1199");
        assert!(!internal, "{name} gets an internal message");
        expect_test::expect_file![path.with_extension("expect")].assert_eq(&outcome.render());
    }
}

/// Messages that no program of the corpus can give.
const WITHOUT_PROGRAM: [&str; 3] = [
    // Declarations in the wrong place: the parser of the language says so first.
    "E1011", "E1012", // A fault of the compiler.
    "E1199",
];

#[test]
fn every_message_has_a_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/errors");
    let files = std::fs::read_dir(folder).expect("the constructors of messages");
    let errors: String = files
        .map(|f| std::fs::read_to_string(f.expect("a file").path()).expect("a text"))
        .collect();
    let quoted = errors
        .split('"')
        .filter(|s| s.len() == 5 && (s.starts_with("E1") || s.starts_with("W1")));
    let codes: BTreeSet<&str> = quoted.collect();
    let mut shown = String::new();
    for path in programs(FOLDER) {
        shown += &std::fs::read_to_string(path.with_extension("expect")).expect("an expected text");
    }
    // Warnings of what comes after the last error are given for programs that are right alone; `accept.rs` compares these texts.
    for path in programs("tests/p4/accept") {
        shown += &std::fs::read_to_string(path.with_extension("warnings")).unwrap_or_default();
    }
    let missing: Vec<&&str> = codes
        .iter()
        .filter(|c| !WITHOUT_PROGRAM.contains(c) && !shown.contains(&format!("[{c}]")))
        .collect();
    assert!(missing.is_empty(), "no program gives {missing:?}");
}
