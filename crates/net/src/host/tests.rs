use super::*;
use crate::TcpFlowId;
use crate::addresses::TTL;
use proptest::prelude::*;
use wire::arp;
use wire::icmpv4::Message;

const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const GATEWAY: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xfe]);
const PEER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const HOST_IPV4: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 200);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 1);
const HOST_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const NEIGHBOUR_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0xc8);
const FAR_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);

fn config(prefix_len: u8) -> HostConfig {
    HostConfig {
        mac: HOST,
        ipv4: HOST_IPV4,
        prefix_len,
        gateway_mac: GATEWAY,
        ipv6: None,
    }
}

fn host(prefix_len: u8) -> Host {
    Host::new(config(prefix_len).into())
}

fn host_v6(prefix_len: u8) -> Host {
    let ipv6 = Some(Ipv6Interface {
        address: HOST_IPV6,
        prefix_len,
    });
    Host::new(HostConfig { ipv6, ..config(24) }.into())
}

fn frame(destination: MacAddress, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    let header = ethernet::Header {
        destination,
        source: PEER,
        ethertype,
    };
    header.emit(&mut frame).unwrap();
    frame.extend_from_slice(payload);
    frame
}

fn ipv4_frame(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = ipv4::Header {
        traffic_class: 0xb8,
        identification: 77,
        ..ipv4_header(source, destination, protocol, payload.len())
    };
    let mut packet = Vec::new();
    header.emit(&mut packet).unwrap();
    packet.extend_from_slice(payload);
    frame(HOST, ethernet::ETHERTYPE_IPV4, &packet)
}

fn echo_request(source: Ipv4Addr) -> Vec<u8> {
    let mut message = Vec::new();
    Message::EchoRequest {
        identifier: 5,
        sequence: 6,
    }
    .emit(b"payload", &mut message)
    .unwrap();
    ipv4_frame(source, HOST_IPV4, ipv4::PROTOCOL_ICMP, &message)
}

fn ipv6_frame(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    Addresses::V6(source, destination)
        .emit_header(0xb8, next_header, payload.len(), &mut packet)
        .unwrap();
    packet.extend_from_slice(payload);
    frame(HOST, ethernet::ETHERTYPE_IPV6, &packet)
}

fn echo_request_v6(source: Ipv6Addr) -> Vec<u8> {
    let mut message = Vec::new();
    icmpv6::Message::EchoRequest {
        identifier: 5,
        sequence: 6,
    }
    .emit(source, HOST_IPV6, b"payload", &mut message)
    .unwrap();
    ipv6_frame(source, HOST_IPV6, ipv6::NEXT_HEADER_ICMPV6, &message)
}

/// Builds a UDP datagram from port 1 to port 2 with a correct checksum.
fn udp_datagram<A: Address>(source: A, destination: A) -> Vec<u8> {
    let mut datagram = Vec::new();
    let header = udp::Header {
        source_port: 1,
        destination_port: 2,
    };
    header
        .emit(source, destination, b"some payload", &mut datagram)
        .unwrap();
    datagram
}

#[test]
fn ipv6_subnets() {
    for (prefix_len, neighbour, far) in [
        (64, true, false),
        (128, false, false),
        (127, false, false),
        (32, true, true),
        (0, true, true),
    ] {
        let host = host_v6(prefix_len);
        assert_eq!(
            host.port_towards(NEIGHBOUR_IPV6.into()).is_some(),
            neighbour,
            "/{prefix_len}"
        );
        assert_eq!(
            host.port_towards(FAR_IPV6.into()).is_some(),
            far,
            "/{prefix_len}"
        );
        assert!(host.port_towards(HOST_IPV6.into()).is_some());
    }
    assert!(host(24).port_towards(HOST_IPV6.into()).is_none());
}

/// Written by hand from RFC 4443, section 4.2: addresses exchanged, type 129, checksum less by 0x0100.
#[test]
fn pings_over_ipv6_are_answered_through_the_right_neighbour() {
    for (source, next_hop) in [(NEIGHBOUR_IPV6, PEER), (FAR_IPV6, GATEWAY)] {
        let request = echo_request_v6(source);
        let Received::Answer(_, answer) = host_v6(64).receive(0, &request, |_| None) else {
            panic!("no answer");
        };
        let mut expected = [&next_hop.0[..], &HOST.0, &[0x86, 0xdd]].concat();
        // Class 0xb8, as in the request; 15 bytes of ICMPv6; hop limit 64.
        expected.extend_from_slice(&[0x6b, 0x80, 0, 0, 0, 15, 58, 64]);
        expected.extend_from_slice(&[HOST_IPV6.octets(), source.octets()].concat());
        let sum = u16::from_be_bytes([request[56], request[57]]);
        let [high, low] = sum.checked_sub(0x100).unwrap().to_be_bytes();
        expected.extend_from_slice(&[129, 0, high, low, 0, 5, 0, 6]);
        expected.extend_from_slice(b"payload");
        assert_eq!(answer, expected);
    }
    let ours = host_v6(64);
    assert_eq!(
        ours.receive(0, &echo_request(FAR), |_| None),
        host(24).receive(0, &echo_request(FAR), |_| None)
    );
}

#[test]
fn a_host_without_an_ipv6_address_knows_nothing_of_it() {
    let request = echo_request_v6(FAR_IPV6);
    assert_eq!(host(24).receive(0, &request, |_| None), Received::Other);
}

#[test]
fn connections_of_both_families_are_told_apart() {
    let mut host = host_v6(64);
    // The low 32 bits of both peers' addresses are the same.
    let peer = Ipv4Addr::from(1);
    let ends = [
        (Addresses::V4(HOST_IPV4, peer), 0),
        (Addresses::V6(HOST_IPV6, FAR_IPV6), 1),
    ];
    let endpoint = |flow| EndpointId::new(TcpFlowId(flow), crate::tcp_flow::Side::Server);
    for (addresses, flow) in ends {
        assert!(host.add_connection(addresses, 80, 1000, endpoint(flow)));
        assert!(!host.add_connection(addresses, 80, 1000, endpoint(9)));
    }
    let header = wire::tcp::Header {
        source_port: 1000,
        destination_port: 80,
        ..Default::default()
    };
    let mut v4 = Vec::new();
    header.emit(peer, HOST_IPV4, b"x", &mut v4).unwrap();
    let v4 = ipv4_frame(peer, HOST_IPV4, ipv4::PROTOCOL_TCP, &v4);
    let v6 = |source| {
        let mut segment = Vec::new();
        header.emit(source, HOST_IPV6, b"x", &mut segment).unwrap();
        ipv6_frame(source, HOST_IPV6, ipv4::PROTOCOL_TCP, &segment)
    };
    let (known, unknown) = (v6(FAR_IPV6), v6(NEIGHBOUR_IPV6));
    for (frame, expected) in [(v4, Some(0)), (known, Some(1)), (unknown, None)] {
        match host.receive(0, &frame, |_| None) {
            Received::Segment {
                endpoint: found,
                segment,
                telemetry: None,
            } => {
                assert_eq!(found, expected.map(endpoint));
                assert_eq!(segment.payload_bytes, 1);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_flipped_in_an_ipv6_packet_is_noticed_where_something_covers_it() {
    let datagram = udp_datagram(FAR_IPV6, HOST_IPV6);
    let mut segment = Vec::new();
    let header = wire::tcp::Header::default();
    header
        .emit(FAR_IPV6, HOST_IPV6, b"some payload", &mut segment)
        .unwrap();
    let frames = [
        ipv6_frame(FAR_IPV6, HOST_IPV6, ipv4::PROTOCOL_UDP, &datagram),
        ipv6_frame(FAR_IPV6, HOST_IPV6, ipv4::PROTOCOL_TCP, &segment),
        echo_request_v6(FAR_IPV6),
    ];
    fn is_like(a: &Received<'_>, b: &Received<'_>) -> bool {
        std::mem::discriminant(a) == std::mem::discriminant(b)
    }
    let host = host_v6(64);
    for frame in frames {
        let good = host.receive(0, &frame, |_| None);
        assert!(
            !matches!(good, Received::Corrupt(_) | Received::Other),
            "{good:?}"
        );
        let ip = ethernet::Header::LEN;
        for bit in ip * 8..frame.len() * 8 {
            let mut broken = frame.clone();
            broken[bit / 8] ^= 0x80 >> (bit % 8);
            let received = host.receive(0, &broken, |_| None);
            let as_expected = match bit / 8 - ip {
                // Class and flow label, and the hop limit, are in no checksum.
                0 if bit % 8 >= 4 => is_like(&received, &good),
                1..=3 | 7 => is_like(&received, &good),
                6 => received == Received::Other,
                24..40 => received == Received::NotAddressed,
                _ => matches!(received, Received::Corrupt(_)),
            };
            assert!(
                as_expected,
                "byte {}, bit {}: {received:?}",
                bit / 8 - ip,
                bit % 8
            );
        }
        for len in 0..frame.len() {
            let received = host.receive(0, &frame[..len], |_| None);
            assert!(
                matches!(received, Received::Corrupt(_)),
                "{len} bytes: {received:?}"
            );
        }
    }
}

#[test]
fn a_datagram_over_ipv6_needs_a_checksum() {
    let mut datagram = udp_datagram(FAR_IPV6, HOST_IPV6);
    datagram[6..8].fill(0);
    let frame = ipv6_frame(FAR_IPV6, HOST_IPV6, ipv4::PROTOCOL_UDP, &datagram);
    // Also where the payload's sum is known.
    let sum = Sum::new().bytes(b"some payload");
    for known in [None, Some(sum)] {
        let received = host_v6(64).receive(0, &frame, |_| known);
        assert_eq!(received, Received::Corrupt(Some(b"some payload")));
    }
}

#[test]
fn what_ipv6_hosts_do_not_do() {
    let host = host_v6(64);
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let mut solicitation = ipv6_frame(
        FAR_IPV6,
        group,
        ipv6::NEXT_HEADER_ICMPV6,
        &[135, 0, 0, 0, 0, 0, 0, 0],
    );
    solicitation[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 1]);
    // Without a target and with a wrong checksum.
    assert_eq!(
        host.receive(0, &solicitation, |_| None),
        Received::Corrupt(None)
    );
    const FRAGMENT: u8 = 44;
    let fragment = ipv6_frame(FAR_IPV6, HOST_IPV6, FRAGMENT, &[0; 20]);
    assert_eq!(host.receive(0, &fragment, |_| None), Received::Other);
    let to_another = ipv6_frame(FAR_IPV6, NEIGHBOUR_IPV6, ipv4::PROTOCOL_UDP, &[0; 8]);
    assert_eq!(
        host.receive(0, &to_another, |_| None),
        Received::NotAddressed
    );
}

#[test]
fn subnets() {
    for (prefix_len, neighbour, far) in [
        (24, true, false),
        (32, false, false),
        (16, true, true),
        (0, true, true),
    ] {
        assert_eq!(
            host(prefix_len).port_towards(NEIGHBOUR.into()).is_some(),
            neighbour,
            "/{prefix_len}"
        );
        assert_eq!(
            host(prefix_len).port_towards(FAR.into()).is_some(),
            far,
            "/{prefix_len}"
        );
        assert!(host(prefix_len).port_towards(HOST_IPV4.into()).is_some());
    }
}

#[test]
fn arp_requests_for_the_host_are_answered() {
    let mut request = arp::Message {
        operation: arp::Operation::Request,
        sender_mac: PEER,
        sender_ipv4: NEIGHBOUR,
        target_mac: MacAddress::default(),
        target_ipv4: HOST_IPV4,
    };
    let mut payload = Vec::new();
    request.emit(&mut payload).unwrap();
    let asked = frame(MacAddress::BROADCAST, ethernet::ETHERTYPE_ARP, &payload);
    let Received::Told(told) = host(24).receive(0, &asked, |_| None) else {
        panic!("no answer");
    };
    let asking = (NEIGHBOUR.into(), PEER, crate::neighbours::Heard::Asking);
    assert_eq!((told.heard, told.is_own), (Some(asking), true));
    let answer = told.answer.unwrap();
    let view = ethernet::View::new(&answer).unwrap();
    assert_eq!((view.destination(), view.source()), (PEER, HOST));
    let reply = arp::Message::parse(&arp::View::new(view.payload()).unwrap()).unwrap();
    assert_eq!(
        reply,
        arp::Message {
            operation: arp::Operation::Reply,
            sender_mac: HOST,
            sender_ipv4: HOST_IPV4,
            target_mac: PEER,
            target_ipv4: NEIGHBOUR,
        }
    );
    request.target_ipv4 = FAR;
    payload.clear();
    request.emit(&mut payload).unwrap();
    let other = frame(MacAddress::BROADCAST, ethernet::ETHERTYPE_ARP, &payload);
    let Received::Told(told) = host(24).receive(0, &other, |_| None) else {
        panic!("it is ARP");
    };
    assert_eq!((told.answer, told.is_own), (None, false));
    assert_eq!(
        host(24).receive(0, &other[..30], |_| None),
        Received::Corrupt(None)
    );
}

#[test]
fn pings_are_answered_through_the_right_neighbour() {
    for (source, next_hop) in [(NEIGHBOUR, PEER), (FAR, GATEWAY)] {
        let request = echo_request(source);
        let Received::Answer(_, answer) = host(24).receive(0, &request, |_| None) else {
            panic!("no answer");
        };
        let view = ethernet::View::new(&answer).unwrap();
        assert_eq!((view.destination(), view.source()), (next_hop, HOST));
        let packet = ipv4::View::new(view.payload()).unwrap();
        let header = ipv4::Header::parse(&packet).unwrap();
        assert_eq!((header.source, header.destination), (HOST_IPV4, source));
        assert_eq!((header.traffic_class, header.ttl), (0xb8, TTL));
        let message = icmpv4::View::new(packet.payload()).unwrap();
        let reply = Message::EchoReply {
            identifier: 5,
            sequence: 6,
        };
        assert_eq!(Message::parse(&message), Ok(reply));
        assert_eq!(message.payload(), b"payload");
    }
}

#[test]
fn every_flipped_bit_behind_the_ethernet_header_is_noticed() {
    let segment = udp_datagram(FAR, HOST_IPV4);
    let datagram = ipv4_frame(FAR, HOST_IPV4, ipv4::PROTOCOL_UDP, &segment);
    assert_eq!(
        host(24).receive(0, &datagram, |_| None),
        Received::Datagram {
            payload: b"some payload",
            known: false
        }
    );
    let request = echo_request(FAR);
    for frame in [&datagram, &request] {
        for bit in ethernet::Header::LEN * 8..frame.len() * 8 {
            let mut broken = frame.clone();
            broken[bit / 8] ^= 0x80 >> (bit % 8);
            let received = host(24).receive(0, &broken, |_| None);
            assert!(
                matches!(received, Received::Corrupt(_)),
                "bit {bit}: {received:?}"
            );
        }
        for len in 0..frame.len() {
            let received = host(24).receive(0, &frame[..len], |_| None);
            assert!(
                matches!(received, Received::Corrupt(_)),
                "{len} bytes: {received:?}"
            );
        }
    }
}

#[test]
fn what_is_for_others_and_what_is_unknown() {
    let host = host(24);
    let mut other_mac = echo_request(FAR);
    other_mac[..6].copy_from_slice(&PEER.0);
    assert_eq!(
        host.receive(0, &other_mac, |_| None),
        Received::NotAddressed
    );
    let other_ipv4 = ipv4_frame(FAR, NEIGHBOUR, ipv4::PROTOCOL_UDP, &[0; 8]);
    assert_eq!(
        host.receive(0, &other_ipv4, |_| None),
        Received::NotAddressed
    );
    assert_eq!(
        host.receive(0, &frame(HOST, 0x88cc, b"lldp"), |_| None),
        Received::Other
    );
    const PROTOCOL_GRE: u8 = 47;
    let gre = ipv4_frame(FAR, HOST_IPV4, PROTOCOL_GRE, &[0; 20]);
    assert_eq!(host.receive(0, &gre, |_| None), Received::Other);
    // All zeros is no TCP header.
    let tcp = ipv4_frame(FAR, HOST_IPV4, ipv4::PROTOCOL_TCP, &[0; 20]);
    assert_eq!(host.receive(0, &tcp, |_| None), Received::Corrupt(None));
    let mut segment = Vec::new();
    let group = Ipv4Addr::new(239, 1, 2, 3);
    udp::Header {
        source_port: 1,
        destination_port: 2,
    }
    .emit(FAR, group, b"x", &mut segment)
    .unwrap();
    let mut multicast = ipv4_frame(FAR, group, ipv4::PROTOCOL_UDP, &segment);
    multicast[..6].copy_from_slice(&[1, 0, 0x5e, 1, 2, 3]);
    assert_eq!(
        host.receive(0, &multicast, |_| None),
        Received::Datagram {
            payload: b"x",
            known: false
        }
    );
}

proptest! {
    #[test]
    fn any_ipv6_frame_is_something(mut bytes in proptest::collection::vec(any::<u8>(), 54..160), next_header in prop::sample::select(vec![6u8, 17, 58])) {
        // Past the first checks: addressed, right type, version and length.
        bytes[..6].copy_from_slice(&HOST.0);
        bytes[12..14].copy_from_slice(&ethernet::ETHERTYPE_IPV6.to_be_bytes());
        bytes[14] = 0x60 | bytes[14] & 15;
        let payload_len = bytes.len() as u16 - 54;
        bytes[18..20].copy_from_slice(&payload_len.to_be_bytes());
        bytes[20] = next_header;
        bytes[38..54].copy_from_slice(&HOST_IPV6.octets());
        let received = host_v6(64).receive(0, &bytes, |_| None);
        prop_assert_ne!(received, Received::NotAddressed);
    }

    #[test]
    fn any_frame_is_something(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), likely: bool, arp: bool) {
        if likely && bytes.len() > 34 {
            // Past the first checks: addressed, right type, right version and lengths, right header checksum.
            bytes[..6].copy_from_slice(&HOST.0);
            let ethertype = if arp { ethernet::ETHERTYPE_ARP } else { ethernet::ETHERTYPE_IPV4 };
            bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
            if !arp {
                let total_len = bytes.len() as u16 - 14;
                bytes[14] = 0x45;
                bytes[16..18].copy_from_slice(&total_len.to_be_bytes());
                bytes[20] &= 0x40;
                bytes[21] = 0;
                bytes[23] = if bytes[23] & 1 == 0 { 1 } else { 17 };
                bytes[30..34].copy_from_slice(&HOST_IPV4.octets());
                bytes[24..26].fill(0);
                let sum = wire::checksum::checksum(&bytes[14..34]);
                bytes[24..26].copy_from_slice(&sum.to_be_bytes());
            }
        }
        let received = host(24).receive(0, &bytes, |_| None);
        if likely && !arp && bytes.len() > 34 {
            prop_assert_ne!(received, Received::NotAddressed);
        }
    }
}

#[test]
fn int_headers_are_taken_out_by_hosts_that_take_them() {
    let mut host = host(24);
    let telemetry = Telemetry {
        kind: int::Kind::Metadata,
        dscp: 46,
        load: int::PathLoad::new(5, &[int::Hop::new(3, 1, 2, 3)]).unwrap(),
    };
    let header = wire::tcp::Header {
        source_port: 1000,
        destination_port: 80,
        ..Default::default()
    };
    let mut segment = Vec::new();
    int::emit_virtual_segment((&header, &telemetry), FAR, HOST_IPV4, 3, &mut segment).unwrap();
    segment.extend_from_slice(&[0; 3]);
    let mut frame = ipv4_frame(FAR, HOST_IPV4, ipv4::PROTOCOL_TCP, &segment);
    let marked = |frame: &mut Vec<u8>| {
        frame[15] = int::DSCP << 2;
        frame[24..26].fill(0);
        let sum = checksum::checksum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    };
    marked(&mut frame);
    let received = |host: &Host, frame: &[u8]| match host.receive(0, frame, |_| None) {
        Received::Segment {
            segment, telemetry, ..
        } => Some((segment.payload_bytes, telemetry)),
        Received::Corrupt(None) => None,
        other => panic!("{other:?}"),
    };
    assert_eq!(received(&host, &frame), Some((27, None)));
    host.take_telemetry();
    assert_eq!(
        received(&host, &frame),
        Some((3, Some(Box::new(telemetry))))
    );
    frame[60] ^= 1;
    assert_eq!(received(&host, &frame), None);
}
