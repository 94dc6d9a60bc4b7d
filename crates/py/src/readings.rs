//! Results for Python: objects of the dataclasses in `holdfast.measurements`, and columns of logs. It does not know the network.

use net::{DirectionCounters, LinkCounters, ReceivedLog, SentLog, WindowLog};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

/// Makes an object of a dataclass of `holdfast.measurements`: `record!(py, Class, value, [field, ...], {field: expression, ...})`. The
/// listed fields have the names of the value's. The dataclass refuses missing and unknown fields.
macro_rules! record {
    ($py:expr, $class:ident, $value:expr, [$($field:ident),* $(,)?] $(, {$($other:ident: $given:expr),* $(,)?})?) => {{
        let (_value, fields) = (&$value, pyo3::types::PyDict::new($py));
        $(fields.set_item(stringify!($field), _value.$field)?;)*
        $($(fields.set_item(stringify!($other), $given)?;)*)?
        $crate::readings::dataclass($py, stringify!($class), &fields)
    }};
}
pub(crate) use record;

pub(crate) fn dataclass<'py>(
    py: Python<'py>,
    class: &str,
    fields: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import("holdfast.measurements")?.getattr(class)?;
    class.call((), Some(fields))
}

/// The bytes of a column.
pub(crate) type Column = Vec<u8>;

/// A column of a log, as little-endian 64-bit integers.
pub(crate) fn column(values: impl ExactSizeIterator<Item = u64>) -> Column {
    let mut bytes = Vec::with_capacity(values.len() * 8);
    for value in values {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes
}

pub(crate) fn sent_columns(log: &SentLog) -> [Column; 2] {
    let sent_ps = &log.sent_ps;
    [
        column((0..sent_ps.len()).map(|i| i as u64)),
        column(sent_ps.iter().copied()),
    ]
}

pub(crate) fn received_columns(log: &ReceivedLog) -> [Column; 3] {
    [&log.sequence, &log.sent_ps, &log.received_ps].map(|values| column(values.iter().copied()))
}

pub(crate) fn window_columns(log: &WindowLog) -> [Column; 5] {
    let columns = [
        &log.time_ps,
        &log.cwnd_bytes,
        &log.ssthresh_bytes,
        &log.flight_bytes,
        &log.srtt_ps,
    ];
    // Python's columns are signed; "no threshold yet" is the largest of them.
    columns.map(|values| column(values.iter().map(|v| (*v).min(i64::MAX as u64))))
}

/// Columns as a tuple of bytes.
pub(crate) fn tuple<'py, const N: usize>(
    py: Python<'py>,
    columns: [Column; N],
) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, columns.iter().map(|column| PyBytes::new(py, column)))
}

pub(crate) fn link_counters<'py>(py: Python<'py>, c: &LinkCounters) -> PyResult<Bound<'py, PyAny>> {
    let direction = |c: &DirectionCounters| {
        record!(
            py,
            DirectionCounters,
            c,
            [
                packets,
                bytes,
                queue_drops,
                red_drops,
                marked,
                loss_drops,
                down_drops,
                mtu_drops,
                offered,
                delivered,
                frame_bytes,
                in_transit,
            ]
        )
    };
    record!(py, LinkCounters, (), [], { a_to_b: direction(&c.a_to_b)?, b_to_a: direction(&c.b_to_a)? })
}
