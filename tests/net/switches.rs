//! Tests networks with real switches through the public interface.
#![allow(
    clippy::disallowed_methods,
    reason = "a test waits for what runs in real time, or measures"
)]

mod hosts;
mod mac_switch;

use engine::Packet;
use engine::Time;
use hosts::{host, mac};
use mac_switch::mac_switch;
use net::clock::wall::{NoInterfaces, WallClock};
use net::{Destination, FlowId, LinkConfig, LinkId, Network, NotificationEvent, Ping, UdpStream};
use std::time::{Duration, Instant};

const US: u64 = 1_000_000;
const MS: u64 = 1_000_000_000;

fn mac_value(number: u8) -> u64 {
    0x0200_0000_0000 | u64::from(number)
}

/// Builds h1 - s1 = s2 - h2 with two links in the middle, of which the first (ports 2) is used. The hosts think that they share a
/// subnet.
fn network(seed: u64) -> (Network, Vec<LinkId>) {
    let mut network = Network::new(seed, 10 * US);
    for (name, near, far) in [("s1", 1, 2), ("s2", 2, 1)] {
        let seed = network.seed_of(name);
        let entries = [(mac_value(near), 1), (mac_value(far), 2)];
        network
            .add_switch(name, mac_switch(&entries, seed), US)
            .unwrap();
    }
    for number in [1, 2] {
        let name = format!("h{number}");
        network.add_host(&name, host(number)).unwrap();
    }
    let config = LinkConfig::new(1_000_000_000, 50 * US);
    let ends = [
        ("h1", 0, "s1", 1),
        ("s1", 2, "s2", 2),
        ("s1", 3, "s2", 3),
        ("s2", 1, "h2", 0),
    ];
    let links = ends.map(|(a, a_port, b, b_port)| {
        network
            .add_link(a, a_port, b, b_port, config.clone())
            .unwrap()
    });
    (network, links.to_vec())
}

fn stream(network: &mut Network, stop_ps: u64) -> FlowId {
    let stream = UdpStream {
        source: "h1".to_owned(),
        destination: Destination::Host("h2".to_owned()),
        packets_per_s: 10_000.0,
        spacing: net::Spacing::Constant,
        payload_bytes: 200,
        start_ps: Time::ZERO,
        stop_ps: Time::from(stop_ps),
        source_port: 5001,
        destination_port: 5001,
        log_packets: true,
    };
    network.add_udp_stream(&stream).unwrap()
}

#[test]
fn pings_cross_two_switches() {
    let (mut network, links) = network(1);
    let ping = Ping {
        source: "h1".to_owned(),
        destination: Destination::Host("h2".to_owned()),
        interval_ps: MS,
        start_ps: Time::ZERO,
        stop_ps: Time::from(10 * MS),
        payload_bytes: 56,
    };
    let flow = network.add_ping(&ping).unwrap();
    assert_eq!(network.run(Time::from(20 * MS)), Ok(vec![]));
    let statistics = network.flow_statistics(flow).unwrap();
    assert_eq!(
        (statistics.sent, statistics.delivered, statistics.duplicated),
        (10, 10, 0)
    );
    // Six times 98 bytes (122 on the wire, 0.976 us) over 50 us, and four times through a switch.
    let latency = statistics.latency.unwrap();
    assert_eq!(
        (latency.min_ps, latency.max_ps),
        (6 * 50_976_000 + 4 * US, 6 * 50_976_000 + 4 * US)
    );
    assert_eq!(network.link_counters(links[2]).unwrap().a_to_b.offered, 0);
}

#[test]
fn a_failure_costs_exactly_what_was_sent_into_it() {
    let (mut network, links) = network(1);
    let flow = stream(&mut network, 100 * MS);
    network
        .set_link_state(links[1], false, Some(Time::from(20 * MS)))
        .unwrap();
    network
        .set_link_state(links[1], true, Some(Time::from(30 * MS)))
        .unwrap();
    let mut port_changes = Vec::new();
    while network.now_ps() < Time::from(200 * MS) {
        for notification in network.run(Time::from(200 * MS)).unwrap() {
            let NotificationEvent::PortChange { port, up } = notification.event else {
                panic!("{notification:?}");
            };
            port_changes.push((
                notification.time_ps.saturating_ps(),
                notification.node.to_string(),
                port,
                up,
            ));
        }
    }
    let change = |at_ps: u64, node: &str, up| (at_ps + 10 * US, node.to_owned(), 2, up);
    // The direction towards s2 comes first.
    let expected = [
        change(20 * MS, "s2", false),
        change(20 * MS, "s1", false),
        change(30 * MS, "s2", true),
        change(30 * MS, "s1", true),
    ];
    assert_eq!(port_changes, expected);
    // 266 bytes on the wire: 2.128 us. A packet is offered to the link 53.128 us after it was sent, and arrives 52.128 us later.
    // So number 199 (19.9 ms) is under way when the link fails, number 299 is offered before the repair, number 300 after.
    let log = network.received(flow).unwrap();
    let lost: Vec<u64> = (0..1000)
        .filter(|sequence| !log.sequence.contains(sequence))
        .collect();
    assert_eq!(lost, (199..300).collect::<Vec<u64>>());
    let counters = network.link_counters(links[1]).unwrap().a_to_b;
    assert_eq!(counters.down_drops, lost.len() as u64);
    assert_eq!(counters.offered, counters.delivered + counters.down_drops);
}

#[test]
fn unknown_stations_go_to_the_controller_which_answers() {
    let (mut network, _) = network(1);
    let mut frame = [mac(77).0, mac(1).0].concat();
    frame.extend_from_slice(&[0x12, 0x34, 1, 2, 3]);
    network.send_frame("h1", &frame).unwrap();
    let digest = network.run(Time::from(MS)).unwrap();
    assert_eq!(digest.len(), 1);
    // 17 bytes are padded to a minimum frame, 0.672 us.
    assert_eq!(digest[0].time_ps, Time::from(50_672_000_u64));
    assert_eq!(&*digest[0].node, "s1");
    assert_eq!(digest[0].event, NotificationEvent::Digest);
    let now_ps = network.now_ps();
    let lists = network
        .switch_mut("s1")
        .unwrap()
        .runtime_mut()
        .digests_mut()
        .take(now_ps);
    assert_eq!(lists[0].messages[0][0].to_u64(), Some(mac_value(77)));
    let packet_in = network.run(Time::from(MS)).unwrap();
    assert_eq!(
        packet_in[0].time_ps,
        Time::from(51_672_000_u64),
        "the switch takes its time for it too"
    );
    let event = NotificationEvent::PacketIn {
        port: 510,
        data: frame.clone(),
    };
    assert_eq!(packet_in[0].event, event);
    // Back out through the same table, to h2.
    frame[..6].copy_from_slice(&mac(2).0);
    network.packet_out("s1", &frame).unwrap();
    let at_host = network.run(Time::from(MS)).unwrap();
    assert_eq!(&*at_host[0].node, "h2");
    assert_eq!(
        at_host[0].event,
        NotificationEvent::HostFrame { data: frame }
    );
    assert_eq!(network.run(Time::from(MS)), Ok(vec![]));
}

#[test]
fn both_clocks_run_the_same_network() {
    let (mut simulated, _) = network(1);
    let flow = stream(&mut simulated, 50 * MS);
    simulated.run(Time::from(100 * MS)).unwrap();
    let (mut live, _) = network(1);
    assert_eq!(stream(&mut live, 50 * MS), flow);
    let clock = WallClock::start(live, Box::new(NoInterfaces::default())).unwrap();
    // The loop is behind the clock on a busy machine, so what it has done counts, not what time it is.
    let arrived = || clock.call(move |n| n.received(flow).map(net::ReceivedLog::len));
    let deadline = Instant::now() + Duration::from_secs(60);
    while arrived() != Ok(Ok(500)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (live, _) = clock.stop().unwrap();
    // With modelled hosts only, nothing depends on when the loop got round to an event.
    assert_eq!(simulated.sent(flow), live.sent(flow));
    assert_eq!(simulated.received(flow), live.received(flow));
    assert_eq!(live.received(flow).unwrap().len(), 500);
}

#[test]
fn a_switch_of_a_network_is_controlled_between_packets() {
    let (mut network, _) = network(1);
    let mut out = Vec::new();
    let switch = network.switch_mut("s2").unwrap();
    let frame = [mac(2).0, mac(1).0].concat();
    switch.receive(
        Time::ZERO,
        2,
        Packet::new(&[&frame[..], &[8, 0]].concat()),
        &mut out,
    );
    assert_eq!(out[0].port, 1);
    assert_eq!(network.switch("s2").unwrap().config().cpu_port, 510);
}
