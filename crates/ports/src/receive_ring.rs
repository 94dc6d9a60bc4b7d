//! The receive ring of a packet socket (version 2): the kernel writes each frame into a slot and sets its status word;
//! we read the frame there and return the slot.
//!
//! It knows slots, and not the use of the frames. Version 2 makes a frame readable as soon as it arrives; version 3
//! closes a block first, after up to two milliseconds. With 4 MiB the slots in use stay in a processor's cache,
//! which halves the cost of a frame in the kernel compared with 16 MiB. The slots lie an odd number of cache lines apart,
//! because at a power of two they would all compete for the same few cache sets.

use crate::PortError;
use crate::mapping::Mapping;
use crate::offload::{VLAN_TAG_BYTES, VnetHeader};
use std::mem::size_of;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

const CACHE_LINE_BYTES: usize = 64;

/// Distance of slots. A frame of 1500 bytes and its headers fits; longer ones come through the socket's queue.
const SLOT_BYTES: usize = 27 * CACHE_LINE_BYTES;

const BLOCK_BYTES: usize = 256 << 10;
const BLOCKS: usize = 16;
const SLOTS_PER_BLOCK: usize = BLOCK_BYTES / SLOT_BYTES;
const SLOTS: usize = BLOCKS * SLOTS_PER_BLOCK;

/// Returns the size of the receive ring and of its slots, as the kernel expects them in the option `PACKET_RX_RING`.
pub(crate) fn request() -> libc::tpacket_req {
    libc::tpacket_req {
        tp_block_size: BLOCK_BYTES as libc::c_uint,
        tp_block_nr: BLOCKS as libc::c_uint,
        tp_frame_size: SLOT_BYTES as libc::c_uint,
        tp_frame_nr: SLOTS as libc::c_uint,
    }
}

/// A frame in its slot, as the kernel gave it.
pub(crate) struct RingFrame<'a> {
    /// [`VLAN_TAG_BYTES`] of room, then the frame, or as much of it as fits in a slot.
    pub(crate) tagged: &'a mut [u8],
    /// The length of the whole frame in bytes.
    pub(crate) frame_bytes: usize,
    /// The kernel's metadata about checksum and joined segments.
    pub(crate) header: VnetHeader,
    /// The VLAN tag that the kernel took out of the frame: its type and its contents.
    pub(crate) vlan_tag: Option<(u16, u16)>,
    /// True if the whole frame is in the socket's queue, because it is longer than a slot.
    pub(crate) queued: bool,
}

/// The ring, and the number of the next slot.
pub(crate) struct ReceiveRing {
    mapping: Mapping,
    slot: usize,
}

impl ReceiveRing {
    /// Maps the ring that the kernel has made for the socket `fd` according to [`request`]. Fails if the kernel
    /// refuses the mapping.
    pub(crate) fn map(fd: RawFd) -> Result<ReceiveRing, PortError> {
        let mapping =
            Mapping::of_descriptor(fd, 0, BLOCKS * BLOCK_BYTES, "mapping a receive ring")?;
        Ok(ReceiveRing { mapping, slot: 0 })
    }

    /// Reads the next slot if the kernel has filled it: calls `show` with its frame, unless the frame's header is
    /// invalid, and returns the slot to the kernel. Returns true if there was a filled slot.
    #[inline]
    pub(crate) fn take(&mut self, show: impl FnOnce(RingFrame<'_>)) -> bool {
        let block = self.slot / SLOTS_PER_BLOCK;
        let start = block * BLOCK_BYTES + self.slot % SLOTS_PER_BLOCK * SLOT_BYTES;
        let Some(word) = self.mapping.word(start) else {
            return false;
        };
        let status = word.load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the status says that the slot is ours until we write it below, and no other reference to it is alive (the
        // status word, which the slice covers, is not used while the slice is).
        if let Some(slot) = unsafe { self.mapping.bytes_mut(start, SLOT_BYTES) }
            && let Some(frame) = parse(slot, status)
        {
            show(frame);
        }
        if let Some(word) = self.mapping.word(start) {
            word.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.slot = (self.slot + 1) % SLOTS;
        true
    }
}

/// Returns the frame in a slot whose status word is `status`; `None` if the slot's header is invalid.
#[inline]
fn parse(slot: &mut [u8], status: u32) -> Option<RingFrame<'_>> {
    // SAFETY: a slot is longer than this type, of which every bit pattern is valid.
    let header = unsafe { slot.as_ptr().cast::<libc::tpacket2_hdr>().read_unaligned() };
    let start = usize::from(header.tp_mac);
    let captured = header.tp_snaplen as usize;
    let vnet_start = start.checked_sub(size_of::<VnetHeader>())?;
    let vnet = slot.get(vnet_start..start)?;
    // SAFETY: the range has the length of this type, of which every bit pattern is valid.
    let vnet = unsafe { vnet.as_ptr().cast::<VnetHeader>().read_unaligned() };
    let vlan_tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
        let named = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let tpid = if named { header.tp_vlan_tpid } else { 0x8100 };
        (tpid, header.tp_vlan_tci)
    });
    Some(RingFrame {
        // A tag overwrites the end of the header that has just been read.
        tagged: slot.get_mut(start - VLAN_TAG_BYTES..start.checked_add(captured)?)?,
        frame_bytes: header.tp_len as usize,
        header: vnet,
        vlan_tag,
        queued: status & libc::TP_STATUS_COPY != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_as_the_kernel_wants_them() {
        assert_eq!(SLOT_BYTES % libc::TPACKET_ALIGNMENT, 0);
        assert_eq!(BLOCK_BYTES % 4096, 0);
        assert_eq!(SLOT_BYTES / CACHE_LINE_BYTES % 2, 1);
        let request = request();
        assert_eq!(
            request.tp_frame_nr,
            request.tp_block_size / request.tp_frame_size * request.tp_block_nr
        );
    }

    #[test]
    fn a_header_that_points_outside_its_slot_is_no_frame() {
        let mut slot = vec![0u8; SLOT_BYTES];
        let write = |slot: &mut [u8], mac: u16, captured: u32| {
            // SAFETY: all zeros is a valid header, and the slot is longer than it.
            let mut header: libc::tpacket2_hdr = unsafe { std::mem::zeroed() };
            header.tp_mac = mac;
            header.tp_snaplen = captured;
            header.tp_len = captured;
            // SAFETY: as above.
            unsafe {
                slot.as_mut_ptr()
                    .cast::<libc::tpacket2_hdr>()
                    .write_unaligned(header)
            };
        };
        for (mac, captured) in [
            (0, 60),
            (9, 60),
            (76, SLOT_BYTES as u32 - 75),
            (u16::MAX, 0),
            (76, u32::MAX),
        ] {
            write(&mut slot, mac, captured);
            assert!(parse(&mut slot, 1).is_none(), "{mac} {captured}");
        }
        write(&mut slot, 76, 60);
        let frame = parse(&mut slot, 1).expect("a frame");
        assert_eq!((frame.tagged.len(), frame.frame_bytes), (64, 60));
        assert!(frame.vlan_tag.is_none() && !frame.queued);
    }
}
