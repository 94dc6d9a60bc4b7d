//! Frames that are too long for a link, on both clocks: dropped and counted, never cut.

use super::*;
use crate::clock::wall::{NoInterfaces, WallClock};
use std::time::Duration;

/// Builds a frame from h1 to h2 with `vlans` VLAN tags and `payload_bytes` bytes behind the EtherType. (Hosts do not
/// accept frames from a host to itself.)
fn frame(vlans: usize, payload_bytes: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 2, 1, 2, 0, 0, 0, 1, 1];
    for _ in 0..vlans {
        frame.extend_from_slice(&[0x81, 0, 0, 7]);
    }
    frame.extend_from_slice(&[0x88, 0xb6]);
    frame.extend((0..payload_bytes).map(|i| i as u8));
    frame
}

/// Builds a network of h1 and h2 joined by a link whose frames from h1 have at most 100 bytes behind the Ethernet
/// header; frames to h1 have no limit.
fn narrow() -> (Network, LinkId) {
    let mut network = Network::new(1, 0);
    network.add_host("h1", host(1)).unwrap();
    network.add_host("h2", host(2)).unwrap();
    let wide = LinkConfig::new(GIGABIT, 5 * US);
    let link = network.add_link("h1", 0, "h2", 0, wide.clone()).unwrap();
    let config = LinkConfig {
        mtu_bytes: Some(100),
        ..wide
    };
    network
        .configure_direction(link, LinkDirection::AToB, config)
        .unwrap();
    (network, link)
}

fn send_all(network: &mut Network) {
    for (vlans, payload_bytes) in [(0, 100), (0, 101), (1, 100), (1, 101), (2, 100), (2, 101)] {
        network
            .send_frame("h1", &frame(vlans, payload_bytes))
            .unwrap();
    }
    // More tags than two are payload.
    network.send_frame("h1", &frame(3, 97)).unwrap();
    network.send_frame("h1", &frame(3, 96)).unwrap();
    let mut back = frame(0, 9000);
    back[4] = 1;
    network.send_frame("h2", &back).unwrap();
}

/// Returns the bytes of the frames that hosts received and passed to the controller.
fn received(notifications: Vec<Notification>) -> Vec<Vec<u8>> {
    let data = |n: Notification| match n.event {
        NotificationEvent::HostFrame { data } => Some(data),
        _ => None,
    };
    notifications.into_iter().filter_map(data).collect()
}

fn check(network: &Network, link: LinkId, mut frames: Vec<Vec<u8>>) {
    frames.sort_by_key(Vec::len);
    let expected = [(0, 100), (1, 100), (2, 100), (3, 96), (0, 9000)];
    let mut expected = expected.map(|(vlans, payload_bytes)| frame(vlans, payload_bytes));
    expected[4][4] = 1;
    expected.sort_by_key(Vec::len);
    assert_eq!(frames, expected);
    let counters = network.link_counters(link).unwrap();
    let there = counters.a_to_b;
    assert_eq!((there.offered, there.mtu_drops, there.delivered), (8, 4, 4));
    assert_eq!(counters.b_to_a.mtu_drops, 0);
    assert_eq!(network.node_counters("h1").unwrap().sent, 8);
}

#[test]
fn too_long_in_virtual_time() {
    let (mut network, link) = narrow();
    send_all(&mut network);
    let notifications = run_all(&mut network, MS);
    check(&network, link, received(notifications));
}

#[test]
fn too_long_in_real_time() {
    let (network, link) = narrow();
    let clock = WallClock::start(network, Box::new(NoInterfaces::default())).unwrap();
    clock.call(send_all).unwrap();
    let mut notifications = Vec::new();
    while notifications.len() < 5 {
        let more = clock.poll(Duration::from_secs(20));
        assert!(!more.is_empty(), "frames are missing");
        notifications.extend(more);
    }
    let (network, _) = clock.stop().unwrap();
    check(&network, link, received(notifications));
}

#[test]
fn a_link_that_is_down_has_another_reason() {
    let (mut network, link) = narrow();
    network.set_link_state(link, false, None).unwrap();
    network.send_frame("h1", &frame(0, 101)).unwrap();
    let there = network.link_counters(link).unwrap().a_to_b;
    assert_eq!((there.down_drops, there.mtu_drops), (1, 0));
}

#[test]
fn an_mtu_that_cannot_be_is_refused() {
    let (mut network, link) = narrow();
    for mtu_bytes in [67, 65_536] {
        let config = LinkConfig {
            mtu_bytes: Some(mtu_bytes),
            ..LinkConfig::new(GIGABIT, 0)
        };
        let refused = network.configure_direction(link, LinkDirection::AToB, config);
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("mtu_bytes"), "{text}");
    }
}
