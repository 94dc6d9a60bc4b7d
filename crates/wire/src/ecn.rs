//! Explicit Congestion Notification (RFC 3168) in Ethernet frames: the two bits of IPv4 and IPv6, behind VLAN tags and MPLS
//! label stacks as well.
//!
//! A label stack does not name its payload; as in routers, the first four bits of the payload decide. It does not know who is
//! congested.

use crate::checksum::Sum;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const MPLS: [u16; 2] = [0x8847, 0x8848];
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// The codepoint of the two bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codepoint {
    /// The transport does not understand marks.
    NotEct,
    /// The transport understands marks, and the sender chose ECT(1).
    Ect1,
    /// The transport understands marks, and the sender chose ECT(0).
    Ect0,
    /// Congestion was experienced.
    Ce,
}

impl Codepoint {
    /// Returns true if the sender's transport supports ECN marks: for every codepoint but Not-ECT.
    pub fn is_ect(self) -> bool {
        self != Codepoint::NotEct
    }
}

/// Returns the ECN codepoint of a frame's outermost IP header; `None` if the frame has no complete IP header.
pub fn codepoint(frame: &[u8]) -> Option<Codepoint> {
    let bits = match ip_header(frame)? {
        IpHeader::V4(at) => frame[at + 1] & 3,
        IpHeader::V6(at) => frame[at + 1] >> 4 & 3,
    };
    Some(match bits {
        0 => Codepoint::NotEct,
        1 => Codepoint::Ect1,
        2 => Codepoint::Ect0,
        _ => Codepoint::Ce,
    })
}

/// Sets the codepoint of a frame's outermost IP header to CE (congestion experienced) if its transport supports ECN.
/// Updates the IPv4 header's checksum by the difference, so that a wrong one stays wrong (RFC 1624). Returns true if
/// the frame now has the codepoint CE; otherwise, the frame is unchanged: it has no complete IP header, or its
/// transport does not support ECN.
pub fn mark(frame: &mut [u8]) -> bool {
    let Some(header) = ip_header(frame) else {
        return false;
    };
    match codepoint(frame) {
        None | Some(Codepoint::NotEct) => return false,
        Some(Codepoint::Ce) => return true,
        Some(Codepoint::Ect0 | Codepoint::Ect1) => {}
    }
    match header {
        IpHeader::V6(at) => frame[at + 1] |= 3 << 4,
        IpHeader::V4(at) => {
            let word =
                |frame: &[u8], i: usize| u16::from_be_bytes([frame[at + i], frame[at + i + 1]]);
            let before = word(frame, 0);
            frame[at + 1] |= 3;
            let sum = Sum::new()
                .word(!word(frame, 10))
                .word(!before)
                .word(word(frame, 0));
            frame[at + 10..at + 12].copy_from_slice(&sum.finish().to_be_bytes());
        }
    }
    true
}

/// The offset of an IP header.
enum IpHeader {
    V4(usize),
    V6(usize),
}

fn ip_header(frame: &[u8]) -> Option<IpHeader> {
    let ether_type = |at: usize| {
        let bytes = frame.get(at..at + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    let (mut kind, mut at) = (ether_type(12)?, 14);
    while VLAN.contains(&kind) {
        kind = ether_type(at + 2)?;
        at += 4;
    }
    let labelled = MPLS.contains(&kind);
    if labelled {
        while frame.get(at + 2)? & 1 == 0 {
            at += 4;
        }
        at += 4;
    }
    let first = *frame.get(at)?;
    let (version, header_bytes) = (first >> 4, usize::from(first & 15) * 4);
    match version {
        4 if labelled || kind == IPV4 => {
            let whole = header_bytes >= 20 && frame.len() >= at + header_bytes;
            whole.then_some(IpHeader::V4(at))
        }
        6 if labelled || kind == IPV6 => (frame.len() >= at + 40).then_some(IpHeader::V6(at)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::checksum;

    const VLAN_TAG: [u8; 4] = [0x81, 0x00, 0x00, 0x05];

    fn ipv4(tos: u8, options: usize) -> Vec<u8> {
        let mut header = vec![0x45 + options as u8, tos, 0, 40, 1, 2, 0, 0, 64, 17, 0, 0];
        header.extend_from_slice(&[10, 0, 1, 1, 10, 0, 2, 1]);
        header.resize(20 + 4 * options, 1);
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        header.extend_from_slice(&[9; 8]);
        header
    }

    fn ipv6(traffic_class: u8) -> Vec<u8> {
        let mut header = vec![0x60 | traffic_class >> 4, traffic_class << 4 | 0x0a];
        header.resize(40, 3);
        header
    }

    /// Makes a frame with this number of VLAN tags and MPLS labels in front of the packet.
    fn frame(tags: usize, labels: usize, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for _ in 0..tags {
            frame.extend_from_slice(&VLAN_TAG);
        }
        let kind = if labels > 0 {
            0x8847
        } else if packet[0] >> 4 == 6 {
            IPV6
        } else {
            IPV4
        };
        frame.extend_from_slice(&kind.to_be_bytes());
        for label in 0..labels {
            frame.extend_from_slice(&[0, 1, u8::from(label + 1 == labels), 64]);
        }
        frame.extend_from_slice(packet);
        frame
    }

    #[test]
    fn marks_wherever_ip_is() {
        for (tags, labels) in [(0, 0), (1, 0), (2, 0), (0, 1), (0, 3), (1, 2)] {
            for ecn in 0..4 {
                for (packet, is_v4) in [
                    (ipv4(0xb8 | ecn, 0), true),
                    (ipv4(ecn, 2), true),
                    (ipv6(0x5c | ecn), false),
                ] {
                    let before = frame(tags, labels, &packet);
                    let at = before.len() - packet.len();
                    let mut after = before.clone();
                    assert_eq!(
                        codepoint(&before).map(|c| c as u8),
                        Some([0, 1, 2, 3][usize::from(ecn)])
                    );
                    assert_eq!(mark(&mut after), ecn != 0);
                    if ecn == 0 {
                        assert_eq!(after, before);
                        continue;
                    }
                    assert_eq!(codepoint(&after), Some(Codepoint::Ce));
                    let mut expected = before.clone();
                    if is_v4 {
                        let header_bytes = usize::from(packet[0] & 15) * 4;
                        assert_eq!(checksum(&after[at..at + header_bytes]), 0);
                        expected[at + 1] |= 3;
                        expected[at + 10..at + 12].copy_from_slice(&after[at + 10..at + 12]);
                    } else {
                        expected[at + 1] |= 0x30;
                    }
                    assert_eq!(after, expected);
                }
            }
        }
    }

    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut packet = ipv4(2, 0);
        packet[10] ^= 0x40;
        let mut bytes = frame(0, 0, &packet);
        assert!(mark(&mut bytes));
        assert_ne!(checksum(&bytes[14..34]), 0);
    }

    #[test]
    fn what_is_no_ip_is_left_alone() {
        let arp = [&[2; 12][..], &[0x08, 0x06], &[0x45; 40]].concat();
        let ipv6_type_with_version_4 = [&[2; 12][..], &[0x86, 0xdd], &ipv4(2, 0)].concat();
        // A pseudowire's control word under a label.
        let pseudowire = [
            &[2; 12][..],
            &[0x88, 0x47, 0, 1, 1, 64, 0, 0, 0, 0],
            &ipv4(2, 0),
        ]
        .concat();
        for bytes in [arp, ipv6_type_with_version_4, pseudowire] {
            let mut marked = bytes.clone();
            assert_eq!((codepoint(&bytes), mark(&mut marked)), (None, false));
            assert_eq!(bytes, marked);
        }
        // Cut anywhere, nothing is read beyond the end.
        for whole in [frame(2, 3, &ipv4(2, 2)), frame(1, 0, &ipv6(2))] {
            for length in 0..whole.len() {
                let mut cut = whole[..length].to_vec();
                assert_eq!(mark(&mut cut), codepoint(&whole[..length]).is_some());
            }
        }
        // Labels without end.
        assert_eq!(
            codepoint(&[&[2; 12][..], &[0x88, 0x47], &[0; 400]].concat()),
            None
        );
    }
}
