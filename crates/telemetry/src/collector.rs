//! The collector: its tables beside that of flows, and their limits. Output ports and reporters beyond the limit are counted and not kept.

use crate::sequence::Sequence;
use crate::{Flows, Rows};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use wire::report::{Hop, Indicators, Malformed, Report, decode};

/// Upper bounds of the histogram of a hop's latency, in the nodes' unit.
pub const LATENCY_BUCKETS: [u32; 17] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000,
    1_000_000,
];

/// The largest sizes of a collector's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most flows.
    pub flows: usize,
    /// The most output ports of nodes, and also the most pairs of a node and a drop reason.
    pub hops: usize,
    /// The most reporters, that is, hardware subsystems of nodes.
    pub reporters: usize,
    /// The most rows that wait to be taken; the report that reaches this number is still added with all its hops.
    pub rows: usize,
}

/// An output port of a node; `None` if the reports do not state the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HopKey {
    /// The node.
    pub node_id: u32,
    /// Its port.
    pub egress_port: Option<u16>,
}

/// What reports state of an output port of a node. Latencies are in the node's unit, queue lengths in packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HopState {
    /// Reported packets.
    pub packets: u64,
    /// Reported packets with a latency.
    pub latency_count: u64,
    /// The sum of their latencies.
    pub latency_sum: u64,
    /// The largest latency.
    pub latency_max: u32,
    /// The last latency.
    pub latency_last: Option<u32>,
    /// The number of packets whose latency is within each of [`LATENCY_BUCKETS`], and beyond the last.
    pub latency_buckets: [u64; LATENCY_BUCKETS.len() + 1],
    /// The queue length that the last report with one stated.
    pub queue_last: Option<u32>,
    /// The greatest queue length.
    pub queue_max: u32,
    /// The utilisation of the port that the last report with one stated.
    pub tx_utilisation: Option<u32>,
    /// The number of reports of congestion.
    pub congested: u64,
}

impl HopState {
    fn take(&mut self, hop: &Hop) {
        self.packets += 1;
        if let Some(latency) = hop.latency {
            self.latency_count += 1;
            self.latency_sum = self.latency_sum.saturating_add(latency.into());
            self.latency_last = Some(latency);
            self.latency_max = self.latency_max.max(latency);
            self.latency_buckets[LATENCY_BUCKETS.partition_point(|bound| *bound < latency)] += 1;
        }
        if let Some(queue) = hop.queue {
            self.queue_last = Some(queue.occupancy);
            self.queue_max = self.queue_max.max(queue.occupancy);
        }
        self.tx_utilisation = hop.tx_utilisation.or(self.tx_utilisation);
    }
}

/// What is known of a hardware subsystem of a node that sends reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReporterState {
    /// The number of its reports.
    pub reports: u64,
    /// The number of sequence numbers that were skipped. A report that arrives late is subtracted again.
    pub lost: u64,
    sequence: Sequence,
}

/// The tables that are computed from telemetry reports. It accepts the payload of any UDP packet, valid or not.
#[derive(Debug)]
pub struct Collector {
    /// Payloads taken.
    pub packets: u64,
    /// Bytes of these payloads.
    pub bytes: u64,
    /// Reports in these payloads.
    pub reports: u64,
    /// The number of hops and drop reasons that were not recorded because the table was full.
    pub hops_refused: u64,
    /// The number of payloads that were not recorded because the table of reporters was full.
    pub reporters_refused: u64,
    /// The number of rows that were not kept because too many waited to be taken.
    pub rows_refused: u64,
    malformed: [u64; Malformed::ALL.len()],
    flows: Flows,
    hops: BTreeMap<HopKey, HopState>,
    drops: BTreeMap<(u32, u8), u64>,
    // Keys in the order of their first report.
    hop_order: Vec<HopKey>,
    drop_order: Vec<(u32, u8)>,
    reporters: BTreeMap<(u32, u8), ReporterState>,
    rows: Option<Rows>,
    limits: Limits,
    indicators: Indicators,
}

impl Collector {
    /// Makes a collector for the reports of a domain whose packets with INT are recognised by `indicators`. If
    /// `with_rows`, it keeps [`Rows`], which must then be taken regularly.
    pub fn new(limits: Limits, indicators: Indicators, with_rows: bool) -> Collector {
        Collector {
            packets: 0,
            bytes: 0,
            reports: 0,
            hops_refused: 0,
            reporters_refused: 0,
            rows_refused: 0,
            malformed: [0; Malformed::ALL.len()],
            flows: Flows::new(limits.flows),
            hops: BTreeMap::new(),
            drops: BTreeMap::new(),
            hop_order: Vec::new(),
            drop_order: Vec::new(),
            reporters: BTreeMap::new(),
            rows: with_rows.then(Rows::default),
            limits,
            indicators,
        }
    }

    /// Returns the reported flows.
    pub fn flows(&self) -> &Flows {
        &self.flows
    }

    /// Returns the output ports of nodes that reports have named, with the latencies and queues reported for each.
    pub fn hops(&self) -> &BTreeMap<HopKey, HopState> {
        &self.hops
    }

    /// Returns at most `most` output ports, those that were reported first, so that later ones do not displace them.
    pub fn first_hops(&self, most: usize) -> impl Iterator<Item = (&HopKey, &HopState)> {
        let keys = self.hop_order.iter().take(most);
        keys.filter_map(|key| self.hops.get_key_value(key))
    }

    /// Returns at most `most` pairs of node and reason with their numbers of drops, those that were reported first.
    pub fn first_drops(&self, most: usize) -> impl Iterator<Item = (&(u32, u8), &u64)> {
        let keys = self.drop_order.iter().take(most);
        keys.filter_map(|key| self.drops.get_key_value(key))
    }

    /// Returns the number of reported drops by node and reason.
    pub fn drops(&self) -> &BTreeMap<(u32, u8), u64> {
        &self.drops
    }

    /// Returns the senders of reports, by node and hardware subsystem, with the numbers of received and lost reports.
    pub fn reporters(&self) -> &BTreeMap<(u32, u8), ReporterState> {
        &self.reporters
    }

    /// Returns the number of payloads that violated `rule`.
    pub fn malformed(&self, rule: Malformed) -> u64 {
        self.malformed[rule as usize]
    }

    /// Returns the number of rows that have not been taken yet.
    pub fn rows(&self) -> usize {
        self.rows.as_ref().map_or(0, Rows::len)
    }

    /// Removes and returns the rows that have not been taken yet.
    pub fn take_rows(&mut self) -> Rows {
        self.rows.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Decodes the payload of a UDP packet that arrived at `now_ns` nanoseconds, and adds its reports to the tables
    /// and counts. A payload that is malformed is only counted.
    pub fn take(&mut self, now_ns: u64, payload: &[u8]) {
        self.packets += 1;
        self.bytes += payload.len() as u64;
        match decode(payload, &self.indicators) {
            Err(rule) => self.malformed[rule as usize] += 1,
            Ok(reports) => {
                self.count_sequence(&reports);
                for report in &reports {
                    self.take_report(now_ns, report);
                }
            }
        }
    }

    /// Counts a packet's reports for its sender, and the packets lost before it according to its sequence number. A
    /// packet has one sequence number, but may contain several reports.
    fn count_sequence(&mut self, reports: &[Report]) {
        let Some(first) = reports.first() else {
            return;
        };
        let key = (first.node_id, first.hw_id);
        let room = self.limits.reporters.saturating_sub(self.reporters.len());
        match self.reporters.entry(key) {
            Entry::Occupied(mut entry) => {
                let state = entry.get_mut();
                state.reports += reports.len() as u64;
                let lost = state.sequence.take(first.sequence);
                state.lost = state.lost.saturating_add_signed(lost);
            }
            Entry::Vacant(_) if room == 0 => self.reporters_refused += 1,
            Entry::Vacant(entry) => {
                entry.insert(ReporterState {
                    reports: reports.len() as u64,
                    lost: 0,
                    sequence: Sequence::new(first.sequence),
                });
            }
        }
    }

    fn take_report(&mut self, now_ns: u64, report: &Report) {
        self.reports += 1;
        if let Some(rows) = &mut self.rows {
            if rows.len() < self.limits.rows {
                rows.take(now_ns, report);
            } else {
                self.rows_refused += report.path().count() as u64;
            }
        }
        let mut path = report.path().peekable();
        while let Some(hop) = path.next() {
            // The reporting node, which is the last one, has sent a dropped packet nowhere.
            if !report.dropped || path.peek().is_some() {
                self.update_hop(&hop, |state| state.take(&hop));
            }
        }
        if report.congested {
            self.update_hop(&report.hop, |state| state.congested += 1);
        }
        if report.dropped {
            let key = (report.node_id, report.drop_reason.unwrap_or(0));
            if let Some(count) = self.drops.get_mut(&key) {
                *count += 1;
            } else if self.drops.len() < self.limits.hops {
                self.drops.insert(key, 1);
                self.drop_order.push(key);
            } else {
                self.hops_refused += 1;
            }
        }
        if let Some(key) = report.packet.flow {
            self.flows.take(now_ns, key, report);
        }
    }

    fn update_hop(&mut self, hop: &Hop, update: impl FnOnce(&mut HopState)) {
        let Some(node_id) = hop.node_id else {
            return;
        };
        let key = HopKey {
            node_id,
            egress_port: hop.egress_port,
        };
        if let Some(state) = self.hops.get_mut(&key) {
            update(state);
        } else if self.hops.len() < self.limits.hops {
            update(self.hops.entry(key).or_default());
            self.hop_order.push(key);
        } else {
            self.hops_refused += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates payloads with one report of a dropped, congested or tracked packet, with random flags, metadata bits
    /// and words.
    fn any_payload() -> impl Strategy<Value = Vec<u8>> {
        let header = (any::<u16>(), 0..6u8, any::<u8>(), any::<u16>());
        (header, proptest::collection::vec(any::<u32>(), 0..20)).prop_map(
            |((sequence, node, flags, bits), words)| {
                let first = 2 << 28 | u32::from(sequence);
                let mut payload = first.to_be_bytes().to_vec();
                payload.extend_from_slice(&[0, 0, 0, node, 0x10, 0xFF, words.len() as u8, flags]);
                payload.extend_from_slice(&bits.to_be_bytes());
                payload.extend_from_slice(&[0, 0, 0, 1, 0, 0]);
                payload.extend(words.iter().flat_map(|word| word.to_be_bytes()));
                payload
            },
        )
    }

    proptest! {
        #[test]
        fn memory_is_bounded_and_everything_counted(
            payloads in proptest::collection::vec(prop_oneof![any_payload(), any::<Vec<u8>>()], 0..60),
        ) {
            let limits = Limits { flows: 2, hops: 3, reporters: 2, rows: 5 };
            let indicators = Indicators { dscp: 0x17, dscp_mask: 0x3F, udp_port: 54321 };
            let mut collector = Collector::new(limits, indicators, true);
            for payload in &payloads {
                collector.take(1, payload);
            }
            prop_assert_eq!(collector.packets, payloads.len() as u64);
            let malformed: u64 = Malformed::ALL.iter().map(|rule| collector.malformed(*rule)).sum();
            let right = payloads.iter().filter_map(|it| decode(it, &indicators).ok());
            let (groups, reports) = right.fold((0, 0), |(groups, reports), it| (groups + 1, reports + it.len()));
            prop_assert_eq!((groups + malformed, reports as u64), (collector.packets, collector.reports));
            prop_assert!(collector.hops().len() <= 3 && collector.drops().len() <= 3);
            prop_assert!(collector.reporters().len() <= 2 && collector.flows().len() <= 2);
            // Each of these reports has one hop.
            prop_assert!(collector.rows() <= 5);
            prop_assert_eq!(collector.rows() as u64 + collector.rows_refused, collector.reports);
            prop_assert_eq!(collector.first_hops(2).count(), collector.hops().len().min(2));
            prop_assert!(collector.first_hops(9).all(|(key, state)| collector.hops().get(key) == Some(state)));
            prop_assert_eq!(collector.first_drops(9).map(|it| *it.1).sum::<u64>(), collector.drops().values().sum::<u64>());
            prop_assert!(collector.take_rows().len() <= 5);
            prop_assert_eq!(collector.rows(), 0);
        }
    }
}
