//! `mutate TARGET SECONDS KEEP`: runs a target on seeds, mutants and new programs without any tool, when there is no libFuzzer.
//!
//! It measures no coverage. The target reports for each input its progress and a signature of its behaviour, and an input with a new
//! signature joins the corpus. Before each run the input is written to the directory KEEP, so that it survives even if the process
//! is killed. Inputs of findings stay there, and the exit status is not zero. A run that takes too long or too much memory is a finding.

use ir::arbitrary::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use targets::mutation::{Form, mutate};
use targets::{Stage, Target, seeds};

/// The most processor time of an input: one that takes more is a finding. How busy the machine is otherwise does not matter.
const TOO_SLOW: Duration = Duration::from_secs(20);

/// The longest time of an input that does not work: one that takes longer is a finding, too.
const STUCK: Duration = Duration::from_secs(600);

/// The most memory of the process: more is a finding.
const TOO_LARGE_MB: u64 = 3072;

/// The stack of the thread that runs inputs: as large as a main thread's, for programs deep in recursion.
const STACK_BYTES: usize = 8 << 20;

/// The number of findings after which there is no point in going on.
const MAX_FINDINGS: u64 = 20;

/// The most inputs that are kept to be mutated.
const MAX_CORPUS: usize = 4000;

/// The time between two lines in which a long run says how it goes.
const REPORT: Duration = Duration::from_secs(60);

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
    let seed = match std::env::var("FUZZ_SEED").map(|text| text.parse()) {
        Ok(Ok(seed)) => seed,
        Ok(Err(_)) => {
            eprintln!("FUZZ_SEED is not a number");
            return ExitCode::from(2);
        }
        Err(_) => u64::from(std::process::id()),
    };
    if let Err(error) = std::fs::create_dir_all(&keep) {
        eprintln!("{}: {error}", keep.display());
        return ExitCode::FAILURE;
    }
    let (name, target) = (*name, *target);
    let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
    let work = move || {
        let mut fuzzer = Fuzzer::new(name, target, keep, seed);
        fuzzer.run(Duration::from_secs(seconds))
    };
    match builder.spawn(work).map(|thread| thread.join()) {
        Ok(Ok(code)) => code,
        _ => ExitCode::FAILURE,
    }
}

struct Fuzzer {
    name: &'static str,
    target: Target,
    keep: PathBuf,
    rng: Rng,
    form: Form,
    start: Instant,
    corpus: Vec<Vec<u8>>,
    /// The number of seeds: the first inputs of the corpus, which run as they are and stay.
    seeds: usize,
    seen: BTreeSet<u64>,
    runs: u64,
    findings: u64,
    stages: BTreeMap<Stage, u64>,
    slowest: Duration,
}

impl Fuzzer {
    fn new(name: &'static str, target: Target, keep: PathBuf, seed: u64) -> Fuzzer {
        let corpus = seeds::seeds(name);
        println!("{name}: {} seeds, FUZZ_SEED={seed}", corpus.len());
        Fuzzer {
            name,
            target,
            keep,
            rng: Rng::new(seed),
            form: match name {
                "packet" | "capture" | "report" | "generated" => Form::Bytes,
                _ => Form::Text,
            },
            start: Instant::now(),
            seeds: corpus.len(),
            corpus,
            seen: BTreeSet::new(),
            runs: 0,
            findings: 0,
            stages: BTreeMap::new(),
            slowest: Duration::ZERO,
        }
    }

    fn run(&mut self, time: Duration) -> ExitCode {
        if self.corpus.is_empty() {
            eprintln!("{}: no seeds", self.name);
            return ExitCode::FAILURE;
        }
        let clock = watch(self.name, self.start);
        let mut next_report = REPORT;
        while self.start.elapsed() < time && self.findings < MAX_FINDINGS {
            let input = self.next_input();
            if let Err(error) = self.run_input(input, &clock) {
                eprintln!("{}: {error}", self.keep.display());
                return ExitCode::FAILURE;
            }
            if self.start.elapsed() > next_report {
                next_report += REPORT;
                self.report();
            }
        }
        self.report();
        // What was found is kept under names of its own.
        let _ = std::fs::remove_file(self.kept("input"));
        ExitCode::from(u8::from(self.findings > 0))
    }

    fn kept(&self, what: &str) -> PathBuf {
        self.keep.join(format!("{}-{what}", self.name))
    }

    /// Returns the next input: each seed as it is first; then mutants, most of them of the corpus, and programs that nobody has
    /// seen.
    fn next_input(&mut self) -> Vec<u8> {
        if let Some(seed) = self.corpus[..self.seeds].get(self.runs as usize) {
            return seed.clone();
        }
        let fresh = match self.rng.below(4) {
            0 => seeds::fresh(self.name, self.rng.next()),
            _ => None,
        };
        match fresh {
            Some(fresh) if self.rng.below(4) == 0 => fresh,
            start => mutate(&self.corpus, start, self.form, &mut self.rng),
        }
    }

    fn run_input(&mut self, input: Vec<u8>, clock: &AtomicU64) -> std::io::Result<()> {
        write(&self.kept("input"), &input)?;
        let began = processor_time();
        clock.store(
            1 + self.start.elapsed().as_millis() as u64,
            Ordering::Relaxed,
        );
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.target)(&input)));
        clock.store(0, Ordering::Relaxed);
        if let (Some(began), Some(ended)) = (began, processor_time()) {
            self.slowest = self.slowest.max(ended.saturating_sub(began));
        }
        self.runs += 1;
        match outcome {
            Ok(reached) => {
                *self.stages.entry(reached.stage).or_insert(0) += 1;
                if self.seen.insert(reached.signature) {
                    self.remember(input);
                }
            }
            Err(_) => {
                self.findings += 1;
                let path = self.kept(&format!("finding-{}", self.findings));
                write(&path, &input)?;
                eprintln!(
                    "{}: panic in run {}; the input is {}",
                    self.name,
                    self.runs,
                    path.display()
                );
            }
        }
        Ok(())
    }

    /// Adds an input to the corpus. If that is full, mutants take the places of other mutants, never of seeds.
    fn remember(&mut self, input: Vec<u8>) {
        if self.corpus.len() < MAX_CORPUS.max(2 * self.seeds) {
            return self.corpus.push(input);
        }
        let mutants = (self.corpus.len() - self.seeds) as u32;
        let at = self.seeds + self.rng.below(mutants) as usize;
        self.corpus[at] = input;
    }

    fn report(&self) {
        let seconds = self.start.elapsed().as_secs_f64();
        let mut reached = 0;
        let mut stages = Vec::new();
        // Who came far came through what lies before.
        for stage in Stage::ALL.into_iter().rev() {
            reached += self.stages.get(&stage).copied().unwrap_or(0);
            if stage > Stage::Refused && reached > 0 {
                stages.push(format!("{reached} {}", format!("{stage:?}").to_lowercase()));
            }
        }
        stages.reverse();
        println!(
            "{}: {} runs in {seconds:.0} s ({:.1}/s), {}; {} behaviours, slowest run {} ms, {} findings",
            self.name,
            self.runs,
            self.runs as f64 / seconds.max(0.001),
            stages.join(", "),
            self.seen.len(),
            self.slowest.as_millis(),
            self.findings,
        );
    }
}

fn write(path: &Path, input: &[u8]) -> std::io::Result<()> {
    std::fs::File::create(path).and_then(|mut file| file.write_all(input))
}

/// Ends the process when a run takes too long, or the process too much memory. The clock holds when the run began, in
/// milliseconds; 0 between runs.
fn watch(name: &'static str, start: Instant) -> Arc<AtomicU64> {
    let clock = Arc::new(AtomicU64::new(0));
    let watched = clock.clone();
    std::thread::spawn(move || {
        // The run that was going on the last time, and what the process had used of the processor then.
        let mut last = (0, Duration::ZERO);
        loop {
            std::thread::sleep(Duration::from_millis(250));
            let began = watched.load(Ordering::Relaxed);
            if began != last.0 {
                last = (began, processor_time().unwrap_or_default());
            }
            let now = start.elapsed().as_millis() as u64;
            let waited = Duration::from_millis(now.saturating_sub(began));
            let worked = processor_time().map_or(waited, |now| now.saturating_sub(last.1));
            if began != 0 && (worked > TOO_SLOW || waited > STUCK) {
                eprintln!(
                    "{name}: a run takes more than {worked:?} of the processor; its input is kept"
                );
                std::process::exit(1);
            }
            if let Some(resident) = resident_mb().filter(|mb| *mb > TOO_LARGE_MB) {
                eprintln!("{name}: a run takes {resident} MB; its input is kept");
                std::process::exit(1);
            }
        }
    });
    clock
}

/// Returns the processor time of the process, to a hundredth of a second; `None` if the system does not report it.
fn processor_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name may hold anything, also blanks; behind it, user and system time are fields 14 and 15 of the line.
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks = |field: Option<&str>| field?.parse::<u64>().ok();
    let mut fields = fields.split_whitespace().skip(11);
    let (user, system) = (ticks(fields.next())?, ticks(fields.next())?);
    Some(Duration::from_millis((user + system) * 10))
}

/// Returns the memory that the process holds, in MiB; `None` where the system does not say.
fn resident_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024)
}
