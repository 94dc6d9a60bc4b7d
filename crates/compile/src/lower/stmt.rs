//! Statements.

use ir::{BinaryOp, Bits, Expr, LabelId, StmtKind};
use syntax::source::Span;

use super::body::{ActionExit, TableAction};
use super::place::{Lvalue, Place, Value};
use super::{Binding, Body, Code, build};
use crate::errors;
use crate::hir::{self, StmtKind as Hir, VarId, VarKind};
use crate::types::Ty;

/// The targets of `return`, `break` and `continue`.
#[derive(Debug)]
pub(super) enum Exit {
    /// Leaves a function, action or control.
    Return {
        label: LabelId,
        used: bool,
        result: Option<Place>,
    },
    /// Leaves a loop.
    Break { label: LabelId },
    /// Goes on with the next round of a loop.
    Continue { label: LabelId, used: bool },
}

impl Body<'_, '_> {
    /// Lowers statements in order, until the program exceeds its allowed size.
    pub(super) fn statements(&mut self, stmts: &[hir::Stmt]) {
        for stmt in stmts {
            if self.exhausted() {
                return;
            }
            self.spend(1);
            self.at(stmt.span);
            self.statement(stmt);
        }
    }

    fn body(&mut self, stmts: &[hir::Stmt]) -> Vec<ir::Stmt> {
        self.capture(|l| l.statements(stmts))
    }

    fn statement(&mut self, stmt: &hir::Stmt) {
        match &stmt.kind {
            Hir::Declare(var, init) => self.declare(*var, init.as_ref()),
            Hir::Instance(var) => {
                let path = self.current_path();
                let object = self.instance(*var, &path);
                self.bind_name(*var, Binding::Value(Value::Object(object)));
            }
            Hir::Assign(target, value) => {
                let lvalue = self.target(target, value);
                let value_of = self.eval(value);
                self.assign(&lvalue, value_of, &target.ty, stmt.span);
            }
            Hir::AssignOp(op, target, value) => {
                // The old value is that from before the right side (specification, "Assignment statement").
                let lvalue = self.target(target, value);
                let old = self.read_lvalue(&lvalue);
                let mut old = [self.evaluated(old, target)];
                let right = self.scalar(value);
                self.keep(&mut old, true);
                let [old] = old;
                let left = self.bits(old.value, &target.ty);
                let signed = self.module.types.is_signed(&target.ty);
                let result = self.apply_operator(*op, left, right, signed);
                self.assign(&lvalue, result, &target.ty, stmt.span);
            }
            Hir::Call(call) => {
                let _ = self.eval(call);
            }
            Hir::If(cond, then, otherwise)
                if self.stage().is_parser()
                    && (applies_parser(then) || applies_parser(otherwise)) =>
            {
                self.parser_branches(cond, then, otherwise, stmt.span);
            }
            Hir::If(cond, then, otherwise) => {
                let cond = self.scalar(cond);
                let then = self.body(then);
                let otherwise = self.body(otherwise);
                self.at(stmt.span);
                self.emit_if(cond, then, otherwise);
            }
            Hir::SwitchAction {
                table,
                cases,
                default,
            } => {
                let run = self.new_slot("$action_run", 32);
                self.apply_table(*table, None, Some(run), stmt.span);
                let mut out = Vec::new();
                for (labels, body) in cases {
                    let values: Vec<Bits> = labels
                        .iter()
                        .map(|i| Bits::from_u64(32, *i as u64))
                        .collect();
                    out.push((values, self.body(body)));
                }
                let default = self.body(default);
                self.at(stmt.span);
                self.emit_switch(Expr::Slot(run), out, default);
            }
            Hir::Switch {
                value,
                cases,
                default,
            } => self.switch(value, cases, default, stmt.span),
            Hir::Return(value) => self.return_statement(value.as_ref()),
            Hir::Exit => self.exit(),
            Hir::Break => self.jump_out(false),
            Hir::Continue => self.jump_out(true),
            Hir::Block(stmts) => self.statements(stmts),
            Hir::For {
                init,
                condition,
                update,
                body,
            } => {
                self.statements(init);
                self.looped(
                    |l| l.scalar(condition),
                    |l| l.statements(body),
                    |l| l.statements(update),
                );
            }
            Hir::ForRange {
                variable,
                low,
                high,
                body,
            } => self.for_range(*variable, low, high, body),
            Hir::ForEach {
                variable,
                collection,
                body,
            } => self.for_each(*variable, collection, body),
        }
    }

    /// Allocates a local variable and emits the assignment of its initial value. A variable without one
    /// starts as zeros, again in every round of a loop.
    pub(super) fn declare(&mut self, var: VarId, init: Option<&hir::Expr>) {
        let def = self.module.var(var);
        let (ty, span) = (&def.ty, def.span);
        let value = match init {
            Some(init) => self.eval(init),
            None => self.unset_value(ty),
        };
        let place = self.storage_of(var);
        self.bind_name(var, Binding::Place(place.clone()));
        self.assign(&Lvalue::Place(place), value, ty, span);
    }

    fn switch(
        &mut self,
        value: &hir::Expr,
        cases: &[(Vec<hir::Expr>, std::rc::Rc<[hir::Stmt]>)],
        default: &[hir::Stmt],
        span: Span,
    ) {
        let subject = self.scalar(value);
        let mut out = Vec::new();
        for (labels, body) in cases {
            let mut values = Vec::new();
            for label in labels {
                if let Expr::Const(bits) = self.scalar(label) {
                    values.push(bits);
                }
            }
            out.push((values, self.body(body)));
        }
        let default = self.body(default);
        self.at(span);
        self.emit_switch(subject, out, default);
    }

    fn return_statement(&mut self, value: Option<&hir::Expr>) {
        let value = value.map(|e| (self.eval(e), e));
        let innermost = self.exits.iter_mut().rev().find_map(|e| match e {
            Exit::Return {
                label,
                used,
                result,
            } => {
                *used = true;
                Some((*label, result.clone()))
            }
            _ => None,
        });
        let Some((label, result)) = innermost else {
            return;
        };
        if let (Some((value, e)), Some(place)) = (value, result) {
            self.assign(&Lvalue::Place(place), value, &e.ty, e.span);
        }
        self.emit(StmtKind::Break(label));
    }

    /// Emits the statements that `f` emits, as a body that a `return` in it leaves. `result` is the storage
    /// for the returned value; `None` if there is no value.
    pub(super) fn returning(&mut self, result: Option<Place>, f: impl FnOnce(&mut Self)) {
        let label = self.new_label();
        self.returning_to(label, result, f);
    }

    /// Emits the statements that `f` emits, as a body with a given label, as [`Body::returning`] does.
    pub(super) fn returning_to(
        &mut self,
        label: LabelId,
        result: Option<Place>,
        f: impl FnOnce(&mut Self),
    ) {
        self.exits.push(Exit::Return {
            label,
            used: false,
            result,
        });
        let body = self.capture(f);
        let left = |a: &TableAction| a.label == label && a.has_told();
        let used = matches!(self.exits.pop(), Some(Exit::Return { used: true, .. }))
            || self.scope.action.as_ref().is_some_and(left);
        match body.split_last() {
            // A return at the very end needs no jump.
            Some((last, rest))
                if last.kind == StmtKind::Break(label) && !breaks_to(rest, label) =>
            {
                self.splice(rest.to_vec());
            }
            _ if used => self.emit(StmtKind::Block { label, body }),
            _ => self.splice(body),
        }
    }

    pub(super) fn exit(&mut self) {
        // A parameter passed by copy is copied back even so.
        let copies: Vec<_> = self
            .scope
            .left_by_exit()
            .map(|s| s.copies.clone())
            .collect();
        for frame in copies {
            self.copy_back(&frame);
        }
        let action = self.scope.left_by_exit().find_map(|s| s.action.as_ref());
        let Some(action) = action.filter(|a| a.exit.get() != ActionExit::Direct) else {
            return self.emit(StmtKind::Exit);
        };
        // The action ends, and where the table is applied there is an exit.
        action.exit.set(ActionExit::Told(true));
        let label = action.label;
        let slot = match self.made.exit_slot {
            Some(slot) => slot,
            None => self.new_slot("$exit", 1),
        };
        self.made.exit_slot = Some(slot);
        self.set(slot, build::boolean(true));
        self.emit(StmtKind::Break(label));
    }

    fn jump_out(&mut self, is_continue: bool) {
        let target = self.exits.iter_mut().rev().find_map(|e| match e {
            Exit::Break { label } if !is_continue => Some(*label),
            Exit::Continue { label, used } if is_continue => {
                *used = true;
                Some(*label)
            }
            _ => None,
        });
        if let Some(label) = target {
            self.emit(StmtKind::Break(label));
        }
    }

    /// Emits a loop. `condition`, `body` and `update` emit the statements of one round, in this order. The
    /// loop ends when the condition, which `condition` returns, is false.
    fn looped(
        &mut self,
        condition: impl FnOnce(&mut Self) -> Expr,
        body: impl FnOnce(&mut Self),
        update: impl FnOnce(&mut Self),
    ) {
        let label = self.new_label();
        let round = self.new_label();
        self.exits.push(Exit::Break { label });
        let stmts = self.capture(|l| {
            let cond = condition(l);
            let leave = l.capture(|l| l.emit(StmtKind::Break(label)));
            l.emit_if(cond, Vec::new(), leave);
            l.round(round, body);
            update(l);
        });
        self.exits.pop();
        self.emit(StmtKind::Loop { label, body: stmts });
    }

    /// Emits the statements that `body` emits, as the body of one round of a loop, which a `continue` in it
    /// leaves.
    fn round(&mut self, label: LabelId, body: impl FnOnce(&mut Self)) {
        self.exits.push(Exit::Continue { label, used: false });
        let body = self.capture(body);
        match self.exits.pop() {
            Some(Exit::Continue { used: true, .. }) => self.emit(StmtKind::Block { label, body }),
            _ => self.splice(body),
        }
    }

    fn for_range(
        &mut self,
        variable: VarId,
        low: &hir::Expr,
        high: &hir::Expr,
        body: &[hir::Stmt],
    ) {
        let values = self.eval_all(&[low, high]);
        let [low_value, high_value] = &values[..] else {
            return;
        };
        let (first, last) = (
            self.bits(low_value.clone(), &low.ty),
            self.bits(high_value.clone(), &high.ty),
        );
        let width = first.width(&self.program.slots);
        let place = self.storage_of(variable);
        let Place::Scalar(counter) = place else {
            return;
        };
        // A write of the body to the variable must not change the values of the next rounds.
        let var = &self.module.var(variable).kind;
        let written = matches!(var, VarKind::Loop { written: true }).then_some(counter);
        let counter = match written {
            Some(_) => self.new_slot("$round", width),
            None => counter,
        };
        let end = self.new_slot("$end", width);
        let done = self.new_slot("$done", 1);
        self.bind_name(variable, Binding::Place(place));
        self.set(end, last);
        self.set(counter, first);
        self.set(done, build::boolean(false));
        let signed = self.module.types.is_signed(&low.ty);
        let beyond = if signed { BinaryOp::Slt } else { BinaryOp::Ult };
        let slots = &self.program.slots;
        let over = build::binary(beyond, Expr::Slot(end), Expr::Slot(counter), slots);
        // The last value is used too, even when counting further would overflow.
        let cond = build::not(build::binary(BinaryOp::Or, Expr::Slot(done), over, slots));
        let at_end = build::binary(BinaryOp::Eq, Expr::Slot(counter), Expr::Slot(end), slots);
        let one = build::constant(width, 1);
        let next = build::binary(BinaryOp::Add, Expr::Slot(counter), one, slots);
        self.looped(
            |_| cond,
            |l| {
                if let Some(dst) = written {
                    let value = Expr::Slot(counter);
                    l.set(dst, value);
                }
                l.statements(body);
            },
            |l| {
                l.set(done, at_end);
                l.set(counter, next);
            },
        );
    }

    /// Lowers a loop over the items of a list, tuple or header stack as one copy of the body for each item.
    /// Reports more than 256 items.
    fn for_each(&mut self, variable: VarId, collection: &hir::Expr, body: &[hir::Stmt]) {
        let value = self.eval(collection);
        let (Value::Fields(items) | Value::Stack(items, _)) = value else {
            return;
        };
        if items.len() > 256 {
            return self.report(errors::unsupported(
                collection.span,
                "a loop over more than 256 items",
            ));
        }
        let ty: Ty = self.module.var(variable).ty.clone();
        let place = self.storage_of(variable);
        self.bind_name(variable, Binding::Place(place.clone()));
        let items: Vec<Value> = items
            .into_iter()
            .map(|v| self.snapshot(v, &ty, collection.span))
            .collect();
        let label = self.new_label();
        self.exits.push(Exit::Break { label });
        let stmts = self.capture(|l| {
            for item in items {
                l.assign(&Lvalue::Place(place.clone()), item, &ty, collection.span);
                let round = l.new_label();
                l.round(round, |l| l.statements(body));
            }
        });
        self.exits.pop();
        match breaks_to(&stmts, label) {
            true => self.emit(StmtKind::Block { label, body: stmts }),
            false => self.splice(stmts),
        }
    }
}

impl Code<'_> {
    /// Emits a switch, without the cases that list no values. If `value` is constant, emits the statements of
    /// the chosen case alone.
    pub(super) fn emit_switch(
        &mut self,
        value: Expr,
        cases: Vec<(Vec<Bits>, Vec<ir::Stmt>)>,
        default: Vec<ir::Stmt>,
    ) {
        let cases: Vec<_> = cases
            .into_iter()
            .filter(|(values, _)| !values.is_empty())
            .collect();
        if let Expr::Const(known) = &value {
            let chosen = cases.into_iter().find(|(values, _)| values.contains(known));
            return self.splice(chosen.map_or(default, |(_, body)| body));
        }
        match cases.is_empty() {
            true => self.splice(default),
            false => self.emit(StmtKind::Switch {
                value,
                cases,
                default,
            }),
        }
    }
}

/// Returns whether some statement breaks out of the block or loop with the label `wanted`.
pub(super) fn breaks_to(stmts: &[ir::Stmt], wanted: ir::LabelId) -> bool {
    ir::statements(stmts).any(|stmt| stmt.kind == StmtKind::Break(wanted))
}

/// Returns whether the statements apply a parser or control. Used in parsers, which can only apply sub-parsers.
fn applies_parser(stmts: &[hir::Stmt]) -> bool {
    let block = |t: &hir::CallTarget| {
        matches!(t, hir::CallTarget::Block(_) | hir::CallTarget::BlockType(_))
    };
    super::control::applications(stmts, &block) > 0
}
