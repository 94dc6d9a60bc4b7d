//! Sequence numbers in frames: their place, and the frame without them. It does not know what they are for, and no header
//! but those that are declared ([`SequenceHeader`]), behind Ethernet and up to two VLAN tags.

use super::Numbered;
use super::header::SequenceHeader;
use engine::Packet;
use wire::ethernet::{ETHERTYPE_SERVICE_VLAN, ETHERTYPE_VLAN};

/// Bytes of both MAC addresses of an Ethernet header.
const ADDRESSES_LEN: usize = 12;
const ETHERTYPE_LEN: usize = 2;
const VLAN_LEN: usize = 4;
/// The most VLAN tags in front of a header.
const MAX_VLANS: usize = 2;

/// A stream, whose packets are ordered among each other: the index of their header, and either a field of it or the
/// bytes in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StreamId {
    /// The value of the header's field.
    Field(u8, u64),
    /// Addresses and VLAN tags in front of the header; zeros where there are fewer.
    Layer2(u8, [u8; ADDRESSES_LEN + MAX_VLANS * VLAN_LEN]),
}

/// The place of a sequence number in a frame, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SequenceTag {
    pub(crate) numbered: Numbered,
    /// The offset of the EtherType of its header.
    at: usize,
    /// The number of bytes from there to what follows the header.
    len: usize,
    /// EtherType of what follows.
    ethertype: u16,
}

/// Returns the offset and the value of the EtherType behind the MAC addresses and up to two VLAN tags; `None` if the
/// frame is too short.
fn ethertype_at(frame: &[u8]) -> Option<(usize, u16)> {
    let mut at = ADDRESSES_LEN;
    loop {
        let bytes = frame.get(at..at + ETHERTYPE_LEN)?;
        let ethertype = u16::from_be_bytes([bytes[0], bytes[1]]);
        let is_vlan = matches!(ethertype, ETHERTYPE_VLAN | ETHERTYPE_SERVICE_VLAN);
        if !is_vlan || at >= ADDRESSES_LEN + MAX_VLANS * VLAN_LEN {
            return Some((at, ethertype));
        }
        at += VLAN_LEN;
    }
}

/// Returns the length in bytes of a frame's Ethernet header, VLAN tags included. For a frame that is too short for a
/// header, returns 14.
pub(crate) fn layer2_len(frame: &[u8]) -> usize {
    ethertype_at(frame).map_or(ADDRESSES_LEN, |(at, _)| at) + ETHERTYPE_LEN
}

/// Returns the number of bytes at the beginning of a frame that may contain these headers and everything in front of
/// them.
pub(super) fn reach(headers: &[SequenceHeader]) -> usize {
    let longest = headers.iter().map(|it| it.bytes as usize).max();
    ADDRESSES_LEN + MAX_VLANS * VLAN_LEN + ETHERTYPE_LEN + longest.unwrap_or(0)
}

impl SequenceTag {
    /// Finds the sequence number of a frame; `None` if the frame does not completely contain one of the declared
    /// headers.
    pub(crate) fn find(headers: &[SequenceHeader], frame: &[u8]) -> Option<SequenceTag> {
        let (at, ethertype) = ethertype_at(frame)?;
        let index = headers.iter().position(|it| it.ethertype == ethertype)?;
        let declared = &headers[index];
        let header = &frame[at + ETHERTYPE_LEN..];
        if header.len() < declared.bytes as usize {
            return None;
        }
        let stream = match declared.stream {
            Some(field) => StreamId::Field(index as u8, field.read(header)),
            None => {
                let mut front = [0; ADDRESSES_LEN + MAX_VLANS * VLAN_LEN];
                front[..at].copy_from_slice(&frame[..at]);
                StreamId::Layer2(index as u8, front)
            }
        };
        Some(SequenceTag {
            numbered: Numbered {
                stream,
                number: declared.sequence.read(header) as u32,
                bits: declared.sequence.width as u8,
            },
            at,
            len: ETHERTYPE_LEN + declared.bytes as usize,
            ethertype: declared.ethertype_behind(header)?,
        })
    }

    /// Removes the header with the sequence number from the packet in which this tag was found, and sets the EtherType
    /// of what follows.
    pub(crate) fn take_off(&self, packet: &mut Packet) {
        let mut front = [0; ADDRESSES_LEN + MAX_VLANS * VLAN_LEN + ETHERTYPE_LEN];
        let front_len = self.at + ETHERTYPE_LEN;
        front[..self.at].copy_from_slice(&packet.stored()[..self.at]);
        front[self.at..front_len].copy_from_slice(&self.ethertype.to_be_bytes());
        packet.replace_front(self.at + self.len, &front[..front_len]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ordering::header::tests::{connection, r_tag};
    use proptest::prelude::*;

    const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

    fn frame(parts: &[&[u8]]) -> Vec<u8> {
        [&ADDRESSES[..], &parts.concat()].concat()
    }

    fn find(frame: &[u8]) -> Option<SequenceTag> {
        SequenceTag::find(&[r_tag(), connection()], frame)
    }

    fn without_tag(bytes: &[u8]) -> Vec<u8> {
        let mut packet = Packet::new(bytes);
        find(bytes).unwrap().take_off(&mut packet);
        packet.bytes().to_vec()
    }

    #[test]
    fn an_r_tag() {
        let tag = [0xf1, 0xc1, 0, 0, 0x12, 0x34, 0x08, 0x00];
        let bytes = frame(&[&tag, b"payload"]);
        let numbered = find(&bytes).unwrap().numbered;
        assert_eq!((numbered.number, numbered.bits), (0x1234, 16));
        assert_eq!(without_tag(&bytes), frame(&[&[8, 0], b"payload"]));
        // VLAN tags are kept; other VLANs are other streams.
        let vlans = [0x88, 0xa8, 0, 7, 0x81, 0, 0, 9];
        let tagged = frame(&[&vlans, &tag, b"payload"]);
        assert_eq!(without_tag(&tagged), frame(&[&vlans, &[8, 0], b"payload"]));
        let other = find(&tagged).unwrap().numbered;
        assert_eq!(other.number, 0x1234);
        assert_ne!(other.stream, numbered.stream);
        // Behind a third VLAN tag nothing is looked for.
        assert_eq!(find(&frame(&[&vlans, &[0x81, 0, 0, 1], &tag])), None);
    }

    #[test]
    fn a_header_with_a_stream() {
        let header = [0, 1, 2, 9, 8, 7, 6];
        for (next, ethertype) in [(4, [0x08, 0x00]), (41, [0x86, 0xdd])] {
            let bytes = frame(&[&[0x88, 0xb5], &header, &[next], b"payload"]);
            let numbered = find(&bytes).unwrap().numbered;
            let expected = Numbered {
                stream: StreamId::Field(1, 0x102),
                number: 0x0908_0706,
                bits: 32,
            };
            assert_eq!(numbered, expected);
            assert_eq!(without_tag(&bytes), frame(&[&ethertype, b"payload"]));
        }
        let unknown = frame(&[&[0x88, 0xb5], &header, &[6], b"payload"]);
        assert_eq!(find(&unknown), None);
    }

    proptest! {
        #[test]
        fn any_frame_is_read_without_reading_outside(mut bytes: Vec<u8>, vlans in 0usize..4, kind in 0usize..3) {
            let ethertype = [[0xf1, 0xc1], [0x88, 0xb5], [8, 0]][kind];
            let at = 12 + 4 * vlans;
            for vlan in 0..vlans {
                if let Some(place) = bytes.get_mut(12 + 4 * vlan..14 + 4 * vlan) {
                    place.copy_from_slice(&[0x81, 0]);
                }
            }
            if let Some(place) = bytes.get_mut(at..at + 2) {
                place.copy_from_slice(&ethertype);
            }
            if let Some(tag) = find(&bytes) {
                let rest = without_tag(&bytes);
                prop_assert_eq!(rest.len() + tag.len - 2, bytes.len());
                prop_assert_eq!(&rest[..tag.at], &bytes[..tag.at]);
                prop_assert_eq!(&rest[tag.at + 2..], &bytes[tag.at + tag.len..]);
            }
            prop_assert!((14..=22).contains(&layer2_len(&bytes)));
        }
    }
}
