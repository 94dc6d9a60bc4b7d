//! Architectures: the surroundings of the blocks of a program, as data.
//!
//! A [`Description`] says which package a program is, which pipelines it has, which blocks they consist of and what each parameter of a
//! block is; an [`Architecture`] says in which slots a program has the architecture's metadata. Verifier, compiler, both executors and the
//! switch read descriptions, and do not ask which architecture they describe. Each architecture is one room: a file here, one in
//! `compile::lower` (its externs) and one in `engine::architecture` (what happens between its pipelines). [`architectures!`] lists them.
//! Nothing here knows how packets are copied.

use crate::{BlockId, FieldListId, SlotId};
use std::fmt;

/// Calls the macro `$with` with the names of all rooms. This is the only list of architectures: each crate that has a part of the rooms
/// declares its modules with it.
#[macro_export]
macro_rules! architectures {
    ($with:ident) => {
        $with! { v1model, psa, #[cfg(feature = "toy")] toy }
    };
}

/// The slots and widths of an architecture's metadata, by the name of each field in its include file.
macro_rules! metadata {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident = $text:literal : $width:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<S = $crate::SlotId> {
            $($(#[$field_doc])* pub $field: S,)*
        }

        impl<S: Copy> $name<S> {
            /// Calls `each` with every slot of the metadata, and returns its results by the names of the
            /// fields.
            pub fn map<T>(&self, mut each: impl FnMut(S) -> T) -> $name<T> {
                $name { $($field: each(self.$field),)* }
            }
        }

        impl $name {
            /// Returns the slots of the metadata of a program of this architecture, by the names of the
            /// fields.
            pub fn of(architecture: &$crate::Architecture) -> $name {
                AT.map(|field| architecture.slot(field))
            }
        }

        /// The name and the width in bits of each field.
        const FIELDS: &[(&str, u32)] = &[$(($text, $width)),*];

        /// The position of each field in the architecture's metadata, by the name of the field.
        pub const AT: $name<$crate::architecture::MetadataField> = {
            #[allow(non_camel_case_types)]
            enum Position { $($field),* }
            $name { $($field: $crate::architecture::MetadataField(Position::$field as usize),)* }
        };
    };
}

macro_rules! rooms {
    ($($(#[$only:meta])* $room:ident),*) => {
        $($(#[$only])* pub mod $room;)*

        /// All architectures.
        pub static ALL: &[&Description] = &[$($(#[$only])* &$room::DESCRIPTION),*];
    };
}
crate::architectures!(rooms);

/// A field of an architecture's metadata: its position in [`Description::metadata`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataField(usize);

/// The architecture of a program, with the slots of its metadata.
#[derive(Clone)]
pub struct Architecture {
    description: &'static Description,
    slots: Vec<SlotId>,
}

impl PartialEq for Architecture {
    fn eq(&self, other: &Architecture) -> bool {
        self.description.name == other.description.name && self.slots == other.slots
    }
}

impl Eq for Architecture {}

impl fmt::Debug for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.description.name, self.slots)
    }
}

impl Architecture {
    /// Makes an architecture with the given description. `slot` returns the slot for the name of each
    /// metadata field, and is called in the order of declaration.
    ///
    /// # Errors
    ///
    /// The first error of `slot`.
    pub fn from_names<E>(
        description: &'static Description,
        mut slot: impl FnMut(&'static str) -> Result<SlotId, E>,
    ) -> Result<Architecture, E> {
        let names = description.metadata.iter().map(|(name, _)| slot(name));
        let slots = names.collect::<Result<_, E>>()?;
        Ok(Architecture { description, slots })
    }

    /// Returns the description of the architecture.
    pub fn description(&self) -> &'static Description {
        self.description
    }

    /// Returns the slot of a field of the metadata of this architecture.
    pub fn slot(&self, field: MetadataField) -> SlotId {
        self.slots[field.0]
    }

    /// Returns the name, the slot and the width in bits of each metadata field, in the order of declaration.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, SlotId, u32)> {
        let fields = self.description.metadata.iter().zip(&self.slots);
        fields.map(|(&(name, width), &slot)| (name, slot, width))
    }

    fn slots(&self, fields: &[MetadataField]) -> Vec<SlotId> {
        fields.iter().map(|&field| self.slot(field)).collect()
    }

    /// Returns the slot in which the parser of `pipeline` stores its error, in
    /// [`ERROR_WIDTH`](crate::ERROR_WIDTH) bits.
    pub fn parser_error(&self, pipeline: Pipeline) -> SlotId {
        self.slot(self.description.pipeline(pipeline).parser_error)
    }

    /// Returns the slots in which the parsers store their errors, that of the first pipeline first.
    pub fn parser_errors(&self) -> impl Iterator<Item = SlotId> {
        let pipelines = self.description.pipelines.iter();
        pipelines.map(|pipeline| self.slot(pipeline.parser_error))
    }

    /// Returns the slots that contain times, such as that of the packet's arrival, and differences of times.
    pub fn times(&self) -> Vec<SlotId> {
        self.slots(self.description.times)
    }

    /// Returns the slots that describe the queue between ingress and egress: its lengths, and the times at
    /// which and for which the packet was in it.
    pub fn queue_data(&self) -> Vec<SlotId> {
        self.slots(self.description.queue_data)
    }

    /// Returns the slot with which a program chooses one of the queues of a port; `None` in an architecture
    /// without such a slot.
    pub fn priority(&self) -> Option<SlotId> {
        self.description.priority.map(|field| self.slot(field))
    }

    /// Returns the slots that decide where a packet goes and whether it is dropped, cloned or parsed again.
    pub fn decisions(&self) -> Vec<SlotId> {
        self.slots(self.description.decisions)
    }

    /// Returns how packets are forwarded from port to port; `None` if the architecture does not say.
    pub fn forwarding(&self) -> Option<Forwarding> {
        self.description.forwarding.map(|of| of(self))
    }

    /// Returns the slot and the value by which a packet is dropped right after `block`: it is dropped if the
    /// slot has the value then. `None` for a block after which no packet is dropped.
    pub fn drops_after(&self, block: BlockId) -> Option<(SlotId, u64)> {
        let (after, field, value) = self.description.drop?;
        (after == block).then(|| (self.slot(field), value))
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
    /// How this copy of the packet was made, as a number of the architecture.
    PacketPath,
    /// The class of the packet's queue.
    Priority,
    /// Number of packets in the queue when the packet was enqueued.
    EnqueuedBehind,
    /// Number of packets in the queue when the packet left it.
    DequeuedBefore,
    /// The time at which the packet was enqueued, in microseconds.
    EnqueuedUs,
    /// The packet's time in the queue, in microseconds.
    WaitedUs,
    /// Zero.
    Zero,
    /// One.
    One,
}

/// A slot, and a value that has a meaning in it.
pub type SlotValue = (SlotId, u64);

/// The forwarding of packets from port to port, without the making of copies: the values that slots of the
/// metadata receive, and what their values mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// The slots that receive values when a packet arrives.
    pub arrival: Vec<(SlotId, Input)>,
    /// The slots that receive values when a copy begins egress.
    pub egress: Vec<(SlotId, Input)>,
    /// The slot with the port to leave at.
    pub port: SlotId,
    /// A packet is dropped if the slot has the value after ingress.
    pub ingress_drop: SlotValue,
    /// A packet is dropped if the slot has the value after egress.
    pub egress_drop: SlotValue,
    /// The slot with the multicast group, which takes precedence over the port; 0 for none.
    pub group: SlotId,
    /// Slots that, if not zero after ingress, request a clone, resubmission or recirculation.
    pub ingress_requests: Vec<SlotId>,
    /// Slots that, if not zero after egress, request a clone, resubmission or recirculation.
    pub egress_requests: Vec<SlotId>,
    /// The slot with the class of a packet's queue.
    pub priority: SlotId,
    /// The value for [`Input::PacketPath`] of a packet that goes to one port.
    pub unicast_path: u64,
    /// The value for [`Input::PacketPath`] of a replica.
    pub replica_path: u64,
    /// The values for [`Input::PacketPath`] of clones from ingress and of clones from egress.
    pub clone_paths: [u64; 2],
}

impl Forwarding {
    /// Returns the slot that receives `input` when a packet arrives; `None` if none does.
    pub fn arrival_slot(&self, input: Input) -> Option<SlotId> {
        given(&self.arrival, input)
    }

    /// Returns the slot that receives `input` when egress begins; `None` if none does.
    pub fn egress_slot(&self, input: Input) -> Option<SlotId> {
        given(&self.egress, input)
    }
}

fn given(slots: &[(SlotId, Input)], input: Input) -> Option<SlotId> {
    let found = slots.iter().find(|(_, given)| *given == input);
    found.map(|(slot, _)| *slot)
}

/// A pipeline of an architecture: its position in [`Description::pipelines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pipeline(pub u32);

impl Pipeline {
    /// The first, which runs when a packet arrives.
    pub const INGRESS: Pipeline = Pipeline(0);
    /// The second, which runs for each copy that is to leave.
    pub const EGRESS: Pipeline = Pipeline(1);

    /// Returns the pipeline as an index into [`Description::pipelines`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// A parser.
    Parser,
    /// A control that verifies or updates checksums. It applies no tables and makes no requests.
    Checksums,
    /// A control that may apply tables.
    Control,
    /// A control that emits headers.
    Deparser,
}

/// User-defined metadata that a program passes on from one pipeline to another, or to a further pass, beside
/// the packet's bytes. Only architectures that parse packets again there have it.
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
    /// Returns the field list of a program that names the slots of this metadata.
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
    /// Metadata of the architecture. The text is the prefix of the names of its fields, empty if they have
    /// none.
    Intrinsic(&'static str),
    /// Metadata that is passed on to another pipeline or pass.
    Bridged(Bridged),
}

/// A block and its parameters.
#[derive(Debug)]
pub struct Stage {
    /// Its name, such as `verify_checksum`.
    pub name: &'static str,
    /// What it is.
    pub kind: BlockKind,
    /// The pipeline to which it belongs.
    pub pipeline: Pipeline,
    /// Its parameters, in order.
    pub parameters: &'static [Parameter],
}

const fn stage(
    name: &'static str,
    kind: BlockKind,
    pipeline: Pipeline,
    parameters: &'static [Parameter],
) -> Stage {
    Stage {
        name,
        kind,
        pipeline,
        parameters,
    }
}

impl Stage {
    /// Returns whether the block is a parser.
    pub fn is_parser(&self) -> bool {
        self.kind == BlockKind::Parser
    }

    /// Returns whether the block is a deparser.
    pub fn is_deparser(&self) -> bool {
        self.kind == BlockKind::Deparser
    }

    /// Returns whether the block may apply tables.
    pub fn applies_tables(&self) -> bool {
        self.kind == BlockKind::Control
    }
}

/// A sequence of blocks, all of which a packet that enters the pipeline passes through in order.
#[derive(Debug)]
pub struct PipelineDescription {
    /// Its name, such as `ingress`.
    pub name: &'static str,
    /// The field in which its parser stores its error.
    pub parser_error: MetadataField,
}

/// An architecture.
#[derive(Debug)]
pub struct Description {
    /// Its name, as in P4Info.
    pub name: &'static str,
    /// Its name in messages.
    pub title: &'static str,
    /// The word for its metadata in the text form of programs.
    pub keyword: &'static str,
    /// The package that `main` is an instance of.
    pub package: &'static str,
    /// The name and the width in bits of each field of its metadata. A name is the field's name, with the
    /// name of the parameter and a dot before it if the architecture has several.
    pub metadata: &'static [(&'static str, u32)],
    /// The pipelines: one, or two with a traffic manager between.
    pub pipelines: &'static [PipelineDescription],
    /// The blocks of all pipelines, in the order in which a packet passes through them and in which the
    /// package names them.
    pub stages: &'static [Stage],
    /// Controls that the text form of programs has besides, always empty, each with the block before which it
    /// stands.
    pub empty_controls: &'static [(&'static str, BlockId)],
    /// Parameters that have storage, in the order of their slots. Each is given with a block and a position
    /// among its parameters: the name and type are those of the parameter there.
    pub storage: &'static [(Parameter, BlockId, usize)],
    /// Fields with times, and with differences of times.
    pub times: &'static [MetadataField],
    /// Fields that describe the queue between the pipelines.
    pub queue_data: &'static [MetadataField],
    /// The field that chooses one of the queues of a port.
    pub priority: Option<MetadataField>,
    /// Fields that decide where a packet goes and whether it is dropped, cloned or parsed again.
    pub decisions: &'static [MetadataField],
    /// A packet is dropped if, after this block, the field has the value.
    pub drop: Option<(BlockId, MetadataField, u64)>,
    /// Says how packets are forwarded from port to port.
    pub forwarding: Option<fn(&Architecture) -> Forwarding>,
    /// Port numbers are below this, except for [`Description::cpu_port`].
    pub ports: u32,
    /// A packet that leaves at this port goes to the parser again.
    pub recirculation_port: Option<u32>,
    /// Width in bits of the class of service of a clone session.
    pub class_of_service_bits: u32,
    /// The port that leads to the control plane unless the configuration gives another.
    pub cpu_port: u32,
}

impl Description {
    /// Returns the description of a pipeline.
    pub fn pipeline(&self, pipeline: Pipeline) -> &'static PipelineDescription {
        &self.pipelines[pipeline.index()]
    }

    /// Returns the description of a block.
    pub fn stage(&self, block: BlockId) -> &'static Stage {
        &self.stages[block.index()]
    }

    /// Returns all blocks, in the order in which a packet meets them.
    pub fn blocks(&self) -> impl DoubleEndedIterator<Item = (BlockId, &'static Stage)> + Clone {
        let stages = self.stages.iter().enumerate();
        stages.map(|(i, stage)| (BlockId(i as u32), stage))
    }

    /// Returns the blocks of a pipeline, in the order in which a packet meets them; none if there is no such pipeline.
    pub fn blocks_of(
        &self,
        pipeline: Pipeline,
    ) -> impl DoubleEndedIterator<Item = (BlockId, &'static Stage)> + Clone {
        self.blocks()
            .filter(move |(_, stage)| stage.pipeline == pipeline)
    }

    /// Returns whether the first pipeline ends with a deparser, so that only the packet's bytes and
    /// [`Bridged`] metadata pass to the next. Otherwise packets keep their headers and metadata.
    pub fn deparses_between(&self) -> bool {
        let mut first = self.blocks_of(Pipeline::INGRESS);
        first.any(|(_, stage)| stage.is_deparser())
    }

    /// Returns whether the text form of a program may leave out the control `block` if it has no statements:
    /// true for deparsers that are not the last block.
    pub fn may_be_left_out(&self, block: BlockId) -> bool {
        self.stage(block).is_deparser() && block.index() + 1 < self.stages.len()
    }

    /// Returns the kinds of [`Bridged`] metadata that the architecture has, in the order of the field lists
    /// with their slots. These slots are the first of a program.
    pub fn bridged(&self) -> impl Iterator<Item = Bridged> {
        let stored = self.storage.iter();
        stored.filter_map(|(parameter, ..)| match parameter {
            Parameter::Bridged(bridged) => Some(*bridged),
            _ => None,
        })
    }

    /// Returns whether `port` is a port of the switch, at which packets can arrive and leave.
    pub fn has_port(&self, port: u32) -> bool {
        port < self.ports || port == self.cpu_port
    }

    /// Returns whether a replica or a clone can be sent to `port`.
    pub fn takes_replicas(&self, port: u32) -> bool {
        self.has_port(port) || self.recirculation_port == Some(port)
    }

    /// Returns the number of bits of the largest port number.
    pub fn port_bits(&self) -> u32 {
        let most = self.ports.max(self.cpu_port);
        u32::BITS - most.leading_zeros()
    }
}
