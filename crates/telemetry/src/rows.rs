//! The hops of reports as columns: a row for each hop of each report.

use std::collections::HashMap;
use wire::report::{FlowKey, Report};

/// The names of the columns in their order. `flow` is an index into [`Rows::flows`]; `hop` is the position of a hop
/// on the path, from 0.
pub const COLUMNS: [&str; 25] = [
    "time_ns",
    "reporter",
    "hw_id",
    "sequence",
    "dropped",
    "congested",
    "tracked",
    "intermediate",
    "drop_reason",
    "flow",
    "hop",
    "hops",
    "node_id",
    "ingress_port",
    "egress_port",
    "latency",
    "queue_id",
    "queue_occupancy",
    "ingress_time",
    "egress_time",
    "ingress_interface",
    "egress_interface",
    "tx_utilisation",
    "buffer_id",
    "buffer_occupancy",
];

/// The value that stands for an unknown one.
pub const NONE: u64 = u64::MAX;

/// Rows as columns of little-endian 64-bit integers, and the flows to which they refer.
#[derive(Debug, Default)]
pub struct Rows {
    columns: [Vec<u8>; COLUMNS.len()],
    flows: Vec<FlowKey>,
    // The index of a flow. Never iterated.
    places: HashMap<FlowKey, u64>,
}

impl Rows {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.columns[0].len() / 8
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.columns[0].is_empty()
    }

    /// Returns a column for each of [`COLUMNS`], of little-endian 64-bit values.
    pub fn columns(&self) -> &[Vec<u8>; COLUMNS.len()] {
        &self.columns
    }

    /// Returns the flows that rows name: the column `flow` has positions in this list.
    pub fn flows(&self) -> &[FlowKey] {
        &self.flows
    }

    /// Adds a row for each hop in a report; the report arrived at `now_ns` nanoseconds.
    pub(crate) fn take(&mut self, now_ns: u64, report: &Report) {
        let flow = report.packet.flow.map(|key| {
            *self.places.entry(key).or_insert_with(|| {
                self.flows.push(key);
                self.flows.len() as u64 - 1
            })
        });
        let hops = report.path().count() as u64;
        for (number, hop) in report.path().enumerate() {
            let of_report = [
                Some(now_ns),
                Some(report.node_id.into()),
                Some(report.hw_id.into()),
                Some(report.sequence.into()),
                Some(report.dropped.into()),
                Some(report.congested.into()),
                Some(report.tracked.into()),
                Some(report.intermediate.into()),
                report.drop_reason.map(u64::from),
                flow,
                Some(number as u64),
                Some(hops),
            ];
            for (column, value) in self
                .columns
                .iter_mut()
                .zip(of_report.into_iter().chain(hop.values()))
            {
                column.extend_from_slice(&value.unwrap_or(NONE).to_le_bytes());
            }
        }
    }
}
