//! Between Python's records and those of `by_id`: everything is copied, so that a switch may be on another thread.

use crate::by_id::objects::CallRecord;
use crate::by_id::{
    EntityRecord, EntryRecord, MatchRecord, ObjectRecord, TargetRecord, UpdateRecord,
};
use crate::entities::{
    CloneSession, CounterCell, DirectCounterCell, MulticastGroup, RegisterCell, TableEntry,
};
use crate::errors::control_error;
use crate::objects::{
    ActionProfileGroup, ActionProfileMember, DigestConfig, DirectMeterCell, MeterCell,
    ValueSetMembers,
};
use engine::control::Operation;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

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
    if let Some(object) = object(entity)? {
        return Ok(EntityRecord::Object(object));
    }
    Err(PyTypeError::new_err(format!(
        "{} is no entity of the control plane",
        entity.get_type().name()?
    )))
}

fn object(entity: &Bound<'_, PyAny>) -> PyResult<Option<ObjectRecord>> {
    let py = entity.py();
    Ok(Some(
        if let Ok(member) = entity.cast::<ActionProfileMember>() {
            let member = member.borrow();
            ObjectRecord::Member {
                profile_id: member.action_profile_id,
                member_id: member.member_id,
                call: (member.action_id, args(member.args.bind(py))?),
            }
        } else if let Ok(group) = entity.cast::<ActionProfileGroup>() {
            let group = group.borrow();
            ObjectRecord::Group {
                profile_id: group.action_profile_id,
                group_id: group.group_id,
                members: group.members.clone(),
                max_size: group.max_size,
            }
        } else if let Ok(cell) = entity.cast::<MeterCell>() {
            let cell = cell.borrow();
            ObjectRecord::Meter {
                meter_id: cell.meter_id,
                index: cell.index,
                config: cell.config,
            }
        } else if let Ok(cell) = entity.cast::<DirectMeterCell>() {
            let cell = cell.borrow();
            ObjectRecord::DirectMeter {
                entry: Box::new(entry(py, &cell.entry.bind(py).borrow())?),
                config: cell.config,
            }
        } else if let Ok(set) = entity.cast::<ValueSetMembers>() {
            let set = set.borrow();
            let members = set.members.bind(py).iter();
            let members = members.map(|member| matches(member.cast::<PyDict>()?));
            ObjectRecord::ValueSet {
                value_set_id: set.value_set_id,
                members: members.collect::<PyResult<_>>()?,
            }
        } else if let Ok(config) = entity.cast::<DigestConfig>() {
            ObjectRecord::Digest(*config.borrow())
        } else {
            return Ok(None);
        },
    ))
}

fn matches(given: &Bound<'_, PyDict>) -> PyResult<Vec<(u32, MatchRecord)>> {
    let fields = given.iter();
    fields
        .map(|(id, given)| Ok((id.extract()?, match_record(&given)?)))
        .collect()
}

fn args(given: &Bound<'_, PyDict>) -> PyResult<Vec<(u32, Vec<u8>)>> {
    let args = given.iter();
    args.map(|(id, value)| Ok((id.extract()?, bytes(&value)?)))
        .collect()
}

/// What an entry names instead of an action, if it does.
fn target(py: Python<'_>, entry: &TableEntry) -> PyResult<Option<TargetRecord>> {
    let mut targets = Vec::new();
    targets.extend(entry.member_id.map(TargetRecord::Member));
    targets.extend(entry.group_id.map(TargetRecord::Group));
    if let Some(set) = &entry.action_set {
        let actions = set.bind(py).iter().map(|action| {
            let (id, given, weight, watch_port): (u32, Bound<'_, PyDict>, u32, Option<u32>) =
                action.extract()?;
            let call: CallRecord = (id, args(&given)?);
            Ok((call, weight, watch_port))
        });
        targets.push(TargetRecord::OneShot(actions.collect::<PyResult<_>>()?));
    }
    if targets.len() > 1 {
        let message = "an entry names one of a member, a group or a set of actions";
        return Err(control_error(py, "INVALID_ARGUMENT", message));
    }
    Ok(targets.pop())
}

pub(crate) fn entry(py: Python<'_>, entry: &TableEntry) -> PyResult<EntryRecord> {
    Ok(EntryRecord {
        table_id: entry.table_id,
        matches: matches(entry.matches.bind(py))?,
        action_id: entry.action_id,
        args: args(entry.args.bind(py))?,
        priority: entry.priority,
        is_default: entry.is_default,
        idle_timeout_ns: entry.idle_timeout_ns,
        target: target(py, entry)?,
        meter_config: entry.meter_config,
        ..EntryRecord::default()
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

/// The fields of a member of a value set as Python reads them.
pub(crate) fn match_dict<'py>(
    py: Python<'py>,
    fields: &[(u32, MatchRecord)],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (id, record) in fields {
        dict.set_item(id, match_tuple(py, record)?)?;
    }
    Ok(dict)
}

/// Arguments as Python reads them.
pub(crate) fn arg_dict<'py>(
    py: Python<'py>,
    args: &[(u32, Vec<u8>)],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (id, value) in args {
        dict.set_item(id, PyBytes::new(py, value))?;
    }
    Ok(dict)
}

/// An entry as Python reads it.
pub(crate) fn table_entry(py: Python<'_>, record: &EntryRecord) -> PyResult<TableEntry> {
    let (mut member_id, mut group_id, mut action_set) = (None, None, None);
    match &record.target {
        None => {}
        Some(TargetRecord::Member(id)) => member_id = Some(*id),
        Some(TargetRecord::Group(id)) => group_id = Some(*id),
        Some(TargetRecord::OneShot(actions)) => {
            let list = PyList::empty(py);
            for ((action_id, args), weight, watch_port) in actions {
                list.append((*action_id, arg_dict(py, args)?, *weight, *watch_port))?;
            }
            action_set = Some(list.unbind());
        }
    }
    Ok(TableEntry {
        table_id: record.table_id,
        matches: match_dict(py, &record.matches)?.unbind(),
        action_id: record.action_id,
        args: arg_dict(py, &record.args)?.unbind(),
        priority: record.priority,
        is_default: record.is_default,
        idle_timeout_ns: record.idle_timeout_ns,
        member_id,
        group_id,
        action_set,
        meter_config: record.meter_config,
        counter: record.counter,
        meter_counters: record.meter_counters,
        idle_ns: record.idle_ns,
        is_const: record.is_const,
    })
}
