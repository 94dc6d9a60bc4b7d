//! A switch as a node: the engine's switch, and how long a packet takes through it. It does not know what the program does.
//!
//! Without a traffic manager, a packet is processed with the tables as they are when it arrives, and what comes out leaves
//! `latency_ps` later; what comes out of the CPU port then is a packet-in. With one, see `traffic_manager`. Failing a switch
//! loses what is inside, but not its tables and registers.

use crate::traffic_manager::{Queueing, TrafficManager, TrafficManagerConfig};
use engine::port_state::PortStates;
use engine::{Output, Packet, Scratch, Switch, TimeObserved};
use std::sync::Arc;

/// What runs the packets.
pub(crate) enum Pipeline {
    /// A P4 program.
    Engine(Box<Switch>),
    /// A closure with CPU port [`TEST_CPU_PORT`], for tests of the network alone.
    #[cfg(test)]
    Test(TestPipeline),
}

/// Time, port and packet in; packets out.
#[cfg(test)]
pub(crate) type TestPipeline = Box<dyn FnMut(u64, u32, Packet, &mut Vec<Output>) + Send>;

#[cfg(test)]
pub(crate) const TEST_CPU_PORT: u32 = 510;

/// A switch as a node.
#[repr(C)]
pub(crate) struct SwitchNode {
    // First what every packet needs.
    pub(crate) pipeline: Pipeline,
    pub(crate) latency_ps: u64,
    pub(crate) traffic: Option<Box<TrafficManager>>,
    /// The program has digests or idle timeouts.
    pub(crate) has_deadlines: bool,
    /// What the program does depends on when it does it.
    pub(crate) time_observed: TimeObserved,
    /// When the agent's next event is.
    pub(crate) wake_ps: Option<u64>,
    /// In real time, when the controller may be told of idle entries again.
    pub(crate) idle_from_ps: u64,
    pub(crate) queueing: Queueing,
    pub(crate) traffic_config: TrafficManagerConfig,
    /// The program that `queueing` was decided for.
    pub(crate) queueing_of: Option<Arc<ir::Program>>,
}

impl SwitchNode {
    /// The port that leads to the controller.
    pub(crate) fn cpu_port(&self) -> u32 {
        match &self.pipeline {
            Pipeline::Engine(switch) => switch.config().cpu_port,
            #[cfg(test)]
            Pipeline::Test(_) => TEST_CPU_PORT,
        }
    }

    /// A node around a switch. All its ports are down until something is connected.
    pub(crate) fn new(mut pipeline: Pipeline, latency_ps: u64) -> SwitchNode {
        match &mut pipeline {
            Pipeline::Engine(switch) => switch.runtime_mut().set_ports(PortStates::all(false)),
            #[cfg(test)]
            Pipeline::Test(_) => {}
        }
        SwitchNode {
            has_deadlines: has_deadlines(&pipeline),
            time_observed: time_observed(&pipeline),
            pipeline,
            latency_ps,
            wake_ps: None,
            idle_from_ps: 0,
            queueing: Queueing::Auto,
            traffic_config: TrafficManagerConfig::default(),
            queueing_of: None,
            traffic: None,
        }
    }

    /// The engine's switch, if it is one.
    pub(crate) fn engine_mut(&mut self) -> Option<&mut Switch> {
        match &mut self.pipeline {
            Pipeline::Engine(switch) => Some(switch),
            #[cfg(test)]
            Pipeline::Test(_) => None,
        }
    }

    /// Whether it was decided for the program that the switch has now where packets wait, or there is nothing to decide.
    pub(crate) fn queueing_is_decided(&self) -> bool {
        match &self.pipeline {
            Pipeline::Engine(switch) => {
                let decided = self.queueing_of.as_ref();
                decided.is_some_and(|program| Arc::ptr_eq(program, switch.program()))
            }
            #[cfg(test)]
            Pipeline::Test(_) => true,
        }
    }

    /// Tells the switch that a port went down or came up.
    pub(crate) fn set_port_up(&mut self, port: u32, up: bool) {
        match &mut self.pipeline {
            Pipeline::Engine(switch) => switch.set_port_up(port, up),
            #[cfg(test)]
            Pipeline::Test(_) => {}
        }
    }

    /// Whether the agent needs an event at this time; then there will be one.
    pub(crate) fn wake(&mut self, at_ps: u64) -> bool {
        let needed = self.wake_ps.is_none_or(|planned_ps| at_ps < planned_ps);
        if needed {
            self.wake_ps = Some(at_ps);
        }
        needed
    }

    /// Runs one packet; outputs are appended.
    pub(crate) fn receive(
        &mut self,
        now_ps: u64,
        port: u32,
        packet: Packet,
        outputs: &mut Vec<Output>,
    ) {
        match &mut self.pipeline {
            Pipeline::Engine(switch) => switch.receive(now_ps, port, packet, outputs),
            #[cfg(test)]
            Pipeline::Test(run) => run(now_ps, port, packet, outputs),
        }
    }

    /// Runs packets as [`SwitchNode::receive_burst`] does, in memory that other switches use too.
    #[inline]
    pub(crate) fn receive_visitors(
        &mut self,
        now_ps: u64,
        packets: &mut Vec<(u32, Packet)>,
        outputs: &mut Vec<Output>,
        scratch: &mut Box<Scratch>,
    ) {
        match &mut self.pipeline {
            Pipeline::Engine(switch) => {
                switch.swap_scratch(scratch);
                switch.receive_burst(now_ps, packets, outputs);
                switch.swap_scratch(scratch);
            }
            #[cfg(test)]
            Pipeline::Test(_) => self.receive_burst(now_ps, packets, outputs),
        }
    }

    /// Runs packets, each with its port, one after the other at one time; outputs are appended. `packets` is empty afterwards.
    pub(crate) fn receive_burst(
        &mut self,
        now_ps: u64,
        packets: &mut Vec<(u32, Packet)>,
        outputs: &mut Vec<Output>,
    ) {
        match &mut self.pipeline {
            Pipeline::Engine(switch) => switch.receive_burst(now_ps, packets, outputs),
            #[cfg(test)]
            Pipeline::Test(run) => {
                for (port, packet) in packets.drain(..) {
                    run(now_ps, port, packet, outputs);
                }
            }
        }
    }
}

/// Whether a program has digests or idle timeouts.
pub(crate) fn has_deadlines(pipeline: &Pipeline) -> bool {
    match pipeline {
        Pipeline::Engine(switch) => {
            let program = switch.program();
            !program.digests.is_empty() || program.tables.iter().any(|t| t.support_timeout)
        }
        #[cfg(test)]
        Pipeline::Test(_) => false,
    }
}

/// How finely what a program does depends on when it does it; a test's may in any way.
pub(crate) fn time_observed(pipeline: &Pipeline) -> TimeObserved {
    match pipeline {
        Pipeline::Engine(switch) => engine::time_observed(switch.program()),
        #[cfg(test)]
        Pipeline::Test(_) => TimeObserved::Fully,
    }
}

impl std::fmt::Debug for SwitchNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SwitchNode")
            .field("cpu_port", &self.cpu_port())
            .field("latency_ps", &self.latency_ps)
            .finish_non_exhaustive()
    }
}
