//! What happens between ingress and egress of a program whose egress parses again: what ingress deparses, and
//! what of it egress can know.
//!
//! Such a program gets a fast path if its deparsers first run statements and then emit headers, each at most
//! once, and if ingress and egress have no header in common. This module knows nothing of machine code.

use super::usage::Usage;
use ir::{Bridged, Forwarding, HeaderId, Pipeline, Program, SlotId, Stmt, StmtKind};

/// A deparser that first runs statements, then emits headers.
#[derive(Clone, Debug)]
pub(crate) struct Deparser<'a> {
    /// The statements, none of which emits.
    pub before: &'a [Stmt],
    /// The headers in the order in which they are emitted, each once.
    pub emits: Vec<HeaderId>,
}

impl<'a> Deparser<'a> {
    /// Divides the body of a deparser into statements and emitted headers. Returns `None` if a header is
    /// emitted under a condition, before another statement, or twice, or if the statements apply a table or
    /// exit.
    pub fn of(body: &'a [Stmt]) -> Option<Deparser<'a>> {
        let is_emit = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Emit(_));
        let first = body.iter().position(is_emit).unwrap_or(body.len());
        let (before, emits) = body.split_at(first);
        // An action may end the control, too.
        let leads_elsewhere = |stmt: &Stmt| {
            is_emit(stmt) || matches!(stmt.kind, StmtKind::Exit | StmtKind::Apply { .. })
        };
        if ir::statements(before).any(leads_elsewhere) {
            return None;
        }
        let mut headers = Vec::new();
        for stmt in emits {
            match stmt.kind {
                StmtKind::Emit(header) if !headers.contains(&header) => headers.push(header),
                _ => return None,
            }
        }
        Some(Deparser {
            before,
            emits: headers,
        })
    }
}

/// What happens between ingress and egress, if egress parses the packet that ingress deparsed.
#[derive(Clone, Debug)]
pub(crate) struct Reparse<'a> {
    /// What ingress deparses.
    pub ingress: Deparser<'a>,
    /// What egress deparses.
    pub egress: Deparser<'a>,
    /// The slots that ingress may leave other than zero, and that are zero when egress begins.
    pub cleared: Vec<SlotId>,
}

impl<'a> Reparse<'a> {
    /// Finds out what happens between ingress and egress. Returns `None` if one function cannot do it: if
    /// ingress and egress have a header in common, if a field list preserves a part of a header that may lie
    /// in the packet, or if a deparser is not of the form of [`Deparser`].
    pub fn new(
        program: &'a Program,
        forwarding: &Forwarding,
        [ingress, egress]: [&Usage; 2],
        shared: &[bool],
    ) -> Option<Reparse<'a>> {
        let touches =
            |usage: &Usage, slot: SlotId| usage.reads[slot.index()] || usage.writes[slot.index()];
        let in_lists = |slot: SlotId| {
            let mut lists = program.field_lists.iter();
            lists.any(|list| list.slots.contains(&slot))
        };
        let deparsers = [
            program.deparser(Pipeline::INGRESS),
            program.deparser(Pipeline::EGRESS),
        ];
        let emits = |header: usize| {
            let emit = StmtKind::Emit(HeaderId(header as u32));
            deparsers.map(|body| ir::statements(body).any(|stmt| stmt.kind == emit))
        };
        for (i, header) in program.headers.iter().enumerate() {
            let slots = || header.field_slots().chain([header.valid]);
            let by_both = [ingress, egress]
                .map(|usage| slots().any(|slot| touches(usage, slot)))
                .into_iter()
                .all(|touched| touched);
            // A header that is brought along may be valid without having been extracted.
            let lies_in_packet =
                ingress.extracted[i] || egress.extracted[i] || emits(i).contains(&true);
            if by_both || lies_in_packet && slots().any(in_lists) {
                return None;
            }
        }
        let bridged = &program.field_lists[Bridged::Normal.field_list().index()].slots;
        let given = |slot: SlotId| forwarding.arrival.iter().any(|&(given, _)| given == slot);
        let is_cleared = |slot: &SlotId| {
            let left = ingress.sets[slot.index()] || given(*slot);
            let seen = touches(egress, *slot) || shared[slot.index()];
            left && seen && !bridged.contains(slot)
        };
        Some(Reparse {
            ingress: Deparser::of(program.deparser(Pipeline::INGRESS))?,
            egress: Deparser::of(program.deparser(Pipeline::EGRESS))?,
            cleared: (0..program.slots.len() as u32)
                .map(SlotId)
                .filter(is_cleared)
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Deparser;
    use ir::{Bits, Expr, HeaderId, Loc, Stmt, StmtKind};

    fn stmt(kind: StmtKind) -> Stmt {
        Stmt {
            kind,
            loc: Loc::default(),
        }
    }

    fn emit(number: u32) -> Stmt {
        stmt(StmtKind::Emit(HeaderId(number)))
    }

    fn only_if(then: Vec<Stmt>) -> Stmt {
        stmt(StmtKind::If {
            cond: Expr::Const(Bits::from_u64(1, 1)),
            then,
            otherwise: Vec::new(),
        })
    }

    #[test]
    fn a_deparser_first_computes_and_then_emits() {
        let set = || stmt(StmtKind::SetInvalid(HeaderId(5)));
        let body = [only_if(vec![set()]), set(), emit(2), emit(1)];
        let deparser = Deparser::of(&body).expect("is one");
        assert_eq!(deparser.before, &body[..2]);
        assert_eq!(deparser.emits, [HeaderId(2), HeaderId(1)]);
        let nothing = Deparser::of(&[]).expect("is one");
        assert!(nothing.before.is_empty() && nothing.emits.is_empty());
    }

    #[test]
    fn what_is_emitted_may_not_depend_on_anything_but_validity() {
        let set = || stmt(StmtKind::SetInvalid(HeaderId(5)));
        for body in [
            vec![only_if(vec![emit(1)])],
            vec![emit(1), set(), emit(2)],
            vec![emit(1), emit(2), emit(1)],
            vec![only_if(vec![stmt(StmtKind::Exit)]), emit(1)],
        ] {
            assert!(Deparser::of(&body).is_none(), "{body:?}");
        }
    }
}
