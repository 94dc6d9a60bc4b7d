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

/// Everything that the fast path works on.
pub struct FastPathContext<'a> {
    /// Time, in picoseconds.
    pub now_ps: Time,
    /// Packets as they arrived, each with its port. Empty when all are done. When one stopped, those before it have any contents.
    pub packets: &'a mut Vec<(u32, Packet)>,
    /// The number of the first to run.
    pub first: usize,
    /// Outputs are appended to it.
    pub out: &'a mut Vec<Output>,
    /// Packets whose memory copies may take, and where those go that are dropped.
    pub spare: &'a mut Spare,
    /// Multicast groups.
    pub replication: &'a Replication,
    /// Counts of drops, by reason.
    pub drops: &'a mut [u64; DropReason::ALL.len()],
    /// The number of packets from the first on for which the executor has prefetched already, as an earlier [`Stop`] said.
    pub prefetched: usize,
    /// True if most of these packets are likely to be run before one stops, so that getting ready for many is worth it.
    pub steady: bool,
    /// Room for the slots, with any contents.
    pub state: &'a mut [u64],
    /// Room for headers that the deparser emits.
    pub emitted: &'a mut Vec<u8>,
    /// Tables and the other stateful objects of the switch.
    pub runtime: &'a mut Runtime,
}

/// The extent to which the fast path went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FastPath {
    /// The executor has no fast path, and never has. Nothing is done.
    Unsupported,
    /// All packets are sent or dropped.
    Done,
    /// Not all are.
    Stopped(Stop),
}

/// A packet that left the fast path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Its number; those before it are done. It is in its place as it arrived, but for what [`Exit`] says, and so are those behind it.
    pub packet: usize,
    /// The number of packets behind it for which the executor has prefetched.
    pub prefetched: usize,
    /// The point.
    pub exit: Exit,
    /// Bytes that the parser took.
    pub consumed: usize,
    /// The program's requests.
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

/// Everything that one part of the pipeline works on.
pub struct PacketContext<'a> {
    /// Time, in picoseconds.
    pub now_ps: Time,
    /// The slots.
    pub state: &'a mut [u64],
    /// The packet as it arrived (ingress), or as it was enqueued for egress, as far as it is stored: at least [`ir::Program::reach_bytes`]
    /// of it. Payload checksums read it from `consumed`.
    pub packet: &'a [u8],
    /// Bytes of the whole packet.
    pub packet_len: usize,
    /// Bytes that the parser took.
    pub consumed: usize,
    /// Headers that the deparser emitted.
    pub emitted: &'a mut Vec<u8>,
    /// Tables and the other stateful objects of the switch.
    pub runtime: &'a mut Runtime,
    /// The program's requests for the time after this part.
    pub intents: Intents,
    /// The interpreter writes events to it; machine code ignores it.
    pub trace: Option<&'a mut Trace>,
}

/// Requests that a program makes with externs, not with metadata; the last one of a kind counts, of cuts the shortest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intents {
    /// Clone session and what the copy preserves.
    pub clone: Option<(u32, Option<FieldListId>)>,
    /// Parse the original packet again.
    pub resubmit: Option<Option<FieldListId>>,
    /// Send the deparsed packet to the parser again.
    pub recirculate: Option<Option<FieldListId>>,
    /// Cut the packet to this many bytes if it leaves.
    pub truncate: Option<u32>,
    /// The packet must be dropped, and why.
    pub drop: Option<DropReason>,
}
