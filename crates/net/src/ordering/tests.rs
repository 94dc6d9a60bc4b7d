use super::*;
use proptest::prelude::*;

/// No sequence number.
const NONE: [u64; 0] = [];
const MS: u64 = 1_000_000_000;
const A: StreamId = StreamId::Field(0, 1);
const B: StreamId = StreamId::Field(0, 2);

/// Builds an ordering function with POFMaxDelay 10 ms, POFTakeAnyTime 100 ms and a buffer of `buffer_packets` packets.
fn ordering(buffer_packets: u32) -> Ordering<u64> {
    Ordering::new(OrderingConfig {
        buffer_packets,
        ..OrderingConfig::new(10 * MS, 100 * MS)
    })
}

/// Passes a packet whose content is its number to the ordering function at `at_ms` milliseconds; returns the packets
/// that leave.
fn come(it: &mut Ordering<u64>, at_ms: u64, stream: StreamId, number: u64) -> Vec<u64> {
    let mut sent = Vec::new();
    let numbered = Numbered {
        stream,
        number: number as u32,
        bits: 32,
    };
    it.receive(Time::from(at_ms * MS), numbered, number, &mut sent);
    sent
}

/// Makes the ordering function send the packets held long enough at `at_ms` milliseconds, and returns them.
fn pass(it: &mut Ordering<u64>, at_ms: u64) -> Vec<u64> {
    let mut sent = Vec::new();
    it.release_due(Time::from(at_ms * MS), &mut sent);
    sent
}

fn counters(it: &Ordering<u64>) -> OrderingCounters {
    let counters = it.counters();
    assert_eq!(
        counters.held_back,
        counters.filled + counters.timed_out + counters.overflowed + counters.lost + counters.held
    );
    counters
}

#[test]
fn in_order_nothing_waits() {
    let mut it = ordering(4);
    for number in 7..12 {
        assert_eq!(come(&mut it, number, A, number), [number]);
        assert_eq!(it.due_ps(), None);
    }
    let counters = counters(&it);
    assert_eq!(
        (counters.taken_any, counters.in_order, counters.held_back),
        (1, 4, 0)
    );
}

#[test]
fn a_gap_that_is_filled() {
    let mut it = ordering(4);
    come(&mut it, 0, A, 1);
    assert_eq!(come(&mut it, 1, A, 4), NONE);
    assert_eq!(come(&mut it, 2, A, 3), NONE);
    assert_eq!(it.due_ps(), Some(Time::from(11 * MS)));
    // The second of two gaps stays.
    assert_eq!(come(&mut it, 3, A, 6), NONE);
    assert_eq!(come(&mut it, 4, A, 2), [2, 3, 4]);
    assert_eq!(it.due_ps(), Some(Time::from(13 * MS)));
    assert_eq!(come(&mut it, 5, A, 5), [5, 6]);
    assert_eq!(it.due_ps(), None);
    let counters = counters(&it);
    assert_eq!(
        (counters.in_order, counters.held_back, counters.filled),
        (2, 3, 3)
    );
    assert_eq!((counters.max_held, counters.late), (3, 0));
}

#[test]
fn a_gap_that_is_not() {
    let mut it = ordering(4);
    come(&mut it, 0, A, 1);
    assert_eq!(come(&mut it, 1, A, 4), NONE);
    assert_eq!(come(&mut it, 2, A, 3), NONE);
    assert_eq!(come(&mut it, 2, A, 6), NONE);
    assert_eq!(pass(&mut it, 10), NONE);
    // The time is over for 4, and 3 is before it, although it came later. 5 is missing.
    assert_eq!(pass(&mut it, 11), [3, 4]);
    // A packet that was not waited for long enough is late, and counting does not go back.
    assert_eq!(come(&mut it, 11, A, 2), [2]);
    assert_eq!(come(&mut it, 11, A, 5), [5, 6]);
    assert_eq!(come(&mut it, 11, A, 7), [7]);
    let counters = counters(&it);
    assert_eq!(
        (counters.timed_out, counters.late, counters.filled),
        (2, 1, 1)
    );
}

#[test]
fn who_comes_when_it_is_time_comes_behind() {
    let mut it = ordering(4);
    come(&mut it, 0, A, 1);
    come(&mut it, 1, A, 3);
    assert_eq!(come(&mut it, 11, A, 2), [3, 2]);
    assert_eq!(counters(&it).late, 1);
}

#[test]
fn after_silence_any_number_is_taken() {
    let mut it = ordering(4);
    come(&mut it, 0, A, 1000);
    come(&mut it, 1, A, 1002);
    // The sender begins anew. Its numbers are late, not waited for, as long as nobody knows that.
    assert_eq!(come(&mut it, 2, A, 1), [1]);
    assert_eq!(pass(&mut it, 11), [1002]);
    assert_eq!(come(&mut it, 101, A, 3), [3]);
    assert_eq!(counters(&it).late, 2);
    assert_eq!(come(&mut it, 201, A, 5), [5]);
    assert_eq!(counters(&it).taken_any, 2);
    assert_eq!(come(&mut it, 202, A, 7), NONE);
    assert_eq!(come(&mut it, 203, A, 6), [6, 7]);
}

#[test]
fn a_full_buffer_lets_the_lowest_of_who_waited_longest_go() {
    let mut it = ordering(3);
    come(&mut it, 0, A, 1);
    come(&mut it, 0, B, 1);
    assert_eq!(come(&mut it, 1, A, 5), NONE);
    assert_eq!(come(&mut it, 2, A, 3), NONE);
    assert_eq!(come(&mut it, 3, B, 9), NONE);
    assert_eq!(come(&mut it, 4, B, 8), [3]);
    // 4 follows what went; 5 follows 4.
    assert_eq!(come(&mut it, 5, A, 4), [4, 5]);
    let counters = counters(&it);
    assert_eq!(
        (counters.overflowed, counters.filled, counters.held),
        (1, 1, 2)
    );
    assert_eq!(counters.max_held, 3);
    // The one that comes may be the one that goes.
    let mut it = ordering(1);
    come(&mut it, 0, A, 1);
    assert_eq!(come(&mut it, 1, A, 5), NONE);
    assert_eq!(come(&mut it, 1, A, 3), [3]);
    assert_eq!(it.due_ps(), Some(Time::from(11 * MS)));
}

#[test]
fn streams_do_not_wait_for_each_other() {
    let mut it = ordering(4);
    come(&mut it, 0, A, 1);
    come(&mut it, 0, B, 50);
    assert_eq!(come(&mut it, 1, A, 3), NONE);
    assert_eq!(come(&mut it, 2, B, 51), [51]);
    assert_eq!(come(&mut it, 3, B, 53), NONE);
    assert_eq!(pass(&mut it, 11), [3]);
    assert_eq!(pass(&mut it, 13), [53]);
}

#[test]
fn numbers_wrap() {
    for (bits, limit) in [(None, 1 << 32), (Some(16), 1 << 16), (Some(3), 8u64)] {
        let mut it = Ordering::new(OrderingConfig {
            sequence_bits: bits,
            ..OrderingConfig::new(10 * MS, 100 * MS)
        });
        come(&mut it, 0, A, limit - 1);
        assert_eq!(come(&mut it, 1, A, limit + 1), NONE);
        assert_eq!(come(&mut it, 2, A, limit), [limit, limit + 1]);
        assert_eq!(come(&mut it, 3, A, limit - 1), [limit - 1]);
        assert_eq!(counters(&it).late, 1);
    }
    // The number's field may have fewer bits than the function would take.
    let mut it = ordering(4);
    let mut sent = Vec::new();
    for number in [65_534u32, 65_535, 0, 1] {
        let numbered = Numbered {
            stream: A,
            number,
            bits: 16,
        };
        it.receive(Time::ZERO, numbered, u64::from(number), &mut sent);
    }
    assert_eq!(sent, [65_534, 65_535, 0, 1]);
    assert_eq!(it.counters().in_order, 3);
}

#[test]
fn there_is_room_for_so_many_streams() {
    let mut it = ordering(4);
    let stream = |n| StreamId::Field(0, n as u64);
    for n in 0..MAX_STREAMS {
        come(&mut it, 0, stream(n), 1);
    }
    let more = stream(MAX_STREAMS);
    assert_eq!(come(&mut it, 1, more, 1), [1]);
    assert_eq!(come(&mut it, 1, more, 3), [3]);
    assert_eq!(counters(&it).unordered, 2);
    come(&mut it, 50, stream(0), 2);
    // Silent ones make room, when it is time to look for them again.
    assert_eq!(come(&mut it, 101, more, 5), [5]);
    assert_eq!(counters(&it).taken_any, MAX_STREAMS as u64 + 1);
    assert_eq!(it.streams.len(), 2);
    assert_eq!(come(&mut it, 101, stream(0), 3), [3]);
    assert_eq!(counters(&it).in_order, 2);
}

#[test]
fn a_failure_loses_what_is_held() {
    let mut it = ordering(4);
    come(&mut it, 0, A, 1);
    come(&mut it, 1, A, 3);
    assert_eq!(it.lose_all(), 1);
    assert_eq!((counters(&it).lost, counters(&it).held), (1, 0));
    assert_eq!((it.due_ps(), pass(&mut it, 50)), (None, vec![]));
    assert_eq!(come(&mut it, 2, A, 9), [9]);
}

#[test]
fn parameters_out_of_range_are_refused() {
    let good = OrderingConfig::new(MS, MS);
    assert_eq!(good.check(), Ok(()));
    for (wrong, what) in [
        (OrderingConfig::new(0, MS), "max_delay_ps"),
        (
            OrderingConfig::new(MAX_DELAY_PS + 1, u64::MAX),
            "max_delay_ps",
        ),
        (OrderingConfig::new(MS, MS - 1), "take_any_ps"),
        (OrderingConfig::new(MS, u64::MAX), "take_any_ps"),
        (
            OrderingConfig {
                buffer_packets: 0,
                ..good.clone()
            },
            "buffer_packets",
        ),
        (
            OrderingConfig {
                buffer_packets: MAX_BUFFER_PACKETS + 1,
                ..good.clone()
            },
            "buffer_packets",
        ),
        (
            OrderingConfig {
                sequence_bits: Some(1),
                ..good.clone()
            },
            "sequence_bits",
        ),
        (
            OrderingConfig {
                sequence_bits: Some(33),
                ..good.clone()
            },
            "sequence_bits",
        ),
    ] {
        let refused = wrong.check().unwrap_err().to_string();
        assert!(refused.contains(what), "{refused}");
    }
}

/// A packet on its way: when it comes, of which stream, and its number before it wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Coming {
    at_ps: u64,
    stream: u32,
    number: u64,
}

const BITS: u8 = 8;

/// Passes arrivals to an ordering function, and calls it whenever something is due in between. Returns the function,
/// and the packets that leave with their times.
fn play(config: OrderingConfig, coming: &[Coming]) -> (Ordering<Coming>, Vec<(u64, Coming)>) {
    let buffer_packets = config.buffer_packets as usize;
    let mut it = Ordering::new(config);
    let mut left = Vec::new();
    let mut sent = Vec::new();
    for packet in coming {
        while let Some(due_ps) = it
            .due_ps()
            .filter(|due_ps| *due_ps < Time::from(packet.at_ps))
        {
            it.release_due(due_ps, &mut sent);
            left.extend(
                sent.drain(..)
                    .map(|packet| (due_ps.saturating_ps(), packet)),
            );
        }
        let numbered = Numbered {
            stream: StreamId::Field(0, packet.stream.into()),
            number: packet.number as u32,
            bits: 32,
        };
        it.receive(Time::from(packet.at_ps), numbered, *packet, &mut sent);
        left.extend(sent.drain(..).map(|sent| (packet.at_ps, sent)));
        assert!(it.held.len() <= buffer_packets);
    }
    while let Some(due_ps) = it.due_ps() {
        it.release_due(due_ps, &mut sent);
        left.extend(
            sent.drain(..)
                .map(|packet| (due_ps.saturating_ps(), packet)),
        );
    }
    (it, left)
}

/// Simulates the ordering function in the most obvious way, with lists that are searched and numbers that do not wrap.
/// Returns the packets that leave, with their times.
fn play_obviously(config: OrderingConfig, coming: &[Coming]) -> Vec<(u64, Coming)> {
    let mut last: [Option<(u64, u64)>; 3] = [None; 3];
    let mut held: Vec<Coming> = Vec::new();
    let mut left = Vec::new();
    let send_up_to = |now: u64,
                      upto: Coming,
                      held: &mut Vec<Coming>,
                      last: &mut [Option<(u64, u64)>; 3],
                      left: &mut Vec<(u64, Coming)>| {
        let mut limit = upto.number;
        loop {
            let mine = held.iter().filter(|it| it.stream == upto.stream);
            let Some(lowest) = mine.min_by_key(|it| it.number).copied() else {
                break;
            };
            let known = last[upto.stream as usize].as_mut().unwrap();
            if lowest.number > limit.max(known.1 + 1) {
                break;
            }
            known.1 = known.1.max(lowest.number);
            limit = limit.max(known.1);
            let at = held.iter().position(|it| *it == lowest).unwrap();
            left.push((now, held.remove(at)));
        }
    };
    for packet in coming {
        while let Some(first) = held.first().copied()
            && first.at_ps + config.max_delay_ps <= packet.at_ps
        {
            let now = first.at_ps + config.max_delay_ps;
            send_up_to(now, first, &mut held, &mut last, &mut left);
        }
        let known = &mut last[packet.stream as usize];
        match known {
            Some((heard_ps, sent)) if packet.at_ps - *heard_ps < config.take_any_ps => {
                *heard_ps = packet.at_ps;
                if packet.number > *sent + 1 {
                    held.push(*packet);
                    if held.len() > config.buffer_packets as usize {
                        let stream = held[0].stream;
                        let mine = held.iter().filter(|it| it.stream == stream);
                        let lowest = mine.min_by_key(|it| it.number).copied().unwrap();
                        send_up_to(packet.at_ps, lowest, &mut held, &mut last, &mut left);
                    }
                } else {
                    *sent = (*sent).max(packet.number);
                    left.push((packet.at_ps, *packet));
                    let here = Coming {
                        number: 0,
                        ..*packet
                    };
                    send_up_to(packet.at_ps, here, &mut held, &mut last, &mut left);
                }
            }
            _ => {
                *known = Some((packet.at_ps, packet.number));
                left.push((packet.at_ps, *packet));
            }
        }
    }
    while let Some(first) = held.first().copied() {
        let now = first.at_ps + config.max_delay_ps;
        send_up_to(now, first, &mut held, &mut last, &mut left);
    }
    left
}

/// Generates arrivals of three streams, each sent every few milliseconds, delayed by up to `delay_ms`, some lost, in
/// the order of arrival. There are never so many under way that their numbers could be mistaken for others.
fn arrivals(delay_ms: u64) -> impl Strategy<Value = Vec<Coming>> {
    let packet = (0u32..3, 0u64..4, 0..=delay_ms, prop::bool::weighted(0.1));
    (0u64..300, prop::collection::vec(packet, 1..300)).prop_map(|(first, packets)| {
        let mut next = [first; 3];
        let mut at_ms = 0;
        let mut coming = Vec::new();
        for (stream, gap_ms, delay_ms, lost) in packets {
            at_ms += gap_ms;
            next[stream as usize] += 1;
            let packet = Coming {
                at_ps: (at_ms + delay_ms) * MS,
                stream,
                number: next[stream as usize],
            };
            if !lost {
                coming.push(packet);
            }
        }
        coming.sort_by_key(|packet| packet.at_ps);
        coming
    })
}

fn config(max_delay_ms: u64, take_any_ms: u64, buffer_packets: u32) -> OrderingConfig {
    OrderingConfig {
        buffer_packets,
        sequence_bits: Some(BITS),
        ..OrderingConfig::new(max_delay_ms * MS, take_any_ms * MS)
    }
}

proptest! {
    /// With any arrivals nothing is lost or doubled, nobody waits longer than he should, only those are behind higher numbers that came
    /// late, and the counters add up.
    #[test]
    fn nothing_is_lost_and_nobody_waits_too_long(
        coming in arrivals(30), max_delay_ms in 1u64..25, silence_ms in 0u64..30, buffer in 1u32..20
    ) {
        let config = config(max_delay_ms, max_delay_ms + silence_ms, buffer);
        let (it, left) = play(config.clone(), &coming);
        let key = |packet: &Coming| (packet.stream, packet.number, packet.at_ps);
        let mut all: Vec<_> = left.iter().map(|(_, packet)| key(packet)).collect();
        all.sort_unstable();
        let mut expected: Vec<_> = coming.iter().map(key).collect();
        expected.sort_unstable();
        prop_assert_eq!(all, expected);
        for (left_ps, packet) in &left {
            prop_assert!((packet.at_ps..=packet.at_ps + config.max_delay_ps).contains(left_ps));
        }
        prop_assert!(left.is_sorted_by_key(|(left_ps, _)| left_ps));
        let c = it.counters();
        let count = coming.len() as u64;
        prop_assert_eq!(c.in_order + c.taken_any + c.late + c.unordered + c.held_back, count);
        prop_assert_eq!(c.held_back, c.filled + c.timed_out + c.overflowed);
        prop_assert_eq!((c.held, c.unordered), (0, 0));
        prop_assert!(c.max_held <= buffer.into());
        let mut highest = [0; 3];
        let mut behind = 0;
        for (_, packet) in &left {
            let highest = &mut highest[packet.stream as usize];
            behind += u64::from(packet.number < *highest);
            *highest = packet.number.max(*highest);
        }
        // After silence a lower number may be taken for the next one.
        let streams = highest.iter().filter(|highest| **highest > 0).count() as u64;
        if c.taken_any == streams {
            prop_assert_eq!(behind, c.late);
        }
    }

    /// Packets delayed by less than POFMaxDelay come out in order, if the buffer holds them.
    #[test]
    fn all_is_in_order_when_the_parameters_are_right(coming in arrivals(15)) {
        let (it, left) = play(config(16, 1000, 300), &coming);
        let mut last = [0; 3];
        let mut first: [Option<u64>; 3] = [None; 3];
        for packet in &coming {
            first[packet.stream as usize].get_or_insert(packet.number);
        }
        for (_, packet) in &left {
            // A packet overtaken by the very first one could not be known.
            if Some(packet.number) >= first[packet.stream as usize] {
                prop_assert!(packet.number > last[packet.stream as usize]);
                last[packet.stream as usize] = packet.number;
            }
        }
        let early = coming.iter().filter(|it| Some(it.number) < first[it.stream as usize]);
        prop_assert_eq!(it.counters().late, early.count() as u64);
        prop_assert_eq!(it.counters().overflowed, 0);
    }

    #[test]
    fn it_does_the_obvious(
        coming in arrivals(30), max_delay_ms in 1u64..25, silence_ms in 0u64..30, buffer in 1u32..20
    ) {
        let config = config(max_delay_ms, max_delay_ms + silence_ms, buffer);
        prop_assert_eq!(play(config.clone(), &coming).1, play_obviously(config, &coming));
    }
}
