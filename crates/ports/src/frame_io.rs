//! Frame input and output of a live network's event loop, over many packet sockets at once.
//!
//! It waits, moves frames, and detects when an interface disappears, appears or returns. The loop decides when to wait and for
//! how long.
//!
//! # Waiting
//!
//! A wake-up for every frame costs more than the frame. So when frames come in quick succession this does not wait for
//! them, but polls again after [`PAUSE`], like the interrupt moderation of a network card. A frame is then late by at most that
//! time; in sparse traffic it is not late.
#![expect(
    clippy::disallowed_methods,
    reason = "interfaces are served in real time"
)]

use crate::interface::{index_of, is_running};
use crate::link_watch::LinkWatch;
use crate::{PacketCounters, PacketSocket, PortError, TransmitKind};
use net::clock::wall::{FrameIo, SendOutcome, Waker};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// Most frames that are delivered from one interface before the next interface has its turn.
const BATCH: usize = 64;

/// The time between two polls while traffic is dense.
const PAUSE: Duration = Duration::from_micros(30);

/// A wake-up within this time after the last one is close to it; several close ones in a row make traffic dense.
const DENSE: Duration = Duration::from_micros(100);
const DENSE_WAKE_UPS: u32 = 16;

/// Traffic is no longer dense after this many polls in a row that find no frame.
const IDLE_PAUSES: u32 = 4;

/// Calls of `wait` in a row without a poll, after which the descriptors other than the packet sockets' are polled, too.
const ROUNDS_PER_LOOK: u32 = 256;

/// An eventfd by which any thread ends a wait.
struct Event {
    descriptor: OwnedFd,
}

impl Event {
    fn new() -> Result<Event, PortError> {
        // SAFETY: no pointers; the result is checked.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(PortError::last("eventfd"));
        }
        Ok(Event {
            // SAFETY: the descriptor is new and nobody else's.
            descriptor: unsafe { OwnedFd::from_raw_fd(fd) },
        })
    }

    fn set(&self) {
        // It fails only when the counter is full, and then it is set already.
        // SAFETY: no pointers; the descriptor is open for as long as `self` lives.
        unsafe { libc::eventfd_write(self.descriptor.as_raw_fd(), 1) };
    }

    fn reset(&self) {
        let mut value: libc::eventfd_t = 0;
        // SAFETY: the pointer is to a counter; the descriptor does not block.
        unsafe { libc::eventfd_read(self.descriptor.as_raw_fd(), &raw mut value) };
    }
}

/// An interface, as long as it is one of the network's.
struct Port {
    socket: PacketSocket,
    /// True if the interface was up at the last check. A change is reported to the network.
    up: bool,
}

/// Decides whether to wait for frames (sparse traffic) or to poll after a pause (dense traffic).
#[derive(Default)]
struct Moderation {
    last_wake_up: Option<Instant>,
    close_wake_ups: u32,
    idle_pauses: u32,
}

impl Moderation {
    fn is_dense(&self) -> bool {
        self.close_wake_ups >= DENSE_WAKE_UPS
    }

    /// Records that frames have ended a wait, and counts the wake-ups that follow each other closely.
    fn woken(&mut self) {
        let now = Instant::now();
        let close = self.last_wake_up.is_some_and(|last| now - last < DENSE);
        self.close_wake_ups = if close { self.close_wake_ups + 1 } else { 0 };
        self.last_wake_up = Some(now);
        self.idle_pauses = 0;
    }

    /// Records that a pause has ended, and whether frames had arrived (`frames`). After [`IDLE_PAUSES`] pauses in a row
    /// without frames, traffic counts as sparse again.
    fn paused(&mut self, frames: bool) {
        self.idle_pauses = if frames { 0 } else { self.idle_pauses + 1 };
        if self.idle_pauses == IDLE_PAUSES {
            *self = Moderation::default();
        }
    }
}

/// Frame input and output over the interfaces of a live network.
pub struct PacketIo {
    /// The open interfaces, by the numbers that the network gives them.
    ports: Vec<Option<Port>>,
    event: Arc<Event>,
    watch: LinkWatch,
    // The event's descriptor and the watch's, then those of the ports in their order (-1, which is ignored, for none).
    polled: Vec<libc::pollfd>,
    // Interfaces with frames to flush.
    unflushed: Vec<usize>,
    /// Interfaces that went down (`false`) or came up (`true`), until the event loop takes them.
    changes: Vec<(usize, bool)>,
    moderation: Moderation,
    rounds: u32,
    // The thread that waited last; its timers are precise.
    waiter: Option<ThreadId>,
}

/// Descriptors in `PacketIo::polled` before the ports'.
const OTHER_DESCRIPTORS: usize = 2;

fn polled(fd: libc::c_int) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}

impl PacketIo {
    /// Makes the frame input and output of a network without interfaces. Opens the event by which other threads end a
    /// wait, and the monitor for changes of interfaces. Fails if the kernel refuses one of them.
    pub fn new() -> Result<PacketIo, PortError> {
        let event = Arc::new(Event::new()?);
        let watch = LinkWatch::new()?;
        Ok(PacketIo {
            ports: Vec::new(),
            polled: vec![polled(event.descriptor.as_raw_fd()), polled(watch.raw_fd())],
            event,
            watch,
            unflushed: Vec::new(),
            changes: Vec::new(),
            moderation: Moderation::default(),
            rounds: 0,
            waiter: None,
        })
    }

    /// Makes the frame input and output over these interfaces of the thread's network namespace; an interface's number
    /// is its position in the list. Fails if an interface cannot be opened, or is a port of another process.
    pub fn open<S: AsRef<str>>(interfaces: &[S]) -> Result<PacketIo, PortError> {
        let mut io = PacketIo::new()?;
        for (number, name) in interfaces.iter().enumerate() {
            let socket = PacketSocket::open_port(name.as_ref(), TransmitKind::default())?;
            io.add(number, socket);
        }
        Ok(io)
    }

    /// Adds an open interface under the number `interface`, in place of any former interface with this number, and
    /// queues a report of whether it is up.
    pub fn add(&mut self, interface: usize, mut socket: PacketSocket) {
        if self.ports.len() <= interface {
            self.ports.resize_with(interface + 1, || None);
            self.polled
                .resize(interface + 1 + OTHER_DESCRIPTORS, polled(-1));
        }
        let up = is_running(socket.interface()).unwrap_or(false);
        if !up {
            socket.refresh(false);
        }
        // The network may remember another state, of before its clock stopped.
        self.changes.push((interface, up));
        self.polled[interface + OTHER_DESCRIPTORS].fd = socket.raw_fd();
        self.ports[interface] = Some(Port { socket, up });
    }

    /// Closes an interface after sending its queued frames. Returns its counters; `None` if there is no such interface.
    pub fn remove(&mut self, interface: usize) -> Option<PacketCounters> {
        let mut port = self.ports.get_mut(interface)?.take()?;
        self.polled[interface + OTHER_DESCRIPTORS].fd = -1;
        self.unflushed.retain(|&other| other != interface);
        self.changes.retain(|&(other, _)| other != interface);
        port.socket.flush();
        Some(port.socket.counters())
    }

    /// Returns the counters of an interface; all zero if there is no such interface.
    pub fn counters(&mut self, interface: usize) -> PacketCounters {
        match self.ports.get_mut(interface) {
            Some(Some(port)) => port.socket.counters(),
            _ => PacketCounters::default(),
        }
    }

    /// Returns true if an interface sends frames by an XDP socket at present; false if there is no such interface.
    pub fn sends_by_xdp(&self, interface: usize) -> bool {
        let port = self.ports.get(interface).and_then(Option::as_ref);
        port.is_some_and(|port| port.socket.sends_by_xdp())
    }

    /// Passes the queued frames of all interfaces to the kernel.
    pub fn flush(&mut self) {
        for interface in self.unflushed.drain(..) {
            if let Some(port) = &mut self.ports[interface] {
                port.socket.flush();
            }
        }
    }

    /// Makes this thread's timeouts precise. By default, the kernel may end them up to 50 microseconds late to save
    /// wake-ups, but links have shorter delays.
    fn make_timers_precise(&mut self) {
        let thread = thread::current().id();
        if self.waiter != Some(thread) {
            // SAFETY: no pointers; it concerns this thread's timers only.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
            self.waiter = Some(thread);
        }
    }

    /// Delivers at most [`BATCH`] frames of each interface to `rx`. Returns true if any ring slot was emptied.
    fn take_frames(&mut self, rx: &mut dyn FnMut(usize, &[u8])) -> bool {
        let mut any = false;
        for (interface, port) in self.ports.iter_mut().enumerate() {
            if let Some(port) = port {
                any |= port
                    .socket
                    .receive(BATCH, &mut |frame| rx(interface, frame))
                    > 0;
            }
        }
        any
    }

    /// Waits until a descriptor is ready, at most for `timeout`, and handles all events except for arriving frames:
    /// calls from other threads, changes of interfaces, and errors of sockets.
    fn poll(&mut self, timeout: Duration) {
        self.rounds = 0;
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // SAFETY: the pointers are to as many descriptors as we say and to a time, and live across the call; no signal mask.
        let ready = unsafe {
            libc::ppoll(
                self.polled.as_mut_ptr(),
                self.polled.len() as libc::nfds_t,
                &raw const timeout,
                std::ptr::null(),
            )
        };
        if ready < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            // Out of memory, the only other reason there is: give the machine a moment rather than spin.
            thread::sleep(Duration::from_millis(1));
        }
        if ready <= 0 {
            return;
        }
        if self.polled[0].revents != 0 {
            self.event.reset();
        }
        let mut changed = self.polled[1].revents != 0;
        if changed {
            self.watch.clear();
        }
        for (port, polled) in self.ports.iter_mut().zip(&self.polled[OTHER_DESCRIPTORS..]) {
            if polled.revents & libc::POLLERR != 0
                && let Some(port) = port
            {
                port.socket.take_error();
                changed = true;
            }
        }
        if changed {
            self.look_at_interfaces();
        }
    }

    /// Checks every interface, and queues a report of each that has gone up or down. Opens the new interface if an
    /// interface has been replaced by another one of the same name.
    fn look_at_interfaces(&mut self) {
        for (interface, port) in self.ports.iter_mut().enumerate() {
            let Some(port) = port else { continue };
            let name = port.socket.interface();
            let index = index_of(name);
            if index
                .as_ref()
                .is_ok_and(|&index| index != port.socket.index())
            {
                // If that fails, the interface was gone again, or is not ready; then there will be news of it.
                if let Ok(mut socket) = PacketSocket::open_port(name, port.socket.kind()) {
                    socket.continue_from(port.socket.counters());
                    self.polled[interface + OTHER_DESCRIPTORS].fd = socket.raw_fd();
                    port.socket = socket;
                }
            }
            let ours = index.is_ok_and(|index| index == port.socket.index());
            let up = ours && is_running(port.socket.interface()).unwrap_or(false);
            port.socket.refresh(up);
            if up != port.up {
                port.up = up;
                self.changes.push((interface, up));
            }
        }
    }
}

impl FrameIo for PacketIo {
    /// Queues a frame for an interface. It is sent before the next wait, or as part of a full batch; if the kernel then
    /// refuses it, [`PacketCounters::tx_drops`] counts it. Returns `Dropped` if there is no such interface.
    fn send(&mut self, interface: usize, frame: &[u8]) -> SendOutcome {
        let Some(Some(port)) = self.ports.get_mut(interface) else {
            return SendOutcome::Dropped;
        };
        if !self.unflushed.contains(&interface) {
            self.unflushed.push(interface);
        }
        port.socket.send(frame);
        SendOutcome::Accepted
    }

    /// Sends the queued frames, and delivers at most one batch of frames of each interface to `rx`, so that none
    /// starves the others or the caller. If no frames have arrived yet, waits for them up to `timeout`.
    fn wait(&mut self, timeout: Duration, rx: &mut dyn FnMut(usize, &[u8])) {
        self.flush();
        self.make_timers_precise();
        self.rounds += 1;
        if self.rounds == ROUNDS_PER_LOOK {
            self.poll(Duration::ZERO);
        }
        if self.take_frames(rx) || timeout.is_zero() {
            return;
        }
        if self.moderation.is_dense() {
            thread::sleep(PAUSE.min(timeout));
            let frames = self.take_frames(rx);
            self.moderation.paused(frames);
        } else {
            self.poll(timeout);
            if self.take_frames(rx) {
                self.moderation.woken();
            }
        }
    }

    fn take_changes(&mut self, tell: &mut dyn FnMut(usize, bool)) {
        for (interface, up) in self.changes.drain(..) {
            tell(interface, up);
        }
    }

    fn waker(&self) -> Option<Waker> {
        let event = self.event.clone();
        Some(Arc::new(move || event.set()))
    }
}
