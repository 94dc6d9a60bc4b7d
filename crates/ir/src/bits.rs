//! Bit strings of fixed width, and the arithmetic of P4_16 (specification section 8) on them.
//!
//! One implementation serves constant folding in the compiler and the reference interpreter. A value is stored as
//! little-endian 64-bit limbs; bits above the width are always zero.

use crate::{BinaryOp, UnaryOp};
use smallvec::{SmallVec, smallvec};
use std::cmp::Ordering;
use std::fmt;

/// A bit string of fixed width, at least 1 bit.
#[derive(PartialEq, Eq, Hash)]
pub struct Bits {
    width: u32,
    limbs: SmallVec<[u64; 2]>,
}

/// Faster than the derived one, which copies limb by limb.
impl Clone for Bits {
    #[inline]
    fn clone(&self) -> Bits {
        Bits {
            width: self.width,
            limbs: SmallVec::from_slice(&self.limbs),
        }
    }
}

fn limbs_for(width: u32) -> usize {
    width.div_ceil(64) as usize
}

impl Bits {
    /// The widest value that a verified program contains.
    pub const MAX_WIDTH: u32 = 1 << 16;

    /// Makes a value of `width` bits from the limbs that `limb` returns for the indices 0, 1, ..., the
    /// least significant first. Cuts off bits beyond the width.
    #[inline]
    fn of_limbs(width: u32, mut limb: impl FnMut(usize) -> u64) -> Bits {
        assert!(width >= 1, "a bit string has at least one bit");
        // Most values have one limb or two, which need no loop.
        let limbs = match limbs_for(width) {
            1 => SmallVec::from_buf_and_len([limb(0), 0], 1),
            2 => SmallVec::from_buf([limb(0), limb(1)]),
            count => (0..count).map(limb).collect(),
        };
        Bits { width, limbs }.normalized()
    }

    /// Returns the value zero in `width` bits.
    pub fn zero(width: u32) -> Bits {
        Bits::of_limbs(width, |_| 0)
    }

    /// Returns a value of `width` bits that are all one.
    pub fn ones(width: u32) -> Bits {
        Bits::of_limbs(width, |_| u64::MAX)
    }

    /// Makes a value of `width` bits from `value`. Bits beyond the width are cut off; missing high bits are
    /// zero.
    pub fn from_u64(width: u32, value: u64) -> Bits {
        Bits::from_limbs(width, &[value])
    }

    /// Makes a value of `width` bits from `value`. Bits beyond the width are cut off; missing high bits are
    /// zero.
    pub fn from_u128(width: u32, value: u128) -> Bits {
        Bits::from_limbs(width, &[value as u64, (value >> 64) as u64])
    }

    /// Makes a value of one bit: 1 for true, 0 for false.
    pub fn from_bool(value: bool) -> Bits {
        Bits::from_u64(1, value as u64)
    }

    /// Makes a value of `width` bits from limbs, the least significant first. Missing limbs are zero; bits
    /// beyond the width are cut off.
    pub fn from_limbs(width: u32, limbs: &[u64]) -> Bits {
        Bits::of_limbs(width, |i| limbs.get(i).copied().unwrap_or(0))
    }

    /// Makes a value of `width` bits from bytes in network order. The last byte has the lowest bits; high
    /// bits beyond the width are cut off.
    pub fn from_be_bytes(width: u32, bytes: &[u8]) -> Bits {
        let mut chunks = bytes.rchunks(8);
        Bits::of_limbs(width, |_| {
            let bytes = chunks.next().unwrap_or_default();
            let mut whole = [0; 8];
            whole[8 - bytes.len()..].copy_from_slice(bytes);
            u64::from_be_bytes(whole)
        })
    }

    /// Returns the value as `ceil(width / 8)` bytes in network order. The last byte has the lowest bits.
    pub fn to_be_bytes(&self) -> Vec<u8> {
        let n = self.width.div_ceil(8) as usize;
        (0..n)
            .rev()
            .map(|i| (self.limbs[i / 8] >> (8 * (i % 8))) as u8)
            .collect()
    }

    fn normalized(mut self) -> Bits {
        let used = self.width % 64;
        if used != 0 {
            *self.limbs.last_mut().expect("at least one limb") &= (1 << used) - 1;
        }
        self
    }

    /// Returns the width of the value in bits.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the limbs of 64 bits, least significant first.
    pub fn limbs(&self) -> &[u64] {
        &self.limbs
    }

    /// Returns the value as an integer; `None` if it exceeds 64 bits.
    pub fn to_u64(&self) -> Option<u64> {
        self.limbs[1..]
            .iter()
            .all(|&l| l == 0)
            .then_some(self.limbs[0])
    }

    /// Returns the lowest 64 bits of the value.
    pub fn low_u64(&self) -> u64 {
        self.limbs[0]
    }

    /// Returns true if every bit is zero.
    pub fn is_zero(&self) -> bool {
        self.limbs.iter().all(|&l| l == 0)
    }

    /// Returns whether bit `i` is one, where bit 0 is the least significant; false beyond the width.
    pub fn bit(&self, i: u32) -> bool {
        self.limbs
            .get((i / 64) as usize)
            .is_some_and(|l| l >> (i % 64) & 1 == 1)
    }

    fn sign(&self) -> bool {
        self.bit(self.width - 1)
    }

    /// Returns the position of the highest bit that is one, plus one; 0 if the value is zero.
    pub fn bit_length(&self) -> u32 {
        for (i, &limb) in self.limbs.iter().enumerate().rev() {
            if limb != 0 {
                return 64 * i as u32 + 64 - limb.leading_zeros();
            }
        }
        0
    }

    /// Returns the number of bits that are one.
    pub fn count_ones(&self) -> u32 {
        self.limbs.iter().map(|l| l.count_ones()).sum()
    }

    /// Returns a mask of `width` bits whose `prefix_len` most significant bits are one and the others zero.
    pub fn prefix_mask(width: u32, prefix_len: u32) -> Bits {
        let rest = width - prefix_len.min(width);
        Bits::of_limbs(width, |i| {
            let zeros = rest.saturating_sub(64 * i as u32);
            u64::MAX.checked_shl(zeros).unwrap_or(0)
        })
    }

    /// Returns the value in `width` bits: high bits beyond the width are cut off, missing ones are zero.
    pub fn resize(&self, width: u32) -> Bits {
        Bits::from_limbs(width, &self.limbs)
    }

    /// Returns the value, as a signed number in two's complement, in `width` bits, which must not be fewer
    /// than it has.
    pub fn sign_extend(&self, width: u32) -> Bits {
        let result = self.resize(width);
        if self.sign() && width > self.width {
            let above = Bits::ones(width).shl(&Bits::from_u64(32, u64::from(self.width)));
            result.zip(&above, |a, b| a | b)
        } else {
            result
        }
    }

    /// Returns the value of the bits from `high` down to `low`, both included.
    pub fn slice(&self, high: u32, low: u32) -> Bits {
        debug_assert!(low <= high && high < self.width);
        self.shr(&Bits::from_u64(32, u64::from(low)))
            .resize(high - low + 1)
    }

    /// Returns the concatenation of `self`, as the high bits, and `low`.
    pub fn concat(&self, low: &Bits) -> Bits {
        let width = self.width + low.width;
        let shift = Bits::from_u64(32, u64::from(low.width));
        self.resize(width)
            .shl(&shift)
            .zip(&low.resize(width), |a, b| a | b)
    }

    fn zip(&self, other: &Bits, f: impl Fn(u64, u64) -> u64) -> Bits {
        let (a, b) = (self.limbs(), other.limbs());
        Bits::of_limbs(self.width, |i| f(a[i], b[i]))
    }

    /// Calculates the bitwise AND of two values of equal width.
    pub fn and(&self, other: &Bits) -> Bits {
        self.zip(other, |a, b| a & b)
    }

    /// Calculates the bitwise complement of the value.
    #[allow(clippy::should_implement_trait)]
    pub fn not(&self) -> Bits {
        self.zip(self, |a, _| !a)
    }

    /// Calculates the negative value, in two's complement.
    #[allow(clippy::should_implement_trait)]
    pub fn neg(&self) -> Bits {
        Bits::zero(self.width).sub(self)
    }

    /// Calculates the sum of two values of equal width w, modulo 2^w.
    #[allow(clippy::should_implement_trait)]
    pub fn add(&self, other: &Bits) -> Bits {
        let mut carry = false;
        Bits::of_limbs(self.width, |i| {
            let (s, c1) = self.limbs[i].overflowing_add(other.limbs[i]);
            let (s, c2) = s.overflowing_add(carry as u64);
            carry = c1 | c2;
            s
        })
    }

    /// Calculates the difference `self - other` of two values of equal width w, modulo 2^w.
    #[allow(clippy::should_implement_trait)]
    pub fn sub(&self, other: &Bits) -> Bits {
        let mut borrow = false;
        Bits::of_limbs(self.width, |i| {
            let (d, b1) = self.limbs[i].overflowing_sub(other.limbs[i]);
            let (d, b2) = d.overflowing_sub(borrow as u64);
            borrow = b1 | b2;
            d
        })
    }

    fn mul(&self, other: &Bits) -> Bits {
        let n = self.limbs.len();
        let mut out: SmallVec<[u64; 2]> = smallvec![0; n];
        for i in 0..n {
            let mut carry = 0u128;
            for j in 0..n - i {
                let sum = u128::from(self.limbs[i]) * u128::from(other.limbs[j])
                    + u128::from(out[i + j])
                    + carry;
                out[i + j] = sum as u64;
                carry = sum >> 64;
            }
        }
        Bits {
            width: self.width,
            limbs: out,
        }
        .normalized()
    }

    /// Divides unsigned values of equal width, and returns the quotient and the remainder; both are zero if
    /// `divisor` is zero.
    fn div_mod(&self, divisor: &Bits) -> (Bits, Bits) {
        let mut quotient = Bits::zero(self.width);
        if divisor.is_zero() {
            return (quotient.clone(), quotient);
        }
        // Bit by bit, with one spare bit so that the doubled remainder cannot overflow.
        let divisor = divisor.resize(self.width + 1);
        let mut remainder = Bits::zero(self.width + 1);
        let one = Bits::from_u64(8, 1);
        for i in (0..self.bit_length()).rev() {
            remainder = remainder.shl(&one);
            remainder.limbs[0] |= self.bit(i) as u64;
            if remainder.ucmp(&divisor) != Ordering::Less {
                remainder = remainder.sub(&divisor);
                quotient.limbs[(i / 64) as usize] |= 1 << (i % 64);
            }
        }
        (quotient, remainder.resize(self.width))
    }

    fn shift_amount(&self, by: &Bits) -> Option<u32> {
        by.to_u64()
            .filter(|&n| n < u64::from(self.width))
            .map(|n| n as u32)
    }

    /// Shifts the value left by `by` bits, with zeros as the low bits; zero if `by` is the width or more.
    pub fn shl(&self, by: &Bits) -> Bits {
        let mut result = Bits::zero(self.width);
        let Some(n) = self.shift_amount(by) else {
            return result;
        };
        let (whole, part) = ((n / 64) as usize, n % 64);
        for i in whole..self.limbs.len() {
            let mut limb = self.limbs[i - whole] << part;
            if part != 0 && i > whole {
                limb |= self.limbs[i - whole - 1] >> (64 - part);
            }
            result.limbs[i] = limb;
        }
        result.normalized()
    }

    /// Shifts the value right by `by` bits, with zeros as the high bits; zero if `by` is the width or more.
    pub fn shr(&self, by: &Bits) -> Bits {
        let mut result = Bits::zero(self.width);
        let Some(n) = self.shift_amount(by) else {
            return result;
        };
        let (whole, part) = ((n / 64) as usize, n % 64);
        for i in 0..self.limbs.len() - whole {
            let mut limb = self.limbs[i + whole] >> part;
            if part != 0 && i + whole + 1 < self.limbs.len() {
                limb |= self.limbs[i + whole + 1] << (64 - part);
            }
            result.limbs[i] = limb;
        }
        result
    }

    fn sar(&self, by: &Bits) -> Bits {
        if !self.sign() {
            return self.shr(by);
        }
        self.not().shr(by).not()
    }

    /// Compares two values of equal width as unsigned numbers.
    pub fn ucmp(&self, other: &Bits) -> Ordering {
        self.limbs.iter().rev().cmp(other.limbs.iter().rev())
    }

    /// Compares two values of equal width as signed numbers in two's complement.
    pub fn scmp(&self, other: &Bits) -> Ordering {
        match (self.sign(), other.sign()) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => self.ucmp(other),
        }
    }

    fn signed_min(width: u32) -> Bits {
        Bits::from_u64(width, 1).shl(&Bits::from_u64(32, u64::from(width - 1)))
    }

    fn signed_saturating(&self, other: &Bits, op: impl Fn(&Bits, &Bits) -> Bits) -> Bits {
        // One more bit holds every sum and difference exactly.
        let wide = op(
            &self.sign_extend(self.width + 1),
            &other.sign_extend(self.width + 1),
        );
        match (wide.bit(self.width), wide.bit(self.width - 1)) {
            (true, false) => Bits::signed_min(self.width),
            (false, true) => Bits::signed_min(self.width).not(),
            _ => wide.resize(self.width),
        }
    }

    /// Calculates the result of a unary operator.
    pub fn unary(op: UnaryOp, a: &Bits) -> Bits {
        match op {
            UnaryOp::Not => a.not(),
            UnaryOp::Neg => a.neg(),
        }
    }

    /// Calculates the result of a binary operator. The operands must have the widths that [`BinaryOp`] requires.
    pub fn binary(op: BinaryOp, a: &Bits, b: &Bits) -> Bits {
        debug_assert!(op.is_shift() || a.width == b.width);
        match op {
            BinaryOp::Add => a.add(b),
            BinaryOp::Sub => a.sub(b),
            BinaryOp::Mul => a.mul(b),
            BinaryOp::Div => a.div_mod(b).0,
            BinaryOp::Mod => a.div_mod(b).1,
            BinaryOp::And => a.and(b),
            BinaryOp::Or => a.zip(b, |a, b| a | b),
            BinaryOp::Xor => a.zip(b, |a, b| a ^ b),
            BinaryOp::Shl => a.shl(b),
            BinaryOp::Shr => a.shr(b),
            BinaryOp::Sar => a.sar(b),
            BinaryOp::AddSat => {
                let sum = a.add(b);
                if sum.ucmp(a) == Ordering::Less {
                    Bits::ones(a.width)
                } else {
                    sum
                }
            }
            BinaryOp::SubSat => {
                if a.ucmp(b) == Ordering::Less {
                    Bits::zero(a.width)
                } else {
                    a.sub(b)
                }
            }
            BinaryOp::SAddSat => a.signed_saturating(b, Bits::add),
            BinaryOp::SSubSat => a.signed_saturating(b, Bits::sub),
            BinaryOp::Eq => Bits::from_bool(a == b),
            BinaryOp::Ne => Bits::from_bool(a != b),
            BinaryOp::Ult => Bits::from_bool(a.ucmp(b) == Ordering::Less),
            BinaryOp::Ule => Bits::from_bool(a.ucmp(b) != Ordering::Greater),
            BinaryOp::Slt => Bits::from_bool(a.scmp(b) == Ordering::Less),
            BinaryOp::Sle => Bits::from_bool(a.scmp(b) != Ordering::Greater),
        }
    }
}

/// `width w hex`, as in `8w0xff`.
impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}w0x", self.width)?;
        let top = self.limbs.iter().rposition(|&l| l != 0).unwrap_or(0);
        write!(f, "{:x}", self.limbs[top])?;
        for limb in self.limbs[..top].iter().rev() {
            write!(f, "{limb:016x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests;
