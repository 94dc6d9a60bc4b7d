//! Prints what `holdfast compile --check` says of programs: `cargo run --example examine -- FILE... [-DNAME[=VALUE]...]`.
#![expect(clippy::disallowed_macros, reason = "a command prints")]
#![expect(clippy::disallowed_methods, reason = "a command measures")]

use std::path::Path;
use std::time::Instant;

fn main() {
    let (defines, files): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|arg| arg.starts_with("-D"));
    let defines = defines.iter().map(|define| {
        let (name, value) = define[2..].split_once('=').unwrap_or((&define[2..], "1"));
        (name.to_string(), value.to_string())
    });
    let options = compile::Options {
        include_dirs: Vec::new(),
        defines: defines.collect(),
        ..Default::default()
    };
    for file in files {
        let start = Instant::now();
        let outcome = compile::examine_file(Path::new(&file), &options);
        print!("{}", outcome.render());
        let count = outcome.diagnostics.len();
        eprintln!(
            "{file}: {count} diagnostics, {:.2} s",
            start.elapsed().as_secs_f64()
        );
    }
}
