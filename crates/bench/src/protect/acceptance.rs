//! The hand-written acceptance of copies: the window and the vector algorithm, with the program's counters. It does not know
//! packets.

use super::Acceptance;
use crate::structures::count::Count;

/// Half the number of sequence numbers.
const WINDOW: u32 = 1 << 31;

/// The number of paths for which copies are counted separately.
const PATHS: usize = 4;

/// The counters of a path of a connection.
#[derive(Clone, Copy, Default)]
struct PathCounters {
    passed: Count,
    discarded: Count,
    rogue: u64,
    out_of_order: u64,
}

/// The state of a connection at its end.
#[derive(Default)]
struct End {
    last: u32,
    /// The history of sequence numbers: bit i is set if the number i below the last one was passed on. Zero
    /// initially, when any number is accepted.
    seen: u64,
    passed_at_us: u64,
    lost: u64,
    resets: u64,
    paths: [PathCounters; PATHS],
}

/// What decides whether a copy of a packet is passed on.
#[derive(Clone, Copy)]
pub struct Copy {
    /// Its sequence number.
    pub sequence_number: u32,
    /// The path on which it came.
    pub path: usize,
    /// Its length in bytes.
    pub bytes: usize,
    /// The time of its arrival in microseconds.
    pub now_us: u64,
}

/// What is done with a copy, and why.
enum Verdict {
    Passes { next: bool, missing: u64 },
    Discarded { rogue: bool },
}

impl End {
    fn by_window(&mut self, number: u32) -> Verdict {
        let before = number.wrapping_sub(self.last).wrapping_sub(1);
        if before >= WINDOW {
            return Verdict::Discarded { rogue: false };
        }
        self.last = number;
        Verdict::Passes {
            next: before == 0,
            missing: before.into(),
        }
    }

    fn by_vector(&mut self, number: u32, history_length: u32) -> Verdict {
        let known = u64::MAX >> (64 - history_length);
        let ahead = number.wrapping_sub(self.last);
        if ahead.wrapping_sub(1) < WINDOW - 1 {
            if ahead >= history_length {
                return Verdict::Discarded { rogue: true };
            }
            let leaving = (self.seen & known) >> (history_length - ahead);
            self.seen = (self.seen << ahead | 1) & known;
            self.last = number;
            return Verdict::Passes {
                next: ahead == 1,
                missing: u64::from(ahead - leaving.count_ones()),
            };
        }
        let behind = ahead.wrapping_neg();
        if behind >= history_length {
            return Verdict::Discarded { rogue: true };
        }
        let mark = 1 << behind;
        if self.seen & mark != 0 {
            return Verdict::Discarded { rogue: false };
        }
        self.seen |= mark;
        Verdict::Passes {
            next: false,
            missing: 0,
        }
    }
}

/// Decides for all connections that end here which copies are passed on.
pub struct Judge {
    acceptance: Acceptance,
    ends: Vec<End>,
}

impl Judge {
    /// Makes the acceptance of copies by the given algorithm, without connections.
    pub fn new(acceptance: Acceptance) -> Judge {
        Judge {
            acceptance,
            ends: Vec::new(),
        }
    }

    /// Adds a connection, and returns its number, which counts from 0.
    pub fn add_connection(&mut self) -> u32 {
        self.ends.push(End::default());
        self.ends.len() as u32 - 1
    }

    /// Returns true if a copy is the first with its sequence number in its connection, so that it is to be passed on.
    /// Counts the result.
    #[inline]
    pub fn passes(&mut self, connection: usize, copy: Copy) -> bool {
        let end = &mut self.ends[connection];
        let number = copy.sequence_number;
        let verdict = match self.acceptance {
            Acceptance::Window => end.by_window(number),
            Acceptance::Vector {
                reset_timeout_us, ..
            } if end.seen == 0 || copy.now_us - end.passed_at_us >= reset_timeout_us.into() => {
                (end.last, end.seen) = (number, 1);
                end.resets += 1;
                Verdict::Passes {
                    next: true,
                    missing: 0,
                }
            }
            Acceptance::Vector { history_length, .. } => end.by_vector(number, history_length),
        };
        let counters = &mut end.paths[copy.path];
        match verdict {
            Verdict::Passes { next, missing } => {
                counters.passed.add(copy.bytes);
                counters.out_of_order += u64::from(!next);
                end.lost += missing;
                end.passed_at_us = copy.now_us;
                true
            }
            Verdict::Discarded { rogue } => {
                counters.discarded.add(copy.bytes);
                counters.rogue += u64::from(rogue);
                false
            }
        }
    }
}
