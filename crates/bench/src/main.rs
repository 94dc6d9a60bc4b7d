//! `holdfast-bench [PROGRAM...] [SIZE...]`, `holdfast-bench --tables [TABLE...]`, `holdfast-bench --simulation [SCENARIO...]`, each with
//! `--quick` or without: the benchmarks without Python in between, for a profiler. Users run `holdfast bench`.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_macros, reason = "a command prints")]

use bench::{
    Options, PROGRAMS, TABLES, measure, measure_simulation, measure_table, simulations, workload,
};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (sizes, words): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|a| a.parse::<usize>().is_ok());
    let (flags, mut programs): (Vec<String>, Vec<String>) =
        words.into_iter().partition(|a| a.starts_with('-'));
    let known = ["--quick", "--tables", "--simulation"];
    if let Some(flag) = flags.iter().find(|f| !known.contains(&f.as_str())) {
        return Err(format!("{flag} is not known; {} are", known.join(", ")));
    }
    let given = |flag: &str| flags.iter().any(|f| f == flag);
    let quick = given("--quick");
    if given("--tables") {
        return tables(&programs, quick);
    }
    if given("--simulation") {
        return measure_simulations(&programs, quick);
    }
    let mut sizes: Vec<usize> = sizes.iter().filter_map(|s| s.parse().ok()).collect();
    if programs.is_empty() {
        programs = PROGRAMS.iter().map(ToString::to_string).collect();
    }
    if sizes.is_empty() {
        sizes = vec![64, 512, 1500];
    }
    println!(
        "program                bytes  ns/packet  hand-written   Mpacket/s  hand-written  ratio  instructions"
    );
    for program in &programs {
        let mut workload = workload(program, quick)?;
        let options = if quick { Options::QUICK } else { Options::FULL };
        for &size in &sizes {
            let m = measure(&mut workload, size, options)?;
            println!(
                "{program:<22} {size:>5}  {:>9.1}  {:>12.1}  {:>10.2}  {:>12.2}  {:>5.2}  {}",
                m.ns_per_packet,
                m.handwritten_ns_per_packet,
                m.packets_per_s() * 1e-6,
                m.handwritten_packets_per_s() * 1e-6,
                m.ratio(),
                m.instructions_per_packet
                    .map_or("not counted".to_string(), |n| format!("{n:.0}")),
            );
        }
    }
    Ok(())
}

fn tables(names: &[String], quick: bool) -> Result<(), String> {
    println!(
        "table          entries  inserts/s  deletes/s  longest us  99.9 % us  lookup ns  bytes/entry"
    );
    let all: Vec<String> = TABLES.iter().map(|(name, _, _)| name.to_string()).collect();
    for name in if names.is_empty() { &all } else { names } {
        let m = measure_table(name, quick)?;
        println!(
            "{name:<14} {:>7}  {:>9.0}  {:>9.0}  {:>10.1}  {:>9.1}  {:>9.1}  {:>11.1}",
            m.entries,
            m.inserts_per_s,
            m.deletes_per_s,
            m.longest_update_us,
            m.p999_update_us,
            m.lookup_ns,
            m.bytes_per_entry,
        );
    }
    Ok(())
}

fn measure_simulations(names: &[String], quick: bool) -> Result<(), String> {
    println!(
        "scenario       switches   packets  packet-hops     events  Mpacket/s  Mpacket-hops/s  processor s"
    );
    let all: Vec<String> = simulations().iter().map(ToString::to_string).collect();
    for name in if names.is_empty() { &all } else { names } {
        let m = measure_simulation(name, quick)?;
        println!(
            "{name:<13} {:>9}  {:>8}  {:>11}  {:>9}  {:>9.2}  {:>14.2}  {:>11.3}",
            m.switches,
            m.packets,
            m.packet_hops,
            m.events,
            m.packets_per_s() * 1e-6,
            m.packet_hops_per_s() * 1e-6,
            m.processor_s,
        );
    }
    Ok(())
}
