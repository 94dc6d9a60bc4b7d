//! The walk over a program in execution order: what each statement makes of the states before it, and what it reads in them.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use ir::{
    BinaryOp, Bits, Block, CloneKind, Expr, HeaderId, KeySet, LabelId, Loc, Program, SlotId,
    StateId, Stmt, StmtKind, TableId, Target, Transition,
};

use super::state::{Path, PendingClone, Shape, State, Step};
use super::uses::Uses;
use crate::lower::build;

/// States that are kept apart at one place. Beyond it, those that agree in more join first.
const MOST_STATES: usize = 160;
/// Visits of one parser state with different states before what is known of values is given up, and before all else is.
const VISITS: usize = 64;
/// Rounds of a loop that are followed one by one.
const ROUNDS: usize = 12;
/// Generations of clones of clones.
const GENERATIONS: usize = 3;

/// What is wrong with a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// The header is invalid on this path.
    Invalid(HeaderId),
    /// Nothing was assigned to the variable on this path.
    Unset(SlotId),
    /// A field of a header that was made valid and is sent was assigned nothing.
    Sent(SlotId),
}

/// A fault, where it is, and a way there.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub slot: SlotId,
    pub path: Option<Rc<Path>>,
    length: usize,
}

/// Faults by place.
pub(super) type Findings = BTreeMap<(Loc2, Fault), Finding>;

/// A place in an order: file and line.
pub(super) type Loc2 = (u32, u32);

pub(super) struct Walker<'p> {
    program: &'p Program,
    /// Slots that stand for no value.
    marks: &'p BTreeSet<SlotId>,
    /// Places whose faults are explained there, and whether there were any.
    explained: &'p dyn Fn(Loc, Fault) -> bool,
    uses: Uses,
    field_of: Vec<Option<HeaderId>>,
    standard: BTreeSet<SlotId>,
    clones_parsed: bool,
    /// The place of the statement that is followed, and its position; none in actions, which run at several.
    loc: Loc,
    position: Option<u32>,
    breaks: BTreeMap<LabelId, Vec<State>>,
    exits: Vec<State>,
    /// Where the parser has given up.
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
            standard: program
                .architecture
                .fields()
                .into_iter()
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

    /// Follows packets from their arrival to their departure.
    pub fn pipeline(&mut self) {
        let starts = self.starts();
        let mut states = self.parser(Block::Parser, starts);
        if self.clones_parsed {
            for state in &mut states {
                state.parsed = Some(Rc::new(state.clone()));
            }
        }
        for block in [Block::VerifyChecksum, Block::Ingress] {
            states = self.block(block, states);
        }
        let mut waiting = match self.program.v1model() {
            Some(_) => self.between(states),
            None => {
                self.block(Block::IngressDeparser, states);
                let again = self.second_parser();
                self.parser(Block::EgressParser, vec![again])
            }
        };
        for _ in 0..GENERATIONS {
            let mut states = self.block(Block::Egress, std::mem::take(&mut waiting));
            waiting = self.copies(&states, false);
            if let Some(standard) = self.program.v1model() {
                states.retain(|state| !self.drops(state, standard.egress_spec));
            }
            let states = self.block(Block::ComputeChecksum, states);
            self.block(Block::Deparser, states);
            if waiting.is_empty() {
                break;
            }
        }
    }

    fn zero(&self, slot: SlotId) -> Bits {
        Bits::zero(self.program.slots[slot.index()].width)
    }

    /// Arriving packets, and those that come again.
    fn starts(&self) -> Vec<State> {
        let mut values: BTreeMap<SlotId, Bits> = (self.uses.relevant())
            .map(|slot| (slot, self.zero(slot)))
            .collect();
        match self.program.v1model() {
            Some(standard) => standard.forwarding().arrival.iter().for_each(|(slot, _)| {
                values.remove(slot);
            }),
            None => self.standard.iter().for_each(|slot| {
                values.remove(slot);
            }),
        }
        let mut preserved = BTreeSet::new();
        let mut again = false;
        for stmt in self.program.bodies().flat_map(ir::statements) {
            if let StmtKind::Resubmit { preserve } | StmtKind::Recirculate { preserve } = stmt.kind
            {
                again = true;
                let list = preserve.map(|list| &self.program.field_lists[list.index()].slots[..]);
                preserved.extend(list.unwrap_or_default());
            }
        }
        let mut states = vec![State::new(values.clone())];
        if again {
            if let Some(standard) = self.program.v1model() {
                values.remove(&standard.instance_type);
            }
            preserved.iter().for_each(|slot| {
                values.remove(slot);
            });
            let mut state = State::new(values);
            state.push(Step::Copied(
                "the packet comes again (resubmit or recirculate)",
            ));
            states.push(state);
        }
        states
    }

    /// Where the second parser of an architecture starts: nothing is parsed, and all else may be anything.
    fn second_parser(&self) -> State {
        let valid = self.program.headers.iter().map(|header| header.valid);
        State::new(valid.map(|slot| (slot, Bits::from_bool(false))).collect())
    }

    fn drops(&self, state: &State, egress_spec: SlotId) -> bool {
        let drop = u64::from(ir::architecture::v1model::DROP_PORT);
        state.values.get(&egress_spec).and_then(Bits::to_u64) == Some(drop)
    }

    /// Between ingress and egress of v1model: dropped packets end, copies begin.
    fn between(&mut self, states: Vec<State>) -> Vec<State> {
        let mut out = self.copies(&states, true);
        let Some(standard) = self.program.v1model().copied() else {
            return out;
        };
        for mut state in states {
            let group = state.values.get(&standard.mcast_grp);
            let alone = group.is_some_and(Bits::is_zero);
            if alone && self.drops(&state, standard.egress_spec) {
                continue;
            }
            let port = state
                .values
                .get(&standard.egress_spec)
                .filter(|_| alone)
                .cloned();
            let path = state
                .values
                .get(&standard.instance_type)
                .filter(|_| alone)
                .cloned();
            for (slot, _) in standard.forwarding().egress {
                state.forget(slot);
            }
            state
                .values
                .insert(standard.egress_spec, self.zero(standard.egress_spec));
            state
                .values
                .extend(port.map(|port| (standard.egress_port, port)));
            state.clone = None;
            state.parsed = None;
            match path {
                Some(path) => {
                    state.values.insert(standard.instance_type, path);
                    out.push(state);
                }
                None => {
                    // A copy of the group, and no clone.
                    let is = |kind| {
                        let slot = Expr::Slot(standard.instance_type);
                        build::binary(
                            BinaryOp::Eq,
                            slot,
                            build::constant(32, kind),
                            &self.program.slots,
                        )
                    };
                    let clone = build::binary(BinaryOp::Or, is(1), is(2), &self.program.slots);
                    out.extend(state.assume(&clone, false, &self.program.slots));
                }
            }
        }
        self.reduce(out)
    }

    /// The clones that have been asked for in these states, as they enter egress.
    fn copies(&mut self, states: &[State], of_ingress: bool) -> Vec<State> {
        let Some(standard) = self.program.v1model().copied() else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for state in states {
            let Some(clone) = state.clone.filter(|clone| clone.of_ingress == of_ingress) else {
                continue;
            };
            let mut copy = match (&state.parsed, of_ingress) {
                (Some(parsed), true) => (**parsed).clone(),
                _ => state.clone(),
            };
            copy.path.clone_from(&state.path);
            (copy.clone, copy.parsed) = (None, None);
            let list = clone
                .preserve
                .map(|list| &self.program.field_lists[list.index()].slots[..]);
            let list = list.unwrap_or_default();
            for i in 0..self.program.slots.len() {
                let slot = SlotId(i as u32);
                let of_header = self.field_of[i].is_some() || self.uses.is_validity(slot);
                let kept = list.contains(&slot);
                // An ingress clone has what its parser wrote.
                let parsed = of_ingress && !kept && !self.standard.contains(&slot);
                if of_header || parsed || !self.uses.is_relevant(slot) {
                    continue;
                }
                copy.forget(slot);
                let value = match kept {
                    true => state.values.get(&slot).cloned(),
                    false if self.standard.contains(&slot) => None,
                    false => Some(self.zero(slot)),
                };
                copy.values.extend(value.map(|value| (slot, value)));
                copy.unset.remove(&slot);
            }
            // What is known of what is preserved, beyond values.
            for (fact, holds) in &state.facts {
                if !fact.reads(&|slot| !list.contains(&slot)) {
                    copy.facts.push((fact.clone(), *holds));
                }
            }
            let kind = if of_ingress { 1 } else { 2 };
            copy.values
                .insert(standard.instance_type, Bits::from_u64(32, kind));
            copy.values
                .insert(standard.egress_spec, self.zero(standard.egress_spec));
            copy.push(Step::Copied(
                "the copy that `clone` asked for enters egress",
            ));
            out.push(copy);
        }
        self.reduce(out)
    }

    /// A control.
    fn block(&mut self, block: Block, states: Vec<State>) -> Vec<State> {
        let body = self.program.control(block);
        self.position = self.uses.start(block);
        let states = self.reduce(states);
        let mut out = self.body(body, states);
        out.append(&mut self.exits);
        self.reduce(out)
    }

    /// A parser: states wait until nothing new comes to any parser state.
    fn parser(&mut self, block: Block, starts: Vec<State>) -> Vec<State> {
        let Some(start) = self.program.parser_start(block) else {
            return starts;
        };
        self.position = None;
        let mut accepted = Vec::new();
        let mut visits: Vec<Vec<State>> = vec![Vec::new(); self.program.parser.states.len()];
        let mut waiting: Vec<(StateId, State)> =
            starts.into_iter().map(|state| (start, state)).collect();
        while let Some((at, mut state)) = waiting.pop() {
            let seen = &mut visits[at.index()];
            if seen.len() >= VISITS {
                let uses = &self.uses;
                state.keep(
                    &|slot| uses.is_validity(slot) || uses.is_next_index(slot),
                    &|_| true,
                );
            }
            if seen.len() >= 8 * VISITS
                && let Some(all) = seen.last()
            {
                state.join(all);
            }
            if seen.iter().any(|other| other.agrees(&state)) {
                continue;
            }
            seen.push(state.clone());
            state.push(Step::Entered(at));
            let here = &self.program.parser.states[at.index()];
            let states = self.body(&here.body, vec![state]);
            self.loc = here.loc;
            for state in states {
                self.transition(&here.transition, state, &mut waiting, &mut accepted);
            }
        }
        accepted.append(&mut self.rejected);
        self.position = self.uses.start(match block {
            Block::EgressParser => Block::Egress,
            _ => Block::VerifyChecksum,
        });
        self.reduce(accepted)
    }

    fn transition(
        &mut self,
        transition: &Transition,
        mut state: State,
        waiting: &mut Vec<(StateId, State)>,
        accepted: &mut Vec<State>,
    ) {
        let loc = self.loc;
        let error = self
            .program
            .architecture
            .parser_error(ir::Pipeline::Ingress);
        let mut go = |target: Target, mut state: State| match target {
            Target::State(id) => waiting.push((id, state)),
            Target::Accept => accepted.push(state),
            Target::Reject => {
                state.push(Step::Rejected(loc));
                accepted.push(state);
            }
        };
        match transition {
            Transition::Goto(target) => go(*target, state),
            Transition::Select { keys, cases } => {
                for key in keys {
                    self.check(key, &mut state, &|_| false);
                }
                let mut rest = vec![state];
                for case in cases {
                    let (condition, exact) = self.case(keys, &case.matches);
                    let mut others = Vec::new();
                    for state in rest {
                        let taken = state.clone().assume(&condition, true, &self.program.slots);
                        taken.into_iter().for_each(|state| go(case.target, state));
                        match exact {
                            true => {
                                others.extend(state.assume(&condition, false, &self.program.slots));
                            }
                            false => others.push(state),
                        }
                    }
                    rest = self.reduce(others);
                }
                for mut state in rest {
                    state.forget(error);
                    go(Target::Reject, state);
                }
            }
        }
    }

    /// A case of a select as a condition; whether it says all, or there are sets of values that nobody knows.
    fn case(&self, keys: &[Expr], matches: &[KeySet]) -> (Expr, bool) {
        let slots = &self.program.slots;
        let mut exact = true;
        let mut all = build::boolean(true);
        for (key, set) in keys.iter().zip(matches) {
            let one = match set {
                KeySet::Any => continue,
                KeySet::ValueSet(_) => {
                    exact = false;
                    continue;
                }
                KeySet::Mask { value, mask } => {
                    let full = *mask == Bits::ones(mask.width());
                    let masked = match full {
                        true => key.clone(),
                        false => {
                            let mask = Expr::Const(mask.clone());
                            build::binary(BinaryOp::And, key.clone(), mask, slots)
                        }
                    };
                    build::binary(BinaryOp::Eq, masked, Expr::Const(value.clone()), slots)
                }
                KeySet::Range { low, high } => {
                    let (low, high) = (Expr::Const(low.clone()), Expr::Const(high.clone()));
                    let above = build::binary(BinaryOp::Ule, low, key.clone(), slots);
                    let below = build::binary(BinaryOp::Ule, key.clone(), high, slots);
                    build::binary(BinaryOp::And, above, below, slots)
                }
            };
            all = build::binary(BinaryOp::And, all, one, slots);
        }
        (all, exact)
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

    /// Statements that go on in one way, if at all.
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
                let slot = self
                    .program
                    .architecture
                    .parser_error(ir::Pipeline::Ingress);
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

    /// What is left of a packet that ends here.
    fn reject_with(&mut self, state: &State, error: u64, step: Step) {
        let slot = self
            .program
            .architecture
            .parser_error(ir::Pipeline::Ingress);
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

    /// Rounds one by one while they bring something new; if there is no end, once more with all forgotten that a round may change.
    fn repeat(&mut self, label: LabelId, body: &[Stmt], states: Vec<State>) -> Vec<State> {
        let mut seen: Vec<State> = Vec::new();
        let mut states = states;
        for _ in 0..ROUNDS {
            states.retain(|state| !seen.iter().any(|other| other.agrees(state)));
            if states.is_empty() {
                break;
            }
            seen.extend(states.iter().cloned());
            states = self.body(body, states);
            states = self.reduce(states);
        }
        if !states.is_empty() {
            let changed = self.changed(body);
            for state in &mut states {
                changed.iter().for_each(|slot| state.forget(*slot));
            }
            self.body(body, states);
        }
        let out = self.breaks.remove(&label).unwrap_or_default();
        self.reduce(out)
    }

    /// Slots that statements may change.
    fn changed(&self, body: &[Stmt]) -> BTreeSet<SlotId> {
        let mut out = BTreeSet::new();
        for stmt in ir::statements(body) {
            out.extend(stmt.kind.destination());
            match &stmt.kind {
                StmtKind::SetValid(id) | StmtKind::SetInvalid(id) => {
                    let header = &self.program.headers[id.index()];
                    out.insert(header.valid);
                    out.extend(header.field_slots());
                }
                StmtKind::Apply {
                    table,
                    hit,
                    action_run,
                    ..
                } => {
                    out.extend([*hit, *action_run].into_iter().flatten());
                    for action in &self.program.tables[table.index()].actions {
                        out.extend(self.changed(&self.program.actions[action.action.index()].body));
                    }
                }
                _ => {}
            }
        }
        out
    }

    /// Each action that a hit or a miss may run.
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
            && !self.standard.contains(&dst)
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

    /// Reports what an expression reads that may not be there. `exempt`: headers that may be invalid here.
    fn check(&mut self, expr: &Expr, state: &mut State, exempt: &dyn Fn(HeaderId) -> bool) {
        match expr {
            Expr::Const(_) | Expr::PacketLength => {}
            Expr::Slot(slot) => self.read(*slot, state, exempt),
            Expr::Binary { op, a, b }
                if matches!(op, BinaryOp::And | BinaryOp::Or)
                    && a.width(&self.program.slots) == 1 =>
            {
                self.check(a, state, exempt);
                if self.is_safe(b) {
                    return;
                }
                if let Some(pair) = self.validities(a) {
                    // Headers that are compared: those that are both invalid are equal.
                    return self.check_pair(pair, b, state, exempt);
                }
                let goes_on = *op == BinaryOp::And;
                for mut state in state.clone().assume(a, goes_on, &self.program.slots) {
                    self.check(b, &mut state, exempt);
                }
            }
            Expr::Mux {
                cond,
                then,
                otherwise,
            } => {
                self.check(cond, state, exempt);
                for (value, arm) in [(true, then), (false, otherwise)] {
                    if self.is_safe(arm) {
                        continue;
                    }
                    for mut state in state.clone().assume(cond, value, &self.program.slots) {
                        self.check(arm, &mut state, exempt);
                    }
                }
            }
            _ => expr
                .operands()
                .for_each(|operand| self.check(operand, state, exempt)),
        }
    }

    /// The validity bits that a condition compares, if it does that.
    fn validities(&self, condition: &Expr) -> Option<[SlotId; 2]> {
        match condition {
            Expr::Binary {
                op: BinaryOp::Eq,
                a,
                b,
            } => match (&**a, &**b) {
                (Expr::Slot(a), Expr::Slot(b))
                    if self.uses.is_validity(*a) && self.uses.is_validity(*b) =>
                {
                    Some([*a, *b])
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn check_pair(
        &mut self,
        pair: [SlotId; 2],
        fields: &Expr,
        state: &State,
        exempt: &dyn Fn(HeaderId) -> bool,
    ) {
        let slots = &self.program.slots;
        for first in state.clone().assume(&Expr::Slot(pair[0]), true, slots) {
            for mut both in first.assume(&Expr::Slot(pair[1]), true, slots) {
                self.check(fields, &mut both, exempt);
            }
        }
    }

    /// Whether an expression reads nothing that may be missing.
    fn is_safe(&self, expr: &Expr) -> bool {
        !expr.reads(&|slot| {
            self.field_of[slot.index()].is_some()
                || self.marks.contains(&slot)
                || self.uses.may_be_unset(slot)
        })
    }

    fn read(&mut self, slot: SlotId, state: &mut State, exempt: &dyn Fn(HeaderId) -> bool) {
        if let Some(header) = self.field_of[slot.index()]
            && self.validity(state, header) != Some(true)
        {
            if !exempt(header)
                && !state.blamed.contains(&header)
                && self.report(Fault::Invalid(header), slot, state)
            {
                state.blamed.insert(header);
            }
            return;
        }
        if (state.unset.contains(&slot) || self.marks.contains(&slot))
            && self.report(Fault::Unset(slot), slot, state)
        {
            state.unset.remove(&slot);
        }
    }

    /// Notes a fault, with the shortest way to it; whether nothing explains it.
    fn report(&mut self, fault: Fault, slot: SlotId, state: &State) -> bool {
        if (self.explained)(self.loc, fault) {
            return false;
        }
        let length = state.path_length();
        let found = self.findings.entry(((self.loc.file, self.loc.line), fault));
        let finding = found.or_insert_with(|| Finding {
            slot,
            path: state.path.clone(),
            length,
        });
        if length < finding.length {
            *finding = Finding {
                slot,
                path: state.path.clone(),
                length,
            };
        }
        true
    }

    /// Joins states that say the same of what is still to be read, and more of them if there are too many.
    fn reduce(&self, mut states: Vec<State>) -> Vec<State> {
        if states.len() < 2 {
            return states;
        }
        if let Some(position) = self.position {
            let uses = &self.uses;
            let read_later = |slot| uses.is_read_after(slot, position);
            for state in &mut states {
                // Whether a header is sent matters if something would be sent with it that has no value.
                let open: BTreeSet<SlotId> = (state.unset.iter())
                    .filter(|slot| uses.is_sent(**slot))
                    .filter_map(|slot| self.field_of[slot.index()])
                    .map(|id| self.program.headers[id.index()].valid)
                    .collect();
                state.keep(&|slot| read_later(slot) || open.contains(&slot), &|slot| {
                    read_later(slot) || uses.is_sent(slot)
                });
            }
        }
        let states = joined(
            states,
            |state| {
                let mut hasher = DefaultHasher::new();
                state.values.hash(&mut hasher);
                state.unset.hash(&mut hasher);
                hasher.finish()
            },
            State::agrees,
        );
        if states.len() <= MOST_STATES {
            return states;
        }
        // Facts go first, then values, then the lack of values, then validity.
        let states = joined(
            states,
            |_| 0,
            |a, b| a.values == b.values && a.unset == b.unset,
        );
        if states.len() <= MOST_STATES {
            return states;
        }
        let shapes: Vec<Shape> = states.iter().map(|state| self.shape(state)).collect();
        let mut sizes: BTreeMap<&Shape, usize> = BTreeMap::new();
        shapes
            .iter()
            .for_each(|shape| *sizes.entry(shape).or_default() += 1);
        let mut groups: Vec<(usize, &Shape)> = sizes.into_iter().map(|(s, n)| (n, s)).collect();
        groups.sort_by(|a, b| b.cmp(a));
        let mut left = states.len();
        let mut large: BTreeSet<&Shape> = BTreeSet::new();
        for (size, shape) in groups {
            if left <= MOST_STATES / 2 || size == 1 {
                break;
            }
            left -= size - 1;
            large.insert(shape);
        }
        let mut out: Vec<State> = Vec::new();
        let mut first: BTreeMap<&Shape, usize> = BTreeMap::new();
        for (state, shape) in states.iter().zip(&shapes) {
            match first.get(shape).filter(|_| large.contains(shape)) {
                Some(at) => out[*at].join(state),
                None => {
                    first.insert(shape, out.len());
                    out.push(state.clone());
                }
            }
        }
        if out.len() <= MOST_STATES {
            return out;
        }
        let same = |a: &State, b: &State| self.shape(a).0 == self.shape(b).0;
        let out = joined(out, |_| 0, same);
        if out.len() <= 2 * MOST_STATES {
            return out;
        }
        joined(out, |_| 0, |_, _| true)
    }

    fn shape(&self, state: &State) -> Shape {
        let valid = self.program.headers.iter().enumerate();
        let valid = valid.map(|(i, _)| self.validity(state, HeaderId(i as u32)));
        (valid.collect(), state.unset.clone())
    }
}

/// States with those joined that are alike; `key` is the same for those that are.
fn joined(
    states: Vec<State>,
    key: impl Fn(&State) -> u64,
    alike: impl Fn(&State, &State) -> bool,
) -> Vec<State> {
    let mut out: Vec<State> = Vec::with_capacity(states.len());
    let mut by_key: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for state in states {
        let group = by_key.entry(key(&state)).or_default();
        match group.iter().find(|at| alike(&out[**at], &state)) {
            Some(at) => out[*at].join(&state),
            None => {
                group.push(out.len());
                out.push(state);
            }
        }
    }
    out
}
