//! Packet captures: the frames of a port, in one or both directions, as a pcap file with nanoseconds. A capture is an observer of that
//! port.
//!
//! A frame that leaves is captured as the node hands it to the link, before the link's queue; one that arrives, as it
//! arrives. Under the virtual clock time stamps count from the epoch; under the wall clock they are the time of day.

use crate::observer::{Moment, Observation, Observer, Place};
use std::io::Write;
use wire::pcap;

/// The frames that a capture of a port takes, as its node sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Crossings {
    /// Takes the frames that come in and those that go out.
    #[default]
    Both,
    /// Takes the frames that come in.
    In,
    /// Takes the frames that go out.
    Out,
}

/// A capture in progress.
pub(crate) struct Capture {
    /// The capture's name in error messages.
    what: String,
    crossings: Crossings,
    writer: pcap::Writer<Box<dyn Write + Send>>,
    /// True if an error has ended the capture; later frames are not written.
    failed: bool,
    failure: Option<String>,
}

impl Capture {
    pub(crate) fn new(
        what: String,
        crossings: Crossings,
        out: Box<dyn Write + Send>,
    ) -> Result<Capture, String> {
        match pcap::Writer::new(out) {
            Ok(writer) => Ok(Capture {
                what,
                crossings,
                writer,
                failed: false,
                failure: None,
            }),
            Err(error) => Err(format!("{what}: {error}")),
        }
    }

    fn check(&mut self, result: std::io::Result<()>) {
        if let Err(error) = result {
            self.failed = true;
            self.failure = Some(format!("{}: {error}", self.what));
        }
    }
}

impl Observer for Capture {
    fn observe(&mut self, moment: Moment, _: Place<'_>, seen: &Observation<'_>) {
        let packet = match (seen, self.crossings) {
            (Observation::Received(packet), Crossings::Both | Crossings::In)
            | (Observation::Sent(packet), Crossings::Both | Crossings::Out) => packet,
            _ => return,
        };
        if !self.failed {
            let written = self.writer.write(moment.time_ns(), &packet.bytes());
            self.check(written);
        }
    }

    fn flush(&mut self) {
        if !self.failed {
            let flushed = self.writer.flush();
            self.check(flushed);
        }
    }

    fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }
}
