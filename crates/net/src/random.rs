//! Random streams that are split from one seed by name, so that a new component draws from a stream of its own and leaves
//! everybody else's draws as they were.
//!
//! All arithmetic is integer or exactly rounded IEEE 754 (no library logarithm), so a seed gives the same numbers on every
//! machine. It is no source of secrets.

/// One stream: xoshiro256++ (Blackman and Vigna), seeded by SplitMix64 from a hash of seed and name.
#[derive(Clone, Debug)]
pub struct Stream {
    state: [u64; 4],
    /// The second of the two normal deviates that the polar method yields at a time.
    spare: Option<f64>,
}

/// Returns the seed of the component called `name` in a network with the seed `seed`. Different names have independent
/// seeds.
pub fn named_seed(seed: u64, name: &str) -> u64 {
    // FNV-1a tells names apart; mixing before and after spreads related seeds and names over all bits.
    let mut hash = mix(seed ^ 0xcbf2_9ce4_8422_2325);
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    mix(hash)
}

/// Mixes the bits of a number with the output function of SplitMix64.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Stream {
    /// Creates the random stream called `name` of a network with the seed `seed`. Streams with different names are
    /// independent.
    pub fn named(seed: u64, name: &str) -> Stream {
        let mut counter = named_seed(seed, name);
        let state = std::array::from_fn(|_| {
            counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(counter)
        });
        Stream { state, spare: None }
    }

    /// Draws 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Draws a uniformly distributed number in [0, 1), with a resolution of 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns true with the given probability: never for 0, always for 1. Draws one number.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Draws a uniformly distributed whole number from `low` to `high`, both included. No value is favoured by more
    /// than 2^-64.
    pub fn uniform(&mut self, low: i64, high: i64) -> i64 {
        let span = high.abs_diff(low);
        let draw = (u128::from(self.next_u64()) * (u128::from(span) + 1)) >> 64;
        low.wrapping_add_unsigned(draw as u64)
    }

    /// Draws an exponentially distributed number with the mean `mean`, rounded to a whole number of at least 1.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        // In (0, 1]: the logarithm is finite.
        let unit = 1.0 - self.unit();
        let draw = -ln(unit) * mean as f64;
        // The cast saturates.
        (draw.round() as u64).max(1)
    }

    /// Draws a normally distributed number with mean 0 and standard deviation 1 (Marsaglia's polar method).
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let x = 2.0 * self.unit() - 1.0;
            let y = 2.0 * self.unit() - 1.0;
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                let scale = (-2.0 * ln(s) / s).sqrt();
                self.spare = Some(y * scale);
                return x * scale;
            }
        }
    }
}

/// Computes the natural logarithm of a positive normal floating-point number with operations that round exactly, so
/// that it is the same on every machine.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut m = f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 1023 << 52);
    if m > std::f64::consts::SQRT_2 {
        m /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)); here s^2 < 0.03, so 12 terms reach the last bit.
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let mut series = 0.0;
    for k in (0..12).rev() {
        series = series * s2 + 1.0 / f64::from(2 * k + 1);
    }
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_fixed_for_ever() {
        // Published results depend on these numbers: a change here changes every figure.
        let mut stream = Stream::named(1, "a:1>b:1/jitter");
        let draws: Vec<u64> = (0..3).map(|_| stream.next_u64()).collect();
        expect_test::expect!["[6bce61201a6895ec, ce73fc46139b7661, bfcada1f66f9da5f]"]
            .assert_eq(&format!("{draws:x?}"));
    }

    #[test]
    fn names_and_seeds_give_different_streams() {
        let first = |seed, name| Stream::named(seed, name).next_u64();
        let draws = [
            first(0, "a"),
            first(0, "b"),
            first(1, "a"),
            first(1, "b"),
            first(0, ""),
            first(0, "ab"),
        ];
        for (i, a) in draws.iter().enumerate() {
            assert!(draws[..i].iter().all(|b| a != b));
        }
    }

    #[test]
    fn logarithm_agrees_with_the_library() {
        let mut stream = Stream::named(7, "ln");
        for _ in 0..10_000 {
            let x = stream.unit() * 2.0 + f64::MIN_POSITIVE;
            let error = (ln(x) - x.ln()).abs();
            assert!(error <= 4e-16 * x.ln().abs().max(1.0), "{x}: {error}");
        }
    }

    #[test]
    fn moments() {
        let mut stream = Stream::named(3, "moments");
        let n = 200_000;
        let normals: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
        let mean = normals.iter().sum::<f64>() / f64::from(n);
        let variance = normals.iter().map(|x| x * x).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 0.01, "{mean}");
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
        let within = normals.iter().filter(|x| x.abs() < 1.0).count() as f64 / f64::from(n);
        assert!((within - 0.6827).abs() < 0.005, "{within}");
        let uniforms: Vec<i64> = (0..n).map(|_| stream.uniform(-3, 3)).collect();
        for value in -3..=3 {
            let share = uniforms.iter().filter(|&&u| u == value).count() as f64 / f64::from(n);
            assert!((share - 1.0 / 7.0).abs() < 0.005, "{value}: {share}");
        }
        assert!(uniforms.iter().all(|u| (-3..=3).contains(u)));
    }

    #[test]
    fn extremes() {
        let mut stream = Stream::named(0, "extremes");
        for _ in 0..1000 {
            assert!(!stream.chance(0.0));
            assert!(stream.chance(1.0));
            assert_eq!(stream.uniform(5, 5), 5);
            let _ = stream.uniform(i64::MIN, i64::MAX);
        }
    }
}
