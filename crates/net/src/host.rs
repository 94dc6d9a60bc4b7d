//! The modelled host: a network card on each port, addresses, and answers to ARP, neighbour discovery and ICMP echo. It does not know
//! flows; it says what a frame is, builds the frames that it sends, and finds the way to their next hop.
//!
//! A packet in the host's subnet goes to the neighbour, and one that leaves it to the gateway. Their MAC addresses are configured, or found
//! by ARP and neighbour discovery (`ways`, with the cache of `neighbours`). Fragments are not reassembled. As long as nobody in the network
//! joins a multicast group, the host is a member of every IPv4 group and of no IPv6 group.
//!
//! A host may have IPv6 addresses besides. Packets with extension headers are for nobody it knows, MLD aside (`membership`).

mod ways;

use crate::addresses::{Addresses, Way, ipv4_header};
use crate::error::{NetError, out_of_range};
use crate::medium::Medium;
use crate::membership::Memberships;
use crate::neighbours::Neighbours;
use crate::node::NodeState;
use crate::scheduler::{Event, Token, Turn};
use crate::tcp_flow::{EndpointId, Key4, Key6, read_segment, read_telemetry};
use crate::{NodeId, TcpFlowId};
use engine::{Packet, Time};
use std::net::{Ipv4Addr, Ipv6Addr};
pub use ways::{Card, Gateway, HostSettings};
pub(crate) use ways::{Told, unresolved};
use wire::checksum::Sum;
use wire::int::Telemetry;
use wire::{Address, MacAddress, checksum, ethernet, icmp, icmpv4, icmpv6, int, ipv4, ipv6, udp};

/// The most network cards of a host.
const MOST_CARDS: usize = 256;

/// Configuration of a modelled host with one network card, whose gateway has a known MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Address of the card.
    pub mac: MacAddress,
    /// Address of the host.
    pub ipv4: Ipv4Addr,
    /// Length of its subnet's prefix.
    pub prefix_len: u8,
    /// The destination of packets that leave the subnet.
    pub gateway_mac: MacAddress,
    /// Its IPv6 address, if it has one.
    pub ipv6: Option<Ipv6Interface>,
}

impl From<HostConfig> for HostSettings {
    fn from(config: HostConfig) -> HostSettings {
        let card = Card {
            mac: config.mac,
            ipv4: config.ipv4,
            prefix_len: config.prefix_len,
            ipv6: config.ipv6,
        };
        HostSettings {
            cards: vec![card],
            gateways: [Some(Gateway::Mac(config.gateway_mac)); 2],
            ..HostSettings::default()
        }
    }
}

/// An IPv6 address in its subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Interface {
    /// The address.
    pub address: Ipv6Addr,
    /// Length of the subnet's prefix.
    pub prefix_len: u8,
}

/// The meaning of a frame that a host has received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received<'a> {
    /// A frame for another station or another IP address.
    NotAddressed,
    /// A frame with a wrong checksum or length; with the UDP payload as far as it can be found.
    Corrupt(Option<&'a [u8]>),
    /// A frame that the host answers at once with this frame, if it has a route for the answer (`Some`).
    Answer(Option<Way>, Vec<u8>),
    /// A message of ARP or neighbour discovery.
    Told(Told),
    /// The answer to a ping.
    EchoReply {
        identifier: u16,
        sequence: u16,
        payload: &'a [u8],
    },
    /// A UDP datagram; `known` is true if its payload was recognised as a stream's.
    Datagram { payload: &'a [u8], known: bool },
    /// A TCP segment, and the connection's end for which it is, if there is one.
    Segment {
        endpoint: Option<EndpointId>,
        segment: tcp::Segment,
        /// The data of the segment's INT headers.
        telemetry: Option<Box<Telemetry>>,
    },
    /// Any other frame.
    Other,
}

/// A modelled host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) settings: HostSettings,
    /// The cache of neighbours' MAC addresses, with the packets that wait for them.
    pub(crate) neighbours: Neighbours,
    /// True if the host must find out MAC addresses: another host is in one of its subnets, or a gateway's MAC address
    /// is not configured.
    pub(crate) resolves: bool,
    /// Ping flows of this host; the position is the ICMP identifier.
    pub(crate) pings: Vec<crate::FlowId>,
    /// Ends of TCP connections, by key.
    connections: Vec<(Key4, EndpointId)>,
    /// The same over IPv6, in a table of its own because these keys are longer.
    connections_v6: Vec<(Key6, EndpointId)>,
    /// True if some of its connections are sinks of INT headers.
    takes_telemetry: bool,
    /// Its multicast memberships, if any host of the network joins groups.
    pub(crate) memberships: Option<Box<Memberships>>,
}

/// The segment's own port and its peer's, the segment, and its INT headers.
type Taken = (u16, u16, tcp::Segment, Option<Box<Telemetry>>);

/// The timers of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A message of IGMP or MLD may be due.
    Memberships,
    /// A timer of the end of a TCP connection may have expired.
    Tcp(EndpointId),
    /// The application of a TCP connection has something to do.
    Application(TcpFlowId),
    /// A neighbour must be asked for, or given up.
    Neighbours,
}

impl Timer {
    /// Returns the scheduler's event that makes this timer of the host `node` expire.
    pub(crate) fn event(self, node: NodeId) -> Event {
        let (timer, value) = match self {
            Timer::Memberships => (0, 0),
            Timer::Tcp(endpoint) => (1, endpoint.number()),
            Timer::Application(flow) => (2, flow.0),
            Timer::Neighbours => (3, 0),
        };
        Event::Wake {
            node,
            turn: Turn::Source,
            token: Token { timer, value },
        }
    }

    /// Returns the timer that [`Timer::event`] encoded in a token.
    pub(crate) fn of(token: Token) -> Timer {
        match token.timer {
            0 => Timer::Memberships,
            1 => Timer::Tcp(EndpointId::of_number(token.value)),
            3 => Timer::Neighbours,
            _ => Timer::Application(TcpFlowId(token.value)),
        }
    }
}

impl Host {
    pub(crate) fn new(settings: HostSettings) -> Host {
        let mut host = Host {
            settings,
            neighbours: Neighbours::default(),
            resolves: false,
            pings: Vec::new(),
            connections: Vec::new(),
            connections_v6: Vec::new(),
            takes_telemetry: false,
            memberships: None,
        };
        host.resolves = host.asks_for_gateway();
        host
    }

    /// Checks the host's configuration. Fails if it breaks the rules of [`crate::Network::add_host`].
    pub(crate) fn check(&self) -> Result<(), NetError> {
        let settings = &self.settings;
        if settings.cards.is_empty() || settings.cards.len() > MOST_CARDS {
            return Err(out_of_range("cards", format!("from 1 to {MOST_CARDS}")));
        }
        for card in &settings.cards {
            if card.prefix_len > 32 {
                return Err(out_of_range("prefix_len", "at most 32"));
            }
            if let Some(ipv6) = card.ipv6 {
                if ipv6.prefix_len > 128 {
                    let what = "prefix length of the IPv6 address";
                    return Err(out_of_range(what, "at most 128"));
                }
                if ipv6.address.is_multicast() || ipv6.address.is_unspecified() {
                    return Err(out_of_range("IPv6 address", "the address of one station"));
                }
            }
        }
        let macs = settings.cards.iter().map(|card| card.mac);
        let known = settings.neighbours.iter().map(|(_, mac)| *mac);
        if macs
            .chain(known)
            .any(|mac| mac.is_multicast() || mac == MacAddress::default())
        {
            return Err(out_of_range("mac", "the address of one station"));
        }
        match settings.vlan {
            Some(vlan) if !(1..=4094).contains(&vlan) => {
                Err(out_of_range("vlan", "from 1 to 4094"))
            }
            _ => Ok(()),
        }
    }

    /// Sends the IGMP and MLD messages that are due, or counts them as lost if the host is down, and schedules an event
    /// for the next message.
    pub(crate) fn say_memberships(&mut self, own: &mut NodeState, medium: &mut Medium) {
        let Some(memberships) = &mut self.memberships else {
            return;
        };
        let now_ps = medium.now_ps();
        let card = self.settings.cards[0];
        let said = memberships.due(now_ps, (card.mac, card.ipv4));
        // An event that another one, earlier, took the place of finds nothing to do.
        if memberships.wake_ps <= now_ps {
            memberships.wake_ps = Time::NEVER;
        }
        for frame in said {
            match own.up {
                true => self.put(own, medium, 0, Packet::new(&frame)),
                false => medium.lose(own, 1),
            }
        }
        self.wake_for_memberships(own, medium);
    }

    /// Schedules an event for the time at which the next IGMP or MLD message is due, unless one is scheduled already
    /// for that time or before.
    pub(crate) fn wake_for_memberships(&mut self, own: &NodeState, medium: &mut Medium) {
        let Some(memberships) = &mut self.memberships else {
            return;
        };
        let due_ps = memberships.due_ps();
        if due_ps < memberships.wake_ps {
            memberships.wake_ps = due_ps;
            (medium.scheduler).push(due_ps, Timer::Memberships.event(own.id));
        }
    }

    /// Makes the host remove INT headers from TCP segments whose DSCP announces them.
    pub(crate) fn take_telemetry(&mut self) {
        self.takes_telemetry = true;
    }

    /// Registers the end of a TCP connection from `port` of this host to `peer_port` of the destination. Returns false,
    /// and changes nothing, if the host already has this connection.
    pub(crate) fn add_connection(
        &mut self,
        to: Addresses,
        port: u16,
        peer_port: u16,
        endpoint: EndpointId,
    ) -> bool {
        match to {
            Addresses::V4(_, peer) => insert(
                &mut self.connections,
                Key4::new(port, peer_port, peer),
                endpoint,
            ),
            Addresses::V6(_, peer) => insert(
                &mut self.connections_v6,
                Key6::new(port, peer_port, peer),
                endpoint,
            ),
        }
    }

    /// Parses a frame that came in at a port, and returns its meaning to this host. `recognise` returns the checksum's
    /// sum over a UDP payload that it knows, whose bytes then need not be summed.
    pub(crate) fn receive<'a>(
        &self,
        port: u32,
        frame: &'a [u8],
        recognise: impl FnOnce(&'a [u8]) -> Option<Sum>,
    ) -> Received<'a> {
        let Ok(ethernet) = ethernet::View::new(frame) else {
            return Received::Corrupt(None);
        };
        let to = ethernet.destination();
        if to != self.card(port).mac && !to.is_multicast() {
            return Received::NotAddressed;
        }
        match ethernet.ethertype() {
            ethernet::ETHERTYPE_ARP => self.receive_arp(port, ethernet.payload()),
            ethernet::ETHERTYPE_IPV4 => self.receive_ipv4(port, &ethernet, recognise),
            ethernet::ETHERTYPE_IPV6 if self.settings.cards.iter().any(|it| it.ipv6.is_some()) => {
                self.receive_ipv6(port, &ethernet, recognise)
            }
            _ => Received::Other,
        }
    }

    fn receive_ipv4<'a>(
        &self,
        port: u32,
        ethernet: &ethernet::View<'a>,
        recognise: impl FnOnce(&'a [u8]) -> Option<Sum>,
    ) -> Received<'a> {
        let Ok(packet) = ipv4::View::new(ethernet.payload()) else {
            return Received::Corrupt(None);
        };
        if !packet.checksum_is_valid() {
            return Received::Corrupt(datagram_payload(&packet));
        }
        let to = packet.destination();
        if !self.has(to.into()) && !to.is_multicast() && !to.is_broadcast() {
            return Received::NotAddressed;
        }
        if packet.is_fragment() {
            return Received::Other;
        }
        match packet.protocol() {
            ipv4::PROTOCOL_ICMP => self.receive_icmp((port, ethernet.source()), &packet),
            ipv4::PROTOCOL_UDP => receive_udp(packet.source(), to, packet.payload(), recognise),
            ipv4::PROTOCOL_TCP => {
                let (source, class) = (packet.source(), packet.traffic_class());
                let read = self.read(source, to, class, packet.payload());
                received_segment(read, &self.connections, |port, peer_port| {
                    Key4::new(port, peer_port, source)
                })
            }
            _ => Received::Other,
        }
    }

    fn receive_ipv6<'a>(
        &self,
        port: u32,
        ethernet: &ethernet::View<'a>,
        recognise: impl FnOnce(&'a [u8]) -> Option<Sum>,
    ) -> Received<'a> {
        let Ok(packet) = ipv6::View::new(ethernet.payload()) else {
            return Received::Corrupt(None);
        };
        if let Some(received) = self.receive_discovery(port, ethernet.source(), &packet) {
            return received;
        }
        let to = packet.destination();
        let is_taken = self.has(to.into()) || (to.is_multicast() && self.memberships.is_some());
        if !is_taken {
            return Received::NotAddressed;
        }
        match packet.next_header() {
            ipv6::NEXT_HEADER_ICMPV6 => self.receive_icmpv6((port, ethernet.source()), &packet),
            ipv4::PROTOCOL_UDP => receive_udp(packet.source(), to, packet.payload(), recognise),
            ipv4::PROTOCOL_TCP => {
                let (source, class) = (packet.source(), packet.traffic_class());
                let read = self.read(source, to, class, packet.payload());
                received_segment(read, &self.connections_v6, |port, peer_port| {
                    Key6::new(port, peer_port, source)
                })
            }
            _ => Received::Other,
        }
    }

    /// Parses a TCP segment between two addresses. Removes INT headers if the DSCP in the traffic class `class`
    /// announces them and the host supports them. Fails if a checksum or length is wrong.
    #[inline]
    fn read<A: Address>(
        &self,
        source: A,
        destination: A,
        class: u8,
        bytes: &[u8],
    ) -> Result<Taken, wire::Error> {
        if self.takes_telemetry && class >> 2 == int::DSCP {
            let (port, peer_port, segment, telemetry) =
                read_telemetry(source, destination, class, bytes)?;
            return Ok((port, peer_port, segment, Some(Box::new(telemetry))));
        }
        let (port, peer_port, segment) = read_segment(source, destination, class, bytes)?;
        Ok((port, peer_port, segment, None))
    }

    fn receive_icmp<'a>(&self, from: (u32, MacAddress), packet: &ipv4::View<'a>) -> Received<'a> {
        let Ok(view) = icmpv4::View::new(packet.payload()) else {
            return Received::Corrupt(None);
        };
        let (read, payload) = (icmpv4::Message::parse(&view), view.payload());
        let is_own = self.has(packet.destination().into());
        received_echo(read, payload, is_own, |reply| {
            self.echo_reply(from, packet, reply, payload)
        })
    }

    fn receive_icmpv6<'a>(&self, from: (u32, MacAddress), packet: &ipv6::View<'a>) -> Received<'a> {
        let Ok(view) = icmpv6::View::new(packet.payload()) else {
            return Received::Corrupt(None);
        };
        let (source, to) = (packet.source(), packet.destination());
        let (read, payload) = (icmpv6::Message::parse(&view, source, to), view.payload());
        received_echo(read, payload, self.has(to.into()), |reply| {
            self.echo_reply_v6(from, packet, reply, payload)
        })
    }

    fn echo_reply_v6<'a>(
        &self,
        (port, from): (u32, MacAddress),
        request: &ipv6::View<'_>,
        reply: icmpv6::Message,
        payload: &[u8],
    ) -> Received<'a> {
        let (own, to) = (request.destination(), request.source());
        let way = self.way_back(port, from, to.into());
        let (len, addresses) = (request.payload().len(), Addresses::V6(own, to));
        let mut frame = Vec::with_capacity(ethernet::Header::LEN + ipv6::Header::LEN + len);
        let emitted = self
            .ethernet(way, ethernet::ETHERTYPE_IPV6)
            .emit(&mut frame)
            .and_then(|()| {
                // As Linux does, the reply keeps the class of the request.
                let class = request.traffic_class();
                addresses.emit_header(class, ipv6::NEXT_HEADER_ICMPV6, len, &mut frame)
            })
            .and_then(|()| reply.emit(own, to, payload, &mut frame));
        emitted.map_or(Received::Other, |()| Received::Answer(way, frame))
    }

    fn echo_reply<'a>(
        &self,
        (port, from): (u32, MacAddress),
        request: &ipv4::View<'_>,
        reply: icmpv4::Message,
        payload: &[u8],
    ) -> Received<'a> {
        let way = self.way_back(port, from, request.source().into());
        let header = ipv4::Header {
            // As Linux does, the reply keeps the class of the request.
            traffic_class: request.traffic_class(),
            identification: request.identification(),
            ..ipv4_header(
                request.destination(),
                request.source(),
                ipv4::PROTOCOL_ICMP,
                request.payload().len(),
            )
        };
        let mut frame = Vec::with_capacity(ethernet::Header::LEN + request.total_len());
        let emitted = self
            .ethernet(way, ethernet::ETHERTYPE_IPV4)
            .emit(&mut frame)
            .and_then(|()| header.emit(&mut frame))
            .and_then(|()| reply.emit(payload, &mut frame));
        emitted.map_or(Received::Other, |()| Received::Answer(way, frame))
    }

    /// Builds the Ethernet header of an answer, whose `way` gives the card that sends it and the next hop.
    fn ethernet(&self, way: Option<Way>, ethertype: u16) -> ethernet::Header {
        let (port, mac) = way.map_or_else(Default::default, |way| (way.port, way.mac()));
        self.card(port).ethernet(mac, ethertype)
    }
}

/// Adds the end of a TCP connection to a sorted table. Returns false, and changes nothing, if the table already
/// contains the key.
fn insert<K: Copy + Ord>(table: &mut Vec<(K, EndpointId)>, key: K, endpoint: EndpointId) -> bool {
    match table.binary_search_by_key(&key, |(key, _)| *key) {
        Ok(_) => false,
        Err(at) => {
            table.insert(at, (key, endpoint));
            true
        }
    }
}

fn find<K: Copy + Ord>(table: &[(K, EndpointId)], key: K) -> Option<EndpointId> {
    let found = table.binary_search_by_key(&key, |(key, _)| *key);
    found.ok().map(|at| table[at].1)
}

/// Interprets an ICMP echo message of either IP version. A request is passed to `answer` if `is_own` is true: if it is
/// to an address of the host.
fn received_echo<'a, const REQUEST: u8, const REPLY: u8>(
    read: Result<icmp::Message<REQUEST, REPLY>, wire::Error>,
    payload: &'a [u8],
    is_own: bool,
    answer: impl FnOnce(icmp::Message<REQUEST, REPLY>) -> Received<'a>,
) -> Received<'a> {
    use icmp::Message::{EchoReply, EchoRequest};
    match read {
        Err(wire::Error::Checksum) => Received::Corrupt(None),
        Ok(EchoReply {
            identifier,
            sequence,
        }) => Received::EchoReply {
            identifier,
            sequence,
            payload,
        },
        Ok(EchoRequest {
            identifier,
            sequence,
        }) if is_own => answer(EchoReply {
            identifier,
            sequence,
        }),
        _ => Received::Other,
    }
}

/// Interprets a parsed TCP segment, and looks up its connection by the key that `key` makes of its own and its peer's
/// port.
fn received_segment<'a, K: Copy + Ord>(
    read: Result<Taken, wire::Error>,
    connections: &[(K, EndpointId)],
    key: impl FnOnce(u16, u16) -> K,
) -> Received<'a> {
    match read {
        Ok((port, peer_port, segment, telemetry)) => Received::Segment {
            endpoint: find(connections, key(port, peer_port)),
            segment,
            telemetry,
        },
        Err(_) => Received::Corrupt(None),
    }
}

fn receive_udp<'a, A: Address>(
    source: A,
    destination: A,
    datagram: &'a [u8],
    recognise: impl FnOnce(&'a [u8]) -> Option<Sum>,
) -> Received<'a> {
    let Ok(view) = udp::View::new(datagram) else {
        return Received::Corrupt(None);
    };
    let payload = view.payload();
    let sum = recognise(payload).filter(|_| view.checksum() != 0);
    let is_valid = match sum {
        None => view.checksum_is_valid(source, destination),
        Some(sum) => {
            let len = (udp::Header::LEN + payload.len()) as u16;
            let pseudo = A::pseudo_header_sum(source, destination, ipv4::PROTOCOL_UDP, len);
            let header = pseudo.bytes(&datagram[..udp::Header::LEN]);
            checksum::verifies(header.word(sum.folded()))
        }
    };
    match is_valid {
        true => Received::Datagram {
            payload,
            known: sum.is_some(),
        },
        false => Received::Corrupt(Some(payload)),
    }
}

/// Returns the payload of the UDP datagram in an IPv4 packet without checking checksums; `None` if the packet contains
/// none.
fn datagram_payload<'a>(packet: &ipv4::View<'a>) -> Option<&'a [u8]> {
    if packet.protocol() != ipv4::PROTOCOL_UDP {
        return None;
    }
    udp::View::new(packet.payload())
        .ok()
        .map(|view| view.payload())
}

#[cfg(test)]
mod tests;
