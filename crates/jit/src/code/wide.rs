//! Values wider than a register, and every operator of P4 on them.
//!
//! A [`Wide`] is what an expression of the IR becomes: one Cranelift value per 64-bit limb, least significant first, with
//! all bits above the width zero. Widths are known when code is generated, so each operator expands to straight-line
//! code for exactly its limbs; only what would expand without bound (wide multiplication, division, very wide variable shifts)
//! goes through a function of [`crate::shims`]. Nothing here knows of slots, packets or statements.

use super::Memory;
use crate::shims::Shim;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, Value};
use cranelift_frontend::FunctionBuilder;
use ir::{BinaryOp, Bits, UnaryOp};
use smallvec::{SmallVec, smallvec};

/// Multiplications of more limbs than this are function calls.
const INLINE_MUL_LIMBS: usize = 5;
/// Shifts of more limbs than this by a variable number of bits are function calls.
const INLINE_SHIFT_LIMBS: usize = 16;

/// The arithmetic of the function being generated. It knows no program.
pub(crate) struct Words<'f> {
    pub(crate) b: FunctionBuilder<'f>,
}

/// A value of a fixed width.
#[derive(Clone, Debug)]
pub(crate) struct Wide {
    /// Width in bits.
    pub width: u32,
    /// Limbs, least significant first; bits above the width are zero.
    pub limbs: Limbs,
}

/// The limbs of a value.
pub(crate) type Limbs = SmallVec<[Value; 2]>;

/// Returns the number of limbs of a value of `width` bits.
pub(crate) fn limbs_for(width: u32) -> usize {
    width.div_ceil(64) as usize
}

/// Returns a mask of the bits that a value of `width` bits uses in its most significant limb.
pub(crate) fn top_mask(width: u32) -> u64 {
    match width % 64 {
        0 => u64::MAX,
        used => (1 << used) - 1,
    }
}

impl Wide {
    /// Makes a value of `width` bits from its limbs, least significant first.
    pub fn new(width: u32, limbs: Limbs) -> Wide {
        Wide { width, limbs }
    }

    /// Makes a value of `width` bits, at most 64, from its only limb.
    pub fn word(width: u32, limb: Value) -> Wide {
        Wide::new(width, smallvec![limb])
    }

    /// Returns the least significant limb.
    pub fn low(&self) -> Value {
        self.limbs[0]
    }

    fn top(&self) -> Value {
        *self.limbs.last().expect("at least one limb")
    }
}

impl Memory<'_, '_> {
    /// Generates a binary operator, with the meaning of [`Bits::binary`].
    pub fn binary(&mut self, op: BinaryOp, a: &Wide, b: &Wide) -> Wide {
        match op {
            BinaryOp::Add => self.add(a, b),
            BinaryOp::Sub => self.sub(a, b),
            BinaryOp::Mul => self.mul(a, b),
            BinaryOp::Div | BinaryOp::Mod => self.div_mod(op, a, b),
            BinaryOp::And => self.zip(a, b, |g, x, y| g.b.ins().band(x, y)),
            BinaryOp::Or => self.zip(a, b, |g, x, y| g.b.ins().bor(x, y)),
            BinaryOp::Xor => self.zip(a, b, |g, x, y| g.b.ins().bxor(x, y)),
            BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Sar => self.shift(op, a, b),
            BinaryOp::AddSat => {
                let sum = self.add(a, b);
                let overflow = self.less(&sum, a, false);
                let ones = self.constant(&Bits::ones(a.width));
                self.mux(overflow, &ones, &sum)
            }
            BinaryOp::SubSat => {
                let difference = self.sub(a, b);
                let overflow = self.less(a, b, false);
                let zero = self.constant(&Bits::zero(a.width));
                self.mux(overflow, &zero, &difference)
            }
            BinaryOp::SAddSat => self.signed_add_saturating(a, b),
            BinaryOp::SSubSat => self.signed_sub_saturating(a, b),
            BinaryOp::Eq => {
                let equal = self.equal(a, b);
                self.one_bit(equal)
            }
            BinaryOp::Ne if a.limbs.len() == 1 => {
                let differs = self.b.ins().icmp(IntCC::NotEqual, a.low(), b.low());
                self.one_bit(differs)
            }
            BinaryOp::Ule if a.limbs.len() == 1 => {
                let code = IntCC::UnsignedLessThanOrEqual;
                let at_most = self.b.ins().icmp(code, a.low(), b.low());
                self.one_bit(at_most)
            }
            BinaryOp::Ne => {
                let equal = self.equal(a, b);
                let one = self.b.ins().bxor_imm_u(equal, 1);
                self.one_bit(one)
            }
            BinaryOp::Ult | BinaryOp::Slt => {
                let less = self.less(a, b, op == BinaryOp::Slt);
                self.one_bit(less)
            }
            BinaryOp::Ule | BinaryOp::Sle => {
                let greater = self.less(b, a, op == BinaryOp::Sle);
                let one = self.b.ins().bxor_imm_u(greater, 1);
                self.one_bit(one)
            }
        }
    }

    fn mul(&mut self, a: &Wide, b: &Wide) -> Wide {
        match a.limbs.len() {
            1 => {
                let product = self.b.ins().imul(a.low(), b.low());
                self.masked(a.width, smallvec![product])
            }
            2 => {
                let (x, y) = (self.as_i128(a), self.as_i128(b));
                let product = self.b.ins().imul(x, y);
                self.split_i128(a.width, product)
            }
            n if n <= INLINE_MUL_LIMBS => self.mul_rows(a, b),
            _ => self.call_binary(BinaryOp::Mul, a, b),
        }
    }

    fn div_mod(&mut self, op: BinaryOp, a: &Wide, b: &Wide) -> Wide {
        if a.limbs.len() > 1 {
            return self.call_binary(op, a, b);
        }
        // A zero divisor is replaced, because the instruction would trap, and the result with it.
        let (x, y) = (a.low(), b.low());
        let (zero, one) = (self.imm(0), self.imm(1));
        let by_zero = self.b.ins().icmp(IntCC::Equal, y, zero);
        let divisor = self.b.ins().select(by_zero, one, y);
        let result = if op == BinaryOp::Div {
            self.b.ins().udiv(x, divisor)
        } else {
            self.b.ins().urem(x, divisor)
        };
        let result = self.b.ins().select(by_zero, zero, result);
        Wide::word(a.width, result)
    }

    /// Generates a binary operator by a call of [`Bits::binary`].
    fn call_binary(&mut self, op: BinaryOp, a: &Wide, b: &Wide) -> Wide {
        let (x, y) = (self.spill(&[a]), self.spill(&[b]));
        let out = self.scratch(a.limbs.len());
        let op = self.imm(crate::calls::operator_code(op));
        let (width, by_width) = (self.imm(a.width.into()), self.imm(b.width.into()));
        self.call_without_frame(Shim::Binary, &[op, width, by_width, x, y, out]);
        self.reload(out, a.width)
    }

    fn shift(&mut self, op: BinaryOp, a: &Wide, by: &Wide) -> Wide {
        if a.limbs.len() > INLINE_SHIFT_LIMBS {
            return self.call_binary(op, a, by);
        }
        let width = self.imm(a.width.into());
        let mut too_far = (self.b.ins()).icmp(IntCC::UnsignedGreaterThanOrEqual, by.low(), width);
        for &limb in &by.limbs[1..] {
            let zero = self.imm(0);
            let more = self.b.ins().icmp(IntCC::NotEqual, limb, zero);
            too_far = self.b.ins().bor(too_far, more);
        }
        let n = by.low();
        match op {
            BinaryOp::Shl => {
                let limbs = self.shl_variable(&a.limbs, n);
                let shifted = self.masked(a.width, limbs);
                let zero = self.constant(&Bits::zero(a.width));
                self.mux(too_far, &zero, &shifted)
            }
            BinaryOp::Shr => {
                let limbs = self.shr_variable(&a.limbs, n, false);
                let shifted = Wide::new(a.width, limbs);
                let zero = self.constant(&Bits::zero(a.width));
                self.mux(too_far, &zero, &shifted)
            }
            _ => {
                let sign = self.sign_mask(a);
                let mut limbs = a.limbs.clone();
                *limbs.last_mut().expect("at least one limb") = self.signed_top(a);
                let limbs = self.shr_variable(&limbs, n, true);
                let shifted = self.masked(a.width, limbs);
                let signs = self.masked(a.width, smallvec![sign; a.limbs.len()]);
                self.mux(too_far, &signs, &shifted)
            }
        }
    }
}

impl Words<'_> {
    /// Generates a load of a value of `width` bits from the address `at`, where the bits above the width are
    /// zero.
    pub(super) fn reload(&mut self, at: Value, width: u32) -> Wide {
        let limbs = (0..limbs_for(width))
            .map(|i| {
                self.b
                    .ins()
                    .load(I64, MemFlagsData::trusted(), at, 8 * i as i32)
            })
            .collect();
        Wide { width, limbs }
    }

    /// Generates a jump to `elsewhere` if `condition` is not zero. Generation continues for the other case.
    pub(super) fn leave_if(&mut self, condition: Value, elsewhere: Block) {
        let next = self.b.create_block();
        self.b.ins().brif(condition, elsewhere, &[], next, &[]);
        self.continue_in(next);
    }

    /// Continues generation in the block `next`, to which only the code generated so far jumps.
    pub(super) fn continue_in(&mut self, next: Block) {
        self.b.switch_to_block(next);
        self.b.seal_block(next);
    }

    /// Generates a constant of 64 bits.
    pub fn imm(&mut self, value: u64) -> Value {
        self.b.ins().iconst(I64, value as i64)
    }

    /// Generates a constant of any width.
    pub fn constant(&mut self, bits: &Bits) -> Wide {
        Wide::new(
            bits.width(),
            bits.limbs().iter().map(|&l| self.imm(l)).collect(),
        )
    }

    /// Generates a constant of `width` bits, at most 64.
    pub fn small_constant(&mut self, width: u32, value: u64) -> Wide {
        self.constant(&Bits::from_u64(width, value))
    }

    /// Generates the extension of the result of a comparison to a 64-bit 0 or 1.
    fn flag(&mut self, condition: Value) -> Value {
        self.b.ins().uextend(I64, condition)
    }

    fn one_bit(&mut self, condition: Value) -> Wide {
        let limb = self.flag(condition);
        Wide::word(1, limb)
    }

    pub(crate) fn and_imm(&mut self, value: Value, mask: u64) -> Value {
        if mask == u64::MAX {
            return value;
        }
        if let Some(known) = self.known_value(value) {
            return self.imm(known & mask);
        }
        let mask = self.imm(mask);
        self.b.ins().band(value, mask)
    }

    /// Generates a value of `width` bits from `limbs`, whose bits above the width are cleared.
    fn masked(&mut self, width: u32, mut limbs: Limbs) -> Wide {
        debug_assert_eq!(limbs.len(), limbs_for(width));
        if let Some(top) = limbs.last_mut() {
            *top = self.and_imm(*top, top_mask(width));
        }
        Wide { width, limbs }
    }

    /// Generates the most significant limb with the sign bit copied into the bits above the width.
    fn signed_top(&mut self, a: &Wide) -> Value {
        let top = a.top();
        match a.width % 64 {
            0 => top,
            used => {
                let up = self.shl_imm(top, 64 - used);
                self.sshr_imm(up, 64 - used)
            }
        }
    }

    /// Generates 64 bits that are all one if the value is negative as a signed number, else zero.
    fn sign_mask(&mut self, a: &Wide) -> Value {
        let top = self.signed_top(a);
        self.sshr_imm(top, 63)
    }

    pub(crate) fn shl_imm(&mut self, a: Value, n: u32) -> Value {
        if n == 0 {
            return a;
        }
        if let Some(known) = self.known_value(a) {
            return self.imm(known << n);
        }
        self.b.ins().ishl_imm_u(a, i64::from(n))
    }

    pub(crate) fn shr_imm(&mut self, a: Value, n: u32) -> Value {
        if n == 0 {
            return a;
        }
        if let Some(known) = self.known_value(a) {
            return self.imm(known >> n);
        }
        self.b.ins().ushr_imm_u(a, i64::from(n))
    }

    fn sshr_imm(&mut self, a: Value, n: u32) -> Value {
        self.b.ins().sshr_imm_u(a, i64::from(n))
    }

    /// Generates the low `count` limbs of `a << n` for a constant `n`.
    fn shl_limbs(&mut self, a: &[Value], n: u32, count: usize) -> Limbs {
        let (whole, part) = ((n / 64) as usize, n % 64);
        let mut out = Limbs::new();
        for i in 0..count {
            let this = i.checked_sub(whole).and_then(|j| a.get(j)).copied();
            let below = i.checked_sub(whole + 1).and_then(|j| a.get(j)).copied();
            out.push(self.join(below.filter(|_| part != 0), this, part));
        }
        out
    }

    /// Generates the low `count` limbs of `a >> n` for a constant `n`, with zeros from above.
    fn shr_limbs(&mut self, a: &[Value], n: u32, count: usize) -> Limbs {
        let (whole, part) = ((n / 64) as usize, n % 64);
        let mut out = Limbs::new();
        for i in 0..count {
            let this = a.get(i + whole).copied();
            let above = a.get(i + whole + 1).copied().filter(|_| part != 0);
            out.push(match (this, above) {
                (None, _) => self.imm(0),
                (Some(this), None) => self.shr_imm(this, part),
                (Some(this), Some(above)) => {
                    let low = self.shr_imm(this, part);
                    let high = self.shl_imm(above, 64 - part);
                    self.b.ins().bor(low, high)
                }
            });
        }
        out
    }

    /// Generates one limb of a left shift: `this << part`, with the high `part` bits of `below`, the next
    /// lower limb, in the low bits.
    fn join(&mut self, below: Option<Value>, this: Option<Value>, part: u32) -> Value {
        let high = this.map(|v| self.shl_imm(v, part));
        let low = below.map(|v| self.shr_imm(v, 64 - part));
        match (high, low) {
            (None, None) => self.imm(0),
            (Some(v), None) | (None, Some(v)) => v,
            (Some(high), Some(low)) => self.b.ins().bor(high, low),
        }
    }

    /// Generates the bits `high` down to `low` of `a`, both included.
    pub fn slice(&mut self, a: &Wide, high: u32, low: u32) -> Wide {
        let width = high - low + 1;
        let limbs = self.shr_limbs(&a.limbs, low, limbs_for(width));
        if high + 1 == a.width {
            return Wide { width, limbs };
        }
        self.masked(width, limbs)
    }

    /// Generates the concatenation of `a` (the high bits) and `b` (the low bits).
    pub fn concat(&mut self, a: &Wide, b: &Wide) -> Wide {
        let width = a.width + b.width;
        let mut limbs = self.shl_limbs(&a.limbs, b.width, limbs_for(width));
        for (limb, &low) in limbs.iter_mut().zip(&b.limbs) {
            *limb = self.b.ins().bor(*limb, low);
        }
        Wide { width, limbs }
    }

    /// Generates the value in `width` bits, cut or extended with zeros.
    pub fn resize(&mut self, a: &Wide, width: u32) -> Wide {
        let mut limbs: Limbs = a.limbs.iter().copied().take(limbs_for(width)).collect();
        while limbs.len() < limbs_for(width) {
            let zero = self.imm(0);
            limbs.push(zero);
        }
        if width >= a.width {
            return Wide { width, limbs };
        }
        self.masked(width, limbs)
    }

    /// Generates the value in `width` bits, more than it has, extended with copies of the sign bit.
    pub fn sign_extend(&mut self, a: &Wide, width: u32) -> Wide {
        let top = self.signed_top(a);
        let mut limbs: Limbs = a.limbs.clone();
        *limbs.last_mut().expect("at least one limb") = top;
        if limbs.len() < limbs_for(width) {
            let sign = self.sshr_imm(top, 63);
            limbs.resize(limbs_for(width), sign);
        }
        self.masked(width, limbs)
    }

    /// Generates the choice of `then` if `condition` is not zero, else of `otherwise`.
    pub fn mux(&mut self, condition: Value, then: &Wide, otherwise: &Wide) -> Wide {
        let limbs = (then.limbs.iter().zip(&otherwise.limbs))
            .map(|(&t, &o)| self.b.ins().select(condition, t, o))
            .collect();
        Wide::new(then.width, limbs)
    }

    fn zip(&mut self, a: &Wide, b: &Wide, f: impl Fn(&mut Self, Value, Value) -> Value) -> Wide {
        let limbs = (a.limbs.iter().zip(&b.limbs))
            .map(|(&x, &y)| f(self, x, y))
            .collect();
        Wide::new(a.width, limbs)
    }

    /// Generates a unary operator, with the meaning of [`Bits::unary`].
    pub fn unary(&mut self, op: UnaryOp, a: &Wide) -> Wide {
        match op {
            UnaryOp::Not => {
                let limbs = a.limbs.iter().map(|&l| self.b.ins().bnot(l)).collect();
                self.masked(a.width, limbs)
            }
            UnaryOp::Neg => {
                let zero = self.constant(&Bits::zero(a.width));
                self.sub(&zero, a)
            }
        }
    }

    fn as_i128(&mut self, a: &Wide) -> Value {
        self.b.ins().iconcat(a.limbs[0], a.limbs[1])
    }

    fn split_i128(&mut self, width: u32, value: Value) -> Wide {
        let (low, high) = self.b.ins().isplit(value);
        self.masked(width, smallvec![low, high])
    }

    fn add(&mut self, a: &Wide, b: &Wide) -> Wide {
        if a.limbs.len() == 2 {
            let (x, y) = (self.as_i128(a), self.as_i128(b));
            let sum = self.b.ins().iadd(x, y);
            return self.split_i128(a.width, sum);
        }
        let limbs = self.add_limbs(&a.limbs, &b.limbs);
        self.masked(a.width, limbs)
    }

    fn add_limbs(&mut self, a: &[Value], b: &[Value]) -> Limbs {
        let mut out = Limbs::new();
        let mut carry = None;
        for (i, (&x, &y)) in a.iter().zip(b).enumerate() {
            let mut sum = self.b.ins().iadd(x, y);
            let last = i + 1 == a.len();
            let mut next = None;
            if !last {
                let over = self.b.ins().icmp(IntCC::UnsignedLessThan, sum, x);
                next = Some(self.flag(over));
            }
            if let Some(carry) = carry {
                sum = self.b.ins().iadd(sum, carry);
                if let Some(first) = next {
                    let over = self.b.ins().icmp(IntCC::UnsignedLessThan, sum, carry);
                    let over = self.flag(over);
                    next = Some(self.b.ins().bor(first, over));
                }
            }
            out.push(sum);
            carry = next;
        }
        out
    }

    fn sub(&mut self, a: &Wide, b: &Wide) -> Wide {
        if a.limbs.len() == 2 {
            let (x, y) = (self.as_i128(a), self.as_i128(b));
            let difference = self.b.ins().isub(x, y);
            return self.split_i128(a.width, difference);
        }
        let mut out = Limbs::new();
        let mut borrow: Option<Value> = None;
        for (i, (&x, &y)) in a.limbs.iter().zip(&b.limbs).enumerate() {
            let mut difference = self.b.ins().isub(x, y);
            let last = i + 1 == a.limbs.len();
            let mut next = None;
            if !last {
                let under = self.b.ins().icmp(IntCC::UnsignedLessThan, x, y);
                next = Some(self.flag(under));
            }
            if let Some(borrow) = borrow {
                let before = difference;
                difference = self.b.ins().isub(before, borrow);
                if let Some(first) = next {
                    let under = (self.b.ins()).icmp(IntCC::UnsignedLessThan, before, borrow);
                    let under = self.flag(under);
                    next = Some(self.b.ins().bor(first, under));
                }
            }
            out.push(difference);
            borrow = next;
        }
        self.masked(a.width, out)
    }

    /// Generates a long multiplication: each limb of `a` makes one row, which is added with its carries to
    /// the rows before.
    fn mul_rows(&mut self, a: &Wide, b: &Wide) -> Wide {
        let n = a.limbs.len();
        let zero = self.imm(0);
        let mut out: Limbs = smallvec![zero; n];
        for i in 0..n {
            let mut low_row: Limbs = smallvec![zero; n];
            let mut high_row: Limbs = smallvec![zero; n];
            for j in 0..n - i {
                low_row[i + j] = self.b.ins().imul(a.limbs[i], b.limbs[j]);
                if i + j + 1 < n {
                    high_row[i + j + 1] = self.b.ins().umulhi(a.limbs[i], b.limbs[j]);
                }
            }
            out = self.add_limbs(&out, &low_row);
            out = self.add_limbs(&out, &high_row);
        }
        self.masked(a.width, out)
    }

    /// Generates the comparison `a == b`. Returns a one-bit condition.
    pub fn equal(&mut self, a: &Wide, b: &Wide) -> Value {
        if a.limbs.len() == 1 {
            return self.b.ins().icmp(IntCC::Equal, a.low(), b.low());
        }
        let mut difference = self.b.ins().bxor(a.limbs[0], b.limbs[0]);
        for (&x, &y) in a.limbs.iter().zip(&b.limbs).skip(1) {
            let bits = self.b.ins().bxor(x, y);
            difference = self.b.ins().bor(difference, bits);
        }
        let zero = self.imm(0);
        self.b.ins().icmp(IntCC::Equal, difference, zero)
    }

    /// Generates the comparison `a < b`, of signed numbers if `signed` is true. Returns a one-bit condition.
    pub fn less(&mut self, a: &Wide, b: &Wide, signed: bool) -> Value {
        let n = a.limbs.len();
        let (top_a, top_b, order) = if signed {
            let (x, y) = (self.signed_top(a), self.signed_top(b));
            (x, y, IntCC::SignedLessThan)
        } else {
            (a.top(), b.top(), IntCC::UnsignedLessThan)
        };
        if n == 2 {
            let x = self.b.ins().iconcat(a.limbs[0], top_a);
            let y = self.b.ins().iconcat(b.limbs[0], top_b);
            return self.b.ins().icmp(order, x, y);
        }
        let mut result = None;
        for i in 0..n {
            let (x, y, order) = if i + 1 == n {
                (top_a, top_b, order)
            } else {
                (a.limbs[i], b.limbs[i], IntCC::UnsignedLessThan)
            };
            let less = self.b.ins().icmp(order, x, y);
            result = Some(match result {
                None => less,
                Some(lower) => {
                    let same = self.b.ins().icmp(IntCC::Equal, x, y);
                    self.b.ins().select(same, lower, less)
                }
            });
        }
        result.expect("at least one limb")
    }

    fn signed_add_saturating(&mut self, a: &Wide, b: &Wide) -> Wide {
        // Overflow: both operands have a sign that the sum has not.
        let sum = self.add(a, b);
        let x = self.b.ins().bxor(a.top(), sum.top());
        let y = self.b.ins().bxor(b.top(), sum.top());
        let overflow = self.b.ins().band(x, y);
        self.saturate(a, &sum, overflow)
    }

    fn signed_sub_saturating(&mut self, a: &Wide, b: &Wide) -> Wide {
        // Overflow: the signs of the operands differ and the result's differs from the first's.
        let difference = self.sub(a, b);
        let x = self.b.ins().bxor(a.top(), b.top());
        let y = self.b.ins().bxor(a.top(), difference.top());
        let overflow = self.b.ins().band(x, y);
        self.saturate(a, &difference, overflow)
    }

    /// Generates the end of a signed saturating operation: `result` or, if the sign bit of `overflow` is set,
    /// the limit of the signed range on the side of `a`'s sign.
    fn saturate(&mut self, a: &Wide, result: &Wide, overflow: Value) -> Wide {
        let max = Bits::ones(a.width);
        let sign_bit = Bits::binary(BinaryOp::Shr, &max, &Bits::from_u64(8, 1)).not();
        let (min, max) = (self.constant(&sign_bit), self.constant(&sign_bit.not()));
        let negative = self.sign_mask(a);
        let end = self.mux(negative, &min, &max);
        let sign_limb = *sign_bit.limbs().last().expect("at least one limb");
        let overflow = self.and_imm(overflow, sign_limb);
        self.mux(overflow, &end, result)
    }

    /// Generates `a << n` for a variable `n` below the number of bits of the limbs.
    fn shl_variable(&mut self, a: &[Value], n: Value) -> Limbs {
        match a {
            [limb] => smallvec![self.b.ins().ishl(*limb, n)],
            [low, high] => {
                let x = self.b.ins().iconcat(*low, *high);
                let shifted = self.b.ins().ishl(x, n);
                let (low, high) = self.b.ins().isplit(shifted);
                smallvec![low, high]
            }
            _ => {
                // Within limbs first, then whole limbs by the bits of `n / 64`.
                let back = self.b.ins().bnot(n);
                let mut limbs = Limbs::new();
                for (i, &limb) in a.iter().enumerate() {
                    let mut out = self.b.ins().ishl(limb, n);
                    if i > 0 {
                        let half = self.shr_imm(a[i - 1], 1);
                        let carried = self.b.ins().ushr(half, back);
                        out = self.b.ins().bor(out, carried);
                    }
                    limbs.push(out);
                }
                let zero = self.imm(0);
                self.move_limbs(limbs, n, |i, step| i.checked_sub(step), zero)
            }
        }
    }

    /// Generates `a >> n` for a variable `n` below the number of bits of the limbs. Copies of the highest bit
    /// come in if `signed` is true, else zeros.
    fn shr_variable(&mut self, a: &[Value], n: Value, signed: bool) -> Limbs {
        match a {
            [limb] if signed => smallvec![self.b.ins().sshr(*limb, n)],
            [limb] => smallvec![self.b.ins().ushr(*limb, n)],
            [low, high] => {
                let x = self.b.ins().iconcat(*low, *high);
                let shifted = if signed {
                    self.b.ins().sshr(x, n)
                } else {
                    self.b.ins().ushr(x, n)
                };
                let (low, high) = self.b.ins().isplit(shifted);
                smallvec![low, high]
            }
            _ => self.shr_many(a, n, signed),
        }
    }

    fn shr_many(&mut self, a: &[Value], n: Value, signed: bool) -> Limbs {
        let count = a.len();
        let fill = if signed {
            self.sshr_imm(a[count - 1], 63)
        } else {
            self.imm(0)
        };
        let back = self.b.ins().bnot(n);
        let mut limbs = Limbs::new();
        for (i, &limb) in a.iter().enumerate() {
            let out = self.b.ins().ushr(limb, n);
            let above = a.get(i + 1).copied().unwrap_or(fill);
            let doubled = self.shl_imm(above, 1);
            let carried = self.b.ins().ishl(doubled, back);
            limbs.push(self.b.ins().bor(out, carried));
        }
        let source = |i: usize, step: usize| Some(i + step).filter(|&j| j < count);
        self.move_limbs(limbs, n, source, fill)
    }

    /// Generates a shift by whole limbs, `n / 64` of them: for each bit of that number, one conditional move
    /// of every limb. `source` returns from which limb a limb comes in a move by the given number of limbs;
    /// for `None` it becomes `fill`.
    fn move_limbs(
        &mut self,
        mut limbs: Limbs,
        n: Value,
        source: impl Fn(usize, usize) -> Option<usize>,
        fill: Value,
    ) -> Limbs {
        let mut step = 1;
        while step < limbs.len() {
            let bit = self.and_imm(n, 64 * step as u64);
            let before = limbs.clone();
            for (i, limb) in limbs.iter_mut().enumerate() {
                let from = source(i, step).map_or(fill, |j| before[j]);
                *limb = self.b.ins().select(bit, from, before[i]);
            }
            step *= 2;
        }
        limbs
    }
}
