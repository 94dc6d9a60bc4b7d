use super::*;

impl Direction {
    /// Offers a frame to the direction at `now_ps` picoseconds, and returns the time at which it arrives, in
    /// picoseconds; `None` if it is dropped or lost.
    fn offered(&mut self, now_ps: u64, packet: &mut Packet) -> Option<u64> {
        self.offer(Time::from(now_ps), packet)
            .ok()
            .map(Time::saturating_ps)
    }
}

const US: u64 = 1_000_000;
/// A frame of 1,000 bytes takes 1,024 bytes on the wire, 8.192 us at 1 Gb/s.
const FRAME: usize = 1000;
const FRAME_PS: u64 = 8_192_000;

/// Builds a frame of `bytes` zero bytes, of which at most 40 are stored.
fn packet(bytes: usize) -> Packet {
    let stored = bytes.min(40);
    let mut packet = Packet::default();
    packet.copy_with_rest(
        &[0; 40][..stored],
        engine::payload::Shared::zeros(bytes - stored),
    );
    packet
}

fn trace(delays_ps: &[i64]) -> Jitter {
    let delays_ps = delays_ps.into();
    Jitter::Trace { delays_ps }
}

fn direction(config: LinkConfig) -> Direction {
    let end = |node| Attachment {
        node: NodeId(node),
        port: 1,
    };
    Direction::new(end(0), end(1), config, 1, "a:1>b:1")
}

fn gigabit(delay_ps: u64, queue_bytes: u64) -> Direction {
    direction(LinkConfig {
        queue: QueueConfig::bytes(queue_bytes),
        ..LinkConfig::new(1_000_000_000, delay_ps)
    })
}

#[test]
fn bytes_on_the_wire() {
    assert_eq!(wire_bytes(1000), 1024);
    assert_eq!(wire_bytes(1514), 1538);
    // Short frames are padded to 64 with their frame check sequence.
    assert_eq!(wire_bytes(60), 84);
    assert_eq!(wire_bytes(61), 85);
    assert_eq!(wire_bytes(14), 84);
    assert_eq!(wire_bytes(0), 84);
}

#[test]
fn time_on_the_wire() {
    assert_eq!(serialisation_ps(FRAME, 1_000_000_000), FRAME_PS);
    assert_eq!(serialisation_ps(60, 10_000_000_000), 67_200);
    assert_eq!(serialisation_ps(1514, 100_000_000_000), 123_040);
    // 672 bits at 9 Gb/s are 74,666.67 ps.
    assert_eq!(serialisation_ps(60, 9_000_000_000), 74_667);
    // A whole second per bit: 672 s.
    assert_eq!(serialisation_ps(60, 1), 672_000_000_000_000);
    // Beyond 64 bits while multiplying, and beyond 64 bits of picoseconds.
    assert_eq!(serialisation_ps(10_000_000, 1_000_000_000), 80_000_192_000);
    assert_eq!(serialisation_ps(10_000_000, 1), u64::MAX);
}

#[test]
fn a_queue_with_hand_computed_times() {
    let mut d = gigabit(US, 1000);
    assert_eq!(d.offered(0, &mut packet(FRAME)), Some(FRAME_PS + US));
    // Waits for the first; with it, exactly the limit waits.
    assert_eq!(d.offered(0, &mut packet(FRAME)), Some(2 * FRAME_PS + US));
    assert_eq!(d.offered(FRAME_PS - 1, &mut packet(FRAME)), None);
    // The second has left the queue for the transmitter.
    assert_eq!(
        d.offered(FRAME_PS, &mut packet(FRAME)),
        Some(3 * FRAME_PS + US)
    );
    assert_eq!(d.offered(FRAME_PS, &mut packet(1)), None);
    // Exactly at the end of the third: idle.
    assert_eq!(
        d.offered(3 * FRAME_PS, &mut packet(FRAME)),
        Some(4 * FRAME_PS + US)
    );
    let counters = d.counters(Time::from(3 * FRAME_PS));
    assert_eq!(
        counters,
        DirectionCounters {
            offered: 6,
            packets: 4,
            bytes: 4 * 1024,
            frame_bytes: 4000,
            queue_drops: 2,
            in_transit: 4,
            ..DirectionCounters::default()
        }
    );
}

#[test]
fn a_frame_larger_than_the_queue_needs_an_idle_transmitter() {
    let mut d = gigabit(0, 100);
    assert!(d.offered(0, &mut packet(FRAME)).is_some());
    assert_eq!(d.offered(0, &mut packet(FRAME)), None);
    assert_eq!(
        d.offered(0, &mut packet(100)),
        Some(FRAME_PS + serialisation_ps(100, 1_000_000_000))
    );
    let mut none = gigabit(0, 0);
    assert!(none.offered(0, &mut packet(FRAME)).is_some());
    assert_eq!(none.offered(0, &mut packet(1)), None);
}

#[test]
fn counters_follow_the_transmitter() {
    let mut d = gigabit(US, 10_000);
    for _ in 0..3 {
        d.offered(0, &mut packet(FRAME));
    }
    assert_eq!(d.counters(Time::ZERO).packets, 1);
    assert_eq!(d.counters(Time::from(FRAME_PS - 1)).packets, 1);
    assert_eq!(d.counters(Time::from(FRAME_PS)).packets, 2);
    assert_eq!(d.counters(Time::from(2 * FRAME_PS)).packets, 3);
}

#[test]
fn a_failure_loses_what_waits_and_what_is_under_way() {
    let mut d = gigabit(US, 10_000);
    for _ in 0..3 {
        d.offered(0, &mut packet(FRAME));
    }
    let generation = d.generation;
    assert_eq!(
        d.set_up(Time::from(FRAME_PS + 1), false),
        Some(d.counters.down_drops)
    );
    assert_eq!(d.set_up(Time::from(FRAME_PS + 1), false), None, "no change");
    assert_ne!(d.generation, generation);
    // Two transmissions had started, the third packet still waited.
    let counters = d.counters(Time::from(FRAME_PS + 1));
    assert_eq!(
        (counters.packets, counters.down_drops, counters.in_transit),
        (2, 3, 0)
    );
    assert_eq!(d.offered(FRAME_PS + 2, &mut packet(FRAME)), None);
    assert_eq!(d.counters(Time::from(FRAME_PS + 2)).down_drops, 4);
    // After the repair the transmitter is idle and the queue empty.
    assert_eq!(d.set_up(Time::from(FRAME_PS + 3), true), Some(0));
    assert_eq!(
        d.offered(FRAME_PS + 3, &mut packet(FRAME)),
        Some(2 * FRAME_PS + 3 + US)
    );
    assert_eq!(d.counters(Time::from(10 * US)).packets, 3);
}

#[test]
fn loss_takes_its_time_on_the_wire() {
    let config = LinkConfig {
        loss: Loss::Bernoulli(1.0),
        ..LinkConfig::new(1_000_000_000, US)
    };
    let mut d = direction(config);
    assert_eq!(d.offered(0, &mut packet(FRAME)), None);
    assert_eq!(d.offered(0, &mut packet(FRAME)), None);
    let counters = d.counters(Time::ZERO);
    assert_eq!(
        (counters.packets, counters.loss_drops, counters.in_transit),
        (1, 1, 1)
    );
    let counters = d.counters(Time::from(FRAME_PS));
    assert_eq!(
        (counters.packets, counters.loss_drops, counters.in_transit),
        (2, 2, 0)
    );
    // A packet that would be lost, but was still waiting when the link failed, was lost to the failure.
    d.offered(0, &mut packet(FRAME));
    d.set_up(Time::from(FRAME_PS), false);
    let counters = d.counters(Time::from(FRAME_PS));
    assert_eq!(
        (counters.packets, counters.loss_drops, counters.down_drops),
        (2, 2, 1)
    );
}

#[test]
fn loss_has_its_probability() {
    let config = LinkConfig {
        loss: Loss::Bernoulli(0.25),
        ..LinkConfig::new(1_000_000_000, 0)
    };
    let mut d = direction(config.clone());
    let n = 100_000;
    let delivered = (0..n)
        .filter(|i| d.offered(i * FRAME_PS, &mut packet(FRAME)).is_some())
        .count() as f64;
    assert!((delivered / n as f64 - 0.75).abs() < 0.01, "{delivered}");
    // Lost packets' jitter is drawn too: with and without loss, the survivors have the same delays.
    let jitter = Jitter::Uniform {
        low_ps: 0,
        high_ps: 1000,
    };
    let mut lossy = direction(LinkConfig {
        jitter: jitter.clone(),
        ..config.clone()
    });
    let mut lossless = direction(LinkConfig {
        jitter,
        loss: Loss::None,
        ..config
    });
    let mut lost = 0;
    for i in 0..1000 {
        let kept = lossless.offered(i * FRAME_PS, &mut packet(FRAME));
        match lossy.offered(i * FRAME_PS, &mut packet(FRAME)) {
            None => lost += 1,
            arrival => assert_eq!(arrival, kept),
        }
    }
    assert!(lost > 100);
}

#[test]
fn jitter_may_overtake_but_not_arrive_before_it_was_sent() {
    let config = LinkConfig {
        jitter: Jitter::Uniform {
            low_ps: -1000,
            high_ps: 20_000_000,
        },
        ..LinkConfig::new(1_000_000_000, 1000)
    };
    let mut d = direction(config);
    let arrivals: Vec<u64> = (0..1000)
        .map(|i| d.offered(i * FRAME_PS, &mut packet(FRAME)).unwrap())
        .collect();
    for (i, &arrival_ps) in arrivals.iter().enumerate() {
        let sent_ps = (i as u64 + 1) * FRAME_PS;
        assert!((sent_ps..=sent_ps + 20_001_000).contains(&arrival_ps));
    }
    assert!(arrivals.windows(2).any(|pair| pair[0] > pair[1]));

    let normal = Jitter::Normal {
        mean_ps: 0,
        sigma_ps: 5 * US,
    };
    let mut d = direction(LinkConfig {
        jitter: normal,
        ..LinkConfig::new(1_000_000_000, US)
    });
    let mut at_once = 0;
    for i in 0..10_000 {
        let sent_ps = (i + 1) * FRAME_PS;
        let arrival_ps = d.offered(i * FRAME_PS, &mut packet(FRAME)).unwrap();
        assert!(arrival_ps >= sent_ps);
        at_once += u64::from(arrival_ps == sent_ps);
    }
    // 1 us is 0.2 sigma: 42 percent of the draws are below minus the delay.
    assert!((4000..4400).contains(&at_once), "{at_once}");
}

#[test]
fn nonsense_is_refused() {
    let good = LinkConfig::new(1_000_000_000, 1000);
    assert_eq!(good.check(), Ok(()));
    let uniform = |low_ps, high_ps| LinkConfig {
        jitter: Jitter::Uniform { low_ps, high_ps },
        ..good.clone()
    };
    let normal = |mean_ps, sigma_ps| LinkConfig {
        jitter: Jitter::Normal { mean_ps, sigma_ps },
        ..good.clone()
    };
    for right in [
        uniform(-1000, 0),
        uniform(5, 5),
        normal(-5, 0),
        LinkConfig {
            loss: Loss::Bernoulli(1.0),
            ..good.clone()
        },
    ] {
        assert_eq!(right.check(), Ok(()), "{right:?}");
    }
    for wrong in [
        LinkConfig {
            rate_bps: 0,
            ..good.clone()
        },
        LinkConfig {
            delay_ps: MAX_DELAY_PS + 1,
            ..good.clone()
        },
        LinkConfig {
            loss: Loss::Bernoulli(-0.1),
            ..good.clone()
        },
        LinkConfig {
            loss: Loss::Bernoulli(1.1),
            ..good.clone()
        },
        LinkConfig {
            loss: Loss::Bernoulli(f64::NAN),
            ..good.clone()
        },
        uniform(1, 0),
        uniform(-1001, 0),
        uniform(i64::MIN, 0),
        uniform(0, i64::MAX),
        normal(i64::MIN, 0),
        normal(0, u64::MAX),
    ] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
}

#[test]
fn a_queue_of_packets_holds_that_many_behind_the_one_being_sent() {
    let mut d = direction(LinkConfig {
        queue: QueueConfig::packets(2),
        ..LinkConfig::new(1_000_000_000, 0)
    });
    // One is sent and two wait, whatever their size.
    for bytes in [60, 9000, 1] {
        assert!(d.offered(0, &mut packet(bytes)).is_some());
    }
    assert_eq!(d.offered(0, &mut packet(1)), None);
    let first_ps = serialisation_ps(60, 1_000_000_000);
    assert_eq!(d.offered(first_ps - 1, &mut packet(1)), None);
    assert!(d.offered(first_ps, &mut packet(FRAME)).is_some());
    assert_eq!(d.counters(Time::from(first_ps)).queue_drops, 2);
}

/// Builds a frame with the beginning of an IPv4 header whose ECN field is `ecn`.
fn ip_frame(ecn: u8) -> Packet {
    let mut frame = packet(FRAME);
    frame.stored_mut()[12..16].copy_from_slice(&[8, 0, 0x45, ecn]);
    frame
}

#[test]
fn what_can_be_marked_is_and_the_rest_is_dropped() {
    let threshold = crate::MarkAbove::new(crate::QueueUnit::Packets, 1);
    let mut d = direction(LinkConfig {
        queue: QueueConfig {
            mark_above: Some(threshold),
            ..QueueConfig::packets(3)
        },
        ..LinkConfig::new(1_000_000_000, US)
    });
    // The first is sent, the second finds nothing waiting, the third one packet: not more than the threshold.
    let mut frame = ip_frame(2);
    for _ in 0..3 {
        assert!(d.offered(0, &mut frame).is_some());
    }
    assert_eq!(frame, ip_frame(2));
    assert_eq!(d.offered(0, &mut ip_frame(0)), None);
    assert_eq!(d.offered(0, &mut frame), Some(4 * FRAME_PS + US));
    assert_eq!(frame.stored()[15], 3);
    assert_eq!(d.offered(0, &mut ip_frame(2)), None);
    let counters = d.counters(Time::ZERO);
    assert_eq!(
        (
            counters.marked,
            counters.red_drops,
            counters.queue_drops,
            counters.in_transit
        ),
        (1, 1, 1, 4)
    );
}

#[test]
fn red_drops_although_the_transmitter_is_idle() {
    let red = crate::queue::Red {
        weight: 0.5,
        mean_packet_bytes: 1000,
        ..crate::queue::Red::new(crate::QueueUnit::Packets, 1, 3)
    };
    let mut d = direction(LinkConfig {
        queue: QueueConfig {
            red: Some(red),
            ..QueueConfig::packets(100)
        },
        ..LinkConfig::new(1_000_000_000, 0)
    });
    // The averages: 0, 0, 1/2, 5/4 (p_b is 1/400), 17/8, 49/16: all are dropped from 3 on.
    let taken = (0..6)
        .take_while(|_| d.offered(0, &mut packet(FRAME)).is_some())
        .count();
    assert_eq!((taken, d.counters(Time::ZERO).red_drops), (5, 1));
    // Five packets were sent, and a mean packet's time passed: 49/32.
    assert!(d.offered(6 * FRAME_PS, &mut packet(FRAME)).is_some());
}

#[test]
fn losses_of_a_trace() {
    let lost = |trace: LossTrace, n: u64| -> Vec<u64> {
        let mut d = direction(LinkConfig {
            loss: Loss::Trace(trace.into()),
            ..LinkConfig::new(1_000_000_000, 0)
        });
        (0..n)
            .filter(|i| d.offered(i * FRAME_PS, &mut packet(FRAME)).is_none())
            .collect()
    };
    let numbers = || vec![4, 0, 3, 3];
    assert_eq!(
        lost(LossTrace::new(numbers(), None).unwrap(), 20),
        [0, 3, 4]
    );
    assert_eq!(
        lost(LossTrace::new(numbers(), Some(5)).unwrap(), 11),
        [0, 3, 4, 5, 8, 9, 10]
    );
    let bits = "010\n 01";
    assert_eq!(lost(LossTrace::parse(bits, false).unwrap(), 11), [1, 4]);
    assert_eq!(
        lost(LossTrace::parse(bits, true).unwrap(), 10),
        [1, 4, 6, 9]
    );
    assert_eq!(
        LossTrace::new(vec![], Some(7)).unwrap(),
        LossTrace::parse("0000000", true).unwrap()
    );
    for wrong in [
        LossTrace::new(numbers(), Some(4)),
        LossTrace::new(vec![], Some(0)),
        LossTrace::parse("", true),
        LossTrace::parse("0120", true),
    ] {
        assert!(wrong.is_err(), "{wrong:?}");
    }
}

fn gilbert_elliott(p: f64, r: f64, loss_good: f64, loss_bad: f64) -> Loss {
    Loss::GilbertElliott(GilbertElliott {
        p,
        r,
        loss_good,
        loss_bad,
    })
}

#[test]
fn losses_of_a_markov_chain() {
    let lost = |model: Loss, n: u64| -> Vec<bool> {
        let mut d = direction(LinkConfig {
            loss: model,
            ..LinkConfig::new(1_000_000_000, 0)
        });
        (0..n)
            .map(|i| d.offered(i * FRAME_PS, &mut packet(FRAME)).is_none())
            .collect()
    };
    // Good at first, and then the other state each time.
    assert_eq!(
        lost(gilbert_elliott(1.0, 1.0, 0.0, 1.0), 5),
        [false, true, false, true, false]
    );
    assert_eq!(
        lost(gilbert_elliott(1.0, 0.0, 1.0, 0.0), 4),
        [true, false, false, false]
    );
    assert_eq!(lost(gilbert_elliott(0.0, 1.0, 0.0, 1.0), 9), [false; 9]);
    // In the long run bad p / (p + r) of the time, 1 / 5, for 1 / r packets, 5, at a time.
    let all = lost(gilbert_elliott(0.05, 0.2, 0.0, 1.0), 200_000);
    let (count, bursts) = (
        all.iter().filter(|&&l| l).count() as f64,
        all.windows(2).filter(|pair| pair[1] && !pair[0]).count() as f64,
    );
    assert!((count / 200_000.0 - 0.2).abs() < 0.01, "{count}");
    assert!((count / bursts - 5.0).abs() < 0.2, "{bursts}");
    // 1/5 of 0.5 and 4/5 of 0.1.
    let all = lost(gilbert_elliott(0.05, 0.2, 0.1, 0.5), 200_000);
    let count = all.iter().filter(|&&l| l).count() as f64;
    assert!((count / 200_000.0 - 0.18).abs() < 0.01, "{count}");
}

#[test]
fn delays_of_a_trace() {
    let mut d = direction(LinkConfig {
        jitter: trace(&[500, -1000, 0]),
        ..LinkConfig::new(1_000_000_000, 1000)
    });
    let delays: Vec<u64> = (0..7)
        .map(|i| d.offered(i * FRAME_PS, &mut packet(FRAME)).unwrap() - (i + 1) * FRAME_PS)
        .collect();
    assert_eq!(delays, [1500, 0, 1000, 1500, 0, 1000, 1500]);
}

#[test]
fn nonsense_of_models_is_refused() {
    let good = LinkConfig::new(1_000_000_000, 1000);
    let loss = |loss: Loss| LinkConfig {
        loss,
        ..good.clone()
    };
    let jitter = |jitter: Jitter| LinkConfig {
        jitter,
        ..good.clone()
    };
    for wrong in [
        loss(gilbert_elliott(f64::NAN, 0.0, 0.0, 0.0)),
        loss(gilbert_elliott(0.0, -0.1, 0.0, 0.0)),
        loss(gilbert_elliott(0.0, 0.0, 1.1, 0.0)),
        loss(gilbert_elliott(0.0, 0.0, 0.0, f64::INFINITY)),
        jitter(trace(&[])),
        jitter(trace(&[0, -1001])),
        jitter(trace(&[i64::MAX])),
    ] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
    assert_eq!(loss(gilbert_elliott(0.0, 1.0, 1.0, 0.0)).check(), Ok(()));
}
