//! Each case is statements of the ingress control before and after the pass. Header h0 is valid in %16 and has the field
//! %17, h1 is valid in %18 and has the field %19.

use ir::Program;

use super::guard;

/// Parses a program in the text form of the IR that has two headers, the statements `ingress` in its
/// ingress control, and the actions `actions`.
fn program(ingress: &str, actions: &str) -> Program {
    let mut text = ir::text::preamble("test", [1, 8, 1, 8, 8].map(|width| ("s", width)));
    text += "header h0 \"h0\" valid %16 {\n  %17\n}\nheader h1 \"h1\" valid %18 {\n  %19\n}\n";
    text += actions;
    text += "state s0 \"start\" {\n  goto accept\n}\ncontrol verify_checksum {\n}\n";
    text += &format!("control ingress {{\n{ingress}\n}}\n");
    text += "control egress {\n}\ncontrol compute_checksum {\n}\ncontrol deparser {\n}\n";
    ir::text::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn check(ingress: &str, expected: &str) {
    let mut before = program(ingress, "");
    guard(&mut before);
    let after = program(expected, "");
    let text = |p: &Program| ir::text::print(p);
    assert_eq!(text(&before), text(&after));
}

#[test]
fn writes_in_a_row_share_a_test() {
    check(
        "assign %17 = 8w0x1\nassign %17 = 8w0x2\nassign %20 = 8w0x3",
        "if %16 {\n assign %17 = 8w0x1\n assign %17 = 8w0x2\n}\nassign %20 = 8w0x3",
    );
}

#[test]
fn zero_may_always_be_written() {
    check("assign %17 = 8w0x0", "assign %17 = 8w0x0");
}

#[test]
fn set_valid_and_set_invalid_are_followed() {
    check(
        "set_valid h0\nassign %17 = 8w0x1\nset_invalid h0\nassign %17 = 8w0x1",
        "set_valid h0\nassign %17 = 8w0x1\nset_invalid h0\nif %16 {\n assign %17 = 8w0x1\n}",
    );
}

#[test]
fn conditions_tell_validity() {
    check(
        "if and(%16, eq(%20, 8w0x1)) {\n assign %17 = 8w0x1\n}\nelse {\n assign %17 = 8w0x2\n}",
        "if and(%16, eq(%20, 8w0x1)) {\n assign %17 = 8w0x1\n}\nelse {\n if %16 {\n  assign %17 = 8w0x2\n }\n}",
    );
    check(
        "if or(not(%16), not(%18)) {\n exit\n}\nassign %17 = 8w0x1\nassign %19 = 8w0x1",
        "if or(not(%16), not(%18)) {\n exit\n}\nassign %17 = 8w0x1\nassign %19 = 8w0x1",
    );
}

#[test]
fn branches_meet() {
    check(
        "if eq(%20, 8w0x1) {\n set_valid h0\n set_valid h1\n}\nelse {\n set_valid h0\n}\nassign %17 = 8w0x1\nassign %19 = 8w0x1",
        "if eq(%20, 8w0x1) {\n set_valid h0\n set_valid h1\n}\nelse {\n set_valid h0\n}\nassign %17 = 8w0x1\nif %18 {\n assign %19 = 8w0x1\n}",
    );
    check(
        "switch %20 {\n case 8w0x1 {\n  set_valid h0\n }\n default {\n  exit\n }\n}\nassign %17 = 8w0x1",
        "switch %20 {\n case 8w0x1 {\n  set_valid h0\n }\n default {\n  exit\n }\n}\nassign %17 = 8w0x1",
    );
}

#[test]
fn breaks_carry_what_is_known_there() {
    check(
        "set_valid h1\nblock b0 {\n if eq(%20, 8w0x1) {\n  set_invalid h1\n  break b0\n }\n set_valid h0\n}\nassign %17 = 8w0x1\nassign %19 = 8w0x1",
        "set_valid h1\nblock b0 {\n if eq(%20, 8w0x1) {\n  set_invalid h1\n  break b0\n }\n set_valid h0\n}\nif %16 {\n assign %17 = 8w0x1\n}\nif %18 {\n assign %19 = 8w0x1\n}",
    );
}

#[test]
fn a_loop_starts_with_what_no_round_takes_away() {
    check(
        "set_valid h0\nset_valid h1\nloop b0 {\n assign %17 = 8w0x1\n assign %19 = 8w0x1\n if eq(%20, 8w0x1) {\n  break b0\n }\n set_invalid h1\n}\nassign %17 = 8w0x2",
        "set_valid h0\nset_valid h1\nloop b0 {\n assign %17 = 8w0x1\n if %18 {\n  assign %19 = 8w0x1\n }\n if eq(%20, 8w0x1) {\n  break b0\n }\n set_invalid h1\n}\nassign %17 = 8w0x2",
    );
}

#[test]
fn tables_take_away_what_their_actions_do_and_give_what_is_known_where_they_are_applied() {
    let actions = |bodies: [&str; 2]| {
        format!(
            "action a0 \"write\" id 1 () {{\n{}\n}}\naction a1 \"clear\" id 2 () {{\n{}\n}}\ntable t0 \"t\" id 3 {{\n action a0\n action a1\n default a0()\n size 1\n}}\n",
            bodies[0], bodies[1]
        )
    };
    let mut before = program(
        "set_valid h0\nset_valid h1\napply t0()\nassign %17 = 8w0x1\nassign %19 = 8w0x1",
        &actions(["assign %17 = 8w0x1\nassign %19 = 8w0x2", "set_invalid h1"]),
    );
    guard(&mut before);
    let after = program(
        "set_valid h0\nset_valid h1\napply t0()\nassign %17 = 8w0x1\nif %18 {\n assign %19 = 8w0x1\n}",
        &actions(["assign %17 = 8w0x1\nassign %19 = 8w0x2", "set_invalid h1"]),
    );
    assert_eq!(ir::text::print(&before), ir::text::print(&after));
}
