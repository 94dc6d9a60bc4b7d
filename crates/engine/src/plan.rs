//! What the switch needs to know of a program to handle packet states: where the standard metadata and the headers are.

use ir::{FieldListId, Layout, Program, SlotId, StandardMetadata, Stmt};
use std::ops::Range;
use std::sync::Arc;

/// Picoseconds in a microsecond, the unit of v1model's timestamps.
const PS_PER_US: u64 = 1_000_000;

/// Offsets and lists drawn from a program.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    program: Arc<Program>,
    layout: Layout,
    standard: Places,
    headers: Vec<HeaderPlan>,
    /// Some code that runs in egress reads `packet_length`.
    egress_reads_length: bool,
}

/// Where a slot of at most 64 bits is.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: usize,
    mask: u64,
}

impl Place {
    fn new(slot: SlotId, program: &Program, layout: &Layout) -> Place {
        let width = program.slots[slot.index()].width;
        Place {
            offset: layout.offset(slot),
            mask: u64::MAX >> (64 - width.clamp(1, 64)),
        }
    }

    fn get(self, state: &[u64]) -> u64 {
        state[self.offset]
    }

    fn set(self, state: &mut [u64], value: u64) {
        state[self.offset] = value & self.mask;
    }

    fn copy(self, state: &mut [u64], original: &[u64]) {
        state[self.offset] = original[self.offset];
    }
}

/// The places of the standard metadata that the switch reads or writes.
#[derive(Clone, Copy, Debug)]
struct Places {
    ingress_port: Place,
    egress_spec: Place,
    egress_port: Place,
    instance_type: Place,
    packet_length: Place,
    enq_timestamp: Place,
    enq_qdepth: Place,
    deq_timedelta: Place,
    deq_qdepth: Place,
    ingress_global_timestamp: Place,
    egress_global_timestamp: Place,
    mcast_grp: Place,
    egress_rid: Place,
    priority: Place,
}

impl Places {
    fn new(standard: &StandardMetadata, program: &Program, layout: &Layout) -> Places {
        let place = |slot| Place::new(slot, program, layout);
        Places {
            ingress_port: place(standard.ingress_port),
            egress_spec: place(standard.egress_spec),
            egress_port: place(standard.egress_port),
            instance_type: place(standard.instance_type),
            packet_length: place(standard.packet_length),
            enq_timestamp: place(standard.enq_timestamp),
            enq_qdepth: place(standard.enq_qdepth),
            deq_timedelta: place(standard.deq_timedelta),
            deq_qdepth: place(standard.deq_qdepth),
            ingress_global_timestamp: place(standard.ingress_global_timestamp),
            egress_global_timestamp: place(standard.egress_global_timestamp),
            mcast_grp: place(standard.mcast_grp),
            egress_rid: place(standard.egress_rid),
            priority: place(standard.priority),
        }
    }
}

/// One header in the state.
#[derive(Clone, Debug)]
struct HeaderPlan {
    valid: SlotId,
    /// Whether it is part of the packet: the deparser may emit it.
    emitted: bool,
    /// All its slots, the validity first.
    limbs: Vec<Range<usize>>,
    /// Bits of the fields of fixed width.
    fixed_bits: u64,
    /// The slot with the length of its varbit.
    varbit_length: Option<SlotId>,
}

/// What a copy that begins egress is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EgressStart {
    pub now_ps: u64,
    pub enqueued_ps: u64,
    pub port: u32,
    pub rid: u16,
    pub priority: u8,
    pub enq_qdepth: u32,
    pub deq_qdepth: u32,
    /// Bytes of the packet that the parser did not take.
    pub payload_bytes: usize,
}

impl Plan {
    pub(crate) fn new(program: &Arc<Program>) -> Plan {
        let layout = Layout::new(program);
        let headers = program.headers.iter().zip(program.emitted_headers());
        Plan {
            headers: headers
                .map(|(header, emitted)| HeaderPlan::new(header, emitted, program, &layout))
                .collect(),
            egress_reads_length: egress_reads(program, program.standard.packet_length),
            standard: Places::new(&program.standard, program, &layout),
            program: program.clone(),
            layout,
        }
    }

    pub(crate) fn limbs(&self) -> usize {
        self.layout.limbs()
    }

    /// The standard metadata of a packet that arrives at a port. The state is zero.
    pub(crate) fn arrive(&self, state: &mut [u64], now_ps: u64, port: u32, bytes: usize) {
        self.standard.ingress_port.set(state, u64::from(port));
        self.standard.packet_length.set(state, bytes as u64);
        self.set_ingress_time(state, now_ps);
    }

    pub(crate) fn set_ingress_time(&self, state: &mut [u64], now_ps: u64) {
        let place = self.standard.ingress_global_timestamp;
        place.set(state, now_ps / PS_PER_US);
    }

    /// A clone's ingress time is the original's.
    pub(crate) fn keep_ingress_time(&self, state: &mut [u64], original: &[u64]) {
        self.standard.ingress_global_timestamp.copy(state, original);
    }

    /// The standard metadata of a packet made from another one, and what it preserves. The state is zero.
    pub(crate) fn derive(
        &self,
        state: &mut [u64],
        original: &[u64],
        preserve: Option<FieldListId>,
        instance_type: u64,
        bytes: usize,
    ) {
        self.preserve(state, original, preserve);
        self.standard.ingress_port.copy(state, original);
        self.standard.packet_length.set(state, bytes as u64);
        self.set_instance_type(state, instance_type);
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

    /// Bytes of the packet's valid headers.
    pub(crate) fn headers_bytes(&self, state: &[u64]) -> usize {
        let get = |slot: SlotId| self.layout.get_u64(state, slot);
        let own = self.headers.iter().filter(|h| h.emitted);
        own.filter(|h| get(h.valid) != 0)
            .map(|h| (h.fixed_bits + h.varbit_length.map_or(0, get)).div_ceil(8) as usize)
            .sum()
    }

    pub(crate) fn set_instance_type(&self, state: &mut [u64], instance_type: u64) {
        self.standard.instance_type.set(state, instance_type);
    }

    pub(crate) fn mcast_grp(&self, state: &[u64]) -> u32 {
        self.standard.mcast_grp.get(state) as u32
    }

    pub(crate) fn egress_spec(&self, state: &[u64]) -> u32 {
        self.standard.egress_spec.get(state) as u32
    }

    pub(crate) fn priority(&self, state: &[u64]) -> u8 {
        self.standard.priority.get(state) as u8
    }

    /// The standard metadata that a copy finds when it begins egress.
    pub(crate) fn start_egress(&self, state: &mut [u64], start: EgressStart) {
        let standard = self.standard;
        let waited_ps = start.now_ps.saturating_sub(start.enqueued_ps);
        standard.egress_port.set(state, u64::from(start.port));
        standard.egress_rid.set(state, u64::from(start.rid));
        standard.priority.set(state, u64::from(start.priority));
        // Anything but the drop port, so that only the egress control can drop.
        standard.egress_spec.set(state, 0);
        standard
            .egress_global_timestamp
            .set(state, start.now_ps / PS_PER_US);
        standard
            .enq_timestamp
            .set(state, start.enqueued_ps / PS_PER_US);
        standard.deq_timedelta.set(state, waited_ps / PS_PER_US);
        standard.enq_qdepth.set(state, u64::from(start.enq_qdepth));
        standard.deq_qdepth.set(state, u64::from(start.deq_qdepth));
        if self.egress_reads_length {
            let bytes = self.headers_bytes(state) + start.payload_bytes;
            standard.packet_length.set(state, bytes as u64);
        }
    }
}

impl HeaderPlan {
    fn new(header: &ir::Header, emitted: bool, program: &Program, layout: &Layout) -> HeaderPlan {
        let fields = header.fields.iter();
        let slots = fields.clone().flat_map(|f| [Some(f.slot), f.varbit_length]);
        let limbs = std::iter::once(header.valid)
            .chain(slots.flatten())
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

/// Whether code that may run in egress, or a list of preserved slots, mentions a slot.
fn egress_reads(program: &Program, slot: SlotId) -> bool {
    let controls = [
        &program.egress,
        &program.compute_checksum,
        &program.deparser,
    ];
    let actions = program.actions.iter().map(|a| &a.body);
    controls
        .into_iter()
        .chain(actions)
        .any(|body| block_reads(body, slot))
        || program
            .field_lists
            .iter()
            .any(|list| list.slots.contains(&slot))
}

fn block_reads(body: &[Stmt], slot: SlotId) -> bool {
    ir::statements(body).any(|stmt| stmt.kind.reads(&|read| read == slot))
}
