//! BBR version 1 (draft-cardwell-iccrg-bbr-congestion-control-00). It models the path by its bottleneck bandwidth and round-trip
//! propagation time, and derives pacing rate and window from the model. Losses reduce the window only for a round trip.
//!
//! It does not implement later versions, whose model includes loss and ECN. All arithmetic is on integers. The draft draws a random
//! number for the first phase of a cycle; here the connection's initial sequence number decides.

use super::{Ack, Control, Loss, Sample, Silence, Window, scaled};

/// Unit of gains: they are in thousandths. 2/ln(2) is the least gain that doubles the rate each round trip.
const UNIT: u64 = 1000;
const HIGH_GAIN: u64 = 2885;
const DRAIN_GAIN: u64 = 347;
const PROBE_CWND_GAIN: u64 = 2000;
const CYCLE: [u64; 8] = [1250, 750, 1000, 1000, 1000, 1000, 1000, 1000];
/// Round trips over which the bandwidth's maximum is taken.
const BANDWIDTH_ROUNDS: u64 = 10;
const RTT_FILTER_PS: u64 = 10_000_000_000_000;
const PROBE_RTT_PS: u64 = 200_000_000_000;
const MIN_SEGMENTS: u64 = 4;
const PS_PER_SECOND: u64 = 1_000_000_000_000;

/// The state of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Doubles the rate until the bandwidth grows no more.
    Startup,
    /// Sends slowly until the queue that startup made is gone.
    Drain,
    /// Probes for bandwidth in cycles.
    ProbeBandwidth,
    /// Probes for the propagation time with a small window.
    ProbeRtt,
}

/// The largest bandwidth of the last rounds: the three best measurements, each with its round, best first.
#[derive(Clone, Copy, Debug, Default)]
struct MaxFilter {
    best: [(u64, u64); 3],
}

impl MaxFilter {
    fn get(&self) -> u64 {
        self.best[0].1
    }

    fn update(&mut self, round: u64, value: u64) {
        let new = (round, value);
        let best = &mut self.best;
        if value >= best[0].1 || round.saturating_sub(best[2].0) > BANDWIDTH_ROUNDS {
            *best = [new; 3];
            return;
        }
        if value >= best[1].1 {
            best[1] = new;
            best[2] = new;
        } else if value >= best[2].1 {
            best[2] = new;
        }
        let age = round - best[0].0;
        if age > BANDWIDTH_ROUNDS {
            // The best is too old; the others move up.
            *best = [best[1], best[2], new];
            if round - best[0].0 > BANDWIDTH_ROUNDS {
                *best = [best[1], best[2], new];
            }
        } else if best[1].0 == best[0].0 && age > BANDWIDTH_ROUNDS / 4 {
            best[1] = new;
            best[2] = new;
        } else if best[2].0 == best[1].0 && age > BANDWIDTH_ROUNDS / 2 {
            best[2] = new;
        }
    }
}

/// The state of BBR: its model of the path, and what is done with it.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    mode: Mode,
    pacing_gain: u64,
    cwnd_gain: u64,
    /// The largest delivery rate of the last rounds, in bytes per second.
    bandwidth: MaxFilter,
    /// Bandwidth times propagation time in bytes, and what it was computed from.
    product_bytes: u64,
    product_of: (u64, u64),
    pacing_rate: Option<u64>,
    rtprop_ps: u64,
    rtprop_at_ps: u64,
    rtprop_expired: bool,
    round: u64,
    /// The round ends when a segment is delivered that was sent after this many bytes had been delivered in all.
    round_end: u64,
    round_start: bool,
    full_bandwidth: u64,
    full_rounds: u32,
    filled: bool,
    cycle: usize,
    cycle_at_ps: u64,
    probe_done_ps: Option<u64>,
    probe_round_done: bool,
    /// The window before recovery or before a probe of the round-trip time.
    prior_cwnd: u64,
    /// True in the first round of a recovery, in which no more bytes are sent than are delivered.
    conserving: bool,
    was_recovering: bool,
    /// True if sending has restarted after an idle time, and nothing has been delivered since: an old round-trip time
    /// is no reason to probe then.
    idle_restart: bool,
    seed: u32,
}

impl Bbr {
    pub(crate) fn new(seed: u32) -> Bbr {
        Bbr {
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            bandwidth: MaxFilter::default(),
            product_bytes: 0,
            product_of: (0, 0),
            pacing_rate: None,
            rtprop_ps: u64::MAX,
            rtprop_at_ps: 0,
            rtprop_expired: false,
            round: 0,
            round_end: 0,
            round_start: false,
            full_bandwidth: 0,
            full_rounds: 0,
            filled: false,
            cycle: 0,
            cycle_at_ps: 0,
            probe_done_ps: None,
            probe_round_done: false,
            prior_cwnd: 0,
            conserving: false,
            was_recovering: false,
            idle_restart: false,
            seed,
        }
    }

    #[cfg(test)]
    fn bandwidth(&self) -> u64 {
        self.bandwidth.get()
    }

    /// Computes how many bytes to keep in flight: the product of bandwidth and propagation time, times `gain`
    /// thousandths, plus three segments. Returns the present window before the first measurement of a round-trip time.
    fn inflight(&self, gain: u64, window: &Window) -> u64 {
        if self.rtprop_ps == u64::MAX {
            return window.cwnd;
        }
        // Three segments of room for delayed acknowledgments and sending in batches.
        scaled(self.product_bytes, gain, UNIT).min(1 << 62) + 3 * window.mss
    }

    fn update_bandwidth(&mut self, sample: &Sample) {
        self.round_start = false;
        if let Some(prior) = sample.prior_delivered
            && prior >= self.round_end
        {
            self.round_end = sample.total_delivered;
            self.round += 1;
            self.round_start = true;
            self.conserving = false;
        }
        if let Some(rate) = sample.rate
            && (!sample.app_limited || rate >= self.bandwidth.get())
        {
            self.bandwidth.update(self.round, rate);
        }
    }

    /// Computes the product of bandwidth and propagation time again if one of them has changed.
    fn multiply(&mut self) {
        let of = (self.bandwidth.get(), self.rtprop_ps);
        if of != self.product_of {
            self.product_of = of;
            self.product_bytes = scaled(of.0, of.1, PS_PER_SECOND);
        }
    }

    // Gain cycling.

    fn update_cycle(&mut self, window: &Window, sample: &Sample) {
        if self.mode == Mode::ProbeBandwidth && self.phase_is_over(window, sample) {
            self.cycle = (self.cycle + 1) % CYCLE.len();
            self.cycle_at_ps = sample.now_ps;
            self.pacing_gain = CYCLE[self.cycle];
        }
    }

    fn phase_is_over(&self, window: &Window, sample: &Sample) -> bool {
        let elapsed = sample.now_ps.saturating_sub(self.cycle_at_ps) > self.rtprop_ps;
        // The bytes in flight before this acknowledgment.
        let flight = sample.flight_bytes + sample.delivered_bytes;
        match self.pacing_gain {
            UNIT => elapsed,
            gain if gain > UNIT => {
                elapsed && (sample.lost_bytes > 0 || flight >= self.inflight(gain, window))
            }
            _ => elapsed || flight <= self.inflight(UNIT, window),
        }
    }

    fn probe_bandwidth(&mut self, now_ps: u64) {
        self.mode = Mode::ProbeBandwidth;
        self.cwnd_gain = PROBE_CWND_GAIN;
        // Any phase but the second (0.75), from where the next step leads.
        let drawn = (self.seed as usize) % 7;
        self.cycle = [7, 0, 6, 5, 4, 3, 2][drawn];
        self.seed = self
            .seed
            .wrapping_mul(1_664_525)
            .wrapping_add(1_013_904_223)
            >> 1;
        self.cycle_at_ps = now_ps;
        self.pacing_gain = CYCLE[self.cycle];
    }

    // Startup and drain.

    fn check_full(&mut self, sample: &Sample) {
        if self.filled || !self.round_start || sample.app_limited {
            return;
        }
        // Still growing by a quarter?
        if self.bandwidth.get() >= self.full_bandwidth + self.full_bandwidth / 4 {
            self.full_bandwidth = self.bandwidth.get();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.filled = self.full_rounds >= 3;
    }

    fn check_drain(&mut self, window: &Window, sample: &Sample) {
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
            self.pacing_gain = DRAIN_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
        if self.mode == Mode::Drain && sample.flight_bytes <= self.inflight(UNIT, window) {
            self.probe_bandwidth(sample.now_ps);
        }
    }

    // The propagation time.

    fn update_rtprop(&mut self, sample: &Sample) {
        let age_ps = sample.now_ps.saturating_sub(self.rtprop_at_ps);
        self.rtprop_expired = age_ps > RTT_FILTER_PS;
        if let Some(rtt_ps) = sample.rtt_ps
            && (rtt_ps <= self.rtprop_ps || self.rtprop_expired)
        {
            self.rtprop_ps = rtt_ps.max(1);
            self.rtprop_at_ps = sample.now_ps;
        }
    }

    fn check_probe_rtt(&mut self, window: &mut Window, sample: &Sample) {
        if self.mode != Mode::ProbeRtt && self.rtprop_expired && !self.idle_restart {
            self.mode = Mode::ProbeRtt;
            self.pacing_gain = UNIT;
            self.cwnd_gain = UNIT;
            self.save_window(window);
            self.probe_done_ps = None;
        }
        if self.mode != Mode::ProbeRtt {
            return;
        }
        match self.probe_done_ps {
            None if sample.flight_bytes <= MIN_SEGMENTS * window.mss => {
                self.probe_done_ps = Some(sample.now_ps + PROBE_RTT_PS);
                self.probe_round_done = false;
                self.round_end = sample.total_delivered;
            }
            Some(done_ps) => {
                self.probe_round_done |= self.round_start;
                if self.probe_round_done && sample.now_ps > done_ps {
                    self.rtprop_at_ps = sample.now_ps;
                    window.cwnd = window.cwnd.max(self.prior_cwnd);
                    self.leave_probe_rtt(sample.now_ps);
                }
            }
            None => {}
        }
    }

    fn leave_probe_rtt(&mut self, now_ps: u64) {
        if self.filled {
            self.probe_bandwidth(now_ps);
        } else {
            self.mode = Mode::Startup;
            self.pacing_gain = HIGH_GAIN;
            self.cwnd_gain = HIGH_GAIN;
        }
    }

    // Rate and window.

    fn set_pacing_rate(&mut self) {
        let rate = scaled(self.bandwidth.get(), self.pacing_gain, UNIT);
        if rate > 0 && (self.filled || self.pacing_rate.is_none_or(|now| rate > now)) {
            self.pacing_rate = Some(rate);
        }
    }

    fn set_window(&mut self, window: &mut Window, sample: &Sample) {
        let target = self.inflight(self.cwnd_gain, window);
        let delivered = sample.delivered_bytes;
        self.follow_recovery(window, sample);
        if !self.conserving {
            if self.filled {
                window.cwnd = (window.cwnd + delivered).min(target);
            } else if window.cwnd < target || sample.total_delivered < 10 * window.mss {
                window.cwnd += delivered;
            }
            window.cwnd = window.cwnd.max(MIN_SEGMENTS * window.mss);
        }
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(MIN_SEGMENTS * window.mss);
        }
    }

    /// Sets the window when a recovery begins, while it lasts, and when it ends (BBR draft, section 4.2.3.4).
    fn follow_recovery(&mut self, window: &mut Window, sample: &Sample) {
        if sample.lost_bytes > 0 {
            window.cwnd = window
                .cwnd
                .saturating_sub(sample.lost_bytes)
                .max(window.mss);
        }
        if sample.recovering && !self.was_recovering {
            self.save_window_before(window.cwnd + sample.lost_bytes);
            window.cwnd = sample.flight_bytes + sample.delivered_bytes.max(window.mss);
            self.conserving = true;
            // The round of conservation begins now.
            self.round_end = sample.total_delivered;
        } else if !sample.recovering && self.was_recovering {
            self.conserving = false;
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
        self.was_recovering = sample.recovering;
        if self.conserving {
            window.cwnd = window
                .cwnd
                .max(sample.flight_bytes + sample.delivered_bytes);
        }
    }

    fn save_window(&mut self, window: &Window) {
        self.save_window_before(window.cwnd);
    }

    fn save_window_before(&mut self, cwnd: u64) {
        self.prior_cwnd = if self.was_recovering || self.mode == Mode::ProbeRtt {
            self.prior_cwnd.max(cwnd)
        } else {
            cwnd
        };
    }
}

impl Control for Bbr {
    fn on_ack(&mut self, _window: &mut Window, _ack: &Ack) {
        // `on_sample` does everything.
    }

    fn on_congestion(&mut self, _window: &mut Window, _loss: &Loss) {
        // A loss says nothing about the path that the model does not know better.
    }

    fn on_timeout(&mut self, window: &mut Window, _loss: &Loss) {
        self.save_window(window);
        // Its end restores the window.
        self.was_recovering = true;
        self.conserving = false;
    }

    /// Handles the restart after an idle time (BBRHandleRestartFromIdle of the draft, 4.2.5): while the algorithm
    /// probes for bandwidth, segments are paced at the measured rate, without a gain.
    fn on_silence(&mut self, _silence: &Silence) {
        self.idle_restart = true;
        let rate = self.bandwidth.get();
        if self.mode == Mode::ProbeBandwidth && rate > 0 {
            self.pacing_rate = Some(rate);
        }
    }

    /// Takes the handshake's round-trip time as the first estimate of the propagation time, and derives the first
    /// pacing rate from it; assumes a millisecond for the rate if it is unknown (0).
    fn on_established(&mut self, window: &Window, now_ps: u64, rtt_ps: u64) {
        if rtt_ps > 0 {
            self.rtprop_ps = rtt_ps;
        }
        self.rtprop_at_ps = now_ps;
        let per_ms = 1_000_000_000;
        let rtt_ps = if rtt_ps > 0 { rtt_ps } else { per_ms };
        let rate = scaled(window.cwnd, PS_PER_SECOND, rtt_ps);
        self.pacing_rate = Some(scaled(rate, HIGH_GAIN, UNIT).max(1));
    }

    fn has_model(&self) -> bool {
        true
    }

    /// Updates the model of the path, the pacing rate and the window after an acknowledgment (BBRUpdateOnACK of the
    /// draft).
    fn on_sample(&mut self, window: &mut Window, sample: &Sample) {
        self.update_bandwidth(sample);
        self.multiply();
        self.update_cycle(window, sample);
        self.check_full(sample);
        self.check_drain(window, sample);
        self.update_rtprop(sample);
        self.multiply();
        self.check_probe_rtt(window, sample);
        self.idle_restart &= sample.delivered_bytes == 0;
        self.set_pacing_rate();
        self.set_window(window, sample);
    }

    fn pacing_rate(&self) -> Option<u64> {
        self.pacing_rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_filter_never_exceeds_and_soon_follows_the_maximum(values in proptest::collection::vec(1u64..1000, 1..200)) {
            let mut filter = MaxFilter::default();
            for (round, &value) in values.iter().enumerate() {
                filter.update(round as u64, value);
                let window = &values[round.saturating_sub(BANDWIDTH_ROUNDS as usize)..=round];
                let maximum = window.iter().copied().max().unwrap();
                prop_assert!(filter.get() <= maximum && filter.get() >= value, "{round}: {} of {window:?}", filter.get());
            }
        }
    }

    #[test]
    fn a_steady_path_is_learnt() {
        let mut bbr = Bbr::new(1);
        let mut window = Window {
            cwnd: 10_000,
            ssthresh: u64::MAX,
            mss: 1000,
        };
        bbr.on_established(&window, 0, 40_000_000_000);
        // 10 MB/s and 40 ms: 400,000 bytes.
        let mut total = 0;
        for i in 1..5000u64 {
            total += 1000;
            let sample = Sample {
                now_ps: 40_000_000_000 + i * 100_000_000,
                delivered_bytes: 1000,
                lost_bytes: 0,
                flight_bytes: 400_000,
                total_delivered: total,
                prior_delivered: Some(total.saturating_sub(400_000)),
                rate: Some(10_000_000),
                app_limited: false,
                rtt_ps: Some(40_000_000_000),
                recovering: false,
            };
            bbr.on_sample(&mut window, &sample);
        }
        assert_eq!(bbr.bandwidth(), 10_000_000);
        assert_eq!(bbr.mode, Mode::ProbeBandwidth);
        assert_eq!(window.cwnd, 803_000);
    }
}
