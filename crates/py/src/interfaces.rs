//! What a network's owner knows of the machine's interfaces at its ports, and their packet sockets.

use net::NetError;
use net::clock::wall::FrameIo;
use ports::{PacketCounters, PacketIo, PacketSocket, TransmitKind};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the network itself does not know of its interfaces, by their number.
#[derive(Default)]
pub(crate) struct Interfaces {
    inner: Mutex<BTreeMap<usize, Interface>>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Interface {
    pub(crate) kind: TransmitKind,
    /// The counters, as they were when the interface was last closed.
    pub(crate) counters: PacketCounters,
}

impl Interfaces {
    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Interface>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, number: usize) -> Interface {
        self.lock().get(&number).copied().unwrap_or_default()
    }

    /// Opens a socket for each interface of a network, which continues the interface's counters. Returns an error
    /// text if one cannot be opened.
    pub(crate) fn open(&self, network: &net::Network) -> Result<Box<dyn FrameIo + Send>, String> {
        let text = |e: ports::PortError| e.to_string();
        let mut io = PacketIo::new().map_err(text)?;
        for (number, name) in network.interfaces() {
            let Interface { kind, counters } = self.get(number);
            let mut socket = PacketSocket::open_port(name, kind).map_err(text)?;
            socket.continue_from(counters);
            io.add(number, socket);
        }
        Ok(Box::new(io))
    }

    /// Stores the counters of the interfaces of a network whose wall clock is about to stop, for the next start.
    pub(crate) fn keep_counters(&self, counters: Vec<(usize, PacketCounters)>) {
        let mut interfaces = self.lock();
        for (number, counters) in counters {
            interfaces.entry(number).or_default().counters = counters;
        }
    }
}

/// Converts the frame sockets of a running network to packet sockets. Fails if they are of another kind.
pub(crate) fn packet_io(io: &mut dyn FrameIo) -> Result<&mut PacketIo, NetError> {
    (io as &mut dyn Any)
        .downcast_mut()
        .ok_or_else(|| NetError::Io("the network has no packet sockets".into()))
}
