//! Reports that the machine's interfaces changed. The caller inspects the interfaces to find the change, so a lost message does no
//! harm.

use crate::{PortError, socket};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// A subscription to the kernel's messages about changed interfaces, in the network namespace of the thread that made
/// it.
pub(crate) struct LinkWatch {
    fd: OwnedFd,
}

impl LinkWatch {
    pub(crate) fn new() -> Result<LinkWatch, PortError> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK;
        let fd = socket::open(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE)
            .map_err(|e| PortError::io("netlink socket", &e))?;
        // SAFETY: all zeros is a valid `sockaddr_nl`.
        let mut address: libc::sockaddr_nl = unsafe { zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        socket::bind(&fd, &address).map_err(|e| PortError::io("news of interfaces", &e))?;
        Ok(LinkWatch { fd })
    }

    /// Returns the descriptor that becomes readable when an interface changes.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Discards all messages that wait in the socket.
    pub(crate) fn clear(&self) {
        let mut message = [0u8; 256];
        loop {
            // SAFETY: the pointer is to as many bytes as the length says. Bytes that do not fit are cut off.
            let length = unsafe {
                libc::recv(
                    self.fd.as_raw_fd(),
                    message.as_mut_ptr().cast(),
                    message.len(),
                    libc::MSG_DONTWAIT,
                )
            };
            // That messages were lost is reported once, as an error; more may follow.
            let lost =
                length < 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOBUFS);
            if length <= 0 && !lost {
                return;
            }
        }
    }
}
