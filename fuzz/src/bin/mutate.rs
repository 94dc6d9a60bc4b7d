//! `mutate TARGET SECONDS KEEP`: runs a target on mutated seeds without any tool, when there is no libFuzzer.
//!
//! It knows no coverage: it mutates the seeds and what came of them. Before each run the input is written to the directory KEEP, so that
//! it is there even when the process is killed; after a finding it stays, and the exit status is not zero.

use ir::arbitrary::Rng;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// An input that takes longer is a finding.
const TOO_SLOW: Duration = Duration::from_secs(30);

/// Programs deep in recursion get what a main thread gets.
const STACK_BYTES: usize = 8 << 20;

/// Words that languages under test are made of.
const WORDS: [&str; 40] = [
    "bit<",
    "int<",
    "varbit<",
    "header ",
    "struct ",
    "parser ",
    "control ",
    "table ",
    "action ",
    "apply",
    "state ",
    "transition ",
    "select(",
    "default",
    "if (",
    "else",
    "switch (",
    "return ",
    "exit;",
    "for (",
    "&&&",
    "..",
    "++",
    "|+|",
    "|-|",
    "<<",
    ">>",
    "0x",
    "8w",
    "65536",
    "-1",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "#define ",
    "#if ",
    "\\\n",
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let parsed = match args.as_slice() {
        [target, seconds, keep] => {
            let found = targets::TARGETS.iter().find(|(name, _)| name == target);
            found
                .zip(seconds.parse().ok())
                .zip(Some(PathBuf::from(keep)))
        }
        _ => None,
    };
    let Some((((name, target), seconds), keep)) = parsed else {
        eprintln!("usage: mutate TARGET SECONDS KEEP");
        return ExitCode::from(2);
    };
    if let Err(error) = std::fs::create_dir_all(&keep) {
        eprintln!("{}: {error}", keep.display());
        return ExitCode::FAILURE;
    }
    let (name, target) = (*name, *target);
    let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
    let work = move || fuzz(name, target, Duration::from_secs(seconds), &keep);
    match builder.spawn(work).map(|thread| thread.join()) {
        Ok(Ok(code)) => code,
        _ => ExitCode::FAILURE,
    }
}

fn fuzz(name: &str, target: fn(&[u8]), time: Duration, keep: &Path) -> ExitCode {
    let mut corpus = targets::seeds::seeds(name);
    if corpus.is_empty() {
        eprintln!("{name}: no seeds");
        return ExitCode::FAILURE;
    }
    let seeds = corpus.len();
    let start = Instant::now();
    let clock = watch(name.to_string(), start);
    let kept = keep.join(format!("{name}-input"));
    let mut rng = Rng::new(u64::from(std::process::id()));
    let mut runs = 0u64;
    while start.elapsed() < time || runs < seeds as u64 {
        // Each seed as it is first.
        let input = match corpus.get(runs as usize).filter(|_| runs < seeds as u64) {
            Some(seed) => seed.clone(),
            None => mutate(&corpus, &mut rng),
        };
        let written = std::fs::File::create(&kept).and_then(|mut f| f.write_all(&input));
        if let Err(error) = written {
            eprintln!("{}: {error}", kept.display());
            return ExitCode::FAILURE;
        }
        clock.store(1 + start.elapsed().as_millis() as u64, Ordering::Relaxed);
        let outcome = catch_unwind(AssertUnwindSafe(|| target(&input)));
        clock.store(0, Ordering::Relaxed);
        runs += 1;
        if outcome.is_err() {
            eprintln!(
                "{name}: panic after {runs} runs; the input is {}",
                kept.display()
            );
            return ExitCode::FAILURE;
        }
        if rng.below(16) == 0 {
            remember(&mut corpus, input, seeds, &mut rng);
        }
    }
    // Nothing was found, so there is nothing to keep.
    let _ = std::fs::remove_file(&kept);
    println!("{name}: {runs} runs, nothing found");
    ExitCode::SUCCESS
}

/// Ends the process when a run takes too long. The clock holds when the run began, in milliseconds; 0 between runs.
fn watch(name: String, start: Instant) -> Arc<AtomicU64> {
    let clock = Arc::new(AtomicU64::new(0));
    let watched = clock.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let began = watched.load(Ordering::Relaxed);
            let now = start.elapsed().as_millis() as u64;
            if began != 0 && now > began + TOO_SLOW.as_millis() as u64 {
                eprintln!("{name}: a run takes more than {TOO_SLOW:?}; its input is kept");
                std::process::exit(1);
            }
        }
    });
    clock
}

/// Mutants take the places of other mutants, never of seeds.
fn remember(corpus: &mut Vec<Vec<u8>>, input: Vec<u8>, seeds: usize, rng: &mut Rng) {
    if corpus.len() < 2 * seeds {
        corpus.push(input);
    } else {
        let at = seeds + rng.below(seeds as u32) as usize;
        corpus[at] = input;
    }
}

fn mutate(corpus: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut input = corpus[rng.below(corpus.len() as u32) as usize].clone();
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(input.len() as u32 + 1) as usize;
        let length = (rng.below(24) as usize).min(input.len() - at);
        match rng.below(7) {
            0 => drop(input.drain(at..at + length)),
            1 => {
                let piece = input[at..at + length].to_vec();
                let to = rng.below(input.len() as u32 + 1) as usize;
                input.splice(to..to, piece);
            }
            2 => {
                let other = &corpus[rng.below(corpus.len() as u32) as usize];
                let from = rng.below(other.len() as u32 + 1) as usize;
                let end = (from + rng.below(200) as usize).min(other.len());
                input.splice(at..at + length, other[from..end].iter().copied());
            }
            3 => {
                let word = WORDS[rng.below(WORDS.len() as u32) as usize];
                input.splice(at..at, word.bytes());
            }
            4 => input.insert(at, rng.below(256) as u8),
            5 => {
                // Another number where there is one.
                let digit = input[at..].iter().position(u8::is_ascii_digit);
                if let Some(digit) = digit {
                    input[at + digit] = b'0' + rng.below(10) as u8;
                }
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
        }
    }
    input.truncate(targets::MAX_INPUT);
    input
}
