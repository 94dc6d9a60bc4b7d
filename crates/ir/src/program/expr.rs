//! Expressions.

use super::{Slot, SlotId};
use crate::Bits;

/// An expression. It has no side effects, and its width is known.
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
        /// Left operand.
        a: Box<Expr>,
        /// Right operand.
        b: Box<Expr>,
    },
    /// Bits `high` down to `low` of `a`, both included, 0 the least significant.
    Slice {
        /// Operand.
        a: Box<Expr>,
        /// The highest bit.
        high: u32,
        /// The lowest bit.
        low: u32,
    },
    /// The concatenation of `a`, the high bits, and `b`, the low bits.
    Concat {
        /// High part.
        a: Box<Expr>,
        /// Low part.
        b: Box<Expr>,
    },
    /// `a` in a larger width, with zeros as the high bits.
    ZeroExtend {
        /// Operand.
        a: Box<Expr>,
        /// New width, larger than the operand's.
        width: u32,
    },
    /// `a` in a larger width, with copies of its sign bit as the high bits.
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
        /// The value if the condition is 1.
        then: Box<Expr>,
        /// The value if the condition is 0.
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

/// Binary operators on operands `a` and `b`. The operands have the same width w, and so has the result,
/// unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Sum, modulo 2^w.
    Add,
    /// Difference, modulo 2^w.
    Sub,
    /// Product, modulo 2^w.
    Mul,
    /// Unsigned quotient; zero for a zero divisor.
    Div,
    /// Unsigned remainder; zero for a zero divisor.
    Mod,
    /// Bitwise "and".
    And,
    /// Bitwise "or".
    Or,
    /// Bitwise exclusive "or".
    Xor,
    /// Logical shift left; `b` may have any width, and shifts by the width of `a` or more give zero.
    Shl,
    /// Logical shift right; `b` may have any width, and shifts by the width of `a` or more give zero.
    Shr,
    /// Arithmetic shift right; `b` may have any width, and shifts by the width of `a` or more give copies of
    /// the sign bit.
    Sar,
    /// Saturating sum of unsigned numbers: at most 2^w - 1.
    AddSat,
    /// Saturating difference of unsigned numbers: at least zero.
    SubSat,
    /// Saturating sum of signed numbers: within the range of w bits.
    SAddSat,
    /// Saturating difference of signed numbers: within the range of w bits.
    SSubSat,
    /// Equality; 1 bit.
    Eq,
    /// Inequality; 1 bit.
    Ne,
    /// Less than, for unsigned numbers; 1 bit.
    Ult,
    /// Less than or equal, for unsigned numbers; 1 bit.
    Ule,
    /// Less than, for signed numbers; 1 bit.
    Slt,
    /// Less than or equal, for signed numbers; 1 bit.
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
