//! Statistics from the logs of a flow: loss, duplicates, order, latency, jitter and outages. It does not know the network; logs go
//! in, numbers come out. The same without logs is in `totals`.
//!
//! # Definitions
//!
//! *Delivered* are distinct sequence numbers; of several copies, the one that arrives first counts, and the others are
//! *duplicated*. Everything below looks at first copies only, in their order of arrival.
//!
//! * *reordered*: Type-P-Reordered of RFC 4737 (section 3.3): the sequence number is smaller than the next expected one,
//!   which is one more than the largest that has arrived.
//! * *percentiles* are of the nearest rank: the smallest latency that at least that share of the packets does not exceed.
//! * *interarrival jitter*: RFC 3550 (section 6.4.1): starting from zero, `J += (|D| - J) / 16` for each arrival after the
//!   first, where D is the difference of its latency and that of the arrival before.
//! * *mean delay variation*: the mean of |D|, without smoothing.
//! * *longest outage*: the longest time between two consecutive arrivals, less the nominal interval of the flow, and not
//!   below zero. The time from the last arrival to the last sending counts as one more gap, so that an outage that never
//!   ends is seen. If nothing arrived, it is the time from first to last sending plus one interval. A packet lost before
//!   the first arrival is a loss, not an outage.

use crate::packet_log::{ReceivedLog, SentLog};
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;

/// Latencies of the first copies of a flow's packets, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// The mean latency.
    pub mean_ps: f64,
    /// The least latency.
    pub min_ps: u64,
    /// The median; `None` without a log.
    pub p50_ps: Option<u64>,
    /// The 99th percentile; `None` without a log.
    pub p99_ps: Option<u64>,
    /// The largest latency.
    pub max_ps: u64,
}

/// Statistics of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlowStatistics {
    /// Packets sent.
    pub sent: u64,
    /// Distinct packets that arrived.
    pub delivered: u64,
    /// Packets that did not arrive.
    pub lost: u64,
    /// Arrivals beyond the first of each packet.
    pub duplicated: u64,
    /// Arrivals among the duplicates that may have been late first copies: whether their packets had arrived was
    /// forgotten. Zero with a log. While it is zero, all other numbers are exact.
    pub undecided: u64,
    /// Packets that arrived after a packet with a higher sequence number.
    pub reordered: u64,
    /// Latencies; none if nothing arrived.
    #[serde(flatten, serialize_with = "latency_columns")]
    pub latency: Option<Latency>,
    /// RFC 3550's jitter after the last arrival; none with fewer than two.
    pub interarrival_jitter_ps: Option<f64>,
    /// Mean difference of consecutive latencies; none with fewer than two arrivals.
    pub mean_delay_variation_ps: Option<f64>,
    /// The longest time without an arrival, less the nominal interval, in picoseconds.
    pub longest_outage_ps: u64,
}

/// Serializes latencies as five fields of the enclosing object, which are null if nothing arrived.
fn latency_columns<S: Serializer>(
    latency: &Option<Latency>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Columns {
        latency_mean_ps: Option<f64>,
        latency_min_ps: Option<u64>,
        latency_p50_ps: Option<u64>,
        latency_p99_ps: Option<u64>,
        latency_max_ps: Option<u64>,
    }
    let columns = Columns {
        latency_mean_ps: latency.map(|it| it.mean_ps),
        latency_min_ps: latency.map(|it| it.min_ps),
        latency_p50_ps: latency.and_then(|it| it.p50_ps),
        latency_p99_ps: latency.and_then(|it| it.p99_ps),
        latency_max_ps: latency.map(|it| it.max_ps),
    };
    columns.serialize(serializer)
}

impl FlowStatistics {
    /// Computes the statistics of a flow from the logs of its packets sent and received, by the definitions of this
    /// module. `interval_ps` is the flow's nominal interval between packets in picoseconds.
    pub fn new(sent: &SentLog, received: &ReceivedLog, interval_ps: u64) -> FlowStatistics {
        let first = FirstCopies::of(sent, received);
        let sent_count = sent.sent_ps.len() as u64;
        let delivered = first.received_ps.len() as u64;
        FlowStatistics {
            sent: sent_count,
            delivered,
            lost: sent_count.saturating_sub(delivered),
            duplicated: received.len() as u64 - delivered,
            undecided: 0,
            reordered: first.reordered,
            latency: latency(&first.latency_ps),
            interarrival_jitter_ps: interarrival_jitter(&first.latency_ps),
            mean_delay_variation_ps: mean_delay_variation(&first.latency_ps),
            longest_outage_ps: longest_outage(sent, &first.received_ps, interval_ps),
        }
    }
}

/// The first copies of a flow's packets in their order of arrival.
struct FirstCopies {
    received_ps: Vec<u64>,
    latency_ps: Vec<u64>,
    reordered: u64,
}

impl FirstCopies {
    fn of(sent: &SentLog, received: &ReceivedLog) -> FirstCopies {
        let mut seen = vec![false; sent.sent_ps.len()];
        // Sequence numbers that are not in the log of sendings; a network never logs any.
        let mut seen_others = BTreeSet::new();
        let mut first = FirstCopies {
            received_ps: Vec::with_capacity(received.len()),
            latency_ps: Vec::with_capacity(received.len()),
            reordered: 0,
        };
        let mut next_expected = 0;
        let times = received.sent_ps.iter().zip(&received.received_ps);
        for (&sequence, (&sent_ps, &received_ps)) in received.sequence.iter().zip(times) {
            let known = usize::try_from(sequence).ok().and_then(|i| seen.get_mut(i));
            let is_copy = match known {
                Some(seen) => std::mem::replace(seen, true),
                None => !seen_others.insert(sequence),
            };
            if is_copy {
                continue;
            }
            if sequence < next_expected {
                first.reordered += 1;
            } else {
                next_expected = sequence.saturating_add(1);
            }
            first.received_ps.push(received_ps);
            first.latency_ps.push(received_ps.saturating_sub(sent_ps));
        }
        first
    }
}

fn latency(latency_ps: &[u64]) -> Option<Latency> {
    let mut sorted = latency_ps.to_vec();
    sorted.sort_unstable();
    let (&min_ps, &max_ps) = (sorted.first()?, sorted.last()?);
    let total: u128 = sorted.iter().map(|&l| u128::from(l)).sum();
    let percentile = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100) - 1];
    Some(Latency {
        mean_ps: total as f64 / sorted.len() as f64,
        min_ps,
        p50_ps: Some(percentile(50)),
        p99_ps: Some(percentile(99)),
        max_ps,
    })
}

fn differences(latency_ps: &[u64]) -> impl Iterator<Item = u64> {
    latency_ps.windows(2).map(|pair| pair[0].abs_diff(pair[1]))
}

fn interarrival_jitter(latency_ps: &[u64]) -> Option<f64> {
    if latency_ps.len() < 2 {
        return None;
    }
    let smooth = |jitter: f64, difference: u64| jitter + (difference as f64 - jitter) / 16.0;
    Some(differences(latency_ps).fold(0.0, smooth))
}

fn mean_delay_variation(latency_ps: &[u64]) -> Option<f64> {
    let count = latency_ps.len().checked_sub(1).filter(|&n| n > 0)?;
    let total: u128 = differences(latency_ps).map(u128::from).sum();
    Some(total as f64 / count as f64)
}

fn longest_outage(sent: &SentLog, received_ps: &[u64], interval_ps: u64) -> u64 {
    let (Some(&first_sent_ps), Some(&last_sent_ps)) = (sent.sent_ps.first(), sent.sent_ps.last())
    else {
        return 0;
    };
    let Some(&last_received_ps) = received_ps.last() else {
        let sending_ps = last_sent_ps.saturating_sub(first_sent_ps);
        return sending_ps.saturating_add(interval_ps);
    };
    let between = received_ps
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]));
    let at_the_end = last_sent_ps.saturating_sub(last_received_ps);
    let longest = between.max().unwrap_or(0).max(at_the_end);
    longest.saturating_sub(interval_ps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(times: &[u64]) -> SentLog {
        SentLog {
            sent_ps: times.to_vec(),
        }
    }

    /// Builds a log from pairs of sequence number and time of arrival; each packet was sent at ten times its sequence
    /// number.
    fn received(arrivals: &[(u64, u64)]) -> ReceivedLog {
        ReceivedLog {
            sequence: arrivals.iter().map(|a| a.0).collect(),
            sent_ps: arrivals.iter().map(|a| a.0 * 10).collect(),
            received_ps: arrivals.iter().map(|a| a.1).collect(),
        }
    }

    #[test]
    fn everything_at_once() {
        // Sent at 0, 10, ... 50. Packet 3 is lost, 2 overtakes 1, 0 arrives twice.
        let log = received(&[(0, 5), (2, 25), (0, 26), (1, 27), (4, 45), (5, 59)]);
        let s = FlowStatistics::new(&sent(&[0, 10, 20, 30, 40, 50]), &log, 10);
        assert_eq!(
            (s.sent, s.delivered, s.lost, s.duplicated, s.reordered),
            (6, 5, 1, 1, 1)
        );
        // Latencies in order of arrival: 5, 5, 17, 5, 9.
        let latency = Latency {
            mean_ps: 41.0 / 5.0,
            min_ps: 5,
            p50_ps: Some(5),
            p99_ps: Some(17),
            max_ps: 17,
        };
        assert_eq!(s.latency, Some(latency));
        // Differences: 0, 12, 12, 4.
        assert_eq!(s.mean_delay_variation_ps, Some(7.0));
        let j2 = 12.0 / 16.0;
        let j3 = j2 + (12.0 - j2) / 16.0;
        assert_eq!(s.interarrival_jitter_ps, Some(j3 + (4.0 - j3) / 16.0));
        // Gaps: 20 (5 to 25), 2, 18, 14; beyond the interval of 10.
        assert_eq!(s.longest_outage_ps, 10);
    }

    #[test]
    fn a_duplicate_is_not_reordered() {
        let s = FlowStatistics::new(
            &sent(&[0, 10]),
            &received(&[(0, 1), (1, 11), (0, 12), (1, 13)]),
            10,
        );
        assert_eq!((s.delivered, s.duplicated, s.reordered), (2, 2, 0));
    }

    #[test]
    fn every_packet_behind_a_later_one_is_reordered() {
        // RFC 4737: 1, 2 and 3 all arrive after 4.
        let log = received(&[(0, 1), (4, 41), (1, 42), (2, 43), (3, 44), (5, 51)]);
        let s = FlowStatistics::new(&sent(&[0, 10, 20, 30, 40, 50]), &log, 10);
        assert_eq!(s.reordered, 3);
    }

    #[test]
    fn percentiles_of_the_nearest_rank() {
        let arrivals: Vec<(u64, u64)> = (0..200).map(|i| (i, i * 10 + i + 1)).collect();
        let times: Vec<u64> = (0..200).map(|i| i * 10).collect();
        let s = FlowStatistics::new(&sent(&times), &received(&arrivals), 10);
        let latency = s.latency.unwrap();
        assert_eq!(
            (
                latency.min_ps,
                latency.p50_ps,
                latency.p99_ps,
                latency.max_ps
            ),
            (1, Some(100), Some(198), 200)
        );
        assert_eq!(latency.mean_ps, 100.5);
        assert_eq!(s.longest_outage_ps, 1);
    }

    #[test]
    fn an_outage_that_never_ends() {
        let times: Vec<u64> = (0..10).map(|i| i * 10).collect();
        let s = FlowStatistics::new(&sent(&times), &received(&[(0, 2), (1, 12)]), 10);
        // From the arrival at 12 to the last sending at 90.
        assert_eq!(s.longest_outage_ps, 68);
        let s = FlowStatistics::new(&sent(&times), &ReceivedLog::EMPTY, 10);
        assert_eq!((s.longest_outage_ps, s.lost), (100, 10));
        assert_eq!(
            (
                s.latency,
                s.interarrival_jitter_ps,
                s.mean_delay_variation_ps
            ),
            (None, None, None)
        );
    }

    #[test]
    fn nothing_sent() {
        let s = FlowStatistics::new(&sent(&[]), &ReceivedLog::EMPTY, 10);
        assert_eq!(
            (s.sent, s.delivered, s.lost, s.longest_outage_ps),
            (0, 0, 0, 0)
        );
    }

    #[test]
    fn logs_that_no_network_writes_do_no_harm() {
        let log = ReceivedLog {
            sequence: vec![u64::MAX, 5, u64::MAX],
            sent_ps: vec![9, 9, 9],
            received_ps: vec![8, 7, 6],
        };
        let s = FlowStatistics::new(&sent(&[9, 3]), &log, 10);
        assert_eq!(
            (s.delivered, s.duplicated, s.reordered, s.lost),
            (2, 1, 1, 0)
        );
        assert_eq!(
            FlowStatistics::new(&sent(&[9, 3]), &ReceivedLog::EMPTY, 10).longest_outage_ps,
            10
        );
    }

    #[test]
    fn one_arrival_has_latency_but_no_jitter() {
        let s = FlowStatistics::new(&sent(&[0]), &received(&[(0, 7)]), 10);
        assert_eq!(s.latency.unwrap().p99_ps, Some(7));
        assert_eq!(
            (s.interarrival_jitter_ps, s.mean_delay_variation_ps),
            (None, None)
        );
        assert_eq!(s.longest_outage_ps, 0);
    }
}
