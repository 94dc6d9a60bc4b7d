//! `machine_code FILE [NAME=VALUE...]`: the cost of making machine code of a program: time, instructions of the code generator's
//! intermediate form, bytes.
#![expect(clippy::disallowed_macros, reason = "a command prints")]
#![expect(clippy::disallowed_methods, reason = "a command measures")]

use conformance::apps;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(file) = args.next() else {
        eprintln!("usage: machine_code FILE [NAME=VALUE...]");
        return ExitCode::from(2);
    };
    let defines: Vec<String> = args.collect();
    let defines: Vec<(&str, &str)> = (defines.iter())
        .map(|define| define.split_once('=').unwrap_or((define, "")))
        .collect();
    let outcome = compile::compile_file(Path::new(&file), &apps::options(&defines));
    let Some(compiled) = &outcome.compiled else {
        eprintln!("{}", outcome.render());
        return ExitCode::from(1);
    };
    let program = Arc::new(compiled.program.clone());
    let (slots, states) = (program.slots.len(), program.states.len());
    println!(
        "{slots} slots, {} headers, {states} states",
        program.headers.len()
    );
    let start = Instant::now();
    match jit::compile(program) {
        Ok(executor) => {
            let took = start.elapsed();
            println!("{took:.0?}, {:?}", executor.stats());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(1)
        }
    }
}
