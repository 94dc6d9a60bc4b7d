//! Every program of the repository, with packets that its parser likes.
#![expect(
    clippy::disallowed_macros,
    reason = "a test says what it skips and has found"
)]

use crate::packets::packet_for;
use crate::pair::Pair;
use ir::arbitrary::{Rng, packet};
use std::path::{Path, PathBuf};

/// Directories with programs, from the root of the repository; `*` is any one directory.
const DIRECTORIES: [&str; 3] = ["tests/p4/accept", "tests/p4/run", "python/holdfast/apps/*"];

const PACKETS: u64 = 150;

fn directories(root: &Path, pattern: &str) -> Vec<PathBuf> {
    match pattern.strip_suffix("/*") {
        Some(parent) => entries(&root.join(parent)),
        None => vec![root.join(pattern)],
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    paths
}

#[test]
fn corpus() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = (DIRECTORIES.iter())
        .flat_map(|pattern| directories(&root, pattern))
        .flat_map(|directory| entries(&directory))
        .filter(|path| path.extension().is_some_and(|e| e == "p4"));
    let (mut programs, mut left) = (0, 0);
    for path in files {
        // Whether a program compiles is for the compiler's tests.
        let outcome = compile::compile_file(&path, &compile::Options::default());
        let Some(compiled) = outcome.compiled else {
            println!("{} does not compile", path.display());
            continue;
        };
        programs += 1;
        let mut program = compiled.program;
        // Large enough that bursts are looked ahead.
        program.tables.iter_mut().for_each(|t| t.size = 1 << 20);
        left += run(program);
    }
    println!("{programs} programs, {left} packets left");
    assert!(programs > 10 && left > PACKETS);
}

fn run(program: ir::Program) -> u64 {
    let mut rng = Rng::new(program.slots.len() as u64);
    let mut pair = Pair::new(program.clone(), 7);
    let mut left = 0;
    for i in 0..PACKETS {
        if i % 50 == 0 {
            pair.configure(&mut rng);
        }
        let port = rng.below(8);
        let bytes = if rng.one_in(10) {
            packet(rng.next())
        } else {
            packet_for(&program, &mut rng)
        };
        left += pair.receive(port, &bytes);
    }
    let burst: Vec<_> = (0..16)
        .map(|_| (rng.below(8), packet_for(&program, &mut rng)))
        .collect();
    left += pair.receive_burst(&burst);
    pair.compare_objects();
    left
}
