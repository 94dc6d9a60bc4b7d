//! Every program of `tests/p4/run` against its script, on both executors.
#![expect(
    clippy::disallowed_macros,
    reason = "a test says what it skips and has found"
)]

use conformance::apps;
use std::collections::BTreeMap;
use stf::Status;

/// Fewer than this means that the directory was not found or lost programs.
const AT_LEAST: usize = 70;

#[test]
fn programs_do_what_their_scripts_say() {
    let directory = apps::root().join("tests/p4/run");
    let results = stf::run_directory(&directory, &apps::options(&[])).expect("the directory");
    let mut counts = BTreeMap::new();
    let mut table = String::new();
    for result in &results {
        *counts.entry(result.status.name()).or_insert(0) += 1;
        if result.status != Status::Passed {
            let reason = result.reason.replace('\n', "\n    ");
            let (name, status) = (&result.name, result.status.name());
            table.push_str(&format!("{name:30} {status}\n    {reason}\n"));
        }
    }
    println!("{counts:?}");
    assert!(table.is_empty(), "{counts:?}\n{table}");
    assert!(results.len() >= AT_LEAST, "{counts:?}");
}

#[test]
fn every_program_has_a_script() {
    let directory = apps::root().join("tests/p4/run");
    for entry in std::fs::read_dir(directory).expect("the directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "p4") {
            assert!(path.with_extension("stf").exists(), "{}", path.display());
        }
    }
}
