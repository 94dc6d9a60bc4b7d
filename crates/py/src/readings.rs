//! Results for Python: objects of the dataclasses in `holdfast.measurements`. It does not know which fields they have.

use crate::errors::failed;
use net::{Reading, Subject};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};
use pythonize::{depythonize, pythonize};
use serde::Serialize;

/// An object of one of the dataclasses of `holdfast.measurements`.
pub(crate) type Record = Py<PyAny>;

/// Makes an object of a dataclass of `holdfast.measurements` from a structure with the same fields.
pub(crate) fn record(py: Python<'_>, class: &str, value: &impl Serialize) -> PyResult<Record> {
    let class = py.import("holdfast.measurements")?.getattr(class)?;
    Ok(object(&class, pythonize(py, value)?)?.unbind())
}

/// Reads a request for results: the class of the results, and keywords that say of which object of the network. Fails
/// if there is no such class of results, or if a keyword does not belong to it.
pub(crate) fn subject(
    kind: &Bound<'_, PyType>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<Subject> {
    let given = PyDict::new(kind.py());
    let none = PyDict::new(kind.py());
    given.set_item(kind.name()?, keywords.unwrap_or(&none))?;
    depythonize(&given).map_err(failed)
}

/// Makes objects of a dataclass from rows with the same fields.
pub(crate) fn objects<'py>(
    class: &Bound<'py, PyType>,
    rows: &Reading,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let rows = pythonize(class.py(), rows)?;
    rows.try_iter()?.map(|row| object(class, row?)).collect()
}

/// Makes an object of a dataclass from a dictionary of its fields; values of bytes become columns of integers. The
/// class refuses missing and unknown fields.
fn object<'py>(
    class: &Bound<'py, PyAny>,
    fields: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let fields = fields.cast_into::<PyDict>()?;
    for (name, value) in fields.copy()? {
        if value.is_instance_of::<PyBytes>() {
            let measurements = class.py().import("holdfast.measurements")?;
            let numbers = measurements.call_method1("whole_numbers", (value,))?;
            fields.set_item(name, numbers)?;
        }
    }
    class.call((), Some(&fields))
}
