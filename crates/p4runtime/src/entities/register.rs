//! Cells of registers (specification, "RegisterEntry").

use super::array::{self, cell_of, index_message, modify_only};
use super::{EntityKind, Served};
use crate::messages::{self as m, messages};
use crate::pipeline::Pipeline;
use crate::read::{Answer, Source};
use crate::state::Transfer;
use crate::values::Type;
use crate::write::Plan;
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

pub(super) fn transfer(transfer: &mut Transfer<'_>, switch: &Switch) -> Result<(), ControlError> {
    let (old, moves) = (transfer.old, transfer.moves);
    let registers = old.info.registers.list.iter();
    for register in registers.filter(|it| !moves.has_register(it.number)) {
        let id = RegisterId(register.number as u32);
        let listed = switch.nonzero_registers(id)?;
        for at in listed.unwrap_or_else(|| (0..register.size).collect()) {
            let value = switch.read_register(id, at)?;
            if value.is_zero() {
                continue;
            }
            let target = transfer.new.info.registers.by_id(register.id)?;
            let declared = transfer.new.program.registers.get(target.number);
            if declared.map_or(0, |declared| declared.width) != value.width() {
                let ty = register.ty.as_ref().ok();
                transfer.modify(cell_entity(register.id, at, ty, &value));
                continue;
            }
            let entity = Entity::Register {
                register: RegisterId(target.number as u32),
                index: Some(at),
                value,
            };
            transfer.update(Operation::Modify, entity);
        }
    }
    Ok(())
}
