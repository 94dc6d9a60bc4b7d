//! What the agent on a switch does, on either clock: it tells the program and the watching members which ports are up, announces
//! digest lists and idle entries when they are due, and generates packets.
//!
//! Nobody polls. The switch says when the next list or entry will be due, and an event at that time looks. What a controller is told
//! here it then reads from the switch.

use crate::error::{NetError, out_of_range};
use crate::event::Event;
use crate::network::Network;
use crate::node::NodeKind;
use crate::notification::NotificationEvent;
use crate::switch::has_deadlines;
use crate::{GeneratorId, NodeId};
use engine::Packet;
use ir::architecture::v1model::DROP_PORT;

/// Packets that enter a switch by themselves, at one of its ports, like packets from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketGenerator {
    /// The switch.
    pub switch: String,
    /// The port at which they enter.
    pub port: u32,
    /// The packet.
    pub packet: Vec<u8>,
    /// When.
    pub trigger: GeneratorTrigger,
}

/// When a generator makes a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeneratorTrigger {
    /// Again and again.
    Periodic {
        /// The first time.
        start_ps: u64,
        /// Time between packets.
        period_ps: u64,
        /// How many; 0 is without end.
        count: u64,
    },
    /// When the switch notices that a port went down or came up.
    PortChange {
        /// Which of the two.
        up: bool,
        /// Where in the packet the number of the port goes, in two bytes.
        port_offset: Option<usize>,
    },
}

/// A generator and how far it is.
#[derive(Debug)]
pub(crate) struct Generator {
    node: NodeId,
    port: u32,
    packet: Vec<u8>,
    trigger: GeneratorTrigger,
    /// Periods that have begun.
    periods: u64,
    generated: u64,
}

/// In real time, packets wait while timers are followed: so many at once.
const TIMERS_AT_ONCE: usize = 128;
/// In real time, until the other timers that are over.
const TIMERS_PAUSE_PS: u64 = 1_000_000_000;
/// In real time, between two words to the controller that entries are idle. It takes many at once rather than each alone.
const IDLE_PAUSE_PS: u64 = 25_000_000_000;

impl Network {
    /// Adds a packet generator to a switch.
    pub fn add_packet_generator(
        &mut self,
        generator: &PacketGenerator,
    ) -> Result<GeneratorId, NetError> {
        let node = self.node_id(&generator.switch)?;
        if !matches!(self.node(node).kind, NodeKind::Switch(_)) {
            return Err(NetError::WrongKind {
                node: generator.switch.clone(),
                expected: "a switch",
            });
        }
        if generator.port >= DROP_PORT {
            return Err(out_of_range("port", format!("below {DROP_PORT}")));
        }
        let id = GeneratorId(self.generators.len() as u32);
        match generator.trigger {
            GeneratorTrigger::Periodic {
                start_ps,
                period_ps,
                ..
            } => {
                self.check_not_past(start_ps)?;
                if period_ps == 0 {
                    return Err(out_of_range("period_ps", "above zero"));
                }
                self.events
                    .push(start_ps, Event::Generate { generator: id });
            }
            GeneratorTrigger::PortChange { port_offset, .. } => {
                let room = port_offset.is_none_or(|at| {
                    at.checked_add(2)
                        .is_some_and(|end| end <= generator.packet.len())
                });
                if !room {
                    let reason = "two bytes inside the packet";
                    return Err(out_of_range("port_offset", reason));
                }
            }
        }
        self.generators.push(Generator {
            node,
            port: generator.port,
            packet: generator.packet.clone(),
            trigger: generator.trigger,
            periods: 0,
            generated: 0,
        });
        Ok(id)
    }

    /// How many packets a generator has made.
    pub fn packets_generated(&self, id: GeneratorId) -> Result<u64, NetError> {
        let generator = self.generators.get(id.0 as usize);
        generator
            .map(|generator| generator.generated)
            .ok_or_else(|| out_of_range("generator", "one that was added"))
    }

    /// A period of a generator begins. A switch that is down lets the time pass without a packet.
    pub(crate) fn generate(&mut self, id: GeneratorId) {
        let generator = &mut self.generators[id.0 as usize];
        let GeneratorTrigger::Periodic {
            start_ps,
            period_ps,
            count,
        } = generator.trigger
        else {
            return;
        };
        generator.periods += 1;
        let periods = generator.periods;
        let next_ps = period_ps
            .checked_mul(periods)
            .and_then(|after| after.checked_add(start_ps));
        let packet = Packet::new(&generator.packet);
        self.enter(id, packet);
        if let Some(next_ps) = next_ps.filter(|_| count == 0 || periods < count) {
            self.events.push(next_ps, Event::Generate { generator: id });
        }
    }

    fn enter(&mut self, id: GeneratorId, packet: Packet) {
        let generator = &mut self.generators[id.0 as usize];
        let (node, port) = (generator.node, generator.port);
        if self.nodes[node.0 as usize].up {
            self.generators[id.0 as usize].generated += 1;
            self.receive(node, port, packet);
        }
    }

    /// A switch notices that a port went down or came up: its program first, then what waits for that, then its controller. A
    /// switch that is down tells nobody; a node that is no switch notices nothing.
    pub(crate) fn port_changed(&mut self, node: NodeId, port: u32, up: bool) {
        self.set_switch_port(node, port, up);
        let state = self.node(node);
        if !state.up || !matches!(state.kind, NodeKind::Switch(_)) {
            return;
        }
        for i in 0..self.generators.len() {
            self.generate_for_port(GeneratorId(i as u32), node, port, up);
        }
        self.notify(node, NotificationEvent::PortChange { port, up });
    }

    fn generate_for_port(&mut self, id: GeneratorId, node: NodeId, port: u32, up: bool) {
        let generator = &self.generators[id.0 as usize];
        let GeneratorTrigger::PortChange {
            up: wanted,
            port_offset,
        } = generator.trigger
        else {
            return;
        };
        if generator.node != node || wanted != up {
            return;
        }
        let mut bytes = generator.packet.clone();
        if let Some(at) = port_offset {
            bytes[at..at + 2].copy_from_slice(&(port as u16).to_be_bytes());
        }
        self.enter(id, Packet::new(&bytes));
    }

    /// Tells a switch the state of a port, if the node is one.
    pub(crate) fn set_switch_port(&mut self, node: NodeId, port: u32, up: bool) {
        if let NodeKind::Switch(switch) = &mut self.nodes[node.0 as usize].kind {
            switch.set_port_up(port, up);
        }
    }

    /// Has the agent look at a switch now, before time goes on.
    pub(crate) fn wake_agent(&mut self, node: NodeId) {
        let now_ps = self.now_ps;
        if let NodeKind::Switch(switch) = &mut self.nodes[node.0 as usize].kind
            && switch.wake(now_ps)
        {
            self.events.push(now_ps, Event::Agent { node });
        }
    }

    /// An event for the agent of a switch. It may be a former one, whose time another has taken.
    pub(crate) fn agent_event(&mut self, node: NodeId) {
        self.refresh_queueing(node);
        let now_ps = self.now_ps;
        let state = &mut self.nodes[node.0 as usize];
        let NodeKind::Switch(switch) = &mut state.kind else {
            return;
        };
        if switch.wake_ps.is_some_and(|at_ps| at_ps <= now_ps) {
            switch.wake_ps = None;
        }
        // The program may have been replaced.
        switch.has_deadlines = has_deadlines(&switch.pipeline);
        if state.up {
            self.run_agent(node);
        }
    }

    /// Announces what is due, and comes back when something else will be.
    pub(crate) fn run_agent(&mut self, node: NodeId) {
        let (now_ps, real_time) = (self.now_ps, self.real_time);
        let NodeKind::Switch(switch) = &mut self.nodes[node.0 as usize].kind else {
            return;
        };
        if !switch.has_deadlines {
            return;
        }
        let idle_from_ps = switch.idle_from_ps;
        let Some(engine) = switch.engine_mut() else {
            return;
        };
        engine.set_now_ps(now_ps);
        let runtime = engine.runtime_mut();
        let (most, pause_ps) = match real_time {
            true => (TIMERS_AT_ONCE, TIMERS_PAUSE_PS),
            false => (usize::MAX, 0),
        };
        runtime.run_idle_timers(most);
        let timers_ps = runtime.next_idle_ps();
        let timers_ps = timers_ps.map(|at_ps| at_ps.max(now_ps.saturating_add(pause_ps)));
        let some_idle = runtime.has_unannounced_idle();
        let idle = some_idle && now_ps >= idle_from_ps;
        if idle {
            runtime.announce_idle();
        }
        let due_ps = runtime.digests().unannounced_due_ps();
        let digests = due_ps.is_some_and(|due_ps| due_ps <= now_ps);
        if digests {
            runtime.digests_mut().announce();
        }
        if idle && real_time {
            switch.idle_from_ps = now_ps.saturating_add(IDLE_PAUSE_PS);
        }
        // A list that is due and was announced stays so until it is taken; then the agent is woken.
        let later = [
            timers_ps,
            due_ps.filter(|_| !digests),
            (some_idle && !idle).then_some(idle_from_ps),
        ];
        let next_ps = later.into_iter().flatten().min();
        if let Some(next_ps) = next_ps
            && switch.wake(next_ps)
        {
            self.events.push(next_ps, Event::Agent { node });
        }
        if digests {
            self.notify(node, NotificationEvent::Digest);
        }
        if idle {
            self.notify(node, NotificationEvent::IdleTimeout);
        }
    }
}
