//! Capture files for Python. The formats are `wire`'s.

use crate::errors::failed;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fs::File;
use std::io::{self, BufWriter, Read};
use std::path::{Path, PathBuf};

/// Picoseconds in a nanosecond, the unit of capture files.
const PS_PER_NS: u128 = 1000;

/// A time in picoseconds. Captures on the wall clock count from 1970, which is beyond 64 bits.
type Picoseconds = u128;

/// The largest capture that is read; larger ones need tools that do not hold them in memory.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Reads a capture file that is a regular file, since a device or a pipe may have no end. Returns an error text,
/// without reading on, if its beginning is not that of a capture.
fn read_capture(path: &Path) -> io::Result<Result<Vec<u8>, String>> {
    if !std::fs::metadata(path)?.is_file() {
        return Ok(Err("this is not a regular file".into()));
    }
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    (&mut file).take(4).read_to_end(&mut bytes)?;
    if !wire::capture::is_capture(&bytes) {
        return Ok(Err(wire::pcap::ReadError::NotPcap.to_string()));
    }
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Ok(Err(format!(
            "a capture of more than {} MiB is too large",
            MAX_FILE_BYTES >> 20
        )));
    }
    Ok(Ok(bytes))
}

/// Reads the frames of a pcap or pcapng file of Ethernet frames, each with its time in picoseconds (0 if it has
/// none). Raises HoldfastError for a file of another kind, and OSError for one that cannot be read.
#[pyfunction]
pub(crate) fn read_pcap(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<Vec<(Picoseconds, Bound<'_, PyBytes>)>> {
    let explain = |e: &dyn std::fmt::Display| failed(format!("{}: {e}", path.display()));
    let bytes = py
        .detach(|| read_capture(&path))?
        .map_err(|e| explain(&e))?;
    wire::capture::Reader::new(&bytes)
        .map_err(|e| explain(&e))?
        .map(|packet| {
            let packet = packet.map_err(|e| explain(&e))?;
            if packet.link_type != wire::pcap::LINK_TYPE_ETHERNET {
                return Err(explain(&format!(
                    "link type {} is not Ethernet",
                    packet.link_type
                )));
            }
            let time_ps = u128::from(packet.record.time_ns) * PS_PER_NS;
            Ok((time_ps, PyBytes::new(py, packet.record.frame)))
        })
        .collect()
}

/// Writes frames, each with its time in picoseconds, to a pcap file, with times rounded down to nanoseconds. Fails for
/// a time that is too large for the file's format, and if the file cannot be written.
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
