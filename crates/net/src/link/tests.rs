use super::*;

const US: u64 = 1_000_000;
/// A frame of 1,000 bytes takes 1,024 bytes on the wire, 8.192 us at 1 Gb/s.
const FRAME: usize = 1000;
const FRAME_PS: u64 = 8_192_000;

fn direction(config: LinkConfig) -> Direction {
    let end = |node| Attachment {
        node: NodeId(node),
        port: 1,
    };
    Direction::new(end(0), end(1), config, 1, "a:1>b:1")
}

fn gigabit(delay_ps: u64, queue_bytes: u64) -> Direction {
    direction(LinkConfig {
        queue_bytes,
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
    assert_eq!(d.offer(0, FRAME), Some(FRAME_PS + US));
    // Waits for the first; with it, exactly the limit waits.
    assert_eq!(d.offer(0, FRAME), Some(2 * FRAME_PS + US));
    assert_eq!(d.offer(FRAME_PS - 1, FRAME), None);
    // The second has left the queue for the transmitter.
    assert_eq!(d.offer(FRAME_PS, FRAME), Some(3 * FRAME_PS + US));
    assert_eq!(d.offer(FRAME_PS, 1), None);
    // Exactly at the end of the third: idle.
    assert_eq!(d.offer(3 * FRAME_PS, FRAME), Some(4 * FRAME_PS + US));
    let counters = d.counters(3 * FRAME_PS);
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
    assert!(d.offer(0, FRAME).is_some());
    assert_eq!(d.offer(0, FRAME), None);
    assert_eq!(
        d.offer(0, 100),
        Some(FRAME_PS + serialisation_ps(100, 1_000_000_000))
    );
    let mut none = gigabit(0, 0);
    assert!(none.offer(0, FRAME).is_some());
    assert_eq!(none.offer(0, 1), None);
}

#[test]
fn counters_follow_the_transmitter() {
    let mut d = gigabit(US, 10_000);
    for _ in 0..3 {
        d.offer(0, FRAME);
    }
    assert_eq!(d.counters(0).packets, 1);
    assert_eq!(d.counters(FRAME_PS - 1).packets, 1);
    assert_eq!(d.counters(FRAME_PS).packets, 2);
    assert_eq!(d.counters(2 * FRAME_PS).packets, 3);
}

#[test]
fn a_failure_loses_what_waits_and_what_is_under_way() {
    let mut d = gigabit(US, 10_000);
    for _ in 0..3 {
        d.offer(0, FRAME);
    }
    let generation = d.generation;
    assert!(d.set_up(FRAME_PS + 1, false));
    assert!(!d.set_up(FRAME_PS + 1, false), "no change");
    assert_ne!(d.generation, generation);
    // Two transmissions had started, the third packet still waited.
    let counters = d.counters(FRAME_PS + 1);
    assert_eq!(
        (counters.packets, counters.down_drops, counters.in_transit),
        (2, 3, 0)
    );
    assert_eq!(d.offer(FRAME_PS + 2, FRAME), None);
    assert_eq!(d.counters(FRAME_PS + 2).down_drops, 4);
    // After the repair the transmitter is idle and the queue empty.
    assert!(d.set_up(FRAME_PS + 3, true));
    assert_eq!(d.offer(FRAME_PS + 3, FRAME), Some(2 * FRAME_PS + 3 + US));
    assert_eq!(d.counters(10 * US).packets, 3);
}

#[test]
fn loss_takes_its_time_on_the_wire() {
    let config = LinkConfig {
        loss: 1.0,
        ..LinkConfig::new(1_000_000_000, US)
    };
    let mut d = direction(config);
    assert_eq!(d.offer(0, FRAME), None);
    assert_eq!(d.offer(0, FRAME), None);
    let counters = d.counters(0);
    assert_eq!(
        (counters.packets, counters.loss_drops, counters.in_transit),
        (1, 1, 1)
    );
    let counters = d.counters(FRAME_PS);
    assert_eq!(
        (counters.packets, counters.loss_drops, counters.in_transit),
        (2, 2, 0)
    );
    // A packet that would be lost, but was still waiting when the link failed, was lost to the failure.
    d.offer(0, FRAME);
    d.set_up(FRAME_PS, false);
    let counters = d.counters(FRAME_PS);
    assert_eq!(
        (counters.packets, counters.loss_drops, counters.down_drops),
        (2, 2, 1)
    );
}

#[test]
fn loss_has_its_probability() {
    let config = LinkConfig {
        loss: 0.25,
        ..LinkConfig::new(1_000_000_000, 0)
    };
    let mut d = direction(config);
    let n = 100_000;
    let delivered = (0..n)
        .filter(|i| d.offer(i * FRAME_PS, FRAME).is_some())
        .count() as f64;
    assert!((delivered / n as f64 - 0.75).abs() < 0.01, "{delivered}");
    // Lost packets' jitter is drawn too: with and without loss, the survivors have the same delays.
    let jitter = Jitter::Uniform {
        low_ps: 0,
        high_ps: 1000,
    };
    let mut lossy = direction(LinkConfig { jitter, ..config });
    let mut lossless = direction(LinkConfig {
        jitter,
        loss: 0.0,
        ..config
    });
    let mut lost = 0;
    for i in 0..1000 {
        let kept = lossless.offer(i * FRAME_PS, FRAME);
        match lossy.offer(i * FRAME_PS, FRAME) {
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
        .map(|i| d.offer(i * FRAME_PS, FRAME).unwrap())
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
        let arrival_ps = d.offer(i * FRAME_PS, FRAME).unwrap();
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
        ..good
    };
    let normal = |mean_ps, sigma_ps| LinkConfig {
        jitter: Jitter::Normal { mean_ps, sigma_ps },
        ..good
    };
    for right in [
        uniform(-1000, 0),
        uniform(5, 5),
        normal(-5, 0),
        LinkConfig { loss: 1.0, ..good },
    ] {
        assert_eq!(right.check(), Ok(()), "{right:?}");
    }
    for wrong in [
        LinkConfig {
            rate_bps: 0,
            ..good
        },
        LinkConfig {
            delay_ps: MAX_DELAY_PS + 1,
            ..good
        },
        LinkConfig { loss: -0.1, ..good },
        LinkConfig { loss: 1.1, ..good },
        LinkConfig {
            loss: f64::NAN,
            ..good
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
