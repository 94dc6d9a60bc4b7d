//! The rate at which a switch makes copies of copies.
//!
//! One packet may cause thousands of copies ([`MAX_WORK`](crate::switch::MAX_WORK)), each of which costs as much as a packet. In real
//! time a few packets of a program that clones and recirculates without end would take the time of all others, so what goes round
//! more than [`FREE_PASSES`] times has a rate. A simulation needs none: it takes the time that it takes.

/// The first resubmissions, recirculations and clones in a row of a packet that are not limited: as many as programs
/// need for one task.
pub(crate) const FREE_PASSES: u32 = 2;

/// The default of the copies per second that a switch makes in real time.
pub const COPIES_PER_S: u64 = 200_000;

/// The most copies that may be made at once after a pause.
const BURST: u64 = 512;

const PS_PER_S: u64 = 1_000_000_000_000;

use crate::Time;
use crate::runtime::SET_BACK_PS;

/// A token bucket for copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkRate {
    /// The picoseconds of the rate that one copy uses up.
    ps_per_copy: u64,
    /// The time up to which the rate is used up.
    taken_ps: Time,
}

impl WorkRate {
    /// Makes a limit of `copies_per_s` copies per second; 0 allows no copy.
    pub(crate) fn new(copies_per_s: u64) -> WorkRate {
        WorkRate {
            ps_per_copy: PS_PER_S
                .checked_div(copies_per_s)
                .unwrap_or(u64::MAX)
                .max(1),
            taken_ps: Time::ZERO,
        }
    }

    /// Counts one copy of a packet that has made `passes` passes, and returns true; returns `false` if the rate
    /// allows no copy at this time. The first passes of a packet are always allowed, and not counted.
    pub(crate) fn take(&mut self, now_ps: Time, passes: u32) -> bool {
        if passes < FREE_PASSES {
            return true;
        }
        if self.ps_per_copy == u64::MAX {
            return false;
        }
        if self.taken_ps > now_ps + SET_BACK_PS {
            self.taken_ps = now_ps;
        }
        let full_ps = now_ps.before(self.ps_per_copy.saturating_mul(BURST));
        let next_ps = self.taken_ps.max(full_ps) + self.ps_per_copy;
        if next_ps > now_ps {
            return false;
        }
        self.taken_ps = next_ps;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_a_rate_and_a_burst() {
        let mut rate = WorkRate::new(1000);
        let made = |rate: &mut WorkRate, now_ps: u64| {
            (0..10_000).filter(|_| rate.take(now_ps.into(), 2)).count()
        };
        assert_eq!(made(&mut rate, PS_PER_S), BURST as usize);
        assert_eq!(made(&mut rate, PS_PER_S), 0);
        assert_eq!(made(&mut rate, PS_PER_S + PS_PER_S / 100), 10);
        assert_eq!(made(&mut rate, 9 * PS_PER_S), BURST as usize);
        assert!(
            rate.take(Time::from(9 * PS_PER_S), 1),
            "the first passes are free"
        );
    }

    #[test]
    fn no_rate_is_none() {
        let mut rate = WorkRate::new(0);
        assert!(rate.take(Time::ZERO, 1) && !rate.take(Time::NEVER, 2));
        assert!(WorkRate::new(u64::MAX).take(PS_PER_S.into(), 2));
    }
}
