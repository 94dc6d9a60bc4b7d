//! Bodies of controls, tables and the actions that tables run.

use std::cell::RefCell;
use std::collections::BTreeSet;

use ir::{ActionScope, Expr, SlotId, StmtKind};
use syntax::ast;
use syntax::source::Span;

use super::place::{Lvalue, Place, Value};
use super::{
    ActionExit, Binding, ExternKind, Lowerer, Object, ObjectId, TableInfo, build,
    control_plane_name,
};
use crate::errors;
use crate::hir::{self, CallTarget, ExprKind, Local, VarId};
use crate::types::Ty;

/// Entries a table has room for if the program does not say.
const DEFAULT_TABLE_SIZE: u64 = 1024;

impl Lowerer<'_> {
    /// Makes `object` the current instance, so that names of instances and constructor parameters resolve
    /// to those inside of it.
    pub(super) fn inside(&mut self, object: ObjectId) {
        if let Object::Block(instance) = self.object(object) {
            self.env.extend(instance.bindings.iter().cloned());
        }
        self.current = Some(object);
    }

    pub(super) fn path_of(&self, object: ObjectId) -> String {
        match self.object(object) {
            Object::Block(instance) => instance.path.clone(),
            _ => String::new(),
        }
    }

    pub(super) fn current_path(&self) -> String {
        self.current.map(|o| self.path_of(o)).unwrap_or_default()
    }

    pub(super) fn current_is_shared(&self) -> bool {
        match self.current.map(|o| self.object(o)) {
            Some(Object::Block(instance)) => instance.shared,
            _ => false,
        }
    }

    /// Emits the statements of a control of the pipeline, with its parameters bound to `bindings`.
    pub(super) fn control_body(&mut self, object: ObjectId, bindings: Vec<Binding>) {
        let Object::Block(instance) = self.object(object) else {
            return;
        };
        let block = self.module.block(instance.block);
        self.env.extend(block.params.iter().copied().zip(bindings));
        self.inside(object);
        self.block_statements(object);
        self.current = None;
    }

    /// Emits the local declarations and the apply block of a control whose parameters are already bound.
    pub(super) fn block_statements(&mut self, object: ObjectId) {
        let Object::Block(instance) = self.object(object) else {
            return;
        };
        let block = self.module.block(instance.block);
        let applied = applied_tables(&block.apply);
        self.returning(None, |l| {
            for local in &block.locals {
                match local {
                    Local::Var(var, init) => {
                        l.at(l.module.var(*var).span);
                        l.declare(*var, init.as_ref());
                    }
                    Local::Instance(var) => l.reset_local(*var),
                    Local::Table(table) if applied.contains(&table.index()) => {
                        l.table(object, *table);
                    }
                    _ => {}
                }
            }
            l.statements(&block.apply);
        });
    }

    /// Resets the state that a local instance keeps for one packet, such as the sum of an `InternetChecksum`.
    pub(super) fn reset_local(&mut self, var: VarId) {
        if let Some(Binding::Value(Value::Object(object))) = self.env.get(&var) {
            self.reset_instance(*object);
        }
    }

    /// Emits the application of a table of the current control. `hit` is the slot that receives whether the
    /// table hit, and `run` the slot that receives the action that ran; `None` if the value is not needed.
    pub(super) fn apply_table(
        &mut self,
        table: hir::TableId,
        hit: Option<SlotId>,
        run: Option<SlotId>,
        span: Span,
    ) {
        let Some(object) = self.current else { return };
        if !self.stage().applies_tables() {
            return self.report(errors::table_place(span, self.stage().name));
        }
        let module = self.module;
        let def = &module.tables[table.index()];
        let id = self.table(object, table);
        self.at(span);
        let exprs: Vec<&hir::Expr> = def.keys.iter().map(|k| &k.expr).collect();
        let values = self.eval_all(&exprs);
        let keys: Vec<Expr> = values
            .into_iter()
            .zip(&exprs)
            .map(|(v, e)| self.bits(v, &e.ty))
            .collect();
        self.emit(StmtKind::Apply {
            table: id,
            keys,
            hit,
            action_run: run,
        });
        self.exit_if_told(id);
    }

    /// Emits an exit that runs if an action of the table just applied has set the slot `exit_slot`. Emits
    /// nothing if no action of the table can do so.
    fn exit_if_told(&mut self, table: ir::TableId) {
        let actions = &self.program.tables[table.index()].actions;
        let told = actions.iter().any(|a| self.exiting.contains(&a.action));
        let Some(slot) = self.exit_slot.filter(|_| told) else {
            return;
        };
        let body = self.capture(|l| {
            l.emit(StmtKind::Assign {
                dst: slot,
                value: build::boolean(false),
            });
            l.exit();
        });
        self.emit_if(Expr::Slot(slot), body, Vec::new());
    }

    /// Returns the IR's table for the table `table` of the control instance `object`, and creates it at the
    /// first request.
    fn table(&mut self, object: ObjectId, table: hir::TableId) -> ir::TableId {
        if let Some(id) = self.tables.get(&(object, table)) {
            return *id;
        }
        let module = self.module;
        let def = &module.tables[table.index()];
        let path = self.path_of(object);
        let name = control_plane_name(&path, &def.name, &def.annotations);
        let actions: Vec<ir::TableAction> = def
            .actions
            .iter()
            .map(|a| ir::TableAction {
                action: self.action(object, a.action),
                scope: scope(&a.annotations),
            })
            .collect();
        let keys = self.table_keys(def);
        let default_args =
            self.action_args(&def.actions[def.default_action.0], &def.default_action.1);
        let default_action = ir::ActionCall {
            action: actions[def.default_action.0].action,
            args: default_args,
        };
        let size = self.table_size(def);
        let entries = self.entries(def, &actions);
        let (counter, meter, profile) = self.table_resources(def, &name);
        let direct_counter = counter.and_then(|i| match self.info.externs[i].kind {
            ExternKind::DirectCounter(id) => Some(id),
            _ => None,
        });
        let direct_meter = meter.and_then(|i| match self.info.externs[i].kind {
            ExternKind::DirectMeter(id) => Some(id),
            _ => None,
        });
        let implementation = self.implementation(def, profile);
        let id = ir::TableId(self.program.tables.len() as u32);
        self.bind_actions(id, def, &actions);
        self.program.tables.push(ir::Table {
            name,
            id: 0,
            keys,
            actions,
            default_action,
            const_default_action: def.const_default,
            entries,
            const_entries: def.has_entries && def.const_entries,
            size,
            direct_counter,
            direct_meter,
            implementation,
            support_timeout: def.support_timeout,
            hidden: false,
        });
        self.info.tables.push(TableInfo {
            table: id,
            declaration: table,
            counter,
            meter,
            profile,
        });
        self.tables.insert((object, table), id);
        id
    }

    fn table_keys(&mut self, def: &hir::Table) -> Vec<ir::Key> {
        let lpm = def
            .keys
            .iter()
            .filter(|k| k.match_kind == ir::MatchKind::Lpm)
            .count();
        if lpm > 1 {
            self.report(errors::two_lpm_keys(def.span, &def.name));
        }
        let width = |k: &hir::TableKey| self.module.types.scalar_width(&k.expr.ty).unwrap_or(1);
        def.keys
            .iter()
            .map(|k| ir::Key {
                name: k.name.clone(),
                id: 0,
                width: width(k),
                kind: k.match_kind,
            })
            .collect()
    }

    fn table_size(&mut self, def: &hir::Table) -> u64 {
        let Some(size) = &def.size else {
            return DEFAULT_TABLE_SIZE.max(def.entries.len() as u64);
        };
        let value = match self.eval(size) {
            Value::Int(v) => u64::try_from(v).ok(),
            Value::Bits(Expr::Const(bits)) => bits.to_u64(),
            _ => None,
        };
        match value {
            Some(0) => DEFAULT_TABLE_SIZE,
            Some(size) => size,
            None => {
                self.report(errors::not_constant(size.span, "the size of a table"));
                DEFAULT_TABLE_SIZE
            }
        }
    }

    /// Returns the direct counter, the direct meter and the action profile of a table, as positions in the
    /// list of externs; `None` for each that the table does not have. Reports a direct counter or meter
    /// that belongs to another table.
    fn table_resources(
        &mut self,
        def: &hir::Table,
        name: &str,
    ) -> (Option<usize>, Option<usize>, Option<usize>) {
        let counter = self.table_resource(&def.counters, name, "counters");
        let meter = self.table_resource(&def.meters, name, "meters");
        let profile = self.table_resource(&def.implementation, name, "implementation");
        for i in [counter, meter].into_iter().flatten() {
            let taken = self
                .info
                .tables
                .iter()
                .any(|t| t.counter == Some(i) || t.meter == Some(i));
            if taken {
                let name = self.info.externs[i].name.clone();
                self.report(errors::direct_resource_shared(def.span, &name));
            }
        }
        (counter, meter, profile)
    }

    fn table_resource(
        &mut self,
        property: &Option<hir::Resource>,
        table: &str,
        name: &str,
    ) -> Option<usize> {
        let hir::Resource { expr, annotations } = property.as_ref()?;
        let object = match &expr.kind {
            // An instance made on the spot has the name that the property is given, without the control's; otherwise
            // one made of the table's.
            ExprKind::Call(call) => {
                let unnamed = format!("{table}.{name}");
                let path = control_plane_name("", &unnamed, annotations);
                self.extern_instance(&expr.ty, path, &call.args, annotations.clone(), expr.span)
            }
            _ => match self.eval(expr) {
                Value::Object(object) => object,
                _ => return None,
            },
        };
        match self.object(object) {
            Object::Extern(i) => Some(i),
            _ => None,
        }
    }

    /// Evaluates the arguments for an action's parameters without direction, and reports arguments that are
    /// not constant.
    pub(super) fn action_args(
        &mut self,
        action: &hir::TableAction,
        args: &[hir::Expr],
    ) -> Vec<ir::Bits> {
        let module = self.module;
        let def = &module.actions[action.action.index()];
        let mut out = Vec::new();
        for (arg, param) in args.iter().zip(&def.params[def.directed..]) {
            let ty = &module.var(*param).ty;
            let value = self.eval(arg);
            match self.bits(value, ty) {
                Expr::Const(bits) => out.push(bits),
                _ => {
                    self.report(errors::not_constant(
                        arg.span,
                        "an argument of an action in a table",
                    ));
                    out.push(ir::Bits::zero(module.types.scalar_width(ty).unwrap_or(1)));
                }
            }
        }
        out
    }

    /// Returns the IR's action for `action` in the instance `object`, and lowers the action at the first request.
    fn action(&mut self, object: ObjectId, action: hir::ActionId) -> ir::ActionId {
        let module = self.module;
        let def = &module.actions[action.index()];
        let owner = if def.global { None } else { Some(object) };
        if let Some((id, block)) = self.actions.get(&(owner, action)).copied() {
            if block != self.block {
                self.check_action_place(id, def);
            }
            return id;
        }
        let path = owner.map(|o| self.path_of(o)).unwrap_or_default();
        let name = control_plane_name(&path, &def.name, &def.annotations);
        let caller = std::mem::replace(&mut self.current, owner);
        let mut params = Vec::new();
        for param in &def.params[..def.directed] {
            let place = self.storage_of(*param);
            self.env.insert(*param, Binding::Place(place));
        }
        for param in &def.params[def.directed..] {
            let var = module.var(*param);
            let name = format!("{name}.{}", var.name);
            let Some(width) = module.types.scalar_width(&var.ty) else {
                if var.ty != Ty::Missing {
                    let shown = module.types.show(&var.ty);
                    self.report(errors::action_param_type(var.span, &var.name, &shown));
                }
                continue;
            };
            let slot = self.new_slot(&name, width);
            self.env.insert(*param, Binding::Place(Place::Scalar(slot)));
            let shown = control_plane_name("", &var.name, &var.annotations);
            params.push(ir::ActionParam {
                name: shown,
                id: 0,
                slot,
            });
        }
        // A parameter passed by copy is copied back before the control is left: by the action itself what its table
        // gives it, and by the caller what is the caller's.
        let exit =
            match def.global || def.directed > 0 || self.copy_outs.iter().any(|c| !c.is_empty()) {
                true => ActionExit::Told(false),
                false => ActionExit::Direct,
            };
        let (body, exit) = self.action_body(&def.body, exit);
        self.current = caller;
        let id = ir::ActionId(self.program.actions.len() as u32);
        if exit == ActionExit::Told(true) {
            self.exiting.insert(id);
        }
        self.program.actions.push(ir::Action {
            name,
            id: 0,
            params,
            body,
        });
        self.info.actions.push((id, action));
        self.actions.insert((owner, action), (id, self.block));
        id
    }

    /// Reports statements in the body of an action that was lowered in another control and that the current
    /// control (ingress or egress) does not allow. Lowers the body again, only for these errors, if it
    /// contains a clone, resubmission or recirculation.
    fn check_action_place(&mut self, id: ir::ActionId, def: &hir::Action) {
        let depends = |stmt: &ir::Stmt| {
            matches!(
                stmt.kind,
                StmtKind::Clone { .. } | StmtKind::Resubmit { .. } | StmtKind::Recirculate { .. }
            )
        };
        if ir::statements(&self.program.actions[id.index()].body).any(depends) {
            let caller = self.current.take();
            let _ = self.action_body(&def.body, ActionExit::Direct);
            self.current = caller;
        }
    }

    fn action_body(&mut self, body: &[hir::Stmt], exit: ActionExit) -> (Vec<ir::Stmt>, ActionExit) {
        let exits = std::mem::take(&mut self.exits);
        let copy_outs = std::mem::take(&mut self.copy_outs);
        let in_action = std::mem::replace(&mut self.in_action, true);
        let outer_exit = std::mem::replace(&mut self.action_exit, exit);
        let out = self.capture(|l| l.returning(None, |l| l.statements(body)));
        let exit = std::mem::replace(&mut self.action_exit, outer_exit);
        self.in_action = in_action;
        self.copy_outs = copy_outs;
        self.exits = exits;
        (out, exit)
    }

    /// Emits the assignment of `value` to `target`, an `out` argument of an extern.
    pub(super) fn store(&mut self, target: &(Lvalue, Ty, Span), value: Value) {
        let (lvalue, ty, span) = target;
        self.assign(lvalue, value, ty, *span);
    }
}

fn scope(annotations: &[ast::Annotation]) -> ActionScope {
    let has = |name: &str| annotations.iter().any(|a| a.name.as_str() == name);
    match (has("tableonly"), has("defaultonly")) {
        (true, _) => ActionScope::TableOnly,
        (_, true) => ActionScope::DefaultOnly,
        _ => ActionScope::Both,
    }
}

/// Returns the positions, in the module's list of tables, of the tables that the statements apply.
fn applied_tables(stmts: &[hir::Stmt]) -> BTreeSet<usize> {
    let found = RefCell::new(BTreeSet::new());
    applications(stmts, &|target| {
        if let CallTarget::Table(table) = target {
            found.borrow_mut().insert(table.index());
        }
        false
    });
    found.into_inner()
}

/// Counts the calls in the statements for whose target `wanted` returns true.
pub(super) fn applications(stmts: &[hir::Stmt], wanted: &dyn Fn(&CallTarget) -> bool) -> usize {
    use hir::StmtKind as S;
    let all = |stmts: &[hir::Stmt]| applications(stmts, wanted);
    let expr = |e: &hir::Expr| applications_in(e, wanted);
    let count = |s: &hir::Stmt| match &s.kind {
        S::Declare(_, init) => init.as_ref().map_or(0, &expr),
        S::Assign(_, e) | S::AssignOp(_, _, e) | S::Call(e) => expr(e),
        S::If(c, a, b) => expr(c) + all(a) + all(b),
        S::SwitchAction {
            table,
            cases,
            default,
        } => {
            usize::from(wanted(&CallTarget::Table(*table)))
                + cases.iter().map(|(_, b)| all(b)).sum::<usize>()
                + all(default)
        }
        S::Switch {
            value,
            cases,
            default,
        } => expr(value) + cases.iter().map(|(_, b)| all(b)).sum::<usize>() + all(default),
        S::Return(e) => e.as_ref().map_or(0, &expr),
        S::Block(body) => all(body),
        S::For {
            init,
            condition,
            update,
            body,
        } => all(init) + expr(condition) + all(update) + all(body),
        S::ForRange {
            low, high, body, ..
        } => expr(low) + expr(high) + all(body),
        // Each round is written out.
        S::ForEach {
            collection, body, ..
        } => expr(collection) + 2 * all(body),
        S::Instance(_) | S::Exit | S::Break | S::Continue => 0,
    };
    stmts.iter().map(count).sum()
}

fn applications_in(expr: &hir::Expr, wanted: &dyn Fn(&CallTarget) -> bool) -> usize {
    let own = match &expr.kind {
        ExprKind::ApplyHit { table, .. } => wanted(&CallTarget::Table(*table)),
        ExprKind::Call(call) => wanted(&call.target),
        _ => false,
    };
    let operands = expr.operands().into_iter();
    usize::from(own) + operands.map(|e| applications_in(e, wanted)).sum::<usize>()
}
