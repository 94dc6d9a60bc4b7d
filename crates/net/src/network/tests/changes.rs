//! Other rates, delays, losses and jitters of links while packets wait and are under way.

use super::*;
use crate::serialisation::serialisation_ps;
use crate::{Change, FailureTarget, LinkDirection, Milliseconds};

/// Bytes of headers in front of a stream's payload.
const HEADERS: usize = 14 + 20 + 8;

/// A change of rate or delay at a time: in picoseconds, in bits per second, in microseconds.
type Step = (u64, Option<u64>, Option<u16>);

/// A stream: packets per second and bytes of payload.
type Load = (u32, usize);

fn parameters(link: LinkId, at_ps: u64) -> Change {
    Change::of(FailureTarget::Link(link), Some(Time::from(at_ps)))
}

fn milliseconds(us: u16) -> Milliseconds {
    Milliseconds::try_from(f64::from(us) / 1000.0).unwrap()
}

/// Builds a network of h1 and h2 at the ends of a link, where nothing is dropped.
fn two_hosts(config: LinkConfig, seed: u64) -> (Network, LinkId) {
    let mut network = Network::new(seed, 0);
    network.set_reaction_ps(0);
    for number in 1..=2 {
        let near = HostConfig {
            gateway_mac: host(3 - number).mac,
            ..host(number)
        };
        network.add_host(&format!("h{number}"), near).unwrap();
    }
    let queue = QueueConfig::bytes(u64::MAX / 2);
    let link = network.add_link("h1", 0, "h2", 0, LinkConfig { queue, ..config });
    (network, link.unwrap())
}

/// Sends the loads over a link that changes; returns, for each packet in the order of sending, the time at which it is
/// sent, its frame's bytes and when it arrives.
fn sent_over_a_link(config: &LinkConfig, steps: &[Step], loads: &[Load]) -> Vec<(u64, usize, u64)> {
    let (mut network, link) = two_hosts(config.clone(), 1);
    let flows: Vec<FlowId> = loads
        .iter()
        .map(|&(packets_per_s, payload_bytes)| {
            let load = UdpStream {
                payload_bytes,
                ..stream("h1", "h2", f64::from(packets_per_s), 5 * MS)
            };
            network.add_udp_stream(&load).unwrap()
        })
        .collect();
    for &(at_ps, rate_bps, delay_us) in steps {
        let change = Change {
            rate_bps,
            delay_ms: delay_us.map(milliseconds),
            ..parameters(link, at_ps)
        };
        network.apply(&change).unwrap();
    }
    run_all(&mut network, 20_000 * MS);
    assert_eq!(network.pending_events(), 0);
    let mut packets = Vec::new();
    for (&flow, &(_, payload_bytes)) in flows.iter().zip(loads) {
        let (sent, received) = (network.sent(flow).unwrap(), network.received(flow).unwrap());
        assert_eq!(sent.sent_ps.len(), received.len(), "nothing is lost");
        for (number, sent_ps) in sent.sent_ps.iter().enumerate() {
            let place = received.sequence.iter().position(|&it| it == number as u64);
            let arrived_ps = received.received_ps[place.unwrap()];
            packets.push((*sent_ps, payload_bytes + HEADERS, arrived_ps));
        }
    }
    // Of one instant, the flow with the lower number comes first.
    packets.sort_by_key(|&(sent_ps, ..)| sent_ps);
    packets
}

/// Computes when packets arrive, one after the other, by the rules of `link::change`.
fn expected(config: &LinkConfig, steps: &[Step], packets: &[(u64, usize, u64)]) -> Vec<u64> {
    let mut steps = steps.to_vec();
    steps.sort_by_key(|&(at_ps, ..)| at_ps);
    let (mut free_ps, mut last_ps) = (0, 0);
    let arrivals = packets.iter().map(|&(sent_ps, bytes, _)| {
        let (waits, start_ps) = (free_ps > sent_ps, free_ps.max(sent_ps));
        let (mut rate_bps, mut delay_ps) = (config.rate_bps, config.delay_ps);
        for &(at_ps, rate, delay_us) in &steps {
            // One that has waited begins before a change of that instant, one that comes comes afterwards.
            if at_ps < start_ps || at_ps == start_ps && !waits {
                rate_bps = rate.unwrap_or(rate_bps);
                delay_ps = delay_us.map_or(delay_ps, |us| u64::from(us) * US);
            }
        }
        free_ps = start_ps + serialisation_ps(bytes, rate_bps);
        last_ps = last_ps.max(free_ps + delay_ps);
        last_ps
    });
    arrivals.collect()
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    // At whole microseconds packets are sent, too.
    let at_ps = prop_oneof![0u64..8 * MS, (0u64..8000).prop_map(|us| us * US)];
    let rate = prop::option::of(1_000_000u64..1_000_000_000);
    let delay_us = prop::option::of(prop_oneof![Just(0), 0u16..3000]);
    prop::collection::vec((at_ps, rate, delay_us), 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn packets_arrive_when_the_rules_say(
        rate_bps in 5_000_000u64..1_000_000_000,
        delay_us in 0u16..1000,
        steps in any_steps(),
        loads in prop::collection::vec((1000u32..20_000, 24usize..1400), 1..4),
    ) {
        let config = LinkConfig::new(rate_bps, u64::from(delay_us) * US);
        let packets = sent_over_a_link(&config, &steps, &loads);
        let arrived: Vec<u64> = packets.iter().map(|&(.., arrived_ps)| arrived_ps).collect();
        prop_assert_eq!(arrived, expected(&config, &steps, &packets));
    }

    /// What a link is told to be and is already makes no difference, whatever is drawn and however packets overtake.
    #[test]
    fn a_change_to_what_is_there_changes_nothing(times in prop::collection::vec(0u64..6 * MS, 1..6)) {
        let noisy = LinkConfig {
            jitter: Jitter::Uniform { low_ps: 0, high_ps: 400 * US as i64 },
            loss: Loss::Bernoulli(0.2),
            ..LinkConfig::new(20_000_000, 300 * US)
        };
        let logs = [&[][..], &times].map(|times| {
            let (mut network, link) = two_hosts(noisy.clone(), 7);
            let flow = network.add_udp_stream(&stream("h1", "h2", 3000.0, 5 * MS)).unwrap();
            for &at_ps in times {
                let change = Change {
                    rate_bps: Some(noisy.rate_bps),
                    delay_ms: Some(milliseconds(300)),
                    jitter: Some(noisy.jitter.clone()),
                    loss: Some(noisy.loss.clone()),
                    silent: Some(false),
                    ..parameters(link, at_ps)
                };
                network.apply(&change).unwrap();
            }
            run_all(&mut network, 100 * MS);
            let counters = network.link_counters(link).unwrap();
            (network.received(flow).unwrap().clone(), counters)
        });
        prop_assert_eq!(&logs[0], &logs[1]);
    }
}

#[test]
fn a_change_draws_nothing_of_another_link() {
    let noisy = LinkConfig {
        loss: Loss::Bernoulli(0.3),
        ..LinkConfig::new(GIGABIT, 50 * US)
    };
    let run = |changes: bool| {
        let (mut network, first, second) = pair(1, 0);
        for (link, direction) in [(first, LinkDirection::BToA), (second, LinkDirection::BToA)] {
            network
                .configure_direction(link, direction, noisy.clone())
                .unwrap();
        }
        network
            .add_udp_stream(&stream("h1", "h2", 5000.0, 50 * MS))
            .unwrap();
        let back = network
            .add_udp_stream(&stream("h2", "h1", 5000.0, 50 * MS))
            .unwrap();
        if changes {
            let change = Change {
                loss: Some(Loss::Bernoulli(0.9)),
                jitter: Some(Jitter::Uniform {
                    low_ps: 0,
                    high_ps: US as i64,
                }),
                ..Change::of(
                    FailureTarget::Direction(first, LinkDirection::AToB),
                    Some(Time::from(MS)),
                )
            };
            network.apply(&change).unwrap();
        }
        run_all(&mut network, 100 * MS);
        let lost = network.link_counters(first).unwrap().a_to_b.loss_drops;
        (lost, network.received(back).unwrap().clone())
    };
    let ((before, plain), (lost, changed)) = (run(false), run(true));
    assert_eq!(before, 0);
    assert!((200..245).contains(&lost), "{lost} of 245");
    assert_eq!(plain, changed);
    assert!((80..170).contains(&plain.len()), "{}", plain.len());
}

#[test]
fn what_a_failure_took_holds_nothing_up() {
    // Under way for 1 ms when the delay becomes 10 us; lost when the link fails. What comes then does not wait for it.
    let (mut network, link) = two_hosts(LinkConfig::new(GIGABIT, MS), 1);
    let flow = network
        .add_udp_stream(&stream("h1", "h2", 10_000.0, 200 * US))
        .unwrap();
    let change = Change {
        delay_ms: Some(milliseconds(10)),
        ..parameters(link, 20 * US)
    };
    network.apply(&change).unwrap();
    for (at_us, up) in [(30, false), (40, true)] {
        let at_ps = Some(Time::from(at_us * US));
        network.set_link_state(link, up, at_ps).unwrap();
    }
    // Again, while the lost packet's arrival is still among the events.
    let again = Change {
        rate_bps: Some(GIGABIT),
        ..parameters(link, 50 * US)
    };
    network.apply(&again).unwrap();
    run_all(&mut network, 10 * MS);
    let received = network.received(flow).unwrap();
    assert_eq!(received.sequence, [1]);
    assert_eq!(received.received_ps, [100 * US + 8_528_000 + 10 * US]);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let (mut network, link) = two_hosts(LinkConfig::new(GIGABIT, 0), 1);
    let change = || parameters(link, 0);
    let negative = Jitter::Uniform {
        low_ps: -1,
        high_ps: 1,
    };
    let (late, loss) = (Milliseconds::try_from(1e10).unwrap(), Loss::Bernoulli(2.0));
    let node = FailureTarget::Node("h1".to_owned());
    for (change, text) in [
        (
            Change {
                rate_bps: Some(0),
                ..change()
            },
            "rate_bps must be at least 1",
        ),
        (
            Change {
                delay_ms: Some(late),
                ..change()
            },
            "delay_ps must be at most",
        ),
        (
            Change {
                loss: Some(loss),
                ..change()
            },
            "loss must be a probability, from 0 to 1",
        ),
        (
            Change {
                jitter: Some(negative),
                ..change()
            },
            "no packet arrives before it was sent",
        ),
        (
            Change {
                rate_bps: Some(1),
                ..Change::of(node, None)
            },
            "what changes must be of a link, but for whether it works",
        ),
    ] {
        let refused = network.apply(&change).unwrap_err().to_string();
        assert!(refused.contains(text), "{refused}");
    }
    assert_eq!(network.pending_events(), 0);
}
