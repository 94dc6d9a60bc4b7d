//! The decisions of an architecture before, between and after the ingress and egress pipelines: small functions over the metadata, one
//! implementation per architecture. [`crate::switch`] carries out the decisions; [`ir::architecture`] declares the blocks and the
//! metadata. Nothing here copies a packet or knows a multicast group.

use crate::Time;
use crate::exec::Intents;
use ir::{FieldListId, Layout, Program, SlotId};
use std::fmt;

macro_rules! rooms {
    ($($(#[$only:meta])* $room:ident),*) => {
        $($(#[$only])* mod $room;)*

        /// The names of the architectures, each with the function that makes its rules.
        const ROOMS: &[(&str, RulesOf)] = &[
            $($(#[$only])* (ir::architecture::$room::DESCRIPTION.name, $room::rules)),*
        ];
    };
}
ir::architectures!(rooms);

/// Picoseconds in a microsecond, the unit of timestamps.
const PS_PER_US: u64 = 1_000_000;

/// The path by which a packet came to the block that begins: it is the received packet or a copy of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PacketPath {
    /// Sent by ingress to the egress of one port.
    Unicast,
    /// One of the replicas of a multicast group.
    Replica,
    /// It was cloned from ingress.
    IngressClone,
    /// It was cloned from egress.
    EgressClone,
    /// It was resubmitted.
    Resubmitted,
    /// It was recirculated.
    Recirculated,
}

/// The position in the packet state of a slot of at most 64 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    offset: usize,
    mask: u64,
}

impl Place {
    pub(crate) fn new(slot: SlotId, program: &Program, layout: &Layout) -> Place {
        let width = program.slots[slot.index()].width;
        Place {
            offset: layout.offset(slot),
            mask: u64::MAX >> (64 - width.clamp(1, 64)),
        }
    }

    pub(crate) fn get(self, state: &[u64]) -> u64 {
        state[self.offset]
    }

    pub(crate) fn set(self, state: &mut [u64], value: u64) {
        state[self.offset] = value & self.mask;
    }

    pub(crate) fn copy(self, state: &mut [u64], original: &[u64]) {
        state[self.offset] = original[self.offset];
    }
}

/// The properties of a packet, or copy, that begins egress; they become metadata.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EgressStart {
    pub now_ps: Time,
    pub enqueued_ps: Time,
    pub port: u32,
    pub rid: u16,
    pub priority: u8,
    pub enq_qdepth: u32,
    pub deq_qdepth: u32,
    /// The bytes of the packet behind what the parser extracted.
    pub payload_bytes: usize,
}

/// The clone session, and the field list whose fields the clone keeps.
pub(crate) type CloneRequest = (u32, Option<FieldListId>);

/// What is done with a packet after ingress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IngressVerdict {
    /// The clone that the program requested, if any.
    pub clone: Option<CloneRequest>,
    /// What is done with the packet itself.
    pub next: AfterIngress,
}

/// What is done with a packet itself, besides its clone, after ingress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterIngress {
    /// It is resubmitted: parsed again as it arrived, keeping the fields of this list.
    Resubmit(Option<FieldListId>),
    /// It goes to the egress of each port of this multicast group.
    Multicast(u32),
    /// It is dropped.
    Drop,
    /// It goes to the egress of this port.
    Unicast(u32),
}

/// What is done with a packet after egress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EgressVerdict {
    /// The clone that the program requested, if any.
    pub clone: Option<CloneRequest>,
    /// What is done with the packet itself.
    pub next: AfterEgress,
}

/// What is done with a packet itself, besides its clone, after egress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterEgress {
    /// It is dropped.
    Drop,
    /// It is recirculated: parsed again as it was deparsed, keeping the fields of this list.
    Recirculate(Option<FieldListId>),
    /// It leaves at its port.
    Send,
}

/// The functions of an architecture. A state is laid out by [`ir::Layout`].
pub(crate) trait Rules: Send + Sync + fmt::Debug {
    /// Writes the metadata of a packet of `bytes` bytes that arrives at `port`. The rest of the state is zero.
    fn arrive(&self, state: &mut [u64], port: u32, bytes: usize);

    /// Writes the time at which a packet enters ingress into its metadata.
    fn set_ingress_time(&self, state: &mut [u64], now_ps: Time);

    /// Writes the metadata of a packet that is made from another packet (a clone, a resubmitted or recirculated
    /// packet), whose state is `original`. Before, `state` is zero except for fields that the new packet keeps from
    /// the original.
    fn derive(&self, state: &mut [u64], original: &[u64], path: PacketPath, bytes: usize);

    /// Writes into the metadata why the copy that begins egress exists (unicast, replica, clone, ...).
    fn set_path(&self, state: &mut [u64], path: PacketPath);

    /// Decides from the state and the program's requests what happens to a packet after ingress.
    fn after_ingress(&self, state: &[u64], intents: &Intents) -> IngressVerdict;

    /// Returns the priority of the queue between ingress and egress in which a packet waits.
    fn priority(&self, state: &[u64]) -> u8;

    /// Returns true if the program reads the packet's length in egress, so that [`Rules::start_egress`] must be given
    /// it.
    fn measures_in_egress(&self) -> bool;

    /// Writes the metadata with which a copy of `bytes` bytes begins egress.
    fn start_egress(&self, state: &mut [u64], start: &EgressStart, bytes: usize);

    /// Decides what happens after egress to the copy that was to leave at `port`.
    fn after_egress(&self, state: &[u64], intents: &Intents, port: u32) -> EgressVerdict;
}

/// Makes the functions of an architecture for a program, with the places of its slots.
type RulesOf = fn(&Program, &dyn Fn(SlotId) -> Place) -> Box<dyn Rules>;

/// Returns the architecture-specific functions for a program, with its layout of slots. Panics if the engine has none
/// for the program's architecture, which no compiled program has.
pub(crate) fn rules(program: &Program, layout: &Layout) -> Box<dyn Rules> {
    let place = |slot| Place::new(slot, program, layout);
    let name = program.architecture.description().name;
    let room = ROOMS.iter().find(|(known, _)| *known == name);
    room.expect("each architecture has its rules").1(program, &place)
}
