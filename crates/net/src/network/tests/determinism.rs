//! Equal runs, and what must not disturb what.

use super::*;

fn noisy() -> LinkConfig {
    LinkConfig {
        jitter: Jitter::Normal {
            mean_ps: 0,
            sigma_ps: 100 * US,
        },
        loss: Loss::Bernoulli(0.1),
        queue: QueueConfig::bytes(5000),
        ..LinkConfig::new(100_000_000, 200 * US)
    }
}

/// Builds a network of h1 and h2 at the switch s, with noisy links and a failure; if `others`, also of h3 and h4 at t.
fn noisy_network(seed: u64, others: bool) -> (Network, FlowId) {
    let mut network = Network::new(seed, 10 * US);
    if others {
        // Before all else, so that every number of a node, link, flow or event differs.
        router(&mut network, "t", US);
        for number in [3, 4] {
            let name = format!("h{number}");
            network.add_host(&name, host(number)).unwrap();
            network
                .add_link(&name, 0, "t", u32::from(number), noisy())
                .unwrap();
        }
        network
            .add_udp_stream(&stream("h3", "h4", 7777.0, 90 * MS))
            .unwrap();
    }
    router(&mut network, "s", US);
    network.add_host("h1", host(1)).unwrap();
    network.add_host("h2", host(2)).unwrap();
    network.add_link("h1", 0, "s", 1, noisy()).unwrap();
    let link = network.add_link("h2", 0, "s", 2, noisy()).unwrap();
    let flow = network
        .add_udp_stream(&stream("h1", "h2", 9000.0, 100 * MS))
        .unwrap();
    network
        .set_link_state(link, false, Some(Time::from(40 * MS)))
        .unwrap();
    network
        .set_link_state(link, true, Some(Time::from(50 * MS)))
        .unwrap();
    (network, flow)
}

fn logs(seed: u64, others: bool) -> String {
    let (mut network, flow) = noisy_network(seed, others);
    let notifications = run_all(&mut network, 200 * MS);
    let links = (if others { 2 } else { 0 })..network.medium.links.len() as u32 / 2;
    let counters: Vec<_> = links
        .map(|i| network.link_counters(LinkId(i)).unwrap())
        .collect();
    let (sent, received) = (network.sent(flow).unwrap(), network.received(flow).unwrap());
    assert!(received.len() > 500 && received.len() < sent.sent_ps.len());
    format!("{notifications:?} {sent:?} {received:?} {counters:?}")
}

#[test]
fn equal_seeds_give_equal_runs() {
    assert_eq!(logs(1, false), logs(1, false));
}

#[test]
fn other_seeds_give_other_runs() {
    assert_ne!(logs(1, false), logs(2, false));
}

#[test]
fn an_unrelated_part_disturbs_nothing() {
    assert_eq!(logs(1, false), logs(1, true));
}

#[test]
fn how_a_run_is_cut_does_not_matter() {
    let (mut whole, flow) = noisy_network(1, true);
    let (mut parts, _) = noisy_network(1, true);
    let all = run_all(&mut whole, 200 * MS);
    let mut pieces = Vec::new();
    for until in 1..=200 {
        pieces.extend(run_all(&mut parts, until * MS));
    }
    assert_eq!(all, pieces);
    assert_eq!(whole.received(flow), parts.received(flow));
    assert_eq!(whole.steps(), parts.steps());
}

#[test]
fn components_have_seeds_of_their_own() {
    let network = Network::new(5, 0);
    assert_eq!(network.seed_of("s1"), Network::new(5, 99).seed_of("s1"));
    assert_ne!(network.seed_of("s1"), network.seed_of("s2"));
    assert_ne!(network.seed_of("s1"), Network::new(6, 0).seed_of("s1"));
}

#[test]
fn packets_of_one_instant_have_an_order() {
    // Two hosts send at the same instants over equal links. The one whose stream was added first comes first, or whose link was.
    for (swapped, by_number) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut network = Network::new(1, 0);
        if by_number {
            network.set_reaction_ps(0);
        }
        router(&mut network, "s", 0);
        three_hosts(&mut network);
        let mut sources = ["h1", "h2"];
        if swapped {
            sources.reverse();
        }
        let flows = sources.map(|source| {
            network
                .add_udp_stream(&stream(source, "h3", 1000.0, 5 * MS))
                .unwrap()
        });
        run_all(&mut network, 10 * MS);
        let mut in_order = flows;
        if swapped && by_number {
            in_order.reverse();
        }
        let [first, second] =
            in_order.map(|flow| network.received(flow).unwrap().received_ps.clone());
        for (first_ps, second_ps) in first.iter().zip(&second) {
            assert_eq!(second_ps - first_ps, 8_528_000);
        }
        assert_eq!((first.len(), second.len()), (5, 5));
    }
}
