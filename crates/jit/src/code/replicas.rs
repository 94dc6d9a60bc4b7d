//! The replicas of a multicast group on the fast path: egress once for each, in a loop, all from the values that ingress left.
//!
//! Only programs whose egress asks for nothing beyond leaving at a port, and that always comes to its end, are done here
//! ([`can_replicate`]); for the others the engine does it. What is emitted for the replicas lies one behind the other, and the
//! packets are made of it when the function has ended: the packet as it came is needed until then.

use super::fast_path::Exports;
use super::wide::limbs_for;
use super::{Gen, Place, nth};
use crate::frame::{Frame, drop_code, way};
use crate::memory::in_memory;
use crate::paths::statements_in_egress;
use crate::shims::Shim;
use crate::usage::Usage;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use cranelift_frontend::Variable;
use engine::control::Replica;
use ir::Program;
use ir::architecture::v1model::DROP_PORT;
use ir::architecture::v1model::instance_type;
use std::mem::{offset_of, size_of};

/// An egress of more statements than this, those of actions counted wherever they may run, is not generated once more.
const MAX_STATEMENTS: usize = 500;

/// Whether replicas can be made by the function of the fast path.
pub(super) fn can_replicate(program: &Program, egress: &Usage) -> bool {
    let asks = egress.clones || egress.repeats || egress.truncates || egress.ends_early;
    // What lies in memory would have to be restored for each.
    let writes_memory = (in_memory(program).iter().zip(&egress.writes))
        .any(|(&in_memory, &written)| written && in_memory);
    !asks && !writes_memory && statements_in_egress(program) <= MAX_STATEMENTS
}

impl Gen<'_, '_> {
    /// Runs what follows ingress for each replica of a group, and ends the function.
    pub(super) fn replicate(&mut self, group: Value, exports: &Exports) {
        let program = self.program;
        let results = self.call_for_all(Shim::Replicas, &[self.frame, group]);
        let (first, end) = (results[0], results[1]);
        let none = self.b.ins().icmp(IntCC::Equal, first, end);
        self.return_if(none, way::DROPPED + drop_code::EMPTY_GROUP);

        let buffer = self.frame_word(offset_of!(Frame, emitted));
        let at = self.b.declare_var(I64);
        self.b.def_var(at, first);
        self.b.def_var(self.emit_at, buffer);
        let kept = self.values_now();
        let may_move = self.fast_path_mut().may_move;
        let again = self.b.create_block();
        self.b.ins().jump(again, &[]);
        self.b.switch_to_block(again);
        for &(variable, value) in &kept {
            self.b.def_var(variable, value);
        }
        let replica = self.b.use_var(at);
        self.start_replica(replica, exports);
        self.control(&program.egress);
        let spec = self.read(self.standard().egress_spec).low();
        let drop_port = self.imm(DROP_PORT.into());
        let dropped = self.b.ins().icmp(IntCC::Equal, spec, drop_port);
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
        let emitted = self.b.use_var(self.emit_at);
        let port = self.fast_path_mut().port;
        let port = self.b.use_var(port);
        if let Some(place) = self.call(Shim::SendReplica, &[self.frame, port, emitted]) {
            self.b.def_var(self.emit_at, place);
        }
        self.b.ins().jump(next, &[]);

        self.continue_in(next);
        let replica = self.b.use_var(at);
        let behind = (self.b.ins()).iadd_imm_u(replica, size_of::<Replica>() as i64);
        self.b.def_var(at, behind);
        let more = self.b.ins().icmp(IntCC::NotEqual, behind, end);
        self.b.ins().brif(more, again, &[], done, &[]);
        self.b.seal_block(again);
        self.continue_in(done);
        self.return_way(way::REPLICATED, None);
        self.fast_path_mut().may_move = may_move;
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

    fn start_replica(&mut self, replica: Value, exports: &Exports) {
        let flags = MemFlagsData::trusted();
        let (port_at, rid_at) = (offset_of!(Replica, port), offset_of!(Replica, rid));
        let port = self.b.ins().uload32(flags, replica, port_at as i32);
        let rid = (self.b.ins()).uload16(I64, flags, replica, rid_at as i32);
        let variable = self.fast_path_mut().port;
        self.b.def_var(variable, port);
        let kind = self.imm(instance_type::REPLICATION);
        self.start_egress(exports, port, rid, kind);
    }
}
