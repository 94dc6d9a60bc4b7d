use super::*;
use crate::MacAddress;
use crate::host::{HostConfig, Ipv6Interface, Received};
use crate::packet_log::ReceivedLog;
use proptest::prelude::*;

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 1);
const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const B6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
const BOTH: [Addresses; 2] = [Addresses::V4(A, B), Addresses::V6(A6, B6)];

/// Builds a host with these MAC and IPv4 addresses, and an IPv6 address that is derived from the IPv4 address.
fn host(mac: u8, ipv4: Ipv4Addr) -> Host {
    let mac = MacAddress([2, 0, 0, 0, 0, mac]);
    let config = HostConfig {
        mac,
        ipv4,
        prefix_len: 24,
        gateway_mac: MacAddress([2; 6]),
        ipv6: Some(Ipv6Interface {
            address: if ipv4 == A { A6 } else { B6 },
            prefix_len: 64,
        }),
    };
    Host::new(config.into())
}

/// Returns the way to a neighbour that is known.
fn way(mac: MacAddress) -> Way {
    Way {
        port: 0,
        hop: Hop::Known(mac),
    }
}

fn stream(payload_bytes: usize) -> UdpStream {
    UdpStream {
        source: "a".to_owned(),
        destination: Destination::Host("b".to_owned()),
        packets_per_s: 1000.0,
        spacing: Spacing::Constant,
        payload_bytes,
        start_ps: Time::ZERO,
        stop_ps: Time::NEVER,
        source_port: 5001,
        destination_port: 5002,
        log_packets: true,
    }
}

fn flow(stream: &UdpStream) -> Result<Flow, NetError> {
    flow_between(Addresses::V4(A, B), stream)
}

fn flow_between(addresses: Addresses, stream: &UdpStream) -> Result<Flow, NetError> {
    let way = way(MacAddress([2, 0, 0, 0, 0, 9]));
    let to = (Some(NodeId(1)), addresses, way);
    let draws = || Stream::named(1, "flow7");
    Flow::udp(FlowId(7), (NodeId(0), &host(1, A)), to, stream, draws)
}

fn log(flow: &Flow, node: u32) -> &ReceivedLog {
    let log = flow.record.received_log(FlowId(7), Some(NodeId(node)));
    log.unwrap()
}

fn ping(addresses: Addresses, payload_bytes: usize) -> Flow {
    let ping = Ping {
        source: "a".to_owned(),
        destination: Destination::Host("b".to_owned()),
        interval_ps: 1000,
        start_ps: Time::ZERO,
        stop_ps: Time::NEVER,
        payload_bytes,
    };
    let to = (addresses, way(MacAddress([2; 6])));
    Flow::ping(3, (NodeId(0), &host(1, A)), to, &ping).unwrap()
}

fn due_times(schedule: &mut Schedule, n: usize) -> Vec<Time> {
    let mut times = Vec::new();
    while let (Some(due_ps), true) = (schedule.due_ps(), times.len() < n) {
        times.push(due_ps);
        schedule.advance();
    }
    times
}

fn transport_at(addresses: Addresses) -> usize {
    match addresses {
        Addresses::V4(..) => TRANSPORT_AT,
        Addresses::V6(..) => TRANSPORT_AT_V6,
    }
}

/// Returns all bytes of a flow's next packet, sent at `now_ps` picoseconds.
fn next_frame(flow: &mut Flow, now_ps: u64) -> Vec<u8> {
    let (stored, rest) = flow.next_frame(Time::from(now_ps));
    [stored, rest.bytes()].concat()
}

#[test]
fn packets_are_whole_and_checked() {
    let sizes = [STREAM_FIELDS_BYTES, 25, 1000];
    for (addresses, payload_bytes) in BOTH.into_iter().flat_map(|a| sizes.map(|size| (a, size))) {
        let mut flow = flow_between(addresses, &stream(payload_bytes)).unwrap();
        let receiver = host(9, B);
        for k in 0..3 {
            let packet = next_frame(&mut flow, 1000 + k);
            assert_eq!(packet.len(), transport_at(addresses) + 8 + payload_bytes);
            let Received::Datagram { payload, .. } = receiver.receive(0, &packet, |_| None) else {
                panic!("{:?}", receiver.receive(0, &packet, |_| None));
            };
            assert_eq!(claimed_flow(payload), Some(FlowId(7)));
            assert!(flow.datagram(Time::from(5000 + k), NodeId(1), payload, false));
        }
        let expected = ReceivedLog {
            sequence: vec![0, 1, 2],
            sent_ps: vec![1000, 1001, 1002],
            received_ps: vec![5000, 5001, 5002],
        };
        assert_eq!(*log(&flow, 1), expected);
        assert_eq!(*log(&flow, 2), ReceivedLog::EMPTY);
        assert_eq!(
            flow.record.sent_log(FlowId(7)).unwrap().sent_ps,
            [1000, 1001, 1002]
        );
        assert_eq!(flow.corrupted, 0);
    }
}

#[test]
fn recognising_a_payload_changes_no_verdict() {
    let sizes = [STREAM_FIELDS_BYTES, 25, 60, 1000];
    for (addresses, payload_bytes) in BOTH.into_iter().flat_map(|a| sizes.map(|size| (a, size))) {
        let mut flow = flow_between(addresses, &stream(payload_bytes)).unwrap();
        let transport_at = transport_at(addresses);
        let payload_at = transport_at + 8;
        let packet = next_frame(&mut flow, 1_000_000);
        let receiver = host(9, B);
        let verdicts = |packet: &[u8]| {
            let valid = |received| match received {
                Received::Datagram { known, .. } => Some(known),
                Received::Corrupt(_) => None,
                other => panic!("{other:?}"),
            };
            let plain = valid(receiver.receive(0, packet, |_| None));
            let recognised = valid(receiver.receive(0, packet, |payload| flow.sum_of(payload)));
            assert_eq!(recognised.is_some(), plain.is_some());
            recognised
        };
        assert_eq!(verdicts(&packet), Some(true));
        for bit in transport_at * 8..packet.len() * 8 {
            let mut broken = packet.clone();
            broken[bit / 8] ^= 0x80 >> (bit % 8);
            assert_eq!(verdicts(&broken), None, "bit {bit}");
        }
        // Without a checksum, which IPv6 does not allow, and changed so that the checksum is right.
        let mut unchecked = packet.clone();
        unchecked[transport_at + 6..payload_at].fill(0);
        let allowed = matches!(addresses, Addresses::V4(..));
        assert_eq!(verdicts(&unchecked), allowed.then_some(false));
        let mut swapped = packet.clone();
        swapped.swap(payload_at, payload_at + 2);
        swapped.swap(payload_at + 1, payload_at + 3);
        assert_eq!(verdicts(&swapped), Some(false));
    }
}

/// Checks a packet against one written by hand from RFC 8200, section 3, and RFC 768.
#[test]
fn a_stream_over_ipv6_byte_by_byte() {
    let mut flow = flow_between(BOTH[1], &stream(26)).unwrap();
    flow.next_frame(Time::from(7_u64));
    let packet = next_frame(&mut flow, 0x0102_0304);
    let mut expected = vec![
        2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, // Ethernet
        0x60, 0, 0, 0, 0, 34, 17,
        64, // version, class, flow label; 8 + 26 bytes of UDP; hop limit
        0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, // from
        0x20, 0x01, 0x0d, 0xb8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, // to
        0x13, 0x89, 0x13, 0x8a, 0, 34, 0, 0, // ports 5001 and 5002, length, checksum
        b'H', b'F', b'p', b'1', 0, 0, 0, 7, // magic and flow
        0, 0, 0, 0, 0, 0, 0, 1, // sequence number
        0, 0, 0, 0, 1, 2, 3, 4, // time
    ];
    expected.extend_from_slice(Shared::pattern(24..26).bytes());
    // RFC 1071 over the pseudo header: addresses, length, next header; and what is above.
    let words = expected[22..]
        .chunks(2)
        .map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let mut sum = words.sum::<u32>() + 34 + 17;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    expected[60..62].copy_from_slice(&(!sum as u16).to_be_bytes());
    assert_eq!(packet, expected);
}

/// Checks a packet against one written by hand from RFC 4443, sections 2.3 and 4.1.
#[test]
fn a_ping_over_ipv6_byte_by_byte() {
    let mut flow = ping(BOTH[1], 2);
    flow.next_frame(Time::from(7_u64));
    let packet = next_frame(&mut flow, 8);
    let pattern = Shared::pattern(0..2);
    let pattern = pattern.bytes();
    let mut expected = vec![
        2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, // Ethernet
        0x60, 0, 0, 0, 0, 10, 58,
        64, // version, class, flow label; 8 + 2 bytes of ICMPv6; hop limit
        0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, // from
        0x20, 0x01, 0x0d, 0xb8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, // to
        128, 0, 0, 0, 0, 3, 0, 1, // echo request; checksum; identifier 3, sequence number 1
        pattern[0], pattern[1],
    ];
    let words = expected[22..]
        .chunks(2)
        .map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let mut sum = words.sum::<u32>() + 10 + 58;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    expected[56..58].copy_from_slice(&(!sum as u16).to_be_bytes());
    assert_eq!(packet, expected);
}

#[test]
fn no_changed_payload_is_believed() {
    let mut flow = flow(&stream(60)).unwrap();
    flow.next_frame(Time::ZERO);
    let packet = next_frame(&mut flow, 1_000_000);
    let good = &packet[TRANSPORT_AT + 8..];
    assert!(flow.datagram(Time::from(5_u64), NodeId(1), good, false));
    let mut refused = 0;
    for bit in 0..good.len() * 8 {
        let mut broken = good.to_vec();
        broken[bit / 8] ^= 0x80 >> (bit % 8);
        assert!(
            !flow.datagram(Time::from(5_u64), NodeId(1), &broken, false),
            "bit {bit}"
        );
        refused += 1;
    }
    let mut long = good.to_vec();
    long.push(0);
    for wrong in [&long[..], &good[..59], &good[..10], &[]] {
        assert!(!flow.datagram(Time::from(5_u64), NodeId(1), wrong, false));
        refused += 1;
    }
    assert_eq!(flow.corrupted, refused);
    assert_eq!(log(&flow, 1).len(), 1);
}

#[test]
fn without_a_log_packets_are_checked_all_the_same() {
    let mut flow = flow(&UdpStream {
        packets_per_s: 3e8,
        start_ps: Time::from(17_u64),
        log_packets: false,
        ..stream(60)
    })
    .unwrap();
    let mut payloads = Vec::new();
    for number in 0..40 {
        // The host is down for a while.
        if !(10..20).contains(&number) {
            let due_ps = flow.due_ps().unwrap();
            payloads
                .push(next_frame(&mut flow, due_ps.saturating_ps())[TRANSPORT_AT + 8..].to_vec());
        }
        flow.advance();
    }
    assert_eq!(payloads.len(), 30);
    for payload in &payloads {
        for byte in SEQUENCE_AT..STREAM_FIELDS_BYTES {
            let mut wrong = payload.clone();
            wrong[byte] ^= 1;
            assert!(!flow.datagram(Time::from(1_000_000_u64), NodeId(1), &wrong, false));
        }
        assert!(flow.datagram(Time::from(1_000_000_u64), NodeId(1), payload, false));
    }
    let statistics = flow.record.statistics(Some(NodeId(1)), flow.interval_ps());
    assert_eq!((statistics.sent, statistics.delivered), (30, 30));
    assert_eq!((statistics.duplicated, statistics.undecided), (0, 0));
    assert_eq!(flow.corrupted, 30 * 16);
}

#[test]
fn times_do_not_drift() {
    let mut third = Schedule::at_rate(Time::from(5_u64), Time::NEVER, 3.0).unwrap();
    let times = due_times(&mut third, 3_000_001);
    assert_eq!(
        times[..4],
        [5, 333_333_333_338, 666_666_666_671, 1_000_000_000_005].map(Time::from)
    );
    assert_eq!(
        times[3_000_000],
        Time::from(5 + 1_000_000 * 1_000_000_000_000)
    );
}

#[test]
fn the_last_packet_is_due_before_the_end() {
    let mut schedule =
        Schedule::at_rate(Time::ZERO, Time::from(3_000_000_000_u64), 1000.0).unwrap();
    assert_eq!(
        due_times(&mut schedule, 10),
        [0, 1_000_000_000, 2_000_000_000].map(Time::from)
    );
    let mut schedule =
        Schedule::at_rate(Time::ZERO, Time::from(3_000_000_001_u64), 1000.0).unwrap();
    assert_eq!(due_times(&mut schedule, 10).len(), 4);
    let mut nothing = Schedule::at_rate(Time::from(7_u64), Time::from(7_u64), 1000.0).unwrap();
    assert_eq!(due_times(&mut nothing, 10), []);
    let mut end_of_time = Schedule::new(Time::NEVER.before(1), Time::NEVER, 5).unwrap();
    assert_eq!(due_times(&mut end_of_time, 10), [Time::NEVER.before(1)]);
}

proptest! {
    #[test]
    fn due_times_are_the_exact_quotients(nano in 100u64..=1_000_000_000_000_000_000, start_ps in 0u64..1 << 50) {
        // Rates that a 64-bit float holds exactly enough to be rounded to these nano-packets.
        let nano = (nano as f64 / 1e9 * 1e9).round() as u64;
        let mut schedule = Schedule::at_rate(Time::from(start_ps), Time::NEVER, nano as f64 / 1e9).unwrap();
        let nano = schedule.divisor;
        for (k, due_ps) in due_times(&mut schedule, 100).into_iter().enumerate() {
            let exact = k as u128 * 1_000_000_000_000_000_000_000 / u128::from(nano);
            prop_assert_eq!(due_ps.ps() - u128::from(start_ps), exact);
            prop_assert_eq!(schedule.constant_due_ps(k as u64), due_ps);
        }
    }
}

#[test]
fn nonsense_is_refused() {
    for packets_per_s in [0.0, -1.0, 1e-8, 2e9, f64::NAN, f64::INFINITY] {
        assert!(
            flow(&UdpStream {
                packets_per_s,
                ..stream(100)
            })
            .is_err(),
            "{packets_per_s}"
        );
    }
    for payload_bytes in [
        0,
        STREAM_FIELDS_BYTES - 1,
        MAX_PAYLOAD_BYTES + 1,
        usize::MAX,
    ] {
        assert!(flow(&stream(payload_bytes)).is_err(), "{payload_bytes}");
    }
    assert!(flow(&stream(MAX_PAYLOAD_BYTES)).is_ok());
    let longest = stream(MAX_PAYLOAD_BYTES - 20);
    assert!(flow_between(BOTH[1], &longest).is_ok());
    let too_long = stream(MAX_PAYLOAD_BYTES - 19);
    assert!(flow_between(BOTH[1], &too_long).is_err());
    let poisson_totals = UdpStream {
        spacing: Spacing::Poisson,
        log_packets: false,
        ..stream(100)
    };
    assert!(flow(&poisson_totals).is_err());
    assert!(
        flow(&UdpStream {
            start_ps: Time::from(2_u64),
            stop_ps: Time::from(1_u64),
            ..stream(100)
        })
        .is_err()
    );
    assert!(Schedule::new(Time::ZERO, Time::from(1_u64), 0).is_err());
}

#[test]
fn replies_are_matched_over_the_wrap_of_sequence_numbers() {
    let mut flow = ping(BOTH[0], 10);
    let payload = flow.rest.bytes();
    assert!(
        !flow.echo_reply(Time::from(1_u64), 0, payload),
        "nothing was asked yet"
    );
    for k in 0..70_000 {
        flow.next_frame(Time::from(k * 1000));
    }
    // The latest request is 69,999 = 65,536 + 4,463.
    assert!(flow.echo_reply(Time::from(1_u64), 4463, payload));
    assert!(flow.echo_reply(Time::from(2_u64), 4462, payload));
    assert!(flow.echo_reply(Time::from(3_u64), 4464, payload));
    assert!(
        flow.echo_reply(Time::from(4_u64), 4464, payload),
        "duplicates are logged"
    );
    assert_eq!(log(&flow, 0).sequence, [69_999, 69_998, 4464, 4464]);
    assert_eq!(log(&flow, 0).sent_ps[2], 4_464_000);
    assert_eq!(flow.corrupted, 1);
    for wrong in [&payload[..9], &[payload, &[0]].concat(), &[0; 10]] {
        assert!(!flow.echo_reply(Time::from(1_u64), 4463, wrong));
    }
}

#[test]
fn pings_are_answered_by_hosts_and_recognised() {
    let sizes = [0, 1, 56, 1400];
    for (addresses, payload_bytes) in BOTH.into_iter().flat_map(|a| sizes.map(|size| (a, size))) {
        let mut flow = ping(addresses, payload_bytes);
        for sequence in 0..3 {
            let mut bytes = next_frame(&mut flow, 10);
            bytes[..6].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
            let Received::Answer(_, mut answer) = host(9, B).receive(0, &bytes, |_| None) else {
                panic!("no answer");
            };
            answer[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
            let source = host(1, A);
            let Received::EchoReply {
                identifier: 3,
                sequence: s,
                payload,
            } = source.receive(0, &answer, |_| None)
            else {
                panic!("{:?}", source.receive(0, &answer, |_| None));
            };
            assert_eq!(s, sequence);
            assert!(flow.echo_reply(Time::from(20_u64), s, payload));
        }
    }
}

proptest! {
    #[test]
    fn any_payload_is_taken_or_refused(payload: Vec<u8>) {
        let mut flow = flow(&stream(100)).unwrap();
        flow.next_frame(Time::ZERO);
        prop_assert!(!flow.datagram(Time::from(1_u64), NodeId(1), &payload, false));
        let mut claiming = MAGIC.to_vec();
        claiming.extend_from_slice(&payload);
        let _ = claimed_flow(&claiming);
        prop_assert!(!flow.datagram(Time::from(1_u64), NodeId(1), &claiming, false));
    }
}

#[test]
fn a_poisson_process_has_exponential_gaps_of_the_stated_mean() {
    let poisson = UdpStream {
        packets_per_s: 1e6,
        spacing: Spacing::Poisson,
        start_ps: Time::from(5_000_000_u64),
        stop_ps: Time::from(20_000_000_000_u64),
        ..stream(100)
    };
    let times = || {
        let mut flow = flow(&poisson).unwrap();
        std::iter::from_fn(move || {
            let due_ps = flow.due_ps();
            flow.advance();
            due_ps
        })
        .collect::<Vec<Time>>()
    };
    let due_ps = times();
    assert_eq!(due_ps, times());
    let mut gaps = vec![due_ps[0] - poisson.start_ps];
    gaps.extend(due_ps.windows(2).map(|two| two[1] - two[0]));
    // 20,000 gaps: the mean is known to 0.7 %, three standard errors are 2.1 %. Exponential: the deviation is the mean, and a share
    // of 1/e is longer.
    let count = gaps.len() as f64;
    let mean = gaps.iter().sum::<u64>() as f64 / count;
    let square = gaps.iter().map(|&g| (g as f64 - mean).powi(2)).sum::<f64>() / count;
    let longer = gaps.iter().filter(|&&g| g > 1_000_000).count() as f64 / count;
    assert!((mean / 1e6 - 1.0).abs() < 0.021, "{mean}");
    assert!((square.sqrt() / mean - 1.0).abs() < 0.03, "{square}");
    assert!((longer - (-1.0f64).exp()).abs() < 0.011, "{longer}");
}
