//! `ports`: the Linux kernel's side of a live network.
//!
//! Network namespaces with the kernel's own TCP as hosts ([`Namespace`]), veth pairs that lead out of them, packet sockets
//! on the near ends ([`PacketSocket`]), and the event loop's frame input and output over many of them ([`PacketIo`]). It
//! deliberately knows nothing of programs, links, queues or time: rate, delay and loss belong to `net`.
//!
//! # Choices
//!
//! * **Configuration goes through the `ip` tool** (iproute2), in batches. Machines with namespaces usually have it,
//!   `ip netns exec` knows its namespaces, users recognise its messages, and
//!   rtnetlink by hand would be several hundred lines for something that runs a few times per experiment.
//!   Without it there is a clear error. Only offloads are switched by `ioctl`, because `ethtool` is often not installed.
//! * **The kernel's state is always removed.** Dropping a [`Namespace`] removes it. If the process ends without that, by
//!   an interrupt, SIGTERM or even SIGKILL, a guard (a small shell waiting on a pipe) removes the rest. No signal
//!   handler is installed: the process may be a Python interpreter, which has its own.
//! * **Names** are `hf<n>-<label>` for namespaces and `hf<n>v<m>` for interfaces in the process's own namespace, `<n>` being
//!   the smallest number that no living process holds (a lock on a file in /run/holdfast). [`clean`] removes the state
//!   of numbers that no process holds.
//! * **A ring shared with the kernel to receive, XDP sockets to send.** Received frames come with the kernel's metadata
//!   (unfinished checksums, VLAN tags, joined segments), which an XDP socket would lose; the ring (version 2) shows a frame
//!   at once and costs a fifth of `recvmmsg`. Sending by an XDP socket in copy mode costs a third less than
//!   `sendmmsg`, and needs no program in the kernel. `sendmmsg` remains where it is not
//!   available and for frames that it does not take ([`TransmitKind`] chooses). A mapped ring for sending is slower than both.
//! * **One thread.** All packets of a switch share registers, counters and meters, and control is atomic because it
//!   runs between bursts; a second worker would need locks on every packet.
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
mod memory;
mod namespace;
mod offload;
mod packet_queue;
mod packet_socket;
mod probe;
mod receive_ring;
mod report_socket;
mod session;
mod socket;
mod xdp_transmit;

pub use error::PortError;
pub use frame_io::PacketIo;
pub use instructions::InstructionCounter;
pub use interface::disable_offloads;
pub use load::{InterfaceCounters, LoadReport, interface_counters, send_load};
pub use memory::{give_back_freed, set_up_allocator};
pub use namespace::{Namespace, VethOptions};
pub use packet_socket::{PacketCounters, PacketSocket, TransmitKind};
pub use probe::{Finding, interfaces_ready, probe};
pub use report_socket::{BATCH, ReportSocket};
pub use session::clean;
