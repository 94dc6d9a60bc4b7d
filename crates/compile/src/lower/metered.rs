//! Reads of direct meters in actions that tables without the meter have too: if such a table runs the action,
//! the packet is green.
//!
//! In the IR such a read would give the colour of the last hit of the table with the meter. So a slot is set
//! before each table that has such an action is applied, which says whether the table has the meter, and
//! tested before the meter is read.

use std::collections::BTreeSet;

use ir::{Expr, MeterId, SlotId, Stmt, StmtKind, TableId};

use super::{Unit, build};

impl Unit<'_> {
    /// Changes the reads of a direct meter in all actions: if a table without the meter runs the action, the
    /// read gives green.
    pub(super) fn guard_direct_meter(&mut self, meter: MeterId) {
        let name = format!("{}.$metered", self.program.meters[meter.index()].name);
        let slot = self.new_slot(&name, 1);
        let program = &mut self.program;
        let reading: BTreeSet<TableId> = (0..program.tables.len() as u32)
            .map(TableId)
            .filter(|id| {
                let mut actions = program.tables[id.index()].actions.iter();
                actions.any(|a| {
                    super::stateful::block_reads(&program.actions[a.action.index()].body, meter)
                })
            })
            .collect();
        let own: BTreeSet<TableId> = reading
            .iter()
            .copied()
            .filter(|id| program.tables[id.index()].direct_meter == Some(meter))
            .collect();
        for control in program.controls_mut() {
            let body = std::mem::take(control);
            *control = rewritten(body, &mut |stmt, out| {
                if let StmtKind::Apply { table, .. } = &stmt.kind
                    && reading.contains(table)
                {
                    let value = build::boolean(own.contains(table));
                    let kind = StmtKind::Assign { dst: slot, value };
                    out.push(Stmt {
                        kind,
                        loc: stmt.loc,
                    });
                }
                out.push(stmt);
            });
        }
        let slots = program.slots.clone();
        let tables = &program.tables;
        for (i, action) in program.actions.iter_mut().enumerate() {
            let listed = |id: &TableId| {
                tables[id.index()]
                    .actions
                    .iter()
                    .any(|a| a.action.index() == i)
            };
            let is_own = own.iter().any(listed);
            let body = std::mem::take(&mut action.body);
            action.body = rewritten(body, &mut |stmt, out| match stmt.kind {
                StmtKind::DirectMeterRead { meter: read, dst } if read == meter => {
                    let width = slots[dst.index()].width;
                    out.push(match is_own {
                        true => guarded(stmt, slot, dst, width),
                        false => green(stmt.loc, dst, width),
                    });
                }
                _ => out.push(stmt),
            });
        }
    }
}

/// Returns a statement that runs `read`, a read of a meter's colour, if `slot` is 1, and otherwise writes
/// green to `dst`.
fn guarded(read: Stmt, slot: SlotId, dst: SlotId, width: u32) -> Stmt {
    let loc = read.loc;
    Stmt {
        kind: StmtKind::If {
            cond: Expr::Slot(slot),
            then: vec![read],
            otherwise: vec![green(loc, dst, width)],
        },
        loc,
    }
}

fn green(loc: ir::Loc, dst: SlotId, width: u32) -> Stmt {
    let value = build::constant(width, 0);
    Stmt {
        kind: StmtKind::Assign { dst, value },
        loc,
    }
}

/// Replaces every statement, at any depth, by the statements that `f` appends for it, and returns the result.
/// Inner statements are replaced before the statement that contains them.
pub(super) fn rewritten(stmts: Vec<Stmt>, f: &mut dyn FnMut(Stmt, &mut Vec<Stmt>)) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(stmts.len());
    for mut stmt in stmts {
        match &mut stmt.kind {
            StmtKind::If {
                then, otherwise, ..
            } => {
                for side in [then, otherwise] {
                    *side = rewritten(std::mem::take(side), f);
                }
            }
            StmtKind::Switch { cases, default, .. } => {
                let bodies = cases.iter_mut().map(|(_, body)| body).chain([default]);
                for body in bodies {
                    *body = rewritten(std::mem::take(body), f);
                }
            }
            StmtKind::Block { body, .. } | StmtKind::Loop { body, .. } => {
                *body = rewritten(std::mem::take(body), f);
            }
            _ => {}
        }
        f(stmt, &mut out);
    }
    out
}
