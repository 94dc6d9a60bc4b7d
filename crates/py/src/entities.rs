//! The data of the control plane as Python sees it: plain records, named by P4Runtime ids, without any check.
//!
//! What they mean to a switch is found in `by_id`.

use crate::objects::{ColourCounts, MeterRates, shown};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

/// Egress port and instance of each copy.
pub(crate) type Replicas = Vec<(u32, u32)>;

/// The default of a dict argument, which the signature shows as an ellipsis.
pub(crate) fn new_dict<'py>() -> Option<Bound<'py, PyDict>> {
    None
}

/// A dict that was given, or a new one: every record has its own.
pub(crate) fn own(py: Python<'_>, dict: Option<Bound<'_, PyDict>>) -> Py<PyDict> {
    dict.unwrap_or_else(|| PyDict::new(py)).unbind()
}

/// An entry of a table, or its default entry.
#[pyclass(module = "holdfast._core", get_all, set_all)]
pub(crate) struct TableEntry {
    pub table_id: u32,
    pub matches: Py<PyDict>,
    pub action_id: u32,
    pub args: Py<PyDict>,
    pub priority: i32,
    pub is_default: bool,
    pub idle_timeout_ns: u64,
    pub member_id: Option<u32>,
    pub group_id: Option<u32>,
    pub action_set: Option<Py<PyList>>,
    pub meter_config: Option<MeterRates>,
    pub counter: Option<(u64, u64)>,
    pub meter_counters: Option<ColourCounts>,
    pub idle_ns: Option<u64>,
    pub is_const: bool,
}

#[pymethods]
impl TableEntry {
    #[new]
    #[pyo3(signature = (
        table_id, matches=new_dict(), action_id=0, args=new_dict(), priority=0, is_default=false, idle_timeout_ns=0,
        member_id=None, group_id=None, action_set=None, meter_config=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are the fields")]
    fn new(
        py: Python<'_>,
        table_id: u32,
        matches: Option<Bound<'_, PyDict>>,
        action_id: u32,
        args: Option<Bound<'_, PyDict>>,
        priority: i32,
        is_default: bool,
        idle_timeout_ns: u64,
        member_id: Option<u32>,
        group_id: Option<u32>,
        action_set: Option<Bound<'_, PyList>>,
        meter_config: Option<MeterRates>,
    ) -> TableEntry {
        TableEntry {
            table_id,
            matches: own(py, matches),
            action_id,
            args: own(py, args),
            priority,
            is_default,
            idle_timeout_ns,
            member_id,
            group_id,
            action_set: action_set.map(Bound::unbind),
            meter_config,
            counter: None,
            meter_counters: None,
            idle_ns: None,
            is_const: false,
        }
    }

    fn __eq__(&self, py: Python<'_>, other: &TableEntry) -> PyResult<bool> {
        let plain = |e: &TableEntry| {
            (
                (e.table_id, e.action_id, e.priority, e.is_default),
                (e.idle_timeout_ns, e.member_id, e.group_id, e.meter_config),
                (e.counter, e.meter_counters, e.idle_ns, e.is_const),
            )
        };
        let sets = match (&self.action_set, &other.action_set) {
            (Some(a), Some(b)) => a.bind(py).eq(b.bind(py))?,
            (a, b) => a.is_none() && b.is_none(),
        };
        Ok(sets
            && plain(self) == plain(other)
            && self.matches.bind(py).eq(other.matches.bind(py))?
            && self.args.bind(py).eq(other.args.bind(py))?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let flag = |b| if b { "True" } else { "False" };
        let mut rest = String::new();
        if self.idle_timeout_ns != 0 {
            rest += &format!(", idle_timeout_ns={}", self.idle_timeout_ns);
        }
        for (name, id) in [("member_id", self.member_id), ("group_id", self.group_id)] {
            if let Some(id) = id {
                rest += &format!(", {name}={id}");
            }
        }
        if let Some(set) = &self.action_set {
            rest += &format!(", action_set={}", set.bind(py).repr()?);
        }
        if self.meter_config.is_some() {
            rest += &format!(", meter_config={}", shown(&self.meter_config));
        }
        Ok(format!(
            "TableEntry(table_id={}, matches={}, action_id={}, args={}, priority={}, is_default={}{rest})",
            self.table_id,
            self.matches.bind(py).repr()?,
            self.action_id,
            self.args.bind(py).repr()?,
            self.priority,
            flag(self.is_default)
        ))
    }
}

/// A multicast group.
#[pyclass(module = "holdfast._core", get_all, set_all, eq)]
#[derive(PartialEq)]
pub(crate) struct MulticastGroup {
    pub group_id: u32,
    pub replicas: Replicas,
}

#[pymethods]
impl MulticastGroup {
    #[new]
    #[pyo3(signature = (group_id, replicas=Vec::new()), text_signature = "(group_id, replicas=())")]
    fn new(group_id: u32, replicas: Replicas) -> MulticastGroup {
        MulticastGroup { group_id, replicas }
    }

    fn __repr__(&self) -> String {
        format!(
            "MulticastGroup(group_id={}, replicas={:?})",
            self.group_id, self.replicas
        )
    }
}

/// A clone session.
#[pyclass(module = "holdfast._core", get_all, set_all, eq)]
#[derive(PartialEq)]
pub(crate) struct CloneSession {
    pub session_id: u32,
    pub replicas: Replicas,
    pub packet_length_bytes: u32,
    pub class_of_service: u32,
}

#[pymethods]
impl CloneSession {
    #[new]
    #[pyo3(
        signature = (session_id, replicas=Vec::new(), packet_length_bytes=0, class_of_service=0),
        text_signature = "(session_id, replicas=(), packet_length_bytes=0, class_of_service=0)"
    )]
    fn new(
        session_id: u32,
        replicas: Replicas,
        packet_length_bytes: u32,
        class_of_service: u32,
    ) -> CloneSession {
        CloneSession {
            session_id,
            replicas,
            packet_length_bytes,
            class_of_service,
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "CloneSession(session_id={}, replicas={:?}, packet_length_bytes={}, class_of_service={})",
            self.session_id, self.replicas, self.packet_length_bytes, self.class_of_service
        )
    }
}

/// A cell of a register.
#[pyclass(module = "holdfast._core", get_all, set_all)]
pub(crate) struct RegisterCell {
    pub register_id: u32,
    pub index: Option<u64>,
    pub value: Py<PyBytes>,
}

#[pymethods]
impl RegisterCell {
    #[new]
    fn new(register_id: u32, index: Option<u64>, value: Bound<'_, PyBytes>) -> RegisterCell {
        RegisterCell {
            register_id,
            index,
            value: value.unbind(),
        }
    }

    fn __eq__(&self, py: Python<'_>, other: &RegisterCell) -> bool {
        self.register_id == other.register_id
            && self.index == other.index
            && self.value.as_bytes(py) == other.value.as_bytes(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "RegisterCell(register_id={}, index={}, value={})",
            self.register_id,
            shown(&self.index),
            self.value.bind(py).repr()?
        ))
    }
}

/// A cell of a counter.
#[pyclass(module = "holdfast._core", get_all, set_all, eq)]
#[derive(PartialEq)]
pub(crate) struct CounterCell {
    pub counter_id: u32,
    pub index: Option<u64>,
    pub packets: u64,
    pub bytes: u64,
}

#[pymethods]
impl CounterCell {
    #[new]
    #[pyo3(signature = (counter_id, index, packets=0, bytes=0))]
    fn new(counter_id: u32, index: Option<u64>, packets: u64, bytes: u64) -> CounterCell {
        CounterCell {
            counter_id,
            index,
            packets,
            bytes,
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "CounterCell(counter_id={}, index={}, packets={}, bytes={})",
            self.counter_id,
            shown(&self.index),
            self.packets,
            self.bytes
        )
    }
}

/// The direct counter of the entry that ``entry`` names by table, matches and priority.
#[pyclass(module = "holdfast._core", get_all, set_all)]
pub(crate) struct DirectCounterCell {
    pub entry: Py<TableEntry>,
    pub packets: u64,
    pub bytes: u64,
}

#[pymethods]
impl DirectCounterCell {
    #[new]
    #[pyo3(signature = (entry, packets=0, bytes=0))]
    fn new(entry: Py<TableEntry>, packets: u64, bytes: u64) -> DirectCounterCell {
        DirectCounterCell {
            entry,
            packets,
            bytes,
        }
    }

    fn __eq__(&self, py: Python<'_>, other: &DirectCounterCell) -> PyResult<bool> {
        Ok(self.packets == other.packets
            && self.bytes == other.bytes
            && self.entry.bind(py).eq(other.entry.bind(py))?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "DirectCounterCell(entry={}, packets={}, bytes={})",
            self.entry.bind(py).repr()?,
            self.packets,
            self.bytes
        ))
    }
}
