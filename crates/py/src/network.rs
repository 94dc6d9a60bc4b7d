//! `Network` for Python: building, traffic, failures and both clocks. `handle` holds the network; `readings` makes its results.
#![allow(clippy::too_many_arguments, reason = "keywords in Python")]
#![expect(
    clippy::disallowed_methods,
    reason = "the time that a run took is measured for whoever asks"
)]

use crate::description::described;
use crate::errors::failed;
use crate::handle::{NetworkHandle, State, detached};
use crate::notification::{Notification, notification};
use crate::ports::{port_statistics, transmit_kind};
use crate::program::{ExecutorKind, Program};
use crate::readings::{self, Record};
use crate::switch::{Asked, Switch};
use crate::time::Ps;
use engine::Time;
use net::{Crossings, FlowId, Join, NetError, PacketGenerator};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time for which a long call may keep other Python threads and signals waiting.
const PATIENCE: Duration = Duration::from_millis(50);

/// Nodes and links on the virtual or the wall clock. Its Python interface is :mod:`holdfast.network`.
///
/// Methods raise HoldfastError for a node, port, link or flow that does not exist, for an invalid value, and after the
/// thread of the wall clock has ended by an error.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct Network {
    pub(crate) handle: Arc<NetworkHandle>,
}

impl Network {
    /// Runs a closure on the network between events, while other Python threads may run, and returns its result.
    fn call<T: Send + 'static>(
        &self,
        f: impl FnOnce(&mut net::Network) -> Result<T, NetError> + Send + 'static,
    ) -> PyResult<T> {
        self.handle.call(f)
    }
}

/// Building.
#[pymethods]
impl Network {
    #[new]
    #[pyo3(signature = (*, seed=0, detection_delay_ps=0, begin_ps=0))]
    fn new(seed: u64, detection_delay_ps: u64, begin_ps: u128) -> Network {
        let network = net::Network::begin_at(Time::from_ps(begin_ps), seed, detection_delay_ps);
        Network {
            handle: Arc::new(NetworkHandle::new(network)),
        }
    }

    /// Adds a switch that runs a program. The keywords are those of the JSON of :class:`holdfast.topology.SwitchNode`, without
    /// its name, index and position.
    #[pyo3(
        signature = (name, program, *, executor="jit", cpu_port=None, **switch),
        text_signature = "($self, name, program, *, executor=\"jit\", cpu_port=None, **switch)"
    )]
    fn add_switch(
        &self,
        py: Python<'_>,
        name: String,
        program: Py<Program>,
        executor: &str,
        cpu_port: Option<u32>,
        switch: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Switch> {
        let described = described::<net::description::Switch>(py, switch)?;
        let executor = ExecutorKind::parse(executor)?;
        let seed = {
            let name = name.clone();
            self.call(move |n| Ok(n.seed_of(&name)))?
        };
        let compiled = program.get();
        let asked = Asked { cpu_port, seed };
        let config = asked.with(compiled.ir())?;
        let switch = detached(|| compiled.make_switch(executor, config)).map_err(failed)?;
        let node = name.clone();
        self.call(move |n| {
            n.add_described_switch(&node, Box::new(switch), &described)
                .map(drop)
        })?;
        let network = self.handle.clone();
        Ok(Switch::node(network, name, executor, asked, program))
    }

    /// Adds a generator of packets, which enter a switch at one of its ports like packets from outside, and returns its id. The
    /// keywords are those of the JSON of :class:`holdfast.topology.PacketGenerator`.
    #[pyo3(signature = (**generator), text_signature = "($self, **generator)")]
    fn add_packet_generator(
        &self,
        py: Python<'_>,
        generator: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u32> {
        let generator = described::<PacketGenerator>(py, generator)?;
        self.call(move |n| n.add_packet_generator(&generator).map(|id| id.0))
    }

    /// Adds a modelled host, which answers pings, and sends and receives the traffic added to it. The keywords are those of
    /// :meth:`holdfast.host.Host.description`: ``cards``, one for each port (``mac``, ``address`` and maybe ``ipv6``, both with the
    /// length of the prefix), and maybe ``gateways``, ``neighbours`` and ``vlan``. MAC addresses that are not known are asked for.
    #[pyo3(signature = (name, **host), text_signature = "($self, name, **host)")]
    fn add_host(
        &self,
        py: Python<'_>,
        name: String,
        host: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let host = described::<net::description::Host>(py, host)?;
        self.call(move |n| n.add_host(&name, host).map(drop))
    }

    /// Adds a Linux interface as a node with one port, number 0. The network then runs on the wall clock only. Raises
    /// HoldfastError while the clock runs, or if a name is in use.
    fn add_interface(&self, name: String, interface: String) -> PyResult<()> {
        detached(|| match &*self.handle.read() {
            // The sockets are opened when the clock starts.
            State::Running(_) => Err("interfaces are added before start()"),
            _ => Ok(()),
        })
        .map_err(failed)?;
        self.call(move |n| n.add_interface(&name, &interface).map(drop))
    }

    /// Makes a Linux interface a port of a switch, without a link in between, before the wall clock starts or while it
    /// runs. ``io`` determines whether frames are sent by an XDP socket or by a packet socket; ``auto`` chooses the
    /// XDP socket if the interface supports it. A change of the interface's state causes a ``port_change``
    /// notification.
    #[pyo3(signature = (switch, port, interface, *, io="auto"))]
    fn add_port(&self, switch: String, port: u32, interface: String, io: &str) -> PyResult<()> {
        let kind = transmit_kind(io)?;
        detached(|| self.handle.add_port(switch, port, interface, kind)).map_err(failed)
    }

    /// Removes an interface from a switch, even while the clock runs. Returns its counters, like
    /// :meth:`port_statistics`. Raises HoldfastError if the port is not an interface.
    fn remove_port(&self, switch: String, port: u32) -> PyResult<Record> {
        let counters = detached(|| self.handle.remove_port(switch, port)).map_err(failed)?;
        port_statistics(counters)
    }

    /// Returns the counters of the interface at a switch's port, since the port was added. Raises HoldfastError if the
    /// port is not an interface.
    fn port_statistics(&self, switch: String, port: u32) -> PyResult<Record> {
        let (counters, _) = detached(|| self.handle.port(switch, port)).map_err(failed)?;
        port_statistics(counters)
    }

    /// Returns port, counters and signal of those of a switch's ports that are interfaces, read at one moment.
    fn port_readings(&self, switch: String, ports: Vec<u32>) -> PyResult<Vec<(u32, Record, bool)>> {
        let found = detached(|| self.handle.ports(switch, ports)).map_err(failed)?;
        let found = found.into_iter();
        found
            .map(|(port, counters, up)| Ok((port, port_statistics(counters)?, up)))
            .collect()
    }

    /// Returns the kind of socket that sends frames from a switch's port to its interface: ``"af_packet"`` or
    /// ``"af_xdp"``; None while the wall clock does not run.
    fn port_io(&self, switch: String, port: u32) -> PyResult<Option<&'static str>> {
        let (_, by_xdp) = detached(|| self.handle.port(switch, port)).map_err(failed)?;
        Ok(by_xdp.map(|by_xdp| if by_xdp { "af_xdp" } else { "af_packet" }))
    }

    /// Adds a link between two ports, and returns its id. The keywords are :func:`holdfast.link.description`'s of a
    /// :class:`holdfast.topology.Link`: ``a``, ``a_port``, ``b``, ``b_port``, ``a_to_b``, and maybe ``b_to_a`` and detectors. Each direction draws its own
    /// jitter and losses; a packet that draws less jitter may overtake earlier ones, as under tc netem.
    #[pyo3(signature = (**link), text_signature = "($self, **link)")]
    fn add_link(&self, py: Python<'_>, link: Option<&Bound<'_, PyDict>>) -> PyResult<u32> {
        let link = described::<net::description::Link>(py, link)?;
        self.call(move |n| n.connect(&link).map(|link| link.0))
    }

    /// Captures the packets that cross a port from now on into a pcap file; an existing file is replaced. ``captured``:
    /// those that come ``in``, those that go ``out``, or ``both``. The file is complete when a run or the wall clock ends;
    /// under the wall clock it follows the packets at once.
    #[pyo3(signature = (node, port, path, captured="both"))]
    fn capture(&self, node: String, port: u32, path: PathBuf, captured: &str) -> PyResult<()> {
        let captured = match captured {
            "both" => Crossings::Both,
            "in" => Crossings::In,
            "out" => Crossings::Out,
            _ => return Err(failed("captured is both, in or out")),
        };
        self.call(move |n| n.capture_to_path(&node, port, captured, &path))
    }

    /// Writes what happens to the packets of a switch from now on, as text, into a file (replaced if it exists; None:
    /// standard output): at most ``most_per_s`` packets per second, which run on the interpreter, and the number of
    /// the others. ``dump_bytes``: how many bytes of each are shown. Raises HoldfastError if the file cannot be made.
    #[pyo3(signature = (switch, path, most_per_s, *, dump_bytes=0))]
    fn log_packets(
        &self,
        switch: String,
        path: Option<PathBuf>,
        most_per_s: u32,
        dump_bytes: usize,
    ) -> PyResult<()> {
        let out: Box<dyn Write + Send> = match path {
            None => Box::new(BufWriter::new(std::io::stdout())),
            Some(path) => {
                let file = std::fs::File::create(&path)
                    .map_err(|error| failed(format!("{}: {error}", path.display())))?;
                Box::new(BufWriter::new(file))
            }
        };
        self.call(move |n| n.log_packets(&switch, most_per_s, dump_bytes, out))
    }

    /// Returns why a capture or a log has ended, such as a full disk; None if none has. Each failure is returned
    /// once.
    fn take_failure(&self) -> PyResult<Option<String>> {
        self.call(|n| Ok(n.flush_captures().err().map(|error| error.to_string())))
    }

    /// Traces the next packet that arrives at a switch, at ``port`` if one is given, for :meth:`take_trace`. Raises HoldfastError
    /// if its packets wait in a traffic manager.
    #[pyo3(signature = (switch, port=None))]
    fn trace_next(&self, switch: String, port: Option<u32>) -> PyResult<()> {
        self.call(move |n| n.trace_next(&switch, port))
    }

    /// Returns the trace of the packet for which :meth:`trace_next` asked, as text; None if no packet has come yet.
    /// With ``give_up``, the request is withdrawn, and no packet is traced any more.
    #[pyo3(signature = (switch, *, give_up=false))]
    fn take_trace(&self, switch: String, give_up: bool) -> PyResult<Option<String>> {
        self.call(move |n| {
            n.take_trace(&switch, give_up, |trace| {
                trace.clone().without_assignments().to_string()
            })
        })
    }

    /// Changes a link, a direction of it, or a node at a time. ``target``: ``link``, ``link`` and ``direction`` (``a_to_b`` or
    /// ``b_to_a``), or ``node``; ``at_ps`` (None: now); ``up``: fails or repairs it, by which packets that wait or are under
    /// way on a failing link or inside a failing node are lost; ``silent``: makes it lose all packets without a change of its
    /// signal, or ends that; ``rate_bps``, ``delay_ms``, ``jitter``, ``loss``: as in :meth:`add_link`.
    #[pyo3(signature = (**change), text_signature = "($self, **change)")]
    fn apply(&self, py: Python<'_>, change: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let change = described::<net::Change>(py, change)?;
        self.call(move |n| n.apply(&change))
    }

    /// Declares a port of a switch to be down, whatever the signal of its link says, or withdraws that declaration
    /// (``down`` False).
    fn declare_port(&self, switch: String, port: u32, down: bool) -> PyResult<()> {
        self.call(move |n| n.declare_port(&switch, port, down))
    }

    /// Starts to count packets that are dropped outside of programs (by queues, links, hosts), by node and reason.
    /// Returns the number of the observer, for :meth:`snapshot`. Runs are slower from then on, since nodes cannot
    /// handle packets ahead of time.
    fn count_drops(&self) -> PyResult<u32> {
        let id = self
            .call(|n| Ok(n.observe(net::Scope::Network, Box::new(net::DropCounts::default()))))?;
        Ok(id.0)
    }

    /// Makes a link, a direction of it, or a node fail and be repaired at random, with a random stream of its own.
    /// ``target`` is as in :meth:`apply`; ``time_to_failure`` and ``time_to_repair`` are ("exponential", mean_ps) or ("fixed",
    /// time_ps). Failures begin at ``start_ps`` at the earliest, and before ``end_ps``.
    #[pyo3(signature = (**failures), text_signature = "($self, **failures)")]
    fn fail_randomly(&self, py: Python<'_>, failures: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let failures = described::<net::RandomFailures>(py, failures)?;
        self.call(move |n| n.fail_randomly(&failures))
    }

    /// Adds a UDP stream with sequence numbers, and returns its flow id. The keywords are those of the JSON of
    /// :class:`holdfast.traffic.UdpStream`. Without ``log_packets``, which a Poisson process needs, only statistics are kept, in
    /// memory that does not grow with packets.
    #[pyo3(signature = (**stream), text_signature = "($self, **stream)")]
    fn add_udp_stream(&self, py: Python<'_>, stream: Option<&Bound<'_, PyDict>>) -> PyResult<u32> {
        let stream = described::<net::UdpStream>(py, stream)?;
        self.call(move |n| n.add_udp_stream(&stream).map(|flow| flow.0))
    }

    /// Adds a flow of echo requests from a modelled host to another host or an address, and returns its flow id. The keywords are
    /// those of the JSON of :class:`holdfast.traffic.Ping`.
    #[pyo3(signature = (**ping), text_signature = "($self, **ping)")]
    fn add_ping(&self, py: Python<'_>, ping: Option<&Bound<'_, PyDict>>) -> PyResult<u32> {
        let ping = described::<net::Ping>(py, ping)?;
        self.call(move |n| n.add_ping(&ping).map(|flow| flow.0))
    }

    /// Ends a UDP stream or a flow of pings before its time: nothing more is sent. Raises HoldfastError if there is
    /// no such flow.
    fn end_flow(&self, flow: u32) -> PyResult<()> {
        self.call(move |n| n.end_flow(FlowId(flow)))
    }

    /// Adds a TCP connection between modelled hosts, and returns its flow id. ``options`` change the ``preset`` (``"standard"`` or
    /// ``"ns2-2001"``; over IPv6 their segments hold 20 bytes less). The other keywords are those of the JSON of
    /// :class:`holdfast.traffic.TcpTransfer`.
    #[pyo3(signature = (preset, options, **transfer), text_signature = "($self, preset, options, **transfer)")]
    fn add_tcp(
        &self,
        py: Python<'_>,
        preset: &str,
        options: &Bound<'_, PyDict>,
        transfer: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u32> {
        let mut transfer = described::<net::TcpTransfer>(py, transfer)?;
        transfer.config = crate::tcp::config(preset, options, transfer.family)?;
        self.call(move |n| n.add_tcp(&transfer).map(|flow| flow.0))
    }

    /// Sets which sources of a multicast group a modelled host wants, from ``at_ps`` on (None: now): these ``sources``, or with
    /// ``excludes`` all others. Without ``sources`` and ``excludes``, the host leaves the group. ``version`` is one of ``"igmpv1"``
    /// to ``"igmpv3"``, ``"mldv1"``, ``"mldv2"``.
    #[pyo3(signature = (**join), text_signature = "($self, **join)")]
    fn join(&self, py: Python<'_>, join: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let join = described::<Join>(py, join)?;
        self.call(move |n| n.join(&join))
    }

    /// Sends a frame as it is, now, from a modelled host or from the node of an interface. Raises HoldfastError for a
    /// switch.
    fn send_frame(&self, node: String, frame: Vec<u8>) -> PyResult<()> {
        self.call(move |n| n.send_frame(&node, &frame))
    }

    /// Returns the time on the network's clock, in picoseconds.
    #[getter]
    fn now_ps(&self) -> PyResult<Ps> {
        let running = detached(|| match &*self.handle.read() {
            State::Running(clock) => Some(clock.now_ps()),
            _ => None,
        });
        match running {
            Some(now_ps) => Ok(Ps(now_ps)),
            None => self.call(|n| Ok(Ps(n.now_ps()))),
        }
    }

    /// Sets a promise about controllers, which makes runs of the virtual clock faster: after a notification, the
    /// caller changes the network at the earliest ``reaction_ps`` picoseconds later, never if ``None``. If the
    /// promise is kept, results do not change. Any call of this method, however, orders simultaneous packets by the
    /// numbers of links, switches and flows, no longer by when they were scheduled.
    fn set_reaction(&self, reaction_ps: Option<u64>) -> PyResult<()> {
        self.call(move |network| {
            network.set_reaction_ps(reaction_ps.unwrap_or(u64::MAX));
            Ok(())
        })
    }

    /// Runs the virtual clock to ``until_ps`` or to the first instant with notifications, whichever comes first.
    /// Returns the notifications.
    fn run(&self, py: Python<'_>, until_ps: Ps) -> PyResult<Vec<Notification>> {
        // In parts, so that an interrupt need not wait for the end. That does not change what happens.
        let mut part_ps = 1_000_000_000;
        loop {
            let start = Instant::now();
            let (now_ps, notifications) =
                detached(|| self.handle.run_part(until_ps.0, part_ps)).map_err(failed)?;
            if !notifications.is_empty() || now_ps >= until_ps.0 {
                let of = |n| notification(py, n);
                return Ok(notifications.into_iter().map(of).collect());
            }
            part_ps = if start.elapsed() < PATIENCE {
                part_ps.saturating_mul(2)
            } else {
                (part_ps / 2).max(1)
            };
            py.check_signals()?;
        }
    }

    /// Starts the wall clock: the network runs in a thread of its own until :meth:`stop`, from its present time on.
    /// Each switch makes at most ``copies_per_s`` copies of copies per second, of all packets together
    /// (resubmissions, recirculations and clones behind the first two passes); others are dropped as
    /// ``recirculation_limit``. Raises HoldfastError if the clock runs already, or an interface cannot be opened.
    #[pyo3(signature = (*, copies_per_s=engine::COPIES_PER_S))]
    fn start(&self, copies_per_s: u64) -> PyResult<()> {
        detached(|| self.handle.start(copies_per_s)).map_err(failed)
    }

    /// Returns the notifications since the last call, under the wall clock. If there are none, waits up to
    /// ``timeout_s`` seconds for the first. Raises HoldfastError if the clock is not running.
    fn poll(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Vec<Notification>> {
        let timeout = Duration::try_from_secs_f64(timeout_s)
            .map_err(|e| failed(format!("timeout_s is {timeout_s}: {e}")))?;
        let start = Instant::now();
        loop {
            // In parts, so that neither an interrupt nor stop() need wait.
            let left = timeout.saturating_sub(start.elapsed());
            let notifications = detached(|| match &*self.handle.read() {
                State::Running(clock) => Ok(clock.poll(left.min(PATIENCE))),
                State::Idle(_) => Err("the wall clock is not running: call start() first".into()),
                State::Lost(reason) => Err(reason.clone()),
            })
            .map_err(|reason: String| failed(reason))?;
            if !notifications.is_empty() || left.is_zero() {
                let of = |n| notification(py, n);
                return Ok(notifications.into_iter().map(of).collect());
            }
            py.check_signals()?;
        }
    }

    /// Stops the wall clock. The network can still be read. Does nothing if the clock is not running.
    fn stop(&self) -> PyResult<()> {
        detached(|| self.handle.stop()).map_err(failed)
    }

    /// Returns results: a list of objects of ``kind``, a class of :mod:`holdfast.measurements`. The keywords say of
    /// which object: ``link`` (and ``direction``), ``node``, ``switch`` (and ``port``), ``flow`` or ``host`` (and
    /// ``group``), ``observer``, ``generator``. Raises HoldfastError if there is no such object.
    #[pyo3(
        signature = (kind, **subject),
        text_signature = "($self, kind, **subject)"
    )]
    fn snapshot<'py>(
        &self,
        kind: Bound<'py, PyType>,
        subject: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let subject = readings::subject(&kind, subject)?;
        let found = self.call(move |n| n.snapshot(&subject))?;
        readings::objects(&kind, &found)
    }

    /// Returns whether a switch has a traffic manager at present, in which its packets wait.
    fn has_traffic_manager(&self, switch: String) -> PyResult<bool> {
        self.call(move |n| n.has_traffic_manager(&switch))
    }

    /// Returns whether a port has a signal: its link works towards the port, or the port is an interface that is up.
    fn port_is_up(&self, node: String, port: u32) -> PyResult<bool> {
        self.call(move |n| n.port_is_up(&node, port))
    }

    /// Returns how late events of the wall clock were, and how busy it was. Raises HoldfastError if it is not running.
    fn wall_statistics(&self) -> PyResult<Record> {
        let statistics = detached(|| match &*self.handle.read() {
            State::Running(clock) => Ok(clock.statistics()),
            _ => Err("the wall clock is not running"),
        })
        .map_err(failed)?;
        Python::attach(|py| readings::record(py, "WallStatistics", &statistics))
    }
}
