//! The programs of a folder of tests.

use std::path::{Path, PathBuf};

/// Returns the root directory of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the paths of the P4 programs in a folder of the repository, sorted by name.
pub fn programs(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).expect("a folder of programs");
    let paths = entries.map(|e| e.expect("an entry").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|p| p.extension().is_some_and(|e| e == "p4"))
        .collect();
    paths.sort();
    paths
}
