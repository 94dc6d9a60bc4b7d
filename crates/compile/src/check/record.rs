//! What the checker tells [`Names`]: declarations, uses, and the names that could stand at a place. Without a table to
//! fill, nothing here does anything.

use std::sync::Arc;

use syntax::ast::{self, Direction};
use syntax::source::Span;

use super::call::direction;
use super::scope::{FnSymbol, Symbol, TypeSymbol};
use super::{Checked, Checker};
use crate::hir::{Expr, ExprKind, VarKind};
use crate::lower::room;
use crate::names::{Declaration, NameKind, Names};
use crate::types::{BlockKind, FnSig, StructKind, Ty};

impl Checker {
    /// Returns the meaning of a path, and records the use of its name; `None` if it is not declared.
    pub(super) fn find(&mut self, path: &ast::Path) -> Option<Symbol> {
        let (symbol, place) = self.scopes.lookup(path)?;
        let (symbol, place) = (symbol.clone(), place);
        self.used(path.name.span, place);
        Some(symbol)
    }

    /// Records a declaration that enters the current scope.
    pub(super) fn record_name(&mut self, name: &ast::Name, symbol: &Symbol) {
        if self.names.is_some() {
            let declaration = self.describe(&name.text, symbol);
            self.enter(name.span, declaration);
        }
    }

    /// Returns the meaning of a name in an expression, as [`Checker::lookup`] does.
    pub(super) fn named(&mut self, path: &ast::Path) -> Symbol {
        let is_value = |s: &Symbol| !matches!(s, Symbol::Missing);
        self.offer_names(path.name.as_str(), is_value);
        self.lookup(path)
    }

    /// Offers the names in scope that `fits` accepts, if names are wanted in the place of `name`.
    pub(super) fn offer_names(&mut self, name: &str, fits: impl Fn(&Symbol) -> bool) {
        if !self.wants(name) {
            return;
        }
        let all: Vec<(Arc<str>, Symbol)> = self.scopes.visible();
        for (name, symbol) in all.iter().filter(|(_, symbol)| fits(symbol)) {
            let declaration = self.describe(name, symbol);
            self.offer(declaration);
        }
    }
}

impl Checked {
    /// Returns whether names are wanted in the place of `name`.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.names.as_ref().is_some_and(|names| names.wants(name))
    }

    fn with_names(&mut self, f: impl FnOnce(&mut Names)) {
        if let Some(names) = &mut self.names {
            f(names);
        }
    }

    /// Records that the name at `at` means the declaration at `declared`.
    pub(super) fn used(&mut self, at: Span, declared: Span) {
        self.with_names(|names| names.enter_use(at, declared));
    }

    /// Records which one of several functions with a name is meant.
    pub(super) fn used_overload(&mut self, name: &ast::Name, declared: Span) {
        self.with_names(|names| names.enter_overload(name.span, name.as_str(), declared));
    }

    fn enter(&mut self, place: Span, mut declaration: Declaration) {
        declaration.place = Some(place);
        self.with_names(|names| names.enter(place, declaration));
    }

    /// Offers a name where one is wanted.
    pub(super) fn offer(&mut self, candidate: Declaration) {
        self.with_names(|names| names.offer(candidate));
    }

    /// Offers each of `names`, of which the language itself says what they are.
    pub(super) fn offer_words<'a>(
        &mut self,
        kind: NameKind,
        words: impl IntoIterator<Item = &'a str>,
    ) {
        for word in words {
            self.offer(declaration(word, kind, String::new()));
        }
    }

    /// Records a name that enters no scope: a field, state or method.
    pub(super) fn record_part(
        &mut self,
        name: &Arc<str>,
        place: Span,
        kind: NameKind,
        detail: &str,
        note: String,
    ) {
        if self.names.is_some() {
            let found = declaration(name, kind, detail.to_string());
            self.enter(place, Declaration { note, ..found });
        }
    }

    /// Records a member of an enum, an error or a match kind; `of` is its type.
    pub(super) fn record_member(&mut self, of: &Arc<str>, name: &ast::Name, value: Option<String>) {
        let detail = match value {
            Some(value) => format!("{of}.{name} = {value}"),
            None => format!("{of}.{name}"),
        };
        self.with_names(|names| names.enter_member(of, &name.text, name.span));
        self.record_part(
            &name.text,
            name.span,
            NameKind::Member,
            &detail,
            String::new(),
        );
    }

    /// Records the use of the member `name` of the enum `of`, or of `error` or `match_kind`.
    pub(super) fn used_member(&mut self, of: &str, name: &ast::Name) {
        let place = self
            .names
            .as_ref()
            .and_then(|n| n.member(of, name.as_str()));
        if let Some(place) = place {
            self.used(name.span, place);
        }
    }

    /// Records a parameter; `whole` is the place of all of it.
    pub(super) fn record_param(&mut self, param: &ast::Param, ty: &Ty) {
        if self.names.is_some() {
            self.with_names(|names| names.enter_param(param.span, param.name.span));
            let shown = self.show(ty);
            let detail = format!("{}{shown} {}", direction(param.direction), param.name);
            let note = self.width_note(ty);
            let (name, place) = (&param.name.text, param.name.span);
            self.record_part(name, place, NameKind::Parameter, &detail, note);
        }
    }

    /// Records that an argument's name means the parameter at `whole`.
    pub(super) fn used_param(&mut self, name: &ast::Name, whole: Span) {
        if let Some(place) = self.names.as_ref().and_then(|n| n.param(whole)) {
            self.used(name.span, place);
        }
    }

    /// Records a method or constructor of an extern.
    pub(super) fn record_method(&mut self, sig: &FnSig) {
        if self.names.is_some() {
            let detail = self.show_signature(sig, "");
            self.record_part(
                &sig.name,
                sig.span,
                NameKind::Method,
                &detail,
                String::new(),
            );
        }
    }

    /// Offers what can stand behind a dot after a value of type `ty`, if names are wanted in the place of `name`.
    pub(super) fn offer_members(&mut self, name: &str, ty: &Ty) {
        if !self.wants(name) {
            return;
        }
        let methods: &[&str] = match ty {
            Ty::Header(_) => &[
                "isValid",
                "setValid",
                "setInvalid",
                "minSizeInBits",
                "minSizeInBytes",
            ],
            Ty::Union(_) => &["isValid"],
            Ty::Stack(..) => &["push_front", "pop_front"],
            Ty::Block(_) | Ty::BlockType(..) => &["apply"],
            _ => &[],
        };
        match ty {
            Ty::Struct(id) | Ty::Header(id) | Ty::Union(id) => {
                for field in self.module.types.structure(*id).fields.clone() {
                    let detail = format!("{} {}", self.show(&field.ty), field.name);
                    self.offer(declaration(&field.name, NameKind::Field, detail));
                }
            }
            Ty::Stack(..) => {
                self.offer_words(NameKind::Field, ["next", "last", "lastIndex", "size"]);
            }
            Ty::Extern(id, _) => {
                for method in self.module.types.external(*id).methods.clone() {
                    let detail = self.show_signature(&method.sig, "");
                    self.offer(declaration(&method.sig.name, NameKind::Method, detail));
                }
            }
            _ => {}
        }
        self.offer_words(NameKind::Method, methods.iter().copied());
    }

    /// Offers the members of a type, if names are wanted in the place of `name`.
    pub(super) fn offer_type_members(&mut self, name: &str, ty: &TypeSymbol) {
        if !self.wants(name) {
            return;
        }
        match ty {
            TypeSymbol::Plain(Ty::Error) => {
                let known: Vec<Arc<str>> = self.known_errors.iter().cloned().collect();
                self.offer_words(NameKind::Member, known.iter().map(|e| &**e));
            }
            TypeSymbol::Plain(Ty::Enum(id)) => {
                let members = self.module.types.enumeration(*id).members.clone();
                self.offer_words(NameKind::Member, members.iter().map(|(n, _)| &**n));
            }
            TypeSymbol::Block(_) => self.offer_words(NameKind::Method, ["apply"]),
            _ => {}
        }
    }

    /// Offers the method of a table, if names are wanted in the place of `name`.
    pub(super) fn offer_apply(&mut self, name: &str) {
        if self.wants(name) {
            self.offer_words(NameKind::Method, ["apply"]);
        }
    }

    /// Offers what the application of a table tells, if names are wanted in the place of `name`.
    pub(super) fn offer_results(&mut self, name: &str) {
        if self.wants(name) {
            self.offer_words(NameKind::Field, ["hit", "miss", "action_run"]);
        }
    }

    /// Offers the targets of a transition, if names are wanted in the place of `name`.
    pub(super) fn offer_states<'a>(
        &mut self,
        name: &str,
        states: impl Iterator<Item = &'a Arc<str>>,
    ) {
        if self.wants(name) {
            let own = states.map(|s| &**s).filter(|s| !s.eq(&name));
            self.offer_words(NameKind::State, own.chain(["accept", "reject"]));
        }
    }

    /// Offers the match kinds, if names are wanted in the place of `name`.
    pub(super) fn offer_match_kinds(&mut self, name: &str) {
        if self.wants(name) {
            let kinds = self.module.types.match_kinds.clone();
            self.offer_words(NameKind::Member, kinds.iter().map(|k| &**k));
        }
    }

    /// Offers the properties of tables, if names are wanted in the place of `name`.
    pub(super) fn offer_properties(&mut self, name: &str) {
        if !self.wants(name) {
            return;
        }
        let own = match self.origins.architecture() {
            Some(description) => room(description).externs.property_names().collect(),
            None => Vec::new(),
        };
        let of_language = [
            "key",
            "actions",
            "default_action",
            "entries",
            "size",
            "largest_priority_wins",
            "priority_delta",
        ];
        self.offer_words(NameKind::Property, of_language.into_iter().chain(own));
    }

    /// Records a field of the struct, header or header union `of`.
    pub(super) fn record_field(&mut self, field: &ast::Field, of: &ast::Name, ty: &Ty) {
        if self.names.is_some() {
            let detail = format!("{} {}", self.show(ty), field.name);
            let width = self.width_note(ty);
            let note = match width.is_empty() {
                true => format!("field of {of}"),
                false => format!("field of {of}, {width}"),
            };
            let (name, place) = (&field.name.text, field.name.span);
            self.record_part(name, place, NameKind::Field, &detail, note);
        }
    }

    /// Records a state of the parser `of`.
    pub(super) fn record_state(&mut self, name: &ast::Name, of: &ast::Name) {
        let detail = format!("state {name}");
        let note = format!("of parser {of}");
        self.record_part(&name.text, name.span, NameKind::State, &detail, note);
    }

    /// Returns what a field or variable of a type needs to be known besides its declaration: the width of a type that
    /// does not show it. Empty if the type shows it or has none.
    pub(super) fn width_note(&self, ty: &Ty) -> String {
        if matches!(
            ty,
            Ty::Bit(_) | Ty::Signed(_) | Ty::Bool | Ty::Extern(..) | Ty::Missing
        ) {
            return String::new();
        }
        match self.module.types.packed_width(ty) {
            Some(bits) if matches!(ty, Ty::New(_) | Ty::Enum(_)) => {
                let below = self.show(&self.module.types.representation(ty));
                format!("{below}, {bits} bits")
            }
            Some(bits) => format!("{bits} bits"),
            None => String::new(),
        }
    }

    fn describe(&self, name: &Arc<str>, symbol: &Symbol) -> Declaration {
        let (kind, detail, note) = match symbol {
            Symbol::Type(ty) => self.describe_type(name, ty),
            Symbol::Const(value) => {
                let shown = self.show_value(value);
                let ty = self.show(&value.ty);
                let detail = format!("const {ty} {name}{shown}");
                (NameKind::Constant, detail, self.width_note(&value.ty))
            }
            Symbol::Var(id) => {
                let var = self.module.var(*id);
                let (kind, before) = match var.kind {
                    VarKind::Param(passed) => (NameKind::Parameter, direction(passed)),
                    VarKind::ActionData | VarKind::ConstructorParam => {
                        (NameKind::Parameter, direction(Direction::None))
                    }
                    VarKind::Instance(_) | VarKind::ValueSet(_) => (NameKind::Instance, ""),
                    VarKind::Local | VarKind::Loop { .. } => (NameKind::Variable, ""),
                };
                let detail = format!("{before}{} {name}", self.show(&var.ty));
                (kind, detail, self.width_note(&var.ty))
            }
            Symbol::Functions(all) => {
                let detail = all
                    .last()
                    .map(FnSymbol::sig)
                    .map(|sig| self.show_signature(sig, ""));
                (
                    NameKind::Function,
                    detail.unwrap_or_default(),
                    String::new(),
                )
            }
            Symbol::Action(id) => {
                let sig = &self.module.actions[id.index()].sig;
                let detail = self.show_signature(sig, "action ");
                (NameKind::Action, detail, String::new())
            }
            Symbol::Table(id) => {
                let keys = self.module.tables[id.index()].keys.iter();
                let keys = keys.map(|k| format!("{}: {}", k.name, k.match_kind.name()));
                let keys: Vec<String> = keys.collect();
                let note = match keys.is_empty() {
                    true => "no key".to_string(),
                    false => format!("key {}", keys.join(", ")),
                };
                (NameKind::Table, format!("table {name}"), note)
            }
            Symbol::Missing => (NameKind::Unknown, String::new(), String::new()),
        };
        Declaration {
            note,
            ..declaration(name, kind, detail)
        }
    }

    fn describe_type(&self, name: &Arc<str>, ty: &TypeSymbol) -> (NameKind, String, String) {
        let plain = |kind, detail| (kind, detail, String::new());
        match ty {
            TypeSymbol::Plain(ty) => {
                let (kind, word) = match ty {
                    Ty::Struct(_) => (NameKind::Struct, "struct"),
                    Ty::Header(_) => (NameKind::Struct, "header"),
                    Ty::Union(_) => (NameKind::Struct, "header_union"),
                    Ty::Enum(_) => (NameKind::Enum, "enum"),
                    Ty::New(_) => (NameKind::Type, "type"),
                    _ => (NameKind::Type, "typedef"),
                };
                let shown = self.show(ty);
                let detail = match (ty, *shown == **name) {
                    (Ty::Param(_), _) => format!("type parameter {name}"),
                    (_, true) => format!("{word} {name}"),
                    (_, false) => format!("typedef {shown} {name}"),
                };
                (kind, detail, self.width_note(ty))
            }
            TypeSymbol::Generic(generic) => {
                let word = match generic.kind {
                    StructKind::Struct => "struct",
                    StructKind::Header => "header",
                    StructKind::Union => "header_union",
                };
                let params: Vec<&str> = generic
                    .decl
                    .type_params
                    .iter()
                    .map(ast::Name::as_str)
                    .collect();
                plain(
                    NameKind::Struct,
                    format!("{word} {name}<{}>", params.join(", ")),
                )
            }
            TypeSymbol::Extern(_) => plain(NameKind::Extern, format!("extern {name}")),
            TypeSymbol::BlockType(id) => {
                let def = &self.module.types.block_types[id.index()];
                let word = match def.kind {
                    BlockKind::Parser => "parser ",
                    BlockKind::Control => "control ",
                    BlockKind::Package => "package ",
                };
                plain(NameKind::Block, self.show_signature(&def.sig, word))
            }
            TypeSymbol::Block(id) => {
                let block = self.module.block(*id);
                let word = if block.is_parser {
                    "parser "
                } else {
                    "control "
                };
                plain(NameKind::Block, self.show_signature(&block.sig, word))
            }
        }
    }

    /// Returns a signature as P4 writes it, behind `word`, or else behind the type of its result.
    fn show_signature(&self, sig: &FnSig, word: &str) -> String {
        let params = sig.params.iter().map(|p| {
            let shown = self.show(&p.ty);
            format!("{}{shown} {}", direction(p.direction), p.name)
        });
        let params: Vec<String> = params.collect();
        let types = sig
            .type_params
            .iter()
            .map(|id| &*self.module.types.type_params[id.index()]);
        let types: Vec<&str> = types.collect();
        let types = match types.is_empty() {
            true => String::new(),
            false => format!("<{}>", types.join(", ")),
        };
        let before = match word {
            "" => format!("{} ", self.show(&sig.ret)),
            word => word.to_string(),
        };
        format!("{before}{}{types}({})", sig.name, params.join(", "))
    }

    fn show_value(&self, value: &Expr) -> String {
        match &value.kind {
            ExprKind::Int(number) => {
                let small = number.bits() < 4;
                let hex = if small {
                    String::new()
                } else {
                    format!(" (0x{number:x})")
                };
                format!(" = {number}{hex}")
            }
            ExprKind::Bool(value) => format!(" = {value}"),
            ExprKind::Str(text) => format!(" = \"{text}\""),
            _ => String::new(),
        }
    }
}

fn declaration(name: &str, kind: NameKind, detail: String) -> Declaration {
    Declaration {
        name: name.into(),
        kind,
        detail,
        note: String::new(),
        place: None,
    }
}
