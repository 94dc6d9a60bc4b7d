//! Type expressions and the types that they stand for, and the declarations of structs, enums and the like.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use ir::Bits;
use num_bigint::BigInt;
use syntax::ast::{self, TypeKind};
use syntax::source::Span;

use super::infer::Bindings;
use super::scope::{GenericStruct, Symbol, TypeSymbol};
use super::{Checked, Checker, shared};
use crate::errors;
use crate::fold;
use crate::types::{
    EnumDef, EnumId, FieldDef, MAX_TYPE_NODES, NewTypeDef, NewTypeId, StructDef, StructId,
    StructKind, Ty,
};

impl Checker {
    /// Returns the type that the type expression `ty` stands for. Reports a type with too many members, and
    /// returns [`Ty::Missing`].
    pub(super) fn resolve(&mut self, ty: &ast::Type) -> Ty {
        let resolved = self.resolve_kind(ty);
        if self.module.types.nodes(&resolved) > MAX_TYPE_NODES {
            self.report(errors::too_large(ty.span, "this type has too many members"));
            return Ty::Missing;
        }
        resolved
    }

    fn resolve_kind(&mut self, ty: &ast::Type) -> Ty {
        match &ty.kind {
            TypeKind::Bool => Ty::Bool,
            TypeKind::Error => Ty::Error,
            TypeKind::MatchKind => Ty::MatchKind,
            TypeKind::String => Ty::String,
            TypeKind::Int => Ty::Int,
            TypeKind::Bit(None) => Ty::Bit(1),
            TypeKind::Bit(Some(width)) => self.width(width).map_or(Ty::Missing, Ty::Bit),
            TypeKind::SignedInt(width) => self.width(width).map_or(Ty::Missing, Ty::Signed),
            TypeKind::Varbit(width) => self.width(width).map_or(Ty::Missing, Ty::Varbit),
            TypeKind::Void => Ty::Void,
            TypeKind::DontCare => Ty::Any,
            TypeKind::Missing => Ty::Missing,
            TypeKind::Named(path) => self.resolve_named(path, None),
            TypeKind::Specialised { path, args } => self.resolve_named(path, Some(args)),
            TypeKind::Stack { element, size } => self.resolve_stack(element, size),
            TypeKind::Tuple(items) => {
                let members = items.iter().map(|t| self.resolve_member(t, "a tuple"));
                Ty::Tuple(members.collect())
            }
            TypeKind::List(item) => Ty::List(Rc::new(self.resolve_member(item, "a list"))),
        }
    }

    /// Returns the type of a member of a tuple or list. Reports a type that members cannot have, and
    /// returns [`Ty::Missing`]. `what` names the tuple or list in the message.
    fn resolve_member(&mut self, ty: &ast::Type, what: &str) -> Ty {
        let resolved = self.resolve(ty);
        match self.check_member_type(&resolved, what, ty.span) {
            true => resolved,
            false => Ty::Missing,
        }
    }

    /// Evaluates a width in bits, which must be a constant from 1 to [`Bits::MAX_WIDTH`]. Reports any other
    /// value, and returns `None`.
    fn width(&mut self, expr: &ast::Expr) -> Option<u32> {
        let value = self.constant_int(expr, "a width")?;
        let width = fold::to_u32(&value).filter(|w| (1..=Bits::MAX_WIDTH).contains(w));
        if width.is_none() {
            self.report(errors::bad_width(expr.span, &value.to_string()));
        }
        width
    }

    /// Evaluates a constant integer. Reports an expression that is no constant integer (`what` names it in
    /// the message), and returns `None`.
    pub(super) fn constant_int(&mut self, expr: &ast::Expr, what: &str) -> Option<BigInt> {
        let value = self.infer(expr, Some(&Ty::Int));
        if value.ty == Ty::Missing {
            return None;
        }
        if let Some(int) = value.as_int() {
            return Some(int.clone());
        }
        if value.is_literal() {
            let found = self.show(&value.ty);
            self.report(errors::type_mismatch(value.span, "int", &found));
        } else {
            self.report(errors::not_constant(value.span, what));
        }
        None
    }

    fn resolve_stack(&mut self, element: &ast::Type, size: &ast::Expr) -> Ty {
        let item = self.resolve(element);
        let value = self.constant_int(size, "the size of a header stack");
        let is_value = self.allowed_field(&item, StructKind::Struct);
        if !is_value || matches!(item, Ty::List(_) | Ty::Tuple(_)) {
            let found = self.show(&item);
            self.report(errors::stack_of(element.span, &found));
            return Ty::Missing;
        }
        let Some(value) = value else {
            return Ty::Missing;
        };
        match fold::to_u32(&value).filter(|n| (1..=1024).contains(n)) {
            Some(_) if item == Ty::Missing => Ty::Missing,
            Some(n) => Ty::Stack(Rc::new(item), n),
            None => {
                self.report(errors::bad_stack_size(size.span, &value.to_string()));
                Ty::Missing
            }
        }
    }

    fn resolve_named(&mut self, path: &ast::Path, args: Option<&[ast::Type]>) -> Ty {
        self.offer_names(path.name.as_str(), |s| matches!(s, Symbol::Type(_)));
        let symbol = self.lookup(path);
        let given: Vec<Ty> = args
            .unwrap_or_default()
            .iter()
            .map(|t| self.resolve(t))
            .collect();
        if let Symbol::Type(TypeSymbol::Generic(_) | TypeSymbol::Extern(_)) = symbol {
            let generic = matches!(symbol, Symbol::Type(TypeSymbol::Generic(_)));
            for (ty, arg) in given.iter().zip(args.unwrap_or_default()) {
                let unknown = generic && matches!(ty, Ty::Any | Ty::Void);
                if unknown {
                    self.report(errors::type_argument(arg.span, "_"));
                }
                if unknown || !self.check_type_argument(ty, arg.span) {
                    return Ty::Missing;
                }
            }
        }
        let Symbol::Type(ty) = symbol else {
            if !matches!(symbol, Symbol::Missing) {
                self.report(errors::not_a_type(
                    path.span,
                    path.name.as_str(),
                    symbol.describe(),
                ));
            }
            return Ty::Missing;
        };
        let expected = self.type_arity(&ty);
        // An extern's or block's arguments may be left to inference.
        let optional =
            args.is_none() && matches!(ty, TypeSymbol::Extern(_) | TypeSymbol::BlockType(_));
        if given.len() != expected && !optional {
            self.report(errors::type_argument_count(
                path.span,
                path.name.as_str(),
                expected,
                given.len(),
            ));
            return Ty::Missing;
        }
        let fill = || {
            if given.is_empty() {
                vec![Ty::Any; expected]
            } else {
                given.clone()
            }
        };
        match ty {
            TypeSymbol::Plain(ty) => ty,
            TypeSymbol::Generic(generic) => self.specialise_struct(&generic, given),
            TypeSymbol::Extern(id) => Ty::Extern(id, fill().into()),
            TypeSymbol::BlockType(id) => Ty::BlockType(id, fill().into()),
            TypeSymbol::Block(id) => Ty::Block(id),
        }
    }

    /// Declares a struct, header or header union, generic or not, and checks its fields.
    pub(super) fn struct_like(
        &mut self,
        decl: &ast::StructLike,
        kind: StructKind,
        annotations: &[ast::Annotation],
    ) {
        let annotations = shared(annotations);
        if !decl.type_params.is_empty() {
            let generic = Rc::new(GenericStruct {
                decl: decl.clone(),
                annotations,
                kind,
            });
            // Checked once for types of which nothing is known, so that mistakes show without a use.
            let names = &decl.type_params;
            let open: Vec<Ty> = names
                .iter()
                .map(|name| Ty::Param(self.new_type_param(name)))
                .collect();
            self.specialise_struct(&generic, open);
            self.declare_type(&decl.name, TypeSymbol::Generic(generic));
            return;
        }
        let ty = self.build_struct(decl, kind, annotations, Vec::new());
        if let Ty::Header(_) = ty
            && decl_has(self, &ty, "controller_header")
        {
            self.module.controller_headers.push(ty.clone());
        }
        self.declare_type(&decl.name, TypeSymbol::Plain(ty));
    }

    fn specialise_struct(&mut self, generic: &Rc<GenericStruct>, args: Vec<Ty>) -> Ty {
        let key = (Rc::as_ptr(generic) as usize, args.clone());
        if let Some(ty) = self.generics.structs.get(&key) {
            return ty.clone();
        }
        let ty = self.scoped(|c| {
            for (param, arg) in generic.decl.type_params.iter().zip(&args) {
                c.declare_type(param, TypeSymbol::Plain(arg.clone()));
            }
            c.build_struct(
                &generic.decl,
                generic.kind,
                generic.annotations.clone(),
                args,
            )
        });
        self.generics.structs.insert(key, ty.clone());
        if let Ty::Struct(id) | Ty::Header(id) | Ty::Union(id) = &ty {
            self.generics.struct_of.insert(*id, generic.clone());
        }
        ty
    }

    /// Returns the type `ty` with its type parameters replaced by the types that `bindings` gives them.
    pub(super) fn applied(&mut self, ty: &Ty, bindings: &Bindings) -> Ty {
        match ty {
            Ty::Struct(id) | Ty::Header(id) | Ty::Union(id) => {
                let Some(generic) = self.generics.struct_of.get(id).cloned() else {
                    return ty.clone();
                };
                let given = self.module.types.structure(*id).args.clone();
                let args: Vec<Ty> = given.iter().map(|t| self.applied(t, bindings)).collect();
                match args == given {
                    true => ty.clone(),
                    false => self.specialise_struct(&generic, args),
                }
            }
            Ty::Stack(item, size) => Ty::Stack(Rc::new(self.applied(item, bindings)), *size),
            Ty::List(item) => Ty::List(Rc::new(self.applied(item, bindings))),
            Ty::Tuple(items) => {
                Ty::Tuple(items.iter().map(|t| self.applied(t, bindings)).collect())
            }
            _ => self
                .module
                .types
                .substitute(ty, &|id| bindings.get(&id).cloned()),
        }
    }

    fn build_struct(
        &mut self,
        decl: &ast::StructLike,
        kind: StructKind,
        annotations: Rc<[ast::Annotation]>,
        args: Vec<Ty>,
    ) -> Ty {
        let mut fields: Vec<FieldDef> = Vec::new();
        let mut declared: BTreeMap<&str, Span> = BTreeMap::new();
        for field in &decl.fields {
            let mut ty = self.resolve(&field.ty);
            if let Some(first) = declared.get(field.name.as_str()) {
                self.report(errors::duplicate(
                    field.name.span,
                    field.name.as_str(),
                    *first,
                ));
                continue;
            }
            declared.insert(field.name.as_str(), field.name.span);
            self.record_field(field, &decl.name, &ty);
            if !self.allowed_field(&ty, kind) {
                let found = self.show(&ty);
                self.report(errors::field_type(field.ty.span, &found, kind));
                ty = Ty::Missing;
            }
            fields.push(FieldDef {
                name: field.name.text.clone(),
                ty,
                annotations: shared(&field.annotations),
                field_lists: self.field_lists(&field.annotations),
                span: field.name.span,
            });
        }
        if kind == StructKind::Header {
            self.check_header_layout(&decl.name, &fields);
        }
        let parts = fields.iter().map(|f| self.module.types.nodes(&f.ty));
        let nodes = parts.fold(1, u64::saturating_add);
        if nodes > MAX_TYPE_NODES {
            self.report(errors::too_large(
                decl.name.span,
                "this type has too many members",
            ));
            return Ty::Missing;
        }
        let id = StructId(self.module.types.structs.len() as u32);
        let name = decl.name.text.clone();
        self.module.types.structs.push(StructDef {
            name,
            args,
            fields,
            annotations,
            nodes,
        });
        match kind {
            StructKind::Struct => Ty::Struct(id),
            StructKind::Header => Ty::Header(id),
            StructKind::Union => Ty::Union(id),
        }
    }

    /// Declares an enum and its members, with their values if the enum is serializable. Reports duplicates
    /// and an underlying type that enums cannot have.
    pub(super) fn enumeration(&mut self, decl: &ast::EnumDecl, annotations: &[ast::Annotation]) {
        let underlying = decl.underlying.as_ref().and_then(|t| {
            let ty = self.resolve(t);
            match ty {
                Ty::Bit(_) | Ty::Signed(_) => Some(ty),
                Ty::Missing => None,
                _ => {
                    let found = self.show(&ty);
                    self.report(errors::enum_underlying(t.span, &found));
                    None
                }
            }
        });
        let mut members: Vec<(Arc<str>, Option<BigInt>)> = Vec::new();
        let mut seen: BTreeMap<Arc<str>, Span> = BTreeMap::new();
        for member in &decl.members {
            if let Some(first) = seen.insert(member.name.text.clone(), member.name.span) {
                self.report(errors::duplicate(
                    member.name.span,
                    member.name.as_str(),
                    first,
                ));
                continue;
            }
            let value = match (&member.value, &underlying) {
                (Some(value), Some(ty)) => Some(self.member_value(value, ty)),
                _ => None,
            };
            let shown = value.as_ref().map(BigInt::to_string);
            self.record_member(&decl.name.text, &member.name, shown);
            members.push((member.name.text.clone(), value));
        }
        let id = EnumId(self.module.types.enums.len() as u32);
        let annotations = shared(annotations);
        self.module.types.enums.push(EnumDef {
            name: decl.name.text.clone(),
            underlying,
            members,
            annotations,
            span: decl.name.span,
        });
        self.declare_type(&decl.name, TypeSymbol::Plain(Ty::Enum(id)));
    }

    /// Evaluates the value of a member of a serializable enum with the underlying type `ty`. Reports a
    /// value out of the range of `ty`, and returns 0.
    fn member_value(&mut self, value: &ast::Expr, ty: &Ty) -> BigInt {
        let found = self.infer(value, Some(ty));
        if let (Ty::Int, Some(number)) = (&found.ty, found.as_int())
            && !fold::fits(number, ty)
        {
            let shown = self.show(ty);
            self.report(errors::member_value(
                value.span,
                &number.to_string(),
                &shown,
            ));
            return BigInt::ZERO;
        }
        let found = self.coerce(found, ty);
        let found = self.require_literal(found, "the value of an enum member");
        found.as_int().cloned().unwrap_or_default()
    }

    /// Declares the new type of a declaration such as `type bit<9> PortId`. Reports an underlying type that
    /// it cannot have.
    pub(super) fn new_type(&mut self, decl: &ast::NewTypeDecl, annotations: &[ast::Annotation]) {
        let underlying = self.resolve(&decl.ty);
        let basis = self.module.types.representation(&underlying);
        if !matches!(basis, Ty::Bit(_) | Ty::Signed(_) | Ty::Bool | Ty::Missing) {
            let found = self.show(&underlying);
            self.report(errors::new_type_basis(decl.ty.span, &found));
        }
        let id = NewTypeId(self.module.types.new_types.len() as u32);
        let annotations = shared(annotations);
        self.module.types.new_types.push(NewTypeDef {
            name: decl.name.text.clone(),
            underlying,
            annotations,
            span: decl.name.span,
        });
        self.declare_type(&decl.name, TypeSymbol::Plain(Ty::New(id)));
    }

    /// Declares the name of a `typedef` as another name for a type.
    pub(super) fn typedef(&mut self, decl: &ast::TypedefDecl) {
        let ty = match &decl.target {
            ast::TypedefTarget::Type(ty) => match &ty.kind {
                // A typedef of an extern or block keeps what it is.
                TypeKind::Named(path) => match self.find(path) {
                    Some(Symbol::Type(TypeSymbol::Generic(_))) => None,
                    Some(Symbol::Type(symbol)) => Some(symbol),
                    _ => None,
                }
                .unwrap_or_else(|| TypeSymbol::Plain(self.resolve(ty))),
                _ => TypeSymbol::Plain(self.resolve(ty)),
            },
            ast::TypedefTarget::Decl(inner) => {
                self.top_level(inner);
                let symbol = inner.name().map(|n| ast::Path {
                    absolute: false,
                    name: n.clone(),
                    span: n.span,
                });
                match symbol.and_then(|p| self.find(&p)) {
                    Some(Symbol::Type(symbol)) => symbol,
                    _ => TypeSymbol::Plain(Ty::Missing),
                }
            }
        };
        self.declare_type(&decl.name, ty);
    }
}

impl Checked {
    fn type_arity(&self, ty: &TypeSymbol) -> usize {
        match ty {
            TypeSymbol::Plain(_) | TypeSymbol::Block(_) => 0,
            TypeSymbol::Generic(generic) => generic.decl.type_params.len(),
            TypeSymbol::Extern(id) => self.module.types.external(*id).type_params.len(),
            TypeSymbol::BlockType(id) => self.module.types.block_types[id.index()]
                .sig
                .type_params
                .len(),
        }
    }

    fn allowed_field(&self, ty: &Ty, kind: StructKind) -> bool {
        match kind {
            StructKind::Union => matches!(ty, Ty::Header(_) | Ty::Missing | Ty::Param(_)),
            StructKind::Header => match ty {
                Ty::Struct(id) => {
                    let fields = &self.module.types.structure(*id).fields;
                    fields
                        .iter()
                        .all(|f| self.allowed_field(&f.ty, StructKind::Header))
                }
                Ty::Enum(id) => self.module.types.enumeration(*id).underlying.is_some(),
                Ty::Stack(element, _) => {
                    let open = matches!(**element, Ty::Missing | Ty::Param(_));
                    let fixed = open || self.module.types.packed_width(element).is_some();
                    fixed && self.allowed_field(element, kind)
                }
                Ty::New(_) => self.allowed_field(&self.module.types.representation(ty), kind),
                _ => matches!(
                    ty,
                    Ty::Bit(_)
                        | Ty::Signed(_)
                        | Ty::Varbit(_)
                        | Ty::Bool
                        | Ty::Missing
                        | Ty::Param(_)
                ),
            },
            StructKind::Struct => !matches!(
                ty,
                Ty::Void
                    | Ty::Int
                    | Ty::String
                    | Ty::MatchKind
                    | Ty::Any
                    | Ty::Extern(..)
                    | Ty::Block(_)
                    | Ty::BlockType(..)
                    | Ty::ValueSet(_)
            ),
        }
    }

    /// Reports a header with more than one varbit or with too many bits. Whether a header is whole bytes is
    /// checked only where the program extracts it.
    fn check_header_layout(&mut self, name: &ast::Name, fields: &[FieldDef]) {
        let varbits: Vec<&FieldDef> = fields
            .iter()
            .filter(|f| matches!(f.ty, Ty::Varbit(_)))
            .collect();
        if let [_, second, ..] = varbits[..] {
            self.report(errors::two_varbits(second.span, name.as_str()));
        }
        let mut total = 0u64;
        for field in fields {
            total += match &field.ty {
                Ty::Varbit(w) => u64::from(*w),
                Ty::Missing | Ty::Param(_) => return,
                ty => self.module.types.packed_width(ty).map_or(0, u64::from),
            };
        }
        if total > u64::from(Bits::MAX_WIDTH) * 8 {
            self.report(errors::bad_width(name.span, &total.to_string()));
        }
    }

    /// Reports a value set with members of type `ty` unless these consist only of numbers, truth values,
    /// errors and enums.
    pub(super) fn value_set_type(&mut self, ty: &Ty, span: Span) {
        let members = self.module.types.flat_members(ty);
        let scalar = |t: &Ty| *t == Ty::Missing || self.module.types.scalar_width(t).is_some();
        if !members.iter().all(scalar) {
            let found = self.show(ty);
            self.report(errors::member_type(span, &found, "a value set"));
        }
    }
}

fn decl_has(checker: &Checker, ty: &Ty, annotation: &str) -> bool {
    match ty {
        Ty::Header(id) => checker
            .module
            .types
            .structure(*id)
            .annotations
            .iter()
            .any(|a| a.name.as_str() == annotation),
        _ => false,
    }
}
