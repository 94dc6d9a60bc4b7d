//! Slow start, counted by acknowledgments or bytes, and HyStart++ (RFC 9406), which ends it before the queue overflows.

use super::{Ack, Window};
use crate::config::Increase;

/// RFC 9406, 4.3.
const MIN_RTT_THRESHOLD_PS: u64 = 4_000_000_000;
const MAX_RTT_THRESHOLD_PS: u64 = 16_000_000_000;
const MIN_RTT_DIVISOR: u64 = 8;
const RTT_SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// Segments that an acknowledgment counts for at most, without pacing.
const LIMIT_SEGMENTS: u64 = 8;

/// What all algorithms do below the threshold.
#[derive(Clone, Debug)]
pub(crate) struct SlowStart {
    increase: Increase,
    hystart: Option<HyStart>,
}

impl SlowStart {
    pub(crate) fn new(increase: Increase, hystart: bool) -> SlowStart {
        SlowStart {
            increase,
            hystart: hystart.then(HyStart::default),
        }
    }

    /// Opens the window for an acknowledgment.
    pub(crate) fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        match &mut self.hystart {
            Some(hystart) => hystart.on_ack(window, ack),
            None => window.cwnd += bytes(self.increase, window.mss, ack.acked_bytes),
        }
    }

    /// HyStart++ is only for the first slow start; after a loss the threshold is known.
    pub(crate) fn on_congestion(&mut self) {
        self.hystart = None;
    }
}

fn bytes(increase: Increase, mss: u64, acked_bytes: u64) -> u64 {
    match increase {
        Increase::PerAck => mss,
        Increase::PerByte {
            slow_start_limit_segments,
        } => acked_bytes.min(u64::from(slow_start_limit_segments) * mss),
    }
}

/// Rounds and their round-trip times.
#[derive(Clone, Debug)]
struct HyStart {
    window_end: u64,
    last_min_ps: u64,
    current_min_ps: u64,
    samples: u32,
    /// In conservative slow start: the round trip that it began with, and the rounds so far.
    conservative: Option<(u64, u32)>,
}

impl Default for HyStart {
    fn default() -> HyStart {
        HyStart {
            window_end: 0,
            last_min_ps: u64::MAX,
            current_min_ps: u64::MAX,
            samples: 0,
            conservative: None,
        }
    }
}

impl HyStart {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if let Some(rtt_ps) = ack.rtt_ps {
            self.current_min_ps = self.current_min_ps.min(rtt_ps);
            self.samples += 1;
        }
        let counted = ack.acked_bytes.min(LIMIT_SEGMENTS * window.mss);
        window.cwnd += match self.conservative {
            None => counted,
            Some(_) => counted / CSS_GROWTH_DIVISOR,
        };
        self.judge();
        if ack.una >= self.window_end {
            self.end_round(window, ack.max);
        }
    }

    /// Whether the round trip has grown, or was only noisy.
    fn judge(&mut self) {
        if self.samples < RTT_SAMPLES || self.current_min_ps == u64::MAX {
            return;
        }
        match self.conservative {
            None if self.last_min_ps != u64::MAX => {
                let threshold_ps = (self.last_min_ps / MIN_RTT_DIVISOR)
                    .clamp(MIN_RTT_THRESHOLD_PS, MAX_RTT_THRESHOLD_PS);
                if self.current_min_ps >= self.last_min_ps.saturating_add(threshold_ps) {
                    self.conservative = Some((self.current_min_ps, 0));
                }
            }
            Some((baseline_ps, _)) if self.current_min_ps < baseline_ps => {
                self.conservative = None;
            }
            _ => {}
        }
    }

    fn end_round(&mut self, window: &mut Window, max: u64) {
        self.window_end = max;
        self.last_min_ps = self.current_min_ps;
        self.current_min_ps = u64::MAX;
        self.samples = 0;
        if let Some((_, rounds)) = &mut self.conservative {
            *rounds += 1;
            if *rounds >= CSS_ROUNDS {
                window.ssthresh = window.cwnd;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs rounds of 20 acknowledgments with these round trips; where slow start ended, if it did.
    fn ends_after(rtts_ms: impl IntoIterator<Item = u64>) -> Option<usize> {
        let mut window = Window {
            cwnd: 10_000,
            ssthresh: u64::MAX,
            mss: 1000,
        };
        let mut slow_start = SlowStart::new(Increase::PerAck, true);
        let mut una = 0;
        for (round, rtt_ms) in rtts_ms.into_iter().enumerate() {
            for _ in 0..20 {
                una += 1000;
                let ack = Ack {
                    now_ps: 0,
                    acked_bytes: 1000,
                    rtt_ps: Some(rtt_ms * 1_000_000_000),
                    srtt_ps: 0,
                    una,
                    max: una + 19_000,
                };
                slow_start.on_ack(&mut window, &ack);
            }
            if !window.in_slow_start() {
                return Some(round);
            }
        }
        None
    }

    #[test]
    fn a_growing_round_trip_ends_slow_start_after_five_careful_rounds() {
        // Seen in round 3 (counting from 0); that round and four more are conservative.
        let ended = ends_after([50, 50, 50, 60, 60, 60, 60, 60, 60, 60]);
        assert!((7..=9).contains(&ended.unwrap()), "{ended:?}");
    }

    #[test]
    fn noise_and_small_growth_do_not() {
        assert_eq!(ends_after([50; 20]), None);
        assert_eq!(ends_after((0..20).map(|round| 50 + round / 2)), None);
        // Back below where the careful part began: it was noise.
        let rounds = (0..30).map(|round| if round % 3 == 2 { 60 } else { 50 });
        assert_eq!(ends_after(rounds), None);
    }
}
