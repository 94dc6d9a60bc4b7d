//! Operators: their typing rules (specification section 8) and their constants.

use num_bigint::{BigInt, Sign};
use syntax::ast::{self, BinaryOp};
use syntax::source::Span;

use super::Checked;
use crate::errors;
use crate::fold::{self, FoldError};
use crate::hir::{Expr, ExprKind, UnaryOp};
use crate::types::Ty;

impl Checked {
    /// Checks the expression `op operand` and returns it; as a constant if the operand is constant.
    pub(super) fn unary(&mut self, op: ast::UnaryOp, operand: Expr, span: Span) -> Expr {
        let operand = if op == ast::UnaryOp::Not {
            operand
        } else {
            self.decay(operand)
        };
        let ok = match (op, &operand.ty) {
            (_, Ty::Missing) => return Expr::missing(span),
            (ast::UnaryOp::Not, ty) => *ty == Ty::Bool,
            (ast::UnaryOp::BitNot, ty) => matches!(ty, Ty::Bit(_) | Ty::Signed(_)),
            (ast::UnaryOp::Neg | ast::UnaryOp::Plus, ty) => {
                matches!(ty, Ty::Bit(_) | Ty::Signed(_) | Ty::Int)
            }
        };
        if !ok {
            let found = self.show(&operand.ty);
            return self.wrong(errors::unary_operand(span, op.symbol(), &found), span);
        }
        let ty = operand.ty.clone();
        let op = match (op, &operand.kind) {
            (ast::UnaryOp::Plus, _) => return Expr { span, ..operand },
            (ast::UnaryOp::Not, ExprKind::Bool(v)) => {
                return Expr::new(ExprKind::Bool(!v), ty, span);
            }
            (ast::UnaryOp::Neg, ExprKind::Int(v)) => {
                return Expr::new(ExprKind::Int(fold::wrap(&-v, &ty)), ty, span);
            }
            (ast::UnaryOp::BitNot, ExprKind::Int(v)) => {
                return Expr::new(ExprKind::Int(fold::wrap(&(-v - 1), &ty)), ty, span);
            }
            (ast::UnaryOp::Not, _) => UnaryOp::Not,
            (ast::UnaryOp::BitNot, _) => UnaryOp::BitNot,
            (ast::UnaryOp::Neg, _) => UnaryOp::Neg,
        };
        Expr::new(ExprKind::Unary(op, Box::new(operand)), ty, span)
    }

    /// Checks the expression `left op right` and returns it; as a constant if both operands are constant.
    /// `at` is the operator's place in the source. Returns a missing expression without a report if an
    /// operand is missing.
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        left: Expr,
        right: Expr,
        at: Span,
        span: Span,
    ) -> Expr {
        if left.ty == Ty::Missing || right.ty == Ty::Missing {
            return Expr::missing(span);
        }
        match op {
            BinaryOp::And | BinaryOp::Or => self.logical(op, left, right, at, span),
            BinaryOp::Concat => self.concat(left, right, at, span),
            BinaryOp::Shl | BinaryOp::Shr => self.shift(op, left, right, at, span),
            BinaryOp::Eq | BinaryOp::Ne => self.equality(op, left, right, at, span),
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                self.order(op, left, right, at, span)
            }
            _ => self.arithmetic(op, left, right, at, span),
        }
    }

    fn bad_operands(
        &mut self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        at: Span,
        span: Span,
    ) -> Expr {
        let (l, r) = (self.show(&left.ty), self.show(&right.ty));
        let same_kind = matches!(
            (&left.ty, &right.ty),
            (Ty::Bit(_) | Ty::Signed(_), Ty::Bit(_) | Ty::Signed(_))
        ) && left.ty != right.ty;
        let mut message = errors::binary_operands(at, op.symbol(), &l, &r);
        if same_kind {
            message = message.hint(format!("cast one side, for instance `({l})`"));
        }
        self.wrong(message, span)
    }

    fn logical(&mut self, op: BinaryOp, left: Expr, right: Expr, at: Span, span: Span) -> Expr {
        if left.ty != Ty::Bool || right.ty != Ty::Bool {
            return self.bad_operands(op, &left, &right, at, span);
        }
        match (&left.kind, op) {
            (ExprKind::Bool(false), BinaryOp::And) | (ExprKind::Bool(true), BinaryOp::Or) => {
                Expr { span, ..left }
            }
            (ExprKind::Bool(_), _) => Expr { span, ..right },
            _ => Expr::new(
                ExprKind::Binary(op, Box::new(left), Box::new(right)),
                Ty::Bool,
                span,
            ),
        }
    }

    fn concat(&mut self, left: Expr, right: Expr, at: Span, span: Span) -> Expr {
        if let (ExprKind::Str(a), ExprKind::Str(b)) = (&left.kind, &right.kind) {
            return Expr::new(ExprKind::Str(format!("{a}{b}").into()), Ty::String, span);
        }
        let (left, right) = (self.decay(left), self.decay(right));
        let width = |ty: &Ty| match ty {
            Ty::Bit(w) | Ty::Signed(w) => Some(*w),
            _ => None,
        };
        let (Some(a), Some(b)) = (width(&left.ty), width(&right.ty)) else {
            for side in [&left, &right] {
                if side.ty == Ty::Int {
                    return self.wrong(errors::unsized_int(side.span), span);
                }
            }
            return self.bad_operands(BinaryOp::Concat, &left, &right, at, span);
        };
        if a + b > ir::Bits::MAX_WIDTH {
            return self.wrong(errors::bad_width(span, &(a + b).to_string()), span);
        }
        let ty = if matches!(left.ty, Ty::Signed(_)) {
            Ty::Signed(a + b)
        } else {
            Ty::Bit(a + b)
        };
        if let (Some(x), Some(y)) = (left.as_int(), right.as_int()) {
            let low = fold::wrap(y, &Ty::Bit(b));
            let value: BigInt = (fold::wrap(x, &Ty::Bit(a)) << b) | low;
            return Expr::new(ExprKind::Int(fold::wrap(&value, &ty)), ty, span);
        }
        Expr::new(
            ExprKind::Binary(BinaryOp::Concat, Box::new(left), Box::new(right)),
            ty,
            span,
        )
    }

    fn shift(&mut self, op: BinaryOp, left: Expr, right: Expr, at: Span, span: Span) -> Expr {
        let (left, right) = (self.decay(left), self.decay(right));
        let shiftable = matches!(left.ty, Ty::Bit(_) | Ty::Signed(_) | Ty::Int);
        if !shiftable || !matches!(right.ty, Ty::Bit(_) | Ty::Int) {
            let known = right.as_int().is_some_and(|v| v.sign() != Sign::Minus);
            if shiftable && known && matches!(right.ty, Ty::Signed(_)) {
                let ty = Ty::Int;
                return self.shift(op, left, Expr { ty, ..right }, at, span);
            }
            if shiftable && matches!(right.ty, Ty::Signed(_)) {
                let found = self.show(&right.ty);
                return self.wrong(errors::signed_shift(right.span, &found), span);
            }
            return self.bad_operands(op, &left, &right, at, span);
        }
        if right.as_int().is_some_and(|v| v.sign() == Sign::Minus) {
            return self.wrong(errors::negative_shift(right.span), span);
        }
        if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
            return self.folded(
                fold::arithmetic(op, a, b, &left.ty),
                left.ty.clone(),
                &right,
                span,
            );
        }
        if left.ty == Ty::Int {
            return self.wrong(errors::unsized_int(left.span), span);
        }
        let right = match right.as_int() {
            // Any width will do for the amount; the bits of the value itself may need more than 32.
            Some(v) if right.ty == Ty::Int => {
                let amount = v.clone().min(BigInt::from(u32::MAX));
                self.sized(amount, &Ty::Bit(32), right.span, false)
            }
            _ => right,
        };
        let ty = left.ty.clone();
        Expr::new(
            ExprKind::Binary(op, Box::new(left), Box::new(right)),
            ty,
            span,
        )
    }

    /// Converts two operands to one type if there is an implicit cast, and returns them: an integer without a
    /// width takes the type of the other operand, an initialiser too.
    pub(super) fn balance(&mut self, left: Expr, right: Expr) -> (Expr, Expr) {
        let aggregate = |e: &Expr| matches!(e.ty, Ty::Tuple(_) | Ty::Record(_) | Ty::Any);
        if left.ty == right.ty {
            return (left, right);
        }
        let (left, right) = (self.decay(left), self.decay(right));
        match (&left.ty, &right.ty) {
            (Ty::Int, Ty::Bit(_) | Ty::Signed(_)) => {
                let ty = right.ty.clone();
                (self.coerce(left, &ty), right)
            }
            (Ty::Bit(_) | Ty::Signed(_), Ty::Int) => {
                let ty = left.ty.clone();
                (left, self.coerce(right, &ty))
            }
            _ if aggregate(&right) => {
                let ty = left.ty.clone();
                (left, self.coerce(right, &ty))
            }
            _ if aggregate(&left) => {
                let ty = right.ty.clone();
                (self.coerce(left, &ty), right)
            }
            _ => (left, right),
        }
    }

    fn equality(&mut self, op: BinaryOp, left: Expr, right: Expr, at: Span, span: Span) -> Expr {
        let (left, right) = self.balance(left, right);
        if left.ty == Ty::Missing || right.ty == Ty::Missing {
            return Expr::missing(span);
        }
        let incomparable = matches!(
            left.ty,
            Ty::Void
                | Ty::Extern(..)
                | Ty::Block(_)
                | Ty::BlockType(..)
                | Ty::ValueSet(_)
                | Ty::Param(_)
                | Ty::Any
        );
        if left.ty != right.ty || incomparable {
            return self.bad_operands(op, &left, &right, at, span);
        }
        if matches!(left.ty, Ty::Tuple(_) | Ty::Record(_)) {
            let errors = self.error_count();
            self.require_sized(&left);
            self.require_sized(&right);
            if self.error_count() > errors {
                return Expr::missing(span);
            }
        }
        let equal = match (&left.kind, &right.kind) {
            (ExprKind::Int(a), ExprKind::Int(b)) => Some(a == b),
            (ExprKind::Bool(a), ExprKind::Bool(b)) => Some(a == b),
            (ExprKind::Symbol(a), ExprKind::Symbol(b)) => Some(a == b),
            (ExprKind::Str(a), ExprKind::Str(b)) => Some(a == b),
            (ExprKind::Aggregate(_), ExprKind::Aggregate(_))
                if left.is_literal() && right.is_literal() =>
            {
                left.same_literal(&right)
            }
            _ => None,
        };
        match equal {
            Some(equal) => Expr::new(
                ExprKind::Bool(equal == (op == BinaryOp::Eq)),
                Ty::Bool,
                span,
            ),
            None => Expr::new(
                ExprKind::Binary(op, Box::new(left), Box::new(right)),
                Ty::Bool,
                span,
            ),
        }
    }

    fn order(&mut self, op: BinaryOp, left: Expr, right: Expr, at: Span, span: Span) -> Expr {
        let (left, right) = (self.decay(left), self.decay(right));
        let (left, right) = self.balance(left, right);
        if left.ty == Ty::Missing || right.ty == Ty::Missing {
            return Expr::missing(span);
        }
        if left.ty != right.ty || !matches!(left.ty, Ty::Bit(_) | Ty::Signed(_) | Ty::Int) {
            return self.bad_operands(op, &left, &right, at, span);
        }
        if let (Some(a), Some(b)) = (left.as_int(), right.as_int())
            && let Some(result) = fold::compare(op, a, b)
        {
            return Expr::new(ExprKind::Bool(result), Ty::Bool, span);
        }
        Expr::new(
            ExprKind::Binary(op, Box::new(left), Box::new(right)),
            Ty::Bool,
            span,
        )
    }

    fn arithmetic(&mut self, op: BinaryOp, left: Expr, right: Expr, at: Span, span: Span) -> Expr {
        let (left, right) = (self.decay(left), self.decay(right));
        let negative = |e: &Expr| e.as_int().is_some_and(|v| v.sign() == Sign::Minus);
        if matches!(op, BinaryOp::Div | BinaryOp::Mod) && (negative(&left) || negative(&right)) {
            return self.wrong(errors::negative_division(span), span);
        }
        let (left, right) = self.balance(left, right);
        if left.ty == Ty::Missing || right.ty == Ty::Missing {
            return Expr::missing(span);
        }
        let allowed = match op {
            BinaryOp::Div | BinaryOp::Mod => matches!(left.ty, Ty::Bit(_) | Ty::Int),
            BinaryOp::SatAdd | BinaryOp::SatSub => matches!(left.ty, Ty::Bit(_) | Ty::Signed(_)),
            _ => matches!(left.ty, Ty::Bit(_) | Ty::Signed(_) | Ty::Int),
        };
        if left.ty != right.ty || !allowed {
            return self.bad_operands(op, &left, &right, at, span);
        }
        let ty = left.ty.clone();
        if matches!(op, BinaryOp::Div | BinaryOp::Mod) && right.as_int() == Some(&BigInt::ZERO) {
            return self.wrong(errors::division_by_zero(right.span), span);
        }
        if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
            return self.folded(fold::arithmetic(op, a, b, &ty), ty, &right, span);
        }
        Expr::new(
            ExprKind::Binary(op, Box::new(left), Box::new(right)),
            ty,
            span,
        )
    }

    fn folded(
        &mut self,
        result: Result<BigInt, FoldError>,
        ty: Ty,
        right: &Expr,
        span: Span,
    ) -> Expr {
        match result {
            Ok(value) => Expr::new(ExprKind::Int(value), ty, span),
            Err(FoldError::DivisionByZero) => {
                self.wrong(errors::division_by_zero(right.span), span)
            }
            Err(FoldError::NegativeDivision) => self.wrong(errors::negative_division(span), span),
            Err(FoldError::TooLarge) => self.wrong(errors::constant_too_large(span), span),
            Err(FoldError::NegativeShift | FoldError::Meaningless) => {
                self.wrong(errors::negative_shift(right.span), span)
            }
        }
    }
}
