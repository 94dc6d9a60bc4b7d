//! Calls with a dot: methods of externs, headers and stacks, and `apply`.

use std::rc::Rc;

use num_bigint::BigInt;
use syntax::ast::{self, ArgumentValue, ExprKind as Ast};
use syntax::source::Span;

use super::infer::{Bindings, known};
use super::scope::{Symbol, TypeSymbol};
use super::{Checked, Checker, Place};
use crate::errors;
use crate::fold;
use crate::hir::{Arg, Args, Call, CallTarget, Expr, ExprKind, TableId};
use crate::meaning::{Meaning, Method};
use crate::types::{BlockKind, DeclaredMethod, FnSig, ParamSig, Ty};

impl Checker {
    pub(super) fn call_member(
        &mut self,
        base: &ast::Expr,
        member: &ast::Name,
        type_args: &[ast::Type],
        args: &[ast::Argument],
        want: Option<&Ty>,
        span: Span,
    ) -> Expr {
        if let Ast::Path(path) = &base.kind
            && let Some(Symbol::Table(id)) = self.find(path)
        {
            self.offer_apply(member.as_str());
            return self.apply_table(id, member, args, span);
        }
        if let Some(ty) = self.as_type(base) {
            return self.apply_type(ty, base.span, member, args, span);
        }
        let object = self.infer(base, None);
        self.offer_members(member.as_str(), &object.ty);
        match object.ty.clone() {
            Ty::Missing => {
                self.infer_stray(args);
                Expr::missing(span)
            }
            Ty::Extern(id, given) => {
                let def = self.module.types.external(id).clone();
                let methods: Vec<Rc<DeclaredMethod>> = def
                    .methods
                    .iter()
                    .filter(|m| m.sig.name == member.text)
                    .cloned()
                    .collect();
                if methods.is_empty() {
                    let similar =
                        self.closest(member.as_str(), def.methods.iter().map(|m| &*m.sig.name));
                    return self.wrong(
                        errors::no_method(
                            member.span,
                            member.as_str(),
                            &def.name,
                            similar.as_deref(),
                        ),
                        span,
                    );
                }
                let chosen = self.select(member.as_str(), &methods, |m| &m.sig, args, span);
                let Some(method) = chosen else {
                    return Expr::missing(span);
                };
                let bindings = def.type_params.iter().copied().zip(given.iter().cloned());
                let bindings: Bindings = bindings.filter(|(_, t)| *t != Ty::Any).collect();
                let Some((args, ret, _)) =
                    self.arguments(&method.sig, bindings, type_args, args, want, span)
                else {
                    return Expr::missing(span);
                };
                let sig = method.sig.clone();
                self.used(member.span, sig.span);
                self.check_deprecated(&sig.annotations, &sig.name, span);
                self.check_packet_call(method.meaning, &args, &ret, span);
                let target = CallTarget::Method {
                    object,
                    external: id,
                    method,
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
                    (BlockKind::Package, _) => self.wrong(
                        errors::no_method(member.span, member.as_str(), &sig.name, None),
                        span,
                    ),
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
                self.wrong(
                    errors::no_method(member.span, member.as_str(), &shown, None),
                    span,
                )
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
        if !self.can_apply("table", "a table", Place::Apply, member, span) {
            return Expr::missing(span);
        }
        if !args.is_empty() {
            self.report(errors::argument_count(span, "apply", 0, args.len(), span));
        }
        let call = Call {
            target: CallTarget::Table(id),
            args: Args::default(),
        };
        Expr::new(ExprKind::Call(Box::new(call)), Ty::Void, span)
    }

    /// Returns whether `member` is `apply` and stands where it is allowed, at `place`. Reports any other
    /// method, and an `apply` elsewhere. `of` and `what` name the object and its kind in messages.
    fn can_apply(
        &mut self,
        of: &str,
        what: &str,
        place: Place,
        member: &ast::Name,
        span: Span,
    ) -> bool {
        if member.as_str() != "apply" {
            let message = errors::no_method(member.span, member.as_str(), of, Some("apply"));
            self.report(message);
            return false;
        }
        if self.context.place != place {
            self.report(errors::apply_place(span, what));
            return false;
        }
        true
    }

    /// Returns the value of `t.apply().hit` or `t.apply().miss`; `None` if `base` is no application of a table.
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
        self.offer_results(member.as_str());
        Some(match member.as_str() {
            "hit" => Expr::new(ExprKind::ApplyHit { table, miss: false }, Ty::Bool, span),
            "miss" => Expr::new(ExprKind::ApplyHit { table, miss: true }, Ty::Bool, span),
            "action_run" => self.wrong(errors::action_run_place(span), span),
            name => {
                let similar = self.closest(name, ["hit", "miss", "action_run"].into_iter());
                self.wrong(
                    errors::no_member(member.span, name, "apply()", similar.as_deref()),
                    span,
                )
            }
        })
    }

    /// Returns the table `t` if `expr` has the form `t.apply(...)`, else `None`.
    pub(super) fn applied_table(&mut self, expr: &ast::Expr) -> Option<TableId> {
        let Ast::Call { callee, .. } = &expr.kind else {
            return None;
        };
        let Ast::Member { base, member } = &callee.kind else {
            return None;
        };
        let Ast::Path(path) = &base.kind else {
            return None;
        };
        match self.find(path) {
            Some(Symbol::Table(id)) if member.as_str() == "apply" => Some(id),
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
                return self.wrong(errors::not_a_value(at, "this", "a type"), span);
            }
        };
        let object = Expr::new(
            ExprKind::Call(Box::new(Call {
                target: CallTarget::Construct,
                args: Args::default(),
            })),
            Ty::Block(block),
            at,
        );
        if !self.module.block(block).constructor_params.is_empty() {
            let name = self.module.block(block).name.clone();
            return self.wrong(errors::direct_apply_constructor(span, &name), span);
        }
        let (annotations, name) = {
            let def = self.module.block(block);
            (def.annotations.clone(), def.name.clone())
        };
        self.check_deprecated(&annotations, &name, at);
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

    /// Checks the call `x.apply(args)` of a parser or control with the signature `sig`, and returns it.
    fn apply_signature(
        &mut self,
        sig: Rc<FnSig>,
        is_parser: bool,
        target: CallTarget,
        member: &ast::Name,
        args: &[ast::Argument],
        span: Span,
    ) -> Expr {
        let (what, place) = match is_parser {
            true => ("a parser", Place::State),
            false => ("a control", Place::Apply),
        };
        if !self.can_apply(&sig.name, what, place, member, span) {
            return Expr::missing(span);
        }
        if let CallTarget::Block(var) = target
            && self.top_level_instances.contains(&var)
        {
            return self.wrong(errors::top_level_block(span), span);
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

    /// Checks a call of a method that is part of the language: one of headers, header unions or stacks, or
    /// one for sizes such as `minSizeInBits`. Returns the checked expression.
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
                    args: Args::default(),
                })),
                ty,
                span,
            )
        };
        let name = member.as_str();
        let wanted = usize::from(matches!(name, "push_front" | "pop_front"));
        if args.len() != wanted {
            return self.wrong(
                errors::argument_count(span, name, wanted, args.len(), span),
                span,
            );
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
            ("push_front" | "pop_front", Ty::Stack(element, _))
                if matches!(**element, Ty::Header(_) | Ty::Union(_)) =>
            {
                let count = args.first().and_then(|a| match &a.value {
                    ArgumentValue::Expr(e) => self.constant_int(e, "the argument"),
                    ArgumentValue::DontCare => None,
                });
                let Some(count) = count else {
                    return Expr::missing(span);
                };
                let Some(count) = fold::to_u32(&count) else {
                    return self.wrong(errors::negative_count(span, &count.to_string()), span);
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
}

impl Checked {
    /// Checks the type in a call of the method `extract` or `lookahead` of `packet_in`. An extract needs a
    /// header of whole bytes, and a size argument exactly if the header has a varbit; a lookahead needs a
    /// type of a fixed size.
    fn check_packet_call(
        &mut self,
        method: Option<Meaning<Method, (usize, usize)>>,
        args: &[Arg],
        ret: &Ty,
        span: Span,
    ) {
        match method {
            Some(Meaning::Common(Method::Extract)) => {
                let (ty, at) = match args.first() {
                    Some(Arg::Out(e)) => (e.ty.clone(), e.span),
                    Some(Arg::Ignore(ty)) => (ty.clone(), span),
                    _ => return,
                };
                let Ty::Header(id) = ty else {
                    if !matches!(ty, Ty::Missing | Ty::Param(_)) {
                        let found = self.show(&ty);
                        self.report(errors::extract_header(at, &found));
                    }
                    return;
                };
                let bits = self.size_bits(&ty).1;
                let def = self.module.types.structure(id);
                let varbit = def.fields.iter().any(|f| matches!(f.ty, Ty::Varbit(_)));
                if varbit != (args.len() == 2) {
                    let name = def.name.clone();
                    self.report(errors::extract_varbit(span, &name, varbit));
                } else if !varbit && !bits.is_multiple_of(8) {
                    let name = def.name.clone();
                    self.report(errors::header_not_bytes(span, &name, bits));
                }
            }
            Some(Meaning::Common(Method::Lookahead)) => {
                let open = matches!(ret, Ty::Missing | Ty::Param(_) | Ty::Any);
                if !open && self.module.types.packed_width(ret).is_none_or(|w| w == 0) {
                    let found = self.show(ret);
                    self.report(errors::lookahead_type(span, &found));
                }
            }
            _ => {}
        }
    }

    /// Returns the constant that `minSizeInBits()`, `maxSizeInBits()`, `minSizeInBytes()` or
    /// `maxSizeInBytes()` gives for a value of type `ty`. Reports any other method.
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
                let similar = self.closest(name, known.into_iter());
                let shown = self.show(ty);
                return self.wrong(
                    errors::no_method(member.span, name, &shown, similar.as_deref()),
                    span,
                );
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
}
