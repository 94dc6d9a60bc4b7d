//! Flows, as many as there is room for: the one that was reported longest ago goes for a new one.

use std::collections::{BTreeMap, HashMap};
use wire::report::{FlowKey, Mode, Report};

/// What reports state of a flow. Times are in nanoseconds, latencies in the nodes' unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowState {
    /// The number of reports on the flow.
    pub reports: u64,
    /// The time of the first report.
    pub first_ns: u64,
    /// The time of the last report.
    pub last_ns: u64,
    /// The nodes of its path in order. If each node reports by itself, those that have reported.
    pub path: Vec<u32>,
    /// The number of times that the path has changed.
    pub path_changes: u64,
    /// The sum of the latencies of the nodes in the last report with a whole path; `None` if one of them is unknown.
    pub latency_last: Option<u64>,
    /// The largest such sum.
    pub latency_max: u64,
    /// Reported drops.
    pub drops: u64,
    /// The reason of the last drop.
    pub drop_reason: Option<u8>,
    /// Packets with the flag E (hop count exceeded).
    pub hops_exceeded: u64,
    /// Packets with the flag M (MTU exceeded).
    pub mtu_exceeded: u64,
    // Of nodes that report one by one: the TTL that a packet had there.
    by_ttl: BTreeMap<u8, u32>,
    // Its place in the order of the last reports.
    turn: u64,
}

/// The flows that are known, with their states.
#[derive(Debug)]
pub struct Flows {
    // Never iterated.
    by_key: HashMap<FlowKey, FlowState>,
    by_turn: BTreeMap<u64, FlowKey>,
    limit: usize,
    turn: u64,
    evicted: u64,
}

impl Flows {
    /// Creates an empty table with room for `limit` flows.
    pub(crate) fn new(limit: usize) -> Flows {
        Flows {
            by_key: HashMap::new(),
            by_turn: BTreeMap::new(),
            limit,
            turn: 0,
            evicted: 0,
        }
    }

    /// Returns the number of flows in the table.
    pub fn len(&self) -> usize {
        self.by_turn.len()
    }

    /// Returns whether the table has no flows.
    pub fn is_empty(&self) -> bool {
        self.by_turn.is_empty()
    }

    /// Returns the number of flows that were removed to make room for others.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Iterates over the flows in the order of their latest reports; the flow that was reported last comes last.
    pub fn iter(&self) -> impl Iterator<Item = (&FlowKey, &FlowState)> {
        self.by_turn.values().map(|key| (key, &self.by_key[key]))
    }

    /// Returns a flow's state for changes, and moves the flow to the end of the order, as the one reported last. A
    /// new flow replaces the one that was reported longest ago if the table is full. Returns `None` if the table's
    /// limit is 0.
    fn touch(&mut self, key: FlowKey, now_ns: u64) -> Option<&mut FlowState> {
        if self.limit == 0 {
            self.evicted += 1;
            return None;
        }
        self.turn += 1;
        let known = self.by_key.get(&key).map(|state| state.turn);
        if let Some(turn) = known {
            self.by_turn.remove(&turn);
        } else if self.by_turn.len() >= self.limit
            && let Some((_, oldest)) = self.by_turn.pop_first()
        {
            self.by_key.remove(&oldest);
            self.evicted += 1;
        }
        self.by_turn.insert(self.turn, key);
        let state = self.by_key.entry(key).or_insert_with(|| FlowState {
            first_ns: now_ns,
            ..FlowState::default()
        });
        state.turn = self.turn;
        Some(state)
    }

    /// Counts a report about a flow, and updates the flow's state (path, latency, drops) from it.
    pub(crate) fn take(&mut self, now_ns: u64, key: FlowKey, report: &Report) {
        let Some(state) = self.touch(key, now_ns) else {
            return;
        };
        state.reports += 1;
        state.last_ns = now_ns;
        if report.dropped {
            state.drops += 1;
            state.drop_reason = report.drop_reason;
        } else if report.tracked {
            state.pass(report);
        }
    }
}

impl FlowState {
    /// Updates the path and the latency of the flow from the report of a node that its packet passed. A report with
    /// INT-MD metadata names the whole path; other reports name one node each.
    fn pass(&mut self, report: &Report) {
        let md = report.packet.embedded.filter(|it| it.mode == Mode::Md);
        let path: Vec<u32> = match md {
            Some(embedded) => {
                self.hops_exceeded += u64::from(embedded.hops_exceeded);
                self.mtu_exceeded += u64::from(embedded.mtu_exceeded);
                let latencies = report.path().map(|hop| hop.latency.map(u64::from));
                if let Some(sum) = latencies.sum::<Option<u64>>() {
                    self.latency_last = Some(sum);
                    self.latency_max = self.latency_max.max(sum);
                }
                report.path().filter_map(|hop| hop.node_id).collect()
            }
            None => {
                // TTLs fall along the path. A node is only where it was seen last.
                self.by_ttl.retain(|_, node| *node != report.node_id);
                self.by_ttl.insert(report.packet.ttl, report.node_id);
                self.by_ttl.values().rev().copied().collect()
            }
        };
        if path != self.path {
            // Nodes that report one by one make a path longer without changing it.
            self.path_changes += u64::from(!self.path.is_empty() && !extends(&path, &self.path));
            self.path = path;
        }
    }
}

/// Returns whether the path `longer` contains all nodes of `shorter` in the same order.
fn extends(longer: &[u32], shorter: &[u32]) -> bool {
    let mut rest = longer.iter();
    shorter.iter().all(|node| rest.any(|it| it == node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    fn key(number: u8) -> FlowKey {
        FlowKey {
            source: Ipv4Addr::from(u32::from(number)).into(),
            destination: Ipv4Addr::LOCALHOST.into(),
            protocol: 6,
            source_port: 1,
            destination_port: 2,
        }
    }

    proptest! {
        /// Compares with a list that is searched.
        #[test]
        fn the_oldest_one_goes(numbers in proptest::collection::vec(0..12u8, 0..100), limit in 0..8usize) {
            let (mut flows, mut expected, mut evicted) = (Flows::new(limit), Vec::new(), 0);
            for (now, number) in numbers.iter().enumerate() {
                if let Some(state) = flows.touch(key(*number), now as u64) {
                    state.reports += 1;
                }
                let earlier = expected.iter().position(|(it, _)| it == number);
                let (_, reports) = earlier.map_or((0, 0), |at| expected.remove(at));
                expected.push((*number, reports + 1));
                if expected.len() > limit {
                    expected.remove(0);
                    evicted += 1;
                }
            }
            let found: Vec<_> = flows.iter().map(|(key, state)| (*key, state.reports)).collect();
            let expected: Vec<_> = expected.iter().map(|(number, reports)| (key(*number), *reports)).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!((flows.by_key.len(), flows.evicted()), (flows.len(), evicted));
        }
    }
}
