use super::*;
use crate::addresses::Addresses;
use std::net::Ipv4Addr;
use wire::udp;

const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 1, 2, 3));
const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1));
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const GATEWAY_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xfe]);
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

fn host(version: MembershipVersion) -> Memberships {
    let mut host = Memberships::new(Stream::named(1, "test"));
    host.speak(version).unwrap();
    host
}

fn exclude(sources: &[IpAddr]) -> GroupFilter {
    GroupFilter {
        excludes: true,
        sources: sources.iter().copied().collect(),
    }
}

fn include(sources: &[IpAddr]) -> GroupFilter {
    GroupFilter {
        excludes: false,
        ..exclude(sources)
    }
}

/// Runs a host until `until_ps` picoseconds, and returns the messages that it sends until then, with their times in
/// picoseconds.
fn said(host: &mut Memberships, until_ps: u64) -> Vec<(u64, igmp::Message)> {
    let mut found = Vec::new();
    while host.due_ps() <= Time::from(until_ps) {
        let now_ps = host.due_ps();
        for frame in host.due(now_ps, (MAC, ADDRESS)) {
            let ethernet = ethernet::View::new(&frame).unwrap();
            let packet = ipv4::View::new(ethernet.payload()).unwrap();
            let message = igmp::Message::in_packet(&packet).unwrap();
            assert_eq!(packet.destination(), message.destination());
            assert_eq!(
                ethernet.destination(),
                group_mac(message.destination().into())
            );
            found.push((now_ps.saturating_ps(), message));
        }
    }
    found
}

fn ask(host: &mut Memberships, now_ps: u64, query: igmp::Query) {
    let mut frame = Vec::new();
    let header = ethernet::Header {
        destination: group_mac(query.group.unwrap_or(Ipv4Addr::ALL_HOSTS).into()),
        source: MacAddress([2, 0, 0, 0, 0, 0xfe]),
        ethertype: ethernet::ETHERTYPE_IPV4,
    };
    header.emit(&mut frame).unwrap();
    let message = igmp::Message::Query(query);
    message.emit_packet(ROUTER, &mut frame).unwrap();
    assert!(matches!(
        host.judge(Time::from(now_ps), &frame),
        Verdict::Consumed
    ));
}

fn query(version: u8, group: Option<IpAddr>, sources: &[IpAddr]) -> igmp::Query {
    let v4 = |address: &IpAddr| match address {
        IpAddr::V4(address) => *address,
        IpAddr::V6(_) => unreachable!("the tests' are of IPv4"),
    };
    igmp::Query {
        version,
        group: group.as_ref().map(v4),
        max_response_ms: 10_000,
        sources: sources.iter().map(v4).collect(),
        suppress: false,
        robustness: if version == 3 { 2 } else { 0 },
        interval_s: if version == 3 { 125 } else { 0 },
    }
}

fn kinds(said: &[(u64, igmp::Message)]) -> Vec<(RecordKind, usize)> {
    let records = said.iter().flat_map(|(_, message)| match message {
        igmp::Message::Report(records) => records.clone(),
        other => panic!("{other:?}"),
    });
    records.map(|it| (it.kind, it.sources.len())).collect()
}

#[test]
fn a_change_is_reported_at_once_and_once_more_within_a_second() {
    let mut host = host(MembershipVersion::Igmpv3);
    host.plan(Time::from(5 * PS_PER_S), GROUP, exclude(&[]));
    let joined = said(&mut host, 20 * PS_PER_S);
    assert_eq!(kinds(&joined), [(RecordKind::ChangeToExclude, 0); 2]);
    assert_eq!(joined[0].0, 5 * PS_PER_S);
    assert!(joined[1].0 > joined[0].0 && joined[1].0 <= 6 * PS_PER_S);
    // RFC 3376, section 5.1: sources of the same mode by ALLOW and BLOCK, others by a change of the mode.
    for (filter, expected) in [
        (exclude(&[SOURCE]), (RecordKind::BlockOldSources, 1)),
        (exclude(&[]), (RecordKind::AllowNewSources, 1)),
        (include(&[SOURCE]), (RecordKind::ChangeToInclude, 1)),
        (include(&[]), (RecordKind::BlockOldSources, 1)),
        (include(&[SOURCE]), (RecordKind::AllowNewSources, 1)),
        (exclude(&[]), (RecordKind::ChangeToExclude, 0)),
        (include(&[]), (RecordKind::ChangeToInclude, 0)),
    ] {
        host.plan(Time::from(30 * PS_PER_S), GROUP, filter);
        assert_eq!(kinds(&said(&mut host, 40 * PS_PER_S)), [expected; 2]);
    }
    assert!(!host.is_active());
}

#[test]
fn queries_are_answered_within_their_time() {
    let mut host = host(MembershipVersion::Igmpv3);
    host.plan(Time::ZERO, GROUP, exclude(&[SOURCE]));
    host.plan(
        Time::ZERO,
        IpAddr::V4(Ipv4Addr::new(239, 0, 0, 9)),
        exclude(&[]),
    );
    said(&mut host, 10 * PS_PER_S);
    let begin_ps = 20 * PS_PER_S;
    ask(&mut host, begin_ps, query(3, None, &[]));
    let answers = said(&mut host, 40 * PS_PER_S);
    // One report of all groups.
    assert_eq!(answers.len(), 1);
    assert_eq!(
        kinds(&answers),
        [
            (RecordKind::ModeIsExclude, 0),
            (RecordKind::ModeIsExclude, 1)
        ]
    );
    assert!((begin_ps..=begin_ps + 10 * PS_PER_S).contains(&answers[0].0));
    // RFC 3376, section 5.2: of the sources that were asked for, those that are wanted.
    let other = IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2));
    ask(
        &mut host,
        50 * PS_PER_S,
        query(3, Some(GROUP), &[SOURCE, other]),
    );
    assert_eq!(
        kinds(&said(&mut host, 70 * PS_PER_S)),
        [(RecordKind::ModeIsInclude, 1)]
    );
    ask(&mut host, 80 * PS_PER_S, query(3, Some(GROUP), &[SOURCE]));
    assert!(said(&mut host, 100 * PS_PER_S).is_empty());
}

#[test]
fn a_host_of_version_2_reports_leaves_and_is_suppressed() {
    let Ok(group) = "239.1.2.3".parse() else {
        panic!("it is one")
    };
    let mut host = host(MembershipVersion::Igmpv2);
    host.plan(Time::ZERO, GROUP, exclude(&[]));
    let joined: Vec<_> = said(&mut host, 20 * PS_PER_S);
    let report = igmp::Message::OldReport { version: 2, group };
    assert!(joined.len() == 2 && joined.iter().all(|(_, it)| *it == report));
    // Another member answers first.
    ask(&mut host, 30 * PS_PER_S, query(2, None, &[]));
    let report = AnyMessage::OldReport {
        version: 2,
        group: GROUP,
    };
    host.hear(Time::from(30 * PS_PER_S), false, report);
    assert!(said(&mut host, 60 * PS_PER_S).is_empty());
    // Now it need not say that it leaves (RFC 2236, section 3).
    host.plan(Time::from(60 * PS_PER_S), GROUP, include(&[]));
    assert!(said(&mut host, 70 * PS_PER_S).is_empty());
    host.plan(Time::from(80 * PS_PER_S), GROUP, exclude(&[]));
    host.plan(Time::from(95 * PS_PER_S), GROUP, include(&[]));
    let all = said(&mut host, 120 * PS_PER_S);
    assert_eq!(
        all.last().map(|it| &it.1),
        Some(&igmp::Message::Leave { group })
    );
    assert!(!host.is_active());
}

#[test]
fn an_older_querier_is_answered_in_its_version() {
    let Ok(group) = "239.1.2.3".parse() else {
        panic!("it is one")
    };
    let mut host = host(MembershipVersion::Igmpv3);
    host.plan(Time::ZERO, GROUP, exclude(&[]));
    said(&mut host, 10 * PS_PER_S);
    ask(&mut host, 20 * PS_PER_S, query(1, None, &[]));
    let answers = said(&mut host, 40 * PS_PER_S);
    assert_eq!(answers[0].1, igmp::Message::OldReport { version: 1, group });
    // RFC 3376, section 7.2.1: for 2 * 125 s + 10 s.
    ask(&mut host, 280 * PS_PER_S, query(3, None, &[]));
    assert_eq!(
        kinds(&said(&mut host, 300 * PS_PER_S)),
        [(RecordKind::ModeIsExclude, 0)]
    );
}

#[test]
fn members_receive_and_others_do_not() {
    let mut host = host(MembershipVersion::Igmpv3);
    let (IpAddr::V4(group), IpAddr::V4(source)) = (GROUP, SOURCE) else {
        unreachable!("they are of IPv4")
    };
    let datagram = |from: Ipv4Addr| {
        let mut frame = Vec::new();
        let header = ethernet::Header {
            destination: group_mac(GROUP),
            source: GATEWAY_MAC,
            ethertype: ethernet::ETHERTYPE_IPV4,
        };
        header.emit(&mut frame).unwrap();
        let addresses = Addresses::V4(from, group);
        let len = udp::Header::LEN;
        addresses
            .emit_header(0, ipv4::PROTOCOL_UDP, len, &mut frame)
            .unwrap();
        let header = udp::Header {
            source_port: 1,
            destination_port: 2,
        };
        header.emit(from, group, &[], &mut frame).unwrap();
        frame
    };
    let other = Ipv4Addr::new(10, 9, 0, 2);
    assert!(matches!(
        host.judge(Time::from(1_u64), &datagram(other)),
        Verdict::Unwanted
    ));
    host.plan(Time::from(2_u64), GROUP, exclude(&[SOURCE]));
    said(&mut host, 2);
    assert!(matches!(
        host.judge(Time::from(3_u64), &datagram(source)),
        Verdict::Unwanted
    ));
    assert!(matches!(
        host.judge(Time::from(4_u64), &datagram(other)),
        Verdict::Member(GROUP)
    ));
    for (now_ps, sequence) in [(4, 0), (9, 2), (10, 1), (11, 1)] {
        host.arrived(Time::from(now_ps), GROUP, Some((FlowId(0), sequence)));
    }
    host.plan(Time::from(PS_PER_S), GROUP, include(&[]));
    said(&mut host, PS_PER_S);
    host.plan(Time::from(PS_PER_S), GROUP, exclude(&[]));
    said(&mut host, PS_PER_S);
    host.arrived(Time::from(2 * PS_PER_S), GROUP, None);
    let expected = GroupStatistics {
        received: 5,
        duplicates: 1,
        out_of_order: 1,
        first_ps: Some(Time::from(4_u64)),
        last_ps: Some(Time::from(2 * PS_PER_S)),
        longest_gap_ps: 5,
        unwanted: 2,
        last_unwanted_ps: Some(Time::from(3_u64)),
    };
    assert_eq!(host.statistics(GROUP), expected);
}

#[test]
fn a_host_speaks_one_version() {
    let mut host = host(MembershipVersion::Igmpv2);
    assert!(host.speak(MembershipVersion::Igmpv3).is_err());
    assert!(host.speak(MembershipVersion::Igmpv2).is_ok());
    assert!(host.speak(MembershipVersion::Mldv1).is_ok());
}
