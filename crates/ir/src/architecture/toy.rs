//! A toy that only tests have: one pipeline that filters packets, with a number of the room's own. It shows what an architecture needs.

use super::{BlockKind, Description, Parameter, Pipeline, PipelineDescription, stage};
use crate::{BlockId, ERROR_WIDTH};

/// The value of `departure.port` that drops the packet.
pub const DROP_PORT: u32 = 15;

metadata! {
    /// The slots of the structs `arrival_t` and `departure_t`.
    Metadata {
        /// The port of arrival.
        arrival_port = "arrival.port": 4,
        /// The parser's error, an index in [`Program::errors`](crate::Program::errors).
        parser_error = "arrival.parser_error": ERROR_WIDTH,
        /// The port to leave at; 15 drops.
        departure_port = "departure.port": 4,
    }
}

const H: Parameter = Parameter::Headers(Pipeline::INGRESS);
const ARRIVAL: Parameter = Parameter::Intrinsic("arrival");
const DEPARTURE: Parameter = Parameter::Intrinsic("departure");
const FILTER: BlockId = BlockId(1);

/// The description of the toy.
pub static DESCRIPTION: Description = Description {
    name: "toy",
    title: "the toy",
    keyword: "toy",
    package: "Toy",
    metadata: FIELDS,
    pipelines: &[PipelineDescription {
        name: "filter",
        parser_error: AT.parser_error,
    }],
    stages: &[
        stage(
            "parser",
            BlockKind::Parser,
            Pipeline::INGRESS,
            &[Parameter::Packet, H],
        ),
        stage(
            "filter",
            BlockKind::Control,
            Pipeline::INGRESS,
            &[H, ARRIVAL, DEPARTURE],
        ),
        stage(
            "deparser",
            BlockKind::Deparser,
            Pipeline::INGRESS,
            &[Parameter::Packet, H],
        ),
    ],
    empty_controls: &[],
    storage: &[(ARRIVAL, FILTER, 1), (DEPARTURE, FILTER, 2), (H, FILTER, 0)],
    times: &[],
    queue_data: &[],
    priority: None,
    decisions: &[AT.departure_port],
    drop: None,
    forwarding: None,
    ports: DROP_PORT,
    recirculation_port: None,
    class_of_service_bits: 1,
    cpu_port: 14,
};
