//! Results for Python: objects of the dataclasses in `holdfast.measurements`, and columns of logs. It does not know the network.

use net::{DirectionCounters, LinkCounters, ReceivedLog, SentLog, WindowLog};
use pyo3::prelude::*;

/// Makes an object of a dataclass of `holdfast.measurements`: `record!(Class, value, [field, ...], {field: expression, ...})`. The
/// listed fields have the names of the value's. The dataclass refuses missing and unknown fields.
macro_rules! record {
    ($class:ident, $value:expr, [$($field:ident),* $(,)?] $(, {$($other:ident: $given:expr),* $(,)?})?) => {{
        pyo3::Python::attach(|py| {
            let (_value, fields) = (&$value, pyo3::types::PyDict::new(py));
            $(fields.set_item(stringify!($field), _value.$field)?;)*
            $($(fields.set_item(stringify!($other), $given)?;)*)?
            let class = py.import("holdfast.measurements")?.getattr(stringify!($class))?;
            class.call((), Some(&fields)).map($crate::readings::Record::from)
        })
    }};
}
pub(crate) use record;

/// An object of a dataclass.
pub(crate) type Record = Py<PyAny>;

/// The bytes of a column.
pub(crate) type Column = Vec<u8>;

/// Encodes a column of a log as little-endian 64-bit integers.
pub(crate) fn column(values: impl ExactSizeIterator<Item = u64>) -> Column {
    let mut bytes = Vec::with_capacity(values.len() * 8);
    for value in values {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    bytes
}

pub(crate) fn sent_columns(log: &SentLog) -> (Column, Column) {
    let sent_ps = &log.sent_ps;
    let numbers = (0..sent_ps.len()).map(|i| i as u64);
    (column(numbers), column(sent_ps.iter().copied()))
}

pub(crate) fn received_columns(log: &ReceivedLog) -> (Column, Column, Column) {
    [&log.sequence, &log.sent_ps, &log.received_ps]
        .map(|values| column(values.iter().copied()))
        .into()
}

/// Columns of a log of windows.
pub(crate) type WindowColumns = (Column, Column, Column, Column, Column);

pub(crate) fn window_columns(log: &WindowLog) -> WindowColumns {
    let columns = [
        &log.time_ps,
        &log.cwnd_bytes,
        &log.ssthresh_bytes,
        &log.flight_bytes,
        &log.srtt_ps,
    ];
    // Python's columns are signed; "no threshold yet" is the largest of them.
    columns
        .map(|values| column(values.iter().map(|v| (*v).min(i64::MAX as u64))))
        .into()
}

pub(crate) fn link_counters(c: &LinkCounters) -> PyResult<Record> {
    let direction = |c: &DirectionCounters| {
        record!(
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
    record!(LinkCounters, (), [], { a_to_b: direction(&c.a_to_b)?, b_to_a: direction(&c.b_to_a)? })
}
