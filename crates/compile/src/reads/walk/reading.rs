//! The values that an expression reads, and whether they may be absent.

use ir::{BinaryOp, Expr, HeaderId, SlotId};

use super::super::state::State;
use super::{Fault, Finding, Walker};

impl Walker<'_> {
    /// Reports each read, in the expression `expr`, of a field of a header that may be invalid or of a slot
    /// that may be unset in `state`. Operands that are not evaluated do not count. Headers for which `exempt`
    /// returns true may be invalid.
    pub(super) fn check(
        &mut self,
        expr: &Expr,
        state: &mut State,
        exempt: &dyn Fn(HeaderId) -> bool,
    ) {
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

    /// Returns the two slots if `condition` compares the validity of two headers with each other; `None` for
    /// any other condition.
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

    /// Returns whether an expression reads no header field and no slot that may be unset.
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

    /// Records a fault at the current statement, with the shortest path to it found so far. Records nothing
    /// and returns false if a comment in the source allows the fault.
    pub(super) fn report(&mut self, fault: Fault, slot: SlotId, state: &State) -> bool {
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
}
