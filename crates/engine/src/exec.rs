//! Executors: they run a pipeline of the architecture on one packet, or the fast path through all.

use crate::Time;
pub use crate::drops::DropReason;
use crate::packet::{Output, Packet, Spare};
use crate::replication::Replication;
use crate::runtime::Runtime;
use crate::trace::Trace;
use ir::{FieldListId, Pipeline};

/// Runs a program's blocks. An executor holds the program (and, for machine code, its code) and nothing that changes.
///
/// All pipelines read and write `cx.state`, laid out by [`ir::Layout`].
pub trait Executor: Send + Sync {
    /// Runs the blocks of a pipeline in order; nothing if the architecture has no such pipeline.
    ///
    /// A pipeline with a parser begins with a state that is zero but for the architecture's metadata and for slots preserved by a
    /// resubmit, recirculation or clone; on exit `cx.consumed` is the number of bytes that the parser took. After a deparser `cx.emitted`
    /// holds the emitted headers. If a block left what [`ir::Architecture::drops_after`] says, those behind it do not run; the engine drops
    /// the packet.
    fn run(&self, pipeline: Pipeline, cx: &mut PacketContext<'_>);

    /// Runs the first parser only, for a clone from ingress to egress (which starts from the packet as it arrived).
    fn parse(&self, cx: &mut PacketContext<'_>);

    /// Runs both pipelines in one go for packets that arrive at a port and leave at others without clones,
    /// resubmission or recirculation, as most do. An executor may make the replicas of a multicast group, or leave
    /// that to the switch. The packets run one after the other until all are done or one needs more. Then the executor
    /// stops at the point that [`Exit`] names, having done everything before that point and nothing behind it, and the
    /// switch continues from there.
    fn fast_path(&self, cx: &mut FastPathContext<'_>) -> FastPath {
        let _ = cx;
        FastPath::Unsupported
    }
}

/// The input and output of [`Executor::fast_path`].
pub struct FastPathContext<'a> {
    /// Time, in picoseconds.
    pub now_ps: Time,
    /// The received packets, each with its ingress port. Empty when all are done. If one left the fast path, the
    /// packets before it have unspecified contents.
    pub packets: &'a mut Vec<(u32, Packet)>,
    /// The index of the first packet to run.
    pub first: usize,
    /// Outputs are appended to it.
    pub out: &'a mut Vec<Output>,
    /// Packets that are not needed: copies may use their memory, and dropped packets are added.
    pub spare: &'a mut Spare,
    /// Multicast groups.
    pub replication: &'a Replication,
    /// Counts of drops, by reason.
    pub drops: &'a mut [u64; DropReason::ALL.len()],
    /// The number of packets, from the first one on, for which the executor has prefetched data already, as an
    /// earlier [`Stop`] said.
    pub prefetched: usize,
    /// True if most of these packets will probably run before one leaves the fast path, so that preparing for many is
    /// worthwhile.
    pub steady: bool,
    /// Memory for the packet state, with unspecified contents.
    pub state: &'a mut [u64],
    /// Memory for the headers that the deparser emits.
    pub emitted: &'a mut Vec<u8>,
    /// Tables and the other stateful objects of the switch.
    pub runtime: &'a mut Runtime,
}

/// How far the fast path got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FastPath {
    /// The executor has no fast path for its program. Nothing was done.
    Unsupported,
    /// All packets were sent or dropped.
    Done,
    /// A packet left the fast path.
    Stopped(Stop),
}

/// Where, and in what state, a packet left the fast path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The packet's index; the packets before it are done. It and those behind it are as they arrived, except for
    /// what [`Exit`] says of it.
    pub packet: usize,
    /// The number of packets behind it for which the executor has prefetched data.
    pub prefetched: usize,
    /// The point at which it left.
    pub exit: Exit,
    /// The bytes that the parser consumed.
    pub consumed: usize,
    /// What the program requested for the packet.
    pub intents: Intents,
}

/// The point at which a packet leaves the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Ingress has run, as by [`Executor::run`], and either its intents hold more than an output port or the executor leaves the
    /// rest to the switch. The state is that between ingress and egress.
    AfterIngress,
    /// Egress for this port has run, as by [`Executor::run`], and its intents hold more than the output. They include ingress's
    /// truncation, unless egress truncates to fewer bytes. If egress has a parser, the packet is as egress received it.
    AfterEgress(u32),
}

/// The input and output of one part of the pipeline.
pub struct PacketContext<'a> {
    /// Time, in picoseconds.
    pub now_ps: Time,
    /// The packet state: the contents of all slots.
    pub state: &'a mut [u64],
    /// The packet as it arrived (ingress), or as it was enqueued for egress, as far as it is stored: at least [`ir::Program::reach_bytes`]
    /// of it. Payload checksums read it from `consumed`.
    pub packet: &'a [u8],
    /// The length of the whole packet in bytes.
    pub packet_len: usize,
    /// The bytes that the parser consumed.
    pub consumed: usize,
    /// The headers that the deparser emitted.
    pub emitted: &'a mut Vec<u8>,
    /// Tables and the other stateful objects of the switch.
    pub runtime: &'a mut Runtime,
    /// What the program requested, to be done after this part.
    pub intents: Intents,
    /// The interpreter writes events to it; machine code ignores it.
    pub trace: Option<&'a mut Trace>,
}

/// What a program requested by externs, not by metadata. Of several requests of one kind the last one counts; of
/// truncations, the shortest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intents {
    /// The clone session, and the field list whose fields the clone keeps.
    pub clone: Option<(u32, Option<FieldListId>)>,
    /// Parse the original packet again, keeping the fields of the list, if any.
    pub resubmit: Option<Option<FieldListId>>,
    /// Send the deparsed packet to the parser again, keeping the fields of the list, if any.
    pub recirculate: Option<Option<FieldListId>>,
    /// Cut the packet to this many bytes when it leaves.
    pub truncate: Option<u32>,
    /// Drop the packet, for this reason.
    pub drop: Option<DropReason>,
}
