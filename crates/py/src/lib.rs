//! `py`: the native core for Python, exactly as `python/holdfast/_core.pyi` says. No logic: conversions, and who waits for
//! whom.
//!
//! Long calls (compiling, running, polling) let other Python threads run. A [`switch::Switch`] stands alone behind a lock or
//! is a node of a network, which is behind one itself or on the thread of the wall clock; then what is asked of it is sent
//! there and the answer awaited. Another thread is never handed a Python object, but a copy.
#![forbid(unsafe_code)]

mod bench;
mod description;
mod errors;
mod handle;
mod interfaces;
mod language_server;
mod live;
mod network;
mod notification;
mod pcap;
mod pipeline;
mod ports;
mod program;
mod readings;
mod reconciliation;
mod request;
mod stf;
mod switch;
mod tcp;
mod telemetry;
mod time;

use pyo3::pymodule;

/// The native core: compiler, switch and network.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::bench::{Benchmark, measure_simulation, measure_table, simulations, tables};
    #[pymodule_export]
    use crate::errors::{CompileError, ControlError, HoldfastError};
    #[pymodule_export]
    use crate::language_server::{format_source, serve_language};
    #[pymodule_export]
    use crate::live::{
        Namespace, clean, give_back_freed, interfaces_ready, probe, set_up_allocator,
    };
    #[pymodule_export]
    use crate::network::Network;
    #[pymodule_export]
    use crate::notification::Notification;
    #[pymodule_export]
    use crate::pcap::{read_pcap, write_pcap};
    #[pymodule_export]
    use crate::pipeline::{Batch, Failures, Pipeline, Reading, WriteRequest, extent};
    #[pymodule_export]
    use crate::program::{Diagnostic, Program};
    #[pymodule_export]
    use crate::reconciliation::Reconciliation;
    #[pymodule_export]
    use crate::request::EntryEncoder;
    #[pymodule_export]
    use crate::stf::{run_stf, stf_scripts};
    #[pymodule_export]
    use crate::switch::{Switch, cpu_ports};
    #[pymodule_export]
    use crate::telemetry::{ReportCollector, ReportSocket, decode_reports, decode_thesis_report};
    use pyo3::prelude::*;

    /// Adds constants to the module that Python shares with the core: the commit, limits, and names of rules.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("COMMIT", option_env!("HOLDFAST_COMMIT"))?;
        module.add("COPIES_PER_S", engine::COPIES_PER_S)?;
        module.add("LATENCY_BUCKETS", ::telemetry::LATENCY_BUCKETS.to_vec())?;
        module.add("REPORT_RULES", crate::telemetry::rules())
    }
}
