//! What happens in a network: one event at a time, and what it causes. It does not know which clock drives it.

use crate::event::Event;
use crate::flow::claimed_flow;
use crate::host::Received;
use crate::link::Attachment;
use crate::network::Network;
use crate::node::NodeKind;
use crate::notification::{Notification, NotificationEvent};
use crate::switch::SwitchNode;
use crate::tcp_flow::{EndpointId, Side};
use crate::{FlowId, NodeId, TcpFlowId};
use engine::payload::Shared;
use engine::{Output, Packet};

impl Network {
    /// Makes the next event happen if it is due at `limit_ps` or before; whether one was.
    pub(crate) fn step(&mut self, limit_ps: u64) -> bool {
        let Some((time_ps, event)) = self.events.pop_until(limit_ps) else {
            return false;
        };
        let Some(event) = self.still_due(time_ps, event) else {
            return true;
        };
        self.begin_event(time_ps);
        self.dispatch(event);
        true
    }

    /// It is the time of the next event.
    #[inline]
    pub(crate) fn begin_event(&mut self, time_ps: u64) {
        debug_assert!(time_ps >= self.now_ps, "time runs forward");
        self.now_ps = time_ps;
        self.steps += 1;
    }

    /// Makes an event happen now.
    pub(crate) fn dispatch(&mut self, event: Event) {
        match event {
            Event::DirectionState { directions, up } => {
                for direction in directions {
                    self.directions[direction as usize].enabled = up;
                    self.refresh_direction(direction);
                }
            }
            Event::NodeState { node, up } => self.set_node_up(node, up),
            Event::RandomFailure { process } => self.random_failure(process),
            Event::Detect { direction, epoch } => self.detect(direction, epoch),
            Event::Arrive {
                direction,
                generation,
                packet,
            } => {
                if let Some(to) = self.arrive(direction, generation) {
                    self.receive(to.node, to.port, packet);
                }
            }
            Event::Depart {
                node,
                generation,
                port,
                packet,
            } => self.depart(node, generation, port, packet),
            Event::Enqueue {
                node,
                generation,
                epoch,
                copy,
            } => self.enqueue_event(node, generation, epoch, *copy),
            Event::PortReady { node, port } => self.port_ready(node, port),
            Event::RecirculationReady { node } => self.recirculation_ready(node),
            Event::OrderingDue { direction } => self.ordering_due(direction),
            Event::Send { flow } => self.send_next(flow),
            Event::TcpTimer { endpoint } => self.tcp_timer(endpoint),
            Event::TcpApplication { flow } => self.tcp_application(flow),
            Event::Generate { generator } => self.generate(generator),
            Event::Agent { node } => self.agent_event(node),
        }
    }

    /// Recomputes whether a direction works, after something that it depends on changed.
    pub(crate) fn refresh_direction(&mut self, direction: u32) {
        let link = &self.directions[direction as usize];
        let to = link.to.node;
        let up = link.enabled && self.node(link.from.node).up && self.node(to).up;
        let noticed = matches!(self.node(to).kind, NodeKind::Switch(_));
        let now_ps = self.now_ps;
        let link = &mut self.directions[direction as usize];
        if !link.set_up(now_ps, up) {
            return;
        }
        let (from, epoch) = (link.from, link.epoch);
        if self.node(from.node).has_queues() {
            // What waits for a port that is down goes the way of what comes.
            let (node, port) = (from.node, from.port);
            self.events.push(now_ps, Event::PortReady { node, port });
        }
        if noticed {
            let noticed_ps = self.detection_ps(direction);
            self.events
                .push(noticed_ps, Event::Detect { direction, epoch });
        }
    }

    fn set_node_up(&mut self, node: NodeId, up: bool) {
        let state = &mut self.nodes[node.0 as usize];
        if state.up == up {
            return;
        }
        state.up = up;
        state.generation += u32::from(!up);
        if up {
            self.wake_agent(node);
        } else {
            self.lose_queues(node);
            self.lose_held(node);
        }
        for away in self.node(node).ports.clone().into_iter().flatten() {
            self.refresh_direction(away);
            self.refresh_direction(away ^ 1);
            // What changed on the link while the node was down, it has yet to notice.
            let (direction, link) = (away ^ 1, &self.directions[(away ^ 1) as usize]);
            if up && link.reported_up != link.up {
                let epoch = link.epoch;
                let noticed_ps = self.detection_ps(direction);
                self.events
                    .push(noticed_ps, Event::Detect { direction, epoch });
            }
        }
    }

    /// The receiving end notices the state of a direction. A node that is down notices nothing.
    fn detect(&mut self, direction: u32, epoch: u32) {
        let link = &mut self.directions[direction as usize];
        if link.epoch != epoch
            || link.reported_up == link.up
            || !self.nodes[link.to.node.0 as usize].up
        {
            return;
        }
        link.reported_up = link.up;
        let (to, up) = (link.to, link.up);
        self.port_changed(to.node, to.port, up);
    }

    pub(crate) fn notify(&mut self, node: NodeId, event: NotificationEvent) {
        self.notifications.push(Notification {
            time_ps: self.now_ps,
            node: self.node(node).name.clone(),
            event,
        });
    }

    /// A packet comes to the end of a direction, now; where that is, unless the direction failed since it was sent.
    #[inline]
    pub(crate) fn arrive(&mut self, direction: u32, generation: u32) -> Option<Attachment> {
        let link = &mut self.directions[direction as usize];
        (link.generation == generation).then(|| {
            link.arrived();
            link.to
        })
    }

    /// A packet arrived at a port of a node.
    pub(crate) fn receive(&mut self, node: NodeId, port: u32, packet: Packet) {
        let time_ns = self.capture_time_ns();
        let state = &mut self.nodes[node.0 as usize];
        if !state.takes_packet() {
            return;
        }
        state.capture(time_ns, port, &packet);
        match &state.kind {
            NodeKind::Switch(switch) if switch.traffic.is_some() => {
                self.receive_queued(node, port, packet);
            }
            NodeKind::Switch(_) => {
                self.receive_at_switch(node, port, packet);
            }
            NodeKind::Host(_) => {
                self.receive_at_host(node, &packet);
                self.pool.take_back(packet);
            }
            NodeKind::Interface(index) => self.outbound.push((*index, packet)),
        }
    }

    fn receive_at_switch(&mut self, node: NodeId, port: u32, packet: Packet) {
        self.run_switch(node, |switch, now_ps, outputs| {
            switch.receive(now_ps, port, packet, outputs);
        });
    }

    /// Packets arrived at ports of a switch, one after the other but at the same time. `packets` is empty afterwards.
    pub(crate) fn receive_burst_at_switch(
        &mut self,
        node: NodeId,
        packets: &mut Vec<(u32, Packet)>,
    ) {
        if self.node(node).has_queues() {
            for (port, packet) in packets.drain(..) {
                self.receive_queued(node, port, packet);
            }
            return;
        }
        self.run_switch(node, |switch, now_ps, outputs| {
            switch.receive_burst(now_ps, packets, outputs);
        });
    }

    /// Has a switch work on packets; what comes out leaves when its latency is over.
    fn run_switch(
        &mut self,
        node: NodeId,
        run: impl FnOnce(&mut SwitchNode, u64, &mut Vec<Output>),
    ) {
        let state = &mut self.nodes[node.0 as usize];
        let generation = state.generation;
        let NodeKind::Switch(switch) = &mut state.kind else {
            return;
        };
        let mut outputs = std::mem::take(&mut self.outputs);
        run(switch, self.now_ps, &mut outputs);
        let latency_ps = switch.latency_ps;
        if switch.has_deadlines {
            self.run_agent(node);
        }
        for output in outputs.drain(..) {
            self.come_out(node, generation, latency_ps, output);
        }
        self.outputs = outputs;
    }

    /// A packet comes out of a switch's pipeline, now, and leaves when its latency is over.
    #[inline(always)]
    pub(crate) fn come_out(
        &mut self,
        node: NodeId,
        generation: u32,
        latency_ps: u64,
        output: Output,
    ) {
        let Output { port, packet, .. } = output;
        if latency_ps == 0 {
            return self.depart(node, generation, port, packet);
        }
        let event = Event::Depart {
            node,
            generation,
            port,
            packet,
        };
        self.events
            .push(self.now_ps.saturating_add(latency_ps), event);
    }

    /// A packet leaves a switch.
    #[inline(always)]
    pub(crate) fn depart(&mut self, node: NodeId, generation: u32, port: u32, packet: Packet) {
        let time_ns = self.capture_time_ns();
        let state = &mut self.nodes[node.0 as usize];
        if state.generation != generation {
            state.counters.down_drops += 1;
            return;
        }
        let to_controller =
            matches!(&state.kind, NodeKind::Switch(switch) if switch.cpu_port() == port);
        if !to_controller {
            return self.transmit(node, port, packet);
        }
        state.counters.packet_ins += 1;
        state.capture(time_ns, port, &packet);
        let data = packet.bytes().into_owned();
        self.notify(node, NotificationEvent::PacketIn { port, data });
    }

    /// Hands a packet to the link at a port.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, node: NodeId, port: u32, packet: Packet) {
        let Some(direction) = self.node(node).direction_from(port) else {
            return self.transmit_external(node, port, packet);
        };
        match self.directions[direction as usize].is_special(packet.len()) {
            true => self.transmit_specially(direction, packet),
            false => self.transmit_by(node, port, direction, packet),
        }
    }

    /// Hands a packet to the direction at a port, past what is special about that.
    #[inline(always)]
    pub(crate) fn transmit_by(
        &mut self,
        node: NodeId,
        port: u32,
        direction: u32,
        mut packet: Packet,
    ) {
        self.count_sent(node, port, &packet);
        let link = &mut self.directions[direction as usize];
        let Some(arrival_ps) = link.offer(self.now_ps, &mut packet) else {
            return self.pool.take_back(packet);
        };
        let (generation, to) = (link.generation, link.to.node);
        debug_assert!(self.horizon_ps(to) <= arrival_ps, "all has come that will");
        self.events
            .push_arrival(arrival_ps, direction, generation, packet);
    }

    /// A packet leaves a node at a port, whatever becomes of it there.
    #[inline]
    pub(crate) fn count_sent(&mut self, node: NodeId, port: u32, packet: &Packet) {
        let time_ns = self.capture_time_ns();
        let state = &mut self.nodes[node.0 as usize];
        state.counters.sent += 1;
        state.capture(time_ns, port, packet);
    }

    fn receive_at_host(&mut self, node: NodeId, packet: &Packet) {
        if packet.rest().is_empty() {
            return self.receive_frame(node, packet.stored());
        }
        let mut whole = std::mem::take(&mut self.whole);
        self.receive_frame(node, whole.of(packet));
        self.whole = whole;
    }

    fn receive_frame(&mut self, node: NodeId, frame: &[u8]) {
        let state = &mut self.nodes[node.0 as usize];
        let NodeKind::Host(host) = &state.kind else {
            return;
        };
        let now_ps = self.now_ps;
        let flows = &self.flows;
        let recognise = |payload| {
            flows
                .get(claimed_flow(payload)?.0 as usize)?
                .sum_of(payload)
        };
        match host.receive(frame, recognise) {
            Received::NotAddressed => state.counters.not_addressed += 1,
            Received::Corrupt(payload) => {
                state.counters.corrupted += 1;
                if let Some(flow) = payload.and_then(claimed_flow)
                    && let Some(flow) = self.flows.get_mut(flow.0 as usize)
                {
                    flow.corrupted += 1;
                }
            }
            Received::Answer(frame) => {
                state.counters.accepted += 1;
                self.transmit(node, 0, Packet::new(&frame));
            }
            Received::EchoReply {
                identifier,
                sequence,
                payload,
            } => {
                let flow = host.pings.get(usize::from(identifier)).copied();
                let intact =
                    self.with_flow(flow, |flow| flow.echo_reply(now_ps, sequence, payload));
                self.accepted_by_host(node, intact, frame);
            }
            Received::Datagram { payload, known } => {
                let flow = claimed_flow(payload);
                let intact =
                    self.with_flow(flow, |flow| flow.datagram(now_ps, node, payload, known));
                self.accepted_by_host(node, intact, frame);
            }
            Received::Segment { endpoint, segment } => match endpoint {
                Some(endpoint) => {
                    state.counters.accepted += 1;
                    self.tcp_receive(endpoint, &segment);
                }
                None => self.accepted_by_host(node, None, frame),
            },
            Received::Other => self.accepted_by_host(node, None, frame),
        }
    }

    fn with_flow(
        &mut self,
        flow: Option<FlowId>,
        take: impl FnOnce(&mut crate::flow::Flow) -> bool,
    ) -> Option<bool> {
        self.flows.get_mut(flow?.0 as usize).map(take)
    }

    /// A host took a packet for a flow (intact or not), or for nobody it knows.
    fn accepted_by_host(&mut self, node: NodeId, intact: Option<bool>, frame: &[u8]) {
        let counters = &mut self.nodes[node.0 as usize].counters;
        if intact == Some(false) {
            counters.corrupted += 1;
        } else {
            counters.accepted += 1;
        }
        if intact.is_none() {
            let data = frame.to_vec();
            self.notify(node, NotificationEvent::HostFrame { data });
        }
    }

    /// A flow's next packet is due.
    fn send_next(&mut self, id: FlowId) {
        if let Some(due_ps) = self.send_and_advance(id) {
            self.events.push(due_ps, Event::Send { flow: id });
        }
    }

    /// Sends a flow's packet that is due now; when the next one is. A host that is down lets the time pass without sending.
    pub(crate) fn send_and_advance(&mut self, id: FlowId) -> Option<u64> {
        let flow = &mut self.flows[id.0 as usize];
        let source = flow.source;
        if self.nodes[source.0 as usize].up {
            let (stored, rest) = flow.next_frame(self.now_ps);
            let packet = self.pool.packet(stored, rest);
            self.transmit(source, 0, packet);
        }
        let flow = &mut self.flows[id.0 as usize];
        flow.advance();
        flow.due_ps()
    }

    /// A segment reached an end of a connection.
    fn tcp_receive(&mut self, endpoint: EndpointId, segment: &tcp::Segment) {
        let now_ps = self.now_ps;
        let flow = &mut self.tcp_flows[endpoint.flow()];
        flow.receive(now_ps, endpoint.side(), segment);
        self.tcp_send(endpoint);
    }

    fn tcp_timer(&mut self, endpoint: EndpointId) {
        let now_ps = self.now_ps;
        let flow = &mut self.tcp_flows[endpoint.flow()];
        let end = flow.endpoint_mut(endpoint.side());
        // An event that another one, earlier, took the place of says nothing.
        if end.wake_ps == now_ps {
            end.wake_ps = u64::MAX;
            if end
                .connection
                .due_ps()
                .is_some_and(|due_ps| due_ps <= now_ps)
            {
                flow.on_timer(now_ps, endpoint.side());
            }
            self.tcp_send(endpoint);
        }
    }

    fn tcp_application(&mut self, id: TcpFlowId) {
        let flow = &mut self.tcp_flows[id.0 as usize];
        if let Some(turn_ps) = flow.application_turn(self.now_ps) {
            self.events
                .push(turn_ps, Event::TcpApplication { flow: id });
        }
        self.tcp_send(EndpointId::new(id, Side::Client));
    }

    /// Sends what an end may send now, and sees to it that it is woken when it wants to be. What the end of a host that is down
    /// sends is lost.
    fn tcp_send(&mut self, endpoint: EndpointId) {
        let now_ps = self.now_ps;
        let mut headers = std::mem::take(&mut self.headers);
        loop {
            let flow = &mut self.tcp_flows[endpoint.flow()];
            let end = flow.endpoint_mut(endpoint.side());
            let node = end.address.node;
            let Some(frame_bytes) = end.next_frame(now_ps, &mut headers) else {
                break;
            };
            if self.nodes[node.0 as usize].up {
                let zeros = Shared::zeros(frame_bytes.saturating_sub(headers.len()));
                let packet = self.pool.packet(&headers, zeros);
                self.transmit(node, 0, packet);
            } else {
                self.nodes[node.0 as usize].counters.down_drops += 1;
            }
        }
        self.headers = headers;
        let flow = &mut self.tcp_flows[endpoint.flow()];
        if endpoint.side() == Side::Client
            && let Some(burst_ps) = flow.next_burst_ps(now_ps)
        {
            let flow = endpoint.id();
            self.events.push(burst_ps, Event::TcpApplication { flow });
        }
        let end = self.tcp_flows[endpoint.flow()].endpoint_mut(endpoint.side());
        if let Some(due_ps) = end.connection.due_ps() {
            let due_ps = due_ps.max(now_ps);
            if due_ps < end.wake_ps {
                end.wake_ps = due_ps;
                self.events.push(due_ps, Event::TcpTimer { endpoint });
            }
        }
    }

    pub(crate) fn capture_time_ns(&self) -> u64 {
        self.capture_epoch_ns + self.now_ps / 1000
    }
}
