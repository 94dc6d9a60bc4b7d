//! Hosts that join multicast groups at a switch that floods: their reports and the packets that they take, the same in every run.

use super::*;
use crate::membership::group_mac;
use crate::{GroupFilter, GroupStatistics, Join};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use wire::membership::{GroupAddress, Message, Query, RecordKind};
use wire::{ethernet, igmp, ipv4};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const S: u64 = 1_000 * MS;

type Reports = Arc<Mutex<Vec<(u32, igmp::Message)>>>;

/// Builds a network of h1 to h3 on ports 1 to 3 of a switch that sends packets to a group out of all other ports. Also
/// returns the messages that the switch sees.
fn flooded(seed: u64) -> (Network, Reports) {
    let mut network = Network::new(seed, 0);
    let reports = Reports::default();
    let seen = Arc::clone(&reports);
    switch(&mut network, "s", 2 * US, move |port, packet, out| {
        let frame = packet.bytes().to_vec();
        if frame[0] & 1 == 0 {
            return;
        }
        let ethernet = ethernet::View::new(&frame).unwrap();
        let message = ipv4::View::new(ethernet.payload()).map(|it| igmp::Message::in_packet(&it));
        if let Ok(Ok(message)) = message {
            seen.lock().unwrap().push((port, message));
        }
        for other in (1..=3).filter(|it| *it != port) {
            out.push(Output::new(other, Packet::new(&frame)));
        }
    });
    for number in 1..=3 {
        let name = format!("h{number}");
        network.add_host(&name, host(number)).unwrap();
        let config = LinkConfig::new(GIGABIT, 5 * US);
        network
            .add_link(&name, 0, "s", u32::from(number), config)
            .unwrap();
    }
    (network, reports)
}

fn join(host: &str, at_ps: u64, excludes: bool) -> Join {
    Join {
        host: host.to_owned(),
        group: GROUP.into(),
        filter: GroupFilter {
            excludes,
            ..GroupFilter::default()
        },
        version: None,
        at_ps: Some(Time::from(at_ps)),
    }
}

fn to_group(stop_ps: u64) -> UdpStream {
    UdpStream {
        destination: Destination::Ipv4(GROUP),
        ..stream("h1", "", 1000.0, stop_ps)
    }
}

#[test]
fn a_host_takes_what_it_has_joined_from_then_to_its_leave() {
    let (mut network, reports) = flooded(1);
    let flow = network.add_udp_stream(&to_group(100 * MS)).unwrap();
    network.join(&join("h2", 10 * MS + MS / 2, true)).unwrap();
    network.join(&join("h2", 60 * MS + MS / 2, false)).unwrap();
    run_all(&mut network, 5 * S);
    let group = IpAddr::V4(GROUP);
    let member = network.group_statistics("h2", group).unwrap();
    assert_eq!((member.received, member.unwanted), (50, 50));
    assert_eq!((member.duplicates, member.out_of_order), (0, 0));
    assert_eq!(member.longest_gap_ps, MS);
    let other = network.group_statistics("h3", group).unwrap();
    let expected = GroupStatistics {
        unwanted: 100,
        last_unwanted_ps: other.last_unwanted_ps,
        ..GroupStatistics::default()
    };
    assert_eq!(other, expected);
    let unwanted = |name| network.node_counters(name).unwrap().unwanted;
    assert_eq!((unwanted("h2"), unwanted("h3")), (50, 100));
    let delivered = |name| network.flow_statistics_at(flow, name).unwrap().delivered;
    assert_eq!((delivered("h2"), delivered("h3")), (50, 0));
    let kinds = reports.lock().unwrap();
    let kinds = kinds.iter().map(|(port, message)| match message {
        Message::Report(records) => (*port, records[0].kind),
        other => panic!("{other:?}"),
    });
    // Each change twice, as the robustness of 2 says; but the second report of the join is taken over by the leave.
    let kinds: Vec<_> = kinds.collect();
    let (joins, leaves) = (RecordKind::ChangeToExclude, RecordKind::ChangeToInclude);
    assert_eq!(kinds, [(2, joins), (2, leaves), (2, leaves)]);
}

#[test]
fn a_query_is_answered_by_members_alone() {
    let (mut network, reports) = flooded(1);
    network.join(&join("h2", 0, true)).unwrap();
    network.run(Time::from(3 * S)).unwrap();
    reports.lock().unwrap().clear();
    let mut frame = Vec::new();
    let header = ethernet::Header {
        destination: group_mac(Ipv4Addr::ALL_HOSTS.into()),
        source: host(1).mac,
        ethertype: ethernet::ETHERTYPE_IPV4,
    };
    header.emit(&mut frame).unwrap();
    let query = igmp::Message::Query(Query {
        version: 3,
        group: None,
        max_response_ms: 1000,
        sources: Vec::new(),
        suppress: false,
        robustness: 2,
        interval_s: 125,
    });
    query.emit_packet(host(1).ipv4, &mut frame).unwrap();
    network.send_frame("h1", &frame).unwrap();
    network.run(Time::from(5 * S)).unwrap();
    let reports = reports.lock().unwrap();
    let [(1, heard), (2, Message::Report(records))] = &reports[..] else {
        panic!("{reports:?}")
    };
    assert_eq!(*heard, query);
    assert_eq!(records[0].kind, RecordKind::ModeIsExclude);
}

#[test]
fn joins_are_the_same_in_every_run_however_it_is_cut() {
    let run = |seed, parts: u64| {
        let (mut network, reports) = flooded(seed);
        network.add_udp_stream(&to_group(2 * S)).unwrap();
        for (host, at_ps) in [("h2", 0), ("h3", S)] {
            network.join(&join(host, at_ps, true)).unwrap();
        }
        network.join(&join("h2", S + S / 2, false)).unwrap();
        for part in 1..=parts {
            run_all(&mut network, part * 4 * S / parts);
        }
        let of = |name| network.group_statistics(name, GROUP.into()).unwrap();
        let log = reports.lock().unwrap();
        format!("{:?} {:?} {log:?}", of("h2"), of("h3"))
    };
    assert_eq!(run(1, 1), run(1, 1));
    assert_eq!(run(1, 1), run(1, 97));
}
