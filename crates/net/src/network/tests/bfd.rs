//! BFD on links between switches: silent failures are found, and nothing else is.

use super::*;
use crate::detection::encapsulation::frame;
use crate::{BfdConfig, LinkDirection};
use wire::bfd::{Diagnostic, Header, State};

/// Builds h1 - s1 - s2 - h2, with BFD between the switches every 10 ms and a multiplier of 3; loss of signal is never noticed.
fn line(seed: u64, loss: Loss) -> (Network, LinkId) {
    let mut network = Network::new(seed, 1_000_000 * MS);
    for name in ["s1", "s2"] {
        let there = if name == "s1" { 2 } else { 1 };
        switch(&mut network, name, US, move |_, packet, out| {
            let (packet, number) = towards_host(packet);
            let port = if number == there { 3 } else { 1 };
            out.push(Output::new(port, packet));
        });
    }
    network.add_host("h1", host(1)).unwrap();
    network.add_host("h2", host(2)).unwrap();
    let plain = LinkConfig::new(GIGABIT, 5 * US);
    let mut between = LinkConfig::new(10_000_000, 100 * US);
    between.loss = loss;
    between.detection.bfd = Some(BfdConfig {
        desired_min_tx_us: 10_000,
        required_min_rx_us: 10_000,
        detect_mult: 3,
    });
    network.add_link("h1", 0, "s1", 1, plain.clone()).unwrap();
    let link = network.add_link("s1", 3, "s2", 3, between).unwrap();
    network.add_link("s2", 1, "h2", 0, plain).unwrap();
    (network, link)
}

fn state(network: &Network, name: &str) -> State {
    network.bfd_statistics(name, 3).unwrap().unwrap().state
}

#[test]
fn hellos_without_loss_never_flap_beside_traffic() {
    for seed in 0..5 {
        let (mut network, link) = line(seed, Loss::None);
        // The link is nearly full: hellos wait with the data.
        let flow = network.add_udp_stream(&stream("h1", "h2", 1100.0, 5000 * MS));
        let told = run_all(&mut network, 6000 * MS);
        assert_eq!(port_changes(&told), []);
        let statistics = network.bfd_statistics("s1", 3).unwrap().unwrap();
        assert_eq!((statistics.state, statistics.went_down), (State::Up, 0));
        // 6 s by 10 ms, shortened by 12.5 % on average.
        assert!((650..=720).contains(&statistics.sent), "{statistics:?}");
        assert!(statistics.sent.abs_diff(statistics.received) < 60);
        let lost = network.flow_statistics(flow.unwrap()).unwrap().lost;
        assert_eq!(lost, 0);
        // They are on the link, and nowhere else: 66 bytes each, 90 with what Ethernet adds.
        let counters = network.link_counters(link).unwrap().b_to_a;
        let sent = network.bfd_statistics("s2", 3).unwrap().unwrap().sent;
        assert_eq!(counters.packets, sent);
        assert_eq!(
            (counters.frame_bytes, counters.bytes),
            (66 * sent, 90 * sent)
        );
        assert_eq!(
            network.node_counters("s1").unwrap().accepted,
            statistics.received
        );
    }
}

#[test]
fn a_silent_failure_of_one_direction_is_found_by_both_ends() {
    for seed in 0..20 {
        let (mut network, link) = line(seed, Loss::None);
        let at_ps = 1000 * MS + seed * MS;
        let silenced = LinkDirection::AToB;
        network
            .set_silent_loss(link, Some(silenced), true, Some(Time::from(at_ps)))
            .unwrap();
        let told = run_all(&mut network, 3000 * MS);
        let changes = port_changes(&told);
        let [(deaf_ps, deaf, 3, false), (other_ps, other, 3, false)] = &changes[..] else {
            panic!("{changes:?}");
        };
        assert_eq!((deaf.as_str(), other.as_str()), ("s2", "s1"));
        // Between two and three intervals after the failure; packets under way arrived.
        let after_ps = deaf_ps - at_ps;
        assert!((20 * MS..=31 * MS).contains(&after_ps), "{after_ps}");
        // The other end is told at once: 90 bytes at 10 Mb/s, and the delay.
        assert_eq!(other_ps - deaf_ps, 72 * US + 100 * US);
        assert!(network.port_is_up("s1", 3).unwrap(), "there is a signal");
        assert_eq!(
            (state(&network, "s2"), state(&network, "s1")),
            (State::Down, State::Init)
        );
        // It works again.
        network.set_silent_loss(link, None, false, None).unwrap();
        let told = run_all(&mut network, 6000 * MS);
        let changes = port_changes(&told);
        assert_eq!(changes.len(), 2, "{changes:?}");
        assert!(
            changes
                .iter()
                .all(|(at_ps, _, _, up)| *up && *at_ps < 4100 * MS)
        );
        assert_eq!(
            (state(&network, "s1"), state(&network, "s2")),
            (State::Up, State::Up)
        );
    }
}

#[test]
fn lost_hellos_are_drawn_from_the_seed() {
    let run = |seed| {
        let (mut network, link) = line(seed, Loss::Bernoulli(0.4));
        let told = run_all(&mut network, 20_000 * MS);
        let statistics = network.bfd_statistics("s1", 3).unwrap();
        (port_changes(&told), statistics, network.link_counters(link))
    };
    let (changes, statistics, _) = run(7);
    assert!(changes.len() > 4, "sessions flap with such loss");
    assert!(statistics.unwrap().went_down > 0);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}

#[test]
fn a_switch_that_came_back_begins_anew() {
    let (mut network, _) = line(1, Loss::None);
    network
        .set_node_state("s2", false, Some(Time::from(500 * MS)))
        .unwrap();
    network
        .set_node_state("s2", true, Some(Time::from(2000 * MS)))
        .unwrap();
    let told = run_all(&mut network, 1900 * MS);
    let changes = port_changes(&told);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!((changes[0].1.as_str(), changes[0].3), ("s1", false));
    let told = run_all(&mut network, 6000 * MS);
    let changes = port_changes(&told);
    assert_eq!(changes.len(), 1, "s2 was not up before: {changes:?}");
    assert_eq!((changes[0].1.as_str(), changes[0].3), ("s1", true));
    assert_eq!(
        (state(&network, "s1"), state(&network, "s2")),
        (State::Up, State::Up)
    );
}

#[test]
fn a_word_is_a_detector_too() {
    let (mut network, _) = line(1, Loss::None);
    network.declare_port("s1", 3, true).unwrap();
    network.declare_port("s1", 3, true).unwrap();
    let told = run_all(&mut network, 100 * MS);
    assert_eq!(port_changes(&told), [(0, "s1".to_owned(), 3, false)]);
    assert_eq!(state(&network, "s1"), State::Up, "others do not believe it");
    network.declare_port("s1", 3, false).unwrap();
    let told = run_all(&mut network, 200 * MS);
    assert_eq!(port_changes(&told), [(100 * MS, "s1".to_owned(), 3, true)]);
    assert!(network.declare_port("s1", 2, true).is_err(), "no link");
    assert!(network.declare_port("h1", 0, true).is_err(), "no switch");
}

#[test]
fn sessions_are_between_switches() {
    let (mut network, _) = line(1, Loss::None);
    network.add_host("h3", host(3)).unwrap();
    let mut config = LinkConfig::new(GIGABIT, 0);
    let bfd = BfdConfig {
        desired_min_tx_us: 10_000,
        required_min_rx_us: 10_000,
        detect_mult: 3,
    };
    config.detection.bfd = Some(bfd);
    let refused = network.add_link("h3", 0, "s1", 4, config.clone());
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("between switches")
    );
    let link = network.add_link("s1", 4, "s2", 4, config).unwrap();
    // Its own timers, but not none.
    let plain = LinkConfig::new(GIGABIT, 0);
    let refused = network.configure_direction(link, LinkDirection::AToB, plain.clone());
    assert!(refused.is_err());
    let mut slower = plain;
    slower.detection.bfd = Some(BfdConfig {
        desired_min_tx_us: 40_000,
        ..bfd
    });
    network
        .configure_direction(link, LinkDirection::AToB, slower)
        .unwrap();
    run_all(&mut network, 4000 * MS);
    let statistics = |name| network.bfd_statistics(name, 4).unwrap().unwrap();
    assert_eq!(statistics("s1").detection_time_ps, 120 * MS);
    assert_eq!(statistics("s2").detection_time_ps, 30 * MS);
    assert_eq!(statistics("s1").state, State::Up);
}

/// A host whose frames a program forwards with their TTL can send what looks like hellos, but does not know the discriminators.
#[test]
fn hellos_without_the_discriminators_are_refused() {
    let numbers = |seed| {
        let (network, _) = line(seed, Loss::None);
        [2, 3].map(|direction| {
            network
                .detection
                .session(direction)
                .unwrap()
                .discriminator()
        })
    };
    let [a, b] = numbers(1);
    assert!(a != b && numbers(1) == [a, b] && numbers(2) != [a, b]);
    let (mut network, _) = line(1, Loss::None);
    run_all(&mut network, 100 * MS);
    let forged = |state, my_discriminator, your_discriminator| Header {
        diagnostic: Diagnostic::NONE,
        state,
        poll: false,
        is_final: false,
        demand: false,
        detect_mult: 3,
        my_discriminator,
        your_discriminator,
        desired_min_tx_us: 10_000,
        required_min_rx_us: 10_000,
        required_min_echo_rx_us: 0,
    };
    let guesses = [
        forged(State::Down, 1, 0),
        forged(State::AdminDown, a, 0),
        forged(State::Down, 1, a),
        forged(State::Down, b, 1),
        forged(State::Up, a, b),
    ];
    for (refused, guess) in (1..).zip(&guesses) {
        assert!(network.receive_hello(2, &frame(guess, 2).unwrap()));
        let statistics = network.bfd_statistics("s2", 3).unwrap().unwrap();
        assert_eq!((statistics.state, statistics.refused), (State::Up, refused));
    }
    // The neighbour has restarted: it keeps its number, and has forgotten that of the other end.
    let restarted = frame(&forged(State::Down, b, 0), 2).unwrap();
    assert!(network.receive_hello(2, &restarted));
    assert_eq!(state(&network, "s2"), State::Down);
}

#[test]
fn a_live_network_draws_discriminators_from_the_system() {
    let (mut network, _) = line(1, Loss::None);
    let drawn =
        |network: &Network| [2, 3].map(|it| network.detection.session(it).unwrap().discriminator());
    let former = drawn(&network);
    network.detection.redraw(7);
    assert_ne!(drawn(&network), former);
    let told = run_all(&mut network, 1000 * MS);
    assert_eq!(port_changes(&told), []);
}
