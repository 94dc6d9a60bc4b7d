//! Next indexes of header stacks that are the same whenever a parser state is entered.
//!
//! `extract(stack.next)` is a switch over all elements, since the next index is a variable. In a parser without loops
//! over the stack it has one value in each state, and so the switch has one case that can run. This pass finds these
//! values by going through the states until nothing changes, and takes out what cannot run. It knows of no other
//! variables: only these start as zero for certain and are written by nothing but assignments.

use std::collections::BTreeMap;

use ir::{Bits, Expr, Program, Slot, SlotId, Stmt, StmtKind, Transition};

use crate::lower::build;
use crate::validity::successors;

/// States times indexes beyond which the pass is left out: the time it takes could be out of proportion.
const MAX_WORK: usize = 1 << 20;

/// The values that are known. A slot that is missing can have any.
type Known = BTreeMap<SlotId, Bits>;

/// Removes from the parser the statements that can never run, and replaces slots whose value is known by
/// constants. `indexes` are the slots of the header stacks' next indexes, which are zero when the parser
/// starts. Leaves the program unchanged if it is too large (`MAX_WORK`).
pub(crate) fn fold(program: &mut Program, indexes: &[SlotId]) {
    let kept: Vec<SlotId> = program
        .field_lists
        .iter()
        .flat_map(|l| l.slots.iter().copied())
        .collect();
    let start: Known = indexes
        .iter()
        .filter(|slot| !kept.contains(slot))
        .map(|slot| (*slot, Bits::zero(program.slots[slot.index()].width)))
        .collect();
    let states = &program.states;
    if start.is_empty() || states.is_empty() || states.len() * start.len() > MAX_WORK {
        return;
    }
    let mut entries: Vec<Option<Known>> = vec![None; states.len()];
    let mut open = Vec::new();
    for state in program.parser_starts() {
        entries[state.index()] = Some(start.clone());
        open.push(state.index());
    }
    while let Some(i) = open.pop() {
        let Some(mut known) = entries[i].clone() else {
            continue;
        };
        let _ = run(&states[i].body, &mut known, &program.slots);
        for next in successors(&states[i].transition) {
            let entry = &mut entries[next];
            let merged = match entry {
                None => known.clone(),
                Some(old) => agreement(old, &known),
            };
            if entry.as_ref() != Some(&merged) {
                *entry = Some(merged);
                open.push(next);
            }
        }
    }
    let slots = &program.slots;
    for (state, entry) in program.states.iter_mut().zip(entries) {
        if let Some(mut known) = entry {
            state.body = run(&state.body, &mut known, slots);
            if let Transition::Select { keys, .. } = &mut state.transition {
                for key in keys {
                    *key = folded(key, &known, slots);
                }
            }
        }
    }
}

/// Returns the values that are known in both `a` and `b` and are the same in both.
fn agreement(a: &Known, b: &Known) -> Known {
    let same = a.iter().filter(|(slot, value)| b.get(slot) == Some(value));
    same.map(|(slot, value)| (*slot, value.clone())).collect()
}

/// Follows the statements `stmts` from the known values `known`, which it updates to those after the
/// statements. Returns the statements without those that cannot run, and with constants in place of slots
/// that are known.
fn run(stmts: &[Stmt], known: &mut Known, slots: &[Slot]) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(stmts.len());
    for stmt in stmts {
        let loc = stmt.loc;
        let kind = match &stmt.kind {
            StmtKind::Assign { dst, value } => {
                let value = folded(value, known, slots);
                if known.contains_key(dst) {
                    match &value {
                        Expr::Const(bits) => known.insert(*dst, bits.clone()),
                        _ => known.remove(dst),
                    };
                }
                StmtKind::Assign { dst: *dst, value }
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let cond = folded(cond, known, slots);
                if let Some(truth) = build::known(&cond) {
                    out.extend(run(if truth { then } else { otherwise }, known, slots));
                    continue;
                }
                let mut other = known.clone();
                let then = run(then, known, slots);
                let otherwise = run(otherwise, &mut other, slots);
                *known = agreement(known, &other);
                if then.is_empty() && otherwise.is_empty() {
                    continue;
                }
                StmtKind::If {
                    cond,
                    then,
                    otherwise,
                }
            }
            StmtKind::Switch {
                value,
                cases,
                default,
            } => {
                let value = folded(value, known, slots);
                if let Expr::Const(bits) = &value {
                    let chosen = cases.iter().find(|(values, _)| values.contains(bits));
                    out.extend(run(chosen.map_or(default, |(_, body)| body), known, slots));
                    continue;
                }
                let before = known.clone();
                let default = run(default, known, slots);
                let mut done = Vec::with_capacity(cases.len());
                for (values, body) in cases {
                    let mut inside = before.clone();
                    let body = run(body, &mut inside, slots);
                    *known = agreement(known, &inside);
                    done.push((values.clone(), body));
                }
                StmtKind::Switch {
                    value,
                    cases: done,
                    default,
                }
            }
            // A body that may be left or run again in the middle is not looked into.
            StmtKind::Block { body, .. } | StmtKind::Loop { body, .. } => {
                forget(body, known);
                stmt.kind.clone()
            }
            other => other.clone(),
        };
        out.push(Stmt { kind, loc });
    }
    out
}

/// Removes from `known` every slot that the statements may assign.
fn forget(stmts: &[Stmt], known: &mut Known) {
    for stmt in ir::statements(stmts) {
        if let StmtKind::Assign { dst, .. } = &stmt.kind {
            known.remove(dst);
        }
    }
}

/// Returns the expression with known values in place of their slots, simplified.
fn folded(expr: &Expr, known: &Known, slots: &[Slot]) -> Expr {
    if !expr.reads(&|slot| known.contains_key(&slot)) {
        return expr.clone();
    }
    let go = |e: &Expr| folded(e, known, slots);
    match expr {
        Expr::Slot(slot) => known
            .get(slot)
            .map_or_else(|| expr.clone(), |bits| Expr::Const(bits.clone())),
        Expr::Const(_) | Expr::PacketLength => expr.clone(),
        Expr::Unary { op, a } => build::unary(*op, go(a)),
        Expr::Slice { a, high, low } => build::slice(go(a), *high, *low, slots),
        Expr::ZeroExtend { a, width } => build::resize(go(a), *width, slots),
        Expr::SignExtend { a, width } => build::resize_signed(go(a), *width, slots),
        Expr::Binary { op, a, b } => build::binary(*op, go(a), go(b), slots),
        Expr::Concat { a, b } => build::concat(go(a), go(b)),
        Expr::Mux {
            cond,
            then,
            otherwise,
        } => build::mux(go(cond), go(then), go(otherwise)),
    }
}

#[cfg(test)]
mod tests;
