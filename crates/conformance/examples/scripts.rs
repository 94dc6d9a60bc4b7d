//! `scripts DIR [COUNT]`: histories of every application for the reference switch, those in which most packets leave.
//!
//! In DIR, each application has a folder with `program` (the path and the definitions) and `N.txt`. `tests/python/test_reference_switch.py`
//! runs them.
#![expect(clippy::disallowed_macros, reason = "a command prints")]

use conformance::apps::{self, Application};
use conformance::choices::random_bytes;
use conformance::script::{self, Script};
use std::cmp::Reverse;
use std::path::Path;
use std::process::ExitCode;

/// Histories of which one is written: the one with the most packets that leave.
const TRIED: u64 = 20;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (directory, count) = match args.as_slice() {
        [directory] => (directory, Some(5)),
        [directory, count] => (directory, count.parse().ok()),
        _ => (&String::new(), None),
    };
    let Some(count) = count else {
        eprintln!("usage: scripts DIR [COUNT]");
        return ExitCode::from(2);
    };
    for application in apps::all() {
        if let Err(why) = write(&application, Path::new(directory), count) {
            eprintln!("{}: {why}", application.name);
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn write(application: &Application, directory: &Path, count: u64) -> Result<(), String> {
    let program = application.subject()?.program;
    let folder = directory.join(&application.name);
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let mut lines = vec![application.path.to_string()];
    lines.extend(
        application
            .defines
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    std::fs::write(folder.join("program"), lines.join("\n")).map_err(|e| e.to_string())?;
    let write = |seed| script::write(&program, &random_bytes(seed, 4000), &application.dialect);
    let mut scripts: Vec<(u64, Script)> =
        (0..count * TRIED).map(|seed| (seed, write(seed))).collect();
    scripts.sort_by_key(|(seed, script)| (Reverse(script.sent()), *seed));
    for (seed, script) in scripts.iter().take(count as usize) {
        let path = folder.join(format!("{seed}.txt"));
        std::fs::write(path, script.text()).map_err(|e| e.to_string())?;
    }
    Ok(())
}
