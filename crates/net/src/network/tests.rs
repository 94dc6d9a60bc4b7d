//! Whole networks under the virtual clock, with closures in place of programs.

use super::*;
use crate::captured::Captured;
use crate::link::{DirectionCounters, Jitter, Loss};
use crate::notification::{Notification, NotificationEvent};
use crate::ordering::{OrderingConfig, OrderingCounters};
use crate::queue::QueueConfig;
use crate::switch::closure::{CPU_PORT, Closure};
use crate::{
    Crossings, Destination, DetectionConfig, FlowId, HostConfig, MacAddress, Ping, UdpStream,
};
use engine::{Output, Packet};
use proptest::prelude::*;
use std::net::Ipv4Addr;

mod bfd;
mod changes;
mod conservation;
mod determinism;
mod failures;
mod ipv6;
mod memberships;
mod mtu;
mod neighbours;
mod observers;
mod ordered;
mod processors;

const US: u64 = 1_000_000;
const MS: u64 = 1_000_000_000;
const GIGABIT: u64 = 1_000_000_000;

/// Returns the configuration of host `number`, whose address is 10.0.number.1/24.
fn host(number: u8) -> HostConfig {
    HostConfig {
        mac: MacAddress([2, 0, 0, 0, number, 1]),
        ipv4: Ipv4Addr::new(10, 0, number, 1),
        prefix_len: 24,
        gateway_mac: MacAddress([2, 0, 0, 0, number, 0xfe]),
        ipv6: None,
    }
}

fn switch(
    network: &mut Network,
    name: &str,
    latency_ps: u64,
    mut run: impl FnMut(u32, Packet, &mut Vec<Output>) + Send + 'static,
) {
    let pipeline = Closure(move |_, port, packet, out: &mut _| run(port, packet, out));
    network
        .add_pipeline(name, Box::new(pipeline), latency_ps)
        .unwrap();
}

/// Rewrites the destination MAC address to that of the host whose number is in the IP destination, as a router would.
/// Returns the packet and the host's number.
fn towards_host(mut packet: Packet) -> (Packet, u8) {
    let number = match packet.bytes()[12..14] {
        [0x86, 0xdd] => packet.bytes()[45],
        _ => packet.bytes()[32],
    };
    packet.replace_front(6, &[2, 0, 0, 0, number, 1]);
    (packet, number)
}

/// Adds a switch that routes between hosts, where host `n` is on port `n`.
fn router(network: &mut Network, name: &str, latency_ps: u64) {
    switch(network, name, latency_ps, |_, packet, out| {
        let (packet, number) = towards_host(packet);
        out.push(Output::new(u32::from(number), packet));
    });
}

/// Adds h1, h2 and h3 on ports 1, 2 and 3 of s, by links of a gigabit per second without delay.
fn three_hosts(network: &mut Network) {
    for number in 1..=3 {
        let name = format!("h{number}");
        network.add_host(&name, host(number)).unwrap();
        let link = LinkConfig::new(GIGABIT, 0);
        network
            .add_link(&name, 0, "s", number.into(), link)
            .unwrap();
    }
}

/// Builds a network of h1 and h2 on ports 1 and 2 of s, with gigabit links of 5 us; the switch takes 2 us.
fn pair(seed: u64, detection_delay_ps: u64) -> (Network, LinkId, LinkId) {
    let mut network = Network::new(seed, detection_delay_ps);
    router(&mut network, "s", 2 * US);
    network.add_host("h1", host(1)).unwrap();
    network.add_host("h2", host(2)).unwrap();
    let config = LinkConfig::new(GIGABIT, 5 * US);
    let first = network.add_link("h1", 0, "s", 1, config.clone()).unwrap();
    let second = network.add_link("s", 2, "h2", 0, config.clone()).unwrap();
    (network, first, second)
}

fn stream(source: &str, destination: &str, packets_per_s: f64, stop_ps: u64) -> UdpStream {
    UdpStream {
        source: source.to_owned(),
        destination: Destination::Host(destination.to_owned()),
        packets_per_s,
        spacing: crate::Spacing::Constant,
        payload_bytes: 1000,
        start_ps: Time::ZERO,
        stop_ps: Time::from(stop_ps),
        source_port: 5001,
        destination_port: 5001,
        log_packets: true,
    }
}

/// Runs to `until_ps` picoseconds, and returns all notifications.
fn run_all(network: &mut Network, until_ps: u64) -> Vec<Notification> {
    let mut all = Vec::new();
    while network.now_ps() < Time::from(until_ps) {
        all.extend(network.run(Time::from(until_ps)).unwrap());
    }
    all
}

fn port_changes(notifications: &[Notification]) -> Vec<(u64, String, u32, bool)> {
    let change = |n: &Notification| match n.event {
        NotificationEvent::PortChange { port, up } => {
            Some((n.time_ps.saturating_ps(), n.node.to_string(), port, up))
        }
        _ => None,
    };
    notifications.iter().filter_map(change).collect()
}

#[test]
fn a_datagram_arrives_when_it_should() {
    let (mut network, first, second) = pair(1, 0);
    let flow = network
        .add_udp_stream(&stream("h1", "h2", 1000.0, 2 * MS))
        .unwrap();
    assert_eq!(network.run(Time::from(10 * MS)), Ok(vec![]));
    assert_eq!(network.now_ps(), Time::from(10 * MS));
    // A frame of 1,042 bytes, 1,066 on the wire, takes 8.528 us; twice, with 5 us each, and 2 us in the switch.
    let path_ps = 2 * (8_528_000 + 5 * US) + 2 * US;
    assert_eq!(path_ps, 29_056_000);
    let log = network.received(flow).unwrap();
    assert_eq!(log.sequence, [0, 1]);
    assert_eq!(log.sent_ps, [0, MS]);
    assert_eq!(log.received_ps, [path_ps, MS + path_ps]);
    for link in [first, second] {
        let counters = network.link_counters(link).unwrap();
        let expected = DirectionCounters {
            offered: 2,
            packets: 2,
            bytes: 2 * 1066,
            frame_bytes: 2 * 1042,
            delivered: 2,
            ..DirectionCounters::default()
        };
        assert_eq!(counters.a_to_b, expected);
        assert_eq!(counters.b_to_a, DirectionCounters::default());
    }
    let statistics = network.flow_statistics(flow).unwrap();
    assert_eq!((statistics.sent, statistics.lost), (2, 0));
    assert_eq!(statistics.latency.unwrap().max_ps, path_ps);
    assert_eq!(network.node_counters("h2").unwrap().accepted, 2);
    assert_eq!(network.pending_events(), 0);
}

#[test]
fn pings_come_back() {
    let (mut network, _, _) = pair(1, 0);
    let ping = Ping {
        source: "h2".to_owned(),
        destination: Destination::Host("h1".to_owned()),
        interval_ps: MS,
        start_ps: Time::from(3 * MS),
        stop_ps: Time::from(6 * MS),
        payload_bytes: 56,
    };
    let other = network
        .add_ping(&Ping {
            interval_ps: 2 * MS,
            ..ping.clone()
        })
        .unwrap();
    let flow = network.add_ping(&ping).unwrap();
    assert_eq!(network.run(Time::from(10 * MS)), Ok(vec![]));
    let log = network.received(flow).unwrap();
    assert_eq!(log.sequence, [0, 1, 2]);
    assert_eq!(log.sent_ps, [3 * MS, 4 * MS, 5 * MS]);
    // 98 bytes are 122 on the wire: 0.976 us, four times; the second of two at once also waits for the first.
    let round_trip_ps = 4 * (976_000 + 5 * US) + 2 * 2 * US;
    assert_eq!(log.received_ps[1], 4 * MS + round_trip_ps);
    assert_eq!(log.received_ps[0], 3 * MS + round_trip_ps + 976_000);
    assert_eq!(network.received(other).unwrap().sequence, [0, 1]);
    assert_eq!(network.corrupted(flow), Ok(0));
}

#[test]
fn damage_is_counted_and_not_believed() {
    for (at, frame_error) in [(60, true), (20, true), (0, false)] {
        let mut network = Network::new(1, 0);
        switch(&mut network, "s", 0, move |_, packet, out| {
            let (packet, number) = towards_host(packet);
            let mut bytes = packet.bytes().to_vec();
            if frame_error {
                bytes[at] ^= 1;
            } else {
                // A payload that is wrong although all checksums are right.
                bytes[100] ^= 0xff;
                bytes[102] ^= 0xff;
                let sum = u16::from_be_bytes([bytes[40], bytes[41]]);
                assert_ne!(sum, 0);
                bytes[40..42].fill(0);
            }
            out.push(Output::new(u32::from(number), Packet::new(&bytes)));
        });
        network.add_host("h1", host(1)).unwrap();
        network.add_host("h2", host(2)).unwrap();
        network
            .add_link("h1", 0, "s", 1, LinkConfig::new(GIGABIT, 0))
            .unwrap();
        network
            .add_link("s", 2, "h2", 0, LinkConfig::new(GIGABIT, 0))
            .unwrap();
        let flow = network
            .add_udp_stream(&stream("h1", "h2", 1000.0, 3 * MS))
            .unwrap();
        assert_eq!(network.run(Time::from(10 * MS)), Ok(vec![]));
        assert_eq!(network.corrupted(flow), Ok(3));
        assert!(network.received(flow).unwrap().is_empty());
        let counters = network.node_counters("h2").unwrap();
        assert_eq!((counters.corrupted, counters.accepted), (3, 0));
    }
}

#[test]
fn controllers_get_packets_and_send_them() {
    let mut network = Network::new(1, 0);
    // From the controller to port 1, everything else to the controller.
    switch(&mut network, "s", 3 * US, |port, packet, out| {
        let port = if port == 510 { 1 } else { 510 };
        out.push(Output::new(port, packet));
    });
    network.add_host("h1", host(1)).unwrap();
    network
        .add_link("h1", 0, "s", 1, LinkConfig::new(GIGABIT, 0))
        .unwrap();
    network.add_udp_stream(&stream("h1", "h1", 1.0, 1)).unwrap();
    let notifications = network.run(Time::from(MS)).unwrap();
    assert_eq!(
        network.now_ps(),
        Time::from(8_528_000 + 3 * US),
        "it stops at the notification"
    );
    assert_eq!(notifications.len(), 1);
    assert_eq!(
        (notifications[0].time_ps, &*notifications[0].node),
        (network.now_ps(), "s")
    );
    let NotificationEvent::PacketIn { port: 510, data } = &notifications[0].event else {
        panic!("{notifications:?}");
    };
    assert_eq!(data.len(), 1042);
    let mut frame = data.clone();
    frame[..6].copy_from_slice(&host(1).mac.0);
    frame[12] = 0x77;
    network.packet_out("s", &frame).unwrap();
    let out_ps = network.now_ps();
    let notifications = network.run(Time::from(MS)).unwrap();
    let event = NotificationEvent::HostFrame { data: frame };
    let expected = Notification {
        time_ps: out_ps + 3 * US + 8_528_000,
        node: "h1".into(),
        event,
    };
    assert_eq!(notifications, [expected]);
    assert_eq!(network.run(Time::from(MS)), Ok(vec![]));
    assert_eq!(network.now_ps(), Time::from(MS));
    assert_eq!(
        network.packet_out("h1", &[]).unwrap_err().to_string(),
        "\"h1\" is not a switch"
    );
}

#[test]
fn an_instant_is_complete_before_a_run_stops() {
    let mut network = Network::new(1, 0);
    for (name, port) in [("s1", 1), ("s2", 1)] {
        switch(&mut network, name, 0, |_, packet, out| {
            out.push(Output::new(510, packet))
        });
        let host_name = format!("h{name}");
        network.add_host(&host_name, host(1)).unwrap();
        network
            .add_link(&host_name, 0, name, port, LinkConfig::new(GIGABIT, 0))
            .unwrap();
        network
            .add_udp_stream(&stream(&host_name, &host_name, 1.0, 1))
            .unwrap();
    }
    let notifications = network.run(Time::from(MS)).unwrap();
    let nodes: Vec<&str> = notifications.iter().map(|n| &*n.node).collect();
    assert_eq!(
        nodes,
        ["s1", "s2"],
        "same instant, in the order of scheduling"
    );
}

#[test]
fn ports_without_links_drop_and_count() {
    let (mut network, _, _) = pair(1, 0);
    network
        .add_udp_stream(&UdpStream {
            destination: Destination::Ipv4(Ipv4Addr::new(10, 0, 77, 1)),
            ..stream("h1", "", 1000.0, MS)
        })
        .unwrap();
    network.add_host("alone", host(9)).unwrap();
    let lonely = network
        .add_udp_stream(&stream("alone", "h1", 1000.0, MS))
        .unwrap();
    assert_eq!(network.run(Time::from(2 * MS)), Ok(vec![]));
    assert_eq!(network.node_counters("s").unwrap().unconnected_drops, 1);
    assert_eq!(network.node_counters("alone").unwrap().unconnected_drops, 1);
    assert_eq!(network.sent(lonely).unwrap().sent_ps.len(), 1);
}

#[test]
fn a_flow_that_is_ended_sends_nothing_more() {
    let (mut network, _, _) = pair(1, 0);
    let flow = network
        .add_udp_stream(&stream("h1", "h2", 1000.0, 100 * MS))
        .unwrap();
    network.run(Time::from(3 * MS)).unwrap();
    network.end_flow(flow).unwrap();
    network.run(Time::from(100 * MS)).unwrap();
    let expected: Vec<u64> = (0..4).map(|k| k * MS).collect();
    assert_eq!(network.sent(flow).unwrap().sent_ps, expected);
    assert_eq!(network.flow_statistics(flow).unwrap().delivered, 4);
    let unknown = NetError::UnknownFlow(7);
    assert_eq!(network.end_flow(FlowId(7)), Err(unknown));
}

#[test]
fn multicast_is_received_by_whoever_gets_it() {
    let mut network = Network::new(1, 0);
    switch(&mut network, "s", 0, |_, packet, out| {
        for port in [2, 3, 3] {
            out.push(Output::new(port, packet.clone()));
        }
    });
    three_hosts(&mut network);
    let flow = network
        .add_udp_stream(&UdpStream {
            destination: Destination::Ipv4(Ipv4Addr::new(239, 129, 2, 3)),
            ..stream("h1", "", 1000.0, 2 * MS)
        })
        .unwrap();
    let pcap = Captured::default();
    network.capture("h2", 0, Box::new(pcap.clone())).unwrap();
    assert_eq!(network.run(Time::from(5 * MS)), Ok(vec![]));
    assert_eq!(network.received_at(flow, "h2").unwrap().sequence, [0, 1]);
    assert_eq!(
        network.received_at(flow, "h3").unwrap().sequence,
        [0, 0, 1, 1]
    );
    assert!(network.received(flow).unwrap().is_empty());
    let at = |host| network.flow_statistics_at(flow, host).unwrap();
    assert_eq!((at("h2").delivered, at("h2").duplicated), (2, 0));
    assert_eq!((at("h3").delivered, at("h3").duplicated), (2, 2));
    let bytes = pcap.bytes();
    let mut records = wire::pcap::Reader::new(&bytes).unwrap();
    let first = records.next().unwrap().unwrap();
    assert_eq!(&first.frame[..6], &[1, 0, 0x5e, 1, 2, 3]);
}

#[test]
fn captures_show_both_directions_with_their_times() {
    let (mut network, first, _) = pair(1, 0);
    network
        .add_ping(&Ping {
            source: "h1".to_owned(),
            destination: Destination::Host("h2".to_owned()),
            interval_ps: MS,
            start_ps: Time::from(1_500_u64),
            stop_ps: Time::from(2 * MS),
            payload_bytes: 56,
        })
        .unwrap();
    let at_host = Captured::default();
    let at_switch = Captured::default();
    network.capture("h1", 0, Box::new(at_host.clone())).unwrap();
    network
        .capture("s", 2, Box::new(at_switch.clone()))
        .unwrap();
    network
        .set_link_state(first, false, Some(Time::from(MS)))
        .unwrap();
    run_all(&mut network, 3 * MS);
    let times = |bytes: &[u8]| -> Vec<(u64, usize)> {
        let records = wire::pcap::Reader::new(bytes).unwrap();
        records
            .map(|r| r.map(|r| (r.time_ns, r.frame.len())).unwrap())
            .collect()
    };
    // The host hands over its second request although the link is down; then nobody sees it.
    let round_trip_ns = 4 * 5_976 + 4_000;
    assert_eq!(
        times(&at_host.bytes()),
        [(1, 98), (1 + round_trip_ns, 98), (1_000_001, 98)]
    );
    let one_way = 1 + 5_976 + 2_000;
    assert_eq!(
        times(&at_switch.bytes()),
        [(one_way, 98), (one_way + 2 * 5_976, 98)]
    );
    assert!(network.capture("h1", 1, Box::new(Vec::new())).is_err());
    assert!(
        network
            .capture_to_path("h1", 0, Crossings::Both, Path::new("/dev/null/x.pcap"))
            .is_err()
    );
}

struct FullDisk(usize);

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_capture_that_fails_says_so_and_harms_nothing() {
    let (mut network, _, _) = pair(1, 0);
    let flow = network
        .add_udp_stream(&stream("h1", "h2", 1000.0, 5 * MS))
        .unwrap();
    network.capture("s", 2, Box::new(FullDisk(2000))).unwrap();
    let error = network.run(Time::from(10 * MS)).unwrap_err();
    assert!(
        error.to_string().starts_with("capture of s, port 2: "),
        "{error}"
    );
    assert_eq!(network.received(flow).unwrap().len(), 5);
    assert_eq!(
        network.run(Time::from(20 * MS)),
        Ok(vec![]),
        "it says so once"
    );
}

#[test]
fn requests_that_make_no_sense_are_refused_and_change_nothing() {
    let (mut network, link, _) = pair(1, 0);
    let config = LinkConfig::new(GIGABIT, 0);
    let refused = [
        network.add_host("h1", host(3)).err(),
        network.add_host("", host(3)).err(),
        network
            .add_host(
                "h3",
                HostConfig {
                    prefix_len: 33,
                    ..host(3)
                },
            )
            .err(),
        network
            .add_host(
                "h3",
                HostConfig {
                    mac: MacAddress::BROADCAST,
                    ..host(3)
                },
            )
            .err(),
        network
            .add_host(
                "h3",
                HostConfig {
                    mac: MacAddress::default(),
                    ..host(3)
                },
            )
            .err(),
        network.add_interface("i", "").err(),
        network.add_link("h1", 0, "s", 3, config.clone()).err(),
        network.add_link("s", 3, "h1", 0, config.clone()).err(),
        network.add_link("s", 3, "h1", 1, config.clone()).err(),
        network.add_link("s", 3, "s", 3, config.clone()).err(),
        network.add_link("s", 510, "s", 3, config.clone()).err(),
        network.add_link("s", 65_536, "s", 3, config.clone()).err(),
        network.add_link("s", 3, "nobody", 0, config.clone()).err(),
        network
            .add_link(
                "s",
                3,
                "s",
                4,
                LinkConfig {
                    rate_bps: 0,
                    ..config.clone()
                },
            )
            .err(),
        network.set_link_state(LinkId(2), false, None).err(),
        network.set_link_state(LinkId(u32::MAX), false, None).err(),
        network.set_node_state("nobody", false, None).err(),
        network.add_udp_stream(&stream("s", "h1", 1.0, 1)).err(),
        network.add_udp_stream(&stream("h1", "s", 1.0, 1)).err(),
        network.add_udp_stream(&stream("h1", "h2", 0.0, 1)).err(),
        network.sent(FlowId(0)).err(),
        network.received(FlowId(u32::MAX)).err(),
        network.corrupted(FlowId(0)).err(),
        network.link_counters(LinkId(9)).err(),
        network.node_counters("nobody").err(),
        network.send_frame("s", &[]).err(),
        network.switch("h1").err(),
        network.switch_mut("nobody").err(),
    ];
    for (i, error) in refused.iter().enumerate() {
        assert!(
            error.as_ref().is_some_and(|e| !e.to_string().is_empty()),
            "request {i}"
        );
    }
    assert_eq!(network.pending_events(), 0);
    assert_eq!(network.nodes.len(), 3);
    assert_eq!(network.medium.links.len(), 4);
    assert_eq!(network.run(Time::from(MS)), Ok(vec![]));
    let past = NetError::TimeInPast {
        at_ps: Time::from(MS - 1),
        now_ps: Time::from(MS),
    };
    assert_eq!(network.run(Time::from(MS - 1)), Err(past.clone()));
    assert_eq!(
        network.set_link_state(link, false, Some(Time::from(MS - 1))),
        Err(past.clone())
    );
    assert_eq!(
        network.add_udp_stream(&UdpStream {
            start_ps: Time::from(MS - 1),
            ..stream("h1", "h2", 1.0, 2 * MS)
        }),
        Err(past)
    );
    assert_eq!(
        network.run(Time::from(MS)),
        Ok(vec![]),
        "the present is not the past"
    );
    network.add_interface("i", "eth0").unwrap();
    assert!(network.add_interface("j", "eth0").is_err());
    assert_eq!(
        network.run(Time::from(2 * MS)),
        Err(NetError::NeedsWallClock)
    );
}

#[test]
fn hosts_send_raw_frames() {
    let (mut network, _, _) = pair(1, 0);
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&host(2).mac.0);
    frame[32] = 2;
    network.send_frame("h1", &frame).unwrap();
    let notifications = network.run(Time::from(MS)).unwrap();
    assert_eq!(notifications.len(), 1);
    assert!(
        matches!(&notifications[0].event, NotificationEvent::HostFrame { data } if *data == frame)
    );
}

#[test]
fn an_interface_is_one_thing_at_a_time() {
    let mut network = Network::new(1, 0);
    switch(&mut network, "s", 0, |_, _, _| {});
    network.add_host("h", host(1)).unwrap();
    let attach =
        |network: &mut Network, node, port, name| network.attach_interface(node, port, name);
    assert_eq!(attach(&mut network, "s", 3, "eth0"), Ok(0));
    // In use: the port, and the interface as a port and as a node.
    assert!(attach(&mut network, "s", 3, "eth1").is_err());
    assert!(attach(&mut network, "s", 4, "eth0").is_err());
    assert!(network.add_interface("i", "eth0").is_err());
    let link = LinkConfig::new(1_000_000, 0);
    assert!(network.add_link("s", 3, "h", 0, link.clone()).is_err());
    // No switch, no port, no name.
    assert!(attach(&mut network, "h", 0, "eth1").is_err());
    assert!(attach(&mut network, "x", 0, "eth1").is_err());
    assert!(attach(&mut network, "s", CPU_PORT, "eth1").is_err());
    assert!(attach(&mut network, "s", 70_000, "eth1").is_err());
    assert!(attach(&mut network, "s", 4, "").is_err());
    assert!(network.detach_interface("s", 4).is_err());
    assert_eq!(network.port_is_up("s", 3), Ok(true));
    assert_eq!(
        network.run(Time::from(1_u64)),
        Err(NetError::NeedsWallClock)
    );
    assert_eq!(network.detach_interface("s", 3), Ok(0));
    assert_eq!(network.port_is_up("s", 3), Ok(false));
    // Without interfaces the virtual clock will do.
    let told = network
        .run(Time::from(1_u64))
        .unwrap()
        .into_iter()
        .map(|told| told.event);
    let change = |up| NotificationEvent::PortChange { port: 3, up };
    assert_eq!(told.collect::<Vec<_>>(), [change(true), change(false)]);
    network.add_link("s", 3, "h", 0, link).unwrap();
}
