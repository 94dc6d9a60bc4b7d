//! Which headers are valid when the parser accepts, as far as the state that accepts tells.
//!
//! What follows the parser is worth generating once for each of a few such outcomes: with the validity of headers known, most of
//! its conditions are constants. This module looks at the parser only, and gives up on a state wherever it is not sure. A state that is
//! reached with different headers (the transport's behind one of two versions of IP, perhaps in a tunnel) is first made several
//! ([`split`]).

use ir::{Expr, Half, KeySet, Program, SlotId, State, StateId, Stmt, StmtKind, Target, Transition};
use std::collections::{BTreeMap, BTreeSet};

/// A parser is not split into more states than this.
const MOST_STATES: usize = 96;

/// By header: whether it is valid.
pub(crate) type Validity = Vec<bool>;

/// What is known at the beginning of a state.
#[derive(Clone, PartialEq, Eq)]
enum Known {
    /// Nothing goes there, as far as seen.
    Unreached,
    /// The same on every way.
    Same(Validity),
    /// Not the same on every way, or not understood.
    Unsure,
}

/// By state: the validity of headers whenever it accepts, if that is certain. No error has been set then.
pub(crate) fn accepted(program: &Program) -> Vec<Option<Validity>> {
    let states = &program.parser.states;
    let mut known = vec![Known::Unreached; states.len()];
    let mut result = vec![None; states.len()];
    known[0] = Known::Same(vec![false; program.headers.len()]);
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        let behind = match &known[at] {
            Known::Same(validity) => after(program, &states[at].body, validity.clone()),
            Known::Unsure | Known::Unreached => None,
        };
        each_target(&states[at].transition, |target| {
            let Target::State(to) = target else {
                return;
            };
            let to = to.index();
            let joined = match (&known[to], &behind) {
                (Known::Unreached, Some(behind)) => Known::Same(behind.clone()),
                (Known::Same(validity), Some(behind)) if validity == behind => return,
                (Known::Unsure, _) => return,
                _ => Known::Unsure,
            };
            known[to] = joined;
            open.push(to);
        });
        // Seen again, with less known, if anything changes.
        let mut accepts = false;
        each_target(&states[at].transition, |t| accepts |= t == Target::Accept);
        result[at] = behind.filter(|_| accepts);
    }
    result
}

/// The program with the states of its parser once for each combination of headers that they are reached with, as far as that is certain.
/// The same program if there would be too many of them, or if some state goes back.
pub(crate) fn split(program: &Program) -> Program {
    let mut split = program.clone();
    if let Some(numbers) = variants(program) {
        split.parser.states = split_states(program, &numbers);
    }
    split
}

/// What is known where a state begins; `None` if not certain.
type Arrival = Option<Validity>;

/// By state and what is known where it begins: the numbers of the states to be.
type Variants = BTreeMap<(usize, Arrival), u32>;

fn variants(program: &Program) -> Option<Variants> {
    let states = &program.parser.states;
    let mut arrivals = vec![BTreeSet::new(); states.len()];
    arrivals[0].insert(Some(vec![false; program.headers.len()]));
    let mut variants = Variants::new();
    for (at, state) in states.iter().enumerate() {
        for arrival in std::mem::take(&mut arrivals[at]) {
            let behind = behind(program, state, &arrival);
            let mut forward = true;
            each_target(&state.transition, |target| match target {
                Target::State(to) if to.index() <= at => forward = false,
                Target::State(to) => {
                    arrivals[to.index()].insert(behind.clone());
                }
                Target::Accept | Target::Reject => {}
            });
            let number = variants.len();
            if !forward || number == MOST_STATES {
                return None;
            }
            variants.insert((at, arrival), number as u32);
        }
    }
    Some(variants)
}

fn behind(program: &Program, state: &State, arrival: &Arrival) -> Arrival {
    after(program, &state.body, arrival.clone()?)
}

/// States in the order of their numbers, which is that of the states that they are made of.
fn split_states(program: &Program, numbers: &Variants) -> Vec<State> {
    let states = numbers.keys().map(|(at, arrival)| {
        let mut state = program.parser.states[*at].clone();
        let behind = behind(program, &state, arrival);
        let to = |target: &mut Target| {
            if let Target::State(id) = target
                && let Some(&number) = numbers.get(&(id.index(), behind.clone()))
            {
                *id = StateId(number);
            }
        };
        match &mut state.transition {
            Transition::Goto(target) => to(target),
            Transition::Select { cases, .. } => {
                cases.iter_mut().map(|c| &mut c.target).for_each(to)
            }
        }
        state
    });
    states.collect()
}

/// All packets, as a share.
const WHOLE: u64 = 1 << 48;

/// By state: which share of the packets it accepts, if at each choice all ways are as likely, those of packets that are not ordinary left
/// aside: a packet from a single port is not, as those from the controller, nor one with a header that has options.
pub(crate) fn accepted_shares(program: &Program) -> Vec<u64> {
    let states = &program.parser.states;
    let mut arriving = vec![0; states.len()];
    let mut accepted = vec![0; states.len()];
    let mut done = vec![false; states.len()];
    arriving[0] = WHOLE;
    let mut open = BTreeSet::from([0]);
    // In the order of states, in which they come one behind the other if none goes back.
    while let Some(at) = open.pop_first() {
        done[at] = true;
        if states[at].body.iter().any(has_options) {
            continue;
        }
        let ways = ordinary_ways(program, &states[at].transition);
        let share = (arriving[at] / ways.len().max(1) as u64).max(1);
        for way in ways {
            match way {
                Some(to) if done[to] => {}
                Some(to) => {
                    arriving[to] += share;
                    open.insert(to);
                }
                None => accepted[at] = share,
            }
        }
    }
    accepted
}

fn has_options(stmt: &Stmt) -> bool {
    let length = match &stmt.kind {
        StmtKind::Extract { varbit_length, .. } => varbit_length.as_ref(),
        _ => None,
    };
    length.is_some()
}

/// The states that ordinary packets go to, and `None` if some are accepted.
fn ordinary_ways(program: &Program, transition: &Transition) -> BTreeSet<Option<usize>> {
    let mut ways = BTreeSet::new();
    let mut go = |target: Target| match target {
        Target::State(to) => drop(ways.insert(Some(to.index()))),
        Target::Accept => drop(ways.insert(None)),
        Target::Reject => {}
    };
    let port = program.v1model().map(|m| Expr::Slot(m.ingress_port));
    match transition {
        Transition::Select { keys, cases } if keys.len() == 1 && keys.first() == port.as_ref() => {
            (cases.iter())
                .filter(|case| matches!(case.matches[..], [KeySet::Any]))
                .for_each(|case| go(case.target))
        }
        transition => each_target(transition, go),
    }
    ways
}

/// By state: whether some way leads on to a state that is `wanted`, or it is itself.
pub(crate) fn leads_to(program: &Program, wanted: Vec<bool>) -> Vec<bool> {
    let mut leads = wanted;
    loop {
        let mut more = false;
        for (at, state) in program.parser.states.iter().enumerate().rev() {
            let mut on = leads[at];
            each_target(&state.transition, |target| {
                on |= matches!(target, Target::State(to) if leads[to.index()]);
            });
            more |= on != std::mem::replace(&mut leads[at], on);
        }
        if !more {
            return leads;
        }
    }
}

/// Validity behind the statements of a state.
fn after(program: &Program, body: &[Stmt], mut validity: Validity) -> Option<Validity> {
    let error = program.architecture.parser_error(Half::Ingress);
    let is_kept = |slot: SlotId| slot == error || program.headers.iter().any(|h| h.valid == slot);
    let header_of = |slot: SlotId| program.headers.iter().position(|h| h.valid == slot);
    for stmt in body {
        match &stmt.kind {
            StmtKind::Extract { header, .. } | StmtKind::SetValid(header) => {
                validity[header.index()] = true;
            }
            StmtKind::SetInvalid(header) => validity[header.index()] = false,
            StmtKind::Assign {
                dst,
                value: Expr::Const(value),
            } if let Some(header) = header_of(*dst) => validity[header] = !value.is_zero(),
            kind if leaves_alone(kind, &is_kept) => {}
            _ => return None,
        }
    }
    Some(validity)
}

/// Whether a statement, when what is behind it is reached, has not changed the slots that are kept.
fn leaves_alone(stmt: &StmtKind, is_kept: &dyn Fn(SlotId) -> bool) -> bool {
    let all = |body: &[Stmt]| body.iter().all(|s| leaves_alone(&s.kind, is_kept));
    match stmt {
        StmtKind::Assign { dst, .. } | StmtKind::Lookahead { dst, .. } => !is_kept(*dst),
        StmtKind::Advance { .. } | StmtKind::Reject { .. } => true,
        StmtKind::If {
            then, otherwise, ..
        } => all(then) && all(otherwise),
        _ => false,
    }
}

fn each_target(transition: &Transition, mut each: impl FnMut(Target)) {
    match transition {
        Transition::Goto(target) => each(*target),
        Transition::Select { cases, .. } => cases.iter().for_each(|case| each(case.target)),
    }
}

/// Whether running the parser twice for a packet is the same as running it once.
pub(crate) fn is_repeatable(program: &Program) -> bool {
    let states = program.parser.states.iter();
    states
        .flat_map(|state| ir::statements(&state.body))
        .all(|stmt| {
            matches!(
                stmt.kind,
                StmtKind::Extract { .. }
                    | StmtKind::Lookahead { .. }
                    | StmtKind::Advance { .. }
                    | StmtKind::Reject { .. }
                    | StmtKind::Assign { .. }
                    | StmtKind::SetValid(_)
                    | StmtKind::SetInvalid(_)
                    | StmtKind::If { .. }
                    | StmtKind::Switch { .. }
                    | StmtKind::Block { .. }
                    | StmtKind::Loop { .. }
                    | StmtKind::Break(_)
            )
        })
}

/// How many statements follow the parser, those of actions counted for each table that has them.
pub(crate) fn statements_behind_parser(program: &Program) -> usize {
    let controls = program.controls();
    controls.iter().map(|c| statements(program, c)).sum()
}

/// The same of what follows ingress.
pub(crate) fn statements_in_egress(program: &Program) -> usize {
    let controls = [
        &program.egress,
        &program.compute_checksum,
        &program.deparser,
    ];
    controls.iter().map(|c| statements(program, c)).sum()
}

fn statements(program: &Program, stmts: &[Stmt]) -> usize {
    let applied = |stmt: &Stmt| match stmt.kind {
        StmtKind::Apply { table, .. } => (program.tables[table.index()].actions.iter())
            .map(|a| statements(program, &program.actions[a.action.index()].body))
            .sum(),
        _ => 0,
    };
    ir::statements(stmts).map(|stmt| 1 + applied(stmt)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::specialisations;

    /// A transport header behind one of two others, perhaps with one from a controller's port before; states as given.
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
        assert!(accepted(&program).iter().all(Option::is_none));
        let split = split(&program);
        let names: Vec<&str> = (split.parser.states.iter())
            .map(|s| s.name.as_str())
            .collect();
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
        let mut outcomes: Vec<Validity> = accepted(&split).into_iter().flatten().collect();
        outcomes.sort();
        let expected = [[false, false], [false, true], [true, false], [true, true]];
        assert_eq!(outcomes, expected.map(|[c, m]| vec![c, true, m, true]));
        // EntryPoint of the packets have one more header; those of the controller are not counted.
        let shares = accepted_shares(&split);
        assert_eq!(shares[6..], [WHOLE / 2, WHOLE / 2, 0, 0]);
        assert_eq!(super::split(&split).parser, split.parser);
    }

    #[test]
    fn the_likely_outcomes_are_specialised_first() {
        // A quarter of the packets has one more header than the half that is accepted at once, and a quarter two.
        let states = r#"
            state s0 "start" { select (%0) { case (9w510 & 9w0x1ff) s1 case (_) s2 } }
            state s1 "controller" { extract h0 goto s2 }
            state s2 "link" { extract h1 select (%19) { case (16w1 & 16w0xffff) s3 case (16w2 & 16w0xffff) s3 case (_) accept } }
            state s3 "more" { extract h2 select (%21) { case (16w1 & 16w0xffff) s4 case (_) accept } }
            state s4 "last" { extract h3 goto accept }"#;
        let program = program(states);
        let outcome = |headers: [u32; 4]| headers.map(|h| h == 1).to_vec();
        let expected = [[0, 1, 0, 0], [0, 1, 1, 1], [0, 1, 1, 0]];
        assert_eq!(specialisations(&program), expected.map(outcome));
        // None of the states of the controller's packets is generated then.
        let split = split(&program);
        let wanted = accepted(&split).into_iter().map(|validity| {
            let validity = validity.unwrap_or_default();
            expected.iter().any(|e| outcome(*e) == validity)
        });
        let leads = leads_to(&split, wanted.collect());
        let left_out: Vec<bool> = leads.iter().map(|leads| !leads).collect();
        let with_h0 = [false, true, false, true, false, true, false, true];
        assert_eq!(left_out, with_h0);
    }

    #[test]
    fn a_parser_that_goes_back_stays_as_it_is() {
        let back = TWO_WAYS.replace(
            "extract h3 goto accept",
            "extract h3 select (%23) { case (16w1 & 16w0xffff) s2 case (_) accept }",
        );
        let program = program(&back);
        assert_eq!(split(&program).parser, program.parser);
    }

    #[test]
    fn what_is_split_is_specialised_like_the_program() {
        let mut specialised = 0;
        for seed in 0..300 {
            let program = ir::arbitrary::program(seed);
            let outcomes = specialisations(&program);
            assert_eq!(outcomes, specialisations(&split(&program)), "seed {seed}");
            specialised += u32::from(!outcomes.is_empty());
        }
        assert!(specialised > 15, "{specialised}");
    }
}
