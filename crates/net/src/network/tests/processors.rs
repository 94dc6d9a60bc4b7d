//! Switches with processors: packets of all ports wait for one, in order, and what does not fit is counted.

use super::*;
use crate::{Network, ProcessorConfig};

const MS: u64 = 1000 * US;

fn processor(exponential: bool, queue_packets: u64) -> ProcessorConfig {
    ProcessorConfig {
        service_ps: MS,
        exponential,
        queue_packets,
    }
}

/// Runs a second of two streams of 1500 packets/s each through a switch with a processor. Returns the network, the
/// numbers of packets that h2 and h1 received, and the statistics of the stream to h2.
fn overloaded(config: ProcessorConfig) -> (Network, u64, u64, crate::FlowStatistics) {
    let (mut network, _, _) = pair(3, 0);
    network.add_processor("s", config).unwrap();
    let there = (network.add_udp_stream(&stream("h1", "h2", 1500.0, 1000 * MS))).unwrap();
    let back = (network.add_udp_stream(&stream("h2", "h1", 1500.0, 1000 * MS))).unwrap();
    run_all(&mut network, 2000 * MS);
    let found = network.flow_statistics(there).unwrap();
    let other = network.flow_statistics(back).unwrap();
    (network, found.delivered, other.delivered, found)
}

#[test]
fn ports_share_a_processor() {
    let (network, there, back, found) = overloaded(processor(false, 10));
    // One packet per millisecond, of both directions together, and those that wait at the end.
    assert!((1000..=1012).contains(&(there + back)), "{there} {back}");
    let counters = network.node_counters("s").unwrap();
    assert_eq!(counters.queue_drops, 3000 - there - back);
    let longest = found.latency.unwrap().max_ps;
    assert!(
        (10 * MS..=11 * MS + 100 * US).contains(&longest),
        "{longest}"
    );
}

#[test]
fn times_may_be_random() {
    let (_, there, back, found) = overloaded(processor(true, 10));
    assert!((920..=1080).contains(&(there + back)), "{there} {back}");
    let latency = found.latency.unwrap();
    assert!(latency.max_ps > 12 * MS && latency.min_ps < 9 * MS);
    let again = overloaded(processor(true, 10)).3;
    assert_eq!(found, again);
}

#[test]
fn a_failed_switch_loses_what_waits() {
    let (mut network, _, _) = pair(1, 0);
    network.add_processor("s", processor(false, 100)).unwrap();
    let flow = (network.add_udp_stream(&stream("h1", "h2", 10_000.0, 10 * MS))).unwrap();
    network
        .set_node_state("s", false, Some(Time::from(20 * MS)))
        .unwrap();
    network
        .set_node_state("s", true, Some(Time::from(21 * MS)))
        .unwrap();
    run_all(&mut network, 500 * MS);
    let found = network.flow_statistics(flow).unwrap();
    let counters = network.node_counters("s").unwrap();
    assert_eq!(counters.queue_drops, 0);
    assert!((19..=20).contains(&found.delivered), "{}", found.delivered);
    assert_eq!(counters.down_drops, 100 - found.delivered);
}

#[test]
fn parameters_are_checked() {
    let (mut network, _, _) = pair(1, 0);
    let never = ProcessorConfig {
        service_ps: 0,
        ..processor(false, 1)
    };
    assert!(network.add_processor("s", never).is_err());
    assert!(network.add_processor("h1", processor(false, 1)).is_err());
    network.add_processor("s", processor(false, 1)).unwrap();
    assert!(network.add_processor("s", processor(false, 1)).is_err());
}
