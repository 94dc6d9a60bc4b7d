//! Statements.

use std::collections::BTreeSet;
use std::rc::Rc;

use syntax::ast::{self, StmtKind as Ast};
use syntax::source::Span;

use super::call::arc;
use super::scope::Symbol;
use super::{Checked, Checker, Place, shared};
use crate::errors;
use crate::hir::{BinaryOp, CallTarget, Expr, ExprKind, Stmt, StmtKind, VarKind};
use crate::types::Ty;

/// The labels of each case of a `switch`, and its statements.
type Cases<L> = Vec<(Vec<L>, Rc<[Stmt]>)>;

impl Checker {
    /// Checks the statements of a block in a new scope, and returns them.
    pub(super) fn block(&mut self, block: &ast::Block) -> Rc<[Stmt]> {
        self.scoped(|c| c.statements(&block.stmts))
    }

    pub(super) fn statements(&mut self, stmts: &[ast::Stmt]) -> Rc<[Stmt]> {
        stmts
            .iter()
            .filter_map(|s| self.statement(s))
            .collect::<Vec<_>>()
            .into()
    }

    /// Checks a single statement, such as a branch of an `if`, in a new scope, and returns it.
    fn branch(&mut self, stmt: &ast::Stmt) -> Rc<[Stmt]> {
        self.scoped(|c| c.statements(std::slice::from_ref(stmt)))
    }

    fn statement(&mut self, stmt: &ast::Stmt) -> Option<Stmt> {
        let span = stmt.span;
        let kind = match &stmt.kind {
            Ast::Empty => return None,
            Ast::Assign { op, target, value } => self.assignment(*op, target, value)?,
            Ast::Call(call) => self.call_statement(call)?,
            Ast::If {
                condition,
                then_branch,
                else_branch,
            } => {
                let condition = self.expect(condition, &Ty::Bool);
                let then = self.branch(then_branch);
                let otherwise = else_branch
                    .as_ref()
                    .map_or(Rc::from([]), |s| self.branch(s));
                StmtKind::If(condition, then, otherwise)
            }
            Ast::Switch { subject, cases } => self.switch(subject, cases)?,
            Ast::Return(value) => self.return_statement(value.as_ref(), span)?,
            Ast::Exit => {
                if matches!(self.context.place, Place::State | Place::Function) {
                    self.report(errors::exit_place(span));
                }
                StmtKind::Exit
            }
            Ast::Break | Ast::Continue => {
                let is_break = matches!(stmt.kind, Ast::Break);
                if self.context.loops == 0 {
                    self.report(errors::outside_loop(
                        span,
                        if is_break { "break" } else { "continue" },
                    ));
                    return None;
                }
                if is_break {
                    StmtKind::Break
                } else {
                    StmtKind::Continue
                }
            }
            Ast::Block(block) => StmtKind::Block(self.block(block)),
            Ast::For {
                init,
                condition,
                update,
                body,
                ..
            } => self.for_loop(init, condition, update, body),
            Ast::ForIn {
                variable,
                collection,
                body,
                ..
            } => self.for_in(variable, collection, body)?,
            Ast::Decl(decl) => return self.local_declaration(decl),
        };
        Some(Stmt { kind, span })
    }

    fn assignment(
        &mut self,
        op: Option<BinaryOp>,
        target: &ast::Expr,
        value: &ast::Expr,
    ) -> Option<StmtKind> {
        let left = self.infer(target, None);
        let writable = left.ty == Ty::Missing || self.require_lvalue(&left);
        if matches!(
            left.ty,
            Ty::Extern(..) | Ty::Block(_) | Ty::BlockType(..) | Ty::Void
        ) {
            self.report(errors::not_an_lvalue(left.span));
            return None;
        }
        let Some(op) = op else {
            let want = left.ty.clone();
            let right = if want == Ty::Missing {
                self.infer(value, None)
            } else {
                self.expect(value, &want)
            };
            return writable.then_some(StmtKind::Assign(left, right));
        };
        let right = self.infer(value, None);
        let result = self.binary(
            op,
            left.clone(),
            right,
            target.span.to(value.span),
            target.span.to(value.span),
        );
        let result = self.coerce(result, &left.ty);
        match result.kind {
            ExprKind::Binary(op, _, right) if writable => {
                Some(StmtKind::AssignOp(op, left, *right))
            }
            ExprKind::Cast(inner) if writable => match inner.kind {
                // The operator worked on the underlying type of an enum, which cannot be assigned back.
                ExprKind::Binary(op, _, right) => Some(StmtKind::AssignOp(op, left, *right)),
                _ => None,
            },
            _ => None,
        }
    }

    fn call_statement(&mut self, call: &ast::Expr) -> Option<StmtKind> {
        let value = self.infer(call, None);
        match &value.kind {
            ExprKind::Call(inner) => match inner.target {
                CallTarget::Construct => {
                    self.report(errors::instance_without_name(call.span));
                    None
                }
                _ => Some(StmtKind::Call(value)),
            },
            _ => None,
        }
    }

    fn return_statement(&mut self, value: Option<&ast::Expr>, span: Span) -> Option<StmtKind> {
        let wanted = self.context.ret.clone();
        match (value, &wanted) {
            (None, Ty::Void) => Some(StmtKind::Return(None)),
            (Some(value), Ty::Void) => {
                let value = self.infer(value, None);
                self.report(errors::return_value(value.span));
                None
            }
            (None, _) => {
                let wanted = self.show(&wanted);
                self.report(errors::return_without_value(span, &wanted));
                None
            }
            (Some(value), _) => Some(StmtKind::Return(Some(self.expect(value, &wanted)))),
        }
    }

    fn in_loop<R>(&mut self, f: impl FnOnce(&mut Checker) -> R) -> R {
        self.context.loops += 1;
        let result = f(self);
        self.context.loops -= 1;
        result
    }

    fn for_loop(
        &mut self,
        init: &[ast::Stmt],
        condition: &ast::Expr,
        update: &[ast::Stmt],
        body: &ast::Stmt,
    ) -> StmtKind {
        self.scoped(|c| {
            let init = c.statements(init);
            let condition = c.expect(condition, &Ty::Bool);
            let update = c.statements(update);
            let body = c.in_loop(|c| c.branch(body));
            StmtKind::For {
                init,
                condition,
                update,
                body,
            }
        })
    }

    fn for_in(
        &mut self,
        variable: &ast::Decl,
        collection: &ast::ForCollection,
        body: &ast::Stmt,
    ) -> Option<StmtKind> {
        let ast::DeclKind::Var(var) = &variable.kind else {
            return None;
        };
        let ty = self.resolve(&var.ty);
        self.scoped(|c| {
            let ends = match collection {
                ast::ForCollection::Range(low, high) => {
                    Ok((c.expect(low, &ty), c.expect(high, &ty)))
                }
                ast::ForCollection::Expr(expr) => {
                    Err(c.infer(expr, Some(&Ty::List(Rc::new(ty.clone())))))
                }
            };
            let annotations = shared(&variable.annotations);
            let id = c.new_var(
                arc(&var.name),
                ty.clone(),
                VarKind::Loop { written: false },
                annotations,
                var.name.span,
            );
            c.declare(&var.name, Symbol::Var(id));
            let body = c.in_loop(|c| c.branch(body));
            match ends {
                Ok((low, high)) => {
                    if !matches!(
                        c.module.types.representation(&ty),
                        Ty::Bit(_) | Ty::Signed(_) | Ty::Missing
                    ) {
                        let found = c.show(&ty);
                        c.report(errors::loop_variable(var.name.span, &found));
                        return None;
                    }
                    Some(StmtKind::ForRange {
                        variable: id,
                        low,
                        high,
                        body,
                    })
                }
                Err(collection) => {
                    let collection = c.loop_collection(collection, &ty)?;
                    Some(StmtKind::ForEach {
                        variable: id,
                        collection,
                        body,
                    })
                }
            }
        })
    }

    fn local_declaration(&mut self, decl: &ast::Decl) -> Option<Stmt> {
        let kind = match &decl.kind {
            ast::DeclKind::Var(var) => {
                let (id, init) = self.variable(var, &decl.annotations);
                StmtKind::Declare(id, init)
            }
            ast::DeclKind::Const(constant) => {
                self.constant(constant);
                return None;
            }
            ast::DeclKind::Instantiation(instance) => {
                let id = self.instance(instance, &decl.annotations)?;
                StmtKind::Instance(id)
            }
            _ => {
                self.report(errors::declaration_place(decl.span));
                return None;
            }
        };
        Some(Stmt {
            kind,
            span: decl.span,
        })
    }

    fn switch(&mut self, subject: &ast::Expr, cases: &[ast::SwitchCase]) -> Option<StmtKind> {
        if let ast::ExprKind::Member { base, member } = &subject.kind
            && member.as_str() == "action_run"
            && let Some(table) = self.applied_table(base)
        {
            let applied = self.infer(base, None);
            let (cases, default) = self.switch_cases(cases, |c, label| {
                let position = c.action_label(table, label)?;
                Some((position, position))
            });
            return (applied.ty != Ty::Missing).then_some(StmtKind::SwitchAction {
                table,
                cases,
                default,
            });
        }
        let value = self.infer(subject, None);
        let ty = value.ty.clone();
        if ty == Ty::Int {
            self.report(errors::unsized_int(value.span));
            return None;
        }
        if self.module.types.scalar_width(&ty).is_none() && ty != Ty::Missing {
            let found = self.show(&ty);
            self.report(errors::switch_subject(subject.span, &found));
            return None;
        }
        let (cases, default) = self.switch_cases(cases, |c, label| {
            let label = c.expect(label, &ty);
            let label = c.require_literal(label, "the label of a switch case");
            (label.ty != Ty::Missing).then(|| (format!("{:?}", label.kind), label))
        });
        Some(StmtKind::Switch {
            value,
            cases,
            default,
        })
    }

    /// Checks the cases of a `switch`. Returns the labels and the body of each case, and the body of the
    /// `default` case. `label` checks one label and returns its meaning and a key, by which duplicates are
    /// found; `None` after an error.
    fn switch_cases<K: Ord, L>(
        &mut self,
        cases: &[ast::SwitchCase],
        mut label: impl FnMut(&mut Checker, &ast::Expr) -> Option<(K, L)>,
    ) -> (Cases<L>, Rc<[Stmt]>) {
        let mut groups: Cases<L> = Vec::new();
        let mut default: Rc<[Stmt]> = Rc::from([]);
        let mut labels: Vec<L> = Vec::new();
        let mut seen = BTreeSet::new();
        for (i, case) in cases.iter().enumerate() {
            let is_default = match &case.label {
                ast::SwitchLabel::Default(at) => {
                    if let Some(next) = cases.get(i + 1) {
                        self.report(errors::default_not_last(*at, next.span));
                    }
                    true
                }
                ast::SwitchLabel::Expr(expr) => {
                    if let Some((key, meaning)) = label(self, expr) {
                        match seen.insert(key) {
                            true => labels.push(meaning),
                            false => self.report(errors::duplicate_label(expr.span)),
                        }
                    }
                    false
                }
            };
            let Some(body) = &case.body else { continue };
            let body = self.block(body);
            let labels = std::mem::take(&mut labels);
            match is_default {
                // The labels in front of it, which fall through to it, change nothing.
                true => default = body,
                false => groups.push((labels, body)),
            }
        }
        (groups, default)
    }

    /// Returns the position, in the table's list of actions, of the action that `label` names. Reports a
    /// label that names no action of the table, and returns `None`.
    fn action_label(&mut self, table: crate::hir::TableId, label: &ast::Expr) -> Option<usize> {
        let ast::ExprKind::Path(path) = &label.kind else {
            self.report(errors::action_label(label.span, "this"));
            return None;
        };
        self.offer_names(path.name.as_str(), |s| matches!(s, Symbol::Action(_)));
        match self.lookup(path) {
            Symbol::Missing => None,
            Symbol::Action(id) => {
                let position = self.module.tables[table.index()]
                    .actions
                    .iter()
                    .position(|a| a.action == id);
                if position.is_none() {
                    let name = self.module.tables[table.index()].name.clone();
                    self.report(errors::action_not_listed(
                        label.span,
                        path.name.as_str(),
                        &name,
                    ));
                }
                position
            }
            _ => {
                self.report(errors::action_label(label.span, path.name.as_str()));
                None
            }
        }
    }
}

impl Checked {
    fn loop_collection(&mut self, collection: Expr, item: &Ty) -> Option<Expr> {
        let collection = match &collection.ty {
            Ty::Tuple(_) => self.coerce(collection, &Ty::List(Rc::new(item.clone()))),
            _ => collection,
        };
        match &collection.ty {
            Ty::Missing => None,
            Ty::Stack(element, _) | Ty::List(element) if **element == *item => Some(collection),
            ty => {
                let found = self.show(ty);
                let wanted = format!("a list or stack of {}", self.show(item));
                self.report(errors::type_mismatch(collection.span, &wanted, &found));
                None
            }
        }
    }
}

/// Returns whether every path through the statements ends in a `return` or `exit`.
pub(super) fn always_returns(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|s| match &s.kind {
        StmtKind::Return(_) | StmtKind::Exit => true,
        StmtKind::Block(body) => always_returns(body),
        StmtKind::If(_, a, b) => always_returns(a) && always_returns(b),
        StmtKind::Switch { cases, default, .. } => {
            !default.is_empty()
                && always_returns(default)
                && cases.iter().all(|(_, b)| always_returns(b))
        }
        StmtKind::SwitchAction { cases, default, .. } => {
            !default.is_empty()
                && always_returns(default)
                && cases.iter().all(|(_, b)| always_returns(b))
        }
        _ => false,
    })
}
