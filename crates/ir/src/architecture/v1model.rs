//! v1model: metadata, blocks and numbers of the behavioral model's simple_switch.

use super::{
    Architecture, BlockKind, Description, Forwarding, Input, Parameter, Pipeline,
    PipelineDescription, stage,
};
use crate::{BlockId, ERROR_WIDTH};

/// The value of `egress_spec` that drops the packet.
pub const DROP_PORT: u32 = 511;

/// Values of `instance_type`, as in the reference target.
pub mod instance_type {
    /// Arrived at a port.
    pub const NORMAL: u64 = 0;
    /// Cloned from ingress.
    pub const INGRESS_CLONE: u64 = 1;
    /// Cloned from egress.
    pub const EGRESS_CLONE: u64 = 2;
    /// Recirculated.
    pub const RECIRCULATED: u64 = 4;
    /// A multicast replica.
    pub const REPLICATION: u64 = 5;
    /// Resubmitted.
    pub const RESUBMITTED: u64 = 6;
}

metadata! {
    /// The slots of `standard_metadata_t`, with the widths of v1model.p4.
    StandardMetadata {
        /// The port of arrival.
        ingress_port = "ingress_port": 9,
        /// The port to leave at; 511 drops.
        egress_spec = "egress_spec": 9,
        /// In egress, the port that the packet leaves at.
        egress_port = "egress_port": 9,
        /// How this copy of the packet was made ([`instance_type`]).
        instance_type = "instance_type": 32,
        /// Length of the packet in bytes.
        packet_length = "packet_length": 32,
        /// Time in microseconds at which the packet was enqueued.
        enq_timestamp = "enq_timestamp": 32,
        /// Length of the queue in packets when the packet was enqueued.
        enq_qdepth = "enq_qdepth": 19,
        /// Time in microseconds that the packet spent in the queue.
        deq_timedelta = "deq_timedelta": 32,
        /// Length of the queue in packets when the packet was dequeued.
        deq_qdepth = "deq_qdepth": 19,
        /// Time in microseconds at which ingress begins.
        ingress_global_timestamp = "ingress_global_timestamp": 48,
        /// Time in microseconds at which egress begins.
        egress_global_timestamp = "egress_global_timestamp": 48,
        /// The multicast group; 0 for none.
        mcast_grp = "mcast_grp": 16,
        /// The number of a replica.
        egress_rid = "egress_rid": 16,
        /// 1 after `verify_checksum` has found a wrong checksum.
        checksum_error = "checksum_error": 1,
        /// The parser's error, an index in [`Program::errors`](crate::Program::errors).
        parser_error = "parser_error": ERROR_WIDTH,
        /// The class of the packet's queue.
        priority = "priority": 3,
    }
}

impl StandardMetadata {
    /// Returns how v1model forwards packets: the inputs that the metadata slots receive, and the slots that
    /// decide where a packet goes.
    pub fn forwarding(&self) -> Forwarding {
        Forwarding {
            arrival: vec![
                (self.ingress_port, Input::ArrivalPort),
                (self.packet_length, Input::PacketBytes),
                (self.ingress_global_timestamp, Input::NowUs),
            ],
            egress: vec![
                (self.egress_port, Input::OutputPort),
                // Anything but the drop port, so that only the egress control can drop.
                (self.egress_spec, Input::Zero),
                (self.egress_rid, Input::ReplicaId),
                (self.instance_type, Input::PacketPath),
                (self.priority, Input::Priority),
                (self.enq_qdepth, Input::EnqueuedBehind),
                (self.deq_qdepth, Input::DequeuedBefore),
                (self.deq_timedelta, Input::WaitedUs),
                (self.enq_timestamp, Input::EnqueuedUs),
                (self.egress_global_timestamp, Input::NowUs),
                (self.packet_length, Input::PacketBytes),
            ],
            port: self.egress_spec,
            ingress_drop: (self.egress_spec, DROP_PORT.into()),
            egress_drop: (self.egress_spec, DROP_PORT.into()),
            group: self.mcast_grp,
            ingress_requests: Vec::new(),
            egress_requests: Vec::new(),
            priority: self.priority,
            unicast_path: instance_type::NORMAL,
            replica_path: instance_type::REPLICATION,
            clone_paths: [instance_type::INGRESS_CLONE, instance_type::EGRESS_CLONE],
        }
    }
}

const H: Parameter = Parameter::Headers(Pipeline::INGRESS);
const M: Parameter = Parameter::UserMetadata(Pipeline::INGRESS);
const S: Parameter = Parameter::Intrinsic("");

/// The parser.
pub const PARSER: BlockId = BlockId(0);
/// The control that checks checksums.
pub const VERIFY_CHECKSUM: BlockId = BlockId(1);
/// The ingress control.
pub const INGRESS: BlockId = BlockId(2);
/// The egress control.
pub const EGRESS: BlockId = BlockId(3);
/// The control that updates checksums.
pub const COMPUTE_CHECKSUM: BlockId = BlockId(4);
/// The deparser.
pub const DEPARSER: BlockId = BlockId(5);

fn forwarding(architecture: &Architecture) -> Forwarding {
    StandardMetadata::of(architecture).forwarding()
}

/// The description of v1model.
pub static DESCRIPTION: Description = Description {
    name: "v1model",
    title: "v1model",
    keyword: "standard",
    package: "V1Switch",
    metadata: FIELDS,
    pipelines: &[
        PipelineDescription {
            name: "ingress",
            parser_error: AT.parser_error,
        },
        PipelineDescription {
            name: "egress",
            parser_error: AT.parser_error,
        },
    ],
    stages: &[
        stage(
            "parser",
            BlockKind::Parser,
            Pipeline::INGRESS,
            &[Parameter::Packet, H, M, S],
        ),
        stage(
            "verify_checksum",
            BlockKind::Checksums,
            Pipeline::INGRESS,
            &[H, M],
        ),
        stage("ingress", BlockKind::Control, Pipeline::INGRESS, &[H, M, S]),
        stage("egress", BlockKind::Control, Pipeline::EGRESS, &[H, M, S]),
        stage(
            "compute_checksum",
            BlockKind::Checksums,
            Pipeline::EGRESS,
            &[H, M],
        ),
        stage(
            "deparser",
            BlockKind::Deparser,
            Pipeline::EGRESS,
            &[Parameter::Packet, H],
        ),
    ],
    empty_controls: &[],
    storage: &[(S, INGRESS, 2), (H, INGRESS, 0), (M, INGRESS, 1)],
    times: &[
        AT.ingress_global_timestamp,
        AT.egress_global_timestamp,
        AT.enq_timestamp,
        AT.deq_timedelta,
    ],
    queue_data: &[
        AT.enq_qdepth,
        AT.deq_qdepth,
        AT.enq_timestamp,
        AT.deq_timedelta,
    ],
    priority: Some(AT.priority),
    decisions: &[AT.egress_spec, AT.mcast_grp, AT.priority],
    drop: Some((EGRESS, AT.egress_spec, DROP_PORT as u64)),
    forwarding: Some(forwarding),
    ports: DROP_PORT,
    recirculation_port: None,
    class_of_service_bits: 3,
    cpu_port: 510,
};
