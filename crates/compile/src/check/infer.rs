//! Arguments of calls: their order, their types, and the type arguments that follow from them.

use std::collections::BTreeMap;

use syntax::ast::{self, ArgumentValue, Direction};
use syntax::source::Span;

use super::{Checked, Checker};
use crate::errors;
use crate::hir::{Arg, Args, Expr};
use crate::types::{FnSig, ParamSig, Ty, TypeParamId};

/// The types that replace type parameters, as far as they are known.
pub(super) type Bindings = BTreeMap<TypeParamId, Ty>;

/// Returns the first argument without a name if another argument has one, which is an error: either all
/// arguments have names or none (specification, "Calling convention"). Returns `None` otherwise.
pub(super) fn without_name(args: &[ast::Argument]) -> Option<&ast::Argument> {
    let named = args.iter().any(|a| a.name.is_some());
    args.iter().find(|a| named && a.name.is_none())
}

impl Checker {
    /// Checks the arguments of a call and infers its type arguments. Returns the checked arguments, the type
    /// of the call's result, and the type that replaces each type parameter; `None` after an error.
    pub(super) fn arguments(
        &mut self,
        sig: &FnSig,
        mut bindings: Bindings,
        type_args: &[ast::Type],
        args: &[ast::Argument],
        want: Option<&Ty>,
        span: Span,
    ) -> Option<(Args, Ty, Bindings)> {
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
                if ty == Ty::Void {
                    self.report(errors::type_argument(arg.span, "void"));
                    return None;
                }
                if !self.check_type_argument(&ty, arg.span) {
                    return None;
                }
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
        // Where an argument is missing, the types are not known, and so neither is the result.
        let missing = inferred.iter().flatten().any(|e| e.ty == Ty::Missing);
        let untyped = missing && type_args.is_empty() && !sig.type_params.is_empty();
        if let Some(param) = open.first() {
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
            let ty = match untyped {
                true => Ty::Missing,
                false => self.applied(&param.ty, &bindings),
            };
            out.push(self.argument(param, &ty, *slot, value, &sig.name));
        }
        let ret = match untyped {
            true => Ty::Missing,
            false => self.applied(&sig.ret, &bindings),
        };
        let place = |arg: &ast::Argument| {
            slots
                .iter()
                .position(|s| s.is_some_and(|s| std::ptr::eq(s, arg)))
        };
        let written = args.iter().filter_map(place).collect();
        Some((Args::new(out, written), ret, bindings))
    }

    /// Infers the types of the arguments and returns the checked arguments. Enters into `bindings` the types
    /// that replace the type parameters of `sig` because of them. Integers without a width come last, since
    /// they determine a type parameter only if no other argument does.
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
            let known = self.applied(&param.ty, bindings);
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
        for (param, value) in sig.params.iter().zip(&mut values) {
            if let (Ty::Param(id), Some(value)) = (&param.ty, value)
                && value.ty == Ty::Int
                && !bindings.contains_key(id)
                && param.direction != Direction::None
            {
                self.report(errors::unsized_int(value.span));
                *value = Expr::missing(value.span);
            }
        }
        values
    }
}

impl Checked {
    /// Returns the arguments in the order of the parameters, with `None` for a parameter without an argument.
    /// Reports a wrong number of arguments or a wrong name, and returns `None`.
    fn match_arguments<'a>(
        &mut self,
        sig: &FnSig,
        args: &'a [ast::Argument],
        span: Span,
    ) -> Option<Vec<Option<&'a ast::Argument>>> {
        let mut slots: Vec<Option<&ast::Argument>> = vec![None; sig.params.len()];
        let wrong_count = || {
            let (expected, found) = (sig.params.len(), args.len());
            errors::argument_count(span, &sig.name, expected, found, sig.span)
        };
        if let Some(arg) = without_name(args) {
            self.report(errors::argument_without_name(arg.span, &sig.name));
            return None;
        }
        let mut ok = true;
        for (i, arg) in args.iter().enumerate() {
            let position = match &arg.name {
                None => Some(i),
                Some(name) => sig.params.iter().position(|p| p.name == name.text),
            };
            if let (Some(name), Some(param)) = (&arg.name, position.and_then(|p| sig.params.get(p)))
            {
                self.used_param(name, param.span);
            }
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
                            let similar = self.closest(name.as_str(), known);
                            self.report(errors::no_parameter(
                                name.span,
                                name.as_str(),
                                &sig.name,
                                similar.as_deref(),
                            ));
                        }
                        None => {
                            self.report(wrong_count());
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
            self.report(wrong_count());
            return None;
        }
        ok.then_some(slots)
    }

    fn argument(
        &mut self,
        param: &ParamSig,
        ty: &Ty,
        slot: Option<&ast::Argument>,
        value: Option<Expr>,
        of: &str,
    ) -> Arg {
        let Some(slot) = slot else {
            return match &param.default {
                Some(id) => Arg::In(self.module.defaults[id.index()].clone()),
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
                self.require_value(&value, ty, param, of);
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

    /// Checks the value of an argument: an integer in a tuple needs a width, and the type that replaces a
    /// type parameter must be one that values can have there. `of` names the function in messages.
    fn require_value(&mut self, value: &Expr, ty: &Ty, param: &ParamSig, of: &str) {
        if matches!(ty, Ty::Tuple(_)) {
            self.require_sized(value);
        }
        if !matches!(param.ty, Ty::Param(_)) {
            return;
        }
        if param.direction != Direction::None && *ty == Ty::String {
            self.report(errors::param_direction(value.span, &param.name, "string"));
        } else if matches!(ty, Ty::Record(_)) {
            let name = self.show(&param.ty);
            self.report(errors::cannot_infer(value.span, &name, of));
        } else if matches!(ty, Ty::Extern(..) | Ty::Block(_) | Ty::BlockType(..)) {
            self.check_type_argument(ty, value.span);
        }
    }

    /// Returns `value`, an `out` or `inout` argument, if its type is exactly the parameter's type `ty`.
    /// Reports any other type, and returns a missing expression.
    fn exact(&mut self, value: Expr, ty: &Ty) -> Expr {
        if value.ty == *ty || value.ty == Ty::Missing || *ty == Ty::Missing {
            return value;
        }
        let (wanted, found) = (self.show(ty), self.show(&value.ty));
        self.wrong(
            errors::type_mismatch(value.span, &wanted, &found),
            value.span,
        )
    }

    /// Enters into `bindings` the types that must replace the type parameters in `pattern` to make it equal
    /// to `ty`. Enters into `loose` each type parameter for which `ty` has an integer without a width. Does
    /// not report mismatches.
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
                } else if !matches!(ty, Ty::Any | Ty::Missing | Ty::Void) && *ty != *pattern {
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
            (Ty::BlockType(i, a), Ty::BlockType(j, b)) if i == j => {
                a.iter()
                    .zip(b.iter())
                    .for_each(|(a, b)| self.unify(a, b, bindings, loose));
            }
            (
                Ty::Struct(i) | Ty::Header(i) | Ty::Union(i),
                Ty::Struct(j) | Ty::Header(j) | Ty::Union(j),
            ) => {
                let (a, b) = (
                    self.module.types.structure(*i),
                    self.module.types.structure(*j),
                );
                if a.name == b.name {
                    a.args
                        .iter()
                        .zip(&b.args)
                        .for_each(|(a, b)| self.unify(a, b, bindings, loose));
                }
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
}

pub(super) fn known(params: &[TypeParamId], given: &[Ty]) -> Bindings {
    params
        .iter()
        .copied()
        .zip(given.iter().cloned())
        .filter(|(_, t)| *t != Ty::Any)
        .collect()
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
