//! Keeps the fields of invalid headers zero.
//!
//! The IR promises that reading a field of an invalid header gives zero. Lowering writes fields without asking whether
//! their header is valid; this pass puts a test around every such write, unless the header is valid there whatever
//! happened before. That is found by one walk in execution order with the set of headers known to be valid: `SetValid`,
//! `Extract` and tests of validity add to it, `SetInvalid` takes away, branches meet, and a loop starts with what none of
//! its rounds takes away. Nothing is assumed at the start of a control.

use std::collections::{BTreeMap, BTreeSet};

use ir::{
    BinaryOp, Effect, Expr, HeaderId, LabelId, Program, SlotId, Stmt, StmtKind, Target, Transition,
    UnaryOp,
};

/// The headers that are known to be valid at a place; `None` at a place that no packet reaches.
type Known = Option<BTreeSet<HeaderId>>;

/// Wraps each write to a field of a header that may be invalid there in a test of the header's validity, so
/// that the write happens only if the header is valid.
pub(crate) fn guard(program: &mut Program) {
    let mut pass = Pass::new(program);
    pass.parser(program);
    for control in program.controls_mut() {
        let mut known = Some(BTreeSet::new());
        pass.stmts(control, &mut known);
    }
    // Actions come last: the validity known where they run was gathered at the places that apply their tables.
    for (i, action) in program.actions.iter_mut().enumerate() {
        let mut known = pass
            .at_action
            .remove(&i)
            .unwrap_or_else(|| Some(BTreeSet::new()));
        pass.stmts(&mut action.body, &mut known);
    }
}

struct Pass {
    /// The header whose field or varbit length a slot is.
    field_of: BTreeMap<SlotId, HeaderId>,
    /// The header whose validity a slot is.
    validity_of: BTreeMap<SlotId, HeaderId>,
    /// The validity known where a block or loop is left by a break.
    at_break: BTreeMap<LabelId, Known>,
    /// The validity known where an action starts.
    at_action: BTreeMap<usize, Known>,
    /// For each table, the headers that its actions may make invalid, and the positions of the actions.
    tables: Vec<(BTreeSet<HeaderId>, Vec<usize>)>,
}

fn meet(a: Known, b: Known) -> Known {
    match (a, b) {
        (None, known) | (known, None) => known,
        (Some(a), Some(b)) => Some(a.intersection(&b).copied().collect()),
    }
}

impl Pass {
    fn new(program: &Program) -> Pass {
        let mut field_of = BTreeMap::new();
        let mut validity_of = BTreeMap::new();
        for (i, header) in program.headers.iter().enumerate() {
            let id = HeaderId(i as u32);
            validity_of.insert(header.valid, id);
            for field in &header.fields {
                field_of.insert(field.slot, id);
                field_of.extend(field.varbit_length.map(|l| (l, id)));
            }
        }
        let tables = program.tables.iter().map(|table| {
            let mut lost = BTreeSet::new();
            let actions: Vec<usize> = table.actions.iter().map(|a| a.action.index()).collect();
            actions
                .iter()
                .for_each(|a| invalidated(&program.actions[*a].body, &[], &mut lost));
            (lost, actions)
        });
        let tables = tables.collect();
        Pass {
            field_of,
            validity_of,
            at_break: BTreeMap::new(),
            at_action: BTreeMap::new(),
            tables,
        }
    }

    /// Guards the writes to header fields in parser states. Several states can lead to one state, so the
    /// headers known to be valid at the start of each state are computed first, in rounds until nothing
    /// changes.
    fn parser(&mut self, program: &mut Program) {
        let mut entry: Vec<Known> = vec![None; program.states.len()];
        for start in program.parser_starts() {
            if let Some(start) = entry.get_mut(start.index()) {
                *start = Some(BTreeSet::new());
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for i in 0..entry.len() {
                if entry[i].is_none() {
                    continue;
                }
                let mut known = entry[i].clone();
                let mut body = program.states[i].body.clone();
                self.stmts(&mut body, &mut known);
                for target in successors(&program.states[i].transition) {
                    let Some(slot) = entry.get_mut(target) else {
                        continue;
                    };
                    let met = meet(slot.clone(), known.clone());
                    if met != *slot {
                        *slot = met;
                        changed = true;
                    }
                }
            }
        }
        for (state, mut known) in program.states.iter_mut().zip(entry) {
            self.stmts(&mut state.body, &mut known);
        }
    }

    fn stmts(&mut self, stmts: &mut Vec<Stmt>, known: &mut Known) {
        let mut out: Vec<Stmt> = Vec::with_capacity(stmts.len());
        for mut stmt in std::mem::take(stmts) {
            let guard = self.stmt(&mut stmt, known);
            match guard {
                Some(header) => self.push_guarded(&mut out, header, stmt),
                None => out.push(stmt),
            }
        }
        *stmts = out;
    }

    /// Appends to `out` the statement `stmt`, which writes to a field of `header`, inside an `if` that tests
    /// the header's validity. Puts it into the preceding `if` if that tests the same header.
    fn push_guarded(&self, out: &mut Vec<Stmt>, header: HeaderId, stmt: Stmt) {
        let valid = self
            .validity_of
            .iter()
            .find(|(_, h)| **h == header)
            .map(|(s, _)| *s);
        let Some(valid) = valid else {
            return out.push(stmt);
        };
        let cond = Expr::Slot(valid);
        if let Some(Stmt {
            kind:
                StmtKind::If {
                    cond: before,
                    then,
                    otherwise,
                },
            ..
        }) = out.last_mut()
            && *before == cond
            && otherwise.is_empty()
            && then
                .iter()
                .all(|s| matches!(s.kind, StmtKind::Assign { .. }))
        {
            return then.push(stmt);
        }
        let loc = stmt.loc;
        out.push(Stmt {
            kind: StmtKind::If {
                cond,
                then: vec![stmt],
                otherwise: Vec::new(),
            },
            loc,
        });
    }

    /// Updates `known`, the headers known to be valid before `stmt`, to those after it, and guards the
    /// statements inside of it. Returns the header whose validity must be tested before the statement itself;
    /// `None` if no test is needed.
    fn stmt(&mut self, stmt: &mut Stmt, known: &mut Known) -> Option<HeaderId> {
        match &mut stmt.kind {
            StmtKind::Assign { dst, value } => {
                // A write of zero keeps the promise by itself.
                let zero = matches!(value, Expr::Const(bits) if bits.is_zero());
                return self.unguarded(*dst, known).filter(|_| !zero);
            }
            StmtKind::SetValid(id) | StmtKind::Extract { header: id, .. } => {
                known.iter_mut().for_each(|k| {
                    k.insert(*id);
                });
            }
            StmtKind::SetInvalid(id) => {
                known.iter_mut().for_each(|k| {
                    k.remove(id);
                });
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let mut yes = known.clone();
                let mut no = known.clone();
                self.learn(cond, true, &mut yes);
                self.learn(cond, false, &mut no);
                self.stmts(then, &mut yes);
                self.stmts(otherwise, &mut no);
                *known = meet(yes, no);
            }
            StmtKind::Switch { cases, default, .. } => {
                let before = known.clone();
                self.stmts(default, known);
                for (_, body) in cases {
                    let mut inside = before.clone();
                    self.stmts(body, &mut inside);
                    *known = meet(known.take(), inside);
                }
            }
            StmtKind::Block { label, body } => {
                self.at_break.insert(*label, None);
                self.stmts(body, known);
                let broken = self.at_break.remove(label).flatten();
                *known = meet(known.take(), broken);
            }
            StmtKind::Loop { label, body } => {
                let mut lost = BTreeSet::new();
                invalidated(body, &self.tables, &mut lost);
                known
                    .iter_mut()
                    .for_each(|k| k.retain(|h| !lost.contains(h)));
                self.at_break.insert(*label, None);
                self.stmts(body, known);
                *known = self.at_break.remove(label).flatten();
            }
            StmtKind::Break(label) => {
                let here = known.take();
                let met = meet(self.at_break.remove(label).flatten(), here);
                self.at_break.insert(*label, met);
            }
            StmtKind::Apply { table, .. } => {
                let (lost, actions) = self.tables.get(table.index()).cloned()?;
                for action in actions {
                    let before = self.at_action.remove(&action).flatten();
                    self.at_action.insert(action, meet(before, known.clone()));
                }
                known
                    .iter_mut()
                    .for_each(|k| k.retain(|h| !lost.contains(h)));
            }
            other if other.effect() == Effect::End => *known = None,
            other => return self.unguarded(other.destination()?, known),
        }
        None
    }

    /// Returns the header of which `slot` is a field; `None` if the slot is no field, the header is known to
    /// be valid at this point, or no packet reaches this point.
    fn unguarded(&self, slot: SlotId, known: &Known) -> Option<HeaderId> {
        let header = *self.field_of.get(&slot)?;
        match known {
            Some(valid) if !valid.contains(&header) => Some(header),
            _ => None,
        }
    }

    /// Adds to `known` the headers that are valid if the condition `cond` has the truth value `value`.
    fn learn(&self, cond: &Expr, value: bool, known: &mut Known) {
        match cond {
            Expr::Slot(slot) if value => {
                if let (Some(header), Some(known)) = (self.validity_of.get(slot), known) {
                    known.insert(*header);
                }
            }
            Expr::Unary {
                op: UnaryOp::Not,
                a,
            } => self.learn(a, !value, known),
            Expr::Binary {
                op: BinaryOp::And,
                a,
                b,
            } if value => {
                self.learn(a, true, known);
                self.learn(b, true, known);
            }
            Expr::Binary {
                op: BinaryOp::Or,
                a,
                b,
            } if !value => {
                self.learn(a, false, known);
                self.learn(b, false, known);
            }
            _ => {}
        }
    }
}

/// Returns the positions, in the program's list of parser states, of the states to which a transition may
/// lead.
pub(crate) fn successors(transition: &Transition) -> Vec<usize> {
    let index = |t: &Target| match t {
        Target::State(id) => Some(id.index()),
        _ => None,
    };
    match transition {
        Transition::Goto(target) => index(target).into_iter().collect(),
        Transition::Select { cases, .. } => cases.iter().filter_map(|c| index(&c.target)).collect(),
    }
}

/// Adds to `out` the headers that the statements, or the actions of tables that they apply, may make invalid.
/// `tables` holds, for each table, the headers that its actions may make invalid.
fn invalidated(
    stmts: &[Stmt],
    tables: &[(BTreeSet<HeaderId>, Vec<usize>)],
    out: &mut BTreeSet<HeaderId>,
) {
    for stmt in ir::statements(stmts) {
        match &stmt.kind {
            StmtKind::SetInvalid(id) => {
                out.insert(*id);
            }
            StmtKind::Apply { table, .. } => {
                if let Some((lost, _)) = tables.get(table.index()) {
                    out.extend(lost);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
