//! The replicas of a multicast group on the fast path: egress once for each, in a loop, all from the state that ingress left.
//!
//! Only programs whose egress requests nothing beyond leaving at a port, and that always comes to its end, are done here
//! ([`crate::analysis::bailouts`]); the switch does it for the others. What is emitted for the replicas lies one behind the other, and
//! the packets are made of it when the function has ended: the packet as it came is needed until then.

use super::wide::limbs_for;
use super::{Gen, Place, nth};
use crate::frame::{Frame, SentReplica, drop_code, exit};
use crate::shims::Shim;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{
    InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, Value,
};
use cranelift_frontend::Variable;
use engine::DropReason;
use engine::control::Replica;
use std::mem::{offset_of, size_of};
use std::ops::Range;

/// Limbs of the state, and memory where they are kept.
type Saved = Vec<(Range<usize>, StackSlot)>;

impl Gen<'_, '_> {
    /// Runs what follows ingress for each replica of a group, and ends the function.
    pub(super) fn replicate(&mut self, group: Value) {
        let program = self.program;
        let results = self.call_for_all(Shim::Replicas, &[self.frame, group]);
        let (first, end) = (results[0], results[1]);
        let none = self.b.ins().icmp(IntCC::Equal, first, end);
        self.exit_if(
            none,
            exit::DROPPED + drop_code(DropReason::EmptyMulticastGroup),
        );

        let buffer = self.frame_word(offset_of!(Frame, emitted));
        let sent = self.frame_word(offset_of!(Frame, sent));
        let [at, sent_at] = [(); 2].map(|()| self.b.declare_var(I64));
        self.b.def_var(at, first);
        self.b.def_var(sent_at, sent);
        self.b.def_var(self.emit_at, buffer);
        let kept = self.values_now();
        let saved = self.save_memory();
        let may_move = self.fast_path_mut().may_move;
        let again = self.b.create_block();
        self.b.ins().jump(again, &[]);
        self.b.switch_to_block(again);
        for &(variable, value) in &kept {
            self.b.def_var(variable, value);
        }
        self.restore_memory(&saved);
        let replica = self.b.use_var(at);
        self.start_replica(replica);
        self.control(&program.egress);
        let dropped = self.is_dropped();
        let [drop, send, next, done] = [(); 4].map(|()| self.b.create_block());
        self.b.ins().brif(dropped, drop, &[], send, &[]);

        self.continue_in(drop);
        let count = self.frame_word(offset_of!(Frame, replicas_dropped));
        let count = self.b.ins().iadd_imm_u(count, 1);
        self.store_frame(offset_of!(Frame, replicas_dropped), count);
        self.b.ins().jump(next, &[]);

        self.continue_in(send);
        self.control(&program.compute_checksum);
        self.control(&program.deparser);
        self.note_sent(buffer, sent_at);
        self.b.ins().jump(next, &[]);

        self.continue_in(next);
        let replica = self.b.use_var(at);
        let behind = (self.b.ins()).iadd_imm_u(replica, size_of::<Replica>() as i64);
        self.b.def_var(at, behind);
        let more = self.b.ins().icmp(IntCC::NotEqual, behind, end);
        self.b.ins().brif(more, again, &[], done, &[]);
        self.b.seal_block(again);
        self.continue_in(done);
        let sent_end = self.b.use_var(sent_at);
        self.store_frame(offset_of!(Frame, sent_end), sent_end);
        self.store_emitted_len();
        self.exit_with(exit::REPLICATED, None);
        self.fast_path_mut().may_move = may_move;
    }

    /// A replica leaves with the headers that are emitted up to here. There is room to note it, and for the headers of all others.
    fn note_sent(&mut self, buffer: Value, sent_at: Variable) {
        let emitted = self.b.use_var(self.emit_at);
        let end = self.b.ins().isub(emitted, buffer);
        let port = self.fast_path_mut().port;
        let port = self.b.use_var(port);
        let truncate = match self.facts().bailouts.truncates {
            true => self.frame_word(offset_of!(Frame, truncate)),
            false => self.imm(0),
        };
        let sent = self.b.use_var(sent_at);
        for (word, offset) in [
            (port, offset_of!(SentReplica, port)),
            (end, offset_of!(SentReplica, end)),
            (truncate, offset_of!(SentReplica, truncate)),
        ] {
            (self.b.ins()).store(MemFlagsData::trusted(), word, sent, offset as i32);
        }
        let next = (self.b.ins()).iadd_imm_u(sent, size_of::<SentReplica>() as i64);
        self.b.def_var(sent_at, next);
    }

    /// All values that egress may change, to begin with for each replica.
    fn values_now(&mut self) -> Vec<(Variable, Value)> {
        let mut variables = vec![self.cursor, self.fast_path_mut().moved];
        for (i, place) in self.places.iter().enumerate() {
            if let Place::Values { first, .. } = *place {
                let limbs = limbs_for(self.program.slots[i].width);
                variables.extend((0..limbs).map(|limb| nth(first, limb)));
            }
        }
        variables.extend(self.fast_path_mut().source_variables());
        let now = |variable| (variable, self.b.use_var(variable));
        variables.into_iter().map(now).collect()
    }

    /// Keeps what egress may change in the state array.
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

    /// The addresses of what is kept, and of its place in the state array.
    fn saved_addresses(&mut self, range: &Range<usize>, saved: StackSlot) -> [Value; 2] {
        let saved = self.b.ins().stack_addr(I64, saved, 0);
        let state = (self.b.ins()).iadd_imm_u(self.state, 8 * range.start as i64);
        [saved, state]
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
