//! The programs that can be measured, by name.

use crate::bier::Replication;
use crate::protect::Acceptance;
use crate::telemetry::Role;
use crate::workload::Workload;
use crate::{
    bier, bng, firewall, l2_switch, middleblock, protect, router, shorternet, telemetry, wide_field,
};

/// The names of the programs that can be measured.
pub const PROGRAMS: [&str; 26] = [
    "l2_switch",
    "router_1k",
    "router_1m",
    "router_psa_1k",
    "router_psa_1m",
    "middleblock",
    "protect_ingress",
    "protect_egress",
    "protect_egress_vector",
    "wide_field",
    "int_transit",
    "int_source",
    "shorternet",
    "firewall",
    "bier_transit_1",
    "bier_transit_1_recirculate",
    "bier_transit_1_clusters",
    "bier_transit_4",
    "bier_transit_4_recirculate",
    "bier_transit_4_clusters",
    "bier_transit_16",
    "bier_transit_16_recirculate",
    "bier_transit_16_clusters",
    "bier_bfir",
    "bng_upstream",
    "bng_downstream",
];

/// Compiles the program with this name, fills the tables of both versions, and returns them with their traffic. If
/// `quick`, tables have about a hundredth of their size, for tests. Fails if there is no such program.
pub fn workload(program: &str, quick: bool) -> Result<Workload, String> {
    let scale = if quick { 100 } else { 1 };
    match program {
        "l2_switch" => l2_switch::workload(65_536 / scale),
        "middleblock" => middleblock::workload(scale / 10 + usize::from(scale == 1)),
        "protect_ingress" => protect::ingress(1_000 / scale),
        "protect_egress" => protect::egress(1_000 / scale, Acceptance::Window),
        "protect_egress_vector" => protect::egress(1_000 / scale, Acceptance::VECTOR),
        "wide_field" => wide_field::workload(4_096 / scale),
        "int_transit" => telemetry::node(1_000 / scale, Role::Transit),
        "int_source" => telemetry::node(1_000 / scale, Role::Source),
        "shorternet" => shorternet::edge(10_000 / scale),
        "firewall" => firewall::workload(10_000 / scale, 100_000 / scale),
        "router_1k" => router::workload(router::V1MODEL, 1_000 / scale),
        "router_1m" => router::workload(router::V1MODEL, 1_000_000 / scale),
        "router_psa_1k" => router::workload(router::PSA, 1_000 / scale),
        "router_psa_1m" => router::workload(router::PSA, 1_000_000 / scale),
        "bng_upstream" => bng::upstream(64_000 / scale),
        "bng_downstream" => bng::downstream(64_000 / scale),
        "bier_bfir" => bier::bfir(1_000 / scale),
        "bier_transit_1" => bier::transit(Replication::OnePass, 1),
        "bier_transit_1_recirculate" => bier::transit(Replication::Recirculate, 1),
        "bier_transit_1_clusters" => bier::transit(Replication::Clusters, 1),
        "bier_transit_4" => bier::transit(Replication::OnePass, 4),
        "bier_transit_4_recirculate" => bier::transit(Replication::Recirculate, 4),
        "bier_transit_4_clusters" => bier::transit(Replication::Clusters, 4),
        "bier_transit_16" => bier::transit(Replication::OnePass, 16),
        "bier_transit_16_recirculate" => bier::transit(Replication::Recirculate, 16),
        "bier_transit_16_clusters" => bier::transit(Replication::Clusters, 16),
        _ => Err(format!(
            "there is no benchmark {program:?}; there are {}",
            PROGRAMS.join(", ")
        )),
    }
}
