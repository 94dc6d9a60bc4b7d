//! The kernel's side for Python: namespaces, and what this machine permits.

use crate::errors::failed;
use crate::handle::detached;
use crate::readings::{Record, record};
use ::ports::VethOptions;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Returns None if this process may open packet sockets, else the reason why it may not, as text.
#[pyfunction]
pub(crate) fn interfaces_ready() -> Option<String> {
    ::ports::interfaces_ready().err()
}

/// Configures the allocator: from now on, freed blocks of 256 KiB or more are returned to the system at once, and grow
/// without a copy; further threads share the present arenas of the allocator.
#[pyfunction]
pub(crate) fn set_up_allocator() {
    ::ports::set_up_allocator();
}

/// Returns freed memory of the process to the system. Takes milliseconds, during which other threads run.
#[pyfunction]
pub(crate) fn give_back_freed() {
    detached(::ports::give_back_freed);
}

/// Checks the requirements of live networks and benchmarks. Returns by name whether each is met, and details or the
/// reason why it is not.
#[pyfunction]
pub(crate) fn probe() -> BTreeMap<&'static str, (bool, String)> {
    ::ports::probe()
        .into_iter()
        .map(|finding| (finding.name, (finding.available, finding.detail)))
        .collect()
}

/// Removes the namespaces and interfaces of this program that ended processes have left behind. Returns the number of
/// these processes. Raises :class:`HoldfastError` if the kernel refuses one.
#[pyfunction]
pub(crate) fn clean() -> PyResult<usize> {
    detached(::ports::clean).map_err(failed)
}

/// A Linux network namespace of this process. It ends, with its interfaces and processes, when it is closed or the
/// process ends.
///
/// IPv6 is off in it until it is given an IPv6 address. At the end of a ``with`` statement it is closed. Methods raise
/// HoldfastError if it is closed, if a name or address is invalid, and if the kernel refuses what they ask for.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct Namespace {
    // None when closed.
    inner: Mutex<Option<::ports::Namespace>>,
    name: String,
}

impl Namespace {
    fn lock(&self) -> MutexGuard<'_, Option<::ports::Namespace>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a closure on the namespace while other Python threads may run. Fails if the namespace is closed.
    fn with<T: Send>(
        &self,
        f: impl FnOnce(&mut ::ports::Namespace) -> Result<T, ::ports::PortError> + Send,
    ) -> PyResult<T> {
        detached(|| {
            self.lock()
                .as_mut()
                .map(|namespace| f(namespace).map_err(|e| e.to_string()))
                .unwrap_or_else(|| Err(format!("namespace {} is closed", self.name)))
        })
        .map_err(failed)
    }
}

fn mac(bytes: &[u8]) -> PyResult<[u8; 6]> {
    bytes
        .try_into()
        .map_err(|_| failed(format!("a MAC address has 6 bytes, not {}", bytes.len())))
}

fn address(text: &str) -> PyResult<IpAddr> {
    text.parse()
        .map_err(|_| failed(format!("{text:?} is no IPv4 or IPv6 address")))
}

/// Parses an address with a prefix length, such as `10.0.0.0/8`. Fails for any other text.
fn prefix(text: &str) -> PyResult<(IpAddr, u8)> {
    let bad = || {
        failed(format!(
            "{text:?} is no address with prefix length, as in 10.0.0.1/24"
        ))
    };
    let (start, length) = text.split_once('/').ok_or_else(bad)?;
    let start = address(start)?;
    // Digits alone: Rust's own parser takes a sign too.
    let digits = length.bytes().all(|byte| byte.is_ascii_digit());
    let length: u8 = length.parse().ok().filter(|_| digits).ok_or_else(bad)?;
    if length > if start.is_ipv4() { 32 } else { 128 } {
        return Err(bad());
    }
    Ok((start, length))
}

#[pymethods]
impl Namespace {
    #[new]
    fn new(label: &str) -> PyResult<Namespace> {
        let inner = detached(|| ::ports::Namespace::new(label)).map_err(failed)?;
        Ok(Namespace {
            name: inner.name().into(),
            inner: Mutex::new(Some(inner)),
        })
    }

    /// Returns the name of the namespace in ``ip netns``: ``hf<n>-<label>``.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Returns the words that must precede a command to run it in this namespace:
    /// ``subprocess.Popen([*namespace.exec_prefix, "iperf3", "-s"])``.
    #[getter]
    fn exec_prefix(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.name].map(String::from).into()
    }

    /// Runs a command in this namespace and waits for it, like ``subprocess.run`` with ``capture_output`` and
    /// ``text``.
    #[pyo3(signature = (command, *, check=true, timeout_s=None))]
    fn run(
        &self,
        py: Python<'_>,
        command: Vec<String>,
        check: bool,
        timeout_s: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        let mut full = self.exec_prefix();
        full.extend(command);
        let options = PyDict::new(py);
        options.set_item("check", check)?;
        options.set_item("timeout", timeout_s)?;
        options.set_item("capture_output", true)?;
        options.set_item("text", true)?;
        py.import("subprocess")?
            .call_method("run", (full,), Some(&options))
            .map(Bound::unbind)
    }

    /// Adds a veth pair with the end ``interface`` in this namespace. Returns the name of the outer end, which has no
    /// address and answers nothing (see :meth:`Network.add_interface`). Both ends are up, without offloads.
    #[pyo3(signature = (interface="eth0", *, mac=None, mtu=1500))]
    fn add_veth(&self, interface: &str, mac: Option<&[u8]>, mtu: u32) -> PyResult<String> {
        let options = VethOptions {
            mac: mac.map(self::mac).transpose()?,
            mtu,
        };
        self.with(|namespace| namespace.add_veth(interface, &options))
    }

    /// Adds an address, such as ``10.0.0.1/24``, to an interface of this namespace. Raises HoldfastError if the
    /// address is invalid or the command fails.
    fn add_address(&self, interface: &str, address: &str) -> PyResult<()> {
        let (address, length) = prefix(address)?;
        self.with(|namespace| namespace.add_address(interface, address, length))
    }

    /// Adds a route to a prefix (``0.0.0.0/0``: the default route) by an interface, through the gateway ``via`` if one
    /// is given.
    #[pyo3(signature = (destination, interface, *, via=None))]
    fn add_route(&self, destination: &str, interface: &str, via: Option<&str>) -> PyResult<()> {
        let (destination, length) = prefix(destination)?;
        let via = via.map(address).transpose()?;
        self.with(|namespace| namespace.add_route(destination, length, via, interface))
    }

    /// Adds a permanent neighbour entry to an interface of this namespace, so that no ARP is needed for the address.
    fn add_neighbour(&self, interface: &str, address: &str, mac: &[u8]) -> PyResult<()> {
        let (address, mac) = (self::address(address)?, self::mac(mac)?);
        self.with(|namespace| namespace.add_neighbour(interface, address, mac))
    }

    /// Sets an interface of this namespace up or down.
    fn set_link(&self, interface: &str, up: bool) -> PyResult<()> {
        self.with(|namespace| namespace.set_link(interface, up))
    }

    /// Sets the MTU of an interface of this namespace, in bytes.
    fn set_mtu(&self, interface: &str, mtu: u32) -> PyResult<()> {
        self.with(|namespace| namespace.set_mtu(interface, mtu))
    }

    /// Sends the frames in turn, repeatedly, from an interface of this namespace for ``duration_s`` seconds: as fast
    /// as the kernel accepts them, or at ``packets_per_s``.
    #[pyo3(signature = (interface, frames, *, duration_s, packets_per_s=None))]
    fn send_load(
        &self,
        interface: String,
        frames: Vec<Vec<u8>>,
        duration_s: f64,
        packets_per_s: Option<f64>,
    ) -> PyResult<Record> {
        let duration = Duration::try_from_secs_f64(duration_s)
            .map_err(|e| failed(format!("duration_s is {duration_s}: {e}")))?;
        let load = move || ::ports::send_load(&interface, &frames, packets_per_s, duration);
        // The thread that sends has joined the namespace; nobody waits for it with the namespace locked.
        let entered = self.with(|namespace| namespace.spawn_within(load))?;
        let report = detached(|| entered.join())
            .map_err(|_| failed("the sending thread panicked"))?
            .and_then(|report| report)
            .map_err(failed)?;
        Python::attach(|py| record(py, "Load", &report))
    }

    /// Returns the kernel's counters of packets and bytes of an interface of this namespace.
    fn interface_counters(&self, interface: &str) -> PyResult<Record> {
        let counters =
            self.with(|namespace| namespace.within(|| ::ports::interface_counters(interface))?)?;
        Python::attach(|py| record(py, "InterfaceCounters", &counters))
    }

    /// Kills the processes in this namespace, and removes it with its interfaces. Further calls do nothing.
    fn close(&self) {
        detached(|| self.lock().take());
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind, value, traceback, /))]
    fn __exit__(
        &self,
        kind: Option<Bound<'_, PyAny>>,
        value: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) {
        let _ = (kind, value, traceback);
        self.close();
    }
}
