//! The retransmission timeout: RFC 6298, or Jacobson's integers in ticks of a coarse clock. It holds the length of the timer, not the timer.

use crate::config::{Estimator, RtoConfig};

/// Estimates the round-trip time, and computes the retransmission timeout from it.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    config: RtoConfig,
    srtt_ps: u64,
    rttvar_ps: u64,
    /// The timeout before back-off.
    base_ps: u64,
    /// The number of times that the timeout has been doubled.
    backoff: u32,
    min_ps: u64,
    latest_ps: u64,
    ticks: Ticks,
}

/// Jacobson's scaled integers: SRTT in eighths and RTTVAR in fourths of a tick.
#[derive(Clone, Debug, Default)]
struct Ticks {
    srtt_eighths: i64,
    rttvar_fourths: i64,
}

impl Ticks {
    fn sample(&mut self, ticks: i64) {
        if self.srtt_eighths == 0 {
            self.srtt_eighths = ticks << 3;
            self.rttvar_fourths = ticks << 1;
            return;
        }
        let error = ticks - (self.srtt_eighths >> 3);
        self.srtt_eighths = (self.srtt_eighths + error).max(1);
        let deviation = error.abs() - (self.rttvar_fourths >> 2);
        self.rttvar_fourths = (self.rttvar_fourths + deviation).max(1);
    }

    fn timeout(&self) -> i64 {
        ((self.rttvar_fourths << 3) + self.srtt_eighths) >> 3
    }
}

impl RttEstimator {
    pub(crate) fn new(config: RtoConfig) -> RttEstimator {
        RttEstimator {
            config,
            srtt_ps: 0,
            rttvar_ps: 0,
            base_ps: config.initial_ps,
            backoff: 0,
            min_ps: u64::MAX,
            latest_ps: 0,
            ticks: Ticks::default(),
        }
    }

    /// Records a round-trip time as the latest, and as the smallest if it is. Does not change the timeout.
    pub(crate) fn observe(&mut self, rtt_ps: u64) {
        self.min_ps = self.min_ps.min(rtt_ps);
        self.latest_ps = rtt_ps;
    }

    /// Updates the averages and the timeout with a round-trip time measured at `now_ps`. Call it at most once per round
    /// trip, for which the averages' gains are designed.
    pub(crate) fn sample(&mut self, now_ps: u64, rtt_ps: u64) {
        self.observe(rtt_ps);
        self.smooth(rtt_ps);
        self.base_ps = match self.config.estimator {
            Estimator::Rfc6298 => {
                let spread = (4 * self.rttvar_ps).max(self.config.granularity_ps);
                (self.srtt_ps + spread).max(self.config.minimum_ps)
            }
            Estimator::Ticks { phase_ps } => {
                let tick_ps = self.config.granularity_ps;
                let sent_ps = now_ps.saturating_sub(rtt_ps) + phase_ps;
                let ticks = (now_ps + phase_ps) / tick_ps - sent_ps / tick_ps;
                self.ticks.sample((ticks as i64).max(1));
                self.ticks.timeout() as u64 * tick_ps
            }
        };
    }

    fn smooth(&mut self, rtt_ps: u64) {
        if self.srtt_ps == 0 {
            self.srtt_ps = rtt_ps.max(1);
            self.rttvar_ps = rtt_ps / 2;
            return;
        }
        let deviation = self.srtt_ps.abs_diff(rtt_ps);
        self.rttvar_ps = self.rttvar_ps - self.rttvar_ps / 4 + deviation / 4;
        self.srtt_ps = (self.srtt_ps - self.srtt_ps / 8 + rtt_ps / 8).max(1);
    }

    /// Returns the present retransmission timeout in picoseconds, doubled after each expiry.
    pub(crate) fn timeout_ps(&self) -> u64 {
        let backed_off = self
            .base_ps
            .saturating_mul(1 << self.backoff)
            .min(self.config.maximum_ps);
        match self.config.estimator {
            Estimator::Rfc6298 => backed_off,
            Estimator::Ticks { .. } => backed_off
                .max(self.config.minimum_ps)
                .max(2 * self.config.granularity_ps),
        }
    }

    /// Doubles the timeout after the retransmission timer has expired, up to a limit.
    pub(crate) fn back_off(&mut self) {
        let most = match self.config.estimator {
            Estimator::Rfc6298 => 31,
            Estimator::Ticks { .. } => 6,
        };
        self.backoff = (self.backoff + 1).min(most);
        if matches!(self.config.estimator, Estimator::Ticks { .. }) && self.backoff > 3 {
            // The old average is worth nothing by now; it lives on as variance.
            self.ticks.rttvar_fourths += self.ticks.srtt_eighths >> 3;
            self.ticks.srtt_eighths = 0;
        }
    }

    /// Ends the doubling of the timeout, after new data was acknowledged that had been sent only once (Karn's
    /// algorithm).
    pub(crate) fn end_back_off(&mut self) {
        self.backoff = 0;
    }

    /// Sets the timeout to at least `initial_ps` picoseconds, and ends its doubling, after a SYN was lost (RFC 6298,
    /// 5.7).
    pub(crate) fn forget_handshake(&mut self, initial_ps: u64) {
        self.backoff = 0;
        self.base_ps = self.base_ps.max(initial_ps);
    }

    pub(crate) fn srtt_ps(&self) -> u64 {
        self.srtt_ps
    }

    /// Returns the smallest measured round-trip time in picoseconds; zero before the first measurement.
    pub(crate) fn min_ps(&self) -> u64 {
        if self.min_ps == u64::MAX {
            0
        } else {
            self.min_ps
        }
    }
}
