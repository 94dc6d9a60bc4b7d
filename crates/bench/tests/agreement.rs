//! Each hand-written version sends the same packets as the P4 program, byte for byte and port for port, with full tables except for the million routes.

use bench::measure::check;
use bench::{Options, PROGRAMS, TABLES, measure, measure_table, workload};

#[test]
fn both_versions_send_the_same_packets() {
    for program in PROGRAMS {
        // A million routes take a while; the structures are the same with ten thousand.
        let mut workload = workload(program, program.ends_with("_1m")).expect(program);
        for size in [64, 65, 512, 1500] {
            if let Err(why) = check(&mut workload, size, 4096) {
                panic!("{program}, {size} bytes: {why}");
            }
        }
    }
}

#[test]
fn figures_are_figures() {
    for program in PROGRAMS {
        let mut workload = workload(program, true).expect(program);
        let m = measure(&mut workload, 64, Options::QUICK).expect(program);
        assert!(
            m.ns_per_packet > 0.0 && m.handwritten_ns_per_packet > 0.0,
            "{m:?}"
        );
        assert!((m.ratio() - m.packets_per_s() / m.handwritten_packets_per_s()).abs() < 1e-9);
    }
}

#[test]
fn what_cannot_be_measured_is_an_error() {
    let error = workload("router_2k", true).err().expect("unknown");
    assert!(error.contains("router_1k"), "{error}");
    let mut router = workload("router_1k", true).expect("known");
    for size in [0, 63, 9001] {
        assert!(measure(&mut router, size, Options::QUICK).is_err());
    }
}

#[test]
fn tables_fill_match_and_empty() {
    for (name, _, full) in TABLES {
        let m = measure_table(name, true).expect(name);
        assert_eq!(m.entries, full / 100);
        assert!(m.lookup_ns > 0.0 && m.bytes_per_entry > 8.0, "{m:?}");
        assert!(m.longest_update_us >= m.p999_update_us, "{m:?}");
    }
    assert!(measure_table("exact_2m", true).is_err());
}
