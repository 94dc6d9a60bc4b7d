//! Table entries as serialized P4Runtime messages, in and out. What is done with them is crate `p4runtime`'s business.

use crate::program::Program;
use crate::switch::Switch;
use engine::control::ControlError;
use p4runtime::{ActionInfo, FieldInfo, TableInfo};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

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
type TableTuple = (u32, Vec<(u32, String, u32)>, Vec<(u32, Vec<(u32, u32)>)>);

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

    /// Applies a request's updates to a switch, with no packet in between, and lists those that failed: position, status
    /// name, message. None, and nothing happens, if not all of them are plain. ``rollback``: all or nothing.
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
        let results = switch.with(py, move |switch| {
            Arc::ptr_eq(switch.program(), &program)
                .then(|| failures(switch.write_batch(updates, rollback)))
        })?;
        Ok(results)
    }

    /// The entries of a table but the default one, as serialized ``p4.v1.ReadResponse``s; None if the table is not plain.
    fn read<'py>(
        &self,
        py: Python<'py>,
        switch: &Switch,
        table_id: u32,
        counters: bool,
        entities_per_response: usize,
    ) -> PyResult<Option<Vec<Bound<'py, PyBytes>>>> {
        let tables = self.tables.clone();
        let responses = switch.with(py, move |switch| {
            let same = Arc::ptr_eq(switch.program(), tables.program());
            same.then(|| tables.read(switch, table_id, counters, entities_per_response))
        })?;
        let Some(Ok(responses)) = responses else {
            return Ok(None);
        };
        let bytes = responses.iter().map(|data| PyBytes::new(py, data));
        Ok(Some(bytes.collect()))
    }
}

fn failures(results: Vec<Result<(), ControlError>>) -> Vec<(usize, &'static str, String)> {
    let failed = results.into_iter().enumerate().filter_map(|(at, result)| {
        let error = result.err()?;
        Some((at, error.code.name(), error.message))
    });
    failed.collect()
}

fn table_info((id, fields, actions): TableTuple) -> TableInfo {
    let field = |(id, kind, width)| FieldInfo { id, kind, width };
    let action = |(id, params)| ActionInfo { id, params };
    TableInfo {
        id,
        fields: fields.into_iter().map(field).collect(),
        actions: actions.into_iter().map(action).collect(),
    }
}
