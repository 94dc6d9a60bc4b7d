//! Expressions.

use super::{Slot, SlotId};
use crate::Bits;

/// Expressions: no side effects, every width known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A constant.
    Const(Bits),
    /// The value of a slot.
    Slot(SlotId),
    /// `op a`.
    Unary {
        /// Operator.
        op: UnaryOp,
        /// Operand.
        a: Box<Expr>,
    },
    /// `a op b`.
    Binary {
        /// Operator.
        op: BinaryOp,
        /// Left.
        a: Box<Expr>,
        /// Right.
        b: Box<Expr>,
    },
    /// Bits `high` down to `low` of `a`, both included, 0 the least significant.
    Slice {
        /// Operand.
        a: Box<Expr>,
        /// Highest.
        high: u32,
        /// Lowest.
        low: u32,
    },
    /// `a` above `b`.
    Concat {
        /// High part.
        a: Box<Expr>,
        /// Low part.
        b: Box<Expr>,
    },
    /// To a larger width with zeros.
    ZeroExtend {
        /// Operand.
        a: Box<Expr>,
        /// New width, larger than the operand's.
        width: u32,
    },
    /// To a larger width with the sign bit.
    SignExtend {
        /// Operand.
        a: Box<Expr>,
        /// New width, larger than the operand's.
        width: u32,
    },
    /// `then` if the 1-bit `cond` is 1, else `otherwise`.
    Mux {
        /// Condition.
        cond: Box<Expr>,
        /// When 1.
        then: Box<Expr>,
        /// When 0.
        otherwise: Box<Expr>,
    },
    /// Length in bytes of the whole packet as it arrived (32 bits).
    PacketLength,
}

impl Expr {
    /// Returns the width in bits of the expression's value; `slots` are the program's slots.
    pub fn width(&self, slots: &[Slot]) -> u32 {
        match self {
            Expr::Const(value) => value.width(),
            Expr::Slot(slot) => slots[slot.index()].width,
            Expr::Unary { a, .. } => a.width(slots),
            Expr::Binary { op, a, .. } => {
                if op.is_comparison() {
                    1
                } else {
                    a.width(slots)
                }
            }
            Expr::Slice { high, low, .. } => high - low + 1,
            Expr::Concat { a, b } => a.width(slots) + b.width(slots),
            Expr::ZeroExtend { width, .. } | Expr::SignExtend { width, .. } => *width,
            Expr::Mux { then, .. } => then.width(slots),
            Expr::PacketLength => 32,
        }
    }
}

/// Unary operators; the result has the operand's width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Bitwise complement.
    Not,
    /// Two's complement negation.
    Neg,
}

/// Binary operators. Operands have equal width, and the result too, unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Modulo 2^w.
    Add,
    /// Modulo 2^w.
    Sub,
    /// Modulo 2^w.
    Mul,
    /// Unsigned quotient; zero for a zero divisor.
    Div,
    /// Unsigned remainder; zero for a zero divisor.
    Mod,
    /// Bitwise.
    And,
    /// Bitwise.
    Or,
    /// Bitwise.
    Xor,
    /// Logical shift left; `b` may have any width, and shifts by the width of `a` or more give zero.
    Shl,
    /// Logical shift right; likewise.
    Shr,
    /// Arithmetic shift right; large shifts give copies of the sign.
    Sar,
    /// Unsigned saturating.
    AddSat,
    /// Unsigned saturating.
    SubSat,
    /// Signed saturating.
    SAddSat,
    /// Signed saturating.
    SSubSat,
    /// Equality; 1 bit.
    Eq,
    /// Inequality; 1 bit.
    Ne,
    /// Unsigned less; 1 bit.
    Ult,
    /// Unsigned less or equal; 1 bit.
    Ule,
    /// Signed less; 1 bit.
    Slt,
    /// Signed less or equal; 1 bit.
    Sle,
}

impl BinaryOp {
    /// Returns whether the operator is a comparison, whose result has one bit.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Ult | Ule | Slt | Sle)
    }

    /// Returns whether the operator is a shift, whose operands may have different widths.
    pub fn is_shift(self) -> bool {
        matches!(self, BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Sar)
    }
}
