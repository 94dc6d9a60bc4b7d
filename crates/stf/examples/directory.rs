//! `directory DIR [INCLUDE...]`: runs every script of a directory and prints the scripts that did not pass, and the counts.
#![expect(clippy::disallowed_macros, reason = "a command prints")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(directory) = args.next() else {
        eprintln!("usage: directory DIR [INCLUDE...]");
        return ExitCode::from(2);
    };
    let options = compile::Options {
        include_dirs: args.collect(),
        defines: Vec::new(),
        ..Default::default()
    };
    match run(&directory, &options) {
        Ok(failed) => ExitCode::from(u8::from(failed > 0)),
        Err(error) => {
            eprintln!("{}: {error}", directory.display());
            ExitCode::from(2)
        }
    }
}

fn run(directory: &Path, options: &compile::Options) -> std::io::Result<usize> {
    let mut counts = BTreeMap::new();
    for result in stf::run_directory(directory, options)? {
        *counts.entry(result.status.name()).or_insert(0) += 1;
        if result.status != stf::Status::Passed {
            let (status, name) = (result.status.name(), &result.name);
            println!(
                "{status} {name}\n    {}",
                result.reason.replace('\n', "\n    ")
            );
        }
    }
    println!("{counts:?}");
    Ok(counts.get("failed").copied().unwrap_or(0))
}
