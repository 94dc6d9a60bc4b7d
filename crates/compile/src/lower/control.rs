//! Bodies of controls, tables and the actions that tables run.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use ir::{ActionScope, Expr, SlotId, StmtKind};
use syntax::ast;
use syntax::source::Span;

use super::body::{ActionExit, Names, TableAction};
use super::place::{Lvalue, Place, Value};
use super::{
    Binding, Body, Code, ExternKind, Object, ObjectId, TableInfo, Unit, build, control_plane_name,
};
use crate::errors;
use crate::hir::{self, CallTarget, ExprKind, Local, VarId};
use crate::types::Ty;

/// The size of a table, in entries, if the program does not give it.
const DEFAULT_TABLE_SIZE: u64 = 1024;

impl Body<'_, '_> {
    pub(super) fn current_path(&self) -> String {
        self.path_of(self.scope.instance)
    }

    pub(super) fn current_is_shared(&self) -> bool {
        let instance = self.block_instance(self.scope.instance);
        instance.is_some_and(|i| i.shared)
    }

    /// Emits the local declarations and the apply block of a control whose parameters are already bound.
    /// Lowers the tables that it applies.
    pub(super) fn block_statements(&mut self, block: &hir::Block) {
        let applied = applied_tables(&block.apply);
        self.returning(None, |l| {
            for local in &block.locals {
                match local {
                    Local::Table(table) if applied.contains(&table.index()) => {
                        l.table(*table);
                    }
                    local => l.local(local),
                }
            }
            l.statements(&block.apply);
        });
    }

    /// Emits the initialisation of a local variable or instance; nothing for a table.
    pub(super) fn local(&mut self, local: &Local) {
        match local {
            Local::Var(var, init) => {
                let span = self.module.var(*var).span;
                self.at(span);
                self.declare(*var, init.as_ref());
            }
            Local::Instance(var) => self.reset_local(*var),
            Local::Table(_) => {}
        }
    }

    /// Emits the reset of the state that a local instance keeps for one packet, such as the sum of an
    /// `InternetChecksum`.
    fn reset_local(&mut self, var: VarId) {
        if let Some(Binding::Value(Value::Object(object))) = self.scope.binding(var) {
            let object = *object;
            self.reset_instance(object);
        }
    }

    /// Emits the application of a table of the current control. The slot `hit` receives whether an entry was
    /// hit, and the slot `run` the position of the action that ran; `None` for a value that is not needed.
    /// Reports a use in a block that cannot apply tables.
    pub(super) fn apply_table(
        &mut self,
        table: hir::TableId,
        hit: Option<SlotId>,
        run: Option<SlotId>,
        span: Span,
    ) {
        let stage = self.stage();
        if !stage.applies_tables() {
            return self.report(errors::table_place(span, stage.name));
        }
        let Some(id) = self.table(table) else { return };
        let module = self.module;
        let def = &module.tables[table.index()];
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
        let told = actions
            .iter()
            .any(|a| self.made.exiting.contains(&a.action));
        let Some(slot) = self.made.exit_slot.filter(|_| told) else {
            return;
        };
        let body = self.capture(|l| {
            l.set(slot, build::boolean(false));
            l.exit();
        });
        self.emit_if(Expr::Slot(slot), body, Vec::new());
    }

    /// Returns the IR's table for a table of the current control, and creates it at the first request; `None`
    /// outside of controls.
    fn table(&mut self, table: hir::TableId) -> Option<ir::TableId> {
        let object = self.scope.instance?;
        if let Some(id) = self.made.tables.get(&(object, table)) {
            return Some(*id);
        }
        let module = self.module;
        let def = &module.tables[table.index()];
        let name = control_plane_name(&self.current_path(), &def.name, &def.annotations);
        let actions: Vec<ir::TableAction> = def
            .actions
            .iter()
            .map(|a| ir::TableAction {
                action: self.action(a.action),
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
        self.made.tables.insert((object, table), id);
        Some(id)
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

    /// Returns the direct counter, the direct meter and the action profile of a table, as positions in
    /// [`super::Info::externs`]; `None` for each that the table does not have. Reports a direct counter or
    /// meter that belongs to another table. `name` is the table's control-plane name.
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

    /// Returns the values of the arguments `args` for an action's parameters without direction. Reports
    /// arguments that are not constant.
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
            let value = self.bits(value, ty);
            let bits = self.constant(value, arg.span, "an argument of an action in a table");
            let width = || module.types.scalar_width(ty).unwrap_or(1);
            out.push(bits.unwrap_or_else(|| ir::Bits::zero(width())));
        }
        out
    }

    /// Returns the IR's action for an action that a table of this control runs. Lowers it at the first
    /// request.
    fn action(&mut self, action: hir::ActionId) -> ir::ActionId {
        let module = self.module;
        let def = &module.actions[action.index()];
        let owner = self.scope.instance.filter(|_| !def.global);
        if let Some((id, block)) = self.made.actions.get(&(owner, action)).copied() {
            if block != self.block {
                self.check_action_place(id, def);
            }
            return id;
        }
        let path = self.path_of(owner);
        let name = control_plane_name(&path, &def.name, &def.annotations);
        let mut names = Names::new();
        for param in &def.params[..def.directed] {
            let place = self.storage_in(owner, *param);
            names.insert(*param, Binding::Place(place));
        }
        let mut params = Vec::new();
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
            names.insert(*param, Binding::Place(Place::Scalar(slot)));
            let shown = control_plane_name("", &var.name, &var.annotations);
            params.push(ir::ActionParam {
                name: shown,
                id: 0,
                slot,
            });
        }
        // A parameter passed by copy is copied back before the control is left: by the action itself what its table
        // gives it, and by the caller what is the caller's.
        let copied = self.scope.left_by_exit().any(|s| !s.copies.is_empty());
        let exit = match def.global || def.directed > 0 || copied {
            true => ActionExit::Told(false),
            false => ActionExit::Direct,
        };
        let (body, tells) = self.action_body(owner, names, &def.body, exit);
        let id = ir::ActionId(self.program.actions.len() as u32);
        if tells {
            self.made.exiting.insert(id);
        }
        self.program.actions.push(ir::Action {
            name,
            id: 0,
            params,
            body,
        });
        self.info.actions.push((id, action));
        let block = self.block;
        self.made.actions.insert((owner, action), (id, block));
        id
    }

    /// Reports statements in the body of an action that are not allowed in the current block, although they
    /// were in the block for which the action was lowered: clones, resubmissions and recirculations. Lowers
    /// the body again for this, and drops the result.
    fn check_action_place(&mut self, id: ir::ActionId, def: &hir::Action) {
        let depends = |stmt: &ir::Stmt| {
            matches!(
                stmt.kind,
                StmtKind::Clone { .. } | StmtKind::Resubmit { .. } | StmtKind::Recirculate { .. }
            )
        };
        if ir::statements(&self.program.actions[id.index()].body).any(depends) {
            let _ = self.action_body(None, Names::new(), &def.body, ActionExit::Direct);
        }
    }

    /// Lowers the body of an action that tables run. Returns its statements, and whether an `exit` in it tells the
    /// place where the table is applied.
    fn action_body(
        &mut self,
        owner: Option<ObjectId>,
        names: Names,
        body: &[hir::Stmt],
        exit: ActionExit,
    ) -> (Vec<ir::Stmt>, bool) {
        let label = self.new_label();
        let mut inner = self.inner(owner, names, Vec::new());
        let exit = Cell::new(exit);
        inner.scope.action = Some(TableAction { label, exit });
        let out = inner.capture(|l| l.returning_to(label, None, |l| l.statements(body)));
        let tells = inner.scope.action.is_some_and(|a| a.has_told());
        (out, tells)
    }
}

impl Code<'_> {
    /// Emits the assignment of `value` to `target`, an `out` argument of an extern.
    pub(super) fn store(&mut self, target: &(Lvalue, Ty, Span), value: Value) {
        let (lvalue, ty, span) = target;
        self.assign(lvalue, value, ty, *span);
    }
}

impl Unit<'_> {
    /// Returns the control-plane name of a parser or control; empty for none.
    pub(super) fn path_of(&self, instance: Option<ObjectId>) -> String {
        let instance = self.block_instance(instance);
        instance.map(|i| i.path.clone()).unwrap_or_default()
    }

    fn table_keys(&mut self, def: &hir::Table) -> Vec<ir::Key> {
        let lpm = def.keys.iter().filter(|k| k.match_kind.is_prefix()).count();
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

/// Counts the calls, at any depth of statements and expressions, for whose target `wanted` returns true.
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
