//! Traffic of a network: adding streams, pings and TCP connections of its hosts, and reading what became of them.

use super::Network;
use crate::addresses::{Addresses, Family, Hop, Way};
use crate::error::{NetError, out_of_range};
use crate::flow::{Destination, Flow, Ping, UdpStream};
use crate::host::{Card, Host, Timer};
use crate::membership::{
    GroupFilter, GroupStatistics, MAX_SOURCES, MembershipVersion, Memberships, is_routed_group,
};
use crate::packet_log::{ReceivedLog, SentLog};
use crate::random::Stream;
use crate::scheduler::Event;
use crate::statistics::FlowStatistics;
use crate::switch::SwitchNode;
use crate::tcp_flow::{
    Address, EndpointId, Side, TcpFlow, TcpFlowStatistics, TcpTransfer, WindowLog,
};
use crate::{FlowId, NodeId, TcpFlowId, units};
use engine::{Packet, Time};
use serde::Deserialize;
use std::net::{IpAddr, Ipv6Addr};

/// A modelled host's request to join a multicast group, or to leave it, at some time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// The host.
    pub host: String,
    /// The multicast group.
    pub group: IpAddr,
    /// The sources that it wants from then on, in place of former ones; the default filter leaves the group.
    pub filter: GroupFilter,
    /// The version of IGMP or MLD that the host uses; `None` leaves it as it is (at first the latest).
    pub version: Option<MembershipVersion>,
    /// The time at which the filter changes; `None` is now.
    #[serde(default, deserialize_with = "units::deserialize_some")]
    pub at_ps: Option<Time>,
}

/// Adding traffic.
impl Network {
    /// Makes a modelled host join or leave a multicast group, and report the change by IGMP or MLD. From the first call
    /// on, each host of the network is a member only of the groups that it has joined. Fails if the host is unknown,
    /// the time is in the past, or the group, the sources or the version do not fit together.
    pub fn join(&mut self, join: &Join) -> Result<(), NetError> {
        let at_ps = join.at_ps.unwrap_or(self.now_ps());
        self.check_not_past(at_ps)?;
        let (node, host) = self.host(&join.host)?;
        if join.group.is_ipv6() {
            ipv6_of(&join.host, host)?;
        }
        check_group(join.group)?;
        let sources = &join.filter.sources;
        if sources.len() > MAX_SOURCES {
            return Err(out_of_range("sources", format!("at most {MAX_SOURCES}")));
        }
        let same_family = |it: &IpAddr| it.is_ipv6() == join.group.is_ipv6();
        if !sources
            .iter()
            .all(|it| same_family(it) && !it.is_multicast())
        {
            return Err(out_of_range("sources", "stations of the group's family"));
        }
        if join
            .version
            .is_some_and(|it| it.is_mld() != join.group.is_ipv6())
        {
            return Err(out_of_range(
                "version",
                "one of IGMP for IPv4, of MLD for IPv6",
            ));
        }
        if !self.traffic.has_memberships {
            self.traffic.has_memberships = true;
            let hosts: Vec<NodeId> = self.hosts().map(|(node, _)| node).collect();
            for host in hosts {
                self.begin_memberships(host);
            }
        }
        let Network { nodes, medium, .. } = self;
        if let Some((host, own)) = nodes[node.0 as usize].get_mut::<Host>()
            && let Some(memberships) = &mut host.memberships
        {
            if let Some(version) = join.version {
                let refused = |expected| out_of_range("version", expected);
                memberships.speak(version).map_err(refused)?;
            }
            memberships.plan(at_ps, join.group, join.filter.clone());
            host.wake_for_memberships(own, medium);
        }
        self.visits.network_changed();
        Ok(())
    }

    pub(super) fn begin_memberships(&mut self, host: NodeId) {
        let name = format!("memberships of {}", self.node_name(host));
        let draws = Stream::named(self.medium.seed, &name);
        if let Some((host, _)) = self.node_mut(host).get_mut::<Host>() {
            host.memberships = Some(Box::new(Memberships::new(draws)));
        }
    }

    /// Starts a UDP stream of a modelled host, and returns its flow. Fails if a host is unknown, the destination has no
    /// route, the start is in the past, or a parameter is out of range.
    pub fn add_udp_stream(&mut self, stream: &UdpStream) -> Result<FlowId, NetError> {
        self.check_not_past(stream.start_ps)?;
        let (source, host) = self.host(&stream.source)?;
        let destination = self.destination((&stream.source, host), &stream.destination)?;
        let id = FlowId(self.traffic.flows.len() as u32);
        let draws = || Stream::named(self.medium.seed, &format!("flow{}", id.0));
        let flow = Flow::udp(id, (source, host), destination, stream, draws)?;
        Ok(self.start_flow(id, flow))
    }

    /// Starts pings of a modelled host, and returns their flow. Fails if a host is unknown, the destination has no
    /// route, the start is in the past, or a parameter is out of range.
    pub fn add_ping(&mut self, ping: &Ping) -> Result<FlowId, NetError> {
        self.check_not_past(ping.start_ps)?;
        let (source, host) = self.host(&ping.source)?;
        let (_, addresses, way) = self.destination((&ping.source, host), &ping.destination)?;
        let identifier = u16::try_from(host.pings.len())
            .map_err(|_| out_of_range("pings of one host", "at most 65536"))?;
        let flow = Flow::ping(identifier, (source, host), (addresses, way), ping)?;
        let id = FlowId(self.traffic.flows.len() as u32);
        if let Some((host, _)) = self.node_mut(source).get_mut::<Host>() {
            host.pings.push(id);
        }
        Ok(self.start_flow(id, flow))
    }

    /// Ends a UDP stream or pings at the present time: no further packet is sent. Fails if there is no such flow.
    pub fn end_flow(&mut self, flow: FlowId) -> Result<(), NetError> {
        let now_ps = self.now_ps();
        let ended = self.traffic.flows.get_mut(flow.0 as usize);
        ended.ok_or(NetError::UnknownFlow(flow.0))?.end(now_ps);
        Ok(())
    }

    /// Schedules a TCP connection between two modelled hosts, and returns its id. Fails if a host is unknown or has no
    /// route to the other, the start is in the past, or a parameter is out of range.
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
            let (_, addresses, way) = self.destination((name, host), &peer)?;
            Ok(Address {
                node,
                mac: host.card(way.port).mac,
                addresses,
                way,
                port,
            })
        });
        let (client, server) = (client?, server?);
        let id = TcpFlowId(self.traffic.tcp_flows.len() as u32);
        let draws = Stream::named(self.medium.seed, &format!("tcp{}", id.0));
        let flow = TcpFlow::new(transfer, client, server, draws)?;
        let sides = [
            (client, server, Side::Client),
            (server, client, Side::Server),
        ];
        for (end, peer, side) in sides {
            if matches!(end.way.hop, Hop::Asked(_)) {
                self.make_resolve(end.node);
            }
            let endpoint = EndpointId::new(id, side);
            let Some((host, _)) = self.node_mut(end.node).get_mut::<Host>() else {
                continue;
            };
            if !host.add_connection(end.addresses, end.port, peer.port, endpoint) {
                return Err(NetError::Refused(format!(
                    "{} and {} have a connection with these ports already",
                    transfer.client, transfer.server
                )));
            }
            if flow.uses_telemetry() {
                host.take_telemetry();
            }
        }
        let event = Timer::Application(id).event(client.node);
        self.medium.scheduler.push(transfer.start_ps, event);
        self.traffic.tcp_flows.push(flow);
        self.visits.network_changed();
        Ok(id)
    }

    fn start_flow(&mut self, id: FlowId, flow: Flow) -> FlowId {
        if let Some(due_ps) = flow.due_ps() {
            let event = Event::Send { flow: id };
            self.medium.scheduler.push(due_ps, event);
        }
        if matches!(flow.way.hop, Hop::Asked(_)) {
            self.make_resolve(flow.source);
        }
        self.traffic.flows.push(flow);
        self.visits.network_changed();
        id
    }

    fn host(&self, name: &str) -> Result<(NodeId, &Host), NetError> {
        let id = self.node_id(name)?;
        match self.node(id).get() {
            Some(host) => Ok((id, host)),
            None => Err(NetError::WrongKind {
                node: name.to_owned(),
                expected: "a modelled host",
            }),
        }
    }

    /// Resolves the destination of a flow from the host `source`, whose name is `name`. Returns the host that has the
    /// destination's address (`None` if no modelled host has it), the source and destination address of packets, and
    /// their port and next hop. Fails if there is no such host or no route.
    fn destination(
        &self,
        (name, source): (&str, &Host),
        destination: &Destination,
    ) -> Result<(Option<NodeId>, Addresses, Way), NetError> {
        let owner = |address: IpAddr| {
            let owner = self.hosts().find(|(_, host)| host.has(address));
            owner.map(|(node, _)| node)
        };
        let (node, address) = match destination {
            Destination::Host(peer) => {
                let (node, host) = self.host(peer)?;
                (
                    Some(node),
                    source.address_of(host, |card| Some(card.ipv4.into())),
                )
            }
            Destination::HostIpv6(peer) => {
                let (node, host) = self.host(peer)?;
                ipv6_of(peer, host)?;
                let ipv6 = |card: &Card| card.ipv6.map(|own| own.address.into());
                (Some(node), source.address_of(host, ipv6))
            }
            Destination::Ipv4(address) => (owner((*address).into()), Some((*address).into())),
            Destination::Ipv6(address) => (owner((*address).into()), Some((*address).into())),
        };
        let no_route =
            || NetError::Refused(format!("host {name} has no route to this destination"));
        let address = address.ok_or_else(no_route)?;
        if address.is_ipv6() {
            ipv6_of(name, source)?;
        }
        let way = source.way_to(address).ok_or_else(no_route)?;
        let addresses = source.addresses_to(way, address).ok_or_else(no_route)?;
        Ok((node, addresses, way))
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = (NodeId, &Host)> {
        let nodes = self.nodes.iter();
        nodes.filter_map(|node| Some((node.state.id, node.get()?)))
    }

    /// Sends a frame unchanged from port 0 of a host or interface node at the present time; a node that is down loses
    /// it. Fails for a switch, or if there is no such node.
    pub fn send_frame(&mut self, node: &str, frame: &[u8]) -> Result<(), NetError> {
        let id = self.node_id(node)?;
        if self.node(id).is::<SwitchNode>() {
            return Err(NetError::WrongKind {
                node: node.to_owned(),
                expected: "a host; use packet_out for switches",
            });
        }
        let own = &mut self.nodes[id.0 as usize].state;
        if own.up {
            self.medium.transmit(own, 0, Packet::new(frame));
        } else {
            self.medium.lose(own, 1);
        }
        Ok(())
    }
}

/// Reading results.
impl Network {
    /// Returns the log of the packets that a flow has sent. Fails if there is no such flow, or it keeps no log.
    pub fn sent(&self, flow: FlowId) -> Result<&SentLog, NetError> {
        self.traffic.flow(flow)?.record.sent_log(flow)
    }

    /// Returns the log of a flow's packets that have arrived at its destination; for pings, of the replies at the
    /// source. The log is empty for a stream to an address that no modelled host has, such as a multicast group's: use
    /// [`Network::received_at`]. Fails if there is no such flow, or it keeps no log.
    pub fn received(&self, flow: FlowId) -> Result<&ReceivedLog, NetError> {
        let Flow {
            record, receiver, ..
        } = self.traffic.flow(flow)?;
        record.received_log(flow, *receiver)
    }

    /// Returns the log of a flow's packets that have arrived at a host. Fails if there is no such flow or host, or the
    /// flow keeps no log.
    pub fn received_at(&self, flow: FlowId, host: &str) -> Result<&ReceivedLog, NetError> {
        let record = &self.traffic.flow(flow)?.record;
        record.received_log(flow, Some(self.host(host)?.0))
    }

    /// Returns the statistics of a flow's packets on the way to its destination (for pings, there and back): losses,
    /// latencies, order. Fails if there is no such flow.
    pub fn flow_statistics(&self, flow: FlowId) -> Result<FlowStatistics, NetError> {
        let flow = self.traffic.flow(flow)?;
        Ok(flow.record.statistics(flow.receiver, flow.interval_ps()))
    }

    /// Returns the statistics of a flow's packets on the way to one host, such as a member of the multicast group to
    /// which it sends. Fails if there is no such flow or host.
    pub fn flow_statistics_at(&self, flow: FlowId, host: &str) -> Result<FlowStatistics, NetError> {
        let (flow, node) = (self.traffic.flow(flow)?, self.host(host)?.0);
        Ok(flow.record.statistics(Some(node), flow.interval_ps()))
    }

    /// Returns the counters of the packets of a multicast group that have arrived at a host. Fails if the host is
    /// unknown, the group cannot be joined, or no host in the network has joined any group yet.
    pub fn group_statistics(&self, host: &str, group: IpAddr) -> Result<GroupStatistics, NetError> {
        check_group(group)?;
        let memberships = self.host(host)?.1.memberships.as_ref();
        let refused = || NetError::Refused("no host has joined a group".to_owned());
        Ok(memberships.ok_or_else(refused)?.statistics(group))
    }

    /// Returns the statistics of both ends of a TCP connection. Fails if there is no such connection.
    pub fn tcp_statistics(&self, flow: TcpFlowId) -> Result<TcpFlowStatistics, NetError> {
        Ok(self.traffic.tcp_flow(flow)?.statistics())
    }

    /// Returns the goodput of a TCP connection: the new bytes that arrived in order at its server, in bins of the
    /// configured width. The last bin is the last one in which bytes arrived. Fails if there is no such connection.
    pub fn tcp_goodput(&self, flow: TcpFlowId) -> Result<&[u64], NetError> {
        Ok(self.traffic.tcp_flow(flow)?.goodput())
    }

    /// Returns the log of the congestion window of a TCP connection's client over time. Fails if there is no such
    /// connection, or it was not configured to log its window.
    pub fn tcp_window(&self, flow: TcpFlowId) -> Result<&WindowLog, NetError> {
        self.traffic.tcp_flow(flow)?.window().ok_or_else(|| {
            let number = flow.0;
            NetError::Refused(format!(
                "TCP flow {number} keeps no log of its window: that is there with log_window only"
            ))
        })
    }

    /// Returns the number of packets that claim to belong to a flow and reached a host damaged. They are in no log.
    /// Fails if there is no such flow.
    pub fn corrupted(&self, flow: FlowId) -> Result<u64, NetError> {
        Ok(self.traffic.flow(flow)?.corrupted)
    }
}

fn check_group(group: IpAddr) -> Result<(), NetError> {
    match is_routed_group(group) {
        true => Ok(()),
        false => Err(out_of_range(
            "group",
            "a multicast address that routers forward",
        )),
    }
}

/// Returns the first IPv6 address of a host, whose name is `name`. Fails if it has none.
fn ipv6_of(name: &str, host: &Host) -> Result<Ipv6Addr, NetError> {
    let cards = &host.settings.cards;
    let address = cards.iter().find_map(|card| Some(card.ipv6?.address));
    address.ok_or_else(|| NetError::Refused(format!("host {name} has no IPv6 address")))
}
