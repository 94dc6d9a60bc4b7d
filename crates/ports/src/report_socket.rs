//! A UDP socket that takes packets in batches (`recvmmsg`), and tells what the kernel had no room for. It does not know what is in them.
//!
//! The kernel counts drops of a socket. `SO_RXQ_OVFL` puts this count beside packets; `SO_MEMINFO` tells it at any time, so that the last
//! losses are not missed.

use crate::{PortError, socket};
use std::io;
use std::mem::zeroed;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// Packets taken with one system call.
pub const BATCH: usize = 128;

/// The length of the longest UDP payload in bytes.
const MOST_BYTES: usize = 65_535;

/// The index of drops among the values of `SO_MEMINFO` (`linux/sock_diag.h`).
const SK_MEMINFO_DROPS: usize = 8;

/// A UDP socket, and the packets of the last batch that the caller has not taken yet.
pub struct ReportSocket {
    fd: OwnedFd,
    address: SocketAddr,
    buffers: Vec<u8>,
    lengths: [usize; BATCH],
    next: usize,
    filled: usize,
    drops: u64,
    last_drops: u32,
}

impl ReportSocket {
    /// Opens a socket that listens at an address; port 0 selects a free port. Without privileges, the kernel may grant
    /// a smaller receive buffer than `buffer_bytes` (`net.core.rmem_max`). Fails if the address is in use.
    pub fn open(address: SocketAddr, buffer_bytes: u32) -> Result<ReportSocket, PortError> {
        let what = || format!("UDP socket at {address}");
        let socket = UdpSocket::bind(address).map_err(|e| PortError::io(what(), &e))?;
        let address = socket.local_addr().map_err(|e| PortError::io(what(), &e))?;
        let fd = OwnedFd::from(socket);
        let bytes = buffer_bytes.min(i32::MAX as u32) as libc::c_int;
        socket::set_option(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes)
            .or_else(|_| socket::set_option(&fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes))
            .map_err(|e| PortError::io(what(), &e))?;
        Ok(ReportSocket {
            fd,
            address,
            // Pages become memory when a packet needs them.
            buffers: vec![0; BATCH * MOST_BYTES],
            lengths: [0; BATCH],
            next: 0,
            filled: 0,
            drops: 0,
            last_drops: 0,
        })
    }

    /// Returns the address at which the socket listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits up to `timeout` for packets, and receives a batch of them; does nothing if some of the last batch are
    /// left. A signal ends the wait, without an error.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), PortError> {
        if self.next < self.filled {
            return Ok(());
        }
        let mut poll = libc::pollfd {
            fd: self.fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let timeout_ms = timeout.as_millis().min(i32::MAX as u128) as libc::c_int;
        // SAFETY: the pointer is to one structure, as the count says.
        let ready = unsafe { libc::poll(&raw mut poll, 1, timeout_ms) };
        let taken = match ready {
            0 => Ok(0),
            1.. => self.receive(),
            _ => Err(io::Error::last_os_error()),
        };
        self.next = 0;
        self.filled = match taken {
            Ok(count) => count,
            // Another signal, or a packet whose checksum turned out to be wrong.
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) =>
            {
                0
            }
            Err(e) => return Err(PortError::io(format!("UDP socket at {}", self.address), &e)),
        };
        Ok(())
    }

    /// Receives a batch of the packets that wait in the kernel, and returns their number. Fails if the socket fails.
    fn receive(&mut self) -> io::Result<usize> {
        // SAFETY: null pointers and zero lengths are valid in both types.
        let (mut parts, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (zeroed(), zeroed()) };
        let buffers = self.buffers.chunks_exact_mut(MOST_BYTES);
        for ((message, part), buffer) in messages.iter_mut().zip(&mut parts).zip(buffers) {
            part.iov_base = buffer.as_mut_ptr().cast();
            part.iov_len = buffer.len();
            message.msg_hdr.msg_iov = &raw mut *part;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: every message points to one part of a buffer of its own, with its length; all of them live until after the call.
        let count = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        for (length, message) in self.lengths.iter_mut().zip(&messages[..count]) {
            *length = message.msg_len as usize;
        }
        Ok(count)
    }

    /// Makes the kernel accept no more packets for the socket. Those that wait in the kernel can still be received.
    /// Fails if the kernel refuses that.
    pub fn refuse_more(&self) -> Result<(), PortError> {
        // A connected socket takes packets of its peer alone, and nobody can send from this socket's own address (connect(2), udp(7)).
        let socket = self
            .fd
            .try_clone()
            .map(UdpSocket::from)
            .and_then(|socket| socket.connect(self.address));
        socket.map_err(|e| PortError::io(format!("UDP socket at {}", self.address), &e))
    }

    /// Returns the payload of the next packet of the batch, and counts the packet as taken; `None` after the last.
    pub fn next_payload(&mut self) -> Option<&[u8]> {
        let length = *self.lengths[..self.filled].get(self.next)?;
        let start = self.next * MOST_BYTES;
        self.next += 1;
        self.buffers.get(start..start + length)
    }

    /// Returns the number of packets dropped since the socket was opened because the kernel's buffer was full. Must be
    /// called before the kernel drops 2^32 more, since its counter has 32 bits.
    pub fn drops(&mut self) -> u64 {
        let told = socket::option::<[u32; 9]>(&self.fd, libc::SOL_SOCKET, libc::SO_MEMINFO);
        if let Some(values) = told {
            let now = values[SK_MEMINFO_DROPS];
            self.drops += u64::from(now.wrapping_sub(self.last_drops));
            self.last_drops = now;
        }
        self.drops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn open(buffer_bytes: u32) -> (ReportSocket, UdpSocket) {
        let receiver = ReportSocket::open((Ipv4Addr::LOCALHOST, 0).into(), buffer_bytes)
            .expect("a loopback address");
        let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback address");
        sender.connect(receiver.address()).expect("UDP");
        (receiver, sender)
    }

    #[test]
    fn batches_hold_every_packet() {
        let (mut receiver, sender) = open(1 << 20);
        receiver.wait(Duration::ZERO).unwrap();
        assert!(receiver.next_payload().is_none());
        let sent: Vec<Vec<u8>> = (0..300).map(|n| vec![n as u8; n % 7 * 900]).collect();
        for payload in &sent {
            sender.send(payload).unwrap();
        }
        let mut received = Vec::new();
        while received.len() < sent.len() {
            receiver.wait(Duration::from_secs(60)).unwrap();
            while let Some(payload) = receiver.next_payload() {
                received.push(payload.to_vec());
            }
        }
        assert_eq!(received, sent);
        assert_eq!(receiver.drops(), 0);
    }

    #[test]
    fn no_packet_comes_in_after_the_end() {
        let (mut receiver, sender) = open(1 << 20);
        for number in 0..10u8 {
            sender.send(&[number]).unwrap();
        }
        receiver.refuse_more().unwrap();
        for number in 10..20u8 {
            // A destination that refuses may be noticed.
            let _ = sender.send(&[number]);
        }
        receiver.wait(Duration::from_millis(200)).unwrap();
        let taken = std::iter::from_fn(|| receiver.next_payload().map(|it| it[0]));
        assert_eq!(taken.collect::<Vec<u8>>(), (0..10).collect::<Vec<u8>>());
        receiver.wait(Duration::from_millis(50)).unwrap();
        assert_eq!(receiver.next_payload(), None);
    }

    #[test]
    fn drops_are_counted_once() {
        let (mut receiver, sender) = open(4096);
        for _ in 0..500 {
            sender.send(&[0; 1000]).unwrap();
        }
        let mut received = 0;
        loop {
            receiver.wait(Duration::from_millis(200)).unwrap();
            if receiver.next_payload().is_none() {
                break;
            }
            received += 1;
            while receiver.next_payload().is_some() {
                received += 1;
            }
        }
        assert!(received < 500);
        assert_eq!(receiver.drops(), 500 - received);
        assert_eq!(receiver.drops(), 500 - received);
    }
}
