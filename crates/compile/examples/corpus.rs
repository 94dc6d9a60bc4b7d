//! `corpus DIR [INCLUDE...]`: compiles every program below a directory and prints one line for each, and the counts. Libraries (no
//! `main`) are checked.
//!
//! A line has tabs between status (`accepted` or `rejected`), path, and for each error its code, place and message. It does
//! not know which programs are meant to be right. Files that include an architecture are the programs; with `--all`
//! before the directory every file is one.
#![expect(clippy::disallowed_macros, reason = "a command prints")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use compile::{Options, Outcome, compile_file};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from).peekable();
    let all = args.next_if(|a| a.as_os_str() == "--all").is_some();
    let Some(directory) = args.next() else {
        eprintln!("usage: corpus [--all] DIR [INCLUDE...]");
        return ExitCode::from(2);
    };
    let options = Options {
        include_dirs: args.collect(),
        defines: Vec::new(),
        ..Default::default()
    };
    let mut paths = Vec::new();
    if let Err(error) = programs(&directory, &mut paths) {
        eprintln!("{}: {error}", directory.display());
        return ExitCode::from(2);
    }
    paths.sort();
    let (mut accepted, mut rejected) = (0, 0);
    for path in paths.iter().filter(|p| all || includes_architecture(p)) {
        let outcome = compile_file(path, &options);
        let status = match outcome.accepted() {
            true => "accepted",
            false => "rejected",
        };
        match outcome.accepted() {
            true => accepted += 1,
            false => rejected += 1,
        }
        let name = path.strip_prefix(&directory).unwrap_or(path);
        println!("{status}\t{}{}", name.display(), errors(&outcome));
    }
    println!("{accepted} accepted, {rejected} rejected");
    ExitCode::SUCCESS
}

/// Appends to `out` the path of every `.p4` file below a directory.
fn programs(directory: &Path, out: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            programs(&path, out)?;
        } else if path.extension().is_some_and(|e| e == "p4") {
            out.push(path);
        }
    }
    Ok(())
}

fn includes_architecture(path: &Path) -> bool {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines()
        .filter(|line| line.contains("#include"))
        .any(|line| {
            compile::libraries()
                .skip(1)
                .any(|(file, _)| line.contains(file))
        })
}

/// Renders each error of a compilation as a tab and its code, a tab and `file:line`, a tab and its message.
fn errors(outcome: &Outcome) -> String {
    let errors = outcome.diagnostics.iter().filter(|d| d.is_error());
    errors
        .map(|d| {
            let at = outcome.sources.location(d.span);
            let file = Path::new(&*at.file).file_name().unwrap_or_default();
            format!(
                "\t{}\t{}:{}\t{}",
                d.code,
                file.to_string_lossy(),
                at.line,
                d.message
            )
        })
        .collect()
}
