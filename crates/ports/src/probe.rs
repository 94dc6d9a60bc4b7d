//! Finds the features that this machine supports, and the reasons against others, for `holdfast doctor` and for tests that may be skipped.
//!
//! The probes change nothing.

use crate::PortError;
use crate::interface::index_of;
use crate::session::NETNS_DIRECTORY;
use crate::socket;
use crate::xdp_transmit::XdpTransmit;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;

/// The result of one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The subject of the probe, as in `CAP_NET_RAW`.
    pub name: &'static str,
    /// True if what was looked for is available.
    pub available: bool,
    /// Particulars, or why it is not available and what to do.
    pub detail: String,
}

/// Checks whether this process may open packet sockets, and so use Linux interfaces as ports. Returns the reason as an
/// error if it may not.
pub fn interfaces_ready() -> Result<(), String> {
    socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)
        .map(drop)
        .map_err(|e| PortError::io("packet socket", &e).to_string())
}

/// Checks the privileges, kernel features and tools that live networks and benchmarks use. Returns for each whether it
/// is available.
pub fn probe() -> Vec<Finding> {
    let mut findings = vec![
        capability("CAP_NET_RAW", 13, "packet sockets"),
        capability("CAP_NET_ADMIN", 12, "veth pairs and addresses"),
        capability("CAP_SYS_ADMIN", 21, "network namespaces"),
        finding(
            "AF_PACKET",
            interfaces_ready().map(|()| "live ports receive by packet sockets with a ring".into()),
        ),
        finding("AF_XDP", af_xdp()),
        finding("/run/netns", netns_directory()),
    ];
    findings.push(tool("ip", "install iproute2; live networks need it"));
    findings.push(tool(
        "iperf3",
        "install iperf3 for TCP tests between namespaces",
    ));
    findings.push(tool(
        "ping",
        "install iputils-ping for pings between namespaces",
    ));
    findings.push(finding("cores", cores()));
    findings.push(finding("perf counters", perf_counters()));
    findings
}

fn finding(name: &'static str, result: Result<String, String>) -> Finding {
    let available = result.is_ok();
    let (Ok(detail) | Err(detail)) = result;
    Finding {
        name,
        available,
        detail,
    }
}

/// Checks whether this process has an effective capability, the number `bit` of Linux. `purpose` tells in the finding
/// what needs it.
fn capability(name: &'static str, bit: u32, purpose: &str) -> Finding {
    let effective = fs::read_to_string("/proc/self/status").ok().and_then(|s| {
        let line = s.lines().find_map(|l| l.strip_prefix("CapEff:"))?;
        u64::from_str_radix(line.trim(), 16).ok()
    });
    finding(
        name,
        match effective {
            Some(bits) if bits >> bit & 1 == 1 => Ok(format!("held; for {purpose}")),
            Some(_) => Err(format!("not held; needed for {purpose}; run as root")),
            None => Err("the capabilities in /proc/self/status cannot be read".into()),
        },
    )
}

/// Checks whether frames can be sent by XDP sockets, with a trial on the loopback interface. Returns the reason as an
/// error if not.
fn af_xdp() -> Result<String, String> {
    let otherwise = "live ports send by packet sockets";
    match socket::open(libc::AF_XDP, libc::SOCK_RAW, 0) {
        Err(e) if e.raw_os_error() == Some(libc::EAFNOSUPPORT) => {
            return Err(format!("the kernel has no XDP sockets; {otherwise}"));
        }
        Err(e) => return Err(format!("{e}; {otherwise}")),
        Ok(_) => {}
    }
    match index_of("lo").and_then(|index| XdpTransmit::open("lo", index)) {
        // Somebody else tries it at this moment.
        Ok(_) | Err(PortError::Busy(_)) => Ok("live ports send by XDP sockets".into()),
        Err(e) => Err(format!("{e}; {otherwise}")),
    }
}

/// Checks whether `ip netns add` can create namespaces: whether its directory can be written or, if it does not
/// exist, be made. Returns what was found in words, or as an error why it cannot.
fn netns_directory() -> Result<String, String> {
    let path = Path::new(NETNS_DIRECTORY);
    let (place, text) = if path.is_dir() {
        (NETNS_DIRECTORY, "writable")
    } else {
        ("/run", "can be made")
    };
    let name = CString::new(place).map_err(|e| e.to_string())?;
    // SAFETY: the pointer is to a string that ends with a zero and lives across the call.
    if unsafe { libc::access(name.as_ptr(), libc::W_OK) } == 0 {
        Ok(text.into())
    } else {
        Err(format!("{place}: {}", io::Error::last_os_error()))
    }
}

fn tool(name: &'static str, advice: &str) -> Finding {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file());
    finding(
        name,
        match found {
            Some(file) => Ok(file.display().to_string()),
            None => Err(format!("not found; {advice}")),
        },
    )
}

fn cores() -> Result<String, String> {
    match std::thread::available_parallelism() {
        Ok(count) => Ok(count.to_string()),
        Err(e) => Err(format!("unknown: {e}")),
    }
}

/// The first version of the kernel's `struct perf_event_attr`; newer ones only add to its end.
#[repr(C)]
struct PerfEventAttribute {
    kind: u32,
    bytes: u32,
    config: u64,
    sampling: [u64; 3],
    flags: u64,
    breakpoint: [u64; 2],
}

/// Checks whether this process can open a counter of processor cycles, as a profiler would. Returns what was found in
/// words, or as an error why it cannot.
fn perf_counters() -> Result<String, String> {
    let attribute = PerfEventAttribute {
        // A hardware event, number 0: cycles.
        kind: 0,
        bytes: size_of::<PerfEventAttribute>() as u32,
        config: 0,
        sampling: [0; 3],
        // Disabled; not the kernel's cycles, not the hypervisor's.
        flags: 1 | 1 << 5 | 1 << 6,
        breakpoint: [0; 2],
    };
    // SAFETY: the attribute is as long as it says and lives across the call; this process, any processor, no group.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attribute,
            0 as libc::pid_t,
            -1 as libc::c_int,
            -1 as libc::c_int,
            8 as libc::c_ulong,
        )
    };
    if fd < 0 {
        let error = io::Error::last_os_error();
        return Err(match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                "not permitted; see kernel.perf_event_paranoid".into()
            }
            Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
                "this (virtual) machine has no cycle counter".into()
            }
            _ => error.to_string(),
        });
    }
    // SAFETY: the descriptor is new and nobody else's.
    drop(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) });
    Ok("cycles can be counted".into())
}
