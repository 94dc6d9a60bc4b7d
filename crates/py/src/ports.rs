//! Interfaces of the machine as ports of a switch: added, removed and counted while packets go through, or while none do.

use crate::errors::chosen;
use crate::handle::{NetworkHandle, State};
use crate::interfaces::{Interface, packet_io};
use crate::readings::{Record, record};
use net::NetError;
use ports::{PacketCounters, PacketSocket, TransmitKind};
use pyo3::prelude::*;
use std::sync::PoisonError;

pub(crate) fn transmit_kind(name: &str) -> PyResult<TransmitKind> {
    let choices = [
        ("auto", TransmitKind::Auto),
        ("af_packet", TransmitKind::AfPacket),
        ("af_xdp", TransmitKind::AfXdp),
    ];
    chosen("io must be", name, choices)
}

pub(crate) fn port_statistics(counters: PacketCounters) -> PyResult<Record> {
    Python::attach(|py| record(py, "PortStatistics", &counters))
}

impl NetworkHandle {
    pub(crate) fn add_port(
        &self,
        switch: String,
        port: u32,
        interface: String,
        kind: TransmitKind,
    ) -> Result<(), NetError> {
        let at = switch.clone();
        let add = move |n: &mut net::Network| n.attach_interface(&switch, port, &interface);
        let fresh = Interface {
            kind,
            ..Interface::default()
        };
        match &*self.read() {
            State::Idle(network) => {
                let mut network = network.lock().unwrap_or_else(PoisonError::into_inner);
                self.interfaces.lock().insert(add(&mut network)?, fresh);
                Ok(())
            }
            State::Running(clock) => {
                let number = clock.call(add)??;
                self.interfaces.lock().insert(number, fresh);
                // Opened here, so that no packet waits for it.
                let name = clock.call(move |n| {
                    let mut all = n.interfaces();
                    let found = all.find(|&(other, _)| other == number);
                    found.map(|(_, name)| name.to_owned())
                })?;
                let opened = PacketSocket::open_port(&name.unwrap_or_default(), kind);
                match opened {
                    Ok(socket) => clock.call_with_io(move |_, io| {
                        packet_io(io).map(|io| io.add(number, socket))
                    })?,
                    Err(e) => {
                        clock.call(move |n| n.detach_interface(&at, port))??;
                        Err(NetError::Io(e.to_string()))
                    }
                }
            }
            State::Lost(reason) => Err(NetError::Stopped(reason.clone())),
        }
    }

    pub(crate) fn remove_port(
        &self,
        switch: String,
        port: u32,
    ) -> Result<PacketCounters, NetError> {
        let (number, counters) = match &*self.read() {
            State::Idle(network) => {
                let mut network = network.lock().unwrap_or_else(PoisonError::into_inner);
                let number = network.detach_interface(&switch, port)?;
                (number, self.interfaces.get(number).counters)
            }
            State::Running(clock) => clock.call_with_io(move |network, io| {
                let number = network.detach_interface(&switch, port)?;
                let removed = packet_io(io)?.remove(number);
                Ok((number, removed.unwrap_or_default()))
            })??,
            State::Lost(reason) => return Err(NetError::Stopped(reason.clone())),
        };
        self.interfaces.lock().remove(&number);
        Ok(counters)
    }

    /// Returns the counters of those of a switch's ports that are interfaces, and whether each is up, all read at one
    /// moment.
    pub(crate) fn ports(
        &self,
        switch: String,
        ports: Vec<u32>,
    ) -> Result<Vec<(u32, PacketCounters, bool)>, NetError> {
        let read = move |network: &net::Network, of: &mut dyn FnMut(usize) -> PacketCounters| {
            let found = ports.into_iter().filter_map(|port| {
                let number = network.interface_at(&switch, port).ok()?;
                let up = network.port_is_up(&switch, port).ok()?;
                Some((port, of(number), up))
            });
            found.collect()
        };
        match &*self.read() {
            State::Idle(network) => {
                let network = network.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(read(&network, &mut |number| {
                    self.interfaces.get(number).counters
                }))
            }
            State::Running(clock) => clock.call_with_io(move |network, io| {
                let io = packet_io(io)?;
                Ok(read(network, &mut |number| io.counters(number)))
            })?,
            State::Lost(reason) => Err(NetError::Stopped(reason.clone())),
        }
    }

    /// Returns the counters of the interface at a port, and true if an XDP socket sends its frames; `None` in place
    /// of that while the clock does not run. Fails if the port is not an interface.
    pub(crate) fn port(
        &self,
        switch: String,
        port: u32,
    ) -> Result<(PacketCounters, Option<bool>), NetError> {
        match &*self.read() {
            State::Idle(network) => {
                let network = network.lock().unwrap_or_else(PoisonError::into_inner);
                let number = network.interface_at(&switch, port)?;
                Ok((self.interfaces.get(number).counters, None))
            }
            State::Running(clock) => clock.call_with_io(move |network, io| {
                let number = network.interface_at(&switch, port)?;
                let io = packet_io(io)?;
                Ok((io.counters(number), Some(io.sends_by_xdp(number))))
            })?,
            State::Lost(reason) => Err(NetError::Stopped(reason.clone())),
        }
    }
}
