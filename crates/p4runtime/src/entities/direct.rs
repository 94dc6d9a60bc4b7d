//! Direct counters and meters of table entries (specification, "DirectCounterEntry" and "DirectMeterEntry").

use super::array::modify_only;
use super::counter::counts;
use super::meter::{check_reset, configured, meter_config};
use super::selection::{Form, select};
use super::table::check_default_key;
use crate::answer::{Answer, Source};
use crate::entries::Key;
use crate::errors::invalid;
use crate::info::{MeterType, Table};
use crate::messages::{self as m, messages};
use crate::pipeline::Pipeline;
use crate::plan::Plan;
use crate::served::Served;
use engine::control::{ControlError, Entity, Operation};
use engine::meter::MeterConfig;
use engine::refuse;
use engine::runtime::CounterData;

messages! {
    DirectMeterEntry {
        table_entry: Option<m::TableEntry> = (message, optional) "1";
        config: Option<m::MeterConfig> = (message, optional) "2";
        counter_data: Option<m::MeterCounterData> = (message, optional) "3";
    }
    DirectCounterEntry {
        table_entry: Option<m::TableEntry> = (message, optional) "1";
        data: Option<m::CounterData> = (message, optional) "2";
    }
}

impl Served for Box<DirectCounterEntry> {
    fn object_id(&self) -> u32 {
        table_id(&self.table_entry)
    }

    fn plan(&self, pipeline: &Pipeline, operation: Operation) -> Result<Plan, ControlError> {
        let form = Form::DirectCounter;
        let (table, key) = entry_key(pipeline, operation, self.table_entry.as_ref(), form)?;
        let data = self.data.as_ref().map(counts).transpose()?;
        let key = key.ok_or_else(|| no_default(table, form))?;
        Ok(Plan::one(operation, direct_counter(key, data)))
    }

    fn answer(&self, source: &mut Source<'_>) -> Result<Answer, ControlError> {
        read(&self.table_entry, Form::DirectCounter, source)
    }
}

impl Served for Box<DirectMeterEntry> {
    fn object_id(&self) -> u32 {
        table_id(&self.table_entry)
    }

    fn plan(&self, pipeline: &Pipeline, operation: Operation) -> Result<Plan, ControlError> {
        let form = Form::DirectMeter(false);
        let (table, key) = entry_key(pipeline, operation, self.table_entry.as_ref(), form)?;
        let what = || format!("the direct meter of {}", table.label);
        check_reset(self.counter_data.as_ref(), &what)?;
        let ty = table.direct_meter.map_or(MeterType::TwoRates, |(_, ty)| ty);
        let config = self.config.as_ref();
        let config = config.map(|config| meter_config(config, ty, &what));
        let config = config.transpose()?;
        let key = key.ok_or_else(|| no_default(table, form))?;
        let meter = |config| direct_meter(key.clone(), config);
        Ok(configured(self.counter_data.is_some(), config, meter))
    }

    fn answer(&self, source: &mut Source<'_>) -> Result<Answer, ControlError> {
        let form = Form::DirectMeter(self.counter_data.is_some());
        read(&self.table_entry, form, source)
    }
}

fn table_id(entry: &Option<m::TableEntry>) -> u32 {
    entry.as_ref().map_or(0, |entry| entry.table_id)
}

/// Returns the table of a direct resource, and the key of its entry, `None` for the default entry. Fails unless the
/// update modifies a resource that the table has.
fn entry_key<'a>(
    pipeline: &'a Pipeline,
    operation: Operation,
    entry: Option<&m::TableEntry>,
    form: Form,
) -> Result<(&'a Table, Option<Key>), ControlError> {
    let what = form.resource();
    let entry =
        entry.ok_or_else(|| invalid(format!("the direct {what} entry has no table entry")))?;
    let table = pipeline.info.tables.by_id(entry.table_id)?;
    let label = &table.label;
    modify_only(operation, || format!("the direct {what} of {label}"))?;
    refuse!(!form.is_of(table) => InvalidArgument, "{label} has no direct {what}");
    if entry.is_default_action {
        check_default_key(label, entry)?;
        return Ok((table, None));
    }
    Ok((table, Some(table.key(entry)?)))
}

fn no_default(table: &Table, form: Form) -> ControlError {
    let (label, what) = (&table.label, form.resource());
    invalid(format!("{label}: the default entry has no direct {what}"))
}

fn read(
    entry: &Option<m::TableEntry>,
    form: Form,
    source: &mut Source<'_>,
) -> Result<Answer, ControlError> {
    let mut entry = entry.clone().unwrap_or_default();
    // Ignored, says the message's own comment.
    entry.action = None;
    if entry.table_id != 0 {
        let table = source.pipeline.info.tables.by_id(entry.table_id)?;
        let (id, what) = (table.id, form.resource());
        refuse!(!form.is_of(table) => InvalidArgument, "table {id} has no direct {what}");
    }
    let mut answer = select(&entry, form, source)?;
    answer.must_find = !entry.matches.is_empty();
    Ok(answer)
}

pub(super) fn direct_meter((table, matches, priority): Key, config: Option<MeterConfig>) -> Entity {
    Entity::DirectMeter {
        table,
        matches,
        priority,
        config,
    }
}

pub(super) fn direct_counter((table, matches, priority): Key, data: Option<CounterData>) -> Entity {
    Entity::DirectCounter {
        table,
        matches,
        priority,
        data,
    }
}
