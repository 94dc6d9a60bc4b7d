//! Between Python's records and those of `by_id`: everything is copied, so that a switch may be on another thread.

use crate::by_id::{EntityRecord, EntryRecord, MatchRecord, UpdateRecord};
use crate::entities::{
    CloneSession, CounterCell, DirectCounterCell, MulticastGroup, RegisterCell, TableEntry,
};
use crate::errors::control_error;
use engine::control::Operation;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

/// `("insert", entity)` and so on.
pub(crate) fn update(update: &Bound<'_, PyAny>) -> PyResult<UpdateRecord> {
    let (operation, entity): (String, Bound<'_, PyAny>) = update.extract()?;
    let operation = match operation.as_str() {
        "insert" => Operation::Insert,
        "modify" => Operation::Modify,
        "delete" => Operation::Delete,
        other => {
            let message = format!("{other:?} is no operation: insert, modify or delete");
            return Err(control_error(update.py(), "INVALID_ARGUMENT", &message));
        }
    };
    Ok((operation, self::entity(&entity)?))
}

fn entity(entity: &Bound<'_, PyAny>) -> PyResult<EntityRecord> {
    let py = entity.py();
    if let Ok(entry) = entity.cast::<TableEntry>() {
        return Ok(EntityRecord::TableEntry(self::entry(py, &entry.borrow())?));
    }
    if let Ok(group) = entity.cast::<MulticastGroup>() {
        let group = group.borrow();
        return Ok(EntityRecord::MulticastGroup {
            group_id: group.group_id,
            replicas: group.replicas.clone(),
        });
    }
    if let Ok(session) = entity.cast::<CloneSession>() {
        let session = session.borrow();
        return Ok(EntityRecord::CloneSession {
            session_id: session.session_id,
            replicas: session.replicas.clone(),
            packet_length_bytes: session.packet_length_bytes,
            class_of_service: session.class_of_service,
        });
    }
    if let Ok(cell) = entity.cast::<RegisterCell>() {
        let cell = cell.borrow();
        return Ok(EntityRecord::Register {
            register_id: cell.register_id,
            index: cell.index,
            value: cell.value.as_bytes(py).to_vec(),
        });
    }
    if let Ok(cell) = entity.cast::<CounterCell>() {
        let cell = cell.borrow();
        return Ok(EntityRecord::Counter {
            counter_id: cell.counter_id,
            index: cell.index,
            packets: cell.packets,
            bytes: cell.bytes,
        });
    }
    if let Ok(cell) = entity.cast::<DirectCounterCell>() {
        let cell = cell.borrow();
        return Ok(EntityRecord::DirectCounter {
            entry: self::entry(py, &cell.entry.bind(py).borrow())?,
            packets: cell.packets,
            bytes: cell.bytes,
        });
    }
    Err(PyTypeError::new_err(format!(
        "{} is no entity of the control plane",
        entity.get_type().name()?
    )))
}

pub(crate) fn entry(py: Python<'_>, entry: &TableEntry) -> PyResult<EntryRecord> {
    let mut matches = Vec::new();
    for (id, given) in entry.matches.bind(py).iter() {
        matches.push((id.extract()?, match_record(&given)?));
    }
    let mut args = Vec::new();
    for (id, value) in entry.args.bind(py).iter() {
        args.push((id.extract()?, bytes(&value)?));
    }
    Ok(EntryRecord {
        table_id: entry.table_id,
        matches,
        action_id: entry.action_id,
        args,
        priority: entry.priority,
        is_default: entry.is_default,
        counter: None,
        is_const: false,
    })
}

fn bytes(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    Ok(value.cast::<PyBytes>()?.as_bytes().to_vec())
}

fn match_record(given: &Bound<'_, PyAny>) -> PyResult<MatchRecord> {
    let tuple = given.cast::<PyTuple>()?;
    let kind: String = tuple.get_item(0)?.extract()?;
    let part = |i| tuple.get_item(i);
    Ok(match (kind.as_str(), tuple.len()) {
        ("exact", 2) => MatchRecord::Exact(bytes(&part(1)?)?),
        ("optional", 2) => MatchRecord::Optional(bytes(&part(1)?)?),
        ("lpm", 3) => MatchRecord::Lpm(bytes(&part(1)?)?, part(2)?.extract()?),
        ("ternary", 3) => MatchRecord::Ternary(bytes(&part(1)?)?, bytes(&part(2)?)?),
        ("range", 3) => MatchRecord::Range(bytes(&part(1)?)?, bytes(&part(2)?)?),
        _ => {
            let message = format!("{} is no match", tuple.repr()?);
            return Err(control_error(given.py(), "INVALID_ARGUMENT", &message));
        }
    })
}

fn match_tuple<'py>(py: Python<'py>, record: &MatchRecord) -> PyResult<Bound<'py, PyTuple>> {
    let bytes = |value: &[u8]| PyBytes::new(py, value);
    match record {
        MatchRecord::Exact(value) => ("exact", bytes(value)).into_pyobject(py),
        MatchRecord::Optional(value) => ("optional", bytes(value)).into_pyobject(py),
        MatchRecord::Lpm(value, length) => ("lpm", bytes(value), *length).into_pyobject(py),
        MatchRecord::Ternary(value, mask) => {
            ("ternary", bytes(value), bytes(mask)).into_pyobject(py)
        }
        MatchRecord::Range(low, high) => ("range", bytes(low), bytes(high)).into_pyobject(py),
    }
}

/// An entry as Python reads it.
pub(crate) fn table_entry(py: Python<'_>, record: &EntryRecord) -> PyResult<TableEntry> {
    let matches = PyDict::new(py);
    for (id, record) in &record.matches {
        matches.set_item(id, match_tuple(py, record)?)?;
    }
    let args = PyDict::new(py);
    for (id, value) in &record.args {
        args.set_item(id, PyBytes::new(py, value))?;
    }
    Ok(TableEntry {
        table_id: record.table_id,
        matches: matches.unbind(),
        action_id: record.action_id,
        args: args.unbind(),
        priority: record.priority,
        is_default: record.is_default,
        counter: record.counter,
        is_const: record.is_const,
    })
}
