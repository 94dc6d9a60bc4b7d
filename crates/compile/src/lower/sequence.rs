//! Order of evaluation: keeps values that were evaluated from being changed by what is evaluated after them.
//!
//! A value is an expression over slots. If a later evaluation emits statements that write these slots, the
//! value is copied at the place where it was evaluated (specification, "Calling convention": "the value of
//! each argument is saved into a temporary", and "Expression evaluation order"). A value whose slots nothing
//! writes meanwhile needs no copy.

use std::collections::BTreeSet;

use ir::{SlotId, Stmt, StmtKind};
use syntax::source::Span;

use super::place::Value;
use super::{Binding, Body, Code, Unit};
use crate::hir::{self, Arg, Args, ExprKind, VarId};
use crate::types::Ty;

/// A value, and its place among the emitted statements, after which it was evaluated.
pub(super) struct Evaluated {
    pub value: Value,
    /// True if a later statement changes what the value reads, so that it was copied.
    pub kept: bool,
    at: usize,
    ty: Ty,
    span: Span,
}

impl Body<'_, '_> {
    /// Evaluates the arguments of an extern in the order in which they are written, if one of them has side
    /// effects, and returns variables that hold the evaluated values and lvalues in place of the arguments.
    /// Otherwise returns the arguments unevaluated.
    pub(super) fn in_turn(&mut self, args: &Args) -> Vec<Arg> {
        let effects = args
            .iter()
            .filter_map(Arg::expr)
            .any(hir::Expr::has_effects);
        if args.len() < 2 || !effects {
            return args.to_vec();
        }
        let mut out = args.to_vec();
        let mut values = Vec::new();
        for i in args.in_order() {
            match &args[i] {
                Arg::In(e) if !e.is_literal() => {
                    let value = self.eval(e);
                    values.push((i, self.evaluated(value, e)));
                }
                Arg::Out(e) | Arg::InOut(e) => {
                    let lvalue = self.lvalue(e);
                    let lvalue = self.saved(lvalue);
                    let variable = self.evaluated_argument(Binding::Lvalue(lvalue), e);
                    out[i] = match &args[i] {
                        Arg::Out(_) => Arg::Out(variable),
                        _ => Arg::InOut(variable),
                    };
                }
                _ => {}
            }
        }
        let (positions, mut values): (Vec<usize>, Vec<Evaluated>) = values.into_iter().unzip();
        self.keep(&mut values, true);
        for (i, value) in positions.into_iter().zip(values) {
            if let Arg::In(e) = &args[i] {
                out[i] = Arg::In(self.evaluated_argument(Binding::Value(value.value), e));
            }
        }
        out
    }

    /// Returns an expression that replaces the already evaluated argument `e`: a new variable, bound to
    /// `binding`.
    fn evaluated_argument(&mut self, binding: Binding, e: &hir::Expr) -> hir::Expr {
        let var = VarId(self.module.vars.len() as u32 + self.made.evaluated_arguments);
        self.made.evaluated_arguments += 1;
        self.bind_name(var, binding);
        hir::Expr::new(ExprKind::Var(var), e.ty.clone(), e.span)
    }
}

impl Code<'_> {
    /// Returns a value together with its place: the number of statements emitted before it.
    pub(super) fn evaluated(&self, value: Value, expr: &hir::Expr) -> Evaluated {
        Evaluated {
            value,
            kept: false,
            at: self.out.last().map_or(0, Vec::len),
            ty: expr.ty.clone(),
            span: expr.span,
        }
    }

    /// Copies each of `values`, given in the order of their evaluation, that statements emitted after its
    /// evaluation would change. If `all` is true and the option `copy_arguments` is set, copies the others
    /// too.
    pub(super) fn keep(&mut self, values: &mut [Evaluated], all: bool) {
        let mut written = BTreeSet::new();
        let mut end = self.out.last().map_or(0, Vec::len);
        // From the end, so that the copies of one value do not move the places of those before it.
        for item in values.iter_mut().rev() {
            let later = self.out.last().and_then(|out| out.get(item.at..end));
            self.written(later.unwrap_or_default(), &mut written);
            end = item.at;
            let mut changed = all && self.copies_arguments;
            (item.value)
                .for_each_expr(&mut |e| changed |= e.reads(&|slot| written.contains(&slot)));
            if changed {
                let rest = self.out.last_mut().map(|out| out.split_off(item.at));
                let value = std::mem::replace(&mut item.value, Value::Nothing);
                item.value = self.snapshot(value, &item.ty, item.span);
                item.kept = true;
                self.splice(rest.unwrap_or_default());
            }
        }
    }
}

impl Unit<'_> {
    /// Adds to `out` the slots that statements may write, including those of headers whose validity they
    /// change and those that the actions of tables write.
    fn written(&self, stmts: &[Stmt], out: &mut BTreeSet<SlotId>) {
        for stmt in ir::statements(stmts) {
            out.extend(stmt.kind.destination());
            match &stmt.kind {
                StmtKind::SetValid(id)
                | StmtKind::SetInvalid(id)
                | StmtKind::Extract { header: id, .. } => {
                    let header = &self.program.headers[id.index()];
                    out.insert(header.valid);
                    out.extend(header.field_slots());
                }
                StmtKind::Apply {
                    table,
                    hit,
                    action_run,
                    ..
                } => {
                    out.extend(hit.iter().chain(action_run));
                    for action in &self.program.tables[table.index()].actions {
                        self.written(&self.program.actions[action.action.index()].body, out);
                        for bound in self.made.bound.get(&action.action).into_iter().flatten() {
                            self.written(&bound.before, out);
                            self.written(&bound.after, out);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}
