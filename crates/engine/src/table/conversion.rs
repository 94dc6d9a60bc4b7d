//! Records of a table's entries for a table with other actions: made beside the table, a slice of entries at a time.

use super::Table;
use super::records::Records;
use super::shape::Limbs;
use crate::Time;
use smallvec::smallvec;

/// Numbers of entries with their records, as [`Table::records_from`] copies them.
pub type RecordSlice = Vec<(u32, Limbs)>;

/// The records of a table's entries, converted to the form of another program's table.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// For each action of the old table, its position among the new table's actions; `None` if the new table lacks
    /// it.
    positions: Vec<Option<u32>>,
    /// True if the default action is converted too.
    with_default: bool,
    stride: usize,
    records: Records,
}

impl Conversion {
    /// Begins to convert the entries of a table for the table `target` of another program; if `with_default` is true,
    /// its default action too. `positions` contains, for each action of the old table, its position in `target`, or
    /// `None` if `target` does not have it with the same parameters.
    pub fn new(positions: Vec<Option<u32>>, with_default: bool, target: &Table) -> Conversion {
        Conversion {
            positions,
            with_default,
            stride: target.stride,
            records: Records::new(target.stride),
        }
    }

    /// Returns true if the entries can stay as they are: every action keeps its position, and the new table's records
    /// have `limbs` limbs, as the old table's.
    pub fn changes_nothing(&self, limbs: usize) -> bool {
        let mut positions = (0..).zip(&self.positions);
        self.stride == limbs && positions.all(|(at, new)| *new == Some(at))
    }

    /// Converts the records (action and arguments) of some entries, and keeps them. Fails with the old position of an
    /// action that an entry runs and the new table does not have.
    pub fn add(&mut self, slice: &RecordSlice) -> Result<(), u32> {
        for (entry, former) in slice {
            match entry {
                0 if !self.with_default => {}
                0 => self.records.set_default(&self.converted(former)?),
                _ => self.records.assign(*entry, &self.converted(former)?),
            }
        }
        Ok(())
    }

    fn converted(&self, former: &[u64]) -> Result<Limbs, u32> {
        let (head, args) = former.split_first().unwrap_or((&0, &[]));
        let (action, limbs) = (*head as u32, (head >> 32) as usize);
        let position = self.positions.get(action as usize).copied().flatten();
        let mut record: Limbs = smallvec![0; self.stride];
        record[0] = u64::from(position.ok_or(action)?) | (limbs as u64) << 32;
        record[1..=limbs].copy_from_slice(&args[..limbs]);
        Ok(record)
    }
}

impl Table {
    /// Sets the time of the last hit of all entries to `now_ps`, if the table has idle timeouts.
    pub fn hit_all(&mut self, now_ps: Time) {
        self.last_hit_ps.fill(now_ps);
    }

    /// Returns copies of the records (action and arguments) of the entries with numbers from `from` to below `from +
    /// most`, where 0 is the default action, and the number at which to continue, `None` at the end.
    pub fn records_from(&self, from: u32, most: u32) -> (RecordSlice, Option<u32>) {
        let numbers = self.numbers();
        let end = numbers.min(from.saturating_add(most.max(1)));
        let present = (from..end).filter(|&entry| entry == 0 || self.entries.contains(entry));
        let copied = present.map(|entry| (entry, Limbs::from_slice(self.records.get(entry))));
        (copied.collect(), (end < numbers).then_some(end))
    }

    /// Exchanges entries, counts and times of hits with a table of another program that has the same key and
    /// resources. The entries get the records of `conversion`, if there is one. The default action is exchanged only
    /// if `with_default`.
    pub fn exchange(
        &mut self,
        former: &mut Table,
        conversion: Option<Conversion>,
        with_default: bool,
    ) {
        let own = Limbs::from_slice(self.records.get(0));
        match conversion {
            Some(conversion) => self.records = conversion.records,
            None => std::mem::swap(&mut self.records, &mut former.records),
        }
        if !with_default {
            self.records.set_default(&own);
        }
        std::mem::swap(&mut self.matcher, &mut former.matcher);
        std::mem::swap(&mut self.entries, &mut former.entries);
        std::mem::swap(&mut self.next_sequence, &mut former.next_sequence);
        std::mem::swap(&mut self.counters, &mut former.counters);
        std::mem::swap(&mut self.last_hit_ps, &mut former.last_hit_ps);
    }
}
