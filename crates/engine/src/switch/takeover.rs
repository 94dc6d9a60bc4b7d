//! A switch that takes the place of another one ([`crate::takeover`]).

use super::{Switch, SwitchConfig};
use crate::Time;
use crate::exec::Executor;
use crate::takeover::{TableFacts, Takeover};
use ir::TableId;
use std::mem::swap;
use std::sync::Arc;

impl Switch {
    /// Returns the number of entries and the default action, if it was changed, of each table, in the order of the
    /// program's tables. A [`Takeover`] is made from them.
    pub fn facts(&self) -> Vec<TableFacts> {
        let tables = self.program.tables.iter().zip(0..);
        let tables = tables.map(|(declared, number)| {
            let table = TableId(number);
            let note = self.runtime.attached(table, 0).note;
            let call = self.action_call(table, 0);
            let changed = call != declared.default_action || note.is_some();
            TableFacts {
                entries: self.runtime.table(table).len() as u64,
                default: changed.then_some((call, note)),
            }
        });
        tables.collect()
    }

    /// Replaces the executor, which must belong to the switch's program, and the configuration, as if the switch had
    /// been made with them. Random numbers begin anew with the new seed; all entries count as inserted at `now_ps`.
    pub fn settle(&mut self, executor: Arc<dyn Executor>, config: SwitchConfig, now_ps: Time) {
        self.executor = executor;
        self.config = config;
        self.runtime.seed(config.seed);
        self.runtime.set_now_ps(now_ps);
        self.runtime.restart_idle_timers();
    }

    /// Takes over, from the switch that this one replaces, the time, port states, drop counts, groups and sessions,
    /// and the objects that `takeover` lists. `former` gets the replaced objects, so that its owner can free them
    /// later.
    pub fn take_over(&mut self, former: &mut Switch, takeover: Takeover) {
        self.take_over_agent(former);
        self.drops = former.drops;
        swap(&mut self.replication, &mut former.replication);
        self.runtime.take_over(&mut former.runtime, takeover);
    }
}
