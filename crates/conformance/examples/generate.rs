//! `generate SEED [COUNT]`: the programs of some seeds, taken through the whole chain; prints what is found, minimised, or with `--show` the program.
#![expect(clippy::disallowed_macros, reason = "a command prints")]

use conformance::Statistics;
use conformance::generated;
use std::process::ExitCode;

/// Attempts to make a finding smaller.
const ATTEMPTS: u32 = 1500;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Option<Vec<u64>> = args.iter().take(2).map(|a| a.parse().ok()).collect();
    match (numbers.as_deref(), args.get(1).map(String::as_str)) {
        (None, Some("--show")) if args[0].parse::<u64>().is_ok() => {
            let seed = args[0].parse().unwrap_or(0);
            print!("{}", generated::source(&generated::case(seed)));
            ExitCode::SUCCESS
        }
        (Some([first]), _) => run(*first, 1),
        (Some([first, count]), _) => run(*first, *count),
        _ => {
            eprintln!("usage: generate SEED [COUNT | --show]");
            ExitCode::from(2)
        }
    }
}

fn run(first: u64, count: u64) -> ExitCode {
    let mut total = Statistics::default();
    let mut findings = 0;
    for seed in first..first + count {
        let case = generated::case(seed);
        match generated::run(&case) {
            Ok(statistics) => total += statistics,
            Err(finding) => {
                findings += 1;
                let smaller = generated::minimise(&case, &finding, ATTEMPTS);
                let finding = generated::run(&smaller).err().unwrap_or(finding);
                println!("==== seed {seed}\n{finding}");
            }
        }
    }
    println!("{count} programs, {findings} findings, {total:?}");
    ExitCode::from(u8::from(findings > 0))
}
