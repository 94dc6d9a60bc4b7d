//! Descriptions of parts of a network from Python's keywords. It does not know what they describe.

use crate::errors::failed;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::depythonize;
use serde::de::DeserializeOwned;

/// Reads a description that is given as keywords. Fails if one is missing, unknown or of a wrong type.
pub(crate) fn described<T: DeserializeOwned>(
    py: Python<'_>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<T> {
    let none = PyDict::new(py);
    depythonize(keywords.unwrap_or(&none)).map_err(failed)
}
