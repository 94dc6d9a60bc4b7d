//! No packet appears from nowhere or goes unaccounted, whatever the topology, the links and the failures.

use super::*;
use crate::link::{GilbertElliott, LossTrace};
use crate::ordering::header::tests::r_tag;
use crate::queue::{MarkAbove, QueueUnit, Red};
use crate::{Change, DropCounts, FailureTarget, Milliseconds};
use std::collections::VecDeque;

/// A random network of routers, one host each.
#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    latency_ps: u64,
    /// Router i + 1 is joined to one of the routers before it, and there are more links.
    parents: Vec<prop::sample::Index>,
    chords: Vec<(prop::sample::Index, prop::sample::Index)>,
    links: Vec<LinkConfig>,
    streams: Vec<(prop::sample::Index, prop::sample::Index, u32)>,
    /// When, whether a node or a link, which, and whether it fails.
    changes: Vec<(u64, bool, prop::sample::Index, bool)>,
    /// When a link becomes which other one, but for its queues.
    conversions: Vec<(u64, prop::sample::Index, LinkConfig)>,
}

pub(super) fn any_unit() -> impl Strategy<Value = QueueUnit> {
    prop_oneof![Just(QueueUnit::Bytes), Just(QueueUnit::Packets)]
}

/// Returns queues without a limit, of any discipline.
pub(super) fn any_discipline() -> impl Strategy<Value = QueueConfig> {
    let red = (
        any_unit(),
        0u64..10,
        1u64..10,
        0.01..1.0,
        0.001..1.0,
        any::<[bool; 2]>(),
    );
    let red = red.prop_map(|(unit, min, more, max_p, weight, [gentle, ecn])| {
        let scale = if unit == QueueUnit::Bytes { 1000 } else { 1 };
        let red = Red {
            max_p,
            weight,
            gentle,
            ecn,
            ..Red::new(unit, min * scale, (min + more) * scale)
        };
        QueueConfig {
            red: Some(red),
            ..QueueConfig::default()
        }
    });
    let step = (any_unit(), 0u64..10).prop_map(|(unit, threshold)| QueueConfig {
        mark_above: Some(MarkAbove::new(unit, threshold)),
        ..QueueConfig::default()
    });
    prop_oneof![2 => Just(QueueConfig::default()), 1 => red, 1 => step]
}

fn any_link() -> impl Strategy<Value = LinkConfig> {
    let jitter = prop_oneof![
        Just(Jitter::None),
        (0i64..200_000_000).prop_map(|high_ps| Jitter::Uniform { low_ps: 0, high_ps }),
        (0u64..100_000_000).prop_map(|sigma_ps| Jitter::Normal {
            mean_ps: 0,
            sigma_ps
        }),
    ];
    let loss = prop_oneof![
        3 => Just(Loss::None),
        1 => (0.0..0.5).prop_map(Loss::Bernoulli),
        1 => Just(Loss::Bernoulli(1.0)),
        1 => (0.0..1.0, 0.0..1.0, 0.0..1.0, 0.0..1.0).prop_map(|(p, r, loss_good, loss_bad)| {
            Loss::GilbertElliott(GilbertElliott { p, r, loss_good, loss_bad })
        }),
        1 => (prop::collection::vec(0u64..20, 0..9), any::<bool>()).prop_map(|(lost, repeat)| {
            Loss::Trace(LossTrace::new(lost, repeat.then_some(20)).unwrap().into())
        }),
    ];
    let queue =
        (any_unit(), 0u64..20_000, any_discipline()).prop_map(|(unit, limit, discipline)| {
            let size = match unit {
                QueueUnit::Packets => QueueConfig::packets(limit / 500),
                QueueUnit::Bytes => QueueConfig::bytes(limit),
            };
            QueueConfig {
                red: discipline.red,
                mark_above: discipline.mark_above,
                ..size
            }
        });
    // Streams' packets have 1,028 bytes behind the Ethernet header.
    let mtu_bytes = prop_oneof![
        8 => Just(None),
        1 => Just(Some(1028)),
        1 => Just(Some(1027))
    ];
    let ordering =
        (MS / 10..5 * MS, 0..5 * MS, 1u32..20).prop_map(|(hold, silence, buffer)| OrderingConfig {
            buffer_packets: buffer,
            headers: vec![r_tag()],
            ..OrderingConfig::new(hold, hold + silence)
        });
    let ordering = prop_oneof![2 => Just(None), 1 => ordering.prop_map(Some)];
    (
        10_000_000u64..1_000_000_000,
        0u64..300_000_000,
        jitter,
        loss,
        queue,
        mtu_bytes,
        ordering,
    )
        .prop_map(
            |(rate_bps, delay_ps, jitter, loss, queue, mtu_bytes, ordering)| LinkConfig {
                rate_bps,
                delay_ps,
                jitter,
                loss,
                queue,
                detection: DetectionConfig {
                    signal_up_ps: Some(delay_ps),
                    ..DetectionConfig::default()
                },
                mtu_bytes,
                ordering,
            },
        )
}

/// Inserts an R-TAG behind the MAC addresses of packet number `count`. The tags' sequence numbers are in disorder: 1,
/// 0, 3, 2 and so on, and every fifth one is missing.
fn tag(packet: &mut Packet, count: &mut u16) {
    let number = (*count / 4 * 5 + *count % 4) ^ 1;
    *count = count.wrapping_add(1);
    let mut front = packet.bytes()[..12].to_vec();
    front.extend_from_slice(&[0xf1, 0xc1, 0, 0]);
    front.extend_from_slice(&number.to_be_bytes());
    packet.replace_front(12, &front);
}

fn any_plan() -> impl Strategy<Value = Plan> {
    use prop::collection::vec;
    let index = any::<prop::sample::Index>;
    let topology = (
        vec(index(), 1..5),
        vec((index(), index()), 0..3),
        vec(any_link(), 16),
    );
    let traffic = vec((index(), index(), 100u32..20_000), 1..5);
    let changes = vec(
        (0u64..20 * MS, any::<bool>(), index(), any::<bool>()),
        0..12,
    );
    let conversions = vec((0u64..20 * MS, index(), any_link()), 0..8);
    let latency_ps = prop_oneof![Just(0), 0u64..50 * US];
    let changes = (changes, conversions);
    (any::<u64>(), latency_ps, topology, traffic, changes).prop_map(
        |(seed, latency_ps, topology, streams, (changes, conversions))| {
            let (parents, chords, links) = topology;
            Plan {
                seed,
                latency_ps,
                parents,
                chords,
                links,
                streams,
                changes,
                conversions,
            }
        },
    )
}

/// Returns the edges between routers, a tree and chords. Edge `i` connects ports `100 + i` at both its ends.
fn edges(plan: &Plan) -> Vec<(usize, usize)> {
    let n = plan.parents.len() + 1;
    let tree = plan
        .parents
        .iter()
        .enumerate()
        .map(|(i, parent)| (i + 1, parent.index(i + 1)));
    let chords = plan
        .chords
        .iter()
        .map(|(a, b)| (a.index(n), b.index(n)))
        .filter(|(a, b)| a != b);
    tree.chain(chords).collect()
}

/// Returns the port of a router on the shortest path to each router; 0 for itself.
fn routes(from: usize, n: usize, edges: &[(usize, usize)]) -> Vec<u32> {
    let mut port = vec![u32::MAX; n];
    let mut queue = VecDeque::from([(from, None)]);
    let mut seen = vec![false; n];
    seen[from] = true;
    while let Some((at, first)) = queue.pop_front() {
        port[at] = first.unwrap_or(0);
        for (i, &(a, b)) in edges.iter().enumerate() {
            let Some(next) = [(a, b), (b, a)]
                .into_iter()
                .find(|e| e.0 == at)
                .map(|e| e.1)
            else {
                continue;
            };
            if !std::mem::replace(&mut seen[next], true) {
                queue.push_back((next, first.or(Some(100 + i as u32))));
            }
        }
    }
    port
}

fn build(plan: &Plan, log_packets: bool) -> (Network, Vec<FlowId>) {
    let n = plan.parents.len() + 1;
    let edges = edges(plan);
    let mut network = Network::new(plan.seed, 0);
    let mut links = plan.links.iter().cloned().cycle();
    let ordered: Vec<bool> = (0..n + edges.len())
        .map(|i| plan.links[i % plan.links.len()].ordering.is_some())
        .collect();
    for i in 0..n {
        let ports = routes(i, n, &edges);
        let ordered = ordered.clone();
        let mut count = 0;
        switch(
            &mut network,
            &format!("s{i}"),
            plan.latency_ps,
            move |_, packet, out| {
                let (mut packet, number) = towards_host(packet);
                let port = ports[usize::from(number)];
                let link = if port < 100 {
                    i
                } else {
                    n + port as usize - 100
                };
                if ordered[link] {
                    tag(&mut packet, &mut count);
                }
                out.push(Output::new(port, packet));
            },
        );
        let name = format!("h{i}");
        network.add_host(&name, host(i as u8)).unwrap();
        network
            .add_link(&name, 0, &format!("s{i}"), 0, links.next().unwrap())
            .unwrap();
    }
    for (i, (a, b)) in edges.into_iter().enumerate() {
        let port = 100 + i as u32;
        network
            .add_link(
                &format!("s{a}"),
                port,
                &format!("s{b}"),
                port,
                links.next().unwrap(),
            )
            .unwrap();
    }
    let flows = plan.streams.iter().map(|(a, b, rate)| {
        let (a, b) = (format!("h{}", a.index(n)), format!("h{}", b.index(n)));
        network
            .add_udp_stream(&UdpStream {
                log_packets,
                ..stream(&a, &b, f64::from(*rate), 15 * MS)
            })
            .unwrap()
    });
    let flows = flows.collect();
    let link_count = network.medium.links.len() / 2;
    for (at_ps, is_node, which, up) in &plan.changes {
        if *is_node {
            let name = network.nodes[which.index(network.nodes.len())]
                .state
                .name
                .clone();
            network
                .set_node_state(&name, *up, Some(Time::from(*at_ps)))
                .unwrap();
        } else {
            let link = LinkId(which.index(link_count) as u32);
            network
                .set_link_state(link, *up, Some(Time::from(*at_ps)))
                .unwrap();
        }
    }
    for (at_ps, which, to) in &plan.conversions {
        let target = FailureTarget::Link(LinkId(which.index(link_count) as u32));
        let delay_ms = Milliseconds::try_from(to.delay_ps as f64 / MS as f64).unwrap();
        let change = Change {
            rate_bps: Some(to.rate_bps),
            delay_ms: Some(delay_ms),
            jitter: Some(to.jitter.clone()),
            loss: Some(to.loss.clone()),
            ..Change::of(target, Some(Time::from(*at_ps)))
        };
        network.apply(&change).unwrap();
    }
    (network, flows)
}

fn directions(network: &Network) -> Vec<DirectionCounters> {
    let links = network.medium.links.iter();
    links.map(|d| d.counters(network.now_ps())).collect()
}

fn sum(network: &Network, count: impl Fn(&NodeCounters) -> u64) -> u64 {
    network
        .nodes
        .iter()
        .map(|node| count(&node.state.counters))
        .sum()
}

fn check_directions(network: &Network) -> Result<(), TestCaseError> {
    for d in directions(network) {
        let dropped = d.queue_drops + d.red_drops + d.loss_drops + d.down_drops + d.mtu_drops;
        let gone = d.delivered + dropped + d.in_transit;
        prop_assert_eq!(d.offered, gone, "{:?}", d);
        prop_assert!(
            d.delivered + d.loss_drops <= d.packets && d.packets <= d.offered,
            "{:?}",
            d
        );
        prop_assert_eq!(
            d.frame_bytes + 24 * d.packets,
            d.bytes,
            "all frames are longer than the minimum"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_packet_is_accounted_for(plan in any_plan()) {
        let (mut network, flows) = build(&plan, true);
        let observer = network.observe(Scope::Network, Box::new(DropCounts::default()));
        for until in 1..=25 {
            run_all(&mut network, until * MS);
            check_directions(&network)?;
        }
        // Slow links may still be emptying their queues.
        run_all(&mut network, 10_000 * MS);
        check_directions(&network)?;
        prop_assert_eq!(network.pending_events(), 0);
        let links = directions(&network);
        prop_assert!(links.iter().all(|d| d.in_transit == 0));

        // Between links and nodes nothing is lost or made.
        let offered: u64 = links.iter().map(|d| d.offered).sum();
        prop_assert_eq!(sum(&network, |c| c.sent), offered);
        let delivered: u64 = links.iter().map(|d| d.delivered).sum();
        prop_assert_eq!(sum(&network, |c| c.received), delivered);

        // Sent = received + dropped, by reason.
        let mut sent = 0;
        let mut received = 0;
        for flow in flows {
            sent += network.sent(flow).unwrap().sent_ps.len() as u64;
            let statistics = network.flow_statistics(flow).unwrap();
            prop_assert_eq!(statistics.duplicated, 0);
            prop_assert_eq!(network.corrupted(flow), Ok(0));
            received += statistics.delivered;
        }
        let in_links: u64 = links.iter().map(|d| d.queue_drops + d.red_drops + d.loss_drops + d.down_drops + d.mtu_drops).sum();
        let in_nodes = sum(&network, |c| c.down_drops + c.unconnected_drops);
        prop_assert_eq!(sent, received + in_links + in_nodes);
        let observed = network.observer::<DropCounts>(observer).map(DropCounts::total);
        prop_assert_eq!(observed, Some(in_links + in_nodes));
        prop_assert_eq!(sum(&network, |c| c.accepted), received);
        prop_assert_eq!(sum(&network, |c| c.not_addressed + c.corrupted + c.unconnected_drops), 0);
    }

    #[test]
    fn totals_are_what_logs_say(plan in any_plan()) {
        let runs = [true, false].map(|log_packets| {
            let (mut network, flows) = build(&plan, log_packets);
            run_all(&mut network, 20 * MS);
            (network, flows)
        });
        let [(logged, flows), (counted, _)] = runs;
        for flow in flows {
            let mut expected = logged.flow_statistics(flow).unwrap();
            if let Some(latency) = &mut expected.latency {
                (latency.p50_ps, latency.p99_ps) = (None, None);
            }
            prop_assert_eq!(counted.flow_statistics(flow), Ok(expected));
            prop_assert_eq!(counted.corrupted(flow), Ok(0));
            let no_log = Some(NetError::NoLog(flow.0));
            prop_assert_eq!(counted.sent(flow).err(), no_log.clone());
            prop_assert_eq!(counted.received(flow).err(), no_log);
        }
    }
}
