//! The replicas of a multicast group on the fast path: egress runs once for each, in a loop, always from the
//! state that ingress left.
//!
//! Only programs whose egress requests nothing beyond leaving at a port, and always comes to its end, are
//! done here ([`crate::analysis::bailouts`]); the switch makes the replicas of the others. Each replica's
//! headers are written into its own memory, unless their length is not known before. The last replica takes
//! the packet itself, whose headers are replaced when the function has ended, since all other replicas are
//! made of it.

use super::wide::limbs_for;
use super::{Gen, Memory, Place, Slots, nth};
use crate::frame::{Frame, drop_code, exit};
use crate::shims::Shim;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    Block, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value,
};
use cranelift_frontend::Variable;
use engine::DropReason;
use engine::control::Replica;
use ir::Pipeline;
use std::mem::{offset_of, size_of};
use std::ops::Range;

/// Ranges of limbs of the state array, and the memory on the stack in which each is saved.
type Saved = Vec<(Range<usize>, StackSlot)>;

/// The replica for which egress is generated.
#[derive(Clone, Copy)]
pub(super) struct CurrentReplica {
    replica: Value,
    /// The address after the last replica.
    end: Value,
    /// The block that goes on with the next replica.
    next: Block,
}

impl Gen<'_, '_> {
    /// Generates a loop that runs egress and all code after it for each replica of the multicast group
    /// `group`, and the end of the packet's run. A group without replicas drops the packet.
    pub(super) fn replicate(&mut self, group: Value) {
        let program = self.program;
        let results = self.call_for_all(Shim::Replicas, &[group]);
        let (first, end) = (results[0], results[1]);
        let none = self.b.ins().icmp(IntCC::Equal, first, end);
        self.exit_if(
            none,
            exit::DROPPED + drop_code(DropReason::EmptyMulticastGroup),
        );

        let at = self.b.declare_var(I64);
        self.b.def_var(at, first);
        let kept = self.values_now();
        let saved = self.save_memory();
        let may_move = self.fast_path_mut().course.may_move;
        let again = self.b.create_block();
        self.b.ins().jump(again, &[]);
        self.b.switch_to_block(again);
        for &(variable, value) in &kept {
            self.b.def_var(variable, value);
        }
        self.restore_memory(&saved);
        let replica = self.b.use_var(at);
        self.start_replica(replica);
        let [next, done] = [(); 2].map(|()| self.b.create_block());
        let current = CurrentReplica { replica, end, next };
        self.fast_path_mut().course.replica = Some(current);
        self.control(program.main_control(Pipeline::EGRESS));
        self.fast_path_mut().course.replica = None;
        self.end_replica(&current);

        self.continue_in(next);
        let replica = self.b.use_var(at);
        let behind = (self.b.ins()).iadd_imm_u(replica, size_of::<Replica>() as i64);
        self.b.def_var(at, behind);
        let more = self.b.ins().icmp(IntCC::NotEqual, behind, end);
        self.b.ins().brif(more, again, &[], done, &[]);
        self.b.seal_block(again);
        self.continue_in(done);
        self.exit_with(exit::REPLICATED, None);
        self.fast_path_mut().course.may_move = may_move;
    }

    /// Generates the end of a replica's run right at an exit of egress. Returns false, with nothing
    /// generated, for packets that go to one port and within a loop.
    pub(super) fn replica_ends_here(&mut self) -> bool {
        let replica = self.fast_path.as_ref().and_then(|f| f.course.replica);
        let Some(replica) = replica.filter(|_| self.surroundings.loops == 0) else {
            return false;
        };
        let course = self.fast_path_mut().course;
        self.fast_path_mut().course.replica = None;
        let surroundings = self.surroundings.aside();
        self.end_replica(&replica);
        self.surroundings = surroundings;
        self.fast_path_mut().course = course;
        true
    }

    /// Generates the code after egress for one replica: it is dropped, or its checksums are computed and it
    /// is sent.
    fn end_replica(&mut self, current: &CurrentReplica) {
        let program = self.program;
        let dropped = self.is_dropped();
        let [drop, send] = [(); 2].map(|()| self.b.create_block());
        self.branch_on(dropped, drop, send, &[]);

        self.continue_in(drop);
        let count = self.frame_word(offset_of!(Frame, replicas_dropped));
        let count = self.b.ins().iadd_imm_u(count, 1);
        self.store_frame(offset_of!(Frame, replicas_dropped), count);
        self.b.ins().jump(current.next, &[]);

        self.continue_in(send);
        if self.known_value(dropped).is_none_or(|dropped| dropped == 0) {
            self.control(program.checksums(Pipeline::EGRESS));
            self.emit_replica(current);
        }
        self.b.ins().jump(current.next, &[]);
    }

    /// Generates code that emits a replica's headers and makes its packet.
    fn emit_replica(&mut self, current: &CurrentReplica) {
        let program = self.program;
        let behind = (self.b.ins()).iadd_imm_u(current.replica, size_of::<Replica>() as i64);
        let is_last = self.b.ins().icmp(IntCC::Equal, behind, current.end);
        let is_last = self.b.ins().uextend(I64, is_last);
        let port = self.fast_path_mut().port;
        let port = self.b.use_var(port);
        let arrival = self.burst.expect("only on the fast path").arrival;
        if self.facts().headers.emitted.is_none() {
            // The length of the headers is known once they are emitted.
            self.begin_emitting();
            self.control(program.deparser(Pipeline::EGRESS));
            self.store_emitted_len();
            self.call(Shim::ReplicaOfEmitted, &[arrival, port, is_last]);
            return;
        }
        let bytes = self.header_bytes();
        let args = [arrival, port, bytes, is_last];
        let headers = self.call(Shim::ReplicaRoom, &args);
        let headers = headers.expect("gives a result");
        self.set_emit_at(headers);
        self.emits_exactly = true;
        self.control(program.deparser(Pipeline::EGRESS));
        self.emits_exactly = false;
    }
}

impl Slots<'_, '_> {
    /// Returns all variables that egress may read, with their present values, with which each replica begins.
    fn values_now(&mut self) -> Vec<(Variable, Value)> {
        let mut variables = vec![self.cursor, self.fast_path_mut().moved];
        let port = self.facts().forwarding.port.index();
        let read = &self.analysis.egress.reads;
        for (i, place) in self.places.iter().enumerate() {
            if let Place::Values { first, .. } = *place
                && (read[i] || i == port)
            {
                let limbs = limbs_for(self.program.slots[i].width);
                variables.extend((0..limbs).map(|limb| nth(first, limb)));
            }
        }
        variables.extend(self.fast_path_mut().source_variables());
        let now = |variable| (variable, self.b.use_var(variable));
        variables.into_iter().map(now).collect()
    }

    fn start_replica(&mut self, replica: Value) {
        let flags = MemFlagsData::trusted();
        let (port_at, rid_at) = (offset_of!(Replica, port), offset_of!(Replica, rid));
        let port = self.b.ins().uload32(flags, replica, port_at as i32);
        let rid = (self.b.ins()).uload16(I64, flags, replica, rid_at as i32);
        let variable = self.fast_path_mut().port;
        self.b.def_var(variable, port);
        let facts = self.facts();
        if facts.bailouts.truncates {
            // The length that ingress truncates to does not concern replicas.
            let zero = self.imm(0);
            self.store_frame(offset_of!(Frame, truncate), zero);
        }
        let path = self.imm(facts.forwarding.replica_path);
        self.start_egress(port, rid, path);
    }
}

impl Memory<'_, '_> {
    /// Generates code that saves the parts of the state array that egress may change, so that they can be
    /// restored for each replica.
    fn save_memory(&mut self) -> Saved {
        let ranges = self.facts().bailouts.egress_memory.iter();
        ranges
            .map(|range| {
                let bytes =
                    StackSlotData::new(StackSlotKind::ExplicitSlot, 8 * range.len() as u32, 4);
                let saved = self.b.create_sized_stack_slot(bytes);
                let [to, from] = self.saved_addresses(range, saved);
                self.copy_limbs(from, to, range.len());
                (range.clone(), saved)
            })
            .collect()
    }

    fn restore_memory(&mut self, saved: &Saved) {
        for (range, saved) in saved {
            let [from, to] = self.saved_addresses(range, *saved);
            self.copy_limbs(from, to, range.len());
        }
    }

    /// Generates the address of the saved copy of a range of the state array, and the address of the range
    /// itself.
    fn saved_addresses(&mut self, range: &Range<usize>, saved: StackSlot) -> [Value; 2] {
        let saved = self.b.ins().stack_addr(I64, saved, 0);
        let state = (self.words.b.ins()).iadd_imm_u(self.state, 8 * range.start as i64);
        [saved, state]
    }
}
