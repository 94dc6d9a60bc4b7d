//! The ways of a host's packets: its network cards, the next hop towards an address, and how its MAC address is found.
//!
//! A host has the addresses of all its cards on each of them for IPv4, as Linux has (RFC 1122, 3.3.4.2: the weak model), and asks and
//! answers for those of the card alone in IPv6.

use super::{Host, Ipv6Interface, Received};
use crate::addresses::{Addresses, Hop, Way};
use crate::medium::Medium;
use crate::membership::group_mac;
use crate::neighbours::{Due, Heard, Sending};
use crate::node::NodeState;
use crate::observer::DropReason;
use engine::{Packet, Time};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::neighbour_discovery::{self, ALL_NODES, Kind, solicited_node};
use wire::{MacAddress, arp, ethernet, ipv6, vlan};

/// A host's network card. Its position in the list of cards is its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its MAC address.
    pub mac: MacAddress,
    /// Its address.
    pub ipv4: Ipv4Addr,
    /// Length of its subnet's prefix.
    pub prefix_len: u8,
    /// Its IPv6 address, if it has one.
    pub ipv6: Option<Ipv6Interface>,
}

/// The next hop of a default route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gateway {
    /// The station with this MAC address, on the first card.
    Mac(MacAddress),
    /// The neighbour with this IP address.
    Address(IpAddr),
}

/// Configuration of a modelled host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSettings {
    /// Its network cards, one at least.
    pub cards: Vec<Card>,
    /// The default routes for IPv4 and IPv6.
    pub gateways: [Option<Gateway>; 2],
    /// Neighbours whose MAC addresses the host knows permanently.
    pub neighbours: Vec<(IpAddr, MacAddress)>,
    /// The VLAN of all its frames.
    pub vlan: Option<u16>,
}

/// What a message of ARP or neighbour discovery means to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The neighbour whose MAC address it contains, that address, and the kind of message.
    pub(crate) heard: Option<(IpAddr, MacAddress, Heard)>,
    /// The frame that answers it.
    pub(crate) answer: Option<Vec<u8>>,
    /// False if it concerned another station.
    pub(crate) is_own: bool,
}

impl Card {
    fn has_v4_in_subnet(&self, address: Ipv4Addr) -> bool {
        let mask = u32::MAX
            .checked_shl(32 - u32::from(self.prefix_len))
            .unwrap_or(0);
        (u32::from(address) ^ u32::from(self.ipv4)) & mask == 0
    }

    /// Returns true if an address is in one of the card's subnets.
    pub(crate) fn has_in_subnet(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.has_v4_in_subnet(address),
            IpAddr::V6(address) => self.ipv6.is_some_and(|own| {
                let mask = u128::MAX
                    .checked_shl(128 - u32::from(own.prefix_len))
                    .unwrap_or(0);
                (u128::from(address) ^ u128::from(own.address)) & mask == 0
            }),
        }
    }

    /// Returns true if an address is one of the card's own.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => address == self.ipv4,
            IpAddr::V6(address) => self.ipv6.is_some_and(|own| own.address == address),
        }
    }

    /// Builds the Ethernet header of a frame from this network card to `destination`.
    pub(crate) fn ethernet(&self, destination: MacAddress, ethertype: u16) -> ethernet::Header {
        ethernet::Header {
            destination,
            source: self.mac,
            ethertype,
        }
    }
}

/// Routes to destinations.
impl Host {
    /// Returns the network card on a port; the first card if the port has none.
    pub(crate) fn card(&self, port: u32) -> &Card {
        let cards = &self.settings.cards;
        cards.get(port as usize).unwrap_or(&cards[0])
    }

    /// Returns the port of the first card in whose subnet an address is; `None` if there is none.
    pub(crate) fn port_towards(&self, address: IpAddr) -> Option<u32> {
        let cards = &self.settings.cards;
        let at = cards.iter().position(|card| card.has_in_subnet(address));
        at.map(|at| at as u32)
    }

    /// Returns true if an address is one of the host's own.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.settings.cards.iter().any(|card| card.has(address))
    }

    /// Returns true if the host's packets need nothing but to be sent: it has one card, no VLAN, and no next hop whose
    /// MAC address must be found first.
    pub(crate) fn is_plain(&self) -> bool {
        !self.resolves && self.settings.vlan.is_none() && self.settings.cards.len() == 1
    }

    /// Returns true if the host has a gateway with an IP address whose MAC address is not configured.
    pub(super) fn asks_for_gateway(&self) -> bool {
        let gateways = self.settings.gateways.into_iter().flatten();
        gateways.into_iter().any(|gateway| match gateway {
            Gateway::Mac(_) => false,
            Gateway::Address(address) => self.known(address).is_none(),
        })
    }

    /// Returns the IP addresses of all cards, each with its prefix length: first IPv4, then IPv6.
    pub(crate) fn addresses(&self) -> Vec<(IpAddr, u8)> {
        let cards = self.settings.cards.iter();
        let v4 = cards.clone().map(|it| (it.ipv4.into(), it.prefix_len));
        let v6 = cards.filter_map(|card| card.ipv6);
        v4.chain(v6.map(|own| (own.address.into(), own.prefix_len)))
            .collect()
    }

    /// Returns the peer's address to which this host sends. `of` returns the candidate of each of the peer's cards: the
    /// first one in a subnet of this host is chosen, else the first one. Returns `None` if there is no candidate.
    pub(crate) fn address_of(
        &self,
        peer: &Host,
        of: impl Fn(&Card) -> Option<IpAddr>,
    ) -> Option<IpAddr> {
        let all = || peer.settings.cards.iter().filter_map(&of);
        let near = all().find(|&address| self.port_towards(address).is_some());
        near.or_else(|| all().next())
    }

    /// Returns the port and next hop of packets to an address; `None` if there is no route.
    pub(crate) fn way_to(&self, address: IpAddr) -> Option<Way> {
        if address.is_multicast() {
            let hop = Hop::Known(group_mac(address));
            return Some(Way { port: 0, hop });
        }
        if let Some(port) = self.port_towards(address) {
            return Some(self.way_by(port, address));
        }
        match self.settings.gateways[usize::from(address.is_ipv6())]? {
            Gateway::Mac(mac) => Some(Way {
                port: 0,
                hop: Hop::Known(mac),
            }),
            Gateway::Address(gateway) => {
                let port = self.port_towards(gateway).unwrap_or(0);
                Some(self.way_by(port, gateway))
            }
        }
    }

    fn way_by(&self, port: u32, neighbour: IpAddr) -> Way {
        let hop = match self.known(neighbour) {
            Some(mac) => Hop::Known(mac),
            None if self.has(neighbour) => Hop::Known(self.card(port).mac),
            None => Hop::Asked(neighbour),
        };
        Way { port, hop }
    }

    /// Returns the configured MAC address of a neighbour; `None` if there is none.
    fn known(&self, address: IpAddr) -> Option<MacAddress> {
        let mut known = self.settings.neighbours.iter();
        known.find(|(it, _)| *it == address).map(|(_, mac)| *mac)
    }

    /// Returns the port and next hop of an answer to the address `to`, whose request came in at `port` from the MAC
    /// address `mac`. A host that shares its subnets with no other host answers to `mac`, since whatever sent the
    /// request is part of a program; other hosts look up the route. Returns `None` if there is no route.
    pub(super) fn way_back(&self, port: u32, mac: MacAddress, to: IpAddr) -> Option<Way> {
        if !self.resolves && self.port_towards(to).is_some() {
            let hop = Hop::Known(mac);
            return Some(Way { port, hop });
        }
        self.way_to(to)
    }

    /// Returns the source and destination of packets to the address `to`: the source is the address of the card at the
    /// way's port. Returns `None` if the host has no address of that IP version.
    pub(crate) fn addresses_to(&self, way: Way, to: IpAddr) -> Option<Addresses> {
        let card = self.card(way.port);
        match to {
            IpAddr::V4(to) => Some(Addresses::V4(card.ipv4, to)),
            IpAddr::V6(to) => {
                // A card without an IPv6 address sends from that of another, RFC 6724's rule 5 left aside.
                let mut others = self.settings.cards.iter().filter_map(|card| card.ipv6);
                let own = card.ipv6.or_else(|| others.next())?;
                Some(Addresses::V6(own.address, to))
            }
        }
    }
}

/// Sending packets.
impl Host {
    /// Sends a packet to its next hop, or stores it until the next hop's MAC address is known. Counts packets that are
    /// dropped for lack of room. The host must be up.
    pub(crate) fn send(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        way: Way,
        packet: Packet,
    ) {
        let Hop::Asked(neighbour) = way.hop else {
            return self.put(own, medium, way.port, packet);
        };
        let now_ps = medium.now_ps();
        match (self.neighbours).send(now_ps, neighbour, way.port, packet) {
            Sending::To {
                mac,
                mut packet,
                news,
            } => {
                packet.stored_mut()[..6].copy_from_slice(&mac.0);
                self.put(own, medium, way.port, packet);
                if news {
                    self.attend(own, medium);
                }
            }
            Sending::Waits(dropped) => {
                if let Some(packet) = dropped {
                    unresolved(own, medium, way.port, 1);
                    medium.pool.take_back(packet);
                }
                self.attend(own, medium);
            }
        }
    }

    /// Passes a frame to the link at a port, with the tag of the host's VLAN if it has one.
    pub(crate) fn put(
        &self,
        own: &mut NodeState,
        medium: &mut Medium,
        port: u32,
        mut packet: Packet,
    ) {
        if let Some(vlan_id) = self.settings.vlan {
            let mut head = packet.stored()[..12].to_vec();
            head.extend_from_slice(&ethernet::ETHERTYPE_VLAN.to_be_bytes());
            head.extend_from_slice(&vlan_id.to_be_bytes());
            packet.replace_front(12, &head);
        }
        medium.transmit(own, port, packet);
    }

    /// Sends the requests for neighbours' MAC addresses that are due, drops packets to neighbours that did not answer,
    /// and schedules an event for the next time at which something is due.
    pub(crate) fn attend(&mut self, own: &mut NodeState, medium: &mut Medium) {
        let now_ps = medium.now_ps();
        for due in self.neighbours.due(now_ps) {
            match due {
                Due::Ask(address, port, to) => {
                    if let Some(frame) = self.question(address, port, to) {
                        self.put(own, medium, port, Packet::new(&frame));
                    }
                }
                Due::Drop(port, packets) => {
                    unresolved(own, medium, port, packets.len() as u64);
                    for packet in packets {
                        medium.pool.take_back(packet);
                    }
                }
            }
        }
        if self.neighbours.wake_ps <= now_ps {
            self.neighbours.wake_ps = Time::NEVER;
        }
        if let Some(due_ps) = self.neighbours.due_ps()
            && due_ps < self.neighbours.wake_ps
        {
            self.neighbours.wake_ps = due_ps;
            let event = super::Timer::Neighbours.event(own.id);
            medium.scheduler.push(due_ps, event);
        }
    }

    /// Builds the frame of an ARP request or neighbour solicitation for an IP address. If `to` is given, it is sent
    /// to that MAC address only; otherwise to all stations (ARP) or to the solicited-node multicast group (IPv6).
    /// Returns `None` if the target is an IPv6 address and the card has none, and if a message cannot be encoded.
    fn question(&self, address: IpAddr, port: u32, to: Option<MacAddress>) -> Option<Vec<u8>> {
        let card = self.card(port);
        let mut frame = Vec::new();
        let emitted = match address {
            IpAddr::V4(target_ipv4) => {
                let request = arp::Message {
                    operation: arp::Operation::Request,
                    sender_mac: card.mac,
                    sender_ipv4: card.ipv4,
                    target_mac: MacAddress::default(),
                    target_ipv4,
                };
                let to = to.unwrap_or(MacAddress::BROADCAST);
                card.ethernet(to, ethernet::ETHERTYPE_ARP)
                    .emit(&mut frame)
                    .and_then(|()| request.emit(&mut frame))
            }
            IpAddr::V6(target) => {
                let source = card.ipv6?.address;
                let group = solicited_node(target);
                let (mac, destination) = match to {
                    Some(mac) => (mac, target),
                    None => (group_mac(group.into()), group),
                };
                let message = neighbour_discovery::Message {
                    kind: Kind::Solicitation,
                    target,
                    link_layer: Some(card.mac),
                };
                card.ethernet(mac, ethernet::ETHERTYPE_IPV6)
                    .emit(&mut frame)
                    .and_then(|()| message.emit(source, destination, &mut frame))
            }
        };
        emitted.ok().map(|()| frame)
    }
}

/// Learning and answering neighbours' addresses.
impl Host {
    /// Handles what an ARP or neighbour discovery message at a port means to the host: learns the neighbour's MAC
    /// address, sends the packets that waited for it, and sends the answer. Returns false if the message does not
    /// concern the host.
    pub(crate) fn take_told(
        &mut self,
        own: &mut NodeState,
        medium: &mut Medium,
        port: u32,
        told: Told,
    ) -> bool {
        let mut concerns = told.answer.is_some();
        if let Some((address, mac, heard)) = told.heard
            && self.resolves
            && self.listens_to(address, port)
        {
            concerns |= self.neighbours.knows(address);
            let now_ps = medium.now_ps();
            for mut packet in self.neighbours.heard(now_ps, address, (mac, port), heard) {
                packet.stored_mut()[..6].copy_from_slice(&mac.0);
                self.put(own, medium, port, packet);
            }
            self.attend(own, medium);
        }
        if let Some(answer) = told.answer {
            self.put(own, medium, port, Packet::new(&answer));
        }
        concerns
    }

    /// Returns true if the cache may learn an address as that of a neighbour behind a port: it is in the port's subnet
    /// or the gateway, not the host's own, and not configured.
    fn listens_to(&self, address: IpAddr, port: u32) -> bool {
        let is_gateway = self.settings.gateways[usize::from(address.is_ipv6())]
            == Some(Gateway::Address(address));
        !self.has(address)
            && self.known(address).is_none()
            && (is_gateway || self.port_towards(address) == Some(port))
    }

    pub(super) fn receive_arp<'a>(&self, port: u32, payload: &'a [u8]) -> Received<'a> {
        let message = arp::View::new(payload).and_then(|view| arp::Message::parse(&view));
        let message = match message {
            Err(wire::Error::Truncated) => return Received::Corrupt(None),
            Err(_) => return Received::Other,
            Ok(message) => message,
        };
        let is_own = self.has(message.target_ipv4.into());
        let is_request = message.operation == arp::Operation::Request;
        let heard = match (is_request, is_own) {
            (true, true) => Heard::Asking,
            (false, true) => Heard::Answer { overrides: true },
            // RFC 826 merges what it hears by the way, such as gratuitous ARP.
            (_, false) => Heard::Telling { overrides: true },
        };
        // RFC 5227: a probe has no sender.
        let sender = (!message.sender_ipv4.is_unspecified()).then_some(message.sender_ipv4);
        Received::Told(Told {
            heard: sender.map(|sender| (sender.into(), message.sender_mac, heard)),
            answer: (is_own && is_request)
                .then(|| self.arp_reply(port, &message))
                .flatten(),
            is_own,
        })
    }

    fn arp_reply(&self, port: u32, request: &arp::Message) -> Option<Vec<u8>> {
        let card = self.card(port);
        let reply = arp::Message {
            operation: arp::Operation::Reply,
            sender_mac: card.mac,
            sender_ipv4: request.target_ipv4,
            target_mac: request.sender_mac,
            target_ipv4: request.sender_ipv4,
        };
        let mut frame = Vec::with_capacity(ethernet::Header::LEN + arp::Message::LEN);
        card.ethernet(request.sender_mac, ethernet::ETHERTYPE_ARP)
            .emit(&mut frame)
            .and_then(|()| reply.emit(&mut frame))
            .ok()
            .map(|()| frame)
    }

    /// Interprets a neighbour solicitation or advertisement that came in at a port from the MAC address `from`. Returns
    /// `None` if the packet is something else.
    pub(super) fn receive_discovery<'a>(
        &self,
        port: u32,
        from: MacAddress,
        packet: &ipv6::View<'a>,
    ) -> Option<Received<'a>> {
        let kind = packet.payload().first().copied();
        if packet.next_header() != ipv6::NEXT_HEADER_ICMPV6 || !matches!(kind, Some(135 | 136)) {
            return None;
        }
        let message = match neighbour_discovery::Message::parse(packet) {
            Ok(message) => message,
            Err(wire::Error::Checksum | wire::Error::Truncated) => {
                return Some(Received::Corrupt(None));
            }
            Err(_) => return Some(Received::Other),
        };
        let told = match message.kind {
            Kind::Solicitation => {
                let is_own = self.card(port).has(message.target.into());
                let source = packet.source();
                Told {
                    heard: message
                        .link_layer
                        .filter(|_| is_own)
                        .map(|mac| (source.into(), mac, Heard::Asking)),
                    answer: is_own
                        .then(|| self.advertisement(port, (source, from), &message))
                        .flatten(),
                    is_own,
                }
            }
            Kind::Advertisement {
                solicited,
                overrides,
                ..
            } => {
                let heard = match solicited {
                    true => Heard::Answer { overrides },
                    false => Heard::Telling { overrides },
                };
                let mac = message.link_layer;
                Told {
                    heard: mac.map(|mac| (message.target.into(), mac, heard)),
                    answer: None,
                    is_own: true,
                }
            }
        };
        Some(Received::Told(told))
    }

    fn advertisement(
        &self,
        port: u32,
        (source, from): (Ipv6Addr, MacAddress),
        asked: &neighbour_discovery::Message,
    ) -> Option<Vec<u8>> {
        let card = self.card(port);
        // RFC 4861, 7.2.4: who has no address yet is answered by telling everybody.
        let solicited = !source.is_unspecified();
        let (to, mac) = match solicited {
            true => (source, asked.link_layer.unwrap_or(from)),
            false => (ALL_NODES, group_mac(ALL_NODES.into())),
        };
        let message = neighbour_discovery::Message {
            kind: Kind::Advertisement {
                router: false,
                solicited,
                overrides: true,
            },
            target: asked.target,
            link_layer: Some(card.mac),
        };
        let mut frame = Vec::new();
        card.ethernet(mac, ethernet::ETHERTYPE_IPV6)
            .emit(&mut frame)
            .and_then(|()| message.emit(asked.target, to, &mut frame))
            .ok()
            .map(|()| frame)
    }

    /// Returns a frame without its VLAN tag if the tag has the identifier `vlan_id`; `None` for any other frame.
    pub(crate) fn untagged(frame: &[u8], vlan_id: u16) -> Option<Vec<u8>> {
        let view = ethernet::View::new(frame).ok()?;
        let tag = vlan::View::new(view.payload()).ok()?;
        let is_own = view.ethertype() == ethernet::ETHERTYPE_VLAN && tag.vlan_id() == vlan_id;
        is_own.then(|| [&frame[..12], &frame[16..]].concat())
    }
}

/// Counts `packets` packets as dropped because there is no route, or no MAC address for their next hop, and reports
/// them to observers.
pub(crate) fn unresolved(own: &mut NodeState, medium: &mut Medium, port: u32, packets: u64) {
    own.counters.unresolved_drops += packets;
    medium.tell_dropped(own, Some(port), DropReason::Unresolved, packets);
}
