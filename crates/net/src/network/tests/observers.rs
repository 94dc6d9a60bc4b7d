//! Observers see what counters count, and change nothing.

use super::*;
use crate::DropCounts;
use crate::observer::{DropReason, Moment, Observation, Place};
use std::sync::{Arc, Mutex};

/// Keeps what it is told, as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Observer for Log {
    fn observe(&mut self, moment: Moment, place: Place<'_>, seen: &Observation<'_>) {
        let what = match seen {
            Observation::Received(_) => "received".to_owned(),
            Observation::Sent(_) => "sent".to_owned(),
            Observation::Queued(_) => "queued".to_owned(),
            Observation::Dropped { reason, packets } => format!("{} x{packets}", reason.name()),
            Observation::LinkChanged { up } => format!("link {up}"),
            Observation::NodeChanged { up } => format!("node {up}"),
            Observation::PortChanged { up } => format!("port {up}"),
            Observation::Traced { .. } | Observation::NotTraced => "traced".to_owned(),
        };
        let Place { name, port, .. } = place;
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        let time_us = moment.time_ps.us();
        let mut log = self.0.lock().unwrap();
        log.push(format!("{time_us} {name}{port} {what}"));
    }
}

impl Log {
    fn take(&self) -> String {
        self.0
            .lock()
            .unwrap()
            .drain(..)
            .map(|line| line + "\n")
            .collect()
    }
}

#[test]
fn a_packet_and_a_failure_as_they_happen() {
    let (mut network, _, second) = pair(1, 10 * US);
    let log = Log::default();
    let id = network.observe(Scope::Network, Box::new(log.clone()));
    network
        .add_udp_stream(&stream("h1", "h2", 50_000.0, 60 * US))
        .unwrap();
    network
        .set_link_state(second, false, Some(Time::from(41 * US)))
        .unwrap();
    run_all(&mut network, MS);
    expect_test::expect![[r#"
        0 h1:0 sent
        13 s:1 received
        15 s:2 sent
        20 h1:0 sent
        29 h2:0 received
        33 s:1 received
        35 s:2 sent
        40 h1:0 sent
        41 s:2 link false
        41 s:2 link_down x1
        41 h2:0 link false
        51 s:2 port false
        53 s:1 received
        55 s:2 sent
        55 s:2 link_down x1
    "#]]
    .assert_eq(&log.take());
    let node = network.node_id("h1").unwrap();
    assert!(network.end_observation(id).is_some());
    assert!(network.end_observation(id).is_none());
    network.observe(Scope::Port(node, 0), Box::new(log.clone()));
    for _ in 0..2 {
        network.send_frame("h1", &[0; 60]).unwrap();
    }
    network.set_node_state("s", false, None).unwrap();
    run_all(&mut network, 2 * MS);
    assert_eq!(
        log.take(),
        "1000 h1:0 sent\n1000 h1:0 sent\n1000 h1:0 queued\n1000 h1:0 link false\n1000 h1:0 link_down x2\n"
    );
}

/// Runs a network in which many packets are lost, and returns it with its links and, if `observed`, the observer that
/// counted the drops.
fn lossy(observed: bool) -> (Network, Vec<LinkId>, Option<ObserverId>) {
    let (mut network, first, second) = pair(5, 0);
    network.set_reaction_ps(u64::MAX);
    let config = LinkConfig {
        queue: QueueConfig::packets(3),
        loss: Loss::Bernoulli(0.2),
        mtu_bytes: Some(1028),
        ..LinkConfig::new(5_000_000, 20 * US)
    };
    network
        .configure_direction(second, crate::LinkDirection::AToB, config)
        .unwrap();
    let id = observed.then(|| network.observe(Scope::Network, Box::new(DropCounts::default())));
    let mut long = stream("h1", "h2", 100.0, 200 * MS);
    long.payload_bytes = 1001;
    network.add_udp_stream(&long).unwrap();
    network
        .add_udp_stream(&stream("h1", "h2", 1500.0, 200 * MS))
        .unwrap();
    network
        .set_link_state(second, false, Some(Time::from(90 * MS)))
        .unwrap();
    network
        .set_link_state(second, true, Some(Time::from(120 * MS)))
        .unwrap();
    network
        .set_node_state("s", false, Some(Time::from(150 * MS)))
        .unwrap();
    network
        .set_node_state("s", true, Some(Time::from(151 * MS)))
        .unwrap();
    run_all(&mut network, 300 * MS);
    (network, vec![first, second], id)
}

#[test]
fn drops_by_reason_are_what_the_counters_say_and_results_are_the_same() {
    let (network, links, id) = lossy(true);
    let (unobserved, ..) = lossy(false);
    let counts = network.observer::<DropCounts>(id.unwrap()).unwrap();
    let of = |node: &str, reason| counts.at(network.node_id(node).unwrap(), reason);
    let c = network.link_counters(links[1]).unwrap().a_to_b;
    assert_eq!(of("s", DropReason::QueueFull), c.queue_drops);
    assert_eq!(of("s", DropReason::Mtu), c.mtu_drops);
    assert!(c.queue_drops > 0 && c.mtu_drops > 0 && c.loss_drops > 0);
    // A packet that was to be lost on the wire and waited when the link failed is lost at random to an observer, which was told before.
    let lost = of("s", DropReason::Loss) + of("s", DropReason::LinkDown);
    assert_eq!(lost, c.loss_drops + c.down_drops);
    let down = network.link_counters(links[0]).unwrap().a_to_b.down_drops;
    assert_eq!(of("h1", DropReason::LinkDown), down);
    let nodes = network.node_counters("s").unwrap();
    assert_eq!(of("s", DropReason::NodeDown), nodes.down_drops);
    for link in links {
        assert_eq!(network.link_counters(link), unobserved.link_counters(link));
    }
    assert_eq!(network.node_counters("h2"), unobserved.node_counters("h2"));
    assert!(counts.total() > 0);
}

#[test]
fn a_capture_takes_both_directions_or_one() {
    let (mut network, _, _) = pair(1, 0);
    let files = [Crossings::Both, Crossings::In, Crossings::Out].map(|crossings| {
        let file = Captured::default();
        network
            .capture_some("s", 1, crossings, Box::new(file.clone()))
            .unwrap();
        file
    });
    network
        .add_udp_stream(&stream("h1", "h2", 1000.0, 3 * MS))
        .unwrap();
    network
        .add_udp_stream(&stream("h2", "h1", 1000.0, 5 * MS))
        .unwrap();
    run_all(&mut network, 10 * MS);
    let counts = files.map(|file| wire::pcap::Reader::new(&file.bytes()).unwrap().count());
    assert_eq!(counts, [8, 3, 5]);
}
