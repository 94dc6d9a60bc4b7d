//! Generated programs for PSA: interpreter, machine code by halves and the fast path send the same packets, and count, drop and digest the
//! same, and the fast path is really taken.
#![expect(
    clippy::disallowed_macros,
    reason = "a test says what it skips and has found"
)]

use conformance::choices::random_bytes;
use conformance::history::{Dialect, run_with};
use conformance::psa::{self, Reached};
use conformance::{Choices, Statistics, Subject};
use ir::architecture::psa::{PORT_CPU, PORT_RECIRCULATE};

/// Programs, each with some histories.
const PROGRAMS: u64 = 120;

/// Histories of a program.
const HISTORIES: u64 = 3;

fn compiled(source: &str) -> ir::Program {
    let outcome = compile::compile_text(source, "generated.p4", &compile::Options::default());
    let rendered = outcome.render();
    match outcome.compiled {
        Some(compiled) => compiled.program,
        None => panic!("{rendered}\n{source}"),
    }
}

/// Returns the dialect of these programs: their actions forward to few ports, the one of recirculation among them.
fn dialect() -> Dialect {
    Dialect {
        param: |choices: &mut Choices<'_>, name| {
            let ports = [1, 2, 3, 0, 7, 1, 2, PORT_CPU, PORT_RECIRCULATE];
            (name == "port").then(|| u64::from(choices.pick(&ports)))
        },
        ..Dialect::of(conformance::generated::frame)
    }
}

/// Runs the histories of the program with the number `seed`. `Err` describes a difference.
fn run(subject: &Subject, seed: u64) -> Result<Statistics, String> {
    let mut total = Statistics::default();
    for history in 0..HISTORIES {
        let bytes = random_bytes(seed * HISTORIES + history + 1_000_000, 900);
        total += run_with(subject, &bytes, &dialect())?;
    }
    Ok(total)
}

#[test]
fn generated_programs_run_alike_on_the_fast_path() {
    let mut total = Statistics::default();
    let mut reached = Reached::default();
    for seed in 0..PROGRAMS {
        let source = psa::program(&random_bytes(seed, 600));
        let subject = Subject::new(compiled(&source)).expect("machine code");
        let (subject, watched) = subject.watched();
        match run(&subject, seed) {
            Ok(statistics) => total += statistics,
            Err(why) => panic!("seed {seed}: {why}\n{source}"),
        }
        reached += watched.reached();
    }
    println!("{total:?}\n{reached:?}");
    assert!(total.sent > total.received / 3, "{total:?}");
    assert!(total.dropped > total.received / 20, "{total:?}");
    // Most packets go the whole way, and all points at which it is left are met.
    let all = reached.end + reached.after_ingress + reached.after_egress;
    assert!(reached.end > 2 * all / 3, "{reached:?}");
    assert!(reached.after_ingress > 100, "{reached:?}");
    assert!(reached.after_egress > 100, "{reached:?}");
    assert!(reached.unsupported < all / 10, "{reached:?}");
}
