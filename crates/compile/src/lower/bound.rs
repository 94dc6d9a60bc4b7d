//! The arguments that a table gives to the parameters with direction of its actions.
//!
//! They "are not evaluated until the action is invoked" (specification, "Actions" of tables), so evaluating
//! and copying back is part of the action. If several tables give different arguments to an action, each sets
//! a slot before it is applied, by which the action chooses the arguments.

use ir::{Expr, SlotId, Stmt, StmtKind, TableId};

use super::metered::rewritten;
use super::{Body, Unit, build};
use crate::hir;

/// The arguments that a table gives to an action.
pub(super) struct Bound {
    table: TableId,
    /// The statements that evaluate the arguments and set the parameters.
    pub before: Vec<Stmt>,
    /// The statements that copy the parameters back to the arguments.
    pub after: Vec<Stmt>,
}

impl Body<'_, '_> {
    /// Lowers the arguments for parameters with direction that the list of actions of a table gives, and
    /// records them for [`Unit::install_bound`]. Allocates the storage of these parameters.
    pub(super) fn bind_actions(
        &mut self,
        table: TableId,
        def: &hir::Table,
        actions: &[ir::TableAction],
    ) {
        for (action, lowered) in def.actions.iter().zip(actions) {
            if action.bound.is_empty() {
                continue;
            }
            let declaration = &self.module.actions[action.action.index()];
            // The parameters belong to the instance, those of a top-level action to none.
            let instance = self.scope.instance;
            let owner = instance.filter(|_| !declaration.global);
            let params = &declaration.params[..action.bound.len()];
            for param in params {
                let place = self.storage_in(owner, *param);
                self.made.storage.insert((instance, *param), place);
            }
            let mut copies = Vec::new();
            let before = self.capture(|l| (_, copies) = l.bind(params, &action.bound, true, true));
            let after = self.capture(|l| l.copy_back(&copies));
            let bound = Bound {
                table,
                before,
                after,
            };
            let all = self.made.bound.entry(lowered.action);
            all.or_default().push(bound);
        }
    }
}

impl Unit<'_> {
    /// Adds the statements that evaluate the arguments, and those that copy back, to the bodies of the
    /// actions to which tables give arguments. Must run after all tables are lowered.
    pub(super) fn install_bound(&mut self) {
        for (action, mut bound) in std::mem::take(&mut self.made.bound) {
            let Some(last) = bound.pop() else { continue };
            let body = std::mem::take(&mut self.program.actions[action.index()].body);
            let same = |other: &Bound| {
                without_places(&other.before) == without_places(&last.before)
                    && without_places(&other.after) == without_places(&last.after)
            };
            let body = match bound.iter().all(same) {
                true => [last.before, body, last.after].concat(),
                false => {
                    let name = format!("{}.$table", self.program.actions[action.index()].name);
                    let told = self.new_slot(&name, 32);
                    bound.push(last);
                    self.tell(told, &bound);
                    let before = chosen(told, &bound, |b| &b.before);
                    let after = chosen(told, &bound, |b| &b.after);
                    [before, body, after].concat()
                }
            };
            self.program.actions[action.index()].body = body;
        }
    }

    /// Inserts, before each application of a table of `bound`, the assignment of the table's position in
    /// `bound` to the slot `told`.
    fn tell(&mut self, told: SlotId, bound: &[Bound]) {
        for control in self.program.controls_mut() {
            let body = std::mem::take(control);
            *control = rewritten(body, &mut |stmt, out| {
                let number = match &stmt.kind {
                    StmtKind::Apply { table, .. } => bound.iter().position(|b| b.table == *table),
                    _ => None,
                };
                if let Some(number) = number {
                    let value = build::constant(32, number as u64);
                    let kind = StmtKind::Assign { dst: told, value };
                    out.push(Stmt {
                        kind,
                        loc: stmt.loc,
                    });
                }
                out.push(stmt);
            });
        }
    }
}

/// Returns a switch over the slot `told` that runs, for each position in `bound`, the statements that `part`
/// returns for it. Returns nothing if `part` returns no statements for any.
fn chosen(told: SlotId, bound: &[Bound], part: impl Fn(&Bound) -> &Vec<Stmt>) -> Vec<Stmt> {
    let first = bound.iter().find_map(|b| part(b).first());
    let Some(loc) = first.map(|stmt| stmt.loc) else {
        return Vec::new();
    };
    let numbered = bound.iter().enumerate();
    let cases = numbered.map(|(i, b)| (vec![ir::Bits::from_u64(32, i as u64)], part(b).clone()));
    let kind = StmtKind::Switch {
        value: Expr::Slot(told),
        cases: cases.collect(),
        default: Vec::new(),
    };
    vec![Stmt { kind, loc }]
}

/// Returns the statements without their places in the source, so that equal statements from different
/// places compare as equal.
fn without_places(stmts: &[Stmt]) -> Vec<Stmt> {
    rewritten(stmts.to_vec(), &mut |mut stmt, out| {
        stmt.loc = ir::Loc::default();
        out.push(stmt);
    })
}
