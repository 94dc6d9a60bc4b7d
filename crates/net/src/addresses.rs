//! Between which two addresses something goes, on which way, and the IP header that a modelled host writes for it. It does not know
//! hosts or flows.

use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::checksum::Sum;
use wire::{Address, MacAddress, ethernet, ipv4, ipv6};

/// Time to live, or hop limit, of packets that hosts send.
pub(crate) const TTL: u8 = 64;

/// Which version of IP traffic uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// IPv4.
    #[default]
    Ipv4,
    /// IPv6; both hosts need an address.
    Ipv6,
}

/// Source and destination of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addresses {
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
}

impl Addresses {
    pub(crate) fn family(self) -> Family {
        match self {
            Addresses::V4(..) => Family::Ipv4,
            Addresses::V6(..) => Family::Ipv6,
        }
    }

    /// Returns the EtherType of frames that carry packets between these addresses: IPv4's or IPv6's.
    #[inline]
    pub(crate) fn ethertype(self) -> u16 {
        match self {
            Addresses::V4(..) => ethernet::ETHERTYPE_IPV4,
            Addresses::V6(..) => ethernet::ETHERTYPE_IPV6,
        }
    }

    /// Appends the IP header of a packet with `payload_len` bytes of payload to `out`. `protocol` is the IPv4 protocol
    /// or IPv6 next header number. Fails with `OutOfRange` if the payload is too long.
    #[inline(always)]
    pub(crate) fn emit_header(
        self,
        traffic_class: u8,
        protocol: u8,
        payload_len: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), wire::Error> {
        match self {
            Addresses::V4(source, destination) => ipv4::Header {
                traffic_class,
                ..ipv4_header(source, destination, protocol, payload_len)
            }
            .emit(out),
            Addresses::V6(source, destination) => ipv6::Header {
                traffic_class,
                flow_label: 0,
                next_header: protocol,
                hop_limit: TTL,
                source,
                destination,
                payload_len,
            }
            .emit(out),
        }
    }

    /// Returns the sum over the pseudo header with which the packet's transport checksum begins. `len` is the number of
    /// bytes behind the IP header.
    pub(crate) fn pseudo_header_sum(self, protocol: u8, len: u16) -> Sum {
        match self {
            Addresses::V4(source, destination) => {
                Address::pseudo_header_sum(source, destination, protocol, len)
            }
            Addresses::V6(source, destination) => {
                Address::pseudo_header_sum(source, destination, protocol, len)
            }
        }
    }
}

/// The port and the next hop of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) port: u32,
    pub(crate) hop: Hop,
}

/// The MAC address of a next hop, or its IP address as long as the MAC address is looked up in the cache of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    Known(MacAddress),
    /// The MAC address is in the cache of neighbours, or found by ARP or neighbour discovery.
    Asked(IpAddr),
}

impl Way {
    /// Returns the MAC address of the next hop for a frame's destination field; zero if the cache of neighbours must
    /// fill it in when the frame is sent.
    pub(crate) fn mac(self) -> MacAddress {
        match self.hop {
            Hop::Known(mac) => mac,
            Hop::Asked(_) => MacAddress::default(),
        }
    }
}

/// Builds the IPv4 header of a packet with `payload_len` bytes of payload: traffic class 0, identification 0, "don't
/// fragment", TTL 64, no options.
#[inline(always)]
pub(crate) fn ipv4_header(
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    payload_len: usize,
) -> ipv4::Header {
    ipv4::Header {
        traffic_class: 0,
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        ttl: TTL,
        protocol,
        source,
        destination,
        options: ipv4::Options::default(),
        payload_len,
    }
}
