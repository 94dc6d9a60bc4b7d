//! Tests switches with traffic managers through the public interface: where packets wait, for how long, and the metadata that the program gets.
#![allow(
    clippy::disallowed_methods,
    reason = "a test waits for what runs in real time, or measures"
)]

mod captured;
mod hosts;
mod tagged_switch;

use captured::Captured;
use engine::DropReason;
use engine::Time;
use hosts::host;
use net::clock::wall::{FrameIo, NoInterfaces, SendOutcome, WallClock};
use net::{
    LinkConfig, LinkId, MarkAbove, Network, NotificationEvent, QueueConfig, QueueStatistics,
    QueueUnit, Queueing, RecirculationConfig, RecirculationStatistics, Red, Spread,
    TrafficManagerConfig,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tagged_switch::{
    CLONE_EGRESS, CLONE_FOR_EVER, CLONE_INGRESS, DROP, FORWARD, MULTICAST, RECIRCULATE, Tag, group,
    session, tagged_switch,
};

const US: u64 = 1_000_000;
const MS: u64 = 1_000_000_000;
/// 1,000 bytes, 1,024 on the wire: 8.192 us at 1 Gb/s, 8.192 ns at 1 Tb/s.
const FRAME: usize = 1000;
const FRAME_PS: u64 = 8_192_000;
const FAST_PS: u64 = 8192;
/// The latency of the switch.
const LATENCY_PS: u64 = US;

/// Hosts h1 to h4 on the ports of these numbers of a switch s; h1's link is a thousand times as fast as those of the others.
struct Bench {
    network: Network,
    links: Vec<LinkId>,
    executor: bool,
}

impl Bench {
    fn with_link(jit: bool, reads_queues: bool, link: &LinkConfig) -> Bench {
        let mut network = Network::new(1, 0);
        let switch = tagged_switch(jit, reads_queues);
        network.add_switch("s", switch, LATENCY_PS).unwrap();
        let links = (1..=4u8).map(|number| {
            let name = format!("h{number}");
            network.add_host(&name, host(number)).unwrap();
            let link = match number {
                1 => LinkConfig {
                    queue: QueueConfig::packets(1000),
                    ..LinkConfig::new(1_000_000_000_000, 0)
                },
                _ => link.clone(),
            };
            let port = u32::from(number);
            network.add_link("s", port, &name, 0, link).unwrap()
        });
        let links = links.collect();
        Bench {
            network,
            links,
            executor: jit,
        }
    }

    fn new(jit: bool) -> Bench {
        Bench::with_link(jit, true, &LinkConfig::new(1_000_000_000, 0))
    }

    fn send(&mut self, tags: &[Tag]) {
        for tag in tags {
            self.network.send_frame("h1", &tag.frame(FRAME)).unwrap();
        }
    }

    /// Runs the network to a time, and returns what arrives at the hosts by then: when in picoseconds, where and what.
    fn run(&mut self, until_ps: u64) -> Vec<(u64, String, Tag)> {
        let mut all = Vec::new();
        while self.network.now_ps() < Time::from(until_ps) {
            for notification in self.network.run(Time::from(until_ps)).unwrap() {
                if let NotificationEvent::HostFrame { data } = notification.event {
                    let node = notification.node.to_string();
                    all.push((notification.time_ps.saturating_ps(), node, Tag::of(&data)));
                }
            }
        }
        all
    }

    fn queue(&self, port: u32, queue: u8) -> QueueStatistics {
        let all = self.network.queue_statistics("s").unwrap();
        let found = all.iter().find(|(p, q, _)| (*p, *q) == (port, queue));
        found.map(|(_, _, statistics)| *statistics).unwrap()
    }
}

/// Builds a bench on either executor.
fn benches() -> [Bench; 2] {
    [Bench::new(false), Bench::new(true)]
}

fn to(port: u8, priority: u8) -> Tag {
    Tag {
        kind: FORWARD,
        port,
        priority,
        ..Tag::default()
    }
}

/// Returns when the packet of this number (from 1 on) of those that h1 sent at time 0 reaches its queue.
fn queued_ps(number: u64) -> u64 {
    number * FAST_PS + LATENCY_PS
}

#[test]
fn depths_and_times_reach_the_program() {
    for mut bench in benches() {
        assert_eq!(bench.network.has_traffic_manager("s"), Ok(true));
        bench.send(&[to(2, 0); 4]);
        let sent = |number: u64, enq_qdepth, deq_timedelta, deq_qdepth| {
            let tag = Tag {
                enq_timestamp: 1,
                enq_qdepth,
                deq_timedelta,
                deq_qdepth,
                ..to(2, 0)
            };
            (queued_ps(1) + number * FRAME_PS, "h2".to_owned(), tag)
        };
        // The first is taken at once. Behind it the queue grows to three and shrinks again; they wait for 8.18, 16.37 and 24.55 us.
        let expected = [
            sent(1, 0, 0, 0),
            sent(2, 0, 8, 2),
            sent(3, 1, 16, 1),
            sent(4, 2, 24, 0),
        ];
        assert_eq!(bench.run(MS), expected, "jit: {}", bench.executor);
        assert_eq!(bench.network.pending_events(), 0);
        let queue = bench.queue(2, 0);
        assert_eq!((queue.offered, queue.taken, queue.packets), (4, 4, 0));
        assert_eq!((queue.max_packets, queue.max_bytes), (3, 3000));
        // Three waited, for that long in all.
        let waited_ps = (1..4).map(|n| queued_ps(1) + n * FRAME_PS - queued_ps(n + 1));
        let waited_ps = waited_ps.sum::<u64>();
        assert_eq!(queue.mean_packets, waited_ps as f64 / MS as f64);
        assert_eq!(queue.mean_bytes, (waited_ps * 1000) as f64 / MS as f64);
        // The link's own queue had nothing to do.
        let link = bench.network.link_counters(bench.links[1]).unwrap().a_to_b;
        assert_eq!((link.packets, link.queue_drops), (4, 0));
    }
}

#[test]
fn higher_priorities_first_and_depths_by_queue() {
    for mut bench in benches() {
        let tags = [0, 1, 7, 3, 7, 0].map(|priority| to(2, priority));
        bench.send(&tags);
        let arrived = bench.run(MS);
        let order: Vec<(u8, u32, u32)> = arrived
            .iter()
            .map(|(_, _, tag)| (tag.priority, tag.enq_qdepth, tag.deq_qdepth))
            .collect();
        let expected = [
            (0, 0, 0),
            (7, 0, 1),
            (7, 1, 0),
            (3, 0, 0),
            (1, 0, 0),
            (0, 0, 0),
        ];
        assert_eq!(order, expected, "jit: {}", bench.executor);
    }
    // With three queues, what is above the third goes there, in order.
    let mut bench = Bench::new(true);
    let three = TrafficManagerConfig {
        queues: 3,
        ..TrafficManagerConfig::default()
    };
    bench
        .network
        .set_queueing("s", Queueing::Auto, three)
        .unwrap();
    bench.send(&[0, 1, 6, 2, 7, 0].map(|priority| to(2, priority)));
    let order: Vec<u8> = bench
        .run(MS)
        .iter()
        .map(|(_, _, tag)| tag.priority)
        .collect();
    assert_eq!(order, [0, 6, 2, 7, 1, 0]);
}

#[test]
fn limits_by_queue_in_packets_and_bytes() {
    let mut bench = Bench::new(true);
    let config = TrafficManagerConfig {
        queue: Some(QueueConfig::bytes(2500)),
        by_priority: BTreeMap::from([(5, QueueConfig::packets(1))]),
        ..TrafficManagerConfig::default()
    };
    bench
        .network
        .set_queueing("s", Queueing::Auto, config)
        .unwrap();
    bench.send(&[to(2, 0); 5]);
    bench.send(&[to(2, 5); 3]);
    let arrived = bench.run(MS);
    assert_eq!(arrived.len(), 4);
    let (low, high) = (bench.queue(2, 0), bench.queue(2, 5));
    assert_eq!((low.offered, low.queue_drops, low.max_bytes), (5, 2, 2000));
    assert_eq!(
        (high.offered, high.queue_drops, high.max_packets),
        (3, 2, 1)
    );
    assert_eq!(bench.network.node_counters("s").unwrap().queue_drops, 4);
}

#[test]
fn replicas_and_clones_wait_too() {
    for mut bench in benches() {
        group(bench.network.switch_mut("s").unwrap(), 1, &[2, 3, 2]);
        session(bench.network.switch_mut("s").unwrap(), 1, &[3], 5);
        let kind = |kind| Tag { kind, ..to(2, 0) };
        bench.send(&[kind(MULTICAST), kind(CLONE_INGRESS), kind(CLONE_EGRESS)]);
        let seen: Vec<_> = bench
            .run(MS)
            .into_iter()
            .map(|(time_ps, node, tag)| {
                let frames = (time_ps - LATENCY_PS) / FRAME_PS;
                (frames, node, tag.kind, tag.instance, tag.enq_qdepth)
            })
            .collect();
        let at = |frames, host: &str, kind, instance, depth| {
            (frames, host.to_owned(), kind, instance, depth)
        };
        let expected = [
            // The replicas for h2 and h3 at once, then what waited behind them: the second replica, the clone from ingress with
            // its higher priority, the packets; the clone from egress only when its original went.
            at(1, "h2", MULTICAST, 5, 0),
            at(1, "h3", MULTICAST, 5, 0),
            at(2, "h2", MULTICAST, 5, 0),
            at(2, "h3", CLONE_INGRESS, 1, 0),
            at(3, "h2", CLONE_INGRESS, 0, 1),
            at(4, "h2", CLONE_EGRESS, 0, 2),
            at(4, "h3", CLONE_EGRESS, 2, 0),
        ];
        let mut seen = seen;
        seen.sort_by_key(|(frames, node, ..)| (*frames, node.clone()));
        assert_eq!(seen, expected, "jit: {}", bench.executor);
        // The clone from ingress came with the session's class of service.
        assert_eq!(bench.queue(3, 5).offered, 2);
    }
}

#[test]
fn recirculation_takes_the_time_of_its_port() {
    let kind = |kind| Tag { kind, ..to(2, 0) };
    let run = |recirculation| {
        let mut bench = Bench::new(true);
        let config = TrafficManagerConfig {
            recirculation,
            ..TrafficManagerConfig::default()
        };
        bench
            .network
            .set_queueing("s", Queueing::Auto, config)
            .unwrap();
        bench.send(&[kind(RECIRCULATE), kind(RECIRCULATE)]);
        let times: Vec<u64> = bench.run(MS).iter().map(|(time_ps, ..)| *time_ps).collect();
        let ports = bench.network.recirculation_statistics("s").unwrap();
        let seen =
            |port: &RecirculationStatistics| (port.passes, port.queue_drops, port.utilisation);
        (times, ports.iter().map(seen).collect::<Vec<_>>())
    };
    let gigabit = |ports, packets| {
        Some(RecirculationConfig {
            ports,
            queue_packets: Some(packets),
            ..RecirculationConfig::new(1_000_000_000)
        })
    };
    let share = FRAME_PS as f64 / MS as f64;
    let again_ps = queued_ps(1) + LATENCY_PS;
    // Without a rate, only ingress is run again: one latency.
    let (times, ports) = run(None);
    assert_eq!(times, [again_ps + FRAME_PS, again_ps + 2 * FRAME_PS]);
    assert_eq!(ports, []);
    // With the rate of a link, one frame's time more.
    let both = [again_ps + 2 * FRAME_PS, again_ps + 3 * FRAME_PS];
    assert_eq!(run(gigabit(1, 1)), (both.into(), vec![(2, 0, 2.0 * share)]));
    // Without a queue, the second is lost, unless there is another port.
    let first = vec![both[0]];
    assert_eq!(run(gigabit(1, 0)), (first, vec![(1, 1, share)]));
    let each = (1, 0, share);
    assert_eq!(run(gigabit(2, 0)), (both.into(), vec![each, each]));
}

#[test]
fn what_egress_drops_takes_no_time() {
    for mut bench in benches() {
        let drop = Tag {
            kind: DROP,
            ..to(2, 0)
        };
        bench.send(&[to(2, 0), drop, drop, to(2, 0)]);
        let times: Vec<u64> = bench.run(MS).iter().map(|(time_ps, ..)| *time_ps).collect();
        let first_ps = queued_ps(1) + FRAME_PS;
        assert_eq!(times, [first_ps, first_ps + FRAME_PS]);
        let drops = bench.network.switch("s").unwrap().drops();
        assert_eq!(drops[&DropReason::EgressDrop], 2);
    }
}

#[test]
fn what_goes_round_for_ever_ends() {
    for mut bench in benches() {
        // Each makes two of itself and is dropped, at one time.
        session(bench.network.switch_mut("s").unwrap(), 2, &[2, 3], 0);
        bench.send(&[
            Tag {
                kind: CLONE_FOR_EVER,
                ..to(2, 0)
            },
            to(2, 0),
        ]);
        assert_eq!(bench.run(MS).len(), 1);
        let drops = bench.network.switch("s").unwrap().drops();
        assert!(drops[&DropReason::RecirculationLimit] > 0, "{drops:?}");
    }
}

#[test]
fn a_queue_marks_what_can_be_marked() {
    let mut bench = Bench::new(true);
    let config = TrafficManagerConfig {
        queue: Some(QueueConfig {
            mark_above: Some(MarkAbove::new(QueueUnit::Packets, 1)),
            ..QueueConfig::packets(100)
        }),
        ..TrafficManagerConfig::default()
    };
    bench
        .network
        .set_queueing("s", Queueing::Auto, config)
        .unwrap();
    let captures = [2, 4].map(|port| {
        let capture = Captured::default();
        bench
            .network
            .capture("s", port, Box::new(capture.clone()))
            .unwrap();
        capture
    });
    // To the switch the number of a port; as IPv4, 2 says that marks are understood and 4 that they are not.
    for port in [2, 4] {
        for _ in 0..5 {
            let frame = Tag {
                kind: 0x45,
                ..to(port, 0)
            }
            .ipv4_frame(FRAME);
            bench.network.send_frame("h1", &frame).unwrap();
        }
    }
    bench.run(MS);
    // One is sent and two find at most one packet waiting; two are marked, or dropped.
    let sent = captures.map(|capture| {
        frames(&capture)
            .map(|frame| Tag::of(&frame).port)
            .collect::<Vec<_>>()
    });
    assert_eq!(sent, [vec![2, 2, 2, 3, 3], vec![4, 4, 4]]);
    assert_eq!(
        (bench.queue(2, 0).marked, bench.queue(4, 0).red_drops),
        (2, 2)
    );
}

/// Returns the frames of a capture, which all have one size.
fn frames(capture: &Captured) -> impl Iterator<Item = Vec<u8>> {
    let bytes = capture.bytes();
    let records = bytes[24..]
        .chunks_exact(16 + FRAME)
        .map(|record| record[16..].to_vec());
    records.collect::<Vec<_>>().into_iter()
}

#[test]
fn failures_empty_the_queues() {
    // The switch fails when the first is on the wire, and two wait.
    let mut bench = Bench::new(true);
    let failure_ps = queued_ps(1) + FRAME_PS / 2;
    bench
        .network
        .set_node_state("s", false, Some(Time::from(failure_ps)))
        .unwrap();
    bench
        .network
        .set_node_state("s", true, Some(Time::from(failure_ps + 1)))
        .unwrap();
    bench.send(&[to(2, 0); 3]);
    assert_eq!(bench.run(MS), []);
    assert_eq!(bench.queue(2, 0).down_drops, 2);
    assert_eq!(bench.network.node_counters("s").unwrap().down_drops, 2);
    let link = bench.network.link_counters(bench.links[1]).unwrap().a_to_b;
    assert_eq!((link.offered, link.down_drops), (1, 1));
    // It works again, and is idle.
    bench.send(&[to(2, 0)]);
    assert_eq!(bench.run(2 * MS).len(), 1);

    // The link fails: what waits is sent into it. One that is in ingress is lost there too.
    let mut bench = Bench::new(true);
    let link = bench.links[1];
    bench
        .network
        .set_link_state(link, false, Some(Time::from(failure_ps)))
        .unwrap();
    bench.send(&[to(2, 0); 3]);
    assert_eq!(bench.run(MS), []);
    let counters = bench.network.link_counters(link).unwrap().a_to_b;
    assert_eq!((counters.offered, counters.down_drops), (3, 3));
    assert_eq!(bench.queue(2, 0).packets, 0);

    // What is still in ingress when the switch fails.
    let mut bench = Bench::new(true);
    let early_ps = FAST_PS * 3 + 1;
    bench
        .network
        .set_node_state("s", false, Some(Time::from(early_ps)))
        .unwrap();
    bench.send(&[to(2, 0); 3]);
    assert_eq!(bench.run(MS), []);
    assert_eq!(bench.network.node_counters("s").unwrap().down_drops, 3);
}

#[test]
fn the_program_decides_unless_somebody_else_does() {
    let has = |bench: &Bench| bench.network.has_traffic_manager("s").unwrap();
    let link = LinkConfig::new(1_000_000_000, 0);
    let mut plain = Bench::with_link(true, false, &link);
    assert!(!has(&plain));
    assert_eq!(plain.network.queue_statistics("s"), Ok(vec![]));
    let default = TrafficManagerConfig::default;
    plain
        .network
        .set_queueing("s", Queueing::TrafficManager, default())
        .unwrap();
    assert!(has(&plain));
    plain
        .network
        .set_queueing("s", Queueing::Auto, default())
        .unwrap();
    assert!(!has(&plain));

    // A switch of interfaces alone has no queues, whatever it runs; with the first link it has.
    let mut network = Network::new(1, 0);
    for name in ["a", "b"] {
        network
            .add_switch(name, tagged_switch(true, true), 0)
            .unwrap();
    }
    network.attach_interface("a", 1, "eth1").unwrap();
    assert_eq!(network.has_traffic_manager("a"), Ok(false));
    network.add_link("a", 2, "b", 2, link.clone()).unwrap();
    assert_eq!(network.has_traffic_manager("a"), Ok(true));
    assert_eq!(network.has_traffic_manager("b"), Ok(true));

    // Another program, while packets of the first wait and are in ingress.
    let mut bench = Bench::new(true);
    bench.send(&[to(2, 0); 4]);
    bench.network.run(Time::from(queued_ps(2))).unwrap();
    *bench.network.switch_mut("s").unwrap() = *tagged_switch(true, true);
    assert_eq!(bench.run(MS).len(), 1, "the one on the wire");
    assert_eq!(bench.network.node_counters("s").unwrap().down_drops, 3);
    *bench.network.switch_mut("s").unwrap() = *tagged_switch(true, false);
    bench.send(&[to(2, 0); 3]);
    assert_eq!(bench.run(2 * MS).len(), 3);
    assert!(!has(&bench));

    for wrong in [
        TrafficManagerConfig {
            queues: 0,
            ..default()
        },
        TrafficManagerConfig {
            queues: 9,
            ..default()
        },
        TrafficManagerConfig {
            recirculation: Some(RecirculationConfig::new(0)),
            ..default()
        },
        TrafficManagerConfig {
            queues: 2,
            by_priority: BTreeMap::from([(2, QueueConfig::packets(1))]),
            ..default()
        },
    ] {
        assert!(
            bench
                .network
                .set_queueing("s", Queueing::Auto, wrong)
                .is_err()
        );
    }
    assert!(
        bench
            .network
            .set_queueing("h1", Queueing::Auto, default())
            .is_err()
    );
    assert!(
        bench
            .network
            .set_queueing("nobody", Queueing::Auto, default())
            .is_err()
    );
}

/// Returns the priorities of the next three frames at hosts.
fn three_priorities(clock: &WallClock) -> Vec<u8> {
    let mut priorities = Vec::new();
    for _ in 0..100 {
        for notification in clock.poll(Duration::from_millis(100)) {
            if let NotificationEvent::HostFrame { data } = notification.event {
                priorities.push(Tag::of(&data).priority);
            }
        }
        if priorities.len() == 3 {
            break;
        }
    }
    priorities
}

#[test]
fn in_real_time_too() {
    let mut bench = Bench::new(true);
    // Hosts' frames are told to whoever polls.
    bench.send(&[to(2, 0), to(2, 1), to(2, 7)]);
    let clock = WallClock::start(bench.network, Box::new(NoInterfaces::default())).unwrap();
    let mut priorities = three_priorities(&clock);
    priorities.sort_unstable();
    assert_eq!(priorities, [0, 1, 7]);
    let (network, _) = clock.stop().unwrap();
    let taken: u64 = network
        .queue_statistics("s")
        .unwrap()
        .iter()
        .map(|(_, _, q)| q.taken)
        .sum();
    assert_eq!(taken, 3);
}

/// Frames, each with the number of its interface.
type Frames = Vec<(usize, Vec<u8>)>;

/// Interfaces of the machine: what comes in once, and what went out.
struct Interfaces {
    rx: Frames,
    tx: Arc<Mutex<Frames>>,
}

impl FrameIo for Interfaces {
    fn send(&mut self, interface: usize, frame: &[u8]) -> SendOutcome {
        self.tx.lock().unwrap().push((interface, frame.to_vec()));
        SendOutcome::Accepted
    }

    fn wait(&mut self, timeout: Duration, rx: &mut dyn FnMut(usize, &[u8])) {
        if self.rx.is_empty() {
            std::thread::sleep(timeout.min(Duration::from_millis(1)));
        }
        for (interface, frame) in self.rx.drain(..) {
            rx(interface, &frame);
        }
    }
}

#[test]
fn a_burst_from_an_interface_goes_through_the_queues() {
    let mut bench = Bench::new(true);
    let [near, far] = [5, 6].map(|port| {
        let name = format!("eth{port}");
        bench.network.attach_interface("s", port, &name).unwrap()
    });
    // An interface takes what it gets at once; to a link's port the last ones wait.
    let frames = [to(6, 0), to(2, 0), to(6, 7), to(2, 1), to(2, 7)];
    let tx = Arc::new(Mutex::new(Vec::new()));
    let io = Interfaces {
        rx: frames.map(|tag| (near, tag.frame(FRAME))).to_vec(),
        tx: tx.clone(),
    };
    let clock = WallClock::start(bench.network, Box::new(io)).unwrap();
    let priorities = three_priorities(&clock);
    assert_eq!(priorities, [0, 7, 1]);
    drop(clock);
    let sent: Vec<_> = tx
        .lock()
        .unwrap()
        .iter()
        .map(|(i, frame)| (*i, Tag::of(frame)))
        .collect();
    let ports: Vec<_> = sent
        .iter()
        .map(|(i, tag)| (*i, tag.port, tag.priority, tag.enq_qdepth))
        .collect();
    assert_eq!(ports, [(far, 6, 0, 0), (far, 6, 7, 0)]);
}

#[test]
fn a_port_may_get_its_link_later() {
    let mut bench = Bench::new(true);
    bench.send(&[to(7, 0); 3]);
    assert_eq!(bench.run(MS), []);
    assert_eq!(
        bench.network.node_counters("s").unwrap().unconnected_drops,
        3
    );
    bench.network.add_host("h7", host(7)).unwrap();
    let link = LinkConfig {
        queue: QueueConfig::packets(1),
        ..LinkConfig::new(1_000_000_000, 0)
    };
    bench.network.add_link("s", 7, "h7", 0, link).unwrap();
    bench.send(&[to(7, 0); 4]);
    assert_eq!(bench.run(2 * MS).len(), 2);
    assert_eq!(bench.queue(7, 0).queue_drops, 2);
}

/// Frames of h1: the time since the last one, in nanoseconds, kind, port, priority and size.
type Traffic = Vec<(u64, u8, u8, u8, usize)>;

fn any_traffic(kinds: &'static [u8]) -> impl Strategy<Value = Traffic> {
    let frame = (
        0u64..6000,
        prop::sample::select(kinds),
        2u8..4,
        0u8..8,
        40usize..1500,
    );
    prop::collection::vec(frame, 1..150)
}

/// Sends the traffic while time goes on, and returns what arrives by the end of 2 s.
fn run_traffic(bench: &mut Bench, traffic: &Traffic) -> Vec<(u64, String, Vec<u8>)> {
    let mut all = Vec::new();
    let mut at_ps = 0;
    let end = [(0, Vec::new(), 2000 * MS)];
    let frames = traffic
        .iter()
        .map(|&(wait_ns, kind, port, priority, size)| {
            let tag = Tag {
                kind,
                port,
                priority,
                ..Tag::default()
            };
            at_ps += wait_ns * 1000;
            (1, tag.frame(size), at_ps)
        });
    let frames: Vec<_> = frames.collect();
    for (count, frame, until_ps) in frames.into_iter().chain(end) {
        loop {
            for notification in bench.network.run(Time::from(until_ps)).unwrap() {
                if let NotificationEvent::HostFrame { data } = notification.event {
                    let at_ps = notification.time_ps.saturating_ps();
                    all.push((at_ps, notification.node.to_string(), data));
                }
            }
            if bench.network.now_ps() >= Time::from(until_ps) {
                break;
            }
        }
        if count > 0 {
            bench.network.send_frame("h1", &frame).unwrap();
        }
    }
    all.sort();
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Checks that in a queue limited in packets, without priorities, a packet whose program does not look waits as long before
    /// egress as behind.
    #[test]
    fn fifo_queues_are_the_same_before_and_behind_egress(
        traffic in any_traffic(&[FORWARD, MULTICAST, CLONE_INGRESS]),
        limit in 0u64..20,
        loss in prop_oneof![Just(0.0), 0.0..0.5],
        jitter_ps in 0i64..10_000_000,
        failure_ns in prop::option::of((0u64..300_000, 0u64..100_000)),
        jit in any::<bool>(),
    ) {
        // A direction that lost packets waiting for it has drawn for them only if they waited there.
        let random = failure_ns.is_none();
        let link = LinkConfig {
            queue: QueueConfig::packets(limit),
            loss: if random { net::Loss::Bernoulli(loss) } else { net::Loss::None },
            jitter: if random { net::Jitter::Uniform { low_ps: 0, high_ps: jitter_ps } } else { net::Jitter::None },
            ..LinkConfig::new(1_000_000_000, 3 * US)
        };
        let run = |queueing| {
            let mut bench = Bench::with_link(jit, false, &link);
            let config = TrafficManagerConfig { queues: 1, ..TrafficManagerConfig::default() };
            bench.network.set_queueing("s", queueing, config).unwrap();
            group(bench.network.switch_mut("s").unwrap(), 1, &[2, 3, 2]);
            session(bench.network.switch_mut("s").unwrap(), 1, &[3, 2], 5);
            if let Some((at_ns, for_ns)) = failure_ns {
                let (down_ps, up_ps) = (at_ns * 1000 + 7, (at_ns + for_ns) * 1000 + 8);
                for (up, at_ps) in [(false, down_ps), (true, up_ps)] {
                    bench.network.set_link_state(bench.links[1], up, Some(Time::from(at_ps))).unwrap();
                }
            }
            let arrived = run_traffic(&mut bench, &traffic);
            let links = bench.links.iter().map(|&link| bench.network.link_counters(link).unwrap().a_to_b);
            let lost: Vec<_> = links.map(|c| (c.delivered, c.loss_drops, c.down_drops)).collect();
            let at_links: u64 = bench.links.iter().map(|&link| bench.network.link_counters(link).unwrap().a_to_b.queue_drops).sum();
            let drops = bench.network.node_counters("s").unwrap().queue_drops + at_links;
            (arrived, lost, drops)
        };
        prop_assert_eq!(run(Queueing::Link), run(Queueing::TrafficManager));
    }

    /// Checks that whatever happens, every packet for a queue is somewhere; and that it happens again.
    #[test]
    fn every_packet_for_a_queue_is_accounted_for(
        traffic in any_traffic(&[FORWARD, MULTICAST, CLONE_INGRESS, CLONE_EGRESS, RECIRCULATE, DROP]),
        queue in (any::<bool>(), 0u64..8, prop::option::of(0u64..4)),
        queues in 1u8..=8,
        recirculation in prop::option::of((1u16..4, 1_000_000u64..1_000_000_000, any::<bool>())),
        changes in prop::collection::vec((0u64..500_000, 0u8..3, any::<bool>()), 0..8),
    ) {
        let (bytes, limit, threshold) = queue;
        let queue = if bytes { QueueConfig::bytes(limit * 700) } else { QueueConfig::packets(limit) };
        let red = Red {
            max_p: 0.5,
            weight: 0.25,
            gentle: bytes,
            ecn: limit > 3,
            ..Red::new(QueueUnit::Packets, 1, 4)
        };
        let queue = QueueConfig {
            red: (threshold == Some(0)).then_some(red),
            mark_above: threshold
                .filter(|&threshold| threshold > 0)
                .map(|threshold| MarkAbove::new(QueueUnit::Packets, threshold)),
            ..queue
        };
        let run = |jit| {
            let mut bench = Bench::new(jit);
            let config = TrafficManagerConfig {
                queues,
                queue: Some(queue),
                recirculation: recirculation.map(|(ports, rate_bps, hash)| RecirculationConfig {
                    ports,
                    rate_bps,
                    queue_bytes: None,
                    queue_packets: Some(limit),
                    spread: if hash { Spread::Hash } else { Spread::RoundRobin },
                }),
                ..TrafficManagerConfig::default()
            };
            bench.network.set_queueing("s", Queueing::Auto, config).unwrap();
            group(bench.network.switch_mut("s").unwrap(), 1, &[2, 3, 2]);
            session(bench.network.switch_mut("s").unwrap(), 1, &[3, 2], 5);
            for &(at_ns, what, up) in &changes {
                let at_ps = Some(at_ns * 1000);
                match what {
                    0 => bench.network.set_node_state("s", up, at_ps.map(Time::from)).unwrap(),
                    what => bench.network.set_link_state(bench.links[usize::from(what)], up, at_ps.map(Time::from)).unwrap(),
                }
            }
            let arrived = run_traffic(&mut bench, &traffic);
            let queues = bench.network.queue_statistics("s").unwrap();
            let ports = bench.network.recirculation_statistics("s").unwrap();
            (bench, arrived, queues, ports)
        };
        let (bench, arrived, queues, ports) = run(true);
        let (_, by_interpreter, its_queues, its_ports) = run(false);
        prop_assert_eq!(&arrived, &by_interpreter);
        prop_assert_eq!(&queues, &its_queues);
        prop_assert_eq!(&ports, &its_ports);
        let mut drops = 0;
        for port in ports {
            prop_assert_eq!(port.offered, port.passes + port.queue_drops + port.down_drops + port.packets, "{:?}", port);
            prop_assert_eq!(port.packets, 0, "after all that time");
            prop_assert!((0.0..=1.0).contains(&port.utilisation));
            drops += port.queue_drops;
        }
        for (_, _, q) in &queues {
            prop_assert_eq!(q.offered, q.taken + q.queue_drops + q.red_drops + q.down_drops + q.packets, "{:?}", q);
            prop_assert_eq!(q.packets, 0, "after all that time");
            prop_assert!(q.mean_packets <= q.max_packets as f64);
            drops += q.queue_drops + q.red_drops;
        }
        prop_assert_eq!(bench.network.node_counters("s").unwrap().queue_drops, drops);
        prop_assert_eq!(bench.network.pending_events(), 0);
        for &link in &bench.links {
            let c = bench.network.link_counters(link).unwrap().a_to_b;
            prop_assert_eq!(c.queue_drops + c.red_drops, 0, "not used");
            prop_assert_eq!(c.offered, c.delivered + c.down_drops);
        }
    }
}
