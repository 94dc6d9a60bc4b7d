//! A network: what it is made of, what can be done to it, and what can be read from it. What happens in it is in `step`.

use crate::addresses::{Addresses, Family};
use crate::agent::Generator;
use crate::capture::Capture;
use crate::error::{NetError, out_of_range};
use crate::event::{Event, EventQueue};
use crate::external::{Arrivals, ExternalInterface};
use crate::failure::{FailureProcess, FailureRecord};
use crate::flow::{Destination, Flow, Ping, UdpStream};
use crate::host::{Host, HostConfig};
use crate::link::{Attachment, Direction, LinkConfig, LinkCounters, LinkDirection, MAX_DELAY_PS};
use crate::node::{MAX_PORT, Node, NodeCounters, NodeKind};
use crate::notification::Notification;
use crate::pool::Pool;
use crate::random::{Stream, named_seed};
use crate::record::{ReceivedLog, SentLog};
use crate::statistics::FlowStatistics;
use crate::switch::{Pipeline, SwitchNode};
use crate::tcp_flow::{
    Address, EndpointId, Side, TcpFlow, TcpFlowStatistics, TcpTransfer, WindowLog,
};
use crate::visit::Visits;
use crate::whole::WholeFrame;
use crate::{FlowId, LinkId, NodeId, TcpFlowId};
use engine::packet::MAX_BYTES;
use engine::{Output, Packet, Switch};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use wire::MacAddress;

/// Nodes and links, and the events among them.
///
/// Nodes are named; a port is a number at its node. Requests that make no sense are refused with a [`NetError`] and change
/// nothing.
#[derive(Debug)]
pub struct Network {
    seed: u64,
    detection_delay_ps: u64,
    pub(crate) now_ps: u64,
    /// Added to the time in captures.
    pub(crate) capture_epoch_ns: u64,
    pub(crate) events: EventQueue,
    pub(crate) nodes: Vec<Node>,
    by_name: BTreeMap<String, NodeId>,
    /// Link i has the directions 2i (from a to b) and 2i + 1.
    pub(crate) directions: Vec<Direction>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) tcp_flows: Vec<TcpFlow>,
    pub(crate) generators: Vec<Generator>,
    pub(crate) failure_processes: Vec<FailureProcess>,
    pub(crate) failure_records: Vec<FailureRecord>,
    /// External interfaces by number; a number may be vacant.
    pub(crate) interfaces: Vec<Option<ExternalInterface>>,
    pub(crate) arrivals: Arrivals,
    pub(crate) notifications: Vec<Notification>,
    /// Frames for external interfaces, until the wall clock's loop takes them.
    pub(crate) outbound: Vec<(usize, Packet)>,
    /// Kept between packets for its capacity.
    pub(crate) outputs: Vec<Output>,
    /// The same for what ordering functions let go.
    pub(crate) ordered: Vec<Packet>,
    pub(crate) pool: Pool,
    /// Headers of the segment being sent; kept for its capacity.
    pub(crate) headers: Vec<u8>,
    pub(crate) whole: WholeFrame,
    pub(crate) steps: u64,
    pub(crate) visits: Visits,
    /// The wall clock runs: what takes long makes packets wait.
    pub(crate) real_time: bool,
    /// In real time, of each switch.
    copies_per_s: u64,
}

/// Building.
impl Network {
    /// An empty network. Switches learn of a port's state `detection_delay_ps` after it changed.
    pub fn new(seed: u64, detection_delay_ps: u64) -> Network {
        Network {
            seed,
            detection_delay_ps,
            now_ps: 0,
            capture_epoch_ns: 0,
            events: EventQueue::default(),
            nodes: Vec::new(),
            by_name: BTreeMap::new(),
            directions: Vec::new(),
            flows: Vec::new(),
            tcp_flows: Vec::new(),
            generators: Vec::new(),
            failure_processes: Vec::new(),
            failure_records: Vec::new(),
            interfaces: Vec::new(),
            arrivals: Arrivals::default(),
            notifications: Vec::new(),
            outbound: Vec::new(),
            outputs: Vec::new(),
            ordered: Vec::new(),
            pool: Pool::default(),
            headers: Vec::new(),
            whole: WholeFrame::default(),
            steps: 0,
            visits: Visits::default(),
            real_time: false,
            copies_per_s: engine::COPIES_PER_S,
        }
    }

    /// The seed for the random numbers of the component called `name`, such as a switch: the same whatever else there is.
    pub fn seed_of(&self, name: &str) -> u64 {
        named_seed(self.seed, name)
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn add_node(&mut self, name: &str, kind: NodeKind) -> Result<NodeId, NetError> {
        if name.is_empty() {
            return Err(out_of_range("name", "not empty"));
        }
        if self.by_name.contains_key(name) {
            return Err(NetError::DuplicateNode(name.to_owned()));
        }
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node::new(name, kind));
        self.by_name.insert(name.to_owned(), id);
        Ok(id)
    }

    /// A switch; packets leave it `latency_ps` after they arrived.
    pub fn add_switch(
        &mut self,
        name: &str,
        switch: Box<Switch>,
        latency_ps: u64,
    ) -> Result<NodeId, NetError> {
        self.add_pipeline(name, Pipeline::Engine(switch), latency_ps)
    }

    pub(crate) fn add_pipeline(
        &mut self,
        name: &str,
        pipeline: Pipeline,
        latency_ps: u64,
    ) -> Result<NodeId, NetError> {
        if latency_ps > MAX_DELAY_PS {
            return Err(out_of_range(
                "latency_ps",
                format!("at most {MAX_DELAY_PS}"),
            ));
        }
        let switch = SwitchNode::new(pipeline, latency_ps);
        let id = self.add_node(name, NodeKind::Switch(Box::new(switch)))?;
        self.refresh_queueing(id);
        self.limit_copies(id);
        Ok(id)
    }

    /// A modelled host with one card on port 0.
    pub fn add_host(&mut self, name: &str, config: HostConfig) -> Result<NodeId, NetError> {
        if config.prefix_len > 32 {
            return Err(out_of_range("prefix_len", "at most 32"));
        }
        if let Some(ipv6) = config.ipv6 {
            if ipv6.prefix_len > 128 {
                return Err(out_of_range(
                    "prefix length of the IPv6 address",
                    "at most 128",
                ));
            }
            if ipv6.address.is_multicast() || ipv6.address.is_unspecified() {
                return Err(out_of_range("IPv6 address", "the address of one station"));
            }
        }
        if config.mac.is_multicast() || config.mac == MacAddress::default() {
            return Err(out_of_range("mac", "the address of one station"));
        }
        self.add_node(name, NodeKind::Host(Box::new(Host::new(config))))
    }

    /// A link between two ports, the same in both directions.
    pub fn add_link(
        &mut self,
        a: &str,
        a_port: u32,
        b: &str,
        b_port: u32,
        config: LinkConfig,
    ) -> Result<LinkId, NetError> {
        config.check()?;
        let a_end = Attachment {
            node: self.node_id(a)?,
            port: a_port,
        };
        let b_end = Attachment {
            node: self.node_id(b)?,
            port: b_port,
        };
        self.node(a_end.node).check_free(a_port)?;
        self.node(b_end.node).check_free(b_port)?;
        if a_end == b_end {
            return Err(NetError::InvalidPort {
                node: a.to_owned(),
                port: a_port,
                reason: "a link has two ends",
            });
        }
        let first = self.directions.len() as u32;
        for (from, to, name) in [
            (a_end, b_end, format!("{a}:{a_port}>{b}:{b_port}")),
            (b_end, a_end, format!("{b}:{b_port}>{a}:{a_port}")),
        ] {
            let direction = self.directions.len() as u32;
            self.nodes[from.node.0 as usize].attach(from.port, direction);
            self.directions
                .push(Direction::new(from, to, config.clone(), self.seed, &name));
        }
        self.visits.network_changed();
        for direction in [first, first + 1] {
            self.refresh_direction(direction);
        }
        for end in [a_end, b_end] {
            self.set_switch_port(end.node, end.port, true);
            self.linked(end.node);
        }
        Ok(LinkId(first / 2))
    }

    /// Gives one direction of a link parameters of its own, before it carried anything.
    pub fn configure_direction(
        &mut self,
        link: LinkId,
        direction: LinkDirection,
        config: LinkConfig,
    ) -> Result<(), NetError> {
        config.check()?;
        let number = self.direction(link, direction)?;
        let former = &self.directions[number as usize];
        if !former.is_unused() || !former.up || !former.enabled {
            let when = "before its first packet or failure";
            return Err(out_of_range("the time to configure a direction", when));
        }
        let (from, to) = (former.from, former.to);
        let name = self.direction_name(number);
        let mut fresh = Direction::new(from, to, config, self.seed, &name);
        fresh.epoch = former.epoch;
        fresh.generation = former.generation;
        fresh.reported_up = former.reported_up;
        self.directions[number as usize] = fresh;
        self.visits.network_changed();
        Ok(())
    }

    /// Tells a direction's random streams from all others'.
    pub(crate) fn direction_name(&self, direction: u32) -> String {
        let Direction { from, to, .. } = &self.directions[direction as usize];
        let name = |end: &Attachment| format!("{}:{}", self.node(end.node).name, end.port);
        format!("{}>{}", name(from), name(to))
    }

    /// Writes what crosses a port from now on, in both directions, as pcap with nanoseconds. The CPU port of a switch shows
    /// packet-ins and packet-outs. A port may have several captures.
    pub fn capture(
        &mut self,
        node: &str,
        port: u32,
        out: Box<dyn Write + Send>,
    ) -> Result<(), NetError> {
        let id = self.node_id(node)?;
        let switch = matches!(self.node(id).kind, NodeKind::Switch(_));
        if port > if switch { MAX_PORT } else { 0 } {
            return Err(NetError::InvalidPort {
                node: node.to_owned(),
                port,
                reason: "the node has no such port",
            });
        }
        let capture = Capture::new(port, out)
            .map_err(|error| NetError::Io(format!("capture of {node}, port {port}: {error}")))?;
        self.nodes[id.0 as usize].captures.push(capture);
        Ok(())
    }

    /// [`Network::capture`] into a file, which is replaced.
    pub fn capture_to_path(&mut self, node: &str, port: u32, path: &Path) -> Result<(), NetError> {
        self.node_id(node)?;
        let file = std::fs::File::create(path)
            .map_err(|error| NetError::Io(format!("{}: {error}", path.display())))?;
        self.capture(node, port, Box::new(std::io::BufWriter::new(file)))
    }

    /// Completes the captures on disk, as happens at the end of runs, and says which one failed, if one did. Each failure is
    /// reported once; the network goes on without that capture.
    pub fn flush_captures(&mut self) -> Result<(), NetError> {
        self.write_captures();
        for node in &mut self.nodes {
            for capture in &mut node.captures {
                let port = capture.port;
                if let Some(reason) = capture.report() {
                    let name = &node.name;
                    return Err(NetError::Io(format!(
                        "capture of {name}, port {port}: {reason}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Completes the captures on disk; failures are left for [`Network::flush_captures`] to report.
    pub(crate) fn write_captures(&mut self) {
        let captures = self.nodes.iter_mut().flat_map(|node| &mut node.captures);
        captures.for_each(Capture::flush);
    }
}

/// Traffic.
impl Network {
    /// Starts a UDP stream of a modelled host.
    pub fn add_udp_stream(&mut self, stream: &UdpStream) -> Result<FlowId, NetError> {
        self.check_not_past(stream.start_ps)?;
        let (source, host) = self.host(&stream.source)?;
        let destination = self.destination((&stream.source, host), &stream.destination)?;
        let id = FlowId(self.flows.len() as u32);
        let draws = || Stream::named(self.seed, &format!("flow{}", id.0));
        let flow = Flow::udp(id, (source, host), destination, stream, draws)?;
        Ok(self.start_flow(id, flow))
    }

    /// Starts pings of a modelled host.
    pub fn add_ping(&mut self, ping: &Ping) -> Result<FlowId, NetError> {
        self.check_not_past(ping.start_ps)?;
        let (source, host) = self.host(&ping.source)?;
        let (_, addresses, next_hop) = self.destination((&ping.source, host), &ping.destination)?;
        let identifier = u16::try_from(host.pings.len())
            .map_err(|_| out_of_range("pings of one host", "at most 65536"))?;
        let flow = Flow::ping(identifier, (source, host), (addresses, next_hop), ping)?;
        let id = FlowId(self.flows.len() as u32);
        if let NodeKind::Host(host) = &mut self.nodes[source.0 as usize].kind {
            host.pings.push(id);
        }
        Ok(self.start_flow(id, flow))
    }

    /// Ends a stream or pings before their time: nothing more is sent.
    pub fn end_flow(&mut self, flow: FlowId) -> Result<(), NetError> {
        let now_ps = self.now_ps;
        let ended = self.flows.get_mut(flow.0 as usize);
        ended.ok_or(NetError::UnknownFlow(flow.0))?.end(now_ps);
        Ok(())
    }

    /// Prepares a TCP connection between modelled hosts.
    pub fn add_tcp(&mut self, transfer: &TcpTransfer) -> Result<TcpFlowId, NetError> {
        self.check_not_past(transfer.start_ps)?;
        let (client, server) = (self.host(&transfer.client)?, self.host(&transfer.server)?);
        if client.0 == server.0 {
            return Err(out_of_range("server", "another host than the client"));
        }
        let names = (&transfer.client, &transfer.server);
        let ends = [
            (client, names, transfer.client_port),
            (server, (names.1, names.0), transfer.server_port),
        ];
        let [client, server] = ends.map(|((node, host), (name, peer), port)| {
            let peer = match transfer.family {
                Family::Ipv4 => Destination::Host(peer.clone()),
                Family::Ipv6 => Destination::HostIpv6(peer.clone()),
            };
            let (_, addresses, next_hop) = self.destination((name, host), &peer)?;
            Ok(Address {
                node,
                mac: host.config.mac,
                addresses,
                next_hop,
                port,
            })
        });
        let (client, server) = (client?, server?);
        let id = TcpFlowId(self.tcp_flows.len() as u32);
        let draws = Stream::named(self.seed, &format!("tcp{}", id.0));
        let flow = TcpFlow::new(transfer, client, server, draws)?;
        let sides = [
            (client, server, Side::Client),
            (server, client, Side::Server),
        ];
        for (end, peer, side) in sides {
            let endpoint = EndpointId::new(id, side);
            if let NodeKind::Host(host) = &mut self.nodes[end.node.0 as usize].kind
                && !host.add_connection(end.addresses, end.port, peer.port, endpoint)
            {
                return Err(NetError::Refused(format!(
                    "{} and {} have a connection with these ports already",
                    transfer.client, transfer.server
                )));
            }
        }
        self.events
            .push(transfer.start_ps, Event::TcpApplication { flow: id });
        self.tcp_flows.push(flow);
        self.visits.network_changed();
        Ok(id)
    }

    fn start_flow(&mut self, id: FlowId, flow: Flow) -> FlowId {
        if let Some(due_ps) = flow.due_ps() {
            self.events.push(due_ps, Event::Send { flow: id });
        }
        self.flows.push(flow);
        self.visits.network_changed();
        id
    }

    fn host(&self, name: &str) -> Result<(NodeId, &Host), NetError> {
        let id = self.node_id(name)?;
        match &self.node(id).kind {
            NodeKind::Host(host) => Ok((id, host)),
            _ => Err(NetError::WrongKind {
                node: name.to_owned(),
                expected: "a modelled host",
            }),
        }
    }

    /// The node whose log counts, the addresses, and the MAC address to send to.
    fn destination(
        &self,
        (name, source): (&str, &Host),
        destination: &Destination,
    ) -> Result<(Option<NodeId>, Addresses, MacAddress), NetError> {
        let to = |peer: &str| self.host(peer).map(|(node, host)| (Some(node), host));
        let owner = |address: IpAddr| {
            let owner = self.hosts().find(|(_, host)| host.has(address));
            owner.map(|(node, _)| node)
        };
        let v4 = |to| Addresses::V4(source.config.ipv4, to);
        let v6 = |to| Ok(Addresses::V6(ipv6_of(name, source)?, to));
        let (node, addresses) = match destination {
            Destination::Host(peer) => {
                let (node, host) = to(peer)?;
                (node, v4(host.config.ipv4))
            }
            Destination::HostIpv6(peer) => {
                let (node, host) = to(peer)?;
                (node, v6(ipv6_of(peer, host)?)?)
            }
            Destination::Ipv4(address) => (owner((*address).into()), v4(*address)),
            Destination::Ipv6(address) if address.is_multicast() => {
                return Err(out_of_range("IPv6 destination", "no multicast group"));
            }
            Destination::Ipv6(address) => (owner((*address).into()), v6(*address)?),
        };
        let on_link = match addresses {
            Addresses::V4(_, group) if group.is_multicast() => {
                let [_, b, c, d] = group.octets();
                return Ok((node, addresses, MacAddress([1, 0, 0x5e, b & 0x7f, c, d])));
            }
            Addresses::V4(_, address) => source.is_on_link(address),
            Addresses::V6(_, address) => source.is_on_link_v6(address),
        };
        let address = addresses.destination();
        let neighbour = self.hosts().find(|(_, host)| host.has(address));
        let next_hop = match neighbour {
            Some((_, host)) if on_link => host.config.mac,
            _ => source.config.gateway_mac,
        };
        Ok((node, addresses, next_hop))
    }

    fn hosts(&self) -> impl Iterator<Item = (NodeId, &Host)> {
        self.nodes
            .iter()
            .enumerate()
            .filter_map(|(i, node)| match &node.kind {
                NodeKind::Host(host) => Some((NodeId(i as u32), &**host)),
                _ => None,
            })
    }

    /// Sends a frame from a host or interface node, as it is, now.
    pub fn send_frame(&mut self, node: &str, frame: &[u8]) -> Result<(), NetError> {
        let id = self.node_id(node)?;
        if matches!(self.node(id).kind, NodeKind::Switch(_)) {
            return Err(NetError::WrongKind {
                node: node.to_owned(),
                expected: "a host; use packet_out for switches",
            });
        }
        if self.node(id).up {
            self.transmit(id, 0, Packet::new(frame));
        } else {
            self.nodes[id.0 as usize].counters.down_drops += 1;
        }
        Ok(())
    }

    /// Hands a packet (with its packet-out header) to a switch's CPU port, now.
    pub fn packet_out(&mut self, node: &str, packet: &[u8]) -> Result<(), NetError> {
        let id = self.node_id(node)?;
        let NodeKind::Switch(switch) = &self.node(id).kind else {
            return Err(not_a_switch(node));
        };
        let port = switch.cpu_port();
        if packet.len() > MAX_BYTES {
            return Err(out_of_range("packet", format!("at most {MAX_BYTES} bytes")));
        }
        self.receive(id, port, Packet::new(packet));
        Ok(())
    }
}

/// Failures and repairs.
impl Network {
    /// Fails or repairs both directions of a link, at a time or now. What waits or is under way on a failing link is lost.
    pub fn set_link_state(
        &mut self,
        link: LinkId,
        up: bool,
        at_ps: Option<u64>,
    ) -> Result<(), NetError> {
        let first = self.first_direction(link)?;
        self.set_directions([first, first + 1], up, at_ps)
    }

    /// Fails or repairs one direction of a link. Loss of signal is noticed by the receiving end alone.
    pub fn set_direction_state(
        &mut self,
        link: LinkId,
        direction: LinkDirection,
        up: bool,
        at_ps: Option<u64>,
    ) -> Result<(), NetError> {
        let direction = self.direction(link, direction)?;
        self.set_directions([direction; 2], up, at_ps)
    }

    fn set_directions(
        &mut self,
        directions: [u32; 2],
        up: bool,
        at_ps: Option<u64>,
    ) -> Result<(), NetError> {
        self.at_or_now(at_ps, Event::DirectionState { directions, up })
    }

    /// Fails or repairs a node, at a time or now. While it is down all its links are, and it processes and sends nothing.
    /// What was inside is lost; tables, registers and logs are not.
    pub fn set_node_state(
        &mut self,
        node: &str,
        up: bool,
        at_ps: Option<u64>,
    ) -> Result<(), NetError> {
        let node = self.node_id(node)?;
        self.at_or_now(at_ps, Event::NodeState { node, up })
    }

    fn at_or_now(&mut self, at_ps: Option<u64>, event: Event) -> Result<(), NetError> {
        match at_ps {
            None => self.dispatch(event),
            Some(at_ps) => {
                self.check_not_past(at_ps)?;
                self.events.push(at_ps, event);
            }
        }
        Ok(())
    }

    /// When a change of a direction at this time is noticed.
    pub(crate) fn detection_ps(&self, direction: u32) -> u64 {
        let own_ps = self.directions[direction as usize].detection_ps();
        self.now_ps
            .saturating_add(own_ps.unwrap_or(self.detection_delay_ps))
    }
}

/// Reading.
impl Network {
    /// What time it is.
    pub fn now_ps(&self) -> u64 {
        self.now_ps
    }

    /// How many events have happened.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Number of scheduled events; a network without any stays as it is until somebody does something.
    pub fn pending_events(&self) -> usize {
        self.events.len()
    }

    /// A switch, for reading.
    pub fn switch(&self, name: &str) -> Result<&Switch, NetError> {
        match &self.node(self.node_id(name)?).kind {
            NodeKind::Switch(switch) => match &switch.pipeline {
                Pipeline::Engine(switch) => Ok(switch),
                #[cfg(test)]
                Pipeline::Test(_) => Err(not_a_switch(name)),
            },
            _ => Err(not_a_switch(name)),
        }
    }

    /// A switch, for control: what is done to it is done now, between packets.
    pub fn switch_mut(&mut self, name: &str) -> Result<&mut Switch, NetError> {
        let id = self.node_id(name)?;
        let now_ps = self.now_ps;
        self.wake_agent(id);
        match &mut self.nodes[id.0 as usize].kind {
            NodeKind::Switch(switch) => match &mut switch.pipeline {
                Pipeline::Engine(switch) => {
                    switch.set_now_ps(now_ps);
                    Ok(switch)
                }
                #[cfg(test)]
                Pipeline::Test(_) => Err(not_a_switch(name)),
            },
            _ => Err(not_a_switch(name)),
        }
    }

    /// Sets the rate of copies of copies that each switch has in real time ([`Switch::set_copies_per_s`]).
    pub fn set_copies_per_s(&mut self, copies_per_s: u64) {
        self.copies_per_s = copies_per_s;
        self.limit_all_copies();
    }

    /// The wall clock starts or stops.
    pub(crate) fn set_real_time(&mut self, real_time: bool) {
        self.real_time = real_time;
        self.limit_all_copies();
    }

    fn limit_all_copies(&mut self) {
        for node in 0..self.nodes.len() as u32 {
            self.limit_copies(NodeId(node));
        }
    }

    fn limit_copies(&mut self, node: NodeId) {
        let copies_per_s = self.real_time.then_some(self.copies_per_s);
        if let NodeKind::Switch(switch) = &mut self.nodes[node.0 as usize].kind
            && let Some(engine) = switch.engine_mut()
        {
            engine.set_copies_per_s(copies_per_s);
        }
    }

    /// What a flow sent, if it is logged, as for what arrived of it.
    pub fn sent(&self, flow: FlowId) -> Result<&SentLog, NetError> {
        self.flow(flow)?.record.sent_log(flow)
    }

    /// What arrived of a flow at its destination; for a ping, the replies as they arrived back. A stream to an address that
    /// no modelled host has, such as a multicast group's, is received by nobody in particular: use
    /// [`Network::received_at`].
    pub fn received(&self, flow: FlowId) -> Result<&ReceivedLog, NetError> {
        let Flow {
            record, receiver, ..
        } = self.flow(flow)?;
        record.received_log(flow, *receiver)
    }

    /// What arrived of a stream at a host.
    pub fn received_at(&self, flow: FlowId, host: &str) -> Result<&ReceivedLog, NetError> {
        let record = &self.flow(flow)?.record;
        record.received_log(flow, Some(self.host(host)?.0))
    }

    /// What became of a flow, at its destination.
    pub fn flow_statistics(&self, flow: FlowId) -> Result<FlowStatistics, NetError> {
        let flow = self.flow(flow)?;
        Ok(flow.record.statistics(flow.receiver, flow.interval_ps()))
    }

    /// What became of a stream on its way to a host, such as one of a multicast group.
    pub fn flow_statistics_at(&self, flow: FlowId, host: &str) -> Result<FlowStatistics, NetError> {
        let (flow, node) = (self.flow(flow)?, self.host(host)?.0);
        Ok(flow.record.statistics(Some(node), flow.interval_ps()))
    }

    /// What is known of a TCP connection.
    pub fn tcp_statistics(&self, flow: TcpFlowId) -> Result<TcpFlowStatistics, NetError> {
        Ok(self.tcp_flow(flow)?.statistics())
    }

    /// New bytes that arrived in order at a connection's server, in bins of the width that was asked for; the last bin is the last one
    /// in which something arrived.
    pub fn tcp_goodput(&self, flow: TcpFlowId) -> Result<&[u64], NetError> {
        Ok(self.tcp_flow(flow)?.goodput())
    }

    /// The window of a connection's client over time; refused if that was not asked for.
    pub fn tcp_window(&self, flow: TcpFlowId) -> Result<&WindowLog, NetError> {
        self.tcp_flow(flow)?.window().ok_or_else(|| {
            let number = flow.0;
            NetError::Refused(format!(
                "TCP flow {number} keeps no log of its window: that is there with log_window only"
            ))
        })
    }

    fn tcp_flow(&self, flow: TcpFlowId) -> Result<&TcpFlow, NetError> {
        self.tcp_flows
            .get(flow.0 as usize)
            .ok_or(NetError::UnknownFlow(flow.0))
    }

    /// Packets that claim to be of a flow and reached a host damaged. They are in no log.
    pub fn corrupted(&self, flow: FlowId) -> Result<u64, NetError> {
        Ok(self.flow(flow)?.corrupted)
    }

    /// Counters of a link, as of now.
    pub fn link_counters(&self, link: LinkId) -> Result<LinkCounters, NetError> {
        let first = self.first_direction(link)? as usize;
        Ok(LinkCounters {
            a_to_b: self.directions[first].counters(self.now_ps),
            b_to_a: self.directions[first + 1].counters(self.now_ps),
        })
    }

    /// Counters of a node.
    pub fn node_counters(&self, node: &str) -> Result<NodeCounters, NetError> {
        Ok(self.node(self.node_id(node)?).counters)
    }

    /// Whether both directions of a link work: it is enabled and the nodes at its ends are up.
    pub fn link_is_up(&self, link: LinkId) -> Result<bool, NetError> {
        let first = self.first_direction(link)? as usize;
        Ok(self.directions[first].up && self.directions[first + 1].up)
    }

    /// Whether a port has a signal: there is a link, and it works towards this port; or it is an interface of the machine that
    /// is up. Controllers of real switches ask this when they start.
    pub fn port_is_up(&self, node: &str, port: u32) -> Result<bool, NetError> {
        let node = self.node(self.node_id(node)?);
        if let Some(number) = node.external_at(port) {
            return Ok(self.interface_is_up(number));
        }
        let towards = node.direction_from(port).map(|away| away ^ 1);
        Ok(towards.is_some_and(|direction| self.directions[direction as usize].up))
    }

    /// The node of this name.
    pub fn node_id(&self, name: &str) -> Result<NodeId, NetError> {
        self.by_name
            .get(name)
            .copied()
            .ok_or_else(|| NetError::UnknownNode(name.to_owned()))
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    fn flow(&self, flow: FlowId) -> Result<&Flow, NetError> {
        self.flows
            .get(flow.0 as usize)
            .ok_or(NetError::UnknownFlow(flow.0))
    }

    fn first_direction(&self, link: LinkId) -> Result<u32, NetError> {
        let first = link
            .0
            .checked_mul(2)
            .filter(|&first| (first as usize) < self.directions.len());
        first.ok_or(NetError::UnknownLink(link.0))
    }

    pub(crate) fn direction(
        &self,
        link: LinkId,
        direction: LinkDirection,
    ) -> Result<u32, NetError> {
        let first = self.first_direction(link)?;
        Ok(match direction {
            LinkDirection::AToB => first,
            LinkDirection::BToA => first + 1,
        })
    }

    pub(crate) fn check_not_past(&self, at_ps: u64) -> Result<(), NetError> {
        if at_ps < self.now_ps {
            return Err(NetError::TimeInPast {
                at_ps,
                now_ps: self.now_ps,
            });
        }
        Ok(())
    }
}

/// The IPv6 address of a host.
fn ipv6_of(name: &str, host: &Host) -> Result<Ipv6Addr, NetError> {
    let address = host.config.ipv6.map(|own| own.address);
    address.ok_or_else(|| NetError::Refused(format!("host {name} has no IPv6 address")))
}

fn not_a_switch(node: &str) -> NetError {
    NetError::WrongKind {
        node: node.to_owned(),
        expected: "a switch",
    }
}

#[cfg(test)]
mod tests;
