//! Packet tests from scripts, one by one: which of a directory run, in what order and how they are shown is Python's.

use crate::errors::failed;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use stf::Executors;

/// Returns the STF scripts in a directory and its subdirectories, in order. Raises OSError.
#[pyfunction]
pub(crate) fn stf_scripts(py: Python<'_>, directory: PathBuf) -> PyResult<Vec<PathBuf>> {
    Ok(py.detach(|| stf::scripts(&directory))?)
}

/// Runs an STF script against the program beside it. Returns its status (as `stf::Status` names it) and the reason.
#[pyfunction]
#[pyo3(
    signature = (script, executor="both", include_dirs=Vec::new(), defines=BTreeMap::new()),
    text_signature = "(script, executor='both', include_dirs=(), defines=...)"
)]
pub(crate) fn run_stf(
    py: Python<'_>,
    script: PathBuf,
    executor: &str,
    include_dirs: Vec<PathBuf>,
    defines: BTreeMap<String, String>,
) -> PyResult<(&'static str, String)> {
    let executors = match executor {
        "jit" => Executors::MachineCode,
        "interpreter" => Executors::Interpreter,
        "both" => Executors::Both,
        _ => {
            return Err(failed(format!(
                "executor {executor:?} is neither \"jit\" nor \"interpreter\" nor \"both\""
            )));
        }
    };
    let options = compile::Options {
        include_dirs,
        defines: defines.into_iter().collect(),
        ..Default::default()
    };
    let result = py.detach(|| stf::run_file(&script, &options, executors));
    Ok((result.status.name(), result.reason))
}
