//! The emission of IR statements into lists.

use std::ops::{Deref, DerefMut};

use ir::{Expr, Loc, SlotId, StmtKind};
use syntax::source::Span;

use super::build;
use super::unit::Unit;

/// The statements being emitted. It knows storage and values, but no names.
pub(crate) struct Code<'m> {
    unit: Unit<'m>,
    /// The lists of statements that are being filled, innermost last.
    pub(super) out: Vec<Vec<ir::Stmt>>,
    loc: Loc,
}

impl<'m> Deref for Code<'m> {
    type Target = Unit<'m>;

    fn deref(&self) -> &Unit<'m> {
        &self.unit
    }
}

impl DerefMut for Code<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.unit
    }
}

impl<'m> Code<'m> {
    pub(super) fn new(unit: Unit<'m>) -> Code<'m> {
        Code {
            unit,
            out: vec![Vec::new()],
            loc: Loc::default(),
        }
    }

    pub(super) fn into_unit(self) -> Unit<'m> {
        self.unit
    }

    pub(super) fn emit(&mut self, kind: StmtKind) {
        self.spend(1);
        let loc = self.loc;
        if let Some(out) = self.out.last_mut() {
            out.push(ir::Stmt { kind, loc });
        }
    }

    /// Emits the assignment of `value` to the slot `dst`.
    pub(super) fn set(&mut self, dst: SlotId, value: Expr) {
        self.emit(StmtKind::Assign { dst, value });
    }

    /// Emits an `if` on `cond` with the two bodies. If `cond` is constant, emits the statements of the chosen
    /// body alone.
    pub(super) fn emit_if(&mut self, cond: Expr, then: Vec<ir::Stmt>, otherwise: Vec<ir::Stmt>) {
        match build::known(&cond) {
            Some(true) => self.splice(then),
            Some(false) => self.splice(otherwise),
            None if then.is_empty() && otherwise.is_empty() => {}
            None if then.is_empty() => {
                self.emit(StmtKind::If {
                    cond: build::not(cond),
                    then: otherwise,
                    otherwise: then,
                });
            }
            None => self.emit(StmtKind::If {
                cond,
                then,
                otherwise,
            }),
        }
    }

    pub(super) fn splice(&mut self, stmts: Vec<ir::Stmt>) {
        if let Some(out) = self.out.last_mut() {
            out.extend(stmts);
        }
    }

    /// Runs `f`, and returns the statements that `f` emits instead of adding them to the current list.
    pub(super) fn capture(&mut self, f: impl FnOnce(&mut Self)) -> Vec<ir::Stmt> {
        self.out.push(Vec::new());
        f(self);
        self.out.pop().unwrap_or_default()
    }

    /// Sets the source location that all statements emitted from now on get.
    pub(super) fn at(&mut self, span: Span) {
        self.loc = self.locate(span);
    }
}
