//! Which headers are valid when the parser accepts, as far as the accepting state determines it.
//!
//! The code after the parser is worth generating once for each of a few such outcomes: with the validity of
//! headers known, most of its conditions are constants. This module looks at the parser only, and treats a
//! state as uncertain wherever it does not understand it. A state that packets reach with different valid
//! headers (that of the transport protocol after one of two versions of IP, perhaps in a tunnel) is first
//! duplicated ([`split`]).

use super::count_statements;
use ir::{
    Bits, Effect, Expr, Forwarding, Input, KeySet, Program, SelectCase, SlotId, State, StateId,
    Stmt, StmtKind, Target, Transition,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A parser is not split into more states than this.
const MOST_STATES: usize = 192;

/// The code is specialised for all outcomes of the parser that ordinary packets have, and for others if those are fewer than this.
const MIN_SPECIALISATIONS: usize = 3;

/// A program of more statements than this, those of actions counted wherever they may run, is not specialised at all.
const MAX_SPECIALISED_STATEMENTS: usize = 2000;

/// For each header, true if it is valid.
pub(crate) type Validity = Vec<bool>;

/// The validity of headers at the beginning of a state.
#[derive(Clone, PartialEq, Eq)]
enum Known {
    /// Nothing goes there, as far as seen.
    Unreached,
    /// The same on every path.
    Same(Validity),
    /// Not the same on every path, or not understood.
    Unsure,
}

/// Returns, for each state of a parser that begins at `start` with no valid header, which headers are valid
/// whenever the state accepts; `None` for a state of which this is uncertain, or that is not reached. Where
/// it is certain, the parser has set no error.
pub(super) fn accepted(
    program: &Program,
    states: &[State],
    start: StateId,
) -> Vec<Option<Validity>> {
    let mut known = vec![Known::Unreached; states.len()];
    let mut result = vec![None; states.len()];
    known[start.index()] = Known::Same(vec![false; program.headers.len()]);
    let mut open = vec![start.index()];
    while let Some(at) = open.pop() {
        let behind = match &known[at] {
            Known::Same(validity) => after(program, &states[at].body, validity.clone()),
            Known::Unsure | Known::Unreached => None,
        };
        for to in states[at].transition.states().map(StateId::index) {
            let joined = match (&known[to], &behind) {
                (Known::Unreached, Some(behind)) => Known::Same(behind.clone()),
                (Known::Same(validity), Some(behind)) if validity == behind => continue,
                (Known::Unsure, _) => continue,
                _ => Known::Unsure,
            };
            known[to] = joined;
            open.push(to);
        }
        // Seen again, with less known, if anything changes.
        let accepts = states[at].transition.targets().any(|t| t == Target::Accept);
        result[at] = behind.filter(|_| accepts);
    }
    result
}

/// Returns the parser's states, each duplicated once for each set of valid headers with which a packet can
/// reach it, where that set is certain and makes a difference, and the state that `start` has become. States
/// in loops, and states that accept only after a loop, are not duplicated; states that cannot be reached from
/// `start` are left out. Returns the original states if there would be more than `MOST_STATES`.
pub(super) fn split(program: &Program, start: StateId) -> (Vec<State>, StateId) {
    match variants(program, start) {
        Some((numbers, start)) => (split_states(program, &numbers), StateId(numbers[&start])),
        None => (program.states.clone(), start),
    }
}

/// The validity of headers at the beginning of a state; `None` if it is uncertain.
type Arrival = Option<Validity>;

/// The position of a state, and the validity of headers at its beginning.
type Variant = (usize, Arrival);

/// The states after duplication, by original state and validity, each with its number. Numbers follow this
/// order.
type Variants = BTreeMap<Variant, u32>;

/// Returns the states after duplication, and the one that `start` becomes; `None` if there are more than
/// `MOST_STATES`.
fn variants(program: &Program, start: StateId) -> Option<(Variants, Variant)> {
    let states = &program.states;
    let is_told_apart = accepted_before_loops(states);
    let arrival = |at: usize, arrival: Arrival| (at, arrival.filter(|_| is_told_apart[at]));
    let start = arrival(start.index(), Some(vec![false; program.headers.len()]));
    let mut open = vec![start.clone()];
    let mut variants = Variants::from([(start.clone(), 0)]);
    while let Some((at, known)) = open.pop() {
        let behind = behind(program, &states[at], &known);
        for to in states[at].transition.states() {
            let variant = arrival(to.index(), behind.clone());
            if variants.insert(variant.clone(), 0).is_none() {
                open.push(variant);
            }
        }
        if variants.len() > MOST_STATES {
            return None;
        }
    }
    for (number, (_, place)) in variants.iter_mut().enumerate() {
        *place = number as u32;
    }
    Some((variants, start))
}

/// Returns for each state whether a path from it reaches acceptance without touching a state that is in a
/// loop.
fn accepted_before_loops(states: &[State]) -> Vec<bool> {
    let in_loop = in_loops(states);
    let accepts = (states.iter().zip(&in_loop)).map(|(state, &in_loop)| {
        !in_loop && state.transition.targets().any(|t| t == Target::Accept)
    });
    let mut result: Vec<bool> = accepts.collect();
    loop {
        let mut more = false;
        for (at, state) in states.iter().enumerate().rev() {
            let on = state.transition.states().any(|to| result[to.index()]);
            if on && !in_loop[at] {
                more |= !std::mem::replace(&mut result[at], true);
            }
        }
        if !more {
            return result;
        }
    }
}

/// Returns for each state whether some path leads from it back to itself.
fn in_loops(states: &[State]) -> Vec<bool> {
    let leads_back = |at: usize| {
        let mut seen = vec![false; states.len()];
        let mut open = vec![at];
        while let Some(from) = open.pop() {
            for to in states[from].transition.states().map(StateId::index) {
                if !std::mem::replace(&mut seen[to], true) {
                    open.push(to);
                }
            }
        }
        seen[at]
    };
    // No path goes back unless some state goes to one that is not behind it.
    let mut froms = states.iter().enumerate();
    match froms.any(|(at, state)| state.transition.states().any(|to| to.index() <= at)) {
        true => (0..states.len()).map(leads_back).collect(),
        false => vec![false; states.len()],
    }
}

fn behind(program: &Program, state: &State, arrival: &Arrival) -> Arrival {
    after(program, &state.body, arrival.clone()?)
}

/// Returns the states after duplication, in the order of their numbers, with transitions to the duplicates.
fn split_states(program: &Program, numbers: &Variants) -> Vec<State> {
    let states = numbers.keys().map(|(at, arrival)| {
        let mut state = program.states[*at].clone();
        let behind = behind(program, &state, arrival);
        let to = |target: &mut Target| {
            if let Target::State(id) = target {
                // It is the one of the two that there is.
                let known = numbers.get(&(id.index(), behind.clone()));
                let number = known.or_else(|| numbers.get(&(id.index(), None)));
                id.0 = number.map_or(id.0, |&number| number);
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

/// The share that stands for all packets.
const WHOLE: u64 = 1 << 48;

/// Estimates for each state the share of ordinary packets that it accepts, of [`WHOLE`], if at each choice
/// all targets are equally likely. A packet from a port that the parser singles out, such as the
/// controller's, is not ordinary, nor is a packet with a header that has options (a varbit).
fn accepted_shares(forwarding: &Forwarding, states: &[State]) -> Vec<u64> {
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
        let targets = ordinary_targets(forwarding, &states[at].transition);
        let share = (arriving[at] / targets.len().max(1) as u64).max(1);
        for target in targets {
            match target {
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

/// The weights of a state that accepts packets with a value that the program names, and of one that accepts
/// all others by default.
const NAMED_END: u64 = 4;
const OTHER_END: u64 = 1;

/// Returns for each state its weight as a state that accepts ordinary packets; zero if it accepts none. A
/// packet from a port that the parser singles out, such as the controller's, is not ordinary, nor is a packet
/// with a header that has options (a varbit).
fn ordinary_ends(forwarding: &Forwarding, states: &[State]) -> Vec<u64> {
    let mut ends = vec![0; states.len()];
    let mut seen = vec![false; states.len()];
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        if std::mem::replace(&mut seen[at], true) || states[at].body.iter().any(has_options) {
            continue;
        }
        let transition = &states[at].transition;
        for target in ordinary_targets(forwarding, transition) {
            match target {
                Some(to) => open.push(to),
                None => {
                    ends[at] = if is_named(transition) {
                        NAMED_END
                    } else {
                        OTHER_END
                    }
                }
            }
        }
    }
    ends
}

/// Returns true if the transition accepts unconditionally, or by a case of a select that names a value,
/// rather than only by the default case.
fn is_named(transition: &Transition) -> bool {
    let Transition::Select { cases, .. } = transition else {
        return true;
    };
    let is_rest = |case: &SelectCase| case.matches.iter().all(|m| *m == KeySet::Any);
    let mut accepting = cases.iter().filter(|case| case.target == Target::Accept);
    accepting.any(|case| !is_rest(case))
}

fn has_options(stmt: &Stmt) -> bool {
    let length = match &stmt.kind {
        StmtKind::Extract { varbit_length, .. } => varbit_length.as_ref(),
        _ => None,
    };
    length.is_some()
}

/// Returns true if a set of keys contains exactly one value.
fn is_single(keys: &KeySet) -> bool {
    match keys {
        KeySet::Mask { mask, .. } => *mask == Bits::ones(mask.width()),
        KeySet::Range { low, high } => low == high,
        KeySet::Any | KeySet::ValueSet(_) => false,
    }
}

/// Returns the states to which a transition leads ordinary packets; `None` among them stands for acceptance.
/// Cases for a single arrival port, and rejection, are left out.
fn ordinary_targets(forwarding: &Forwarding, transition: &Transition) -> BTreeSet<Option<usize>> {
    let port = forwarding.arrival_slot(Input::ArrivalPort);
    let by_port = match transition {
        Transition::Select { keys, .. } => match keys[..] {
            [Expr::Slot(key)] => Some(key) == port,
            _ => false,
        },
        Transition::Goto(_) => false,
    };
    let targets: Vec<Target> = match transition {
        Transition::Select { cases, .. } if by_port => (cases.iter())
            .filter(|case| !matches!(&case.matches[..], [port] if is_single(port)))
            .map(|case| case.target)
            .collect(),
        _ => transition.targets().collect(),
    };
    let target = |target| match target {
        Target::State(to) => Some(Some(to.index())),
        Target::Accept => Some(None),
        Target::Reject => None,
    };
    targets.into_iter().filter_map(target).collect()
}

/// Returns for each state whether `wanted` marks it, or marks a state that some path from it reaches.
pub(crate) fn leads_to(states: &[State], wanted: Vec<bool>) -> Vec<bool> {
    let mut leads = wanted;
    loop {
        let mut more = false;
        for (at, state) in states.iter().enumerate().rev() {
            let on = leads[at] || state.transition.states().any(|to| leads[to.index()]);
            more |= on != std::mem::replace(&mut leads[at], on);
        }
        if !more {
            return leads;
        }
    }
}

/// Returns which headers are valid after the statements `body` of a parser state, if before them those in
/// `validity` are; `None` if this is uncertain.
fn after(program: &Program, body: &[Stmt], mut validity: Validity) -> Option<Validity> {
    let errors: Vec<SlotId> = program.architecture.parser_errors().collect();
    let is_kept =
        |slot: SlotId| errors.contains(&slot) || program.headers.iter().any(|h| h.valid == slot);
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

/// Returns true if a statement has certainly changed no slot for which `is_kept` returns true, provided that
/// the parser goes on after it. Returns false for statements that are not understood.
fn leaves_alone(stmt: &StmtKind, is_kept: &dyn Fn(SlotId) -> bool) -> bool {
    let all = |body: &[Stmt]| body.iter().all(|s| leaves_alone(&s.kind, is_kept));
    match stmt.effect() {
        Effect::None | Effect::Slow | Effect::Packet | Effect::End => {
            stmt.header().is_none()
                && stmt.destination().is_none_or(|dst| !is_kept(dst))
                && stmt.inner().into_iter().all(all)
        }
        _ => false,
    }
}

/// Returns true if the parser may run twice on a packet: none of its statements has an effect that a second
/// run would repeat, such as counting.
fn is_repeatable(states: &[State]) -> bool {
    (states.iter())
        .flat_map(|state| ir::statements(&state.body))
        .all(|stmt| match stmt.kind.effect() {
            Effect::None | Effect::Slow | Effect::Packet | Effect::Steps | Effect::End => true,
            Effect::State | Effect::Request | Effect::Cut => false,
            Effect::Message | Effect::Check | Effect::Table => false,
        })
}

/// Returns the outcomes of the parser (the sets of valid headers with which it accepts), each with the sum of
/// `of_state` over the states that accept with it, the largest sum first. With equal sums, an outcome with
/// more headers comes first.
fn ranked(program: &Program, states: &[State], of_state: &[u64]) -> Vec<(Validity, u64)> {
    let mut sums: BTreeMap<Validity, u64> = BTreeMap::new();
    for (validity, &value) in accepted(program, states, StateId(0))
        .into_iter()
        .zip(of_state)
    {
        if let Some(validity) = validity {
            *sums.entry(validity).or_insert(0) += value;
        }
    }
    let mut outcomes: Vec<_> = sums.into_iter().collect();
    outcomes.sort_by_cached_key(|(validity, sum)| {
        let headers = validity.iter().filter(|&&valid| valid).count();
        Reverse((*sum, headers, validity.clone()))
    });
    outcomes
}

/// Returns the outcomes of the parser (sets of valid headers) for which the code after the parser is worth
/// generating in a version of its own, the most likely first. Returns an empty list if the program is too
/// large or its parser cannot run twice on a packet.
pub(super) fn outcomes(
    program: &Program,
    forwarding: &Forwarding,
    states: &[State],
) -> Vec<Validity> {
    let controls = program.controls();
    let statements: usize = controls.map(|c| count_statements(program, c)).sum();
    if statements > MAX_SPECIALISED_STATEMENTS || !is_repeatable(states) {
        return Vec::new();
    }
    let by_share = ranked(program, states, &accepted_shares(forwarding, states));
    let by_end = ranked(program, states, &ordinary_ends(forwarding, states));
    let ordinary = by_end.iter().filter(|(_, ends)| *ends > 0).count();
    // Both are guesses: each has its turn, so that what either takes for likely is early.
    let mut outcomes = Vec::new();
    for (one, other) in by_share.into_iter().zip(by_end) {
        for (validity, _) in [one, other] {
            if !outcomes.contains(&validity) {
                outcomes.push(validity);
            }
        }
    }
    outcomes.truncate(ordinary.max(MIN_SPECIALISATIONS));
    outcomes
}

#[cfg(test)]
mod tests;
