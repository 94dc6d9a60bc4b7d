//! Hosts that share subnets, have several cards, or VLANs, around a bridge.

use super::*;
use crate::host::{Card, Gateway, HostSettings, Ipv6Interface};
use crate::{Application, DropReason, Family, TcpTransfer};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use wire::neighbour_discovery::{self, Kind};
use wire::{arp, ethernet};

/// Adds a bridge of ports 1 to `ports` that learns where stations are, for each VLAN by itself.
fn bridge(network: &mut Network, ports: u32) {
    let mut stations = BTreeMap::new();
    switch(network, "s", 2 * US, move |port, packet, out| {
        let bytes = packet.bytes().into_owned();
        let vlan = match bytes[12..14] {
            [0x81, 0] => [bytes[14] & 0xf, bytes[15]],
            _ => [0, 0],
        };
        stations.insert((bytes[6..12].to_vec(), vlan), port);
        match stations.get(&(bytes[..6].to_vec(), vlan)) {
            Some(&to) if to != port => out.push(Output::new(to, packet)),
            Some(_) => {}
            None => {
                for to in (1..=ports).filter(|&to| to != port) {
                    out.push(Output::new(to, packet.clone()));
                }
            }
        }
    });
}

fn card(number: u8, prefix_len: u8) -> Card {
    Card {
        mac: MacAddress([8, 0, 0, 0, 0, number]),
        ipv4: Ipv4Addr::new(10, 0, 0, number),
        prefix_len,
        ipv6: Some(Ipv6Interface {
            address: v6(number),
            prefix_len: 64,
        }),
    }
}

fn v6(number: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number.into())
}

/// Returns a host in 10.0.0.0/24 and 2001:db8::/64 without a gateway.
fn in_lan(number: u8) -> HostSettings {
    HostSettings {
        cards: vec![card(number, 24)],
        ..HostSettings::default()
    }
}

/// Builds a network of these hosts, h1 and so on, on ports 1 and so on of a bridge.
fn lan(hosts: Vec<HostSettings>) -> Network {
    let mut network = Network::new(1, 0);
    bridge(&mut network, hosts.len() as u32);
    for (number, settings) in (1..).zip(hosts) {
        let name = format!("h{number}");
        network.add_host(&name, settings).unwrap();
        let link = LinkConfig::new(GIGABIT, 5 * US);
        network.add_link(&name, 0, "s", number, link).unwrap();
    }
    network
}

fn pings(source: &str, destination: Destination, count: u64) -> Ping {
    Ping {
        source: source.to_owned(),
        destination,
        interval_ps: 10 * MS,
        start_ps: Time::ZERO,
        stop_ps: Time::from(count * 10 * MS),
        payload_bytes: 56,
    }
}

fn to(name: &str) -> Destination {
    Destination::Host(name.to_owned())
}

fn received(network: &Network, flow: FlowId) -> (u64, u64) {
    let statistics = network.flow_statistics(flow).unwrap();
    (statistics.sent, statistics.sent - statistics.lost)
}

#[test]
fn four_hosts_of_a_subnet_find_each_other_through_a_bridge() {
    let mut network = lan((1..=4).map(in_lan).collect());
    let flows = [
        network.add_ping(&pings("h1", to("h2"), 20)).unwrap(),
        network.add_ping(&pings("h3", to("h1"), 20)).unwrap(),
        network
            .add_ping(&pings("h4", Destination::HostIpv6("h2".to_owned()), 20))
            .unwrap(),
        network
            .add_ping(&pings(
                "h2",
                Destination::Ipv4(Ipv4Addr::new(10, 0, 0, 3)),
                20,
            ))
            .unwrap(),
    ];
    let stream = network
        .add_udp_stream(&stream("h1", "h4", 1e5, 5 * MS))
        .unwrap();
    let tcp = TcpTransfer {
        client: "h2".to_owned(),
        server: "h4".to_owned(),
        client_port: 1,
        server_port: 2,
        family: Family::Ipv6,
        start_ps: Time::ZERO,
        application: Application::Transfer { bytes: 100_000 },
        stop_ps: Time::NEVER,
        config: tcp::Config::default(),
        dscp: 0,
        goodput_bin_ps: 0,
        log_window: false,
    };
    let tcp = network.add_tcp(&tcp).unwrap();
    run_all(&mut network, 2000 * MS);
    for flow in flows {
        assert_eq!(received(&network, flow), (20, 20));
    }
    assert_eq!(received(&network, stream), (500, 500));
    assert!(network.tcp_statistics(tcp).unwrap().finished_ps.is_some());
    // Those that waited left in order.
    let statistics = network.flow_statistics(stream).unwrap();
    assert_eq!((statistics.reordered, statistics.lost), (0, 0));
    // The first packet waited until h2 was heard, which asks for h3 itself at the same time.
    let log = network.received(flows[0]).unwrap();
    let [first, second] = [0, 1].map(|n| log.received_ps[n] - log.sent_ps[n]);
    assert!(first > second + 10 * US, "{first} {second}");
}

#[test]
fn a_neighbour_is_asked_again_and_one_that_moved_is_found() {
    let mut network = lan((1..=3).map(in_lan).collect());
    let ping = Ping {
        stop_ps: Time::from(120_000 * MS),
        interval_ps: 1000 * MS,
        ..pings("h1", to("h2"), 0)
    };
    let flow = network.add_ping(&ping).unwrap();
    run_all(&mut network, 121_000 * MS);
    assert_eq!(received(&network, flow), (120, 120));
    // h1 asks at first, and every 35 s; h2, which heard h1 ask, asks after 5 s and then every 35 s. Each answers the other.
    let sent = |name| network.node_counters(name).unwrap().sent - 120;
    assert_eq!((sent("h1"), sent("h2")), (4 + 4, 4 + 4));
    let heard = network.node_counters("h3").unwrap().received;
    assert_eq!(heard, 1, "the first request alone went to everybody");
    // A station with another MAC address says that it has the IP address now.
    let gratuitous = arp::Message {
        operation: arp::Operation::Request,
        sender_mac: MacAddress([8, 0, 0, 0, 0, 3]),
        sender_ipv4: Ipv4Addr::new(10, 0, 0, 2),
        target_mac: MacAddress::default(),
        target_ipv4: Ipv4Addr::new(10, 0, 0, 2),
    };
    network.send_frame("h3", &arp_frame(&gratuitous)).unwrap();
    let ping = Ping {
        start_ps: Time::from(122_000 * MS),
        stop_ps: Time::from(122_010 * MS),
        ..pings("h1", to("h2"), 0)
    };
    network.add_ping(&ping).unwrap();
    let before = network.node_counters("h3").unwrap().not_addressed;
    run_all(&mut network, 123_000 * MS);
    // The ping reached h3, which does not have the address, and before it the answer of h2, which does.
    assert_eq!(
        network.node_counters("h3").unwrap().not_addressed,
        before + 2
    );
}

fn arp_frame(message: &arp::Message) -> Vec<u8> {
    let mut frame = Vec::new();
    let header = ethernet::Header {
        destination: MacAddress::BROADCAST,
        source: message.sender_mac,
        ethertype: ethernet::ETHERTYPE_ARP,
    };
    header.emit(&mut frame).unwrap();
    message.emit(&mut frame).unwrap();
    frame
}

#[test]
fn packets_to_nobody_are_dropped_with_a_reason() {
    let mut network = lan((1..=2).map(in_lan).collect());
    network.observe(
        crate::Scope::Network,
        Box::new(crate::DropCounts::default()),
    );
    for destination in [
        Destination::Ipv4(Ipv4Addr::new(10, 0, 0, 77)),
        Destination::Ipv6(v6(77)),
    ] {
        network.add_ping(&pings("h1", destination, 20)).unwrap();
    }
    run_all(&mut network, 10_000 * MS);
    let counters = network.node_counters("h1").unwrap();
    assert_eq!(counters.unresolved_drops, 40);
    // Three requests of each family.
    assert_eq!(counters.sent, 6);
    assert!(DropReason::ALL.contains(&DropReason::Unresolved));
    // Without a route nothing begins.
    let far = Ping {
        start_ps: network.now_ps(),
        stop_ps: Time::NEVER,
        ..pings("h1", Destination::Ipv4(Ipv4Addr::new(10, 9, 0, 1)), 0)
    };
    let refused = network.add_ping(&far);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "host h1 has no route to this destination"
    );
}

#[test]
fn gateways_are_asked_for_or_known_and_hosts_of_31_and_32_bits_reach_each_other() {
    let known = (IpAddr::from([10, 0, 0, 4]), MacAddress([8, 0, 0, 0, 0, 4]));
    let by = |address| [Some(Gateway::Address(address)), None];
    let hosts = vec![
        HostSettings {
            cards: vec![card(1, 32)],
            gateways: by([10, 0, 0, 3].into()),
            ..HostSettings::default()
        },
        HostSettings {
            cards: vec![card(2, 31)],
            ..HostSettings::default()
        },
        HostSettings {
            cards: vec![card(3, 31)],
            gateways: by([10, 0, 0, 1].into()),
            ..HostSettings::default()
        },
        HostSettings {
            cards: vec![card(4, 32)],
            gateways: by([10, 0, 0, 1].into()),
            ..HostSettings::default()
        },
        HostSettings {
            cards: vec![card(5, 32)],
            gateways: by(known.0),
            neighbours: vec![known],
            ..HostSettings::default()
        },
    ];
    let mut network = lan(hosts);
    let pair = network.add_ping(&pings("h2", to("h3"), 20)).unwrap();
    let far = network.add_ping(&pings("h1", to("h3"), 20)).unwrap();
    // Known, so not asked for; it answers through a gateway that does not forward.
    let one_way = network
        .add_udp_stream(&stream("h5", "h4", 1e4, 5 * MS))
        .unwrap();
    run_all(&mut network, 2000 * MS);
    assert_eq!(received(&network, pair), (20, 20));
    assert_eq!(received(&network, far), (20, 20));
    assert_eq!(received(&network, one_way), (50, 50));
    assert_eq!(network.node_counters("h5").unwrap().sent, 50);
}

#[test]
fn a_host_with_two_cards_uses_the_one_towards_the_destination() {
    let mut network = Network::new(1, 0);
    bridge(&mut network, 4);
    let other = |number: u8| Card {
        mac: MacAddress([8, 0, 0, 0, 1, number]),
        ipv4: Ipv4Addr::new(10, 1, 0, number),
        prefix_len: 24,
        ipv6: None,
    };
    let two = HostSettings {
        cards: vec![card(1, 24), other(1)],
        ..HostSettings::default()
    };
    network.add_host("h1", two).unwrap();
    network.add_host("h2", in_lan(2)).unwrap();
    let apart = HostSettings {
        cards: vec![other(3)],
        ..HostSettings::default()
    };
    network.add_host("h3", apart).unwrap();
    let link = || LinkConfig::new(GIGABIT, 5 * US);
    network.add_link("h1", 0, "s", 1, link()).unwrap();
    let second = network.add_link("h1", 1, "s", 2, link()).unwrap();
    network.add_link("h2", 0, "s", 3, link()).unwrap();
    network.add_link("h3", 0, "s", 4, link()).unwrap();
    assert!(network.add_link("h1", 2, "s", 5, link()).is_err());
    let flows = [
        network.add_ping(&pings("h1", to("h2"), 20)).unwrap(),
        network.add_ping(&pings("h1", to("h3"), 20)).unwrap(),
        // To the address of the card that the asker can reach.
        network.add_ping(&pings("h3", to("h1"), 20)).unwrap(),
    ];
    run_all(&mut network, 1000 * MS);
    for flow in flows {
        assert_eq!(received(&network, flow), (20, 20));
    }
    let counters = network.link_counters(second).unwrap();
    assert!((40..60).contains(&counters.a_to_b.packets));
    // IPv6 leaves by the card that has it.
    assert!(
        network
            .add_ping(&pings("h3", Destination::Ipv6(v6(2)), 1))
            .is_err()
    );
}

#[test]
fn vlans_are_apart_and_tagged() {
    let tagged = |number, vlan| HostSettings {
        vlan: Some(vlan),
        ..in_lan(number)
    };
    let mut network = lan(vec![tagged(1, 5), tagged(2, 5), tagged(3, 6), in_lan(4)]);
    let within = network.add_ping(&pings("h1", to("h2"), 20)).unwrap();
    let discovered = Destination::HostIpv6("h2".to_owned());
    let over_ipv6 = network.add_ping(&pings("h1", discovered, 20)).unwrap();
    let across = network.add_ping(&pings("h1", to("h3"), 20)).unwrap();
    let untagged = network.add_ping(&pings("h4", to("h1"), 20)).unwrap();
    run_all(&mut network, 6000 * MS);
    assert_eq!(received(&network, within), (20, 20));
    assert_eq!(received(&network, over_ipv6), (20, 20));
    assert_eq!(received(&network, across), (20, 0));
    assert_eq!(received(&network, untagged), (20, 0));
    let refused = network.add_host("h9", tagged(9, 4095));
    assert!(refused.unwrap_err().to_string().contains("from 1 to 4094"));
}

#[test]
fn a_host_that_fails_loses_what_waited_and_what_it_knew() {
    let mut network = lan((1..=2).map(in_lan).collect());
    let nobody = Destination::Ipv4(Ipv4Addr::new(10, 0, 0, 77));
    network.add_ping(&pings("h1", nobody, 5)).unwrap();
    network
        .set_node_state("h1", false, Some(Time::from(100 * MS)))
        .unwrap();
    network
        .set_node_state("h1", true, Some(Time::from(200 * MS)))
        .unwrap();
    let later = Ping {
        start_ps: Time::from(300 * MS),
        stop_ps: Time::from(400 * MS),
        ..pings("h1", to("h2"), 0)
    };
    let later = network.add_ping(&later).unwrap();
    run_all(&mut network, 5000 * MS);
    let counters = network.node_counters("h1").unwrap();
    assert_eq!((counters.down_drops, counters.unresolved_drops), (5, 0));
    assert_eq!(received(&network, later), (10, 10));
}

/// RFC 4861, 7.2.4 and 7.1.1.
#[test]
fn solicitations_are_answered_to_who_asks_and_to_everybody_if_nobody_does() {
    let mut network = lan(vec![in_lan(1), in_lan(9)]);
    let ask = |source: Ipv6Addr, link_layer| {
        let target = v6(1);
        let message = neighbour_discovery::Message {
            kind: Kind::Solicitation,
            target,
            link_layer,
        };
        let mut frame = vec![0x33, 0x33, 0xff, 0, 0, 1, 8, 0, 0, 0, 0, 9, 0x86, 0xdd];
        let group = neighbour_discovery::solicited_node(target);
        message.emit(source, group, &mut frame).unwrap();
        frame
    };
    let mac = MacAddress([8, 0, 0, 0, 0, 9]);
    let cases = [
        (ask(v6(9), Some(mac)), mac.0),
        (ask(v6(9), None), mac.0),
        (ask(Ipv6Addr::UNSPECIFIED, None), [0x33, 0x33, 0, 0, 0, 1]),
    ];
    for (frame, expected) in cases {
        let file = Captured::default();
        network.capture("h1", 0, Box::new(file.clone())).unwrap();
        network.send_frame("h2", &frame).unwrap();
        let end_ps = network.now_ps() + 10 * MS;
        network.run(end_ps).unwrap();
        let bytes = file.bytes();
        assert_eq!(bytes[bytes.len() - 86..][..6], expected);
    }
}
