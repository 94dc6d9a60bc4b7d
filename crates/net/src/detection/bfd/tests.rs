//! One end against another, without a network.

use super::*;

const MS: u64 = 1_000_000_000;

fn config(tx_ms: u32, rx_ms: u32, detect_mult: u8) -> BfdConfig {
    BfdConfig {
        desired_min_tx_us: tx_ms * 1000,
        required_min_rx_us: rx_ms * 1000,
        detect_mult,
    }
}

/// Two ends and what is under way between them, which takes a millisecond.
struct Pair {
    now_ps: u64,
    ends: [Session; 2],
    /// The packets under way: when each arrives, at which end, and the packet.
    under_way: Vec<(u64, usize, Header)>,
    /// For each end, true if packets to it are lost.
    deaf: [bool; 2],
    /// For each end, when its packets were sent.
    sent_ps: [Vec<u64>; 2],
}

impl Pair {
    fn new(configs: [BfdConfig; 2], seed: u64) -> Pair {
        let end = |number: usize| {
            let draws = Stream::named(seed, &format!("{number}"));
            Session::new(configs[number], number as u32 + 1, draws)
        };
        Pair {
            now_ps: 0,
            ends: [end(0), end(1)],
            under_way: Vec::new(),
            deaf: [false; 2],
            sent_ps: [Vec::new(), Vec::new()],
        }
    }

    fn established(configs: [BfdConfig; 2], seed: u64) -> Pair {
        let mut pair = Pair::new(configs, seed);
        let [a, b] = pair.ends;
        pair.ends = [
            a.established(Time::ZERO, configs[1], 2),
            b.established(Time::ZERO, configs[0], 1),
        ];
        pair
    }

    fn send(&mut self, from: usize, packet: Option<Header>) {
        let Some(packet) = packet else { return };
        self.sent_ps[from].push(self.now_ps);
        if !self.deaf[1 - from] {
            self.under_way.push((self.now_ps + MS, 1 - from, packet));
        }
    }

    /// Runs both ends until `until_ps` picoseconds, and returns both states at each change, with its time in
    /// picoseconds.
    fn run(&mut self, until_ps: u64) -> Vec<(u64, State, State)> {
        let mut changes = Vec::new();
        loop {
            let arrivals = self.under_way.iter().map(|(at_ps, ..)| *at_ps);
            let due = self.ends.iter().map(|end| end.due_ps().saturating_ps());
            let next_ps = arrivals.chain(due).min().unwrap();
            if next_ps > until_ps {
                self.now_ps = until_ps;
                return changes;
            }
            let former = self.states();
            self.now_ps = next_ps;
            match self
                .under_way
                .iter()
                .position(|(at_ps, ..)| *at_ps == next_ps)
            {
                Some(first) => {
                    let (_, to, packet) = self.under_way.remove(first);
                    // As bytes, so that what is sent is what can be read.
                    let mut bytes = Vec::new();
                    packet.emit(&mut bytes).unwrap();
                    let read = Header::parse(&wire::bfd::View::new(&bytes).unwrap()).unwrap();
                    let answer = self.ends[to].receive(Time::from(next_ps), &read);
                    self.send(to, answer);
                }
                None => {
                    for end in 0..2 {
                        if self.ends[end].due_ps().saturating_ps() <= next_ps {
                            let packet = self.ends[end].on_time(Time::from(next_ps));
                            self.send(end, packet);
                        }
                    }
                }
            }
            if former != self.states() {
                let (a, b) = self.states();
                changes.push((next_ps, a, b));
            }
        }
    }

    fn states(&self) -> (State, State) {
        let [a, b] = &self.ends;
        (a.statistics.state, b.statistics.state)
    }
}

#[test]
fn a_session_comes_up_by_three_ways_and_speeds_up() {
    for seed in 0..20 {
        let mut pair = Pair::new([config(50, 50, 3), config(20, 30, 4)], seed);
        let changes = pair.run(5000 * MS);
        let (up_ps, a, b) = *changes.last().unwrap();
        assert_eq!((a, b), (State::Up, State::Up), "{changes:?}");
        // The first packets go at once, and answers to changes do.
        assert!(up_ps <= 10 * MS, "{changes:?}");
        // The faster of what one may send and the other takes: 50 ms for both; less the jitter.
        for end in 0..2 {
            let sent = &pair.sent_ps[end];
            let steady = sent.windows(2).filter(|pair| pair[0] > 3000 * MS);
            let mut intervals: Vec<u64> = steady.map(|pair| pair[1] - pair[0]).collect();
            intervals.sort_unstable();
            let interval_ps = [50 * MS, 50 * MS][end];
            assert!(intervals[0] >= interval_ps * 3 / 4, "{intervals:?}");
            assert!(*intervals.last().unwrap() <= interval_ps, "{intervals:?}");
            assert!(intervals[0] < *intervals.last().unwrap(), "there is jitter");
        }
        let [a, b] = pair.ends.each_ref().map(Session::statistics);
        assert_eq!((a.came_up, a.went_down, a.refused), (1, 0, 0));
        // The other end's multiplier, by the slower of what this end takes and the other would like.
        assert_eq!(
            (a.detection_time_ps, b.detection_time_ps),
            (200 * MS, 150 * MS)
        );
        assert!(pair.ends.iter().all(|end| !end.poll), "polls were answered");
    }
}

#[test]
fn one_deaf_end_takes_both_down_and_neither_comes_up_until_it_hears() {
    for seed in 0..20 {
        let mut pair = Pair::established([config(50, 50, 3); 2], seed);
        assert_eq!(pair.run(1000 * MS), []);
        assert_eq!(pair.states(), (State::Up, State::Up));
        pair.deaf[0] = true;
        let changes = pair.run(10_000 * MS);
        // Its last packet came up to 50 ms before, and what is under way comes: between two and three intervals.
        let (first_ps, a, b) = changes[0];
        assert_eq!((a, b), (State::Down, State::Up));
        assert!((1100 * MS..=1151 * MS).contains(&first_ps), "{changes:?}");
        assert_eq!(changes[1], (first_ps + MS, State::Down, State::Down));
        // The end that hears goes no further than Init.
        assert!(
            changes[2..]
                .iter()
                .all(|(_, a, b)| (*a, *b) == (State::Down, State::Init))
        );
        let [a, b] = pair.ends.each_ref().map(Session::statistics);
        assert_eq!(a.diagnostic, Diagnostic::DETECTION_TIME_EXPIRED);
        assert_eq!(
            (a.expired, a.went_down, b.expired, b.went_down),
            (1, 1, 0, 1)
        );
        assert!(pair.ends.iter().all(|end| !end.says_up()));
        // While down, no more than a packet a second, less the jitter.
        let slow = pair.sent_ps[0].iter().filter(|&&at_ps| at_ps > 2000 * MS);
        assert!((8..=11).contains(&slow.count()));
        pair.deaf[0] = false;
        let changes = pair.run(13_000 * MS);
        assert_eq!(pair.states(), (State::Up, State::Up), "{changes:?}");
        assert!(changes[0].0 <= 11_001 * MS, "{changes:?}");
    }
}

#[test]
fn intervals_that_differ_are_agreed_on() {
    // One end asks for more than the other takes.
    let mut pair = Pair::established([config(10, 100, 3), config(100, 40, 2)], 1);
    pair.run(10_000 * MS);
    let count = |end: usize| pair.sent_ps[end].len();
    // 40 ms and 100 ms, less 12.5 % on average.
    assert!((270..=300).contains(&count(0)), "{}", count(0));
    assert!((108..=120).contains(&count(1)), "{}", count(1));
    assert_eq!(pair.states(), (State::Up, State::Up));
}

#[test]
fn with_a_multiplier_of_one_packets_come_in_time() {
    for seed in 0..20 {
        let mut pair = Pair::established([config(50, 50, 1); 2], seed);
        assert_eq!(
            pair.run(20_000 * MS),
            [],
            "at most 90 % of 50 ms and a millisecond"
        );
    }
}

#[test]
fn packets_for_other_sessions_are_refused() {
    let mut pair = Pair::established([config(50, 50, 3); 2], 3);
    let mut packet = pair.ends[1].on_time(Time::from(60 * MS)).unwrap();
    for (discriminator, state) in [(7, State::Up), (0, State::Up), (0, State::Init)] {
        packet.your_discriminator = discriminator;
        packet.state = state;
        assert_eq!(pair.ends[0].receive(Time::from(60 * MS), &packet), None);
    }
    assert_eq!(pair.ends[0].statistics().refused, 3);
    assert_eq!(pair.states().0, State::Up);
    // A new session at the other end is heard: it knows nobody yet.
    (packet.your_discriminator, packet.state) = (0, State::Down);
    assert!(pair.ends[0].receive(Time::from(60 * MS), &packet).is_some());
    assert_eq!(pair.states().0, State::Down);
}

#[test]
fn what_cannot_be_is_refused() {
    for wrong in [
        BfdConfig {
            detect_mult: 0,
            ..config(50, 50, 3)
        },
        BfdConfig {
            desired_min_tx_us: 99,
            ..config(50, 50, 3)
        },
        BfdConfig {
            required_min_rx_us: 0,
            ..config(50, 50, 3)
        },
        BfdConfig {
            required_min_rx_us: 60_000_001,
            ..config(50, 50, 3)
        },
    ] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
    assert_eq!(config(50, 50, 3).check(), Ok(()));
}

/// Whenever the other end changes the interval at which it takes packets, the next packet comes when the new interval has
/// passed since the last one, less the jitter (RFC 5880, section 6.8.3), and none comes while it takes none (section 6.8.7).
#[test]
fn a_changed_interval_counts_from_the_last_packet() {
    let mut random = Stream::named(7, "intervals");
    for seed in 0..200 {
        let mut pair = Pair::established([config(50, 50, 3), config(60_000, 2000, 3)], seed);
        let mut packet = pair.ends[1].send(Time::ZERO, false);
        let end = &mut pair.ends[0];
        let (mut now_ps, mut last_ps) = (0, 0);
        for _ in 0..50 {
            now_ps += random.uniform(1, 900) as u64 * MS;
            let rx_ms = [0, 10, 60, 300, 2000, 5000][random.uniform(0, 5) as usize];
            packet.required_min_rx_us = rx_ms * 1000;
            while end.due_ps() <= Time::from(now_ps) {
                let due_ps = end.due_ps();
                if end.on_time(due_ps).is_some() {
                    last_ps = due_ps.saturating_ps();
                }
            }
            assert_eq!(end.receive(Time::from(now_ps), &packet), None);
            let next_ps = end.next_send_ps;
            if rx_ms == 0 {
                assert_eq!(next_ps, Time::NEVER);
                continue;
            }
            let interval_ps = u64::from(rx_ms.max(50)) * MS;
            let latest = Time::from(now_ps.max(last_ps + interval_ps));
            let earliest = Time::from(now_ps.max(last_ps + interval_ps / 4 * 3));
            assert!(
                (earliest..=latest).contains(&next_ps),
                "{next_ps:?} {earliest:?} {latest:?}"
            );
        }
    }
}
