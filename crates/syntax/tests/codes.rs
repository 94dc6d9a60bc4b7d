//! Every diagnostic has an expected text in some test.

use std::collections::BTreeSet;
use std::path::Path;

/// Finds the codes of errors and warnings, such as `E0123` and `W0123`, in `text`.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    let starts = text
        .char_indices()
        .filter(|(_, c)| matches!(c, 'E' | 'W'))
        .map(|(i, _)| i);
    let words = starts.filter_map(|i| text.get(i..i + 5));
    words.filter(|code| code[1..].starts_with('0') && code[1..].chars().all(|c| c.is_ascii_digit()))
}

#[test]
fn every_code_is_tested_and_unique() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(root.join("src/errors.rs")).expect("errors.rs");
    // Codes in messages stand in quotes, those in the documentation do not.
    let defined: BTreeSet<&str> = codes(&source)
        .filter(|code| source.contains(&format!("\"{code}\"")))
        .collect();
    for code in &defined {
        let mut functions: Vec<_> = source.split("fn ").filter(|f| f.contains(code)).collect();
        functions.dedup();
        assert_eq!(functions.len(), 1, "{code} belongs to several constructors");
    }
    let mut expected = String::new();
    for dir in ["tests", "../../tests/p4/reject/syntax"] {
        for entry in std::fs::read_dir(root.join(dir)).expect("a directory of tests") {
            let path = entry.expect("a directory entry").path();
            if path.extension().is_some_and(|e| e == "rs" || e == "expect") {
                expected += &std::fs::read_to_string(path).expect("a test");
            }
        }
    }
    let tested: BTreeSet<&str> = codes(&expected).collect();
    let untested: Vec<_> = defined.difference(&tested).collect();
    assert!(untested.is_empty(), "no test expects {untested:?}");
}
