//! Expressions without calls: their types, and the meaning of their names.

use std::rc::Rc;
use std::sync::Arc;

use num_bigint::BigInt;
use syntax::ast::{self, ExprKind as Ast};
use syntax::source::Span;

use super::convert::{DOTS, tuple_of};
use super::scope::{Symbol, TypeSymbol};
use super::{Checked, Checker, Place};
use crate::errors;
use crate::fold;
use crate::hir::{Expr, ExprKind, VarKind};
use crate::types::{StructId, Ty};

impl Checker {
    /// Infers the type of an expression and returns the checked expression. `want` is the type that the
    /// context wants, which is only a hint: the result may have another, and the caller may have to call
    /// [`Checker::coerce`].
    pub(super) fn infer(&mut self, expr: &ast::Expr, want: Option<&Ty>) -> Expr {
        let span = expr.span;
        match &expr.kind {
            Ast::Int(literal) => self.int_literal(literal, span),
            Ast::Bool(value) => Expr::new(ExprKind::Bool(*value), Ty::Bool, span),
            Ast::Str(text) => Expr::new(ExprKind::Str(text.clone()), Ty::String, span),
            Ast::This => self.unsupported(span, "`this`"),
            Ast::Dots => Expr::new(ExprKind::Default, Ty::Any, span),
            Ast::InvalidHeader => Expr::new(ExprKind::InvalidHeader, Ty::Any, span),
            Ast::Path(path) => self.path(path, span),
            Ast::Type(ty) => {
                let resolved = self.resolve(ty);
                let shown = self.show(&resolved);
                self.wrong(errors::not_a_value(span, &shown, "a type"), span)
            }
            Ast::Member { base, member } => self.member(base, member, span),
            Ast::Index { base, index } => self.index(base, index, span),
            Ast::Slice { base, high, low } => self.slice(base, high, low, span),
            Ast::PlusSlice { base, low, width } => self.plus_slice(base, low, width, span),
            Ast::Unary { op, operand } => {
                let operand = self.infer(operand, want);
                self.unary(*op, operand, span)
            }
            Ast::Binary {
                op,
                op_span,
                left,
                right,
            } => {
                let left = self.infer(left, None);
                let right = self.infer(right, None);
                self.binary(*op, left, right, *op_span, span)
            }
            Ast::Ternary {
                condition,
                if_true,
                if_false,
            } => self.ternary(condition, if_true, if_false, want, span),
            Ast::Cast { ty, operand } => {
                let ty = self.resolve(ty);
                let operand = self.infer(operand, Some(&ty));
                self.cast(operand, &ty, span)
            }
            Ast::Call {
                callee,
                type_args,
                args,
            } => self.call(callee, type_args, args, want, span),
            Ast::List(items) => self.list(items, want, span),
            Ast::Record { fields, dots } => self.record(fields, *dots, want, span),
            Ast::Missing => Expr::missing(span),
        }
    }

    fn path(&mut self, path: &ast::Path, span: Span) -> Expr {
        if self.find(path).is_none() {
            let kinds = &self.module.types.match_kinds;
            if let Some(i) = kinds.iter().position(|k| **k == *path.name.text) {
                self.used_member("match_kind", &path.name);
                return Expr::new(ExprKind::Symbol(i as u32), Ty::MatchKind, span);
            }
        }
        match self.named(path) {
            Symbol::Missing => Expr::missing(span),
            Symbol::Const(value) => Expr {
                span,
                ..(*value).clone()
            },
            Symbol::Var(id) => Expr::new(ExprKind::Var(id), self.module.var(id).ty.clone(), span),
            other => self.wrong(
                errors::not_a_value(span, path.name.as_str(), other.describe()),
                span,
            ),
        }
    }

    /// Returns the type that `base`, the expression before a dot, names; `None` if it names no type.
    pub(super) fn as_type(&mut self, base: &ast::Expr) -> Option<TypeSymbol> {
        match &base.kind {
            Ast::Path(path) => match self.find(path) {
                Some(Symbol::Type(ty)) => Some(ty),
                _ => None,
            },
            Ast::Type(ty) => Some(TypeSymbol::Plain(self.resolve(ty))),
            _ => None,
        }
    }

    fn member(&mut self, base: &ast::Expr, member: &ast::Name, span: Span) -> Expr {
        if let Some(ty) = self.as_type(base) {
            return self.type_member(ty, member, span);
        }
        if let Some(result) = self.apply_result(base, member, span) {
            return result;
        }
        let base = self.infer(base, None);
        self.value_member(base, member, span)
    }

    fn value_member(&mut self, base: Expr, member: &ast::Name, span: Span) -> Expr {
        let name = member.as_str();
        self.offer_members(name, &base.ty);
        match base.ty.clone() {
            Ty::Missing => Expr::missing(span),
            Ty::Struct(id) | Ty::Header(id) | Ty::Union(id) => self.field(base, id, member, span),
            Ty::Stack(element, size) => self.stack_member(base, &element, size, member, span),
            ty => {
                let shown = self.show(&ty);
                let method = matches!(ty, Ty::Extern(..) | Ty::Block(_));
                let message = errors::no_member(member.span, name, &shown, None);
                self.wrong(
                    if method {
                        message.hint("call it")
                    } else {
                        message
                    },
                    span,
                )
            }
        }
    }

    fn stack_member(
        &mut self,
        base: Expr,
        element: &Ty,
        size: u32,
        member: &ast::Name,
        span: Span,
    ) -> Expr {
        let base = Box::new(base);
        let is_stack = matches!(element, Ty::Header(_) | Ty::Union(_) | Ty::Missing);
        match member.as_str() {
            name if !is_stack && name != "size" => {
                let shown = self.show(&base.ty);
                self.wrong(errors::no_member(member.span, name, &shown, None), span)
            }
            "size" => Expr::new(ExprKind::Int(BigInt::from(size)), Ty::Bit(32), span),
            "lastIndex" => Expr::new(ExprKind::LastIndex(base), Ty::Bit(32), span),
            "next" | "last" if self.context.place != Place::State => self.wrong(
                errors::stack_property_place(member.span, member.as_str()),
                span,
            ),
            "next" => Expr::new(ExprKind::Next(base), element.clone(), span),
            "last" => Expr::new(ExprKind::Last(base), element.clone(), span),
            name => {
                let known = [
                    "next",
                    "last",
                    "lastIndex",
                    "size",
                    "push_front",
                    "pop_front",
                ];
                let similar = self.closest(name, known.into_iter());
                let shown = self.show(&base.ty);
                self.wrong(
                    errors::no_member(member.span, name, &shown, similar.as_deref()),
                    span,
                )
            }
        }
    }

    fn index(&mut self, base: &ast::Expr, index: &ast::Expr, span: Span) -> Expr {
        let base = self.infer(base, None);
        let index = self.infer(index, None);
        let index = self.decay(index);
        if base.ty == Ty::Missing || index.ty == Ty::Missing {
            return Expr::missing(span);
        }
        if !matches!(index.ty, Ty::Int | Ty::Bit(_) | Ty::Signed(_)) {
            let found = self.show(&index.ty);
            return self.wrong(
                errors::type_mismatch(index.span, "an integer", &found),
                span,
            );
        }
        let position = index.as_int().map(|v| fold::to_u32(v).unwrap_or(u32::MAX));
        match &base.ty {
            Ty::Stack(element, size) => {
                let (ty, size) = ((**element).clone(), *size);
                if position.is_some_and(|i| i >= size) {
                    let value = index.as_int().map(BigInt::to_string).unwrap_or_default();
                    return self.wrong(errors::index_range(index.span, &value, size), span);
                }
                let index = match index.ty {
                    Ty::Int => self.coerce(index, &Ty::Bit(32)),
                    _ => index,
                };
                Expr::new(ExprKind::Index(Box::new(base), Box::new(index)), ty, span)
            }
            Ty::Tuple(items) => match position {
                Some(i) if (i as usize) < items.len() => {
                    let ty = items[i as usize].clone();
                    match base.kind {
                        ExprKind::Aggregate(items) if !items.iter().any(Expr::has_effects) => {
                            let item = items.into_iter().nth(i as usize);
                            return item.unwrap_or(Expr::missing(span));
                        }
                        _ => {}
                    }
                    Expr::new(ExprKind::Field(Box::new(base), i as usize), ty, span)
                }
                Some(_) => {
                    let (value, len) = (index.as_int().map(BigInt::to_string), items.len() as u32);
                    self.wrong(
                        errors::index_range(index.span, &value.unwrap_or_default(), len),
                        span,
                    )
                }
                None => self.wrong(
                    errors::not_constant(index.span, "the index of a tuple"),
                    span,
                ),
            },
            ty => {
                let found = self.show(ty);
                self.wrong(errors::not_indexable(base.span, &found), span)
            }
        }
    }

    /// Checks the expression before `[high:low]` and returns it with its width in bits. Reports a value
    /// that has no bits to slice, and returns `None`.
    fn sliceable(&mut self, base: &ast::Expr) -> Option<(Expr, u32)> {
        let base = self.infer(base, None);
        let base = self.decay(base);
        match base.ty {
            Ty::Bit(w) | Ty::Signed(w) => Some((base, w)),
            Ty::Missing => None,
            Ty::Int => {
                self.report(errors::unsized_int(base.span));
                None
            }
            _ => {
                let found = self.show(&base.ty);
                self.report(errors::not_sliceable(base.span, &found));
                None
            }
        }
    }

    fn slice(&mut self, base: &ast::Expr, high: &ast::Expr, low: &ast::Expr, span: Span) -> Expr {
        let base = self.sliceable(base);
        let high_value = self.constant_int(high, "the end of a slice");
        let low_value = self.constant_int(low, "the end of a slice");
        let (Some((base, width)), Some(h), Some(l)) = (base, high_value, low_value) else {
            return Expr::missing(span);
        };
        match (fold::to_u32(&h), fold::to_u32(&l)) {
            (Some(high), Some(low)) if low <= high && high < width => {
                self.make_slice(base, high, low, span)
            }
            _ => {
                let (at, high, low) = (high.span.to(low.span), h.to_string(), l.to_string());
                self.wrong(errors::slice_range(at, &high, &low, width), span)
            }
        }
    }

    fn plus_slice(
        &mut self,
        base: &ast::Expr,
        low: &ast::Expr,
        width: &ast::Expr,
        span: Span,
    ) -> Expr {
        let base = self.sliceable(base);
        let low = self.infer(low, None);
        let size = self.constant_int(width, "the width of a slice");
        let (Some((base, total)), Some(size)) = (base, size) else {
            return Expr::missing(span);
        };
        let size = match fold::to_u32(&size).filter(|n| (1..=total).contains(n)) {
            Some(size) => size,
            None => {
                return self.wrong(errors::bad_width(width.span, &size.to_string()), span);
            }
        };
        if let Some(start) = low.as_int() {
            let start = fold::to_u32(start).unwrap_or(u32::MAX);
            if start.checked_add(size).is_none_or(|end| end > total) {
                let high = u64::from(start) + u64::from(size) - 1;
                return self.wrong(
                    errors::slice_range(low.span, &high.to_string(), &start.to_string(), total),
                    span,
                );
            }
            return self.make_slice(base, start + size - 1, start, span);
        }
        match low.ty {
            Ty::Missing => Expr::missing(span),
            Ty::Bit(_) => Expr::new(
                ExprKind::PlusSlice(Box::new(base), Box::new(low), size),
                Ty::Bit(size),
                span,
            ),
            _ => {
                let found = self.show(&low.ty);
                self.wrong(errors::type_mismatch(low.span, "bit<n>", &found), span)
            }
        }
    }

    fn ternary(
        &mut self,
        condition: &ast::Expr,
        if_true: &ast::Expr,
        if_false: &ast::Expr,
        want: Option<&Ty>,
        span: Span,
    ) -> Expr {
        let condition = self.expect(condition, &Ty::Bool);
        let a = self.infer(if_true, want);
        let b = self.infer(if_false, want);
        let (mut a, mut b) = if a.ty == b.ty {
            (a, b)
        } else {
            self.balance(a, b)
        };
        let loose = |e: &Expr| matches!(e.ty, Ty::Int | Ty::Tuple(_) | Ty::Record(_) | Ty::Any);
        if let Some(want) = want
            && loose(&a)
            && loose(&b)
            && *want != Ty::Int
        {
            a = self.coerce(a, want);
            b = self.coerce(b, want);
        }
        if [&condition.ty, &a.ty, &b.ty].contains(&&Ty::Missing) {
            return Expr::missing(span);
        }
        if a.ty != b.ty {
            let (wanted, found) = (self.show(&a.ty), self.show(&b.ty));
            return self.wrong(errors::type_mismatch(b.span, &wanted, &found), span);
        }
        match condition.kind {
            ExprKind::Bool(true) => return Expr { span, ..a },
            ExprKind::Bool(false) => return Expr { span, ..b },
            _ => {}
        }
        if a.ty == Ty::Int {
            return self.wrong(errors::unsized_int(span), span);
        }
        let ty = a.ty.clone();
        Expr::new(
            ExprKind::Ternary(Box::new(condition), Box::new(a), Box::new(b)),
            ty,
            span,
        )
    }

    fn list(&mut self, items: &[ast::Expr], want: Option<&Ty>, span: Span) -> Expr {
        let wants = self.member_types(want, items.len());
        let items: Vec<Expr> = items
            .iter()
            .zip(wants)
            .map(|(e, t)| self.infer(e, t.as_ref()))
            .collect();
        let ty = tuple_of(&items);
        Expr::new(ExprKind::Aggregate(items), ty, span)
    }

    fn record(
        &mut self,
        fields: &[ast::NamedExpr],
        dots: Option<Span>,
        want: Option<&Ty>,
        span: Span,
    ) -> Expr {
        let def = match want {
            Some(Ty::Struct(id) | Ty::Header(id)) => Some(self.module.types.structure(*id).clone()),
            _ => None,
        };
        let mut items = Vec::new();
        let mut names: Vec<(Arc<str>, Ty)> = Vec::new();
        for field in fields {
            if names.iter().any(|(n, _)| *n == field.name.text) {
                self.report(errors::duplicate(
                    field.name.span,
                    field.name.as_str(),
                    span,
                ));
                continue;
            }
            let hint = def
                .as_ref()
                .and_then(|d| d.field(field.name.as_str()).map(|i| d.fields[i].clone()));
            if let Some(known) = &hint {
                self.used(field.name.span, known.span);
            }
            let hint = hint.map(|known| known.ty);
            let value = self.infer(&field.value, hint.as_ref());
            names.push((field.name.text.clone(), value.ty.clone()));
            items.push(value);
        }
        if let Some(span) = dots {
            names.push((DOTS.into(), Ty::Any));
            items.push(Expr::new(ExprKind::Default, Ty::Any, span));
        }
        let ty = Ty::Record(names.into_iter().collect::<Rc<[_]>>());
        Expr::new(ExprKind::Aggregate(items), ty, span)
    }
}

impl Checked {
    pub(super) fn unsupported(&mut self, span: Span, what: &str) -> Expr {
        self.wrong(errors::unsupported(span, what), span)
    }

    fn int_literal(&mut self, literal: &ast::IntLiteral, span: Span) -> Expr {
        let value = fold::literal(literal);
        if value.bits() > u64::from(fold::MAX_BITS) {
            return self.wrong(errors::constant_too_large(span), span);
        }
        let Some(width) = literal.width else {
            return Expr::new(ExprKind::Int(value), Ty::Int, span);
        };
        if width.bits == 0 || width.bits > ir::Bits::MAX_WIDTH {
            return self.wrong(errors::bad_width(span, &width.bits.to_string()), span);
        }
        let ty = if width.signed {
            Ty::Signed(width.bits)
        } else {
            Ty::Bit(width.bits)
        };
        self.sized(value, &ty, span, true)
    }

    /// Returns the constant that `error.X` or `Enum.X` stands for. Reports a member that the type does not
    /// have, and returns a missing expression.
    fn type_member(&mut self, ty: TypeSymbol, member: &ast::Name, span: Span) -> Expr {
        let name = member.as_str();
        self.offer_type_members(name, &ty);
        match &ty {
            TypeSymbol::Plain(Ty::Missing) => Expr::missing(span),
            TypeSymbol::Plain(Ty::Error) => {
                let known = &self.known_errors;
                if known.contains(name) {
                    self.used_member("error", member);
                    let mut errors = self.module.types.errors.iter();
                    let position = errors.position(|e| &**e == name).unwrap_or(0);
                    return Expr::new(ExprKind::Symbol(position as u32), Ty::Error, span);
                }
                if self.may_be_lost_anywhere(name) {
                    return Expr::missing(span);
                }
                let similar = self.closest(name, known.iter().map(|e| &**e));
                self.wrong(
                    errors::no_member(member.span, name, "error", similar.as_deref()),
                    span,
                )
            }
            TypeSymbol::Plain(Ty::Enum(id)) => {
                let def = self.module.types.enumeration(*id).clone();
                if let Some(i) = def.members.iter().position(|(n, _)| &**n == name) {
                    self.used_member(&def.name, member);
                    let kind = match &def.members[i].1 {
                        Some(value) => ExprKind::Int(value.clone()),
                        None => ExprKind::Symbol(i as u32),
                    };
                    return Expr::new(kind, Ty::Enum(*id), span);
                }
                let similar = self.closest(name, def.members.iter().map(|(n, _)| &**n));
                self.wrong(
                    errors::no_member(member.span, name, &def.name, similar.as_deref()),
                    span,
                )
            }
            _ => self.wrong(errors::type_without_members(span), span),
        }
    }

    fn field(&mut self, base: Expr, id: StructId, member: &ast::Name, span: Span) -> Expr {
        let def = self.module.types.structure(id);
        let Some(i) = def.field(member.as_str()) else {
            let fields = def.fields.iter().map(|f| &*f.name);
            let similar = self.closest(member.as_str(), fields);
            let name = def.name.clone();
            if self.is_incomplete(&name) {
                return Expr::missing(span);
            }
            return self.wrong(
                errors::no_field(member.span, member.as_str(), &name, similar.as_deref()),
                span,
            );
        };
        let (ty, declared) = (def.fields[i].ty.clone(), def.fields[i].span);
        self.used(member.span, declared);
        match base.kind {
            ExprKind::Aggregate(mut items) if !items.iter().any(Expr::has_effects) => Expr {
                span,
                ..items.swap_remove(i)
            },
            _ => Expr::new(ExprKind::Field(Box::new(base), i), ty, span),
        }
    }

    fn make_slice(&mut self, base: Expr, high: u32, low: u32, span: Span) -> Expr {
        let ty = Ty::Bit(high - low + 1);
        if let Some(value) = base.as_int() {
            let shifted: BigInt = value >> low;
            return Expr::new(ExprKind::Int(fold::wrap(&shifted, &ty)), ty, span);
        }
        Expr::new(ExprKind::Slice(Box::new(base), high, low), ty, span)
    }

    /// Returns, for each of the `count` members of an initialiser, the type that it must have if the
    /// initialiser has type `want`; `None` for a member of unknown type.
    fn member_types(&self, want: Option<&Ty>, count: usize) -> Vec<Option<Ty>> {
        let types: Vec<Ty> = match want {
            Some(Ty::Struct(id) | Ty::Header(id)) => self
                .module
                .types
                .structure(*id)
                .fields
                .iter()
                .map(|f| f.ty.clone())
                .collect(),
            Some(Ty::Tuple(items)) => items.to_vec(),
            Some(Ty::Stack(item, _) | Ty::List(item)) => vec![(**item).clone(); count],
            _ => Vec::new(),
        };
        let mut types: Vec<Option<Ty>> = types.into_iter().map(Some).collect();
        types.resize(count, None);
        types
    }

    /// Returns whether an expression can be assigned to. Reports the reason if it cannot. Marks a loop
    /// variable that is assigned to as written.
    pub(super) fn require_lvalue(&mut self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Missing => true,
            ExprKind::Var(id) => {
                let var = self.module.var(*id).clone();
                let direction = match var.kind {
                    VarKind::Local => return true,
                    VarKind::Loop { .. } => {
                        self.module.vars[id.index()].kind = VarKind::Loop { written: true };
                        return true;
                    }
                    VarKind::Param(ast::Direction::Out | ast::Direction::InOut) => return true,
                    VarKind::Param(ast::Direction::In) => "an `in` parameter",
                    VarKind::Param(ast::Direction::None) => "a parameter without direction",
                    VarKind::ActionData => "an action parameter that the control plane sets",
                    VarKind::ConstructorParam => "a constructor parameter",
                    VarKind::Instance(_) | VarKind::ValueSet(_) => "an instance",
                };
                self.report(errors::read_only(expr.span, &var.name, direction, var.span));
                false
            }
            ExprKind::Field(base, _) | ExprKind::Index(base, _) | ExprKind::Slice(base, ..) => {
                self.require_lvalue(base)
            }
            ExprKind::Next(base) | ExprKind::Last(base) | ExprKind::PlusSlice(base, ..) => {
                self.require_lvalue(base)
            }
            _ => {
                self.report(errors::not_an_lvalue(expr.span));
                false
            }
        }
    }
}
