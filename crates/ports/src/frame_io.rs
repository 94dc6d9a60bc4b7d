//! Frame input and output of a live network's event loop, over many packet sockets at once.
//!
//! It waits, and it moves frames. When to wait and for how long is the loop's business.

use crate::{PacketCounters, PacketSocket, PortError, ReceiveBuffer};
use net::clock::wall::{FrameIo, SendOutcome, Waker};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Duration;

/// What ends a wait, from any thread.
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

/// The interfaces of a live network.
pub struct PacketIo {
    sockets: Vec<PacketSocket>,
    buffer: ReceiveBuffer,
    event: Arc<Event>,
    // The event's descriptor, then those of the sockets in their order.
    polled: Vec<libc::pollfd>,
    // Interfaces with frames to flush.
    unflushed: Vec<usize>,
    // The thread that waited last; its timers are precise.
    waiter: Option<ThreadId>,
}

impl PacketIo {
    /// Opens these interfaces (of the thread's network namespace); each is known by its position from then on.
    pub fn open<S: AsRef<str>>(interfaces: &[S]) -> Result<PacketIo, PortError> {
        let event = Arc::new(Event::new()?);
        let sockets = interfaces
            .iter()
            .map(|name| PacketSocket::open(name.as_ref()))
            .collect::<Result<Vec<_>, _>>()?;
        let descriptors = sockets.iter().map(PacketSocket::raw_fd);
        let polled = std::iter::once(event.descriptor.as_raw_fd())
            .chain(descriptors)
            .map(|fd| libc::pollfd {
                fd,
                events: libc::POLLIN,
                revents: 0,
            })
            .collect();
        Ok(PacketIo {
            sockets,
            buffer: ReceiveBuffer::new(),
            event,
            polled,
            unflushed: Vec::new(),
            waiter: None,
        })
    }

    /// What went through an interface so far.
    pub fn counters(&mut self, interface: usize) -> PacketCounters {
        self.sockets[interface].counters()
    }

    /// Gives everything queued to the kernel.
    pub fn flush(&mut self) {
        for interface in self.unflushed.drain(..) {
            self.sockets[interface].flush();
        }
    }

    /// The kernel lets timeouts of ordinary threads be 50 microseconds late, to wake up less often. Links have shorter delays.
    fn make_timers_precise(&mut self) {
        let thread = thread::current().id();
        if self.waiter != Some(thread) {
            // SAFETY: no pointers; it concerns this thread's timers only.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
            self.waiter = Some(thread);
        }
    }

    /// Waits for descriptors; whether any is ready.
    fn poll(&mut self, timeout: Duration) -> bool {
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
        ready > 0
    }
}

impl FrameIo for PacketIo {
    /// Queues the frame. It leaves before the next wait, or with a full batch; if the kernel then refuses it, that is
    /// counted in [`PacketCounters::tx_drops`].
    fn send(&mut self, interface: usize, frame: &[u8]) -> SendOutcome {
        let Some(socket) = self.sockets.get_mut(interface) else {
            return SendOutcome::Dropped;
        };
        if !self.unflushed.contains(&interface) {
            self.unflushed.push(interface);
        }
        socket.send(frame);
        SendOutcome::Accepted
    }

    /// Hands on at most one batch of each interface, so that none starves the others or the caller.
    fn wait(&mut self, timeout: Duration, rx: &mut dyn FnMut(usize, &[u8])) {
        self.flush();
        self.make_timers_precise();
        if !self.poll(timeout) {
            return;
        }
        if self.polled[0].revents != 0 {
            self.event.reset();
        }
        for (interface, socket) in self.sockets.iter_mut().enumerate() {
            if self.polled[interface + 1].revents != 0 {
                socket.receive(&mut self.buffer, &mut |frame| rx(interface, frame));
            }
        }
    }

    fn waker(&self) -> Option<Waker> {
        let event = self.event.clone();
        Some(Arc::new(move || event.set()))
    }
}
