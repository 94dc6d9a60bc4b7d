//! A Linux interface as a port: whole Ethernet frames in and out, each as it would be on a wire.
//!
//! It does not wait ([`crate::PacketIo`] does that for many), and it knows nothing of what the frames mean.

use crate::PortError;
use crate::interface::index_of;
use crate::offload::{VLAN_TAG_BYTES, VnetHeader, insert_vlan_tag};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Frames taken from or given to the kernel with one system call.
const BATCH: usize = 32;

/// Longest frame, tag included; of one that is longer the kernel would have to cut something off.
const MAX_FRAME_BYTES: usize = 9216 + 64;

/// Bytes that the kernel may keep for us while we are busy; some 5000 full frames.
const RECEIVE_QUEUE_BYTES: libc::c_int = 16 << 20;

/// Room for the one control message of a received frame, with the alignment that it needs.
type Control = [u64; 8];

/// What went through a packet socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounters {
    /// Frames received and handed on.
    pub rx_frames: u64,
    /// Their bytes.
    pub rx_bytes: u64,
    /// Frames that the kernel dropped because we were too slow.
    pub rx_kernel_drops: u64,
    /// Frames dropped because they are longer than any wire would carry: offloads are on where they come from.
    pub rx_oversized: u64,
    /// Frames whose checksum the sender had left to hardware, and that was finished here.
    pub rx_checksums_completed: u64,
    /// Errors while receiving, as when the interface goes down.
    pub rx_errors: u64,
    /// Frames that the kernel took.
    pub tx_frames: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames that the kernel refused: interface down or gone, no memory, too long for the interface.
    pub tx_drops: u64,
}

/// Where received frames are put; one serves any number of sockets, one after the other.
pub struct ReceiveBuffer {
    // BATCH slots of MAX_FRAME_BYTES. A frame begins VLAN_TAG_BYTES into its slot, so that a tag fits in front.
    frames: Vec<u8>,
    headers: [VnetHeader; BATCH],
    controls: [Control; BATCH],
}

impl ReceiveBuffer {
    /// Room for one batch.
    pub fn new() -> ReceiveBuffer {
        ReceiveBuffer {
            frames: vec![0; BATCH * MAX_FRAME_BYTES],
            headers: [VnetHeader::default(); BATCH],
            controls: [[0; 8]; BATCH],
        }
    }
}

impl Default for ReceiveBuffer {
    fn default() -> ReceiveBuffer {
        ReceiveBuffer::new()
    }
}

/// A raw socket on one interface.
pub struct PacketSocket {
    interface: String,
    fd: OwnedFd,
    counters: PacketCounters,
    // Frames that wait for `flush`, one after the other, and their lengths.
    queue: Vec<u8>,
    queue_lengths: Vec<usize>,
}

impl PacketSocket {
    /// Opens the interface (of the thread's network namespace) for all frames that arrive there, whatever their address.
    pub fn open(interface: &str) -> Result<PacketSocket, PortError> {
        let index = index_of(interface)?;
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // Protocol 0: nothing is received before the socket is bound to its interface.
        // SAFETY: no pointers; the result is checked.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            return Err(PortError::last(format!("packet socket on {interface}")));
        }
        let socket = PacketSocket {
            interface: interface.into(),
            // SAFETY: the descriptor is new and nobody else's.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            counters: PacketCounters::default(),
            queue: Vec::with_capacity(BATCH * 2048),
            queue_lengths: Vec::with_capacity(BATCH),
        };
        let on: libc::c_int = 1;
        socket.set_option("PACKET_IGNORE_OUTGOING", libc::PACKET_IGNORE_OUTGOING, &on)?;
        socket.set_option("PACKET_AUXDATA", libc::PACKET_AUXDATA, &on)?;
        socket.set_option("PACKET_VNET_HDR", libc::PACKET_VNET_HDR, &on)?;
        let membership = libc::packet_mreq {
            mr_ifindex: index as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        let add = libc::PACKET_ADD_MEMBERSHIP;
        socket.set_option("promiscuous mode", add, &membership)?;
        socket.set_receive_queue()?;
        socket.bind(index)?;
        Ok(socket)
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// The descriptor, to wait for.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// What went through so far.
    pub fn counters(&mut self) -> PacketCounters {
        // SAFETY: all zeros is a valid `tpacket_stats`.
        let mut stats: libc::tpacket_stats = unsafe { zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the pointers are to a value of the layout that the option has, and to its length.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut length,
            )
        };
        if result == 0 {
            // Reading sets the kernel's counter back to zero.
            self.counters.rx_kernel_drops += u64::from(stats.tp_drops);
        }
        self.counters
    }

    /// Hands on the frames that are there, at most one batch, and says whether there may be more.
    pub fn receive(&mut self, buffer: &mut ReceiveBuffer, deliver: &mut dyn FnMut(&[u8])) -> bool {
        let ReceiveBuffer {
            frames,
            headers,
            controls,
        } = buffer;
        // SAFETY: null pointers and zero lengths are valid in both types.
        let (mut parts, mut messages): ([[libc::iovec; 2]; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (zeroed(), zeroed()) };
        for (i, slot) in frames.chunks_exact_mut(MAX_FRAME_BYTES).enumerate() {
            let space = &mut slot[VLAN_TAG_BYTES..];
            parts[i][0].iov_base = (&raw mut headers[i]).cast();
            parts[i][0].iov_len = size_of::<VnetHeader>();
            parts[i][1].iov_base = space.as_mut_ptr().cast();
            parts[i][1].iov_len = space.len();
            let message = &mut messages[i].msg_hdr;
            message.msg_iov = parts[i].as_mut_ptr();
            message.msg_iovlen = 2;
            message.msg_control = controls[i].as_mut_ptr().cast();
            message.msg_controllen = size_of::<Control>();
        }
        // SAFETY: every message points to two parts and a control buffer that live until after the call, are not used by
        // anything else during it, and have the lengths given. The count is that of the array.
        let count = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            let nothing = error.kind() == io::ErrorKind::WouldBlock;
            self.counters.rx_errors += u64::from(!nothing);
            // After an error (which is reported once) frames may follow.
            return !nothing && error.kind() != io::ErrorKind::Interrupted;
        }
        let count = count as usize;
        let slots = frames.chunks_exact_mut(MAX_FRAME_BYTES);
        for ((message, slot), header) in messages[..count].iter().zip(slots).zip(headers) {
            self.take(message, header, slot, deliver);
        }
        count == BATCH
    }

    /// One received frame: finished, counted, handed on.
    fn take(
        &mut self,
        message: &libc::mmsghdr,
        header: &VnetHeader,
        slot: &mut [u8],
        deliver: &mut dyn FnMut(&[u8]),
    ) {
        let truncated = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
        let Some(length) = (message.msg_len as usize).checked_sub(size_of::<VnetHeader>()) else {
            self.counters.rx_errors += 1;
            return;
        };
        if truncated || header.is_joined() || length > MAX_FRAME_BYTES - VLAN_TAG_BYTES {
            self.counters.rx_oversized += 1;
            return;
        }
        let tagged = &mut slot[..VLAN_TAG_BYTES + length];
        if header.needs_checksum() {
            if !header.complete_checksum(&mut tagged[VLAN_TAG_BYTES..]) {
                self.counters.rx_errors += 1;
                return;
            }
            self.counters.rx_checksums_completed += 1;
        }
        let frame = match vlan_tag(message) {
            Some((tpid, tci)) if insert_vlan_tag(tagged, tpid, tci) => &*tagged,
            _ => &tagged[VLAN_TAG_BYTES..],
        };
        self.counters.rx_frames += 1;
        self.counters.rx_bytes += frame.len() as u64;
        deliver(frame);
    }

    /// Queues a frame; it leaves with [`flush`](Self::flush), or when a batch is full.
    pub fn send(&mut self, frame: &[u8]) {
        self.queue.extend_from_slice(frame);
        self.queue_lengths.push(frame.len());
        if self.queue_lengths.len() == BATCH {
            self.flush();
        }
    }

    /// Gives the queued frames to the kernel. What it refuses is dropped and counted, as a full port does.
    pub fn flush(&mut self) {
        if self.queue_lengths.is_empty() {
            return;
        }
        let mut done = 0;
        let mut start = 0;
        while done < self.queue_lengths.len() {
            match self.send_from(done, start) {
                Ok(sent) => {
                    let bytes: usize = self.queue_lengths[done..done + sent].iter().sum();
                    self.counters.tx_frames += sent as u64;
                    self.counters.tx_bytes += bytes as u64;
                    done += sent;
                    start += bytes;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.counters.tx_drops += 1;
                    start += self.queue_lengths[done];
                    done += 1;
                }
            }
        }
        self.queue.clear();
        self.queue_lengths.clear();
    }

    /// Sends the queued frames from number `first`, which begins at byte `start`. Gives how many the kernel took (at least
    /// one), or why it did not take the first.
    fn send_from(&mut self, first: usize, start: usize) -> io::Result<usize> {
        let mut header = VnetHeader::default();
        // SAFETY: null pointers and zero lengths are valid in both types.
        let (mut parts, mut messages): ([[libc::iovec; 2]; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (zeroed(), zeroed()) };
        let mut rest = &mut self.queue[start..];
        let lengths = &self.queue_lengths[first..];
        for (i, &length) in lengths.iter().enumerate() {
            let (frame, others) = rest.split_at_mut(length);
            rest = others;
            parts[i][0].iov_base = (&raw mut header).cast();
            parts[i][0].iov_len = size_of::<VnetHeader>();
            parts[i][1].iov_base = frame.as_mut_ptr().cast();
            parts[i][1].iov_len = length;
            messages[i].msg_hdr.msg_iov = parts[i].as_mut_ptr();
            messages[i].msg_hdr.msg_iovlen = 2;
        }
        // SAFETY: every message points to two parts, of the lengths given, that live until after the call; sending only
        // reads them. `lengths` has at most BATCH elements, because `send` flushes a full batch.
        let count = unsafe {
            libc::sendmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                lengths.len() as libc::c_uint,
                libc::MSG_DONTWAIT,
            )
        };
        match count {
            1.. => Ok(count as usize),
            0 => Err(io::Error::from(io::ErrorKind::WriteZero)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn set_option<T>(&self, name: &str, option: libc::c_int, value: &T) -> Result<(), PortError> {
        // SAFETY: the pointer is to a value of the length given; the kernel checks the length against the option.
        let result = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                option,
                (&raw const *value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        if result < 0 {
            return Err(PortError::last(format!("{name} on {}", self.interface)));
        }
        Ok(())
    }

    /// Asks for a long receive queue, beyond the system's limit if that is permitted.
    fn set_receive_queue(&self) -> Result<(), PortError> {
        let bytes = RECEIVE_QUEUE_BYTES;
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
            // SAFETY: the pointer is to an integer, and the length is its.
            let result = unsafe {
                libc::setsockopt(
                    self.fd.as_raw_fd(),
                    libc::SOL_SOCKET,
                    option,
                    (&raw const bytes).cast(),
                    length,
                )
            };
            if result == 0 {
                return Ok(());
            }
        }
        Err(PortError::last(format!(
            "receive queue of {}",
            self.interface
        )))
    }

    fn bind(&self, index: u32) -> Result<(), PortError> {
        // SAFETY: all zeros is a valid `sockaddr_ll`.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as libc::c_int;
        // SAFETY: the pointer is to an address of the length given.
        let result = unsafe {
            libc::bind(
                self.fd.as_raw_fd(),
                (&raw const address).cast(),
                size_of::<libc::sockaddr_ll>() as libc::socklen_t,
            )
        };
        if result < 0 {
            return Err(PortError::last(format!("bind to {}", self.interface)));
        }
        Ok(())
    }
}

/// The VLAN tag that the kernel took out of a received frame: its type and its contents.
fn vlan_tag(message: &libc::mmsghdr) -> Option<(u16, u16)> {
    let header = &raw const message.msg_hdr;
    // SAFETY: the kernel filled the control buffer, which still lives, and set its length; these macros stay inside it.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !control.is_null() {
        // SAFETY: not null, so it points to a control message inside the buffer, aligned as the buffer is.
        let (level, kind, length) = unsafe {
            (
                (*control).cmsg_level,
                (*control).cmsg_type,
                (*control).cmsg_len,
            )
        };
        if level == libc::SOL_PACKET
            && kind == libc::PACKET_AUXDATA
            && length >= size_of::<libc::cmsghdr>() + size_of::<libc::tpacket_auxdata>()
        {
            // SAFETY: the message is long enough for this type, of which every bit pattern is valid.
            let aux: libc::tpacket_auxdata = unsafe {
                libc::CMSG_DATA(control)
                    .cast::<libc::tpacket_auxdata>()
                    .read_unaligned()
            };
            if aux.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
                return None;
            }
            let named = aux.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
            let tpid = if named { aux.tp_vlan_tpid } else { 0x8100 };
            return Some((tpid, aux.tp_vlan_tci));
        }
        // SAFETY: as above; gives null at the end.
        control = unsafe { libc::CMSG_NXTHDR(header, control) };
    }
    None
}
