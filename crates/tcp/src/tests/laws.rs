//! Compares whole connections with closed formulas, and with the known properties of each algorithm.

use super::channel::{Channel, Fate, MS, SECOND, Way};
use crate::{Config, Congestion, Cubic, EcnCodepoint, Hpcc, Recovery, Segment};

/// The numbers of a 64-bit linear congruential generator (Knuth's constants): 31 bits each.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn modern(congestion: Congestion) -> Config {
    Config {
        congestion,
        recovery: Recovery::RFC_8985,
        ..Config::default()
    }
}

fn algorithms() -> [Congestion; 4] {
    [
        Congestion::NewReno,
        Congestion::Cubic(Cubic::RFC_9438),
        Congestion::Bbr,
        // A segment of 1488 bytes takes 0.12 ms.
        Congestion::Hpcc(Hpcc::published(8 * RATE, 40 * MS + MS / 8)),
    ]
}

/// 12.5 MB/s (100 Mb/s).
const RATE: u64 = 12_500_000;

#[test]
fn slow_start_doubles_each_round_trip() {
    let config = Config {
        initial_window_segments: 2,
        delayed_ack: None,
        ..Config::default()
    };
    // So fast that a flight takes no time beside the round trip of 100 ms.
    let way = Way::new(1 << 40, 1 << 20, 50 * MS);
    let mut channel = Channel::new([&config, &config], way, |_, _, _| Fate::Delivered);
    channel.ends[0].write_endless();
    for round in 0..10u64 {
        // The handshake takes one, the first data half a round trip more.
        channel.run(150 * MS + round * 100 * MS + 10 * MS);
        let segments = channel.ends[1].received_bytes() / u64::from(config.mss);
        assert_eq!(segments, 2 * ((2 << round) - 1), "round {round}");
    }
}

#[test]
fn congestion_avoidance_adds_a_segment_each_round_trip() {
    let config = Config {
        initial_ssthresh_bytes: Some(20 * 1448),
        delayed_ack: None,
        ..Config::default()
    };
    let way = Way::new(1 << 40, 1 << 20, 50 * MS);
    let mut channel = Channel::new([&config, &config], way, |_, _, _| Fate::Delivered);
    channel.ends[0].write_endless();
    channel.run(2 * SECOND + 50 * MS);
    let before = channel.ends[0].statistics().cwnd_bytes;
    channel.run(5 * SECOND + 50 * MS);
    let after = channel.ends[0].statistics().cwnd_bytes;
    assert_eq!((after - before) / 1448, 30);
}

/// Measures the number of segments sent per round trip over many losses; `is_lost` returns whether the n-th data
/// segment is lost.
fn segments_per_round_trip(
    config: &Config,
    rtt_ms: u64,
    mut is_lost: impl FnMut(u64) -> bool,
) -> f64 {
    let mut count = 0;
    let way = Way::new(1 << 40, 1 << 20, rtt_ms * MS / 2);
    let mut channel = Channel::new([config, config], way, |end, _, segment: &Segment| {
        if end == 1 || segment.payload_bytes == 0 {
            return Fate::Delivered;
        }
        count += 1;
        if is_lost(count) {
            Fate::Lost
        } else {
            Fate::Delivered
        }
    });
    channel.ends[0].write_endless();
    channel.run(10 * SECOND);
    let before = channel.ends[1].received_bytes();
    let rounds = 6000;
    channel.run(10 * SECOND + rounds * rtt_ms * MS);
    let bytes = channel.ends[1].received_bytes() - before;
    bytes as f64 / u64::from(config.mss) as f64 / rounds as f64
}

#[test]
fn the_sawtooth_has_its_mean() {
    // Every n-th segment is lost: the window goes from W/2 to W, one segment per round trip, and 3/8 W^2 segments are in a tooth.
    // A recovery takes one more round trip in which hardly anything new arrives.
    let every_way = [
        Recovery::NewReno(crate::NewReno::RFC_6582),
        Recovery::Sack {
            proportional: false,
        },
        Recovery::Sack { proportional: true },
        Recovery::RFC_8985,
    ];
    for recovery in every_way {
        for n in [300u64, 1500] {
            let config = Config {
                recovery,
                delayed_ack: None,
                ..Config::default()
            };
            let mean = segments_per_round_trip(&config, 20, |count| count % n == 0);
            let largest = (n as f64 * 8.0 / 3.0).sqrt();
            let rounds = largest / 2.0;
            let law = 0.75 * largest * rounds / (rounds + 1.0);
            assert!(
                (mean / law - 1.0).abs() < 0.08,
                "1/{n} {recovery:?}: {mean} against {law}"
            );
        }
    }
}

#[test]
fn reno_follows_the_law_of_the_inverse_square_root() {
    // Mathis and others (1997): the window is sqrt(3 / 2p) with an acknowledgment per segment. Random loss instead of periodic
    // loss costs some of it.
    for recovery in [Recovery::Sack { proportional: true }, Recovery::RFC_8985] {
        for one_in in [200, 1000] {
            let config = Config {
                recovery,
                delayed_ack: None,
                ..Config::default()
            };
            let mut draws = Draws(1);
            let window = segments_per_round_trip(&config, 20, |_| draws.below(one_in) == 0);
            let law = (1.5 * one_in as f64).sqrt();
            let ratio = window / law;
            assert!(
                (0.85..1.15).contains(&ratio),
                "1/{one_in} {recovery:?}: {window} against {law}"
            );
        }
    }
}

#[test]
fn cubic_follows_its_own_law_where_windows_are_large() {
    // RFC 9438, equation 6: with deterministic loss, W = 1.054 * (RTT / p)^(3/4) segments, C = 0.4, beta = 0.7, RTT in seconds.
    let (one_in, rtt_ms) = (4000u64, 200);
    let config = Config {
        delayed_ack: None,
        window_limit_bytes: 64 << 20,
        // Near where it ends up, for it gets there slowly.
        initial_ssthresh_bytes: Some(150 * 1448),
        ..modern(Congestion::Cubic(Cubic {
            tcp_friendly: false,
            fast_convergence: false,
            searches: false,
        }))
    };
    let mut count = 0;
    let way = Way::new(1 << 40, 1 << 20, rtt_ms * MS / 2);
    let mut channel = Channel::new([&config, &config], way, |end, _, segment: &Segment| {
        count += u64::from(end == 0 && segment.payload_bytes > 0);
        let lost = end == 0 && segment.payload_bytes > 0 && count % one_in == 0;
        if lost { Fate::Lost } else { Fate::Delivered }
    });
    channel.ends[0].write_endless();
    channel.run(60 * SECOND);
    let before = channel.ends[1].received_bytes();
    let rounds = 1000;
    channel.run(60 * SECOND + rounds * rtt_ms * MS);
    let bytes = channel.ends[1].received_bytes() - before;
    let window = bytes as f64 / 1448.0 / rounds as f64;
    let law = 1.054 * (rtt_ms as f64 / 1000.0 * one_in as f64).powf(0.75);
    assert!(
        (0.85..1.15).contains(&(window / law)),
        "{window} against {law}"
    );
}

/// Measures how well a connection uses a bottleneck. Returns the used share of its rate, the smoothed round-trip time
/// in milliseconds, and the number of retransmissions per thousand segments.
fn bottleneck(config: &Config, queue: u64, lost_per_thousand: u64) -> (f64, f64, u64) {
    let mut draws = Draws(7);
    let way = Way::new(RATE, queue, 20 * MS);
    let mut channel = Channel::new([config, config], way, move |end, _, _| {
        let lost = end == 0 && draws.below(1000) < lost_per_thousand;
        if lost { Fate::Lost } else { Fate::Delivered }
    });
    channel.ends[0].write_endless();
    channel.run(5 * SECOND);
    let before = channel.ends[1].received_bytes();
    channel.run(35 * SECOND);
    let bytes = channel.ends[1].received_bytes() - before;
    let statistics = channel.ends[0].statistics();
    let share = bytes as f64 / 30.0 / (RATE as f64 * 1448.0 / 1488.0);
    let srtt_ms = statistics.srtt_ps as f64 / MS as f64;
    (
        share,
        srtt_ms,
        statistics.segments_retransmitted * 1000 / statistics.segments_sent,
    )
}

#[test]
fn every_algorithm_fills_a_bottleneck() {
    // 100 Mb/s and 40 ms are 336 segments.
    for congestion in algorithms() {
        let (share, srtt_ms, again) = bottleneck(&modern(congestion), 336, 0);
        // HPCC wants 0.95 of it.
        let least = if matches!(congestion, Congestion::Hpcc(_)) {
            0.9
        } else {
            0.95
        };
        assert!(share > least, "{congestion:?}: {share} {srtt_ms} {again}");
        assert!(again < 10, "{congestion:?}: {share} {srtt_ms} {again}");
    }
}

#[test]
fn bbr_keeps_the_queue_short_and_its_rate_under_loss() {
    let (share, srtt_ms, _) = bottleneck(&modern(Congestion::Bbr), 3000, 0);
    assert!(share > 0.9 && srtt_ms < 60.0, "{share} {srtt_ms}");
    let (_, srtt_ms, _) = bottleneck(&modern(Congestion::Cubic(Cubic::RFC_9438)), 3000, 0);
    assert!(srtt_ms > 100.0, "CUBIC fills the queue: {srtt_ms}");
    let (share, _, _) = bottleneck(&modern(Congestion::Bbr), 3000, 20);
    assert!(share > 0.8, "{share}");
    let (share, _, _) = bottleneck(&modern(Congestion::NewReno), 3000, 20);
    assert!(share < 0.1, "NewReno at 2 % loss: {share}");
}

#[test]
fn hpcc_keeps_the_queue_next_to_empty_at_its_utilisation() {
    // 95 % of the link, and no more than the segments that the sender has whole of in the queue. INT headers are not in the way's bytes.
    let hpcc = Congestion::Hpcc(Hpcc::published(8 * RATE, 40 * MS + MS / 8));
    let (share, srtt_ms, again) = bottleneck(&modern(hpcc), 3000, 0);
    assert!((0.90..0.97).contains(&share), "{share}");
    assert!(srtt_ms < 41.0 && again == 0, "{srtt_ms} {again}");
    // Loss is no sign of congestion: 2 % cost little more than what is sent again.
    let (share, _, _) = bottleneck(&modern(hpcc), 3000, 20);
    assert!(share > 0.8, "{share}");
}

#[test]
fn dctcp_keeps_the_queue_at_the_threshold_of_marks() {
    // 100 Mb/s and 40 ms are 336 segments; marks from the 60th waiting segment on, more than a seventh of that.
    let config = Config {
        ecn: true,
        delayed_ack: None,
        ..modern(Congestion::Dctcp)
    };
    let marked = |config: &Config| {
        let mut free_at_ps = 0u64;
        let way = Way::new(RATE, 3000, 20 * MS);
        let mut channel = Channel::new(
            [config, config],
            way,
            move |end, now_ps, segment: &Segment| {
                if end == 1 || segment.ecn == EcnCodepoint::NotEct {
                    return Fate::Delivered;
                }
                let time_ps = (segment.len() + 20) * SECOND / RATE;
                let waiting = free_at_ps.saturating_sub(now_ps) / time_ps.max(1);
                free_at_ps = free_at_ps.max(now_ps) + time_ps;
                if waiting > 60 {
                    Fate::Marked
                } else {
                    Fate::Delivered
                }
            },
        );
        channel.ends[0].write_endless();
        channel.run(10 * SECOND);
        let before = channel.ends[1].received_bytes();
        channel.run(40 * SECOND);
        let bytes = channel.ends[1].received_bytes() - before;
        let srtt_ps = channel.ends[0].statistics().srtt_ps;
        (
            bytes as f64 / 30.0 / (RATE as f64 * 1448.0 / 1488.0),
            srtt_ps as f64 / MS as f64,
        )
    };
    let (share, srtt_ms) = marked(&config);
    // 60 segments are 7.1 ms.
    assert!(
        share > 0.95 && (42.0..49.5).contains(&srtt_ms),
        "{share} {srtt_ms}"
    );
    // NewReno halves at each mark, and empties the queue with it.
    let reno = Config {
        congestion: Congestion::NewReno,
        ..config
    };
    let (less, _) = marked(&reno);
    assert!(less < share - 0.03, "{less} {share}");
}

#[test]
fn the_same_calls_give_the_same_segments() {
    for congestion in algorithms() {
        let config = modern(congestion);
        let run = || {
            let mut draws = Draws(3);
            let way = Way::new(RATE, 100, 20 * MS);
            let mut channel = Channel::new([&config, &config], way, move |_, _, _| {
                match draws.below(200) {
                    0 => Fate::Lost,
                    1 => Fate::Delayed(3 * MS),
                    _ => Fate::Delivered,
                }
            });
            channel.records = true;
            channel.ends[0].write_endless();
            channel.run(3 * SECOND);
            channel.sent
        };
        let first = run();
        assert!(first.len() > 1000);
        assert!(first == run(), "{congestion:?}");
    }
}

#[test]
fn sequence_numbers_wrap() {
    let config = Config {
        mss: 65_000,
        window_limit_bytes: 100 << 20,
        timestamps: true,
        ..modern(Congestion::NewReno)
    };
    let mut draws = Draws(5);
    let way = Way::new(10_000_000_000, 1000, MS);
    let mut channel = Channel::new([&config, &config], way, move |_, _, _| {
        if draws.below(500) == 0 {
            Fate::Lost
        } else {
            Fate::Delivered
        }
    });
    let bytes = (1 << 33) + 12_345;
    channel.ends[0].write(bytes);
    channel.ends[0].close();
    channel.run(1000 * SECOND);
    assert_eq!(channel.ends[1].received_bytes(), bytes);
    assert!(channel.ends[1].is_finished());
}

/// Returns configurations of all congestion controls, with and without the features that depend on time.
fn every_control() -> Vec<Config> {
    let plain = Config {
        delayed_ack: None,
        window_limit_bytes: 256 << 20,
        ..modern(Congestion::NewReno)
    };
    let with = |congestion| Config {
        congestion,
        ..plain.clone()
    };
    let searching = Cubic {
        searches: true,
        tcp_friendly: false,
        fast_convergence: false,
    };
    vec![
        plain.clone(),
        with(Congestion::Cubic(Cubic::RFC_9438)),
        with(Congestion::Cubic(searching)),
        Config {
            recovery: Recovery::Sack { proportional: true },
            ..with(Congestion::Cubic(Cubic::RFC_9438))
        },
        Config {
            recovery: Recovery::NewReno(crate::NewReno::RFC_6582),
            ..with(Congestion::Cubic(Cubic::RFC_9438))
        },
        Config {
            hystart: Some(crate::HyStart::PlusPlus),
            ..with(Congestion::Cubic(Cubic::RFC_9438))
        },
        Config {
            hystart: Some(crate::HyStart::Classic),
            ..with(Congestion::Cubic(searching))
        },
        Config {
            ecn: true,
            ..with(Congestion::Dctcp)
        },
    ]
}

/// What holds a sender back before it has bytes without end.
#[derive(Clone, Copy, Debug)]
enum Pause {
    /// The application is silent.
    Silence,
    /// The application writes ten segments per round trip.
    Trickle,
    /// The other end's window has ten segments.
    SmallWindow,
    /// The other end's window is closed.
    ClosedWindow,
}

const RTT: u64 = 100 * MS;

/// Measures the congestion window, in segments, in each round trip after a pause of `pause_ps` picoseconds. Before it,
/// 6000 segments were sent, of which the 600th was lost.
fn windows_after(config: &Config, pause: Pause, pause_ps: u64) -> Vec<u64> {
    let first = 6000 * 1448;
    let other = Config {
        reads_at_once: !matches!(pause, Pause::SmallWindow | Pause::ClosedWindow),
        window_limit_bytes: match pause {
            Pause::ClosedWindow => first,
            Pause::SmallWindow => first + 10 * 1448,
            _ => config.window_limit_bytes,
        },
        ..config.clone()
    };
    let mut count = 0;
    let way = Way::new(1 << 40, 1 << 30, RTT / 2);
    let mut channel = Channel::new([config, &other], way, move |end, _, segment: &Segment| {
        count += u64::from(end == 0 && segment.payload_bytes > 0);
        let lost = end == 0 && segment.payload_bytes > 0 && count == 600;
        if lost { Fate::Lost } else { Fate::Delivered }
    });
    channel.ends[0].write(first);
    channel.flush(0);
    while !channel.ends[0].is_drained() {
        assert!(channel.step(60 * SECOND), "{:?}", channel.ends[0]);
    }
    let until_ps = channel.now_ps + pause_ps;
    let mut read = 0;
    if matches!(pause, Pause::SmallWindow | Pause::ClosedWindow) {
        channel.ends[0].write_endless();
        channel.flush(0);
    }
    while channel.now_ps < until_ps {
        match pause {
            Pause::Trickle => {
                channel.ends[0].write(10 * 1448);
                channel.flush(0);
            }
            Pause::SmallWindow => {
                channel.step(until_ps);
                let new = channel.ends[1].received_bytes() - first - read;
                channel.ends[1].read(new);
                read += new;
                channel.flush(1);
                continue;
            }
            _ => {}
        }
        channel.run((channel.now_ps + RTT).min(until_ps));
    }
    channel.ends[0].write_endless();
    channel.flush(0);
    let begin_ps = channel.now_ps;
    (1..=30)
        .map(|round| {
            // From now on the other end's application reads whatever is there.
            let unread = channel.ends[1].received_bytes() - read;
            channel.ends[1].read(unread);
            read += unread;
            channel.flush(1);
            channel.run(begin_ps + round * RTT);
            channel.ends[0].statistics().cwnd_bytes / 1448
        })
        .collect()
}

#[test]
fn growth_after_a_silence_of_any_length_is_growth_without_it() {
    for control in every_control() {
        // Without a restart, as if there had been none; with one, as after any other.
        for (restarts_after_idle, least_ps) in [(false, MS), (true, 2 * SECOND)] {
            let config = Config {
                restarts_after_idle,
                ..control.clone()
            };
            let windows = windows_after(&config, Pause::Silence, least_ps);
            for seconds in [5, 60, 3600, 40 * 3600] {
                let later = windows_after(&config, Pause::Silence, seconds * SECOND);
                assert_eq!(
                    later, windows,
                    "{seconds} s, {restarts_after_idle}: {:?}",
                    config.congestion
                );
            }
        }
    }
}

#[test]
fn time_in_which_something_else_limits_the_sender_does_not_count() {
    for config in every_control() {
        for pause in [Pause::ClosedWindow, Pause::SmallWindow, Pause::Trickle] {
            let windows = windows_after(&config, pause, 2 * SECOND);
            for seconds in [10, 100] {
                let later = windows_after(&config, pause, seconds * SECOND);
                assert_eq!(
                    later, windows,
                    "{pause:?} for {seconds} s: {:?}",
                    config.congestion
                );
            }
        }
    }
}

#[test]
fn models_of_the_path_survive_a_silence() {
    // What is delivered in the 20 round trips after it, with BBR's probe of the round trip, and with HPCC's clocks of 24 bits in between.
    for congestion in [
        Congestion::Bbr,
        Congestion::Hpcc(Hpcc::published(8 * RATE, 40 * MS + MS / 8)),
    ] {
        let config = Config {
            delayed_ack: None,
            ..modern(congestion)
        };
        let delivered = |silence_ps: u64| {
            let way = Way::new(RATE, 3000, 20 * MS);
            let mut channel = Channel::new([&config, &config], way, |_, _, _| Fate::Delivered);
            channel.ends[0].write(20_000_000);
            channel.flush(0);
            while !channel.ends[0].is_drained() {
                assert!(channel.step(60 * SECOND));
            }
            channel.run(channel.now_ps + silence_ps);
            let before = channel.ends[1].received_bytes();
            channel.ends[0].write_endless();
            channel.flush(0);
            channel.run(channel.now_ps + 800 * MS);
            let statistics = channel.ends[0].statistics();
            assert_eq!(statistics.segments_retransmitted, 0);
            (channel.ends[1].received_bytes() - before) as f64
        };
        let without = delivered(MS);
        for silence_ps in [SECOND, 9 * SECOND, 12 * SECOND, 60 * SECOND, 3600 * SECOND] {
            let share = delivered(silence_ps) / without;
            assert!(
                (0.95..1.05).contains(&share),
                "{congestion:?}, {silence_ps} ps: {share}"
            );
        }
    }
}
