//! The outcomes of parsers, and parsers with a state for each of them.

use super::*;

/// Returns the states of the parser of what arrives, as [`super::split`] makes them.
fn split(program: &Program) -> Vec<State> {
    super::split(program, StateId(0)).0
}

/// Returns the outcome of each of `states`, of which the first begins.
fn accepted(program: &Program, states: &[State]) -> Vec<Option<Validity>> {
    super::accepted(program, states, StateId(0))
}

/// Makes a program with the given parser states and four headers: one that may come first, from a controller's port,
/// two alternatives, and a transport header behind them.
fn program(states: &str) -> Program {
    let slots = (0..4).flat_map(|i| [(format!("h{i}.v"), 1), (format!("h{i}.f"), 16)]);
    let headers: String = (0..4)
        .map(|i| {
            format!(
                "header h{i} \"h{i}\" valid %{} {{ %{} }} ",
                16 + 2 * i,
                17 + 2 * i
            )
        })
        .collect();
    let text = format!(
        r#"{} {headers} {states}
        control verify_checksum {{ }} control ingress {{ }} control egress {{ }} control compute_checksum {{ }}
        control deparser {{ emit h0 }}"#,
        ir::text::preamble("paths", slots)
    );
    ir::text::parse(&text).unwrap_or_else(|e| panic!("{e}"))
}

fn forwarding(program: &Program) -> Forwarding {
    program.architecture.forwarding().expect("is declared")
}

fn outcomes_of(program: &Program) -> Vec<Validity> {
    outcomes(program, &forwarding(program), &split(program))
}

/// Returns a copy of `program` whose parser has the given `states` instead.
fn with_states(program: &Program, states: Vec<State>) -> Program {
    let mut other = program.clone();
    other.states = states;
    other
}

const TWO_WAYS: &str = r#"
    state s0 "start" { select (%0) { case (9w510 & 9w0x1ff) s1 case (_) s2 } }
    state s1 "controller" { extract h0 goto s2 }
    state s2 "link" { extract h1 select (%19) { case (16w1 & 16w0xffff) s3 case (_) s4 } }
    state s3 "more" { extract h2 goto s4 }
    state s4 "last" { extract h3 goto accept }"#;

#[test]
fn a_state_is_there_once_for_each_combination_of_headers() {
    let program = program(TWO_WAYS);
    // The last state is reached with different headers.
    assert!(
        accepted(&program, &program.states)
            .iter()
            .all(Option::is_none)
    );
    let split = split(&program);
    let names: Vec<&str> = (split.iter()).map(|s| s.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "start",
            "controller",
            "link",
            "link",
            "more",
            "more",
            "last",
            "last",
            "last",
            "last"
        ]
    );
    let mut outcomes: Vec<Validity> = accepted(&program, &split).into_iter().flatten().collect();
    outcomes.sort();
    let expected = [[false, false], [false, true], [true, false], [true, true]];
    assert_eq!(outcomes, expected.map(|[c, m]| vec![c, true, m, true]));
    // Those of the controller are not counted.
    let shares = accepted_shares(&forwarding(&program), &split);
    assert_eq!(shares[6..], [WHOLE / 2, WHOLE / 2, 0, 0]);
    let ends = ordinary_ends(&forwarding(&program), &split);
    assert_eq!(ends[6..], [NAMED_END, NAMED_END, 0, 0]);
    let again = super::tests::split(&with_states(&program, split.clone()));
    assert_eq!(again, split);
}

#[test]
fn packets_from_several_ports_are_ordinary() {
    let several = TWO_WAYS.replace("9w510 & 9w0x1ff", "9w256 & 9w0x100");
    let program = program(&several);
    let ends = ordinary_ends(&forwarding(&program), &split(&program));
    assert_eq!(ends[6..], [NAMED_END; 4]);
}

#[test]
fn the_likely_outcomes_are_specialised_first() {
    // By shares: a quarter of the packets has one more header than the half that is accepted at once, and a quarter two. By ends: a known
    // one counts more than the rest, and then more headers. Each has its turn.
    let states = r#"
        state s0 "start" { select (%0) { case (9w510 & 9w0x1ff) s1 case (_) s2 } }
        state s1 "controller" { extract h0 goto s2 }
        state s2 "link" { extract h1 select (%19) { case (16w1 & 16w0xffff) s3 case (16w2 & 16w0xffff) s3 case (_) accept } }
        state s3 "more" { extract h2 select (%21) { case (16w1 & 16w0xffff) s4 case (_) accept } }
        state s4 "last" { extract h3 goto accept }"#;
    let program = program(states);
    let outcome = |headers: [u32; 4]| headers.map(|h| h == 1).to_vec();
    let expected = [[0, 1, 0, 0], [0, 1, 1, 1], [0, 1, 1, 0]];
    assert_eq!(outcomes_of(&program), expected.map(outcome));
    // None of the states of the controller's packets is generated then.
    let split = split(&program);
    let wanted = accepted(&program, &split).into_iter().map(|validity| {
        let validity = validity.unwrap_or_default();
        expected.iter().any(|e| outcome(*e) == validity)
    });
    let leads = leads_to(&split, wanted.collect());
    let left_out: Vec<bool> = leads.iter().map(|leads| !leads).collect();
    let with_h0 = [false, true, false, true, false, true, false, true];
    assert_eq!(left_out, with_h0);
}

#[test]
fn what_goes_back_is_not_told_apart_and_the_rest_is() {
    let back = TWO_WAYS.replace(
        "extract h3 goto accept",
        "extract h3 select (%23) { case (16w1 & 16w0xffff) s3 case (_) accept }",
    );
    let program = program(&back);
    let split = split(&program);
    let names: Vec<&str> = (split.iter()).map(|s| s.name.as_str()).collect();
    // From "more" on, every path goes through the loop.
    assert_eq!(
        names,
        ["start", "controller", "link", "more", "last"],
        "nothing is accepted but behind the loop"
    );
    let aside = r#"
        state s0 "start" { extract h0 select (%17) { case (16w1 & 16w0xffff) s1 case (_) s2 } }
        state s1 "more" { extract h1 goto s2 }
        state s2 "last" { extract h2 select (%21) { case (16w1 & 16w0xffff) s3 case (_) accept } }
        state s3 "into" { extract h3 goto s4 }
        state s4 "loop" { select (%23) { case (16w1 & 16w0xffff) s4 case (16w2 & 16w0xffff) s5 case (_) accept } }
        state s5 "behind" { extract h3 goto accept }"#;
    let program = self::program(aside);
    let split = super::tests::split(&program);
    let names: Vec<&str> = (split.iter()).map(|s| s.name.as_str()).collect();
    assert_eq!(
        names,
        ["start", "more", "last", "last", "into", "loop", "behind"]
    );
    let mut outcomes = outcomes_of(&program);
    outcomes.sort();
    let expected = [[true, false, true, false], [true, true, true, false]];
    assert_eq!(outcomes, expected.map(Vec::from));
    // It goes to the same states: the loop to itself, and to what is behind it.
    let targets = |at: usize| split[at].transition.states().map(StateId::index);
    assert_eq!(targets(5).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(targets(2).chain(targets(3)).collect::<Vec<_>>(), [4, 4]);
}

#[test]
fn what_is_split_is_specialised_like_the_program() {
    let mut specialised = 0;
    for seed in 0..300 {
        let program = ir::arbitrary::program(seed);
        let outcomes = outcomes_of(&program);
        let again = with_states(&program, split(&program));
        assert_eq!(outcomes, outcomes_of(&again), "seed {seed}");
        specialised += u32::from(!outcomes.is_empty());
    }
    assert!(specialised > 15, "{specialised}");
}
