//! Looking ahead in large networks: nothing in a run depends on it.

use super::*;

/// The logs of a stream among so many bystanders, and how many lines of the switch it was looked ahead for.
fn among(bystanders: usize) -> (ReceivedLog, NodeCounters, usize) {
    let (mut network, first, _) = pair(3, 0);
    for i in 0..bystanders {
        network.add_host(&format!("bystander{i}"), host(7)).unwrap();
    }
    network
        .set_link_state(first, false, Some(700 * US))
        .unwrap();
    let flow = network
        .add_udp_stream(&stream("h1", "h2", 100_000.0, MS))
        .unwrap();
    run_all(&mut network, 2 * MS);
    let log = network.received(flow).unwrap().clone();
    let switch = network.by_name["s"];
    let lines = network.ahead.lines_of(switch);
    (log, network.node_counters("s").unwrap(), lines)
}

#[test]
fn bystanders_change_nothing() {
    let (log, counters, lines) = among(0);
    assert_eq!(lines, 0, "a small network is not looked ahead in");
    assert!(log.len() > 50 && log.len() < 80);
    let (log_of_many, counters_of_many, lines) = among(400);
    assert!(lines > 5, "{lines}");
    assert_eq!((log_of_many, counters_of_many), (log, counters));
}
