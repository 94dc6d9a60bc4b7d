//! Expressions of the IR, folded where they are constant.
//!
//! The functions take any operands of the right widths and give an equal expression that is as small as local rules
//! make it.

use ir::{BinaryOp, Bits, Expr, Slot, UnaryOp};

/// Builds a constant of `width` bits.
pub(crate) fn constant(width: u32, value: u64) -> Expr {
    Expr::Const(Bits::from_u64(width, value))
}

/// Builds a constant of one bit: 1 for true, 0 for false.
pub(crate) fn boolean(value: bool) -> Expr {
    Expr::Const(Bits::from_bool(value))
}

/// Returns the truth value of a constant; `None` if the expression is no constant.
pub(crate) fn known(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Const(bits) => Some(!bits.is_zero()),
        _ => None,
    }
}

/// Builds the expression `op a`, simplified if the operand allows it.
pub(crate) fn unary(op: UnaryOp, a: Expr) -> Expr {
    match (op, a) {
        (op, Expr::Const(bits)) => Expr::Const(Bits::unary(op, &bits)),
        (op, Expr::Unary { op: inner, a }) if op == inner => *a,
        (
            UnaryOp::Not,
            Expr::Binary {
                op: BinaryOp::Eq,
                a,
                b,
            },
        ) => Expr::Binary {
            op: BinaryOp::Ne,
            a,
            b,
        },
        (
            UnaryOp::Not,
            Expr::Binary {
                op: BinaryOp::Ne,
                a,
                b,
            },
        ) => Expr::Binary {
            op: BinaryOp::Eq,
            a,
            b,
        },
        (op, a) => Expr::Unary { op, a: Box::new(a) },
    }
}

/// Builds the negation `!a` of an expression of one bit.
pub(crate) fn not(a: Expr) -> Expr {
    unary(UnaryOp::Not, a)
}

/// Builds the expression `a op b`, simplified if the operands allow it.
pub(crate) fn binary(op: BinaryOp, a: Expr, b: Expr, slots: &[Slot]) -> Expr {
    if let (Expr::Const(x), Expr::Const(y)) = (&a, &b) {
        return Expr::Const(Bits::binary(op, x, y));
    }
    let zero = |e: &Expr| matches!(e, Expr::Const(bits) if bits.is_zero());
    let ones = |e: &Expr| matches!(e, Expr::Const(bits) if *bits == Bits::ones(bits.width()));
    match op {
        BinaryOp::And if zero(&a) || ones(&b) => return a,
        BinaryOp::And if zero(&b) || ones(&a) => return b,
        BinaryOp::Or if zero(&a) || ones(&b) => return b,
        BinaryOp::Or if zero(&b) || ones(&a) => return a,
        BinaryOp::Xor | BinaryOp::Add if zero(&a) => return b,
        BinaryOp::Xor | BinaryOp::Add | BinaryOp::Sub if zero(&b) => return a,
        BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Sar if zero(&b) => return a,
        BinaryOp::Eq | BinaryOp::Ne if a.width(slots) == 1 => {
            // Comparing one bit with a constant is that bit or its complement.
            let (side, value) = match (&a, &b) {
                (_, Expr::Const(bits)) => (&a, !bits.is_zero()),
                (Expr::Const(bits), _) => (&b, !bits.is_zero()),
                _ => {
                    return Expr::Binary {
                        op,
                        a: Box::new(a),
                        b: Box::new(b),
                    };
                }
            };
            let side = side.clone();
            return if value == (op == BinaryOp::Eq) {
                side
            } else {
                not(side)
            };
        }
        _ => {}
    }
    Expr::Binary {
        op,
        a: Box::new(a),
        b: Box::new(b),
    }
}

/// Builds the slice of `a` from bit `high` down to bit `low`, both included.
pub(crate) fn slice(a: Expr, high: u32, low: u32, slots: &[Slot]) -> Expr {
    match a {
        Expr::Const(bits) => Expr::Const(bits.slice(high, low)),
        Expr::Slice { a, low: inner, .. } => Expr::Slice {
            a,
            high: high + inner,
            low: low + inner,
        },
        Expr::ZeroExtend { a, .. } if high < a.width(slots) => slice(*a, high, low, slots),
        Expr::Concat { a: top, b } => {
            let width = b.width(slots);
            if high < width {
                slice(*b, high, low, slots)
            } else if low >= width {
                slice(*top, high - width, low - width, slots)
            } else {
                Expr::Slice {
                    a: Box::new(Expr::Concat { a: top, b }),
                    high,
                    low,
                }
            }
        }
        a if low == 0 && high + 1 == a.width(slots) => a,
        a => Expr::Slice {
            a: Box::new(a),
            high,
            low,
        },
    }
}

/// Builds the concatenation of two values, with `a` in the high bits and `b` in the low bits.
pub(crate) fn concat(a: Expr, b: Expr) -> Expr {
    match (a, b) {
        (Expr::Const(x), Expr::Const(y)) => Expr::Const(x.concat(&y)),
        (a, b) => Expr::Concat {
            a: Box::new(a),
            b: Box::new(b),
        },
    }
}

/// Builds the value `a` in `width` bits: cuts off high bits, or adds zeros as high bits.
pub(crate) fn resize(a: Expr, width: u32, slots: &[Slot]) -> Expr {
    let from = a.width(slots);
    match (a, from.cmp(&width)) {
        (a, std::cmp::Ordering::Equal) => a,
        (Expr::Const(bits), _) => Expr::Const(bits.resize(width)),
        (a, std::cmp::Ordering::Greater) => slice(a, width - 1, 0, slots),
        (Expr::ZeroExtend { a, .. }, _) => Expr::ZeroExtend { a, width },
        (a, _) => Expr::ZeroExtend {
            a: Box::new(a),
            width,
        },
    }
}

/// Builds the signed value `a` in `width` bits: cuts off high bits, or repeats the sign bit as high bits.
pub(crate) fn resize_signed(a: Expr, width: u32, slots: &[Slot]) -> Expr {
    if a.width(slots) >= width {
        return resize(a, width, slots);
    }
    match a {
        Expr::Const(bits) => Expr::Const(bits.sign_extend(width)),
        a => Expr::SignExtend {
            a: Box::new(a),
            width,
        },
    }
}

/// Builds `cond ? then : otherwise`. Returns one side alone if the condition is constant or both sides are equal.
pub(crate) fn mux(cond: Expr, then: Expr, otherwise: Expr) -> Expr {
    match known(&cond) {
        Some(true) => then,
        Some(false) => otherwise,
        None if then == otherwise => then,
        None => Expr::Mux {
            cond: Box::new(cond),
            then: Box::new(then),
            otherwise: Box::new(otherwise),
        },
    }
}

/// Builds an expression that has the value of the item of `items` at `index`, or of the last item for an
/// index beyond the end. Its depth grows as the logarithm of the number of items.
pub(crate) fn choose(items: &[Expr], index: &Expr, slots: &[Slot]) -> Expr {
    choose_from(items, 0, index, slots)
}

fn choose_from(items: &[Expr], first: u64, index: &Expr, slots: &[Slot]) -> Expr {
    if let [only] = items {
        return only.clone();
    }
    let middle = items.len() / 2;
    let width = index.width(slots);
    let bound = first + middle as u64;
    if width < 64 && bound >> width != 0 {
        // No index of this width reaches the upper half.
        return choose_from(&items[..middle], first, index, slots);
    }
    let below = binary(BinaryOp::Ult, index.clone(), constant(width, bound), slots);
    let low = choose_from(&items[..middle], first, index, slots);
    let high = choose_from(&items[middle..], bound, index, slots);
    mux(below, low, high)
}
