//! Sends through a packet socket: frames wait in a queue, and one call passes a batch of them to the kernel.
//!
//! This works with every interface; queueing disciplines and packet taps see the frames.

use crate::xdp_transmit::Sent;
use crate::{PortError, socket};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

/// Frames given to the kernel with one system call.
const BATCH: usize = 32;

/// A packet socket for sending, with the frames that wait to be sent.
pub(crate) struct PacketQueue {
    fd: OwnedFd,
    // Frames, one after the other, and their lengths.
    bytes: Vec<u8>,
    lengths: Vec<usize>,
}

impl PacketQueue {
    /// Opens a packet socket for sending from an interface, with an empty queue. Fails if the process lacks the
    /// privilege.
    pub(crate) fn open(interface: &str, index: u32) -> Result<PacketQueue, PortError> {
        // Protocol 0: nothing is received.
        let fd = open_packet_socket(interface)?;
        bind_packet_socket(&fd, interface, index, 0)?;
        Ok(PacketQueue {
            fd,
            bytes: Vec::with_capacity(BATCH * 2048),
            lengths: Vec::with_capacity(BATCH),
        })
    }

    /// Returns true if no frame waits in the queue.
    pub(crate) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Queues a frame. Sends the queue if it has become a full batch of [`BATCH`] frames, and then counts the results
    /// in `sent`.
    pub(crate) fn push(&mut self, frame: &[u8], sent: &mut Sent) {
        self.bytes.extend_from_slice(frame);
        self.lengths.push(frame.len());
        if self.lengths.len() == BATCH {
            self.send(sent);
        }
    }

    /// Passes the queued frames to the kernel, drops those that the kernel refuses, and counts both in `sent`. The
    /// queue is empty afterwards.
    pub(crate) fn send(&mut self, sent: &mut Sent) {
        let mut done = 0;
        let mut start = 0;
        while done < self.lengths.len() {
            match self.send_from(done, start) {
                Ok(count) => {
                    let bytes: usize = self.lengths[done..done + count].iter().sum();
                    sent.frames += count as u64;
                    sent.bytes += bytes as u64;
                    done += count;
                    start += bytes;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    sent.drops += 1;
                    start += self.lengths[done];
                    done += 1;
                }
            }
        }
        self.bytes.clear();
        self.lengths.clear();
    }

    /// Sends the queued frames from number `first` on, which begins at byte `start` of the queue. Returns how many
    /// frames the kernel accepted (at least one), or why it refused the first.
    fn send_from(&mut self, first: usize, start: usize) -> io::Result<usize> {
        // SAFETY: null pointers and zero lengths are valid in both types.
        let (mut parts, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (zeroed(), zeroed()) };
        let mut rest = &mut self.bytes[start..];
        let lengths = &self.lengths[first..];
        for (i, &length) in lengths.iter().enumerate() {
            let (frame, others) = rest.split_at_mut(length);
            rest = others;
            parts[i].iov_base = frame.as_mut_ptr().cast();
            parts[i].iov_len = length;
            messages[i].msg_hdr.msg_iov = &raw mut parts[i];
            messages[i].msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: every message points to one part, of the length given, that lives until after the call; sending only reads
        // it. `lengths` has at most BATCH elements, because a full batch is sent.
        let count = unsafe {
            libc::sendmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                lengths.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        match count {
            1.. => Ok(count as usize),
            0 => Err(io::Error::from(io::ErrorKind::WriteZero)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Opens a packet socket, which receives nothing until it is bound. Errors name `interface`.
pub(crate) fn open_packet_socket(interface: &str) -> Result<OwnedFd, PortError> {
    socket::open(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 0)
        .map_err(|e| PortError::io(format!("packet socket on {interface}"), &e))
}

/// Binds a packet socket to the interface whose kernel index is `index`, so that it receives frames of the EtherType
/// `protocol` (0: none). Errors name `interface`.
pub(crate) fn bind_packet_socket(
    fd: &OwnedFd,
    interface: &str,
    index: u32,
    protocol: libc::c_int,
) -> Result<(), PortError> {
    // SAFETY: all zeros is a valid `sockaddr_ll`.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = (protocol as u16).to_be();
    address.sll_ifindex = index as libc::c_int;
    socket::bind(fd, &address).map_err(|e| PortError::io(format!("bind to {interface}"), &e))
}
