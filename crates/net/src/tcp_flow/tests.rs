//! TCP over whole networks under the virtual clock, with a closure for the switch.

use crate::captured::Captured;
use crate::switch::closure::Closure;
use crate::*;
use engine::Time;
use engine::{Output, Packet};
use std::net::{Ipv4Addr, Ipv6Addr};

const MS: u64 = 1_000_000_000;
const S: u64 = 1000 * MS;

fn host(number: u8) -> HostConfig {
    HostConfig {
        mac: MacAddress([2, 0, 0, 0, number, 1]),
        ipv4: Ipv4Addr::new(10, 0, number, 1),
        prefix_len: 24,
        gateway_mac: MacAddress([2, 0, 0, 0, number, 0xfe]),
        ipv6: Some(Ipv6Interface {
            address: Ipv6Addr::new(0x2001, 0xdb8, 0, number.into(), 0, 0, 0, 1),
            prefix_len: 64,
        }),
    }
}

/// Builds a network of h1 and h2 behind a switch, in which the link to h2 is the bottleneck.
fn pair(bottleneck: LinkConfig) -> Network {
    let mut network = Network::new(7, 0);
    network.add_host("h1", host(1)).unwrap();
    network.add_host("h2", host(2)).unwrap();
    let run = move |_, _, mut packet: Packet, out: &mut Vec<Output>| {
        let number = match packet.bytes()[12..14] {
            [0x86, 0xdd] => packet.bytes()[45],
            _ => packet.bytes()[32],
        };
        packet.replace_front(6, &[2, 0, 0, 0, number, 1]);
        let port = u32::from(number);
        out.push(Output::new(port, packet));
    };
    network
        .add_pipeline("s", Box::new(Closure(run)), 0)
        .unwrap();
    let access = LinkConfig::new(1_000_000_000, MS);
    network.add_link("h1", 0, "s", 1, access).unwrap();
    network.add_link("s", 2, "h2", 0, bottleneck).unwrap();
    network
}

fn transfer(application: Application) -> TcpTransfer {
    TcpTransfer {
        client: "h1".to_string(),
        server: "h2".to_string(),
        client_port: 40_000,
        server_port: 5001,
        family: Family::Ipv4,
        start_ps: Time::ZERO,
        application,
        stop_ps: Time::NEVER,
        config: tcp::Config {
            recovery: tcp::Recovery::Sack {
                proportional: false,
            },
            ..tcp::Config::default()
        },
        dscp: 0,
        goodput_bin_ps: 10 * MS,
        log_window: true,
    }
}

/// Sums the bytes that arrived in the bins from `from` to below `to`; missing bins count as empty.
fn between(goodput: &[u64], from: usize, to: usize) -> u64 {
    goodput.iter().take(to).skip(from).sum()
}

fn bottleneck(queue_bytes: u64) -> LinkConfig {
    LinkConfig {
        queue: crate::QueueConfig::bytes(queue_bytes),
        ..LinkConfig::new(10_000_000, 9 * MS)
    }
}

#[test]
fn a_transfer_completes_and_every_byte_is_counted_once() {
    for family in [Family::Ipv4, Family::Ipv6] {
        a_transfer_completes(family);
    }
}

fn a_transfer_completes(family: Family) {
    let mut network = pair(LinkConfig {
        loss: crate::Loss::Bernoulli(0.02),
        ..bottleneck(30_000)
    });
    let flow = network
        .add_tcp(&TcpTransfer {
            family,
            ..transfer(Application::Transfer { bytes: 1_000_000 })
        })
        .unwrap();
    assert!(network.run(Time::from(60 * S)).unwrap().is_empty());
    let now = network.tcp_statistics(flow).unwrap();
    assert_eq!(now.server.bytes_received, 1_000_000);
    assert_eq!(now.client.bytes_acknowledged, 1_000_000);
    assert!(now.client.segments_retransmitted > 0);
    let goodput = network.tcp_goodput(flow).unwrap();
    assert_eq!(goodput.iter().sum::<u64>(), 1_000_000);
    let finished_ps = now.finished_ps.unwrap().saturating_ps();
    let bin = (finished_ps / (10 * MS)) as usize;
    // The FIN may come in a later bin than the last byte.
    assert!(goodput.len() <= bin + 1, "{} {bin}", goodput.len());
    // Not faster than the bottleneck.
    assert!(
        finished_ps > Time::from(800 * MS).saturating_ps(),
        "{finished_ps}"
    );
    assert_eq!(now.client_failure, None);
    assert_eq!(now.server_state, tcp::State::Closed);
}

/// Written by hand from RFC 8200, section 3, and RFC 9293, section 3.1.
#[test]
fn a_segment_over_ipv6_byte_by_byte() {
    let mut network = pair(bottleneck(40_000));
    let written = Captured::default();
    let capture = Box::new(written.clone());
    network.capture("h1", 0, capture).unwrap();
    let flow = TcpTransfer {
        family: Family::Ipv6,
        dscp: 46,
        ..transfer(Application::Transfer { bytes: 3 })
    };
    network.add_tcp(&flow).unwrap();
    network.run(Time::from(S)).unwrap();
    let bytes = written.bytes();
    let records = wire::pcap::Reader::new(&bytes[..]).unwrap();
    let frames: Vec<Vec<u8>> = records
        .map(|record| record.unwrap().frame.to_vec())
        .collect();
    let sent = || frames.iter().filter(|frame| frame[10] == 1);
    let (syn, data) = (&frames[0], sent().find(|frame| frame[67] & 1 != 0).unwrap());
    for (frame, flags) in [(syn, 0x02), (data, 0x19)] {
        let len = frame.len() as u16 - 54;
        let [len_high, len_low] = len.to_be_bytes();
        let expected = [
            2, 0, 0, 0, 1, 0xfe, 2, 0, 0, 0, 1, 1, 0x86, 0xdd, // Ethernet
            0x6b, 0x80, 0, 0, len_high, len_low, 6,
            64, // version, DSCP 46, flow label, length, hop limit
            0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, // from
            0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, // to
            0x9c, 0x40, 0x13, 0x89, // ports
        ];
        assert_eq!(frame[..58], expected);
        assert_eq!(frame[67], flags);
        // RFC 1071 over the pseudo header (addresses, length, next header) and the segment, an odd byte as if a zero followed.
        let words = frame[22..]
            .chunks(2)
            .map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0)));
        let sum = words.sum::<u32>() + u32::from(len) + 6;
        assert_eq!(sum % 0xffff, 0);
    }
}

#[test]
fn connections_with_the_same_ports_over_both_families() {
    let mut network = pair(bottleneck(40_000));
    let flows = [Family::Ipv4, Family::Ipv6].map(|family| {
        let flow = TcpTransfer {
            family,
            ..transfer(Application::Transfer { bytes: 50_000 })
        };
        let id = network.add_tcp(&flow).unwrap();
        assert!(network.add_tcp(&flow).is_err(), "the same again");
        id
    });
    network.run(Time::from(10 * S)).unwrap();
    for flow in flows {
        let now = network.tcp_statistics(flow).unwrap();
        assert_eq!(now.server.bytes_received, 50_000);
        assert_eq!(now.server_state, tcp::State::Closed);
    }
}

#[test]
fn a_bulk_flow_fills_the_bottleneck() {
    let mut network = pair(bottleneck(40_000));
    let flow = network.add_tcp(&transfer(Application::Bulk)).unwrap();
    network.run(Time::from(10 * S)).unwrap();
    let bytes = between(network.tcp_goodput(flow).unwrap(), 500, 1000);
    // 1448 of 1526 bytes on the wire, and 5 s of 10 Mb/s.
    let most = 5.0 * 10e6 / 8.0 * 1448.0 / 1526.0;
    let share = bytes as f64 / most;
    // Data that waited behind a hole count when the hole is filled, so a little may come from before.
    assert!((0.95..=1.01).contains(&share), "{share}");
    let log = network.tcp_window(flow).unwrap();
    assert!(log.time_ps.len() > 500);
    assert!(log.time_ps.is_sorted());
}

#[test]
fn an_on_off_application_is_silent_in_between() {
    let mut network = pair(bottleneck(1_000_000));
    let flow = network
        .add_tcp(&transfer(Application::OnOff {
            burst_bytes: 14_480,
            silence_ps: S,
            exponential: false,
        }))
        .unwrap();
    network.run(Time::from(10 * S)).unwrap();
    let goodput = network.tcp_goodput(flow).unwrap();
    let bursts: Vec<u64> = goodput
        .split(|bytes| *bytes == 0)
        .map(|burst| burst.iter().sum())
        .filter(|bytes| *bytes > 0)
        .collect();
    assert!(bursts.len() >= 9, "{bursts:?}");
    assert_eq!(bursts.iter().sum::<u64>() % 14_480, 0, "{bursts:?}");
}

#[test]
fn it_stops_when_it_is_told_and_closes() {
    let on_off = Application::OnOff {
        burst_bytes: 1 << 40,
        silence_ps: S,
        exponential: false,
    };
    for application in [
        Application::Bulk,
        Application::Transfer { bytes: 1 << 40 },
        on_off,
    ] {
        let mut network = pair(bottleneck(40_000));
        let stopped = TcpTransfer {
            stop_ps: Time::from(S),
            ..transfer(application.clone())
        };
        let flow = network.add_tcp(&stopped).unwrap();
        network.run(Time::from(5 * S)).unwrap();
        let now = network.tcp_statistics(flow).unwrap();
        let ends = (now.client_state, now.server_state, now.client_failure);
        // The server closes when it has read the end.
        let closed = (tcp::State::TimeWait, tcp::State::Closed, None);
        assert_eq!(ends, closed, "{application:?}");
        // Packets on the way arrive: a full queue and a window of some round trips.
        let finished_ps = now.finished_ps.unwrap().saturating_ps();
        assert!(
            (S..S + 200 * MS).contains(&finished_ps),
            "{application:?}: {finished_ps}"
        );
        let goodput = network.tcp_goodput(flow).unwrap();
        assert!(between(goodput, 0, 100) > 1_000_000, "{application:?}");
        assert_eq!(between(goodput, 120, 500), 0, "{application:?}");
    }
}

#[test]
fn what_was_complete_before_the_stop_is_as_if_there_were_none() {
    let mut network = pair(bottleneck(40_000));
    let complete = TcpTransfer {
        stop_ps: Time::from(S),
        ..transfer(Application::Transfer { bytes: 10_000 })
    };
    let flow = network.add_tcp(&complete).unwrap();
    network.run(Time::from(5 * S)).unwrap();
    let now = network.tcp_statistics(flow).unwrap();
    assert_eq!(now.server.bytes_received, 10_000);
    assert!(now.finished_ps.unwrap() < Time::from(S));
}

#[test]
fn a_cut_is_survived_by_retransmission() {
    let mut network = pair(bottleneck(40_000));
    let flow = network.add_tcp(&transfer(Application::Bulk)).unwrap();
    let link = LinkId(1);
    network
        .set_link_state(link, false, Some(Time::from(2 * S)))
        .unwrap();
    network
        .set_link_state(link, true, Some(Time::from(3 * S)))
        .unwrap();
    // Each end of the link notices, and a run ends where somebody could do something about it.
    while network.now_ps() < Time::from(8 * S) {
        network.run(Time::from(8 * S)).unwrap();
    }
    let goodput = network.tcp_goodput(flow).unwrap();
    assert_eq!(between(goodput, 201, 300), 0);
    assert!(between(goodput, 600, 800) > 2_000_000);
    let now = network.tcp_statistics(flow).unwrap();
    assert!(now.client.timeouts >= 1);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut network = pair(bottleneck(40_000));
    let good = transfer(Application::Bulk);
    let cases = [
        TcpTransfer {
            server: "h1".to_string(),
            ..good.clone()
        },
        TcpTransfer {
            server: "s".to_string(),
            ..good.clone()
        },
        TcpTransfer {
            // One byte more than what IPv6's header and TCP's longest leave; over IPv4 there would be room.
            family: Family::Ipv6,
            config: tcp::Config {
                mss: 65_436,
                window_limit_bytes: 1 << 20,
                ..tcp::Config::default()
            },
            ..good.clone()
        },
        TcpTransfer {
            dscp: 64,
            ..good.clone()
        },
        TcpTransfer {
            application: Application::Transfer { bytes: 0 },
            ..good.clone()
        },
        TcpTransfer {
            start_ps: Time::from(5_u64),
            stop_ps: Time::from(4_u64),
            ..good.clone()
        },
        TcpTransfer {
            config: tcp::Config {
                mss: 0,
                ..tcp::Config::default()
            },
            ..good.clone()
        },
    ];
    for case in cases {
        assert!(network.add_tcp(&case).is_err(), "{case:?}");
    }
    network.add_tcp(&good).unwrap();
    assert!(network.add_tcp(&good).is_err(), "the ports are in use");
    let other = TcpTransfer {
        client_port: 40_001,
        ..good
    };
    network.add_tcp(&other).unwrap();
}

#[test]
fn a_run_is_the_same_again() {
    let run = || {
        let mut network = pair(LinkConfig {
            loss: crate::Loss::Bernoulli(0.01),
            ..bottleneck(20_000)
        });
        let flow = network
            .add_tcp(&transfer(Application::OnOff {
                burst_bytes: 50_000,
                silence_ps: 50 * MS,
                exponential: true,
            }))
            .unwrap();
        network.run(Time::from(5 * S)).unwrap();
        let goodput = network.tcp_goodput(flow).unwrap().to_vec();
        (goodput, network.tcp_window(flow).unwrap().clone())
    };
    assert_eq!(run(), run());
}
