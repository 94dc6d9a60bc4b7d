use super::*;
use proptest::prelude::*;
use wire::icmpv4::Message;

const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const GATEWAY: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xfe]);
const PEER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
const HOST_IPV4: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 200);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 1);

fn host(prefix_len: u8) -> Host {
    Host::new(HostConfig {
        mac: HOST,
        ipv4: HOST_IPV4,
        prefix_len,
        gateway_mac: GATEWAY,
    })
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
        source,
        ..host(24).ipv4(destination, protocol, payload.len())
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

#[test]
fn subnets() {
    for (prefix_len, neighbour, far) in [
        (24, true, false),
        (32, false, false),
        (16, true, true),
        (0, true, true),
    ] {
        assert_eq!(
            host(prefix_len).is_on_link(NEIGHBOUR),
            neighbour,
            "/{prefix_len}"
        );
        assert_eq!(host(prefix_len).is_on_link(FAR), far, "/{prefix_len}");
        assert!(host(prefix_len).is_on_link(HOST_IPV4));
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
    let Received::Answer(answer) = host(24).receive(&asked, |_| None) else {
        panic!("no answer");
    };
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
    assert_eq!(host(24).receive(&other, |_| None), Received::NotAddressed);
    assert_eq!(
        host(24).receive(&other[..30], |_| None),
        Received::Corrupt(None)
    );
}

#[test]
fn pings_are_answered_through_the_right_neighbour() {
    for (source, next_hop) in [(NEIGHBOUR, PEER), (FAR, GATEWAY)] {
        let request = echo_request(source);
        let Received::Answer(answer) = host(24).receive(&request, |_| None) else {
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
    let mut segment = Vec::new();
    let header = udp::Header {
        source_port: 1,
        destination_port: 2,
    };
    header
        .emit(FAR, HOST_IPV4, b"some payload", &mut segment)
        .unwrap();
    let datagram = ipv4_frame(FAR, HOST_IPV4, ipv4::PROTOCOL_UDP, &segment);
    assert_eq!(
        host(24).receive(&datagram, |_| None),
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
            let received = host(24).receive(&broken, |_| None);
            assert!(
                matches!(received, Received::Corrupt(_)),
                "bit {bit}: {received:?}"
            );
        }
        for len in 0..frame.len() {
            let received = host(24).receive(&frame[..len], |_| None);
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
    assert_eq!(host.receive(&other_mac, |_| None), Received::NotAddressed);
    let other_ipv4 = ipv4_frame(FAR, NEIGHBOUR, ipv4::PROTOCOL_UDP, &[0; 8]);
    assert_eq!(host.receive(&other_ipv4, |_| None), Received::NotAddressed);
    assert_eq!(
        host.receive(&frame(HOST, 0x88cc, b"lldp"), |_| None),
        Received::Other
    );
    const PROTOCOL_GRE: u8 = 47;
    let gre = ipv4_frame(FAR, HOST_IPV4, PROTOCOL_GRE, &[0; 20]);
    assert_eq!(host.receive(&gre, |_| None), Received::Other);
    // All zeros is no TCP header.
    let tcp = ipv4_frame(FAR, HOST_IPV4, ipv4::PROTOCOL_TCP, &[0; 20]);
    assert_eq!(host.receive(&tcp, |_| None), Received::Corrupt(None));
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
        host.receive(&multicast, |_| None),
        Received::Datagram {
            payload: b"x",
            known: false
        }
    );
}

proptest! {
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
        let received = host(24).receive(&bytes, |_| None);
        if likely && !arp && bytes.len() > 34 {
            prop_assert_ne!(received, Received::NotAddressed);
        }
    }
}
