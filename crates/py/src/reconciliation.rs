//! A change of a switch's program that keeps the state, from its preparation to the exchange of the switches.

use engine::takeover::Takeover;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Brings a prepared switch to the state of the switch that it replaces.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct Reconciliation {
    inner: Mutex<Option<p4runtime::Reconciliation>>,
}

impl Reconciliation {
    pub(crate) fn new(prepared: p4runtime::Reconciliation) -> Reconciliation {
        Reconciliation {
            inner: Mutex::new(Some(prepared)),
        }
    }

    /// Ends the preparation, and returns the list of objects that the prepared switch takes over; `None` if this was
    /// called before.
    pub(crate) fn take(&self) -> Option<Takeover> {
        let taken = self
            .inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        Some(taken?.finish())
    }
}
