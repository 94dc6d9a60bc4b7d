//! Calls: which function, action or constructor is meant. Arguments are in [`super::infer`], what has a dot in
//! [`super::method`].

use std::rc::Rc;
use std::sync::Arc;

use syntax::ast::{self, ArgumentValue, Direction, ExprKind as Ast};
use syntax::source::Span;

use super::infer::{Bindings, known};
use super::scope::{FnSymbol, FnTemplate, Symbol};
use super::{Checked, Checker, Place};
use crate::errors;
use crate::hir::{ActionId, Arg, Args, Call, CallTarget, Expr, ExprKind, VarKind};
use crate::meaning::{Function, Meaning};
use crate::types::{FnSig, Ty, TypeParamId};

impl Checker {
    /// Checks a call of a function, action, constructor or method, and returns the checked expression. `want`
    /// is the type that the context suggests for the result.
    pub(super) fn call(
        &mut self,
        callee: &ast::Expr,
        type_args: &[ast::Type],
        args: &[ast::Argument],
        want: Option<&Ty>,
        span: Span,
    ) -> Expr {
        match &callee.kind {
            Ast::Path(path) => match self.named(path) {
                Symbol::Missing => {
                    self.infer_stray(args);
                    Expr::missing(span)
                }
                Symbol::Functions(functions) => {
                    self.call_function(&path.name, &functions, type_args, args, want, span)
                }
                Symbol::Action(id) => {
                    if let Some(first) = type_args.first() {
                        let name = path.name.as_str();
                        let count = type_args.len();
                        self.report(errors::type_argument_count(first.span, name, 0, count));
                    }
                    self.call_action(id, args, span)
                }
                Symbol::Type(_) => {
                    let ty = ast::Type {
                        kind: type_of_call(path, type_args),
                        span: callee.span,
                    };
                    self.construct(&ty, args, span)
                }
                other => self.wrong(
                    errors::not_callable(callee.span, path.name.as_str(), other.describe()),
                    span,
                ),
            },
            Ast::Member { base, member } => {
                self.call_member(base, member, type_args, args, want, span)
            }
            Ast::Type(ty) => self.construct(ty, args, span),
            _ => {
                let _ = self.infer(callee, None);
                self.wrong(errors::not_callable(callee.span, "this", "a value"), span)
            }
        }
    }

    /// Checks the arguments of a call whose callee is unknown, so that errors inside the arguments are reported.
    pub(super) fn infer_stray(&mut self, args: &[ast::Argument]) {
        for arg in args {
            if let ArgumentValue::Expr(value) = &arg.value {
                let _ = self.infer(value, None);
            }
        }
    }

    fn call_function(
        &mut self,
        name: &ast::Name,
        functions: &[FnSymbol],
        type_args: &[ast::Type],
        args: &[ast::Argument],
        want: Option<&Ty>,
        span: Span,
    ) -> Expr {
        let Some(function) = self.select(name.as_str(), functions, FnSymbol::sig, args, span)
        else {
            self.infer_stray(args);
            return Expr::missing(span);
        };
        let sig = function.sig().clone();
        self.used_overload(name, sig.span);
        let Some((args, ret, bindings)) =
            self.arguments(&sig, Bindings::new(), type_args, args, want, span)
        else {
            return Expr::missing(span);
        };
        self.check_deprecated(&sig.annotations, &sig.name, span);
        let target = match &function {
            FnSymbol::Extern(declared) => match declared.meaning {
                Some(Meaning::Common(Function::StaticAssert)) => {
                    return self.static_assert(&args, span);
                }
                Some(Meaning::Common(Function::Verify))
                    if !matches!(self.context.place, Place::State | Place::Function) =>
                {
                    return self.wrong(errors::verify_place(span), span);
                }
                _ => CallTarget::Extern(declared.clone()),
            },
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

    fn call_action(&mut self, id: ActionId, args: &[ast::Argument], span: Span) -> Expr {
        if matches!(self.context.place, Place::State | Place::Function) {
            return self.wrong(errors::action_place(span), span);
        }
        let sig = self.module.actions[id.index()].sig.clone();
        self.check_deprecated(&sig.annotations, &sig.name, span);
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

    /// Checks the expression `Type(args)`, which creates an instance without a name, and returns the
    /// checked expression.
    pub(super) fn construct(&mut self, ty: &ast::Type, args: &[ast::Argument], span: Span) -> Expr {
        let resolved = self.resolve(ty);
        match self.instantiate(resolved, ty.span, args, span) {
            Some((ty, args)) => {
                self.check_static(&args);
                if let Ty::Extern(id, _) = &ty
                    && let Some(method) = self.module.types.external(*id).abstract_methods.first()
                {
                    let name = method.name.clone();
                    self.report(errors::abstract_method(span, &name));
                }
                let call = Call {
                    target: CallTarget::Construct,
                    args,
                };
                Expr::new(ExprKind::Call(Box::new(call)), ty, span)
            }
            None => Expr::missing(span),
        }
    }

    /// Checks the arguments `args` of a constructor of the type `ty`. Returns the type with its type
    /// arguments filled in, and the checked arguments; `None` after an error. `at` is the place of the type,
    /// `span` that of the whole.
    pub(super) fn instantiate(
        &mut self,
        ty: Ty,
        at: Span,
        args: &[ast::Argument],
        span: Span,
    ) -> Option<(Ty, Args)> {
        let (sig, bindings, params): (Rc<FnSig>, Bindings, Vec<TypeParamId>) = match &ty {
            Ty::Missing => {
                self.infer_stray(args);
                return None;
            }
            Ty::Extern(id, given) => {
                let def = self.module.types.external(*id).clone();
                let sig = self
                    .select(&def.name, &def.constructors, |c| &c.sig, args, span)?
                    .sig;
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
        self.check_deprecated_type(&ty, at);
        if matches!(ty, Ty::Extern(..)) {
            self.check_deprecated(&sig.annotations, &sig.name, at);
        }
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

    /// Returns the function that the generic function `template` becomes with the type arguments `types`;
    /// checks its body at the first call with these types. Returns `None` if its body has errors whatever the
    /// types, or if the call is recursive, which it reports.
    fn specialise(
        &mut self,
        template: &Rc<FnTemplate>,
        types: Vec<Ty>,
        span: Span,
    ) -> Option<crate::hir::FuncId> {
        if self.generics.broken.contains(&template.index) {
            return None;
        }
        if self.generics.checking.contains(&template.index) {
            self.report(errors::recursion(span, &template.sig.name));
            return None;
        }
        let key = (template.index, types.clone());
        if let Some(id) = self.generics.functions.get(&key) {
            return Some(*id);
        }
        self.generics.checking.push(template.index);
        let id = self.function_body(template, &types);
        self.generics.checking.pop();
        self.generics.functions.insert(key, id);
        Some(id)
    }
}

impl Checked {
    /// Warns that `name` is deprecated if `annotations`, those of its declaration, contain `@deprecated`.
    /// `span` is the place of its use.
    pub(super) fn check_deprecated(
        &mut self,
        annotations: &[ast::Annotation],
        name: &str,
        span: Span,
    ) {
        let mut annotations = annotations.iter();
        if let Some(found) = annotations.find(|a| a.name.as_str() == "deprecated") {
            let advice = found.string();
            self.report(errors::deprecated(span, name, advice.as_deref()));
        }
    }

    /// Warns of the instantiation of an extern, parser, control or package whose declaration has `@deprecated`.
    fn check_deprecated_type(&mut self, ty: &Ty, span: Span) {
        let (annotations, name) = match ty {
            Ty::Extern(id, _) => {
                let def = self.module.types.external(*id);
                (def.annotations.clone(), def.name.clone())
            }
            Ty::Block(id) => {
                let block = self.module.block(*id);
                (block.annotations.clone(), block.name.clone())
            }
            Ty::BlockType(id, _) => {
                let sig = &self.module.types.block_types[id.index()].sig;
                (sig.annotations.clone(), sig.name.clone())
            }
            _ => return,
        };
        self.check_deprecated(&annotations, &name, span);
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

    /// Returns the overload whose parameters fit the number and the names of `args`. Reports an error and
    /// returns `None` if no overload fits, or more than one.
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
        if let [first, second, ..] = found[..] {
            let (first, second) = (sig(first).span, sig(second).span);
            self.report(errors::ambiguous_call(span, name, first, second));
            return None;
        }
        match found[..] {
            [] => {
                let counts: Vec<usize> = overloads.iter().map(|f| sig(f).params.len()).collect();
                self.report(errors::no_overload(span, name, &counts, args.len()));
                None
            }
            [first, ..] => Some(first.clone()),
        }
    }

    /// Returns whether `value` is a parser and `wanted` a parser type, or the same for controls. Reports
    /// parameters that differ from the type's; then returns true nevertheless, since the error is reported.
    pub(super) fn block_fits(&mut self, value: &Expr, wanted: &Ty) -> bool {
        let (Ty::BlockType(id, args), Ty::Block(block)) = (wanted, &value.ty) else {
            return false;
        };
        if Some(self.module.types.block_types[id.index()].kind) != self.block_kind(&value.ty) {
            return false;
        }
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

    /// Returns the kind of variable that a parameter becomes: [`VarKind::ActionData`], set by the control
    /// plane, for a parameter of an action (`action` is true) without direction, else [`VarKind::Param`].
    pub(super) fn param_kind(direction: Direction, action: bool) -> VarKind {
        match (direction, action) {
            (Direction::None, true) => VarKind::ActionData,
            (direction, _) => VarKind::Param(direction),
        }
    }
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

/// Returns a parameter's direction as P4 writes it, with a space after it; empty for a parameter without direction.
pub(super) fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::None => "",
        Direction::In => "in ",
        Direction::Out => "out ",
        Direction::InOut => "inout ",
    }
}

/// Returns the text of a name as a shared string.
pub(super) fn arc(name: &ast::Name) -> Arc<str> {
    name.text.clone()
}
