//! Times near the numbers at which their representations end: an application does the same whenever a history begins.

use conformance::Statistics;
use conformance::apps::{self, Application, Domain};
use conformance::choices::random_bytes;
use conformance::history::run_from;
use engine::Time;

const HISTORIES: u64 = 40;
const PS_PER_US: u128 = 1_000_000;
const PS_PER_S: u128 = 1_000_000_000_000;

/// Histories take some eight seconds: from here on they pass a border in their middle.
const LEAD_PS: u128 = 4 * PS_PER_S;

/// A year, for the histories that pass no border: nobody compares times with the beginning of the clock, which is zero in registers too.
const PLAIN_PS: u128 = 365 * 86_400 * PS_PER_S;

/// The ends of representations, in picoseconds: the clock's 64 bits of earlier versions, whole and signed; 32, 46 and 48 bits of v1model's
/// microseconds (fields of reports, intervals of loads, timestamps), the sign of the latter; PSA's 64 bits; 48 and 64 bits of nanoseconds.
const BORDERS: [(&str, u128); 9] = [
    ("2^63 ps", 1 << 63),
    ("2^64 ps", 1 << 64),
    ("2^32 us", PS_PER_US << 32),
    ("2^46 us", PS_PER_US << 46),
    ("2^47 us", PS_PER_US << 47),
    ("2^48 us", PS_PER_US << 48),
    ("2^64 us", PS_PER_US << 64),
    ("2^48 ns", 1000 << 48),
    ("2^64 ns", 1000 << 64),
];

fn laws(application: &Application) {
    let name = &application.name;
    let subject = application.subject().unwrap_or_else(|why| panic!("{why}"));
    let mut received = 0;
    for seed in 0..HISTORIES {
        let bytes = random_bytes(seed, 1500);
        let from = |begin_ps: u128| -> Statistics {
            // Whole units of 2^14 microseconds, in which a program measures loads.
            let unit_ps = PS_PER_US << 14;
            let begin_ps = Time::from_ps(begin_ps / unit_ps * unit_ps);
            run_from(&subject, &bytes, &application.dialect, begin_ps)
                .unwrap_or_else(|why| panic!("{name}, seed {seed}, from {begin_ps} ps on: {why}"))
        };
        let plain = from(PLAIN_PS);
        received += plain.received;
        for (border, at_ps) in BORDERS {
            let there = from(at_ps - LEAD_PS);
            assert_eq!(there, plain, "{name}, seed {seed}, past {border}");
        }
    }
    assert!(received > 10 * HISTORIES, "{received} packets");
}

#[test]
fn firewall() {
    for variant in ["ROUTED", "BRIDGED", "BINDINGS_ONLY"] {
        laws(&apps::firewall(variant));
    }
}

#[test]
fn gateway() {
    for variant in ["SINGLE", "USER"] {
        laws(&apps::bng(variant));
    }
}

#[test]
fn protection() {
    laws(&apps::protect());
    laws(&apps::rtag());
    laws(&apps::mpls());
    laws(&apps::bier_one_plus_one());
}

#[test]
fn telemetry() {
    for domain in [Domain::ByDscp, Domain::ByPort, Domain::TransitOnly] {
        laws(&apps::telemetry(domain));
    }
    laws(&apps::thesis_telemetry());
}

#[test]
fn others() {
    for application in [
        apps::router(),
        apps::ipfrr(),
        apps::ipmc(),
        apps::shorternet(),
    ] {
        laws(&application);
    }
}
