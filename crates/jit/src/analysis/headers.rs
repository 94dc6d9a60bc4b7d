//! Headers on the fast path: the bytes of the packet that it need not read, nor write when the packet leaves.
//!
//! A packet whose headers are those that were extracted, in the order of extraction, is edited where it lies. Whether that is
//! so is known at run time from a single bit, which is set by whatever could move a header; this module finds out what
//! that is, from the program alone and conservatively. It knows nothing of machine code.

use super::reparse::{Deparser, Reparse};
use super::usage::Usage;
use ir::{HeaderId, Pipeline, Program, SlotId, State, StateId, Stmt, StmtKind};

/// The place of a field in its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// The header.
    pub header: HeaderId,
    /// In bits, from the beginning of the header.
    pub offset: u32,
}

/// The headers of a program on the fast path.
#[derive(Clone, Debug)]
pub(crate) struct Headers {
    /// For each slot that is a field of a header without a varbit, the place of the field.
    homes: Vec<Option<Home>>,
    /// For each slot, true if it may be assigned.
    assigned: Vec<bool>,
    assigned_on_arrival: Vec<bool>,
    /// For each header, true if its validity does not change once the parser is done.
    settled: Vec<bool>,
    /// For each slot, true if it may be read after the parser, other than to be emitted.
    read_behind_parser: Vec<bool>,
    /// For each header, true if, whenever it is valid, it lies in the packet where it was last extracted,
    /// except for fields that were assigned.
    from_packet: Vec<bool>,
    /// For each header, true if it may be extracted.
    extracted: Vec<bool>,
    /// For each header, its position among the headers that its deparser emits.
    order: Vec<Option<usize>>,
    /// For each slot, the header whose validity it is.
    validity_of: Vec<Option<HeaderId>>,
    /// The headers in the order in which the last deparser emits them; `None` if that deparser emits a header
    /// twice, or, in a program that does not parse again in egress, does anything else than emit.
    pub emitted: Option<Vec<HeaderId>>,
}

impl Headers {
    /// Finds out, for every header and field of a program, what happens to it and where it lies.
    pub fn new(program: &Program, reparse: Option<&Reparse<'_>>) -> Headers {
        let arrival = Usage::of_arrival(program);
        let controls = [
            program.checksums(Pipeline::INGRESS),
            program.main_control(Pipeline::INGRESS),
            reparse.map_or(&[], |r| r.ingress.before),
            program.main_control(Pipeline::EGRESS),
            program.checksums(Pipeline::EGRESS),
            reparse.map_or(&[], |r| r.egress.before),
        ];
        let behind = Usage::of_stmts(program, &controls);
        let deparsers = [
            program.deparser(Pipeline::INGRESS),
            program.deparser(Pipeline::EGRESS),
        ];
        let deparsers = Usage::of_stmts(program, &deparsers);
        let all = arrival.clone().and(&behind).and(&deparsers);
        let emitted = match reparse {
            Some(reparse) => Some(reparse.egress.emits.clone()),
            None => emitted(program),
        };
        let mut order = vec![None; program.headers.len()];
        let by_ingress = reparse.map(|reparse| &reparse.ingress.emits);
        for emitted in [emitted.as_ref(), by_ingress].into_iter().flatten() {
            for (i, header) in emitted.iter().enumerate() {
                order[header.index()] = Some(i);
            }
        }
        let mut homes = vec![None; program.slots.len()];
        let mut from_packet = Vec::new();
        let mut validity_of = vec![None; program.slots.len()];
        let settled = (program.headers.iter()).map(|h| !behind.writes[h.valid.index()]);
        for (i, header) in program.headers.iter().enumerate() {
            let has_varbit = header.fields.iter().any(|f| f.varbit_length.is_some());
            let is_assigned = |slot: SlotId| all.assigned[slot.index()];
            let set = all.validated[i] || is_assigned(header.valid);
            from_packet.push(all.extracted[i] && !set && !has_varbit);
            let id = HeaderId(i as u32);
            validity_of[header.valid.index()] = Some(id);
            let mut offset = 0;
            for field in header.fields.iter().filter(|_| !has_varbit) {
                homes[field.slot.index()] = Some(Home { header: id, offset });
                offset += program.slots[field.slot.index()].width;
            }
        }
        Headers {
            homes,
            assigned: all.assigned,
            assigned_on_arrival: arrival.assigned,
            settled: settled.collect(),
            read_behind_parser: behind.reads,
            from_packet,
            extracted: all.extracted,
            order,
            validity_of,
            emitted,
        }
    }

    /// Returns the place of a field in its header; `None` if the header has a varbit, or the slot is no
    /// field.
    pub fn home(&self, slot: SlotId) -> Option<Home> {
        self.homes[slot.index()]
    }

    /// Returns true if a field always has the value that lies in the packet while its header is valid, and
    /// zero while the header is invalid. If `on_arrival` is true, only assignments before ingress are
    /// considered.
    pub fn is_unchanged(&self, slot: SlotId, on_arrival: bool) -> bool {
        let assigned = if on_arrival {
            &self.assigned_on_arrival
        } else {
            &self.assigned
        };
        let home = self.homes[slot.index()];
        home.is_some_and(|h| self.from_packet[h.header.index()]) && !assigned[slot.index()]
    }

    /// Returns true if a field has the value that lies in the packet, as [`Headers::is_unchanged`] defines
    /// it, from the packet's arrival to its departure.
    pub fn stays_in_packet(&self, slot: SlotId) -> bool {
        self.is_unchanged(slot, false)
    }

    /// Returns true if a field is to be edited in place: after the parser, if its header was extracted and is
    /// valid, the field lives in the packet itself, and assignments change the packet. This pays if only the
    /// deparser reads the field, since reading memory that has just been written in smaller pieces is slow.
    /// Until the parser is done, the field has the value with which the packet arrived.
    pub fn can_be_edited(&self, slot: SlotId) -> bool {
        let settled = |home: Home| self.settled[home.header.index()];
        self.emitted.is_some()
            && !self.read_behind_parser[slot.index()]
            && self.is_unchanged(slot, true)
            && self.homes[slot.index()].is_some_and(settled)
    }

    /// Returns true if some statement of the program may assign `slot`.
    pub fn is_assigned(&self, slot: SlotId) -> bool {
        self.assigned[slot.index()]
    }

    /// Returns true if a header, whenever it is valid, has been extracted from the packet and still lies
    /// there, except for fields that were assigned.
    pub fn is_from_packet(&self, header: HeaderId) -> bool {
        self.from_packet[header.index()]
    }

    /// Returns true if some parser state may extract a header.
    pub fn is_extracted(&self, header: HeaderId) -> bool {
        self.extracted[header.index()]
    }

    /// Returns true if a deparser may emit a header; always true if the order of emission is unknown.
    pub fn is_emitted(&self, header: HeaderId) -> bool {
        self.emitted.is_none() || self.order[header.index()].is_some()
    }

    /// Returns the header whose validity bit is `slot`, or `None` if `slot` is no header's validity bit.
    pub fn validity_of(&self, slot: SlotId) -> Option<HeaderId> {
        self.validity_of[slot.index()]
    }
}

/// Returns the headers that the deparser of egress emits, in order; `None` if that deparser does anything
/// else than emit, or emits a header twice.
fn emitted(program: &Program) -> Option<Vec<HeaderId>> {
    let deparser = Deparser::of(program.deparser(Pipeline::EGRESS))?;
    deparser.before.is_empty().then_some(deparser.emits)
}

/// Returns for each header whether extracting it in one of `states` makes it impossible to edit the packet in
/// place. That is so if it is extracted in a loop, within another statement, or in another order than that of
/// the deparser, or has a varbit and a field that is assigned.
pub(super) fn find_moves(program: &Program, states: &[State], headers: &Headers) -> Vec<bool> {
    let moves = program.headers.iter().map(|header| {
        let has_varbit = header.fields.iter().any(|f| f.varbit_length.is_some());
        has_varbit && header.field_slots().any(|slot| headers.is_assigned(slot))
    });
    let mut moves: Vec<bool> = moves.collect();
    let mut entries = vec![0; states.len()];
    for to in states.iter().flat_map(|state| state.transition.states()) {
        entries[to.index()] += 1;
    }
    // States in topological order; those on a cycle, or behind one, never become ready.
    let mut ready: Vec<usize> = (0..states.len()).filter(|&i| entries[i] == 0).collect();
    // The first place in the deparser that a header extracted next may have.
    let mut first_free = vec![0; states.len()];
    let mut done = vec![false; states.len()];
    while let Some(at) = ready.pop() {
        done[at] = true;
        let mut free = first_free[at];
        for stmt in &states[at].body {
            match &stmt.kind {
                StmtKind::Extract { header, .. } => match headers.order[header.index()] {
                    Some(place) if place >= free => free = place + 1,
                    _ => moves[header.index()] = true,
                },
                kind => (kind.inner().into_iter()).for_each(|body| move_all(body, &mut moves)),
            }
        }
        for to in states[at].transition.states().map(StateId::index) {
            first_free[to] = first_free[to].max(free);
            entries[to] -= 1;
            if entries[to] == 0 {
                ready.push(to);
            }
        }
    }
    for (state, _) in states.iter().zip(done).filter(|(_, done)| !done) {
        move_all(&state.body, &mut moves);
    }
    moves
}

fn move_all(body: &[Stmt], moves: &mut [bool]) {
    for stmt in ir::statements(body) {
        if let StmtKind::Extract { header, .. } = stmt.kind {
            moves[header.index()] = true;
        }
    }
}
