//! A Linux interface as a port: whole Ethernet frames in and out, each as it would be on a wire.
//!
//! Frames arrive through a ring shared with the kernel ([`crate::receive_ring`]), with the kernel's information about
//! unfinished checksums and VLAN tags. They leave through an XDP socket if there is one, otherwise through a packet socket. It does not
//! wait ([`crate::PacketIo`] does that for many), and does not know what the frames mean.
#![expect(
    clippy::disallowed_methods,
    reason = "an XDP socket that its last owner still holds is waited for"
)]

use crate::PortError;
use crate::claim::Claim;
use crate::interface::{index_of, mtu_of};
use crate::offload::{VLAN_TAG_BYTES, VnetHeader, insert_vlan_tag};
use crate::packet_queue::{PacketQueue, bind_packet_socket, open_packet_socket};
use crate::receive_ring::{self, ReceiveRing, RingFrame};
use crate::socket;
use crate::xdp_transmit::{Sent, XdpTransmit};
use serde::Serialize;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// Length of the longest frame, VLAN tag included; the kernel would have to cut a longer one.
const MAX_FRAME_BYTES: usize = 9216 + 64;

/// Bytes of frames longer than a slot of the ring that the kernel may keep for us while we are busy.
const RECEIVE_QUEUE_BYTES: libc::c_int = 16 << 20;

/// Length of an Ethernet header; no interface takes less.
const ETHERNET_BYTES: usize = 14;

/// The system call that sends frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TransmitKind {
    /// By an XDP socket if the interface takes one, else by a packet socket.
    #[default]
    Auto,
    /// By a packet socket: through queueing disciplines, and visible to packet taps on the sending side.
    AfPacket,
    /// By an XDP socket, or not at all.
    AfXdp,
}

/// The counters of a packet socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PacketCounters {
    /// Frames received and delivered.
    #[serde(rename = "rx_packets")]
    pub rx_frames: u64,
    /// Bytes of the received and delivered frames.
    pub rx_bytes: u64,
    /// Frames that the kernel dropped because this process was too slow.
    #[serde(rename = "rx_overrun_drops")]
    pub rx_kernel_drops: u64,
    /// Frames dropped because they are joined segments, longer than any wire would carry: offloads are enabled at their
    /// sender.
    #[serde(rename = "rx_oversized_drops")]
    pub rx_oversized: u64,
    /// Frames whose checksum the sender had left to hardware, and which was completed here.
    pub rx_checksums_completed: u64,
    /// Errors while receiving, as when the interface goes down.
    pub rx_errors: u64,
    /// Frames that the kernel took.
    #[serde(rename = "tx_packets")]
    pub tx_frames: u64,
    /// Bytes of the frames that the kernel took.
    pub tx_bytes: u64,
    /// Frames that the kernel refused: interface down or gone, no memory, too long for the interface.
    pub tx_drops: u64,
}

impl PacketCounters {
    fn count(&mut self, sent: Sent) {
        self.tx_frames += sent.frames;
        self.tx_bytes += sent.bytes;
        self.tx_drops += sent.drops;
    }

    fn is_joined(&mut self, header: &VnetHeader, frame_bytes: usize) -> bool {
        let joined = header.is_joined() || frame_bytes > MAX_FRAME_BYTES - VLAN_TAG_BYTES;
        self.rx_oversized += u64::from(joined);
        joined
    }

    /// Turns a received frame, which follows room for a VLAN tag in `tagged`, into the frame that a wire would carry,
    /// counts it and passes it to `deliver`. Drops a frame whose checksum cannot be completed, and counts it as a
    /// receive error. `vlan_tag` contains the TPID and the TCI of a tag that the kernel has removed, which is
    /// inserted again.
    #[inline]
    fn finish(
        &mut self,
        tagged: &mut [u8],
        header: &VnetHeader,
        vlan_tag: Option<(u16, u16)>,
        deliver: &mut dyn FnMut(&[u8]),
    ) {
        if header.needs_checksum() {
            if !header.complete_checksum(&mut tagged[VLAN_TAG_BYTES..]) {
                self.rx_errors += 1;
                return;
            }
            self.rx_checksums_completed += 1;
        }
        let frame = match vlan_tag {
            Some((tpid, tci)) if insert_vlan_tag(tagged, tpid, tci) => &*tagged,
            _ => &tagged[VLAN_TAG_BYTES..],
        };
        self.rx_frames += 1;
        self.rx_bytes += frame.len() as u64;
        deliver(frame);
    }
}

/// A raw socket on one interface.
pub struct PacketSocket {
    interface: String,
    index: u32,
    mtu: usize,
    kind: TransmitKind,
    /// True if the interface was up at the last check. The kernel would take frames for an interface without a carrier,
    /// and lose them silently.
    up: bool,
    // Before the ring, which is of this descriptor.
    fd: OwnedFd,
    ring: ReceiveRing,
    queue: PacketQueue,
    xdp: Option<XdpTransmit>,
    counters: PacketCounters,
    // For frames that are longer than a slot of the ring.
    long_frame: Vec<u8>,
    // If nobody else may have the interface.
    _claim: Option<Claim>,
}

impl PacketSocket {
    /// Opens an interface of the thread's network namespace, to send frames and to receive all that arrive, whatever
    /// their address. Fails if there is no such interface, or the process lacks the privilege.
    pub fn open(interface: &str) -> Result<PacketSocket, PortError> {
        PacketSocket::open_with(interface, TransmitKind::default())
    }

    /// Opens an interface like [`Self::open_with`], and claims it as a port. Fails with [`PortError::Busy`] if the
    /// interface is already another process's port.
    pub fn open_port(interface: &str, kind: TransmitKind) -> Result<PacketSocket, PortError> {
        let claim = Claim::take(interface, index_of(interface)?)?;
        let mut socket = PacketSocket::open_with(interface, kind)?;
        socket._claim = Some(claim);
        Ok(socket)
    }

    /// Opens an interface like [`Self::open`]; `kind` chooses the kind of socket that sends frames. Fails like
    /// [`Self::open`].
    pub fn open_with(interface: &str, kind: TransmitKind) -> Result<PacketSocket, PortError> {
        let index = index_of(interface)?;
        let fd = open_packet_socket(interface)?;
        let on: libc::c_int = 1;
        let promiscuous = libc::packet_mreq {
            mr_ifindex: index as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        let set = Options { fd: &fd, interface };
        set.packet("PACKET_IGNORE_OUTGOING", libc::PACKET_IGNORE_OUTGOING, &on)?;
        set.packet("PACKET_VNET_HDR", libc::PACKET_VNET_HDR, &on)?;
        // Frames that do not fit a slot are put into the socket's queue.
        set.packet("PACKET_COPY_THRESH", libc::PACKET_COPY_THRESH, &on)?;
        set.packet(
            "promiscuous mode",
            libc::PACKET_ADD_MEMBERSHIP,
            &promiscuous,
        )?;
        set.receive_queue()?;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set.packet("PACKET_VERSION", libc::PACKET_VERSION, &version)?;
        let request = receive_ring::request();
        set.packet("receive ring", libc::PACKET_RX_RING, &request)?;
        let ring = ReceiveRing::map(fd.as_raw_fd())?;
        let mut socket = PacketSocket {
            queue: PacketQueue::open(interface, index)?,
            xdp: None,
            interface: interface.into(),
            index,
            mtu: mtu_of(interface)?,
            kind,
            up: true,
            ring,
            counters: PacketCounters::default(),
            long_frame: Vec::new(),
            _claim: None,
            fd,
        };
        socket.open_xdp(Duration::from_millis(200))?;
        bind_packet_socket(&socket.fd, interface, index, libc::ETH_P_ALL)?;
        Ok(socket)
    }

    /// Opens an XDP socket for sending, unless the configured kind is `AfPacket`. Retries for up to `patience` while
    /// the interface is busy, since the kernel needs a moment to release a former XDP socket. Fails only for the kind
    /// `AfXdp`; for `Auto`, the packet socket sends instead.
    fn open_xdp(&mut self, patience: Duration) -> Result<(), PortError> {
        if self.kind == TransmitKind::AfPacket {
            return Ok(());
        }
        let pause = Duration::from_millis(10);
        let mut waited = Duration::ZERO;
        loop {
            match XdpTransmit::open(&self.interface, self.index) {
                Ok(xdp) => {
                    self.xdp = Some(xdp);
                    return Ok(());
                }
                Err(PortError::Busy(_)) if waited < patience => {
                    std::thread::sleep(pause);
                    waited += pause;
                }
                Err(e) if self.kind == TransmitKind::AfXdp => return Err(e),
                Err(_) => return Ok(()),
            }
        }
    }

    /// Returns the name of the interface that the socket is bound to.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Returns the kernel's index of the interface, which distinguishes it from later interfaces with the same name.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Returns the configured kind of socket for sending: XDP, packet socket, or XDP if the interface supports it.
    pub(crate) fn kind(&self) -> TransmitKind {
        self.kind
    }

    /// Returns true if an XDP socket sends the frames at present.
    pub fn sends_by_xdp(&self) -> bool {
        self.xdp.is_some()
    }

    /// Returns the packet socket's descriptor, which becomes readable when frames arrive.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Returns the counters since the socket was opened, after adding the frames that the kernel has dropped since the
    /// last call.
    pub fn counters(&mut self) -> PacketCounters {
        let stats: Option<libc::tpacket_stats> =
            socket::option(&self.fd, libc::SOL_PACKET, libc::PACKET_STATISTICS);
        if let Some(stats) = stats {
            // Reading sets the kernel's counter back to zero.
            self.counters.rx_kernel_drops += u64::from(stats.tp_drops);
        }
        self.counters
    }

    /// Sets the counters to those of a former socket of the same port, so that they continue.
    pub fn continue_from(&mut self, counters: PacketCounters) {
        self.counters = counters;
    }

    /// Updates what is known about the interface: whether it is up (`up`), and its MTU. If it is up and an XDP socket
    /// is wanted but not open, tries again to open one.
    pub(crate) fn refresh(&mut self, up: bool) {
        self.up = up;
        if let Ok(mtu) = mtu_of(&self.interface) {
            self.mtu = mtu;
        }
        if up && self.xdp.is_none() {
            // If not now, then the next time.
            let _ = self.open_xdp(Duration::ZERO);
        }
    }

    /// Clears the pending error of the socket (`SO_ERROR`), which would otherwise end every wait at once, and
    /// counts it as a receive error.
    pub(crate) fn take_error(&mut self) {
        let error: Option<libc::c_int> = socket::option(&self.fd, libc::SOL_SOCKET, libc::SO_ERROR);
        self.counters.rx_errors += u64::from(error.is_some_and(|error| error != 0));
    }

    /// Passes at most `limit` frames from the ring to `deliver`. Returns the number of ring slots emptied, including
    /// those of dropped frames.
    pub fn receive(&mut self, limit: usize, deliver: &mut dyn FnMut(&[u8])) -> usize {
        let mut taken = 0;
        while taken < limit {
            let PacketSocket {
                ring,
                counters,
                fd,
                long_frame,
                ..
            } = self;
            let is_there = ring.take(|frame| {
                let RingFrame {
                    tagged,
                    frame_bytes,
                    header,
                    vlan_tag,
                    queued,
                } = frame;
                if queued {
                    receive_long(fd, long_frame, counters, vlan_tag, deliver);
                } else if counters.is_joined(&header, frame_bytes) {
                } else if tagged.len() - VLAN_TAG_BYTES < frame_bytes {
                    // Longer than a slot, and the queue for such frames was full.
                    counters.rx_kernel_drops += 1;
                } else {
                    counters.finish(tagged, &header, vlan_tag, deliver);
                }
            });
            if !is_there {
                break;
            }
            taken += 1;
        }
        taken
    }

    /// Queues a frame, which is sent by [`flush`](Self::flush), or earlier if there is no more room. Drops it, and
    /// counts that, if the interface is down.
    pub fn send(&mut self, frame: &[u8]) {
        if !self.up {
            self.counters.tx_drops += 1;
            return;
        }
        // A frame that the interface would refuse is refused, and counted, by the packet socket.
        let ordinary = frame.len() >= ETHERNET_BYTES
            && frame.len() <= (self.mtu + ETHERNET_BYTES).min(XdpTransmit::MAX_FRAME_BYTES);
        if self.xdp.is_some() && ordinary {
            if !self.queue.is_empty() {
                self.flush();
            }
            self.write_xdp(frame);
        } else {
            self.send_xdp();
            let mut sent = Sent::default();
            self.queue.push(frame, &mut sent);
            self.counters.count(sent);
        }
    }

    fn write_xdp(&mut self, frame: &[u8]) {
        for last in [false, true] {
            let Some(xdp) = &mut self.xdp else {
                // Sending what was written before has failed.
                self.counters.tx_drops += 1;
                return;
            };
            if xdp.write(frame) {
                return;
            }
            if last {
                self.counters.tx_drops += 1;
            } else {
                self.send_xdp();
            }
        }
    }

    /// Sends the frames that wait in the XDP socket's ring, and counts the results. If this fails, the interface is
    /// down or gone: drops these frames, and sends by the packet socket until the interface is up again.
    fn send_xdp(&mut self) {
        let Some(xdp) = &mut self.xdp else { return };
        if xdp.waiting() == 0 {
            return;
        }
        let mut sent = Sent::default();
        if xdp.send(&mut sent).is_err() {
            sent.drops += xdp.waiting();
            self.xdp = None;
        }
        self.counters.count(sent);
    }

    /// Passes all queued frames to the kernel. Drops and counts the frames that the kernel refuses.
    pub fn flush(&mut self) {
        self.send_xdp();
        if !self.queue.is_empty() {
            let mut sent = Sent::default();
            self.queue.send(&mut sent);
            self.counters.count(sent);
        }
    }
}

/// Reads a frame that is too long for a ring slot from the socket's queue, counts it and passes it to `deliver`.
/// `vlan_tag` contains the TPID and the TCI of a tag that the kernel has removed.
fn receive_long(
    fd: &OwnedFd,
    buffer: &mut Vec<u8>,
    counters: &mut PacketCounters,
    vlan_tag: Option<(u16, u16)>,
    deliver: &mut dyn FnMut(&[u8]),
) {
    buffer.resize(VLAN_TAG_BYTES + MAX_FRAME_BYTES, 0);
    let mut header = VnetHeader::default();
    let space = &mut buffer[VLAN_TAG_BYTES..];
    let mut parts = [
        libc::iovec {
            iov_base: (&raw mut header).cast(),
            iov_len: size_of::<VnetHeader>(),
        },
        libc::iovec {
            iov_base: space.as_mut_ptr().cast(),
            iov_len: space.len(),
        },
    ];
    // SAFETY: null pointers and zero lengths are valid in this type.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len();
    // With MSG_TRUNC the result is the whole length even of a frame that does not fit.
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: the message points to two parts, of the lengths given, that live until after the call and that nothing else uses.
    let result = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, flags) };
    let length = usize::try_from(result)
        .ok()
        .and_then(|n| n.checked_sub(size_of::<VnetHeader>()));
    match length {
        None => counters.rx_errors += 1,
        Some(length) if counters.is_joined(&header, length) => {}
        Some(length) => {
            let tagged = &mut buffer[..VLAN_TAG_BYTES + length];
            counters.finish(tagged, &header, vlan_tag, deliver);
        }
    }
}

/// Sets options of a packet socket, with errors that name the interface.
struct Options<'a> {
    fd: &'a OwnedFd,
    interface: &'a str,
}

impl Options<'_> {
    fn packet<T>(&self, name: &str, option: libc::c_int, value: &T) -> Result<(), PortError> {
        self.set(libc::SOL_PACKET, option, value)
            .map_err(|e| PortError::io(format!("{name} on {}", self.interface), &e))
    }

    /// Requests a receive queue of [`RECEIVE_QUEUE_BYTES`], even beyond the system's limit if that is permitted.
    /// Fails if the kernel refuses both.
    fn receive_queue(&self) -> Result<(), PortError> {
        let bytes = RECEIVE_QUEUE_BYTES;
        self.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes)
            .or_else(|_| self.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes))
            .map_err(|e| PortError::io(format!("receive queue of {}", self.interface), &e))
    }

    fn set<T>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
        socket::set_option(self.fd, level, option, value)
    }
}
