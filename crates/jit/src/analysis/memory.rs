//! Which slots live in the state array instead of in values.
//!
//! A value that differs by the path that was taken needs a place in every block where paths meet, one for each path that leads there: as
//! many as there are elements in a header stack whose next element is extracted in a loop, for each field of each element. That is quadratic in the size
//! of the stack, and nothing is gained: so many values lie in memory anyway. This module counts, from the program alone, and knows
//! nothing of machine code.

use super::MAX_VALUE_LIMBS;
use ir::{ActionId, Program, SlotId, Stmt, StmtKind};
use std::collections::BTreeSet;

/// A slot of a header lives in memory if more paths than this lead to the places where its values meet.
const MAX_MERGES: usize = 64;

/// If more than [`MANY`] slots of headers have more paths than this, they all live in memory.
const SOME_MERGES: usize = 32;

/// The number of slots beyond which [`SOME_MERGES`] holds instead of [`MAX_MERGES`].
const MANY: usize = 96;

/// Decides for each slot whether it lives in the state array rather than in values. The decision is the same
/// if states of the parser are duplicated.
pub(super) fn in_memory(program: &Program) -> Vec<bool> {
    let mut in_memory: Vec<bool> = (program.slots.iter())
        .map(|slot| slot.width.div_ceil(64) as usize > MAX_VALUE_LIMBS)
        .collect();
    let merges = Merges::of(program).counts;
    let mut merged: Vec<usize> = Vec::new();
    for header in &program.headers {
        let slots = header.field_slots().chain([header.valid]);
        let slots = slots.map(SlotId::index);
        merged.extend(slots.filter(|&slot| merges[slot] > SOME_MERGES));
    }
    let most = if merged.len() > MANY {
        SOME_MERGES
    } else {
        MAX_MERGES
    };
    for slot in merged {
        in_memory[slot] |= merges[slot] > most;
    }
    in_memory
}

/// For each slot, the number of paths that lead to a place where different values of the slot meet, added up
/// over all such places.
struct Merges<'a> {
    program: &'a Program,
    counts: Vec<usize>,
}

/// Slots, in order.
type Slots = BTreeSet<SlotId>;

impl<'a> Merges<'a> {
    fn of(program: &'a Program) -> Merges<'a> {
        let mut merges = Merges {
            program,
            counts: vec![0; program.slots.len()],
        };
        // A state that is there more than once does not count more.
        let mut most = merges.counts.clone();
        for state in &program.states {
            merges.body(&state.body);
            for (most, count) in most.iter_mut().zip(&mut merges.counts) {
                *most = (*most).max(std::mem::take(count));
            }
        }
        merges.counts = most;
        for control in program.controls() {
            merges.body(control);
        }
        merges
    }

    /// Counts, for each slot, the paths that meet in the statements with values of the slot, and returns the
    /// slots that the statements may assign.
    fn body(&mut self, stmts: &'a [Stmt]) -> Slots {
        let mut assigned = Slots::new();
        for stmt in stmts {
            self.stmt(&stmt.kind, &mut assigned);
        }
        assigned
    }

    fn stmt(&mut self, stmt: &'a StmtKind, assigned: &mut Slots) {
        assigned.extend(stmt.written(self.program));
        let paths: Vec<Slots> = match stmt {
            StmtKind::Apply { table, .. } => {
                let actions = &self.program.tables[table.index()].actions;
                actions.iter().map(|a| self.action(a.action)).collect()
            }
            _ => {
                let bodies = stmt.inner().into_iter();
                bodies.map(|body| self.body(body)).collect()
            }
        };
        let met: Slots = paths.iter().flatten().copied().collect();
        if paths.len() > 1 {
            for slot in &met {
                self.counts[slot.index()] += paths.len();
            }
        }
        assigned.extend(met);
    }

    /// Returns the slots that an action may assign, its parameters included, and counts the paths that meet
    /// in its body. The body counts again at every table that has the action.
    fn action(&mut self, id: ActionId) -> Slots {
        let action = &self.program.actions[id.index()];
        let mut assigned = self.body(&action.body);
        assigned.extend(action.params.iter().map(|p| p.slot));
        assigned
    }
}
