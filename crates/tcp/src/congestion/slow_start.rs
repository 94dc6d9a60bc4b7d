//! Slow start, counted by acknowledgments or bytes, and two forms of HyStart, which ends slow start before the queue overflows.

use super::{Ack, Window};
use crate::config::{HyStart, Increase};

/// The parameters of RFC 9406, 4.3.
const MIN_RTT_THRESHOLD_PS: u64 = 4_000_000_000;
const MAX_RTT_THRESHOLD_PS: u64 = 16_000_000_000;
const MIN_RTT_DIVISOR: u64 = 8;
const RTT_SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// Most segments by which one acknowledgment grows the window, without pacing.
const LIMIT_SEGMENTS: u64 = 8;

/// Slow start, which all algorithms share below the threshold.
#[derive(Clone, Debug)]
pub(crate) struct SlowStart {
    increase: Increase,
    exit: Exit,
}

/// What ends slow start.
#[derive(Clone, Debug)]
enum Exit {
    Loss,
    PlusPlus(PlusPlus),
    Classic(Classic),
}

impl SlowStart {
    pub(crate) fn new(increase: Increase, hystart: Option<HyStart>) -> SlowStart {
        let exit = match hystart {
            None => Exit::Loss,
            Some(HyStart::PlusPlus) => Exit::PlusPlus(PlusPlus::default()),
            Some(HyStart::Classic) => Exit::Classic(Classic::default()),
        };
        SlowStart { increase, exit }
    }

    /// Grows the window after an acknowledgment in slow start, and sets the threshold if HyStart detects the end of
    /// slow start.
    pub(crate) fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        match &mut self.exit {
            Exit::Loss => {}
            Exit::PlusPlus(hystart) => return hystart.on_ack(window, ack),
            Exit::Classic(hystart) => {
                if hystart.finds_the_end(window, ack) {
                    window.ssthresh = window.cwnd;
                    return;
                }
            }
        }
        window.cwnd += bytes(self.increase, window.mss, ack.acked_bytes);
    }

    /// Disables HyStart because of congestion, since it is only for the first slow start: the threshold is known after
    /// a loss.
    pub(crate) fn on_congestion(&mut self) {
        self.exit = Exit::Loss;
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

/// HyStart++: rounds and their round-trip times.
#[derive(Clone, Debug)]
struct PlusPlus {
    window_end: u64,
    last_min_ps: u64,
    current_min_ps: u64,
    samples: u32,
    /// In conservative slow start: the round-trip time at its beginning, and the number of rounds so far.
    conservative: Option<(u64, u32)>,
}

impl Default for PlusPlus {
    fn default() -> PlusPlus {
        PlusPlus {
            window_end: 0,
            last_min_ps: u64::MAX,
            current_min_ps: u64::MAX,
            samples: 0,
            conservative: None,
        }
    }
}

impl PlusPlus {
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

    /// Compares the smallest round-trip time of this round with that of the last: begins conservative slow start if it
    /// has grown, and returns to slow start if it falls below that at which conservative slow start began.
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

/// The smallest window, in segments, at which HyStart ends slow start.
const CLASSIC_LOW_WINDOW: u64 = 16;
/// The longest time between two acknowledgments of one train.
const CLASSIC_TRAIN_GAP_PS: u64 = 2_000_000_000;

/// The delay of acknowledgments that the path may cause without a queue.
const CLASSIC_ACK_DELAY_PS: u64 = 1_000_000_000;

/// HyStart as it was published: a round's train of acknowledgments and its smallest round trip, against the smallest of all.
#[derive(Clone, Debug)]
struct Classic {
    /// The next round begins with an acknowledgment above this number.
    round_end: u64,
    round_start_ps: u64,
    /// The time of the last acknowledgment of the round's train.
    train_ps: u64,
    current_min_ps: u64,
    samples: u32,
    /// The smallest round trip of all rounds.
    min_ps: u64,
}

impl Default for Classic {
    fn default() -> Classic {
        Classic {
            round_end: 0,
            round_start_ps: 0,
            train_ps: 0,
            current_min_ps: u64::MAX,
            samples: 0,
            min_ps: u64::MAX,
        }
    }
}

impl Classic {
    /// Updates the detector with an acknowledgment, and returns true if slow start ends with it. Returns false for an
    /// acknowledgment without a round-trip time.
    fn finds_the_end(&mut self, window: &Window, ack: &Ack) -> bool {
        let Some(rtt_ps) = ack.rtt_ps else {
            return false;
        };
        self.min_ps = self.min_ps.min(rtt_ps);
        if ack.una > self.round_end {
            self.round_end = ack.max;
            self.round_start_ps = ack.now_ps;
            self.train_ps = ack.now_ps;
            self.current_min_ps = u64::MAX;
            self.samples = 0;
        }
        window.cwnd >= CLASSIC_LOW_WINDOW * window.mss
            && (self.is_long_train(ack.now_ps) || self.is_delayed(rtt_ps))
    }

    /// Returns true if the acknowledgments that arrived without a gap since the round began span half of the round-trip
    /// time.
    fn is_long_train(&mut self, now_ps: u64) -> bool {
        if now_ps.saturating_sub(self.train_ps) > CLASSIC_TRAIN_GAP_PS {
            return false;
        }
        self.train_ps = now_ps;
        now_ps.saturating_sub(self.round_start_ps) > (self.min_ps + CLASSIC_ACK_DELAY_PS) / 2
    }

    /// Updates the round's smallest round-trip time with `rtt_ps`, and returns true if even that includes waiting in a
    /// queue. Returns false until enough have been measured.
    fn is_delayed(&mut self, rtt_ps: u64) -> bool {
        self.current_min_ps = self.current_min_ps.min(rtt_ps);
        if self.samples < RTT_SAMPLES {
            self.samples += 1;
            return false;
        }
        let threshold_ps =
            (self.min_ps / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESHOLD_PS, MAX_RTT_THRESHOLD_PS);
        self.current_min_ps > self.min_ps.saturating_add(threshold_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs rounds of 20 acknowledgments with these round-trip times in milliseconds. Returns the round in which slow
    /// start ended; `None` if it did not end.
    fn ends_after(rtts_ms: impl IntoIterator<Item = u64>) -> Option<usize> {
        ends(HyStart::PlusPlus, rtts_ms, 5_000)
    }

    /// Returns the round in which slow start ends with the given form of HyStart, for acknowledgments `gap_us`
    /// microseconds apart; `None` if it does not end.
    fn ends(
        hystart: HyStart,
        rtts_ms: impl IntoIterator<Item = u64>,
        gap_us: u64,
    ) -> Option<usize> {
        let mut now_ps = 0;
        let mut window = Window {
            cwnd: 10_000,
            ssthresh: u64::MAX,
            mss: 1000,
        };
        let mut slow_start = SlowStart::new(Increase::PerAck, Some(hystart));
        let mut una = 0;
        for (round, rtt_ms) in rtts_ms.into_iter().enumerate() {
            for _ in 0..20 {
                una += 1000;
                now_ps += gap_us * 1_000_000;
                let ack = Ack {
                    now_ps,
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

    #[test]
    fn the_classic_ends_at_the_ninth_slow_measurement_of_a_round() {
        // An eighth above 50 ms is 56.25 ms. Slow measurements that come after a quick one of the same round do not count.
        assert_eq!(ends(HyStart::Classic, [50, 50, 50, 57], 5_000), Some(3));
        assert_eq!(ends(HyStart::Classic, [50; 20], 5_000), None);
        assert_eq!(ends(HyStart::Classic, [50, 56, 56, 56], 5_000), None);
        // It compares with the smallest of all, so slow growth ends it too.
        let slowly = (0..20).map(|round| 50 + round);
        assert_eq!(ends(HyStart::Classic, slowly, 5_000), Some(7));
        // Below 4 ms it is noise, whatever the round trip.
        assert_eq!(ends(HyStart::Classic, [10, 14, 14, 14], 5_000), None);
        assert_eq!(ends(HyStart::Classic, [10, 15, 15, 15], 5_000), Some(1));
    }

    #[test]
    fn the_classic_ends_with_a_train_of_half_a_round_trip() {
        // 20 acknowledgments 1.5 ms apart are 28.5 ms; 3 ms apart they are no train.
        assert!(ends(HyStart::Classic, [50; 3], 1_500).is_some());
        assert_eq!(ends(HyStart::Classic, [60; 20], 1_500), None);
        assert_eq!(ends(HyStart::Classic, [50; 20], 3_000), None);
    }

    #[test]
    fn the_classic_leaves_small_windows_alone() {
        let mut classic = Classic::default();
        let window = Window {
            cwnd: 15_999,
            ssthresh: u64::MAX,
            mss: 1000,
        };
        for i in 0..100 {
            let ack = Ack {
                now_ps: i * 1_000_000_000,
                acked_bytes: 1000,
                rtt_ps: Some((i + 1) * 50_000_000_000),
                srtt_ps: 0,
                una: 1000 * (i + 1),
                max: 1000 * (i + 20),
            };
            assert!(!classic.finds_the_end(&window, &ack));
        }
    }
}
