//! Which statements a program has, what expressions read, and where a parser goes. It does not know what values mean.

use crate::{Block, Expr, Header, Program, SlotId, StateId, Stmt, StmtKind, Target, Transition};

impl Program {
    /// Returns the outermost bodies of statements of the program: those of parser states, actions and controls.
    pub fn bodies(&self) -> impl Iterator<Item = &[Stmt]> {
        let states = self.states.iter().map(|state| &state.body[..]);
        let actions = self.actions.iter().map(|action| &action.body[..]);
        states.chain(actions).chain(self.controls())
    }

    /// Returns the bodies of all controls, in the order in which a packet passes through them.
    pub fn controls(&self) -> impl Iterator<Item = &[Stmt]> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Parser(_) => None,
            Block::Control(body) => Some(&body[..]),
        })
    }

    /// Returns the body of the last control, which makes the packets that leave.
    pub fn last_deparser(&self) -> &[Stmt] {
        self.controls().last().unwrap_or_default()
    }

    /// Returns, for each header, whether the last deparser may emit it. The other headers hold metadata,
    /// local variables or temporary values.
    pub fn emitted_headers(&self) -> Vec<bool> {
        let mut emitted = vec![false; self.headers.len()];
        for stmt in statements(self.last_deparser()) {
            if let StmtKind::Emit(header) = stmt.kind {
                emitted[header.index()] = true;
            }
        }
        emitted
    }

    /// Returns the keys of all selects of the parsers.
    pub fn select_keys(&self) -> impl Iterator<Item = &Expr> {
        let states = self.states.iter();
        states.flat_map(|state| match &state.transition {
            Transition::Select { keys, .. } => &keys[..],
            _ => &[],
        })
    }
}

/// Returns all statements of a body at any depth, each before the statements inside of it.
pub fn statements(body: &[Stmt]) -> impl Iterator<Item = &Stmt> {
    let mut open = vec![body.iter()];
    std::iter::from_fn(move || {
        loop {
            let Some(stmt) = open.last_mut()?.next() else {
                open.pop();
                continue;
            };
            open.extend(stmt.kind.inner().into_iter().rev().map(<[Stmt]>::iter));
            return Some(stmt);
        }
    })
}

impl Expr {
    /// Returns the direct operands of the expression.
    pub fn operands(&self) -> impl Iterator<Item = &Expr> {
        let operands = match self {
            Expr::Const(_) | Expr::Slot(_) | Expr::PacketLength => [None; 3],
            Expr::Unary { a, .. }
            | Expr::Slice { a, .. }
            | Expr::ZeroExtend { a, .. }
            | Expr::SignExtend { a, .. } => [Some(a), None, None],
            Expr::Binary { a, b, .. } | Expr::Concat { a, b } => [Some(a), Some(b), None],
            Expr::Mux {
                cond,
                then,
                otherwise,
            } => [Some(cond), Some(then), Some(otherwise)],
        };
        operands.into_iter().flatten().map(|operand| &**operand)
    }

    /// Returns whether the expression reads a slot for which `wanted` returns true.
    pub fn reads(&self, wanted: &dyn Fn(SlotId) -> bool) -> bool {
        match self {
            Expr::Slot(slot) => wanted(*slot),
            _ => self.operands().any(|operand| operand.reads(wanted)),
        }
    }
}

impl Transition {
    /// Returns all targets to which the transition can lead.
    pub fn targets(&self) -> impl Iterator<Item = Target> {
        let (goto, cases) = match self {
            Transition::Goto(target) => (Some(*target), &[][..]),
            Transition::Select { cases, .. } => (None, &cases[..]),
        };
        goto.into_iter().chain(cases.iter().map(|case| case.target))
    }

    /// Returns all states to which the transition can lead.
    pub fn states(&self) -> impl Iterator<Item = StateId> {
        self.targets().filter_map(|target| match target {
            Target::State(id) => Some(id),
            Target::Accept | Target::Reject => None,
        })
    }
}

impl Header {
    /// Returns the slots of the header's fields, each varbit's followed by the slot of its length.
    pub fn field_slots(&self) -> impl Iterator<Item = SlotId> {
        let fields = self.fields.iter();
        fields.flat_map(|f| [Some(f.slot), f.varbit_length].into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::v1model::INGRESS;
    use crate::text::{parse, preamble};

    #[test]
    fn statements_come_in_the_order_of_the_text() {
        let text = preamble("statements", [("x", 8)])
            + "control verify_checksum { } control ingress {
                 assign %16 = 8w0
                 if %13 { assign %16 = 8w1 loop b0 { assign %16 = 8w2 break b0 } } else { assign %16 = 8w3 }
                 switch %15 { case 3w1 { assign %16 = 8w4 } default { block b1 { } assign %16 = 8w5 } }
                 assign %16 = 8w6
               } control egress { } control compute_checksum { } control deparser { }";
        let program = parse(&text).unwrap_or_else(|e| panic!("{e}"));
        let assigned = |stmt: &Stmt| match &stmt.kind {
            StmtKind::Assign {
                value: Expr::Const(value),
                ..
            } => value.to_u64(),
            _ => None,
        };
        let values: Vec<u64> = statements(program.control(INGRESS))
            .filter_map(assigned)
            .collect();
        assert_eq!(values, [0, 1, 2, 3, 4, 5, 6]);
        // With if, loop, break, switch and block.
        assert_eq!(statements(program.control(INGRESS)).count(), 12);
    }
}
