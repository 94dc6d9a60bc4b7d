//! The Portable Switch Architecture 1.2: metadata, blocks and numbers, with the widths of the behavioral model's psa_switch.

use super::{
    Architecture, BlockKind, Bridged, Description, Forwarding, Input, Parameter, Pipeline,
    PipelineDescription, stage,
};
use crate::{BlockId, ERROR_WIDTH};

/// The port to the control plane.
pub const PORT_CPU: u32 = 0xffff_fffd;

/// A packet that leaves egress at this port goes to the ingress parser again.
pub const PORT_RECIRCULATE: u32 = 0xffff_fffa;

/// Values of `PSA_PacketPath_t`, in the order of its members.
pub mod packet_path {
    /// Arrived at a port.
    pub const NORMAL: u64 = 0;
    /// In egress: to one port.
    pub const NORMAL_UNICAST: u64 = 1;
    /// In egress: a multicast replica.
    pub const NORMAL_MULTICAST: u64 = 2;
    /// Cloned from ingress.
    pub const CLONE_I2E: u64 = 3;
    /// Cloned from egress.
    pub const CLONE_E2E: u64 = 4;
    /// Resubmitted.
    pub const RESUBMIT: u64 = 5;
    /// Recirculated.
    pub const RECIRCULATE: u64 = 6;
}

metadata! {
    /// The slots of the structs `psa_ingress_parser_input_metadata_t` to `psa_egress_output_metadata_t`.
    Metadata {
        /// The port of arrival, for the parser.
        ingress_parser_port = "ingress_parser_input.ingress_port": 32,
        /// How the packet came here ([`packet_path`]), for the parser.
        ingress_parser_path = "ingress_parser_input.packet_path": 32,
        /// The port of arrival.
        ingress_port = "ingress_input.ingress_port": 32,
        /// How the packet came here ([`packet_path`]).
        ingress_path = "ingress_input.packet_path": 32,
        /// Time of arrival in microseconds.
        ingress_timestamp = "ingress_input.ingress_timestamp": 64,
        /// The parser's error, an index in [`Program::errors`](crate::Program::errors).
        ingress_parser_error = "ingress_input.parser_error": ERROR_WIDTH,
        /// The class of service that the program requests; 0 at first.
        class_of_service = "ingress_output.class_of_service": 8,
        /// True if the packet is to be cloned; false at first.
        ingress_clone = "ingress_output.clone": 1,
        /// The session of the clone.
        ingress_clone_session = "ingress_output.clone_session_id": 16,
        /// True if the packet is to be dropped, apart from its clone; true at first.
        ingress_drop = "ingress_output.drop": 1,
        /// True if the packet, unless it is dropped, is to be parsed again in ingress; false at first.
        resubmit = "ingress_output.resubmit": 1,
        /// The multicast group of a packet that is neither dropped nor resubmitted; 0 for none.
        multicast_group = "ingress_output.multicast_group": 32,
        /// The output port of a packet that is neither dropped, resubmitted nor multicast.
        ingress_egress_port = "ingress_output.egress_port": 32,
        /// The port that the packet leaves at, for the egress parser.
        egress_parser_port = "egress_parser_input.egress_port": 32,
        /// How this copy was made ([`packet_path`]), for the egress parser.
        egress_parser_path = "egress_parser_input.packet_path": 32,
        /// The class of service that ingress requested or, of a clone, that of its session.
        egress_class_of_service = "egress_input.class_of_service": 8,
        /// The port that the packet leaves at.
        egress_port = "egress_input.egress_port": 32,
        /// How this copy was made ([`packet_path`]).
        egress_path = "egress_input.packet_path": 32,
        /// The number of a replica.
        instance = "egress_input.instance": 16,
        /// Time in microseconds at which egress begins.
        egress_timestamp = "egress_input.egress_timestamp": 64,
        /// The egress parser's error, an index in [`Program::errors`](crate::Program::errors).
        egress_parser_error = "egress_input.parser_error": ERROR_WIDTH,
        /// True if the packet is to be cloned; false at first.
        egress_clone = "egress_output.clone": 1,
        /// The session of the clone.
        egress_clone_session = "egress_output.clone_session_id": 16,
        /// True if the packet is to be dropped, apart from its clone; false at first.
        egress_drop = "egress_output.drop": 1,
        /// The port that the packet leaves at, for the deparser.
        egress_deparser_port = "egress_deparser_input.egress_port": 32,
    }
}

impl Metadata {
    /// Returns how PSA forwards packets: the inputs that the metadata slots receive, and the slots that
    /// decide where a packet goes.
    pub fn forwarding(&self) -> Forwarding {
        Forwarding {
            arrival: vec![
                (self.ingress_parser_port, Input::ArrivalPort),
                (self.ingress_port, Input::ArrivalPort),
                (self.ingress_timestamp, Input::NowUs),
                // Packets without a destination from the program are dropped.
                (self.ingress_drop, Input::One),
            ],
            egress: vec![
                (self.egress_parser_port, Input::OutputPort),
                (self.egress_port, Input::OutputPort),
                (self.egress_deparser_port, Input::OutputPort),
                (self.egress_parser_path, Input::PacketPath),
                (self.egress_path, Input::PacketPath),
                (self.instance, Input::ReplicaId),
                (self.egress_class_of_service, Input::Priority),
                (self.egress_timestamp, Input::NowUs),
            ],
            port: self.ingress_egress_port,
            ingress_drop: (self.ingress_drop, 1),
            egress_drop: (self.egress_drop, 1),
            group: self.multicast_group,
            ingress_requests: vec![self.ingress_clone, self.resubmit],
            egress_requests: vec![self.egress_clone],
            priority: self.class_of_service,
            unicast_path: packet_path::NORMAL_UNICAST,
            replica_path: packet_path::NORMAL_MULTICAST,
            clone_paths: [packet_path::CLONE_I2E, packet_path::CLONE_E2E],
        }
    }
}

fn forwarding(architecture: &Architecture) -> Forwarding {
    Metadata::of(architecture).forwarding()
}

const IH: Parameter = Parameter::Headers(Pipeline::INGRESS);
const IM: Parameter = Parameter::UserMetadata(Pipeline::INGRESS);
const EH: Parameter = Parameter::Headers(Pipeline::EGRESS);
const EM: Parameter = Parameter::UserMetadata(Pipeline::EGRESS);
const INGRESS_PARSER_INPUT: Parameter = Parameter::Intrinsic("ingress_parser_input");
const INGRESS_INPUT: Parameter = Parameter::Intrinsic("ingress_input");
const INGRESS_OUTPUT: Parameter = Parameter::Intrinsic("ingress_output");
const EGRESS_PARSER_INPUT: Parameter = Parameter::Intrinsic("egress_parser_input");
const EGRESS_INPUT: Parameter = Parameter::Intrinsic("egress_input");
const EGRESS_OUTPUT: Parameter = Parameter::Intrinsic("egress_output");
const EGRESS_DEPARSER_INPUT: Parameter = Parameter::Intrinsic("egress_deparser_input");
const NORMAL: Parameter = Parameter::Bridged(Bridged::Normal);
const CLONE_I2E: Parameter = Parameter::Bridged(Bridged::IngressClone);
const CLONE_E2E: Parameter = Parameter::Bridged(Bridged::EgressClone);
const RESUBMIT: Parameter = Parameter::Bridged(Bridged::Resubmitted);
const RECIRCULATE: Parameter = Parameter::Bridged(Bridged::Recirculated);

/// The ingress control.
pub const INGRESS: BlockId = BlockId(1);
/// The deparser in front of the traffic manager.
pub const INGRESS_DEPARSER: BlockId = BlockId(2);
/// The parser behind the traffic manager.
pub const EGRESS_PARSER: BlockId = BlockId(3);
/// The egress control.
pub const EGRESS: BlockId = BlockId(4);
/// The deparser of what leaves.
pub const DEPARSER: BlockId = BlockId(5);

/// The description of PSA.
pub static DESCRIPTION: Description = Description {
    name: "psa",
    title: "PSA",
    keyword: "psa",
    package: "PSA_Switch",
    metadata: FIELDS,
    pipelines: &[
        PipelineDescription {
            name: "ingress",
            parser_error: AT.ingress_parser_error,
        },
        PipelineDescription {
            name: "egress",
            parser_error: AT.egress_parser_error,
        },
    ],
    stages: &[
        stage(
            "parser",
            BlockKind::Parser,
            Pipeline::INGRESS,
            &[
                Parameter::Packet,
                IH,
                IM,
                INGRESS_PARSER_INPUT,
                RESUBMIT,
                RECIRCULATE,
            ],
        ),
        stage(
            "ingress",
            BlockKind::Control,
            Pipeline::INGRESS,
            &[IH, IM, INGRESS_INPUT, INGRESS_OUTPUT],
        ),
        stage(
            "ingress_deparser",
            BlockKind::Deparser,
            Pipeline::INGRESS,
            &[
                Parameter::Packet,
                CLONE_I2E,
                RESUBMIT,
                NORMAL,
                IH,
                IM,
                INGRESS_OUTPUT,
            ],
        ),
        stage(
            "egress_parser",
            BlockKind::Parser,
            Pipeline::EGRESS,
            &[
                Parameter::Packet,
                EH,
                EM,
                EGRESS_PARSER_INPUT,
                NORMAL,
                CLONE_I2E,
                CLONE_E2E,
            ],
        ),
        stage(
            "egress",
            BlockKind::Control,
            Pipeline::EGRESS,
            &[EH, EM, EGRESS_INPUT, EGRESS_OUTPUT],
        ),
        stage(
            "deparser",
            BlockKind::Deparser,
            Pipeline::EGRESS,
            &[
                Parameter::Packet,
                CLONE_E2E,
                RECIRCULATE,
                EH,
                EM,
                EGRESS_OUTPUT,
                EGRESS_DEPARSER_INPUT,
            ],
        ),
    ],
    // They were in the first text form, which all architectures shared.
    empty_controls: &[("verify_checksum", INGRESS), ("compute_checksum", DEPARSER)],
    storage: &[
        (INGRESS_PARSER_INPUT, BlockId(0), 3),
        (INGRESS_INPUT, INGRESS, 2),
        (INGRESS_OUTPUT, INGRESS, 3),
        (EGRESS_PARSER_INPUT, EGRESS_PARSER, 3),
        (EGRESS_INPUT, EGRESS, 2),
        (EGRESS_OUTPUT, EGRESS, 3),
        (EGRESS_DEPARSER_INPUT, DEPARSER, 6),
        (NORMAL, INGRESS_DEPARSER, 3),
        (CLONE_I2E, INGRESS_DEPARSER, 1),
        (CLONE_E2E, DEPARSER, 1),
        (RESUBMIT, INGRESS_DEPARSER, 2),
        (RECIRCULATE, DEPARSER, 2),
        (IH, INGRESS, 0),
        (IM, INGRESS, 1),
        (EH, EGRESS, 0),
        (EM, EGRESS, 1),
    ],
    times: &[AT.ingress_timestamp, AT.egress_timestamp],
    queue_data: &[],
    priority: None,
    decisions: &[
        AT.class_of_service,
        AT.ingress_clone,
        AT.ingress_clone_session,
        AT.ingress_drop,
        AT.resubmit,
        AT.multicast_group,
        AT.ingress_egress_port,
        AT.egress_clone,
        AT.egress_clone_session,
        AT.egress_drop,
    ],
    drop: None,
    forwarding: Some(forwarding),
    ports: PORT_RECIRCULATE,
    recirculation_port: Some(PORT_RECIRCULATE),
    class_of_service_bits: 8,
    cpu_port: PORT_CPU,
};
