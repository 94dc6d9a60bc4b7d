//! The record of a flow's packets: a log with a line for each, or totals in memory that does not grow with packets. It does not know
//! frames; it is told of packets that are sent and that arrive.

use crate::packet_log::{ReceivedLog, SentLog};
use crate::statistics::FlowStatistics;
use crate::totals::{ReceivedTotals, SentTotals};
use crate::{FlowId, NetError, NodeId};
use std::collections::BTreeMap;

/// What is kept of a flow's packets.
#[derive(Debug)]
pub(crate) enum Record {
    /// Each packet.
    Log {
        sent: SentLog,
        received: BTreeMap<NodeId, ReceivedLog>,
    },
    /// Totals.
    Totals {
        sent: SentTotals,
        received: BTreeMap<NodeId, ReceivedTotals>,
    },
}

impl Record {
    /// Creates an empty record of a flow, which logs each packet if `log` is true, else only keeps totals.
    pub(crate) fn new(log: bool) -> Record {
        match log {
            true => Record::Log {
                sent: SentLog::default(),
                received: BTreeMap::new(),
            },
            false => Record::Totals {
                sent: SentTotals::default(),
                received: BTreeMap::new(),
            },
        }
    }

    /// Records that a packet is sent at `now_ps`; `number` is its number in the flow's schedule. Returns its sequence
    /// number.
    pub(crate) fn sent(&mut self, now_ps: u64, number: u64) -> u64 {
        match self {
            Record::Log { sent, .. } => {
                sent.sent_ps.push(now_ps);
                sent.sent_ps.len() as u64 - 1
            }
            Record::Totals { sent, .. } => sent.sent(now_ps, number),
        }
    }

    /// Returns the number of packets that the flow has sent.
    pub(crate) fn sent_count(&self) -> u64 {
        match self {
            Record::Log { sent, .. } => sent.sent_ps.len() as u64,
            Record::Totals { sent, .. } => sent.count(),
        }
    }

    /// Returns the time in picoseconds at which the packet with this sequence number was sent; `None` if none was.
    /// `due_ps` returns the time at which a number of the flow's schedule is due.
    pub(crate) fn sent_at(&self, sequence: u64, due_ps: impl FnOnce(u64) -> u64) -> Option<u64> {
        match self {
            Record::Log { sent, .. } => {
                let position = usize::try_from(sequence).ok()?;
                sent.sent_ps.get(position).copied()
            }
            Record::Totals { sent, .. } => sent.number_of(sequence).map(due_ps),
        }
    }

    /// Records that a packet has arrived at a host. Times are in picoseconds since the record's origin.
    pub(crate) fn arrived(&mut self, node: NodeId, sequence: u64, sent_ps: u64, now_ps: u64) {
        match self {
            Record::Log { received, .. } => {
                let log = received.entry(node).or_default();
                log.push(sequence, sent_ps, now_ps);
            }
            Record::Totals { received, .. } => {
                let totals = received.entry(node).or_default();
                totals.arrived(sequence, sent_ps, now_ps);
            }
        }
    }

    /// Returns the log of the packets that the flow sent. Fails if the record keeps only totals.
    pub(crate) fn sent_log(&self, flow: FlowId) -> Result<&SentLog, NetError> {
        match self {
            Record::Log { sent, .. } => Ok(sent),
            Record::Totals { .. } => Err(NetError::NoLog(flow.0)),
        }
    }

    /// Returns the log of the flow's packets that arrived at a host; an empty log if `node` is `None` or nothing
    /// arrived there. Fails if the record keeps only totals.
    pub(crate) fn received_log(
        &self,
        flow: FlowId,
        node: Option<NodeId>,
    ) -> Result<&ReceivedLog, NetError> {
        const EMPTY: &ReceivedLog = &ReceivedLog::EMPTY;
        match self {
            Record::Log { received, .. } => {
                Ok(node.and_then(|node| received.get(&node)).unwrap_or(EMPTY))
            }
            Record::Totals { .. } => Err(NetError::NoLog(flow.0)),
        }
    }

    /// Computes the statistics of the flow's packets on the way to a host; without any arrival if `node` is `None`.
    /// `interval_ps` is the nominal time between packets in picoseconds.
    pub(crate) fn statistics(&self, node: Option<NodeId>, interval_ps: u64) -> FlowStatistics {
        match self {
            Record::Log { sent, received } => {
                let log = node.and_then(|node| received.get(&node));
                FlowStatistics::new(sent, log.unwrap_or(&ReceivedLog::EMPTY), interval_ps)
            }
            Record::Totals { sent, received } => match node.and_then(|node| received.get(&node)) {
                Some(totals) => totals.statistics(sent, interval_ps),
                None => ReceivedTotals::default().statistics(sent, interval_ps),
            },
        }
    }
}
