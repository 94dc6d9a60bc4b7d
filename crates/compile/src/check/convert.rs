//! Implicit and explicit casts, and the conversion of initialisers to the types of their contexts.

use std::rc::Rc;
use std::sync::Arc;

use num_bigint::BigInt;
use syntax::ast;
use syntax::source::Span;

use super::{Checked, Checker};
use crate::errors;
use crate::fold;
use crate::hir::{Expr, ExprKind};
use crate::types::{StructId, Ty};

/// The name that stands for `...` among the fields of a [`Ty::Record`].
pub(super) const DOTS: &str = "...";

impl Checker {
    /// Checks an expression, converts its value to type `ty` by an implicit cast, and returns it. Reports a
    /// value that has no implicit cast to `ty`, and returns a missing expression.
    pub(super) fn expect(&mut self, expr: &ast::Expr, ty: &Ty) -> Expr {
        let value = self.infer(expr, Some(ty));
        self.coerce(value, ty)
    }
}

impl Checked {
    /// Converts a checked expression to type `ty` by an implicit cast. If P4 has none between the two types,
    /// reports the mismatch and returns a missing expression.
    pub(super) fn coerce(&mut self, expr: Expr, ty: &Ty) -> Expr {
        if expr.ty == *ty || matches!(ty, Ty::Any) {
            return expr;
        }
        if lacks_type(&expr.ty) || lacks_type(ty) || self.is_partial(&expr, ty) {
            return Expr::missing(expr.span);
        }
        match self.try_coerce(expr, ty) {
            Ok(expr) => expr,
            Err(expr) => {
                let (wanted, found) = (self.show(ty), self.show(&expr.ty));
                let mut message = errors::type_mismatch(expr.span, &wanted, &found);
                if self.castable(&expr, ty) {
                    message = message.hint(format!("cast it: `({wanted})`"));
                }
                self.wrong(message, expr.span)
            }
        }
    }

    /// Returns whether `expr` is an initialiser for a struct, header or union of which some fields may be
    /// unknown after a syntax error.
    fn is_partial(&self, expr: &Expr, ty: &Ty) -> bool {
        let (Ty::Struct(id) | Ty::Header(id) | Ty::Union(id)) = ty else {
            return false;
        };
        let is_list = matches!(expr.ty, Ty::Tuple(_) | Ty::Record(_));
        is_list && self.is_incomplete(&self.module.types.structure(*id).name)
    }

    /// Converts an expression to type `ty` by an implicit cast. `Err` returns the expression unchanged if
    /// there is no such cast.
    fn try_coerce(&mut self, expr: Expr, ty: &Ty) -> Result<Expr, Expr> {
        match (&expr.ty, ty) {
            (Ty::Int, Ty::Bit(_) | Ty::Signed(_)) => Ok(self.int_to(expr, ty, true)),
            (Ty::Int, Ty::New(_)) if expr.as_int().is_some() => match self.underlying(ty) {
                Some(bits @ (Ty::Bit(_) | Ty::Signed(_))) => Ok(Expr {
                    ty: ty.clone(),
                    ..self.int_to(expr, &bits, true)
                }),
                _ => Err(expr),
            },
            (Ty::Bit(_) | Ty::Signed(_), Ty::Int) if expr.as_int().is_some() => Ok(Expr {
                ty: Ty::Int,
                ..expr
            }),
            (Ty::Extern(i, given), Ty::Extern(j, wanted)) if i == j && all_fit(given, wanted) => {
                Ok(expr)
            }
            (Ty::Enum(id), Ty::Bit(_) | Ty::Signed(_)) => {
                match self.module.types.enumeration(*id).underlying.as_ref() == Some(ty) {
                    true => Ok(retype(expr, ty)),
                    false => Err(expr),
                }
            }
            (Ty::Block(_), Ty::BlockType(..)) => match self.block_fits(&expr, ty) {
                true => Ok(expr),
                false => Err(expr),
            },
            (Ty::Any, Ty::Header(_) | Ty::Union(_)) => Ok(Expr {
                ty: ty.clone(),
                ..expr
            }),
            (Ty::Any, _) if matches!(expr.kind, ExprKind::Default) => {
                if !self.has_default(ty) {
                    let shown = self.show(ty);
                    self.report(errors::no_default_value(expr.span, &shown));
                    return Ok(Expr::missing(expr.span));
                }
                Ok(Expr {
                    ty: ty.clone(),
                    ..expr
                })
            }
            (Ty::Tuple(_), Ty::Struct(id) | Ty::Header(id)) if is_aggregate(&expr) => {
                let def = self.module.types.structure(*id);
                let (name, fields) = (
                    format!("`{}`", def.name),
                    def.fields.iter().map(|f| f.ty.clone()).collect::<Vec<_>>(),
                );
                Ok(self.fill(expr, ty, &fields, &name))
            }
            (Ty::Tuple(_), Ty::Tuple(items)) if is_aggregate(&expr) => {
                let items = items.to_vec();
                Ok(self.fill(expr, ty, &items, "the tuple"))
            }
            (Ty::Tuple(_), Ty::Stack(element, size)) if is_aggregate(&expr) => {
                let items = vec![(**element).clone(); *size as usize];
                Ok(self.fill(expr, ty, &items, "the header stack"))
            }
            (Ty::Tuple(found), Ty::List(item)) if is_aggregate(&expr) => {
                let items = vec![(**item).clone(); found.len()];
                Ok(self.fill(expr, ty, &items, "the list"))
            }
            (Ty::Record(names), Ty::Struct(id) | Ty::Header(id)) => {
                let (names, id) = (names.clone(), *id);
                Ok(self.fill_by_name(expr, ty, &names, id))
            }
            _ => Err(expr),
        }
    }

    /// Returns whether a value of type `ty` may be written as `...`: every part of the type must have a
    /// default value.
    fn has_default(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Struct(id) => {
                let fields = &self.module.types.structure(*id).fields;
                fields.iter().all(|f| self.has_default(&f.ty))
            }
            Ty::Tuple(items) => items.iter().all(|t| self.has_default(t)),
            ty => !matches!(
                ty,
                Ty::MatchKind
                    | Ty::List(_)
                    | Ty::Void
                    | Ty::Extern(..)
                    | Ty::Block(_)
                    | Ty::BlockType(..)
                    | Ty::ValueSet(_)
                    | Ty::Param(_)
            ),
        }
    }

    /// Converts the list `{ a, b }` to type `ty`, whose members have the types `members`. A `...` at the end
    /// stands for the default values of the members after it. Reports a wrong number of members; `name` is
    /// the type's name in that message.
    fn fill(&mut self, expr: Expr, ty: &Ty, members: &[Ty], name: &str) -> Expr {
        let span = expr.span;
        let ExprKind::Aggregate(mut items) = expr.kind else {
            return Expr::missing(span);
        };
        let dots = items
            .last()
            .is_some_and(|e| matches!(e.kind, ExprKind::Default) && e.ty == Ty::Any);
        if dots && items.len() <= members.len() + 1 {
            items.pop();
            let rest = members[items.len()..].iter();
            items.extend(
                rest.map(|t| Expr::new(ExprKind::Default, t.clone(), span))
                    .collect::<Vec<_>>(),
            );
        }
        if items.len() != members.len() {
            return self.wrong(
                errors::initialiser_count(span, name, members.len(), items.len()),
                span,
            );
        }
        let items = items
            .into_iter()
            .zip(members)
            .map(|(e, t)| self.coerce(e, t))
            .collect();
        Expr::new(ExprKind::Aggregate(items), ty.clone(), span)
    }

    /// Converts the initialiser `{ f = a, g = b }` to the struct or header `ty`, in the order of its
    /// declaration. `names` are the names of the initialiser's fields. A `...` stands for the default values
    /// of fields that are not named. Reports unknown and missing fields.
    fn fill_by_name(
        &mut self,
        expr: Expr,
        ty: &Ty,
        names: &[(Arc<str>, Ty)],
        id: StructId,
    ) -> Expr {
        let span = expr.span;
        let ExprKind::Aggregate(items) = expr.kind else {
            return Expr::missing(span);
        };
        let def = self.module.types.structure(id).clone();
        let mut fields: Vec<Option<Expr>> = vec![None; def.fields.len()];
        let mut written = Vec::new();
        let mut dots = false;
        for ((name, _), item) in names.iter().zip(items) {
            if &**name == DOTS {
                dots = true;
                continue;
            }
            match def.field(name) {
                Some(i) => {
                    fields[i] = Some(self.coerce(item, &def.fields[i].ty));
                    written.push(i);
                }
                None => {
                    let fields = def.fields.iter().map(|f| &*f.name);
                    let similar = self.closest(name, fields);
                    self.report(errors::no_field(
                        item.span,
                        name,
                        &def.name,
                        similar.as_deref(),
                    ));
                }
            }
        }
        let mut complete = Vec::new();
        for (field, value) in def.fields.iter().zip(fields) {
            complete.push(match value {
                Some(value) => value,
                None if dots => Expr::new(ExprKind::Default, field.ty.clone(), span),
                None => self.wrong(errors::field_missing(span, &field.name, &def.name), span),
            });
        }
        let kind = match !written.is_sorted() && complete.iter().any(Expr::has_effects) {
            true => ExprKind::Named(complete, written),
            false => ExprKind::Aggregate(complete),
        };
        Expr::new(kind, ty.clone(), span)
    }

    /// Converts an integer without a width (`int`) to `ty`, a type with a width. A constant that does not fit
    /// into `ty` loses its high bits, with a warning if `warn` is true.
    fn int_to(&mut self, expr: Expr, ty: &Ty, warn: bool) -> Expr {
        match expr.as_int() {
            Some(value) => self.sized(value.clone(), ty, expr.span, warn),
            None => Expr::new(
                ExprKind::Cast(Box::new(expr.clone())),
                ty.clone(),
                expr.span,
            ),
        }
    }

    /// Returns the constant `value` as an expression of type `ty`, which has a width. A value that does not
    /// fit loses its high bits, with a warning if `warn` is true.
    pub(super) fn sized(&mut self, value: BigInt, ty: &Ty, span: Span, warn: bool) -> Expr {
        let wrapped = fold::wrap(&value, ty);
        if warn && wrapped != value {
            let shown = self.show(ty);
            self.report(errors::constant_overflow(
                span,
                &value.to_string(),
                &shown,
                &wrapped.to_string(),
            ));
        }
        Expr::new(ExprKind::Int(wrapped), ty.clone(), span)
    }

    /// Returns whether the cast `(to) expr` is allowed: by a rule of the list of explicit casts, or by one after an
    /// implicit cast, as in `(U32) 0` and in a cast from one serializable enum to another (specification, sections
    /// "Explicit casts", "Introducing new types" and "Enumeration types").
    fn castable(&self, expr: &Expr, to: &Ty) -> bool {
        let listed = match (&expr.ty, to) {
            (Ty::Int, Ty::Bool) => expr
                .as_int()
                .is_some_and(|v| (0..=1).any(|n| *v == n.into())),
            // A value of type `int` exists at compile time alone.
            (Ty::Bit(_) | Ty::Signed(_), Ty::Int) => expr.as_int().is_some(),
            (from, to) => self.castable_type(from, to),
        };
        listed
            || match (&expr.ty, self.underlying(&expr.ty), self.underlying(to)) {
                (Ty::Int, _, Some(Ty::Bit(_) | Ty::Signed(_))) => true,
                (Ty::Enum(_), Some(_), _) => self.castable(&self.decay(expr.clone()), to),
                _ => false,
            }
    }

    /// Returns whether the specification's list of explicit casts allows one from type `from` to type `to`
    /// for all values.
    fn castable_type(&self, from: &Ty, to: &Ty) -> bool {
        match (from, to) {
            _ if from == to => self.keeps_type(to),
            (Ty::Bool, Ty::Bit(1)) | (Ty::Bit(1), Ty::Bool) => true,
            (Ty::Bit(_), Ty::Bit(_)) | (Ty::Signed(_), Ty::Signed(_)) => true,
            (Ty::Bit(x), Ty::Signed(y)) | (Ty::Signed(x), Ty::Bit(y)) => x == y,
            (Ty::Int, Ty::Bit(_) | Ty::Signed(_)) => true,
            _ => {
                self.underlying(from).as_ref() == Some(to)
                    || self.underlying(to).as_ref() == Some(from)
            }
        }
    }

    /// Returns whether a value of type `ty` may be cast to that same type: true for the types that the
    /// specification's list of explicit casts names.
    fn keeps_type(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Enum(_) => self.underlying(ty).is_some(),
            Ty::Error | Ty::MatchKind | Ty::String | Ty::Void | Ty::Varbit(_) | Ty::Tuple(_) => {
                false
            }
            Ty::Extern(..) | Ty::BlockType(..) | Ty::Block(_) | Ty::ValueSet(_) => false,
            _ => true,
        }
    }

    /// Returns the type from which `type` or a serializable enum was declared; `None` if `ty` is neither.
    fn underlying(&self, ty: &Ty) -> Option<Ty> {
        match ty {
            Ty::New(id) => Some(self.module.types.new_type(*id).underlying.clone()),
            Ty::Enum(id) => self.module.types.enumeration(*id).underlying.clone(),
            _ => None,
        }
    }

    /// Checks the cast `(ty) expr` and returns its value; a cast of a constant is folded. An `int` that does not
    /// fit gives a warning; a value with a width loses its high bits without one.
    pub(super) fn cast(&mut self, expr: Expr, ty: &Ty, span: Span) -> Expr {
        if lacks_type(&expr.ty) || lacks_type(ty) {
            return Expr::missing(span);
        }
        let is_initialiser = matches!(expr.ty, Ty::Tuple(_) | Ty::Record(_) | Ty::Any);
        if is_initialiser && !matches!(ty, Ty::Tuple(_)) {
            let expr = self.coerce(expr, ty);
            return Expr { span, ..expr };
        }
        if !self.castable(&expr, ty) {
            let (from, to) = (self.show(&expr.ty), self.show(ty));
            return self.wrong(errors::bad_cast(span, &from, &to), span);
        }
        if expr.ty == *ty {
            return Expr { span, ..expr };
        }
        let to = self.module.types.representation(ty);
        let folded = match (&to, &expr.kind) {
            (Ty::Bool, ExprKind::Int(v)) => ExprKind::Bool(*v == BigInt::from(1)),
            (Ty::Bit(_) | Ty::Signed(_), ExprKind::Bool(v)) => {
                ExprKind::Int(BigInt::from(u8::from(*v)))
            }
            (Ty::Bit(_) | Ty::Signed(_), ExprKind::Int(v)) => {
                self.sized(v.clone(), &to, span, expr.ty == Ty::Int).kind
            }
            (Ty::Int, ExprKind::Int(_)) | (Ty::Bool, ExprKind::Bool(_)) => expr.kind,
            _ => ExprKind::Cast(Box::new(expr)),
        };
        Expr::new(folded, ty.clone(), span)
    }

    /// Converts a value of a serializable enum to the enum's underlying type, which operators need. Returns
    /// any other value unchanged.
    pub(super) fn decay(&self, expr: Expr) -> Expr {
        let underlying = match &expr.ty {
            Ty::Enum(id) => self.module.types.enumeration(*id).underlying.clone(),
            _ => None,
        };
        match underlying {
            Some(ty) => retype(expr, &ty),
            None => expr,
        }
    }

    /// Reports each integer without a width (`int`) in an initialiser, at any depth, since nothing gives it a
    /// width.
    pub(super) fn require_sized(&mut self, expr: &Expr) {
        match (&expr.kind, &expr.ty) {
            (_, Ty::Int) => self.report(errors::unsized_int(expr.span)),
            (ExprKind::Aggregate(items), _) => items.iter().for_each(|e| self.require_sized(e)),
            _ => {}
        }
    }
}

/// Returns a value of a serializable enum with the enum's underlying type `ty`: a constant gets the new
/// type, any other expression gets a cast.
fn retype(expr: Expr, ty: &Ty) -> Expr {
    match expr.kind {
        ExprKind::Int(_) => Expr {
            ty: ty.clone(),
            ..expr
        },
        _ => {
            let span = expr.span;
            Expr::new(ExprKind::Cast(Box::new(expr)), ty.clone(), span)
        }
    }
}

/// Returns whether the type arguments `given` equal the type arguments `wanted`, one by one. [`Ty::Any`] in
/// `wanted` equals every type.
fn all_fit(given: &[Ty], wanted: &[Ty]) -> bool {
    let fits = |(given, wanted): (&Ty, &Ty)| given == wanted || matches!(wanted, Ty::Any);
    given.len() == wanted.len() && given.iter().zip(wanted).all(fits)
}

fn is_aggregate(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Aggregate(_))
}

/// Returns the type of the tuple `{ a, b, ... }` with the members `items`.
pub(super) fn tuple_of(items: &[Expr]) -> Ty {
    Ty::Tuple(items.iter().map(|e| e.ty.clone()).collect::<Rc<[Ty]>>())
}

/// Returns whether `ty` or a part of it is unknown because of an earlier error; a mismatch with such a type
/// is not reported.
fn lacks_type(ty: &Ty) -> bool {
    match ty {
        Ty::Missing => true,
        Ty::Stack(t, _) | Ty::List(t) | Ty::ValueSet(t) => lacks_type(t),
        Ty::Tuple(items) | Ty::Extern(_, items) | Ty::BlockType(_, items) => {
            items.iter().any(lacks_type)
        }
        _ => false,
    }
}
