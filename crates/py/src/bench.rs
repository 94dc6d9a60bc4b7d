//! The benchmarks for Python. Crate `bench` defines and takes the measurements.

use crate::errors::failed;
use crate::handle::detached;
use crate::readings::{Record, record};
use pyo3::prelude::*;
use serde::Serialize;

/// A program as P4 and as hand-written Rust, with filled tables. It stays on the thread that made it.
#[pyclass(module = "holdfast._core", unsendable)]
pub(crate) struct Benchmark {
    workload: ::bench::Workload,
    options: ::bench::Options,
    program: String,
}

/// The measured figures of a program, with those that follow from them.
#[derive(Serialize)]
struct Rates<'a> {
    program: &'a str,
    packets_per_s: f64,
    handwritten_packets_per_s: f64,
    ratio: f64,
    #[serde(flatten)]
    measured: &'a ::bench::Measurement,
}

#[pymethods]
impl Benchmark {
    /// Compiles the program and fills the tables of both versions. ``quick`` makes small tables and few measurements,
    /// for tests. Raises HoldfastError if there is no such program.
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

    /// Measures packets per second and instructions per packet of the P4 program and of its hand-written equivalent, with packets
    /// of ``size_bytes`` bytes. Raises :class:`HoldfastError` if they do not send the same packets.
    fn measure(&mut self, size_bytes: usize) -> PyResult<Record> {
        let m = ::bench::measure(&mut self.workload, size_bytes, self.options).map_err(failed)?;
        let rates = Rates {
            program: &self.program,
            packets_per_s: m.packets_per_s(),
            handwritten_packets_per_s: m.handwritten_packets_per_s(),
            ratio: m.ratio(),
            measured: &m,
        };
        Python::attach(|py| record(py, "ProgramMeasurement", &rates))
    }

    /// Returns the names of the programs that can be measured.
    #[staticmethod]
    fn programs() -> Vec<&'static str> {
        ::bench::PROGRAMS.to_vec()
    }
}

/// Builds and runs a scenario of the simulation several times, and returns its counts and median time; with
/// ``quick``, sends only a small part of its packets. Raises HoldfastError if there is no such scenario.
#[pyfunction]
#[pyo3(signature = (scenario, quick=false))]
pub(crate) fn measure_simulation(scenario: &str, quick: bool) -> PyResult<Record> {
    let m = detached(|| ::bench::measure_simulation(scenario, quick)).map_err(failed)?;
    Python::attach(|py| record(py, "SimulationMeasurement", &m))
}

/// Returns the names of the scenarios that can be measured.
#[pyfunction]
pub(crate) fn simulations() -> Vec<&'static str> {
    ::bench::simulations()
}

/// Measures filling a table, looking up keys and emptying it, and returns the rates and times; with ``quick``, uses a
/// hundredth of the entries. Raises HoldfastError if there is no such table.
#[pyfunction]
#[pyo3(signature = (table, quick=false))]
pub(crate) fn measure_table(table: &str, quick: bool) -> PyResult<Record> {
    let m = detached(|| ::bench::measure_table(table, quick)).map_err(failed)?;
    Python::attach(|py| record(py, "TableMeasurement", &m))
}

/// Returns the names of the tables that can be measured.
#[pyfunction]
pub(crate) fn tables() -> Vec<&'static str> {
    ::bench::TABLES.iter().map(|(name, _, _)| *name).collect()
}
