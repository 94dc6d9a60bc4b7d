//! When the fast path hands a packet over to the switch, and what the switch finds in the state array then.

use super::count_statements;
use super::usage::Usage;
use ir::{Forwarding, Layout, Pipeline, Program, SlotId};
use std::ops::Range;

/// The largest number of statements in an egress for which code is generated that runs it for each replica.
/// The statements of an action count at each table that has the action.
const MAX_REPLICA_STATEMENTS: usize = 500;

/// The most limbs of the state array that egress may write if the function is to make replicas.
const MAX_REPLICA_LIMBS: usize = 512;

/// The points at which the function of the fast path may end before the packet is done, and what it must
/// store for the switch, which goes on from there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bailouts {
    /// For each slot, true if it is stored when the function ends after ingress; `None` if it never ends
    /// there.
    pub after_ingress: Option<Vec<bool>>,
    /// For each slot, true if it is stored when the function ends after egress; `None` if it never ends
    /// there.
    pub after_egress: Option<Vec<bool>>,
    /// Egress can read the packet's length in bytes.
    pub measures: bool,
    /// A packet may be multicast.
    pub of_group: bool,
    /// The function makes the replicas of multicast groups.
    pub replicates: bool,
    /// The limbs of the state array that egress may write, to be restored for each replica.
    pub egress_memory: Vec<Range<usize>>,
    /// A clone may be requested.
    pub clones: bool,
    /// A resubmission or recirculation may be requested.
    pub repeats: bool,
    /// The packet may be truncated.
    pub truncates: bool,
}

impl Bailouts {
    /// Finds out at which points the fast path's function may end early, and which slots it writes to the
    /// state array there. `shared` marks the slots that the engine reads or writes between ingress and
    /// egress, `in_memory` those that live in the state array.
    pub fn new(
        program: &Program,
        forwarding: &Forwarding,
        layout: &Layout,
        [ingress, egress]: [&Usage; 2],
        shared: &[bool],
        in_memory: &[bool],
        measures: bool,
    ) -> Bailouts {
        let of_group = ingress.sets[forwarding.group.index()];
        // If egress parses again, it gets what the engine brings along.
        let parses_twice = program.parser_of(Pipeline::EGRESS).is_some();
        let both = shared.iter().zip(&egress.reads);
        let after_ingress = both.map(|(&shared, &read)| shared || read && !parses_twice);
        let egress_memory = written_limbs(layout, egress, in_memory);
        let replicates =
            of_group && !parses_twice && can_replicate(program, egress, &egress_memory);
        // Headers that ingress deparses may be too long for the packet's memory.
        let ends_after_ingress =
            ingress.clones || ingress.repeats || of_group && !replicates || parses_twice;
        let requested = |slot: &SlotId| egress.sets[slot.index()];
        let ends_after_egress = egress.clones
            || egress.repeats
            || program
                .architecture
                .description()
                .recirculation_port
                .is_some()
            || forwarding.egress_requests.iter().any(requested);
        Bailouts {
            after_ingress: ends_after_ingress.then(|| after_ingress.collect()),
            after_egress: ends_after_egress.then(|| shared.to_vec()),
            measures,
            of_group,
            replicates,
            egress_memory,
            clones: ingress.clones || egress.clones,
            repeats: ingress.repeats || egress.repeats,
            truncates: ingress.truncates || egress.truncates,
        }
    }

    /// Returns true if the packet's original headers are never needed again: the function ends early nowhere, and
    /// makes no replicas.
    pub fn needs_no_original(&self) -> bool {
        self.after_ingress.is_none() && self.after_egress.is_none() && !self.replicates
    }

    /// Returns true if the function of the fast path writes `slot` to the state array at some point where it
    /// may end early.
    pub fn contains(&self, slot: usize) -> bool {
        let lists = [&self.after_ingress, &self.after_egress];
        lists.into_iter().flatten().any(|list| list[slot])
    }
}

/// Returns true if the function of the fast path can run egress once for each replica of a multicast packet:
/// egress requests no clone, resubmission or recirculation, never ends early, and is not too large. `memory`
/// is what egress may write of the state array.
fn can_replicate(program: &Program, egress: &Usage, memory: &[Range<usize>]) -> bool {
    let bails_out = egress.clones || egress.repeats || egress.ends_early;
    let controls = [
        program.main_control(Pipeline::EGRESS),
        program.checksums(Pipeline::EGRESS),
        program.deparser(Pipeline::EGRESS),
    ];
    let statements: usize = controls.iter().map(|c| count_statements(program, c)).sum();
    let limbs: usize = memory.iter().map(Range::len).sum();
    !bails_out && statements <= MAX_REPLICA_STATEMENTS && limbs <= MAX_REPLICA_LIMBS
}

/// Returns the ranges of limbs of the state array that egress may write. Only slots that `in_memory` marks
/// live there.
fn written_limbs(layout: &Layout, egress: &Usage, in_memory: &[bool]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for i in (0..in_memory.len()).filter(|&i| in_memory[i] && egress.writes[i]) {
        let slot = SlotId(i as u32);
        let at = layout.offset(slot);
        let end = at + layout.slot_limbs(slot);
        match ranges.last_mut() {
            Some(last) if last.end == at => last.end = end,
            _ => ranges.push(at..end),
        }
    }
    ranges
}
