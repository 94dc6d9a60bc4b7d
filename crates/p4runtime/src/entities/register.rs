//! Cells of registers (specification, "RegisterEntry").

use super::EntityKind;
use super::array::{self, cell_of, index_message, modify_only};
use crate::answer::{Answer, Source};
use crate::messages::{self as m, messages};
use crate::pipeline::Pipeline;
use crate::plan::Plan;
use crate::served::Served;
use crate::transfer::{CELLS, Place, Transfer};
use crate::values::Type;
use engine::Switch;
use engine::control::{ControlError, Entity, Operation};
use engine::refuse;
use ir::{Bits, RegisterId};

messages! {
    RegisterEntry {
        id: u32 = (uint32) "1";
        index: Option<m::Index> = (message, optional) "2";
        data: Option<m::P4Data> = (message, optional) "3";
    }
}

impl Served for RegisterEntry {
    fn object_id(&self) -> u32 {
        self.id
    }

    fn plan(&self, pipeline: &Pipeline, operation: Operation) -> Result<Plan, ControlError> {
        let register = pipeline.info.registers.by_id(self.id)?;
        let what = || format!("register '{}'", register.name);
        modify_only(operation, what)?;
        let index = cell_of(self.index.as_ref(), register.size, what)?;
        let ty = register.ty.as_ref().map_err(Clone::clone)?;
        let value = ty.value_of(self.data.as_ref())?;
        let value = value.unwrap_or_else(|| Bits::zero(1));
        let width = pipeline.program.registers[register.number].width;
        let bits = value.bit_length();
        refuse!(
            bits > width => InvalidArgument,
            "{}: the value has {bits} bits and does not fit into {width}", what()
        );
        let entity = Entity::Register {
            register: RegisterId(register.number as u32),
            index,
            value: value.resize(width),
        };
        Ok(Plan::one(operation, entity))
    }

    fn answer(&self, source: &mut Source<'_>) -> Result<Answer, ControlError> {
        let registers = source.wanted(&source.pipeline.info.registers, self.id)?;
        let registers: Vec<_> = registers.collect();
        if let [register] = registers.as_slice()
            && self.id != 0
        {
            register.ty.as_ref().map_err(Clone::clone)?;
        }
        // Of all registers, those whose cells P4Runtime can carry.
        let arrays = registers.into_iter().filter(|it| it.ty.is_ok());
        let arrays = arrays.map(|it| (it.id, it.number, &*it.name, it.size));
        array::cells(self, "register", self.id, self.index.as_ref(), arrays)
    }
}

impl array::Array for RegisterEntry {
    type Cell = Bits;

    fn cell(switch: &Switch, number: u32, index: u64) -> Result<Bits, ControlError> {
        switch.read_register(RegisterId(number), index)
    }

    fn entity(&self, pipeline: &Pipeline, id: u32, index: u64, value: &Bits) -> EntityKind {
        let register = pipeline.info.registers.get(id);
        let ty = register.and_then(|register| register.ty.as_ref().ok());
        cell_entity(id, index, ty, value)
    }
}

fn cell_entity(id: u32, index: u64, ty: Option<&Type>, value: &Bits) -> EntityKind {
    EntityKind::Register(RegisterEntry {
        id,
        index: index_message(index),
        data: ty.map(|ty| ty.to_data(&value.resize(ty.width().max(1)))),
    })
}

/// Plans the updates that copy the cells of one of the old pipeline's registers, the one at position `at` in the
/// P4Info, from cell `from` on, to the switch with the new pipeline; none if the register is moved as a whole.
/// Returns the position and cell at which to continue, `None` after the last register. Fails if the cells cannot be
/// read in bounded time.
pub(super) fn transfer(
    transfer: &mut Transfer<'_>,
    switch: &Switch,
    (at, from): Place,
) -> Result<Option<Place>, ControlError> {
    let (old, moves) = (transfer.old, transfer.moves);
    let Some(register) = old.info.registers.list.get(at) else {
        return Ok(None);
    };
    if moves.has_register(register.number) {
        return Ok(Some((at + 1, 0)));
    }
    let id = RegisterId(register.number as u32);
    let (cells, next) = switch.registers_from(id, from, CELLS)?;
    for (index, value) in cells {
        let target = transfer.new.info.registers.by_id(register.id)?;
        let declared = transfer.new.program.registers.get(target.number);
        if declared.map_or(0, |declared| declared.width) != value.width() {
            let ty = register.ty.as_ref().ok();
            transfer.modify(cell_entity(register.id, index, ty, &value).served());
            continue;
        }
        let entity = Entity::Register {
            register: RegisterId(target.number as u32),
            index: Some(index),
            value,
        };
        transfer.update(Operation::Modify, entity);
    }
    Ok(Some(next.map_or((at + 1, 0), |next| (at, next))))
}
