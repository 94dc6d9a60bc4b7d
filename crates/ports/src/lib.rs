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
//! * **`recvmmsg` and `sendmmsg`** rather than a mapped ring: a frame is there at once (a ring of version 3 delays it until
//!   its block is closed), and the copy is small next to what the kernel's TCP costs on the same machine.
#![cfg(target_os = "linux")]

mod error;
mod frame_io;
mod instructions;
mod interface;
mod ip;
mod namespace;
mod offload;
mod packet_socket;
mod probe;
mod session;

pub use error::PortError;
pub use frame_io::PacketIo;
pub use instructions::InstructionCounter;
pub use interface::disable_offloads;
pub use namespace::{Namespace, VethOptions};
pub use packet_socket::{PacketCounters, PacketSocket, ReceiveBuffer};
pub use probe::{Finding, interfaces_ready, probe};
pub use session::clean;
