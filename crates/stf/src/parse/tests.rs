//! Tests of the meaning of lines, and of the parser's robustness.

use super::*;
use crate::script::Number;
use ir::Bits;

fn one(line: &str) -> Command {
    let (mut script, problems) = parse(line);
    assert_eq!(problems, []);
    assert_eq!(script.lines.len(), 1, "{line}");
    script.lines.remove(0).command
}

fn problem(line: &str) -> String {
    let (script, problems) = parse(line);
    assert_eq!(script.lines, [], "{line}");
    assert_eq!(problems.len(), 1, "{line}");
    problems[0].to_string()
}

fn hex(text: &str) -> Number {
    number(text).expect("a number")
}

#[test]
fn an_add_has_priority_matches_action_and_id() {
    let command = one("add test1 503 data.f1:0x****0202 ipv4.dst:10/8 setb1(val:7, port:3) = A");
    let Command::Add {
        table,
        priority,
        matches,
        action,
        id,
    } = command
    else {
        panic!("not an add");
    };
    assert_eq!((table.as_str(), priority), ("test1", Some(503)));
    assert_eq!(matches[0].0, "data.f1");
    assert_eq!(matches[0].1, Pattern::Number(hex("0x****0202")));
    assert_eq!(matches[1].1, Pattern::Prefix(hex("10"), 8));
    assert_eq!(action.name, "setb1");
    assert_eq!(action.args[1], ("port".to_string(), hex("3")));
    assert_eq!(id.as_deref(), Some("A"));
}

#[test]
fn masks_ranges_and_quoted_names() {
    let command = one("ADD \"a table\" f$0.x:0x1&&&0xff g:5->0x10 act()");
    let Command::Add { table, matches, .. } = command else {
        panic!("not an add");
    };
    assert_eq!(table, "a table");
    assert_eq!(matches[0].0, "f$0.x");
    assert_eq!(matches[0].1, Pattern::Masked(hex("0x1"), hex("0xff")));
    assert_eq!(matches[1].1, Pattern::Range(hex("5"), hex("0x10")));
}

#[test]
fn packets_and_expectations() {
    let packet = one("packet 3 0A 0b0C # with a comment");
    let data = vec![0x0a, 0x0b, 0x0c];
    assert_eq!(packet, Command::Packet { port: 3, data });
    let Command::Expect { port, pattern } = one("expect 510 0*1 2 $") else {
        panic!("not an expect");
    };
    assert_eq!(port, 510);
    assert!(pattern.matches(&[0x0f, 0x12]));
    assert!(!pattern.matches(&[0x1f, 0x12]));
    assert!(!pattern.matches(&[0x0f, 0x12, 0]));
    assert!(!pattern.matches(&[0x0f]));
    let Command::Expect { pattern, .. } = one("expect 1 01") else {
        panic!("not an expect");
    };
    assert!(pattern.matches(&[1, 2, 3]));
    let Command::Expect { pattern, .. } = one("expect 1") else {
        panic!("not an expect");
    };
    assert!(pattern.matches(&[]));
}

#[test]
fn objects() {
    assert_eq!(
        one("check_counter cnt($A) packets == 0x10"),
        Command::CheckCounter {
            counter: "cnt".into(),
            cell: Cell::Entry("A".into()),
            check: Some(CounterCheck {
                bytes: false,
                comparison: Comparison::Eq,
                value: 16
            }),
        }
    );
    assert_eq!(
        one("check_counter cnt(7)"),
        Command::CheckCounter {
            counter: "cnt".into(),
            cell: Cell::Index(7),
            check: None,
        }
    );
    assert_eq!(
        one("mc_node_create 400 6 7"),
        Command::NodeCreate {
            rid: 400,
            ports: vec![6, 7]
        }
    );
    assert_eq!(
        one("meter_set_rates c.m 2 0.000005:4 0.5:5"),
        Command::MeterSetRates {
            meter: "c.m".into(),
            index: 2,
            rates: [
                Rate {
                    per_second: 5,
                    burst: 4
                },
                Rate {
                    per_second: 500_000,
                    burst: 5
                }
            ],
        }
    );
    assert_eq!(one("remove all"), Command::RemoveAll);
    assert_eq!(one("WAIT"), Command::Wait);
    assert_eq!(one("wait 3"), Command::Wait);
}

#[test]
fn numbers_have_values_and_masks() {
    let stars = hex("0b1**0");
    assert_eq!(stars.to_bits(4), Some(Bits::from_u64(4, 0b1000)));
    assert_eq!(stars.mask(4), Bits::from_u64(4, 0b1001));
    assert_eq!(hex("0x1*").mask(5), Bits::from_u64(5, 0b10000));
    assert_eq!(hex("0x**12").mask(32), Bits::from_u64(32, 0xff));
    assert_eq!(hex("300").mask(9), Bits::ones(9));
    assert_eq!(hex("300").to_bits(8), None);
    assert_eq!(hex("0o17").to_u64(), Some(15));
    let wide = hex("340282366920938463463374607431768211455");
    assert_eq!(wide.to_bits(128), Some(Bits::ones(128)));
    assert_eq!(wide.to_bits(127), None);
}

/// A number in binary, written again in other radixes and with zeros before it, has one value, and that value fits into
/// exactly the widths that hold its highest bit, up to the widest field that a program can have.
#[test]
fn numbers_of_every_width_fit_into_fields_that_hold_them() {
    let widest = Bits::MAX_WIDTH;
    let lengths = [
        1, 3, 4, 63, 64, 65, 127, 128, 4095, 4096, 4097, 16_385, 65_471, 65_472, 65_473, 65_535,
    ];
    for length in lengths.into_iter().chain([widest]) {
        let mut bits = Bits::zero(length);
        for at in [0, length / 3, length - 1] {
            let one = Bits::from_u64(length, 1).shl(&Bits::from_u64(32, u64::from(at)));
            bits = Bits::binary(ir::BinaryOp::Or, &bits, &one);
        }
        let digits = |per_digit: u32| -> String {
            (0..length.div_ceil(per_digit))
                .rev()
                .map(|i| {
                    let each =
                        (0..per_digit).map(|bit| u32::from(bits.bit(i * per_digit + bit)) << bit);
                    char::from_digit(each.sum(), 16).expect("a digit")
                })
                .collect()
        };
        for (prefix, per_digit) in [("0b", 1), ("0o", 3), ("0x", 4)] {
            let written = hex(&format!("{prefix}{}", digits(per_digit)));
            for width in [length, length + 1, widest]
                .into_iter()
                .filter(|w| *w <= widest)
            {
                assert_eq!(
                    written.to_bits(width),
                    Some(bits.resize(width)),
                    "{prefix} {length} in {width}"
                );
                let given = Bits::ones(width.min(written.digits.len() as u32 * per_digit));
                assert_eq!(written.mask(width), given.resize(width));
            }
            if length > 1 {
                assert_eq!(written.to_bits(length - 1), None, "{prefix} {length}");
            }
        }
    }
    for width in [65_472, 65_473, 65_536] {
        assert_eq!(hex("5").to_bits(width), Some(Bits::from_u64(width, 5)));
    }
}

#[test]
fn a_port_is_written_in_digits_only() {
    for text in ["+1", "-1", "1_0", "\u{661}", "0x1"] {
        for command in ["packet", "expect"] {
            let wanted = format!("line 1: `{text}` is not a port");
            assert_eq!(problem(&format!("{command} {text} 12")), wanted);
        }
    }
}

#[test]
fn problems_name_the_line_and_what_was_expected() {
    let (script, problems) = parse("wait\n\n# nothing\nfrob 1\nwait");
    assert_eq!(script.lines.len(), 2);
    assert_eq!(problems[0].to_string(), "line 4: unknown command `frob`");
    assert_eq!(
        problem("packet 1 123"),
        "line 1: a packet has two digits for each byte"
    );
    assert_eq!(problem("packet x 12"), "line 1: `x` is not a port");
    assert_eq!(problem("expect 1 12$3"), "line 1: nothing may follow `$`");
    assert_eq!(
        problem("add t f:1 act(x:1"),
        "line 1: the line ends where `,` is expected"
    );
    assert_eq!(problem("add t f:1q act()"), "line 1: `1q` is not a number");
    assert_eq!(problem("wait; wait"), "line 1: unknown command `wait;`");
    assert_eq!(
        problem("mirroring_add 1 2 3"),
        "line 1: `3` where the line should end"
    );
    assert_eq!(
        problem("setdefault \"t"),
        "line 1: a quoted name does not end"
    );
}

#[test]
fn no_text_makes_it_panic() {
    let pieces = [
        "add",
        "packet",
        "expect",
        " ",
        "\n",
        "t",
        "f:",
        "0x",
        "0x1*",
        "9",
        "(",
        ")",
        "\"",
        "$",
        "=",
        "&&&",
        "->",
        "/",
        "*",
        "é",
        "\u{0}",
        "#",
        ",",
        "check_counter",
        "99999999999999999999",
        "meter_set_rates m 0 0.1:",
        "1.1",
        ".",
    ];
    let mut seed = 1u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
            text.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
        }
        let lines = text.lines().count();
        let (script, problems) = parse(&text);
        assert!(script.lines.len() + problems.len() <= lines);
    }
}
