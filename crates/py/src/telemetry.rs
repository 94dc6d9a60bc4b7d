//! Telemetry reports for Python: the decoder, a collector, and the socket where reports arrive.

use crate::errors::failed;
use crate::readings::Column;
use ::telemetry::{COLUMNS, Collector, Limits};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use wire::report::{self, Embedded, FlowKey, Hop, Indicators, Malformed, Mode, Report};

/// Source, destination, protocol and ports.
type Flow = (IpAddr, IpAddr, u8, u16, u16);

fn flow(key: &FlowKey) -> Flow {
    let FlowKey {
        source,
        destination,
        protocol,
        source_port,
        destination_port,
    } = *key;
    (source, destination, protocol, source_port, destination_port)
}

fn hop<'py>(py: Python<'py>, hop: &Hop) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, hop.values())
}

fn embedded<'py>(py: Python<'py>, it: &Embedded) -> PyResult<Bound<'py, PyTuple>> {
    let hops: Vec<_> = it.hops().map(|it| hop(py, &it)).collect::<PyResult<_>>()?;
    let mode = match it.mode {
        Mode::Md => "md",
        Mode::Mx => "mx",
    };
    let fields = (
        mode,
        it.instructions,
        it.domain_id,
        it.remaining_hops,
        it.discard,
        it.hops_exceeded,
        it.mtu_exceeded,
        PyTuple::new(py, hops)?,
        it.cut,
        PyBytes::new(py, it.source_only),
    );
    fields.into_pyobject(py)
}

fn individual<'py>(py: Python<'py>, it: &Report) -> PyResult<Bound<'py, PyTuple>> {
    let group = (it.node_id, it.hw_id, it.sequence);
    let flags = (it.dropped, it.congested, it.tracked, it.intermediate);
    let drop = (it.drop_reason, it.drop_queue);
    let packet = (
        it.packet.flow.as_ref().map(flow),
        it.packet.ttl,
        it.packet.embedded.map(|it| embedded(py, &it)).transpose()?,
    );
    (group, flags, hop(py, &it.hop)?, drop, it.domain_id, packet).into_pyobject(py)
}

/// The individual reports of a UDP payload. `HoldfastError` says which rule it breaks.
#[pyfunction]
pub(crate) fn decode_reports<'py>(
    py: Python<'py>,
    payload: &[u8],
    dscp: u8,
    dscp_mask: u8,
    udp_port: u16,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let indicators = Indicators {
        dscp,
        dscp_mask,
        udp_port,
    };
    let reports = report::decode(payload, &indicators).map_err(failed)?;
    reports.iter().map(|it| individual(py, it)).collect()
}

/// Original UDP port and hops of a report of the thesis: time, bytes, queue, switch, port; the first one first.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(crate) fn decode_thesis_report(
    payload: &[u8],
) -> PyResult<(u16, Vec<(u32, u32, u16, u8, u8)>)> {
    let (port, hops) = report::decode_thesis(payload).map_err(failed)?;
    let hop = |it: &report::ThesisHop| (it.timestamp, it.tx_bytes, it.queue, it.switch_id, it.port);
    Ok((port, hops.iter().map(hop).collect()))
}

/// The rules that a payload can break.
pub(crate) fn rules() -> Vec<String> {
    Malformed::ALL.map(|rule| rule.to_string()).into()
}

/// A UDP socket for reports.
#[pyclass(module = "holdfast._core")]
pub(crate) struct ReportSocket(::ports::ReportSocket);

#[pymethods]
impl ReportSocket {
    #[new]
    fn new(address: IpAddr, port: u16, buffer_bytes: u32) -> PyResult<ReportSocket> {
        ::ports::ReportSocket::open(SocketAddr::new(address, port), buffer_bytes)
            .map(ReportSocket)
            .map_err(failed)
    }

    /// The port at which it listens.
    #[getter]
    fn port(&self) -> u16 {
        self.0.address().port()
    }

    /// Packets that the kernel had no room for.
    fn drops(&mut self) -> u64 {
        self.0.drops()
    }
}

/// The tables of a collector.
#[pyclass(module = "holdfast._core")]
pub(crate) struct ReportCollector(Collector);

type FlowTuple = (
    u64,
    u64,
    u64,
    Vec<u32>,
    u64,
    Option<u64>,
    u64,
    u64,
    Option<u8>,
    u64,
    u64,
);

type HopTuple = (
    u64,
    u64,
    u64,
    u32,
    Option<u32>,
    Vec<u64>,
    Option<u32>,
    u32,
    Option<u32>,
    u64,
);

type Columns<'py> = Vec<(&'static str, Bound<'py, PyBytes>)>;

#[pymethods]
impl ReportCollector {
    #[new]
    #[pyo3(signature = (flows, hops, reporters, *, dscp, dscp_mask, udp_port, with_rows))]
    fn new(
        flows: usize,
        hops: usize,
        reporters: usize,
        dscp: u8,
        dscp_mask: u8,
        udp_port: u16,
        with_rows: bool,
    ) -> ReportCollector {
        let limits = Limits {
            flows,
            hops,
            reporters,
        };
        let indicators = Indicators {
            dscp,
            dscp_mask,
            udp_port,
        };
        ReportCollector(Collector::new(limits, indicators, with_rows))
    }

    /// A UDP packet's payload, with the time of its arrival in nanoseconds.
    fn take(&mut self, now_ns: u64, payload: &[u8]) {
        self.0.take(now_ns, payload);
    }

    /// Takes a batch of packets from a socket, waiting for the first, as long as there are fewer rows than `most_rows`.
    fn receive(
        &mut self,
        py: Python<'_>,
        socket: &mut ReportSocket,
        timeout_s: f64,
        most_rows: usize,
    ) -> PyResult<u64> {
        let timeout = Duration::try_from_secs_f64(timeout_s).map_err(failed)?;
        let before = self.0.packets;
        py.detach(|| {
            socket.0.wait(timeout).map_err(|e| e.to_string())?;
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            while self.0.rows() < most_rows
                && let Some(payload) = socket.0.next_payload()
            {
                self.0.take(now.as_nanos() as u64, payload);
            }
            Ok(self.0.packets - before)
        })
        .map_err(|e: String| failed(e))
    }

    /// Counts by name.
    fn counts(&self) -> BTreeMap<&'static str, u64> {
        let it = &self.0;
        BTreeMap::from([
            ("packets", it.packets),
            ("bytes", it.bytes),
            ("reports", it.reports),
            (
                "reports_lost",
                it.reporters().values().map(|it| it.lost).sum(),
            ),
            ("flows", it.flows().len() as u64),
            ("flows_evicted", it.flows().evicted()),
            ("hops_refused", it.hops_refused),
            ("reporters_refused", it.reporters_refused),
        ])
    }

    /// Payloads by the rule that they break.
    fn malformed(&self) -> BTreeMap<String, u64> {
        let counts = Malformed::ALL.map(|rule| (rule.to_string(), self.0.malformed(rule)));
        counts.into()
    }

    /// The flows with most reports, or all of them, that of the last report last.
    #[pyo3(signature = (busiest=None))]
    fn flows(&self, busiest: Option<usize>) -> Vec<(Flow, FlowTuple)> {
        let mut flows: Vec<_> = self.0.flows().iter().collect();
        if let Some(most) = busiest {
            flows.sort_by_key(|(_, state)| std::cmp::Reverse(state.reports));
            flows.truncate(most);
        }
        let row = |(key, it): (&FlowKey, &::telemetry::FlowState)| {
            let state = (
                it.reports,
                it.first_ns,
                it.last_ns,
                it.path.clone(),
                it.path_changes,
                it.latency_last,
                it.latency_max,
                it.drops,
                it.drop_reason,
                it.hops_exceeded,
                it.mtu_exceeded,
            );
            (flow(key), state)
        };
        flows.into_iter().map(row).collect()
    }

    /// Output ports by node and port.
    fn hops(&self) -> Vec<((u32, Option<u16>), HopTuple)> {
        let row = |(key, it): (&::telemetry::HopKey, &::telemetry::HopState)| {
            let state = (
                it.packets,
                it.latency_count,
                it.latency_sum,
                it.latency_max,
                it.latency_last,
                it.latency_buckets.into(),
                it.queue_last,
                it.queue_max,
                it.tx_utilisation,
                it.congested,
            );
            ((key.node_id, key.egress_port), state)
        };
        self.0.hops().iter().map(row).collect()
    }

    /// Reported drops by node and reason.
    fn drops(&self) -> BTreeMap<(u32, u8), u64> {
        self.0.drops().clone()
    }

    /// Reports and lost ones by node and hardware subsystem.
    fn reporters(&self) -> BTreeMap<(u32, u8), (u64, u64)> {
        let reporters = self.0.reporters().iter();
        reporters
            .map(|(key, it)| (*key, (it.reports, it.lost)))
            .collect()
    }

    /// Rows that nobody has taken.
    #[getter]
    fn rows(&self) -> usize {
        self.0.rows()
    }

    /// Gives the rows away: columns of little-endian 64-bit integers, ones for what is not known; and the flows of the column `flow`,
    /// with addresses as text.
    #[allow(clippy::type_complexity)]
    fn take_rows<'py>(
        &mut self,
        py: Python<'py>,
    ) -> (Columns<'py>, Vec<(String, String, u8, u16, u16)>) {
        let rows = py.detach(|| self.0.take_rows());
        let bytes = |column: &Column| PyBytes::new(py, column);
        let columns = rows.columns().iter().map(bytes);
        let flows = rows.flows().iter().map(|key| {
            let (source, destination, protocol, source_port, destination_port) = flow(key);
            let (source, destination) = (source.to_string(), destination.to_string());
            (source, destination, protocol, source_port, destination_port)
        });
        (COLUMNS.into_iter().zip(columns).collect(), flows.collect())
    }
}
