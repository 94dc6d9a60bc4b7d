//! A set of sequence numbers as ordered disjoint intervals. It does not know what they mean.

/// A set of numbers as half-open intervals, in order, with gaps between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntervalSet {
    intervals: Vec<(u64, u64)>,
}

impl IntervalSet {
    /// Adds the numbers `[start, end)`, and calls `new` for each part of them that was not in the set. Returns the
    /// interval that now contains them.
    pub(crate) fn insert(
        &mut self,
        start: u64,
        end: u64,
        mut new: impl FnMut(u64, u64),
    ) -> (u64, u64) {
        debug_assert!(start < end);
        // The most frequent case: the last interval grows, or nothing is new.
        let first = match self.intervals.last() {
            Some(&(_, last_end)) if last_end < start => self.intervals.len(),
            _ => self
                .intervals
                .partition_point(|interval| interval.1 < start),
        };
        let mut merged = (start, end);
        let mut from = start;
        let mut last = first;
        while let Some(&(left, right)) = self.intervals.get(last)
            && left <= end
        {
            if from < left {
                new(from, left);
            }
            from = from.max(right);
            merged = (merged.0.min(left), merged.1.max(right));
            last += 1;
        }
        if from < end {
            new(from, end);
        }
        if last == first + 1 {
            self.intervals[first] = merged;
        } else {
            self.intervals.splice(first..last, [merged]);
        }
        merged
    }

    /// Removes all numbers below `sequence` from the set.
    pub(crate) fn remove_below(&mut self, sequence: u64) {
        let gone = self
            .intervals
            .iter()
            .take_while(|interval| interval.1 <= sequence)
            .count();
        self.intervals.drain(..gone);
        if let Some(first) = self.intervals.first_mut() {
            first.0 = first.0.max(sequence);
        }
    }

    /// Returns the interval that contains `sequence`; `None` if the set does not contain it.
    pub(crate) fn containing(&self, sequence: u64) -> Option<(u64, u64)> {
        let at = self
            .intervals
            .partition_point(|interval| interval.1 <= sequence);
        let interval = *self.intervals.get(at)?;
        (interval.0 <= sequence).then_some(interval)
    }

    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.intervals.first().copied()
    }

    pub(crate) fn last(&self) -> Option<(u64, u64)> {
        self.intervals.last().copied()
    }

    /// Returns the start of the highest interval that, together with all intervals above it, makes at least `count`
    /// intervals or more than `bytes` numbers; `None` if there is no such interval.
    pub(crate) fn edge_above(&self, count: u32, bytes: u64) -> Option<u64> {
        let mut sum = 0;
        for (above, &(start, end)) in (1..).zip(self.intervals.iter().rev()) {
            sum += end - start;
            if above >= count || sum > bytes {
                return Some(start);
            }
        }
        None
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn as_slice(&self) -> &[(u64, u64)] {
        &self.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_set_of_numbers(steps in proptest::collection::vec((0u64..60, 1u64..12, any::<bool>()), 0..60)) {
            let (mut set, mut model) = (IntervalSet::default(), BTreeSet::new());
            let mut floor = 0;
            for (at, len, remove) in steps {
                if remove && len == 1 {
                    floor = at;
                    set.remove_below(at);
                    model.retain(|&x| x >= at);
                    continue;
                }
                let mut new = BTreeSet::new();
                let merged = set.insert(at, at + len, |from, to| new.extend(from..to));
                let expected: BTreeSet<u64> = (at..at + len).filter(|x| !model.contains(x)).collect();
                prop_assert_eq!(&new, &expected);
                model.extend(at..at + len);
                prop_assert_eq!(set.containing(at), Some(merged));
            }
            let _ = floor;
            let flat: BTreeSet<u64> = set.as_slice().iter().flat_map(|&(a, b)| a..b).collect();
            prop_assert_eq!(&flat, &model);
            prop_assert!(set.as_slice().windows(2).all(|w| w[0].1 < w[1].0));
            for x in 0..80 {
                prop_assert_eq!(set.containing(x).is_some(), model.contains(&x));
            }
        }
    }
}
