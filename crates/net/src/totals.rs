//! A flow's statistics as it goes, without a log: the definitions are those of [`crate::statistics`], and all numbers the same but for the
//! percentiles, which need every latency.
//!
//! # Memory, and what is exact
//!
//! The sender keeps one line for each time that its host was down. A receiver keeps the numbers that have not arrived, below the largest
//! that has, as intervals: nothing while nothing is missing, one line for each run of packets that are lost or late. Up to [`MOST_GAPS`] lines are
//! kept (some 2 MB), however long ago they began, and as long as no more are needed everything is exact. Beyond, the interval with the
//! smallest numbers is forgotten: its packets count as lost for good, and a packet with a number as small that arrives later, a copy or not, counts as
//! duplicated, and as *undecided* besides. So everything is exact if nothing is undecided.

use crate::statistics::{FlowStatistics, Latency};
use std::collections::BTreeMap;

/// Most intervals of missing numbers that a receiver remembers.
const MOST_GAPS: usize = 1 << 16;

/// The totals of the packets that a flow sent.
#[derive(Debug, Default)]
pub(crate) struct SentTotals {
    count: u64,
    first_ps: u64,
    last_ps: u64,
    /// Runs of packets that are consecutive in the schedule: the sequence number of the first, and its number in the
    /// schedule.
    runs: Vec<(u64, u64)>,
}

impl SentTotals {
    /// Counts a packet that is sent at `now_ps`. `number` is its number in the flow's schedule, which must grow from
    /// call to call; it skips packets that were not sent because the host was down. Returns the packet's sequence
    /// number.
    pub(crate) fn sent(&mut self, now_ps: u64, number: u64) -> u64 {
        let sequence = self.count;
        if self.number_after(sequence) != Some(number) {
            self.runs.push((sequence, number));
        }
        if sequence == 0 {
            self.first_ps = now_ps;
        }
        self.last_ps = now_ps;
        self.count += 1;
        sequence
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number in the flow's schedule of the packet with this sequence number; `None` if none was sent.
    pub(crate) fn number_of(&self, sequence: u64) -> Option<u64> {
        self.number_after(sequence)
            .filter(|_| sequence < self.count)
    }

    /// Returns the number in the flow's schedule that the packet with this sequence number has, or would have if the
    /// host stayed up. Returns `None` if nothing was sent.
    fn number_after(&self, sequence: u64) -> Option<u64> {
        let mut latest_first = self.runs.iter().rev();
        let &(first, number) = latest_first.find(|(first, _)| *first <= sequence)?;
        Some(number + (sequence - first))
    }
}

/// Intervals of sequence numbers that have not arrived.
#[derive(Debug)]
struct Gaps {
    /// The intervals, by first number, with the last number, which is included.
    missing: BTreeMap<u64, u64>,
    most: usize,
    /// The smallest number from which on it is known which numbers are missing.
    known_from: u64,
}

impl Gaps {
    fn with_most(most: usize) -> Gaps {
        Gaps {
            missing: BTreeMap::new(),
            most,
            known_from: 0,
        }
    }

    fn add(&mut self, first: u64, last: u64) {
        self.missing.insert(first, last);
        if self.missing.len() > self.most
            && let Some((_, last)) = self.missing.pop_first()
        {
            self.known_from = last.saturating_add(1);
        }
    }

    /// Removes a number that has arrived from the missing ones. Returns true if it was missing.
    fn take(&mut self, number: u64) -> bool {
        let Some((&first, &last)) = self.missing.range(..=number).next_back() else {
            return false;
        };
        if last < number {
            return false;
        }
        match first == number {
            true => {
                self.missing.remove(&first);
            }
            false => {
                self.missing.insert(first, number - 1);
            }
        }
        if number < last {
            self.add(number + 1, last);
        }
        true
    }
}

/// The times of first copies, in their order of arrival.
#[derive(Clone, Copy, Debug)]
struct Times {
    last_received_ps: u64,
    last_latency_ps: u64,
    longest_gap_ps: u64,
    least_latency_ps: u64,
    most_latency_ps: u64,
    latencies_ps: u128,
    differences_ps: u128,
    jitter_ps: f64,
}

/// The totals of a flow's arrivals at a host.
#[derive(Debug)]
pub(crate) struct ReceivedTotals {
    delivered: u64,
    duplicated: u64,
    undecided: u64,
    reordered: u64,
    largest: Option<u64>,
    gaps: Gaps,
    times: Option<Times>,
}

impl Default for ReceivedTotals {
    fn default() -> ReceivedTotals {
        ReceivedTotals::with_most_gaps(MOST_GAPS)
    }
}

impl ReceivedTotals {
    fn with_most_gaps(most: usize) -> ReceivedTotals {
        ReceivedTotals {
            delivered: 0,
            duplicated: 0,
            undecided: 0,
            reordered: 0,
            largest: None,
            gaps: Gaps::with_most(most),
            times: None,
        }
    }

    /// Counts a packet that has arrived: as delivered, and reordered if a later one arrived before, or as duplicated,
    /// and undecided if it is not known any more whether it had arrived. Times are in picoseconds.
    #[inline]
    pub(crate) fn arrived(&mut self, sequence: u64, sent_ps: u64, received_ps: u64) {
        match self.largest {
            Some(largest) if sequence <= largest => {
                if !self.gaps.take(sequence) {
                    self.duplicated += 1;
                    self.undecided += u64::from(sequence < self.gaps.known_from);
                    return;
                }
                self.reordered += 1;
            }
            largest => {
                let expected = largest.map_or(0, |largest| largest + 1);
                if expected < sequence {
                    self.gaps.add(expected, sequence - 1);
                }
                self.largest = Some(sequence);
            }
        }
        self.delivered += 1;
        self.time(received_ps, received_ps.saturating_sub(sent_ps));
    }

    /// Returns the number of duplicates, and the number of packets that arrived after one with a higher sequence
    /// number.
    pub(crate) fn copies(&self) -> (u64, u64) {
        (self.duplicated, self.reordered)
    }

    fn time(&mut self, received_ps: u64, latency_ps: u64) {
        let Some(times) = &mut self.times else {
            self.times = Some(Times {
                last_received_ps: received_ps,
                last_latency_ps: latency_ps,
                longest_gap_ps: 0,
                least_latency_ps: latency_ps,
                most_latency_ps: latency_ps,
                latencies_ps: latency_ps.into(),
                differences_ps: 0,
                jitter_ps: 0.0,
            });
            return;
        };
        let gap_ps = received_ps.saturating_sub(times.last_received_ps);
        let difference_ps = latency_ps.abs_diff(times.last_latency_ps);
        times.last_received_ps = received_ps;
        times.last_latency_ps = latency_ps;
        times.longest_gap_ps = times.longest_gap_ps.max(gap_ps);
        times.least_latency_ps = times.least_latency_ps.min(latency_ps);
        times.most_latency_ps = times.most_latency_ps.max(latency_ps);
        times.latencies_ps += u128::from(latency_ps);
        times.differences_ps += u128::from(difference_ps);
        times.jitter_ps += (difference_ps as f64 - times.jitter_ps) / 16.0;
    }

    /// Computes the statistics of the flow, without percentiles, from these totals and those of the packets sent.
    /// `interval_ps` is the nominal time between packets in picoseconds.
    pub(crate) fn statistics(&self, sent: &SentTotals, interval_ps: u64) -> FlowStatistics {
        let several = self.times.filter(|_| self.delivered > 1);
        FlowStatistics {
            sent: sent.count,
            delivered: self.delivered,
            lost: sent.count.saturating_sub(self.delivered),
            duplicated: self.duplicated,
            undecided: self.undecided,
            reordered: self.reordered,
            latency: self.times.map(|times| Latency {
                mean_ps: times.latencies_ps as f64 / self.delivered as f64,
                min_ps: times.least_latency_ps,
                p50_ps: None,
                p99_ps: None,
                max_ps: times.most_latency_ps,
            }),
            interarrival_jitter_ps: several.map(|times| times.jitter_ps),
            mean_delay_variation_ps: several
                .map(|times| times.differences_ps as f64 / (self.delivered - 1) as f64),
            longest_outage_ps: self.longest_outage_ps(sent, interval_ps),
        }
    }

    fn longest_outage_ps(&self, sent: &SentTotals, interval_ps: u64) -> u64 {
        if sent.count == 0 {
            return 0;
        }
        let Some(times) = self.times else {
            let sending_ps = sent.last_ps.saturating_sub(sent.first_ps);
            return sending_ps.saturating_add(interval_ps);
        };
        let at_the_end = sent.last_ps.saturating_sub(times.last_received_ps);
        let longest = times.longest_gap_ps.max(at_the_end);
        longest.saturating_sub(interval_ps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_log::{ReceivedLog, SentLog};
    use proptest::prelude::*;

    const INTERVAL_PS: u64 = 10;

    /// Generates what the network does to each packet: the delay in picoseconds of each of its copies.
    fn fates() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let late = prop_oneof![4 => 5u64..8, 2 => 0u64..40, 1 => 0u64..3_000];
        let one = prop::collection::vec(late.clone(), 1);
        let fate = prop_oneof![
            6 => one,
            2 => Just(vec![]),
            2 => prop::collection::vec(late, 2..4),
        ];
        prop::collection::vec(fate, 0..250)
    }

    /// Returns the arrivals in the order in which they happen: sequence number, time of sending, time of arrival.
    fn arrivals(fates: &[Vec<u64>]) -> Vec<(u64, u64, u64)> {
        let copies = (0u64..).zip(fates).flat_map(|(sequence, copies)| {
            let sent_ps = sequence * INTERVAL_PS;
            let one = move |late: &u64| (sequence, sent_ps, sent_ps + late);
            copies.iter().map(one)
        });
        let mut arrivals: Vec<_> = copies.collect();
        arrivals.sort_by_key(|&(_, _, received_ps)| received_ps);
        arrivals
    }

    /// Computes the statistics of the same arrivals twice: from the log, and from totals that remember at most
    /// `most_gaps` gaps.
    fn both(fates: &[Vec<u64>], most_gaps: usize) -> (FlowStatistics, FlowStatistics) {
        let (mut sent, mut received) = (SentLog::default(), ReceivedLog::default());
        let mut sent_totals = SentTotals::default();
        let mut totals = ReceivedTotals::with_most_gaps(most_gaps);
        for number in 0..fates.len() as u64 {
            sent.sent_ps.push(number * INTERVAL_PS);
            sent_totals.sent(number * INTERVAL_PS, number);
        }
        for (sequence, sent_ps, received_ps) in arrivals(fates) {
            received.sequence.push(sequence);
            received.sent_ps.push(sent_ps);
            received.received_ps.push(received_ps);
            totals.arrived(sequence, sent_ps, received_ps);
        }
        (
            FlowStatistics::new(&sent, &received, INTERVAL_PS),
            totals.statistics(&sent_totals, INTERVAL_PS),
        )
    }

    fn without_percentiles(statistics: FlowStatistics) -> FlowStatistics {
        let latency = statistics.latency.map(|latency| Latency {
            p50_ps: None,
            p99_ps: None,
            ..latency
        });
        FlowStatistics {
            latency,
            ..statistics
        }
    }

    proptest! {
        #[test]
        fn totals_are_what_the_log_says(fates in fates()) {
            let (log, totals) = both(&fates, MOST_GAPS);
            prop_assert_eq!(without_percentiles(log), totals);
        }

        #[test]
        fn what_is_undecided_is_all_that_is_not_exact(fates in fates(), most_gaps in 0usize..6) {
            let (log, totals) = both(&fates, most_gaps);
            prop_assert!(log.duplicated <= totals.duplicated);
            prop_assert!(totals.duplicated <= log.duplicated + totals.undecided);
            prop_assert_eq!(log.delivered + log.duplicated, totals.delivered + totals.duplicated);
            prop_assert_eq!(totals.lost, totals.sent - totals.delivered);
            if totals.undecided == 0 {
                prop_assert_eq!(without_percentiles(log), totals);
            }
        }

        #[test]
        fn numbers_in_the_schedule_are_known(up in prop::collection::vec(any::<bool>(), 0..100)) {
            let mut sent = SentTotals::default();
            let numbers: Vec<u64> = (0u64..).zip(&up).filter(|(_, up)| **up).map(|it| it.0).collect();
            for (sequence, &number) in (0u64..).zip(&numbers) {
                prop_assert_eq!(sent.sent(number, number), sequence);
                for (sequence, &number) in (0u64..=sequence).zip(&numbers) {
                    prop_assert_eq!(sent.number_of(sequence), Some(number));
                }
                prop_assert_eq!(sent.number_of(sequence + 1), None);
            }
            let changes = up.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            prop_assert!(sent.runs.len() <= changes + 1);
        }
    }

    #[test]
    fn a_long_flow_needs_no_memory_but_for_what_is_missing() {
        let mut totals = ReceivedTotals::default();
        for sequence in (0..1_000_000).filter(|n| n % 100_000 != 7) {
            totals.arrived(sequence, sequence, sequence + 1);
        }
        assert_eq!((totals.delivered, totals.gaps.missing.len()), (999_990, 10));
        // As late as it gets.
        for sequence in (0..1_000_000).filter(|n| n % 100_000 == 7) {
            totals.arrived(sequence, sequence, 2_000_000);
        }
        let counts = (totals.delivered, totals.reordered, totals.duplicated);
        assert_eq!(counts, (1_000_000, 10, 0));
        assert!(totals.gaps.missing.is_empty());
    }

    #[test]
    fn gaps_that_are_too_many_are_forgotten_from_the_oldest_on() {
        let mut totals = ReceivedTotals::with_most_gaps(2);
        for sequence in [1, 3, 5] {
            totals.arrived(sequence, 0, 0);
        }
        // 0 is forgotten; 2 and 4 are not.
        for sequence in [0, 2, 4] {
            totals.arrived(sequence, 0, 0);
        }
        let counts = (totals.delivered, totals.duplicated, totals.undecided);
        assert_eq!(counts, (5, 1, 1));
        assert_eq!(totals.gaps.known_from, 1);
    }

    #[test]
    fn the_largest_number_of_all_does_no_harm() {
        let mut totals = ReceivedTotals::default();
        for sequence in [u64::MAX, 0, u64::MAX, u64::MAX - 1] {
            totals.arrived(sequence, 0, 0);
        }
        let counts = (totals.delivered, totals.duplicated, totals.reordered);
        assert_eq!(counts, (3, 1, 2));
    }
}
