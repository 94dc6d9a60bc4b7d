//! The data of the stateful objects besides tables, counters and registers, as Python sees it: plain records, named by
//! P4Runtime ids, without any check.
//!
//! What they mean to a switch is found in `by_id`.

use crate::entities::{TableEntry, new_dict, own};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

/// cir, cburst, pir, pburst.
pub(crate) type MeterRates = (u64, u64, u64, u64);

/// Packets and bytes of green, yellow and red.
pub(crate) type ColourCounts = ((u64, u64), (u64, u64), (u64, u64));

/// Member id, weight, watched port.
pub(crate) type ProfileMember = (u32, u32, Option<u32>);

/// How Python writes a value that may be missing.
pub(crate) fn shown<T: std::fmt::Debug>(value: &Option<T>) -> String {
    value
        .as_ref()
        .map_or("None".to_owned(), |value| format!("{value:?}"))
}

/// A member of an action profile: an action with arguments.
#[pyclass(module = "holdfast._core", get_all, set_all)]
pub(crate) struct ActionProfileMember {
    pub action_profile_id: u32,
    pub member_id: u32,
    pub action_id: u32,
    pub args: Py<PyDict>,
}

#[pymethods]
impl ActionProfileMember {
    #[new]
    #[pyo3(signature = (action_profile_id, member_id, action_id=0, args=new_dict()))]
    fn new(
        py: Python<'_>,
        action_profile_id: u32,
        member_id: u32,
        action_id: u32,
        args: Option<Bound<'_, PyDict>>,
    ) -> ActionProfileMember {
        ActionProfileMember {
            action_profile_id,
            member_id,
            action_id,
            args: own(py, args),
        }
    }

    fn __eq__(&self, py: Python<'_>, other: &ActionProfileMember) -> PyResult<bool> {
        Ok(self.action_profile_id == other.action_profile_id
            && self.member_id == other.member_id
            && self.action_id == other.action_id
            && self.args.bind(py).eq(other.args.bind(py))?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "ActionProfileMember(action_profile_id={}, member_id={}, action_id={}, args={})",
            self.action_profile_id,
            self.member_id,
            self.action_id,
            self.args.bind(py).repr()?
        ))
    }
}

/// A group of members of an action selector.
#[pyclass(module = "holdfast._core", get_all, set_all, eq)]
#[derive(PartialEq)]
pub(crate) struct ActionProfileGroup {
    pub action_profile_id: u32,
    pub group_id: u32,
    pub members: Vec<ProfileMember>,
    pub max_size: u64,
}

#[pymethods]
impl ActionProfileGroup {
    #[new]
    #[pyo3(
        signature = (action_profile_id, group_id, members=Vec::new(), max_size=0),
        text_signature = "(action_profile_id, group_id, members=(), max_size=0)"
    )]
    fn new(
        action_profile_id: u32,
        group_id: u32,
        members: Vec<ProfileMember>,
        max_size: u64,
    ) -> ActionProfileGroup {
        ActionProfileGroup {
            action_profile_id,
            group_id,
            members,
            max_size,
        }
    }

    fn __repr__(&self) -> String {
        let members = self.members.iter().map(|(id, weight, port)| {
            let port = shown(port);
            format!("({id}, {weight}, {port})")
        });
        format!(
            "ActionProfileGroup(action_profile_id={}, group_id={}, members=[{}], max_size={})",
            self.action_profile_id,
            self.group_id,
            members.collect::<Vec<_>>().join(", "),
            self.max_size
        )
    }
}

/// A cell of a meter.
#[pyclass(module = "holdfast._core", get_all, set_all, eq)]
#[derive(PartialEq)]
pub(crate) struct MeterCell {
    pub meter_id: u32,
    pub index: Option<u64>,
    pub config: Option<MeterRates>,
    pub counters: Option<ColourCounts>,
}

#[pymethods]
impl MeterCell {
    #[new]
    #[pyo3(signature = (meter_id, index, config=None))]
    fn new(meter_id: u32, index: Option<u64>, config: Option<MeterRates>) -> MeterCell {
        MeterCell {
            meter_id,
            index,
            config,
            counters: None,
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "MeterCell(meter_id={}, index={}, config={})",
            self.meter_id,
            shown(&self.index),
            shown(&self.config)
        )
    }
}

/// The direct meter of the entry that ``entry`` names by table, matches and priority.
#[pyclass(module = "holdfast._core", get_all, set_all)]
pub(crate) struct DirectMeterCell {
    pub entry: Py<TableEntry>,
    pub config: Option<MeterRates>,
}

#[pymethods]
impl DirectMeterCell {
    #[new]
    #[pyo3(signature = (entry, config=None))]
    fn new(entry: Py<TableEntry>, config: Option<MeterRates>) -> DirectMeterCell {
        DirectMeterCell { entry, config }
    }

    fn __eq__(&self, py: Python<'_>, other: &DirectMeterCell) -> PyResult<bool> {
        Ok(self.config == other.config && self.entry.bind(py).eq(other.entry.bind(py))?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "DirectMeterCell(entry={}, config={})",
            self.entry.bind(py).repr()?,
            shown(&self.config)
        ))
    }
}

/// All members of a value set.
#[pyclass(module = "holdfast._core", get_all, set_all)]
pub(crate) struct ValueSetMembers {
    pub value_set_id: u32,
    pub members: Py<PyList>,
}

#[pymethods]
impl ValueSetMembers {
    #[new]
    fn new(
        py: Python<'_>,
        value_set_id: u32,
        members: Vec<Bound<'_, PyDict>>,
    ) -> PyResult<ValueSetMembers> {
        Ok(ValueSetMembers {
            value_set_id,
            members: PyList::new(py, members)?.unbind(),
        })
    }

    fn __eq__(&self, py: Python<'_>, other: &ValueSetMembers) -> PyResult<bool> {
        Ok(self.value_set_id == other.value_set_id
            && self.members.bind(py).eq(other.members.bind(py))?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "ValueSetMembers(value_set_id={}, members={})",
            self.value_set_id,
            self.members.bind(py).repr()?
        ))
    }
}

/// How messages of a digest are delivered.
#[pyclass(module = "holdfast._core", get_all, set_all, eq)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DigestConfig {
    pub digest_id: u32,
    pub max_timeout_ns: u64,
    pub max_list_size: u32,
    pub ack_timeout_ns: u64,
}

#[pymethods]
impl DigestConfig {
    #[new]
    #[pyo3(signature = (digest_id, max_timeout_ns=0, max_list_size=0, ack_timeout_ns=0))]
    fn new(
        digest_id: u32,
        max_timeout_ns: u64,
        max_list_size: u32,
        ack_timeout_ns: u64,
    ) -> DigestConfig {
        DigestConfig {
            digest_id,
            max_timeout_ns,
            max_list_size,
            ack_timeout_ns,
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "DigestConfig(digest_id={}, max_timeout_ns={}, max_list_size={}, ack_timeout_ns={})",
            self.digest_id, self.max_timeout_ns, self.max_list_size, self.ack_timeout_ns
        )
    }
}

/// Messages of a digest that were taken together.
#[pyclass(module = "holdfast._core", get_all, frozen)]
pub(crate) struct DigestList {
    pub digest_id: u32,
    pub list_id: u64,
    pub time_ps: u64,
    pub messages: Vec<Py<PyBytes>>,
}

impl DigestList {
    pub(crate) fn new(
        digest_id: u32,
        list_id: u64,
        time_ps: u64,
        messages: Vec<Py<PyBytes>>,
    ) -> DigestList {
        DigestList {
            digest_id,
            list_id,
            time_ps,
            messages,
        }
    }
}

#[pymethods]
impl DigestList {
    fn __repr__(&self) -> String {
        format!(
            "<DigestList {} of digest {} at {} ps: {} messages>",
            self.list_id,
            self.digest_id,
            self.time_ps,
            self.messages.len()
        )
    }
}
