//! `py`: the native core for Python, exactly as `python/holdfast/_core.pyi` says. No logic: conversions, and who waits for
//! whom.
//!
//! Long calls (compiling, running, polling) let other Python threads run. A [`switch::Switch`] stands alone behind a lock or
//! is a node of a network, which is behind one itself or on the thread of the wall clock; then what is asked of it is sent
//! there and the answer awaited. What is handed to another thread is never a Python object, but a copy ([`records`]).
#![forbid(unsafe_code)]

mod bench;
mod by_id;
mod entities;
mod errors;
mod handle;
mod links;
mod live;
mod network;
mod notification;
mod objects;
mod pcap;
mod plain;
mod ports;
mod program;
mod readings;
mod records;
mod stf;
mod switch;
mod tcp;

use pyo3::pymodule;

/// The native core: compiler, switch and network.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::bench::{Benchmark, BenchmarkResult, SimulationBenchmark, TableBenchmark};
    #[pymodule_export]
    use crate::entities::{
        CloneSession, CounterCell, DirectCounterCell, MulticastGroup, RegisterCell, TableEntry,
    };
    #[pymodule_export]
    use crate::errors::{CompileError, ControlError, HoldfastError};
    #[pymodule_export]
    use crate::live::{Namespace, clean, interfaces_ready, probe};
    #[pymodule_export]
    use crate::network::Network;
    #[pymodule_export]
    use crate::notification::Notification;
    #[pymodule_export]
    use crate::objects::{
        ActionProfileGroup, ActionProfileMember, DigestConfig, DigestList, DirectMeterCell,
        MeterCell, ValueSetMembers,
    };
    #[pymodule_export]
    use crate::pcap::{read_pcap, write_pcap};
    #[pymodule_export]
    use crate::plain::{PlainTables, WriteRequest};
    #[pymodule_export]
    use crate::program::{Diagnostic, Program};
    #[pymodule_export]
    use crate::stf::{run_stf, stf_scripts};
    #[pymodule_export]
    use crate::switch::{Switch, TableSnapshot};
    use pyo3::prelude::*;

    /// The names that Python's annotations use, and numbers that its defaults are.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let names = module.dict().copy()?;
        module.py().run(crate::ALIASES, Some(&names), None)?;
        for name in ["Match", "Entity", "Update", "PlainTable"] {
            module.add(name, names.get_item(name)?)?;
        }
        module.add("COPIES_PER_S", engine::COPIES_PER_S)?;
        Ok(())
    }
}

/// Types of arguments, as in the typed face; Python has no other way to make them.
const ALIASES: &std::ffi::CStr = c"
from collections.abc import Sequence
from typing import Literal
Match = tuple[str, bytes] | tuple[str, bytes, int] | tuple[str, bytes, bytes]
Entity = (
    TableEntry | MulticastGroup | CloneSession | RegisterCell | CounterCell | DirectCounterCell
    | ActionProfileMember | ActionProfileGroup | MeterCell | DirectMeterCell | ValueSetMembers | DigestConfig
)
Update = tuple[Literal['insert', 'modify', 'delete'], Entity]
PlainTable = tuple[int, Sequence[tuple[int, str, int]], Sequence[tuple[int, Sequence[tuple[int, int]]]]]
";
