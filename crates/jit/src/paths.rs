//! Which headers are valid when the parser accepts, as far as the state that accepts tells.
//!
//! What follows the parser is worth generating once for each of a few such outcomes: with the validity of headers known, most of
//! its conditions are constants. This module looks at the parser only, and gives up on a state wherever it is not sure.

use ir::{Program, SlotId, Stmt, StmtKind, Target, Transition};

/// By header: whether it is valid.
pub(crate) type Validity = Vec<bool>;

/// What is known at the beginning of a state.
#[derive(Clone, PartialEq, Eq)]
enum Known {
    /// Nothing goes there, as far as seen.
    Unreached,
    /// The same on every way.
    Same(Validity),
    /// Not the same on every way, or not understood.
    Unsure,
}

/// By state: the validity of headers whenever it accepts, if that is certain. No error has been set then.
pub(crate) fn accepted(program: &Program) -> Vec<Option<Validity>> {
    let states = &program.parser.states;
    let mut known = vec![Known::Unreached; states.len()];
    let mut result = vec![None; states.len()];
    known[0] = Known::Same(vec![false; program.headers.len()]);
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        let behind = match &known[at] {
            Known::Same(validity) => after(program, &states[at].body, validity.clone()),
            Known::Unsure | Known::Unreached => None,
        };
        each_target(&states[at].transition, |target| {
            let Target::State(to) = target else {
                return;
            };
            let to = to.index();
            let joined = match (&known[to], &behind) {
                (Known::Unreached, Some(behind)) => Known::Same(behind.clone()),
                (Known::Same(validity), Some(behind)) if validity == behind => return,
                (Known::Unsure, _) => return,
                _ => Known::Unsure,
            };
            known[to] = joined;
            open.push(to);
        });
        // Seen again, with less known, if anything changes.
        result[at] = behind;
    }
    result
}

/// Validity behind the statements of a state.
fn after(program: &Program, body: &[Stmt], mut validity: Validity) -> Option<Validity> {
    let is_kept = |slot: SlotId| {
        slot == program.standard.parser_error || program.headers.iter().any(|h| h.valid == slot)
    };
    for stmt in body {
        match &stmt.kind {
            StmtKind::Extract { header, .. } => validity[header.index()] = true,
            kind if leaves_alone(kind, &is_kept) => {}
            _ => return None,
        }
    }
    Some(validity)
}

/// Whether a statement, when what is behind it is reached, has not changed the slots that are kept.
fn leaves_alone(stmt: &StmtKind, is_kept: &dyn Fn(SlotId) -> bool) -> bool {
    let all = |body: &[Stmt]| body.iter().all(|s| leaves_alone(&s.kind, is_kept));
    match stmt {
        StmtKind::Assign { dst, .. } | StmtKind::Lookahead { dst, .. } => !is_kept(*dst),
        StmtKind::Advance { .. } | StmtKind::Reject { .. } => true,
        StmtKind::If {
            then, otherwise, ..
        } => all(then) && all(otherwise),
        _ => false,
    }
}

fn each_target(transition: &Transition, mut each: impl FnMut(Target)) {
    match transition {
        Transition::Goto(target) => each(*target),
        Transition::Select { cases, .. } => cases.iter().for_each(|case| each(case.target)),
    }
}

/// Whether running the parser twice for a packet is the same as running it once.
pub(crate) fn is_repeatable(program: &Program) -> bool {
    fn all(body: &[Stmt]) -> bool {
        body.iter().all(|stmt| match &stmt.kind {
            StmtKind::Extract { .. }
            | StmtKind::Lookahead { .. }
            | StmtKind::Advance { .. }
            | StmtKind::Reject { .. }
            | StmtKind::Assign { .. }
            | StmtKind::SetValid(_)
            | StmtKind::SetInvalid(_)
            | StmtKind::Break(_) => true,
            StmtKind::If {
                then, otherwise, ..
            } => all(then) && all(otherwise),
            StmtKind::Switch { cases, default, .. } => {
                cases.iter().all(|(_, case)| all(case)) && all(default)
            }
            StmtKind::Block { body, .. } | StmtKind::Loop { body, .. } => all(body),
            _ => false,
        })
    }
    program.parser.states.iter().all(|state| all(&state.body))
}

/// How many statements follow the parser, those of actions counted for each table that has them.
pub(crate) fn statements_behind_parser(program: &Program) -> usize {
    let controls = [
        &program.verify_checksum,
        &program.ingress,
        &program.egress,
        &program.compute_checksum,
        &program.deparser,
    ];
    controls.iter().map(|c| statements(program, c)).sum()
}

fn statements(program: &Program, stmts: &[Stmt]) -> usize {
    let inside = |stmt: &Stmt| match &stmt.kind {
        StmtKind::If {
            then, otherwise, ..
        } => statements(program, then) + statements(program, otherwise),
        StmtKind::Switch { cases, default, .. } => {
            let cases: usize = (cases.iter()).map(|(_, c)| statements(program, c)).sum();
            cases + statements(program, default)
        }
        StmtKind::Block { body, .. } | StmtKind::Loop { body, .. } => statements(program, body),
        StmtKind::Apply { table, .. } => (program.tables[table.index()].actions.iter())
            .map(|a| statements(program, &program.actions[a.action.index()].body))
            .sum(),
        _ => 0,
    };
    stmts.iter().map(|stmt| 1 + inside(stmt)).sum()
}
