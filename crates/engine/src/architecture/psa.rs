//! The Portable Switch Architecture: what the program asks for is in its output metadata, and each half has a deparser of its own, so
//! that all that egress knows of ingress is bytes and bridged metadata.

use super::{
    AfterEgress, AfterIngress, EgressStart, EgressVerdict, IngressVerdict, PS_PER_US, PacketPath,
    Place, Rules,
};
use crate::exec::Intents;
use ir::architecture::psa::{Metadata, PORT_RECIRCULATE, packet_path};
use ir::{Bridged, SlotId};

/// The places of the metadata that the switch reads or writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Psa {
    /// As the parser and as the control are told.
    ingress_port: [Place; 2],
    ingress_path: [Place; 2],
    ingress_timestamp: Place,
    class_of_service: Place,
    ingress_clone: Place,
    ingress_clone_session: Place,
    ingress_drop: Place,
    resubmit: Place,
    multicast_group: Place,
    ingress_egress_port: Place,
    egress_class_of_service: Place,
    /// As the parser, the control and the deparser are told.
    egress_port: [Place; 3],
    egress_path: [Place; 2],
    instance: Place,
    egress_timestamp: Place,
    egress_clone: Place,
    egress_clone_session: Place,
    egress_drop: Place,
}

fn set_all(places: &[Place], state: &mut [u64], value: u64) {
    places.iter().for_each(|place| place.set(state, value));
}

impl Psa {
    pub(super) fn new(metadata: &Metadata, place: &dyn Fn(SlotId) -> Place) -> Psa {
        Psa {
            ingress_port: [metadata.ingress_parser_port, metadata.ingress_port].map(place),
            ingress_path: [metadata.ingress_parser_path, metadata.ingress_path].map(place),
            ingress_timestamp: place(metadata.ingress_timestamp),
            class_of_service: place(metadata.class_of_service),
            ingress_clone: place(metadata.ingress_clone),
            ingress_clone_session: place(metadata.ingress_clone_session),
            ingress_drop: place(metadata.ingress_drop),
            resubmit: place(metadata.resubmit),
            multicast_group: place(metadata.multicast_group),
            ingress_egress_port: place(metadata.ingress_egress_port),
            egress_class_of_service: place(metadata.egress_class_of_service),
            egress_port: [
                metadata.egress_parser_port,
                metadata.egress_port,
                metadata.egress_deparser_port,
            ]
            .map(place),
            egress_path: [metadata.egress_parser_path, metadata.egress_path].map(place),
            instance: place(metadata.instance),
            egress_timestamp: place(metadata.egress_timestamp),
            egress_clone: place(metadata.egress_clone),
            egress_clone_session: place(metadata.egress_clone_session),
            egress_drop: place(metadata.egress_drop),
        }
    }
}

impl Rules for Psa {
    fn arrive(&self, state: &mut [u64], port: u32, _bytes: usize) {
        set_all(&self.ingress_port, state, port.into());
        // What the program does not say a destination for is dropped.
        self.ingress_drop.set(state, 1);
    }

    fn set_ingress_time(&self, state: &mut [u64], now_ps: u64) {
        self.ingress_timestamp.set(state, now_ps / PS_PER_US);
    }

    fn derive(&self, state: &mut [u64], original: &[u64], path: PacketPath, bytes: usize) {
        match path {
            PacketPath::Resubmitted => {
                self.arrive(state, self.ingress_port[0].get(original) as u32, bytes);
                set_all(&self.ingress_path, state, packet_path::RESUBMIT);
            }
            PacketPath::Recirculated => {
                self.arrive(state, PORT_RECIRCULATE, bytes);
                set_all(&self.ingress_path, state, packet_path::RECIRCULATE);
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
        set_all(&self.egress_path, state, value);
    }

    fn after_ingress(&self, state: &[u64], _intents: &Intents) -> IngressVerdict {
        let is_set = |place: Place| place.get(state) != 0;
        let next = if is_set(self.ingress_drop) {
            AfterIngress::Drop
        } else if is_set(self.resubmit) {
            AfterIngress::Resubmit(Some(Bridged::Resubmitted.field_list()))
        } else if is_set(self.multicast_group) {
            AfterIngress::Multicast(self.multicast_group.get(state) as u32)
        } else {
            AfterIngress::Unicast(self.ingress_egress_port.get(state) as u32)
        };
        let session = self.ingress_clone_session.get(state) as u32;
        let request = (session, Some(Bridged::IngressClone.field_list()));
        let clone = is_set(self.ingress_clone).then_some(request);
        IngressVerdict { clone, next }
    }

    fn priority(&self, state: &[u64]) -> u8 {
        self.class_of_service.get(state) as u8
    }

    fn measures_in_egress(&self) -> bool {
        false
    }

    fn start_egress(&self, state: &mut [u64], start: &EgressStart, _bytes: usize) {
        set_all(&self.egress_port, state, start.port.into());
        self.instance.set(state, start.rid.into());
        (self.egress_class_of_service).set(state, start.priority.into());
        self.egress_timestamp.set(state, start.now_ps / PS_PER_US);
    }

    fn after_egress(&self, state: &[u64], _intents: &Intents, port: u32) -> EgressVerdict {
        let is_set = |place: Place| place.get(state) != 0;
        let next = match (is_set(self.egress_drop), port) {
            (true, _) => AfterEgress::Drop,
            (false, PORT_RECIRCULATE) => {
                AfterEgress::Recirculate(Some(Bridged::Recirculated.field_list()))
            }
            (false, _) => AfterEgress::Send,
        };
        let session = self.egress_clone_session.get(state) as u32;
        let request = (session, Some(Bridged::EgressClone.field_list()));
        let clone = is_set(self.egress_clone).then_some(request);
        EgressVerdict { clone, next }
    }
}
