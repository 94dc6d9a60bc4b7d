//! Events per second of the simulation, and packets per second through one trivial switch.
//!
//! Rates are per second of processor time where Linux tells it, so that a busy machine does not spoil them.
//!
//! `cargo bench -p holdfast-net` measures; as a test (without `--bench`) everything runs once, tiny.

#[path = "../../../tests/net/mac_switch.rs"]
mod mac_switch;

use net::{Destination, FlowId, HostConfig, LinkConfig, MacAddress, Network, UdpStream};
use std::net::Ipv4Addr;
use std::time::Instant;

const PS_PER_S: u64 = 1_000_000_000_000;

fn host(number: u8) -> HostConfig {
    HostConfig {
        mac: MacAddress([2, 0, 0, 0, 0, number]),
        ipv4: Ipv4Addr::new(10, 0, 0, number),
        prefix_len: 24,
        gateway_mac: MacAddress([2, 0, 0, 0, 0, 99]),
    }
}

fn stream(network: &mut Network, packets: u64, payload_bytes: usize) -> FlowId {
    let packets_per_s = 1e6;
    let stream = UdpStream {
        source: "h1".to_owned(),
        destination: Destination::Host("h2".to_owned()),
        packets_per_s,
        payload_bytes,
        start_ps: 0,
        stop_ps: packets * (PS_PER_S / 1_000_000),
        source_port: 1,
        destination_port: 2,
    };
    network.add_udp_stream(&stream).expect("a stream")
}

/// Two hosts with `switches` switches between them.
fn line(switches: u32, delay_ps: u64, latency_ps: u64) -> Network {
    let mut network = Network::new(1, 0);
    network.add_host("h1", host(1)).expect("a host");
    network.add_host("h2", host(2)).expect("a host");
    let config = LinkConfig::new(100_000_000_000, delay_ps);
    let mut left = ("h1".to_owned(), 0);
    for i in 0..switches {
        let name = format!("s{i}");
        let entries = [(0x0200_0000_0001, 1), (0x0200_0000_0002, 2)];
        network
            .add_switch(&name, mac_switch::mac_switch(&entries, 0), latency_ps)
            .expect("a switch");
        network
            .add_link(&left.0, left.1, &name, 1, config.clone())
            .expect("a link");
        left = (name, 2);
    }
    network
        .add_link(&left.0, left.1, "h2", 0, config.clone())
        .expect("a link");
    network
}

/// Whether this is `cargo bench`, not a test.
fn measuring() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// Seconds of processor time of this thread; of wall-clock time where that is not known.
fn seconds(since: Instant) -> f64 {
    let on_processor_ns = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    on_processor_ns.map_or_else(|| since.elapsed().as_secs_f64(), |ns| ns / 1e9)
}

fn measure(what: &str, mut network: Network, packets: u64, payload_bytes: usize, switches: u64) {
    let flow = stream(&mut network, packets, payload_bytes);
    let since = Instant::now();
    let start = seconds(since);
    let notifications = network.run(packets * PS_PER_S).expect("it runs");
    let seconds = seconds(since) - start;
    assert!(notifications.is_empty());
    let received = network.received(flow).expect("a log").len() as u64;
    assert_eq!(received, packets);
    if !measuring() {
        // Too short a time to say anything about.
        return;
    }
    let steps = network.steps() as f64;
    println!(
        "{what:<42} {:>6.2} M events/s  {:>6.2} M packets/s{}",
        steps / seconds / 1e6,
        packets as f64 / seconds / 1e6,
        if switches > 0 {
            format!(
                "  {:.0} ns per switch and packet",
                seconds * 1e9 / (packets * switches) as f64
            )
        } else {
            String::new()
        },
    );
}

fn main() {
    let packets = if measuring() { 1_000_000 } else { 1_000 };
    let us = 1_000_000;
    measure("link, 64 B, few in flight", line(0, us, 0), packets, 64, 0);
    measure(
        "link, 64 B, 10,000 in flight",
        line(0, 10_000 * us, 0),
        packets,
        64,
        0,
    );
    measure("link, 1000 B", line(0, us, 0), packets, 1000, 0);
    measure("one switch, 64 B", line(1, us, 0), packets, 64, 1);
    measure("one switch, 1000 B", line(1, us, 0), packets, 1000, 1);
    measure("one switch of 1 us, 64 B", line(1, us, us), packets, 64, 1);
    measure("ten switches, 64 B", line(10, us, 0), packets / 10, 64, 10);
}
