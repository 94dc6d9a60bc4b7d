//! What is read from a network, as dictionaries and columns. It does not know the network.

use net::clock::wall::WallStatistics;
use net::{
    FlowStatistics, GroupStatistics, LinkCounters, NodeCounters, ReceivedLog, SentLog, WindowLog,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Names and the bytes of columns.
pub(crate) type Columns = Vec<(&'static str, Vec<u8>)>;

/// A column of a log, as little-endian 64-bit integers.
pub(crate) fn column(values: impl ExactSizeIterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * 8);
    for value in values {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes
}

pub(crate) fn sent_columns(log: &SentLog) -> Columns {
    let sent_ps = &log.sent_ps;
    vec![
        ("sequence", column((0..sent_ps.len()).map(|i| i as u64))),
        ("sent_ps", column(sent_ps.iter().copied())),
    ]
}

pub(crate) fn received_columns(log: &ReceivedLog) -> Columns {
    let column = |values: &[u64]| column(values.iter().copied());
    vec![
        ("sequence", column(&log.sequence)),
        ("sent_ps", column(&log.sent_ps)),
        ("received_ps", column(&log.received_ps)),
    ]
}

pub(crate) fn window_columns(log: &WindowLog) -> Columns {
    // Python's columns are signed; "no threshold yet" is the largest of them.
    let column = |values: &[u64]| column(values.iter().map(|v| (*v).min(i64::MAX as u64)));
    vec![
        ("time_ps", column(&log.time_ps)),
        ("cwnd_bytes", column(&log.cwnd_bytes)),
        ("ssthresh_bytes", column(&log.ssthresh_bytes)),
        ("flight_bytes", column(&log.flight_bytes)),
        ("srtt_ps", column(&log.srtt_ps)),
    ]
}

pub(crate) fn columns_dict<'py>(py: Python<'py>, columns: Columns) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, bytes) in columns {
        dict.set_item(name, PyBytes::new(py, &bytes))?;
    }
    Ok(dict)
}

pub(crate) fn flow_dict<'py>(py: Python<'py>, s: &FlowStatistics) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in [
        ("sent", s.sent),
        ("delivered", s.delivered),
        ("lost", s.lost),
        ("duplicated", s.duplicated),
        ("reordered", s.reordered),
        ("undecided", s.undecided),
        ("longest_outage_ps", s.longest_outage_ps),
    ] {
        dict.set_item(name, value)?;
    }
    dict.set_item("latency_mean_ps", s.latency.map(|l| l.mean_ps))?;
    dict.set_item("latency_min_ps", s.latency.map(|l| l.min_ps))?;
    dict.set_item("latency_p50_ps", s.latency.and_then(|l| l.p50_ps))?;
    dict.set_item("latency_p99_ps", s.latency.and_then(|l| l.p99_ps))?;
    dict.set_item("latency_max_ps", s.latency.map(|l| l.max_ps))?;
    dict.set_item("interarrival_jitter_ps", s.interarrival_jitter_ps)?;
    dict.set_item("mean_delay_variation_ps", s.mean_delay_variation_ps)?;
    Ok(dict)
}

/// Both directions of a link.
pub(crate) fn link_dict<'py>(
    py: Python<'py>,
    counters: &LinkCounters,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (direction, c) in [("a_to_b", counters.a_to_b), ("b_to_a", counters.b_to_a)] {
        for (name, value) in [
            ("packets", c.packets),
            ("bytes", c.bytes),
            ("queue_drops", c.queue_drops),
            ("red_drops", c.red_drops),
            ("marked", c.marked),
            ("loss_drops", c.loss_drops),
            ("down_drops", c.down_drops),
            ("mtu_drops", c.mtu_drops),
            ("offered", c.offered),
            ("delivered", c.delivered),
            ("frame_bytes", c.frame_bytes),
            ("in_transit", c.in_transit),
        ] {
            dict.set_item(format!("{direction}_{name}"), value)?;
        }
    }
    Ok(dict)
}

pub(crate) fn node_dict<'py>(py: Python<'py>, c: &NodeCounters) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in [
        ("received", c.received),
        ("sent", c.sent),
        ("packet_ins", c.packet_ins),
        ("unconnected_drops", c.unconnected_drops),
        ("queue_drops", c.queue_drops),
        ("down_drops", c.down_drops),
        ("accepted", c.accepted),
        ("not_addressed", c.not_addressed),
        ("unwanted", c.unwanted),
        ("corrupted", c.corrupted),
        ("interface_drops", c.interface_drops),
    ] {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

pub(crate) fn group_dict<'py>(
    py: Python<'py>,
    s: &GroupStatistics,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in [
        ("received", Some(s.received)),
        ("duplicates", Some(s.duplicates)),
        ("out_of_order", Some(s.out_of_order)),
        ("first_ps", s.first_ps),
        ("last_ps", s.last_ps),
        ("longest_gap_ps", Some(s.longest_gap_ps)),
        ("unwanted", Some(s.unwanted)),
        ("last_unwanted_ps", s.last_unwanted_ps),
    ] {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}

pub(crate) fn wall_dict<'py>(py: Python<'py>, s: &WallStatistics) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in [
        ("events", s.events),
        ("max_lateness_ps", s.max_lateness_ps),
        ("total_lateness_ps", s.total_lateness_ps),
        ("frames_in", s.frames_in),
        ("frames_out", s.frames_out),
        ("max_command_ps", s.max_command_ps),
        ("max_command_cpu_ps", s.max_command_cpu_ps),
        ("notifications_lost", s.notifications_lost),
    ] {
        dict.set_item(name, value)?;
    }
    Ok(dict)
}
