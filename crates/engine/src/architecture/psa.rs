//! The Portable Switch Architecture: the program's requests are in its output metadata, and each pipeline has a deparser of its own, so
//! that all that egress knows of ingress is bytes and bridged metadata.
//!
//! # The pipeline of PSA
//!
//! The packet between ingress and egress is as ingress deparsed it; egress also knows bridged metadata. After ingress: a clone of the
//! packet as it arrived goes to egress; then, unless `drop` is set, the packet is resubmitted, replicated or sent to one port. After
//! egress: a clone of the packet as it was deparsed goes to egress; then, unless `drop` is set, the packet is recirculated if its port is
//! `PSA_PORT_RECIRCULATE`, else it leaves.

use super::{
    AfterEgress, AfterIngress, EgressStart, EgressVerdict, IngressVerdict, PacketPath, Place, Rules,
};
use crate::Time;
use crate::exec::Intents;
use ir::architecture::psa::{Metadata, PORT_RECIRCULATE, packet_path};
use ir::{Bridged, Program, SlotId};

/// The positions of PSA's metadata in the packet state.
#[derive(Clone, Copy, Debug)]
struct Psa(Metadata<Place>);

/// Makes the rules of PSA for a program; `place` returns the position of a metadata slot in the packet state.
pub(super) fn rules(program: &Program, place: &dyn Fn(SlotId) -> Place) -> Box<dyn Rules> {
    Box::new(Psa(Metadata::of(&program.architecture).map(place)))
}

fn set_all(places: &[Place], state: &mut [u64], value: u64) {
    places.iter().for_each(|place| place.set(state, value));
}

impl Rules for Psa {
    fn arrive(&self, state: &mut [u64], port: u32, _bytes: usize) {
        let ports = [self.0.ingress_parser_port, self.0.ingress_port];
        set_all(&ports, state, port.into());
        // Packets without a destination from the program are dropped.
        self.0.ingress_drop.set(state, 1);
    }

    fn set_ingress_time(&self, state: &mut [u64], now_ps: Time) {
        self.0.ingress_timestamp.set(state, now_ps.us());
    }

    fn derive(&self, state: &mut [u64], original: &[u64], path: PacketPath, bytes: usize) {
        let paths = [self.0.ingress_parser_path, self.0.ingress_path];
        match path {
            PacketPath::Resubmitted => {
                self.arrive(state, self.0.ingress_port.get(original) as u32, bytes);
                set_all(&paths, state, packet_path::RESUBMIT);
            }
            PacketPath::Recirculated => {
                self.arrive(state, PORT_RECIRCULATE, bytes);
                set_all(&paths, state, packet_path::RECIRCULATE);
            }
            _ => self.set_path(state, path),
        }
    }

    fn set_path(&self, state: &mut [u64], path: PacketPath) {
        let value = match path {
            PacketPath::Unicast => packet_path::NORMAL_UNICAST,
            PacketPath::Replica => packet_path::NORMAL_MULTICAST,
            PacketPath::IngressClone => packet_path::CLONE_I2E,
            PacketPath::EgressClone => packet_path::CLONE_E2E,
            PacketPath::Resubmitted => packet_path::RESUBMIT,
            PacketPath::Recirculated => packet_path::RECIRCULATE,
        };
        let paths = [self.0.egress_parser_path, self.0.egress_path];
        set_all(&paths, state, value);
    }

    fn after_ingress(&self, state: &[u64], _intents: &Intents) -> IngressVerdict {
        let is_set = |place: Place| place.get(state) != 0;
        let next = if is_set(self.0.ingress_drop) {
            AfterIngress::Drop
        } else if is_set(self.0.resubmit) {
            AfterIngress::Resubmit(Some(Bridged::Resubmitted.field_list()))
        } else if is_set(self.0.multicast_group) {
            AfterIngress::Multicast(self.0.multicast_group.get(state) as u32)
        } else {
            AfterIngress::Unicast(self.0.ingress_egress_port.get(state) as u32)
        };
        let session = self.0.ingress_clone_session.get(state) as u32;
        let request = (session, Some(Bridged::IngressClone.field_list()));
        let clone = is_set(self.0.ingress_clone).then_some(request);
        IngressVerdict { clone, next }
    }

    fn priority(&self, state: &[u64]) -> u8 {
        self.0.class_of_service.get(state) as u8
    }

    fn measures_in_egress(&self) -> bool {
        false
    }

    fn start_egress(&self, state: &mut [u64], start: &EgressStart, _bytes: usize) {
        let ports = [
            self.0.egress_parser_port,
            self.0.egress_port,
            self.0.egress_deparser_port,
        ];
        set_all(&ports, state, start.port.into());
        self.0.instance.set(state, start.rid.into());
        (self.0.egress_class_of_service).set(state, start.priority.into());
        self.0.egress_timestamp.set(state, start.now_ps.us());
    }

    fn after_egress(&self, state: &[u64], _intents: &Intents, port: u32) -> EgressVerdict {
        let is_set = |place: Place| place.get(state) != 0;
        let next = match (is_set(self.0.egress_drop), port) {
            (true, _) => AfterEgress::Drop,
            (false, PORT_RECIRCULATE) => {
                AfterEgress::Recirculate(Some(Bridged::Recirculated.field_list()))
            }
            (false, _) => AfterEgress::Send,
        };
        let session = self.0.egress_clone_session.get(state) as u32;
        let request = (session, Some(Bridged::EgressClone.field_list()));
        let clone = is_set(self.0.egress_clone).then_some(request);
        EgressVerdict { clone, next }
    }
}
