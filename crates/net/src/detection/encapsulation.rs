//! Frames of BFD control packets on a link: Ethernet, IPv4, UDP to port 3784 with a TTL of 255 (RFC 5881). It does not know sessions.
//!
//! Links between switches are unnumbered, and switches have no addresses. So a frame goes to the multicast address that RFC 7130 (section
//! 2.3) has for ends that do not know each other's, from a locally administered one, between link-local addresses: 169.254.0.1 at the end
//! of the link named first and 169.254.0.2 at the other. The traffic class is CS6, as other control traffic's.

use engine::Packet;
use std::net::Ipv4Addr;
use wire::{MacAddress, bfd, ethernet, ipv4, udp};

/// The destination of all control packets (RFC 7130).
const DESTINATION: MacAddress = MacAddress([0x01, 0x00, 0x5e, 0x90, 0x00, 0x01]);
const ETHERTYPE_IPV4: u16 = 0x0800;
const CLASS_CS6: u8 = 48 << 2;
/// The TTL of all control packets. One from farther away than the other end of the link has less (RFC 5881, section 5).
const TTL: u8 = 255;
/// The lowest source port (RFC 5881, section 4).
const FIRST_SOURCE_PORT: u16 = 49_152;

fn address(direction: u32) -> Ipv4Addr {
    Ipv4Addr::new(169, 254, 0, 1 + (direction & 1) as u8)
}

/// Builds the frame, with Ethernet, IPv4 and UDP headers, of a BFD control packet that is sent in a link's direction
/// number `direction`; the addresses encode that number. Fails if a value does not fit its field.
pub(crate) fn frame(header: &bfd::Header, direction: u32) -> Result<Packet, wire::Error> {
    let mut payload = Vec::with_capacity(bfd::Header::LEN);
    header.emit(&mut payload)?;
    let mut out = Vec::new();
    let [a, b, c, d] = direction.to_be_bytes();
    ethernet::Header {
        destination: DESTINATION,
        source: MacAddress([0x02, 0xbf, a, b, c, d]),
        ethertype: ETHERTYPE_IPV4,
    }
    .emit(&mut out)?;
    let (source, destination) = (address(direction), address(direction ^ 1));
    ipv4::Header {
        traffic_class: CLASS_CS6,
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        ttl: TTL,
        protocol: ipv4::PROTOCOL_UDP,
        source,
        destination,
        options: ipv4::Options::default(),
        payload_len: udp::Header::LEN + payload.len(),
    }
    .emit(&mut out)?;
    udp::Header {
        source_port: FIRST_SOURCE_PORT,
        destination_port: bfd::UDP_PORT,
    }
    .emit(source, destination, &payload, &mut out)?;
    Ok(Packet::new(&out))
}

/// Parses the BFD control packet in a frame. Returns `None` if the frame contains none, and an error if the packet is
/// damaged.
pub(crate) fn control_packet(frame: &[u8]) -> Option<Result<bfd::Header, wire::Error>> {
    let ethernet = ethernet::View::new(frame).ok()?;
    if ethernet.destination() != DESTINATION || ethernet.ethertype() != ETHERTYPE_IPV4 {
        return None;
    }
    let ip = ipv4::View::new(ethernet.payload()).ok()?;
    if ip.protocol() != ipv4::PROTOCOL_UDP || ip.ttl() != TTL {
        return None;
    }
    let datagram = udp::View::new(ip.payload()).ok()?;
    (datagram.destination_port() == bfd::UDP_PORT).then(|| {
        ipv4::Header::parse(&ip)?;
        udp::Header::parse(&datagram, ip.source(), ip.destination())?;
        bfd::Header::parse(&bfd::View::new(datagram.payload())?)
    })
}
