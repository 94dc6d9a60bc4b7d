//! The state of every segment in flight: its time of sending, and whether it arrived (SACK), counts as lost, or was
//! sent again. It decides nothing; RFC 6675 and RACK-TLP mark segments, and the counts give the pipe.

use crate::intervals::IntervalSet;
use std::collections::VecDeque;

/// Flag: the peer has the segment.
const SACKED: u8 = 1;
/// Flag: the segment counts as lost.
const LOST: u8 = 1 << 1;
/// Flag: the segment was retransmitted, and that copy counts as being in flight.
const AGAIN: u8 = 1 << 2;
/// Flag: the segment was sent more than once, at whatever time.
const REPEATED: u8 = 1 << 3;
/// Flag: the segment was sent while the application had too little to send.
const APP_LIMITED: u8 = 1 << 4;

/// A segment in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) start: u64,
    /// The number behind the segment, a FIN included.
    pub(crate) end: u64,
    /// When the segment was last sent.
    pub(crate) sent_ps: u64,
    /// Bytes delivered at that time, and the time of the last delivery (the delivery rate of BBR).
    pub(crate) delivered: u64,
    pub(crate) delivered_ps: u64,
    /// When the flight that the segment belongs to began.
    pub(crate) first_sent_ps: u64,
    flags: u8,
}

impl Record {
    pub(crate) fn len(&self) -> u64 {
        self.end - self.start
    }

    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn is_sacked(&self) -> bool {
        self.is(SACKED)
    }

    pub(crate) fn is_repeated(&self) -> bool {
        self.is(REPEATED)
    }

    pub(crate) fn is_app_limited(&self) -> bool {
        self.is(APP_LIMITED)
    }

    /// Returns true if this segment was sent after the one that was sent at `sent_ps` and ends at `end`: later, or at
    /// the same time with a higher sequence number (RFC 8985, 5.2, step 2).
    pub(crate) fn sent_after(&self, sent_ps: u64, end: u64) -> bool {
        (self.sent_ps, self.end) > (sent_ps, end)
    }
}

/// The state of delivery when a segment is sent, for the delivery rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateStamp {
    pub(crate) delivered: u64,
    pub(crate) delivered_ps: u64,
    pub(crate) first_sent_ps: u64,
    pub(crate) app_limited: bool,
}

/// The data that one acknowledgment reports as delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivery {
    /// Bytes that were not known before to have arrived.
    pub(crate) bytes: u64,
    /// The bytes of these that were selectively acknowledged.
    pub(crate) sacked_bytes: u64,
    /// The delivered segment that was sent last.
    pub(crate) newest: Option<Record>,
    /// The segment that was sent last among those sent once.
    pub(crate) newest_unrepeated: Option<Record>,
    /// Highest number delivered so far; kept from one acknowledgment to the next.
    pub(crate) highest: u64,
    /// True if a segment that was sent only once arrived after a segment with higher sequence numbers.
    pub(crate) reordered: bool,
    /// True if a delivered segment was sent more than once: segments acknowledged with it may have waited for it.
    pub(crate) repeated: bool,
}

impl Delivery {
    fn add(&mut self, record: &Record) {
        self.bytes += record.len();
        let newer = |than: &Option<Record>| {
            than.is_none_or(|newest| record.sent_after(newest.sent_ps, newest.end))
        };
        if newer(&self.newest) {
            self.newest = Some(*record);
        }
        self.repeated |= record.is_repeated();
        if !record.is_repeated() {
            if newer(&self.newest_unrepeated) {
                self.newest_unrepeated = Some(*record);
            }
            self.reordered |= record.end < self.highest;
        }
        self.highest = self.highest.max(record.end);
    }
}

/// The segments in flight, in order, without gaps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    records: VecDeque<Record>,
    sacked: IntervalSet,
    sacked_bytes: u64,
    lost_bytes: u64,
    again_bytes: u64,
    /// First of the numbers between which all lost segments lie that must be retransmitted.
    resend_from: u64,
    resend_until: u64,
    /// The number below which every segment that was sent only once has arrived or is marked as lost.
    undecided_from: u64,
    /// Retransmissions, in the order of sending. Those of segments that were acknowledged or sent yet again meanwhile
    /// are skipped.
    repeats: VecDeque<Repeat>,
    /// The number of retransmissions so far.
    repeated: u64,
    /// The number of the last retransmission that was lost, until it is taken.
    lost_again: Option<u64>,
}

/// A retransmission.
#[derive(Clone, Copy, Debug)]
struct Repeat {
    sent_ps: u64,
    start: u64,
    /// The number of retransmissions before this one.
    number: u64,
}

impl Scoreboard {
    /// Adds a segment, the numbers from `start` to `end`, that is sent for the first time.
    pub(crate) fn push(&mut self, start: u64, end: u64, now_ps: u64, stamp: &RateStamp) {
        let limited = if stamp.app_limited { APP_LIMITED } else { 0 };
        self.records.push_back(Record {
            start,
            end,
            sent_ps: now_ps,
            delivered: stamp.delivered,
            delivered_ps: stamp.delivered_ps,
            first_sent_ps: stamp.first_sent_ps,
            flags: limited,
        });
    }

    /// Records that the segment at `index` is retransmitted. Does nothing if there is no such segment.
    pub(crate) fn push_again(&mut self, index: usize, now_ps: u64, stamp: &RateStamp) {
        let Some(record) = self.records.get_mut(index) else {
            return;
        };
        if !record.is(AGAIN) {
            self.again_bytes += record.len();
        }
        record.flags |= AGAIN | REPEATED;
        record.sent_ps = now_ps;
        record.delivered = stamp.delivered;
        record.delivered_ps = stamp.delivered_ps;
        record.first_sent_ps = stamp.first_sent_ps;
        self.repeats.push_back(Repeat {
            sent_ps: now_ps,
            start: record.start,
            number: self.repeated,
        });
        self.repeated += 1;
    }

    /// Returns the number of retransmissions so far.
    pub(crate) fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Returns the number of the latest retransmission that has been lost since the last call; `None` if there is none.
    pub(crate) fn take_lost_again(&mut self) -> Option<u64> {
        self.lost_again.take()
    }

    /// Computes how many of the `outstanding` unacknowledged bytes are presumed to be in the network (RFC 6675,
    /// SetPipe).
    pub(crate) fn pipe(&self, outstanding: u64) -> u64 {
        outstanding + self.again_bytes - self.sacked_bytes - self.lost_bytes
    }

    pub(crate) fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// Returns the number of bytes in segments marked as lost, whether retransmitted or not.
    pub(crate) fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    pub(crate) fn has_sacked(&self) -> bool {
        self.sacked_bytes > 0
    }

    /// Subtracts `bytes` bytes from the totals of arrived, lost and retransmitted bytes in which the record is counted.
    fn discount(&mut self, record: &Record, bytes: u64) {
        if record.is(SACKED) {
            self.sacked_bytes -= bytes;
        }
        if record.is(LOST) {
            self.lost_bytes -= bytes;
        }
        if record.is(AGAIN) {
            self.again_bytes -= bytes;
        }
    }

    /// Removes all data below `una`, which has been acknowledged, and adds to `delivery` what was not known to have
    /// arrived.
    pub(crate) fn acknowledge(&mut self, una: u64, delivery: &mut Delivery) {
        while let Some(record) = self.records.front().copied()
            && record.end <= una
        {
            self.records.pop_front();
            self.discount(&record, record.len());
            if !record.is_sacked() {
                delivery.add(&record);
            }
        }
        if let Some(mut record) = self.records.front().copied()
            && record.start < una
        {
            // A part of a segment: the remainder keeps its marks.
            self.discount(&record, una - record.start);
            if !record.is_sacked() {
                delivery.bytes += una - record.start;
            }
            record.start = una;
            self.records[0] = record;
        }
        if !self.sacked.is_empty() {
            self.sacked.remove_below(una);
        }
        while let Some(first) = self.repeats.front()
            && first.start < una
        {
            self.repeats.pop_front();
        }
    }

    /// Marks the numbers `[start, end)` as selectively acknowledged, and adds the segments that are completely so to
    /// `delivery`. They must lie between the first unacknowledged number and the last number sent.
    pub(crate) fn sack(&mut self, start: u64, end: u64, delivery: &mut Delivery) {
        if self
            .sacked
            .containing(start)
            .is_some_and(|known| end <= known.1)
        {
            return;
        }
        // Only where something is new is looked at: blocks repeat with every acknowledgment.
        let (mut from, mut to) = (u64::MAX, 0);
        let merged = self.sacked.insert(start, end, |left, right| {
            from = from.min(left);
            to = to.max(right);
        });
        self.mark_sacked(from, to, merged, delivery);
    }

    /// Marks as arrived those segments that overlap `[from, to)` and lie completely in the selectively acknowledged
    /// interval `merged`, and adds them to `delivery`.
    fn mark_sacked(&mut self, from: u64, to: u64, merged: (u64, u64), delivery: &mut Delivery) {
        let mut index = self.records.partition_point(|record| record.end <= from);
        while let Some(record) = self.records.get(index).copied()
            && record.start < to
        {
            let whole = record.start >= merged.0 && record.end <= merged.1;
            if whole && !record.is_sacked() {
                self.discount(&record, record.len());
                self.sacked_bytes += record.len();
                delivery.sacked_bytes += record.len();
                delivery.add(&record);
                self.records[index].flags = (record.flags | SACKED) & !(LOST | AGAIN);
            }
            index += 1;
        }
    }

    /// Marks the segment at `index` as lost, its retransmission included. Does nothing if it has arrived, or there is
    /// no such segment.
    pub(crate) fn mark_lost(&mut self, index: usize) {
        let Some(record) = self.records.get_mut(index) else {
            return;
        };
        if record.is_sacked() {
            return;
        }
        if !record.is(LOST) {
            self.lost_bytes += record.len();
        }
        if record.is(AGAIN) {
            self.again_bytes -= record.len();
        }
        record.flags = (record.flags | LOST) & !AGAIN;
        self.resend_from = self.resend_from.min(record.start);
        self.resend_until = self.resend_until.max(record.end);
    }

    /// Marks every segment as lost for which `decides` returns true, except for those that were selectively
    /// acknowledged.
    pub(crate) fn mark_lost_where(&mut self, decides: impl Fn(&Record) -> bool) {
        for index in 0..self.records.len() {
            if decides(&self.records[index]) {
                self.mark_lost(index);
            }
        }
    }

    /// Forgets all selective acknowledgments, because the peer discarded the data (RFC 2018, section 8).
    pub(crate) fn forget_sacked(&mut self) {
        self.sacked = IntervalSet::default();
        self.sacked_bytes = 0;
        self.undecided_from = 0;
        for record in &mut self.records {
            record.flags &= !SACKED;
        }
    }

    /// Returns true if the first segment was selectively acknowledged but is not acknowledged, as happens only if the
    /// peer discards data that it has received (RFC 2018, section 8).
    pub(crate) fn reneges(&self) -> bool {
        self.records.front().is_some_and(Record::is_sacked)
    }

    /// Returns the index of the first lost segment that has not been retransmitted; `None` if there is none.
    pub(crate) fn next_lost(&mut self) -> Option<usize> {
        if self.lost_bytes == 0 {
            return None;
        }
        let mut index = self.position(self.resend_from);
        while let Some(record) = self.records.get(index)
            && record.start < self.resend_until
        {
            if record.is(LOST) && !record.is(AGAIN) {
                self.resend_from = record.start;
                return Some(index);
            }
            index += 1;
        }
        self.resend_from = self.resend_until;
        None
    }

    /// Returns the index of the first segment below the highest selectively acknowledged data that is neither
    /// selectively acknowledged, lost nor retransmitted; `None` if there is none. Starts at the first segment that may
    /// be undecided, and skips selectively acknowledged runs, which may be long.
    pub(crate) fn next_unsure(&self) -> Option<usize> {
        let highest = self.sacked.last()?.0;
        let mut index = self.position(self.undecided_from);
        while let Some(record) = self.records.get(index)
            && record.start < highest
        {
            if record.flags & (SACKED | AGAIN | LOST) == 0 {
                return Some(index);
            }
            index = match self.sacked.containing(record.start) {
                Some(run) if record.is_sacked() => self.position(run.1).max(index + 1),
                _ => index + 1,
            };
        }
        None
    }

    /// Returns the index of the last segment that is not selectively acknowledged; `None` if there is none.
    pub(crate) fn last_unsacked(&self) -> Option<usize> {
        (0..self.records.len())
            .rev()
            .find(|&index| !self.records[index].is_sacked())
    }

    /// Returns the index of the segment that contains `sequence`, or else of the first one behind it; the number of
    /// segments if there is none.
    pub(crate) fn position(&self, sequence: u64) -> usize {
        // Where nothing is out of order, it is the first.
        if self
            .records
            .front()
            .is_none_or(|first| sequence < first.end)
        {
            return 0;
        }
        self.records
            .partition_point(|record| record.end <= sequence)
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Record> {
        self.records.get(index)
    }

    /// Marks as lost the segments for which IsLost of RFC 6675 is true: above each of them, at least `threshold`
    /// separate runs, or more than `threshold - 1` full segments of bytes, are selectively acknowledged.
    pub(crate) fn mark_lost_by_sack(&mut self, threshold: u32, mss: u64) {
        let edge = self
            .sacked
            .edge_above(threshold, u64::from(threshold - 1) * mss);
        let Some(edge) = edge.filter(|&edge| edge > self.undecided_from) else {
            return;
        };
        let mut index = self.position(self.undecided_from);
        while let Some(record) = self.records.get(index)
            && record.end <= edge
        {
            if record.flags & (SACKED | LOST | AGAIN) == 0 {
                self.mark_lost(index);
            }
            index += 1;
        }
        self.undecided_from = edge;
    }

    /// Marks as lost the segments that were sent before the newest delivered segment `rack` and at least `patience_ps`
    /// picoseconds ago (RFC 8985, 6.2, step 5). Returns the time at which the next segment will be lost; `None` if
    /// there is none.
    pub(crate) fn mark_lost_by_time(
        &mut self,
        now_ps: u64,
        rack: (u64, u64),
        patience_ps: u64,
    ) -> Option<u64> {
        let first = self.mark_first_copies(now_ps, rack, patience_ps);
        let again = self.mark_repeats(now_ps, rack, patience_ps);
        match (first, again) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Marks lost segments among those sent only once, which are in the order of sending, by the rule of
    /// [`Scoreboard::mark_lost_by_time`]. Returns the time at which the next one will be lost; `None` if there is none.
    fn mark_first_copies(
        &mut self,
        now_ps: u64,
        rack: (u64, u64),
        patience_ps: u64,
    ) -> Option<u64> {
        let mut index = self.position(self.undecided_from);
        while let Some(record) = self.records.get(index).copied() {
            if record.flags & (SACKED | LOST | REPEATED) == 0 {
                let due_ps = record.sent_ps.saturating_add(patience_ps);
                if record.sent_after(rack.0, rack.1) {
                    break;
                }
                if due_ps > now_ps {
                    self.undecided_from = record.start;
                    return Some(due_ps);
                }
                self.mark_lost(index);
            }
            index += 1;
        }
        self.undecided_from = match self.records.get(index) {
            Some(record) => record.start,
            None => self.records.back().map_or(0, |last| last.end),
        };
        None
    }

    /// Marks lost segments among the retransmitted ones, by the time of their last copy and the rule of
    /// [`Scoreboard::mark_lost_by_time`]. Returns the time at which the next one will be lost; `None` if there is none.
    fn mark_repeats(&mut self, now_ps: u64, rack: (u64, u64), patience_ps: u64) -> Option<u64> {
        while let Some(&repeat) = self.repeats.front() {
            let Repeat { sent_ps, start, .. } = repeat;
            let index = self.position(start);
            let current = self.records.get(index).copied().filter(|record| {
                record.start == start && record.sent_ps == sent_ps && record.is(AGAIN)
            });
            let Some(record) = current else {
                self.repeats.pop_front();
                continue;
            };
            if record.sent_after(rack.0, rack.1) {
                return None;
            }
            let due_ps = sent_ps.saturating_add(patience_ps);
            if due_ps > now_ps {
                return Some(due_ps);
            }
            self.repeats.pop_front();
            self.lost_again = Some(repeat.number);
            self.mark_lost(index);
        }
        None
    }

    /// Asserts that the totals agree with the segments, and that these cover `una` to `max` without gaps, for tests.
    #[cfg(test)]
    pub(crate) fn check(&self, una: u64, max: u64) {
        let ends = self.records.front().zip(self.records.back());
        let (first, last) = ends.map_or((max, max), |(a, b)| (a.start, b.end));
        assert!(una == max || (first, last) == (una, max));
        let sum = |flag: u8| -> u64 {
            let with = self.records.iter().filter(|record| record.is(flag));
            with.map(Record::len).sum()
        };
        assert_eq!(sum(SACKED), self.sacked_bytes);
        assert_eq!(sum(LOST), self.lost_bytes);
        assert_eq!(sum(AGAIN), self.again_bytes);
        assert!(
            self.records
                .iter()
                .zip(self.records.iter().skip(1))
                .all(|(a, b)| a.end == b.start)
        );
    }
}
