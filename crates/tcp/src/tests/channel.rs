//! Two ends joined by a rate, a queue, a delay, and a test's changes to segments. Each direction is a link whose load INT headers carry.

use crate::{Config, Connection, Segment};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use wire::int::{Hop, Kind, PathLoad};

pub(crate) const MS: u64 = 1_000_000_000;
pub(crate) const SECOND: u64 = 1000 * MS;

/// The treatment of one segment on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Delivered,
    Lost,
    /// Marked as congestion experienced, if the sender is capable.
    Marked,
    /// Delivered later by so many picoseconds, so that others overtake it.
    Delayed(u64),
    /// Delivered twice, the second time later by so many picoseconds.
    Twice(u64),
}

/// One direction of the path: serialization, drop-tail queue, propagation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) bytes_per_second: u64,
    pub(crate) queue_segments: u64,
    pub(crate) delay_ps: u64,
    free_at_ps: u64,
    sent_bytes: u64,
}

impl Way {
    pub(crate) fn new(bytes_per_second: u64, queue_segments: u64, delay_ps: u64) -> Way {
        Way {
            bytes_per_second,
            queue_segments,
            delay_ps,
            free_at_ps: 0,
            sent_bytes: 0,
        }
    }

    /// Sends a segment of `bytes` bytes over the link. Returns the time at which it arrives, in picoseconds, or `None`
    /// if the queue has no room for it.
    fn pass(&mut self, now_ps: u64, bytes: u64) -> Option<u64> {
        let time_ps =
            (u128::from(bytes) * u128::from(SECOND) / u128::from(self.bytes_per_second)) as u64;
        let waiting = self
            .free_at_ps
            .saturating_sub(now_ps)
            .div_ceil(time_ps.max(1));
        if waiting > self.queue_segments {
            return None;
        }
        self.free_at_ps = self.free_at_ps.max(now_ps) + time_ps;
        self.sent_bytes += bytes;
        Some(self.free_at_ps + self.delay_ps)
    }
}

impl Way {
    /// Returns the load of the link at the time when the last segment leaves. The queue in front of that segment
    /// stands for the queue behind it.
    fn load(&self, now_ps: u64, code: u8) -> PathLoad {
        let wait_ps = self.free_at_ps - now_ps;
        let queue = u128::from(wait_ps) * u128::from(self.bytes_per_second) / u128::from(SECOND);
        let hop = Hop::new(
            code,
            (self.free_at_ps / 1_000_000) as u32,
            (self.sent_bytes / u64::from(Hop::TRANSMITTED_UNIT)) as u32,
            (queue as u32 / Hop::QUEUE_UNIT) as u16,
        );
        PathLoad::new(1, &[hop]).unwrap()
    }
}

type Arrival = Reverse<(u64, u64, usize)>;

/// Two ends with a path between them; 0 connects, 1 listens.
pub(crate) struct Channel<F> {
    pub(crate) ends: [Connection; 2],
    pub(crate) ways: [Way; 2],
    pub(crate) now_ps: u64,
    /// Decides by direction (that of end 0 first), time and segment.
    fate: F,
    arrivals: BinaryHeap<Arrival>,
    flying: Vec<(Segment, Option<(Kind, PathLoad)>)>,
    free: Vec<usize>,
    count: u64,
    pub(crate) queue_drops: u64,
    /// Every segment as it leaves: time, end, segment.
    pub(crate) sent: Vec<(u64, usize, Segment)>,
    pub(crate) records: bool,
}

impl<F: FnMut(usize, u64, &Segment) -> Fate> Channel<F> {
    pub(crate) fn new(configs: [&Config; 2], way: Way, fate: F) -> Channel<F> {
        // Numbers wrap within the first megabytes.
        let client = Connection::connect(configs[0], 0xffff_f000, 0).unwrap();
        let server = Connection::listen(configs[1], 0xfff0_0000).unwrap();
        let mut channel = Channel {
            ends: [client, server],
            ways: [way; 2],
            now_ps: 0,
            fate,
            arrivals: BinaryHeap::new(),
            flying: Vec::new(),
            free: Vec::new(),
            count: 0,
            queue_drops: 0,
            sent: Vec::new(),
            records: true,
        };
        // The SYN is recorded always.
        channel.flush(0);
        channel.records = false;
        channel
    }

    /// Makes an end send everything that it may send now.
    pub(crate) fn flush(&mut self, end: usize) {
        // It looks at everything in flight; in long transfers now and then is enough.
        if self.count < 5000 || self.count.is_multiple_of(4096) {
            self.ends[end].check();
        }
        while let Some(segment) = self.ends[end].next_segment(self.now_ps) {
            if self.records {
                self.sent.push((self.now_ps, end, segment));
            }
            let fate = (self.fate)(end, self.now_ps, &segment);
            if fate == Fate::Lost {
                continue;
            }
            let Some(at_ps) = self.ways[end].pass(self.now_ps, segment.len() + 20) else {
                self.queue_drops += 1;
                continue;
            };
            let telemetry = self.ends[end].telemetry(&segment).map(|with| match with {
                // 100 Mb/s, which tests with INT have.
                (Kind::Metadata, _) => (Kind::Metadata, self.ways[end].load(self.now_ps, 2)),
                echo => echo,
            });
            let mut segment = segment;
            if fate == Fate::Marked && segment.ecn != crate::EcnCodepoint::NotEct {
                segment.ecn = crate::EcnCodepoint::Ce;
            }
            match fate {
                Fate::Delayed(by_ps) => self.fly(at_ps + by_ps, end, (segment, telemetry)),
                Fate::Twice(by_ps) => {
                    self.fly(at_ps, end, (segment, telemetry));
                    self.fly(at_ps + by_ps, end, (segment, telemetry));
                }
                _ => self.fly(at_ps, end, (segment, telemetry)),
            }
        }
    }

    fn fly(&mut self, at_ps: u64, from: usize, segment: (Segment, Option<(Kind, PathLoad)>)) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.flying[slot] = segment;
                slot
            }
            None => {
                self.flying.push(segment);
                self.flying.len() - 1
            }
        };
        self.count += 1;
        self.arrivals
            .push(Reverse((at_ps, self.count, 2 * slot + from)));
    }

    /// Runs the next arrival or timer; returns false if there is none until `until_ps`.
    pub(crate) fn step(&mut self, until_ps: u64) -> bool {
        let arrival = self.arrivals.peek().map_or(u64::MAX, |next| next.0.0);
        let timers = [0, 1].map(|end| self.ends[end].due_ps().unwrap_or(u64::MAX));
        let next_ps = arrival.min(timers[0]).min(timers[1]);
        if next_ps > until_ps {
            self.now_ps = until_ps;
            return false;
        }
        assert!(next_ps >= self.now_ps, "a timer lies in the past");
        self.now_ps = next_ps;
        if arrival == next_ps {
            let Some(Reverse((_, _, key))) = self.arrivals.pop() else {
                return false;
            };
            let (slot, to) = (key / 2, 1 - key % 2);
            self.free.push(slot);
            let (segment, telemetry) = self.flying[slot];
            match telemetry {
                None => self.ends[to].receive(next_ps, &segment),
                Some((kind, load)) => self.ends[to].receive_with(next_ps, &segment, kind, &load),
            }
            self.flush(to);
        } else {
            let end = usize::from(timers[0] != next_ps);
            self.ends[end].on_timer(next_ps);
            self.flush(end);
            let due = self.ends[end].due_ps().unwrap_or(u64::MAX);
            assert!(due > next_ps, "a timer stays due");
        }
        true
    }

    pub(crate) fn run(&mut self, until_ps: u64) {
        while self.step(until_ps) {}
    }
}
