//! Traffic of modelled hosts: UDP at a constant rate or as a Poisson process, and pings, with everything needed to tell lost, late, repeated and damaged
//! packets. It does not know nodes or events; it builds the frames, says when the next is due, and has what is kept of them ([`crate::record`]).
//!
//! # Payload of a UDP stream
//!
//! Big-endian: [`MAGIC`] (32 bits), flow (32), sequence number from 0 (64), time of sending in picoseconds (64), then a
//! fixed pattern. The receiver believes a packet only if the checksums are right, the pattern is complete, and the flow sent
//! that sequence number at that time. A packet that fails is counted as corrupted, never recorded as received.
//!
//! # Pings
//!
//! A ping's ICMP identifier tells the flow, its sequence number counts the requests modulo 2^16, and the payload is the
//! pattern. The reply's sequence number is taken to be the latest request with the same 16 bits.
//!
//! # Times
//!
//! Packet k of a stream is due at `start_ps + floor(k * 10^12 / rate)`, computed exactly for a rate that is a whole number of
//! nano-packets per second: no drift, however long the stream. The last one is due before `stop_ps`. In a Poisson process the
//! times between packets, and from the start to the first, are drawn from an exponential distribution with the same mean.

use crate::addresses::{Addresses, Family, Hop, Way};
use crate::error::{NetError, out_of_range};
use crate::host::Host;
use crate::random::Stream;
use crate::record::Record;
use crate::{FlowId, NodeId};
use engine::Time;
use engine::payload::Shared;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::checksum::Sum;
use wire::{checksum, ethernet, icmpv4, icmpv6, ipv4, ipv6, udp};

/// First bytes of a stream's payload.
pub const MAGIC: [u8; 4] = *b"HFp1";
/// Bytes of the fields in a stream's payload, the least that a payload may have.
pub const STREAM_FIELDS_BYTES: usize = 24;

const SEQUENCE_AT: usize = 8;
const IP_AT: usize = ethernet::Header::LEN;
const TRANSPORT_AT: usize = IP_AT + ipv4::Header::MIN_LEN;
const TRANSPORT_AT_V6: usize = IP_AT + ipv6::Header::LEN;
/// UDP's and ICMP echo's headers have the same length, over IPv4 and over IPv6.
const TRANSPORT_HEADER_BYTES: usize = udp::Header::LEN;
/// Most bytes of a payload in one IPv4 packet; in an IPv6 packet of the same length there are 20 less.
pub const MAX_PAYLOAD_BYTES: usize =
    ipv4::Header::MAX_TOTAL_LEN - ipv4::Header::MIN_LEN - TRANSPORT_HEADER_BYTES;

/// The destination of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Named")]
pub enum Destination {
    /// A modelled host, over IPv4.
    Host(String),
    /// A modelled host, over IPv6.
    HostIpv6(String),
    /// An address, such as a multicast group's or a namespace's.
    Ipv4(Ipv4Addr),
    /// An address, such as a multicast group's.
    Ipv6(Ipv6Addr),
}

/// A destination as other languages write it: a host's name or an address, of a family.
#[derive(Deserialize)]
struct Named {
    destination: String,
    family: Family,
}

impl TryFrom<Named> for Destination {
    type Error = NetError;

    fn try_from(
        Named {
            destination,
            family,
        }: Named,
    ) -> Result<Destination, NetError> {
        match (destination.parse(), family) {
            (Ok(IpAddr::V4(address)), Family::Ipv4) => Ok(Destination::Ipv4(address)),
            (Ok(IpAddr::V6(address)), Family::Ipv6) => Ok(Destination::Ipv6(address)),
            (Err(_), Family::Ipv4) => Ok(Destination::Host(destination)),
            (Err(_), Family::Ipv6) => Ok(Destination::HostIpv6(destination)),
            (Ok(_), _) => Err(NetError::Refused(format!(
                "{destination} is of the other family of addresses"
            ))),
        }
    }
}

/// The times between packets of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// The same time between all packets.
    #[default]
    Constant,
    /// The times of a Poisson process, drawn with the network's seed.
    Poisson,
}

/// A UDP stream; other languages write it as `holdfast.traffic.UdpStream` is.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpStream {
    /// The host that sends.
    pub source: String,
    /// The destination.
    #[serde(flatten)]
    pub destination: Destination,
    /// Rate in packets per second, rounded to whole nano-packets per second; the mean rate of a Poisson process.
    pub packets_per_s: f64,
    /// The times between its packets.
    pub spacing: Spacing,
    /// Bytes of UDP payload, at least [`STREAM_FIELDS_BYTES`].
    pub payload_bytes: usize,
    /// When the first packet is due.
    #[serde(rename = "start_s", deserialize_with = "crate::units::seconds")]
    pub start_ps: Time,
    /// No packet is due at this time or later.
    #[serde(rename = "stop_s", deserialize_with = "crate::units::seconds")]
    pub stop_ps: Time,
    /// UDP source port.
    pub source_port: u16,
    /// UDP destination port.
    pub destination_port: u16,
    /// True if each packet is logged, which takes 32 bytes. Otherwise only totals are kept
    /// ([`crate::Network::flow_statistics`], without percentiles), and memory does not grow with packets. A Poisson
    /// process is always logged: its times cannot be computed again.
    pub log_packets: bool,
}

/// Echo requests at a constant interval; other languages write them as `holdfast.traffic.Ping` is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// The host that sends the requests.
    pub source: String,
    /// The destination of the requests.
    #[serde(flatten)]
    pub destination: Destination,
    /// Time between requests.
    #[serde(rename = "interval_ms", with = "crate::units::milliseconds")]
    pub interval_ps: u64,
    /// When the first request is due.
    #[serde(rename = "start_s", deserialize_with = "crate::units::seconds")]
    pub start_ps: Time,
    /// No request is due at this time or later.
    #[serde(rename = "stop_s", deserialize_with = "crate::units::seconds")]
    pub stop_ps: Time,
    /// Bytes of ICMP payload.
    pub payload_bytes: usize,
}

/// The kind of a flow's packets. One choice, so that the way of a packet branches once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Udp,
    UdpV6,
    Ping,
    PingV6,
}

/// The times at which a flow's packets are due, without drift: each interval is a whole number of picoseconds and a
/// fraction that is carried over.
#[derive(Clone, Debug)]
struct Schedule {
    start_ps: Time,
    /// The number of packets whose times have passed.
    number: u64,
    next_ps: Time,
    stop_ps: Time,
    interval_ps: u64,
    remainder: u64,
    carried: u64,
    divisor: u64,
    /// The random numbers of a Poisson process.
    draws: Option<Stream>,
}

impl Schedule {
    fn new(start_ps: Time, stop_ps: Time, interval_ps: u64) -> Result<Schedule, NetError> {
        if interval_ps == 0 {
            return Err(out_of_range("interval_ps", "at least 1"));
        }
        if stop_ps < start_ps {
            return Err(out_of_range("stop_ps", "not before start_ps"));
        }
        Ok(Schedule {
            start_ps,
            number: 0,
            next_ps: start_ps,
            stop_ps,
            interval_ps,
            remainder: 0,
            carried: 0,
            divisor: 1,
            draws: None,
        })
    }

    /// Builds the schedule of a stream with a constant rate, which is rounded to whole nano-packets per second. The
    /// interval is exact: 10^21 picoseconds (10^9 seconds) divided by the rate in nano-packets per second. Refuses
    /// rates outside 1e-7 to 1e9 packets per second.
    fn at_rate(start_ps: Time, stop_ps: Time, packets_per_s: f64) -> Result<Schedule, NetError> {
        const PS_PER_GS: u128 = 1_000_000_000_000_000_000_000;
        let nano = (packets_per_s * 1e9).round();
        // Written so that NaN fails too. Below 100 nano-packets per second the interval would not fit.
        if !(100.0..=1e18).contains(&nano) {
            return Err(out_of_range("packets_per_s", "from 1e-7 to 1e9"));
        }
        let divisor = nano as u64;
        let schedule = Schedule::new(start_ps, stop_ps, (PS_PER_GS / u128::from(divisor)) as u64)?;
        let remainder = (PS_PER_GS % u128::from(divisor)) as u64;
        Ok(Schedule {
            remainder,
            divisor,
            ..schedule
        })
    }

    /// Turns the schedule into a Poisson process: the times between packets, and before the first one, become
    /// exponentially distributed with the same mean.
    fn poisson(self, draws: Stream) -> Schedule {
        let mut schedule = Schedule {
            draws: Some(draws),
            ..self
        };
        schedule.advance();
        schedule
    }

    fn due_ps(&self) -> Option<Time> {
        (self.next_ps < self.stop_ps).then_some(self.next_ps)
    }

    /// Computes the time at which packet `number`, counted from 0, is due at the constant rate.
    fn constant_due_ps(&self, number: u64) -> Time {
        let fractions = match number.checked_mul(self.remainder) {
            Some(0) => 0,
            Some(sum) => u128::from(sum / self.divisor),
            None => u128::from(number) * u128::from(self.remainder) / u128::from(self.divisor),
        };
        let since_ps = u128::from(number) * u128::from(self.interval_ps) + fractions;
        self.start_ps.after(since_ps)
    }

    fn advance(&mut self) {
        self.number += 1;
        if let Some(draws) = &mut self.draws {
            let interval_ps = draws.exponential(self.interval_ps);
            self.next_ps = self.next_ps.saturating_add(interval_ps);
            return;
        }
        self.next_ps = self.next_ps.saturating_add(self.interval_ps);
        self.carried += self.remainder;
        if self.carried >= self.divisor {
            self.carried -= self.divisor;
            self.next_ps = self.next_ps.saturating_add(1);
        }
    }
}

/// A flow: its frames, its schedule and its record.
#[derive(Debug)]
pub(crate) struct Flow {
    kind: Kind,
    pub(crate) source: NodeId,
    pub(crate) way: Way,
    /// True if its packets are sent as they are, out of port 0.
    pub(crate) is_plain: bool,
    /// The node at which arrivals count: the destination host, or for pings the source.
    pub(crate) receiver: Option<NodeId>,
    schedule: Schedule,
    /// The stored part of the frame; sequence number and time are written into it for each packet.
    frame: Vec<u8>,
    /// The end of the payload, which all packets share.
    rest: Shared,
    /// The checksum's sum over everything that does not change from packet to packet.
    fixed_sum: Sum,
    /// The checksum's sum over a stream's pattern.
    pattern_sum: u16,
    /// What is kept of its packets, at times since `origin_ps`.
    pub(crate) record: Record,
    /// The era in which the flow starts ([`Time::era`]).
    origin_ps: Time,
    pub(crate) corrupted: u64,
}

/// Returns the number of the flow that a UDP payload names; `None` if it does not begin with [`MAGIC`] or is too short.
pub(crate) fn claimed_flow(payload: &[u8]) -> Option<FlowId> {
    let rest = payload.strip_prefix(&MAGIC)?;
    let id = rest.first_chunk::<4>()?;
    Some(FlowId(u32::from_be_bytes(*id)))
}

/// Returns the sequence number in a UDP stream's payload; `None` if the payload is too short.
pub(crate) fn sequence(payload: &[u8]) -> Option<u64> {
    u64_at(payload, SEQUENCE_AT)
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..)?.first_chunk::<8>()?;
    Some(u64::from_be_bytes(*bytes))
}

impl Flow {
    /// Creates a UDP stream from the host `source` to the addresses, port and next hop given. `receiver` is the
    /// destination host, if there is one; `draws` returns the random numbers of a Poisson process. Refuses parameters
    /// that are out of range.
    pub(crate) fn udp(
        id: FlowId,
        (source, host): (NodeId, &Host),
        (receiver, addresses, way): (Option<NodeId>, Addresses, Way),
        stream: &UdpStream,
        draws: impl FnOnce() -> Stream,
    ) -> Result<Flow, NetError> {
        let schedule = Schedule::at_rate(stream.start_ps, stream.stop_ps, stream.packets_per_s)?;
        let schedule = match stream.spacing {
            Spacing::Constant => schedule,
            Spacing::Poisson => schedule.poisson(draws()),
        };
        let most = max_payload_bytes(addresses.family());
        if !(STREAM_FIELDS_BYTES..=most).contains(&stream.payload_bytes) {
            return Err(out_of_range(
                "payload_bytes",
                format!("from {STREAM_FIELDS_BYTES} to {most}"),
            ));
        }
        if !stream.log_packets && stream.spacing == Spacing::Poisson {
            return Err(out_of_range("log_packets", "true for a Poisson process"));
        }
        let mut payload = Vec::with_capacity(stream.payload_bytes);
        payload.extend_from_slice(&MAGIC);
        payload.extend_from_slice(&id.0.to_be_bytes());
        payload.extend_from_slice(&[0; 16]);
        let rest = Shared::pattern(STREAM_FIELDS_BYTES..stream.payload_bytes);
        payload.extend_from_slice(rest.bytes());
        let header = udp::Header {
            source_port: stream.source_port,
            destination_port: stream.destination_port,
        };
        let mut segment = Vec::new();
        let len = (udp::Header::LEN + payload.len()) as u16;
        match addresses {
            Addresses::V4(from, to) => header.emit(from, to, &payload, &mut segment),
            Addresses::V6(from, to) => header.emit(from, to, &payload, &mut segment),
        }
        .map_err(unsendable)?;
        segment[6..8].fill(0);
        let fixed_sum = addresses
            .pseudo_header_sum(ipv4::PROTOCOL_UDP, len)
            .bytes(&segment);
        let mut frame = frame(host, way, addresses, ipv4::PROTOCOL_UDP, &segment)?;
        frame.truncate(frame.len() - rest.len());
        let pattern_sum = Sum::new().bytes(rest.bytes()).folded();
        Ok(Flow {
            kind: match addresses.family() {
                Family::Ipv4 => Kind::Udp,
                Family::Ipv6 => Kind::UdpV6,
            },
            source,
            way,
            is_plain: is_plain(host, way),
            receiver,
            schedule,
            frame,
            rest,
            fixed_sum,
            pattern_sum,
            record: Record::new(stream.log_packets),
            origin_ps: stream.start_ps.era(),
            corrupted: 0,
        })
    }

    /// Creates a flow of pings with this ICMP identifier from the host `source` to the addresses, port and next hop
    /// given. Refuses parameters that are out of range.
    pub(crate) fn ping(
        identifier: u16,
        (source, host): (NodeId, &Host),
        (addresses, way): (Addresses, Way),
        ping: &Ping,
    ) -> Result<Flow, NetError> {
        let schedule = Schedule::new(ping.start_ps, ping.stop_ps, ping.interval_ps)?;
        let most = max_payload_bytes(addresses.family());
        if ping.payload_bytes > most {
            return Err(out_of_range("payload_bytes", format!("at most {most}")));
        }
        let rest = Shared::pattern(0..ping.payload_bytes);
        let (kind, protocol, mut segment, pseudo) = match addresses {
            Addresses::V4(..) => {
                let mut segment = Vec::new();
                icmpv4::Message::EchoRequest {
                    identifier,
                    sequence: 0,
                }
                .emit(rest.bytes(), &mut segment)
                .map_err(unsendable)?;
                (Kind::Ping, ipv4::PROTOCOL_ICMP, segment, Sum::new())
            }
            Addresses::V6(from, to) => {
                let mut segment = Vec::new();
                icmpv6::Message::EchoRequest {
                    identifier,
                    sequence: 0,
                }
                .emit(from, to, rest.bytes(), &mut segment)
                .map_err(unsendable)?;
                let protocol = ipv6::NEXT_HEADER_ICMPV6;
                let pseudo = addresses.pseudo_header_sum(protocol, segment.len() as u16);
                (Kind::PingV6, protocol, segment, pseudo)
            }
        };
        segment[2..4].fill(0);
        let fixed_sum = pseudo.bytes(&segment);
        let mut frame = frame(host, way, addresses, protocol, &segment)?;
        frame.truncate(frame.len() - rest.len());
        Ok(Flow {
            kind,
            source,
            way,
            is_plain: is_plain(host, way),
            receiver: Some(source),
            schedule,
            frame,
            rest,
            fixed_sum,
            pattern_sum: 0,
            record: Record::new(true),
            origin_ps: ping.start_ps.era(),
            corrupted: 0,
        })
    }

    /// Returns the time at which the flow's next packet is due; `None` if it has no further packet.
    pub(crate) fn due_ps(&self) -> Option<Time> {
        self.schedule.due_ps()
    }

    /// Returns the time between the flow's packets in picoseconds, rounded down; the mean time for a Poisson process.
    pub(crate) fn interval_ps(&self) -> u64 {
        self.schedule.interval_ps
    }

    /// Ends the flow: packets that are due at `now_ps` or later are not sent.
    pub(crate) fn end(&mut self, now_ps: Time) {
        self.schedule.stop_ps = self.schedule.stop_ps.min(now_ps);
    }

    /// Advances the schedule to the packet after the next.
    pub(crate) fn advance(&mut self) {
        self.schedule.advance();
    }

    /// Builds the flow's next packet, and records that it is sent at `now_ps`. Returns the stored part of the frame,
    /// and the end of its payload, which all packets share.
    pub(crate) fn next_frame(&mut self, now_ps: Time) -> (&[u8], Shared) {
        let sequence = self
            .record
            .sent(now_ps - self.origin_ps, self.schedule.number);
        match self.kind {
            Kind::Udp => {
                self.put_stream_fields(TRANSPORT_AT, sequence, now_ps);
                self.put_identification(sequence);
            }
            Kind::UdpV6 => self.put_stream_fields(TRANSPORT_AT_V6, sequence, now_ps),
            Kind::Ping => {
                self.put_ping_sequence(TRANSPORT_AT, sequence);
                self.put_identification(sequence);
            }
            Kind::PingV6 => self.put_ping_sequence(TRANSPORT_AT_V6, sequence),
        }
        (&self.frame, self.rest)
    }

    #[inline(always)]
    fn put_stream_fields(&mut self, transport_at: usize, sequence: u64, now_ps: Time) {
        let fields = transport_at + TRANSPORT_HEADER_BYTES + SEQUENCE_AT;
        self.put(fields, &sequence.to_be_bytes());
        self.put(fields + 8, &(now_ps - self.origin_ps).to_be_bytes());
        let sum = self
            .fixed_sum
            .bytes(&self.frame[fields..fields + 16])
            .finish();
        self.put(transport_at + 6, &udp::transmitted(sum).to_be_bytes());
    }

    #[inline(always)]
    fn put_ping_sequence(&mut self, transport_at: usize, sequence: u64) {
        self.put(transport_at + 6, &(sequence as u16).to_be_bytes());
        let sum = self.fixed_sum.word(sequence as u16).finish();
        self.put(transport_at + 2, &sum.to_be_bytes());
    }

    /// Writes the IPv4 identification (the sequence number modulo 2^16) and the header checksum into the frame.
    #[inline(always)]
    fn put_identification(&mut self, sequence: u64) {
        self.put(IP_AT + 4, &(sequence as u16).to_be_bytes());
        self.put(IP_AT + 10, &[0, 0]);
        let sum = checksum::checksum(&self.frame[IP_AT..TRANSPORT_AT]);
        self.put(IP_AT + 10, &sum.to_be_bytes());
    }

    #[inline(always)]
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.frame[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Returns true if a payload belongs to this stream: it has the right length, flow number and pattern, whatever its
    /// sequence number and time of sending.
    fn is_stream_payload(&self, payload: &[u8]) -> bool {
        let sent = &self.frame[self.frame.len() - STREAM_FIELDS_BYTES..];
        matches!(self.kind, Kind::Udp | Kind::UdpV6)
            && payload.len() == sent.len() + self.rest.len()
            && payload[..SEQUENCE_AT] == sent[..SEQUENCE_AT]
            && payload[STREAM_FIELDS_BYTES..] == *self.rest.bytes()
    }

    /// Returns the checksum's sum over a payload that belongs to this stream; `None` for any other. Comparing a payload
    /// with the known pattern is necessary anyway, and cheaper than summing it.
    pub(crate) fn sum_of(&self, payload: &[u8]) -> Option<Sum> {
        let fields = || Sum::new().bytes(&payload[..STREAM_FIELDS_BYTES]);
        self.is_stream_payload(payload)
            .then(|| fields().word(self.pattern_sum))
    }

    /// Handles a UDP datagram with correct checksums and this flow's number that has arrived at the host `node`.
    /// Returns true, and records the arrival, if its payload is intact and the flow sent that sequence number at that
    /// time; otherwise counts it as corrupted. `known` means that the payload has already been found intact.
    pub(crate) fn datagram(
        &mut self,
        now_ps: Time,
        node: NodeId,
        payload: &[u8],
        known: bool,
    ) -> bool {
        let intact = known || self.is_stream_payload(payload);
        let fields = (
            u64_at(payload, SEQUENCE_AT),
            u64_at(payload, SEQUENCE_AT + 8),
        );
        if let (true, (Some(sequence), Some(sent_ps))) = (intact, fields)
            && self.sent_at(sequence) == Some(sent_ps)
        {
            self.record
                .arrived(node, sequence, sent_ps, now_ps - self.origin_ps);
            true
        } else {
            self.corrupted += 1;
            false
        }
    }

    /// Handles an ICMP echo reply with correct checksums and this flow's identifier that has arrived at the source.
    /// Returns true, and records the arrival, if its payload is intact and the request was sent; otherwise counts it as
    /// corrupted.
    pub(crate) fn echo_reply(&mut self, now_ps: Time, sequence: u16, payload: &[u8]) -> bool {
        let requests = self.record.sent_count();
        let behind = (requests as u16).wrapping_sub(1).wrapping_sub(sequence);
        let extended = requests.checked_sub(1 + u64::from(behind));
        match extended.and_then(|sequence| Some((sequence, self.sent_at(sequence)?))) {
            Some((sequence, sent_ps)) if payload == self.rest.bytes() => {
                self.record
                    .arrived(self.source, sequence, sent_ps, now_ps - self.origin_ps);
                true
            }
            _ => {
                self.corrupted += 1;
                false
            }
        }
    }

    fn sent_at(&self, sequence: u64) -> Option<u64> {
        self.record.sent_at(sequence, |number| {
            self.schedule.constant_due_ps(number) - self.origin_ps
        })
    }
}

/// Returns the error for a packet that cannot be built. As the other parameters were checked before, its payload is too
/// long.
fn unsendable(_: wire::Error) -> NetError {
    out_of_range("payload_bytes", "what fits into a packet")
}

/// Returns the largest payload, in bytes, of a UDP or ICMP packet of an IP version. The longest packets of both
/// versions have the same length, which no link's MTU exceeds.
fn max_payload_bytes(family: Family) -> usize {
    match family {
        Family::Ipv4 => MAX_PAYLOAD_BYTES,
        Family::Ipv6 => MAX_PAYLOAD_BYTES - (ipv6::Header::LEN - ipv4::Header::MIN_LEN),
    }
}

fn is_plain(host: &Host, way: Way) -> bool {
    way.port == 0 && matches!(way.hop, Hop::Known(_)) && host.settings.vlan.is_none()
}

fn frame(
    host: &Host,
    way: Way,
    addresses: Addresses,
    protocol: u8,
    segment: &[u8],
) -> Result<Vec<u8>, NetError> {
    let mut frame = Vec::with_capacity(TRANSPORT_AT_V6 + segment.len());
    host.card(way.port)
        .ethernet(way.mac(), addresses.ethertype())
        .emit(&mut frame)
        .and_then(|()| addresses.emit_header(0, protocol, segment.len(), &mut frame))
        .map_err(unsendable)?;
    frame.extend_from_slice(segment);
    Ok(frame)
}

#[cfg(test)]
mod tests;
