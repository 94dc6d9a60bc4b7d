//! Interfaces of the machine in a network: as nodes at the end of a link, or as ports of a switch.
//!
//! A node is for experiments: the link between it and the switch has rate, delay, loss and a queue. A port has no link: what
//! the interface receives goes through the switch at once, in bursts, and out of another interface. The way of frames into and
//! out of the kernel belongs to [`crate::clock::wall::FrameIo`].

use crate::NodeId;
use crate::error::{NetError, out_of_range};
use crate::link::Attachment;
use engine::Packet;

/// The most packets that are kept to reuse their memory.
const MAX_SPARE: usize = 256;

/// The fate of a frame for an external interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// It was sent, or queued for sending.
    Accepted,
    /// It was not: the interface is full, down or gone, or the frame too long for it.
    Dropped,
}

/// An interface of the machine.
#[derive(Debug)]
pub(crate) struct ExternalInterface {
    name: String,
    /// The place where the interface is attached: the node that it is (port 0), or the switch's port.
    pub(crate) at: Attachment,
    /// True if it can carry frames, according to its last reported state.
    up: bool,
}

/// The interfaces of a network.
#[derive(Debug, Default)]
pub(crate) struct Interfaces {
    /// The interfaces by number; a number may be vacant.
    numbered: Vec<Option<ExternalInterface>>,
    pub(crate) arrivals: Arrivals,
}

impl Interfaces {
    /// Returns the numbers and names of the external interfaces, in the order of the numbers.
    pub(crate) fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.numbered.iter().enumerate();
        numbered.filter_map(|(number, interface)| Some((number, interface.as_ref()?.name.as_str())))
    }

    pub(crate) fn get(&self, number: usize) -> Option<&ExternalInterface> {
        self.numbered.get(number)?.as_ref()
    }

    /// Checks that an external interface with this name may be added. Fails if the name is empty or already in use.
    pub(crate) fn check(&self, interface: &str) -> Result<(), NetError> {
        if interface.is_empty() {
            return Err(out_of_range("interface", "not empty"));
        }
        if self.names().any(|(_, other)| other == interface) {
            return Err(out_of_range(
                "interface",
                format!("one that is not in use, which {interface} is"),
            ));
        }
        Ok(())
    }

    /// Returns the lowest number that no external interface has.
    pub(crate) fn vacant(&self) -> usize {
        let vacant = self.numbered.iter().position(Option::is_none);
        vacant.unwrap_or(self.numbered.len())
    }

    pub(crate) fn occupy(&mut self, number: usize, name: &str, at: Attachment) {
        if self.numbered.len() <= number {
            self.numbered.resize_with(number + 1, || None);
        }
        self.numbered[number] = Some(ExternalInterface {
            name: name.to_owned(),
            at,
            up: true,
        });
    }

    pub(crate) fn vacate(&mut self, number: usize) {
        self.numbered[number] = None;
    }

    /// Returns true if an external interface can carry frames, according to its last reported state.
    pub(crate) fn is_up(&self, number: usize) -> bool {
        self.get(number).is_some_and(|interface| interface.up)
    }

    /// Records whether an external interface is up, as the kernel reports it. Returns the port to which the interface
    /// is attached if that changed its state, else `None`; also `None` for a number that no interface has.
    pub(crate) fn changed(&mut self, number: usize, up: bool) -> Option<Attachment> {
        let interface = self.numbered.get_mut(number)?.as_mut()?;
        let changed = interface.up != up;
        interface.up = up;
        changed.then_some(interface.at)
    }
}

/// Frames that have arrived from outside for a switch, collected into a burst.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// The switch to which all of them go.
    pub(crate) at: NodeId,
    pub(crate) packets: Vec<(u32, Packet)>,
    /// Packets that have been processed, kept to reuse their memory.
    spare: Vec<Packet>,
}

impl Arrivals {
    /// Copies a frame that arrived at a port of the switch into the burst.
    pub(crate) fn push(&mut self, port: u32, frame: &[u8]) {
        let mut packet = self.spare.pop().unwrap_or_default();
        packet.copy_from(frame);
        self.packets.push((port, packet));
    }

    /// Keeps a processed packet so that its memory can be reused, unless enough are kept already.
    pub(crate) fn recycle(&mut self, packet: Packet) {
        if self.spare.len() < MAX_SPARE {
            self.spare.push(packet);
        }
    }
}
