//! `histories DIR [COUNT]`: every program of a directory that compiles, under random histories on both executors; prints what differs.
//!
//! For programs that are not in this repository: it says nothing about whether they do what they should.
#![expect(clippy::disallowed_macros, reason = "a command prints")]

use conformance::choices::random_bytes;
use conformance::generated::frame;
use conformance::history::{Dialect, run_with};
use conformance::{Statistics, Subject};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (directory, count) = match args.as_slice() {
        [directory] => (directory, Some(5)),
        [directory, count] => (directory, count.parse().ok()),
        _ => (&String::new(), None),
    };
    let Some(count) = count else {
        eprintln!("usage: histories DIR [COUNT]");
        return ExitCode::from(2);
    };
    let mut paths: Vec<PathBuf> = match std::fs::read_dir(directory) {
        Ok(entries) => entries.flatten().map(|e| e.path()).collect(),
        Err(error) => {
            eprintln!("{directory}: {error}");
            return ExitCode::FAILURE;
        }
    };
    paths.retain(|p| p.extension().is_some_and(|e| e == "p4"));
    paths.sort();
    let (mut ran, mut differ) = (0, 0);
    let mut total = Statistics::default();
    for path in &paths {
        let Some(compiled) = compile::compile_file(path, &compile::Options::default()).compiled
        else {
            continue;
        };
        ran += 1;
        match histories(path, compiled.program, count) {
            Ok(statistics) => total += statistics,
            Err(why) => {
                differ += 1;
                println!("{}: {why}", path.display());
            }
        }
    }
    total.counted.clear();
    println!(
        "{} programs, {ran} compile, {differ} differ, {total:?}",
        paths.len()
    );
    ExitCode::from(u8::from(differ > 0))
}

fn histories(path: &Path, program: ir::Program, count: u64) -> Result<Statistics, String> {
    let subject = Subject::new(program).map_err(|e| format!("no machine code: {e}"))?;
    let mut total = Statistics::default();
    for seed in 0..count {
        // Frames of the Internet and frames of small numbers in turn.
        let bytes = random_bytes(seed, 1200);
        let statistics = match seed % 2 {
            0 => run_with(&subject, &bytes, &Dialect::of(conformance::frames::frame)),
            _ => run_with(&subject, &bytes, &Dialect::of(frame)),
        };
        total += statistics.map_err(|why| format!("{}, seed {seed}: {why}", path.display()))?;
    }
    Ok(total)
}
