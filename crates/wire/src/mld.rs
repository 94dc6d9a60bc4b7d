//! MLD, versions 1 and 2 (RFC 2710, RFC 3810): its messages, and what their IP headers must be.

use crate::checksum::verifies;
use crate::ipv6::{self, NEXT_HEADER_HOP_BY_HOP, NEXT_HEADER_ICMPV6, pseudo_header_sum};
use crate::membership::{
    self, Tail, count, encoded, group_at, put_records, put_tail, queried_at, records,
};
use crate::{Error, at_least, u16_at};
use std::net::Ipv6Addr;

/// Where general queries go.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Where Done messages go.
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// Where reports of version 2 go.
pub const REPORTS_V2: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);

/// The Hop-by-Hop header with the Router Alert option for MLD (RFC 2711), and two bytes of padding.
const HOP_BY_HOP: [u8; 8] = [NEXT_HEADER_ICMPV6, 0, 5, 2, 0, 0, 1, 0];

const QUERY: u8 = 130;
const REPORT_V1: u8 = 131;
const DONE: u8 = 132;
const REPORT_V2: u8 = 143;

/// A message.
pub type Message = membership::Message<Ipv6Addr>;
/// A query.
pub type Query = membership::Query<Ipv6Addr>;
/// What a report says of a group.
pub type Record = membership::Record<Ipv6Addr>;

impl Message {
    /// The message in an IP packet. `Malformed` if it is no MLD, or is not as RFC 3810 (section 6.2) asks: from a link-local address,
    /// with hop limit 1 and Router Alert.
    pub fn in_packet(packet: &ipv6::View<'_>) -> Result<Message, Error> {
        let is_local = packet.source().segments()[0] & 0xffc0 == 0xfe80;
        if packet.next_header() != NEXT_HEADER_HOP_BY_HOP || packet.hop_limit() != 1 || !is_local {
            return Err(Error::Malformed);
        }
        let bytes = at_least(packet.payload(), 8)?;
        let len = 8 * (usize::from(bytes[1]) + 1);
        at_least(bytes, len)?;
        if bytes[0] != NEXT_HEADER_ICMPV6 || !has_router_alert(&bytes[2..len]) {
            return Err(Error::Malformed);
        }
        Message::parse(&bytes[len..], packet.source(), packet.destination())
    }

    /// Reads an ICMPv6 message; `Malformed` for another type than MLD's, a query as long as no version's, or a group that is none.
    pub fn parse(bytes: &[u8], source: Ipv6Addr, destination: Ipv6Addr) -> Result<Message, Error> {
        at_least(bytes, 8)?;
        let len = u16::try_from(bytes.len()).map_err(|_| Error::Checksum)?;
        let sum = pseudo_header_sum(source, destination, NEXT_HEADER_ICMPV6, len);
        if !verifies(sum.bytes(bytes)) {
            return Err(Error::Checksum);
        }
        match bytes[0] {
            REPORT_V2 => records(&bytes[8..], u16_at(bytes, 6).into()).map(Message::Report),
            QUERY => query(at_least(bytes, 24)?).map(Message::Query),
            REPORT_V1 => Ok(Message::OldReport {
                version: 1,
                group: group_at(at_least(bytes, 24)?, 8)?,
            }),
            DONE => Ok(Message::Leave {
                group: group_at(at_least(bytes, 24)?, 8)?,
            }),
            _ => Err(Error::Malformed),
        }
    }

    /// Where the message is sent to.
    pub fn destination(&self) -> Ipv6Addr {
        match self {
            Message::Query(query) => query.group.unwrap_or(ALL_NODES),
            Message::Report(_) => REPORTS_V2,
            Message::OldReport { group, .. } => *group,
            Message::Leave { .. } => ALL_ROUTERS,
        }
    }

    /// Appends the message, with the checksum from this source to its destination.
    pub fn emit(&self, source: Ipv6Addr, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(32);
        let old = |kind, code: u16, group: Ipv6Addr, bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(&[kind, 0, 0, 0]);
            bytes.extend_from_slice(&code.to_be_bytes());
            bytes.extend_from_slice(&[0, 0]);
            bytes.extend_from_slice(&group.octets());
        };
        match self {
            Message::Query(query) => {
                let code = match query.version {
                    1 => query.max_response_ms,
                    2 => encoded(query.max_response_ms, 12)?,
                    _ => return Err(Error::OutOfRange),
                };
                let code = u16::try_from(code).map_err(|_| Error::OutOfRange)?;
                let group = query.group.unwrap_or(Ipv6Addr::UNSPECIFIED);
                old(QUERY, code, group, &mut bytes);
                if query.version == 2 {
                    put_tail(query, &mut bytes)?;
                }
            }
            Message::Report(records) => {
                bytes.extend_from_slice(&[REPORT_V2, 0, 0, 0, 0, 0]);
                bytes.extend_from_slice(&count(records.len())?.to_be_bytes());
                put_records(records, &mut bytes)?;
            }
            Message::OldReport { version: 1, group } => old(REPORT_V1, 0, *group, &mut bytes),
            Message::OldReport { .. } => return Err(Error::OutOfRange),
            Message::Leave { group } => old(DONE, 0, *group, &mut bytes),
        }
        let len = count(bytes.len())?;
        let sum = pseudo_header_sum(source, self.destination(), NEXT_HEADER_ICMPV6, len);
        let sum = sum.bytes(&bytes).finish();
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Appends the message in an IP packet with the Router Alert option, from a link-local address.
    pub fn emit_packet(&self, source: Ipv6Addr, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut message = Vec::with_capacity(32);
        self.emit(source, &mut message)?;
        ipv6::Header {
            traffic_class: 0,
            flow_label: 0,
            next_header: NEXT_HEADER_HOP_BY_HOP,
            hop_limit: 1,
            source,
            destination: self.destination(),
            payload_len: HOP_BY_HOP.len() + message.len(),
        }
        .emit(out)?;
        out.extend_from_slice(&HOP_BY_HOP);
        out.extend_from_slice(&message);
        Ok(())
    }
}

fn has_router_alert(mut options: &[u8]) -> bool {
    loop {
        options = match options {
            [5, 2, 0, 0, ..] => return true,
            [0, rest @ ..] => rest,
            [_, len, rest @ ..] if usize::from(*len) <= rest.len() => &rest[usize::from(*len)..],
            _ => return false,
        }
    }
}

fn query(bytes: &[u8]) -> Result<Query, Error> {
    let code = u32::from(u16_at(bytes, 4));
    let group = queried_at(bytes, 8)?;
    match bytes.len() {
        24 => Ok(Query {
            version: 1,
            group,
            max_response_ms: code,
            sources: Vec::new(),
            suppress: false,
            robustness: 0,
            interval_s: 0,
        }),
        25..28 => Err(Error::Malformed),
        _ => {
            let Tail {
                sources,
                suppress,
                robustness,
                interval_s,
            } = Tail::at(bytes, 24)?;
            Ok(Query {
                version: 2,
                group,
                max_response_ms: membership::decoded(code, 12),
                sources,
                suppress,
                robustness,
                interval_s,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::RecordKind;
    use crate::membership::tests::any_records;
    use proptest::prelude::*;

    const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const GROUP: Ipv6Addr = Ipv6Addr::new(0xff1e, 0, 0, 0, 0, 0, 0, 5);

    fn any_message() -> impl Strategy<Value = Message> {
        let group = || any::<u128>().prop_map(|low| Ipv6Addr::from(0xff << 120 | low >> 8));
        let source = || any::<u128>().prop_map(Ipv6Addr::from);
        let queries = (
            prop::option::of(group()),
            0u32..1 << 16,
            prop::collection::vec(source(), 0..4),
            (any::<bool>(), 0u8..8, 0u32..256),
        );
        prop_oneof![
            queries.prop_map(|(group, code, sources, (suppress, robustness, interval))| {
                Message::Query(Query {
                    version: 2,
                    group,
                    max_response_ms: membership::decoded(code, 12),
                    sources,
                    suppress,
                    robustness,
                    interval_s: membership::decoded(interval, 4),
                })
            }),
            any_records(group(), source()).prop_map(Message::Report),
            group().prop_map(|group| Message::OldReport { version: 1, group }),
            group().prop_map(|group| Message::Leave { group }),
        ]
    }

    #[test]
    fn a_report_byte_by_byte() {
        let report = Message::Report(vec![Record {
            kind: RecordKind::AllowNewSources,
            group: GROUP,
            sources: vec![HOST],
        }]);
        let mut bytes = Vec::new();
        report.emit_packet(HOST, &mut bytes).unwrap();
        // 52 bytes behind the header: Hop-by-Hop (RFC 2711), then the report of one record with one source.
        assert_eq!(bytes[..8], [0x60, 0, 0, 0, 0, 52, 0, 1]);
        assert_eq!(bytes[8..24], HOST.octets());
        assert_eq!(bytes[24..40], REPORTS_V2.octets());
        assert_eq!(bytes[40..48], [58, 0, 5, 2, 0, 0, 1, 0]);
        // By hand: pseudo header 0xfe80 + 1 + 0xff02 + 0x16 + 44 + 58 = 0x1fdff; the message 0x8f00 + 1 + 0x0500 + 1 + 0xff1e + 5
        // + 0xfe80 + 1 = 0x291a6; together 0x48fa5, folded 0x8fa9, complemented 0x7056.
        assert_eq!(bytes[48..56], [143, 0, 0x70, 0x56, 0, 0, 0, 1]);
        assert_eq!(bytes[56..60], [5, 0, 0, 1]);
        assert_eq!(bytes[60..76], GROUP.octets());
        let view = ipv6::View::new(&bytes).unwrap();
        assert_eq!(Message::in_packet(&view), Ok(report));
    }

    #[test]
    fn a_message_is_from_the_link() {
        let leave = Message::Leave { group: GROUP };
        let mut good = Vec::new();
        leave.emit_packet(HOST, &mut good).unwrap();
        // Hop limit 2; no Router Alert.
        for (at, value) in [(7, 2), (42, 4)] {
            let mut bytes = good.clone();
            bytes[at] = value;
            let view = ipv6::View::new(&bytes).unwrap();
            assert_eq!(Message::in_packet(&view), Err(Error::Malformed));
        }
        let mut bytes = Vec::new();
        leave.emit_packet(Ipv6Addr::LOCALHOST, &mut bytes).unwrap();
        let view = ipv6::View::new(&bytes).unwrap();
        assert_eq!(Message::in_packet(&view), Err(Error::Malformed));
    }

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(message in any_message(), cut: prop::sample::Index) {
            let mut bytes = Vec::new();
            message.emit(HOST, &mut bytes).unwrap();
            let to = message.destination();
            prop_assert_eq!(Message::parse(&bytes, HOST, to), Ok(message));
            bytes.truncate(cut.index(bytes.len()));
            prop_assert!(Message::parse(&bytes, HOST, to).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..90)) {
            if let Ok(view) = ipv6::View::new(&bytes) {
                let _ = Message::in_packet(&view);
            }
            if bytes.len() > 4 {
                bytes[2..4].fill(0);
                let sum = pseudo_header_sum(HOST, ALL_NODES, NEXT_HEADER_ICMPV6, bytes.len() as u16);
                let sum = sum.bytes(&bytes).finish();
                bytes[2..4].copy_from_slice(&sum.to_be_bytes());
                let _ = Message::parse(&bytes, HOST, ALL_NODES);
            }
        }
    }
}
