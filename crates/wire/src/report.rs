//! Telemetry reports v2.0 (P4.org, 2020-10-08) with the INT headers v2.1 of the packets in them, and the reports of the thesis of Claeson
//! and Kruse (2021, section 3.3). The bytes may be anything: [`Malformed`] names the rule that they break. It keeps nothing.
//!
//! ```text
//! group (8 bytes)      version 4 = 2 | subsystem 6 | sequence 22 | node 32
//! report (4 bytes)     RepType 4 | InType 4 | words behind 8 (0xFF: all) | words of metadata 8 | D Q F I 4 | 0 4
//! RepType 1 (8 bytes)  metadata bits 16 | domain 16 | domain-specific bits 16 | domain-specific status 16
//! then metadata, and the packet that the report is about, cut
//! ```

use crate::{Error, array, u16_at, u32_at};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The rule that a payload breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Fewer bytes than a group header.
    ShortGroupHeader,
    /// A version other than 2.
    GroupVersion,
    /// Fewer bytes than a report header, also behind the last report.
    ShortReportHeader,
    /// A length beyond the payload, or too small for what must be there.
    ReportLength,
    /// A length of the metadata that contradicts its bits.
    MetadataLength,
    /// A packet without its complete IP or Ethernet header.
    InnerPacket,
    /// A length of a TLV beyond the report.
    TlvLength,
}

impl Malformed {
    /// All of them, in the order of the enum.
    pub const ALL: [Malformed; 7] = [
        Malformed::ShortGroupHeader,
        Malformed::GroupVersion,
        Malformed::ShortReportHeader,
        Malformed::ReportLength,
        Malformed::MetadataLength,
        Malformed::InnerPacket,
        Malformed::TlvLength,
    ];
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::ShortGroupHeader => "short group header",
            Malformed::GroupVersion => "group version",
            Malformed::ShortReportHeader => "short report header",
            Malformed::ReportLength => "report length",
            Malformed::MetadataLength => "metadata length",
            Malformed::InnerPacket => "inner packet",
            Malformed::TlvLength => "TLV length",
        })
    }
}

/// The marks of a domain's packets with INT headers: the DSCP, under its mask, or the UDP port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indicators {
    /// The DSCP.
    pub dscp: u8,
    /// The bits of the DSCP that are compared.
    pub dscp_mask: u8,
    /// The UDP port.
    pub udp_port: u16,
}

/// One node's metadata. `None` is what was not requested, or what the node does not know (all ones). Times and
/// latencies are in the node's own units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// The node.
    pub node_id: Option<u32>,
    /// Level 1 ingress interface.
    pub ingress_port: Option<u16>,
    /// Level 1 egress interface.
    pub egress_port: Option<u16>,
    /// Time in the node.
    pub latency: Option<u32>,
    /// The queue, and what it held.
    pub queue: Option<Occupancy>,
    /// When the packet arrived.
    pub ingress_time: Option<u64>,
    /// When it left.
    pub egress_time: Option<u64>,
    /// Level 2 ingress interface.
    pub ingress_interface: Option<u32>,
    /// Level 2 egress interface.
    pub egress_interface: Option<u32>,
    /// Utilisation of the egress interface.
    pub tx_utilisation: Option<u32>,
    /// The buffer, and what it held.
    pub buffer: Option<Occupancy>,
}

/// The occupancy of a queue or buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Its number.
    pub id: u8,
    /// Its contents, 24 bits.
    pub occupancy: u32,
}

/// The instruction bits for which [`Hop`] has a field; the other bits are reserved, or request the checksum complement.
const KNOWN: u16 = 0xFF80;

/// Returns the number of 32-bit words of metadata that the instruction bitmap `bits` requests: two for each of the bits
/// 4 to 6 (times and level 2 interfaces), one for every other bit.
fn words(bits: u16) -> usize {
    (bits.count_ones() + (bits & 0x0E00).count_ones()) as usize
}

impl Hop {
    /// Returns the node's metadata in the order of the struct's fields, a queue or buffer as two values (number and
    /// contents); `None` for each value that the node does not report.
    pub fn values(&self) -> [Option<u64>; 13] {
        [
            self.node_id.map(u64::from),
            self.ingress_port.map(u64::from),
            self.egress_port.map(u64::from),
            self.latency.map(u64::from),
            self.queue.map(|it| it.id.into()),
            self.queue.map(|it| it.occupancy.into()),
            self.ingress_time,
            self.egress_time,
            self.ingress_interface.map(u64::from),
            self.egress_interface.map(u64::from),
            self.tx_utilisation.map(u64::from),
            self.buffer.map(|it| it.id.into()),
            self.buffer.map(|it| it.occupancy.into()),
        ]
    }

    /// Reads a node's metadata: the values that the instruction bitmap `bits` requests, in the order of its bits.
    /// Ignores bytes behind the values that [`Hop`] holds. A missing value, or one of all ones, becomes `None`.
    fn read(bits: u16, mut bytes: &[u8]) -> Hop {
        let mut word = || match bytes.split_first_chunk() {
            Some((first, rest)) => {
                bytes = rest;
                u32::from_be_bytes(*first)
            }
            None => u32::MAX,
        };
        let known = |value: u32| (value != u32::MAX).then_some(value);
        let port = |value: u32| u16::try_from(value).ok().filter(|it| *it != u16::MAX);
        let occupancy = |value: u32| {
            known(value).map(|it| Occupancy {
                id: (it >> 24) as u8,
                occupancy: it & 0xFF_FFFF,
            })
        };
        let asked = |bit: u32| bits & 0x8000 >> bit != 0;
        let mut hop = Hop::default();
        if asked(0) {
            hop.node_id = known(word());
        }
        if asked(1) {
            let both = word();
            (hop.ingress_port, hop.egress_port) = (port(both >> 16), port(both & 0xFFFF));
        }
        if asked(2) {
            hop.latency = known(word());
        }
        if asked(3) {
            hop.queue = occupancy(word());
        }
        for (bit, time) in [(4, &mut hop.ingress_time), (5, &mut hop.egress_time)] {
            if asked(bit) {
                let value = u64::from(word()) << 32 | u64::from(word());
                *time = (value != u64::MAX).then_some(value);
            }
        }
        if asked(6) {
            hop.ingress_interface = known(word());
            hop.egress_interface = known(word());
        }
        if asked(7) {
            hop.tx_utilisation = known(word());
        }
        if asked(8) {
            hop.buffer = occupancy(word());
        }
        hop
    }
}

/// A 5-tuple. Ports of other protocols than TCP and UDP are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    /// From where.
    pub source: IpAddr,
    /// To where, by the same IP version.
    pub destination: IpAddr,
    /// IP protocol.
    pub protocol: u8,
    /// From which port.
    pub source_port: u16,
    /// To which port.
    pub destination_port: u16,
}

/// The way in which nodes of a domain report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The packet collects metadata.
    Md,
    /// The packet carries instructions alone.
    Mx,
}

/// The INT headers of the packet that a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedded<'a> {
    /// Type of the shim.
    pub mode: Mode,
    /// The instruction bitmap.
    pub instructions: u16,
    /// The domain that defines the domain-specific instructions.
    pub domain_id: u16,
    /// Remaining hop count of INT-MD.
    pub remaining_hops: u8,
    /// D bit: the sink drops the packet.
    pub discard: bool,
    /// E bit of INT-MD: a node could not add its metadata because the hop count was used up.
    pub hops_exceeded: bool,
    /// M bit of INT-MD: a node could not add its metadata because of the MTU.
    pub mtu_exceeded: bool,
    /// True if the report ends before the length that the shim announces.
    pub cut: bool,
    /// The bytes in the stack below the complete hops: domain-specific metadata of the source.
    pub source_only: &'a [u8],
    stack: &'a [u8],
    // Not zero.
    hop_bytes: usize,
}

impl Embedded<'_> {
    /// Returns the metadata of the complete hops in the INT stack, the last node first; nothing for INT-MX.
    pub fn hops(&self) -> impl DoubleEndedIterator<Item = Hop> {
        let instructions = self.instructions;
        let hops = self.stack.chunks_exact(self.hop_bytes);
        hops.map(move |bytes| Hop::read(instructions, bytes))
    }

    /// Splits `bytes` into the INT headers at their beginning and what follows. The headers are `None` if they are
    /// incomplete, or if their type or version is unknown.
    fn split(bytes: &[u8]) -> (Option<Embedded<'_>>, &[u8]) {
        let len = 4 + 4 * usize::from(bytes.get(1).copied().unwrap_or(0));
        let (headers, behind) = bytes.split_at(len.min(bytes.len()));
        let mode = match bytes.first().map(|it| it >> 4) {
            Some(1) => Mode::Md,
            Some(3) => Mode::Mx,
            _ => return (None, behind),
        };
        // Shim and header.
        let Some((fixed, stack)) = headers.split_at_checked(16) else {
            return (None, behind);
        };
        let first = u32_at(fixed, 4);
        if first >> 28 != 2 {
            return (None, behind);
        }
        let instructions = u16_at(fixed, 8);
        let is_md = mode == Mode::Md;
        let hop_bytes = (first >> 8 & 0x1F) as usize * 4;
        let (stack, source_only) =
            match is_md && hop_bytes != 0 && hop_bytes >= 4 * words(instructions & KNOWN) {
                true => stack.split_at(stack.len() / hop_bytes * hop_bytes),
                false => (&[][..], stack),
            };
        let embedded = Embedded {
            mode,
            instructions,
            domain_id: u16_at(fixed, 10),
            remaining_hops: if is_md { first as u8 } else { 0 },
            discard: first >> 27 & 1 != 0,
            hops_exceeded: is_md && first >> 26 & 1 != 0,
            mtu_exceeded: is_md && first >> 25 & 1 != 0,
            cut: len > bytes.len(),
            source_only,
            stack,
            hop_bytes: hop_bytes.max(4),
        };
        (Some(embedded), behind)
    }
}

/// An individual report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report<'a> {
    /// The node that reports.
    pub node_id: u32,
    /// The number of the node's hardware subsystem.
    pub hw_id: u8,
    /// Number of the group among those of the subsystem, 22 bits.
    pub sequence: u32,
    /// D: the packet was dropped.
    pub dropped: bool,
    /// Q: its queue was congested.
    pub congested: bool,
    /// F: its flow is watched.
    pub tracked: bool,
    /// I: the packet goes on with its INT headers.
    pub intermediate: bool,
    /// Metadata of the node that reports.
    pub hop: Hop,
    /// Why the packet was dropped.
    pub drop_reason: Option<u8>,
    /// The queue in which the packet was dropped.
    pub drop_queue: Option<u8>,
    /// The domain of the metadata.
    pub domain_id: u16,
    /// The packet, as far as it is known.
    pub packet: Inner<'a>,
}

/// The packet that a report is about, as far as the report holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inner<'a> {
    /// Its 5-tuple, with the port or protocol number that it had before INT headers were added.
    pub flow: Option<FlowKey>,
    /// Its TTL or hop limit.
    pub ttl: u8,
    /// Its INT headers.
    pub embedded: Option<Embedded<'a>>,
}

impl Report<'_> {
    /// Returns the metadata of the nodes that the packet has passed, the first node first, as far as this report
    /// contains them; the reporting node is the last.
    pub fn path(&self) -> impl Iterator<Item = Hop> {
        let stack = self.packet.embedded.iter();
        stack
            .flat_map(|it| it.hops().rev())
            .chain(std::iter::once(self.hop))
    }
}

/// Decodes the telemetry reports in a UDP payload, in their order. Leaves out reports of other types than INT (IOAM).
/// `indicators` tell in which of the reported packets INT headers are. Fails with the rule that the payload violates.
pub fn decode<'a>(data: &'a [u8], indicators: &Indicators) -> Result<Vec<Report<'a>>, Malformed> {
    let (group, mut rest) = data
        .split_at_checked(8)
        .ok_or(Malformed::ShortGroupHeader)?;
    let (first, node_id) = (u32_at(group, 0), u32_at(group, 4));
    if first >> 28 != 2 {
        return Err(Malformed::GroupVersion);
    }
    let mut reports = Vec::with_capacity(1);
    loop {
        let (&[types, length, md_words, flags], behind) = rest
            .split_first_chunk()
            .ok_or(Malformed::ShortReportHeader)?;
        let length = match length {
            0xFF => behind.len(),
            words => 4 * usize::from(words),
        };
        let body;
        (body, rest) = behind
            .split_at_checked(length)
            .ok_or(Malformed::ReportLength)?;
        let flag = |mask: u8| flags & mask != 0;
        let mut report = Report {
            node_id,
            hw_id: (first >> 22 & 0x3F) as u8,
            sequence: first & 0x3F_FFFF,
            dropped: flag(0x80),
            congested: flag(0x40),
            tracked: flag(0x20),
            intermediate: flag(0x10),
            hop: Hop::default(),
            drop_reason: None,
            drop_queue: None,
            domain_id: 0,
            packet: Inner::default(),
        };
        let packet = match types >> 4 {
            0 => Some(body),
            1 => Some(report.read_main(body, usize::from(md_words))?),
            _ => None,
        };
        if let Some(packet) = packet {
            report.hop.node_id = Some(node_id);
            let embeds = report.tracked.then_some(indicators);
            report.packet = Inner::read(packet, types & 0xF, embeds)?;
            reports.push(report);
        }
        if rest.is_empty() {
            return Ok(reports);
        }
    }
}

impl Report<'_> {
    /// Reads the metadata of a report of RepType 1 (INT) into `self`. `md_words` is the metadata's length in 32-bit
    /// words. Returns the bytes behind: the reported packet. Fails if a length contradicts the bitmap or the body.
    fn read_main<'a>(&mut self, body: &'a [u8], md_words: usize) -> Result<&'a [u8], Malformed> {
        let (main, body) = body.split_at_checked(8).ok_or(Malformed::ReportLength)?;
        let (bits, domain_specific) = (u16_at(main, 0), u16_at(main, 4));
        let (metadata, packet) = body
            .split_at_checked(4 * md_words)
            .ok_or(Malformed::MetadataLength)?;
        // Bit 0 is reserved here, and one word like every reserved bit.
        let asked = words(bits);
        if asked > md_words || asked < md_words && domain_specific == 0 {
            return Err(Malformed::MetadataLength);
        }
        self.hop = Hop::read(bits, metadata);
        self.domain_id = u16_at(main, 2);
        if bits & 1 != 0 {
            let [queue, reason, ..] = array::<4>(metadata, 4 * asked - 4);
            (self.drop_queue, self.drop_reason) = (Some(queue), Some(reason));
        }
        Ok(packet)
    }
}

impl<'a> Inner<'a> {
    /// Reads the reported packet, or the part of it that a report contains; its type `in_type` is from the report's
    /// header. `embeds` is `None` if the report does not have the tracked flag: then the packet has no INT headers
    /// (section 3.4 of the report specification). Fails if the packet's headers are incomplete.
    fn read(
        bytes: &'a [u8],
        in_type: u8,
        embeds: Option<&Indicators>,
    ) -> Result<Inner<'a>, Malformed> {
        match in_type {
            1 => Inner::read_tlvs(bytes, embeds),
            3 => {
                // A VLAN tag may be in front of the type.
                let is_tagged = bytes.len() >= 18 && u16_at(bytes, 12) == 0x8100;
                let (ethernet, packet) = bytes
                    .split_at_checked(if is_tagged { 18 } else { 14 })
                    .ok_or(Malformed::InnerPacket)?;
                let in_type = match u16_at(ethernet, ethernet.len() - 2) {
                    0x0800 => 4,
                    0x86DD => 5,
                    _ => 0,
                };
                Inner::read(packet, in_type, embeds)
            }
            4 => Inner::read_ipv4(bytes, embeds).ok_or(Malformed::InnerPacket),
            5 => Inner::read_ipv6(bytes, embeds).ok_or(Malformed::InnerPacket),
            _ => Ok(Inner::default()),
        }
    }

    /// Reads the first packet in a report's list of TLVs; returns an empty value if there is none. Fails if a TLV's
    /// length is wrong or the packet's headers are incomplete. `embeds` is as in [`Self::read`].
    fn read_tlvs(mut bytes: &'a [u8], embeds: Option<&Indicators>) -> Result<Inner<'a>, Malformed> {
        let mut found = Inner::default();
        while !bytes.is_empty() {
            let (&[kind, words, _, _], behind) =
                bytes.split_first_chunk().ok_or(Malformed::TlvLength)?;
            let value;
            (value, bytes) = behind
                .split_at_checked(4 * usize::from(words))
                .ok_or(Malformed::TlvLength)?;
            if matches!(kind >> 4, 1..=3) && found.flow.is_none() {
                found = Inner::read(value, (kind >> 4) + 2, embeds)?;
            }
        }
        Ok(found)
    }

    fn read_ipv4(bytes: &'a [u8], embeds: Option<&Indicators>) -> Option<Inner<'a>> {
        let (fixed, _) = bytes.split_first_chunk::<20>()?;
        let header_len = usize::from(fixed[0] & 0xF) * 4;
        if fixed[0] >> 4 != 4 || header_len < 20 {
            return None;
        }
        let is_fragment = fixed[6] & 0x3F != 0 || fixed[7] != 0;
        let flow = FlowKey {
            source: Ipv4Addr::from(array::<4>(fixed, 12)).into(),
            destination: Ipv4Addr::from(array::<4>(fixed, 16)).into(),
            protocol: fixed[9],
            source_port: 0,
            destination_port: 0,
        };
        let behind = bytes.get(header_len..)?;
        let behind = if is_fragment { &[] } else { behind };
        Some(Inner::read_l4(behind, flow, fixed[8], fixed[1], embeds))
    }

    fn read_ipv6(bytes: &'a [u8], embeds: Option<&Indicators>) -> Option<Inner<'a>> {
        let (fixed, behind) = bytes.split_first_chunk::<40>()?;
        if fixed[0] >> 4 != 6 {
            return None;
        }
        let flow = FlowKey {
            source: Ipv6Addr::from(array::<16>(fixed, 8)).into(),
            destination: Ipv6Addr::from(array::<16>(fixed, 24)).into(),
            protocol: fixed[6],
            source_port: 0,
            destination_port: 0,
        };
        let traffic_class = fixed[0] << 4 | fixed[1] >> 4;
        Some(Inner::read_l4(
            behind,
            flow,
            fixed[7],
            traffic_class,
            embeds,
        ))
    }

    /// Reads the bytes behind the IP header: the TCP or UDP ports, and INT headers if the indicators show that there
    /// are any. Undoes in the 5-tuple what inserting INT headers changed (UDP port or protocol). `embeds` is as in
    /// [`Self::read`].
    fn read_l4(
        bytes: &'a [u8],
        mut flow: FlowKey,
        ttl: u8,
        traffic_class: u8,
        embeds: Option<&Indicators>,
    ) -> Inner<'a> {
        let mut embedded = None;
        if let Some(l4_len) = flow.read_ports(bytes)
            && let Some(indicators) = embeds
            && let Some((shim, _)) = bytes.get(l4_len..).and_then(<[u8]>::split_first_chunk::<4>)
        {
            let by_port = flow.protocol == UDP && flow.destination_port == indicators.udp_port;
            let differing = (traffic_class >> 2 ^ indicators.dscp) & indicators.dscp_mask & 0x3F;
            if by_port || differing == 0 {
                let behind;
                (embedded, behind) = Embedded::split(&bytes[l4_len..]);
                let original = u16_at(shim, 2);
                match shim[0] >> 2 & 3 {
                    1 => flow.destination_port = original,
                    2 => {
                        flow.protocol = original as u8;
                        (flow.source_port, flow.destination_port) = (0, 0);
                        flow.read_ports(behind);
                    }
                    _ => {}
                }
            }
        }
        Inner {
            flow: Some(flow),
            ttl,
            embedded,
        }
    }
}

const TCP: u8 = 6;
const UDP: u8 = 17;

impl FlowKey {
    /// Reads the ports at the beginning of a TCP or UDP header into the 5-tuple. Returns the number of bytes in front
    /// of any INT headers (20 or 8); `None` for another protocol, or if bytes are missing.
    fn read_ports(&mut self, bytes: &[u8]) -> Option<usize> {
        let len = match self.protocol {
            TCP => 20,
            UDP => 8,
            _ => return None,
        };
        let (ports, _) = bytes.split_first_chunk::<4>()?;
        (self.source_port, self.destination_port) = (u16_at(ports, 0), u16_at(ports, 2));
        Some(len)
    }
}

/// A switch's data in a report in the format of the thesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThesisHop {
    /// When the packet left, in microseconds modulo 2^32.
    pub timestamp: u32,
    /// Bytes that the port had sent.
    pub tx_bytes: u32,
    /// Packets in its queue.
    pub queue: u16,
    /// The switch.
    pub switch_id: u8,
    /// Its port.
    pub port: u8,
}

/// Reads a report in the format of the thesis. Returns the UDP port that the packet had originally, and the data of the
/// switches on the path, the first switch first. Fails with `Truncated` if the header is incomplete, and with
/// `Malformed` if the length does not match the number of switches.
pub fn decode_thesis(data: &[u8]) -> Result<(u16, Vec<ThesisHop>), Error> {
    let (&[hops, high, low], stack) = data.split_first_chunk().ok_or(Error::Truncated)?;
    if stack.len() != 12 * usize::from(hops) {
        return Err(Error::Malformed);
    }
    let hop = |bytes: &[u8]| ThesisHop {
        timestamp: u32_at(bytes, 0),
        tx_bytes: u32_at(bytes, 4),
        queue: u16_at(bytes, 8),
        switch_id: bytes[10],
        port: bytes[11],
    };
    let hops = stack.chunks_exact(12).rev().map(hop).collect();
    Ok((u16::from_be_bytes([high, low]), hops))
}
