//! CUBIC (RFC 9438): the window is a cubic function of the time since the last congestion, flat around the window at that time, and never
//! smaller than Reno's.
//!
//! Its curve is computed in floating point, with additions, multiplications and divisions only, which IEEE 754 rounds the same
//! on every machine; the cube root is computed on integers.

use super::slow_start::SlowStart;
use super::{Ack, Control, Loss, Silence, Window};
use crate::config::{Cubic as Choices, HyStart, Increase};

/// The scaling constant (C), in segments per second cubed.
const C: f64 = 0.4;
/// The factor of the window at congestion (beta_cubic), in tenths.
const BETA_TENTHS: u64 = 7;
const BETA: f64 = 0.7;
/// Reno's increase in segments per round trip that, with this beta, gives the same average window as one segment with a
/// beta of one half (RFC 9438, 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
const PS_PER_SECOND: f64 = 1e12;

/// The curve since the last congestion. Windows in bytes.
#[derive(Clone, Debug)]
struct Epoch {
    start_ps: u64,
    /// The time after the start at which the curve is at its flat point.
    k_seconds: f64,
    /// The window at the flat point.
    origin: f64,
    /// The window that Reno would have by now (W_est).
    reno: f64,
}

/// The algorithm's state.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    choices: Choices,
    slow_start: SlowStart,
    epoch: Option<Epoch>,
    /// The window at the last congestion (W_max), perhaps lowered further by fast convergence.
    w_max: u64,
    /// The window before the last reduction (cwnd_prior).
    prior: u64,
    /// True if the last congestion was a timeout: the next epoch then begins at its flat point.
    after_timeout: bool,
    /// The part of the last increase below a whole byte, which is added to the next.
    rest: f64,
    /// The time up to which the curve's time has been counted.
    counted_ps: u64,
}

impl Cubic {
    pub(crate) fn new(choices: Choices, increase: Increase, hystart: Option<HyStart>) -> Cubic {
        Cubic {
            choices,
            slow_start: SlowStart::new(increase, hystart),
            epoch: None,
            w_max: 0,
            prior: 0,
            after_timeout: false,
            rest: 0.0,
            counted_ps: 0,
        }
    }

    fn begin_epoch(&mut self, window: &Window, now_ps: u64) -> Epoch {
        let cwnd = window.cwnd as f64;
        let below = self.w_max.saturating_sub(window.cwnd);
        let flat = self.after_timeout || below == 0;
        self.after_timeout = false;
        Epoch {
            start_ps: now_ps,
            k_seconds: if flat {
                0.0
            } else {
                plateau_seconds(below, window.mss)
            },
            origin: if flat { cwnd } else { self.w_max as f64 },
            reno: cwnd,
        }
    }

    fn avoid_congestion(&mut self, window: &mut Window, ack: &Ack) {
        let mut epoch = match self.epoch.take() {
            Some(epoch) => epoch,
            None => self.begin_epoch(window, ack.now_ps),
        };
        let mss = window.mss as f64;
        let cwnd = window.cwnd as f64;
        let acked = ack.acked_bytes as f64;
        let alpha = if epoch.reno >= self.prior as f64 {
            1.0
        } else {
            ALPHA
        };
        epoch.reno += alpha * mss * acked / cwnd;
        let elapsed_ps = ack.now_ps.saturating_sub(epoch.start_ps);
        let now = epoch.at(elapsed_ps, mss);
        let grown = if self.choices.tcp_friendly && now < epoch.reno {
            epoch.reno
        } else {
            let ahead = epoch.at(elapsed_ps + ack.srtt_ps, mss);
            let target = ahead.clamp(cwnd, 1.5 * cwnd);
            cwnd + (target - cwnd) * acked / cwnd
        };
        let grown = if self.choices.searches && self.w_max == 0 {
            grown.max(cwnd + acked / 20.0)
        } else {
            grown
        };
        self.rest += (grown - cwnd).max(0.0);
        let whole = self.rest as u64;
        window.cwnd += whole;
        self.rest -= whole as f64;
        self.epoch = Some(epoch);
    }

    fn reduce(&mut self, window: &mut Window, loss: &Loss) {
        self.prior = window.cwnd;
        // RFC 9438 counts in segments (3.1): less than one is no sign of a newcomer. A lone flow meets its losses at windows
        // that differ by fractions, and would release bandwidth every other time.
        let shrank = window.cwnd + window.mss <= self.w_max;
        let released = self.choices.fast_convergence && shrank;
        self.w_max = if released {
            window.cwnd * (10 + BETA_TENTHS) / 20
        } else {
            window.cwnd
        };
        window.ssthresh = (loss.from_bytes * BETA_TENTHS / 10).max(window.floor());
        self.slow_start.on_congestion();
        self.epoch = None;
        self.rest = 0.0;
    }
}

impl Epoch {
    /// Returns the window, in bytes, of the cubic curve `elapsed_ps` picoseconds after the epoch began (RFC 9438,
    /// figure 1).
    fn at(&self, elapsed_ps: u64, mss: f64) -> f64 {
        let t = elapsed_ps as f64 / PS_PER_SECOND - self.k_seconds;
        self.origin + C * mss * (t * t * t)
    }
}

/// Computes K (RFC 9438, figure 2): the time in seconds that the curve needs to rise by `below` bytes to its flat
/// point.
fn plateau_seconds(below: u64, mss: u64) -> f64 {
    // In microseconds: the cube root of below / mss / 0.4 * 10^18.
    let cube = u128::from(below) * 2_500_000_000_000_000_000 / u128::from(mss.max(1));
    cube_root(cube) as f64 / 1e6
}

/// Computes the largest integer whose cube is at most `value`, by Newton's method.
fn cube_root(value: u128) -> u128 {
    if value == 0 {
        return 0;
    }
    // From above, so that the sequence falls until it is there.
    let mut root = 1u128 << (value.ilog2() / 3 + 1);
    loop {
        let next = (2 * root + value / (root * root)) / 3;
        if next >= root {
            return root;
        }
        root = next;
    }
}

impl Control for Cubic {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.counted_ps = ack.now_ps;
        if window.in_slow_start() {
            // The next congestion avoidance is another stage, which begins with the window of then (RFC 9438, 4.2).
            self.epoch = None;
            self.slow_start.on_ack(window, ack);
        } else {
            self.avoid_congestion(window, ack);
        }
    }

    fn on_congestion(&mut self, window: &mut Window, loss: &Loss) {
        self.reduce(window, loss);
        self.after_timeout = false;
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &Loss) {
        self.reduce(window, loss);
        self.after_timeout = true;
    }

    fn on_unused(&mut self, now_ps: u64) {
        // The time in which the window did not matter does not count (RFC 9438, 4.2 and 5.8).
        if let Some(epoch) = &mut self.epoch {
            epoch.start_ps += now_ps.saturating_sub(self.counted_ps);
        }
        self.counted_ps = now_ps;
    }

    fn on_silence(&mut self, silence: &Silence) {
        if silence.lowered {
            // The curve of before belongs to a window that is no more.
            self.epoch = None;
        }
        self.on_unused(silence.now_ps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000_000;

    proptest! {
        #[test]
        fn cube_roots_are_exact(value in 0u128..1 << 100) {
            let root = cube_root(value);
            prop_assert!(root.pow(3) <= value && value < (root + 1).pow(3));
        }
    }

    /// Returns the window in bytes at the end of each of `count` rounds. In each round, which lasts `rtt_ms`
    /// milliseconds, a whole window is acknowledged.
    fn rounds(cubic: &mut Cubic, window: &mut Window, rtt_ms: u64, count: u64) -> Vec<u64> {
        let mut now_ps = 0;
        (0..count)
            .map(|_| {
                let segments = (window.cwnd / window.mss).max(1);
                for i in 0..segments {
                    let ack = Ack {
                        now_ps: now_ps + rtt_ms * MS * i / segments,
                        acked_bytes: window.mss,
                        rtt_ps: Some(rtt_ms * MS),
                        srtt_ps: rtt_ms * MS,
                        una: 0,
                        max: 0,
                    };
                    cubic.on_ack(window, &ack);
                }
                now_ps += rtt_ms * MS;
                window.cwnd
            })
            .collect()
    }

    fn after_loss(segments: u64) -> (Cubic, Window) {
        let choices = Choices::RFC_9438;
        let mut cubic = Cubic::new(choices, Increase::PerAck, None);
        let mut window = Window {
            cwnd: segments * 1000,
            ssthresh: segments * 1000,
            mss: 1000,
        };
        let from_bytes = window.cwnd;
        cubic.on_congestion(&mut window, &Loss::lost(from_bytes));
        window.cwnd = window.ssthresh;
        (cubic, window)
    }

    #[test]
    fn the_curve_is_that_of_the_formula() {
        // 1000 segments, 100 ms: K = (300 / 0.4)^(1/3) = 9.0856 s; far above what Reno would have.
        let (mut cubic, mut window) = after_loss(1000);
        let k = 9.085_603;
        let windows = rounds(&mut cubic, &mut window, 100, 200);
        for (round, &bytes) in windows.iter().enumerate().skip(5) {
            let t = (round + 1) as f64 * 0.1;
            let formula = 0.4 * (t - k) * (t - k) * (t - k) + 1000.0;
            let ours = bytes as f64 / 1000.0;
            assert!(
                (ours - formula).abs() / formula < 0.01,
                "{t} s: {ours} {formula}"
            );
        }
        // At K it is back where it was.
        assert!(
            (windows[90] as i64 - 1_000_000).abs() < 1000,
            "{}",
            windows[90]
        );
    }

    #[test]
    fn before_the_first_congestion_it_searches_if_it_may() {
        let grown = |searches| {
            let choices = Choices {
                searches,
                ..Choices::RFC_9438
            };
            let mut cubic = Cubic::new(choices, Increase::PerAck, None);
            let mut window = Window {
                cwnd: 100_000,
                ssthresh: 100_000,
                mss: 1000,
            };
            let first = rounds(&mut cubic, &mut window, 10, 10)[9];
            let from_bytes = window.cwnd;
            cubic.on_congestion(&mut window, &Loss::lost(from_bytes));
            window.cwnd = window.ssthresh;
            let before = window.cwnd;
            let later = rounds(&mut cubic, &mut window, 10, 10)[9];
            (first, later - before)
        };
        // A twentieth per round trip, ten times, against hardly more than Reno; after the first loss there is no difference.
        let (searching, plain) = (grown(true), grown(false));
        assert!((158_000..165_000).contains(&searching.0), "{searching:?}");
        assert!((100_000..112_000).contains(&plain.0), "{plain:?}");
        assert!(
            searching.1 < 15_000 && plain.1 < 15_000,
            "{searching:?} {plain:?}"
        );
    }

    #[test]
    fn with_short_round_trips_it_is_no_slower_than_reno() {
        let (mut cubic, mut window) = after_loss(20);
        let windows = rounds(&mut cubic, &mut window, 1, 40);
        // 0.53 segments per round trip until the old window, one after.
        assert!(windows[10] >= 14_000 + 5 * 1000, "{windows:?}");
        assert!(windows[39] >= 20_000 + 20 * 1000, "{windows:?}");
        assert!(windows[39] <= 20_000 + 35 * 1000, "{windows:?}");
    }

    #[test]
    fn a_second_loss_below_the_first_releases_bandwidth() {
        let (mut cubic, mut window) = after_loss(100);
        assert_eq!((cubic.w_max, window.cwnd), (100_000, 70_000));
        cubic.on_congestion(&mut window, &Loss::lost(70_000));
        assert_eq!((cubic.w_max, window.ssthresh), (59_500, 49_000));
    }

    #[test]
    fn less_than_a_segment_below_the_first_releases_nothing() {
        // RFC 9438, 4.7, in the segments of 3.1.
        for (cwnd, w_max) in [(99_001, 99_001), (99_000, 84_150)] {
            let (mut cubic, mut window) = after_loss(100);
            window.cwnd = cwnd;
            cubic.on_congestion(&mut window, &Loss::lost(cwnd));
            assert_eq!(cubic.w_max, w_max);
        }
    }

    #[test]
    fn after_a_timeout_the_curve_begins_flat() {
        let (mut cubic, mut window) = after_loss(100);
        cubic.on_timeout(&mut window, &Loss::lost(70_000));
        window.cwnd = window.ssthresh;
        let windows = rounds(&mut cubic, &mut window, 100, 3);
        assert!(windows[2] - 49_000 < 3000, "{windows:?}");
    }
}
