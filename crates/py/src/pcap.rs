//! Capture files for Python. The format is `wire`'s.

use crate::errors::failed;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::PathBuf;

/// Picoseconds in a nanosecond, the files' unit.
const PS_PER_NS: u128 = 1000;

/// Picoseconds since 1970, where captures on the wall clock count from, are beyond 64 bits.
type Picoseconds = u128;

/// The frames of a pcap file of Ethernet frames, each with its time in picoseconds.
#[pyfunction]
pub(crate) fn read_pcap(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<Vec<(Picoseconds, Bound<'_, PyBytes>)>> {
    let bytes = py.detach(|| fs::read(&path))?;
    let explain = |e: &dyn std::fmt::Display| failed(format!("{}: {e}", path.display()));
    let reader = wire::pcap::Reader::new(&bytes).map_err(|e| explain(&e))?;
    if reader.link_type() != wire::pcap::LINK_TYPE_ETHERNET {
        return Err(explain(&format!(
            "link type {} is not Ethernet",
            reader.link_type()
        )));
    }
    reader
        .map(|record| {
            let record = record.map_err(|e| explain(&e))?;
            let time_ps = u128::from(record.time_ns) * PS_PER_NS;
            Ok((time_ps, PyBytes::new(py, record.frame)))
        })
        .collect()
}

/// Writes frames, each with its time in picoseconds, to a pcap file (which keeps nanoseconds).
#[pyfunction]
pub(crate) fn write_pcap(
    path: PathBuf,
    frames: Vec<(Picoseconds, Bound<'_, PyBytes>)>,
) -> PyResult<()> {
    let mut writer = wire::pcap::Writer::new(BufWriter::new(File::create(&path)?))?;
    for (time_ps, frame) in &frames {
        let time_ns = u64::try_from(time_ps / PS_PER_NS)
            .map_err(|_| failed("a frame's time is beyond what a pcap file can say"))?;
        writer.write(time_ns, frame.as_bytes())?;
    }
    Ok(writer.flush()?)
}
