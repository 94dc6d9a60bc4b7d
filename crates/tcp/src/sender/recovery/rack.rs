//! RACK-TLP (RFC 8985). RACK marks a segment lost if one that left sufficiently later has arrived. A tail loss probe covers the last
//! segments, behind which no later one could arrive.

use super::scoreboard::Delivery;
use crate::NEVER_PS;
use crate::config::Recovery;
use crate::sender::{Phase, Sender, Transmission};

/// Recoveries after which a reordering window that was widened becomes narrow again (RFC 8985, 6.2, step 4).
const PERSISTENCE: u32 = 16;

/// The state of RACK.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// The newest delivered segment: the time at which it was sent, and the number behind it.
    newest: (u64, u64),
    /// The round-trip time of that segment.
    rtt_ps: u64,
    reordering_seen: bool,
    /// The number of times that the reordering window was widened by a quarter of the smallest round-trip time.
    widened: u32,
    persists: u32,
    /// D-SACKs widen the window again only after data up to this number is acknowledged.
    duplicate_edge: u64,
    window_ps: u64,
    probe: Probe,
}

/// The tail loss probe in flight (RFC 8985, 7.1).
#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    /// SND.NXT when the probe was sent; zero without a probe.
    end: u64,
    /// True if the probe was a retransmission rather than new data.
    again: bool,
    /// The probe's sequence numbers.
    range: (u64, u64),
    /// True if a D-SACK reported that both copies arrived.
    was_spurious: bool,
}

impl Rack {
    /// Records a D-SACK for the numbers from `start` to `end`. Returns true if it indicates reordering; false if it
    /// reports that the loss probe was a needless retransmission.
    pub(crate) fn duplicate_reported(&mut self, start: u64, end: u64) -> bool {
        let probe = &mut self.probe;
        let probed =
            probe.end != 0 && probe.again && start <= probe.range.0 && end >= probe.range.1;
        probe.was_spurious |= probed;
        !probed
    }

    /// Counts a recovery that ended. After enough recoveries, a reordering window that D-SACKs have widened becomes
    /// narrow again.
    pub(crate) fn recovery_ended(&mut self) {
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            self.widened = 0;
        }
    }

    /// Updates the newest delivered segment and its round-trip time from an acknowledgment (RFC 8985, 6.2, step 2).
    /// Ignores a retransmission whose acknowledgment is too early to be an answer to it.
    fn take_in(&mut self, now_ps: u64, delivery: &Delivery, rtt_min_ps: u64) {
        let Some(newest) = delivery.newest else {
            return;
        };
        let rtt_ps = now_ps.saturating_sub(newest.sent_ps);
        // Too early to be the answer to the second copy.
        if newest.is_repeated() && rtt_ps < rtt_min_ps {
            return;
        }
        if newest.sent_after(self.newest.0, self.newest.1) {
            self.newest = (newest.sent_ps, newest.end);
            self.rtt_ps = rtt_ps;
        }
    }
}

impl Sender {
    /// Detects losses after an acknowledgment. If `widens` is true, its D-SACK indicated reordering, and the reordering
    /// window becomes wider, at most once per round trip.
    pub(super) fn rack_detect(&mut self, now_ps: u64, delivery: &Delivery, widens: bool) {
        let rtt_min_ps = self.rtt.min_ps();
        let (una, nxt) = (self.una, self.nxt);
        let rack = &mut self.tracking.rack;
        rack.take_in(now_ps, delivery, rtt_min_ps);
        rack.reordering_seen |= delivery.reordered;
        if widens && una >= rack.duplicate_edge {
            rack.duplicate_edge = nxt;
            rack.widened += 1;
            rack.persists = PERSISTENCE;
        }
        self.rack_mark(now_ps);
    }

    /// Returns the reordering window in picoseconds: for so long a segment may be overtaken before it counts as lost
    /// (RFC 8985, 6.2, step 4).
    fn reordering_window_ps(&self) -> u64 {
        let rack = &self.tracking.rack;
        let threshold = u64::from(self.config.duplicate_threshold) * self.mss;
        let sure =
            self.phase != Phase::Open || self.tracking.scoreboard.sacked_bytes() >= threshold;
        if !rack.reordering_seen && sure {
            return 0;
        }
        let quarters = u64::from(rack.widened) + 1;
        (quarters * (self.rtt.min_ps() / 4)).min(self.rtt.srtt_ps())
    }

    /// Returns the time in picoseconds after which a sent segment counts as lost once a later one has been delivered.
    pub(super) fn rack_patience_ps(&self) -> u64 {
        self.tracking.rack.rtt_ps + self.tracking.rack.window_ps
    }

    fn rack_mark(&mut self, now_ps: u64) {
        if self.tracking.rack.newest.1 == 0 {
            return;
        }
        self.tracking.rack.window_ps = self.reordering_window_ps();
        let patience_ps = self.rack_patience_ps();
        let newest = self.tracking.rack.newest;
        let due_ps = self
            .tracking
            .scoreboard
            .mark_lost_by_time(now_ps, newest, patience_ps);
        self.reorder_at_ps = due_ps.unwrap_or(NEVER_PS);
    }

    /// Handles the expired reordering timer: marks as lost the segments that have not arrived in time, and begins
    /// recovery if there are any.
    pub(crate) fn on_reorder_timer(&mut self, now_ps: u64) {
        self.reorder_at_ps = NEVER_PS;
        let flight = self.flight();
        self.rack_mark(now_ps);
        if self.has_losses() {
            self.enter_selective_recovery(now_ps, flight);
        }
        self.heed_lost_repeats(now_ps, flight);
        if self.phase == Phase::Recovery {
            self.reduce(0);
        }
    }

    // Tail loss probes.

    /// Starts the timer of the tail loss probe at `now_ps` if a probe may be sent (RFC 8985, 7.2), and stops it
    /// otherwise. Called when new data is sent and when data is acknowledged.
    pub(crate) fn schedule_probe(&mut self, now_ps: u64) {
        let Recovery::RackTlp { ack_delay_ps, .. } = self.recovery else {
            return;
        };
        self.probe_at_ps = NEVER_PS;
        let may = self.phase == Phase::Open
            && !self.tracking.scoreboard.has_sacked()
            && self.tracking.rack.probe.end == 0
            && self.una < self.max;
        if !may {
            return;
        }
        let srtt_ps = self.rtt.srtt_ps();
        let mut wait_ps = if srtt_ps == 0 {
            self.config.rto.initial_ps
        } else {
            2 * srtt_ps
        };
        // A single segment, with the FIN or without.
        if self.max.min(self.end).saturating_sub(self.una) <= self.mss {
            wait_ps = wait_ps.saturating_add(ack_delay_ps);
        }
        // Where the timeout would come first, the probe takes its place, and the timer starts anew (RFC 8985, 7.2 and 7.3).
        self.probe_at_ps = now_ps.saturating_add(wait_ps).min(self.rto_at_ps);
    }

    /// Makes a tail loss probe the next segment to be sent, after its timer has expired and if data is unacknowledged
    /// (RFC 8985, 7.3).
    pub(crate) fn on_probe_timer(&mut self) {
        self.probe_at_ps = NEVER_PS;
        self.tail_probe_due = self.una < self.max;
    }

    /// Returns true if the tail loss probe's timer has expired, so that a probe replaces the retransmission timeout;
    /// then also restarts the retransmission timer.
    pub(crate) fn probes_instead(&mut self, now_ps: u64) -> bool {
        let probes = self.probe_at_ps <= now_ps && self.una < self.max;
        if probes {
            self.restart_timer(now_ps);
        }
        probes
    }

    /// Sends the tail loss probe: new data if there is any and the peer's window allows it, else the last segment
    /// again. Returns `None` if there is neither.
    pub(super) fn tail_probe(&mut self, now_ps: u64) -> Option<Transmission> {
        self.statistics.tail_loss_probes += 1;
        let own_edge = self.una + self.config.window_limit_bytes;
        let (payload, fin) = self.cut(self.nxt, self.peer_edge().min(own_edge));
        let sent = if payload > 0 || fin {
            self.sent(now_ps, self.nxt, payload, fin)
        } else {
            let index = self.tracking.scoreboard.last_unsacked()?;
            self.resend(now_ps, index)?
        };
        let len = u64::from(sent.payload_bytes) + u64::from(sent.fin);
        self.tracking.rack.probe = Probe {
            end: self.nxt,
            again: sent.again,
            range: (sent.sequence, sent.sequence + len),
            was_spurious: false,
        };
        self.restart_timer(now_ps);
        Some(sent)
    }

    /// Decides from an acknowledgment up to `ack` whether the tail loss probe repaired a loss, and reduces the window
    /// if so (RFC 8985, 7.4). `is_plain` means that the acknowledgment neither acknowledges new data nor has SACK
    /// blocks.
    pub(super) fn probe_answered(&mut self, ack: u64, is_plain: bool) {
        let probe = self.tracking.rack.probe;
        if probe.end == 0 || ack < probe.end {
            return;
        }
        if !probe.again || probe.was_spurious {
            self.tracking.rack.probe = Probe::default();
        } else if ack > probe.end {
            // The last segment was lost and only the probe arrived: congestion, as if it had been found otherwise.
            self.tracking.rack.probe = Probe::default();
            if self.phase == Phase::Open {
                let loss = self.reduction_base();
                self.reduce_window(&loss);
            }
        } else if is_plain {
            // A duplicate acknowledgment without D-SACK, for both copies.
            self.tracking.rack.probe = Probe::default();
        }
    }

    /// Forgets the tail loss probe, and stops its timer and the reordering timer, after a retransmission timeout.
    pub(crate) fn forget_probe(&mut self) {
        self.tracking.rack.probe = Probe::default();
        self.probe_at_ps = NEVER_PS;
        self.reorder_at_ps = NEVER_PS;
        self.tail_probe_due = false;
    }
}
