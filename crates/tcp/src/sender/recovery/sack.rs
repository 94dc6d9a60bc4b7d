//! Recovery with selective acknowledgments (RFC 6675): the pipe, loss detection, and the choice of the next segment. RACK-TLP shares
//! the scoreboard, proportional rate reduction (RFC 6937) and the timeout.

use super::rack::Rack;
use super::scoreboard::{Delivery, RateStamp, Record, Scoreboard};
use crate::config::{Recovery, Reduction};
use crate::congestion::{Control, Loss, Sample, scaled};
use crate::sender::{Phase, Sender, Transmission};
use wire::tcp::SackBlocks;

/// The sender's state when the other end acknowledges selectively.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracking {
    pub(crate) scoreboard: Scoreboard,
    pub(crate) rack: Rack,
    prr: Proportional,
    /// The number behind the highest data that was ever delivered.
    highest: u64,
    /// True if the last segment was retransmitted in this recovery to provoke an acknowledgment (RFC 6675, NextSeg,
    /// rule 4).
    rescued: bool,
    /// The number of retransmissions before the last reduction of the window.
    repeated_before: u64,
    rate: Rate,
}

impl Tracking {
    /// Remembers the number of retransmissions before a reduction of the window, so that the loss of one of them does
    /// not reduce the window again.
    pub(crate) fn window_lowered(&mut self) {
        self.repeated_before = self.scoreboard.repeated();
    }
}

/// The measurement of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation-00).
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    delivered: u64,
    delivered_ps: u64,
    first_sent_ps: u64,
    /// Samples are limited by the application until this many bytes have been delivered in all; zero if they are not.
    app_limited_until: u64,
}

impl Rate {
    fn deliver(&mut self, now_ps: u64, bytes: u64) {
        if bytes > 0 {
            self.delivered += bytes;
            self.delivered_ps = now_ps;
            if self.delivered > self.app_limited_until {
                self.app_limited_until = 0;
            }
        }
    }

    /// Returns the rate, in bytes per second, at which the data acknowledged since the newest delivered segment was
    /// sent were delivered. The time is that of their sending or that of their acknowledgment, whichever is longer.
    /// Returns `None` if it is zero or shorter than the smallest round-trip time.
    fn sample(&mut self, newest: &Record, rtt_min_ps: u64) -> Option<u64> {
        let sending_ps = newest.sent_ps.saturating_sub(newest.first_sent_ps);
        let acking_ps = self.delivered_ps.saturating_sub(newest.delivered_ps);
        self.first_sent_ps = newest.sent_ps;
        let interval_ps = sending_ps.max(acking_ps);
        if interval_ps == 0 || interval_ps < rtt_min_ps {
            return None;
        }
        let bytes = self.delivered - newest.delivered;
        Some(scaled(bytes, 1_000_000_000_000, interval_ps))
    }
}

/// Proportional rate reduction: the bytes delivered and sent in this recovery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Proportional {
    delivered: u64,
    sent: u64,
    flight_at_entry: u64,
}

impl Proportional {
    /// Computes how many bytes may be sent after `delivered` more bytes have arrived, `pipe` bytes being in flight (RFC
    /// 6937, section 3, with the slow-start reduction bound).
    fn allowance(&mut self, delivered: u64, pipe: u64, ssthresh: u64, mss: u64) -> u64 {
        self.delivered += delivered;
        if pipe > ssthresh {
            let product = u128::from(self.delivered) * u128::from(ssthresh);
            let share = product.div_ceil(u128::from(self.flight_at_entry.max(1)));
            return (share as u64).saturating_sub(self.sent);
        }
        let bound = self.delivered.saturating_sub(self.sent).max(delivered) + mss;
        bound.min(ssthresh - pipe)
    }
}

/// An acknowledgment as the connection saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report<'a> {
    pub(crate) ack: u64,
    pub(crate) blocks: &'a SackBlocks,
    /// The round-trip time that the timestamps measured.
    pub(crate) echo_rtt_ps: Option<u64>,
    /// True if it echoes congestion.
    pub(crate) echoes: bool,
    /// True if it has no data, no FIN and no new window: it is a duplicate (RFC 5681) if it acknowledges nothing new.
    pub(crate) is_bare: bool,
}

impl Sender {
    /// Handles an acknowledgment, with `una <= report.ack <= max`, if segments are tracked one by one (SACK): detects
    /// losses, enters or ends recovery, adapts the window, and restarts timers.
    pub(crate) fn acknowledge_selectively(&mut self, now_ps: u64, report: &Report<'_>) {
        let acked = report.ack - self.una;
        let window_limited = self.is_window_limited();
        let flight = self.flight();
        if acked > 0 {
            self.timeouts_in_row = 0;
            self.statistics.bytes_acknowledged += report.ack.min(self.end) - self.una.min(self.end);
        }
        let before = self.una;
        self.una = report.ack;
        let mut delivery = Delivery {
            highest: self.tracking.highest,
            ..Delivery::default()
        };
        self.tracking
            .scoreboard
            .acknowledge(report.ack, &mut delivery);
        let (reports_duplicate, widens) = self.read_blocks(before, report.blocks, &mut delivery);
        self.tracking.highest = delivery.highest;
        let rtt_ps = self.measure_delivery(now_ps, report, &delivery);
        let lost_before = self.tracking.scoreboard.lost_bytes();
        if acked == 0 && report.is_bare && self.max > self.una && !reports_duplicate {
            self.statistics.duplicate_acks += 1;
            self.duplicates = self.duplicates.saturating_add(1);
        }
        if acked > 0 && self.phase != Phase::Recovery {
            self.duplicates = 0;
            self.limited_bytes = 0;
        }
        self.find_losses(now_ps, &delivery, widens);
        let is_plain = acked == 0 && report.blocks.is_empty();
        self.probe_answered(report.ack, is_plain);
        let grows = !self.end_phase(report.ack);
        if self.has_losses() {
            self.enter_selective_recovery(now_ps, flight);
        }
        self.heed_lost_repeats(now_ps, flight);
        match self.phase {
            Phase::Recovery => self.reduce(delivery.bytes),
            _ if acked > 0 && grows && !report.echoes => {
                self.grow(now_ps, acked, window_limited, rtt_ps);
            }
            _ => {}
        }
        if self.algorithm.has_model() {
            let lost = self.tracking.scoreboard.lost_bytes();
            self.sample(now_ps, &delivery, rtt_ps, lost.saturating_sub(lost_before));
        }
        self.after_acknowledgment(now_ps, acked);
    }

    /// Passes an acknowledgment's measurements to a congestion control algorithm that has a model of the path.
    fn sample(&mut self, now_ps: u64, delivery: &Delivery, rtt_ps: Option<u64>, lost_bytes: u64) {
        let rtt_min_ps = self.rtt.min_ps();
        let rate = &mut self.tracking.rate;
        rate.deliver(now_ps, delivery.bytes);
        let newest = delivery.newest;
        let sample = Sample {
            now_ps,
            delivered_bytes: delivery.bytes,
            lost_bytes,
            rate: newest.and_then(|newest| rate.sample(&newest, rtt_min_ps)),
            total_delivered: rate.delivered,
            prior_delivered: newest.map(|newest| newest.delivered),
            app_limited: newest.is_some_and(|newest| newest.is_app_limited()),
            flight_bytes: self.flight(),
            rtt_ps,
            recovering: self.phase != Phase::Open,
        };
        self.algorithm.on_sample(&mut self.window, &sample);
    }

    /// Processes the SACK blocks of an acknowledgment. Returns whether the first block reports a duplicate (RFC 2883,
    /// section 4), and whether this duplicate indicates reordering.
    fn read_blocks(
        &mut self,
        una_before: u64,
        blocks: &SackBlocks,
        delivery: &mut Delivery,
    ) -> (bool, bool) {
        let (mut reports_duplicate, mut widens) = (false, false);
        let blocks = blocks.blocks();
        let unwrap = |wire| crate::segment::unwrapped(self.una, wire);
        let second = blocks
            .get(1)
            .map(|block| (unwrap(block.0), unwrap(block.1)));
        for (i, block) in blocks.iter().enumerate() {
            let (start, end) = (unwrap(block.0), unwrap(block.1));
            if start >= end || end > self.max {
                continue;
            }
            let in_second = second.is_some_and(|second| start >= second.0 && end <= second.1);
            if i == 0 && (end <= self.una || in_second) {
                // Reports from before the last window are of no use, and perhaps of another connection.
                if start + self.config.window_limit_bytes >= una_before {
                    reports_duplicate = true;
                    self.statistics.duplicates_reported += 1;
                    widens = self.tracking.rack.duplicate_reported(start, end);
                }
            } else if end > self.una {
                let start = start.max(self.una);
                self.tracking.scoreboard.sack(start, end, delivery);
            }
        }
        (reports_duplicate, widens)
    }

    /// Measures the round-trip time at an acknowledgment, and passes it to the retransmission timer once per round
    /// trip. Returns the time, in picoseconds, since the newest delivered segment was sent; `None` if the
    /// acknowledgment delivers nothing new or includes retransmitted segments.
    fn measure_delivery(
        &mut self,
        now_ps: u64,
        report: &Report<'_>,
        delivery: &Delivery,
    ) -> Option<u64> {
        let once = delivery.newest_unrepeated.filter(|_| !delivery.repeated);
        let rtt_ps = once.map(|record| now_ps.saturating_sub(record.sent_ps));
        if let Some(rtt_ps) = rtt_ps {
            self.rtt.observe(rtt_ps);
            self.rtt.end_back_off();
        }
        if let Some(measured_ps) = rtt_ps.or(report.echo_rtt_ps)
            && report.ack > self.round_edge
        {
            self.round_edge = self.max;
            self.rtt.end_back_off();
            self.rtt.sample(now_ps, measured_ps);
        }
        rtt_ps
    }

    /// Marks the segments that are to be considered lost after an acknowledgment, by the rule of the configured
    /// recovery. If `widens` is true, a D-SACK indicated reordering, which RACK answers with a wider reordering
    /// window.
    fn find_losses(&mut self, now_ps: u64, delivery: &Delivery, widens: bool) {
        match self.recovery {
            Recovery::RackTlp { .. } => self.rack_detect(now_ps, delivery, widens),
            _ => {
                let threshold = self.config.duplicate_threshold;
                let scoreboard = &mut self.tracking.scoreboard;
                if scoreboard.has_sacked() {
                    scoreboard.mark_lost_by_sack(threshold, self.mss);
                    // So many duplicates, though too few bytes of small segments (RFC 6675, section 5, step 2).
                    if self.phase == Phase::Open && self.duplicates >= threshold {
                        scoreboard.mark_lost(0);
                    }
                }
            }
        }
    }

    /// Returns true if recovery must begin because segments are lost; false if it, or the phase after a timeout, is
    /// under way already.
    pub(super) fn has_losses(&self) -> bool {
        self.phase == Phase::Open && self.tracking.scoreboard.lost_bytes() > 0
    }

    /// Ends recovery, or the phase after a timeout, if `ack` acknowledges everything that was sent before it. Returns
    /// true if a recovery ended.
    fn end_phase(&mut self, ack: u64) -> bool {
        if self.phase == Phase::Open || ack < self.recover {
            return false;
        }
        let recovered = self.phase == Phase::Recovery;
        if recovered {
            if !self.algorithm.has_model() {
                self.window.cwnd = self.window.ssthresh;
            }
            self.tracking.rack.recovery_ended();
            self.duplicates = 0;
        }
        self.phase = Phase::Open;
        recovered
    }

    /// Enters recovery, and reduces the window unless an ECN echo has reduced it for the same data (RFC 6675, section
    /// 5, step 4; RFC 3168, 6.1.2). `flight` is the number of bytes that were in flight before the loss was noticed.
    pub(super) fn enter_selective_recovery(&mut self, now_ps: u64, flight: u64) {
        self.statistics.fast_recoveries += 1;
        let loss = self.reduction_base_of(flight);
        // Once per window of data, whether by loss or by ECN (RFC 3168, 6.1.2).
        if self.una >= self.reduced_until {
            self.algorithm.on_congestion(&mut self.window, &loss);
        }
        self.phase = Phase::Recovery;
        self.tracking.rescued = false;
        self.begin_reduction(&loss);
        self.stop_measuring();
        self.probe_at_ps = crate::NEVER_PS;
        self.restart_timer(now_ps);
    }

    /// Treats the loss of a retransmission as new congestion and reduces the window (RFC 5681, 4.3), at most once for
    /// all segments sent before the last reduction. Only RACK detects such a loss (RFC 8985, 3.4); with other methods,
    /// the retransmission timer expires.
    pub(super) fn heed_lost_repeats(&mut self, now_ps: u64, flight: u64) {
        let Some(number) = self.tracking.scoreboard.take_lost_again() else {
            return;
        };
        let is_known = number < self.tracking.repeated_before;
        if is_known || self.config.reduction == Reduction::Window || self.algorithm.has_model() {
            return;
        }
        match self.phase {
            Phase::Open => {}
            Phase::Loss => self.enter_selective_recovery(now_ps, flight),
            Phase::Recovery => {
                // The window that this recovery has been going down to, whatever of it is in flight now.
                let from_bytes = self.window.ssthresh;
                self.window.cwnd = from_bytes;
                let loss = Loss::lost(from_bytes);
                self.algorithm.on_congestion(&mut self.window, &loss);
                self.begin_reduction(&loss);
            }
        }
    }

    /// Prepares a reduction of the window: recovery ends when all data sent so far is acknowledged, the first lost
    /// segment is sent again at once, and proportional rate reduction starts counting.
    fn begin_reduction(&mut self, loss: &Loss) {
        self.recover = self.max;
        self.sends_first_again = true;
        self.tracking.window_lowered();
        self.tracking.prr = Proportional {
            flight_at_entry: loss.from_bytes,
            ..Proportional::default()
        };
    }

    /// Sets the congestion window during recovery after `delivered` more bytes have arrived: by proportional rate
    /// reduction if it is configured, else to the threshold. Does nothing for an algorithm with a model of the path.
    pub(super) fn reduce(&mut self, delivered: u64) {
        if self.algorithm.has_model() {
            return;
        }
        let proportional = match self.recovery {
            Recovery::Sack { proportional } | Recovery::RackTlp { proportional, .. } => {
                proportional
            }
            Recovery::NewReno(_) => false,
        };
        let ssthresh = self.window.ssthresh;
        self.window.cwnd = if proportional {
            let pipe = self.flight();
            let allowance = self
                .tracking
                .prr
                .allowance(delivered, pipe, ssthresh, self.mss);
            pipe + allowance
        } else {
            ssthresh
        };
    }

    /// Restarts or stops the retransmission and loss probe timers after an acknowledgment of `acked` new bytes.
    fn after_acknowledgment(&mut self, now_ps: u64, acked: u64) {
        if self.una == self.max {
            self.rto_at_ps = crate::NEVER_PS;
            self.probe_at_ps = crate::NEVER_PS;
        } else if acked > 0 {
            self.restart_timer(now_ps);
            self.schedule_probe(now_ps);
        } else if self.tracking.scoreboard.has_sacked() {
            // Missing segments are known without a probe.
            self.probe_at_ps = crate::NEVER_PS;
        }
    }

    /// Returns the next segment to send if segments are tracked one by one (SACK): a loss probe, a lost segment or new
    /// data (RFC 6675, NextSeg). Returns `None` if nothing may be sent.
    pub(crate) fn next_tracked(&mut self, now_ps: u64) -> Option<Transmission> {
        if self.tail_probe_due {
            self.tail_probe_due = false;
            return self.tail_probe(now_ps);
        }
        if std::mem::take(&mut self.sends_first_again)
            && let Some(index) = self.tracking.scoreboard.next_lost()
        {
            return self.resend(now_ps, index);
        }
        if self.burst_left == 0 || !self.pacing_allows(now_ps) {
            return None;
        }
        if self.phase != Phase::Open
            && let Some(index) = self.tracking.scoreboard.next_lost()
        {
            return self.resend_if_room(now_ps, index);
        }
        if let Some((payload, fin)) = self.allowed(now_ps) {
            self.burst_left -= 1;
            return Some(self.sent(now_ps, self.nxt, payload, fin));
        }
        if self.phase == Phase::Recovery && matches!(self.recovery, Recovery::Sack { .. }) {
            return self.last_resort(now_ps);
        }
        if self.nxt >= self.end && self.flight() < self.window.cwnd {
            let rate = &mut self.tracking.rate;
            let outstanding = self.nxt - self.una;
            rate.app_limited_until = (rate.delivered + outstanding).max(1);
        }
        None
    }

    /// Retransmits a segment by rules 3 and 4 of NextSeg (RFC 6675): one that is not known to be lost, when no segment
    /// is lost and no new data may be sent. Returns `None` if the window has no room or there is no such segment.
    fn last_resort(&mut self, now_ps: u64) -> Option<Transmission> {
        // Before everything in flight is looked at.
        if self.flight() + self.mss > self.window.cwnd {
            return None;
        }
        if let Some(index) = self.tracking.scoreboard.next_unsure() {
            return self.resend_if_room(now_ps, index);
        }
        if self.tracking.rescued {
            return None;
        }
        let index = self.tracking.scoreboard.last_unsacked()?;
        let sent = self.resend_if_room(now_ps, index)?;
        self.tracking.rescued = true;
        Some(sent)
    }

    fn resend_if_room(&mut self, now_ps: u64, index: usize) -> Option<Transmission> {
        // As where a segment leaves first, the FIN needs no room: a last segment that is full would never again fit into the
        // window of one segment that a timeout leaves.
        let (payload, _) = self.content(index)?;
        if self.flight() + payload > self.window.cwnd {
            return None;
        }
        self.burst_left -= 1;
        self.resend(now_ps, index)
    }

    /// Returns the number of payload bytes of the tracked segment at `index`, and whether it contains the FIN; `None`
    /// if there is no such segment.
    fn content(&self, index: usize) -> Option<(u64, bool)> {
        let record = self.tracking.scoreboard.get(index)?;
        let fin = record.end > self.end;
        Some((record.len() - u64::from(fin), fin))
    }

    /// Retransmits the tracked segment at `index`, with the same contents. Returns `None` if there is no such segment.
    pub(crate) fn resend(&mut self, now_ps: u64, index: usize) -> Option<Transmission> {
        let (payload, fin) = self.content(index)?;
        let start = self.tracking.scoreboard.get(index)?.start;
        Some(self.sent(now_ps, start, payload, fin))
    }

    /// Records that the segment from `start` to `end` is sent: for the first time or, if `again` is true, as a
    /// retransmission.
    pub(crate) fn track(&mut self, now_ps: u64, start: u64, end: u64, again: bool) {
        let stamp = self.rate_stamp(now_ps);
        let scoreboard = &mut self.tracking.scoreboard;
        if again {
            let index = scoreboard.position(start);
            scoreboard.push_again(index, now_ps, &stamp);
        } else {
            scoreboard.push(start, end, now_ps, &stamp);
        }
        self.tracking.prr.sent += end - start;
    }

    fn rate_stamp(&mut self, now_ps: u64) -> RateStamp {
        let rate = &mut self.tracking.rate;
        if self.una == self.max {
            // A new flight begins.
            rate.first_sent_ps = now_ps;
            rate.delivered_ps = now_ps;
        }
        RateStamp {
            delivered: rate.delivered,
            delivered_ps: rate.delivered_ps,
            first_sent_ps: rate.first_sent_ps,
            app_limited: rate.app_limited_until != 0,
        }
    }

    /// Marks segments as lost after a retransmission timeout, if segments are tracked: the first one, and all others
    /// that are not known to have arrived; with RACK only those that were not sent just now (RFC 8985, 6.3).
    pub(crate) fn lose_everything(&mut self, now_ps: u64) {
        if self.tracking.scoreboard.reneges() {
            self.tracking.scoreboard.forget_sacked();
        }
        let una = self.una;
        let patience_ps = match self.recovery {
            // RFC 8985, 6.3: segments sent just now may still arrive.
            Recovery::RackTlp { .. } => self.rack_patience_ps(),
            _ => 0,
        };
        self.tracking.scoreboard.mark_lost_where(|record| {
            record.start == una || record.sent_ps.saturating_add(patience_ps) <= now_ps
        });
        self.tracking.rescued = true;
    }
}
