//! Visits: a node handles all packets that are certain to be its next ones at once, then the nodes that it sent them to do the same, and so
//! on, before the run goes on elsewhere. The state of a node is read from far memory once per visit, and the bytes of a packet once per
//! journey: a run's cost per packet hardly grows with the number of switches, as long as links have several packets under way.
//!
//! # Why nothing is different
//!
//! This is the lookahead of conservative parallel simulation (Chandy and Misra, 1979), on one processor. A node's *horizon* is the time up
//! to which all that happens to it has happened; that of every node is the present at least. A packet that may reach a node before the
//! least sum of a neighbour's horizon and the delay of the link from there is on its links already, unless something happens in another
//! way: a failure, another delay or rate of a link, a detection, an agent, a packet generator, or what a controller does. For the former, visits end with the next such
//! event of the whole network. For the latter, whoever runs the network says how long after a notification controllers act at the earliest
//! ([`Network::set_reaction_ps`]), and no visit goes further ahead than that. During a visit the time is that of the packet, and goes
//! back afterwards. Other nodes see nothing of it but packets that arrive later, in the order that they would have anyway: among events of
//! one instant the link decides, not who scheduled first.
//!
//! Switches without traffic managers, digests and idle timeouts are visited, and hosts without TCP, memberships and neighbours, with few links each, all of which take a
//! constant time; the others handle packets one by one. Hosts that are sources send when a visit has come to where they may: so a part of
//! the network that is independent of the others for a while goes on by itself, and stays in the near caches, as far as it can.

use super::Network;
use crate::host::Host;
use crate::model::{InterfaceNode, Visiting, Visitors};
use crate::scheduler::{Event, Place};
use crate::{FlowId, NodeId};
use engine::{Packet, Time, TimeObserved};

/// Nodes with more links are not visited: finding the next packet would take longer than finding the node.
const MOST_LINKS: usize = 16;

/// Most packets that a switch runs at once; their data stay in the near caches meanwhile.
const BURST: usize = 32;

/// Most packets of a flow that are sent in one go.
const MOST_SENT: usize = 32;

/// Hosts that are the source of more flows are not visited.
const MOST_FLOWS: usize = 8;

/// What is known about the nodes for visits, in which they handle packets ahead of the run.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    /// The shortest time after a notification in which controllers change the network.
    reaction_ps: u64,
    /// What is known about each node; empty while the network is being changed.
    nodes: Vec<Visit>,
    /// The node at the receiving end of each link direction.
    ends: Vec<NodeId>,
    /// The next steps: visits to nodes to which packets were sent, and sources that may send some.
    next: Vec<Next>,
    /// Packets that the switch being visited collected to run them together; empty between visits.
    burst: Visitors,
}

/// A step that has become possible because neighbouring nodes have handled their packets up to a later time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The node at the receiving end of a direction is visited, for packets that arrive by it.
    Visit(u32),
    /// A flow's source sends its packets.
    Send(FlowId),
}

/// What is known about a node for visits.
#[derive(Clone, Debug, Default)]
struct Visit {
    /// The scheduler's lanes of its packets; empty if the node must not be visited when one arrives.
    lanes: Box<[Place]>,
    /// The flows that it sends, if it may send ahead.
    flows: Box<[FlowId]>,
    /// The node at the other end of each link, the delay from there, and the direction that leads there.
    neighbours: Box<[Neighbour]>,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    node: NodeId,
    away: u32,
    /// The propagation delay from the neighbour to this node; 0 if it differs from packet to packet.
    delay_ps: u64,
}

impl Visits {
    /// Discards what is known about which nodes can be visited, until the next run determines it again. Called after a
    /// change on which this depends, such as of a link, a source, a group's members or a processor.
    pub(crate) fn network_changed(&mut self) {
        self.nodes.clear();
    }

    /// Records that packets from a neighbour now take at least `delay_ps` picoseconds to a node. The neighbour is at
    /// the receiving end of the link direction `away`.
    pub(crate) fn delay_changed(&mut self, node: NodeId, away: u32, delay_ps: u64) {
        let visit = self.nodes.get_mut(node.0 as usize);
        let neighbours = visit.into_iter().flat_map(|visit| &mut visit.neighbours);
        for neighbour in neighbours.filter(|neighbour| neighbour.away == away) {
            neighbour.delay_ps = delay_ps;
        }
    }
}

impl Network {
    /// Sets the shortest reaction time of controllers: the caller changes the network because of a notification at the
    /// earliest `reaction_ps` picoseconds after it; zero if unknown (the default), `u64::MAX` if never. The value must
    /// be true; it affects the speed of a run, but not its results.
    ///
    /// Any call of this function changes the order of simultaneous events, however: from then on, packets that arrive,
    /// leave switches or are sent at the same instant are ordered by the numbers of links, switches and flows, in the
    /// order in which these were added, and no longer by which was scheduled first.
    pub fn set_reaction_ps(&mut self, reaction_ps: u64) {
        self.medium.scheduler.order_by_number();
        self.visits.reaction_ps = reaction_ps;
    }

    /// Prepares the next run: determines which nodes can handle packets ahead of the simulation's clock (visits), if
    /// the network has changed. Resets the times up to which nodes have handled everything, since changes between
    /// runs apply to the present.
    pub(crate) fn prepare_visits(&mut self) {
        self.medium.scheduler.horizons_ps.fill(Time::ZERO);
        if self.medium.observers.watch_all() {
            // An observer of everything is told in the order of time.
            self.visits.network_changed();
            return;
        }
        if self.visits.nodes.len() == self.nodes.len() || self.visits.reaction_ps == 0 {
            return;
        }
        let mut by_themselves = vec![false; self.nodes.len()];
        for end in self.traffic.tcp_flows.iter().flat_map(|flow| flow.nodes()) {
            by_themselves[end.0 as usize] = true;
        }
        // So are those that may have something to say of groups or to neighbours at any time.
        for (node, own) in self.nodes.iter().enumerate() {
            let Some(host) = own.get::<Host>() else {
                continue;
            };
            let memberships = host.memberships.as_ref();
            by_themselves[node] |= memberships.is_some_and(|it| it.is_active());
            by_themselves[node] |= !host.is_plain();
        }
        let mut flows = vec![Vec::new(); self.nodes.len()];
        for (number, flow) in self.traffic.flows.iter().enumerate() {
            flows[flow.source.0 as usize].push(FlowId(number as u32));
        }
        let nodes = by_themselves.into_iter().zip(flows).enumerate();
        let nodes = nodes.map(|(node, (by_themselves, flows))| match by_themselves {
            true => Visit::default(),
            false => self.visit_of(node, flows),
        });
        self.visits.nodes = nodes.collect();
        self.medium.scheduler.horizons_ps = vec![Time::ZERO; self.nodes.len()];
        let ends = self.medium.links.iter().map(|link| link.to.node);
        self.visits.ends = ends.collect();
    }

    fn visit_of(&self, node: usize, flows: Vec<FlowId>) -> Visit {
        let state = &self.nodes[node];
        let links = &self.medium.links;
        let away = || state.state.ports.iter().copied().flatten();
        let is_interface = state.is::<InterfaceNode>();
        // A packet that is held back leaves at a time of its own.
        let holds = away().any(|away| links[away].ordering().is_some());
        // So do hellos, and what they find changes a port at once.
        let greets = away().any(|away| self.detection.has_session(away ^ 1));
        if is_interface
            || holds
            || greets
            || away().count() > MOST_LINKS
            || flows.len() > MOST_FLOWS
        {
            return Visit::default();
        }
        let neighbours = away().map(|away| Neighbour {
            node: links[away].to.node,
            away,
            delay_ps: links[away ^ 1].constant_delay_ps().unwrap_or(0),
        });
        let incoming = away().map(|away| Place::Arrivals(away ^ 1));
        let lanes = incoming.chain([Place::Departures(node as u32)]);
        // A packet to a source may come between two packets that it sends.
        let lanes = lanes.filter(|_| flows.is_empty());
        Visit {
            lanes: lanes.collect(),
            flows: flows.into(),
            neighbours: neighbours.collect(),
        }
    }

    /// Runs the next event if it is scheduled at `limit_ps` or before. If it brings a packet to a node that can be
    /// visited, or makes a flow send, that node and those to which it sends also handle, ahead of the simulation's
    /// clock, the packets that are certain to come next. Returns true if there was such an event.
    pub(crate) fn step_or_visit(&mut self, limit_ps: Time) -> bool {
        let Some((time_ps, event)) = self.medium.scheduler.pop_until(limit_ps) else {
            return false;
        };
        let Some(event) = self.still_due(time_ps, event) else {
            return true;
        };
        self.medium.scheduler.begin_event(time_ps);
        // Up to when nothing can happen but that packets come and go.
        let end_ps = (time_ps.saturating_add(self.visits.reaction_ps))
            .min(self.medium.scheduler.next_barrier_ps())
            .min(limit_ps.saturating_add(1));
        match event {
            Event::Arrive { direction, .. } if end_ps > time_ps => match self.visited_by(direction)
            {
                Some(node) => self.visit(node, time_ps, Some(event), end_ps),
                None => self.dispatch(event),
            },
            Event::Send { flow } if end_ps > time_ps => self.send_many(flow, end_ps),
            event => self.dispatch(event),
        }
        while let Some(next) = self.visits.next.pop() {
            match next {
                // Meanwhile packets that overtake others may have been sent there.
                Next::Visit(direction) => {
                    if let Some(node) = self.visited_by(direction) {
                        self.visit(node, time_ps, None, end_ps);
                    }
                }
                Next::Send(flow) => self.send_on(flow, time_ps, end_ps),
            }
        }
        self.medium.scheduler.now_ps = time_ps;
        true
    }

    /// Sends the packet of a flow that is due now, and then those that are due before `end_ps` and before anything else
    /// happens to the host.
    fn send_many(&mut self, flow: FlowId, end_ps: Time) {
        let begin_ps = self.now_ps();
        let due_ps = self.send_and_advance(flow);
        if let Some(due_ps) = due_ps {
            self.medium.scheduler.push(due_ps, Event::Send { flow });
        }
        self.send_on(flow, begin_ps, end_ps);
    }

    /// Sends the packets of a flow that are due before `end_ps` and before anything else happens to the host, provided
    /// that all nodes have handled everything up to `begin_ps`. The flow's scheduled event stays where it is;
    /// [`Network::still_due`] corrects it.
    fn send_on(&mut self, flow: FlowId, begin_ps: Time, end_ps: Time) {
        let (host, limit_ps) = (self.traffic.flows[flow.0 as usize].source, end_ps);
        let end_ps = limit_ps.min(self.sends_alone_until_ps(flow, host, begin_ps));
        let mut due_ps = self.traffic.due_ps(flow);
        for _ in 0..MOST_SENT {
            let Some(next_ps) = due_ps.filter(|&due_ps| due_ps < end_ps) else {
                break;
            };
            self.medium.scheduler.now_ps = next_ps;
            self.medium.scheduler.steps += 1;
            due_ps = self.send_and_advance(flow);
        }
        let known_ps = end_ps.min(due_ps.unwrap_or(Time::NEVER));
        let horizon_ps = &mut self.medium.scheduler.horizons_ps;
        if let Some(horizon_ps) = horizon_ps.get_mut(host.0 as usize)
            && known_ps > begin_ps.max(*horizon_ps)
        {
            *horizon_ps = known_ps;
            self.go_on_from(host, begin_ps, limit_ps);
        }
    }

    /// Returns an event that the scheduler gave if it still has to happen at its time. If it belongs to a flow that
    /// has sent packets ahead of the simulation's clock, schedules it anew for the flow's next packet, and returns
    /// `None`.
    #[inline]
    pub(crate) fn still_due(&mut self, time_ps: Time, event: Event) -> Option<Event> {
        let Event::Send { flow } = event else {
            return Some(event);
        };
        match self.traffic.due_ps(flow) {
            Some(due_ps) if due_ps > time_ps => {
                self.medium.scheduler.push(due_ps, Event::Send { flow });
                None
            }
            due_ps => due_ps.map(|_| event),
        }
    }

    /// Returns the time until which a host does nothing but send packets of a flow, provided that all nodes have
    /// handled everything up to `begin_ps`. Returns `begin_ps` if this is unknown.
    fn sends_alone_until_ps(&self, flow: FlowId, host: NodeId, begin_ps: Time) -> Time {
        let visit = self.visits.nodes.get(host.0 as usize);
        let Some(visit) = visit.filter(|visit| !visit.flows.is_empty()) else {
            return begin_ps;
        };
        let others = visit.flows.iter().filter(|&&other| other != flow);
        let others = others.filter_map(|other| self.traffic.due_ps(*other));
        let incoming = visit.neighbours.iter().map(|it| it.away ^ 1);
        let arrivals = incoming.map(|incoming| match self.medium.scheduler.is_whole(incoming) {
            true => self
                .medium
                .scheduler
                .head_ps(incoming)
                .unwrap_or(Time::NEVER),
            false => begin_ps,
        });
        let known_ps = self.known_until_ps(host, begin_ps);
        others
            .chain(arrivals)
            .min()
            .map_or(known_ps, |next_ps| next_ps.min(known_ps))
    }

    /// Returns the node at the receiving end of a link direction if it can at present handle packets ahead of the
    /// simulation's clock; else `None`.
    #[inline]
    fn visited_by(&self, direction: u32) -> Option<NodeId> {
        let node = *self.visits.ends.get(direction as usize)?;
        let lanes = &self.visits.nodes.get(node.0 as usize)?.lanes;
        let can = self.node(node).model.visiting() != Visiting::Never;
        (can && !lanes.is_empty() && self.medium.scheduler.are_whole(lanes)).then_some(node)
    }

    /// Returns the time until which all packets that will arrive at a node are already on its links, provided that all
    /// nodes have handled everything up to `begin_ps`: the least sum of a neighbour's time and the link's delay.
    #[inline]
    fn known_until_ps(&self, node: NodeId, begin_ps: Time) -> Time {
        let neighbours = self.visits.nodes[node.0 as usize].neighbours.iter();
        let known = neighbours.map(|neighbour| {
            let horizon_ps = self.medium.scheduler.horizon_ps(neighbour.node);
            horizon_ps.max(begin_ps).saturating_add(neighbour.delay_ps)
        });
        known.min().unwrap_or(begin_ps)
    }

    /// Makes a node handle, ahead of the simulation's clock, the packets that are known to arrive before `end_ps`,
    /// beginning with the event `first` at `begin_ps` if given. Notes the neighbours to which it sent packets as
    /// those to be visited next.
    fn visit(&mut self, node: NodeId, begin_ps: Time, first: Option<Event>, end_ps: Time) {
        let limit_ps = end_ps;
        let end_ps = limit_ps.min(self.known_until_ps(node, begin_ps));
        // An observer has what comes and what leaves in the order of time.
        let observed = self.medium.observers.watch(node);
        // Packets that run together are given the time of the first, which the program must not be able to tell from theirs.
        let (burst, same_us) = match self.node(node).model.visiting() {
            Visiting::Bursts(TimeObserved::Not) if !observed => (true, false),
            Visiting::Bursts(TimeObserved::Microseconds) if !observed => (true, true),
            _ => (false, true),
        };
        let mut idle = true;
        if let Some(event) = first {
            idle = false;
            self.medium.scheduler.now_ps = begin_ps;
            match event {
                Event::Arrive {
                    direction,
                    generation,
                    packet,
                } if burst => self.collect(direction, generation, packet),
                event => self.dispatch(event),
            }
        }
        loop {
            let lanes = &self.visits.nodes[node.0 as usize].lanes;
            let Some(lane) = self.medium.scheduler.first_of(lanes, end_ps) else {
                if self.visits.burst.packets.is_empty() {
                    break;
                }
                // An output may leave before the end, too.
                self.run_collected(node);
                continue;
            };
            idle = false;
            self.medium.scheduler.steps += 1;
            match lane {
                Place::Arrivals(direction) if burst => {
                    let Some((time_ps, generation, packet)) =
                        self.medium.scheduler.pop_arrival(direction)
                    else {
                        break;
                    };
                    if let Some(first_ps) = self.visits.burst.arrivals_ps.first()
                        && same_us
                        && first_ps.us() != time_ps.us()
                    {
                        self.run_collected(node);
                    }
                    self.medium.scheduler.now_ps = time_ps;
                    self.collect(direction, generation, packet);
                    if self.visits.burst.packets.len() == BURST {
                        self.run_collected(node);
                    }
                }
                lane => {
                    self.run_collected(node);
                    let Some((time_ps, event)) = self.medium.scheduler.pop_from(lane) else {
                        break;
                    };
                    self.medium.scheduler.now_ps = time_ps;
                    self.dispatch(event);
                }
            }
        }
        let horizon_ps = &mut self.medium.scheduler.horizons_ps[node.0 as usize];
        *horizon_ps = end_ps.max(*horizon_ps);
        if !idle {
            self.go_on_from(node, begin_ps, limit_ps);
        }
    }

    /// Notes, after a node has handled its packets, which of its neighbours are to be visited next: those that have
    /// packets to handle or to send before `end_ps`.
    fn go_on_from(&mut self, node: NodeId, begin_ps: Time, end_ps: Time) {
        let Visits { nodes, next, .. } = &self.visits;
        let (count, kept) = (nodes[node.0 as usize].neighbours.len(), next.len());
        for i in 0..count {
            let neighbour = self.visits.nodes[node.0 as usize].neighbours[i];
            self.go_on_at_source(neighbour.node, begin_ps, end_ps);
            let Some(head_ps) = self.medium.scheduler.head_ps(neighbour.away) else {
                continue;
            };
            if let Some(there) = self.visited_by(neighbour.away)
                && head_ps < end_ps.min(self.known_until_ps(there, begin_ps))
                && !self.visits.next[kept..].contains(&Next::Visit(neighbour.away))
            {
                self.visits.next.push(Next::Visit(neighbour.away));
            }
        }
    }

    /// Notes as a next step that a host sends a flow's packet ahead of the simulation's clock, if one is due before
    /// `end_ps` and before anything else happens to the host.
    #[inline]
    fn go_on_at_source(&mut self, host: NodeId, begin_ps: Time, end_ps: Time) {
        let Visits { nodes, next, .. } = &mut self.visits;
        let flows = nodes[host.0 as usize].flows.iter();
        let due = flows.filter_map(|&flow| Some((self.traffic.due_ps(flow)?, flow)));
        if let Some((due_ps, flow)) = due.min_by_key(|&(due_ps, _)| due_ps)
            && due_ps < end_ps
            && !next.contains(&Next::Send(flow))
            && due_ps < self.sends_alone_until_ps(flow, host, begin_ps)
        {
            self.visits.next.push(Next::Send(flow));
        }
    }

    /// Adds a packet that arrives at a switch, which handles packets ahead of the simulation's clock, to the burst
    /// that the switch will run together. `generation` is the number of failures that the link direction had when the
    /// packet was sent; a packet from before the last failure is lost.
    #[inline(always)]
    fn collect(&mut self, direction: u32, generation: u32, packet: Packet) {
        let Some(to) = self.medium.arrive(direction, generation) else {
            return;
        };
        let own = &mut self.nodes[to.node.0 as usize].state;
        if self.medium.takes_packet(own, to.port, &packet) {
            self.visits.burst.packets.push((to.port, packet));
            self.visits.burst.arrivals_ps.push(self.medium.now_ps());
        }
    }

    /// Runs the burst of packets that was collected for a switch, which handles packets ahead of the simulation's
    /// clock. All run at the time of the first, which the program cannot observe; outputs leave at each packet's own
    /// time.
    fn run_collected(&mut self, node: NodeId) {
        if self.visits.burst.packets.is_empty() {
            return;
        }
        let node = &mut self.nodes[node.0 as usize];
        let (own, visitors) = (&mut node.state, &mut self.visits.burst);
        (node.model).receive_visitors(own, &mut self.medium, visitors);
    }

    /// Returns the time of the first notification that controllers have not taken yet; [`Time::NEVER`] if there is
    /// none.
    #[inline]
    pub(crate) fn first_notification_ps(&self) -> Time {
        let times = self.medium.notifications.iter().map(|it| it.time_ps);
        times.min().unwrap_or(Time::NEVER)
    }
}
