//! An instant, in picoseconds since the clock began.
//!
//! 64 bits of picoseconds are 213.5 days, less than a switch runs. So an instant has 128 bits, which no clock reaches the end of, and
//! two instants are compared as the numbers that they are: nothing wraps and nothing is computed modulo anything. Spans of time stay
//! `u64`: they are delays, intervals and ages, and an age beyond 213.5 days is all the same to those who ask ([`Time::saturating_sub`]);
//! who needs it exactly has [`Time::since`].
//!
//! P4 programs see fewer bits of it, as their architecture says: 48 bits of microseconds begin again after 8.9 years, 32 bits after 71.6
//! minutes. They subtract modulo the width.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Picoseconds in a microsecond, the unit of timestamps.
const PS_PER_US: u64 = 1_000_000;

/// An instant. Sums are limited to [`Time::NEVER`], differences to zero.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    // Two words rather than a `u128`, whose alignment would make holes in what holds it. The order is that of the words.
    high: u64,
    low: u64,
}

impl Time {
    /// The beginning of the clock.
    pub const ZERO: Time = Time { high: 0, low: 0 };

    /// An instant after all others.
    pub const NEVER: Time = Time {
        high: u64::MAX,
        low: u64::MAX,
    };

    /// Returns the instant `ps` picoseconds after the beginning of time.
    #[inline(always)]
    pub const fn from_ps(ps: u128) -> Time {
        Time {
            high: (ps >> 64) as u64,
            low: ps as u64,
        }
    }

    /// Returns the number of picoseconds from the beginning of time to this instant.
    #[inline(always)]
    pub const fn ps(self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }

    /// Returns the number of microseconds from the beginning of time to this instant, modulo 2^64.
    #[inline(always)]
    pub fn us(self) -> u64 {
        match self.high {
            0 => self.low / PS_PER_US,
            _ => (self.ps() / u128::from(PS_PER_US)) as u64,
        }
    }

    /// Returns the number of nanoseconds from the beginning of time to this instant, at most `u64::MAX` (584 years).
    pub fn ns(self) -> u64 {
        u64::try_from(self.ps() / 1000).unwrap_or(u64::MAX)
    }

    /// Returns the number of picoseconds from the beginning of time to this instant as 64 bits, at most `u64::MAX`.
    #[inline(always)]
    pub fn saturating_ps(self) -> u64 {
        match self.high {
            0 => self.low,
            _ => u64::MAX,
        }
    }

    /// Returns the last multiple of 2^62 picoseconds (53.4 days) that is not later than this instant. From there, 63
    /// bits can count picoseconds for at least as long again.
    pub const fn era(self) -> Time {
        Time::from_ps(self.ps() >> 62 << 62)
    }

    /// Returns the number of picoseconds from `earlier` to this instant; 0 if `earlier` is later.
    #[inline(always)]
    pub fn since(self, earlier: Time) -> u128 {
        self.ps().saturating_sub(earlier.ps())
    }

    /// Returns the number of picoseconds from `earlier` to this instant, at most `u64::MAX`; 0 if `earlier` is later.
    #[inline(always)]
    pub fn saturating_sub(self, earlier: Time) -> u64 {
        u64::try_from(self.since(earlier)).unwrap_or(u64::MAX)
    }

    /// Returns the instant `span_ps` picoseconds before this one, at the earliest the beginning of time.
    #[inline(always)]
    pub fn before(self, span_ps: u64) -> Time {
        Time::from_ps(self.ps().saturating_sub(span_ps.into()))
    }

    /// Returns the instant `span_ps` picoseconds after this one, at the latest the last that can be represented.
    #[inline(always)]
    pub fn saturating_add(self, span_ps: u64) -> Time {
        self.after(span_ps.into())
    }

    /// Returns the instant `span_ps` picoseconds after this one, at the latest the last that can be represented.
    #[inline(always)]
    pub fn after(self, span_ps: u128) -> Time {
        Time::from_ps(self.ps().saturating_add(span_ps))
    }
}

impl From<u64> for Time {
    #[inline(always)]
    fn from(ps: u64) -> Time {
        Time { high: 0, low: ps }
    }
}

impl Add<u64> for Time {
    type Output = Time;

    #[inline(always)]
    fn add(self, span_ps: u64) -> Time {
        self.after(span_ps.into())
    }
}

impl AddAssign<u64> for Time {
    #[inline(always)]
    fn add_assign(&mut self, span_ps: u64) {
        *self = *self + span_ps;
    }
}

impl Sub for Time {
    type Output = u64;

    #[inline(always)]
    fn sub(self, earlier: Time) -> u64 {
        self.saturating_sub(earlier)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ps().fmt(f)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ps().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns instants, in picoseconds, around the limits of each representation.
    fn instants() -> Vec<u128> {
        let borders = [
            0,
            1 << 32,
            1 << 48,
            1 << 64,
            1 << 65,
            (1 << 48) * 1_000_000,
            (1 << 64) * 1_000_000,
        ];
        let near = |border: u128| (0..3).flat_map(move |d| [border.saturating_sub(d), border + d]);
        borders.into_iter().flat_map(near).collect()
    }

    #[test]
    fn instants_are_the_numbers_that_they_are() {
        let half = u128::from(u64::MAX / 2);
        for a in instants() {
            let time = Time::from_ps(a);
            assert_eq!(time.ps(), a);
            assert_eq!(u128::from(time.us()), a / 1_000_000 % (1 << 64));
            assert_eq!(u128::from(time.saturating_ps()), a.min(u64::MAX.into()));
            assert_eq!((time + u64::MAX).ps(), a + u128::from(u64::MAX));
            assert_eq!(time.before(u64::MAX / 2).ps(), a.saturating_sub(half));
            for b in instants() {
                let other = Time::from_ps(b);
                assert_eq!(time.cmp(&other), a.cmp(&b), "{a} and {b}");
                assert_eq!(time.since(other), a.saturating_sub(b));
                let span = a.saturating_sub(b).min(u64::MAX.into());
                assert_eq!(u128::from(time - other), span, "{a} - {b}");
            }
        }
    }

    #[test]
    fn sums_end_at_never() {
        assert_eq!(Time::NEVER + 1, Time::NEVER);
        assert!(Time::from_ps(u128::MAX - 1) < Time::NEVER);
        assert_eq!(Time::ZERO.before(1), Time::ZERO);
    }
}
