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

/// Egress knows nothing of ingress but bytes and what is brought along: the programs of P4 have no slot in common, but others may.
#[test]
fn a_slot_of_both_halves_is_zero_when_egress_begins() {
    // Of these bytes the simplest program is made; its ingress gets a number, which egress sends.
    let source = psa::program(&[]);
    let source = source.replacen(
        "send_to_port(ostd, (PortId_t) 1);",
        "send_to_port(ostd, (PortId_t) 1); meta.x = 0x1234;",
        1,
    );
    assert!(source.contains("0x1234"));
    let text = ir::text::print(&compiled(&source));
    let slot = |name: &str| {
        let line = text.lines().find(|line| line.contains(name));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number
            .unwrap_or_else(|| panic!("no {name} in {text}"))
            .to_string()
    };
    let (theirs, own) = (slot("\"ingress.meta.x\""), slot("\"egress.meta.x\""));
    let (before, egress) = text.split_once("control egress {").expect("has one");
    let (egress, behind) = egress.split_once("\n}").expect("ends");
    let word = |text: &str| format!("{text} ");
    let egress = egress
        .replace(&format!("{own},"), &format!("{theirs},"))
        .replace(&word(&own), &word(&theirs))
        .replace(&format!("{own})"), &format!("{theirs})"));
    let shared = format!("{before}control egress {{{egress}\n}}{behind}");
    assert_ne!(shared, text);
    let program = ir::text::parse(&shared).unwrap_or_else(|e| panic!("{e}\n{shared}"));
    let (subject, watched) = Subject::new(program).expect("machine code").watched();
    run(&subject, 1).unwrap_or_else(|why| panic!("{why}\n{shared}"));
    assert!(watched.reached().end > 50, "{:?}", watched.reached());
}
