//! Generated programs, random entries and packets: the compiler takes every program, and the interpreter and the machine code do the same.
#![expect(
    clippy::disallowed_macros,
    reason = "a test says what it skips and has found"
)]

use conformance::choices::random_bytes;
use conformance::generate::{self, Constants};
use conformance::generated::{self, Finding};
use conformance::{Statistics, Subject, run};

/// Programs, each with a history.
const PROGRAMS: u64 = 200;

fn complain(seed: u64, case: &[u8], finding: &Finding) -> ! {
    let smaller = generated::minimise(case, finding, 600);
    let finding = generated::run(&smaller).expect_err("it still finds something");
    panic!("seed {seed}: {finding}\nthe case: {smaller:02x?}");
}

#[test]
fn generated_programs_compile_and_run_alike() {
    let mut total = Statistics::default();
    for seed in 0..PROGRAMS {
        let case = generated::case(seed);
        match generated::run(&case) {
            Ok(statistics) => total += statistics,
            Err(finding) => complain(seed, &case, &finding),
        }
    }
    println!("{total:?}");
    // They are worth something: packets arrive, pass and are dropped, and entries are taken.
    assert!(total.received > 4 * PROGRAMS, "{total:?}");
    assert!(total.sent > total.received / 4, "{total:?}");
    assert!(total.dropped > total.received / 50, "{total:?}");
    assert!(total.accepted > total.refused / 4, "{total:?}");
}

/// The purpose of the generator: the programs of a few hundred seeds have everything in them that the language and v1model offer.
#[test]
fn generated_programs_use_the_language() {
    let text: String = (0..1000)
        .map(|seed| generated::source(&generated::case(seed)))
        .collect();
    let words = [
        "bit<129>",
        "bit<256>",
        "int<",
        "varbit<",
        "header_union",
        "enum bit<",
        "error {",
        ".next)",
        "lastIndex",
        "lookahead<",
        "advance(",
        "verify(",
        "value_set<",
        "transition reject",
        "&&&",
        "..",
        "|+|",
        "|-|",
        "++",
        ">>",
        "/ ",
        "% ",
        "(int<",
        "(bool)",
        "? ",
        "{#}",
        "+=",
        "<<=",
        "switch (",
        ".action_run",
        ".apply().hit",
        "for (",
        "break;",
        "continue;",
        "exit;",
        "return;",
        "setValid",
        "setInvalid",
        "push_front",
        "pop_front",
        "[(",
        "exact",
        "ternary",
        "lpm",
        "range",
        "optional",
        "entries =",
        "const entries",
        "const default_action",
        "@tableonly",
        "direct_counter",
        "register<",
        "counter(",
        "meter(",
        ".count(",
        "execute_meter",
        "hash(",
        "random(",
        "digest<",
        "clone(",
        "clone_preserving_field_list(",
        "resubmit_preserving_field_list(",
        "recirculate_preserving_field_list(",
        "truncate(",
        "mark_to_drop(",
        "mcast_grp",
        "assert(",
        "log_msg(",
        "verify_checksum(",
        "update_checksum(",
        "verify_checksum_with_payload(",
        "update_checksum_with_payload(",
        "@field_list(1, 2)",
        "crc32_custom",
        "support_timeout",
        "tuple<",
        "direct_meter<",
        ".read(",
        "action_profile(",
        "action_selector(",
        ": selector",
        "[1]",
        ", ... }",
        "CONSTANT_",
        "flat_",
        "inout",
        "out ",
        "packet = packet",
        "= function_",
        "[(bit<2>) function_",
        "apply(_, ",
    ];
    let missing: Vec<_> = words.iter().filter(|w| !text.contains(**w)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn fewer_bytes_are_a_smaller_program() {
    assert!(generate::program(&[], Constants::Plain).lines().count() < 100);
    assert_eq!(
        generated::source(&generated::case(7)),
        generated::source(&generated::case(7))
    );
    generated::run(&[]).unwrap_or_else(|finding| panic!("{finding}"));
}

/// The harness is not blind: a program whose packets leave elsewhere is found, on whichever of the two ways it comes in.
#[test]
fn a_difference_is_found() {
    let compiled = |text: &str| {
        let outcome = compile::compile_text(text, "generated.p4", &compile::Options::default());
        let rendered = outcome.render();
        outcome
            .compiled
            .unwrap_or_else(|| panic!("{rendered}"))
            .program
    };
    let text = generate::program(&[], Constants::Plain);
    let other = text.replace("sm.egress_spec = 0;", "sm.egress_spec = 1;");
    assert_ne!(text, other);
    let subject = Subject::new(compiled(&text)).expect("machine code");
    let history = random_bytes(1, 600);
    run(&subject, &history).expect("the program is like itself");
    run(&subject.beside(compiled(&text)), &history).expect("the program is like itself");
    let found = run(&subject.beside(compiled(&other)), &history).expect_err("another port");
    assert!(
        found.contains("port 0") && found.contains("port 1"),
        "{found}"
    );
}

#[test]
fn hidden_constants_are_hidden() {
    let hidden: String = (0..50)
        .map(|seed| generate::program(&random_bytes(seed, 2000), Constants::Hidden))
        .collect();
    assert!(hidden.matches("meta.zero)").count() > 500);
    assert!(!hidden.contains("meta.zero = "));
}
