//! Descriptions of parts of a network from Python's keywords. It does not know what they describe.

use crate::errors::failed;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pythonize::Depythonizer;
use serde::de::DeserializeOwned;

/// Reads the description of a part of the network (a link, a stream, ...) from Python's keywords. Fails if one is
/// missing, unknown or of a wrong type, and says which.
pub(crate) fn described<T: DeserializeOwned>(
    py: Python<'_>,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<T> {
    let none = PyDict::new(py);
    let mut values = Depythonizer::from_object(keywords.unwrap_or(&none));
    serde_path_to_error::deserialize(&mut values).map_err(|error| {
        let name = error.path().to_string();
        match name.as_str() {
            "." => failed(error.into_inner()),
            _ => failed(format!("{name}: {}", error.into_inner())),
        }
    })
}
