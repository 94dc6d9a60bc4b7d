//! The language server on standard input and output, and the formatter.

use crate::errors::failed;
use crate::handle::detached;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Serves an editor on standard input and output until it says goodbye. ``library`` is the directory for copies of
/// the files that are built into the compiler. Raises :class:`HoldfastError` if the editor does not follow the protocol.
#[pyfunction]
#[pyo3(
    signature = (library, include_dirs=Vec::new(), defines=BTreeMap::new()),
    text_signature = "(library, include_dirs=(), defines=...)"
)]
pub(crate) fn serve_language(
    library: PathBuf,
    include_dirs: Vec<PathBuf>,
    defines: BTreeMap<String, String>,
) -> PyResult<()> {
    let options = compile::Options {
        include_dirs,
        defines: defines.into_iter().collect(),
        ..Default::default()
    };
    detached(|| lsp::serve_stdio(options, &library)).map_err(failed)
}

/// Returns the text of a P4 file with its blanks as they should be. Raises :class:`HoldfastError` with the line if a comment
/// or string has no end, or if a line that is no directive is continued with a backslash.
#[pyfunction]
pub(crate) fn format_source(text: &str) -> PyResult<String> {
    detached(|| syntax::format::format(text)).map_err(failed)
}
