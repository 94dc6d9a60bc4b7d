//! Calls: which function is meant, what its type parameters are, and whether the arguments fit.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use num_bigint::BigInt;
use syntax::ast::{self, ArgumentValue, Direction, ExprKind as Ast};
use syntax::source::Span;

use super::scope::{FnSymbol, FnTemplate, Symbol, TypeSymbol, closest};
use super::{Checker, Place};
use crate::errors;
use crate::fold;
use crate::hir::{ActionId, Arg, Call, CallTarget, Expr, ExprKind, TableId, VarKind};
use crate::types::{BlockKind, FnSig, ParamSig, Ty, TypeParamId};

/// What type parameters stand for, as far as known.
pub(super) type Bindings = BTreeMap<TypeParamId, Ty>;

impl Checker {
    /// A call of anything.
    pub(super) fn call(
        &mut self,
        callee: &ast::Expr,
        type_args: &[ast::Type],
        args: &[ast::Argument],
        want: Option<&Ty>,
        span: Span,
    ) -> Expr {
        match &callee.kind {
            Ast::Path(path) => match self.lookup(path) {
                Symbol::Missing => {
                    self.infer_stray(args);
                    Expr::missing(span)
                }
                Symbol::Functions(functions) => {
                    self.call_function(path.name.as_str(), &functions, type_args, args, want, span)
                }
                Symbol::Action(id) => self.call_action(id, args, span),
                Symbol::Type(_) => {
                    let ty = ast::Type {
                        kind: type_of_call(path, type_args),
                        span: callee.span,
                    };
                    self.construct(&ty, args, span)
                }
                other => {
                    self.report(errors::not_callable(
                        callee.span,
                        path.name.as_str(),
                        other.describe(),
                    ));
                    Expr::missing(span)
                }
            },
            Ast::Member { base, member } => {
                self.call_member(base, member, type_args, args, want, span)
            }
            Ast::Type(ty) => self.construct(ty, args, span),
            _ => {
                let _ = self.infer(callee, None);
                self.report(errors::not_callable(callee.span, "this", "a value"));
                Expr::missing(span)
            }
        }
    }

    /// Checks arguments of a call whose callee is unknown, so that their own mistakes are reported.
    fn infer_stray(&mut self, args: &[ast::Argument]) {
        for arg in args {
            if let ArgumentValue::Expr(value) = &arg.value {
                let _ = self.infer(value, None);
            }
        }
    }

    fn call_function(
        &mut self,
        name: &str,
        functions: &[FnSymbol],
        type_args: &[ast::Type],
        args: &[ast::Argument],
        want: Option<&Ty>,
        span: Span,
    ) -> Expr {
        let Some(function) = self.select(name, functions, FnSymbol::sig, args, span) else {
            self.infer_stray(args);
            return Expr::missing(span);
        };
        let sig = function.sig().clone();
        let Some((args, ret, bindings)) =
            self.arguments(&sig, Bindings::new(), type_args, args, want, span)
        else {
            return Expr::missing(span);
        };
        self.check_use(&sig, span);
        if &*sig.name == "static_assert" && matches!(function, FnSymbol::Extern(_)) {
            return self.static_assert(&args, span);
        }
        let target = match &function {
            FnSymbol::Extern(sig) => CallTarget::Extern(sig.name.clone()),
            FnSymbol::Template(template) => {
                let types = sig
                    .type_params
                    .iter()
                    .map(|p| bindings.get(p).cloned().unwrap_or(Ty::Missing))
                    .collect();
                match self.specialise(template, types, span) {
                    Some(id) => CallTarget::Function(id),
                    None => return Expr::missing(span),
                }
            }
        };
        Expr::new(ExprKind::Call(Box::new(Call { target, args })), ret, span)
    }

    /// Extern functions have places where they make sense.
    fn check_use(&mut self, sig: &FnSig, span: Span) {
        if sig
            .annotations
            .iter()
            .any(|a| a.name.as_str() == "deprecated")
        {
            let advice = sig
                .annotations
                .iter()
                .find(|a| a.name.as_str() == "deprecated")
                .and_then(|a| a.string());
            self.report(errors::deprecated(span, &sig.name, advice.as_deref()));
        }
        if &*sig.name == "verify"
            && self.context.place != Place::State
            && self.context.place != Place::Function
        {
            self.report(errors::verify_place(span));
        }
    }

    fn static_assert(&mut self, args: &[Arg], span: Span) -> Expr {
        let check = args.first().and_then(Arg::expr);
        let message = match args.get(1).and_then(Arg::expr).map(|e| &e.kind) {
            Some(ExprKind::Str(text)) => Some(text.to_string()),
            _ => None,
        };
        match check.map(|e| &e.kind) {
            Some(ExprKind::Bool(true) | ExprKind::Missing) | None => {}
            Some(ExprKind::Bool(false)) => {
                self.report(errors::static_assert(span, message.as_deref()))
            }
            Some(_) => self.report(errors::not_constant(
                span,
                "the condition of a static_assert",
            )),
        }
        Expr::new(ExprKind::Bool(true), Ty::Bool, span)
    }

    /// The overload that takes these arguments, by their number and names.
    pub(super) fn select<T: Clone>(
        &mut self,
        name: &str,
        overloads: &[T],
        sig: impl Fn(&T) -> &Rc<FnSig>,
        args: &[ast::Argument],
        span: Span,
    ) -> Option<T> {
        if let [only] = overloads {
            return Some(only.clone());
        }
        let fits = |f: &&T| {
            let params = &sig(f).params;
            let required = params
                .iter()
                .filter(|p| !p.optional && p.default.is_none())
                .count();
            let named = args.iter().filter_map(|a| a.name.as_ref());
            (required..=params.len()).contains(&args.len())
                && named
                    .into_iter()
                    .all(|n| params.iter().any(|p| *p.name == *n.text))
        };
        let found: Vec<&T> = overloads.iter().filter(fits).collect();
        match found[..] {
            [] => {
                let counts: Vec<usize> = overloads.iter().map(|f| sig(f).params.len()).collect();
                self.report(errors::no_overload(span, name, &counts, args.len()));
                None
            }
            [first, ..] => Some(first.clone()),
        }
    }

    /// Puts arguments in the order of the parameters.
    fn match_arguments<'a>(
        &mut self,
        sig: &FnSig,
        args: &'a [ast::Argument],
        span: Span,
    ) -> Option<Vec<Option<&'a ast::Argument>>> {
        let mut slots: Vec<Option<&ast::Argument>> = vec![None; sig.params.len()];
        let mut ok = true;
        for (i, arg) in args.iter().enumerate() {
            let position = match &arg.name {
                None => Some(i),
                Some(name) => sig.params.iter().position(|p| p.name == name.text),
            };
            match position.and_then(|p| slots.get_mut(p)) {
                Some(slot @ None) => *slot = Some(arg),
                Some(Some(_)) => {
                    let name = arg.name.as_ref().map_or("", |n| n.as_str());
                    self.report(errors::argument_twice(arg.span, name));
                    ok = false;
                }
                None => {
                    match &arg.name {
                        Some(name) => {
                            let known = sig.params.iter().map(|p| &*p.name);
                            let similar = closest(name.as_str(), known).map(str::to_string);
                            self.report(errors::no_parameter(
                                name.span,
                                name.as_str(),
                                &sig.name,
                                similar.as_deref(),
                            ));
                        }
                        None => {
                            self.report(errors::argument_count(
                                span,
                                &sig.name,
                                sig.params.len(),
                                args.len(),
                                sig.span,
                            ));
                        }
                    }
                    return None;
                }
            }
        }
        let lacking = |(p, a): &(&ParamSig, &Option<&ast::Argument>)| {
            a.is_none() && !p.optional && p.default.is_none()
        };
        if ok && sig.params.iter().zip(&slots).any(|pair| lacking(&pair)) {
            self.report(errors::argument_count(
                span,
                &sig.name,
                sig.params.len(),
                args.len(),
                sig.span,
            ));
            return None;
        }
        ok.then_some(slots)
    }

    /// Checks the arguments of a call, inferring type parameters. Gives them with the type the call returns.
    pub(super) fn arguments(
        &mut self,
        sig: &FnSig,
        mut bindings: Bindings,
        type_args: &[ast::Type],
        args: &[ast::Argument],
        want: Option<&Ty>,
        span: Span,
    ) -> Option<(Vec<Arg>, Ty, Bindings)> {
        if !type_args.is_empty() {
            if type_args.len() != sig.type_params.len() {
                let expected = sig.type_params.len();
                self.report(errors::type_argument_count(
                    span,
                    &sig.name,
                    expected,
                    type_args.len(),
                ));
                return None;
            }
            for (param, arg) in sig.type_params.iter().zip(type_args) {
                let ty = self.resolve(arg);
                if ty != Ty::Any {
                    bindings.insert(*param, ty);
                }
            }
        }
        let slots = self.match_arguments(sig, args, span)?;
        let inferred = self.infer_arguments(sig, &slots, &mut bindings);
        if let Some(want) = want {
            self.unify(&sig.ret, want, &mut bindings, &mut Vec::new());
        }
        let open: Vec<TypeParamId> = sig
            .type_params
            .iter()
            .filter(|p| !bindings.contains_key(p))
            .copied()
            .collect();
        if let Some(param) = open.first() {
            let missing = inferred.iter().flatten().any(|e| e.ty == Ty::Missing);
            // An optional argument that is not there says nothing about its type.
            let mentioned = sig
                .params
                .iter()
                .zip(&slots)
                .any(|(p, a)| a.is_some() && mentions(&p.ty, *param));
            if !missing && (mentioned || !sig.params.iter().any(|p| p.optional)) {
                let name = self.module.types.type_params[param.index()].clone();
                self.report(errors::cannot_infer(span, &name, &sig.name));
                return None;
            }
        }
        let mut out = Vec::new();
        for ((param, slot), value) in sig.params.iter().zip(&slots).zip(inferred) {
            let ty = self
                .module
                .types
                .substitute(&param.ty, &|id| bindings.get(&id).cloned());
            out.push(self.argument(param, &ty, *slot, value));
        }
        let ret = self
            .module
            .types
            .substitute(&sig.ret, &|id| bindings.get(&id).cloned());
        Some((out, ret, bindings))
    }

    /// Types of the arguments, and what they say about type parameters. Integers without width say least, so they
    /// come last.
    fn infer_arguments(
        &mut self,
        sig: &FnSig,
        slots: &[Option<&ast::Argument>],
        bindings: &mut Bindings,
    ) -> Vec<Option<Expr>> {
        let mut values = Vec::new();
        for (param, slot) in sig.params.iter().zip(slots) {
            let Some(ArgumentValue::Expr(arg)) = slot.map(|a| &a.value) else {
                values.push(None);
                continue;
            };
            let known = self
                .module
                .types
                .substitute(&param.ty, &|id| bindings.get(&id).cloned());
            let want = if has_params(&known) {
                None
            } else {
                Some(&known)
            };
            let value = self.infer(arg, want);
            let mut loose = Vec::new();
            self.unify(&known, &value.ty.clone(), bindings, &mut loose);
            values.push(Some(value));
        }
        for (param, value) in sig.params.iter().zip(&values) {
            if let (Ty::Param(id), Some(value)) = (&param.ty, value)
                && value.ty == Ty::Int
                && !bindings.contains_key(id)
            {
                bindings.insert(*id, default_width(value));
            }
        }
        values
    }

    fn argument(
        &mut self,
        param: &ParamSig,
        ty: &Ty,
        slot: Option<&ast::Argument>,
        value: Option<Expr>,
    ) -> Arg {
        let Some(slot) = slot else {
            return match &param.default {
                Some(default) => Arg::In((**default).clone()),
                None => Arg::Absent,
            };
        };
        let Some(value) = value else {
            if param.direction != Direction::Out {
                self.report(errors::ignored_argument(slot.span, &param.name));
            }
            return Arg::Ignore(ty.clone());
        };
        match param.direction {
            Direction::None | Direction::In => {
                let value = self.coerce(value, ty);
                self.require_sized_argument(&value, ty);
                Arg::In(value)
            }
            Direction::Out | Direction::InOut => {
                let is_lvalue = self.require_lvalue(&value);
                let value = if is_lvalue {
                    self.exact(value, ty)
                } else {
                    Expr::missing(slot.span)
                };
                match param.direction {
                    Direction::Out => Arg::Out(value),
                    _ => Arg::InOut(value),
                }
            }
        }
    }

    /// Data handed to an extern as a tuple: every integer in it needs a width.
    fn require_sized_argument(&mut self, value: &Expr, ty: &Ty) {
        if matches!(ty, Ty::Tuple(_)) {
            self.require_sized(value);
        }
    }

    /// An `out` or `inout` argument has exactly the parameter's type.
    fn exact(&mut self, value: Expr, ty: &Ty) -> Expr {
        if value.ty == *ty || value.ty == Ty::Missing || *ty == Ty::Missing {
            return value;
        }
        let (wanted, found) = (self.show(ty), self.show(&value.ty));
        self.report(errors::type_mismatch(value.span, &wanted, &found));
        Expr::missing(value.span)
    }

    /// Finds what the type parameters in `pattern` must be for it to become `ty`. Mismatches are left to `coerce`.
    pub(super) fn unify(
        &self,
        pattern: &Ty,
        ty: &Ty,
        bindings: &mut Bindings,
        loose: &mut Vec<TypeParamId>,
    ) {
        match (pattern, ty) {
            (Ty::Param(id), ty) => {
                if matches!(ty, Ty::Int) {
                    loose.push(*id);
                } else if !matches!(ty, Ty::Any | Ty::Missing | Ty::Void | Ty::Param(_)) {
                    bindings.entry(*id).or_insert_with(|| ty.clone());
                }
            }
            (Ty::Tuple(a), Ty::Tuple(b)) if a.len() == b.len() => {
                a.iter()
                    .zip(b.iter())
                    .for_each(|(a, b)| self.unify(a, b, bindings, loose));
            }
            (Ty::List(a), Ty::List(b)) | (Ty::ValueSet(a), Ty::ValueSet(b)) => {
                self.unify(a, b, bindings, loose)
            }
            (Ty::Stack(a, _), Ty::Stack(b, _)) => self.unify(a, b, bindings, loose),
            (Ty::Extern(i, a), Ty::Extern(j, b)) if i == j => {
                a.iter()
                    .zip(b.iter())
                    .for_each(|(a, b)| self.unify(a, b, bindings, loose));
            }
            (Ty::BlockType(..), Ty::Block(block)) => {
                let Ty::BlockType(id, args) = pattern else {
                    return;
                };
                let wanted = self.module.types.block_types[id.index()].sig.clone();
                let found = self.module.block(*block).sig.clone();
                let map: Bindings = wanted
                    .type_params
                    .iter()
                    .copied()
                    .zip(args.iter().cloned())
                    .collect();
                for (w, f) in wanted.params.iter().zip(&found.params) {
                    let w = self
                        .module
                        .types
                        .substitute(&w.ty, &|id| map.get(&id).cloned());
                    self.unify(&w, &f.ty, bindings, loose);
                }
            }
            _ => {}
        }
    }

    fn call_action(&mut self, id: ActionId, args: &[ast::Argument], span: Span) -> Expr {
        if matches!(self.context.place, Place::State | Place::Function) {
            self.report(errors::action_place(span));
            return Expr::missing(span);
        }
        let sig = self.module.actions[id.index()].sig.clone();
        match self.arguments(&sig, Bindings::new(), &[], args, None, span) {
            Some((args, ..)) => {
                let call = Call {
                    target: CallTarget::Action(id),
                    args,
                };
                Expr::new(ExprKind::Call(Box::new(call)), Ty::Void, span)
            }
            None => Expr::missing(span),
        }
    }

    fn call_member(
        &mut self,
        base: &ast::Expr,
        member: &ast::Name,
        type_args: &[ast::Type],
        args: &[ast::Argument],
        want: Option<&Ty>,
        span: Span,
    ) -> Expr {
        if let Ast::Path(path) = &base.kind
            && let Some(Symbol::Table(id)) = self.scopes.lookup(path)
        {
            let id = *id;
            return self.apply_table(id, member, args, span);
        }
        if let Some(ty) = self.as_type(base) {
            return self.apply_type(ty, base.span, member, args, span);
        }
        let object = self.infer(base, None);
        match object.ty.clone() {
            Ty::Missing => {
                self.infer_stray(args);
                Expr::missing(span)
            }
            Ty::Extern(id, given) => {
                let def = self.module.types.external(id).clone();
                let methods: Vec<Rc<FnSig>> = def
                    .methods
                    .iter()
                    .filter(|m| m.name == member.text)
                    .cloned()
                    .collect();
                if methods.is_empty() {
                    let similar = closest(member.as_str(), def.methods.iter().map(|m| &*m.name))
                        .map(str::to_string);
                    self.report(errors::no_method(
                        member.span,
                        member.as_str(),
                        &def.name,
                        similar.as_deref(),
                    ));
                    return Expr::missing(span);
                }
                let Some(sig) = self.select(member.as_str(), &methods, |m| m, args, span) else {
                    return Expr::missing(span);
                };
                let bindings = def.type_params.iter().copied().zip(given.iter().cloned());
                let bindings: Bindings = bindings.filter(|(_, t)| *t != Ty::Any).collect();
                let Some((args, ret, _)) =
                    self.arguments(&sig, bindings, type_args, args, want, span)
                else {
                    return Expr::missing(span);
                };
                let target = CallTarget::Method {
                    object,
                    external: def.name.clone(),
                    method: sig.name.clone(),
                };
                Expr::new(ExprKind::Call(Box::new(Call { target, args })), ret, span)
            }
            Ty::Block(id) => self.apply_block(id, object, member, args, span),
            Ty::BlockType(id, given) => {
                let def = &self.module.types.block_types[id.index()];
                let (sig, kind) = (def.sig.clone(), def.kind);
                let known = known(&sig.type_params, &given);
                let substitute =
                    |t: &Ty| self.module.types.substitute(t, &|p| known.get(&p).cloned());
                let params = sig.params.iter().map(|p| ParamSig {
                    ty: substitute(&p.ty),
                    ..p.clone()
                });
                let sig = Rc::new(FnSig {
                    type_params: Vec::new(),
                    params: params.collect(),
                    ..(*sig).clone()
                });
                match (kind, &object.kind) {
                    (BlockKind::Package, _) => {
                        self.report(errors::no_method(
                            member.span,
                            member.as_str(),
                            &sig.name,
                            None,
                        ));
                        Expr::missing(span)
                    }
                    (kind, ExprKind::Var(var)) => {
                        let target = CallTarget::Block(*var);
                        self.apply_signature(
                            sig,
                            kind == BlockKind::Parser,
                            target,
                            member,
                            args,
                            span,
                        )
                    }
                    _ => self.unsupported(span, "this way to apply a block"),
                }
            }
            Ty::Header(_)
            | Ty::Union(_)
            | Ty::Stack(..)
            | Ty::Struct(_)
            | Ty::Bit(_)
            | Ty::Signed(_)
            | Ty::Tuple(_) => self.builtin(object, member, args, span),
            ty => {
                let shown = self.show(&ty);
                self.report(errors::no_method(
                    member.span,
                    member.as_str(),
                    &shown,
                    None,
                ));
                Expr::missing(span)
            }
        }
    }

    fn apply_table(
        &mut self,
        id: TableId,
        member: &ast::Name,
        args: &[ast::Argument],
        span: Span,
    ) -> Expr {
        if member.as_str() != "apply" {
            self.report(errors::no_method(
                member.span,
                member.as_str(),
                "table",
                Some("apply"),
            ));
            return Expr::missing(span);
        }
        if !args.is_empty() {
            self.report(errors::argument_count(span, "apply", 0, args.len(), span));
        }
        if self.context.place != Place::Apply {
            self.report(errors::apply_place(span, "a table"));
            return Expr::missing(span);
        }
        let call = Call {
            target: CallTarget::Table(id),
            args: Vec::new(),
        };
        Expr::new(ExprKind::Call(Box::new(call)), Ty::Void, span)
    }

    /// `t.apply().hit`; `None` if this is something else.
    pub(super) fn apply_result(
        &mut self,
        base: &ast::Expr,
        member: &ast::Name,
        span: Span,
    ) -> Option<Expr> {
        let table = self.applied_table(base)?;
        let applied = self.infer(base, None);
        if applied.ty == Ty::Missing {
            return Some(Expr::missing(span));
        }
        Some(match member.as_str() {
            "hit" => Expr::new(ExprKind::ApplyHit { table, miss: false }, Ty::Bool, span),
            "miss" => Expr::new(ExprKind::ApplyHit { table, miss: true }, Ty::Bool, span),
            "action_run" => {
                self.report(errors::action_run_place(span));
                Expr::missing(span)
            }
            name => {
                let similar = closest(name, ["hit", "miss", "action_run"].into_iter());
                self.report(errors::no_member(member.span, name, "apply()", similar));
                Expr::missing(span)
            }
        })
    }

    /// The table if the expression is `t.apply(...)`.
    pub(super) fn applied_table(&self, expr: &ast::Expr) -> Option<TableId> {
        let Ast::Call { callee, .. } = &expr.kind else {
            return None;
        };
        let Ast::Member { base, member } = &callee.kind else {
            return None;
        };
        let Ast::Path(path) = &base.kind else {
            return None;
        };
        match self.scopes.lookup(path) {
            Some(Symbol::Table(id)) if member.as_str() == "apply" => Some(*id),
            _ => None,
        }
    }

    fn apply_type(
        &mut self,
        ty: TypeSymbol,
        at: Span,
        member: &ast::Name,
        args: &[ast::Argument],
        span: Span,
    ) -> Expr {
        let block = match ty {
            TypeSymbol::Block(id) | TypeSymbol::Plain(Ty::Block(id)) => id,
            TypeSymbol::Plain(
                ty @ (Ty::Header(_) | Ty::Struct(_) | Ty::Bit(_) | Ty::Signed(_)),
            ) => {
                return self.size_constant(&ty, member, span);
            }
            TypeSymbol::Plain(Ty::Missing) => return Expr::missing(span),
            _ => {
                self.report(errors::not_a_value(at, "this", "a type"));
                return Expr::missing(span);
            }
        };
        let object = Expr::new(
            ExprKind::Call(Box::new(Call {
                target: CallTarget::Construct,
                args: Vec::new(),
            })),
            Ty::Block(block),
            at,
        );
        if !self.module.block(block).constructor_params.is_empty() {
            let name = self.module.block(block).name.clone();
            self.report(errors::direct_apply_constructor(span, &name));
            return Expr::missing(span);
        }
        self.apply_block(block, object, member, args, span)
    }

    fn apply_block(
        &mut self,
        id: crate::types::BlockId,
        object: Expr,
        member: &ast::Name,
        args: &[ast::Argument],
        span: Span,
    ) -> Expr {
        let block = self.module.block(id);
        let (sig, is_parser) = (block.sig.clone(), block.is_parser);
        let target = match object.kind {
            ExprKind::Var(var) => CallTarget::Block(var),
            _ => CallTarget::BlockType(id),
        };
        self.apply_signature(sig, is_parser, target, member, args, span)
    }

    /// `x.apply(args)` of something with a parser's or control's signature.
    fn apply_signature(
        &mut self,
        sig: Rc<FnSig>,
        is_parser: bool,
        target: CallTarget,
        member: &ast::Name,
        args: &[ast::Argument],
        span: Span,
    ) -> Expr {
        if member.as_str() != "apply" {
            self.report(errors::no_method(
                member.span,
                member.as_str(),
                &sig.name,
                Some("apply"),
            ));
            return Expr::missing(span);
        }
        let place = if is_parser {
            Place::State
        } else {
            Place::Apply
        };
        if self.context.place != place {
            let what = if is_parser { "a parser" } else { "a control" };
            self.report(errors::apply_place(span, what));
            return Expr::missing(span);
        }
        if let CallTarget::Block(var) = target
            && self.top_level_instances.contains(&var)
        {
            self.report(errors::top_level_block(span));
            return Expr::missing(span);
        }
        let Some((args, ..)) = self.arguments(&sig, Bindings::new(), &[], args, None, span) else {
            return Expr::missing(span);
        };
        Expr::new(
            ExprKind::Call(Box::new(Call { target, args })),
            Ty::Void,
            span,
        )
    }

    /// Methods of headers, unions and stacks, and the size methods.
    fn builtin(
        &mut self,
        object: Expr,
        member: &ast::Name,
        args: &[ast::Argument],
        span: Span,
    ) -> Expr {
        let call = |target, ty| {
            Expr::new(
                ExprKind::Call(Box::new(Call {
                    target,
                    args: Vec::new(),
                })),
                ty,
                span,
            )
        };
        let name = member.as_str();
        let wanted = usize::from(matches!(name, "push_front" | "pop_front"));
        if args.len() != wanted {
            self.report(errors::argument_count(span, name, wanted, args.len(), span));
            return Expr::missing(span);
        }
        match (name, &object.ty) {
            ("isValid", Ty::Header(_) | Ty::Union(_)) => {
                call(CallTarget::IsValid(object), Ty::Bool)
            }
            ("setValid" | "setInvalid", Ty::Header(_)) => {
                if !self.require_lvalue(&object) {
                    return Expr::missing(span);
                }
                match name {
                    "setValid" => call(CallTarget::SetValid(object), Ty::Void),
                    _ => call(CallTarget::SetInvalid(object), Ty::Void),
                }
            }
            ("push_front" | "pop_front", Ty::Stack(..)) => {
                let count = args.first().and_then(|a| match &a.value {
                    ArgumentValue::Expr(e) => self.constant_int(e, "the argument"),
                    ArgumentValue::DontCare => None,
                });
                let Some(count) = count else {
                    return Expr::missing(span);
                };
                let Some(count) = fold::to_u32(&count) else {
                    self.report(errors::negative_count(span, &count.to_string()));
                    return Expr::missing(span);
                };
                if !self.require_lvalue(&object) {
                    return Expr::missing(span);
                }
                match name {
                    "push_front" => call(CallTarget::PushFront(object, count), Ty::Void),
                    _ => call(CallTarget::PopFront(object, count), Ty::Void),
                }
            }
            (_, ty) => {
                let ty = ty.clone();
                self.size_constant(&ty, member, span)
            }
        }
    }

    /// `x.minSizeInBits()` and the like.
    fn size_constant(&mut self, ty: &Ty, member: &ast::Name, span: Span) -> Expr {
        let (min, max) = self.size_bits(ty);
        let bits = match member.as_str() {
            "minSizeInBits" => min,
            "maxSizeInBits" => max,
            "minSizeInBytes" => min.div_ceil(8),
            "maxSizeInBytes" => max.div_ceil(8),
            name => {
                let known = [
                    "isValid",
                    "setValid",
                    "setInvalid",
                    "push_front",
                    "pop_front",
                    "minSizeInBits",
                    "minSizeInBytes",
                    "maxSizeInBits",
                    "maxSizeInBytes",
                ];
                let similar = closest(name, known.into_iter());
                let shown = self.show(ty);
                self.report(errors::no_method(member.span, name, &shown, similar));
                return Expr::missing(span);
            }
        };
        Expr::new(ExprKind::Int(BigInt::from(bits)), Ty::Int, span)
    }

    fn size_bits(&self, ty: &Ty) -> (u64, u64) {
        let sum = |tys: &mut dyn Iterator<Item = &Ty>| {
            tys.fold((0, 0), |(a, b), t| {
                let (min, max) = self.size_bits(t);
                (a + min, b + max)
            })
        };
        match ty {
            Ty::Varbit(w) => (0, u64::from(*w)),
            Ty::Struct(id) | Ty::Header(id) => sum(&mut self
                .module
                .types
                .structure(*id)
                .fields
                .iter()
                .map(|f| &f.ty)),
            Ty::Tuple(items) => sum(&mut items.iter()),
            Ty::Union(id) => {
                let sizes: Vec<_> = self
                    .module
                    .types
                    .structure(*id)
                    .fields
                    .iter()
                    .map(|f| self.size_bits(&f.ty))
                    .collect();
                let min = sizes.iter().map(|s| s.0).min().unwrap_or(0);
                (min, sizes.iter().map(|s| s.1).max().unwrap_or(0))
            }
            Ty::Stack(item, n) => {
                let (min, max) = self.size_bits(item);
                (min * u64::from(*n), max * u64::from(*n))
            }
            _ => {
                let width = self.module.types.scalar_width(ty).map_or(0, u64::from);
                (width, width)
            }
        }
    }

    /// `Type(args)`: an instance without a name.
    pub(super) fn construct(&mut self, ty: &ast::Type, args: &[ast::Argument], span: Span) -> Expr {
        let resolved = self.resolve(ty);
        match self.instantiate(resolved, ty.span, args, span) {
            Some((ty, args)) => {
                let call = Call {
                    target: CallTarget::Construct,
                    args,
                };
                Expr::new(ExprKind::Call(Box::new(call)), ty, span)
            }
            None => Expr::missing(span),
        }
    }

    /// Checks a constructor's arguments; gives the complete type and the arguments.
    pub(super) fn instantiate(
        &mut self,
        ty: Ty,
        at: Span,
        args: &[ast::Argument],
        span: Span,
    ) -> Option<(Ty, Vec<Arg>)> {
        let (sig, bindings, params): (Rc<FnSig>, Bindings, Vec<TypeParamId>) = match &ty {
            Ty::Missing => {
                self.infer_stray(args);
                return None;
            }
            Ty::Extern(id, given) => {
                let def = self.module.types.external(*id).clone();
                let sig = self.select(&def.name, &def.constructors, |c| c, args, span)?;
                (sig, known(&def.type_params, given), def.type_params.clone())
            }
            Ty::BlockType(id, given) => {
                let sig = self.module.types.block_types[id.index()].sig.clone();
                let params = sig.type_params.clone();
                (sig, known(&params, given), params)
            }
            Ty::Block(id) => (
                self.module.block(*id).constructor.clone(),
                Bindings::new(),
                Vec::new(),
            ),
            _ => {
                let shown = self.show(&ty);
                self.report(errors::not_instantiable(at, &shown));
                return None;
            }
        };
        let open = FnSig {
            type_params: params.clone(),
            ret: Ty::Void,
            ..(*sig).clone()
        };
        let (args, _, bindings) = self.arguments(&open, bindings, &[], args, None, span)?;
        let complete: Rc<[Ty]> = params
            .iter()
            .map(|p| bindings.get(p).cloned().unwrap_or(Ty::Missing))
            .collect();
        let ty = match ty {
            Ty::Extern(id, _) => Ty::Extern(id, complete),
            Ty::BlockType(id, _) => Ty::BlockType(id, complete),
            other => other,
        };
        Some((ty, args))
    }

    /// Whether a block with a body can stand where a block type is wanted; a mismatch is reported.
    pub(super) fn block_fits(&mut self, value: &Expr, wanted: &Ty) -> bool {
        let (Ty::BlockType(id, args), Ty::Block(block)) = (wanted, &value.ty) else {
            return false;
        };
        let sig = self.module.types.block_types[id.index()].sig.clone();
        let found = self.module.block(*block).sig.clone();
        let map = known(&sig.type_params, args);
        if sig.params.len() != found.params.len() {
            let (n, m) = (sig.params.len(), found.params.len());
            self.report(errors::block_params(
                value.span,
                &found.name,
                &sig.name,
                n,
                m,
            ));
            return true;
        }
        for (w, f) in sig.params.iter().zip(&found.params) {
            let ty = self
                .module
                .types
                .substitute(&w.ty, &|id| map.get(&id).cloned());
            let compatible =
                ty == f.ty || matches!(ty, Ty::Missing | Ty::Any) || f.ty == Ty::Missing;
            if w.direction != f.direction || !compatible {
                let wanted = format!("{}{}", direction(w.direction), self.show(&ty));
                let given = format!("{}{}", direction(f.direction), self.show(&f.ty));
                self.report(errors::block_param(
                    f.span,
                    &f.name,
                    &found.name,
                    &sig.name,
                    &wanted,
                    &given,
                ));
            }
        }
        true
    }

    /// The function for these type arguments, checked now if it is new.
    fn specialise(
        &mut self,
        template: &Rc<FnTemplate>,
        types: Vec<Ty>,
        span: Span,
    ) -> Option<crate::hir::FuncId> {
        if self.checking.contains(&template.index) {
            self.report(errors::recursion(span, &template.sig.name));
            return None;
        }
        let key = (template.index, types.clone());
        if let Some(id) = self.specialised.get(&key) {
            return Some(*id);
        }
        self.checking.push(template.index);
        let id = self.function_body(template, &types);
        self.checking.pop();
        self.specialised.insert(key, id);
        Some(id)
    }

    /// The `ActionData` view of parameters: those the control plane sets cannot be written.
    pub(super) fn param_kind(direction: Direction, action: bool) -> VarKind {
        match (direction, action) {
            (Direction::None, true) => VarKind::ActionData,
            (direction, _) => VarKind::Param(direction),
        }
    }
}

fn known(params: &[TypeParamId], given: &[Ty]) -> Bindings {
    params
        .iter()
        .copied()
        .zip(given.iter().cloned())
        .filter(|(_, t)| *t != Ty::Any)
        .collect()
}

fn type_of_call(path: &ast::Path, type_args: &[ast::Type]) -> ast::TypeKind {
    match type_args {
        [] => ast::TypeKind::Named(path.clone()),
        args => ast::TypeKind::Specialised {
            path: path.clone(),
            args: args.to_vec(),
        },
    }
}

/// The direction as written, with a space after it.
pub(super) fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::None => "",
        Direction::In => "in ",
        Direction::Out => "out ",
        Direction::InOut => "inout ",
    }
}

fn mentions(ty: &Ty, param: TypeParamId) -> bool {
    match ty {
        Ty::Param(id) => *id == param,
        Ty::Stack(t, _) | Ty::List(t) | Ty::ValueSet(t) => mentions(t, param),
        Ty::Tuple(items) | Ty::Extern(_, items) | Ty::BlockType(_, items) => {
            items.iter().any(|t| mentions(t, param))
        }
        _ => false,
    }
}

fn has_params(ty: &Ty) -> bool {
    match ty {
        Ty::Param(_) | Ty::Any => true,
        Ty::Stack(t, _) | Ty::List(t) | Ty::ValueSet(t) => has_params(t),
        Ty::Tuple(items) | Ty::Extern(_, items) | Ty::BlockType(_, items) => {
            items.iter().any(has_params)
        }
        _ => false,
    }
}

/// The type of an integer nobody gave a width: 32 bits, or 64 if it needs them.
fn default_width(value: &Expr) -> Ty {
    match value.as_int() {
        Some(v) if !fold::fits(v, &Ty::Bit(32)) => Ty::Bit(64),
        _ => Ty::Bit(32),
    }
}

/// A name as a shared string.
pub(super) fn arc(name: &ast::Name) -> Arc<str> {
    name.text.clone()
}
