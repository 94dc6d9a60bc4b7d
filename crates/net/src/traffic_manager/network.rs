//! The way of packets through a switch with a traffic manager: what happens when. What waits, and the model as a whole, is in
//! `traffic_manager`.
//!
//! Every port is served to the end whenever something came or its transmitter became free, so while a transmitter is free nothing
//! waits for it. What egress makes besides (clones, recirculated packets) comes after what was there.

use crate::NodeId;
use crate::error::NetError;
use crate::event::Event;
use crate::network::Network;
use crate::node::NodeKind;
use crate::queue::QueueConfig;
use crate::switch::SwitchNode;
use crate::traffic_manager::{
    Offered, PortPlan, QueueStatistics, Queueing, Recirculating, Taken, TrafficManager,
    TrafficManagerConfig, Transmitter, Work,
};
use engine::{DropReason, Emission, Enqueued, Packet, Switch};

impl Network {
    /// Says where packets of a switch wait; at first [`Queueing::Auto`], with a traffic manager of eight queues like the links'.
    /// What waits in a former traffic manager is lost.
    pub fn set_queueing(
        &mut self,
        switch: &str,
        queueing: Queueing,
        config: TrafficManagerConfig,
    ) -> Result<(), NetError> {
        config.check()?;
        self.switch(switch)?;
        let node = self.node_id(switch)?;
        self.end_traffic_manager(node);
        if let Some(switch) = self.switch_node(node) {
            switch.queueing = queueing;
            switch.traffic_config = config;
            switch.queueing_of = None;
        }
        self.refresh_queueing(node);
        Ok(())
    }

    /// Whether a switch has a traffic manager now.
    pub fn has_traffic_manager(&self, switch: &str) -> Result<bool, NetError> {
        Ok(self.traffic_manager(switch)?.is_some())
    }

    /// Statistics of the queues of a switch, by port and queue; none of ports that never had a packet.
    pub fn queue_statistics(
        &self,
        switch: &str,
    ) -> Result<Vec<(u32, u8, QueueStatistics)>, NetError> {
        let traffic = self.traffic_manager(switch)?;
        Ok(traffic.map_or_else(Vec::new, |traffic| traffic.statistics(self.now_ps)))
    }

    /// Statistics of the queue before the recirculation port of a switch.
    pub fn recirculation_statistics(&self, switch: &str) -> Result<QueueStatistics, NetError> {
        let traffic = self.traffic_manager(switch)?;
        Ok(traffic.map_or_else(QueueStatistics::default, |traffic| {
            traffic.recirculation_statistics(self.now_ps)
        }))
    }

    fn traffic_manager(&self, switch: &str) -> Result<Option<&TrafficManager>, NetError> {
        self.switch(switch)?;
        match &self.node(self.node_id(switch)?).kind {
            NodeKind::Switch(switch) => Ok(switch.traffic.as_deref()),
            _ => Ok(None),
        }
    }

    fn switch_node(&mut self, node: NodeId) -> Option<&mut SwitchNode> {
        match &mut self.nodes[node.0 as usize].kind {
            NodeKind::Switch(switch) => Some(switch),
            _ => None,
        }
    }

    fn engine(&mut self, node: NodeId) -> Option<&mut Switch> {
        self.switch_node(node)?.engine_mut()
    }

    /// Gives a switch the traffic manager that its program asks for, or none. What a former program's packets were is lost.
    pub(crate) fn refresh_queueing(&mut self, node: NodeId) {
        let now_ps = self.now_ps;
        let has_links = self.node(node).ports.iter().any(Option::is_some);
        let Some(switch) = self.switch_node(node) else {
            return;
        };
        if switch.queueing_is_decided() {
            return;
        }
        let Some(program) = switch.engine_mut().map(|engine| engine.program().clone()) else {
            return;
        };
        switch.queueing_of = Some(program.clone());
        switch.time_observed = engine::time_observed(&program);
        let wanted = match switch.queueing {
            // Ports without a link have no queues.
            Queueing::Auto => {
                has_links
                    && (switch.traffic_config.is_asked_for()
                        || engine::cares_about_queues(&program))
            }
            Queueing::Link => false,
            Queueing::TrafficManager => true,
        };
        let config = switch.traffic_config.clone();
        match (&mut switch.traffic, wanted) {
            (None, false) => {}
            (None, true) => {
                let traffic = TrafficManager::new(config, program, now_ps);
                switch.traffic = Some(Box::new(traffic));
            }
            (Some(traffic), true) => {
                traffic.program = program;
                let lost = traffic.lose_all(now_ps);
                self.nodes[node.0 as usize].counters.down_drops += lost;
            }
            (Some(_), false) => self.end_traffic_manager(node),
        }
    }

    /// Decides again, as a node may have its first link (which may be its second as well).
    pub(crate) fn linked(&mut self, node: NodeId) {
        let few = self.node(node).ports.iter().flatten().nth(2).is_none();
        if let Some(switch) = self.switch_node(node)
            && few
            && switch.traffic.is_none()
        {
            switch.queueing_of = None;
            self.refresh_queueing(node);
        }
    }

    /// Takes the traffic manager from a switch; the links' queues are used again.
    fn end_traffic_manager(&mut self, node: NodeId) {
        let now_ps = self.now_ps;
        let traffic = self.switch_node(node).and_then(|s| s.traffic.take());
        let Some(mut traffic) = traffic else { return };
        let lost = traffic.lose_all(now_ps);
        let state = &mut self.nodes[node.0 as usize];
        state.counters.down_drops += lost;
        for direction in state.ports.iter().flatten() {
            self.directions[*direction as usize].use_queue(true);
        }
    }

    /// A switch that failed loses what waits.
    pub(crate) fn lose_queues(&mut self, node: NodeId) {
        let now_ps = self.now_ps;
        let traffic = self.switch_node(node).and_then(|s| s.traffic.as_mut());
        if let Some(lost) = traffic.map(|traffic| traffic.lose_all(now_ps)) {
            self.nodes[node.0 as usize].counters.down_drops += lost;
        }
    }

    /// Does something with a switch's traffic manager and the work that it makes.
    fn with_traffic(
        &mut self,
        node: NodeId,
        run: impl FnOnce(&mut Network, &mut TrafficManager, &mut Work),
    ) {
        self.refresh_queueing(node);
        let traffic = self.switch_node(node).and_then(|s| s.traffic.take());
        let Some(mut traffic) = traffic else { return };
        let mut work = std::mem::take(&mut traffic.work);
        run(self, &mut traffic, &mut work);
        self.work_on(node, &mut traffic, &mut work);
        traffic.work = work;
        if let Some(switch) = self.switch_node(node) {
            switch.traffic = Some(traffic);
            if switch.has_deadlines {
                self.run_agent(node);
            }
        }
    }

    /// A packet arrived at a switch with a traffic manager.
    pub(crate) fn receive_queued(&mut self, node: NodeId, port: u32, packet: Packet) {
        self.with_traffic(node, |network, traffic, work| {
            let now_ps = network.now_ps;
            let mut copies = std::mem::take(&mut traffic.copies);
            if let Some(engine) = network.engine(node) {
                engine.ingress(now_ps, port, packet, &mut copies);
            }
            network.behind_ingress(node, traffic, &mut copies, work);
            traffic.copies = copies;
        });
    }

    /// Copies that came out of ingress are at their queues when the latency is over.
    fn behind_ingress(
        &mut self,
        node: NodeId,
        traffic: &TrafficManager,
        copies: &mut Vec<Enqueued>,
        work: &mut Work,
    ) {
        let latency_ps = self.switch_node(node).map_or(0, |s| s.latency_ps);
        if latency_ps == 0 {
            return work.copies.extend(copies.drain(..));
        }
        let generation = self.node(node).generation;
        let at_ps = self.now_ps.saturating_add(latency_ps);
        for copy in copies.drain(..) {
            let event = Event::Enqueue {
                node,
                generation,
                epoch: traffic.epoch,
                copy: Box::new(copy),
            };
            self.events.push(at_ps, event);
        }
    }

    /// A copy is at its queue, unless the switch failed or was given another program since.
    pub(crate) fn enqueue_event(
        &mut self,
        node: NodeId,
        generation: u32,
        epoch: u32,
        copy: Enqueued,
    ) {
        self.refresh_queueing(node);
        let same_generation = self.node(node).generation == generation;
        let traffic = self.switch_node(node).and_then(|s| s.traffic.as_ref());
        if !same_generation || traffic.is_none_or(|traffic| traffic.epoch != epoch) {
            self.nodes[node.0 as usize].counters.down_drops += 1;
            return;
        }
        self.with_traffic(node, |_, _, work| work.copies.push_back(copy));
    }

    /// The transmitter of a port may be free.
    pub(crate) fn port_ready(&mut self, node: NodeId, port: u32) {
        self.with_traffic(node, |network, traffic, work| {
            network.serve(node, traffic, port, work);
        });
    }

    /// A packet may have got through the recirculation port.
    pub(crate) fn recirculation_ready(&mut self, node: NodeId) {
        self.with_traffic(node, |network, traffic, work| {
            let Some((packet, next_ps)) = traffic.recirculated(network.now_ps) else {
                return;
            };
            work.again.push_back(packet);
            if let Some(next_ps) = next_ps {
                network
                    .events
                    .push(next_ps, Event::RecirculationReady { node });
            }
        });
    }

    fn work_on(&mut self, node: NodeId, traffic: &mut TrafficManager, work: &mut Work) {
        loop {
            while let Some(copy) = work.copies.pop_front() {
                let port = copy.port;
                self.enqueue(node, traffic, copy);
                self.serve(node, traffic, port, work);
            }
            let Some(packet) = work.again.pop_front() else {
                return;
            };
            let now_ps = self.now_ps;
            let mut copies = std::mem::take(&mut traffic.copies);
            if let Some(engine) = self.engine(node) {
                engine.recirculate(now_ps, packet, &mut copies);
            }
            self.behind_ingress(node, traffic, &mut copies, work);
            traffic.copies = copies;
        }
    }

    /// Puts a copy into its queue.
    fn enqueue(&mut self, node: NodeId, traffic: &mut TrafficManager, copy: Enqueued) {
        let transmitter = self.transmitter(node, copy.port);
        if !traffic.has_port(copy.port, transmitter.direction) {
            let plan = self.port_plan(node, copy.port, transmitter.direction);
            traffic.add_port(copy.port, &plan);
        }
        if let Offered::Dropped(copy) = traffic.offer(self.now_ps, transmitter, copy) {
            self.nodes[node.0 as usize].counters.queue_drops += 1;
            let packet = self.engine(node).map(|engine| engine.discard(copy));
            packet.into_iter().for_each(|p| self.pool.take_back(p));
        }
    }

    fn transmitter(&self, node: NodeId, port: u32) -> Transmitter {
        let direction = self.node(node).direction_from(port);
        let link = direction.map(|direction| &self.directions[direction as usize]);
        Transmitter {
            direction,
            busy_until_ps: link.map_or(0, |link| link.busy_until_ps()),
        }
    }

    /// What the queues of a port are made for; the link's own is not used from now on.
    fn port_plan(&mut self, node: NodeId, port: u32, direction: Option<u32>) -> PortPlan {
        let (mut queue, mut rate_bps) = (QueueConfig::packets(u64::MAX), 1);
        let mut name = format!("{}:{port}", self.node(node).name);
        if let Some(direction) = direction {
            name = self.direction_name(direction);
            let link = &mut self.directions[direction as usize];
            link.use_queue(false);
            (queue, rate_bps) = (link.queue_config(), link.rate_bps());
        }
        PortPlan {
            direction,
            queue,
            rate_bps,
            seed: self.seed(),
            name,
        }
    }

    /// Sends what waits for a port as long as its transmitter is free.
    fn serve(&mut self, node: NodeId, traffic: &mut TrafficManager, port: u32, work: &mut Work) {
        let now_ps = self.now_ps;
        traffic.woken(now_ps, port);
        loop {
            let free_ps = self.transmitter(node, port).busy_until_ps;
            if free_ps > now_ps {
                if traffic.wake(port, free_ps) {
                    self.events.push(free_ps, Event::PortReady { node, port });
                }
                return;
            }
            let Some(taken) = traffic.take(now_ps, port) else {
                return;
            };
            self.send_taken(node, traffic, port, taken, work);
        }
    }

    /// Runs a packet through egress and sends it.
    fn send_taken(
        &mut self,
        node: NodeId,
        traffic: &mut TrafficManager,
        port: u32,
        taken: Taken,
        work: &mut Work,
    ) {
        let (now_ps, generation) = (self.now_ps, self.node(node).generation);
        let mut emissions = std::mem::take(&mut traffic.emissions);
        if let Some(engine) = self.engine(node) {
            engine.egress(now_ps, taken.waiting.copy, taken.deq_qdepth, &mut emissions);
        }
        for emission in emissions.drain(..) {
            match emission {
                Emission::Output(mut output) => {
                    if taken.waiting.mark {
                        wire::ecn::mark(output.packet.stored_mut());
                    }
                    self.depart(node, generation, output.port, output.packet);
                    let sent_ps = self.transmitter(node, port).busy_until_ps;
                    traffic.sent(port, taken.queue, sent_ps);
                }
                other => self.emitted(node, traffic, other, work),
            }
        }
        traffic.emissions = emissions;
    }

    /// A clone or a recirculated packet came out of egress.
    fn emitted(
        &mut self,
        node: NodeId,
        traffic: &mut TrafficManager,
        emission: Emission,
        work: &mut Work,
    ) {
        let now_ps = self.now_ps;
        if !traffic.may_work(now_ps) {
            if let Some(engine) = self.engine(node) {
                engine.count_dropped(DropReason::RecirculationLimit);
            }
            return;
        }
        match emission {
            Emission::Output(_) => {}
            Emission::Enqueued(copy) => work.copies.push_back(copy),
            Emission::Recirculated(packet) => match traffic.recirculate(now_ps, packet) {
                Recirculating::Through(packet) => work.again.push_back(packet),
                Recirculating::Waits => {}
                Recirculating::ThereAt(there_ps) => {
                    let event = Event::RecirculationReady { node };
                    self.events.push(there_ps, event);
                }
                Recirculating::Dropped => {
                    self.nodes[node.0 as usize].counters.queue_drops += 1;
                }
            },
        }
    }
}
