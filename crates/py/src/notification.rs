//! Notifications of the network to controllers, as Python sees them.

use crate::time::Ps;
use net::NotificationEvent;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An event for controllers. Events come in the order in which they happened.
///
/// ``port`` and ``up`` belong to ``port_change``; ``data`` is the packet of ``packet_in`` (with its packet-in header)
/// and of ``host_frame``. A ``digest`` says that lists are due for :meth:`Pipeline.take_digests`; an
/// ``idle_timeout``, that entries wait for :meth:`Pipeline.take_idle`. Each of these two comes once until they are
/// taken.
#[pyclass(module = "holdfast._core", get_all, set_all)]
pub(crate) struct Notification {
    kind: String,
    time_ps: Ps,
    node: String,
    port: u32,
    up: bool,
    data: Py<PyBytes>,
}

#[pymethods]
impl Notification {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let detail = match self.kind.as_str() {
            "port_change" if self.up => format!(" port {} up", self.port),
            "port_change" => format!(" port {} down", self.port),
            _ => format!(" {}", self.data.bind(py).repr()?),
        };
        Ok(format!(
            "<Notification {} at {} ps: {}{detail}>",
            self.kind, self.time_ps.0, self.node
        ))
    }
}

/// Converts a notification of the network into its Python form.
pub(crate) fn notification(py: Python<'_>, from: net::Notification) -> Notification {
    let (kind, port, up, data) = match from.event {
        NotificationEvent::PortChange { port, up } => ("port_change", port, up, Vec::new()),
        NotificationEvent::PacketIn { port, data } => ("packet_in", port, true, data),
        NotificationEvent::Digest => ("digest", 0, true, Vec::new()),
        NotificationEvent::IdleTimeout => ("idle_timeout", 0, true, Vec::new()),
        NotificationEvent::HostFrame { data } => ("host_frame", 0, true, data),
    };
    Notification {
        kind: kind.into(),
        time_ps: Ps(from.time_ps),
        node: from.node.to_string(),
        port,
        up,
        data: PyBytes::new(py, &data).unbind(),
    }
}
