//! Arithmetic on compile-time integers.
//!
//! A value of `bit<w>` is kept as a number from 0 to 2^w - 1, one of `int<w>` as a signed number, one of `int` as it is.

use ir::Bits;
use num_bigint::{BigInt, Sign};
use syntax::ast::{BinaryOp, IntLiteral};

use crate::types::Ty;

/// Compile-time integers have at most this many bits.
pub const MAX_BITS: u32 = 1 << 18;

/// Returns the value of an integer literal, without regard to the width that the literal may give.
pub fn literal(literal: &IntLiteral) -> BigInt {
    BigInt::parse_bytes(literal.digits.as_bytes(), literal.radix).unwrap_or_default()
}

/// Returns 2 to the power of `n`.
pub fn power_of_two(n: u32) -> BigInt {
    BigInt::from(1) << n
}

/// Returns whether a value is in the range of the type `ty`: `bit<w>`, `int<w>` or `int`, which has no bounds.
pub fn fits(value: &BigInt, ty: &Ty) -> bool {
    wrap(value, ty) == *value
}

/// Reduces the value modulo 2^w to the range of `ty`, where w is the width of `ty`, and returns it: from 0 to
/// 2^w - 1 for `bit<w>`, a number in two's complement for `int<w>`. For a type without a width, returns the
/// value unchanged.
pub fn wrap(value: &BigInt, ty: &Ty) -> BigInt {
    match ty {
        Ty::Bit(w) => value.modpow_two(*w),
        Ty::Signed(w) => {
            let low = value.modpow_two(*w);
            match *w > 0 && low >= power_of_two(w - 1) {
                true => low - power_of_two(*w),
                false => low,
            }
        }
        _ => value.clone(),
    }
}

trait ModPowerOfTwo {
    fn modpow_two(&self, n: u32) -> BigInt;
}

impl ModPowerOfTwo for BigInt {
    fn modpow_two(&self, n: u32) -> BigInt {
        let modulus = power_of_two(n);
        ((self % &modulus) + &modulus) % &modulus
    }
}

/// Returns the lowest `width` bits of a value in two's complement.
pub fn to_bits(value: &BigInt, width: u32) -> Bits {
    let (_, bytes) = value.modpow_two(width).to_bytes_be();
    Bits::from_be_bytes(width, &bytes)
}

/// Returns the value as a `u32`; `None` if it is negative or exceeds 32 bits.
pub fn to_u32(value: &BigInt) -> Option<u32> {
    u32::try_from(value).ok()
}

/// The error of an operation on constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldError {
    /// Division or modulo by zero.
    DivisionByZero,
    /// Division or modulo of negative numbers.
    NegativeDivision,
    /// A shift by a negative amount.
    NegativeShift,
    /// The result would have more than [`MAX_BITS`] bits.
    TooLarge,
    /// The operator has no meaning for these operands.
    Meaningless,
}

/// Computes an arithmetic or bitwise operation on constants, and wraps the result to the width of `ty`, the
/// type of the left operand. Saturating operators stop at the ends of the range of `ty`.
///
/// # Errors
///
/// The operation has no result (such as a division by zero), or one of more than `MAX_BITS` bits.
pub fn arithmetic(op: BinaryOp, a: &BigInt, b: &BigInt, ty: &Ty) -> Result<BigInt, FoldError> {
    let result = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div | BinaryOp::Mod => divide(op, a, b)?,
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::Shl | BinaryOp::Shr => shift(op, a, b, ty)?,
        BinaryOp::SatAdd => saturate(a + b, ty),
        BinaryOp::SatSub => saturate(a - b, ty),
        _ => return Err(FoldError::Meaningless),
    };
    match *ty == Ty::Int && result.bits() > u64::from(MAX_BITS) {
        true => Err(FoldError::TooLarge),
        false => Ok(wrap(&result, ty)),
    }
}

fn divide(op: BinaryOp, a: &BigInt, b: &BigInt) -> Result<BigInt, FoldError> {
    if *b == BigInt::ZERO {
        return Err(FoldError::DivisionByZero);
    }
    if a.sign() == Sign::Minus || b.sign() == Sign::Minus {
        return Err(FoldError::NegativeDivision);
    }
    Ok(if op == BinaryOp::Div { a / b } else { a % b })
}

fn shift(op: BinaryOp, a: &BigInt, b: &BigInt, ty: &Ty) -> Result<BigInt, FoldError> {
    if b.sign() == Sign::Minus {
        return Err(FoldError::NegativeShift);
    }
    let by = match (to_u32(b), ty) {
        (Some(n), _) if n <= MAX_BITS => n,
        // Everything is shifted out.
        (_, Ty::Bit(_) | Ty::Signed(_)) => MAX_BITS,
        _ if op == BinaryOp::Shr => MAX_BITS,
        _ => return Err(FoldError::TooLarge),
    };
    // `>>` of a negative BigInt rounds down, as an arithmetic shift does.
    Ok(if op == BinaryOp::Shl {
        a << by
    } else {
        a >> by
    })
}

fn saturate(value: BigInt, ty: &Ty) -> BigInt {
    let (low, high) = match ty {
        Ty::Bit(w) => (BigInt::ZERO, power_of_two(*w) - 1),
        Ty::Signed(w) => (
            -power_of_two(w.saturating_sub(1)),
            power_of_two(w.saturating_sub(1)) - 1,
        ),
        _ => return value,
    };
    value.clamp(low, high)
}

/// Compares two integers by the operator `op`; `None` if `op` is no comparison.
pub fn compare(op: BinaryOp, a: &BigInt, b: &BigInt) -> Option<bool> {
    Some(match op {
        BinaryOp::Eq => a == b,
        BinaryOp::Ne => a != b,
        BinaryOp::Lt => a < b,
        BinaryOp::Le => a <= b,
        BinaryOp::Gt => a > b,
        BinaryOp::Ge => a >= b,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(op: BinaryOp, a: i64, b: i64, ty: &Ty) -> Result<i64, FoldError> {
        let value = arithmetic(op, &BigInt::from(a), &BigInt::from(b), ty)?;
        Ok(i64::try_from(value).expect("a small value"))
    }

    #[test]
    fn values_wrap_to_their_type() {
        assert_eq!(compute(BinaryOp::Add, 250, 10, &Ty::Bit(8)), Ok(4));
        assert_eq!(compute(BinaryOp::Sub, 3, 5, &Ty::Bit(8)), Ok(254));
        assert_eq!(compute(BinaryOp::Add, 100, 100, &Ty::Signed(8)), Ok(-56));
        assert_eq!(compute(BinaryOp::Mul, -100, 100, &Ty::Int), Ok(-10_000));
    }

    #[test]
    fn saturating_operators_stop_at_the_ends() {
        assert_eq!(compute(BinaryOp::SatAdd, 250, 10, &Ty::Bit(8)), Ok(255));
        assert_eq!(compute(BinaryOp::SatSub, 3, 5, &Ty::Bit(8)), Ok(0));
        assert_eq!(
            compute(BinaryOp::SatSub, -100, 100, &Ty::Signed(8)),
            Ok(-128)
        );
    }

    #[test]
    fn shifts_of_any_size_are_defined_where_there_is_a_width() {
        assert_eq!(compute(BinaryOp::Shl, 1, 1_000_000, &Ty::Bit(8)), Ok(0));
        assert_eq!(
            compute(BinaryOp::Shr, -1, 1_000_000, &Ty::Signed(8)),
            Ok(-1)
        );
        assert_eq!(
            compute(BinaryOp::Shl, 1, 1_000_000, &Ty::Int),
            Err(FoldError::TooLarge)
        );
        assert_eq!(
            compute(BinaryOp::Shr, 1, -1, &Ty::Bit(8)),
            Err(FoldError::NegativeShift)
        );
    }

    #[test]
    fn division_is_for_numbers_that_are_not_negative() {
        assert_eq!(compute(BinaryOp::Div, 7, 2, &Ty::Int), Ok(3));
        assert_eq!(
            compute(BinaryOp::Mod, 7, 0, &Ty::Int),
            Err(FoldError::DivisionByZero)
        );
        assert_eq!(
            compute(BinaryOp::Div, -7, 2, &Ty::Int),
            Err(FoldError::NegativeDivision)
        );
    }

    #[test]
    fn bits_are_twos_complement() {
        assert_eq!(to_bits(&BigInt::from(-2), 8).low_u64(), 254);
        assert_eq!(wrap(&BigInt::from(255), &Ty::Signed(8)), BigInt::from(-1));
    }
}
