//! A switch as a node: the pipeline that runs its program, and the time of a packet through it. It does not know what the program does.
//!
//! Without a traffic manager, a packet is processed with the tables as they are when it arrives, and what comes out leaves
//! `latency_ps` later; an output of the CPU port then is a packet-in. With one, see `traffic_manager`. With a processor
//! (`processor`), it waits for that first. Failing a switch
//! loses what is inside, but not its tables and registers.

mod agent;
#[cfg(test)]
pub(crate) mod closure;
mod log;
pub(crate) mod processor;
mod queued;
mod tracing;

use crate::NodeId;
use crate::medium::Medium;
use crate::model::{NodeModel, Visiting, Visitors};
use crate::node::{MAX_PORT, NodeState};
use crate::notification::NotificationEvent;
use crate::observer::Observation;
use crate::scheduler::{Event, Token, Turn};
use crate::traffic::Traffic;
use crate::traffic_manager::{Queueing, TrafficManager, TrafficManagerConfig};
use engine::port_state::PortStates;
use engine::{Output, Packet, Switch, Time, TimeObserved, Trace};
use log::Budget;
use processor::Processor;
use std::sync::Arc;
use tracing::Tracing;

/// The timers of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The processor has served a packet, unless the switch has failed meanwhile (`generation`).
    Served { generation: u32 },
    /// The transmitter of a port with queues may have become free.
    PortReady { port: u32 },
    /// A packet may have passed a recirculation port.
    RecirculationReady { port: u16 },
    /// The agent may have something to announce.
    Agent,
}

impl Timer {
    /// Returns the scheduler's event that makes this timer of the switch `node` expire.
    pub(crate) fn event(self, node: NodeId) -> Event {
        let (turn, timer, value) = match self {
            Timer::Served { generation } => (Turn::Departure, 0, generation),
            Timer::PortReady { port } => (Turn::Transmitter, 1, port),
            Timer::RecirculationReady { port } => (Turn::Transmitter, 2, port.into()),
            Timer::Agent => (Turn::Agent, 3, 0),
        };
        let token = Token { timer, value };
        Event::Wake { node, turn, token }
    }

    /// Returns the timer that [`Timer::event`] encoded in a token.
    fn of(token: Token) -> Timer {
        let Token { timer, value } = token;
        match timer {
            0 => Timer::Served { generation: value },
            1 => Timer::PortReady { port: value },
            2 => Timer::RecirculationReady { port: value as u16 },
            _ => Timer::Agent,
        }
    }
}

/// Runs a switch's program on packets.
pub(crate) trait Pipeline: Send {
    /// Returns the number of the switch's CPU port, which leads to the controller.
    fn cpu_port(&self) -> u32;

    /// Runs one packet that arrived at `port` at the time `now_ps`, and appends its outputs to `outputs`.
    fn receive(&mut self, now_ps: Time, port: u32, packet: Packet, outputs: &mut Vec<Output>);

    /// Runs packets, each given with its arrival port, one after the other at the same time, and appends their outputs
    /// to `outputs`. Leaves `packets` empty.
    fn receive_burst(
        &mut self,
        now_ps: Time,
        packets: &mut Vec<(u32, Packet)>,
        outputs: &mut Vec<Output>,
    ) {
        for (port, packet) in packets.drain(..) {
            self.receive(now_ps, port, packet, outputs);
        }
    }

    /// Returns the engine of the P4 program, with its tables and registers; `None` if the pipeline runs no P4 program.
    fn engine(&self) -> Option<&Switch> {
        None
    }

    /// Returns the engine of the P4 program for modification; `None` if the pipeline runs no P4 program.
    fn engine_mut(&mut self) -> Option<&mut Switch> {
        None
    }

    /// Runs one packet like [`Pipeline::receive`], and returns the trace of what happened to it; `None` if the pipeline
    /// runs no P4 program.
    fn trace(
        &mut self,
        now_ps: Time,
        port: u32,
        packet: Packet,
        outputs: &mut Vec<Output>,
    ) -> Option<Trace> {
        self.receive(now_ps, port, packet, outputs);
        None
    }

    /// Returns the trace of the packet that [`Tracing`] waited for; `None` as long as there is none, or for other
    /// pipelines.
    fn traced(&self) -> Option<&Trace> {
        None
    }

    /// Returns the pipeline itself, without a [`Tracing`] around it.
    fn untraced(self: Box<Self>) -> Box<dyn Pipeline>;
}

impl Pipeline for Switch {
    fn cpu_port(&self) -> u32 {
        self.config().cpu_port
    }

    fn receive(&mut self, now_ps: Time, port: u32, packet: Packet, outputs: &mut Vec<Output>) {
        Switch::receive(self, now_ps, port, packet, outputs);
    }

    fn receive_burst(
        &mut self,
        now_ps: Time,
        packets: &mut Vec<(u32, Packet)>,
        outputs: &mut Vec<Output>,
    ) {
        Switch::receive_burst(self, now_ps, packets, outputs);
    }

    fn engine(&self) -> Option<&Switch> {
        Some(self)
    }

    fn engine_mut(&mut self) -> Option<&mut Switch> {
        Some(self)
    }

    fn trace(
        &mut self,
        now_ps: Time,
        port: u32,
        packet: Packet,
        outputs: &mut Vec<Output>,
    ) -> Option<Trace> {
        let (found, trace) = Switch::trace(self, now_ps, port, packet);
        outputs.extend(found);
        Some(trace)
    }

    fn untraced(self: Box<Self>) -> Box<dyn Pipeline> {
        self
    }
}

/// A switch as a node.
#[repr(C)]
pub(crate) struct SwitchNode {
    // First what every packet needs.
    pub(crate) pipeline: Box<dyn Pipeline>,
    pub(crate) latency_ps: u64,
    pub(crate) traffic: Option<Box<TrafficManager>>,
    /// The processor that serves packets before anything else; `None` if packets take no processor time.
    pub(crate) processor: Option<Box<Processor>>,
    /// True if the program has digests or idle timeouts.
    has_deadlines: bool,
    /// The resolution of time that the program's effects depend on.
    time_observed: TimeObserved,
    cpu_port: u32,
    /// The time of the agent's next event.
    wake_ps: Option<Time>,
    /// In real time, the earliest time at which the controller is told of idle entries again.
    idle_from_ps: Time,
    pub(crate) queueing: Queueing,
    pub(crate) traffic_config: TrafficManagerConfig,
    /// The program for which the use of a traffic manager was decided.
    pub(crate) queueing_of: Option<Arc<ir::Program>>,
    /// The packets that may still be traced, if the switch has a log.
    log: Option<Box<Budget>>,
}

impl SwitchNode {
    /// Creates a switch node around a pipeline, with this latency in picoseconds. It has no ports until links or
    /// interfaces are connected.
    pub(crate) fn new(mut pipeline: Box<dyn Pipeline>, latency_ps: u64) -> SwitchNode {
        if let Some(engine) = pipeline.engine_mut() {
            engine.runtime_mut().set_ports(PortStates::none());
        }
        SwitchNode {
            has_deadlines: has_deadlines(&*pipeline),
            time_observed: time_observed(&*pipeline),
            cpu_port: pipeline.cpu_port(),
            pipeline,
            latency_ps,
            wake_ps: None,
            idle_from_ps: Time::ZERO,
            queueing: Queueing::Auto,
            traffic_config: TrafficManagerConfig::default(),
            queueing_of: None,
            traffic: None,
            processor: None,
            log: None,
        }
    }

    /// Returns the number of the switch's CPU port, which leads to the controller.
    pub(crate) fn cpu_port(&self) -> u32 {
        self.cpu_port
    }

    /// Makes the pipeline trace the next packet that arrives (at `port` if that is given) if `wanted` is true;
    /// otherwise ends the wait for a packet, and discards a trace.
    pub(crate) fn set_tracing(&mut self, wanted: bool, port: Option<u32>) {
        let nobody: Box<dyn Pipeline> = Box::new(tracing::Nothing);
        let pipeline = std::mem::replace(&mut self.pipeline, nobody).untraced();
        self.pipeline = match wanted {
            true => Box::new(Tracing::new(pipeline, port)),
            false => pipeline,
        };
    }

    /// Returns true if it has been decided for the switch's present program whether a traffic manager is used, or there
    /// is no P4 program.
    fn queueing_is_decided(&self) -> bool {
        self.pipeline.engine().is_none_or(|engine| {
            let decided = self.queueing_of.as_ref();
            decided.is_some_and(|program| Arc::ptr_eq(program, engine.program()))
        })
    }

    /// Reports to the switch's program that a port has gone down or come up (`up`).
    pub(crate) fn set_port_up(&mut self, port: u32, up: bool) {
        if let Some(engine) = self.pipeline.engine_mut() {
            engine.set_port_up(port, up);
        }
    }

    /// Handles packets that arrived at ports at the same time, one after the other. Leaves `packets` empty.
    pub(crate) fn receive_burst(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        packets: &mut Vec<(u32, Packet)>,
    ) {
        if self.traffic.is_some() || self.processor.is_some() {
            for (port, packet) in packets.drain(..) {
                self.wait_for_processor(own, medium, port, packet);
            }
            return;
        }
        if self.log.is_some() {
            for (port, packet) in packets.drain(..) {
                self.process_logged(own, medium, port, packet);
            }
            return;
        }
        self.run(own, medium, |pipeline, now_ps, outputs| {
            pipeline.receive_burst(now_ps, packets, outputs);
        });
    }

    /// Runs a packet that has arrived, or that the processor has served, through the program: by the traffic manager,
    /// the log or directly.
    #[inline]
    fn process(&mut self, own: &mut NodeState, medium: &mut Medium, port: u32, packet: Packet) {
        if self.traffic.is_some() {
            return self.receive_queued(own, medium, port, packet);
        }
        if self.log.is_some() {
            return self.process_logged(own, medium, port, packet);
        }
        self.run(own, medium, |pipeline, now_ps, outputs| {
            pipeline.receive(now_ps, port, packet, outputs);
        });
    }

    /// Calls `run` with the pipeline to run packets; its outputs leave after the switch's latency. Also lets the agent
    /// announce what is due.
    #[inline]
    fn run(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        run: impl FnOnce(&mut dyn Pipeline, Time, &mut Vec<Output>),
    ) {
        let mut outputs = std::mem::take(&mut medium.outputs);
        run(&mut *self.pipeline, medium.now_ps(), &mut outputs);
        if self.has_deadlines {
            self.run_agent(own, medium);
        }
        for output in outputs.drain(..) {
            self.come_out(own, medium, output);
        }
        medium.outputs = outputs;
    }

    /// Makes a packet that comes out of the pipeline now leave the switch after its latency.
    #[inline(always)]
    fn come_out(&self, own: &mut NodeState, medium: &mut Medium, output: Output) {
        let Output { port, packet, .. } = output;
        let generation = own.generation;
        if self.latency_ps == 0 {
            return self.depart(own, medium, generation, port, packet);
        }
        let event = Event::Depart {
            node: own.id,
            generation,
            port,
            packet,
        };
        let at_ps = medium.now_ps().saturating_add(self.latency_ps);
        medium.scheduler.push(at_ps, event);
    }

    /// Sends a packet out of a port of the switch, or to the controller if it is the CPU port. Counts it as lost if the
    /// switch has failed after the packet came out of the pipeline (`generation`).
    #[inline(always)]
    fn depart(
        &self,
        own: &mut NodeState,
        medium: &mut Medium,
        generation: u32,
        port: u32,
        packet: Packet,
    ) {
        if own.generation != generation {
            return medium.lose(own, 1);
        }
        if self.cpu_port != port {
            return medium.transmit(own, port, packet);
        }
        own.counters.packet_ins += 1;
        medium.tell(own, Some(port), Observation::Sent(&packet));
        let data = packet.bytes().into_owned();
        medium.notify(own, NotificationEvent::PacketIn { port, data });
    }
}

impl NodeModel for SwitchNode {
    fn refuses_port(&self, port: u32) -> Option<&'static str> {
        if port == self.cpu_port {
            return Some("it is the CPU port");
        }
        (port > MAX_PORT).then_some("ports end at 65535")
    }

    fn receive(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        _: &mut Traffic,
        port: u32,
        packet: Packet,
    ) {
        match self.processor.is_some() {
            true => self.wait_for_processor(own, medium, port, packet),
            false => self.process(own, medium, port, packet),
        }
    }

    fn event(&mut self, own: &mut NodeState, medium: &mut Medium, event: Event) {
        match event {
            Event::Depart {
                generation,
                port,
                packet,
                ..
            } => self.depart(own, medium, generation, port, packet),
            Event::Enqueue {
                generation,
                epoch,
                copy,
                ..
            } => self.enqueue_event(own, medium, (generation, epoch), *copy),
            _ => debug_assert!(false, "no packet of a switch"),
        }
    }

    fn wake(&mut self, own: &mut NodeState, medium: &mut Medium, _: &mut Traffic, token: Token) {
        match Timer::of(token) {
            Timer::Served { generation } => self.served(own, medium, generation),
            Timer::PortReady { port } => self.port_ready(own, medium, port),
            Timer::RecirculationReady { port } => self.recirculation_ready(own, medium, port),
            Timer::Agent => self.agent_event(own, medium),
        }
    }

    fn failed(&mut self, own: &mut NodeState, medium: &mut Medium) {
        self.lose_waiting(own, medium);
        self.lose_queues(own, medium);
    }

    fn repaired(&mut self, own: &mut NodeState, medium: &mut Medium) {
        self.wake_agent(own, medium);
    }

    #[inline]
    fn visiting(&self) -> Visiting {
        match self.traffic.is_some() || self.processor.is_some() || self.has_deadlines {
            true => Visiting::Never,
            false => Visiting::Bursts(self.time_observed),
        }
    }

    fn receive_visitors(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        visitors: &mut Visitors,
    ) {
        let Some(&first_ps) = visitors.arrivals_ps.first() else {
            return;
        };
        let mut outputs = std::mem::take(&mut medium.outputs);
        let Visitors {
            packets, scratch, ..
        } = visitors;
        // In memory that the other switches use too.
        let mut swap_scratch = |pipeline: &mut dyn Pipeline| {
            if let Some(engine) = pipeline.engine_mut() {
                engine.swap_scratch(scratch);
            }
        };
        swap_scratch(&mut *self.pipeline);
        (self.pipeline).receive_burst(first_ps, packets, &mut outputs);
        swap_scratch(&mut *self.pipeline);
        for output in outputs.drain(..) {
            medium.scheduler.now_ps = visitors.arrivals_ps[output.arrival as usize];
            self.come_out(own, medium, output);
        }
        medium.outputs = outputs;
        visitors.arrivals_ps.clear();
    }
}

/// Returns true if the pipeline's program has digests or tables with idle timeouts.
fn has_deadlines(pipeline: &dyn Pipeline) -> bool {
    pipeline.engine().is_some_and(|engine| {
        let program = engine.program();
        !program.digests.is_empty() || program.tables.iter().any(|t| t.support_timeout)
    })
}

/// Returns the resolution of time that the effects of the pipeline's program depend on; the finest one if it is not
/// known to be a P4 program.
fn time_observed(pipeline: &dyn Pipeline) -> TimeObserved {
    let engine = pipeline.engine();
    engine.map_or(TimeObserved::Fully, |engine| {
        engine::time_observed(engine.program())
    })
}

impl std::fmt::Debug for SwitchNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SwitchNode")
            .field("cpu_port", &self.cpu_port())
            .field("latency_ps", &self.latency_ps)
            .finish_non_exhaustive()
    }
}
