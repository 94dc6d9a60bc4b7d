//! Tables: keys, actions, default actions, entries and the other properties of v1model and PSA.

use std::collections::BTreeMap;

use ir::architecture::Description;
use num_bigint::BigInt;
use syntax::ast::{self, TablePropertyKind as Prop};
use syntax::source::Span;

use super::call::{arc, direction};
use super::infer::Bindings;
use super::infer::without_name;
use super::scope::Symbol;
use super::{Checked, Checker, Context, Place, shared};
use crate::errors;
use crate::fold;
use crate::hir::{
    ActionId, Arg, Args, CallTarget, Expr, ExprKind, Resource, Table, TableAction, TableEntry,
    TableId, TableKey,
};
use crate::lower::room;
use crate::meaning::{Meaning, Object, Property};
use crate::types::{FnSig, Ty};

impl Checker {
    /// Checks and declares a table, and returns its id; `None` if its properties have errors.
    pub(super) fn table(
        &mut self,
        decl: &ast::TableDecl,
        annotations: &[ast::Annotation],
    ) -> Option<TableId> {
        let context = Context {
            place: Place::Table,
            ..self.context.clone()
        };
        let Some(table) = self.within(context, |c| c.table_properties(decl, annotations)) else {
            self.declare(&decl.name, Symbol::Missing);
            return None;
        };
        let id = TableId(self.module.tables.len() as u32);
        self.module.tables.push(table);
        self.declare(&decl.name, Symbol::Table(id));
        Some(id)
    }

    fn table_properties(
        &mut self,
        decl: &ast::TableDecl,
        annotations: &[ast::Annotation],
    ) -> Option<Table> {
        let mut table = Table {
            name: arc(&decl.name),
            annotations: shared(annotations),
            keys: Vec::new(),
            actions: Vec::new(),
            default_action: (0, Vec::new()),
            const_default: false,
            entries: Vec::new(),
            const_entries: false,
            has_entries: false,
            size: None,
            largest_priority_wins: true,
            priority_delta: 1,
            counters: None,
            meters: None,
            implementation: None,
            support_timeout: false,
            span: decl.name.span,
        };
        self.property_order(decl);
        // Keys and actions first: entries and the default action refer to them, whatever the order in the text.
        let find = |name: &str| decl.properties.iter().find(|p| p.name.as_str() == name);
        let mut keys_known = true;
        if let Some(Prop::Key(keys)) = find("key").map(|p| &p.kind) {
            table.keys = keys.iter().filter_map(|k| self.table_key(k)).collect();
            keys_known = table.keys.len() == keys.len();
            self.check_key_names(&table.keys);
        }
        match find("actions").map(|p| &p.kind) {
            Some(Prop::Actions(actions)) => self.table_actions(actions, &mut table),
            _ => self.report(errors::no_actions(decl.name.span, decl.name.as_str())),
        }
        for property in &decl.properties {
            self.other_property(property, &mut table);
        }
        match find("default_action") {
            Some(property) => {
                table.const_default = property.is_const;
                if let Prop::DefaultAction(value) = &property.kind {
                    table.default_action = self.default_action(value, &table)?;
                }
            }
            None => self.implicit_default(&mut table)?,
        }
        if let Some(property) = find("entries")
            && matches!(&property.kind, Prop::Entries(entries) if !entries.is_empty())
            && table.keys.is_empty()
            && find("key").is_none_or(|p| matches!(&p.kind, Prop::Key(keys) if keys.is_empty()))
        {
            let message = errors::entries_without_key(property.name.span, &table.name);
            self.report(message);
            return Some(table);
        }
        if let Some(property) = find("entries")
            && let Prop::Entries(entries) = &property.kind
            // They are compared with the keys, one of which may be wrong.
            && keys_known
        {
            table.const_entries = property.is_const;
            table.has_entries = true;
            table.entries = entries
                .iter()
                .filter_map(|e| self.entry(e, &table))
                .collect();
            self.check_priorities(&table);
        }
        Some(table)
    }

    /// Makes `NoAction` the default action of a table without the property `default_action`, and adds it to
    /// the table's list of actions if it is not listed. Reports a program that does not declare `NoAction`,
    /// and returns `None`.
    fn implicit_default(&mut self, table: &mut Table) -> Option<()> {
        let name = ast::Name::new("NoAction", table.span);
        let path = ast::Path {
            absolute: true,
            name,
            span: table.span,
        };
        let Some((&Symbol::Action(action), _)) = self.scopes.lookup(&path) else {
            let file = self.library_file("NoAction");
            self.report(errors::unknown_name(table.span, "NoAction", file, None));
            return None;
        };
        let position = table.actions.iter().position(|a| a.action == action);
        let index = position.unwrap_or_else(|| {
            let text = ast::Name::new("defaultonly", table.span);
            let only = ast::Annotation {
                name: text,
                body: ast::AnnotationBody::None,
                is_pragma: false,
                span: table.span,
            };
            table.actions.push(TableAction {
                action,
                bound: Args::default(),
                annotations: [only].into(),
            });
            table.actions.len() - 1
        });
        if !self.module.actions[action.index()].sig.params.is_empty() {
            self.report(errors::no_action_params(table.span));
            return None;
        }
        table.default_action = (index, Vec::new());
        Some(())
    }

    fn table_key(&mut self, key: &ast::KeyElement) -> Option<TableKey> {
        // A key is evaluated where the table is applied, so it may do what an apply block may.
        let context = Context {
            place: Place::Apply,
            ..self.context.clone()
        };
        let expr = self.within(context, |c| c.infer(&key.expr, None));
        let expr = match expr.ty {
            Ty::Int => self.wrong(errors::unsized_int(expr.span), expr.span),
            _ => expr,
        };
        let match_kind = self.match_kind(&key.match_kind);
        if self.module.types.scalar_width(&expr.ty).is_none() {
            if expr.ty != Ty::Missing {
                let found = self.show(&expr.ty);
                self.report(errors::table_key(key.expr.span, &found));
            }
            return None;
        }
        let explicit = key
            .annotations
            .iter()
            .find(|a| a.name.as_str() == "name")
            .and_then(|a| a.string());
        let name = match explicit.or_else(|| self.key_name(&expr, &key.expr)) {
            Some(name) => name,
            None => {
                self.report(errors::key_without_name(key.expr.span));
                return None;
            }
        };
        Some(TableKey {
            expr,
            match_kind: match_kind?,
            name,
            annotations: shared(&key.annotations),
        })
    }

    fn table_actions(&mut self, refs: &[ast::ActionRef], table: &mut Table) {
        for reference in refs {
            let Some(action) = self.action_named(&reference.path) else {
                continue;
            };
            if table.actions.iter().any(|a| a.action == action) {
                self.report(errors::action_listed_twice(
                    reference.span,
                    reference.path.name.as_str(),
                ));
                continue;
            }
            let (sig, directed) = self.action_shape(action);
            self.check_deprecated(&sig.annotations, &sig.name, reference.path.span);
            let args = reference.args.as_deref().unwrap_or_default();
            let bound = FnSig {
                params: sig.params[..directed].to_vec(),
                ..(*sig).clone()
            };
            let Some((bound, ..)) =
                self.arguments(&bound, Bindings::new(), &[], args, None, reference.span)
            else {
                continue;
            };
            let annotations = shared(&reference.annotations);
            table.actions.push(TableAction {
                action,
                bound,
                annotations,
            });
        }
    }

    fn action_named(&mut self, path: &ast::Path) -> Option<ActionId> {
        self.offer_names(path.name.as_str(), |s| matches!(s, Symbol::Action(_)));
        match self.lookup(path) {
            Symbol::Action(id) => Some(id),
            Symbol::Missing => None,
            other => {
                self.report(errors::not_an_action(
                    path.span,
                    path.name.as_str(),
                    other.describe(),
                ));
                None
            }
        }
    }

    /// Checks the value of `default_action = a(x)`. Returns the action's position in the table's list of
    /// actions, and its arguments for the parameters without direction, which the control plane could set;
    /// `None` after an error.
    fn default_action(&mut self, value: &ast::Expr, table: &Table) -> Option<(usize, Vec<Expr>)> {
        let (path, args): (&ast::Path, &[ast::Argument]) = match &value.kind {
            ast::ExprKind::Path(path) => (path, &[]),
            ast::ExprKind::Call { callee, args, .. } => match &callee.kind {
                ast::ExprKind::Path(path) => (path, args),
                _ => {
                    self.report(errors::not_an_action(value.span, "this", "an expression"));
                    return None;
                }
            },
            ast::ExprKind::Missing => return None,
            _ => {
                self.report(errors::not_an_action(value.span, "this", "an expression"));
                return None;
            }
        };
        let index = self.listed(path, table)?;
        if table.actions[index]
            .annotations
            .iter()
            .any(|a| a.name.as_str() == "tableonly")
        {
            self.report(errors::default_is_tableonly(value.span, path.name.as_str()));
        }
        let args = self.action_data(table, index, args, value.span)?;
        Some((index, args))
    }

    /// Returns the position in the table's list of actions of the action that `path` names. Reports an action
    /// that is not in the list, and returns `None`.
    fn listed(&mut self, path: &ast::Path, table: &Table) -> Option<usize> {
        let action = self.action_named(path)?;
        let index = table.actions.iter().position(|a| a.action == action);
        if index.is_none() {
            self.report(errors::action_not_listed(
                path.span,
                path.name.as_str(),
                &table.name,
            ));
        }
        index
    }

    /// Checks the arguments for the parameters without direction of the action at position `index` of the
    /// table's list, and returns them; `None` after an error. `args` may repeat the arguments for its
    /// parameters with direction, at the front or by name.
    fn action_data(
        &mut self,
        table: &Table,
        index: usize,
        args: &[ast::Argument],
        span: Span,
    ) -> Option<Vec<Expr>> {
        let (sig, directed) = self.action_shape(table.actions[index].action);
        if let Some(arg) = without_name(args) {
            self.report(errors::argument_without_name(arg.span, &sig.name));
            return None;
        }
        let of_front = |arg: &ast::Argument| {
            let named =
                |name: &ast::Name| sig.params[..directed].iter().any(|p| p.name == name.text);
            arg.name.as_ref().is_some_and(named)
        };
        let data = FnSig {
            params: sig.params[directed..].to_vec(),
            ..(*sig).clone()
        };
        let (repeated, own): (Vec<ast::Argument>, Vec<ast::Argument>) = match args {
            [first, ..] if first.name.is_some() => args.iter().cloned().partition(of_front),
            _ if args.len() == sig.params.len() => {
                (args[..directed].to_vec(), args[directed..].to_vec())
            }
            _ => (Vec::new(), args.to_vec()),
        };
        if !repeated.is_empty() {
            let front = FnSig {
                params: sig.params[..directed].to_vec(),
                ..(*sig).clone()
            };
            let (front, ..) =
                self.arguments(&front, Bindings::new(), &[], &repeated, None, span)?;
            let bound = table.actions[index].bound.clone();
            for (i, (arg, bound)) in front.iter().zip(bound.iter()).enumerate() {
                let (Some(arg), Some(bound)) = (arg.expr(), bound.expr()) else {
                    continue;
                };
                if !arg.is_same(bound) && arg.ty != Ty::Missing {
                    self.report(errors::bound_argument(arg.span, &sig.params[i].name));
                }
            }
        }
        let (values, ..) = self.arguments(&data, Bindings::new(), &[], &own, None, span)?;
        let mut out = Vec::new();
        for (value, param) in values.into_list().into_iter().zip(&data.params) {
            let Arg::In(value) = value else {
                let shown = format!("{}{}", direction(param.direction), param.name);
                self.report(errors::not_constant(
                    span,
                    &format!("the argument of `{shown}`"),
                ));
                return None;
            };
            let depends = matches!(&value.kind, ExprKind::Var(id)
                if matches!(self.module.var(*id).kind, crate::hir::VarKind::ConstructorParam));
            out.push(if depends {
                value
            } else {
                self.require_literal(value, "an argument of an action in a table")
            });
        }
        Some(out)
    }

    fn entry(&mut self, entry: &ast::Entry, table: &Table) -> Option<TableEntry> {
        let types: Vec<Ty> = table.keys.iter().map(|k| k.expr.ty.clone()).collect();
        let keysets = self.keysets(&entry.keysets, &types, "table entry");
        let index = self.listed(&entry.action.path, table);
        let keysets = keysets?;
        let index = index?;
        for (set, key) in keysets.iter().zip(&table.keys) {
            self.entry_match(set, key.match_kind, entry.keysets.span);
        }
        if table.actions[index]
            .annotations
            .iter()
            .any(|a| a.name.as_str() == "defaultonly")
        {
            self.report(errors::entry_is_defaultonly(
                entry.action.span,
                entry.action.path.name.as_str(),
            ));
        }
        let args = entry.action.args.as_deref().unwrap_or_default();
        let args = self.action_data(table, index, args, entry.action.span)?;
        let priority = entry.priority.as_ref().map(|p| {
            let value = self.infer(p, Some(&Ty::Int));
            self.require_literal(value, "a priority")
        });
        let rank = entry
            .annotations
            .iter()
            .find(|a| a.name.as_str() == "priority");
        let rank = rank.and_then(|a| fold::to_u32(&fold::literal(a.int()?)));
        Some(TableEntry {
            is_const: entry.is_const,
            keysets,
            priority,
            rank,
            action: index,
            args,
            span: entry.span,
        })
    }

    fn other_property(&mut self, property: &ast::TableProperty, table: &mut Table) {
        self.offer_properties(property.name.as_str());
        match (&property.kind, property.name.as_str()) {
            (Prop::Size(value), _) => {
                let value = self.infer(value, Some(&Ty::Int));
                let value = self.require_static(value, "the size of a table");
                let bits = self.module.types.representation(&value.ty);
                if !matches!(bits, Ty::Int | Ty::Bit(_) | Ty::Signed(_) | Ty::Missing) {
                    let found = self.show(&value.ty);
                    self.report(errors::type_mismatch(value.span, "int", &found));
                }
                if value.as_int().is_some_and(|v| *v < BigInt::ZERO) {
                    self.report(errors::negative_count(
                        value.span,
                        &value.as_int().cloned().unwrap_or_default().to_string(),
                    ));
                }
                table.size = Some(value);
            }
            (Prop::Custom(value), "largest_priority_wins") => {
                let value = self.expect(value, &Ty::Bool);
                let value = self.require_literal(value, "largest_priority_wins");
                table.largest_priority_wins = !matches!(value.kind, ExprKind::Bool(false));
            }
            (Prop::Custom(value), "priority_delta") => {
                if let Some(delta) = self.constant_int(value, "priority_delta") {
                    match fold::to_u32(&delta).filter(|d| *d > 0) {
                        Some(delta) => table.priority_delta = delta,
                        None => self.report(errors::negative_count(value.span, &delta.to_string())),
                    }
                }
            }
            (Prop::Custom(value), _) => self.architecture_property(property, value, table),
            _ => {}
        }
    }

    /// Checks a table property in a program without an architecture, which may be meant for any: reports a
    /// property that no architecture has.
    fn property_of_library(&mut self, property: &ast::TableProperty, value: &ast::Expr) {
        let _ = self.infer(value, None);
        let name = property.name.as_str();
        let known: Vec<&str> = ir::architecture::ALL
            .iter()
            .flat_map(|d| room(d).externs.property_names())
            .collect();
        if !known.contains(&name) {
            let similar = self.closest(name, known.into_iter().chain(["size"]));
            let (span, of) = (property.name.span, crate::architecture_names());
            self.report(errors::unknown_property(
                span,
                &of,
                name,
                similar.as_deref(),
            ));
        }
    }

    /// Checks a table property that the architecture defines, such as the table's counters, and stores it
    /// in `table`. Reports a property that the architecture does not define.
    fn architecture_property(
        &mut self,
        property: &ast::TableProperty,
        value: &ast::Expr,
        table: &mut Table,
    ) {
        let name = property.name.as_str();
        let Some(description) = self.origins.architecture() else {
            return self.property_of_library(property, value);
        };
        let architecture = room(description).externs;
        match architecture.property(name) {
            Some(Property::Counter) => {
                table.counters =
                    self.extern_property(property, value, description, &[Object::DirectCounter]);
            }
            Some(Property::Meter) => {
                table.meters =
                    self.extern_property(property, value, description, &[Object::DirectMeter]);
            }
            Some(Property::Implementation) => {
                let profiles = [Object::ActionProfile, Object::ActionSelector];
                table.implementation =
                    self.extern_property(property, value, description, &profiles);
            }
            Some(Property::Timeout) => {
                let value = self.expect(value, &Ty::Bool);
                let value = self.require_literal(value, name);
                table.support_timeout = matches!(value.kind, ExprKind::Bool(true));
            }
            Some(Property::TimeoutEnum) => {
                let value = self.infer(value, None);
                let value = self.require_literal(value, name);
                // NO_TIMEOUT and NOTIFY_CONTROL.
                table.support_timeout = matches!(value.kind, ExprKind::Symbol(1));
            }
            Some(Property::EmptyGroupAction) => {
                let what = format!("a table property `{name}`");
                let _ = self.unsupported(property.name.span, &what);
            }
            None => {
                let _ = self.infer(value, None);
                let known = architecture.property_names();
                let similar = self.closest(name, known.chain(["size"]));
                self.report(errors::unknown_property(
                    property.name.span,
                    description.name,
                    name,
                    similar.as_deref(),
                ));
            }
        }
    }

    fn extern_property(
        &mut self,
        property: &ast::TableProperty,
        value: &ast::Expr,
        description: &Description,
        wanted: &[Object],
    ) -> Option<Resource> {
        let value = self.infer(value, None);
        let meaning = match &value.ty {
            Ty::Missing => return None,
            Ty::Extern(id, _) => self.module.types.external(*id).meaning,
            _ => None,
        };
        if matches!(meaning, Some(Meaning::Common(object)) if wanted.contains(&object)) {
            let annotations = shared(&property.annotations);
            return Some(Resource {
                expr: value,
                annotations,
            });
        }
        let found = match &value.ty {
            Ty::Extern(id, _) => self.module.types.external(*id).name.to_string(),
            ty => self.show(ty),
        };
        let names = room(description).externs.names(wanted);
        self.report(errors::type_mismatch(
            value.span,
            &names.join(" or "),
            &found,
        ));
        None
    }
}

impl Checked {
    /// Reports a property that occurs twice, and one that stands before a property to which it refers.
    fn property_order(&mut self, decl: &ast::TableDecl) {
        let position = |name: &str| decl.properties.iter().position(|p| p.name.as_str() == name);
        for (name, before) in [("default_action", "actions"), ("entries", "key")] {
            if let (Some(i), Some(j)) = (position(name), position(before))
                && i < j
            {
                let span = decl.properties[i].name.span;
                self.report(errors::property_order(span, name, before));
            }
        }
        for (i, property) in decl.properties.iter().enumerate() {
            if let Some(first) = decl.properties[..i]
                .iter()
                .find(|p| p.name.text == property.name.text)
            {
                self.report(errors::duplicate(
                    property.name.span,
                    property.name.as_str(),
                    first.name.span,
                ));
            }
        }
    }

    /// Reports two key fields with the same control-plane name if one of them has it from a `@name`, since
    /// the control plane may know key fields by name. Inputs of a selector, which the control plane does not
    /// see, do not count. The same expression twice, without a `@name`, is allowed.
    fn check_key_names(&mut self, keys: &[TableKey]) {
        let mut first: BTreeMap<&str, &TableKey> = BTreeMap::new();
        let named = |key: &TableKey| key.annotations.iter().any(|a| a.name.as_str() == "name");
        let seen = keys.iter().filter(|k| k.match_kind.is_looked_up());
        for key in seen {
            match first.get(&*key.name) {
                Some(other) if named(key) || named(other) => {
                    let (span, other) = (key.expr.span, other.expr.span);
                    self.report(errors::key_name_twice(span, &key.name, other));
                }
                Some(_) => {}
                None => {
                    first.insert(&key.name, key);
                }
            }
        }
    }

    fn match_kind(&mut self, name: &ast::Name) -> Option<ir::MatchKind> {
        let text = name.as_str();
        self.offer_match_kinds(text);
        self.used_member("match_kind", name);
        if !self.module.types.match_kinds.contains(&name.text) {
            let known = self.module.types.match_kinds.iter().map(|k| &**k);
            let similar = self.closest(text, known);
            self.report(errors::unknown_match_kind(
                name.span,
                text,
                similar.as_deref(),
            ));
            return None;
        }
        let kind = ir::MatchKind::of_name(text);
        if kind.is_none() {
            let _ = self.unsupported(name.span, &format!("match kind `{text}`"));
        }
        kind
    }

    /// Returns the control-plane name of a key without `@name`: the text of its expression, with the
    /// `@name` of a field in place of the field's own name. Returns `None` if the expression is too complex
    /// for a name.
    fn key_name(&self, expr: &Expr, source: &ast::Expr) -> Option<String> {
        use ast::ExprKind as E;
        match &source.kind {
            E::Path(path) => Some(path.name.as_str().to_string()),
            E::Member { base, member } => {
                let field = match &expr.kind {
                    ExprKind::Field(inner, i) => match &inner.ty {
                        Ty::Struct(id) | Ty::Header(id) | Ty::Union(id) => {
                            let field = &self.module.types.structure(*id).fields[*i];
                            let renamed =
                                field.annotations.iter().find(|a| a.name.as_str() == "name");
                            renamed.and_then(|a| a.string())
                        }
                        _ => None,
                    },
                    _ => None,
                };
                let field = field.unwrap_or_else(|| member.as_str().to_string());
                if let Some(global) = field.strip_prefix('.') {
                    return Some(global.to_string());
                }
                let inner = match &expr.kind {
                    ExprKind::Field(inner, _) | ExprKind::LastIndex(inner) => inner,
                    _ => expr,
                };
                Some(format!("{}.{field}", self.key_name(inner, base)?))
            }
            E::Index { base, index } => {
                let inner = match &expr.kind {
                    ExprKind::Index(inner, _) => inner,
                    _ => expr,
                };
                Some(format!(
                    "{}[{}]",
                    self.key_name(inner, base)?,
                    self.key_name(expr, index)?
                ))
            }
            E::Int(literal) => {
                let value = fold::literal(literal);
                Some(match literal.radix {
                    2 => format!("0b{value:b}"),
                    8 => format!("0o{value:o}"),
                    16 => format!("0x{value:x}"),
                    _ => value.to_string(),
                })
            }
            E::Slice { base, high, low } => {
                let inner = match &expr.kind {
                    ExprKind::Slice(inner, ..) => inner,
                    _ => expr,
                };
                let (high, low) = (self.key_name(expr, high)?, self.key_name(expr, low)?);
                Some(format!("{}[{high}:{low}]", self.key_name(inner, base)?))
            }
            E::Binary {
                op: ast::BinaryOp::BitAnd,
                left,
                right,
                ..
            } => {
                let (a, b) = match &expr.kind {
                    ExprKind::Binary(_, a, b) => (&**a, &**b),
                    _ => (expr, expr),
                };
                Some(format!(
                    "{} & {}",
                    self.key_name(a, left)?,
                    self.key_name(b, right)?
                ))
            }
            E::Call { callee, args, .. } if args.is_empty() => match (&callee.kind, &expr.kind) {
                (E::Member { base, member }, ExprKind::Call(call))
                    if member.as_str() == "isValid" =>
                {
                    let CallTarget::IsValid(inner) = &call.target else {
                        return None;
                    };
                    Some(format!("{}.$valid$", self.key_name(inner, base)?))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn action_shape(&self, id: ActionId) -> (std::rc::Rc<FnSig>, usize) {
        let action = &self.module.actions[id.index()];
        (action.sig.clone(), action.directed)
    }

    /// Reports a priority in an entry of a table whose match kinds have no priorities, or whose entries are
    /// constant. In any other table in which some entry has a priority, reports a first entry without one.
    fn check_priorities(&mut self, table: &Table) {
        let explicit = |e: &TableEntry| e.priority.as_ref().map(|p| p.span);
        let Some(at) = table.entries.iter().find_map(explicit) else {
            return;
        };
        if !table.keys.iter().any(|k| k.match_kind.has_priority()) {
            self.report(errors::needless_priority(at, &table.name));
        } else if table.const_entries {
            self.report(errors::priority_of_const(at));
        } else if let Some(first) = table.entries.first()
            && first.priority.is_none()
        {
            self.report(errors::first_priority(first.span));
        }
    }

    /// Reports a set in a table entry that the match kind of its key cannot express, such as a range for `lpm`.
    fn entry_match(&mut self, set: &crate::hir::Keyset, kind: ir::MatchKind, span: Span) {
        use crate::hir::Keyset as K;
        let fits = match set {
            K::Value(_) => true,
            K::Any => kind.has_any(),
            K::Mask(..) => matches!(kind.form(), ir::Form::Prefix | ir::Form::Masked),
            K::Range(..) => kind.form() == ir::Form::Range,
            K::ValueSet(_) => false,
        };
        if !fits && kind.is_looked_up() {
            self.report(errors::entry_match(span, kind.name()));
        }
        if let (true, K::Mask(_, mask)) = (kind.is_prefix(), set)
            && let Some(value) = mask.as_int()
            && let Some(width) = self.module.types.scalar_width(&mask.ty)
        {
            let bits = fold::to_bits(value, width);
            if bits != ir::Bits::prefix_mask(width, bits.count_ones()) {
                self.report(errors::lpm_mask(mask.span));
            }
        }
    }
}
