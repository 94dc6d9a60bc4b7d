//! The sending half: it decides which bytes may leave now, handles acknowledgments, and runs the retransmission timer.
//!
//! It does not know the connection's state or the received data; it starts after the handshake. `recovery` repairs
//! losses, and `congestion` sets the window.

use crate::NEVER_PS;
use crate::config::{Config, NewReno, Recovery, Reduction};
use crate::congestion::{Ack, Algorithm, Control, Echo, Loss, Mark, Silence, Window, scaled};
use crate::rtt::RttEstimator;
use crate::statistics::Statistics;
use recovery::{Report, Tracking};
use wire::int::PathLoad;

pub(crate) mod recovery;

/// The sender's phase of loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No loss is known.
    Open,
    /// Fast recovery, until `recover` is acknowledged.
    Recovery,
    /// After a timeout, until `recover` is acknowledged.
    Loss,
}

/// A segment of the stream that is sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transmission {
    pub(crate) sequence: u64,
    pub(crate) payload_bytes: u32,
    pub(crate) fin: bool,
    pub(crate) again: bool,
}

/// The segment whose round-trip time is being measured.
#[derive(Clone, Copy, Debug)]
struct Timed {
    /// An acknowledgment of at least this number acknowledges the segment.
    edge: u64,
    sent_ps: u64,
}

/// The sending half of a connection. Sequence numbers have 64 bits (see `segment::unwrapped`).
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) config: Config,
    /// SND.UNA, the first unacknowledged number.
    pub(crate) una: u64,
    /// SND.NXT, the next number to send; below `max` while data is sent again after a timeout.
    pub(crate) nxt: u64,
    /// The number behind the highest data ever sent.
    pub(crate) max: u64,
    /// The number behind the last byte written.
    pub(crate) end: u64,
    /// True if a FIN follows the last byte.
    pub(crate) fin: bool,
    /// The right edge of the peer's window.
    peer_edge: u64,
    /// The largest window that the other end ever offered.
    peer_window_max: u64,
    pub(crate) mss: u64,
    pub(crate) window: Window,
    pub(crate) algorithm: Algorithm,
    /// Bytes that fast recovery adds to the congestion window, or subtracts from it.
    pub(crate) inflation: i64,
    pub(crate) duplicates: u32,
    /// Bytes sent by limited transmit (RFC 3042) since the first duplicate acknowledgment.
    pub(crate) limited_bytes: u64,
    pub(crate) phase: Phase,
    pub(crate) recover: u64,
    pub(crate) had_partial_ack: bool,
    /// True if the first unacknowledged (or lost) segment is to be sent again, whatever the window.
    pub(crate) sends_first_again: bool,
    pub(crate) burst_left: u32,
    /// The configured recovery, or the one to which the handshake's options restrict it.
    pub(crate) recovery: Recovery,
    /// True if each segment in flight is tracked by itself, which needs selective acknowledgments.
    tracks: bool,
    pub(crate) tracking: Tracking,
    /// True if a tail loss probe is to be sent, whatever the window.
    pub(crate) tail_probe_due: bool,
    pub(crate) rtt: RttEstimator,
    timed: Option<Timed>,
    /// An acknowledgment above this number gives the next round-trip time for the timer.
    pub(crate) round_edge: u64,
    pub(crate) rto_at_ps: u64,
    /// The time at which RACK's reordering timer expires: segments that may only have been overtaken then count as
    /// lost.
    pub(crate) reorder_at_ps: u64,
    /// The time at which the tail loss probe is sent.
    pub(crate) probe_at_ps: u64,
    /// The time at which pacing allows the segment that it delays.
    pace_at_ps: u64,
    /// The time before which pacing allows no further segment.
    paced_until_ps: u64,
    pub(crate) persist_at_ps: u64,
    persist_backoff: u32,
    pub(crate) timeouts_in_row: u32,
    /// The window is reduced again only when data up to this number, sent before the last reduction because of ECN, is
    /// acknowledged.
    pub(crate) reduced_until: u64,
    /// True if the next new data must carry CWR, which tells the peer that the window was reduced.
    cwr_due: bool,
    last_sent_ps: u64,
    /// True if the window was lowered after an idle time, and nothing has been sent since.
    lowered: bool,
    pub(crate) statistics: Statistics,
}

impl Sender {
    /// Creates the sending half of a connection whose SYN has the sequence number `iss`.
    pub(crate) fn new(config: &Config, iss: u64) -> Sender {
        let mss = u64::from(config.mss);
        Sender {
            config: config.clone(),
            una: iss,
            nxt: iss,
            max: iss,
            end: iss + 1,
            fin: false,
            peer_edge: iss + 1,
            peer_window_max: 0,
            mss,
            window: Window {
                cwnd: mss,
                ssthresh: config.initial_ssthresh_bytes.unwrap_or(u64::MAX),
                mss,
            },
            algorithm: Algorithm::new(config, iss as u32),
            inflation: 0,
            duplicates: 0,
            limited_bytes: 0,
            phase: Phase::Open,
            // The check of `recover` compares with "more than": all data is beyond the SYN.
            recover: iss,
            had_partial_ack: false,
            sends_first_again: false,
            burst_left: u32::MAX,
            recovery: config.recovery,
            tracks: false,
            tracking: Tracking::default(),
            tail_probe_due: false,
            rtt: RttEstimator::new(config.rto),
            timed: None,
            round_edge: iss,
            rto_at_ps: NEVER_PS,
            reorder_at_ps: NEVER_PS,
            probe_at_ps: NEVER_PS,
            pace_at_ps: NEVER_PS,
            paced_until_ps: 0,
            persist_at_ps: NEVER_PS,
            persist_backoff: 0,
            timeouts_in_row: 0,
            reduced_until: iss,
            cwr_due: false,
            last_sent_ps: 0,
            lowered: false,
            statistics: Statistics::default(),
        }
    }

    /// Prepares the sender for data after the handshake. `syn_lost` means that our SYN had to be retransmitted, `sack`
    /// that both ends use selective acknowledgments. Sets the initial window, and falls back to NewReno where the other
    /// algorithms need selective acknowledgments.
    pub(crate) fn establish(&mut self, now_ps: u64, syn_lost: bool, sack: bool) {
        self.tracks = sack;
        self.una = self.nxt;
        if !sack && !matches!(self.recovery, Recovery::NewReno(_)) {
            self.recovery = Recovery::NewReno(NewReno::RFC_6582);
        }
        self.window.mss = self.mss;
        // RFC 5681, 3.1: one segment if the SYN was lost.
        let segments = if syn_lost {
            1
        } else {
            u64::from(self.config.initial_window_segments)
        };
        if !sack && self.algorithm.has_model() {
            self.algorithm = Algorithm::without_model(&self.config);
        }
        self.window.cwnd = self
            .algorithm
            .initial_window(self.mss)
            .unwrap_or(segments * self.mss);
        self.algorithm
            .on_established(&self.window, now_ps, self.rtt.srtt_ps());
        self.rto_at_ps = NEVER_PS;
        self.timeouts_in_row = 0;
        self.round_edge = self.nxt;
    }

    /// Returns the number of sequence numbers from the first unacknowledged one to the next to send.
    pub(crate) fn outstanding(&self) -> u64 {
        self.nxt - self.una
    }

    /// Returns the number of bytes that are presumed to be in the network: sent, not acknowledged, and neither lost
    /// nor known to have arrived.
    pub(crate) fn flight(&self) -> u64 {
        if self.tracks {
            self.tracking.scoreboard.pipe(self.outstanding())
        } else {
            self.outstanding()
        }
    }

    /// Returns true if each segment in flight is tracked by itself, which needs selective acknowledgments.
    pub(crate) fn tracks(&self) -> bool {
        self.tracks
    }

    /// Updates the right edge of the peer's window from an acceptable segment with these acknowledgment and window
    /// values, and stops the persist timer if the window has room.
    pub(crate) fn update_peer_window(&mut self, acknowledgment: u64, window: u64) {
        self.peer_edge = acknowledgment + window;
        self.peer_window_max = self.peer_window_max.max(window);
        if self.persist_at_ps != NEVER_PS && self.peer_edge > self.nxt {
            self.persist_at_ps = NEVER_PS;
            self.persist_backoff = 0;
        }
    }

    pub(crate) fn peer_edge(&self) -> u64 {
        self.peer_edge
    }

    /// Begins a burst: resets the number of segments that may be sent until the next event. Called when an
    /// acknowledgment, a timer or new data may allow segments to be sent.
    pub(crate) fn begin_burst(&mut self) {
        self.burst_left = self.config.burst_segments.unwrap_or(u32::MAX);
        if let Recovery::NewReno(details) = self.recovery
            && let Some(most) = details.burst_segments
            && self.duplicates >= self.config.duplicate_threshold
        {
            self.burst_left = self.burst_left.min(most);
        }
    }

    // Segments that leave.

    /// Returns the next segment of the stream to send, and records it as sent; `None` if nothing may be sent now.
    pub(crate) fn next(&mut self, now_ps: u64) -> Option<Transmission> {
        if self.tracks {
            return self.next_tracked(now_ps);
        }
        if self.sends_first_again {
            self.sends_first_again = false;
            let first = self.una;
            if first < self.max {
                let (payload, fin) = self.cut(first, self.max);
                return Some(self.sent(now_ps, first, payload, fin));
            }
        }
        if self.burst_left == 0 {
            return None;
        }
        let (payload, fin) = self.allowed(now_ps)?;
        self.burst_left -= 1;
        Some(self.sent(now_ps, self.nxt, payload, fin))
    }

    /// Returns the contents of a segment that begins at `sequence` and ends at most at `edge`: the number of payload
    /// bytes, and whether it contains the FIN.
    pub(crate) fn cut(&self, sequence: u64, edge: u64) -> (u64, bool) {
        let available = self.end.min(edge).saturating_sub(sequence);
        let payload = available.min(self.mss);
        (payload, self.fin && sequence + payload == self.end)
    }

    /// Returns what the congestion window, the peer's window and Nagle's algorithm allow to be sent at `nxt`: the
    /// number of payload bytes, and whether the FIN follows. Returns `None` if nothing may be sent.
    pub(crate) fn allowed(&mut self, now_ps: u64) -> Option<(u64, bool)> {
        let sequence = self.nxt;
        let (payload, fin) = self.cut(sequence, u64::MAX);
        if payload == 0 && !fin {
            return None;
        }
        self.restart_after_idle(now_ps);
        if !self.window_takes(sequence, payload) {
            return None;
        }
        let room = self.peer_edge.saturating_sub(sequence);
        if payload > room || (payload == 0 && room == 0 && self.una == self.nxt) {
            return self.squeezed(now_ps, room);
        }
        let small = payload < self.mss && !fin && sequence >= self.max;
        if small && self.config.nagle && self.una < self.nxt {
            return None;
        }
        Some((payload, fin))
    }

    /// Reduces the congestion window to the initial one after an idle time longer than the retransmission timeout,
    /// because it no longer describes the path (RFC 5681, 4.1). Leaves it if the algorithm has a model of the path, or
    /// the configuration says so.
    fn restart_after_idle(&mut self, now_ps: u64) {
        if self.una < self.max || !self.config.restarts_after_idle {
            return;
        }
        let idle_ps = now_ps.saturating_sub(self.last_sent_ps);
        if idle_ps > self.rtt.timeout_ps() && !self.algorithm.has_model() {
            let initial = u64::from(self.config.initial_window_segments) * self.mss;
            self.lowered |= initial < self.window.cwnd;
            self.window.cwnd = self.window.cwnd.min(initial);
        }
    }

    /// Reports the end of an idle time to the congestion control if nothing is in flight when a segment is sent.
    fn end_silence(&mut self, now_ps: u64) {
        if self.una < self.max {
            return;
        }
        let silence = Silence {
            now_ps,
            idle_ps: now_ps.saturating_sub(self.last_sent_ps),
            lowered: std::mem::take(&mut self.lowered),
        };
        self.algorithm.on_silence(&silence);
    }

    /// Returns the number of payload bytes to send if the peer's window has room for less than a full segment: all the
    /// room, if that avoids silly windows (RFC 9293, 3.8.6.2.1). Otherwise returns `None`, and starts the persist timer
    /// if nothing is in flight.
    fn squeezed(&mut self, now_ps: u64, room: u64) -> Option<(u64, bool)> {
        if room > 0 && room >= self.mss.min(self.peer_window_max / 2) {
            return Some((room, false));
        }
        if self.una == self.nxt && self.persist_at_ps == NEVER_PS {
            self.persist_at_ps = now_ps.saturating_add(self.persist_ps());
        }
        None
    }

    fn persist_ps(&self) -> u64 {
        let backed_off = self
            .rtt
            .timeout_ps()
            .saturating_mul(1 << self.persist_backoff);
        backed_off.min(self.config.rto.maximum_ps)
    }

    /// Counts a window probe, which the expired persist timer makes due, and restarts the timer with a longer delay.
    pub(crate) fn on_persist(&mut self, now_ps: u64) {
        self.persist_backoff = (self.persist_backoff + 1).min(31);
        self.persist_at_ps = now_ps.saturating_add(self.persist_ps());
        self.statistics.window_probes += 1;
    }

    /// Returns true if the congestion window and the configured limit allow `payload` bytes to be sent at `sequence`.
    fn window_takes(&self, sequence: u64, payload: u64) -> bool {
        if sequence + payload > self.una + self.config.window_limit_bytes {
            return false;
        }
        if self.tracks {
            // Without limited transmit, what arrived out of order makes no room until it is clear why.
            let waits = self.phase == Phase::Open && !self.config.limited_transmit;
            let flight = if waits {
                self.outstanding()
            } else {
                self.flight()
            };
            return flight + payload <= self.window.cwnd;
        }
        let mut inflation = self.inflation;
        if self.phase == Phase::Open && self.config.limited_transmit {
            inflation += i64::from(self.duplicates.min(2)) * self.mss as i64;
        }
        let window = self.window.cwnd.saturating_add_signed(inflation);
        sequence + payload <= self.una.saturating_add(window)
    }

    /// Records that a segment is sent, and starts the timers that it needs. Returns the segment. `fin` is true if the
    /// segment has the FIN flag, which takes one sequence number.
    pub(crate) fn sent(
        &mut self,
        now_ps: u64,
        sequence: u64,
        payload: u64,
        fin: bool,
    ) -> Transmission {
        let edge = sequence + payload + u64::from(fin);
        let again = sequence < self.max;
        if self.duplicates > 0 && self.phase == Phase::Open && !again {
            self.limited_bytes += payload;
        }
        self.end_silence(now_ps);
        self.statistics.bytes_sent += payload;
        self.statistics.segments_sent += 1;
        if again {
            self.statistics.segments_retransmitted += 1;
            self.statistics.bytes_retransmitted += payload.min(self.max - sequence);
        } else if self.timed.is_none() && !self.tracks {
            self.timed = Some(Timed {
                edge,
                sent_ps: now_ps,
            });
        }
        if self.tracks {
            self.track(now_ps, sequence, edge, again);
            self.pace(now_ps, payload);
        }
        self.last_sent_ps = now_ps;
        self.nxt = self.nxt.max(edge);
        self.max = self.max.max(edge);
        if self.rto_at_ps == NEVER_PS {
            self.restart_timer(now_ps);
        }
        if self.tracks && !again {
            self.schedule_probe(now_ps);
        }
        Transmission {
            sequence,
            payload_bytes: payload as u32,
            fin,
            again,
        }
    }

    // The effects of an acknowledgment.

    /// Handles an acknowledgment of new data, with `una < report.ack <= max`, if segments are not tracked one by one
    /// (no SACK): measures the round-trip time, grows the window or continues recovery, and restarts the retransmission
    /// timer.
    pub(crate) fn acknowledge(&mut self, now_ps: u64, report: &Report<'_>) {
        let ack = report.ack;
        let acked = ack - self.una;
        let window_limited = self.is_window_limited();
        self.timeouts_in_row = 0;
        self.statistics.bytes_acknowledged += ack.min(self.end) - self.una.min(self.end);
        let rtt_ps = self.measure(now_ps, ack, report.echo_rtt_ps);
        self.una = ack;
        self.nxt = self.nxt.max(ack);
        let mut restarts = true;
        match self.phase {
            Phase::Recovery => restarts = self.acknowledge_in_recovery(now_ps, acked),
            Phase::Open | Phase::Loss => {
                self.inflation = 0;
                self.duplicates = 0;
                self.limited_bytes = 0;
                // RFC 3168, 6.1.2: an echo of congestion does not open the window.
                if !report.echoes {
                    self.grow(now_ps, acked, window_limited, rtt_ps);
                }
                if self.phase == Phase::Loss && ack >= self.recover {
                    self.phase = Phase::Open;
                }
            }
        }
        if self.una == self.max {
            self.rto_at_ps = NEVER_PS;
        } else if restarts {
            self.restart_timer(now_ps);
        }
    }

    /// Reports `acked` newly acknowledged bytes to the congestion control, which grows the window. If the
    /// configuration validates windows and the congestion window does not limit the sender, reports only that the
    /// window was not used up. `window_limited` is true if the congestion window does limit it; `rtt_ps` is the
    /// round-trip time that the acknowledgment measured, if any.
    pub(crate) fn grow(
        &mut self,
        now_ps: u64,
        acked: u64,
        window_limited: bool,
        rtt_ps: Option<u64>,
    ) {
        if self.config.window_validation && !window_limited {
            return self.algorithm.on_unused(now_ps);
        }
        // While sending again after a timeout, one acknowledgment may cover what had arrived before (RFC 3465, 2.3).
        let acked_bytes = match self.phase {
            Phase::Loss => acked.min(self.mss),
            _ => acked,
        };
        let ack = Ack {
            now_ps,
            acked_bytes,
            rtt_ps,
            srtt_ps: self.rtt.srtt_ps(),
            una: self.una,
            max: self.max,
        };
        self.algorithm.on_ack(&mut self.window, &ack);
    }

    /// Returns true if the congestion window limits the sender: if at least half of it is in use in slow start, or no
    /// further segment fits later.
    pub(crate) fn is_window_limited(&self) -> bool {
        let flight = self.outstanding();
        if self.window.in_slow_start() {
            2 * flight >= self.window.cwnd
        } else {
            flight + self.mss > self.window.cwnd
        }
    }

    /// Returns the event of a loss now, with the window from which a reduction starts.
    pub(crate) fn reduction_base(&self) -> Loss {
        self.reduction_base_of(self.flight())
    }

    /// Returns the event of a loss, with the window from which a reduction starts if `flight` bytes were in flight
    /// before the loss was noticed.
    pub(crate) fn reduction_base_of(&self, flight: u64) -> Loss {
        let from_bytes = match self.config.reduction {
            // RFC 5681, 3.2, step 2: without what limited transmit added. Segments that arrived out of order still count.
            Reduction::FlightSize => {
                let outstanding = self.outstanding();
                let sent_before = outstanding - self.limited_bytes.min(outstanding);
                sent_before.min(self.window.cwnd.max(flight))
            }
            Reduction::Window => self.window.cwnd,
            Reduction::WholeSegments => {
                let window = self.window.cwnd.saturating_add_signed(self.inflation);
                let usable = window.min(self.config.window_limit_bytes);
                usable / self.mss / 2 * 2 * self.mss
            }
        };
        Loss::lost(from_bytes)
    }

    /// Measures the round-trip time at an acknowledgment up to `ack`, and passes it to the retransmission timer once
    /// per round trip. Does not measure retransmitted data unless timestamps (`echo_rtt_ps`) distinguish the copies.
    /// Returns the measured time in picoseconds; `None` if there is none.
    fn measure(&mut self, now_ps: u64, ack: u64, echo_rtt_ps: Option<u64>) -> Option<u64> {
        if let Some(timed) = self.timed
            && ack >= timed.edge
        {
            self.timed = None;
            self.rtt.end_back_off();
            // In recovery, an acknowledgment may have waited for a hole to be filled.
            if self.phase != Phase::Recovery || ack >= self.recover {
                let rtt_ps = now_ps.saturating_sub(timed.sent_ps);
                self.round_edge = self.max;
                self.rtt.sample(now_ps, rtt_ps);
                return Some(rtt_ps);
            }
        }
        if let Some(rtt_ps) = echo_rtt_ps
            && ack > self.round_edge
        {
            self.round_edge = self.max;
            self.rtt.end_back_off();
            self.rtt.sample(now_ps, rtt_ps);
        }
        echo_rtt_ps
    }

    /// Handles an ECN echo in an acknowledgment up to `ack`: reduces the window once per window of data, and makes the
    /// next new data carry CWR (RFC 3168, 6.1.2). Does nothing during recovery or after a timeout.
    pub(crate) fn on_congestion_echo(&mut self, ack: u64) {
        if self.phase != Phase::Open || ack <= self.reduced_until {
            return;
        }
        self.statistics.ecn_reductions += 1;
        let loss = Loss {
            is_echo: true,
            ..self.reduction_base()
        };
        self.reduce_window(&loss);
        self.reduced_until = self.max;
        self.cwr_due = true;
    }

    /// Reports to the congestion control how many bytes an acknowledgment up to `ack` newly acknowledges, and whether
    /// it echoes congestion (`echoes`).
    pub(crate) fn on_mark(&mut self, ack: u64, echoes: bool) {
        self.algorithm.on_mark(&Mark {
            acked_bytes: ack.saturating_sub(self.una),
            echoes,
            ack,
            next: self.nxt,
        });
    }

    /// Passes the link loads that an acknowledgment echoed in INT headers to the congestion control.
    pub(crate) fn on_load(&mut self, load: &PathLoad) {
        let echo = Echo {
            ack: self.una,
            next: self.nxt,
            load,
        };
        self.algorithm.on_echo(&mut self.window, &echo);
    }

    /// Reduces the congestion window to the new threshold at once because of congestion. An algorithm with a model of
    /// the path sets the window itself.
    pub(crate) fn reduce_window(&mut self, loss: &Loss) {
        self.algorithm.on_congestion(&mut self.window, loss);
        if !self.algorithm.has_model() {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// Returns true if the new data that is sent now must carry CWR, because the window was reduced. Returns true once
    /// for each reduction.
    pub(crate) fn takes_cwr(&mut self) -> bool {
        std::mem::take(&mut self.cwr_due)
    }

    /// Cancels the running measurement of a round-trip time, because the measured segment will be retransmitted, or
    /// waits behind one that will.
    pub(crate) fn stop_measuring(&mut self) {
        self.timed = None;
    }

    // The timer.

    /// Returns the time at which the next timer of the sender expires, in picoseconds; `NEVER_PS` if none runs.
    pub(crate) fn due_ps(&self) -> u64 {
        let recovery = self
            .reorder_at_ps
            .min(self.probe_at_ps)
            .min(self.pace_at_ps);
        self.rto_at_ps.min(self.persist_at_ps).min(recovery)
    }

    pub(crate) fn stop_timers(&mut self) {
        self.rto_at_ps = NEVER_PS;
        self.persist_at_ps = NEVER_PS;
        self.reorder_at_ps = NEVER_PS;
        self.probe_at_ps = NEVER_PS;
        self.pace_at_ps = NEVER_PS;
    }

    /// Returns true if pacing allows a segment to be sent now; otherwise starts the pacing timer.
    pub(crate) fn pacing_allows(&mut self, now_ps: u64) -> bool {
        let allows = self.paced_until_ps <= now_ps;
        if !allows {
            self.pace_at_ps = self.paced_until_ps;
        }
        allows
    }

    /// Delays the next segment by the time that `bytes` bytes take at the congestion control's pacing rate, if it has
    /// one.
    fn pace(&mut self, now_ps: u64, bytes: u64) {
        if let Some(rate) = self.algorithm.pacing_rate() {
            let takes_ps = scaled(bytes, 1_000_000_000_000, rate).min(1 << 50);
            self.paced_until_ps = self.paced_until_ps.max(now_ps).saturating_add(takes_ps);
        }
    }

    /// Handles the timers of pacing, of RACK's reordering window and of the tail loss probe, if they have expired.
    pub(crate) fn on_recovery_timers(&mut self, now_ps: u64) {
        if self.pace_at_ps <= now_ps {
            self.pace_at_ps = NEVER_PS;
            self.begin_burst();
        }
        if self.reorder_at_ps <= now_ps {
            self.on_reorder_timer(now_ps);
            self.begin_burst();
        }
        if self.probe_at_ps <= now_ps {
            self.on_probe_timer();
        }
    }

    pub(crate) fn restart_timer(&mut self, now_ps: u64) {
        self.rto_at_ps = now_ps.saturating_add(self.rtt.timeout_ps());
    }

    /// Handles the expired retransmission timer (RFC 5681, 3.1 and 4; RFC 6298, 5.4 to 5.6): reduces the window to one
    /// segment, prepares everything unacknowledged to be sent again, and doubles the timeout.
    pub(crate) fn on_timeout(&mut self, now_ps: u64) {
        self.statistics.timeouts += 1;
        self.timeouts_in_row += 1;
        let inflation = std::mem::take(&mut self.inflation);
        let mut loss = self.reduction_base();
        if self.config.reduction == Reduction::FlightSize {
            // Segments that recovery let out because duplicates told that as many had left are not in flight too. Counted, the threshold
            // would be above any window that the path ever carried, and each slow start would overshoot anew (RFC 5681, 3.1:
            // "no more than" equation 4).
            loss.from_bytes = loss.from_bytes.saturating_sub(inflation.max(0) as u64);
        }
        let keeps_threshold = match self.config.reduction {
            Reduction::FlightSize => self.timeouts_in_row > 1,
            Reduction::Window => self.timeouts_in_row > 1 || self.phase == Phase::Recovery,
            Reduction::WholeSegments => false,
        };
        if !keeps_threshold {
            self.algorithm.on_timeout(&mut self.window, &loss);
        }
        self.window.cwnd = self.mss;
        self.duplicates = 0;
        self.limited_bytes = 0;
        self.sends_first_again = false;
        self.phase = Phase::Loss;
        self.recover = self.max;
        if self.tracks {
            self.forget_probe();
            self.lose_everything(now_ps);
        } else {
            self.nxt = self.una;
        }
        self.tracking.window_lowered();
        self.stop_measuring();
        self.rtt.back_off();
        self.restart_timer(now_ps);
    }

    /// Asserts the invariants of sequence numbers, tracked segments and timers, for tests.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        assert!(self.una <= self.nxt && self.nxt <= self.max);
        assert!(self.max <= self.end + 1);
        if self.tracks {
            self.tracking.scoreboard.check(self.una, self.max);
        }
        let running = [self.rto_at_ps, self.reorder_at_ps, self.probe_at_ps];
        let expected = self.una < self.max;
        assert!(expected || running == [NEVER_PS; 3], "{running:?}");
    }

    /// Returns the counters so far, and the present windows and round-trip times.
    pub(crate) fn statistics(&self) -> Statistics {
        Statistics {
            cwnd_bytes: self.window.cwnd.saturating_add_signed(self.inflation),
            ssthresh_bytes: self.window.ssthresh,
            flight_bytes: self.flight(),
            srtt_ps: self.rtt.srtt_ps(),
            rtt_min_ps: self.rtt.min_ps(),
            rto_ps: self.rtt.timeout_ps(),
            ..self.statistics
        }
    }
}
