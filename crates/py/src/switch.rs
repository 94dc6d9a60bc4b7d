//! `Switch`: an engine's switch for Python, alone or as a node of a network. Its owner executes all calls, between packets.

use crate::errors::{control_error, failed};
use crate::handle::{NetworkHandle, detached};
use crate::program::{ExecutorKind, Program};
use crate::reconciliation::Reconciliation;
use crate::time::Ps;
use engine::{Packet, SwitchConfig};
use ir::TableId;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a switch is.
enum Home {
    /// It stands alone.
    Alone(Arc<Mutex<engine::Switch>>),
    /// It is the node with this name in a network.
    Node(Arc<NetworkHandle>, String),
}

/// A switch that stands alone, or is a node of a network; then the worker thread that owns it executes the calls.
///
/// Methods raise HoldfastError after that thread has ended by an error.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct Switch {
    home: Home,
    executor: ExecutorKind,
    asked: Asked,
    program: Mutex<Py<Program>>,
}

/// The parameters of a switch that do not depend on its program.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    /// The port that leads to the control plane; `None` is the default of the program's architecture.
    pub(crate) cpu_port: Option<u32>,
    pub(crate) seed: u64,
}

/// Returns the default CPU port of each architecture: the port that leads to the control plane.
#[pyfunction]
pub(crate) fn cpu_ports() -> Vec<u32> {
    let all = ir::architecture::ALL.iter();
    all.map(|architecture| architecture.cpu_port).collect()
}

impl Asked {
    /// Returns the engine's configuration for a switch with this program. Fails if the program's architecture does
    /// not have the CPU port that was asked for.
    pub(crate) fn with(self, program: &ir::Program) -> PyResult<SwitchConfig> {
        let architecture = program.architecture.description();
        let cpu_port = self.cpu_port.unwrap_or(architecture.cpu_port);
        if !architecture.has_port(cpu_port) {
            return Err(failed(format!(
                "cpu_port is {cpu_port}; ports are 0 to {}",
                architecture.ports - 1
            )));
        }
        Ok(SwitchConfig {
            cpu_port,
            seed: self.seed,
        })
    }
}

impl Switch {
    /// Creates the Python object for a switch that is the node `name` of a network.
    pub(crate) fn node(
        network: Arc<NetworkHandle>,
        name: String,
        executor: ExecutorKind,
        asked: Asked,
        program: Py<Program>,
    ) -> Switch {
        Switch {
            home: Home::Node(network, name),
            executor,
            asked,
            program: Mutex::new(program),
        }
    }

    fn present_cpu_port(&self) -> u32 {
        let program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        let architecture = program.get().ir().architecture.description();
        self.asked.cpu_port.unwrap_or(architecture.cpu_port)
    }

    /// Runs a closure on the switch while other Python threads may run, and returns its result. Fails like
    /// [`NetworkHandle::call`].
    pub(crate) fn with<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut engine::Switch) -> T + Send + 'static,
    ) -> PyResult<T> {
        match &self.home {
            Home::Alone(switch) => Ok(detached(|| {
                let mut switch = switch.lock().unwrap_or_else(PoisonError::into_inner);
                f(&mut switch)
            })),
            Home::Node(network, name) => {
                let name = name.clone();
                network.call(move |network| network.switch_mut(&name).map(f))
            }
        }
    }

    /// Runs a closure on the switch repeatedly until it returns `Some`, and returns that. Packets may pass between
    /// its runs. Fails like [`NetworkHandle::call`].
    pub(crate) fn in_steps<T: Send + 'static>(
        &self,
        mut step: impl FnMut(&mut engine::Switch) -> Option<T> + Send + 'static,
    ) -> PyResult<T> {
        match &self.home {
            Home::Alone(switch) => Ok(detached(|| {
                loop {
                    let mut switch = switch.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(result) = step(&mut switch) {
                        break result;
                    }
                }
            })),
            Home::Node(network, name) => {
                let name = name.clone();
                network.call_in_steps(move |network| {
                    network.switch_mut(&name).map(&mut step).transpose()
                })
            }
        }
    }

    /// Returns whether the switch is not in a network.
    pub(crate) fn stands_alone(&self) -> bool {
        matches!(self.home, Home::Alone(_))
    }

    fn alone(&self) -> PyResult<()> {
        match &self.home {
            Home::Alone(_) => Ok(()),
            Home::Node(_, name) => Err(failed(format!(
                "switch {name:?} is in a network, where packets come by links; only a switch that stands alone can be \
                 handed one"
            ))),
        }
    }

    fn check_port(&self, port: u32) -> PyResult<()> {
        if port >= net::SWITCH_PORTS && port != self.present_cpu_port() {
            return Err(failed(format!(
                "port is {port}; ports are 0 to {}",
                net::SWITCH_PORTS - 1
            )));
        }
        Ok(())
    }

    /// Builds a packet that arrives at `port`. Fails if the switch does not have the port, or if the packet is too
    /// long.
    fn arriving(&self, port: u32, bytes: &[u8]) -> PyResult<Packet> {
        self.check_port(port)?;
        if bytes.len() > engine::packet::MAX_BYTES {
            return Err(failed(format!(
                "a packet of {} bytes; the longest has {}",
                bytes.len(),
                engine::packet::MAX_BYTES
            )));
        }
        Ok(Packet::new(bytes))
    }
}

#[pymethods]
impl Switch {
    #[new]
    #[pyo3(signature = (program, *, executor="jit", cpu_port=None, seed=0))]
    fn new(
        program: Py<Program>,
        executor: &str,
        cpu_port: Option<u32>,
        seed: u64,
    ) -> PyResult<Switch> {
        let executor = ExecutorKind::parse(executor)?;
        let compiled = program.get();
        let asked = Asked { cpu_port, seed };
        let config = asked.with(compiled.ir())?;
        let switch = detached(|| compiled.make_switch(executor, config)).map_err(failed)?;
        Ok(Switch {
            home: Home::Alone(Arc::new(Mutex::new(switch))),
            executor,
            asked,
            program: Mutex::new(program),
        })
    }

    /// Returns the number of the port that leads to the control plane; by default, that of the program's architecture
    /// (510 in v1model).
    #[getter]
    fn cpu_port(&self) -> u32 {
        self.present_cpu_port()
    }

    /// Replaces the program. All entries and other state are lost, except for the time and the states of ports.
    /// Raises HoldfastError if the switch was given a CPU port that the program's architecture does not have.
    fn set_program(&self, program: Py<Program>) -> PyResult<()> {
        let compiled = program.get();
        let config = self.asked.with(compiled.ir())?;
        let new = detached(|| compiled.make_switch(self.executor, config)).map_err(failed)?;
        let former = self.with(move |switch| {
            let mut new = new;
            new.take_over_agent(switch);
            std::mem::replace(switch, new)
        })?;
        // The thread that owns the switch has packets to move.
        detached(|| drop(former));
        *self.program.lock().unwrap_or_else(PoisonError::into_inner) = program;
        Ok(())
    }

    /// Exchanges program, entries and all other state with the switch ``prepared``, which must not be in a network,
    /// between two packets. With ``reconciliation``, this switch keeps the state that it lists. Raises HoldfastError
    /// if ``prepared`` is in a network or this switch itself, or ``reconciliation`` was used already.
    #[pyo3(signature = (prepared, reconciliation=None))]
    fn replace_with(
        &self,
        py: Python<'_>,
        prepared: &Switch,
        reconciliation: Option<&Reconciliation>,
    ) -> PyResult<()> {
        let Home::Alone(other) = &prepared.home else {
            return Err(failed("the prepared switch is in a network"));
        };
        if let Home::Alone(own) = &self.home
            && Arc::ptr_eq(own, other)
        {
            return Err(failed("a switch cannot take its own place"));
        }
        let program = prepared.program(py);
        let executor = detached(|| program.get().executor(self.executor)).map_err(failed)?;
        let now_ps = self.with(|switch| switch.runtime().now_ps())?;
        let config = self.asked.with(program.get().ir())?;
        prepared.with(move |prepared| prepared.settle(executor, config, now_ps))?;
        let takeover = match reconciliation {
            None => None,
            Some(it) => Some(it.take().ok_or_else(|| failed("it was used already"))?),
        };
        let other = other.clone();
        self.with(move |switch| {
            let mut prepared = other.lock().unwrap_or_else(PoisonError::into_inner);
            match takeover {
                Some(takeover) => prepared.take_over(switch, takeover),
                None => prepared.take_over_agent(switch),
            }
            std::mem::swap(switch, &mut *prepared);
        })?;
        let own = std::mem::replace(
            &mut *self.program.lock().unwrap_or_else(PoisonError::into_inner),
            program,
        );
        *prepared
            .program
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = own;
        Ok(())
    }

    /// Returns the program that the switch runs.
    #[getter]
    fn program(&self, py: Python<'_>) -> Py<Program> {
        self.program
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_ref(py)
    }

    /// Reports to a switch outside of a network that a port went down or came up, for registers with ``@port_state``
    /// and members that watch the port. By default, all ports are up. In a network, the switch notices changes by
    /// itself.
    fn set_port_up(&self, port: u32, up: bool) -> PyResult<()> {
        self.alone()?;
        self.check_port(port)?;
        self.with(move |switch| switch.set_port_up(port, up))
    }

    /// Returns whether a port is up, as far as the switch has noticed.
    fn port_is_up(&self, port: u32) -> PyResult<bool> {
        self.check_port(port)?;
        self.with(move |switch| switch.runtime().ports().is_up(port))
    }

    /// Returns the numbers of dropped packets, by reason.
    fn drops(&self) -> PyResult<BTreeMap<&'static str, u64>> {
        self.with(|switch| {
            let drops = switch.drops().into_iter();
            drops
                .map(|(reason, count)| (reason.name(), count))
                .collect()
        })
    }

    /// Returns for each table its name, the number of its entries, and the size that its program asks for.
    fn table_fill(&self) -> PyResult<Vec<(String, usize, u64)>> {
        self.with(|switch| {
            let tables = switch.program().tables.iter().enumerate();
            tables
                .map(|(at, table)| {
                    let entries = switch.runtime().table(TableId(at as u32)).len();
                    (table.name.clone(), entries, table.size)
                })
                .collect()
        })
    }

    /// Sets the time of a switch outside of a network for the next operations. It must not be earlier than the present
    /// time. Packets bring their own time. Raises HoldfastError for an earlier time.
    fn set_now_ps(&self, now_ps: Ps) -> PyResult<()> {
        let Ps(now_ps) = now_ps;
        self.alone()?;
        let runs_back = self.with(move |switch| {
            let back = now_ps < switch.runtime().now_ps();
            if !back {
                switch.set_now_ps(now_ps);
            }
            back
        })?;
        match runs_back {
            true => Err(failed("the time of a switch does not run back")),
            false => Ok(()),
        }
    }

    /// Returns the time at which a digest list is to be sent or an entry may become idle, if nothing else happens
    /// before; None if neither will happen.
    fn next_deadline_ps(&self) -> PyResult<Option<Ps>> {
        self.with(|switch| switch.runtime().next_deadline_ps().map(Ps))
    }

    /// Returns the number of digest messages that were lost because too many waited.
    fn digests_lost(&self) -> PyResult<u64> {
        self.with(|switch| switch.runtime().digests().lost())
    }

    /// Passes a packet, with its packet-out header, to the CPU port. In a network, it enters at the current time.
    /// Raises :class:`ControlError` FAILED_PRECONDITION on a switch outside of a network: use :meth:`process` with the
    /// CPU port.
    fn packet_out(&self, packet: Vec<u8>) -> PyResult<()> {
        match &self.home {
            Home::Node(network, name) => {
                let name = name.clone();
                network.call(move |network| network.packet_out(&name, &packet))
            }
            Home::Alone(_) => Err(control_error(
                "FAILED_PRECONDITION",
                "a switch that stands alone has nowhere to send to: use process() with the CPU port",
            )),
        }
    }

    /// Runs one packet on a switch outside of a network. Returns its outputs with their ports, in order. ``now_ps``
    /// is the present time by default. If it is more than a second before the latest time, the clock counts as set
    /// back, and the ages of entries, of tokens and of digest messages begin again. Raises HoldfastError for a switch
    /// in a network, and for a port or packet that cannot arrive.
    #[pyo3(signature = (port, packet, now_ps=None))]
    fn process(
        &self,
        port: u32,
        packet: &[u8],
        now_ps: Option<Ps>,
    ) -> PyResult<Vec<(u32, Vec<u8>)>> {
        self.alone()?;
        let packet = self.arriving(port, packet)?;
        self.with(move |switch| {
            let mut outputs = Vec::new();
            let now_ps = now_ps.map_or(switch.runtime().now_ps(), |Ps(at_ps)| at_ps);
            switch.receive(now_ps, port, packet, &mut outputs);
            let outputs = outputs.iter();
            outputs
                .map(|output| (output.port, output.packet.bytes().to_vec()))
                .collect()
        })
    }

    /// Processes a packet like :meth:`process`, but with the interpreter. Returns the trace as JSON or as indented
    /// text, including assignments to variables if ``assignments``. Tables and registers are used and changed as
    /// usual. Raises HoldfastError like :meth:`process`.
    #[pyo3(signature = (port, packet, now_ps=None, *, text=false, assignments=false))]
    fn trace(
        &self,
        port: u32,
        packet: &[u8],
        now_ps: Option<Ps>,
        text: bool,
        assignments: bool,
    ) -> PyResult<String> {
        self.alone()?;
        let packet = self.arriving(port, packet)?;
        self.with(move |switch| {
            let now_ps = now_ps.map_or(switch.runtime().now_ps(), |Ps(at_ps)| at_ps);
            let trace = switch.trace(now_ps, port, packet).1;
            let trace = match assignments {
                true => trace,
                false => trace.without_assignments(),
            };
            if text {
                trace.to_string()
            } else {
                trace.to_json()
            }
        })
    }
}
