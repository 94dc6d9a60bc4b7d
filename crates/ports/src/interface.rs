//! Interfaces by name: index, offloads, and disabling the kernel's IPv6 on them.
//!
//! All functions use the network namespace of the calling thread; [`crate::Namespace`] moves a thread to another.

use crate::{PortError, socket};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// An offload: its name in messages, and the `ethtool` commands that get and set it.
struct Offload {
    name: &'static str,
    get: u32,
    set: u32,
}

/// The offloads because of which received frames differ from frames on a wire. Scatter-gather goes last: without it the
/// kernel drops the segmentation offloads that have no command of their own.
const OFFLOADS: [Offload; 6] = [
    Offload {
        name: "generic-receive-offload",
        get: 0x2b,
        set: 0x2c,
    },
    Offload {
        name: "tcp-segmentation-offload",
        get: 0x1e,
        set: 0x1f,
    },
    Offload {
        name: "generic-segmentation-offload",
        get: 0x23,
        set: 0x24,
    },
    Offload {
        name: "rx-checksumming",
        get: 0x14,
        set: 0x15,
    },
    Offload {
        name: "tx-checksumming",
        get: 0x16,
        set: 0x17,
    },
    Offload {
        name: "scatter-gather",
        get: 0x18,
        set: 0x19,
    },
];

const ETHTOOL_GET_FLAGS: u32 = 0x25;
const ETHTOOL_SET_FLAGS: u32 = 0x26;
/// Insertion and removal of VLAN tags, and large receive offload.
const FLAGS_OFF: u32 = 1 << 7 | 1 << 8 | 1 << 15;

/// Argument of the `ethtool` commands that take one number (`struct ethtool_value`).
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Returns an interface's name as a C string. Fails with `Invalid` for a name that the kernel would refuse: longer than
/// 15 characters, or with a space, '/' or ':'.
pub(crate) fn checked_name(name: &str) -> Result<CString, PortError> {
    let bad = name.is_empty()
        || name == "."
        || name == ".."
        || name.len() >= libc::IFNAMSIZ
        || name
            .bytes()
            .any(|b| b == b'/' || b == b':' || b == 0 || b.is_ascii_whitespace());
    if bad {
        return Err(PortError::Invalid(format!(
            "{name:?} is no interface name: 1 to 15 characters, without space, '/' and ':'"
        )));
    }
    CString::new(name).map_err(|_| PortError::Invalid(format!("{name:?} has a zero byte")))
}

/// Returns the kernel's index of an interface. Fails if there is no such interface.
pub(crate) fn index_of(name: &str) -> Result<u32, PortError> {
    let c_name = checked_name(name)?;
    // SAFETY: the pointer is to a string that ends with a zero and lives across the call.
    let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
    if index == 0 {
        return Err(PortError::last(format!("interface {name}")));
    }
    Ok(index)
}

/// Disables, on an interface in this thread's namespace, the offloads that make frames differ from frames on a wire:
/// unfinished checksums, segments joined by the kernel, VLAN tags stored beside the frame. Ignores offloads that the
/// interface does not have or cannot switch. Fails if an offload stays enabled.
pub fn disable_offloads(name: &str) -> Result<(), PortError> {
    let socket = control_socket()?;
    for offload in &OFFLOADS {
        match ethtool(&socket, name, offload.set, 0) {
            Ok(_) => {}
            Err(e) if is_unsupported(&e) => {}
            Err(e) => {
                return Err(PortError::io(format!("{name}: {} off", offload.name), &e));
            }
        }
    }
    if let Ok(flags) = ethtool(&socket, name, ETHTOOL_GET_FLAGS, 0)
        && flags & FLAGS_OFF != 0
    {
        match ethtool(&socket, name, ETHTOOL_SET_FLAGS, flags & !FLAGS_OFF) {
            Ok(_) => {}
            // Tags are put back and large frames counted by the packet socket.
            Err(e) if is_unsupported(&e) => {}
            Err(e) => return Err(PortError::io(format!("{name}: VLAN offloads off"), &e)),
        }
    }
    for offload in &OFFLOADS {
        if ethtool(&socket, name, offload.get, 0).is_ok_and(|value| value != 0) {
            return Err(PortError::Failed(format!(
                "{name}: {} cannot be switched off",
                offload.name
            )));
        }
    }
    Ok(())
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ENOTTY)
    )
}

/// Returns the MTU of an interface: the longest payload of its frames in bytes. Fails if there is no such interface.
pub(crate) fn mtu_of(name: &str) -> Result<usize, PortError> {
    let request = interface_ioctl(name, libc::SIOCGIFMTU)?;
    // SAFETY: this `ioctl` fills in this member.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(usize::try_from(mtu).unwrap_or(0))
}

/// Returns true if an interface is up and has a carrier, so that frames can pass. Fails if there is no such interface.
pub(crate) fn is_running(name: &str) -> Result<bool, PortError> {
    let request = interface_ioctl(name, libc::SIOCGIFFLAGS)?;
    // SAFETY: this `ioctl` fills in this member.
    let flags = libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags });
    let wanted = libc::IFF_UP | libc::IFF_RUNNING;
    Ok(flags & wanted == wanted)
}

/// Reads a property of an interface by the `ioctl` called `command`, and returns the request that the kernel has filled
/// in. Fails if there is no such interface.
fn interface_ioctl(name: &str, command: libc::Ioctl) -> Result<libc::ifreq, PortError> {
    checked_name(name)?;
    let socket = control_socket()?;
    let mut request = named_request(name);
    // SAFETY: the request names an interface by a string that ends with a zero, and lives across the call; these commands
    // read and write nothing else.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), command, &raw mut request) };
    if result < 0 {
        return Err(PortError::last(format!("interface {name}")));
    }
    Ok(request)
}

/// Makes an `ioctl` request (`struct ifreq`) that names an interface. A name of more than 15 bytes is cut, so that a
/// zero byte ends it.
fn named_request(name: &str) -> libc::ifreq {
    // SAFETY: all zeros is a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1]
        .iter_mut()
        .zip(name.bytes())
    {
        *to = from as libc::c_char;
    }
    request
}

/// Opens a socket for `ioctl` calls on interfaces of the thread's namespace. Fails if the kernel refuses it.
fn control_socket() -> Result<OwnedFd, PortError> {
    socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0).map_err(|e| PortError::io("socket", &e))
}

/// Performs the `ethtool` command `command` with the argument `data` on an interface. Returns the number with which
/// the kernel answers. Fails if the kernel or the driver refuses the command.
fn ethtool(socket: &OwnedFd, name: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = EthtoolValue { command, data };
    let mut request = named_request(name);
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request names an interface by a string that ends with a zero (its last byte was left zero) and points to
    // a value of the layout that these commands read and write; both live across the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(value.data)
}

/// Enables or disables the kernel's IPv6 on an interface, or on all future interfaces if `name` is `default`. When it
/// is disabled, the kernel sends no router solicitations, neighbour discovery or multicast reports; when it is enabled,
/// the kernel makes no addresses, and does without router discovery and duplicate address detection. On a kernel
/// without IPv6, disabling does nothing, and enabling fails.
pub(crate) fn set_ipv6_enabled(name: &str, enabled: bool) -> Result<(), PortError> {
    let base = format!("/proc/sys/net/ipv6/conf/{name}");
    let mut settings = vec![("disable_ipv6", if enabled { "0" } else { "1" })];
    if enabled {
        // Addresses are given by the experiment: none is made up, advertised or checked for duplicates.
        settings.insert(0, ("addr_gen_mode", "1"));
        settings.insert(0, ("accept_ra", "0"));
        settings.insert(0, ("router_solicitations", "0"));
        settings.insert(0, ("accept_dad", "0"));
    }
    for (setting, value) in settings {
        match fs::write(format!("{base}/{setting}"), value) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound && !enabled => {}
            Err(e) => return Err(PortError::io(format!("{base}/{setting}"), &e)),
        }
    }
    Ok(())
}
