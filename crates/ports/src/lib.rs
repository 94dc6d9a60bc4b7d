//! `ports`: the Linux kernel's side of a live network.
//!
//! Network namespaces with the kernel's own TCP as hosts ([`Namespace`]), veth pairs that lead out of them, packet sockets
//! on the near ends ([`PacketSocket`]), and the event loop's frame input and output over many of them ([`PacketIo`]). It
//! deliberately knows nothing of programs, links, queues or time: rate, delay and loss belong to `net`.
//!
//! # Choices
//!
//! * **Configuration goes through the `ip` tool** (iproute2), in batches. It is present wherever somebody works with
//!   namespaces, its namespaces are the ones that `ip netns exec` knows, its messages are the ones that people recognise, and
//!   speaking rtnetlink by hand would be several hundred lines for something that runs a few times per experiment.
//!   Without it there is a clear error. Only offloads are switched by `ioctl`, because `ethtool` is often not installed.
//! * **Whatever dies, the kernel's state goes.** Dropping a [`Namespace`] removes it. If the process ends without that, by
//!   an interrupt, SIGTERM or even SIGKILL, a guard (a small shell waiting on a pipe) removes what is left. No signal
//!   handler is installed: the process may be a Python interpreter, which has its own.
//! * **Names** are `hf<n>-<label>` for namespaces and `hf<n>v<m>` for interfaces in the process's own namespace, `<n>` being
//!   the smallest number that no living process holds (a lock on a file in /run/holdfast). [`clean`] removes what belongs
//!   to numbers that nobody holds.
//! * **A ring shared with the kernel to receive, XDP sockets to send.** Received frames come with what the kernel knows of
//!   them (unfinished checksums, VLAN tags, joined segments), which an XDP socket would lose; the ring (version 2) shows a frame
//!   at once and costs a fifth of what `recvmmsg` costs. Sending by an XDP socket in copy mode costs a third less than
//!   `sendmmsg`, and needs no program in the kernel. Where it cannot be had, and for frames that it does not take, `sendmmsg`
//!   remains ([`TransmitKind`] chooses). A mapped ring for sending is slower than both.
//! * **One thread.** Registers, counters and meters are shared by all packets of a switch, and control is atomic because it
//!   comes between bursts; a second worker would need locks on every packet.
#![cfg(target_os = "linux")]

mod claim;
mod error;
mod frame_io;
mod instructions;
mod interface;
mod ip;
mod link_watch;
mod load;
mod mapping;
mod namespace;
mod offload;
mod packet_queue;
mod packet_socket;
mod probe;
mod receive_ring;
mod session;
mod xdp_transmit;

pub use error::PortError;
pub use frame_io::PacketIo;
pub use instructions::InstructionCounter;
pub use interface::disable_offloads;
pub use load::{InterfaceCounters, LoadReport, interface_counters, send_load};
pub use namespace::{Namespace, VethOptions};
pub use packet_socket::{PacketCounters, PacketSocket, TransmitKind};
pub use probe::{Finding, interfaces_ready, probe};
pub use session::clean;
