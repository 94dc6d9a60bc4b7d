//! Table entries as serialized P4Runtime messages, in and out. What is done with them is crate `p4runtime`'s business.

use crate::program::Program;
use crate::switch::{Switch, TableSnapshot};
use engine::control::ControlError;
use p4runtime::{ActionInfo, FieldInfo, TableInfo};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Of updates, after which packets pass.
const STEP: Duration = Duration::from_micros(300);
/// Updates between two looks at the clock.
const UPDATES_PER_LOOK: usize = 16;

/// Position, status name and message of an update that was refused.
type FailedUpdate = (usize, &'static str, String);

/// A request that takes no decoder to read: every field where encoders put it. Its updates may be of any kind.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct WriteRequest {
    data: Py<PyBytes>,
    #[pyo3(get)]
    device_id: u64,
    #[pyo3(get)]
    role_id: u64,
    #[pyo3(get)]
    role: String,
    #[pyo3(get)]
    election_id: Option<u128>,
    #[pyo3(get)]
    atomicity: u64,
    updates: usize,
}

#[pymethods]
impl WriteRequest {
    /// The request in these bytes; None if they must be read by a decoder of protobuf.
    #[staticmethod]
    fn parse(data: Bound<'_, PyBytes>) -> Option<WriteRequest> {
        let request = p4runtime::WriteRequest::parse(data.as_bytes()).ok()?;
        Some(WriteRequest {
            device_id: request.device_id,
            role_id: request.role_id,
            role: request.role.to_owned(),
            election_id: request.election_id,
            atomicity: request.atomicity,
            updates: request.len(),
            data: data.unbind(),
        })
    }

    fn __len__(&self) -> usize {
        self.updates
    }
}

/// Id, fields (id, kind, width) and actions (id, parameters (id, width)).
pub(crate) type TableTuple = (u32, Vec<(u32, String, u32)>, Vec<(u32, Vec<(u32, u32)>)>);

/// Tables whose entries may be written and read as bytes.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct PlainTables {
    tables: Arc<p4runtime::PlainTables>,
}

#[pymethods]
impl PlainTables {
    #[new]
    fn new(program: &Program, tables: Vec<TableTuple>) -> PlainTables {
        let infos: Vec<TableInfo> = tables.into_iter().map(table_info).collect();
        let tables = p4runtime::PlainTables::new(program.ir().clone(), &infos);
        PlainTables {
            tables: Arc::new(tables),
        }
    }

    fn __len__(&self) -> usize {
        self.tables.len()
    }

    /// Applies a request's updates to a switch, in order, and lists those that failed: position, status name, message. None, and
    /// nothing happens, if not all of them are plain. ``rollback``: all or nothing, with no packet in between; else packets pass
    /// after every fraction of a millisecond.
    fn write(
        &self,
        py: Python<'_>,
        switch: &Switch,
        request: &WriteRequest,
        rollback: bool,
    ) -> PyResult<Option<Vec<FailedUpdate>>> {
        let data = request.data.bind(py).as_bytes();
        let tables = &self.tables;
        let updates = py.detach(|| p4runtime::WriteRequest::parse(data)?.updates(tables));
        let Ok(updates) = updates else {
            return Ok(None);
        };
        let program = self.tables.program().clone();
        if rollback {
            return switch.with(py, move |switch| {
                Arc::ptr_eq(switch.program(), &program)
                    .then(|| failures(switch.write_batch(updates, true)))
            });
        }
        let mut updates = updates.into_iter().enumerate();
        let mut failures = Vec::new();
        switch.in_steps(py, move |switch| {
            if !Arc::ptr_eq(switch.program(), &program) {
                return Some(None);
            }
            let begin = Instant::now();
            for (at, update) in updates.by_ref() {
                if let Err(error) = switch.write(update) {
                    failures.push((at, error.code.name(), error.message));
                }
                if at % UPDATES_PER_LOOK == 0 && begin.elapsed() > STEP {
                    return None;
                }
            }
            Some(Some(std::mem::take(&mut failures)))
        })
    }

    /// Entries of a snapshot from a place in it on, as a serialized ``p4.v1.ReadResponse``, and the place that follows, None at the
    /// end; None if the table is not plain.
    fn read<'py>(
        &self,
        py: Python<'py>,
        switch: &Switch,
        snapshot: &TableSnapshot,
        place: u32,
        most: u32,
        counters: bool,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Option<u32>)>> {
        let (program, _, entries, next) = switch.snapshot_slice(py, snapshot, place, most)?;
        if !Arc::ptr_eq(&program, self.tables.program()) {
            return Ok(None);
        }
        let table_id = snapshot.table_id;
        let response = py.detach(|| self.tables.response(table_id, &entries, counters));
        let response = response.ok();
        Ok(response.map(|data| (PyBytes::new(py, &data), next)))
    }

    /// Whether it has a table.
    fn __contains__(&self, table_id: u32) -> bool {
        self.tables.has(table_id)
    }
}

fn failures(results: Vec<Result<(), ControlError>>) -> Vec<FailedUpdate> {
    let failed = results.into_iter().enumerate().filter_map(|(at, result)| {
        let error = result.err()?;
        Some((at, error.code.name(), error.message))
    });
    failed.collect()
}

pub(crate) fn table_info((id, fields, actions): TableTuple) -> TableInfo {
    let field = |(id, kind, width)| FieldInfo { id, kind, width };
    let action = |(id, params)| ActionInfo { id, params };
    TableInfo {
        id,
        fields: fields.into_iter().map(field).collect(),
        actions: actions.into_iter().map(action).collect(),
    }
}
