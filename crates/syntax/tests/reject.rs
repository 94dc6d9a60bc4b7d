//! The programs in `tests/p4/reject/syntax`, each with the diagnostics it must get in a `.expect` file beside it.
//!
//! `UPDATE_EXPECT=1` rewrites those files; review them before committing.

use std::path::{Path, PathBuf};

use expect_test::expect_file;
use syntax::{FileLoader, parse};

fn programs(dir: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let paths = entries.map(|entry| entry.expect("a directory entry").path());
    let mut programs: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "p4"))
        .collect();
    programs.sort();
    programs
}

fn tests_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/p4")
}

#[test]
fn reject() {
    let dir = tests_dir()
        .join("reject/syntax")
        .canonicalize()
        .expect("the directory of programs");
    let programs = programs(&dir);
    assert!(programs.len() >= 25, "only {} programs", programs.len());
    for program in programs {
        let parsed = parse(&program, &FileLoader::new(), &[]);
        assert!(
            !parsed.diagnostics.is_empty(),
            "{} has no errors",
            program.display()
        );
        let rendered = parsed.render().replace(&format!("{}/", dir.display()), "");
        expect_file![program.with_extension("expect")].assert_eq(&rendered);
    }
}

#[test]
fn accept() {
    for program in programs(&tests_dir().join("accept/syntax")) {
        let parsed = parse(&program, &FileLoader::new(), &[]);
        assert_eq!(parsed.render(), "", "{}", program.display());
    }
}
