//! Properties of any history: for any behaviour of the network every byte arrives once, windows are kept and time goes forward, and
//! no input causes a panic.

use super::channel::{Channel, Fate, MS, SECOND, Way};
use crate::{
    Config, Congestion, Connection, Cubic, Flags, Hpcc, HyStart, Options, Recovery, Reduction,
    RtoConfig, SackBlocks, Segment, State, Timestamps,
};
use proptest::prelude::*;

fn any_config() -> impl Strategy<Value = Config> {
    let choices = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    let sizes = (100u32..1500, 1u64..80, 1u32..11);
    (choices, sizes, 0usize..5, 0usize..5).prop_map(
        |(choices, (mss, window, initial), preset, congestion)| {
            let base = match preset {
                0 => Config::default(),
                1 => Config {
                    recovery: Recovery::Sack {
                        proportional: false,
                    },
                    ..Config::default()
                },
                2 => Config {
                    recovery: Recovery::Sack { proportional: true },
                    ..Config::default()
                },
                3 => Config {
                    recovery: Recovery::RFC_8985,
                    ..Config::default()
                },
                _ => Config::ns2_2001(mss),
            };
            let congestion = match congestion {
                1 => Congestion::Cubic(Cubic::RFC_9438),
                2 if !matches!(base.recovery, Recovery::NewReno(_)) => Congestion::Bbr,
                3 if !matches!(base.recovery, Recovery::NewReno(_)) => {
                    Congestion::Hpcc(Hpcc::published(100_000_000, 40 * 1_000_000_000))
                }
                4 if choices.1 => Congestion::Dctcp,
                _ => Congestion::NewReno,
            };
            Config {
                congestion,
                delayed_ack: base.delayed_ack.filter(|_| congestion != Congestion::Dctcp),
                hystart: match (choices.1, choices.2) {
                    (false, _) => None,
                    (true, false) => Some(HyStart::PlusPlus),
                    (true, true) => Some(HyStart::Classic),
                },
                mss,
                window_limit_bytes: window * u64::from(mss) + 17,
                initial_window_segments: initial,
                timestamps: choices.0,
                ecn: choices.1,
                reduction: if choices.3 && base.reduction == Reduction::FlightSize {
                    Reduction::Window
                } else {
                    base.reduction
                },
                nagle: choices.2,
                limited_transmit: choices.3,
                reads_at_once: choices.4,
                timeout_limit: u32::MAX,
                rto: RtoConfig {
                    maximum_ps: 64 * SECOND,
                    ..base.rto
                },
                ..base
            }
        },
    )
}

fn any_fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        8 => Just(Fate::Delivered),
        2 => Just(Fate::Lost),
        1 => Just(Fate::Marked),
        1 => (1..300 * MS).prop_map(Fate::Delayed),
        1 => (1..300 * MS).prop_map(Fate::Twice),
    ]
}

/// Generates segments whose fields and options are as hostile as their types allow, but close enough to valid numbers
/// to be processed.
fn any_segment() -> impl Strategy<Value = Segment> {
    let near = prop_oneof![0u32..5000, any::<u32>(), 0xffff_f000u32..];
    let numbers = (near.clone(), near.clone());
    let rest = (
        any::<u8>(),
        any::<u16>(),
        prop_oneof![Just(0), 1u32..3000, any::<u32>()],
    );
    let options = (
        any::<Option<u16>>(),
        any::<Option<u8>>(),
        any::<bool>(),
        proptest::collection::vec((near.clone(), near), 0..=4),
        any::<Option<(u32, u32)>>(),
        any::<u8>(),
    );
    (numbers, rest, options).prop_map(|(numbers, rest, options)| {
        let mut sack = SackBlocks::default();
        for (left, right) in options.3 {
            sack.push(left, right);
        }
        Segment {
            sequence: numbers.0,
            acknowledgment: numbers.1,
            flags: Flags::from_bits(rest.0),
            window: rest.1,
            payload_bytes: rest.2,
            options: Options {
                mss: options.0,
                window_scale: options.1,
                sack_permitted: options.2,
                sack,
                timestamps: options.4.map(|(value, echo)| Timestamps { value, echo }),
            },
            ecn: crate::EcnCodepoint::from_bits(options.5),
        }
    })
}

/// Checks that no end sends beyond the window that its peer has offered so far.
fn check_windows(sent: &[(u64, usize, Segment)]) -> Result<(), TestCaseError> {
    // By end: its SYN's number and shift, and the highest edge that it offered, from the other's first number on.
    let (mut iss, mut shift, mut offered) = ([None; 2], [None; 2], [0u64; 2]);
    for (_, end, segment) in sent {
        let (end, other) = (*end, 1 - *end);
        let is_syn = segment.flags.contains(Flags::SYN);
        if is_syn {
            iss[end] = Some(segment.sequence);
            shift[end] = segment.options.window_scale;
        }
        if let (true, Some(first)) = (segment.flags.contains(Flags::ACK), iss[other]) {
            let ack = u64::from(segment.acknowledgment.wrapping_sub(first));
            let scaled = !is_syn && shift[other].is_some();
            let shift = if scaled { shift[end].unwrap_or(0) } else { 0 };
            offered[end] = offered[end].max(ack + (u64::from(segment.window) << shift));
        }
        if segment.payload_bytes > 0 {
            let first = iss[end].unwrap_or_default();
            let edge =
                u64::from(segment.sequence.wrapping_sub(first)) + u64::from(segment.payload_bytes);
            prop_assert!(
                edge <= offered[other].max(1 + syn_window(sent, other)),
                "{segment:?} {offered:?}"
            );
        }
    }
    Ok(())
}

/// Returns the window in an end's SYN, which counts from no acknowledgment.
fn syn_window(sent: &[(u64, usize, Segment)], end: usize) -> u64 {
    let syn = sent
        .iter()
        .find(|(_, from, segment)| *from == end && segment.flags.contains(Flags::SYN));
    syn.map_or(0, |(_, _, segment)| u64::from(segment.window))
}

proptest! {
    #[test]
    fn every_byte_arrives_once(
        config in any_config(),
        other in any_config(),
        fates in proptest::collection::vec(any_fate(), 1..200),
        bytes in (0u64..200_000, 0u64..100_000),
        queue in 1u64..50,
        delay_ps in 0..100 * MS,
        reading in 1u64..20,
        stops in proptest::option::of(0..2 * SECOND),
    ) {
        let mut stops = stops;
        let mut next = 0;
        let way = Way::new(1_250_000, queue, delay_ps);
        // The list repeats with a growing share of good luck, so that the end comes.
        let mut channel = Channel::new([&config, &other], way, |_, _, _| {
            next += 1;
            let turn = next / fates.len();
            if turn > 3 && next % (turn + 1) != 0 { Fate::Delivered } else { fates[next % fates.len()] }
        });
        channel.records = true;
        channel.ends[0].write(bytes.0);
        channel.ends[0].close();
        channel.ends[1].write(bytes.1);
        while channel.ends[1].state() == State::Listen {
            channel.step(100_000 * SECOND);
        }
        channel.ends[1].close();
        // The data that the other end gets: all, or those that had left when the application stopped.
        let mut sent = bytes.0;
        let (mut steps, mut read) = (0, [0; 2]);
        while channel.step(100_000 * SECOND) {
            steps += 1;
            let last = &channel.sent[channel.sent.len().saturating_sub(6)..];
            prop_assert!(steps < 100_000, "they go on and on: {last:?} {:?}", channel.ends);
            if stops.is_some_and(|at_ps| channel.now_ps >= at_ps) {
                stops = None;
                channel.ends[0].stop();
                let now = channel.ends[0].statistics();
                sent = sent.min(now.bytes_sent - now.bytes_retransmitted);
                channel.flush(0);
            }
            // Slow readers: now and then, a part; in the end all, or windows would stay closed.
            if steps % reading == 0 {
                for (end, read) in read.iter_mut().enumerate() {
                    let unread = channel.ends[end].received_bytes() - *read;
                    let taken = if steps % 3 == 0 { unread } else { unread / 2 };
                    channel.ends[end].read(taken);
                    *read += taken;
                    channel.flush(end);
                }
            }
        }
        prop_assert!(channel.ends[1].is_finished(), "{:?}", channel.ends);
        prop_assert_eq!(channel.ends[1].received_bytes(), sent, "{:?}", channel.ends);
        prop_assert_eq!(channel.ends[0].received_bytes(), bytes.1, "{:?}", channel.ends);
        check_windows(&channel.sent)?;
    }

    #[test]
    fn nothing_that_arrives_panics(
        config in any_config(),
        steps in proptest::collection::vec((any_segment(), any::<u8>(), 0u64..SECOND), 1..60),
        listens: bool,
    ) {
        let mut now_ps = 0;
        let mut end = if listens { Connection::listen(&config, 100) } else { Connection::connect(&config, 100, 0) }.unwrap();
        end.write(100_000);
        while end.next_segment(now_ps).is_some() {}
        for (mut segment, kind, pause_ps) in steps {
            now_ps += pause_ps;
            let mine = end.statistics();
            // Often plausible: the right numbers, flags of an established connection.
            if kind & 1 == 1 {
                segment.flags = Flags::ACK;
                segment.acknowledgment = 101u32.wrapping_add(mine.bytes_acknowledged as u32).wrapping_add(u32::from(kind) * 40);
            }
            if kind & 2 == 2 {
                segment.sequence = segment.sequence.wrapping_rem(3000);
            }
            if matches!(end.state(), State::SynSent | State::Listen) && kind & 4 == 4 {
                segment.flags = if listens { Flags::SYN } else { Flags::SYN | Flags::ACK };
                segment.acknowledgment = 101;
                segment.sequence = 0;
            }
            end.receive(now_ps, &segment);
            let mut count = 0;
            while end.next_segment(now_ps).is_some() {
                count += 1;
                prop_assert!(count < 10_000);
            }
            if let Some(due_ps) = end.due_ps() && kind & 24 == 24 {
                now_ps = now_ps.max(due_ps);
                end.on_timer(now_ps);
                while end.next_segment(now_ps).is_some() {}
                prop_assert!(end.due_ps().is_none_or(|due| due > now_ps));
            }
            let _ = end.statistics();
        }
    }
}
