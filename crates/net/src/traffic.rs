//! The traffic of modelled hosts: streams, pings and TCP connections, when they send and what becomes of what arrives. It does not know
//! how packets get from host to host.

use crate::flow::{Flow, claimed_flow, sequence};
use crate::host::{Host, Received, Timer, unresolved};
use crate::medium::Medium;
use crate::membership::Verdict;
use crate::node::NodeState;
use crate::notification::NotificationEvent;
use crate::observer::DropReason;
use crate::tcp_flow::{EndpointId, Side, TcpFlow};
use crate::whole::WholeFrame;
use crate::{FlowId, NetError, TcpFlowId};
use engine::payload::Shared;
use engine::{Packet, Time};

/// The flows and TCP connections of a network, by number.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) flows: Vec<Flow>,
    pub(crate) tcp_flows: Vec<TcpFlow>,
    /// True once a host has joined a multicast group; then no host is a member of a group without having joined it.
    pub(crate) has_memberships: bool,
    /// The headers of the segment being sent; kept for its capacity.
    headers: Vec<u8>,
    whole: WholeFrame,
}

impl Traffic {
    pub(crate) fn flow(&self, flow: FlowId) -> Result<&Flow, NetError> {
        self.flows
            .get(flow.0 as usize)
            .ok_or(NetError::UnknownFlow(flow.0))
    }

    pub(crate) fn tcp_flow(&self, flow: TcpFlowId) -> Result<&TcpFlow, NetError> {
        self.tcp_flows
            .get(flow.0 as usize)
            .ok_or(NetError::UnknownFlow(flow.0))
    }

    /// Returns true if a flow's packets need nothing but to be sent out of port 0 of their host.
    #[inline]
    pub(crate) fn is_plain(&self, flow: FlowId) -> bool {
        self.flows[flow.0 as usize].is_plain
    }

    /// Returns the time at which a flow's next packet is due; `None` if it has no further packet.
    #[inline]
    pub(crate) fn due_ps(&self, flow: FlowId) -> Option<Time> {
        self.flows[flow.0 as usize].due_ps()
    }

    /// Handles a packet that has reached a host: counts it for its flow, answers it, or passes it to the controller.
    pub(crate) fn receive(
        &mut self,
        host: &mut Host,
        own: &mut NodeState,
        medium: &mut Medium,
        port: u32,
        packet: &Packet,
    ) {
        if packet.rest().is_empty() {
            return self.receive_any(host, own, medium, port, packet.stored());
        }
        let mut whole = std::mem::take(&mut self.whole);
        self.receive_any(host, own, medium, port, whole.of(packet));
        self.whole = whole;
    }

    fn receive_any(
        &mut self,
        host: &mut Host,
        own: &mut NodeState,
        medium: &mut Medium,
        port: u32,
        frame: &[u8],
    ) {
        let Some(vlan_id) = host.settings.vlan else {
            return self.receive_frame(host, own, medium, port, frame);
        };
        match Host::untagged(frame, vlan_id) {
            Some(frame) => self.receive_frame(host, own, medium, port, &frame),
            None => not_addressed(own, medium, port),
        }
    }

    fn receive_frame(
        &mut self,
        host: &mut Host,
        own: &mut NodeState,
        medium: &mut Medium,
        port: u32,
        frame: &[u8],
    ) {
        let (now_ps, node) = (medium.now_ps(), own.id);
        let mut joined = None;
        if let Some(memberships) = &mut host.memberships {
            match memberships.judge(now_ps, frame) {
                Verdict::Other => {}
                Verdict::Member(group) => joined = Some(group),
                Verdict::Unwanted => {
                    own.counters.unwanted += 1;
                    return medium.tell_dropped(own, Some(port), DropReason::NotJoined, 1);
                }
                Verdict::Consumed => {
                    own.counters.accepted += 1;
                    return host.say_memberships(own, medium);
                }
            }
        }
        let flows = &self.flows;
        let recognise = |payload| {
            flows
                .get(claimed_flow(payload)?.0 as usize)?
                .sum_of(payload)
        };
        match host.receive(port, frame, recognise) {
            Received::NotAddressed => not_addressed(own, medium, port),
            Received::Corrupt(payload) => {
                corrupted(own, medium, port);
                if let Some(flow) = payload.and_then(claimed_flow)
                    && let Some(flow) = self.flows.get_mut(flow.0 as usize)
                {
                    flow.corrupted += 1;
                }
            }
            Received::Answer(way, frame) => {
                own.counters.accepted += 1;
                match way {
                    Some(way) => host.send(own, medium, way, Packet::new(&frame)),
                    None => unresolved(own, medium, port, 1),
                }
            }
            Received::Told(told) => {
                let is_own = told.is_own;
                match host.take_told(own, medium, port, told) {
                    true if is_own => own.counters.accepted += 1,
                    false if is_own => accepted(own, medium, port, None, frame),
                    _ => not_addressed(own, medium, port),
                }
            }
            Received::EchoReply {
                identifier,
                sequence,
                payload,
            } => {
                let flow = host.pings.get(usize::from(identifier)).copied();
                let intact =
                    self.with_flow(flow, |flow| flow.echo_reply(now_ps, sequence, payload));
                accepted(own, medium, port, intact, frame);
            }
            Received::Datagram { payload, known } => {
                let flow = claimed_flow(payload);
                let intact =
                    self.with_flow(flow, |flow| flow.datagram(now_ps, node, payload, known));
                if let (Some(group), Some(memberships)) = (joined, &mut host.memberships)
                    && intact != Some(false)
                {
                    let stream = intact.and(flow).zip(sequence(payload));
                    memberships.arrived(now_ps, group, stream);
                }
                accepted(own, medium, port, intact, frame);
            }
            Received::Segment {
                endpoint,
                segment,
                telemetry,
            } => match endpoint {
                Some(endpoint) => {
                    own.counters.accepted += 1;
                    let flow = &mut self.tcp_flows[endpoint.flow()];
                    flow.receive(now_ps, endpoint.side(), &segment, telemetry.as_deref());
                    self.tcp_send(host, own, medium, endpoint);
                }
                None => accepted(own, medium, port, None, frame),
            },
            Received::Other => accepted(own, medium, port, None, frame),
        }
    }

    fn with_flow(
        &mut self,
        flow: Option<FlowId>,
        take: impl FnOnce(&mut Flow) -> bool,
    ) -> Option<bool> {
        self.flows.get_mut(flow?.0 as usize).map(take)
    }

    /// Sends a flow's packet that is due now, unless the host is down, which skips the packet. Returns the time at
    /// which the next packet is due; `None` after the last. `host` may be `None` for a flow that is
    /// [plain](Self::is_plain).
    pub(crate) fn send_and_advance(
        &mut self,
        host: Option<&mut Host>,
        own: &mut NodeState,
        medium: &mut Medium,
        id: FlowId,
    ) -> Option<Time> {
        let flow = &mut self.flows[id.0 as usize];
        if own.up {
            let (stored, rest) = flow.next_frame(medium.now_ps());
            let packet = medium.pool.packet(stored, rest);
            match host {
                None => medium.transmit(own, 0, packet),
                Some(host) => host.send(own, medium, flow.way, packet),
            }
        }
        let flow = &mut self.flows[id.0 as usize];
        flow.advance();
        flow.due_ps()
    }

    /// Handles an event for the timers of one end of a TCP connection: handles those that have expired, and sends what
    /// may be sent then. The event may be outdated.
    pub(crate) fn tcp_timer(
        &mut self,
        host: &mut Host,
        own: &mut NodeState,
        medium: &mut Medium,
        endpoint: EndpointId,
    ) {
        let now_ps = medium.now_ps();
        let flow = &mut self.tcp_flows[endpoint.flow()];
        let end = flow.endpoint_mut(endpoint.side());
        // An event that another one, earlier, took the place of says nothing.
        if end.wake_ps == now_ps {
            end.wake_ps = Time::NEVER;
            if end.due_ps().is_some_and(|due_ps| due_ps <= now_ps) {
                flow.on_timer(now_ps, endpoint.side());
            }
            self.tcp_send(host, own, medium, endpoint);
        }
    }

    /// Makes the application at a TCP connection's client connect, write or stop, schedules its next action, and sends
    /// what the client may now send.
    pub(crate) fn tcp_application(
        &mut self,
        host: &mut Host,
        own: &mut NodeState,
        medium: &mut Medium,
        id: TcpFlowId,
    ) {
        let flow = &mut self.tcp_flows[id.0 as usize];
        if let Some(turn_ps) = flow.application_turn(medium.now_ps()) {
            let event = Timer::Application(id).event(own.id);
            medium.scheduler.push(turn_ps, event);
        }
        self.tcp_send(host, own, medium, EndpointId::new(id, Side::Client));
    }

    /// Sends all segments that one end of a TCP connection may send now, and schedules an event for its next timer.
    /// Counts packets of a host that is down as lost.
    fn tcp_send(
        &mut self,
        host: &mut Host,
        own: &mut NodeState,
        medium: &mut Medium,
        endpoint: EndpointId,
    ) {
        let now_ps = medium.now_ps();
        let flow = &mut self.tcp_flows[endpoint.flow()];
        let end = flow.endpoint_mut(endpoint.side());
        while let Some(frame_bytes) = end.next_frame(now_ps, &mut self.headers) {
            if own.up {
                let zeros = Shared::zeros(frame_bytes.saturating_sub(self.headers.len()));
                let packet = medium.pool.packet(&self.headers, zeros);
                host.send(own, medium, end.address.way, packet);
            } else {
                medium.lose(own, 1);
            }
        }
        if endpoint.side() == Side::Client
            && let Some(burst_ps) = flow.next_burst_ps(now_ps)
        {
            let event = Timer::Application(endpoint.id()).event(own.id);
            medium.scheduler.push(burst_ps, event);
        }
        let end = flow.endpoint_mut(endpoint.side());
        if let Some(due_ps) = end.due_ps() {
            let due_ps = due_ps.max(now_ps);
            if due_ps < end.wake_ps {
                end.wake_ps = due_ps;
                let event = Timer::Tcp(endpoint).event(own.id);
                medium.scheduler.push(due_ps, event);
            }
        }
    }
}

/// Counts a packet that has reached its host: as accepted if `intact` is `Some(true)`, as corrupted if it is
/// `Some(false)`. If `intact` is `None`, the packet belongs to no flow or connection of the host: it is accepted, and
/// passed to the controller.
fn accepted(
    own: &mut NodeState,
    medium: &mut Medium,
    port: u32,
    intact: Option<bool>,
    frame: &[u8],
) {
    if intact == Some(false) {
        return corrupted(own, medium, port);
    }
    own.counters.accepted += 1;
    if intact.is_none() {
        let data = frame.to_vec();
        medium.notify(own, NotificationEvent::HostFrame { data });
    }
}

fn corrupted(own: &mut NodeState, medium: &mut Medium, port: u32) {
    own.counters.corrupted += 1;
    medium.tell_dropped(own, Some(port), DropReason::Corrupted, 1);
}

fn not_addressed(own: &mut NodeState, medium: &mut Medium, port: u32) {
    own.counters.not_addressed += 1;
    medium.tell_dropped(own, Some(port), DropReason::NotAddressed, 1);
}
