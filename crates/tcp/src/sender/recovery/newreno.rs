//! Fast retransmit and fast recovery from cumulative acknowledgments alone (RFC 5681, 3.2; RFC 6582), with the differences of its two
//! published forms and of ns-2.

use crate::config::{ExitWindow, NewReno, PartialAck, Recovery};
use crate::sender::{Phase, Sender};

impl Sender {
    fn newreno(&self) -> NewReno {
        match self.recovery {
            Recovery::NewReno(details) => details,
            _ => NewReno::RFC_6582,
        }
    }

    /// Handles a duplicate acknowledgment (RFC 5681, 3.2): counts it, and inflates the window during recovery, or
    /// enters recovery if it is the third (the configured threshold).
    pub(crate) fn duplicate(&mut self, now_ps: u64) {
        self.statistics.duplicate_acks += 1;
        self.duplicates = self.duplicates.saturating_add(1);
        let threshold = self.config.duplicate_threshold;
        let mss = self.mss as i64;
        if self.phase == Phase::Recovery {
            self.inflation += mss;
        } else if self.duplicates == threshold && self.una > self.recover {
            self.enter_recovery(now_ps);
        } else if self.duplicates >= threshold && self.newreno().inflates_without_recovery {
            let least = i64::from(threshold) * mss;
            self.inflation = (self.inflation + mss).max(least);
        }
    }

    fn enter_recovery(&mut self, now_ps: u64) {
        self.statistics.fast_recoveries += 1;
        // Once per window of data, whether by loss or by ECN (RFC 3168, 6.1.2).
        if self.una >= self.reduced_until {
            let loss = self.reduction_base();
            self.reduce_window(&loss);
        }
        self.inflation = i64::from(self.config.duplicate_threshold) * self.mss as i64;
        self.limited_bytes = 0;
        self.phase = Phase::Recovery;
        self.recover = self.max;
        self.had_partial_ack = false;
        self.sends_first_again = true;
        self.stop_measuring();
        if self.newreno().restarts_timer_at_entry {
            self.restart_timer(now_ps);
        }
    }

    /// Handles an acknowledgment of `acked` new bytes during recovery, after `una` has advanced: ends recovery, or
    /// retransmits the next segment after a partial acknowledgment. Returns true if the retransmission timer must be
    /// restarted.
    pub(crate) fn acknowledge_in_recovery(&mut self, now_ps: u64, acked: u64) -> bool {
        if self.una >= self.recover {
            self.leave_recovery(now_ps, acked);
            return true;
        }
        let details = self.newreno();
        self.sends_first_again = true;
        if details.partial_window_deflation {
            self.inflation -= acked as i64;
            if acked >= self.mss {
                self.inflation += self.mss as i64;
            }
            // Recovery always keeps a segment's window.
            let least = self.mss as i64 - self.window.cwnd as i64;
            self.inflation = self.inflation.max(least);
        } else {
            self.inflation = 0;
        }
        let first = !self.had_partial_ack;
        self.had_partial_ack = true;
        first || details.partial_ack == PartialAck::SlowButSteady
    }

    fn leave_recovery(&mut self, now_ps: u64, acked: u64) {
        self.phase = Phase::Open;
        self.inflation = 0;
        self.duplicates = 0;
        match self.newreno().exit {
            ExitWindow::AtMostFlight => {
                let flight = self.flight().max(self.mss) + self.mss;
                self.window.cwnd = self.window.ssthresh.min(flight);
            }
            ExitWindow::Ssthresh => self.window.cwnd = self.window.ssthresh,
            ExitWindow::Unchanged => self.grow(now_ps, acked, true, None),
        }
    }
}
