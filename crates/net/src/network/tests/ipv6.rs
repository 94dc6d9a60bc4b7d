//! IPv6 traffic beside IPv4 traffic.

use super::*;
use crate::host::Ipv6Interface;
use std::net::Ipv6Addr;

fn ipv6(number: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, number.into(), 0, 0, 0, 1)
}

/// Returns the configuration of a host with the addresses 10.0.number.1/24 and 2001:db8:0:number::1/64.
fn host(number: u8) -> HostConfig {
    HostConfig {
        ipv6: Some(Ipv6Interface {
            address: ipv6(number),
            prefix_len: 64,
        }),
        ..super::host(number)
    }
}

/// Builds a network of h1 and h2 on ports 1 and 2 of s, with gigabit links of 5 us; the switch takes 2 us.
fn pair() -> Network {
    let mut network = Network::new(1, 0);
    router(&mut network, "s", 2 * US);
    add_hosts(&mut network, 64, 5 * US);
    network
}

fn add_hosts(network: &mut Network, prefix_len: u8, delay_ps: u64) {
    for number in [1, 2] {
        let (name, mut config) = (format!("h{number}"), host(number));
        config.ipv6 = config.ipv6.map(|own| Ipv6Interface { prefix_len, ..own });
        network.add_host(&name, config).unwrap();
        let link = LinkConfig::new(GIGABIT, delay_ps);
        network
            .add_link(&name, 0, "s", number.into(), link)
            .unwrap();
    }
}

fn over_ipv6(source: &str, destination: &str) -> UdpStream {
    UdpStream {
        destination: Destination::HostIpv6(destination.to_owned()),
        ..stream(source, destination, 1000.0, 3 * MS)
    }
}

#[test]
fn streams_and_pings_arrive_as_over_ipv4_but_20_bytes_longer() {
    let mut network = pair();
    let streams = [
        over_ipv6("h1", "h2"),
        UdpStream {
            destination: Destination::Ipv6(ipv6(2)),
            start_ps: Time::from(100 * US),
            log_packets: false,
            ..over_ipv6("h1", "")
        },
        UdpStream {
            start_ps: Time::from(200 * US),
            ..stream("h1", "h2", 1000.0, 3 * MS)
        },
    ];
    let streams = streams.map(|stream| network.add_udp_stream(&stream).unwrap());
    let ping = |destination| Ping {
        source: "h2".to_owned(),
        destination,
        interval_ps: MS,
        start_ps: Time::from(5 * MS),
        stop_ps: Time::from(7 * MS),
        payload_bytes: 56,
    };
    let v4 = ping(Destination::Host("h1".to_owned()));
    let v6 = Ping {
        start_ps: v4.start_ps + 500 * US,
        ..ping(Destination::HostIpv6("h1".to_owned()))
    };
    let pings = [v4, v6].map(|ping| network.add_ping(&ping).unwrap());
    assert_eq!(network.run(Time::from(10 * MS)), Ok(vec![]));
    // 1,000 bytes of payload are 1,066 on the wire over IPv4: 8.528 us, twice; 98 bytes of a ping 122, four times.
    let times = |links: u64, bytes: u64| links * (bytes * 8_000 + 5 * US) + links / 2 * 2 * US;
    for (flow, bytes) in streams.into_iter().zip([1086, 1086, 1066]) {
        let now = network.flow_statistics(flow).unwrap();
        assert_eq!((now.sent, now.delivered, now.duplicated), (3, 3, 0));
        assert_eq!(now.latency.unwrap().max_ps, times(2, bytes));
    }
    for (flow, bytes) in pings.into_iter().zip([122, 142]) {
        let now = network.flow_statistics(flow).unwrap();
        assert_eq!((now.sent, now.delivered), (2, 2));
        assert_eq!(now.latency.unwrap().max_ps, times(4, bytes));
    }
    assert_eq!(network.node_counters("h2").unwrap().corrupted, 0);
}

/// A bit of the payload, of a port (of a ping: of the code), and of the source address; and no checksum.
#[test]
fn damage_is_counted_and_not_believed() {
    for at in [90, 55, 30, 60] {
        let mut network = Network::new(1, 0);
        switch(&mut network, "s", 0, move |_, packet, out| {
            let (packet, number) = towards_host(packet);
            let mut bytes = packet.bytes().to_vec();
            match (at, bytes[20]) {
                (60, 17) => bytes[60..62].fill(0),
                (60, _) => bytes[56..58].fill(0),
                (at, _) => bytes[at] ^= 1,
            }
            out.push(Output::new(u32::from(number), Packet::new(&bytes)));
        });
        add_hosts(&mut network, 64, 0);
        let flow = network.add_udp_stream(&over_ipv6("h1", "h2")).unwrap();
        let ping = network.add_ping(&Ping {
            source: "h1".to_owned(),
            destination: Destination::HostIpv6("h2".to_owned()),
            interval_ps: MS,
            start_ps: Time::from(5 * MS),
            stop_ps: Time::from(7 * MS),
            payload_bytes: 56,
        });
        assert_eq!(network.run(Time::from(10 * MS)), Ok(vec![]));
        assert_eq!(network.corrupted(flow), Ok(3), "byte {at}");
        assert!(network.received(flow).unwrap().is_empty());
        assert!(network.received(ping.unwrap()).unwrap().is_empty());
        let counters = network.node_counters("h2").unwrap();
        assert_eq!((counters.corrupted, counters.accepted), (5, 0), "byte {at}");
    }
}

#[test]
fn a_neighbour_in_the_subnet_is_reached_without_the_gateway() {
    let mut network = Network::new(1, 0);
    // By destination MAC address, so that nothing goes through a gateway; to everybody what asks who has an address.
    switch(&mut network, "s", 0, |from, packet, out| {
        let bytes = packet.bytes();
        let port = match bytes[0] & 1 {
            1 => 3 - from,
            _ => u32::from(bytes[4]),
        };
        out.push(Output::new(port, packet.clone()));
    });
    add_hosts(&mut network, 32, 0);
    let flow = network.add_udp_stream(&over_ipv6("h1", "h2")).unwrap();
    let other = network.add_udp_stream(&stream("h1", "h2", 1000.0, 3 * MS));
    network.run(Time::from(10 * MS)).unwrap();
    assert_eq!(network.flow_statistics(flow).unwrap().delivered, 3);
    let over_gateway = network.flow_statistics(other.unwrap()).unwrap();
    assert_eq!(over_gateway.delivered, 0);
}

#[test]
fn what_cannot_be_is_refused() {
    let mut network = pair();
    let plain = HostConfig {
        ipv6: None,
        ..host(3)
    };
    network.add_host("h3", plain).unwrap();
    let with = |address, prefix_len| HostConfig {
        ipv6: Some(Ipv6Interface {
            address,
            prefix_len,
        }),
        ..host(4)
    };
    for refused in [
        with(ipv6(4), 129),
        with(Ipv6Addr::UNSPECIFIED, 64),
        with("ff02::1".parse().unwrap(), 64),
    ] {
        assert!(network.add_host("h4", refused).is_err(), "{refused:?}");
    }
    let missing = NetError::Refused("host h3 has no IPv6 address".to_owned());
    for (source, destination) in [("h1", "h3"), ("h3", "h1")] {
        let refused = network.add_udp_stream(&over_ipv6(source, destination));
        assert_eq!(refused.err(), Some(missing.clone()));
    }
    assert_eq!(network.pending_events(), 0);
}
