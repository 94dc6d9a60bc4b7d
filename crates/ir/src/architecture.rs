//! Architectures: the surroundings of the blocks of a program, as data.
//!
//! A [`Description`] says which package a program is, which blocks it has and what each of their parameters is; an [`Architecture`] says
//! in which slots a program has the architecture's metadata. The compiler reads descriptions to recognise and bind a program, both
//! executors read which blocks there are and where errors go. Each architecture is one file here, one in `engine::architecture` (what
//! happens between ingress and egress) and one in `compile` (its externs). Nothing here knows how packets are copied.

pub mod psa;
pub mod v1model;

use crate::{FieldListId, SlotId};
pub use v1model::StandardMetadata;

/// The slots and widths of an architecture's metadata, by the name of each field in its include file.
macro_rules! metadata {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident = $text:literal : $width:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<S = $crate::SlotId> {
            $($(#[$field_doc])* pub $field: S,)*
        }

        impl<S: Copy> $name<S> {
            /// Calls `each` for every slot of the metadata, and returns the results in place of the slots.
            pub fn map<T>(&self, mut each: impl FnMut(S) -> T) -> $name<T> {
                $name { $($field: each(self.$field),)* }
            }
        }

        impl $name {
            /// Makes the metadata from the slots that `slot` returns for the names of the fields, called in
            /// the order of declaration. `Err` is the first error of `slot`.
            pub fn from_names<E>(
                mut slot: impl FnMut(&'static str) -> Result<$crate::SlotId, E>,
            ) -> Result<$name, E> {
                Ok($name { $($field: slot($text)?,)* })
            }

            /// Returns the name, the slot and the width in bits of each field, in the order of declaration.
            pub fn fields(&self) -> Vec<(&'static str, $crate::SlotId, u32)> {
                vec![$(($text, self.$field, $width)),*]
            }
        }
    };
}
use metadata;

/// The slots of a program with the metadata of its architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// v1model.
    V1Model(v1model::StandardMetadata),
    /// The Portable Switch Architecture.
    Psa(psa::Metadata),
}

impl Architecture {
    /// All architectures.
    pub const ALL: [&'static Description; 2] = [&v1model::DESCRIPTION, &psa::DESCRIPTION];

    /// Makes the architecture with the given description, with the slots that `slot` returns for the names
    /// of its metadata. `Err` is the first error of `slot`.
    pub fn from_names<E>(
        description: &Description,
        slot: impl FnMut(&'static str) -> Result<SlotId, E>,
    ) -> Result<Architecture, E> {
        match description.name {
            psa::NAME => psa::Metadata::from_names(slot).map(Architecture::Psa),
            _ => v1model::StandardMetadata::from_names(slot).map(Architecture::V1Model),
        }
    }

    /// Returns the description of the architecture.
    pub fn description(&self) -> &'static Description {
        match self {
            Architecture::V1Model(_) => &v1model::DESCRIPTION,
            Architecture::Psa(_) => &psa::DESCRIPTION,
        }
    }

    /// Returns the name, the slot and the width in bits of each metadata field, in the order of declaration.
    pub fn fields(&self) -> Vec<(&'static str, SlotId, u32)> {
        match self {
            Architecture::V1Model(standard) => standard.fields(),
            Architecture::Psa(metadata) => metadata.fields(),
        }
    }

    /// Returns the slot in which the parser of `pipeline` stores its error, in
    /// [`ERROR_WIDTH`](crate::ERROR_WIDTH) bits.
    pub fn parser_error(&self, pipeline: Pipeline) -> SlotId {
        match self {
            Architecture::V1Model(standard) => standard.parser_error,
            Architecture::Psa(metadata) => match pipeline {
                Pipeline::Ingress => metadata.ingress_parser_error,
                Pipeline::Egress => metadata.egress_parser_error,
            },
        }
    }

    /// Returns the slots that contain times, such as that of the packet's arrival, and differences of times.
    pub fn times(&self) -> Vec<SlotId> {
        match self {
            Architecture::V1Model(standard) => vec![
                standard.ingress_global_timestamp,
                standard.egress_global_timestamp,
                standard.enq_timestamp,
                standard.deq_timedelta,
            ],
            Architecture::Psa(metadata) => {
                vec![metadata.ingress_timestamp, metadata.egress_timestamp]
            }
        }
    }

    /// Returns the slots that describe the queue between ingress and egress: its lengths and the packet's
    /// times in it.
    pub fn queue_data(&self) -> Vec<SlotId> {
        match self {
            Architecture::V1Model(standard) => vec![
                standard.enq_qdepth,
                standard.deq_qdepth,
                standard.enq_timestamp,
                standard.deq_timedelta,
            ],
            Architecture::Psa(_) => Vec::new(),
        }
    }

    /// Returns the slot with which a program chooses one of the queues of a port; `None` in an architecture
    /// without such a slot.
    pub fn priority(&self) -> Option<SlotId> {
        match self {
            Architecture::V1Model(standard) => Some(standard.priority),
            Architecture::Psa(_) => None,
        }
    }

    /// Returns the slots that decide where a packet goes and whether it is dropped, cloned or parsed again.
    pub fn decisions(&self) -> Vec<SlotId> {
        match self {
            Architecture::V1Model(standard) => {
                vec![standard.egress_spec, standard.mcast_grp, standard.priority]
            }
            Architecture::Psa(metadata) => vec![
                metadata.class_of_service,
                metadata.ingress_clone,
                metadata.ingress_clone_session,
                metadata.ingress_drop,
                metadata.resubmit,
                metadata.multicast_group,
                metadata.ingress_egress_port,
                metadata.egress_clone,
                metadata.egress_clone_session,
                metadata.egress_drop,
            ],
        }
    }

    /// Returns how packets are forwarded from port to port.
    pub fn forwarding(&self) -> Forwarding {
        match self {
            Architecture::V1Model(standard) => standard.forwarding(),
            Architecture::Psa(metadata) => metadata.forwarding(),
        }
    }

    /// Returns a slot and a value: if the slot has that value after the egress control, the packet is
    /// dropped before anything else is done with it. `None` in an architecture without such a slot.
    pub fn egress_drop(&self) -> Option<(SlotId, u64)> {
        match self {
            Architecture::V1Model(standard) => {
                Some((standard.egress_spec, v1model::DROP_PORT.into()))
            }
            Architecture::Psa(_) => None,
        }
    }
}

/// A value that an architecture gives to a slot of its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The port of arrival.
    ArrivalPort,
    /// Length of the packet in bytes.
    PacketBytes,
    /// The time in microseconds.
    NowUs,
    /// The port to leave at.
    OutputPort,
    /// The number of a replica.
    ReplicaId,
    /// Why there is this copy.
    PacketPath,
    /// The class of its queue.
    Priority,
    /// Packets in the queue when it was enqueued.
    EnqueuedBehind,
    /// Packets in the queue when it left.
    DequeuedBefore,
    /// When it was enqueued, in microseconds.
    EnqueuedUs,
    /// Its time in the queue, in microseconds.
    WaitedUs,
    /// Zero.
    Zero,
    /// One.
    One,
}

/// A slot with one of its values.
pub type SlotValue = (SlotId, u64);

/// The forwarding of packets from port to port, as far as it is not copied: what the slots of the metadata are given and mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// The values that a packet is given at its arrival.
    pub arrival: Vec<(SlotId, Input)>,
    /// The values that a copy is given at the beginning of egress.
    pub egress: Vec<(SlotId, Input)>,
    /// The slot with the port to leave at.
    pub port: SlotId,
    /// What drops a packet behind ingress.
    pub ingress_drop: SlotValue,
    /// What drops a packet behind egress.
    pub egress_drop: SlotValue,
    /// The slot with the multicast group, which counts before the port; 0 is none.
    pub group: SlotId,
    /// Slots that, unless zero behind ingress, request more than a port: a clone, or another round.
    pub ingress_requests: Vec<SlotId>,
    /// The same behind egress.
    pub egress_requests: Vec<SlotId>,
    /// A packet that leaves at this port goes to the parser again.
    pub recirculation_port: Option<u64>,
    /// The slot with the class of a packet's queue.
    pub priority: SlotId,
    /// The packet path of a packet that goes to one port.
    pub unicast_path: u64,
    /// The packet path of a replica.
    pub replica_path: u64,
}

impl Forwarding {
    /// Returns the slot that receives `input` when a packet arrives; `None` if no slot does.
    pub fn arrival_slot(&self, input: Input) -> Option<SlotId> {
        let mut slots = self.arrival.iter();
        slots
            .find(|&&(_, given)| given == input)
            .map(|&(slot, _)| slot)
    }
}

/// One of the two pipelines of an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pipeline {
    /// From arrival to the traffic manager.
    Ingress,
    /// From there to departure.
    Egress,
}

impl Pipeline {
    /// Returns the name of the pipeline: `ingress` or `egress`.
    pub fn name(self) -> &'static str {
        match self {
            Pipeline::Ingress => "ingress",
            Pipeline::Egress => "egress",
        }
    }
}

/// A block of a pipeline, in the order in which a packet meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Block {
    /// The parser of what arrives.
    Parser,
    /// The control that checks checksums.
    VerifyChecksum,
    /// The ingress control.
    Ingress,
    /// The deparser in front of the traffic manager.
    IngressDeparser,
    /// The parser behind the traffic manager.
    EgressParser,
    /// The egress control.
    Egress,
    /// The control that updates checksums.
    ComputeChecksum,
    /// The deparser of what leaves.
    Deparser,
}

impl Block {
    /// The controls among them.
    pub const CONTROLS: [Block; 6] = [
        Block::VerifyChecksum,
        Block::Ingress,
        Block::IngressDeparser,
        Block::Egress,
        Block::ComputeChecksum,
        Block::Deparser,
    ];

    /// Returns the pipeline to which the block belongs.
    pub fn pipeline(self) -> Pipeline {
        match self < Block::EgressParser {
            true => Pipeline::Ingress,
            false => Pipeline::Egress,
        }
    }

    /// Returns the name of the block, such as `verify_checksum`.
    pub fn name(self) -> &'static str {
        match self {
            Block::Parser => "parser",
            Block::VerifyChecksum => "verify_checksum",
            Block::Ingress => "ingress",
            Block::IngressDeparser => "ingress_deparser",
            Block::EgressParser => "egress_parser",
            Block::Egress => "egress",
            Block::ComputeChecksum => "compute_checksum",
            Block::Deparser => "deparser",
        }
    }

    /// Returns whether the block is a parser.
    pub fn is_parser(self) -> bool {
        matches!(self, Block::Parser | Block::EgressParser)
    }

    /// Returns whether the block is a deparser.
    pub fn is_deparser(self) -> bool {
        matches!(self, Block::IngressDeparser | Block::Deparser)
    }
}

/// Data that a program brings along from one pipeline or pass to another, where both are parsed: user-defined metadata beside the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bridged {
    /// From ingress to egress.
    Normal,
    /// With a clone from ingress.
    IngressClone,
    /// With a clone from egress.
    EgressClone,
    /// From ingress to ingress.
    Resubmitted,
    /// From egress to ingress.
    Recirculated,
}

impl Bridged {
    /// All of them. A program whose architecture has them has their slots in its first field lists, in this order.
    pub const ALL: [Bridged; 5] = [
        Bridged::Normal,
        Bridged::IngressClone,
        Bridged::EgressClone,
        Bridged::Resubmitted,
        Bridged::Recirculated,
    ];

    /// Returns the field list that has the slots of this metadata.
    pub fn field_list(self) -> FieldListId {
        FieldListId(self as u32)
    }
}

/// The kind of a parameter of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parameter {
    /// `packet_in` or `packet_out`.
    Packet,
    /// The user's headers of a pipeline.
    Headers(Pipeline),
    /// The user's metadata of a pipeline.
    UserMetadata(Pipeline),
    /// Metadata of the architecture: the path in front of the names of its fields, empty if they stand alone.
    Intrinsic(&'static str),
    /// Data that is brought along.
    Bridged(Bridged),
}

/// A block and its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Which.
    pub block: Block,
    /// In order.
    pub parameters: &'static [Parameter],
}

const fn stage(block: Block, parameters: &'static [Parameter]) -> Stage {
    Stage { block, parameters }
}

/// An architecture.
#[derive(Debug)]
pub struct Description {
    /// Its name, as in P4Info.
    pub name: &'static str,
    /// The word for its metadata in the text form of programs.
    pub keyword: &'static str,
    /// The package that `main` is an instance of.
    pub package: &'static str,
    /// The blocks, in the order in which the package, and the packages in it, name them.
    pub stages: &'static [Stage],
    /// Parameters that have storage, in the order of their slots, with the stage and the position there whose name and type they have.
    pub storage: &'static [(Parameter, Block, usize)],
    /// Ports are smaller than this, but for [`Description::cpu_port`].
    pub ports: u32,
    /// Bits of the class of service of a clone session.
    pub class_of_service_bits: u32,
    /// The port that leads to the control plane if nobody says another.
    pub cpu_port: u32,
}

impl Description {
    /// Returns whether egress begins with a parser. If so, only the packet's bytes and [`Bridged`] metadata
    /// pass from ingress to egress.
    pub fn parses_twice(&self) -> bool {
        let parsers = self.stages.iter().filter(|stage| stage.block.is_parser());
        parsers.count() > 1
    }

    /// Returns whether packets can arrive at `port` and leave there.
    pub fn has_port(&self, port: u32) -> bool {
        port < self.ports || port == self.cpu_port
    }
}
