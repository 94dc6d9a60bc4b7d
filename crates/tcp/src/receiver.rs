//! The receiving half: it tracks data that arrived in order and out of order, and decides on acknowledgments and the offered window.
//!
//! It does not know the state of our own data or of the connection. It counts bytes and does not store them.

use crate::NEVER_PS;
use crate::config::{Config, Congestion, DelayedAck};
use crate::intervals::IntervalSet;
use crate::segment::EcnCodepoint;
use crate::statistics::Statistics;
use wire::tcp::SackBlocks;

/// An acknowledgment that is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owed {
    /// No acknowledgment is owed.
    Nothing,
    /// An acknowledgment is owed at the latest when the delayed-acknowledgment timer expires; a data segment may carry
    /// it.
    Later,
    /// An acknowledgment is owed now; a data segment may carry it.
    Now,
    /// An acknowledgment is owed now, in a segment without data, so that it counts as a duplicate.
    Alone,
}

/// The receiving half of a connection. Sequence numbers have 64 bits (see `segment::unwrapped`).
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// RCV.NXT, the next number expected.
    pub(crate) nxt: u64,
    /// The first number of the data.
    start: u64,
    out_of_order: IntervalSet,
    /// A number in each of the intervals that grew last, the latest first (RFC 2018, section 4).
    recent: [u64; SackBlocks::MAX],
    /// Data that arrived twice, to be reported once by D-SACK (RFC 2883).
    duplicate: Option<(u64, u64)>,
    /// The number of the FIN, once it is known.
    pub(crate) fin: Option<u64>,
    limit: u64,
    /// The largest payload that we offered to accept in one segment.
    mss: u64,
    reads_at_once: bool,
    /// The bytes received in order and not read.
    unread: u64,
    /// The right edge of the largest window that was offered to the peer.
    offered_edge: u64,
    /// The shift of our window field (RFC 7323).
    pub(crate) shift: u8,
    delayed: Option<DelayedAck>,
    /// The number of segments that are still acknowledged one by one.
    quick_segments: u32,
    unacknowledged_segments: u32,
    pub(crate) owed: Owed,
    pub(crate) ack_at_ps: u64,
    /// True if congestion was experienced. Every acknowledgment echoes it until the peer sends CWR (RFC 3168, 6.1.3).
    pub(crate) echoes_congestion: bool,
    /// True if each acknowledgment echoes its own segment's mark instead (RFC 8257, 3.2).
    echoes_each_mark: bool,
    /// TS.Recent, the timestamp to echo.
    pub(crate) ts_recent: u32,
    /// Last.ACK.sent, the last acknowledgment number sent.
    last_ack: u64,
}

impl Receiver {
    /// Creates a receiver for a connection on which no SYN has arrived yet.
    pub(crate) fn new(config: &Config) -> Receiver {
        Receiver {
            nxt: 0,
            start: 0,
            out_of_order: IntervalSet::default(),
            recent: [0; SackBlocks::MAX],
            duplicate: None,
            fin: None,
            limit: config.window_limit_bytes,
            mss: u64::from(config.mss),
            reads_at_once: config.reads_at_once,
            unread: 0,
            offered_edge: 0,
            shift: 0,
            delayed: config.delayed_ack,
            quick_segments: config.delayed_ack.map_or(0, |d| d.quick_segments),
            unacknowledged_segments: 0,
            owed: Owed::Nothing,
            ack_at_ps: NEVER_PS,
            echoes_congestion: false,
            echoes_each_mark: config.congestion == Congestion::Dctcp,
            ts_recent: 0,
            last_ack: 0,
        }
    }

    /// Sets the next expected sequence number after the peer's SYN, whose number is `irs`.
    pub(crate) fn synchronize(&mut self, irs: u64) {
        self.nxt = irs + 1;
        self.start = irs + 1;
        self.last_ack = irs + 1;
        self.offered_edge = irs + 1;
    }

    /// Returns the shift of the window field (RFC 7323, 2.3) that a receive buffer of `limit` bytes requires: the
    /// smallest with which 16 bits hold the window, at most 14.
    pub(crate) fn shift_for(limit: u64) -> u8 {
        (0..14)
            .find(|&shift| limit >> shift <= 65_535)
            .unwrap_or(14)
    }

    /// Returns the number of payload bytes received in order, each counted once.
    pub(crate) fn received_bytes(&self) -> u64 {
        let fin = self.fin.is_some_and(|fin| self.nxt > fin);
        self.nxt - self.start - u64::from(fin)
    }

    /// Returns true if all data and the FIN have arrived.
    pub(crate) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.nxt > fin)
    }

    /// Removes `bytes` bytes from the receive buffer on behalf of the application. Makes a window update due if the
    /// window grows to a segment or half of the buffer (RFC 9293, 3.8.6.2.2).
    pub(crate) fn read(&mut self, bytes: u64) {
        let before = self.window();
        self.unread -= bytes.min(self.unread);
        // A window update, if it is worth a segment (RFC 9293, 3.8.6.2.2).
        let after = self.window();
        let worth = (self.limit / 2).min(self.mss);
        if before < worth && after >= worth {
            self.owed = self.owed.max(Owed::Now);
        }
    }

    /// Returns the number of free bytes in the receive buffer.
    fn window(&self) -> u64 {
        self.limit - self.unread.min(self.limit)
    }

    /// Returns the value for the header's window field, shifted if `scaled` is true, and remembers the right edge that
    /// it offers to the peer.
    pub(crate) fn offer(&mut self, scaled: bool) -> u16 {
        let shift = if scaled { self.shift } else { 0 };
        // An offered window is not taken back (RFC 9293, 3.8.6), but for the bytes that scaling rounds away.
        let window = self
            .window()
            .max(self.offered_edge.saturating_sub(self.nxt));
        let field = (window >> shift).min(65_535);
        self.offered_edge = self.offered_edge.max(self.nxt + (field << shift));
        field as u16
    }

    /// Returns true if a segment of `len` sequence numbers from `sequence` on overlaps the receive window (RFC 9293,
    /// 3.4).
    pub(crate) fn accepts(&self, sequence: u64, len: u64) -> bool {
        let edge = self.offered_edge.max(self.nxt);
        match (len, edge - self.nxt) {
            (0, 0) => sequence == self.nxt,
            (0, _) => sequence >= self.nxt && sequence < edge,
            (_, 0) => false,
            _ => sequence < edge && sequence + len > self.nxt,
        }
    }

    /// Processes `payload` bytes of data from `sequence` on, in an acceptable segment, and a FIN behind them if `fin`
    /// is true. Stores data out of order, and decides when to acknowledge.
    pub(crate) fn data(
        &mut self,
        now_ps: u64,
        sequence: u64,
        payload: u64,
        fin: bool,
        statistics: &mut Statistics,
    ) {
        let edge = self.offered_edge;
        let full_end = sequence + payload;
        let end = full_end.min(edge);
        if fin && full_end <= edge && self.fin.is_none() {
            self.fin = Some(full_end);
        }
        let fin_here = self.fin == Some(full_end);
        let start = sequence.max(self.nxt);
        if sequence < self.nxt && payload > 0 {
            self.note_duplicate(sequence, end.min(self.nxt), statistics);
        }
        if start >= end && !fin_here {
            self.owed = Owed::Alone;
            return;
        }
        let before = self.nxt;
        let fills = if start > self.nxt {
            self.keep(start, end, statistics);
            true
        } else {
            self.advance(end)
        };
        if self.fin == Some(self.nxt) {
            self.nxt += 1;
        }
        if self.nxt == before {
            self.owed = Owed::Alone;
        } else {
            self.owe(now_ps, fills || fin_here || sequence < before);
        }
    }

    /// Advances the next expected sequence number to `end` if that is higher, and on over stored out-of-order data that
    /// now joins it. Unless data is read at once, the bytes that are contiguous now are added to the unread ones. Returns
    /// true if any out-of-order data was stored before the call.
    fn advance(&mut self, end: u64) -> bool {
        let before = self.nxt;
        self.nxt = self.nxt.max(end);
        let waited = !self.out_of_order.is_empty();
        if waited {
            while let Some((left, right)) = self.out_of_order.first()
                && left <= self.nxt
            {
                self.nxt = self.nxt.max(right);
                self.out_of_order.remove_below(right);
            }
        }
        if !self.reads_at_once {
            self.unread += self.nxt - before;
        }
        waited
    }

    /// Stores data that arrived out of order, and remembers its interval for the next SACK blocks.
    fn keep(&mut self, start: u64, end: u64, statistics: &mut Statistics) {
        if start >= end {
            return;
        }
        let mut new = 0;
        let merged = self
            .out_of_order
            .insert(start, end, |left, right| new += right - left);
        let again = end - start - new;
        if again > 0 {
            statistics.bytes_received_again += again;
            self.duplicate = Some((start, end));
        }
        let known = self
            .recent
            .iter()
            .position(|&at| at >= merged.0 && at < merged.1);
        let last = known.unwrap_or(SackBlocks::MAX - 1);
        self.recent.copy_within(0..last, 1);
        self.recent[0] = start;
    }

    /// Records that the data from `start` to `end` of an unacceptable segment has arrived twice, as far as it is below
    /// the next expected number.
    pub(crate) fn old(&mut self, start: u64, end: u64, statistics: &mut Statistics) {
        self.note_duplicate(start, end.min(self.nxt), statistics);
    }

    fn note_duplicate(&mut self, start: u64, end: u64, statistics: &mut Statistics) {
        if start < end {
            statistics.bytes_received_again += end - start;
            self.duplicate = Some((start, end));
        }
    }

    /// Records that an acknowledgment of data in order is owed. It is owed at once if `now` is true, for the first
    /// segments of a connection (quick mode), for the configured number of segments, or without delayed
    /// acknowledgments; otherwise when the delay has passed.
    fn owe(&mut self, now_ps: u64, now: bool) {
        self.unacknowledged_segments += 1;
        let Some(delayed) = self.delayed else {
            self.owed = self.owed.max(Owed::Now);
            return;
        };
        let quick = self.quick_segments > 0;
        self.quick_segments = self.quick_segments.saturating_sub(1);
        if now || quick || self.unacknowledged_segments >= delayed.every {
            self.owed = self.owed.max(Owed::Now);
        } else {
            self.owed = self.owed.max(Owed::Later);
            if self.ack_at_ps == NEVER_PS {
                self.ack_at_ps = now_ps.saturating_add(delayed.timeout_ps);
            }
        }
    }

    /// Makes the acknowledgment due whose delay has expired.
    pub(crate) fn on_timer(&mut self) {
        self.ack_at_ps = NEVER_PS;
        if self.owed == Owed::Later {
            self.owed = Owed::Now;
        }
    }

    /// Records that a segment with the current acknowledgment is sent, so that none is owed any more.
    pub(crate) fn acknowledged(&mut self) {
        self.owed = Owed::Nothing;
        self.ack_at_ps = NEVER_PS;
        self.unacknowledged_segments = 0;
        self.last_ack = self.nxt;
    }

    /// Returns at most `room` SACK blocks for an acknowledgment (RFC 2018). The first one reports data that arrived
    /// twice, which is reported only once (RFC 2883).
    pub(crate) fn sack_blocks(&mut self, room: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let mut left = room;
        let mut put = |blocks: &mut SackBlocks, block: (u64, u64)| {
            if left > 0 {
                left -= usize::from(blocks.push(block.0 as u32, block.1 as u32));
            }
        };
        if let Some(duplicate) = self.duplicate.take() {
            put(&mut blocks, duplicate);
        }
        if self.out_of_order.is_empty() {
            return blocks;
        }
        let mut told = [(0, 0); SackBlocks::MAX];
        for (i, &at) in self.recent.iter().enumerate() {
            if at >= self.nxt
                && let Some(interval) = self.out_of_order.containing(at)
                && !told[..i].contains(&interval)
            {
                told[i] = interval;
                put(&mut blocks, interval);
            }
        }
        blocks
    }

    /// Returns true if there is data out of order or received twice, to be reported in SACK blocks.
    pub(crate) fn has_blocks(&self) -> bool {
        self.duplicate.is_some() || !self.out_of_order.is_empty()
    }

    /// Processes the ECN codepoint and the CWR flag of an acceptable segment with data, which decide whether
    /// acknowledgments echo congestion (RFC 3168, 6.1.3; RFC 8257, 3.2).
    pub(crate) fn notice_ecn(&mut self, ecn: EcnCodepoint, cwr: bool, statistics: &mut Statistics) {
        if cwr || self.echoes_each_mark {
            self.echoes_congestion = false;
        }
        if ecn == EcnCodepoint::Ce {
            statistics.ce_received += 1;
            self.echoes_congestion = true;
        }
    }

    /// Remembers the timestamp `value` of a segment at `sequence`, to be echoed next, unless it is older or the segment
    /// begins behind the last acknowledgment sent (RFC 7323, 4.3).
    pub(crate) fn notice_timestamp(&mut self, sequence: u64, value: u32) {
        if sequence <= self.last_ack && value.wrapping_sub(self.ts_recent) as i32 >= 0 {
            self.ts_recent = value;
        }
    }
}
