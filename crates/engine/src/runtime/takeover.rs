//! The exchange of objects with the switch whose place another one takes ([`crate::takeover`]).

use super::Runtime;
use crate::random::Random;
use crate::takeover::{Pair, Takeover};
use ir::TableId;
use std::collections::BTreeSet;
use std::mem::swap;

fn exchange<T>(own: &mut [T], former: &mut [T], pairs: &[Pair]) {
    for &(old, new) in pairs {
        swap(&mut own[new], &mut former[old]);
    }
}

impl Runtime {
    /// Restarts the generator of random numbers with another seed.
    pub(crate) fn seed(&mut self, seed: u64) {
        self.random = Random::new(seed);
    }

    /// Restarts the idle timers of all entries, as if all were hit now, because the switch had no clock before.
    pub(crate) fn restart_idle_timers(&mut self) {
        let timed = self.program.tables.iter().zip(0..);
        let timed = timed.filter(|(table, _)| table.support_timeout);
        let timed: Vec<TableId> = timed.map(|(_, number)| TableId(number)).collect();
        for table in timed {
            let contents = &mut self.tables[table.index()];
            contents.hit_all(self.now_ps);
            for entry in 1..contents.numbers() {
                self.start_idle_timer(table, entry);
            }
        }
    }

    /// Exchanges the objects that `takeover` lists (tables, registers, counters, ...) with those of the switch that
    /// this one replaces; all others stay.
    pub(crate) fn take_over(&mut self, former: &mut Runtime, takeover: Takeover) {
        let mut ids = BTreeSet::new();
        for moved in takeover.tables {
            let (old, new) = (moved.old.index(), moved.new.index());
            let (from, to) = (&former.program.tables[old], &self.program.tables[new]);
            ids.insert(to.id);
            if let (Some(old), Some(new)) = (from.direct_meter, to.direct_meter) {
                swap(
                    &mut self.meters[new.index()],
                    &mut former.meters[old.index()],
                );
            }
            let contents = &mut former.tables[old];
            self.tables[new].exchange(contents, moved.conversion, moved.with_default);
            swap(&mut self.notes[new], &mut former.notes[old]);
            let attachments = (&mut self.attachments[new], &mut former.attachments[old]);
            if let (Some(own), Some(former)) = attachments
                && let (Some(own), Some(former)) =
                    (&mut own.implementation, &mut former.implementation)
            {
                swap(&mut own.bindings, &mut former.bindings);
            }
        }
        self.idle_timers.take_over(&mut former.idle_timers, &ids);
        exchange(&mut self.profiles, &mut former.profiles, &takeover.profiles);
        exchange(
            &mut self.registers,
            &mut former.registers,
            &takeover.registers,
        );
        exchange(&mut self.counters, &mut former.counters, &takeover.counters);
        exchange(&mut self.meters, &mut former.meters, &takeover.meters);
        exchange(
            &mut self.value_sets,
            &mut former.value_sets,
            &takeover.value_sets,
        );
        self.digests
            .exchange(&mut former.digests, &takeover.digests);
        self.random = former.random.clone();
        self.out_of_range = former.out_of_range;
    }
}
