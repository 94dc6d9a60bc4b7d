//! Packets through an ordering function in front of a link. Its decisions are tested beside `ordering`.

use super::*;
use crate::clock::wall::{NoInterfaces, WallClock};
use crate::ordering::header::tests::{connection, r_tag};
use crate::ordering::{BitField, SequenceHeader};
use std::collections::BTreeMap;
use std::time::Duration;

/// Returns the configuration of a gigabit link that holds packets for up to 2 ms, and accepts any sequence number
/// after 10 ms of silence.
fn orderly() -> LinkConfig {
    LinkConfig {
        ordering: Some(OrderingConfig {
            headers: vec![r_tag(), connection()],
            ..OrderingConfig::new(2 * MS, 10 * MS)
        }),
        ..LinkConfig::new(GIGABIT, 5 * US)
    }
}

/// Builds a packet to h2 with a connection header, whose sequence number is also the payload.
fn numbered(number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 2, 1, 2, 0, 0, 0, 1, 1, 0x88, 0xb5, 0, 0, 9];
    frame.extend_from_slice(&number.to_be_bytes());
    frame.push(41);
    frame.extend_from_slice(&number.to_be_bytes());
    frame
}

/// Builds a network of h1 and h2 joined by a link that restores the order of what h1 sends.
fn two() -> (Network, LinkId) {
    let mut network = Network::new(1, 0);
    network.add_host("h1", host(1)).unwrap();
    network.add_host("h2", host(2)).unwrap();
    let link = network.add_link("h1", 0, "h2", 0, orderly()).unwrap();
    (network, link)
}

fn send(network: &mut Network, numbers: &[u32]) {
    for &number in numbers {
        network.send_frame("h1", &numbered(number)).unwrap();
    }
}

/// Returns the times in picoseconds at which packets arrived, and their numbers. Asserts that the header with the
/// sequence number has been replaced by an EtherType.
fn arrivals(notifications: &[Notification]) -> Vec<(u64, u32)> {
    let number = |n: &Notification| match &n.event {
        NotificationEvent::HostFrame { data } => {
            assert_eq!(
                (data.len(), &data[12..14]),
                (18, &[0x86, 0xdd][..]),
                "{data:02x?}"
            );
            Some((
                n.time_ps.saturating_ps(),
                u32::from_be_bytes(data[14..].try_into().unwrap()),
            ))
        }
        _ => None,
    };
    notifications.iter().filter_map(number).collect()
}

fn counters(network: &Network, link: LinkId) -> OrderingCounters {
    let counters = network.ordering_counters(link, LinkDirection::AToB);
    counters.unwrap().unwrap()
}

/// From the time at which a packet is sent to its arrival.
const WAY_PS: u64 = 672_000 + 5 * US;

#[test]
fn a_gap_is_waited_for_and_no_longer_than_that() {
    let (mut network, link) = two();
    send(&mut network, &[1, 3]);
    let mut all = run_all(&mut network, MS);
    send(&mut network, &[2, 5, 6]);
    all.extend(run_all(&mut network, 2 * MS));
    send(&mut network, &[8]);
    all.extend(run_all(&mut network, 20 * MS));
    let next = |n: u64| n * 672_000;
    let expected = [
        (WAY_PS, 1),
        (MS + WAY_PS, 2),
        (MS + WAY_PS + next(1), 3),
        // 4 never comes; the time is over for 5, and 6 follows it.
        (3 * MS + WAY_PS, 5),
        (3 * MS + WAY_PS + next(1), 6),
        (4 * MS + WAY_PS, 8),
    ];
    assert_eq!(arrivals(&all), expected);
    let counters = counters(&network, link);
    assert_eq!(
        (counters.held_back, counters.filled, counters.timed_out),
        (4, 2, 2)
    );
    assert_eq!((counters.in_order, counters.taken_any), (1, 1));
    assert_eq!(network.pending_events(), 0);
    // The numbers are not on the wire.
    let there = network.link_counters(link).unwrap().a_to_b;
    assert_eq!((there.packets, there.frame_bytes), (6, 6 * 18));
    assert_eq!(network.node_counters("h1").unwrap().sent, 6);
}

#[test]
fn what_has_no_number_does_not_wait() {
    let (mut network, link) = two();
    send(&mut network, &[1, 3]);
    run_all(&mut network, MS);
    let mut plain = numbered(2);
    plain[12..14].copy_from_slice(&[0x88, 0xb6]);
    network.send_frame("h1", &plain).unwrap();
    let all = run_all(&mut network, MS + WAY_PS);
    let data = plain.clone();
    let event = NotificationEvent::HostFrame { data };
    assert_eq!(all.len(), 1);
    assert_eq!(
        (all[0].time_ps, &all[0].event),
        (Time::from(MS + WAY_PS), &event)
    );
    let counters = counters(&network, link);
    assert_eq!((counters.untagged, counters.held), (1, 1));
    let back = network.ordering_counters(link, LinkDirection::BToA);
    assert_eq!(back, Ok(Some(OrderingCounters::default())));
}

#[test]
fn a_node_that_fails_loses_what_it_holds_and_a_link_does_not() {
    let (mut network, link) = two();
    send(&mut network, &[1, 3, 4]);
    network
        .set_link_state(link, false, Some(Time::from(MS)))
        .unwrap();
    network
        .set_link_state(link, true, Some(Time::from(MS + 1)))
        .unwrap();
    let all = run_all(&mut network, 5 * MS);
    assert_eq!(
        arrivals(&all)[1..],
        [(2 * MS + WAY_PS, 3), (2 * MS + WAY_PS + 672_000, 4)]
    );
    send(&mut network, &[6, 7]);
    network.set_node_state("h1", false, None).unwrap();
    network.set_node_state("h1", true, None).unwrap();
    assert_eq!(counters(&network, link).lost, 2);
    assert_eq!(network.node_counters("h1").unwrap().down_drops, 2);
    // It has forgotten what it sent.
    send(&mut network, &[3]);
    let all = run_all(&mut network, 10 * MS);
    assert_eq!(arrivals(&all), [(5 * MS + WAY_PS, 3)]);
}

#[test]
fn the_number_does_not_count_for_the_mtu() {
    let (mut network, link) = two();
    let config = LinkConfig {
        mtu_bytes: Some(68),
        ..orderly()
    };
    network
        .configure_direction(link, LinkDirection::AToB, config)
        .unwrap();
    for (number, len) in [(1, 68), (3, 69), (2, 68)] {
        let mut frame = numbered(number);
        frame.resize(22 + len, 0);
        network.send_frame("h1", &frame).unwrap();
    }
    run_all(&mut network, MS);
    let there = network.link_counters(link).unwrap().a_to_b;
    assert_eq!((there.offered, there.mtu_drops, there.delivered), (3, 1, 2));
    assert_eq!(there.frame_bytes, 2 * (14 + 68));
}

#[test]
fn parameters_are_not_changed_while_something_is_held() {
    let (mut network, link) = two();
    send(&mut network, &[1]);
    run_all(&mut network, MS);
    let mut fresh = Network::new(1, 0);
    fresh.add_host("h1", host(1)).unwrap();
    fresh.add_host("h2", host(2)).unwrap();
    let link2 = fresh.add_link("h1", 0, "h2", 0, orderly()).unwrap();
    send(&mut fresh, &[1]);
    for (network, link) in [(&mut network, link), (&mut fresh, link2)] {
        let refused = network.configure_direction(link, LinkDirection::AToB, orderly());
        assert!(refused.is_err());
    }
    let wrong = LinkConfig {
        ordering: Some(OrderingConfig::new(2, 1)),
        ..orderly()
    };
    let refused = network.add_link("h1", 0, "h2", 0, wrong).unwrap_err();
    assert!(refused.to_string().contains("take_any_ps"), "{refused}");
}

#[test]
fn in_real_time() {
    let (network, link) = two();
    let clock = WallClock::start(network, Box::new(NoInterfaces::default())).unwrap();
    clock
        .call(|network| send(network, &[1, 4, 3, 2, 6]))
        .unwrap();
    let mut all = Vec::new();
    while all.len() < 5 {
        let more = clock.poll(Duration::from_secs(20));
        assert!(!more.is_empty(), "packets are missing");
        all.extend(more);
    }
    let (network, _) = clock.stop().unwrap();
    let came = arrivals(&all);
    let numbers: Vec<u32> = came.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 6]);
    // The last one waited for 5.
    let waited_ps = came[4].0 - came[3].0;
    assert!((MS..3 * MS).contains(&waited_ps), "{waited_ps}");
    assert_eq!(counters(&network, link).timed_out, 1);
}

/// A switch that numbers packets, a link whose jitter brings them into disorder, and one that puts them in order.
#[test]
fn jitter_is_undone() {
    for ordered in [false, true] {
        let mut network = Network::new(5, 0);
        for (name, first, latency_ps) in [("s1", true, 0), ("s2", false, US)] {
            let mut number = 0u16;
            switch(&mut network, name, latency_ps, move |_, packet, out| {
                let mut packet = packet;
                if first {
                    packet = towards_host(packet).0;
                    let mut front = packet.bytes()[..12].to_vec();
                    front.extend_from_slice(&[0xf1, 0xc1, 0, 0]);
                    front.extend_from_slice(&number.to_be_bytes());
                    number += 1;
                    packet.replace_front(12, &front);
                } else if !ordered {
                    let front = packet.bytes()[..12].to_vec();
                    packet.replace_front(18, &front);
                }
                out.push(Output::new(2, packet));
            });
        }
        network.add_host("h1", host(1)).unwrap();
        network.add_host("h2", host(2)).unwrap();
        let plain = LinkConfig::new(GIGABIT, 5 * US);
        network.add_link("h1", 0, "s1", 1, plain.clone()).unwrap();
        let shaky = LinkConfig {
            jitter: Jitter::Uniform {
                low_ps: 0,
                high_ps: MS as i64,
            },
            ..plain.clone()
        };
        network.add_link("s1", 2, "s2", 1, shaky).unwrap();
        let last = match ordered {
            true => orderly(),
            false => plain,
        };
        let link = network.add_link("s2", 2, "h2", 0, last).unwrap();
        let flow = network
            .add_udp_stream(&stream("h1", "h2", 20_000.0, 50 * MS))
            .unwrap();
        run_all(&mut network, 60 * MS);
        let statistics = network.flow_statistics(flow).unwrap();
        assert_eq!((statistics.sent, statistics.delivered), (1000, 1000));
        assert_eq!(network.corrupted(flow), Ok(0));
        if ordered {
            let counters = counters(&network, link);
            // Those that overtook the first could not be told from the beginning.
            assert_eq!(statistics.reordered, counters.late);
            assert!(
                counters.late < 20 && counters.timed_out == 0,
                "{counters:?}"
            );
            assert!(counters.filled > 600, "{counters:?}");
        } else {
            assert!(statistics.reordered > 500);
        }
    }
}

/// The payload of a modelled stream is not stored in its packets. A header may reach into it.
#[test]
fn a_header_is_found_where_it_reaches_into_a_payload_that_is_not_stored() {
    let mut network = Network::new(1, 0);
    network.add_host("h1", host(1)).unwrap();
    network.add_host("h2", host(2)).unwrap();
    let ipv4 = SequenceHeader {
        ethertype: 0x0800,
        bytes: 64,
        stream: None,
        sequence: BitField {
            offset: 8 * 56,
            width: 32,
        },
        following: BitField {
            offset: 8 * 60,
            width: 16,
        },
        ethertypes: BTreeMap::new(),
    };
    let ordering = OrderingConfig {
        headers: vec![ipv4],
        ..OrderingConfig::new(2 * MS, 10 * MS)
    };
    let config = LinkConfig {
        ordering: Some(ordering),
        ..LinkConfig::new(GIGABIT, 5 * US)
    };
    let link = network.add_link("h1", 0, "h2", 0, config).unwrap();
    network
        .add_udp_stream(&stream("h1", "h2", 1000.0, 100 * MS))
        .unwrap();
    run_all(&mut network, 200 * MS);
    let counters = network
        .ordering_counters(link, LinkDirection::AToB)
        .unwrap()
        .unwrap();
    assert_eq!(counters.untagged, 0, "{counters:?}");
}
