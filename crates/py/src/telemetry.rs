//! Telemetry reports for Python: the decoder, a collector, and the socket where reports arrive.
#![expect(
    clippy::disallowed_methods,
    reason = "reports are received in real time, and stamped"
)]

use crate::errors::failed;
use ::telemetry::{COLUMNS, Collector, Limits};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wire::report::{self, Embedded, FlowKey, Hop, Indicators, Malformed, Mode, Report};

/// A flow: source, destination, protocol and ports.
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

/// Decodes the individual reports in a UDP payload. Raises `HoldfastError` that names the rule which the payload
/// violates.
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

/// Decodes a report in the thesis's format. Returns the original UDP port and the hops, the first one first, each as
/// time, bytes, queue, switch and port. Raises HoldfastError if the report is damaged.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub(crate) fn decode_thesis_report(
    payload: &[u8],
) -> PyResult<(u16, Vec<(u32, u32, u16, u8, u8)>)> {
    let (port, hops) = report::decode_thesis(payload).map_err(failed)?;
    let hop = |it: &report::ThesisHop| (it.timestamp, it.tx_bytes, it.queue, it.switch_id, it.port);
    Ok((port, hops.iter().map(hop).collect()))
}

/// Returns the rules that a payload can violate, as texts.
pub(crate) fn rules() -> Vec<String> {
    Malformed::ALL.map(|rule| rule.to_string()).into()
}

/// A UDP socket that receives telemetry reports. Only one thread at a time takes packets.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct ReportSocket {
    socket: Mutex<::ports::ReportSocket>,
    port: u16,
}

impl ReportSocket {
    fn lock(&self) -> MutexGuard<'_, ::ports::ReportSocket> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl ReportSocket {
    #[new]
    fn new(address: IpAddr, port: u16, buffer_bytes: u32) -> PyResult<ReportSocket> {
        let socket = ::ports::ReportSocket::open(SocketAddr::new(address, port), buffer_bytes);
        let socket = socket.map_err(failed)?;
        Ok(ReportSocket {
            port: socket.address().port(),
            socket: Mutex::new(socket),
        })
    }

    /// Returns the UDP port at which the socket listens.
    #[getter]
    fn port(&self) -> u16 {
        self.port
    }

    /// Returns the number of packets dropped because the kernel's buffer was full.
    fn drops(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.lock().drops())
    }

    /// Makes the socket accept no more packets; those that wait can still be received. Raises HoldfastError if the
    /// kernel refuses that.
    fn refuse_more(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lock().refuse_more()).map_err(failed)
    }

    /// Discards the waiting packets, and returns their number.
    fn discard(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| {
            let (mut socket, mut count) = (self.lock(), 0);
            loop {
                socket.wait(Duration::ZERO).map_err(|e| e.to_string())?;
                let mut batch = 0;
                while socket.next_payload().is_some() {
                    batch += 1;
                }
                if batch == 0 {
                    return Ok(count);
                }
                count += batch;
            }
        })
        .map_err(|e: String| failed(e))
    }
}

/// After a batch of fewer packets than this, the thread sleeps for [`PAUSE`], so that the next batch is larger.
const FEW: u64 = 32;

const PAUSE: Duration = Duration::from_millis(1);

/// The tables of a telemetry collector. One thread can receive while others read: a call locks the tables for a
/// batch, or while it copies.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct ReportCollector(Mutex<Collector>);

impl ReportCollector {
    /// Calls `read` with the collector, while other Python threads may run, and returns its result.
    fn with<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&mut Collector) -> T + Send) -> T {
        py.detach(|| read(&mut self.lock()))
    }

    fn lock(&self) -> MutexGuard<'_, Collector> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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

fn hop_row(
    (key, it): (&::telemetry::HopKey, &::telemetry::HopState),
) -> ((u32, Option<u16>), HopTuple) {
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
}

type Columns<'py> = Vec<(&'static str, Bound<'py, PyBytes>)>;

#[pymethods]
impl ReportCollector {
    #[new]
    #[pyo3(signature = (flows, hops, reporters, *, dscp, dscp_mask, udp_port, with_rows, most_rows=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        flows: usize,
        hops: usize,
        reporters: usize,
        dscp: u8,
        dscp_mask: u8,
        udp_port: u16,
        with_rows: bool,
        most_rows: Option<usize>,
    ) -> ReportCollector {
        let limits = Limits {
            flows,
            hops,
            reporters,
            rows: most_rows.unwrap_or(usize::MAX),
        };
        let indicators = Indicators {
            dscp,
            dscp_mask,
            udp_port,
        };
        ReportCollector(Mutex::new(Collector::new(limits, indicators, with_rows)))
    }

    /// Processes the payload of a UDP packet that arrived at ``now_ns`` nanoseconds.
    fn take(&self, now_ns: u64, payload: &[u8]) {
        self.lock().take(now_ns, payload);
    }

    /// Receives packets from a socket and processes them: waits up to ``timeout_s`` seconds for the first, then
    /// continues until none waits or ``for_s`` seconds have passed since the call. Returns the number of packets.
    /// Raises HoldfastError if the socket fails.
    #[pyo3(signature = (socket, timeout_s, for_s=0.0))]
    fn receive(
        &self,
        py: Python<'_>,
        socket: &ReportSocket,
        timeout_s: f64,
        for_s: f64,
    ) -> PyResult<u64> {
        let timeout = Duration::try_from_secs_f64(timeout_s).map_err(failed)?;
        let time = Duration::try_from_secs_f64(for_s).map_err(failed)?;
        py.detach(|| {
            let mut socket = socket.lock();
            let (start, mut count) = (Instant::now(), 0);
            let mut wait = timeout;
            loop {
                socket.wait(wait).map_err(|e| e.to_string())?;
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let now_ns = now.unwrap_or_default().as_nanos() as u64;
                let batch = {
                    let mut collector = self.lock();
                    let before = collector.packets;
                    while let Some(payload) = socket.next_payload() {
                        collector.take(now_ns, payload);
                    }
                    collector.packets - before
                };
                count += batch;
                let passed = start.elapsed();
                if batch == 0 || passed >= time {
                    return Ok(count);
                }
                if batch < FEW {
                    std::thread::sleep(PAUSE);
                }
                wait = time - passed.min(time);
            }
        })
        .map_err(|e: String| failed(e))
    }

    /// Returns the counts so far, by name.
    fn counts(&self, py: Python<'_>) -> BTreeMap<&'static str, u64> {
        self.with(py, |it| {
            let lost = it.reporters().values().map(|it| it.lost).sum();
            BTreeMap::from([
                ("packets", it.packets),
                ("bytes", it.bytes),
                ("reports", it.reports),
                ("reports_lost", lost),
                ("flows", it.flows().len() as u64),
                ("flows_evicted", it.flows().evicted()),
                ("hops", it.hops().len() as u64),
                ("hops_refused", it.hops_refused),
                ("drops", it.drops().values().sum()),
                ("drop_reasons", it.drops().len() as u64),
                ("reporters_refused", it.reporters_refused),
                ("rows_refused", it.rows_refused),
            ])
        })
    }

    /// Returns the number of malformed payloads for each rule that was violated.
    fn malformed(&self) -> BTreeMap<String, u64> {
        let collector = self.lock();
        let counts = Malformed::ALL.map(|rule| (rule.to_string(), collector.malformed(rule)));
        counts.into()
    }

    /// Returns all flows, ordered by their latest reports, or with ``busiest`` that many flows with the most reports,
    /// those first.
    #[pyo3(signature = (busiest=None))]
    fn flows(&self, py: Python<'_>, busiest: Option<usize>) -> Vec<(Flow, FlowTuple)> {
        self.with(py, |collector| {
            let mut flows: Vec<_> = collector.flows().iter().collect();
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
        })
    }

    /// Returns output ports by node and port: all of them, the ``first`` ones that were reported, or the ``slowest``,
    /// which have the highest latency.
    #[pyo3(signature = (*, first=None, slowest=None))]
    fn hops(
        &self,
        py: Python<'_>,
        first: Option<usize>,
        slowest: Option<usize>,
    ) -> Vec<((u32, Option<u16>), HopTuple)> {
        self.with(py, |it| match (first, slowest) {
            (_, Some(most)) => {
                let mut hops: Vec<_> = it.hops().iter().collect();
                hops.sort_by_key(|(_, it)| std::cmp::Reverse((it.latency_max, it.packets)));
                hops.into_iter().take(most).map(hop_row).collect()
            }
            (Some(most), None) => it.first_hops(most).map(hop_row).collect(),
            (None, None) => it.hops().iter().map(hop_row).collect(),
        })
    }

    /// Returns the numbers of reported drops by node and reason: all of them, or the ``first`` ones that were
    /// reported.
    #[pyo3(signature = (*, first=None))]
    fn drops(&self, py: Python<'_>, first: Option<usize>) -> BTreeMap<(u32, u8), u64> {
        self.with(py, |it| match first {
            None => it.drops().clone(),
            Some(most) => it.first_drops(most).map(|(key, it)| (*key, *it)).collect(),
        })
    }

    /// Returns the numbers of received and of lost reports, by node and hardware subsystem.
    fn reporters(&self, py: Python<'_>) -> BTreeMap<(u32, u8), (u64, u64)> {
        self.with(py, |it| {
            let reporters = it.reporters().iter();
            reporters
                .map(|(key, it)| (*key, (it.reports, it.lost)))
                .collect()
        })
    }

    /// Returns the number of rows that have not been taken yet.
    #[getter]
    fn rows(&self) -> usize {
        self.lock().rows()
    }

    /// Removes and returns the rows: the columns of little-endian 64-bit integers, in which all ones mean unknown, and
    /// the flows to which the column `flow` refers, with addresses as text.
    #[allow(clippy::type_complexity)]
    fn take_rows<'py>(
        &self,
        py: Python<'py>,
    ) -> (Columns<'py>, Vec<(String, String, u8, u16, u16)>) {
        let rows = self.with(py, Collector::take_rows);
        let bytes = |column: &Vec<u8>| PyBytes::new(py, column);
        let columns = rows.columns().iter().map(bytes);
        let flows = rows.flows().iter().map(|key| {
            let (source, destination, protocol, source_port, destination_port) = flow(key);
            let (source, destination) = (source.to_string(), destination.to_string());
            (source, destination, protocol, source_port, destination_port)
        });
        (COLUMNS.into_iter().zip(columns).collect(), flows.collect())
    }
}
