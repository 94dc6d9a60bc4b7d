//! The numbers of a reporter's packets, and which of them are missing.
//!
//! A number that comes late was missing; one that comes twice was not. A single packet elsewhere in the numbers, which anybody can send,
//! counts nothing: the next one has to confirm it (RFC 3550, appendix A.1, has the idea).

/// The number of sequence numbers (telemetry reports v2.0, section 3.2: 22 bits).
const NUMBERS: u32 = 1 << 22;

/// A number belongs to the present sequence if its distance to the expected number is less than this.
const NEAR: u32 = 1 << 12;

const WORDS: usize = NEAR as usize / 64;

/// The missing ones of the last [`NEAR`] numbers, as a ring of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Missing([u64; WORDS]);

impl Missing {
    /// Marks the `count` numbers from `first` on, at most [`NEAR`], as missing, a word of the bit set at a time.
    fn add(&mut self, first: u32, count: u32) {
        let (mut at, end) = (first, first + count);
        while at < end {
            let bits = (64 - at % 64).min(end - at);
            let ones = u64::MAX >> (64 - bits) << (at % 64);
            self.0[Missing::word(at)] |= ones;
            at += bits;
        }
    }

    /// Removes a number from the missing ones. Returns whether it was missing.
    fn remove(&mut self, number: u32) -> bool {
        let (word, bit) = (Missing::word(number), 1 << (number % 64));
        let was_missing = self.0[word] & bit != 0;
        self.0[word] &= !bit;
        was_missing
    }

    fn word(number: u32) -> usize {
        (number % NEAR / 64) as usize
    }
}

/// A packet whose number was far from the expected one: perhaps the sequence goes on from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Jump {
    /// The number of the next packet that would confirm the jump.
    expected: u32,
    /// The number of packets since.
    packets: u32,
}

/// The state of the sequence before the last jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left {
    expected: u32,
    /// The losses that were counted for the jump.
    lost: u32,
}

/// The sequence numbers of one reporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    expected: u32,
    // Whether a second packet has come near the first.
    is_known: bool,
    jump: Option<Jump>,
    left: Option<Left>,
    missing: Missing,
}

impl Sequence {
    /// Begins to count with the sequence number of a reporter's first packet.
    pub(crate) fn new(first: u32) -> Sequence {
        Sequence {
            expected: next(first),
            is_known: false,
            jump: None,
            left: None,
            missing: Missing([0; WORDS]),
        }
    }

    /// Processes the sequence number of a packet. Returns by how much the number of lost packets changes, negative if
    /// a packet that was counted as lost arrives late.
    ///
    /// A confirmed step forward is a loss. A confirmed step back, or to the first numbers, is a new start of the reporter, which lost
    /// nothing. A step that leads to where the one before it began shows that this was somebody else's: its count is taken back.
    pub(crate) fn take(&mut self, number: u32) -> i64 {
        let ahead = distance(self.expected, number);
        if ahead < NEAR {
            self.is_known = true;
            self.missing.add(self.expected, ahead);
            self.missing.remove(number);
            self.expected = next(number);
            self.jump = None;
            return ahead.into();
        }
        if ahead >= NUMBERS - NEAR {
            return -i64::from(self.missing.remove(number));
        }
        match self.jump {
            Some(jump) if jump.expected == number => self.follow(number, jump.packets),
            Some(jump) if distance(jump.expected, number) < NEAR => {
                self.jump = Some(Jump {
                    expected: next(number),
                    packets: jump.packets + 1,
                });
                0
            }
            _ => {
                self.jump = Some(Jump {
                    expected: next(number),
                    packets: 1,
                });
                0
            }
        }
    }

    /// Continues the sequence at `number`, after `packets` packets in a row have had numbers that lead there. Returns
    /// by how much the number of lost packets changes.
    fn follow(&mut self, number: u32, packets: u32) -> i64 {
        let from = self.expected;
        let ahead = distance(from, number);
        self.expected = next(number);
        self.jump = None;
        self.missing = Missing([0; WORDS]);
        match self.left.take() {
            _ if !self.is_known => {
                self.is_known = true;
                return 0; // the first packet was somebody else's
            }
            Some(left) if distance(left.expected, number) < NEAR => {
                let missing = distance(left.expected, number).saturating_sub(packets);
                return i64::from(missing) - i64::from(left.lost);
            }
            _ => {}
        }
        let is_new_start = ahead >= NUMBERS / 2 || number < NEAR;
        let lost = if is_new_start {
            0
        } else {
            ahead.saturating_sub(packets)
        };
        self.left = Some(Left {
            expected: from,
            lost,
        });
        lost.into()
    }
}

fn distance(from: u32, to: u32) -> u32 {
    to.wrapping_sub(from) % NUMBERS
}

fn next(number: u32) -> u32 {
    (number + 1) % NUMBERS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn lost(numbers: impl IntoIterator<Item = u32>) -> i64 {
        let mut numbers = numbers.into_iter().map(|number| number % NUMBERS);
        let mut sequence = Sequence::new(numbers.next().expect("there is one"));
        numbers.map(|number| sequence.take(number)).sum()
    }

    #[test]
    fn gaps_are_losses_and_late_packets_are_not() {
        assert_eq!(lost([0, 1, 5, 6]), 3);
        assert_eq!(lost([0, 1, 5, 6, 3]), 2);
        assert_eq!(
            lost([0, 1, 5, 6, 3, 3, 1, 6]),
            2,
            "what comes twice was not missing"
        );
        assert_eq!(lost(NUMBERS - 3..NUMBERS + 3), 0);
        assert_eq!(lost((0..10).chain(1_000_000..1_000_010)), 999_990);
    }

    #[test]
    fn a_new_start_of_the_reporter_loses_nothing() {
        for before in [2 * NEAR, 10_000, NUMBERS / 2, 3_000_000] {
            assert_eq!(
                lost((before - 20..before).chain(0..20)),
                0,
                "after {before}"
            );
        }
    }

    #[test]
    fn forged_numbers_before_the_first_genuine_one_count_nothing() {
        assert_eq!(lost([7, 1_000_000, 1_000_001, 1_000_002]), 0);
    }

    proptest! {
        /// Checks that the numbers that never came are counted, whatever came late or several times, and wherever the numbers begin.
        #[test]
        fn the_count_is_that_of_the_numbers_that_never_came(
            start in prop_oneof![0..NUMBERS, NUMBERS - 200..NUMBERS, Just(0)],
            packets in prop::collection::vec((1u32..40, prop::collection::vec(0u32..60, 0..3)), 1..300),
        ) {
            let (mut number, mut arrivals) = (1, vec![(0, 0), (1, 1)]);
            for (step, delays) in packets {
                number += step;
                arrivals.extend(delays.iter().map(|delay| (number + delay, number)));
            }
            arrivals.sort();
            let came: BTreeSet<u32> = arrivals.iter().map(|(_, number)| *number).collect();
            let never = came.last().expect("two came") + 1 - came.len() as u32;
            prop_assert_eq!(lost(arrivals.iter().map(|(_, number)| start + number)), i64::from(never));
        }

        /// Whoever forges one or two packets between any of a reporter's changes no count: it is that of the genuine packets alone.
        #[test]
        fn forged_packets_change_no_count(
            start in 0..NUMBERS,
            steps in prop::collection::vec((1u32..200, prop::option::of((NEAR * 2..NUMBERS - NEAR * 2, 1u32..3))), 1..60),
        ) {
            let (mut genuine, mut all, mut number) = (vec![start, start + 1], vec![start, start + 1], start + 1);
            for (step, forged) in steps {
                if let Some((away, packets)) = forged {
                    all.extend((0..packets).map(|index| number + away + index));
                }
                number += step;
                // Two in a row, so that they confirm each other.
                for _ in 0..2 {
                    genuine.push(number);
                    all.push(number);
                    number += 1;
                }
                number -= 1;
            }
            prop_assert_eq!(lost(all), lost(genuine));
        }
    }
}
