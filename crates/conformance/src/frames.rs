//! Frames out of choices: Ethernet, IPv4 with and without options, tunnels, protection headers, UDP. Mostly right, sometimes
//! broken in a way that a parser must notice.

use crate::choices::Choices;

/// The addresses in packets and entries; there are few, so that packets often match entries.
pub const ADDRESSES: [u32; 7] = [
    0x0a00_0001,
    0x0a00_0102,
    0x0a01_0203,
    0xc0a8_0001,
    0xc0a8_01ff,
    0xe000_0001,
    0xe000_0101,
];

/// The IP protocols in packets, tunnels among them.
pub const PROTOCOLS: [u8; 6] = [17, 6, 1, 4, 253, 50];

/// Generates an Ethernet frame that contains an IPv4 packet, with or without a tunnel or a protection header;
/// sometimes a damaged frame or random bytes. If `from_controller`, the frame begins with the header of packets from
/// the controller.
pub fn frame(choices: &mut Choices<'_>, from_controller: bool) -> Vec<u8> {
    let mut frame = Vec::new();
    if choices.one_in(16) {
        let length = choices.below(256) as usize;
        return choices.bytes(length);
    }
    if from_controller {
        let port = choices.u16() & 7;
        frame.extend((port << 7 | 0x55).to_be_bytes());
    }
    frame.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
    if choices.one_in(16) {
        frame.extend(choices.u16().to_be_bytes());
    } else {
        frame.extend(0x0800u16.to_be_bytes());
    }
    match choices.below(4) {
        0 => frame.extend(protected(choices)),
        1 => {
            let inner = datagram(choices);
            frame.extend(ipv4(choices, 4, &[], &inner));
        }
        _ => frame.extend(datagram(choices)),
    }
    damage(choices, &mut frame);
    frame
}

/// Generates a frame of a BIER network with BitStrings of 64 bits: BIER directly in Ethernet or in tunnels, multicast
/// packets, or membership messages of hosts; sometimes a frame as [`frame`] generates it. A frame from the controller
/// (`from_controller`) always is one of those, as it begins with the controller header.
pub fn bier_frame(choices: &mut Choices<'_>, from_controller: bool) -> Vec<u8> {
    if from_controller || choices.one_in(4) {
        return frame(choices, from_controller);
    }
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let (ethertype, packet): (u16, Vec<u8>) = match choices.below(8) {
        0..=3 => (0xab37, bier(choices)),
        4 | 5 => (0x0800, bier_in_tunnel(choices)),
        6 => (0x86dd, multicast_v6(choices)),
        _ => (0x0800, multicast(choices)),
    };
    frame.extend(ethertype.to_be_bytes());
    frame.extend(packet);
    damage(choices, &mut frame);
    frame
}

/// Generates a BIER header and its payload (RFC 8296, section 2).
fn bier(choices: &mut Choices<'_>) -> Vec<u8> {
    let (proto, payload) = match choices.below(4) {
        0 => (6, multicast_v6(choices)),
        1 => (choices.byte() & 63, choices.bytes(30)),
        _ => (4, multicast(choices)),
    };
    let ttl = match choices.below(4) {
        0 => choices.below(3) as u8,
        _ => 64,
    };
    let (version, bsl) = match choices.below(16) {
        0 => (choices.byte() & 15, 1),
        1 => (0, choices.byte() & 15),
        _ => (0, 1),
    };
    let bift_id = choices.below(4);
    let mut packet = (bift_id << 12 | 1 << 8 | u32::from(ttl))
        .to_be_bytes()
        .to_vec();
    packet.extend([version, bsl << 4, 0, choices.byte()]);
    packet.extend([choices.byte() & 15, proto, 0, 7]);
    let bits = match choices.below(4) {
        0 => choices.bytes(8),
        _ => vec![0, 0, 0, 0, 0, 0, 0, choices.below(8) as u8],
    };
    packet.extend(bits);
    packet.extend(payload);
    packet
}

/// Generates a BIER packet in GRE (RFC 2784) in IPv4, sometimes within a further IPv4 tunnel.
fn bier_in_tunnel(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut packet = vec![0, 0, 0xab, 0x37];
    if choices.one_in(8) {
        packet[choices.below(4) as usize] ^= 0x80;
    }
    packet.extend(bier(choices));
    let mut packet = ipv4(choices, 47, &[], &packet);
    if choices.one_in(4) {
        packet = ipv4(choices, 4, &[], &packet);
    }
    packet
}

/// Generates a frame of a Shorternet, whose header is followed by a context or an IP packet; sometimes a frame as
/// [`frame`] generates it.
pub fn shorternet_frame(choices: &mut Choices<'_>, from_controller: bool) -> Vec<u8> {
    if from_controller || choices.one_in(2) {
        return frame(choices, from_controller);
    }
    let mut frame = vec![choices.below(4) as u8, choices.below(4) as u8];
    let protocol = choices.pick(&[253, 253, 254, 4, 41, 17]);
    frame.extend([protocol, choices.pick(&[0, 1, 2, 64])]);
    if protocol == 4 {
        frame.extend(datagram(choices));
    } else {
        let profile_and_length = choices.pick(&[0x00, 0x40, 0x80, 0x41, 0x8f, 0xc0, 0x7f]);
        frame.extend([0, choices.below(4) as u8, profile_and_length]);
        let length = choices.below(40) as usize;
        frame.extend(choices.bytes(length));
    }
    damage(choices, &mut frame);
    frame
}

/// Generates a frame of an MPLS network, with one to five labels from a small range before an IP packet or a failure
/// notice; sometimes a frame as [`frame`] generates it.
pub fn mpls_frame(choices: &mut Choices<'_>, from_controller: bool) -> Vec<u8> {
    if from_controller || choices.one_in(4) {
        return frame(choices, from_controller);
    }
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x47];
    let labels = 1 + choices.pick(&[0, 0, 0, 1, 1, 4]);
    let gal = choices.one_in(8);
    for place in 1..=labels {
        let bottom = place == labels;
        let label = if bottom && gal { 13 } else { choices.below(4) };
        let (class, ttl) = (choices.below(8), choices.pick(&[0, 1, 2, 64, 64, 255]));
        let word = label << 12 | class << 9 | u32::from(bottom) << 8 | ttl;
        frame.extend(word.to_be_bytes());
    }
    if gal {
        frame.extend([0x10, 0, 0x7f, choices.byte()]);
        frame.extend([
            choices.below(4) as u8,
            choices.below(4) as u8,
            0,
            choices.below(4) as u8,
        ]);
    } else {
        frame.extend(datagram(choices));
    }
    damage(choices, &mut frame);
    frame
}

/// Generates a frame with an R-TAG (IEEE 802.1CB, 7.8), sometimes after a VLAN tag; sometimes a frame as [`frame`]
/// generates it.
pub fn rtag_frame(choices: &mut Choices<'_>, from_controller: bool) -> Vec<u8> {
    if from_controller || choices.one_in(4) {
        return frame(choices, from_controller);
    }
    // Addresses few enough that entries and packets meet.
    let mut frame = vec![0, 0, 0, 0, 0, choices.below(4) as u8];
    frame.extend([0, 0, 0, 0, 0, choices.below(4) as u8]);
    if !choices.one_in(3) {
        frame.extend([0x81, 0, choices.byte() & 0xe0, choices.below(4) as u8]);
    }
    if !choices.one_in(3) {
        frame.extend([0xf1, 0xc1, 0, 0, 0, choices.byte() & 15]);
    }
    frame.extend([0x08, 0x00]);
    frame.extend(datagram(choices));
    damage(choices, &mut frame);
    frame
}

/// Generates a frame of a PPPoE gateway: from a subscriber's line, with up to two VLAN tags and sometimes
/// the tag of a port before them, or from the core network.
pub fn bng_frame(choices: &mut Choices<'_>, from_controller: bool) -> Vec<u8> {
    if from_controller || choices.one_in(8) {
        return frame(choices, from_controller);
    }
    let mut frame = match choices.one_in(4) {
        true => vec![0xff; 6],
        false => vec![0, 0, 0, 0, 0, choices.below(4) as u8],
    };
    frame.extend([0, 0, 0, 0, 0, choices.below(4) as u8]);
    if choices.one_in(4) {
        frame.extend(if choices.one_in(4) {
            [&[0x86, 0xdd][..], &multicast_v6(choices)].concat()
        } else {
            [&[0x08, 0x00][..], &segment(choices)].concat()
        });
        damage(choices, &mut frame);
        return frame;
    }
    if choices.one_in(2) {
        frame.extend([0x91, 0x00, 0, choices.below(4) as u8]);
    }
    for _ in 0..choices.pick(&[0, 0, 1, 2]) {
        let tpid = choices.pick(&[0x8100u16, 0x8100, 0x88a8]);
        frame.extend(tpid.to_be_bytes());
        frame.extend([0, choices.below(3) as u8]);
    }
    let session_id = choices.below(4) as u8;
    let (ether_type, code, payload): (u16, u8, Vec<u8>) = match choices.below(8) {
        0 | 1 => (
            0x8863,
            choices.pick(&[0x09, 0x19, 0xa7, 0x07]),
            vec![1, 1, 0, 0],
        ),
        2 => {
            let code = choices.pick(&[9, 9, 9, 10, 1]);
            let magic = choices.below(4) as u8;
            let lcp = [0xc0, 0x21, code, 7, 0, 8, 0, 0, 0, magic];
            (0x8864, 0, lcp.to_vec())
        }
        3 => (
            0x8864,
            0,
            [&[0x00, 0x57][..], &multicast_v6(choices)].concat(),
        ),
        _ => (0x8864, 0, [&[0x00, 0x21][..], &segment(choices)].concat()),
    };
    frame.extend(ether_type.to_be_bytes());
    frame.extend([0x11, code, 0, session_id]);
    frame.extend((payload.len() as u16).to_be_bytes());
    frame.extend(payload);
    damage(choices, &mut frame);
    frame
}

/// Generates a UDP datagram or a TCP segment that opens a connection.
fn segment(choices: &mut Choices<'_>) -> Vec<u8> {
    if choices.one_in(2) {
        return datagram(choices);
    }
    let options: &[u8] = choices.pick(&[
        &[2, 4, 5, 180],
        &[1, 2, 4, 5, 180, 0, 0, 0],
        &[4, 2, 1, 1, 2, 4, 255, 255],
        &[2, 3, 5, 180],
        &[5, 1, 0, 0],
        &[],
    ]);
    let mut tcp = choices.bytes(12);
    tcp.extend([(5 + options.len() as u8 / 4) << 4, 2]);
    tcp.extend(choices.bytes(6));
    tcp.extend(options);
    ipv4(choices, 6, &[], &tcp)
}

/// Generates an IPv4 packet to a multicast group with data, or with an IGMP membership message.
fn multicast(choices: &mut Choices<'_>) -> Vec<u8> {
    let protocol = if choices.one_in(8) { 2 } else { 17 };
    let length = choices.below(60) as usize;
    let payload = choices.bytes(length);
    let mut packet = ipv4(choices, protocol, &[], &payload);
    let group = if choices.one_in(8) {
        [224, 0, 0, 1]
    } else {
        [224, 0, 1, 1]
    };
    packet[16..20].copy_from_slice(&group);
    packet[10..12].copy_from_slice(&[0, 0]);
    let checksum = checksum(&packet[..20]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// Generates an IPv6 packet to a multicast group with data, or with an MLD membership message.
fn multicast_v6(choices: &mut Choices<'_>) -> Vec<u8> {
    let length = choices.below(60) as usize;
    let mut payload = choices.bytes(length);
    let is_mld = choices.one_in(4);
    if is_mld {
        let kind = choices.pick(&[130, 131, 132, 143, 128]);
        payload.splice(0..0, [58, 0, 5, 2, 0, 0, 1, 0, kind, 0, 0, 0]);
    }
    let hop_limit = if choices.one_in(4) {
        choices.below(3) as u8
    } else {
        64
    };
    let mut packet = vec![0x60, choices.byte(), 0, choices.byte() & 3];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([if is_mld { 0 } else { 17 }, hop_limit]);
    packet.extend([0; 15]);
    packet.push(choices.below(4) as u8);
    // Groups whose addresses are small numbers to entries cannot be multicast ones.
    let first = choices.pick(&[0xff, 0xff, 0x20]);
    packet.extend([first, choices.pick(&[0x3e, 0x02])]);
    packet.extend([0; 13]);
    packet.push(choices.below(4) as u8);
    packet.extend(payload);
    packet
}

/// Generates an IPv4 packet that contains a protection header and a datagram.
fn protected(choices: &mut Choices<'_>) -> Vec<u8> {
    let mut payload = vec![0, 0, choices.below(4) as u8];
    // Sequence numbers near zero, near the end, and anywhere.
    let number = match choices.below(4) {
        0 | 1 => u32::from(choices.byte() & 15),
        2 => u32::MAX - u32::from(choices.byte() & 15),
        _ => u32::from(choices.u16()) << 16 | u32::from(choices.u16()),
    };
    payload.extend(number.to_be_bytes());
    payload.push(if choices.one_in(8) { 17 } else { 4 });
    let inner = datagram(choices);
    payload.extend(inner);
    ipv4(choices, 253, &[], &payload)
}

fn datagram(choices: &mut Choices<'_>) -> Vec<u8> {
    let protocol = choices.pick(&PROTOCOLS);
    let words = if choices.one_in(4) {
        choices.below(11)
    } else {
        0
    };
    let options = choices.bytes(words as usize * 4);
    let mut payload = Vec::new();
    payload.extend((choices.u16() & 3).to_be_bytes());
    payload.extend((choices.u16() & 3).to_be_bytes());
    let length = choices.below(40) as usize;
    payload.extend(choices.bytes(length));
    ipv4(choices, protocol, &options, &payload)
}

/// Generates an IPv4 packet with the given payload and a header whose checksum is mostly correct.
fn ipv4(choices: &mut Choices<'_>, protocol: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let ihl = 5 + options.len() / 4;
    let total = (ihl * 4 + payload.len()) as u16;
    let mut header = vec![0x40 | ihl as u8, choices.byte()];
    header.extend(total.to_be_bytes());
    header.extend(choices.u16().to_be_bytes());
    let fragment = if choices.one_in(8) {
        choices.u16()
    } else {
        0x4000
    };
    header.extend(fragment.to_be_bytes());
    let ttl = if choices.one_in(8) {
        choices.below(3) as u8
    } else {
        64
    };
    header.extend([ttl, protocol, 0, 0]);
    header.extend(choices.pick(&ADDRESSES).to_be_bytes());
    header.extend(choices.pick(&ADDRESSES).to_be_bytes());
    header.extend(options);
    let checksum = checksum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    if choices.one_in(16) {
        header[11] ^= 1;
    }
    header.extend(payload);
    header
}

/// Computes the Internet checksum of `bytes` (RFC 1071).
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Cuts off the end of a frame, or inverts one to three of its bits, in a quarter of the calls. Leaves the frame
/// unchanged in the others.
pub(crate) fn damage(choices: &mut Choices<'_>, frame: &mut Vec<u8>) {
    match choices.below(8) {
        6 => {
            let keep = choices.u16() as usize % (frame.len() + 1);
            frame.truncate(keep);
        }
        7 => {
            for _ in 0..1 + choices.below(3) {
                let at = choices.u16() as usize % frame.len();
                frame[at] ^= 1 << choices.below(8);
            }
        }
        _ => {}
    }
}
