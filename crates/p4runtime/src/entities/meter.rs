//! Cells of meters (specification, "MeterEntry"), and configurations of all meters.

use super::EntityKind;
use super::array::{self, cell_of, index_message, modify_only};
use crate::answer::{Answer, Source};
use crate::encode::{colours_message, config_message};
use crate::errors::invalid;
use crate::info::MeterType;
use crate::messages::{self as m, messages};
use crate::pipeline::Pipeline;
use crate::plan::{Plan, modify};
use crate::served::Served;
use crate::transfer::{CELLS, Place, Transfer};
use engine::Switch;
use engine::control::{ControlError, Entity, Operation};
use engine::meter::MeterConfig;
use engine::refuse;
use engine::runtime::CounterData;
use ir::MeterId;

messages! {
    MeterEntry {
        id: u32 = (uint32) "1";
        index: Option<m::Index> = (message, optional) "2";
        config: Option<m::MeterConfig> = (message, optional) "3";
        counter_data: Option<m::MeterCounterData> = (message, optional) "4";
    }
}

impl Served for MeterEntry {
    fn object_id(&self) -> u32 {
        self.id
    }

    fn plan(&self, pipeline: &Pipeline, operation: Operation) -> Result<Plan, ControlError> {
        let array = pipeline.info.meters.by_id(self.id)?;
        let what = || format!("meter '{}'", array.name);
        modify_only(operation, what)?;
        let index = cell_of(self.index.as_ref(), array.size, what)?;
        check_reset(self.counter_data.as_ref(), &what)?;
        let config = self.config.as_ref();
        let config = config.map(|config| meter_config(config, array.meter, &what));
        let meter = MeterId(array.number as u32);
        let cell = |config| Entity::Meter {
            meter,
            index,
            config,
        };
        Ok(configured(
            self.counter_data.is_some(),
            config.transpose()?,
            cell,
        ))
    }

    fn answer(&self, source: &mut Source<'_>) -> Result<Answer, ControlError> {
        let arrays = source.wanted(&source.pipeline.info.meters, self.id)?;
        let arrays = arrays.map(|it| (it.id, it.number, &*it.name, it.size));
        array::cells(self, "meter", self.id, self.index.as_ref(), arrays)
    }
}

impl array::Array for MeterEntry {
    type Cell = (Option<MeterConfig>, Option<[CounterData; 3]>);

    fn cell(switch: &Switch, number: u32, index: u64) -> Result<Self::Cell, ControlError> {
        let counts = switch.read_meter_counts(MeterId(number), index)?;
        Ok((switch.read_meter(MeterId(number), index)?, counts))
    }

    fn entity(
        &self,
        _: &Pipeline,
        id: u32,
        index: u64,
        (config, counts): &Self::Cell,
    ) -> EntityKind {
        let counted = self.counter_data.is_some();
        EntityKind::Meter(MeterEntry {
            id,
            index: index_message(index),
            config: config.map(config_message),
            counter_data: counted.then(|| colours_message(*counts)),
        })
    }
}

/// Plans the updates that copy the configurations of cells of one of the old pipeline's meters, the one at position
/// `at` in the P4Info, from cell `from` on, to the switch with the new pipeline; none if the meter is moved as a
/// whole. Returns the position and cell at which to continue, `None` after the last meter.
pub(super) fn transfer(
    transfer: &mut Transfer<'_>,
    switch: &Switch,
    (at, from): Place,
) -> Result<Option<Place>, ControlError> {
    let (old, moves) = (transfer.old, transfer.moves);
    let Some(meter) = old.info.meters.list.get(at) else {
        return Ok(None);
    };
    if moves.has_meter(meter.number) {
        return Ok(Some((at + 1, 0)));
    }
    let id = MeterId(meter.number as u32);
    let (cells, next) = switch.meters_from(id, from, CELLS)?;
    for (index, config) in cells {
        transfer.modify(
            EntityKind::Meter(MeterEntry {
                id: meter.id,
                index: index_message(index),
                config: Some(config_message(config)),
                counter_data: None,
            })
            .served(),
        );
    }
    Ok(Some(next.map_or((at + 1, 0), |next| (at, next))))
}

/// Plans the updates that give a meter the configuration `config`, where `meter` makes the entity for a
/// configuration. If `resets`, the old configuration is removed first, and with it the counts of packets per colour.
pub(super) fn configured(
    resets: bool,
    config: Option<MeterConfig>,
    meter: impl Fn(Option<MeterConfig>) -> Entity,
) -> Plan {
    let reset = resets.then(|| modify(meter(None)));
    let updates = reset.into_iter().chain([modify(meter(config))]);
    Plan::of(updates.collect())
}

/// Checks that the `MeterCounterData` of a write, if there is any, sets the counts to zero, the only change that is
/// allowed. Otherwise fails with INVALID_ARGUMENT; `what` names the meter in the message.
pub(super) fn check_reset(
    data: Option<&m::MeterCounterData>,
    what: &dyn Fn() -> String,
) -> Result<(), ControlError> {
    let Some(data) = data else {
        return Ok(());
    };
    let mut colours = [&data.green, &data.yellow, &data.red].into_iter().flatten();
    refuse!(
        colours.any(|count| count.packet_count != 0 || count.byte_count != 0) => InvalidArgument,
        "{}: the counters of a meter can only be set to zero", what()
    );
    Ok(())
}

/// Converts the configuration of a meter. The engine marks with two rates and three colours (RFC 2698). A single rate
/// with two colours is the special case of equal rates and bursts; so is a single rate with three colours (RFC 2697)
/// if there is no excess burst. Fails with INVALID_ARGUMENT for negative numbers and for two different rates in a
/// single-rate meter, with UNIMPLEMENTED for an excess burst; `what` names the meter in the message.
pub(super) fn meter_config(
    message: &m::MeterConfig,
    ty: MeterType,
    what: &dyn Fn() -> String,
) -> Result<MeterConfig, ControlError> {
    let rate = |name: &str, rate: i64| {
        u64::try_from(rate).map_err(|_| invalid(format!("{}: {name} is negative", what())))
    };
    let config = MeterConfig {
        cir: rate("cir", message.cir)?,
        cburst: rate("cburst", message.cburst)?,
        pir: rate("pir", message.pir)?,
        pburst: rate("pburst", message.pburst)?,
    };
    let excess = rate("eburst", message.eburst)?;
    if ty != MeterType::TwoRates {
        refuse!(
            (config.cir, config.cburst) != (config.pir, config.pburst) => InvalidArgument,
            "{}: it has a single rate, so pir and pburst are cir and cburst", what()
        );
        refuse!(
            excess != 0 && ty == MeterType::SingleRateThreeColours => Unimplemented,
            "{}: excess bursts (RFC 2697) are not supported", what()
        );
    }
    refuse!(excess != 0 => InvalidArgument, "{}: it has no excess burst (eburst)", what());
    Ok(config)
}
