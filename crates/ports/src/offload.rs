//! Turns a frame from the kernel into the frame that a wire would carry: with finished checksums and the VLAN tag in place.
//!
//! It works on bytes and the kernel's metadata, and makes no system call.

/// The kernel's `struct virtio_net_hdr`, which a packet socket puts in front of frames on request.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VnetHeader {
    pub flags: u8,
    pub gso_type: u8,
    pub header_len: u16,
    pub gso_size: u16,
    pub checksum_start: u16,
    pub checksum_offset: u16,
}

/// Flag: the checksum field holds only the sum of the pseudo header.
const NEEDS_CHECKSUM: u8 = 1;

/// Length of a VLAN tag.
pub(crate) const VLAN_TAG_BYTES: usize = 4;

/// Length of the two MAC addresses, after which a VLAN tag goes.
const ADDRESSES_BYTES: usize = 12;

impl VnetHeader {
    /// Returns true if the kernel has joined several segments to make this frame (generic receive or segmentation
    /// offload).
    pub(crate) fn is_joined(&self) -> bool {
        self.gso_type != 0
    }

    /// Returns true if the frame's checksum is not complete yet.
    pub(crate) fn needs_checksum(&self) -> bool {
        self.flags & NEEDS_CHECKSUM != 0
    }

    /// Completes the checksum of a frame, whose place these metadata give. Returns false, with the frame unchanged, if
    /// the place is outside of the frame.
    pub(crate) fn complete_checksum(&self, frame: &mut [u8]) -> bool {
        let start = usize::from(self.checksum_start);
        let field = start + usize::from(self.checksum_offset);
        if field + 2 > frame.len() {
            return false;
        }
        let mut sum = 0u64;
        let mut words = frame[start..].chunks_exact(2);
        for word in &mut words {
            sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
        }
        if let [last] = words.remainder() {
            sum += u64::from(*last) << 8;
        }
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        // A zero would say that UDP carries no checksum; for the others the two zeros are the same number.
        let checksum = match !(sum as u16) {
            0 => 0xffff,
            other => other,
        };
        frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        true
    }
}

/// Inserts a VLAN tag of type `tpid` and contents `tci` behind the MAC addresses. The frame is
/// `buffer[VLAN_TAG_BYTES..]` before and `buffer` after. Returns false, with the frame unchanged, if it is too short
/// for two addresses.
pub(crate) fn insert_vlan_tag(buffer: &mut [u8], tpid: u16, tci: u16) -> bool {
    if buffer.len() < VLAN_TAG_BYTES + ADDRESSES_BYTES {
        return false;
    }
    buffer.copy_within(VLAN_TAG_BYTES..VLAN_TAG_BYTES + ADDRESSES_BYTES, 0);
    buffer[ADDRESSES_BYTES..ADDRESSES_BYTES + 2].copy_from_slice(&tpid.to_be_bytes());
    buffer[ADDRESSES_BYTES + 2..ADDRESSES_BYTES + 4].copy_from_slice(&tci.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_finished() {
        // A UDP datagram of 9 bytes (odd) whose field holds the pseudo-header's sum, here simply 0x1234.
        let mut frame = vec![0xee; 4];
        frame.extend_from_slice(&[0x13, 0x89, 0x13, 0x89, 0x00, 0x09, 0x12, 0x34, 0x41]);
        let header = VnetHeader {
            flags: NEEDS_CHECKSUM,
            checksum_start: 4,
            checksum_offset: 6,
            ..VnetHeader::default()
        };
        assert!(header.complete_checksum(&mut frame));
        // 1389 + 1389 + 0009 + 1234 + 4100 = 7a4f
        assert_eq!(frame[10..12], (!0x7a4fu16).to_be_bytes());
    }

    #[test]
    fn a_checksum_of_zero_is_written_as_ones() {
        let mut frame = vec![0xff, 0xff, 0, 0];
        let header = VnetHeader {
            flags: NEEDS_CHECKSUM,
            checksum_offset: 2,
            ..VnetHeader::default()
        };
        assert!(header.complete_checksum(&mut frame));
        assert_eq!(frame, [0xff; 4]);
    }

    #[test]
    fn a_checksum_outside_the_frame_is_refused() {
        for (start, offset) in [(0, 3), (4, 0), (u16::MAX, u16::MAX)] {
            let header = VnetHeader {
                flags: NEEDS_CHECKSUM,
                checksum_start: start,
                checksum_offset: offset,
                ..VnetHeader::default()
            };
            let mut frame = [1, 2, 3, 4];
            assert!(!header.complete_checksum(&mut frame));
            assert_eq!(frame, [1, 2, 3, 4]);
        }
    }

    #[test]
    fn a_tag_goes_after_the_addresses() {
        let mut buffer = vec![0; 4];
        buffer.extend(1..=12);
        buffer.extend([0x08, 0x00, 0x45]);
        assert!(insert_vlan_tag(&mut buffer, 0x8100, 0x6064));
        let mut expected: Vec<u8> = (1..=12).collect();
        expected.extend([0x81, 0x00, 0x60, 0x64, 0x08, 0x00, 0x45]);
        assert_eq!(buffer, expected);
        assert!(!insert_vlan_tag(&mut [0; 15], 0x8100, 1));
    }
}
