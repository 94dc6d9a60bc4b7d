//! Every operator against arbitrary-precision integers, at widths from 1 to 300, and the edge cases by hand.

use super::*;
use num_bigint::{BigInt, BigUint};
use proptest::prelude::*;

fn big(value: &Bits) -> BigUint {
    BigUint::from_bytes_be(&value.to_be_bytes())
}

fn power(width: u32) -> BigInt {
    BigInt::from(1) << width
}

fn unsigned(value: &Bits) -> BigInt {
    big(value).into()
}

fn signed(value: &Bits) -> BigInt {
    let value_unsigned = unsigned(value);
    if value.bit(value.width() - 1) {
        value_unsigned - power(value.width())
    } else {
        value_unsigned
    }
}

/// Returns the integer modulo 2^width, as a bit string of `width` bits.
fn wrap(width: u32, value: BigInt) -> Bits {
    let modulus = power(width);
    let value = ((value % &modulus) + &modulus) % &modulus;
    Bits::from_be_bytes(width, &value.to_bytes_be().1)
}

fn clamp(value: BigInt, low: BigInt, high: BigInt) -> BigInt {
    value.max(low).min(high)
}

/// Calculates the result of an operator with unbounded integers, for comparison.
fn expected(op: BinaryOp, a: &Bits, b: &Bits) -> Bits {
    let w = a.width();
    let (x, y) = (unsigned(a), unsigned(b));
    let (sx, sy) = (signed(a), signed(b));
    let zero = BigInt::from(0);
    let half = power(w - 1);
    let truth = |t: bool| Bits::from_u64(1, t as u64);
    let shift = b.to_u64().filter(|&n| n < u64::from(w));
    match op {
        BinaryOp::Add => wrap(w, x + y),
        BinaryOp::Sub => wrap(w, x - y),
        BinaryOp::Mul => wrap(w, x * y),
        BinaryOp::Div => wrap(w, if y == zero { zero } else { x / y }),
        BinaryOp::Mod => wrap(w, if y == zero { zero } else { x % y }),
        BinaryOp::And => wrap(w, x & y),
        BinaryOp::Or => wrap(w, x | y),
        BinaryOp::Xor => wrap(w, x ^ y),
        BinaryOp::Shl => wrap(w, shift.map_or(zero, |n| x << n)),
        BinaryOp::Shr => wrap(w, shift.map_or(zero, |n| x >> n)),
        // A shift of a negative BigInt rounds down, as an arithmetic shift does.
        BinaryOp::Sar => wrap(w, sx >> shift.unwrap_or(u64::from(w))),
        BinaryOp::AddSat => wrap(w, clamp(x + y, zero, power(w) - 1)),
        BinaryOp::SubSat => wrap(w, clamp(x - y, zero, power(w) - 1)),
        BinaryOp::SAddSat => wrap(w, clamp(sx + sy, -half.clone(), half - 1)),
        BinaryOp::SSubSat => wrap(w, clamp(sx - sy, -half.clone(), half - 1)),
        BinaryOp::Eq => truth(x == y),
        BinaryOp::Ne => truth(x != y),
        BinaryOp::Ult => truth(x < y),
        BinaryOp::Ule => truth(x <= y),
        BinaryOp::Slt => truth(sx < sy),
        BinaryOp::Sle => truth(sx <= sy),
    }
}

const OPERATORS: [BinaryOp; 21] = {
    use BinaryOp::*;
    [
        Add, Sub, Mul, Div, Mod, And, Or, Xor, Shl, Shr, Sar, AddSat, SubSat, SAddSat, SSubSat, Eq,
        Ne, Ult, Ule, Slt, Sle,
    ]
};

/// Generates values of `width` bits, often extreme ones.
fn value(width: u32) -> impl Strategy<Value = Bits> {
    any::<u64>().prop_map(move |seed| crate::arbitrary::Rng::new(seed).bits(width))
}

fn width() -> impl Strategy<Value = u32> {
    prop_oneof![
        1u32..=300,
        prop::sample::select(vec![1, 2, 63, 64, 65, 127, 128, 129, 256])
    ]
}

fn one() -> impl Strategy<Value = Bits> {
    width().prop_flat_map(value)
}

fn two() -> impl Strategy<Value = (Bits, Bits)> {
    width().prop_flat_map(|w| (value(w), value(w)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn binary_operators((a, b) in two()) {
        for op in OPERATORS {
            prop_assert_eq!(Bits::binary(op, &a, &b), expected(op, &a, &b), "{:?} {} {}", op, a, b);
        }
    }

    #[test]
    fn shifts_by_any_width(a in one(), b in one(), small in 0u64..400) {
        for op in [BinaryOp::Shl, BinaryOp::Shr, BinaryOp::Sar] {
            for by in [&b, &Bits::from_u64(16, small)] {
                prop_assert_eq!(Bits::binary(op, &a, by), expected(op, &a, by), "{:?} {} {}", op, a, by);
            }
        }
    }

    #[test]
    fn unary_operators(a in one()) {
        let w = a.width();
        prop_assert_eq!(Bits::unary(UnaryOp::Neg, &a), wrap(w, -unsigned(&a)));
        prop_assert_eq!(Bits::unary(UnaryOp::Not, &a), wrap(w, power(w) - 1 - unsigned(&a)));
    }

    #[test]
    fn changes_of_width(a in one(), b in one(), to in width()) {
        prop_assert_eq!(a.resize(to), wrap(to, unsigned(&a)));
        if to >= a.width() {
            prop_assert_eq!(a.sign_extend(to), wrap(to, signed(&a)));
        }
        let both = (unsigned(&a) << b.width()) + unsigned(&b);
        prop_assert_eq!(a.concat(&b), wrap(a.width() + b.width(), both));
    }

    #[test]
    fn slices((a, i, j) in one().prop_flat_map(|a| { let w = a.width(); (Just(a), 0..w, 0..w) })) {
        let (low, high) = (i.min(j), i.max(j));
        prop_assert_eq!(a.slice(high, low), wrap(high - low + 1, unsigned(&a) >> low));
    }

    #[test]
    fn inspection((a, b) in two(), prefix_len in 0u32..320) {
        let w = a.width();
        prop_assert_eq!(u64::from(a.bit_length()), big(&a).bits());
        prop_assert_eq!(u64::from(a.count_ones()), big(&a).count_ones());
        prop_assert_eq!(a.is_zero(), unsigned(&a) == BigInt::from(0));
        prop_assert_eq!(a.to_u64(), u64::try_from(big(&a)).ok());
        prop_assert_eq!(a.low_u64(), wrap(64, unsigned(&a)).limbs()[0]);
        prop_assert_eq!(a.ucmp(&b), unsigned(&a).cmp(&unsigned(&b)));
        prop_assert_eq!(a.scmp(&b), signed(&a).cmp(&signed(&b)));
        let kept = prefix_len.min(w);
        prop_assert_eq!(Bits::prefix_mask(w, prefix_len), wrap(w, power(w) - power(w - kept)));
        for i in 0..w + 70 {
            prop_assert_eq!(a.bit(i), big(&a).bit(u64::from(i)));
        }
    }

    #[test]
    fn bytes_and_limbs(a in one(), extra in any::<u8>()) {
        prop_assert_eq!(&Bits::from_be_bytes(a.width(), &a.to_be_bytes()), &a);
        prop_assert_eq!(&Bits::from_limbs(a.width(), a.limbs()), &a);
        // Leading bytes beyond the width are cut.
        let mut long = vec![extra; 45];
        long.extend(a.resize(304).to_be_bytes());
        prop_assert_eq!(&Bits::from_be_bytes(a.width(), &long), &a);
        prop_assert_eq!(a.to_be_bytes().len(), a.width().div_ceil(8) as usize);
    }

    #[test]
    fn small_values_agree_with_u128(w in 1u32..=128, x in any::<u128>(), y in any::<u128>()) {
        let mask = u128::MAX >> (128 - w);
        let (a, b) = (Bits::from_u128(w, x), Bits::from_u128(w, y));
        let (x, y) = (x & mask, y & mask);
        prop_assert_eq!(big(&a), BigUint::from(x));
        prop_assert_eq!(a.add(&b), Bits::from_u128(w, x.wrapping_add(y)));
        prop_assert_eq!(a.sub(&b), Bits::from_u128(w, x.wrapping_sub(y)));
        prop_assert_eq!(a.mul(&b), Bits::from_u128(w, x.wrapping_mul(y)));
        prop_assert_eq!(a.div_mod(&b).0, Bits::from_u128(w, x.checked_div(y).unwrap_or(0)));
        prop_assert_eq!(a.div_mod(&b).1, Bits::from_u128(w, x.checked_rem(y).unwrap_or(0)));
        prop_assert_eq!(a.to_string(), format!("{w}w0x{x:x}"));
    }
}

fn b8(value: u64) -> Bits {
    Bits::from_u64(8, value)
}

#[test]
fn shifting_by_the_width_or_more() {
    for by in [b8(8), b8(9), b8(255), Bits::ones(200)] {
        assert_eq!(Bits::binary(BinaryOp::Shl, &b8(0xff), &by), b8(0));
        assert_eq!(Bits::binary(BinaryOp::Shr, &b8(0xff), &by), b8(0));
        assert_eq!(Bits::binary(BinaryOp::Sar, &b8(0x7f), &by), b8(0));
        assert_eq!(Bits::binary(BinaryOp::Sar, &b8(0x80), &by), b8(0xff));
    }
}

#[test]
fn division_by_zero_is_zero() {
    for a in [b8(7), b8(0)] {
        assert_eq!(Bits::binary(BinaryOp::Div, &a, &b8(0)), b8(0));
        assert_eq!(Bits::binary(BinaryOp::Mod, &a, &b8(0)), b8(0));
    }
}

#[test]
fn saturation_stops_at_both_ends() {
    use BinaryOp::*;
    let cases = [
        (AddSat, 250, 10, 255),
        (AddSat, 250, 5, 255),
        (SubSat, 5, 6, 0),
        (SubSat, 6, 5, 1),
        (SAddSat, 0x7f, 1, 0x7f),
        (SAddSat, 0x80, 0xff, 0x80),
        (SSubSat, 0x80, 1, 0x80),
        (SSubSat, 0x7f, 0xff, 0x7f),
        (SSubSat, 0, 0x80, 0x7f),
    ];
    for (op, a, b, result) in cases {
        assert_eq!(
            Bits::binary(op, &b8(a), &b8(b)),
            b8(result),
            "{op:?} {a} {b}"
        );
    }
}

#[test]
fn one_bit_is_all_sign() {
    let (zero, one) = (Bits::from_bool(false), Bits::from_bool(true));
    assert_eq!(Bits::binary(BinaryOp::Slt, &one, &zero), one);
    assert_eq!(Bits::binary(BinaryOp::SAddSat, &one, &one), one);
    assert_eq!(Bits::binary(BinaryOp::SSubSat, &zero, &one), zero);
    assert_eq!(one.sign_extend(70), Bits::ones(70));
}
