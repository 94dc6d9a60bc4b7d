//! Control of a network's switches: reading and changing them, packet-outs, where packets wait, and packet generators.

use super::Network;
use crate::error::{NetError, out_of_range};
use crate::generator::{Generator, PacketGenerator};
use crate::medium::Medium;
use crate::node::NodeState;
use crate::random::Stream;
use crate::scheduler::Event;
use crate::switch::SwitchNode;
use crate::switch::processor::{Processor, ProcessorConfig};
use crate::traffic_manager::recirculation::RecirculationStatistics;
use crate::traffic_manager::{QueueStatistics, Queueing, TrafficManager, TrafficManagerConfig};
use crate::{GeneratorId, NodeId};
use engine::packet::MAX_BYTES;
use engine::{Packet, Switch, Trace};

impl Network {
    /// Returns the switch with this name, and its node number. Fails if there is no such node, or it is no switch.
    pub(super) fn switch_node(&self, name: &str) -> Result<(NodeId, &SwitchNode), NetError> {
        let id = self.node_id(name)?;
        match self.node(id).get() {
            Some(switch) => Ok((id, switch)),
            None => Err(not_a_switch(name)),
        }
    }

    /// Calls `run` with a node's pipeline, its state and the rest of the network, and returns the result, if the node
    /// is a switch; otherwise returns `None`, and `run` is not called.
    pub(super) fn with_switch<R>(
        &mut self,
        node: NodeId,
        run: impl FnOnce(&mut SwitchNode, &mut NodeState, &mut Medium) -> R,
    ) -> Option<R> {
        let (switch, own) = self.nodes[node.0 as usize].get_mut()?;
        Some(run(switch, own, &mut self.medium))
    }

    /// Returns the engine that runs a switch's program, for reading. Fails if there is no such switch, or it runs no P4
    /// program.
    pub fn switch(&self, name: &str) -> Result<&Switch, NetError> {
        let (_, switch) = self.switch_node(name)?;
        switch.pipeline.engine().ok_or_else(|| not_a_switch(name))
    }

    /// Returns the engine that runs a switch's program, for control; changes take effect at the present time, between
    /// packets. Fails if there is no such switch, or it runs no P4 program.
    pub fn switch_mut(&mut self, name: &str) -> Result<&mut Switch, NetError> {
        let (id, _) = self.switch_node(name)?;
        self.with_switch(id, |switch, own, medium| switch.wake_agent(own, medium));
        let now_ps = self.now_ps();
        let switch = self.node_mut(id).get_mut::<SwitchNode>();
        let engine = switch.and_then(|(switch, _)| switch.pipeline.engine_mut());
        let engine = engine.ok_or_else(|| not_a_switch(name))?;
        engine.set_now_ps(now_ps);
        Ok(engine)
    }

    /// Traces the next packet that arrives at a switch (only at `port` if that is given), until [`Network::take_trace`]
    /// takes the trace. Fails if there is no such switch, it runs no P4 program, or its packets wait in a traffic
    /// manager, between two halves of the program.
    pub fn trace_next(&mut self, name: &str, port: Option<u32>) -> Result<(), NetError> {
        self.switch(name)?;
        let (id, switch) = self.switch_node(name)?;
        if switch.traffic.is_some() {
            return Err(NetError::Refused(format!(
                "the packets of \"{name}\" wait in a traffic manager in the middle of its program; they have no trace"
            )));
        }
        self.with_switch(id, |switch, _, _| switch.set_tracing(true, port));
        Ok(())
    }

    /// Returns the result of `show` for the trace that [`Network::trace_next`] requested, and ends the request; `None`
    /// if no packet has been traced yet. If `give_up` is true, the request ends in any case. Fails if there is no such
    /// switch.
    pub fn take_trace<R>(
        &mut self,
        name: &str,
        give_up: bool,
        show: impl FnOnce(&Trace) -> R,
    ) -> Result<Option<R>, NetError> {
        let (id, switch) = self.switch_node(name)?;
        let found = switch.pipeline.traced().map(show);
        if found.is_some() || give_up {
            self.with_switch(id, |switch, _, _| switch.set_tracing(false, None));
        }
        Ok(found)
    }

    /// Passes a packet from the controller, which begins with a packet-out header, to a switch's CPU port at the
    /// present time. Fails if there is no such switch, or the packet is too long.
    pub fn packet_out(&mut self, node: &str, packet: &[u8]) -> Result<(), NetError> {
        let (id, switch) = self.switch_node(node)?;
        let port = switch.cpu_port();
        if packet.len() > MAX_BYTES {
            return Err(out_of_range("packet", format!("at most {MAX_BYTES} bytes")));
        }
        self.receive(id, port, Packet::new(packet));
        Ok(())
    }

    /// Sets how many copies of copied packets each switch may make per second in real time
    /// ([`Switch::set_copies_per_s`]).
    pub fn set_copies_per_s(&mut self, copies_per_s: u64) {
        self.copies_per_s = copies_per_s;
        self.limit_all_copies();
    }

    /// Sets whether the wall clock drives the network (`real_time`), in which case the copies that a switch makes of
    /// copies are limited per second.
    pub(crate) fn set_real_time(&mut self, real_time: bool) {
        self.medium.real_time = real_time;
        self.limit_all_copies();
    }

    fn limit_all_copies(&mut self) {
        for node in 0..self.nodes.len() as u32 {
            self.limit_copies(NodeId(node));
        }
    }

    pub(super) fn limit_copies(&mut self, node: NodeId) {
        let copies_per_s = self.medium.real_time.then_some(self.copies_per_s);
        self.with_switch(node, |switch, _, _| {
            if let Some(engine) = switch.pipeline.engine_mut() {
                engine.set_copies_per_s(copies_per_s);
            }
        });
    }
}

/// The queues of switches.
impl Network {
    /// Sets where packets of a switch wait: in a traffic manager with this configuration, or at the links. The default
    /// is [`Queueing::Auto`], with a traffic manager of eight queues like those of the links. Packets that wait in a
    /// former traffic manager are lost. Fails if the configuration is out of range, or there is no such P4 switch.
    pub fn set_queueing(
        &mut self,
        switch: &str,
        queueing: Queueing,
        config: TrafficManagerConfig,
    ) -> Result<(), NetError> {
        config.check()?;
        self.switch(switch)?;
        let node = self.node_id(switch)?;
        self.with_switch(node, |switch, own, medium| {
            switch.end_traffic_manager(own, medium);
            switch.queueing = queueing;
            switch.traffic_config = config;
            switch.queueing_of = None;
            switch.refresh_queueing(own, medium);
        });
        Ok(())
    }

    /// Adds a processor to a switch, which all its packets must pass from then on. Fails if a parameter is out of
    /// range, or there is no such switch or it already has a processor; a processor cannot be removed.
    pub fn add_processor(&mut self, switch: &str, config: ProcessorConfig) -> Result<(), NetError> {
        config.check()?;
        if self.switch_node(switch)?.1.processor.is_some() {
            return Err(out_of_range("switch", "one without a processor"));
        }
        let node = self.node_id(switch)?;
        let draws = Stream::named(self.medium.seed, &format!("processor {switch}"));
        self.visits.network_changed();
        self.with_switch(node, |switch, _, _| {
            switch.processor = Some(Box::new(Processor::new(config, draws)));
        });
        Ok(())
    }

    /// Returns true if a switch has a traffic manager at present. Fails if there is no such P4 switch.
    pub fn has_traffic_manager(&self, switch: &str) -> Result<bool, NetError> {
        Ok(self.traffic_manager(switch)?.is_some())
    }

    /// Returns the statistics of the queues in a switch's traffic manager, with their port and queue numbers; an empty
    /// list without a traffic manager. Leaves out ports that have had no packet so far. Fails if there is no such P4
    /// switch.
    pub fn queue_statistics(
        &self,
        switch: &str,
    ) -> Result<Vec<(u32, u8, QueueStatistics)>, NetError> {
        let traffic = self.traffic_manager(switch)?;
        Ok(traffic.map_or_else(Vec::new, |traffic| traffic.statistics(self.now_ps())))
    }

    /// Returns the statistics of a switch's recirculation ports, ordered by number; an empty list if it has none. Fails
    /// if there is no such P4 switch.
    pub fn recirculation_statistics(
        &self,
        switch: &str,
    ) -> Result<Vec<RecirculationStatistics>, NetError> {
        let traffic = self.traffic_manager(switch)?;
        Ok(traffic.map_or_else(Vec::new, |traffic| {
            traffic.recirculation_statistics(self.now_ps())
        }))
    }

    fn traffic_manager(&self, switch: &str) -> Result<Option<&TrafficManager>, NetError> {
        self.switch(switch)?;
        Ok(self.switch_node(switch)?.1.traffic.as_deref())
    }
}

/// Packet generators.
impl Network {
    /// Adds a packet generator to a switch, and returns its number. Fails if there is no such switch, a parameter is
    /// out of range, or the start is in the past.
    pub fn add_packet_generator(
        &mut self,
        generator: &PacketGenerator,
    ) -> Result<GeneratorId, NetError> {
        let (node, _) = self.switch_node(&generator.switch)?;
        generator.check()?;
        let id = GeneratorId(self.generators.len() as u32);
        let added = Generator::new(node, generator);
        if let Some(start_ps) = added.start_ps() {
            self.check_not_past(start_ps)?;
            let event = Event::Generate { generator: id };
            self.medium.scheduler.push(start_ps, event);
        }
        self.generators.push(added);
        Ok(id)
    }

    /// Returns the number of packets that a packet generator has made. Fails if there is no such generator.
    pub fn packets_generated(&self, id: GeneratorId) -> Result<u64, NetError> {
        let generator = self.generators.get(id.0 as usize);
        generator
            .map(|generator| generator.generated)
            .ok_or_else(|| out_of_range("generator", "one that was added"))
    }

    /// Makes a packet generator's packet for the present period enter its switch, and schedules the next period. While
    /// the switch is down, periods pass without a packet.
    pub(super) fn generate(&mut self, id: GeneratorId) {
        let (packet, next_ps) = self.generators[id.0 as usize].begin_period();
        self.enter(id.0 as usize, packet);
        if let Some(next_ps) = next_ps {
            let event = Event::Generate { generator: id };
            self.medium.scheduler.push(next_ps, event);
        }
    }

    /// Makes the packets enter the switch `node` that its packet generators make because a port has gone down or come
    /// up (`up`).
    pub(super) fn generate_for_port(&mut self, node: NodeId, port: u32, up: bool) {
        for i in 0..self.generators.len() {
            if let Some(packet) = self.generators[i].packet_for_port(node, port, up) {
                self.enter(i, packet);
            }
        }
    }

    fn enter(&mut self, generator: usize, packet: Packet) {
        let generator = &mut self.generators[generator];
        let (node, port) = (generator.node, generator.port);
        if self.nodes[node.0 as usize].state.up {
            generator.generated += 1;
            self.receive(node, port, packet);
        }
    }
}

fn not_a_switch(node: &str) -> NetError {
    NetError::WrongKind {
        node: node.to_owned(),
        expected: "a switch",
    }
}
