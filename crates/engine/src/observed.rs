//! Finds out whether a program observes its surroundings: the queues between ingress and egress, and the time. It knows neither queues
//! nor clocks.
//!
//! A value is observed if it has an effect. Copying alone is none: calling a control copies all standard metadata in and out.

use ir::{Expr, Program, SlotId, StmtKind};
use std::collections::BTreeSet;

/// Returns true if the program's effects depend on the state of queues (`enq_qdepth`, `deq_qdepth`, `enq_timestamp`,
/// `deq_timedelta`), or if the program controls queues (`priority`).
pub fn cares_about_queues(program: &Program) -> bool {
    let data = program.architecture.queue_data();
    let statements = all_statements(program);
    let priority = program.architecture.priority();
    priority.is_some_and(|slot| sets_priority(program, &statements, slot))
        || uses(program, &statements, data)
}

/// How finely a program can distinguish times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeObserved {
    /// Its effects do not depend on time.
    Not,
    /// It has only timestamps, in whole microseconds: it cannot distinguish times within one.
    Microseconds,
    /// Any two times may differ in effect, since it has meters, digests or idle timeouts.
    Fully,
}

/// Returns the resolution at which the program's effects depend on time: through timestamps, meters, digests or idle
/// timeouts.
pub fn time_observed(program: &Program) -> TimeObserved {
    let data = program.architecture.times();
    if !program.meters.is_empty()
        || !program.digests.is_empty()
        || program.tables.iter().any(|table| table.support_timeout)
    {
        return TimeObserved::Fully;
    }
    match uses(program, &all_statements(program), data) {
        true => TimeObserved::Microseconds,
        false => TimeObserved::Not,
    }
}

fn all_statements(program: &Program) -> Vec<&StmtKind> {
    let statements = program.bodies().flat_map(ir::statements);
    statements.map(|stmt| &stmt.kind).collect()
}

/// Returns true if some statement writes anything but a copy of its own value to `priority`.
fn sets_priority(program: &Program, statements: &[&StmtKind], priority: SlotId) -> bool {
    // Slots whose every value is a copy of the priority: all that are written by plain copies only, less those that copy
    // something else, until none is left out any more.
    let mut copies: BTreeSet<SlotId> = statements
        .iter()
        .filter_map(|statement| destination(statement))
        .collect();
    // Others also assign to slots that are not locals.
    let fields = program.headers.iter().flat_map(|header| &header.fields);
    let parameters = program.actions.iter().flat_map(|action| &action.params);
    for slot in fields.map(|f| f.slot).chain(parameters.map(|p| p.slot)) {
        copies.remove(&slot);
    }
    copies.insert(priority);
    loop {
        let strange: Vec<SlotId> = statements
            .iter()
            .filter_map(|statement| {
                let dst = destination(statement)?;
                let copy = match statement {
                    StmtKind::Assign {
                        value: Expr::Slot(from),
                        ..
                    } => copies.contains(from),
                    _ => false,
                };
                (!copy && copies.contains(&dst)).then_some(dst)
            })
            .collect();
        if strange.is_empty() {
            return false;
        }
        if strange.contains(&priority) {
            return true;
        }
        for slot in strange {
            copies.remove(&slot);
        }
    }
}

/// Returns true if a value that comes from one of these slots reaches anything but local variables, or decides how the
/// parser continues.
fn uses(program: &Program, statements: &[&StmtKind], from: Vec<SlotId>) -> bool {
    let mut tainted = BTreeSet::from_iter(from);
    let headers = program.headers.iter().flat_map(|header| &header.fields);
    let fields: BTreeSet<SlotId> = headers.map(|field| field.slot).collect();
    // Fields that are brought along have their effect in the other pipeline.
    let mut effects = program.architecture.decisions();
    if program.architecture.description().deparses_between() {
        effects.extend(program.field_lists.iter().flat_map(|list| &list.slots));
    }
    loop {
        let before = tainted.len();
        for statement in statements {
            if !statement.reads(&|slot| tainted.contains(&slot)) {
                continue;
            }
            match statement {
                StmtKind::Assign { dst, .. } if !fields.contains(dst) && !effects.contains(dst) => {
                    tainted.insert(*dst);
                }
                _ => return true,
            }
        }
        if tainted.len() == before {
            let mut keys = program.select_keys();
            return keys.any(|key| key.reads(&|slot| tainted.contains(&slot)));
        }
    }
}

/// Returns the slot that a statement writes, or `None` if it writes none.
fn destination(statement: &StmtKind) -> Option<SlotId> {
    match statement {
        StmtKind::Apply { action_run, .. } => *action_run,
        _ => statement.destination(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_programs::Bodies;

    /// Returns true if [`cares_about_queues`] holds for a program with these bodies.
    fn cares(ingress: &'static str, egress: &'static str) -> bool {
        let bodies = Bodies {
            ingress,
            egress,
            ..Bodies::default()
        };
        cares_about_queues(&bodies.program())
    }

    #[test]
    fn times_and_what_measures_them_count() {
        let program = |ingress, egress| {
            let bodies = Bodies {
                ingress,
                egress,
                ..Bodies::default()
            };
            bodies.program()
        };
        // Its meters, digests and timeouts suffice, used or not.
        assert_eq!(time_observed(&program("", "")), TimeObserved::Fully);
        let cases = [
            ("assign %1 = 9w1", "", false),
            ("", "assign %20 = %4", false),
            ("assign %32 = zext(%9, 100)", "", false),
            ("assign %18 = slice(%9, 15, 0)", "", true),
            ("if eq(%9, 48w3) { assign %1 = 9w511 }", "", true),
            (
                "",
                "assign %32 = zext(%10, 100) register_write r1[32w0] = %32",
                true,
            ),
            ("", "assign %20 = %7", true),
        ];
        let selecting = Bodies {
            states: r#"state s0 "start" @0:1 { extract h0 @0:2 select (%9) { case (48w3 & 48w7) s1 case (_) accept } }
                state s1 "other" @0:3 { extract h1 @0:4 goto accept }"#,
            ..Bodies::default()
        };
        let timeless = |program: &Program| {
            let mut program = program.clone();
            program.meters.clear();
            program.digests.clear();
            let tables = program.tables.iter_mut();
            tables.for_each(|table| table.support_timeout = false);
            program
        };
        assert_eq!(
            time_observed(&timeless(&selecting.program())),
            TimeObserved::Microseconds,
            "the parser"
        );
        for (ingress, egress, expected) in cases {
            let timeless = timeless(&program(ingress, egress));
            let expected = match expected {
                true => TimeObserved::Microseconds,
                false => TimeObserved::Not,
            };
            assert_eq!(time_observed(&timeless), expected, "{ingress} | {egress}");
        }
    }

    #[test]
    fn only_what_has_an_effect_counts() {
        let cases = [
            ("assign %1 = 9w1", "", false),
            // A length, a port and a time are no queue's business.
            ("", "assign %18 = slice(%4, 15, 0)", false),
            ("assign %15 = 3w7", "", true),
            ("if %30 { assign %15 = 3w1 }", "", true),
            // Depths to a header, a register, a condition, by way of a local.
            ("", "assign %20 = zext(%6, 32)", true),
            (
                "",
                "assign %28 = %5 assign %31 = %28 assign %20 = %31",
                true,
            ),
            ("", "register_write r0[%28] = %7", true),
            ("", "if eq(%8, 19w3) { assign %1 = 9w511 }", true),
            // Into a local and back, as around a call.
            (
                "assign %28 = %5 assign %5 = %28",
                "assign %33 = %7 assign %7 = %33",
                false,
            ),
        ];
        for (ingress, egress, expected) in cases {
            assert_eq!(cares(ingress, egress), expected, "{ingress} | {egress}");
        }
    }
}
