//! The plan of a program that a switch needs to handle packet states: places of headers, and the functions of its architecture.

use crate::architecture::{EgressStart, PacketPath, Rules, rules};
use ir::{FieldListId, Layout, Program, SlotId};
use std::ops::Range;
use std::sync::Arc;

/// What the switch needs to know of a program: offsets, headers and the architecture's rules.
#[derive(Debug)]
pub(crate) struct Plan {
    program: Arc<Program>,
    layout: Layout,
    rules: Box<dyn Rules>,
    headers: Vec<HeaderPlan>,
    /// True if packets are deparsed between ingress and egress.
    deparses_between: bool,
}

/// Where a header is in the packet state.
#[derive(Clone, Debug)]
struct HeaderPlan {
    valid: SlotId,
    /// True if the deparser may emit it, so that it is part of the packet.
    emitted: bool,
    /// The limbs of all its slots, the validity's first.
    limbs: Vec<Range<usize>>,
    /// The sum of the widths of its fields of fixed width, in bits.
    fixed_bits: u64,
    /// The slot with the length of its varbit field, if there is one.
    varbit_length: Option<SlotId>,
}

impl Plan {
    pub(crate) fn new(program: &Arc<Program>) -> Plan {
        let layout = Layout::new(program);
        let headers = program.headers.iter().zip(program.emitted_headers());
        Plan {
            headers: headers
                .map(|(header, emitted)| HeaderPlan::new(header, emitted, program, &layout))
                .collect(),
            rules: rules(program, &layout),
            deparses_between: program.architecture.description().deparses_between(),
            program: program.clone(),
            layout,
        }
    }

    pub(crate) fn limbs(&self) -> usize {
        self.layout.limbs()
    }

    /// Returns the rules by which the program's architecture decides on packets.
    pub(crate) fn rules(&self) -> &dyn Rules {
        &*self.rules
    }

    /// Returns true if packets are deparsed between the pipelines, so that the second receives a packet's bytes and a few
    /// preserved fields instead of parsed headers.
    pub(crate) fn deparses_between(&self) -> bool {
        self.deparses_between
    }

    /// Writes the state of a packet that is made from another packet: its metadata, and the fields that `preserve`
    /// lists. The state must be zero before.
    pub(crate) fn derive(
        &self,
        state: &mut [u64],
        original: &[u64],
        preserve: Option<FieldListId>,
        path: PacketPath,
        bytes: usize,
    ) {
        self.preserve(state, original, preserve);
        self.rules.derive(state, original, path, bytes);
    }

    pub(crate) fn preserve(
        &self,
        state: &mut [u64],
        original: &[u64],
        preserve: Option<FieldListId>,
    ) {
        let list = preserve.and_then(|id| self.program.field_lists.get(id.index()));
        for &slot in list.into_iter().flat_map(|list| &list.slots) {
            self.copy(state, original, slot);
        }
    }

    fn copy(&self, state: &mut [u64], original: &[u64], slot: SlotId) {
        let at = self.layout.offset(slot);
        let limbs = at..at + self.layout.slot_limbs(slot);
        state[limbs.clone()].copy_from_slice(&original[limbs]);
    }

    pub(crate) fn copy_headers(&self, state: &mut [u64], original: &[u64]) {
        for limbs in self.headers.iter().flat_map(|h| &h.limbs) {
            state[limbs.clone()].copy_from_slice(&original[limbs.clone()]);
        }
    }

    /// Returns the total length in bytes of the packet's valid headers that the deparser emits.
    pub(crate) fn headers_bytes(&self, state: &[u64]) -> usize {
        let get = |slot: SlotId| self.layout.get_u64(state, slot);
        let own = self.headers.iter().filter(|h| h.emitted);
        own.filter(|h| get(h.valid) != 0)
            .map(|h| (h.fixed_bits + h.varbit_length.map_or(0, get)).div_ceil(8) as usize)
            .sum()
    }

    /// Writes the metadata with which a copy of a packet begins egress. Its length is calculated only if the program
    /// reads it there.
    pub(crate) fn start_egress(&self, state: &mut [u64], start: EgressStart) {
        let bytes = match self.rules.measures_in_egress() {
            true => self.headers_bytes(state) + start.payload_bytes,
            false => 0,
        };
        self.rules.start_egress(state, &start, bytes);
    }
}

impl HeaderPlan {
    fn new(header: &ir::Header, emitted: bool, program: &Program, layout: &Layout) -> HeaderPlan {
        let fields = header.fields.iter();
        let limbs = std::iter::once(header.valid)
            .chain(header.field_slots())
            .map(|slot| {
                let at = layout.offset(slot);
                at..at + layout.slot_limbs(slot)
            })
            .collect();
        HeaderPlan {
            valid: header.valid,
            emitted,
            limbs,
            fixed_bits: fields
                .clone()
                .filter(|f| f.varbit_length.is_none())
                .map(|f| u64::from(program.slots[f.slot.index()].width))
                .sum(),
            varbit_length: fields.clone().find_map(|f| f.varbit_length),
        }
    }
}
