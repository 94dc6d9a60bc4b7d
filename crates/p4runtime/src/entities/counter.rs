//! Cells of counters (specification, "CounterEntry").

use super::EntityKind;
use super::array::{self, cell_of, index_message, modify_only};
use crate::answer::{Answer, Source};
use crate::encode::count_message;
use crate::errors::invalid;
use crate::messages::{self as m, messages};
use crate::pipeline::Pipeline;
use crate::plan::Plan;
use crate::served::Served;
use crate::transfer::{CELLS, Place, Transfer};
use engine::Switch;
use engine::control::{ControlError, Entity, Operation};
use engine::runtime::CounterData;
use ir::CounterId;

messages! {
    CounterEntry {
        id: u32 = (uint32) "1";
        index: Option<m::Index> = (message, optional) "2";
        data: Option<m::CounterData> = (message, optional) "3";
    }
}

impl Served for CounterEntry {
    fn object_id(&self) -> u32 {
        self.id
    }

    fn plan(&self, pipeline: &Pipeline, operation: Operation) -> Result<Plan, ControlError> {
        let counter = pipeline.info.counters.by_id(self.id)?;
        let what = || format!("counter '{}'", counter.name);
        modify_only(operation, what)?;
        let index = cell_of(self.index.as_ref(), counter.size, what)?;
        let Some(data) = &self.data else {
            return Ok(Plan::default());
        };
        let entity = Entity::Counter {
            counter: CounterId(counter.number as u32),
            index,
            data: counts(data)?,
        };
        Ok(Plan::one(operation, entity))
    }

    fn answer(&self, source: &mut Source<'_>) -> Result<Answer, ControlError> {
        let arrays = source.wanted(&source.pipeline.info.counters, self.id)?;
        let arrays = arrays.map(|it| (it.id, it.number, &*it.name, it.size));
        array::cells(self, "counter", self.id, self.index.as_ref(), arrays)
    }
}

impl array::Array for CounterEntry {
    type Cell = CounterData;

    fn cell(switch: &Switch, number: u32, index: u64) -> Result<CounterData, ControlError> {
        switch.read_counter(CounterId(number), index)
    }

    fn entity(&self, _: &Pipeline, id: u32, index: u64, data: &CounterData) -> EntityKind {
        cell_entity(id, index, *data)
    }
}

fn cell_entity(id: u32, index: u64, data: CounterData) -> EntityKind {
    EntityKind::Counter(CounterEntry {
        id,
        index: index_message(index),
        data: Some(count_message(data)),
    })
}

/// Plans the updates that copy the cells of one of the old pipeline's counters, the one at position `at` in the
/// P4Info, from cell `from` on, to the switch with the new pipeline; none if the counter is moved as a whole. Returns
/// the position and cell at which to continue, `None` after the last counter. Fails if the cells cannot be read in
/// bounded time.
pub(super) fn transfer(
    transfer: &mut Transfer<'_>,
    switch: &Switch,
    (at, from): Place,
) -> Result<Option<Place>, ControlError> {
    let (old, moves) = (transfer.old, transfer.moves);
    let Some(counter) = old.info.counters.list.get(at) else {
        return Ok(None);
    };
    if moves.has_counter(counter.number) {
        return Ok(Some((at + 1, 0)));
    }
    let id = CounterId(counter.number as u32);
    let (cells, next) = switch.counters_from(id, from, CELLS)?;
    for (index, data) in cells {
        transfer.modify(cell_entity(counter.id, index, data).served());
    }
    Ok(Some(next.map_or((at + 1, 0), |next| (at, next))))
}

pub(super) fn counts(data: &m::CounterData) -> Result<CounterData, ControlError> {
    let count = |count: i64| u64::try_from(count).map_err(|_| invalid("a counter is not negative"));
    Ok(CounterData {
        packets: count(data.packet_count)?,
        bytes: count(data.byte_count)?,
    })
}
