//! Failures, repairs and who notices.

use super::*;
use crate::failure::Duration;
use crate::{FailureTarget, LinkDirection, RandomFailures};

#[test]
fn what_is_in_flight_is_lost_with_the_link() {
    // Sent at 0; on the second link from 15.528 us, being transmitted until 24.056 us, there at 29.056 us. A failure comes
    // before packets of the same instant, and so does a repair.
    let cases = [
        (15_527_999, false),
        (15_528_000, false),
        (15_528_001, true),
        (29_055_999, true),
        (29_056_000, true),
        (29_056_001, false),
    ];
    for (at_ps, lost) in cases {
        let (mut network, _, second) = pair(1, 0);
        let flow = network.add_udp_stream(&stream("h1", "h2", 1.0, 1)).unwrap();
        network
            .set_link_state(second, false, Some(Time::from(at_ps)))
            .unwrap();
        network
            .set_link_state(second, true, Some(Time::from(at_ps)))
            .unwrap();
        run_all(&mut network, MS);
        assert_eq!(
            network.received(flow).unwrap().is_empty(),
            lost,
            "failure at {at_ps} ps"
        );
        let counters = network.link_counters(second).unwrap().a_to_b;
        assert_eq!(
            counters.down_drops,
            u64::from(lost),
            "failure at {at_ps} ps"
        );
    }
}

#[test]
fn what_is_offered_to_a_failed_link_is_lost() {
    let (mut network, first, second) = pair(1, 0);
    let flow = network
        .add_udp_stream(&stream("h1", "h2", 1000.0, 10 * MS))
        .unwrap();
    network
        .set_link_state(first, false, Some(Time::from(2 * MS + 500 * US)))
        .unwrap();
    network
        .set_link_state(first, true, Some(Time::from(5 * MS + 500 * US)))
        .unwrap();
    run_all(&mut network, 20 * MS);
    assert_eq!(
        network.received(flow).unwrap().sequence,
        [0, 1, 2, 6, 7, 8, 9]
    );
    assert_eq!(network.link_counters(first).unwrap().a_to_b.down_drops, 3);
    assert_eq!(network.link_counters(second).unwrap().a_to_b.down_drops, 0);
    let statistics = network.flow_statistics(flow).unwrap();
    assert_eq!((statistics.lost, statistics.longest_outage_ps), (3, 3 * MS));
}

#[test]
fn switches_notice_after_the_detection_delay() {
    let (mut network, first, _) = pair(1, 100 * US);
    network
        .set_link_state(first, false, Some(Time::from(MS)))
        .unwrap();
    network
        .set_link_state(first, true, Some(Time::from(2 * MS)))
        .unwrap();
    let notifications = run_all(&mut network, 5 * MS);
    // Hosts are no switches, so only one end tells.
    let expected = [
        (MS + 100 * US, "s".to_owned(), 1, false),
        (2 * MS + 100 * US, "s".to_owned(), 1, true),
    ];
    assert_eq!(port_changes(&notifications), expected);
    assert_eq!(notifications.len(), 2);
}

#[test]
fn a_change_now_is_noticed_at_the_next_run() {
    let (mut network, first, _) = pair(1, 0);
    network.run(Time::from(MS)).unwrap();
    network.set_link_state(first, false, None).unwrap();
    assert_eq!(network.link_is_up(first), Ok(false));
    assert_eq!(network.port_is_up("s", 1), Ok(false));
    assert_eq!(network.port_is_up("s", 2), Ok(true));
    assert_eq!(network.port_is_up("s", 3), Ok(false), "no link, no signal");
    assert_eq!(
        port_changes(&network.run(Time::from(5 * MS)).unwrap()),
        [(MS, "s".to_owned(), 1, false)]
    );
    assert_eq!(network.now_ps(), Time::from(MS));
}

#[test]
fn what_flaps_back_is_not_noticed() {
    let (mut network, first, _) = pair(1, 100 * US);
    for (at_ps, up) in [
        (MS, false),
        (MS + 99 * US, true),
        (3 * MS, false),
        (3 * MS + 50 * US, true),
        (3 * MS + 60 * US, false),
    ] {
        network
            .set_link_state(first, up, Some(Time::from(at_ps)))
            .unwrap();
    }
    let notifications = run_all(&mut network, 9 * MS);
    // The last failure lasts; its delay begins when it does.
    assert_eq!(
        port_changes(&notifications),
        [(3 * MS + 160 * US, "s".to_owned(), 1, false)]
    );
}

#[test]
fn setting_the_state_that_is_changes_nothing() {
    let (mut network, first, _) = pair(1, 0);
    network
        .set_link_state(first, true, Some(Time::from(MS)))
        .unwrap();
    network
        .set_node_state("s", true, Some(Time::from(MS)))
        .unwrap();
    assert_eq!(run_all(&mut network, 2 * MS), []);
}

/// Builds a network of the switches s1 and s2, joined by two links at ports 1 and 2.
fn two_switches(detection_delay_ps: u64) -> (Network, LinkId, LinkId) {
    let mut network = Network::new(1, detection_delay_ps);
    router(&mut network, "s1", 0);
    router(&mut network, "s2", 0);
    let config = LinkConfig::new(GIGABIT, US);
    let first = network.add_link("s1", 1, "s2", 1, config.clone()).unwrap();
    let second = network.add_link("s1", 2, "s2", 2, config.clone()).unwrap();
    (network, first, second)
}

#[test]
fn one_direction_fails_for_its_receiver() {
    let (mut network, first, _) = two_switches(US);
    network
        .set_direction_state(first, LinkDirection::AToB, false, Some(Time::from(MS)))
        .unwrap();
    network
        .set_direction_state(first, LinkDirection::BToA, false, Some(Time::from(2 * MS)))
        .unwrap();
    network
        .set_link_state(first, true, Some(Time::from(3 * MS)))
        .unwrap();
    let expected = [
        (MS + US, "s2".to_owned(), 1, false),
        (2 * MS + US, "s1".to_owned(), 1, false),
        (3 * MS + US, "s2".to_owned(), 1, true),
        (3 * MS + US, "s1".to_owned(), 1, true),
    ];
    assert_eq!(port_changes(&run_all(&mut network, 9 * MS)), expected);
}

#[test]
fn the_neighbours_of_a_failed_node_notice() {
    let (mut network, _, second) = two_switches(US);
    network
        .set_node_state("s1", false, Some(Time::from(MS)))
        .unwrap();
    // While s1 is down, a link fails for good: s1 learns of it when it is back.
    network
        .set_link_state(second, false, Some(Time::from(2 * MS)))
        .unwrap();
    network
        .set_node_state("s1", true, Some(Time::from(3 * MS)))
        .unwrap();
    let expected = [
        (MS + US, "s2".to_owned(), 1, false),
        (MS + US, "s2".to_owned(), 2, false),
        (3 * MS + US, "s2".to_owned(), 1, true),
        (3 * MS + US, "s1".to_owned(), 2, false),
    ];
    assert_eq!(port_changes(&run_all(&mut network, 9 * MS)), expected);
}

#[test]
fn a_failed_switch_processes_nothing_and_loses_what_is_inside() {
    let (mut network, first, second) = pair(1, 0);
    let flow = network
        .add_udp_stream(&stream("h1", "h2", 1000.0, 4 * MS))
        .unwrap();
    // The first packet is inside from 13.528 us to 15.528 us.
    network
        .set_node_state("s", false, Some(Time::from(14 * US)))
        .unwrap();
    network
        .set_node_state("s", true, Some(Time::from(2 * MS)))
        .unwrap();
    network.run(Time::from(MS / 2)).unwrap();
    network.packet_out("s", &[0; 60]).unwrap();
    run_all(&mut network, 10 * MS);
    // The one of 1 ms finds no link; the repair at 2 ms comes before the packet of that instant.
    assert_eq!(network.received(flow).unwrap().sequence, [2, 3]);
    assert_eq!(network.node_counters("s").unwrap().down_drops, 2);
    assert_eq!(network.link_counters(first).unwrap().a_to_b.down_drops, 1);
    assert_eq!(network.link_counters(second).unwrap().a_to_b.offered, 2);
}

#[test]
fn a_failed_host_sends_nothing() {
    let (mut network, _, _) = pair(1, 0);
    let flow = network
        .add_udp_stream(&stream("h1", "h2", 1000.0, 6 * MS))
        .unwrap();
    network
        .set_node_state("h1", false, Some(Time::from(2 * MS)))
        .unwrap();
    network
        .set_node_state("h1", true, Some(Time::from(4 * MS + 1)))
        .unwrap();
    run_all(&mut network, MS * 10);
    // A packet that is not sent has no sequence number, and the schedule goes on.
    assert_eq!(network.sent(flow).unwrap().sent_ps, [0, MS, 5 * MS]);
    assert_eq!(network.received(flow).unwrap().sequence, [0, 1, 2]);
    network.set_node_state("h1", false, None).unwrap();
    network.send_frame("h1", &[0; 60]).unwrap();
    assert_eq!(network.node_counters("h1").unwrap().down_drops, 1);
}

#[test]
fn a_link_to_a_failed_node_starts_down() {
    let mut network = Network::new(1, US);
    router(&mut network, "s1", 0);
    router(&mut network, "s2", 0);
    network.set_node_state("s2", false, None).unwrap();
    let link = network
        .add_link("s1", 1, "s2", 1, LinkConfig::new(GIGABIT, 0))
        .unwrap();
    assert_eq!(network.link_is_up(link), Ok(false));
    network
        .set_node_state("s2", true, Some(Time::from(MS)))
        .unwrap();
    let expected = [
        (US, "s1".to_owned(), 1, false),
        (MS + US, "s1".to_owned(), 1, true),
    ];
    assert_eq!(port_changes(&run_all(&mut network, 2 * MS)), expected);
}

fn exponential(target: FailureTarget, start_ps: u64, end_ps: Option<u64>) -> RandomFailures {
    RandomFailures {
        target,
        time_to_failure: Duration::Exponential { mean_ps: 10 * MS },
        time_to_repair: Duration::Exponential { mean_ps: MS },
        start_ps: Time::from(start_ps),
        end_ps: end_ps.map(Time::from),
    }
}

/// Returns the random failures and repairs, of all things or `only` of one: the time in microseconds, the thing, and
/// whether it came back.
fn drawn(network: &Network, only: Option<&str>) -> Vec<(u64, String, bool)> {
    let records = network.random_failures().iter();
    records
        .filter(|record| only.is_none_or(|what| *record.what == *what))
        .map(|record| (record.time_ps.us(), record.what.to_string(), record.up))
        .collect()
}

#[test]
fn fixed_times_between_start_and_end() {
    let (mut network, first, _) = pair(1, 0);
    network
        .fail_randomly(&RandomFailures {
            time_to_failure: Duration::Fixed { time_ps: 10 * MS },
            time_to_repair: Duration::Fixed { time_ps: 3 * MS },
            ..exponential(FailureTarget::Link(first), 5 * MS, Some(28 * MS + 1))
        })
        .unwrap();
    // One change is scheduled at a time.
    assert_eq!(network.pending_events(), 1);
    let flow = network
        .add_udp_stream(&stream("h1", "h2", 1000.0, 40 * MS))
        .unwrap();
    let changes = port_changes(&run_all(&mut network, 100 * MS));
    let link = || "h1:0-s:1".to_owned();
    let expected = [
        (15_000, false),
        (18_000, true),
        (28_000, false),
        (31_000, true),
    ];
    assert_eq!(
        drawn(&network, None),
        expected.map(|(us, up)| (us, link(), up))
    );
    // The switch saw what happened; the end of the time came before the next failure.
    assert_eq!(
        changes,
        expected.map(|(us, up)| (us * US, "s".to_owned(), 1, up))
    );
    assert_eq!(network.flow_statistics(flow).unwrap().lost, 6);
}

#[test]
fn draws_have_their_means_and_depend_on_nobody_else() {
    let run = |others: bool| {
        let (mut network, first, second) = pair(7, 0);
        let node = FailureTarget::Node("h2".to_owned());
        let direction = |direction| FailureTarget::Direction(second, direction);
        let targets = [
            (others, node),
            (true, FailureTarget::Link(first)),
            (others, direction(LinkDirection::AToB)),
            (true, direction(LinkDirection::BToA)),
        ];
        for (wanted, target) in targets {
            if wanted {
                network
                    .fail_randomly(&exponential(target, 0, None))
                    .unwrap();
            }
        }
        run_all(&mut network, 20_000 * MS);
        network
    };
    let (alone, together) = (run(false), run(true));
    for what in ["h1:0-s:1", "h2:0>s:2"] {
        let records = drawn(&alone, Some(what));
        assert_eq!(records, drawn(&together, Some(what)));
        assert!(
            records
                .iter()
                .zip([false, true].iter().cycle())
                .all(|(r, up)| r.2 == *up)
        );
        // About 1,818 times 10 ms and 1 ms.
        let count = records.len() as f64 / 2.0;
        assert!((count - 20_000.0 / 11.0).abs() < 150.0, "{count}");
        let down: u64 = records
            .chunks_exact(2)
            .map(|pair| pair[1].0 - pair[0].0)
            .sum();
        assert!((down as f64 / count / 1000.0 - 1.0).abs() < 0.1, "{down}");
    }
    assert_ne!(
        drawn(&alone, Some("h1:0-s:1"))[0].0,
        drawn(&alone, Some("h2:0>s:2"))[0].0
    );
    let all = drawn(&together, None);
    assert!(all.iter().any(|r| r.1 == "h2") && all.is_sorted_by_key(|r| r.0));
}

#[test]
fn random_failures_that_make_no_sense() {
    let (mut network, first, second) = pair(1, 0);
    let good = exponential(
        FailureTarget::Direction(first, LinkDirection::AToB),
        0,
        None,
    );
    network.fail_randomly(&good).unwrap();
    let zero = Duration::Fixed { time_ps: 0 };
    let other = exponential(FailureTarget::Link(second), 0, None);
    let wrong = [
        good.clone(),
        exponential(FailureTarget::Link(first), 0, None),
        exponential(FailureTarget::Link(LinkId(9)), 0, None),
        exponential(FailureTarget::Node("nobody".to_owned()), 0, None),
        RandomFailures {
            time_to_failure: zero,
            ..other.clone()
        },
        RandomFailures {
            time_to_repair: zero,
            ..other.clone()
        },
    ];
    for wrong in wrong {
        assert!(network.fail_randomly(&wrong).is_err(), "{wrong:?}");
    }
    // So rare that the time never comes.
    let never = Duration::Exponential { mean_ps: u64::MAX };
    network
        .fail_randomly(&RandomFailures {
            time_to_failure: never,
            ..other
        })
        .unwrap();
    run_all(&mut network, MS);
    let mut late = exponential(FailureTarget::Node("s".to_owned()), 0, None);
    assert!(network.fail_randomly(&late).is_err(), "in the past");
    late.start_ps = Time::from(MS);
    network.fail_randomly(&late).unwrap();
}

#[test]
fn a_link_may_be_noticed_sooner_or_later_than_others() {
    let (mut network, first, second) = pair(1, 10 * US);
    let own = LinkConfig {
        detection: DetectionConfig {
            signal_down_ps: Some(3 * US),
            signal_up_ps: Some(70 * US),
            bfd: None,
        },
        ..LinkConfig::new(GIGABIT, 5 * US)
    };
    // Only towards the switch.
    network
        .configure_direction(first, LinkDirection::AToB, own.clone())
        .unwrap();
    for link in [first, second] {
        network
            .set_link_state(link, false, Some(Time::from(MS)))
            .unwrap();
        network
            .set_link_state(link, true, Some(Time::from(2 * MS)))
            .unwrap();
    }
    let s = || "s".to_owned();
    let expected = [
        (MS + 3 * US, s(), 1, false),
        (MS + 10 * US, s(), 2, false),
        (2 * MS + 10 * US, s(), 2, true),
        (2 * MS + 70 * US, s(), 1, true),
    ];
    assert_eq!(port_changes(&run_all(&mut network, 3 * MS)), expected);
    network.send_frame("h1", &[0; 60]).unwrap();
    let error = network.configure_direction(first, LinkDirection::AToB, own);
    assert!(error.is_err(), "it has carried a packet");
}
