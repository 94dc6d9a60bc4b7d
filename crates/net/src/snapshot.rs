//! Results of a network as they are now, in a form that another language reads: who reads names a [`Subject`] and gets rows with named
//! fields. A field of a result is declared where it is counted, and serialized from there. This module does not know who reads.

use crate::error::NetError;
use crate::failure::FailureRecord;
use crate::link::{DirectionCounters, LinkConfig, LinkDirection};
use crate::membership::GroupStatistics;
use crate::network::Network;
use crate::node::NodeCounters;
use crate::observer::{DropCounts, ObserverId};
use crate::ordering::OrderingCounters;
use crate::statistics::FlowStatistics;
use crate::tcp_flow::TcpFlowStatistics;
use crate::traffic_manager::QueueStatistics;
use crate::traffic_manager::recirculation::RecirculationStatistics;
use crate::{BfdStatistics, FlowId, GeneratorId, LinkId, TcpFlowId, units};
use engine::Time;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The results to read: their kind, and of which link, node or flow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the rows are documented where they are declared"
)]
pub enum Subject {
    /// The present configurations of both directions of a link, from a to b first.
    #[serde(rename = "Direction")]
    LinkConfig { link: u32 },
    /// The counters of both directions of a link, from a to b first.
    DirectionCounters { link: u32 },
    /// The counters of the ordering function of a link direction, if it has one.
    OrderingCounters { link: u32, direction: LinkDirection },
    /// The counters of a node.
    NodeCounters { node: String },
    /// The statistics of the BFD session at a switch's port, if it has one.
    BfdStatistics { switch: String, port: u32 },
    /// The statistics of the queues of a switch's traffic manager.
    QueueStatistics { switch: String },
    /// The statistics of the recirculation ports of a switch.
    RecirculationStatistics { switch: String },
    /// Packets dropped since an observer counts them, by node and reason.
    Drops { observer: u32 },
    /// Random failures and repairs that have happened.
    RandomFailure {},
    /// The counter of a packet generator.
    GeneratorCounters { generator: u32 },
    /// The statistics of a flow at a host, or at its destination if `host` is `None`.
    FlowStatistics { flow: u32, host: Option<String> },
    /// The log of the packets that a flow sent.
    SentLog { flow: u32 },
    /// The log of the packets of a flow that arrived at a host, or at its destination if `host` is `None`.
    ReceivedLog { flow: u32, host: Option<String> },
    /// The statistics of a TCP connection.
    TcpStatistics { flow: u32 },
    /// The new bytes that arrived in order at the server of a TCP connection, by bin.
    GoodputLog { flow: u32 },
    /// The log of the window of a TCP connection's client.
    WindowLog { flow: u32 },
    /// The counters of the packets of a multicast group that a host received.
    GroupStatistics { host: String, group: IpAddr },
}

/// Rows of results, of the kind that [`Subject`] names.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[expect(
    missing_docs,
    reason = "the rows are documented where they are declared"
)]
pub enum Reading {
    LinkConfig(Vec<LinkConfig>),
    DirectionCounters(Vec<DirectionCounters>),
    OrderingCounters(Vec<OrderingCounters>),
    NodeCounters(Vec<NodeCounters>),
    BfdStatistics(Vec<BfdStatistics>),
    QueueStatistics(Vec<QueueRow>),
    RecirculationStatistics(Vec<RecirculationRow>),
    Drops(Vec<DropsRow>),
    RandomFailure(Vec<FailureRecord>),
    GeneratorCounters(Vec<GeneratorCounters>),
    FlowStatistics(Vec<FlowStatistics>),
    Log(Vec<BTreeMap<&'static str, Column>>),
    TcpStatistics(Vec<TcpRow>),
    GroupStatistics(Vec<GroupStatistics>),
}

/// A queue's statistics, and which queue it is.
#[derive(Clone, Debug, Serialize)]
pub struct QueueRow {
    port: u32,
    queue: u8,
    #[serde(flatten)]
    statistics: QueueStatistics,
}

/// A recirculation port's statistics, and which port it is.
#[derive(Clone, Debug, Serialize)]
pub struct RecirculationRow {
    port: usize,
    #[serde(flatten)]
    statistics: RecirculationStatistics,
}

/// Packets that were dropped for a reason at a node, or on a link that leads away from it.
#[derive(Clone, Debug, Serialize)]
pub struct DropsRow {
    node: String,
    reason: &'static str,
    packets: u64,
}

/// The counter of a packet generator.
#[derive(Clone, Debug, Serialize)]
pub struct GeneratorCounters {
    /// Packets that it has made.
    packets: u64,
}

/// A column of a log, encoded as little-endian signed integers of 64 bits.
#[derive(Clone, Debug)]
pub struct Column(Vec<u8>);

impl Column {
    /// Encodes the values of a column. A value above the largest signed integer of 64 bits becomes that integer.
    fn new(values: impl ExactSizeIterator<Item = u64>) -> Column {
        let mut bytes = Vec::with_capacity(values.len() * 8);
        for value in values {
            bytes.extend_from_slice(&value.min(i64::MAX as u64).to_le_bytes());
        }
        Column(bytes)
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

/// The statistics of a TCP connection. Fields that do not name the server are the client's, except those of received
/// data.
#[derive(Clone, Debug, Serialize)]
pub struct TcpRow {
    cwnd_bytes: u64,
    ssthresh_bytes: u64,
    flight_bytes: u64,
    srtt_ps: u64,
    rtt_min_ps: u64,
    rto_ps: u64,
    bytes_sent: u64,
    bytes_retransmitted: u64,
    bytes_acknowledged: u64,
    bytes_received: u64,
    bytes_received_again: u64,
    segments_sent: u64,
    segments_retransmitted: u64,
    acks_sent: u64,
    duplicate_acks: u64,
    timeouts: u64,
    fast_recoveries: u64,
    ecn_reductions: u64,
    tail_loss_probes: u64,
    ce_received: u64,
    #[serde(serialize_with = "units::serialize_some")]
    finished_ps: Option<Time>,
    client_state: String,
    server_state: String,
    failure: Option<String>,
}

impl TcpRow {
    fn new(statistics: &TcpFlowStatistics) -> TcpRow {
        let (client, server) = (&statistics.client, &statistics.server);
        let failure = statistics.client_failure.or(statistics.server_failure);
        TcpRow {
            cwnd_bytes: client.cwnd_bytes,
            // Readers' integers are signed; "no threshold yet" is the largest of them.
            ssthresh_bytes: client.ssthresh_bytes.min(i64::MAX as u64),
            flight_bytes: client.flight_bytes,
            srtt_ps: client.srtt_ps,
            rtt_min_ps: client.rtt_min_ps,
            rto_ps: client.rto_ps,
            bytes_sent: client.bytes_sent,
            bytes_retransmitted: client.bytes_retransmitted,
            bytes_acknowledged: client.bytes_acknowledged,
            bytes_received: server.bytes_received,
            bytes_received_again: server.bytes_received_again,
            segments_sent: client.segments_sent,
            segments_retransmitted: client.segments_retransmitted,
            acks_sent: server.acks_sent,
            duplicate_acks: client.duplicate_acks,
            timeouts: client.timeouts,
            fast_recoveries: client.fast_recoveries,
            ecn_reductions: client.ecn_reductions,
            tail_loss_probes: client.tail_loss_probes,
            ce_received: server.ce_received,
            finished_ps: statistics.finished_ps,
            client_state: format!("{:?}", statistics.client_state),
            server_state: format!("{:?}", statistics.server_state),
            failure: failure.map(|failure| format!("{failure:?}")),
        }
    }
}

impl Network {
    /// Reads the present results of a subject. Fails if there is no such link, node or flow, or it keeps no results of
    /// this kind.
    pub fn snapshot(&self, subject: &Subject) -> Result<Reading, NetError> {
        Ok(match subject {
            Subject::LinkConfig { link } => {
                let both = self.link_configs(LinkId(*link))?;
                Reading::LinkConfig(both.map(LinkConfig::clone).into())
            }
            Subject::DirectionCounters { link } => {
                let both = self.link_counters(LinkId(*link))?;
                Reading::DirectionCounters(vec![both.a_to_b, both.b_to_a])
            }
            Subject::OrderingCounters { link, direction } => {
                let found = self.ordering_counters(LinkId(*link), *direction)?;
                Reading::OrderingCounters(found.into_iter().collect())
            }
            Subject::NodeCounters { node } => {
                Reading::NodeCounters(vec![self.node_counters(node)?])
            }
            Subject::BfdStatistics { switch, port } => {
                let found = self.bfd_statistics(switch, *port)?;
                Reading::BfdStatistics(found.into_iter().collect())
            }
            Subject::QueueStatistics { switch } => {
                let queues = self.queue_statistics(switch)?.into_iter();
                let rows = queues.map(|(port, queue, statistics)| QueueRow {
                    port,
                    queue,
                    statistics,
                });
                Reading::QueueStatistics(rows.collect())
            }
            Subject::RecirculationStatistics { switch } => {
                let ports = self.recirculation_statistics(switch)?;
                let rows = ports.into_iter().enumerate();
                let rows = rows.map(|(port, statistics)| RecirculationRow { port, statistics });
                Reading::RecirculationStatistics(rows.collect())
            }
            Subject::Drops { observer } => {
                let counts = self.observer::<DropCounts>(ObserverId(*observer));
                let counts = counts.into_iter().flat_map(DropCounts::iter);
                let rows = counts.map(|(node, reason, packets)| DropsRow {
                    node: self.node_name(node).to_owned(),
                    reason: reason.name(),
                    packets,
                });
                Reading::Drops(rows.collect())
            }
            Subject::RandomFailure {} => Reading::RandomFailure(self.random_failures().to_vec()),
            Subject::GeneratorCounters { generator } => {
                let packets = self.packets_generated(GeneratorId(*generator))?;
                Reading::GeneratorCounters(vec![GeneratorCounters { packets }])
            }
            Subject::FlowStatistics { flow, host } => {
                let flow = FlowId(*flow);
                Reading::FlowStatistics(vec![match host {
                    None => self.flow_statistics(flow)?,
                    Some(host) => self.flow_statistics_at(flow, host)?,
                }])
            }
            Subject::TcpStatistics { flow } => {
                let statistics = self.tcp_statistics(TcpFlowId(*flow))?;
                Reading::TcpStatistics(vec![TcpRow::new(&statistics)])
            }
            Subject::GroupStatistics { host, group } => {
                Reading::GroupStatistics(vec![self.group_statistics(host, *group)?])
            }
            Subject::SentLog { .. }
            | Subject::ReceivedLog { .. }
            | Subject::GoodputLog { .. }
            | Subject::WindowLog { .. } => Reading::Log(vec![self.log(subject)?]),
        })
    }

    /// Returns the columns of a subject's log, by name; an empty map if the subject is no log. Fails if there is no
    /// such flow, or it keeps no log.
    fn log(&self, subject: &Subject) -> Result<BTreeMap<&'static str, Column>, NetError> {
        let column = |values: &[u64]| Column::new(values.iter().copied());
        let columns = match subject {
            Subject::SentLog { flow } => {
                let sent_ps = &self.sent(FlowId(*flow))?.sent_ps;
                let numbers = (0..sent_ps.len()).map(|i| i as u64);
                vec![
                    ("sequence", Column::new(numbers)),
                    ("sent_ps", column(sent_ps)),
                ]
            }
            Subject::ReceivedLog { flow, host } => {
                let log = match host {
                    None => self.received(FlowId(*flow))?,
                    Some(host) => self.received_at(FlowId(*flow), host)?,
                };
                vec![
                    ("sequence", column(&log.sequence)),
                    ("sent_ps", column(&log.sent_ps)),
                    ("received_ps", column(&log.received_ps)),
                ]
            }
            Subject::GoodputLog { flow } => {
                vec![("new_bytes", column(self.tcp_goodput(TcpFlowId(*flow))?))]
            }
            Subject::WindowLog { flow } => {
                let log = self.tcp_window(TcpFlowId(*flow))?;
                vec![
                    ("time_ps", column(&log.time_ps)),
                    ("cwnd_bytes", column(&log.cwnd_bytes)),
                    ("ssthresh_bytes", column(&log.ssthresh_bytes)),
                    ("flight_bytes", column(&log.flight_bytes)),
                    ("srtt_ps", column(&log.srtt_ps)),
                ]
            }
            _ => Vec::new(),
        };
        Ok(columns.into_iter().collect())
    }
}
