//! Separates the paths on which a packet is handed over to the switch from all others.
//!
//! If a program requests a clone, resubmission or recirculation under a condition, the statements after it
//! are duplicated for the paths with the request, which end without joining the others. What such paths set
//! (marks, headers of a report) is then known to be unset on all other paths. This module knows nothing of
//! machine code, and the body that it returns does the same as the given one.

use ir::{Effect, Stmt, StmtKind};

/// The number of statements that may be duplicated; beyond it, no paths are separated.
const MAX_STATEMENTS: usize = 1000;

/// Returns a control's body in which the statements after a request (a clone, resubmission or recirculation)
/// under a condition are duplicated, so that paths with a request never join the others. Returns `None` if
/// there is no such request or the body would become too large.
pub(super) fn part(body: &[Stmt]) -> Option<Vec<Stmt>> {
    let mut parting = Parting {
        found: false,
        statements: 0,
    };
    let parted = parting.body(body, None);
    (parting.found && !parting.is_too_much()).then_some(parted)
}

/// Returns true if a statement or one nested in it is a request; the bodies of actions are not searched.
fn requests(stmt: &Stmt) -> bool {
    ir::statements(std::slice::from_ref(stmt)).any(|stmt| is_request(&stmt.kind))
}

fn is_request(stmt: &StmtKind) -> bool {
    stmt.effect() == Effect::Request
}

struct Parting {
    /// True if some path was separated from the others.
    found: bool,
    /// The number of statements that were duplicated.
    statements: usize,
}

impl Parting {
    fn is_too_much(&self) -> bool {
        self.statements > MAX_STATEMENTS
    }

    /// Returns a body in which each path with a request is continued by a copy of the statements `behind` and
    /// an exit, so that it does not join other paths. `behind` is `None` for the whole control: requests
    /// outside of any condition are on all paths.
    fn body(&mut self, body: &[Stmt], behind: Option<&[Stmt]>) -> Vec<Stmt> {
        let mut result = Vec::with_capacity(body.len());
        for (i, stmt) in body.iter().enumerate() {
            let rest = &body[i + 1..];
            if let Some(behind) = behind.filter(|_| is_request(&stmt.kind) && !self.is_too_much()) {
                self.found = true;
                self.statements += ir::statements(behind).count();
                result.extend(body[i..].iter().chain(behind).cloned());
                result.push(Stmt {
                    kind: StmtKind::Exit,
                    ..stmt.clone()
                });
                break;
            }
            result.push(match requests(stmt) {
                true => self.inside(stmt, &[rest, behind.unwrap_or_default()].concat()),
                false => stmt.clone(),
            });
        }
        result
    }

    /// Returns a copy of a statement in which nested paths with requests (see [`requests`]) are continued by
    /// the statements `behind`. Only `if` statements and blocks are searched.
    fn inside(&mut self, stmt: &Stmt, behind: &[Stmt]) -> Stmt {
        let kind = match &stmt.kind {
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => StmtKind::If {
                cond: cond.clone(),
                then: self.body(then, Some(behind)),
                otherwise: self.body(otherwise, Some(behind)),
            },
            StmtKind::Block { label, body } => StmtKind::Block {
                label: *label,
                body: self.body(body, Some(behind)),
            },
            kind => kind.clone(),
        };
        Stmt {
            kind,
            ..stmt.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::part;
    use ir::{BinaryOp, Bits, Expr, HeaderId, LabelId, Loc, Stmt, StmtKind};

    fn stmt(kind: StmtKind) -> Stmt {
        Stmt {
            kind,
            loc: Loc::default(),
        }
    }

    fn mark(number: u32) -> Stmt {
        stmt(StmtKind::SetValid(HeaderId(number)))
    }

    fn again() -> Stmt {
        stmt(StmtKind::Resubmit { preserve: None })
    }

    fn choice(then: Vec<Stmt>, otherwise: Vec<Stmt>) -> Stmt {
        let one = Box::new(Expr::Const(Bits::from_u64(8, 1)));
        let cond = Expr::Binary {
            op: BinaryOp::Eq,
            a: one.clone(),
            b: one,
        };
        stmt(StmtKind::If {
            cond,
            then,
            otherwise,
        })
    }

    fn exit() -> Stmt {
        stmt(StmtKind::Exit)
    }

    #[test]
    fn what_follows_a_request_is_there_once_more() {
        let body = [
            choice(vec![mark(1), again(), mark(2)], vec![mark(3)]),
            mark(4),
        ];
        let parted = [
            choice(
                vec![mark(1), again(), mark(2), mark(4), exit()],
                vec![mark(3)],
            ),
            mark(4),
        ];
        assert_eq!(part(&body), Some(parted.to_vec()));
    }

    #[test]
    fn a_request_that_ends_a_control_exits() {
        let label = LabelId(0);
        let block = |body| stmt(StmtKind::Block { label, body });
        let body = [block(vec![choice(vec![again()], vec![])])];
        let parted = [block(vec![choice(vec![again(), exit()], vec![])])];
        assert_eq!(part(&body), Some(parted.to_vec()));
    }

    #[test]
    fn a_control_stays_whole_without_requests_or_with_one_on_all_paths_or_with_a_long_rest() {
        assert_eq!(part(&[choice(vec![mark(1)], vec![]), mark(2)]), None);
        assert_eq!(part(&[mark(1), again(), mark(2)]), None);
        let mut long = vec![choice(vec![again()], vec![])];
        long.extend((0..2_000).map(mark));
        assert_eq!(part(&long), None);
    }
}
