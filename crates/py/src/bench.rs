//! The benchmarks for Python. Crate `bench` defines and takes the measurements.

use crate::errors::failed;
use pyo3::prelude::*;

/// A program in both versions, its tables filled.
#[pyclass(module = "holdfast._core", unsendable)]
pub(crate) struct Benchmark {
    workload: ::bench::Workload,
    options: ::bench::Options,
    #[pyo3(get)]
    program: String,
}

/// What was measured of a program at a packet size.
#[pyclass(module = "holdfast._core", frozen, get_all)]
pub(crate) struct BenchmarkResult {
    program: String,
    size_bytes: usize,
    packets_per_s: f64,
    handwritten_packets_per_s: f64,
    ratio: f64,
    instructions_per_packet: Option<f64>,
    handwritten_instructions_per_packet: Option<f64>,
    outputs_per_packet: f64,
    spread: f64,
}

#[pymethods]
impl Benchmark {
    /// Compiles the program and fills the tables of both versions; ``quick`` does little, for tests.
    #[new]
    #[pyo3(signature = (program, quick=false))]
    fn new(program: String, quick: bool) -> PyResult<Benchmark> {
        Ok(Benchmark {
            workload: ::bench::workload(&program, quick).map_err(failed)?,
            options: if quick {
                ::bench::Options::QUICK
            } else {
                ::bench::Options::FULL
            },
            program,
        })
    }

    /// Measures with packets of this size. Raises :class:`HoldfastError` if the two versions do not send the same packets.
    fn measure(&mut self, size_bytes: usize) -> PyResult<BenchmarkResult> {
        let m = ::bench::measure(&mut self.workload, size_bytes, self.options).map_err(failed)?;
        Ok(BenchmarkResult {
            program: self.program.clone(),
            size_bytes,
            packets_per_s: m.packets_per_s(),
            handwritten_packets_per_s: m.handwritten_packets_per_s(),
            ratio: m.ratio(),
            instructions_per_packet: m.instructions_per_packet,
            handwritten_instructions_per_packet: m.handwritten_instructions_per_packet,
            outputs_per_packet: m.outputs_per_packet,
            spread: m.spread,
        })
    }

    /// Names of the programs that can be measured.
    #[staticmethod]
    fn programs() -> Vec<&'static str> {
        ::bench::PROGRAMS.to_vec()
    }
}

/// What was measured of a simulation.
#[pyclass(module = "holdfast._core", frozen, get_all)]
pub(crate) struct SimulationBenchmark {
    scenario: String,
    switches: usize,
    packets: u64,
    packet_hops: u64,
    drops: u64,
    events: u64,
    simulated_s: f64,
    goodput_bps: Option<f64>,
    processor_s: f64,
}

#[pymethods]
impl SimulationBenchmark {
    /// Builds and runs a scenario several times; ``quick`` with a small part of the packets.
    #[staticmethod]
    #[pyo3(signature = (scenario, quick=false))]
    fn measure(py: Python<'_>, scenario: &str, quick: bool) -> PyResult<SimulationBenchmark> {
        let measured = py.detach(|| ::bench::measure_simulation(scenario, quick));
        let m = measured.map_err(failed)?;
        Ok(SimulationBenchmark {
            scenario: m.name,
            switches: m.switches,
            packets: m.packets,
            packet_hops: m.packet_hops,
            drops: m.drops,
            events: m.events,
            simulated_s: m.simulated_s,
            goodput_bps: m.goodput_bps,
            processor_s: m.processor_s,
        })
    }

    /// Names of the scenarios that can be measured.
    #[staticmethod]
    fn scenarios() -> Vec<&'static str> {
        ::bench::simulations()
    }
}

/// What was measured of a table.
#[pyclass(module = "holdfast._core", frozen, get_all)]
pub(crate) struct TableBenchmark {
    table: String,
    entries: usize,
    inserts_per_s: f64,
    deletes_per_s: f64,
    longest_update_us: f64,
    p999_update_us: f64,
    lookup_ns: f64,
    bytes_per_entry: f64,
}

#[pymethods]
impl TableBenchmark {
    /// Fills a table, looks keys up, empties it; ``quick`` with a hundredth of the entries.
    #[staticmethod]
    #[pyo3(signature = (table, quick=false))]
    fn measure(py: Python<'_>, table: &str, quick: bool) -> PyResult<TableBenchmark> {
        let measured = py.detach(|| ::bench::measure_table(table, quick));
        let m = measured.map_err(failed)?;
        Ok(TableBenchmark {
            table: m.name,
            entries: m.entries,
            inserts_per_s: m.inserts_per_s,
            deletes_per_s: m.deletes_per_s,
            longest_update_us: m.longest_update_us,
            p999_update_us: m.p999_update_us,
            lookup_ns: m.lookup_ns,
            bytes_per_entry: m.bytes_per_entry,
        })
    }

    /// Names of the tables that can be measured.
    #[staticmethod]
    fn tables() -> Vec<&'static str> {
        ::bench::TABLES.iter().map(|(name, _, _)| *name).collect()
    }
}
