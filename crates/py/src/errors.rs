//! The exceptions of the native core, and their constructors. The callers give the messages.

use engine::control::excerpt;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    holdfast._core,
    HoldfastError,
    PyException,
    "Base of everything this package raises on purpose."
);
create_exception!(
    holdfast._core,
    CompileError,
    HoldfastError,
    "The program has errors, or no ``main`` (then all diagnostics can be warnings). ``str(e)`` is the rendered diagnostics with source \
     lines and carets."
);
create_exception!(
    holdfast._core,
    ControlError,
    HoldfastError,
    "A control-plane operation was refused. ``code`` is a canonical gRPC status name, as in ``\"NOT_FOUND\"``."
);

/// Builds a [`ControlError`] with this status code and message.
pub(crate) fn control_error(code: &str, message: &str) -> PyErr {
    // A message may hold a name of megabytes.
    let error = ControlError::new_err(excerpt(message.to_owned()));
    match Python::attach(|py| error.value(py).setattr("code", code)) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// Builds a [`HoldfastError`] with the message of another error, cut if it is long.
pub(crate) fn failed(error: impl std::fmt::Display) -> PyErr {
    HoldfastError::new_err(excerpt(error.to_string()))
}

/// Returns the value that belongs to a name among `choices`. Fails for any other name; `what` begins the error's text,
/// as in "queueing is".
pub(crate) fn chosen<T, const N: usize>(
    what: &str,
    name: &str,
    choices: [(&str, T); N],
) -> PyResult<T> {
    let names = choices.each_ref().map(|(known, _)| format!("{known:?}"));
    let found = choices.into_iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| value).ok_or_else(|| {
        let (others, last) = (names[..N - 1].join(", "), &names[N - 1]);
        failed(format!("{what} {others} or {last}, not {name:?}"))
    })
}
