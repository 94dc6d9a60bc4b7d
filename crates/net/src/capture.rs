//! Packet captures: what crosses a port, in both directions, as a pcap file with nanoseconds.
//!
//! A frame that leaves is captured as the node hands it to the link, before the link's queue; one that arrives, as it
//! arrives. Under the virtual clock time stamps count from the epoch; under the wall clock they are the time of day.

use std::io::Write;
use wire::pcap;

/// A capture in progress.
pub(crate) struct Capture {
    pub(crate) port: u32,
    writer: pcap::Writer<Box<dyn Write + Send>>,
    /// The first error ends the capture; later frames are not written.
    failure: Option<String>,
    reported: bool,
}

impl Capture {
    pub(crate) fn new(port: u32, out: Box<dyn Write + Send>) -> std::io::Result<Capture> {
        Ok(Capture {
            port,
            writer: pcap::Writer::new(out)?,
            failure: None,
            reported: false,
        })
    }

    pub(crate) fn write(&mut self, time_ns: u64, frame: &[u8]) {
        if self.failure.is_none()
            && let Err(error) = self.writer.write(time_ns, frame)
        {
            self.failure = Some(error.to_string());
        }
    }

    /// Passes on what is buffered.
    pub(crate) fn flush(&mut self) {
        if self.failure.is_none()
            && let Err(error) = self.writer.flush()
        {
            self.failure = Some(error.to_string());
        }
    }

    /// The error that ended the capture, the first time that somebody asks.
    pub(crate) fn report(&mut self) -> Option<&str> {
        if std::mem::replace(&mut self.reported, self.failure.is_some()) {
            return None;
        }
        self.failure.as_deref()
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture")
            .field("port", &self.port)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}
