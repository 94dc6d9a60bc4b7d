//! A host of a live network: a network namespace with its own interfaces, addresses and TCP.
//!
//! It does not know the far end of its cables.
#![expect(
    clippy::disallowed_methods,
    reason = "a thread enters the namespace, so that the others stay where they are"
)]

use crate::PortError;
use crate::interface::{checked_name, disable_offloads, set_ipv6_enabled};
use crate::ip::{ip, ip_batch};
use crate::session::{NETNS_DIRECTORY, Session};
use std::fs::File;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::process::{Command, Output};
use std::sync::Arc;
use std::thread::JoinHandle;

/// A frame on the outer end of a veth pair may be this long (plus its Ethernet header): programs add headers to what hosts
/// send, and the outer end must never be the one that refuses.
const OUTER_MTU: u32 = 9000;

/// The properties of a veth pair that leads out of a namespace.
#[derive(Clone, Debug)]
pub struct VethOptions {
    /// MAC address of the inner end; the kernel draws one if this is `None`.
    pub mac: Option<[u8; 6]>,
    /// MTU of the inner end, in bytes.
    pub mtu: u32,
}

impl Default for VethOptions {
    fn default() -> VethOptions {
        VethOptions {
            mac: None,
            mtu: 1500,
        }
    }
}

/// A network namespace of this process, which is removed with all its interfaces and processes when the value is
/// dropped.
pub struct Namespace {
    name: String,
    session: Arc<Session>,
    // Interfaces outside, each the far end of one inside.
    outer: Vec<String>,
}

impl Namespace {
    /// Makes a network namespace named `hf<n>-<label>`, in which only the loopback interface exists and is up. The
    /// kernel's IPv6 stays silent there until an IPv6 address is added. Fails with `Invalid` for a label of other
    /// characters than letters, digits, '_', '.' and '-'.
    pub fn new(label: &str) -> Result<Namespace, PortError> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
        if label.is_empty() || label.len() > 64 || !label.bytes().all(fits) {
            return Err(PortError::Invalid(format!(
                "{label:?} cannot name a namespace: 1 to 64 letters, digits, '_', '.' or '-'"
            )));
        }
        let session = Session::current()?;
        let name = session.namespace_name(label);
        ip(&["netns", "add", &name])?;
        let namespace = Namespace {
            name,
            session,
            outer: Vec::new(),
        };
        namespace.within(|| set_ipv6_enabled("default", false))??;
        namespace.batch(&["link set dev lo up".into()])?;
        Ok(namespace)
    }

    /// Returns the namespace's name, by which `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the words in front of a command that make it run in this namespace: `ip netns exec NAME`.
    pub fn exec_prefix(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.name].map(String::from).into()
    }

    /// Adds a veth pair: an interface named `inside` in this namespace, and its peer in the process's own namespace,
    /// whose name is returned. Both are up, without offloads. The kernel's IP stack does not use the peer, which has
    /// no address and answers nothing. Fails for an invalid name, or if the kernel refuses the pair.
    pub fn add_veth(&mut self, inside: &str, options: &VethOptions) -> Result<String, PortError> {
        checked_name(inside)?;
        let outer = self.session.next_interface();
        ip_batch(
            None,
            &[format!(
                "link add name {outer} mtu {OUTER_MTU} type veth peer name {inside} netns {}{}",
                self.name,
                inner_options(options)
            )],
        )?;
        self.outer.push(outer.clone());
        self.within(|| disable_offloads(inside))??;
        disable_offloads(&outer)?;
        set_ipv6_enabled(&outer, false)?;
        ip_batch(None, &[format!("link set dev {outer} arp off up")])?;
        self.batch(&[format!("link set dev {inside} up")])?;
        Ok(outer)
    }

    /// Connects this namespace and `other` by a veth pair: `interface` here and `other_interface` there. Both ends
    /// are up, without offloads. The pair vanishes with either namespace. Fails for an invalid name, or if the kernel
    /// refuses the pair.
    pub fn connect(
        &self,
        interface: &str,
        options: &VethOptions,
        other: &Namespace,
        other_interface: &str,
        other_options: &VethOptions,
    ) -> Result<(), PortError> {
        checked_name(interface)?;
        checked_name(other_interface)?;
        self.batch(&[format!(
            "link add name {interface}{} type veth peer name {other_interface} netns {}{}",
            inner_options(options),
            other.name,
            inner_options(other_options)
        )])?;
        for (namespace, name) in [(self, interface), (other, other_interface)] {
            namespace.within(|| disable_offloads(name))??;
            namespace.batch(&[format!("link set dev {name} up")])?;
        }
        Ok(())
    }

    /// Adds an address to an interface of this namespace. The first IPv6 address enables the kernel's IPv6 on the
    /// interface, but without the traffic that it would send on its own (router solicitations, duplicate address
    /// detection). Fails for an invalid interface name, or if the kernel refuses the address.
    pub fn add_address(
        &self,
        interface: &str,
        address: IpAddr,
        prefix_len: u8,
    ) -> Result<(), PortError> {
        checked_name(interface)?;
        if address.is_ipv6() {
            self.within(|| set_ipv6_enabled(interface, true))??;
        }
        // Else an IPv6 address is not usable before some work in the kernel's background was done.
        let at_once = if address.is_ipv6() { " nodad" } else { "" };
        self.batch(&[format!(
            "address add {address}/{prefix_len} dev {interface}{at_once}"
        )])
    }

    /// Adds a route to the prefix `destination`/`prefix_len`, through the neighbour `via` or, if that is `None`,
    /// directly on an interface of this namespace. Fails for an invalid interface name, or if the kernel refuses the
    /// route.
    pub fn add_route(
        &self,
        destination: IpAddr,
        prefix_len: u8,
        via: Option<IpAddr>,
        interface: &str,
    ) -> Result<(), PortError> {
        checked_name(interface)?;
        let via = via.map_or(String::new(), |address| format!(" via {address}"));
        self.batch(&[format!(
            "route add {destination}/{prefix_len}{via} dev {interface}"
        )])
    }

    /// Adds a permanent neighbour entry with the MAC address of an IP address, or replaces it, so that the kernel
    /// needs no ARP or neighbour discovery for the address. Fails for an invalid interface name, or if the kernel
    /// refuses the entry.
    pub fn add_neighbour(
        &self,
        interface: &str,
        address: IpAddr,
        mac: [u8; 6],
    ) -> Result<(), PortError> {
        checked_name(interface)?;
        self.batch(&[format!(
            "neighbour replace {address} lladdr {} dev {interface} nud permanent",
            mac_text(mac)
        )])
    }

    /// Sets an interface of this namespace up or down. Fails if there is no such interface, or the kernel refuses it.
    pub fn set_link(&self, interface: &str, up: bool) -> Result<(), PortError> {
        checked_name(interface)?;
        let state = if up { "up" } else { "down" };
        self.batch(&[format!("link set dev {interface} {state}")])
    }

    /// Sets the MTU of an interface of this namespace, in bytes. Fails if there is no such interface, or it does not
    /// allow the MTU.
    pub fn set_mtu(&self, interface: &str, mtu: u32) -> Result<(), PortError> {
        checked_name(interface)?;
        self.batch(&[format!("link set dev {interface} mtu {mtu}")])
    }

    /// Makes a command that runs `program` in this namespace once the caller spawns it. Dropping the namespace kills
    /// the spawned process.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs a program with its arguments in this namespace, waits until it ends, and returns its status and output.
    /// Fails if it cannot be started.
    pub fn run(&self, arguments: &[&str]) -> Result<Output, PortError> {
        let [program, rest @ ..] = arguments else {
            return Err(PortError::Invalid("no command given".into()));
        };
        self.command(program)
            .args(rest)
            .output()
            .map_err(|e| PortError::io(format!("running {program} in {}", self.name), &e))
    }

    /// Runs `f` on a new thread in this namespace, waits for it, and returns its result. Sockets opened by `f` stay in
    /// the namespace. Fails if the thread cannot enter the namespace. A panic in `f` continues in the caller.
    pub fn within<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, PortError> {
        let entry = Entry::of(self)?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| entry.enter().map(|()| f()));
            match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Runs `f` on a new thread in this namespace like [`Self::within`], but does not wait for it. Returns the
    /// thread's handle. Fails if the thread cannot be started; entering the namespace may still fail, which the
    /// thread's result says.
    pub fn spawn_within<T: Send + 'static>(
        &self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<Result<T, PortError>>, PortError> {
        let entry = Entry::of(self)?;
        std::thread::Builder::new()
            .spawn(move || entry.enter().map(|()| f()))
            .map_err(|e| PortError::io("starting a thread", &e))
    }

    fn batch(&self, commands: &[String]) -> Result<(), PortError> {
        ip_batch(Some(&self.name), commands)
    }

    /// Kills the processes in this namespace, except for this process. Otherwise they would go on in a namespace
    /// without a name.
    fn kill_processes(&self) {
        let Ok(list) = ip(&["netns", "pids", &self.name]) else {
            return;
        };
        let own = std::process::id() as libc::pid_t;
        for pid in list.split_whitespace().filter_map(|p| p.parse().ok()) {
            if pid != own && pid > 1 {
                // SAFETY: no pointers. The process was found in a namespace that we made.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        }
    }
}

/// An open file by which threads enter a namespace, and its path.
struct Entry {
    path: String,
    file: File,
}

impl Entry {
    fn of(namespace: &Namespace) -> Result<Entry, PortError> {
        let path = format!("{NETNS_DIRECTORY}/{}", namespace.name);
        let file = File::open(&path).map_err(|e| PortError::io(&path, &e))?;
        Ok(Entry { path, file })
    }

    /// Moves the calling thread to this network namespace, in which it remains. Fails if the kernel refuses that.
    fn enter(&self) -> Result<(), PortError> {
        // SAFETY: no pointers; it concerns this thread only, which was started for this.
        let result = unsafe { libc::setns(self.file.as_raw_fd(), libc::CLONE_NEWNET) };
        if result < 0 {
            return Err(PortError::last(format!("entering {}", self.path)));
        }
        Ok(())
    }
}

impl Drop for Namespace {
    // Failures here are left to the guard.
    fn drop(&mut self) {
        if !self.session.is_ours() {
            return;
        }
        // By name, because they would otherwise go only when the last process in the namespace has.
        for outer in &self.outer {
            let _ = ip(&["link", "delete", outer]);
        }
        self.kill_processes();
        let _ = ip(&["netns", "delete", &self.name]);
    }
}

fn inner_options(options: &VethOptions) -> String {
    let mac = options
        .mac
        .map_or(String::new(), |mac| format!(" address {}", mac_text(mac)));
    format!("{mac} mtu {}", options.mtu)
}

fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|b| format!("{b:02x}")).join(":")
}
