//! The system calls that every kind of socket needs, each once. It does not know what addresses and options mean.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A C structure or integer for which every pattern of bytes is valid.
///
/// # Safety
///
/// All bytes of the type may have any value.
pub(crate) unsafe trait Plain {}

// SAFETY: an integer.
unsafe impl Plain for libc::c_int {}
// SAFETY: integers only.
unsafe impl Plain for [u32; 9] {}
// SAFETY: three integers.
unsafe impl Plain for libc::ucred {}
// SAFETY: two integers.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: integers only.
unsafe impl Plain for libc::xdp_mmap_offsets {}

/// Opens a socket that is closed when the process executes another program. Fails if the kernel refuses it.
pub(crate) fn open(
    family: libc::c_int,
    kind: libc::c_int,
    protocol: libc::c_int,
) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the result is checked.
    let fd = unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Binds a socket to an address, which must be the C structure of the socket's address family. Fails if the kernel
/// refuses the address.
pub(crate) fn bind<T>(fd: &OwnedFd, address: &T) -> io::Result<()> {
    // SAFETY: the pointer is to an address of the length given.
    let result = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const *address).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Returns the value of a socket option; `None` if there is no such option, or the kernel's value is shorter than `T`.
pub(crate) fn option<T: Plain>(fd: &OwnedFd, level: libc::c_int, name: libc::c_int) -> Option<T> {
    // SAFETY: all zeros is a valid value of a plain type.
    let mut value: T = unsafe { zeroed() };
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointers are to a plain value and to its length.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    (result == 0 && length as usize == size_of::<T>()).then_some(value)
}

/// Sets a socket option to a value, which is a C structure or a number. Fails if the kernel refuses the value.
pub(crate) fn set_option<T>(
    fd: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the pointer is to a value of the length given; the kernel checks the length against the option.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const *value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
