use super::*;

/// A mean packet of 1,000 bytes at 1 Gb/s.
const MEAN_PS: u64 = 8_192_000;
const RATE_BPS: u64 = 1_000_000_000;

fn state(red: Red) -> RedState {
    RedState::new(red, RATE_BPS, Stream::named(1, "queue"))
}

fn red(min: u64, max: u64) -> Red {
    Red {
        weight: 0.5,
        mean_packet_bytes: 1000,
        ..Red::new(QueueUnit::Packets, min, max)
    }
}

fn busy(packets: u64) -> Occupancy {
    Occupancy {
        packets,
        bytes: packets * 1000,
        transmitter_free: false,
        idle_since_ps: None,
    }
}

fn idle(since_ps: u64) -> Occupancy {
    Occupancy {
        packets: 0,
        bytes: 0,
        transmitter_free: true,
        idle_since_ps: Some(Time::from(since_ps)),
    }
}

/// Returns the average queue as a floating-point number, exactly for the values in these tests.
fn average(red: &RedState) -> f64 {
    red.average as f64 / ONE as f64
}

#[test]
fn the_average_moves_by_its_weight_and_decays_while_idle() {
    let mut red = state(red(50, 60));
    for (waiting, expected) in [
        (0, 0.0),
        (4, 2.0),
        (4, 3.0),
        (0, 1.5),
        (9, 5.25),
        (5, 5.125),
    ] {
        assert_eq!(
            red.admit(Time::ZERO, busy(waiting), 1000, false),
            Verdict::Take
        );
        assert_eq!(average(&red), expected);
    }
    // Idle from 1000 on: after two and a half packets' time, two of them.
    red.admit(
        Time::from(1000 + 2 * MEAN_PS + MEAN_PS / 2),
        idle(1000),
        1000,
        false,
    );
    assert_eq!(average(&red), 5.125 / 4.0);
    // Still the same idle time (the packet was dropped, say): the time that has passed counts once, and the half is not forgotten.
    red.admit(Time::from(1000 + 3 * MEAN_PS - 1), idle(1000), 1000, false);
    assert_eq!(average(&red), 5.125 / 4.0);
    red.admit(Time::from(1000 + 3 * MEAN_PS), idle(1000), 1000, false);
    assert_eq!(average(&red), 5.125 / 8.0);
    // Very long.
    red.admit(Time::NEVER, idle(1000), 1000, false);
    assert_eq!(average(&red), 0.0);
}

#[test]
fn products_are_rounded_down() {
    // A third in 32 bits is 1431655765; the average is then that of three times the quotient.
    let mut third = state(Red {
        weight: 1.0 / 3.0,
        ..red(50, 60)
    });
    third.admit(Time::ZERO, busy(1), 1000, false);
    assert_eq!(third.average, 1_431_655_765);
    third.admit(Time::ZERO, busy(0), 1000, false);
    // 1431655765 - 1431655765^2 / 2^32, the second rounded up.
    let less = (1_431_655_765u128 * 1_431_655_765).div_ceil(1 << 32);
    assert_eq!(third.average, 1_431_655_765 - less);
    assert_eq!(power(ONE / 2, 0), ONE);
    assert_eq!(power(ONE / 2, 31), 2);
    assert_eq!(power(ONE / 2, 33), 0);
    assert_eq!(power(ONE, u64::MAX), ONE);
    assert_eq!(power(0, 1), 0);
}

/// Returns the distances between early drops at a constant queue of `waiting`, in packets, beginning behind the first
/// drop.
fn gaps(mut red: RedState, waiting: u64, bytes: usize) -> Vec<usize> {
    let marked: Vec<usize> = (0..60_000)
        .filter(|_| red.admit(Time::ZERO, busy(waiting), bytes, false) == Verdict::DropEarly)
        .collect();
    marked.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn marks_are_spread_evenly() {
    // Average 4 between 2 and 6: p_b is a half of max_p, 1/4. Then p_a is 1/3, 1/2 and 1 for the packets after a mark.
    let at_once = Red {
        weight: 1.0,
        max_p: 0.5,
        ..red(2, 6)
    };
    let spread = |gaps: &[usize], gap: usize| {
        gaps.iter().filter(|&&g| g == gap).count() as f64 / gaps.len() as f64
    };
    let found = gaps(state(at_once), 4, 1000);
    assert!(found.len() > 20_000);
    for gap in 1..=3 {
        assert!((spread(&found, gap) - 1.0 / 3.0).abs() < 0.02, "{gap}");
    }
    assert!(found.iter().all(|&gap| gap <= 3));
    // In bytes, a packet of half the mean size has p_b 1/8, and marks are 1 to 7 packets apart.
    let bytes = Red {
        weight: 1.0,
        max_p: 0.5,
        mean_packet_bytes: 1000,
        ..Red::new(QueueUnit::Bytes, 2000, 6000)
    };
    let found = gaps(state(bytes), 4, 500);
    for gap in 1..=7 {
        assert!((spread(&found, gap) - 1.0 / 7.0).abs() < 0.02, "{gap}");
    }
    assert!(found.iter().all(|&gap| gap <= 7));
}

#[test]
fn thresholds() {
    let verdict = |red: Red, waiting| {
        state(Red { weight: 1.0, ..red }).admit(Time::ZERO, busy(waiting), 1000, false)
    };
    let gentle = Red {
        gentle: true,
        max_p: 1.0,
        ecn: true,
        ..red(2, 6)
    };
    assert_eq!(verdict(red(2, 6), 1), Verdict::Take);
    // p_b is 0 at the threshold itself.
    assert_eq!(
        verdict(
            Red {
                max_p: 1.0,
                ..red(2, 6)
            },
            2
        ),
        Verdict::Take
    );
    assert_eq!(verdict(red(2, 6), 6), Verdict::DropEarly);
    assert_eq!(
        verdict(
            Red {
                ecn: true,
                ..red(2, 6)
            },
            6
        ),
        Verdict::DropEarly
    );
    assert_eq!(verdict(gentle, 6), Verdict::Mark);
    assert_eq!(verdict(gentle, 11), Verdict::Mark);
    assert_eq!(verdict(gentle, 12), Verdict::DropEarly);
    // From max_p at 6 to 1 at 12: 0.6 at 9.
    let mut half = state(Red {
        max_p: 0.2,
        weight: 1.0,
        ..gentle
    });
    half.admit(Time::ZERO, busy(9), 1000, false);
    assert_eq!(half.probability(), Some(0.2 + 0.8 * 0.5));
    // Below the threshold nothing is remembered.
    let mut red = state(Red {
        weight: 1.0,
        ..red(2, 6)
    });
    red.admit(Time::ZERO, busy(7), 1000, false);
    assert_eq!(red.count, Some(0));
    red.admit(Time::ZERO, busy(3), 1000, true);
    assert_eq!(red.count, Some(0));
    red.admit(Time::ZERO, busy(1), 1000, false);
    assert_eq!(red.count, None);
}

#[test]
fn a_gate_counts_in_its_unit() {
    let mut verdicts = Vec::new();
    for (config, frame_bytes) in [
        (QueueConfig::packets(4), 9000),
        (QueueConfig::packets(3), 1),
        (QueueConfig::bytes(4000), 1000),
        (QueueConfig::bytes(4000), 1001),
        (QueueConfig::packets(0), 1),
    ] {
        let mut gate = Gate::new(config, RATE_BPS, 1, "q");
        verdicts.push(gate.admit(Time::ZERO, busy(3), frame_bytes));
        // Nothing is before it.
        assert_eq!(gate.admit(Time::ZERO, idle(0), frame_bytes), Verdict::Take);
    }
    use Verdict::{DropFull, Take};
    assert_eq!(verdicts, [Take, DropFull, Take, DropFull, DropFull]);
    let config = QueueConfig {
        mark_above: Some(MarkAbove::new(QueueUnit::Packets, 2)),
        ..QueueConfig::packets(4)
    };
    let mut gate = Gate::new(config, RATE_BPS, 1, "q");
    let verdicts = [2, 3, 4].map(|waiting| gate.admit(Time::ZERO, busy(waiting), 1));
    assert_eq!(verdicts, [Take, Verdict::Mark, DropFull]);
}

#[test]
fn nonsense_is_refused() {
    let good = red(2, 6);
    assert_eq!(good.check(), Ok(()));
    for wrong in [
        red(6, 6),
        Red { max_p: 0.0, ..good },
        Red { max_p: 1.1, ..good },
        Red {
            max_p: f64::NAN,
            ..good
        },
        Red {
            weight: 0.0,
            ..good
        },
        Red {
            weight: 1e-12,
            ..good
        },
        Red {
            weight: 2.0,
            ..good
        },
        Red {
            weight: f64::NAN,
            ..good
        },
        Red {
            mean_packet_bytes: 0,
            ..good
        },
    ] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
    // As large as can be, and still no overflow.
    let mut huge = state(Red {
        mean_packet_bytes: u64::MAX,
        ..red(u64::MAX - 1, u64::MAX)
    });
    assert_eq!(huge.admit(Time::NEVER, idle(0), 1000, false), Verdict::Take);
    assert_eq!(huge.admit(Time::NEVER, busy(3), 1000, false), Verdict::Take);
}
