//! Reports that the machine's interfaces changed. The caller inspects the interfaces to find the change, so a lost message does no
//! harm.

use crate::PortError;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A subscription to the kernel's news of interfaces, in the network namespace of the thread that made it.
pub(crate) struct LinkWatch {
    fd: OwnedFd,
}

impl LinkWatch {
    pub(crate) fn new() -> Result<LinkWatch, PortError> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; the result is checked.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) };
        if fd < 0 {
            return Err(PortError::last("netlink socket"));
        }
        // SAFETY: the descriptor is new and nobody else's.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: all zeros is a valid `sockaddr_nl`.
        let mut address: libc::sockaddr_nl = unsafe { zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        // SAFETY: the pointer is to an address of the length given.
        let result = unsafe {
            libc::bind(
                fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_nl>() as libc::socklen_t,
            )
        };
        if result < 0 {
            return Err(PortError::last("news of interfaces"));
        }
        Ok(LinkWatch { fd })
    }

    /// The descriptor, to wait for.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Takes the news that wait.
    pub(crate) fn clear(&self) {
        let mut message = [0u8; 256];
        loop {
            // SAFETY: the pointer is to as many bytes as the length says. What does not fit is cut off.
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
