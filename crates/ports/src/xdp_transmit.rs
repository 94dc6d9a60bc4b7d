//! Sends through an XDP socket: it writes frames into memory shared with the kernel, and one call sends a burst of them.
//!
//! It does not receive, because XDP would lose the kernel's information about unfinished checksums and VLAN tags. It sends from the first
//! queue, in copy mode, which every interface has. It bypasses queueing disciplines and packet taps of the sending side. Its
//! owner handles frames that it cannot take (see [`XdpTransmit::MAX_FRAME_BYTES`]), and failures.

use crate::mapping::Mapping;
use crate::{PortError, socket};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Frames that can be queued or in transmission. Few, so that they stay in a processor's cache.
const FRAMES: u32 = 256;
const FRAME_BYTES: usize = 2048;

/// Most calls in a row that send nothing, as when an interface is busy, before the rest is left for later.
const PATIENCE: u32 = 16;

/// Counters of the frames that left the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    pub(crate) drops: u64,
}

/// An XDP socket that sends.
pub(crate) struct XdpTransmit {
    // Before the memory that it refers to, so that it is closed first.
    fd: OwnedFd,
    frames: Mapping,
    transmit: Ring,
    completion: Ring,
    /// Numbers of the frame buffers that are not in use; the last one freed is the first one used again.
    free: Vec<u32>,
    /// Descriptors written into the transmit ring so far, modulo 2^32.
    written: u32,
    /// Descriptors that the kernel took and that are counted, modulo 2^32.
    counted: u32,
    /// Completions read so far, modulo 2^32.
    completed: u32,
}

/// One of the rings that the kernel and this process share.
struct Ring {
    mapping: Mapping,
    offsets: libc::xdp_ring_offset,
}

impl Ring {
    fn map(
        fd: RawFd,
        offsets: libc::xdp_ring_offset,
        page_offset: libc::off_t,
        entry_bytes: usize,
    ) -> Result<Ring, PortError> {
        let bytes = offsets.desc as usize + FRAMES as usize * entry_bytes;
        let mapping = Mapping::of_descriptor(fd, page_offset, bytes, "mapping a ring of XDP")?;
        let ring = Ring { mapping, offsets };
        for offset in [offsets.producer, offsets.consumer] {
            if ring.mapping.word(offset as usize).is_none() {
                return Err(PortError::Failed("a ring of XDP is not as expected".into()));
            }
        }
        Ok(ring)
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        self.mapping
            .word(offset as usize)
            .expect("checked when the ring was mapped")
    }

    fn producer(&self) -> &AtomicU32 {
        self.word(self.offsets.producer)
    }

    fn consumer(&self) -> &AtomicU32 {
        self.word(self.offsets.consumer)
    }
}

impl XdpTransmit {
    /// The length of the longest frame in bytes.
    pub(crate) const MAX_FRAME_BYTES: usize = FRAME_BYTES;

    /// Opens an XDP socket that sends by the first queue of an interface. Fails with `Busy` if the queue has another
    /// XDP socket.
    pub(crate) fn open(interface: &str, index: u32) -> Result<XdpTransmit, PortError> {
        let fd = socket::open(libc::AF_XDP, libc::SOCK_RAW, 0)
            .map_err(|e| PortError::io(format!("XDP socket on {interface}"), &e))?;
        let frames = Mapping::anonymous(FRAMES as usize * FRAME_BYTES, "memory for frames")?;
        register(&fd, &frames)?;
        // A socket must have a fill ring, though nothing is received.
        for (option, entries) in [
            (libc::XDP_UMEM_FILL_RING, 2),
            (libc::XDP_UMEM_COMPLETION_RING, FRAMES),
            (libc::XDP_TX_RING, FRAMES),
        ] {
            set_option(&fd, option, &entries)?;
        }
        let offsets = ring_offsets(&fd)?;
        let transmit = Ring::map(
            fd.as_raw_fd(),
            offsets.tx,
            libc::XDP_PGOFF_TX_RING,
            size_of::<libc::xdp_desc>(),
        )?;
        let completion = Ring::map(
            fd.as_raw_fd(),
            offsets.cr,
            libc::XDP_UMEM_PGOFF_COMPLETION_RING as libc::off_t,
            size_of::<u64>(),
        )?;
        bind(&fd, interface, index)?;
        Ok(XdpTransmit {
            fd,
            frames,
            transmit,
            completion,
            free: (0..FRAMES).rev().collect(),
            written: 0,
            counted: 0,
            completed: 0,
        })
    }

    /// Copies a frame (of 1 to [`Self::MAX_FRAME_BYTES`] bytes) into shared memory, for the next [`Self::send`].
    /// Returns false if there is no room until frames have been sent.
    #[inline]
    pub(crate) fn write(&mut self, frame: &[u8]) -> bool {
        if self.free.is_empty() {
            self.complete();
        }
        let Some(number) = self.free.pop() else {
            return false;
        };
        let start = number as usize * FRAME_BYTES;
        // SAFETY: the frame is on the free list, so the kernel does not use it, and no other slice of it exists.
        let Some(place) = (unsafe { self.frames.bytes_mut(start, frame.len()) }) else {
            return false;
        };
        place.copy_from_slice(frame);
        let descriptor = libc::xdp_desc {
            addr: start as u64,
            len: frame.len() as u32,
            options: 0,
        };
        // SAFETY: there are as many descriptors as frames and this frame was free, so the kernel is done with this descriptor;
        // it is inside the mapping, whose length was computed from the same numbers, and aligned as the kernel laid it out.
        unsafe { self.descriptor(self.written).write(descriptor) };
        self.written = self.written.wrapping_add(1);
        true
    }

    /// Sends the written frames: calls the kernel until it has accepted all of them, or accepts no more, and counts the
    /// results in `sent`. An error means that the interface is down or gone.
    pub(crate) fn send(&mut self, sent: &mut Sent) -> io::Result<()> {
        self.transmit
            .producer()
            .store(self.written, Ordering::Release);
        let mut idle = 0;
        while self.counted != self.written && idle < PATIENCE {
            // SAFETY: no buffer and no address; the call concerns the ring only.
            let result = unsafe {
                libc::sendto(
                    self.fd.as_raw_fd(),
                    std::ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                    std::ptr::null(),
                    0,
                )
            };
            let error = (result < 0).then(io::Error::last_os_error);
            let last = self.count(sent);
            idle = if last.is_some() { 0 } else { idle + 1 };
            match error.as_ref().and_then(io::Error::raw_os_error) {
                None | Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS) => {}
                // The frame that it took last was dropped by the interface.
                Some(libc::EBUSY) => {
                    if let Some(len) = last {
                        sent.frames -= 1;
                        sent.bytes -= u64::from(len);
                        sent.drops += 1;
                    }
                }
                Some(_) => return Err(error.unwrap_or_else(|| io::ErrorKind::Other.into())),
            }
        }
        self.complete();
        Ok(())
    }

    /// Returns the number of written frames that the kernel has not accepted yet.
    pub(crate) fn waiting(&self) -> u64 {
        self.written.wrapping_sub(self.counted).into()
    }

    /// Adds the frames that the kernel has accepted since the last call to `sent`. Returns the length of the last of
    /// them in bytes; `None` if there was none.
    fn count(&mut self, sent: &mut Sent) -> Option<u32> {
        let taken = self.transmit.consumer().load(Ordering::Acquire);
        let mut last = None;
        while self.counted != taken && self.counted != self.written {
            // SAFETY: inside the mapping (see `write`), written by us, and only read by the kernel.
            let descriptor = unsafe { self.descriptor(self.counted).read() };
            sent.frames += 1;
            sent.bytes += u64::from(descriptor.len);
            last = Some(descriptor.len);
            self.counted = self.counted.wrapping_add(1);
        }
        last
    }

    /// Makes the buffers of frames that the kernel has finished sending available again.
    fn complete(&mut self) {
        let produced = self.completion.producer().load(Ordering::Acquire);
        let Ring { mapping, offsets } = &self.completion;
        while self.completed != produced {
            let entry = offsets.desc as usize + (self.completed % FRAMES) as usize * 8;
            // SAFETY: inside the mapping, whose length was computed from the same numbers; written by the kernel before it
            // moved the producer on.
            let address = unsafe { mapping.address().add(entry).cast::<u64>().read_unaligned() };
            let number = address / FRAME_BYTES as u64;
            if number < FRAMES.into() && self.free.len() < FRAMES as usize {
                self.free.push(number as u32);
            }
            self.completed = self.completed.wrapping_add(1);
        }
        let consumer = self.completion.consumer();
        consumer.store(self.completed, Ordering::Release);
    }

    fn descriptor(&self, position: u32) -> *mut libc::xdp_desc {
        let at = (position % FRAMES) as usize * size_of::<libc::xdp_desc>();
        let offset = self.transmit.offsets.desc as usize + at;
        self.transmit.mapping.address().wrapping_add(offset).cast()
    }
}

fn register(fd: &OwnedFd, frames: &Mapping) -> Result<(), PortError> {
    // SAFETY: all zeros is a valid value of this type.
    let mut memory: libc::xdp_umem_reg = unsafe { zeroed() };
    memory.addr = frames.address() as u64;
    memory.len = FRAMES as u64 * FRAME_BYTES as u64;
    memory.chunk_size = FRAME_BYTES as u32;
    set_option(fd, libc::XDP_UMEM_REG, &memory)
}

fn set_option<T>(fd: &OwnedFd, option: libc::c_int, value: &T) -> Result<(), PortError> {
    socket::set_option(fd, libc::SOL_XDP, option, value)
        .map_err(|e| PortError::io(format!("option {option} of an XDP socket"), &e))
}

fn ring_offsets(fd: &OwnedFd) -> Result<libc::xdp_mmap_offsets, PortError> {
    // A kernel before 5.4 gives a shorter value.
    socket::option(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)
        .ok_or_else(|| PortError::Missing("this kernel's XDP is too old".into()))
}

fn bind(fd: &OwnedFd, interface: &str, index: u32) -> Result<(), PortError> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: libc::XDP_COPY,
        sxdp_ifindex: index,
        sxdp_queue_id: 0,
        sxdp_shared_umem_fd: 0,
    };
    socket::bind(fd, &address).map_err(|e| PortError::io(format!("XDP on {interface}"), &e))
}
