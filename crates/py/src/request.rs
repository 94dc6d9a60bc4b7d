//! Python's numbers to updates of table entries; crate `p4runtime` makes those.

use ir::MatchKind;
use p4runtime::{ActionShape, Given, Named, Number, Slot};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyString, PyTuple};

/// The name, id and width in bits of a match field or parameter.
type Param = (String, u32, u32);

/// Encodes updates of the entries of one table, as far as their values are plain numbers.
#[pyclass(module = "holdfast._core", frozen)]
pub(crate) struct EntryEncoder {
    inner: p4runtime::EntryEncoder,
}

#[pymethods]
impl EntryEncoder {
    /// Creates an encoder for entries of a table. ``fields`` contain name, id, width in bits and match kind;
    /// ``actions`` contain name, id and parameters, each with name, id and width in bits. A field or action with
    /// several names is given once for each. Raises ValueError for an unknown match kind.
    #[new]
    fn new(
        table_id: u32,
        fields: Vec<(String, u32, u32, String)>,
        actions: Vec<(String, u32, Vec<Param>)>,
    ) -> PyResult<EntryEncoder> {
        let fields = fields.into_iter().map(|(name, id, width, kind)| {
            let kind = MatchKind::of_name(&kind)
                .ok_or_else(|| PyValueError::new_err(format!("there is no match kind '{kind}'")))?;
            Ok((name, (Slot { id, width }, kind)))
        });
        let fields = fields.collect::<PyResult<Named<_>>>()?;
        let slot = |(name, id, width): Param| (name, Slot { id, width });
        let actions = actions.into_iter().map(|(name, id, params)| {
            let params = params.into_iter().map(slot).collect();
            (name, ActionShape { id, params })
        });
        Ok(EntryEncoder {
            inner: p4runtime::EntryEncoder {
                table: table_id,
                fields,
                actions: actions.collect(),
            },
        })
    }

    /// Encodes a serialized ``WriteRequest`` with one update; the concatenation of several is one request with all
    /// their updates. Returns None if a value is not a plain number or does not fit, or if a name is unknown.
    #[pyo3(
        signature = (kind, matches, action, params, priority, metadata),
        text_signature = "($self, kind, match, action, params, priority, metadata)"
    )]
    #[expect(clippy::too_many_arguments, reason = "an entry's parts")]
    fn update<'py>(
        &self,
        py: Python<'py>,
        kind: u32,
        matches: &Bound<'py, PyDict>,
        action: Option<&str>,
        params: Option<&Bound<'py, PyDict>>,
        priority: u32,
        metadata: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut entry = self.inner.entry();
        for (name, value) in matches {
            if value.is_none() {
                continue;
            }
            let Some(field) = called(&name, |name| self.inner.field(name)) else {
                return Ok(None);
            };
            match given(&value, field)? {
                Some(given) if entry.put_match(field, &given) => {}
                _ => return Ok(None),
            }
        }
        if let Some(action) = action {
            let Some(action) = self.inner.action(action) else {
                return Ok(None);
            };
            let mut values = Vec::with_capacity(params.map_or(0, |params| params.len()));
            for (name, value) in params.into_iter().flatten() {
                let Some(slot) = called(&name, |name| action.param(name)) else {
                    return Ok(None);
                };
                let Some(value) = number(&value, slot.width)? else {
                    return Ok(None);
                };
                values.push((slot, value));
            }
            if !entry.put_action(action, &values) {
                return Ok(None);
            }
        }
        Ok(Some(PyBytes::new(
            py,
            &entry.request(kind, priority, metadata),
        )))
    }
}

/// Finds what has a name by calling `find`; `None` if the name is not a string or not known.
fn called<T>(name: &Bound<'_, PyAny>, find: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    find(name.cast::<PyString>().ok()?.to_str().ok()?)
}

/// Reads a match from Python: one number or a pair of numbers. `None` if it is neither, or a number does not fit.
fn given(value: &Bound<'_, PyAny>, (slot, kind): (Slot, MatchKind)) -> PyResult<Option<Given>> {
    let Ok(pair) = value.cast_exact::<PyTuple>() else {
        return Ok(number(value, slot.width)?.map(Given::Number));
    };
    if pair.len() != 2 {
        return Ok(None);
    }
    let second_width = if kind.is_prefix() { 16 } else { slot.width };
    let first = number(&pair.get_item(0)?, slot.width)?;
    let second = number(&pair.get_item(1)?, second_width)?;
    Ok(first
        .zip(second)
        .map(|(first, second)| Given::Pair(first, second)))
}

/// Reads a number of at most `width` bits, rounded up to whole bytes; `None` if the value is not a plain number, or
/// does not fit.
fn number(value: &Bound<'_, PyAny>, width: u32) -> PyResult<Option<Number>> {
    if !value.is_exact_instance_of::<PyInt>() {
        return Ok(None);
    }
    if width <= 64 {
        let number = value.extract::<u64>();
        return Ok(number
            .ok()
            .map(|number| Number::from_be_bytes(&number.to_be_bytes())));
    }
    let py = value.py();
    let to_bytes = pyo3::intern!(py, "to_bytes");
    match value.call_method1(to_bytes, (width.div_ceil(8), pyo3::intern!(py, "big"))) {
        Ok(bytes) => {
            let bytes = bytes.cast::<PyBytes>()?;
            Ok(Some(Number::from_be_bytes(bytes.as_bytes())))
        }
        // It is negative, or too large.
        Err(_) => Ok(None),
    }
}
