//! Claims an interface as a port of one switch. Two switches on one interface would both answer every frame, and neither would notice.
//!
//! The kernel keeps the claim and drops it with the process, however that ends: it is a listening Unix socket with an abstract
//! name. Such names belong to the network namespace, as interfaces do, and connecting to one reveals its owner. An interface
//! is identified by its number, because it may have several names.

use crate::{PortError, socket};
use std::fs;
use std::io;
use std::mem::{offset_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};

/// A claim of an interface as a port of this process, in the network namespace of the thread that made the claim.
pub(crate) struct Claim {
    _listener: OwnedFd,
}

impl Claim {
    /// Claims an interface, whose kernel index is `index`, for this process until the returned value is dropped. Fails
    /// with `Busy` and a message that names the owner if the interface is already claimed.
    pub(crate) fn take(interface: &str, index: u32) -> Result<Claim, PortError> {
        let failed = |e: &io::Error| PortError::io(format!("claiming {interface}"), e);
        let socket = unix_socket().map_err(|e| failed(&e))?;
        let (address, length) = abstract_address(&format!("holdfast/port/{index}"));
        // SAFETY: the pointer is to an address of at least the length given.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
        if bound < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::AddrInUse {
                return Err(failed(&error));
            }
            let owner = owner(&address, length).map_err(|e| failed(&e))?;
            return Err(PortError::Busy(format!(
                "interface {interface} is a port of another switch already: {}",
                owner.map_or_else(|| "process unknown".into(), describe)
            )));
        }
        // Nobody accepts: each connection that asked for the owner waits here. The kernel cuts the number to what it allows.
        // SAFETY: no pointers.
        if unsafe { libc::listen(socket.as_raw_fd(), libc::c_int::MAX) } < 0 {
            return Err(failed(&io::Error::last_os_error()));
        }
        Ok(Claim { _listener: socket })
    }
}

/// Returns the id of the process that listens at the address of a Unix socket. Returns `None` if it cannot be
/// determined, because the process has ended, is in another PID namespace, or too many others have asked at the same
/// time. Fails if no socket can be opened.
fn owner(address: &libc::sockaddr_un, length: libc::socklen_t) -> io::Result<Option<i32>> {
    let socket = unix_socket()?;
    // SAFETY: the pointer is to an address of at least the length given.
    let connected =
        unsafe { libc::connect(socket.as_raw_fd(), (&raw const *address).cast(), length) };
    if connected < 0 {
        return Ok(None);
    }
    let credentials: Option<libc::ucred> =
        socket::option(&socket, libc::SOL_SOCKET, libc::SO_PEERCRED);
    // A process of another PID namespace has no number here.
    Ok(credentials.map(|it| it.pid).filter(|&pid| pid != 0))
}

/// Describes a process for an error message, by its id and the beginning of its command line.
fn describe(process: i32) -> String {
    let command = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<_> = command
        .split(|&byte| byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    let command: String = words.join(" ").chars().take(120).collect();
    if command.is_empty() || process == std::process::id() as i32 {
        return format!("process {process}");
    }
    format!("process {process} ({})", command.escape_debug())
}

fn unix_socket() -> io::Result<OwnedFd> {
    socket::open(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_NONBLOCK, 0)
}

/// Makes an address in the abstract namespace of Unix sockets, which is outside the file system: a zero byte followed
/// by `name`, which must be shorter than the address field. Returns it with its length in bytes.
fn abstract_address(name: &str) -> (libc::sockaddr_un, libc::socklen_t) {
    // SAFETY: all zeros is a valid `sockaddr_un`.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let length = offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len();
    (address, length as libc::socklen_t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_one_owner() {
        // No interface has such a number.
        let index = 0x8000_0000 | std::process::id();
        let claim = Claim::take("x0", index).unwrap();
        let other = Claim::take("x1", index + 1).unwrap();
        for _ in 0..300 {
            let Err(PortError::Busy(message)) = Claim::take("x0", index) else {
                panic!("taken twice");
            };
            let expected = format!(
                "interface x0 is a port of another switch already: process {}",
                std::process::id()
            );
            assert_eq!(message, expected);
        }
        drop((claim, other));
        Claim::take("x0", index).unwrap();
    }
}
