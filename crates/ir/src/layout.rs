//! The place of each slot in the state array of a packet.
//!
//! The state of a packet between the blocks of the pipeline is one `[u64]`: each slot occupies whole limbs, least
//! significant limb first, unused high bits zero. The array is shared by both executors and by the engine, which reads
//! and writes the architecture's metadata in it.

use crate::{Bits, Program, SlotId};

/// The offset, in 64-bit limbs, of every slot of a program in the state array of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    offsets: Vec<u32>,
    widths: Vec<u32>,
    limbs: usize,
}

impl Layout {
    /// Assigns each slot of `program` its place in the state array, in the order of the slots' ids.
    pub fn new(program: &Program) -> Layout {
        let mut offsets = Vec::with_capacity(program.slots.len());
        let mut at = 0u32;
        for slot in &program.slots {
            offsets.push(at);
            at += slot.width.div_ceil(64);
        }
        Layout {
            offsets,
            widths: program.slots.iter().map(|s| s.width).collect(),
            limbs: at as usize,
        }
    }

    /// Returns the length of the state array in limbs of 64 bits.
    pub fn limbs(&self) -> usize {
        self.limbs
    }

    /// Returns the position, in the state array, of the least significant limb of `slot`.
    pub fn offset(&self, slot: SlotId) -> usize {
        self.offsets[slot.index()] as usize
    }

    /// Returns the number of limbs of 64 bits that `slot` occupies.
    pub fn slot_limbs(&self, slot: SlotId) -> usize {
        self.widths[slot.index()].div_ceil(64) as usize
    }

    /// Reads the value of `slot` from the state array.
    pub fn get(&self, state: &[u64], slot: SlotId) -> Bits {
        let at = self.offset(slot);
        Bits::from_limbs(
            self.widths[slot.index()],
            &state[at..at + self.slot_limbs(slot)],
        )
    }

    /// Writes `value`, which must have the slot's width, to `slot` in the state array.
    pub fn set(&self, state: &mut [u64], slot: SlotId, value: &Bits) {
        debug_assert_eq!(value.width(), self.widths[slot.index()]);
        let at = self.offset(slot);
        state[at..at + self.slot_limbs(slot)].copy_from_slice(value.limbs());
    }

    /// Reads the lowest 64 bits of `slot` from the state array.
    pub fn get_u64(&self, state: &[u64], slot: SlotId) -> u64 {
        state[self.offset(slot)]
    }

    /// Writes `value` to `slot`, which has at most 64 bits, in the state array. Cuts off bits beyond the
    /// slot's width.
    pub fn set_u64(&self, state: &mut [u64], slot: SlotId, value: u64) {
        let width = self.widths[slot.index()];
        debug_assert!(width <= 64);
        let mask = if width >= 64 {
            u64::MAX
        } else {
            (1 << width) - 1
        };
        state[self.offset(slot)] = value & mask;
    }
}
