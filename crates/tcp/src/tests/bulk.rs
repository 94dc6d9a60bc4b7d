//! Transfers from end to end.

use super::channel::{Channel, Fate, MS, SECOND, Way};
use crate::{Config, NewReno, Recovery, State};

/// Returns the variants of loss recovery.
fn recoveries() -> [Recovery; 4] {
    [
        Recovery::NewReno(NewReno::RFC_6582),
        Recovery::Sack {
            proportional: false,
        },
        Recovery::Sack { proportional: true },
        Recovery::RFC_8985,
    ]
}

/// Creates a one-way path of a gigabit per second with a large queue and a delay of `delay_ps` picoseconds.
fn fast(delay_ps: u64) -> Way {
    Way::new(125_000_000, 1000, delay_ps)
}

#[test]
fn a_transfer_delivers_every_byte_and_closes() {
    for config in [Config::default(), Config::ns2_2001(960)] {
        let mut channel =
            Channel::new([&config, &config], fast(10 * MS), |_, _, _| Fate::Delivered);
        channel.ends[0].write(1_000_000);
        channel.ends[0].close();
        channel.run(30 * SECOND);
        assert_eq!(channel.ends[1].received_bytes(), 1_000_000);
        assert_eq!(channel.ends[1].state(), State::CloseWait);
        assert_eq!(channel.ends[0].state(), State::FinWait2);
        channel.ends[1].write(5000);
        channel.ends[1].close();
        channel.flush(1);
        channel.run(40 * SECOND);
        assert_eq!(channel.ends[0].received_bytes(), 5000);
        assert_eq!(channel.ends[1].state(), State::Closed);
        assert_eq!(channel.ends[0].state(), State::TimeWait);
        channel.run(200 * SECOND);
        assert_eq!(channel.ends[0].state(), State::Closed);
        assert_eq!(channel.ends[0].failure(), None);
        let statistics = channel.ends[0].statistics();
        assert_eq!(statistics.segments_retransmitted, 0);
        assert_eq!(statistics.bytes_acknowledged, 1_000_000);
    }
}

#[test]
fn one_lost_segment_is_sent_again_fast() {
    for recovery in recoveries() {
        let config = Config {
            recovery,
            ..Config::default()
        };
        let mut lost = false;
        let mut channel = Channel::new([&config, &config], fast(10 * MS), |end, now, segment| {
            if end == 0 && now > 100 * MS && segment.payload_bytes > 0 && !lost {
                lost = true;
                return Fate::Lost;
            }
            Fate::Delivered
        });
        channel.ends[0].write(2_000_000);
        channel.run(30 * SECOND);
        assert_eq!(channel.ends[1].received_bytes(), 2_000_000);
        let statistics = channel.ends[0].statistics();
        assert_eq!(
            (
                statistics.segments_retransmitted,
                statistics.fast_recoveries,
                statistics.timeouts
            ),
            (1, 1, 0),
            "{recovery:?}"
        );
    }
}

#[test]
fn a_dead_link_ends_in_timeouts_and_comes_back() {
    let config = Config::ns2_2001(960);
    let mut channel = Channel::new([&config, &config], fast(30 * MS), |_, now, _| {
        if (5 * SECOND..5 * SECOND + 500 * MS).contains(&now) {
            Fate::Lost
        } else {
            Fate::Delivered
        }
    });
    channel.ends[0].write_endless();
    channel.run(10 * SECOND);
    let statistics = channel.ends[0].statistics();
    assert_eq!(statistics.timeouts, 1);
    assert!(
        channel.ends[1].received_bytes() > 2_000_000,
        "{statistics:?}"
    );
}

#[test]
fn random_loss_is_survived() {
    for (permille, recovery) in [1, 10, 50, 200]
        .into_iter()
        .flat_map(|p| recoveries().map(|r| (p, r)))
    {
        let config = Config {
            recovery,
            ..Config::default()
        };
        let mut state = 12345u64;
        let mut channel = Channel::new([&config, &config], fast(5 * MS), move |_, _, _| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            if (state >> 33) % 1000 < permille {
                Fate::Lost
            } else {
                Fate::Delivered
            }
        });
        channel.ends[0].write(3_000_000);
        channel.ends[0].close();
        while channel.step(4000 * SECOND) && !channel.ends[1].is_finished() {}
        assert_eq!(
            channel.ends[1].received_bytes(),
            3_000_000,
            "{permille} {recovery:?} {:?}",
            channel.ends[0].statistics()
        );
        assert_eq!(channel.ends[1].state(), State::CloseWait);
    }
}
