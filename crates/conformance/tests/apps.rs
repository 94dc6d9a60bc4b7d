//! Random histories of the applications: the interpreter and the machine code do the same.
#![expect(
    clippy::disallowed_macros,
    reason = "a test says what it skips and has found"
)]

use conformance::apps::{self, Application, Domain};
use conformance::choices::random_bytes;
use conformance::history::run_with;
use conformance::{Statistics, Subject, run};
use ir::Bits;

/// Histories for each program, with about twenty operations each.
const HISTORIES: u64 = 1500;

/// Counters of P4-Protect for which a connection must have the right copies in the right order; `test_acceptance.py` has both executors do that.
const SEQUENCES: [&str; 3] = [
    "ProtectIngress.decaps_p.acceptance.discarded",
    "ProtectIngress.decaps_p.acceptance.out_of_order",
    "ProtectIngress.decaps_p.acceptance.rogue",
];

/// A counter of IP fast reroute for which a tunnel must end here that was marked on its way around a packet that cannot be;
/// `test_ipfrr_packets.py` has both executors do that.
const UNMARKABLE: [&str; 1] = ["IpfrrIngress.congestion_unmarkable"];

/// Counters of BIER for which several entries, ports or rates must meet in one packet; `test_forwarding.py` and
/// `test_frr_packets.py` have both executors count them.
const BIER_RARE: [&str; 10] = [
    "BierIngress.report_rate_exceeded",
    "BierIngress.mtu_exceeded",
    "BierIngress.end_tunnels.congestion_unmarkable",
    "BierIngress.routing.remote_lfa_repairs",
    "BierIngress.routing.mtu_exceeded",
    "BierIngress.select_copies.malformed_payload",
    "BierIngress.select_copies.payload_ttl_expired",
    "BierIngress.select_copies.one_next_hop.lfa_repairs",
    "BierIngress.select_copies.one_next_hop.tunnel_repairs",
    "BierIngress.select_copies.one_next_hop.tunnel_mtu_exceeded",
];

/// Counters of Shorternet for which entries with long keys, or a checksum, must meet a packet; `test_gateway.py` has both executors count them.
const SHORTERNET_RARE: [&str; 2] = [
    "ShorternetIngress.restore.wrong_context",
    "ShorternetIngress.restore.wrong_length",
];

/// Counters of the firewall for which ports, bindings, routes and rules must meet, and for `yielded` four assured flows in one row of cells;
/// its tests compare both executors with a model, and have both count `yielded` (`test_attacks.py`).
const FIREWALL_RARE: [&str; 3] = [
    "FirewallIngress.to_controller",
    "FirewallIngress.judge_flow.displaced",
    "FirewallIngress.judge_flow.yielded",
];

/// Counters of the gateway for which a session's line, MAC address and source must meet a packet; `test_single.py` has both executors count
/// them.
const BNG_RARE: [&str; 4] = [
    "BngIngress.send_to_controller.to_controller",
    "BngIngress.clamp_mss.clamped",
    "BngIngress.clamp_mss.unparsed",
    "BngIngress.echoes",
];

/// The counter of programs with link discovery for which its frames must meet a cell of a meter with rates; `test_discovery_rate.py` has both
/// executors count it.
const DISCOVERY_RARE: &str = "discovery_rate_exceeded";

/// Runs random histories of an application, and checks that they exercise it: that packets pass and are
/// dropped, operations succeed and fail, and counters count. The counters named in `rare` may stay at zero.
fn histories(application: &Application, rare: &[&str]) {
    let name = &application.name;
    let subject = application.subject().unwrap_or_else(|why| panic!("{why}"));
    let mut total = Statistics::default();
    for seed in 0..HISTORIES {
        let bytes = random_bytes(seed, 1500);
        match run_with(&subject, &bytes, &application.dialect) {
            Ok(statistics) => total += statistics,
            Err(difference) => panic!("{name}, seed {seed}: {difference}"),
        }
    }
    println!("{name}: {total:?}");
    // The histories are worth something: packets pass and are dropped, operations succeed and fail.
    assert!(total.received > 10 * HISTORIES, "{total:?}");
    assert!(total.sent > total.received / 20, "{total:?}");
    assert!(total.dropped > total.received / 20, "{total:?}");
    assert!(total.accepted > total.refused / 8, "{total:?}");
    assert!(total.refused > 0, "{total:?}");
    let counters = subject.program.counters.iter().zip(&total.counted);
    let silent: Vec<&str> = counters
        .filter(|(counter, counted)| counter.size.is_some() && **counted <= 40)
        .map(|(counter, _)| &counter.name[..])
        .filter(|name| !rare.contains(name) && *name != DISCOVERY_RARE)
        .collect();
    assert!(silent.is_empty(), "{silent:?}: {total:?}");
}

#[test]
fn router() {
    histories(&apps::router(), &[]);
}

#[test]
fn router_with_mtus() {
    histories(&apps::router_with_mtus(), &[]);
}

#[test]
fn ipfrr() {
    histories(&apps::ipfrr(), &UNMARKABLE);
}

#[test]
fn protect() {
    histories(&apps::protect(), &SEQUENCES);
}

#[test]
fn protect_with_small_numbers() {
    histories(&apps::protect_small_numbers(), &SEQUENCES);
}

#[test]
fn firewall() {
    for variant in ["ROUTED", "BRIDGED", "BINDINGS_ONLY"] {
        histories(&apps::firewall(variant), &FIREWALL_RARE);
    }
}

#[test]
fn bier_in_one_pass() {
    histories(&apps::bier("ONE_PASS", "ONE_PASS"), &BIER_RARE);
}

#[test]
fn bier_by_recirculation() {
    histories(&apps::bier("RECIRCULATE", "ONE_PASS"), &BIER_RARE);
}

#[test]
fn bier_by_clusters() {
    histories(&apps::bier("CLUSTERS", "ONE_PASS"), &BIER_RARE);
    histories(&apps::bier("CLUSTERS", "RECIRCULATE"), &BIER_RARE);
}

#[test]
fn shorternet() {
    histories(&apps::shorternet(), &SHORTERNET_RARE);
}

#[test]
fn telemetry_by_dscp() {
    histories(&apps::telemetry(Domain::ByDscp), &[]);
}

#[test]
fn telemetry_by_port() {
    histories(&apps::telemetry(Domain::ByPort), &[]);
}

#[test]
fn telemetry_for_transit() {
    histories(&apps::telemetry(Domain::TransitOnly), &[]);
}

#[test]
fn telemetry_of_the_thesis() {
    histories(&apps::thesis_telemetry(), &[]);
}

#[test]
fn bng() {
    for variant in ["SINGLE", "AUTH_ONLY", "FORWARD_ONLY"] {
        histories(&apps::bng(variant), &BNG_RARE);
    }
}

#[test]
fn bng_balancer() {
    histories(&apps::balancer(), &[]);
}

/// The harness notices a difference: two switches of different programs are no twins.
#[test]
fn a_difference_is_found() {
    let subject = apps::router().subject().expect("the router");
    let mut other = (*subject.program).clone();
    let constant = find_constant(&mut other);
    *constant = Bits::from_u64(16, 0x86dd);
    let other = Subject::new(other).expect("machine code");
    let mixed = subject.with_machine_code_of(&other);
    let found = (0..50).any(|seed| run(&mixed, &random_bytes(seed, 1500)).is_err());
    assert!(found);
}

/// Finds the constant with the EtherType of IPv4 in the router's parser.
fn find_constant(program: &mut ir::Program) -> &mut Bits {
    for state in &mut program.states {
        if let ir::Transition::Select { cases, .. } = &mut state.transition {
            for case in cases {
                for set in &mut case.matches {
                    match set {
                        ir::KeySet::Mask { value, .. } if value.to_u64() == Some(0x0800) => {
                            return value;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    panic!("the router's parser selects on the EtherType of IPv4");
}
