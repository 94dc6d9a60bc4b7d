//! The slots of a function: where each lives, and how it is read and written.

use super::EntryPoint;
use super::fast_path::FastPath;
use super::memory::{Memory, constant_memory};
use super::wide::{Limbs, Wide};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData};
use cranelift_frontend::Variable;
use ir::{Bits, BlockId, Pipeline, SlotId};

/// The place of a slot in one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Nowhere: the function does not touch it, or nothing reads what it writes.
    Unused,
    /// Nowhere: it is always zero.
    Zero,
    /// In the packet, where its header was extracted.
    InPacket,
    /// In the packet, with assignments written there, while its header is valid.
    EditedInPacket,
    /// In the state array, and nobody writes it while the function runs.
    ReadOnly,
    /// In the state array.
    Memory,
    /// In consecutive variables from this one, one per limb.
    Values {
        /// The variable of the least significant limb.
        first: Variable,
        /// Assignments also go to the state array.
        exported: bool,
    },
}

/// The slots of the function, and the headers that are in the packet.
pub(crate) struct Slots<'a, 'f> {
    pub(super) memory: Memory<'a, 'f>,
    pub(super) places: Vec<Place>,
    /// The state of generation of the fast path, in its functions.
    pub(super) fast_path: Option<FastPath>,
}

impl<'a, 'f> Slots<'a, 'f> {
    pub(super) fn new(memory: Memory<'a, 'f>) -> Slots<'a, 'f> {
        Slots {
            memory,
            places: Vec::new(),
            fast_path: None,
        }
    }
}

impl Slots<'_, '_> {
    pub(super) fn place_slots(&mut self) {
        let (program, analysis) = (self.program, self.analysis);
        let usage = match self.entry_point {
            EntryPoint::Ingress => &analysis.ingress,
            EntryPoint::Parse => &analysis.parser,
            _ => &analysis.egress,
        };
        let is_egress = self.entry_point == EntryPoint::Egress;
        let zero = self.imm(0);
        for i in 0..program.slots.len() {
            let exported = analysis.shared[i] || !is_egress && analysis.egress.reads[i];
            let imported = analysis.shared[i] || is_egress;
            let place = match (usage.reads[i], usage.writes[i]) {
                (false, false) => Place::Unused,
                (false, true) if !exported => Place::Unused,
                (true, false) => Place::ReadOnly,
                _ if analysis.in_memory[i] => Place::Memory,
                _ => self.declare_values(SlotId(i as u32), imported, exported, zero),
            };
            self.places.push(place);
        }
        for variable in [self.cursor, self.steps, self.emit_at] {
            self.b.def_var(variable, zero);
        }
    }

    /// Generates a read of the present value of a slot.
    pub(super) fn read(&mut self, slot: SlotId) -> Wide {
        if matches!(
            self.places[slot.index()],
            Place::InPacket | Place::EditedInPacket
        ) {
            return self.reload_from_packet(slot);
        }
        let limbs: Limbs = (0..self.layout.slot_limbs(slot))
            .map(|i| match self.places[slot.index()] {
                Place::Zero | Place::InPacket | Place::EditedInPacket => self.imm(0),
                Place::Unused | Place::ReadOnly => self.load_state(slot, i, constant_memory()),
                Place::Memory => self.load_state(slot, i, MemFlagsData::trusted()),
                Place::Values { first, .. } => self.b.use_var(nth(first, i)),
            })
            .collect();
        Wide::new(self.width(slot), limbs)
    }

    /// Generates the assignment of a value to a slot, and records on the fast path if that moves headers.
    pub(super) fn write(&mut self, slot: SlotId, value: &Wide) {
        self.note_assignment(slot);
        self.put(slot, value);
    }

    /// Returns true if a value written to the slot is stored anywhere.
    pub(super) fn keeps(&self, slot: SlotId) -> bool {
        !matches!(self.places[slot.index()], Place::Unused | Place::InPacket)
    }

    /// Generates code that stores a value at the place where the slot lives; nothing if it is not kept.
    pub(super) fn put(&mut self, slot: SlotId, value: &Wide) {
        debug_assert_eq!(value.width, self.width(slot));
        let place = self.places[slot.index()];
        if place == Place::EditedInPacket {
            return self.store_at_source(slot, value);
        }
        if place == Place::Memory {
            self.note_memory(&value.limbs);
        }
        for (i, &limb) in value.limbs.iter().enumerate() {
            let to_state = match place {
                Place::Values { first, exported } => {
                    self.b.def_var(nth(first, i), limb);
                    exported
                }
                Place::Memory => true,
                Place::Unused
                | Place::ReadOnly
                | Place::Zero
                | Place::InPacket
                | Place::EditedInPacket => false,
            };
            if to_state {
                self.store_limb(slot, i, limb);
            }
        }
    }

    /// Generates the assignment of zero to a slot.
    pub(super) fn clear(&mut self, slot: SlotId) {
        if self.places[slot.index()] == Place::EditedInPacket {
            // Its header becomes invalid.
            return;
        }
        if let Place::Values {
            first,
            exported: false,
        } = self.places[slot.index()]
        {
            // The same zero: then it is one value where paths meet.
            let mut limbs = 0..self.layout.slot_limbs(slot);
            if limbs.all(|i| {
                let limb = self.b.use_var(nth(first, i));
                self.known_value(limb) == Some(0)
            }) {
                return;
            }
        }
        let width = self.width(slot);
        let zero = self.constant(&ir::Bits::zero(width));
        self.put(slot, &zero);
    }

    /// Generates code that makes a header valid or invalid, without changing its fields.
    pub(super) fn put_validity(&mut self, header: ir::HeaderId, valid: bool) {
        let value = self.small_constant(1, valid.into());
        self.put(self.program.headers[header.index()].valid, &value);
    }

    /// Returns the pipeline whose code is being generated.
    pub(super) fn pipeline(&self) -> Pipeline {
        match (self.entry_point, &self.fast_path) {
            (EntryPoint::Egress, _) => Pipeline::EGRESS,
            (_, Some(fast_path)) => fast_path.half(),
            _ => Pipeline::INGRESS,
        }
    }

    /// Generates code that ends the function if the packet is dropped after `block`, as the architecture says
    /// by the value of a slot.
    pub(super) fn stop_if_dropped(&mut self, block: BlockId) {
        let Some((slot, value)) = self.program.architecture.drops_after(block) else {
            return;
        };
        let left = self.read(slot);
        let drops = self.constant(&Bits::from_u64(left.width, value));
        let dropped = self.equal(&left, &drops);
        let (stop, next) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(dropped, stop, &[], next, &[]);
        self.continue_in(stop);
        self.b.ins().return_(&[]);
        self.continue_in(next);
    }
}

/// Returns the variable that holds limb `i` of the slot whose first variable is `first`: a slot's variables
/// are declared together.
pub(super) fn nth(first: Variable, i: usize) -> Variable {
    Variable::from_u32(first.as_u32() + i as u32)
}
