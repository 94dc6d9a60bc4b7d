//! `Switch`: an engine's switch for Python, wherever it lives. What is asked of it is done by its owner, between packets.

use crate::by_id;
use crate::entities::{CloneSession, CounterCell, MulticastGroup, RegisterCell, TableEntry};
use crate::errors::{control_error, failed};
use crate::handle::NetworkHandle;
use crate::objects::{
    ActionProfileGroup, ActionProfileMember, DigestConfig, DigestList, MeterCell, ValueSetMembers,
};
use crate::program::{ExecutorKind, Program};
use crate::records;
use engine::control::{Atomicity, ControlError, InstalledEntry};
use engine::{Packet, SwitchConfig};
use ir::TableId;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a switch lives.
enum Home {
    /// By itself.
    Alone(Box<Mutex<engine::Switch>>),
    /// In a network, under this name.
    Node(Arc<NetworkHandle>, String),
}

/// A program, one of its tables, some entries of it, and the place of the next ones.
pub(crate) type Slice = (Arc<ir::Program>, TableId, Vec<InstalledEntry>, Option<u32>);

/// What a table held at one moment.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct TableSnapshot {
    inner: Arc<engine::control::TableSnapshot>,
    #[pyo3(get)]
    pub(crate) table_id: u32,
}

/// One switch: standing alone, or a node of a network (then calls are run by the worker that owns it).
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct Switch {
    home: Home,
    executor: ExecutorKind,
    config: SwitchConfig,
    program: Mutex<Py<Program>>,
}

/// Ports of a switch, whatever its architecture allows, are below this.
const MAX_PORTS: u32 = ir::architecture::v1model::DROP_PORT;

/// The configuration of a switch, checked. Without a port for the control plane, it is the one that the program's architecture has.
pub(crate) fn switch_config(
    program: &ir::Program,
    cpu_port: Option<u32>,
    seed: u64,
) -> PyResult<SwitchConfig> {
    let architecture = program.architecture.description();
    let cpu_port = cpu_port.unwrap_or(architecture.cpu_port);
    if !architecture.has_port(cpu_port) {
        return Err(failed(format!(
            "cpu_port is {cpu_port}; ports are 0 to {}",
            architecture.ports - 1
        )));
    }
    Ok(SwitchConfig { cpu_port, seed })
}

impl Switch {
    /// The switch that is a node of a network.
    pub(crate) fn node(
        network: Arc<NetworkHandle>,
        name: String,
        executor: ExecutorKind,
        config: SwitchConfig,
        program: Py<Program>,
    ) -> Switch {
        Switch {
            home: Home::Node(network, name),
            executor,
            config,
            program: Mutex::new(program),
        }
    }

    /// Does something with the switch while other Python threads run.
    pub(crate) fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut engine::Switch) -> T + Send + 'static,
    ) -> PyResult<T> {
        match &self.home {
            Home::Alone(switch) => Ok(py.detach(|| {
                let mut switch = switch.lock().unwrap_or_else(PoisonError::into_inner);
                f(&mut switch)
            })),
            Home::Node(network, name) => {
                let name = name.clone();
                network.call(py, move |network| network.switch_mut(&name).map(f))
            }
        }
    }

    /// Does something with the switch in parts until one gives something; packets may pass between two parts.
    pub(crate) fn in_steps<T: Send + 'static>(
        &self,
        py: Python<'_>,
        mut step: impl FnMut(&mut engine::Switch) -> Option<T> + Send + 'static,
    ) -> PyResult<T> {
        match &self.home {
            Home::Alone(switch) => Ok(py.detach(|| {
                loop {
                    let mut switch = switch.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(result) = step(&mut switch) {
                        break result;
                    }
                }
            })),
            Home::Node(network, name) => {
                let name = name.clone();
                network.call_in_steps(py, move |network| {
                    network.switch_mut(&name).map(&mut step).transpose()
                })
            }
        }
    }

    /// Like [`Self::with`] for what the switch may refuse.
    fn try_with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut engine::Switch) -> Result<T, ControlError> + Send + 'static,
    ) -> PyResult<T> {
        self.with(py, f)?
            .map_err(|e| control_error(py, e.code.name(), &e.message))
    }

    /// The switch's program, and a slice of a table of it.
    pub(crate) fn snapshot_slice(
        &self,
        py: Python<'_>,
        snapshot: &TableSnapshot,
        place: u32,
        most: u32,
    ) -> PyResult<Slice> {
        let inner = snapshot.inner.clone();
        self.try_with(py, move |switch| {
            let (entries, next) = switch.read_snapshot(&inner, place, most)?;
            Ok((switch.program().clone(), inner.table(), entries, next))
        })
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
        if port >= MAX_PORTS && port != self.config.cpu_port {
            return Err(failed(format!(
                "port is {port}; ports are 0 to {}",
                MAX_PORTS - 1
            )));
        }
        Ok(())
    }

    /// A packet that arrives at a port.
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
        py: Python<'_>,
        program: Py<Program>,
        executor: &str,
        cpu_port: Option<u32>,
        seed: u64,
    ) -> PyResult<Switch> {
        let executor = ExecutorKind::parse(executor)?;
        let compiled = program.get();
        let config = switch_config(compiled.ir(), cpu_port, seed)?;
        let switch = py
            .detach(|| compiled.make_switch(executor, config))
            .map_err(failed)?;
        Ok(Switch {
            home: Home::Alone(Box::new(Mutex::new(switch))),
            executor,
            config,
            program: Mutex::new(program),
        })
    }

    /// The port that leads to the control plane; unless given, that of the program's architecture (510 in v1model).
    #[getter]
    fn cpu_port(&self) -> u32 {
        self.config.cpu_port
    }

    /// Applies the updates in order, with no packet in between.
    ///
    /// One item per update: None, or (status name, message). With ``rollback_on_error`` nothing remains if one fails, and the others
    /// are then reported as ABORTED; with ``undo`` nothing remains in any case.
    #[pyo3(signature = (updates, atomicity="continue_on_error"))]
    fn write(
        &self,
        py: Python<'_>,
        updates: Vec<Bound<'_, PyAny>>,
        atomicity: &str,
    ) -> PyResult<Vec<Option<(&'static str, String)>>> {
        let atomicity = match atomicity {
            "continue_on_error" => Atomicity::ContinueOnError,
            "rollback_on_error" => Atomicity::RollbackOnError,
            "undo" => Atomicity::Undo,
            _ => {
                let message = format!(
                    "atomicity {atomicity:?} is none of \"continue_on_error\", \"rollback_on_error\", \"undo\""
                );
                return Err(control_error(py, "INVALID_ARGUMENT", &message));
            }
        };
        let updates = updates
            .iter()
            .map(records::update)
            .collect::<PyResult<_>>()?;
        let results = self.with(py, move |switch| by_id::write(switch, updates, atomicity))?;
        Ok(results
            .into_iter()
            .map(|result| result.err().map(|e| (e.code.name(), e.message)))
            .collect())
    }

    /// Replaces the program; all entries and state are lost.
    fn set_program(&self, py: Python<'_>, program: Py<Program>) -> PyResult<()> {
        let compiled = program.get();
        let new = py
            .detach(|| compiled.make_switch(self.executor, self.config))
            .map_err(failed)?;
        self.with(py, move |switch| {
            let mut new = new;
            new.take_over_agent(switch);
            *switch = new;
        })?;
        *self.program.lock().unwrap_or_else(PoisonError::into_inner) = program;
        Ok(())
    }

    /// The program that runs.
    #[getter]
    fn program(&self, py: Python<'_>) -> Py<Program> {
        self.program
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_ref(py)
    }

    /// All entries of a table (0: of every table) in a stable order, constant entries included.
    #[pyo3(signature = (table_id=0, include_default=false))]
    fn table_entries(
        &self,
        py: Python<'_>,
        table_id: u32,
        include_default: bool,
    ) -> PyResult<Vec<TableEntry>> {
        self.try_with(py, move |switch| {
            by_id::table_entries(switch, table_id, include_default)
        })?
        .iter()
        .map(|record| records::table_entry(py, record))
        .collect()
    }

    /// Begins to read the entries of a table, as they are now, in slices.
    fn snapshot_table(&self, py: Python<'_>, table_id: u32) -> PyResult<TableSnapshot> {
        let inner = self.try_with(py, move |switch| by_id::snapshot_table(switch, table_id))?;
        Ok(TableSnapshot { inner, table_id })
    }

    /// Entries of a snapshot from a place in it on (0 is the first), and the place that follows; None at the end.
    fn read_snapshot(
        &self,
        py: Python<'_>,
        snapshot: &TableSnapshot,
        place: u32,
        most: u32,
    ) -> PyResult<(Vec<TableEntry>, Option<u32>)> {
        let (program, table, entries, next) = self.snapshot_slice(py, snapshot, place, most)?;
        let records = entries
            .iter()
            .map(|entry| by_id::entry_record(&program, table, entry));
        let entries = records.map(|record| records::table_entry(py, &record));
        Ok((entries.collect::<PyResult<_>>()?, next))
    }

    /// The entry with this key (table, matches and priority, or the default entry); None if there is none.
    fn table_entry(&self, py: Python<'_>, key: &TableEntry) -> PyResult<Option<TableEntry>> {
        let key = records::entry(py, key)?;
        let found = self.try_with(py, move |switch| by_id::table_entry(switch, &key))?;
        found
            .map(|record| records::table_entry(py, &record))
            .transpose()
    }

    /// All multicast groups, by id.
    fn multicast_groups(&self, py: Python<'_>) -> PyResult<Vec<MulticastGroup>> {
        self.with(py, |switch| {
            let groups = switch.multicast_groups().map(|group| MulticastGroup {
                group_id: group.group_id,
                replicas: pairs(&group.replicas),
            });
            groups.collect()
        })
    }

    /// All clone sessions, by id.
    fn clone_sessions(&self, py: Python<'_>) -> PyResult<Vec<CloneSession>> {
        self.with(py, |switch| {
            let sessions = switch.clone_sessions().map(|session| CloneSession {
                session_id: session.session_id,
                replicas: pairs(&session.replicas),
                packet_length_bytes: session.packet_length_bytes,
                class_of_service: session.class_of_service.into(),
            });
            sessions.collect()
        })
    }

    /// The cells of a register, or ``count`` of them from an index on.
    #[pyo3(signature = (register_id, index=None, count=1, *, nonzero=false))]
    fn registers(
        &self,
        py: Python<'_>,
        register_id: u32,
        index: Option<u64>,
        count: u64,
        nonzero: bool,
    ) -> PyResult<Vec<RegisterCell>> {
        let cells = self.try_with(py, move |switch| {
            by_id::registers(
                switch,
                register_id,
                index.map(|index| (index, count)),
                nonzero,
            )
        })?;
        Ok(cells
            .into_iter()
            .map(|(index, value)| RegisterCell {
                register_id,
                index: Some(index),
                value: PyBytes::new(py, &value).unbind(),
            })
            .collect())
    }

    /// The cells of a counter, or ``count`` of them from an index on.
    #[pyo3(signature = (counter_id, index=None, count=1, *, nonzero=false))]
    fn counters(
        &self,
        py: Python<'_>,
        counter_id: u32,
        index: Option<u64>,
        count: u64,
        nonzero: bool,
    ) -> PyResult<Vec<CounterCell>> {
        let cells = self.try_with(py, move |switch| {
            by_id::counters(
                switch,
                counter_id,
                index.map(|index| (index, count)),
                nonzero,
            )
        })?;
        Ok(cells
            .into_iter()
            .map(|(index, data)| CounterCell {
                counter_id,
                index: Some(index),
                packets: data.packets,
                bytes: data.bytes,
            })
            .collect())
    }

    /// Members of an action profile (0: of all), by id.
    #[pyo3(signature = (action_profile_id=0))]
    fn action_profile_members(
        &self,
        py: Python<'_>,
        action_profile_id: u32,
    ) -> PyResult<Vec<ActionProfileMember>> {
        let members = self.try_with(py, move |switch| {
            by_id::objects::members(switch, action_profile_id)
        })?;
        let members = members.into_iter();
        members
            .map(|(action_profile_id, member_id, (action_id, args))| {
                Ok(ActionProfileMember {
                    action_profile_id,
                    member_id,
                    action_id,
                    args: records::arg_dict(py, &args)?.unbind(),
                })
            })
            .collect()
    }

    /// Groups of an action selector (0: of all), by id.
    #[pyo3(signature = (action_profile_id=0))]
    fn action_profile_groups(
        &self,
        py: Python<'_>,
        action_profile_id: u32,
    ) -> PyResult<Vec<ActionProfileGroup>> {
        let groups = self.try_with(py, move |switch| {
            by_id::objects::groups(switch, action_profile_id)
        })?;
        let groups = groups.into_iter();
        Ok(groups
            .map(|(action_profile_id, group_id, contents)| {
                let members = contents.members.iter();
                ActionProfileGroup {
                    action_profile_id,
                    group_id,
                    members: members
                        .map(|m| (m.member_id, m.weight, m.watch_port))
                        .collect(),
                    max_size: contents.max_size,
                }
            })
            .collect())
    }

    /// The cells of a meter, or ``count`` of them from an index on; ``configured``: those that are.
    #[pyo3(signature = (meter_id, index=None, count=1, *, configured=false))]
    fn meters(
        &self,
        py: Python<'_>,
        meter_id: u32,
        index: Option<u64>,
        count: u64,
        configured: bool,
    ) -> PyResult<Vec<MeterCell>> {
        let cells = self.try_with(py, move |switch| {
            by_id::objects::meters(
                switch,
                meter_id,
                index.map(|index| (index, count)),
                configured,
            )
        })?;
        let cells = cells.into_iter();
        Ok(cells
            .map(|(index, config, counters)| MeterCell {
                meter_id,
                index: Some(index),
                config,
                counters,
            })
            .collect())
    }

    /// The members of a value set (0: of each).
    #[pyo3(signature = (value_set_id=0))]
    fn value_set_members(
        &self,
        py: Python<'_>,
        value_set_id: u32,
    ) -> PyResult<Vec<ValueSetMembers>> {
        let sets = self.try_with(py, move |switch| {
            by_id::objects::value_sets(switch, value_set_id)
        })?;
        let sets = sets.into_iter();
        sets.map(|(value_set_id, members)| {
            let dicts = members.iter().map(|fields| records::match_dict(py, fields));
            let dicts = dicts.collect::<PyResult<Vec<_>>>()?;
            Ok(ValueSetMembers {
                value_set_id,
                members: PyList::new(py, dicts)?.unbind(),
            })
        })
        .collect()
    }

    /// Tells a switch that stands alone that a port went down or came up. In a network, the switch finds out by itself.
    fn set_port_up(&self, py: Python<'_>, port: u32, up: bool) -> PyResult<()> {
        self.alone()?;
        self.check_port(port)?;
        self.with(py, move |switch| switch.set_port_up(port, up))
    }

    /// Whether a port is up, as the switch knows it.
    fn port_is_up(&self, py: Python<'_>, port: u32) -> PyResult<bool> {
        self.check_port(port)?;
        self.with(py, move |switch| switch.runtime().ports().is_up(port))
    }

    /// Counted drops by reason.
    fn drops(&self, py: Python<'_>) -> PyResult<BTreeMap<&'static str, u64>> {
        self.with(py, |switch| {
            let drops = switch.drops().into_iter();
            drops
                .map(|(reason, count)| (reason.name(), count))
                .collect()
        })
    }

    /// The digests that have a configuration.
    fn digest_configs(&self, py: Python<'_>) -> PyResult<Vec<DigestConfig>> {
        self.with(py, |switch| by_id::objects::digest_configs(switch))
    }

    /// Takes the lists of configured digests that are due.
    fn take_digest_lists(&self, py: Python<'_>) -> PyResult<Vec<DigestList>> {
        let (time_ps, lists) = self.with(py, by_id::objects::take_digest_lists)?;
        let lists = lists.into_iter();
        Ok(lists
            .map(|(digest_id, list_id, messages)| {
                let messages = messages.iter().map(|m| PyBytes::new(py, m).unbind());
                DigestList::new(digest_id, list_id, time_ps, messages.collect())
            })
            .collect())
    }

    /// Acknowledges a digest list; whether it was waiting for that.
    fn acknowledge_digest(&self, py: Python<'_>, digest_id: u32, list_id: u64) -> PyResult<bool> {
        self.try_with(py, move |switch| {
            let digest = by_id::objects::digest(switch.program(), digest_id)?;
            Ok(switch.acknowledge_digest(digest, list_id).is_ok())
        })
    }

    /// Takes entries that became idle, ``most`` at a time, as they are, in the order in which they did. Their timeouts start again.
    #[pyo3(signature = (most=None))]
    fn take_idle_entries(&self, py: Python<'_>, most: Option<usize>) -> PyResult<Vec<TableEntry>> {
        let most = most.unwrap_or(usize::MAX);
        // In a network the agent follows the timers.
        let alone = matches!(self.home, Home::Alone(_));
        let entries = self.with(py, move |switch| {
            if alone {
                switch.runtime_mut().run_idle_timers(usize::MAX);
            }
            by_id::objects::take_idle_entries(switch, most)
        })?;
        let entries = entries.iter();
        entries
            .map(|record| records::table_entry(py, record))
            .collect()
    }

    /// Tells a switch that stands alone the time for what follows.
    fn set_now_ps(&self, py: Python<'_>, now_ps: u64) -> PyResult<()> {
        self.alone()?;
        let runs_back = self.with(py, move |switch| {
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

    /// When a digest list will be due, or an entry may be idle, if nothing else happens.
    fn next_deadline_ps(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.with(py, |switch| switch.runtime().next_deadline_ps())
    }

    /// Takes messages of digests without a configuration that wait, ``most`` at a time: (digest id, the members side by side, the first in the highest bits), in the order
    /// of ids and of sending.
    #[pyo3(signature = (most=None))]
    fn take_digests<'py>(
        &self,
        py: Python<'py>,
        most: Option<usize>,
    ) -> PyResult<Vec<(u32, Bound<'py, PyBytes>)>> {
        let most = most.unwrap_or(usize::MAX);
        let messages = self.with(py, move |switch| {
            let now_ps = switch.runtime().now_ps();
            by_id::take_digests(switch, now_ps, most)
        })?;
        Ok(messages
            .into_iter()
            .map(|(id, value)| (id, PyBytes::new(py, &value)))
            .collect())
    }

    /// Digest messages that were lost because too many waited.
    fn digests_lost(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |switch| switch.runtime().digests().lost())
    }

    /// Hands a packet (with its packet-out header) to the CPU port. In a network, it enters at the current time.
    fn packet_out(&self, py: Python<'_>, packet: Vec<u8>) -> PyResult<()> {
        match &self.home {
            Home::Node(network, name) => {
                let name = name.clone();
                network.call(py, move |network| network.packet_out(&name, &packet))
            }
            Home::Alone(_) => Err(control_error(
                py,
                "FAILED_PRECONDITION",
                "a switch that stands alone has nowhere to send to: use process() with the CPU port",
            )),
        }
    }

    /// Runs one packet; what comes out of which port, in order. Only on a switch that stands alone.
    #[pyo3(signature = (port, packet, now_ps=0))]
    fn process<'py>(
        &self,
        py: Python<'py>,
        port: u32,
        packet: &[u8],
        now_ps: u64,
    ) -> PyResult<Vec<(u32, Bound<'py, PyBytes>)>> {
        self.alone()?;
        let packet = self.arriving(port, packet)?;
        let outputs = self.with(py, move |switch| {
            let mut outputs = Vec::new();
            switch.receive(now_ps, port, packet, &mut outputs);
            outputs
        })?;
        Ok(outputs
            .iter()
            .map(|output| (output.port, PyBytes::new(py, &output.packet.bytes())))
            .collect())
    }

    /// Like :meth:`process` on the interpreter; what happened, as JSON or as indented text, with every assignment to a variable if
    /// ``assignments``. Tables and registers are used as they are.
    #[pyo3(signature = (port, packet, now_ps=0, *, text=false, assignments=false))]
    fn trace(
        &self,
        py: Python<'_>,
        port: u32,
        packet: &[u8],
        now_ps: u64,
        text: bool,
        assignments: bool,
    ) -> PyResult<String> {
        self.alone()?;
        let packet = self.arriving(port, packet)?;
        self.with(py, move |switch| {
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

fn pairs(replicas: &[engine::control::Replica]) -> Vec<(u32, u32)> {
    replicas.iter().map(|r| (r.port, r.rid.into())).collect()
}
