//! The toy of the tests: a packet leaves at the port that the program gives it, or is dropped.

use super::{
    AfterEgress, AfterIngress, EgressStart, EgressVerdict, IngressVerdict, PacketPath, Place, Rules,
};
use crate::Time;
use crate::exec::Intents;
use ir::architecture::toy::{DROP_PORT, Metadata};
use ir::{Program, SlotId};

#[derive(Debug)]
struct Toy(Metadata<Place>);

/// Makes the rules of the toy architecture for a program; `place` returns the position of a metadata slot in the
/// packet state.
pub(super) fn rules(program: &Program, place: &dyn Fn(SlotId) -> Place) -> Box<dyn Rules> {
    Box::new(Toy(Metadata::of(&program.architecture).map(place)))
}

impl Rules for Toy {
    fn arrive(&self, state: &mut [u64], port: u32, _bytes: usize) {
        self.0.arrival_port.set(state, port.into());
    }

    fn set_ingress_time(&self, _state: &mut [u64], _now_ps: Time) {}

    // No packet comes of another.
    fn derive(&self, _state: &mut [u64], _original: &[u64], _path: PacketPath, _bytes: usize) {}

    fn set_path(&self, _state: &mut [u64], _path: PacketPath) {}

    fn after_ingress(&self, state: &[u64], _intents: &Intents) -> IngressVerdict {
        let next = match self.0.departure_port.get(state) as u32 {
            DROP_PORT => AfterIngress::Drop,
            port => AfterIngress::Unicast(port),
        };
        IngressVerdict { clone: None, next }
    }

    fn priority(&self, _state: &[u64]) -> u8 {
        0
    }

    fn measures_in_egress(&self) -> bool {
        false
    }

    fn start_egress(&self, _state: &mut [u64], _start: &EgressStart, _bytes: usize) {}

    fn after_egress(&self, _state: &[u64], _intents: &Intents, _port: u32) -> EgressVerdict {
        let next = AfterEgress::Send;
        EgressVerdict { clone: None, next }
    }
}
