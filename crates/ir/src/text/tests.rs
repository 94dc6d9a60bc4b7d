//! The text form: there and back, by hand and on random programs, and on texts that are no programs.
#![expect(
    clippy::disallowed_methods,
    reason = "a test waits for what runs in real time, or measures"
)]

use super::*;
use crate::arbitrary::{self, Rng};
use crate::architecture::v1model::INGRESS;
use crate::verify::{MAX_EXPR_DEPTH, MAX_NESTING, verify};
use crate::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn print_and_parse_are_inverse(seed in any::<u64>(), of in 0..architecture::ALL.len()) {
        let program = arbitrary::program_of(architecture::ALL[of], seed);
        let text = print(&program);
        let parsed = parse(&text);
        prop_assert_eq!(parsed.as_ref(), Ok(&program), "{}", text);
    }

    #[test]
    fn mutated_text_does_no_harm(seed in any::<u64>(), of in 0..architecture::ALL.len()) {
        let mut rng = Rng::new(seed);
        let text = print(&arbitrary::program_of(architecture::ALL[of], seed));
        let mutated = mutate(&text, &mut rng);
        if let Ok(program) = parse(&mutated) {
            let _ = verify(&program);
            prop_assert_eq!(parse(&print(&program)), Ok(program));
        }
    }

    #[test]
    fn swapped_tokens_do_no_harm(seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let text = print(&arbitrary::program(seed));
        let mut tokens: Vec<&str> = text.split_inclusive([' ', '(', ')', ',', '\n']).collect();
        for _ in 0..1 + rng.below(3) {
            let (i, j) = (rng.below(tokens.len() as u32), rng.below(tokens.len() as u32));
            tokens[i as usize] = tokens[j as usize];
        }
        if let Ok(program) = parse(&tokens.concat()) {
            let _ = verify(&program);
            prop_assert_eq!(parse(&print(&program)), Ok(program));
        }
    }

    #[test]
    fn any_text_does_no_harm(text in "\\PC*") {
        prop_assert!(parse(&text).is_err());
    }

    #[test]
    fn names_survive(name in any::<String>()) {
        let program = Program { name, ..arbitrary::program(1) };
        prop_assert_eq!(parse(&print(&program)), Ok(program));
    }
}

/// Changes, removes or repeats a few characters of a text; often replaces digits by other digits.
fn mutate(text: &str, rng: &mut Rng) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(chars.len() as u32) as usize;
        match rng.below(5) {
            0 if chars.len() > 1 => {
                chars.remove(at);
            }
            1 => chars.insert(
                at,
                rng.pick(&['(', '{', '"', '\\', '9', '%', 'é', '@', '.', '\0']),
            ),
            2 => chars.truncate(at.max(2)),
            _ => {
                let digits: Vec<usize> = (0..chars.len())
                    .filter(|&i| chars[i].is_ascii_digit())
                    .collect();
                if !digits.is_empty() {
                    chars[rng.pick(&digits)] = rng.pick(&['0', '1', '2', '7', '9', 'f']);
                }
            }
        }
    }
    chars.into_iter().collect()
}

/// Returns the declarations with which every program's text begins, followed by `rest`.
fn with_preamble(rest: &str) -> String {
    let text = print(&arbitrary::program(0));
    let start = text.find("header h0").expect("programs have headers");
    format!("{}{rest}", &text[..start])
}

const NO_STATES: &str = "control verify_checksum {} control ingress { INGRESS } control egress {}
    control compute_checksum {} control deparser {}";

fn with_ingress(body: &str) -> String {
    with_preamble(&NO_STATES.replace("INGRESS", body))
}

#[test]
fn statements_read_well() {
    let body = "assign %1 = sub(%1, 9w1) @0:57 ; a comment
        if eq(%0, 9w0xff) { exit } else { loop b3 { break b3 @0:7 } }
        switch %15 { case 3w1, 3w2 {} default { log \"{}\\n\" (slice(%9, 8, 0)) } }
        apply t0(%1, mux(1w1, %0, %1)) hit %13 @0:1 random %5=(32w0,32w9)";
    let program = parse(&with_ingress(body)).expect("is well-formed");
    let text = print(&program);
    let start = text.find("control ingress").expect("is printed");
    let end = text.find("control egress").expect("is printed");
    expect![[r#"
        control ingress {
          assign %1 = sub(%1, 9w0x1) @0:57
          if eq(%0, 9w0xff) {
            exit
          }
          else {
            loop b3 {
              break b3 @0:7
            }
          }
          switch %15 {
            case 3w0x1, 3w0x2 {
            }
            default {
              log "{}\n"(slice(%9, 8, 0))
            }
          }
          apply t0(%1, mux(1w0x1, %0, %1)) hit %13 @0:1
          random %5 = (32w0x0, 32w0x9)
        }
    "#]]
    .assert_eq(&text[start..end]);
}

fn refused(text: &str, expected: Expect) {
    let error = parse(text).expect_err("is not well-formed");
    expected.assert_eq(&error.to_string());
}

#[test]
fn errors_say_where() {
    refused(
        "",
        expect![[r#"1:1: expected "holdfast_ir", found the end of the text"#]],
    );
    refused(
        "holdfast_ir 3\n",
        expect!["1:13: version 3 of the text form; this reads version 2"],
    );
    refused(
        "holdfast_ir 2\nprogram \"é\" §",
        expect!["2:13: '§' begins no token"],
    );
    refused(
        "holdfast_ir 2\nprogram \"x",
        expect!["2:9: this string does not end"],
    );
    refused(
        "holdfast_ir 2 program \"\\u{d800}\"",
        expect![[r"1:23: \u needs {HEX} of a character"]],
    );
    refused(
        "holdfast_ir 2 program \"\" slot %1 \"x\" : 1",
        expect!["1:31: the next slot has the number 0"],
    );
    refused(
        "holdfast_ir 2 program \"\" slot %0 \"x\" : 4294967296",
        expect!["1:40: expected a smaller decimal number, found 4294967296"],
    );
}

#[test]
fn errors_in_bodies() {
    let message = |body: &str| {
        parse(&with_ingress(body))
            .expect_err("is not well-formed")
            .message
    };
    expect!["expected a statement, found jump"].assert_eq(&message("jump b0"));
    expect!["there is no operator frob"].assert_eq(&message("assign %1 = frob(%1)"));
    expect!["these digits are no value of 3 bits"].assert_eq(&message("assign %1 = 3w0x8"));
    expect!["these digits are no value of 3 bits"].assert_eq(&message("assign %1 = 3w8"));
    expect!["these digits are no value of 65 bits"]
        .assert_eq(&message("assign %1 = 65w0x20000000000000000"));
    expect!["these digits are no value of 8 bits"].assert_eq(&message("assign %1 = 8w0x"));
    expect!["these digits are no value of 8 bits"].assert_eq(&message("assign %1 = 8w"));
    expect!["expected a constant with its width, found 0w0"].assert_eq(&message("assign %1 = 0w0"));
    expect!["expected a constant with its width, found 262145w0"]
        .assert_eq(&message("assign %1 = 262145w0"));
    expect!["expected \"..\", found ')'"].assert_eq(
        &parse(&with_preamble(
            "state s0 \"x\" { select (%0) { case (9w1) accept } }",
        ))
        .expect_err("is not well-formed")
        .message,
    );
}

#[test]
fn constants_at_the_borders_of_limbs() {
    for width in [1, 4, 63, 64, 65, 128, 129, 300] {
        for value in [
            Bits::zero(width),
            Bits::ones(width),
            Bits::prefix_mask(width, 1),
        ] {
            let program = parse(&with_ingress(&format!("assert {value}"))).expect("is well-formed");
            let cond = Expr::Const(value);
            assert_eq!(program.control(INGRESS)[0].kind, StmtKind::Assert { cond });
        }
    }
}

fn nested(depth: u32) -> String {
    with_ingress(&format!(
        "{}exit{}",
        "if 1w1 {".repeat(depth as usize - 1),
        "}".repeat(depth as usize - 1)
    ))
}

fn deep(depth: u32) -> String {
    let depth = depth as usize - 1;
    with_ingress(&format!(
        "assert {}1w1{}",
        "not(".repeat(depth),
        ")".repeat(depth)
    ))
}

/// Runs a test on a stack of 512 KiB, smaller than that of any thread, to show that recursion over a program is safe.
fn on_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(512 << 10)
        .spawn(test);
    thread.expect("threads start").join().expect("no panic");
}

#[test]
fn nesting_is_bounded() {
    on_small_stack(|| {
        for text in [nested(MAX_NESTING), deep(MAX_EXPR_DEPTH)] {
            let mut program = parse(&text).expect("as deep as allowed");
            program.states.push(State {
                name: "start".into(),
                body: Vec::new(),
                transition: Transition::Goto(Target::Accept),
                loc: Loc::default(),
            });
            assert_eq!(verify(&program), Ok(()));
            assert_eq!(parse(&print(&program)), Ok(program.clone()));
        }
        assert!(parse(&nested(MAX_NESTING + 1)).is_err());
        assert!(parse(&deep(MAX_EXPR_DEPTH + 1)).is_err());
        assert!(parse(&nested(200_000)).is_err());
        assert!(parse(&deep(200_000)).is_err());
    });
}

#[test]
fn allocation_is_bounded() {
    // A megabyte of text that names gigabytes of constants.
    let text = with_ingress(&"assert 262144w1 ".repeat(70_000));
    let error = parse(&text).expect_err("is too large");
    assert_eq!(
        error.message,
        "the values of the program are too large in all"
    );
    let error = parse(&"x".repeat(MAX_TEXT_BYTES + 1)).expect_err("is too long");
    assert!(error.message.contains("at most"), "{error}");
    let error = parse(&with_ingress(&"exit ".repeat((1 << 20) + 1))).expect_err("is too long");
    assert_eq!(error.message, "too many statements");
}
