//! Rules of placement: the tables in the specification's appendix on compile-time and run-time calls, and the rules
//! for parameters, members of types and type arguments that go with them.

use syntax::ast::{self, Direction};
use syntax::source::Span;

use super::{Checked, Checker, Place};
use crate::errors;
use crate::hir::{Arg, CallTarget, Expr, ExprKind, VarKind};
use crate::types::{BlockKind, ParamSig, Ty};

/// The kind of declaration to which parameters belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParamsOf {
    /// An action.
    Action,
    /// A function with a body.
    Function,
    /// An extern function or method.
    Extern,
    /// A parser or control with a body, or a type of one.
    Block { is_parser: bool, has_body: bool },
    /// The constructor of a parser or control.
    BlockConstructor { is_parser: bool },
    /// The constructor of an extern.
    ExternConstructor,
    /// A package.
    Package,
}

impl ParamsOf {
    fn describe(self) -> &'static str {
        match self {
            ParamsOf::Action => "an action",
            ParamsOf::Function => "a function",
            ParamsOf::Extern => "an extern function",
            ParamsOf::Block {
                is_parser: true, ..
            } => "a parser",
            ParamsOf::Block { .. } => "a control",
            ParamsOf::BlockConstructor { is_parser: true } => "a parser's constructor",
            ParamsOf::BlockConstructor { .. } => "a control's constructor",
            ParamsOf::ExternConstructor => "an extern's constructor",
            ParamsOf::Package => "a package",
        }
    }

    fn allows_optional(self) -> bool {
        matches!(
            self,
            ParamsOf::Extern
                | ParamsOf::ExternConstructor
                | ParamsOf::Package
                | ParamsOf::Block {
                    has_body: false,
                    ..
                }
        )
    }
}

impl Checker {
    /// Reports the declaration of an instance of type `ty` at the current place if no such instance is
    /// allowed there, such as a parser in a control.
    pub(super) fn check_instance_place(&mut self, ty: &Ty, span: Span) {
        let kind = self.block_kind(ty);
        let here = match (self.context.place, self.context.block) {
            (Place::Declaration, None) => (
                kind.is_none() || kind == Some(BlockKind::Package),
                "at the top level",
            ),
            (Place::Declaration, Some(BlockKind::Parser)) => (
                kind.is_none() || kind == Some(BlockKind::Parser),
                "in a parser",
            ),
            (Place::Declaration, Some(_)) => (
                kind.is_none() || kind == Some(BlockKind::Control),
                "in a control",
            ),
            (Place::Function, _) => (false, "in a function"),
            (Place::Action, _) => (false, "in an action"),
            (Place::State, _) => (false, "in a parser state"),
            (Place::Apply | Place::Table, _) => (false, "in an apply block"),
        };
        if let (false, place) = here {
            let shown = self.show(ty);
            self.report(errors::instance_place(span, &shown, place));
        }
    }
}

impl Checked {
    /// Returns whether `ty` is the type of a parser, control or package; `None` if it is none of these.
    pub(super) fn block_kind(&self, ty: &Ty) -> Option<BlockKind> {
        match ty {
            Ty::BlockType(id, _) => Some(self.module.types.block_types[id.index()].kind),
            Ty::Block(id) if self.module.block(*id).is_parser => Some(BlockKind::Parser),
            Ty::Block(_) => Some(BlockKind::Control),
            _ => None,
        }
    }

    /// Returns whether parameters of `of`, such as an action or a package, may have the type `ty`.
    fn param_type_allowed(&self, ty: &Ty, of: ParamsOf) -> bool {
        if matches!(ty, Ty::Void | Ty::Any | Ty::ValueSet(_)) {
            return false;
        }
        if matches!(ty, Ty::Extern(..)) {
            return !matches!(of, ParamsOf::Action | ParamsOf::Function);
        }
        match (self.block_kind(ty), of) {
            (None, _) => true,
            // A parser or control with a body is not a type that other things can be of.
            _ if matches!(ty, Ty::Block(_)) => false,
            (Some(_), ParamsOf::Package) => true,
            (Some(BlockKind::Parser), ParamsOf::BlockConstructor { is_parser }) => is_parser,
            (Some(BlockKind::Control), ParamsOf::BlockConstructor { is_parser }) => !is_parser,
            _ => false,
        }
    }

    /// Checks that a parameter may have its type, direction and default value, and reports each that it may not have.
    pub(super) fn check_param(&mut self, param: &ast::Param, ty: &Ty, of: ParamsOf) {
        if !self.param_type_allowed(ty, of) {
            let found = self.show(ty);
            self.report(errors::param_type(param.ty.span, &found, of.describe()));
        } else if *ty == Ty::Int && of == ParamsOf::Action {
            self.report(errors::param_type(param.ty.span, "int", of.describe()));
        }
        let directed = param.direction != Direction::None;
        if directed && matches!(ty, Ty::Extern(..) | Ty::String | Ty::Int) {
            let found = self.show(ty);
            self.report(errors::param_direction(
                param.span,
                param.name.as_str(),
                &found,
            ));
        }
        if let Some(default) = &param.default {
            if matches!(param.direction, Direction::Out | Direction::InOut) {
                self.report(errors::default_of_out(default.span, param.name.as_str()));
            } else if param.is_optional() {
                self.report(errors::default_of_optional(
                    default.span,
                    param.name.as_str(),
                ));
            }
        }
        if param.is_optional() && !of.allows_optional() {
            self.report(errors::optional_place(
                param.span,
                param.name.as_str(),
                of.describe(),
            ));
        }
    }

    /// Reports each parameter of a constructor that has a direction.
    pub(super) fn check_constructor(&mut self, params: &[ParamSig]) {
        for param in params {
            if param.direction != Direction::None {
                self.report(errors::constructor_direction(param.span, &param.name));
            }
        }
    }

    /// Returns whether tuples and lists can have members of type `ty`. Reports a type that they cannot have;
    /// `what` names the tuple or list in the message.
    pub(super) fn check_member_type(&mut self, ty: &Ty, what: &str, span: Span) -> bool {
        let stateful = matches!(ty, Ty::Extern(..) | Ty::Block(_) | Ty::BlockType(..));
        let ok = !stateful && !matches!(ty, Ty::Void | Ty::Any | Ty::ValueSet(_));
        if !ok {
            let found = self.show(ty);
            self.report(errors::member_type(span, &found, what));
        }
        ok
    }

    /// Returns whether `ty` can replace a type parameter of a struct, extern or function. Reports a type that
    /// cannot.
    pub(super) fn check_type_argument(&mut self, ty: &Ty, span: Span) -> bool {
        let ok = !matches!(
            ty,
            Ty::Extern(..) | Ty::Block(_) | Ty::BlockType(..) | Ty::ValueSet(_)
        );
        if !ok {
            let found = self.show(ty);
            self.report(errors::type_argument(span, &found));
        }
        ok
    }

    /// Returns whether the value of an expression is known when the program is instantiated.
    pub(super) fn is_static(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Var(id) => matches!(
                self.module.var(*id).kind,
                VarKind::ConstructorParam | VarKind::Instance(_)
            ),
            ExprKind::Call(call) => match call.target {
                CallTarget::Construct => true,
                // A function of the architecture may make an instance.
                CallTarget::Extern(_) => {
                    let mut args = call.args.iter().filter_map(Arg::expr);
                    args.all(|e| self.is_static(e))
                }
                _ => false,
            },
            ExprKind::Unary(..)
            | ExprKind::Cast(_)
            | ExprKind::Slice(..)
            | ExprKind::Field(..)
            | ExprKind::Binary(..)
            | ExprKind::Ternary(..)
            | ExprKind::Aggregate(_) => expr.operands().into_iter().all(|e| self.is_static(e)),
            _ => expr.is_literal(),
        }
    }

    /// Reports each argument of a constructor whose value is not known when the program is instantiated.
    pub(super) fn check_static(&mut self, args: &[Arg]) {
        for value in args.iter().filter_map(Arg::expr) {
            if !self.is_static(value) {
                self.report(errors::not_constant(value.span, "a constructor's argument"));
            }
        }
    }
}
