//! Instants between Python and the core: an integer of any size, and [`engine::Time`].

use crate::errors::failed;
use engine::Time;
use pyo3::prelude::*;
use std::convert::Infallible;

/// An instant in picoseconds; in Python, an integer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ps(pub(crate) Time);

impl<'py> FromPyObject<'_, 'py> for Ps {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Ps> {
        match value.extract::<u128>() {
            Ok(ps) => Ok(Ps(Time::from_ps(ps))),
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyTypeError>(value.py()) => {
                Err(error)
            }
            Err(_) => Err(failed(
                "a time is in picoseconds since the beginning, from 0 to 2^128 - 1",
            )),
        }
    }
}

impl<'py> IntoPyObject<'py> for Ps {
    type Target = pyo3::types::PyInt;
    type Output = Bound<'py, Self::Target>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        self.0.ps().into_pyobject(py)
    }
}
