//! The walk over a program in the order in which packets run it: computes the states after each statement
//! from those before it, and looks for faulty reads in each.

mod join;
mod parser;
mod pipeline;
mod reading;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use ir::{
    BinaryOp, Bits, CloneKind, Expr, Forwarding, HeaderId, LabelId, Loc, Pipeline, Program, SlotId,
    Stmt, StmtKind, TableId,
};

use super::state::{Path, PendingClone, State, Step};
use super::uses::Uses;
use crate::lower::build;

/// Rounds of a loop that are followed one by one.
const ROUNDS: usize = 12;

/// The error of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// The header is invalid on this path.
    Invalid(HeaderId),
    /// Nothing was assigned to the variable on this path.
    Unset(SlotId),
    /// A field of a header that was made valid and is sent was assigned nothing.
    Sent(SlotId),
}

/// A fault, the slot that is read, and the path of a packet that leads to the read.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub slot: SlotId,
    pub path: Option<Rc<Path>>,
    length: usize,
}

/// Faults, in the order of their places in the source.
pub(super) type Findings = BTreeMap<(Loc2, Fault), Finding>;

/// A place that can be compared: file and line.
pub(super) type Loc2 = (u32, u32);

pub(super) struct Walker<'p> {
    program: &'p Program,
    /// Slots that lowering assigns to variables to mark that they have no value.
    marks: &'p BTreeSet<SlotId>,
    /// Returns whether a comment in the source allows a fault at a place.
    explained: &'p dyn Fn(Loc, Fault) -> bool,
    uses: Uses,
    field_of: Vec<Option<HeaderId>>,
    /// The slots of the architecture's metadata.
    metadata: BTreeSet<SlotId>,
    /// The slot with the parser error of the parser that is followed, or was followed last.
    parser_error: SlotId,
    /// Says how packets are forwarded, if they keep their state between the pipelines.
    forwarding: Option<Forwarding>,
    clones_parsed: bool,
    /// The place of the statement that is followed, and its position. The position is `None` in actions,
    /// which run at several.
    loc: Loc,
    position: Option<u32>,
    breaks: BTreeMap<LabelId, Vec<State>>,
    exits: Vec<State>,
    /// The states of packets that the parser has rejected.
    rejected: Vec<State>,
    pub findings: Findings,
}

impl<'p> Walker<'p> {
    pub fn new(
        program: &'p Program,
        marks: &'p BTreeSet<SlotId>,
        explained: &'p dyn Fn(Loc, Fault) -> bool,
    ) -> Walker<'p> {
        let mut field_of = vec![None; program.slots.len()];
        for (i, header) in program.headers.iter().enumerate() {
            for slot in header.field_slots() {
                field_of[slot.index()] = Some(HeaderId(i as u32));
            }
        }
        let clones_parsed = program.bodies().flat_map(ir::statements).any(|stmt| {
            matches!(
                stmt.kind,
                StmtKind::Clone {
                    kind: CloneKind::IngressToEgress,
                    ..
                }
            )
        });
        Walker {
            program,
            marks,
            explained,
            uses: Uses::new(program),
            field_of,
            parser_error: program.architecture.parser_error(Pipeline::INGRESS),
            forwarding: super::state_forwarding(program),
            metadata: program
                .architecture
                .fields()
                .map(|(_, slot, _)| slot)
                .collect(),
            clones_parsed,
            loc: Loc::default(),
            position: None,
            breaks: BTreeMap::new(),
            exits: Vec::new(),
            rejected: Vec::new(),
            findings: Findings::new(),
        }
    }

    fn body(&mut self, body: &[Stmt], mut states: Vec<State>) -> Vec<State> {
        for stmt in body {
            if states.is_empty() {
                break;
            }
            self.loc = stmt.loc;
            // The bodies of actions have no position.
            let Some((begin, end)) = self.position.and_then(|_| self.uses.position(stmt)) else {
                states = self.statement(stmt, states);
                continue;
            };
            self.position = Some(begin);
            states = self.statement(stmt, states);
            self.position = Some(end);
            if !stmt.kind.inner().is_empty() || matches!(stmt.kind, StmtKind::Apply { .. }) {
                states = self.reduce(states);
            }
        }
        states
    }

    fn statement(&mut self, stmt: &Stmt, states: Vec<State>) -> Vec<State> {
        match &stmt.kind {
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => self.branch(stmt.loc, cond, then, otherwise, states),
            StmtKind::Switch {
                value,
                cases,
                default,
            } => self.switch(stmt.loc, value, cases, default, states),
            StmtKind::Block { label, body } => {
                let mut out = self.body(body, states);
                out.extend(self.breaks.remove(label).unwrap_or_default());
                self.reduce(out)
            }
            StmtKind::Loop { label, body } => self.repeat(*label, body, states),
            StmtKind::Break(label) => {
                self.breaks.entry(*label).or_default().extend(states);
                Vec::new()
            }
            StmtKind::Exit => {
                self.exits.extend(states);
                Vec::new()
            }
            StmtKind::Apply {
                table,
                keys,
                hit,
                action_run,
            } => self.apply(*table, keys, [*hit, *action_run], states),
            StmtKind::Assign { dst, value } => {
                let mut out = Vec::new();
                for state in states {
                    self.assign(*dst, value, state, &mut out);
                }
                self.reduce(out)
            }
            _ => {
                let mut out = Vec::with_capacity(states.len());
                for state in states {
                    out.extend(self.simple(&stmt.kind, state));
                }
                out
            }
        }
    }

    /// Follows a statement that has no branches, and reports the faulty reads in it. Returns the state after
    /// it; `None` if the packet goes no further.
    fn simple(&mut self, kind: &StmtKind, mut state: State) -> Option<State> {
        for expr in kind.exprs() {
            self.check(expr, &mut state, &|_| false);
        }
        if let Some(dst) = kind.destination() {
            state.forget(dst);
            state.unset.remove(&dst);
        }
        match kind {
            StmtKind::SetValid(id) if self.validity(&state, *id) != Some(true) => {
                let header = &self.program.headers[id.index()];
                for slot in header.field_slots() {
                    state.forget(slot);
                    state.unset.insert(slot);
                }
                state.blamed.remove(id);
                self.make_valid(&mut state, *id, true);
            }
            StmtKind::SetInvalid(id) => {
                self.without_fields(&mut state, *id);
                self.make_valid(&mut state, *id, false);
            }
            StmtKind::Extract { header, .. } => {
                self.reject_with(
                    &state,
                    ir::core_error::PACKET_TOO_SHORT,
                    Step::Short(*header),
                );
                self.without_fields(&mut state, *header);
                self.make_valid(&mut state, *header, true);
            }
            StmtKind::Lookahead { .. } | StmtKind::Advance { .. } => {
                let step = Step::Rejected(self.loc);
                self.reject_with(&state, ir::core_error::PACKET_TOO_SHORT, step);
            }
            StmtKind::Reject { error } => {
                let slot = self.parser_error;
                state.forget(slot);
                if let Expr::Const(value) = error {
                    state.values.insert(slot, value.clone());
                }
                state.push(Step::Rejected(self.loc));
                self.rejected.push(state);
                return None;
            }
            StmtKind::Clone { kind, preserve, .. } => {
                state.clone = Some(PendingClone {
                    of_ingress: *kind == CloneKind::IngressToEgress,
                    preserve: *preserve,
                });
            }
            StmtKind::Assert { cond } => {
                return self.one(state.assume(cond, true, &self.program.slots));
            }
            StmtKind::Emit(id) if self.validity(&state, *id) != Some(false) => {
                for slot in self.program.headers[id.index()].field_slots() {
                    if state.unset.contains(&slot) {
                        self.report(Fault::Sent(slot), slot, &state);
                    }
                }
            }
            _ => {}
        }
        Some(state)
    }

    fn one(&self, states: Vec<State>) -> Option<State> {
        states.into_iter().reduce(|mut a, b| {
            a.join(&b);
            a
        })
    }

    /// Records the state of a packet that the parser rejects at this point, with the parser error `error`,
    /// after the step `step`, which is the last of its path.
    fn reject_with(&mut self, state: &State, error: u64, step: Step) {
        let slot = self.parser_error;
        let mut state = state.clone();
        state.forget(slot);
        state
            .values
            .insert(slot, Bits::from_u64(ir::ERROR_WIDTH, error));
        state.push(step);
        self.rejected.push(state);
    }

    fn without_fields(&self, state: &mut State, id: HeaderId) {
        for slot in self.program.headers[id.index()].field_slots() {
            state.forget(slot);
            state.unset.remove(&slot);
        }
        state.blamed.remove(&id);
    }

    fn validity(&self, state: &State, id: HeaderId) -> Option<bool> {
        let slot = self.program.headers[id.index()].valid;
        state.values.get(&slot).map(|bits| !bits.is_zero())
    }

    fn make_valid(&self, state: &mut State, id: HeaderId, valid: bool) {
        let slot = self.program.headers[id.index()].valid;
        state.forget(slot);
        state.values.insert(slot, Bits::from_bool(valid));
    }

    fn branch(
        &mut self,
        loc: Loc,
        cond: &Expr,
        then: &[Stmt],
        otherwise: &[Stmt],
        states: Vec<State>,
    ) -> Vec<State> {
        let mut sides = [Vec::new(), Vec::new()];
        for mut state in states {
            self.check(cond, &mut state, &|_| false);
            let open = build::known(&state.simplify(cond, &self.program.slots)).is_none();
            for (side, value) in sides.iter_mut().zip([true, false]) {
                for mut state in state.clone().assume(cond, value, &self.program.slots) {
                    if open {
                        state.push(Step::Branch(loc, value));
                    }
                    side.push(state);
                }
            }
        }
        let [yes, no] = sides;
        let (yes, no) = (self.reduce(yes), self.reduce(no));
        let mut out = self.body(then, yes);
        out.extend(self.body(otherwise, no));
        self.reduce(out)
    }

    fn switch(
        &mut self,
        loc: Loc,
        value: &Expr,
        cases: &[(Vec<Bits>, Vec<Stmt>)],
        default: &[Stmt],
        states: Vec<State>,
    ) -> Vec<State> {
        let slots = &self.program.slots;
        // Later cases look at the value again.
        let position = self.position;
        let mut rest = states;
        for state in &mut rest {
            self.check(value, state, &|_| false);
        }
        let mut out = Vec::new();
        for (values, body) in cases {
            let mut any = build::boolean(false);
            for case in values {
                let one = build::binary(
                    BinaryOp::Eq,
                    value.clone(),
                    Expr::Const(case.clone()),
                    slots,
                );
                any = build::binary(BinaryOp::Or, any, one, slots);
            }
            let (mut taken, mut others) = (Vec::new(), Vec::new());
            for state in rest {
                let open = build::known(&state.simplify(&any, slots)).is_none();
                for mut state in state.clone().assume(&any, true, slots) {
                    if open {
                        state.push(Step::Branch(
                            body.first().map_or(loc, |stmt| stmt.loc),
                            true,
                        ));
                    }
                    taken.push(state);
                }
                others.extend(state.assume(&any, false, slots));
            }
            let taken = self.reduce(taken);
            out.extend(self.body(body, taken));
            self.position = position;
            rest = self.reduce(others);
        }
        out.extend(self.body(default, rest));
        self.reduce(out)
    }

    /// Follows the rounds of a loop one by one while they lead to new states. After `ROUNDS` rounds, forgets
    /// before each further round everything that a round may change; after as many again, joins all states.
    /// Returns the states in which packets leave the loop.
    fn repeat(&mut self, label: LabelId, body: &[Stmt], mut states: Vec<State>) -> Vec<State> {
        let changed = self.changed(body);
        let mut seen: Vec<State> = Vec::new();
        for round in 0.. {
            if round == ROUNDS {
                seen.clear();
            }
            if round >= ROUNDS {
                for state in &mut states {
                    changed.iter().for_each(|slot| state.forget(*slot));
                }
            }
            if round >= 2 * ROUNDS {
                // What is known can only become less, so that there is an end.
                seen = self.one(seen).into_iter().collect();
                states = self
                    .one(seen.iter().cloned().chain(states).collect())
                    .into_iter()
                    .collect();
            }
            states.retain(|state| !seen.iter().any(|other| other.agrees(state)));
            if states.is_empty() {
                break;
            }
            seen.extend(states.iter().cloned());
            states = self.body(body, states);
            states = self.reduce(states);
        }
        let out = self.breaks.remove(&label).unwrap_or_default();
        self.reduce(out)
    }

    /// Returns the slots that the statements, including the actions of tables that they apply, may change.
    fn changed(&self, body: &[Stmt]) -> BTreeSet<SlotId> {
        let mut out = BTreeSet::new();
        for stmt in ir::statements(body) {
            out.extend(stmt.kind.written(self.program));
            if let StmtKind::Apply { table, .. } = &stmt.kind {
                for action in &self.program.tables[table.index()].actions {
                    out.extend(self.changed(&self.program.actions[action.action.index()].body));
                }
            }
        }
        out
    }

    /// Follows each action that a table may run, after a hit and after a miss, and returns the states after
    /// them. Sets the slots `hit` and `action_run`, where given, in each. Checks the reads of the keys first.
    fn apply(
        &mut self,
        id: TableId,
        keys: &[Expr],
        [hit, action_run]: [Option<SlotId>; 2],
        mut states: Vec<State>,
    ) -> Vec<State> {
        let program = self.program;
        let table = &program.tables[id.index()];
        // Entries say by one key whether others count.
        let asked = |header: HeaderId| {
            let valid = program.headers[header.index()].valid;
            keys.iter().any(|key| key.reads(&|slot| slot == valid))
        };
        for state in &mut states {
            for key in keys {
                self.check(key, state, &asked);
            }
        }
        let outer = self.position.take();
        let loc = self.loc;
        let mut out = Vec::new();
        for (index, entry) in table.actions.iter().enumerate() {
            let named = |call: &ir::ActionCall| call.action == entry.action;
            let on_hit = !table.keys.is_empty()
                && match table.const_entries {
                    true => table.entries.iter().any(|e| named(&e.action)),
                    false => entry.scope != ir::ActionScope::DefaultOnly,
                };
            let on_miss = match table.const_default_action {
                true => named(&table.default_action),
                false => entry.scope != ir::ActionScope::TableOnly || named(&table.default_action),
            };
            for (outcome, possible) in [(true, on_hit), (false, on_miss)] {
                if !possible {
                    continue;
                }
                let action = &program.actions[entry.action.index()];
                let mut begin = states.clone();
                for state in &mut begin {
                    for (slot, value) in [
                        (hit, Bits::from_bool(outcome)),
                        (action_run, Bits::from_u64(32, index as u64)),
                    ] {
                        let Some(slot) = slot else { continue };
                        state.forget(slot);
                        state.values.insert(slot, value);
                    }
                    for param in &action.params {
                        state.forget(param.slot);
                        state.unset.remove(&param.slot);
                    }
                    state.push(Step::Ran(id, entry.action, outcome));
                }
                out.extend(self.body(&action.body, begin));
            }
        }
        self.position = outer;
        self.loc = loc;
        self.reduce(out)
    }

    fn assign(&mut self, dst: SlotId, value: &Expr, mut state: State, out: &mut Vec<State>) {
        let slots = &self.program.slots;
        let own = self.field_of[dst.index()];
        // No value is passed on as such, to be reported where it matters.
        if let Expr::Slot(source) = value
            && (self.marks.contains(source) || state.unset.contains(source))
            && !self.metadata.contains(&dst)
            && self.field_of[source.index()]
                .is_none_or(|id| self.validity(&state, id) == Some(true))
        {
            state.forget(dst);
            state.unset.insert(dst);
            return out.push(state);
        }
        // A write to an invalid header has no effect, so neither has what it reads there.
        let lost = own.filter(|id| self.validity(&state, *id) == Some(false));
        self.check(value, &mut state, &|id| Some(id) == lost);
        if lost.is_some() {
            return out.push(state);
        }
        let simpler = state.simplify(value, slots);
        state.unset.remove(&dst);
        if !self.uses.is_relevant(dst) {
            state.forget(dst);
            return out.push(state);
        }
        match simpler {
            Expr::Const(bits) => {
                state.forget(dst);
                state.values.insert(dst, bits);
                out.push(state);
            }
            // The new value depends on the old one: nothing is known of it.
            simpler if simpler.reads(&|slot| slot == dst) => {
                state.forget(dst);
                out.push(state);
            }
            simpler if simpler.width(slots) == 1 => {
                for value in [true, false] {
                    for mut state in state.clone().assume(&simpler, value, slots) {
                        state.forget(dst);
                        state.values.insert(dst, Bits::from_bool(value));
                        out.push(state);
                    }
                }
            }
            Expr::Mux {
                cond,
                then,
                otherwise,
            } => {
                for (value, arm) in [(true, then), (false, otherwise)] {
                    for mut state in state.clone().assume(&cond, value, slots) {
                        let arm = state.simplify(&arm, slots);
                        state.forget(dst);
                        if let Expr::Const(bits) = arm {
                            state.values.insert(dst, bits);
                        }
                        out.push(state);
                    }
                }
            }
            _ => {
                state.forget(dst);
                out.push(state);
            }
        }
    }
}
