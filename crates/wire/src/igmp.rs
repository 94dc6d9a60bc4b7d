//! IGMP, versions 1 to 3 (RFC 1112, appendix I; RFC 2236; RFC 3376): its messages, and what their IP headers must be.

use crate::checksum::{Sum, checksum, verifies};
use crate::membership::{
    self, Tail, count, encoded, group_at, put_records, put_tail, queried_at, records,
};
use crate::{Error, at_least, ipv4, u16_at};
use std::net::Ipv4Addr;

/// Protocol number of IGMP.
pub const PROTOCOL_IGMP: u8 = 2;
/// Where general queries go.
pub const ALL_SYSTEMS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// Where leaves of version 2 go.
pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
/// Where reports of version 3 go.
pub const REPORTS_V3: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);

/// The Router Alert option (RFC 2113).
pub const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];

/// DSCP CS6: Internetwork Control.
const INTERNETWORK_CONTROL: u8 = 0xc0;

const QUERY: u8 = 0x11;
const REPORT_V1: u8 = 0x12;
const REPORT_V2: u8 = 0x16;
const LEAVE: u8 = 0x17;
const REPORT_V3: u8 = 0x22;

/// Times are in tenths of seconds.
const UNIT_MS: u32 = 100;
/// What a query of version 1 stands for (RFC 3376, section 7.2.1).
const RESPONSE_V1_MS: u32 = 10_000;

/// A message.
pub type Message = membership::Message<Ipv4Addr>;
/// A query.
pub type Query = membership::Query<Ipv4Addr>;
/// What a report says of a group.
pub type Record = membership::Record<Ipv4Addr>;

impl Message {
    /// The message in an IP packet: `Malformed` if it is no IGMP, or its time to live is not 1.
    pub fn in_packet(packet: &ipv4::View<'_>) -> Result<Message, Error> {
        if packet.protocol() != PROTOCOL_IGMP || packet.ttl() != 1 || packet.is_fragment() {
            return Err(Error::Malformed);
        }
        Message::parse(packet.payload())
    }

    /// Reads a message; `Malformed` for an unknown type, a query as long as no version's, or a group that is none.
    pub fn parse(bytes: &[u8]) -> Result<Message, Error> {
        at_least(bytes, 8)?;
        if !verifies(Sum::new().bytes(bytes)) {
            return Err(Error::Checksum);
        }
        match bytes[0] {
            QUERY => query(bytes).map(Message::Query),
            REPORT_V3 => records(&bytes[8..], u16_at(bytes, 6).into()).map(Message::Report),
            kind @ (REPORT_V1 | REPORT_V2) => Ok(Message::OldReport {
                version: if kind == REPORT_V1 { 1 } else { 2 },
                group: group_at(bytes, 4)?,
            }),
            LEAVE => Ok(Message::Leave {
                group: group_at(bytes, 4)?,
            }),
            _ => Err(Error::Malformed),
        }
    }

    /// Where the message is sent to.
    pub fn destination(&self) -> Ipv4Addr {
        match self {
            Message::Query(query) => query.group.unwrap_or(ALL_SYSTEMS),
            Message::Report(_) => REPORTS_V3,
            Message::OldReport { group, .. } => *group,
            Message::Leave { .. } => ALL_ROUTERS,
        }
    }

    /// Appends the message.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(16);
        let old = |kind, code, group: Option<Ipv4Addr>, bytes: &mut Vec<u8>| {
            bytes.extend_from_slice(&[kind, code, 0, 0]);
            bytes.extend_from_slice(&group.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
        };
        match self {
            Message::Query(query) => {
                let code = query.max_response_ms / UNIT_MS;
                let code = match query.version {
                    1 => 0,
                    2 => u8::try_from(code).map_err(|_| Error::OutOfRange)?,
                    3 => encoded(code, 4)? as u8,
                    _ => return Err(Error::OutOfRange),
                };
                old(QUERY, code, query.group, &mut bytes);
                if query.version == 3 {
                    put_tail(query, &mut bytes)?;
                }
            }
            Message::Report(records) => {
                bytes.extend_from_slice(&[REPORT_V3, 0, 0, 0, 0, 0]);
                bytes.extend_from_slice(&count(records.len())?.to_be_bytes());
                put_records(records, &mut bytes)?;
            }
            Message::OldReport { version: 1, group } => {
                old(REPORT_V1, 0, Some(*group), &mut bytes);
            }
            Message::OldReport { version: 2, group } => {
                old(REPORT_V2, 0, Some(*group), &mut bytes);
            }
            Message::OldReport { .. } => return Err(Error::OutOfRange),
            Message::Leave { group } => old(LEAVE, 0, Some(*group), &mut bytes),
        }
        let sum = checksum(&bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Appends the message in an IP packet with the Router Alert option, which version 1 does not have.
    pub fn emit_packet(&self, source: Ipv4Addr, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut message = Vec::with_capacity(16);
        self.emit(&mut message)?;
        let is_v1 = match self {
            Message::Query(query) => query.version == 1,
            Message::OldReport { version, .. } => *version == 1,
            _ => false,
        };
        ipv4::Header {
            traffic_class: INTERNETWORK_CONTROL,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: 1,
            protocol: PROTOCOL_IGMP,
            source,
            destination: self.destination(),
            options: match is_v1 {
                true => ipv4::Options::default(),
                false => ipv4::Options::new(&ROUTER_ALERT)?,
            },
            payload_len: message.len(),
        }
        .emit(out)?;
        out.extend_from_slice(&message);
        Ok(())
    }
}

fn query(bytes: &[u8]) -> Result<Query, Error> {
    let code = u32::from(bytes[1]);
    let group = queried_at(bytes, 4)?;
    let older = |version, group, max_response_ms| Query {
        version,
        group,
        max_response_ms,
        sources: Vec::new(),
        suppress: false,
        robustness: 0,
        interval_s: 0,
    };
    match bytes.len() {
        8 if code == 0 => Ok(older(1, None, RESPONSE_V1_MS)),
        8 => Ok(older(2, group, code * UNIT_MS)),
        9..12 => Err(Error::Malformed),
        _ => {
            let Tail {
                sources,
                suppress,
                robustness,
                interval_s,
            } = Tail::at(bytes, 8)?;
            Ok(Query {
                version: 3,
                group,
                max_response_ms: membership::decoded(code, 4) * UNIT_MS,
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

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);

    fn any_message() -> impl Strategy<Value = Message> {
        let group = || (0xe000_0000u32..0xf000_0000).prop_map(Ipv4Addr::from);
        let source = || any::<u32>().prop_map(Ipv4Addr::from);
        let queries = (
            prop::option::of(group()),
            0u32..256,
            prop::collection::vec(source(), 0..4),
            (any::<bool>(), 0u8..8, 0u32..256),
        );
        prop_oneof![
            queries.prop_map(|(group, code, sources, (suppress, robustness, interval))| {
                Message::Query(Query {
                    version: 3,
                    group,
                    max_response_ms: membership::decoded(code, 4) * UNIT_MS,
                    sources,
                    suppress,
                    robustness,
                    interval_s: membership::decoded(interval, 4),
                })
            }),
            any_records(group(), source()).prop_map(Message::Report),
            (1u8..3, group()).prop_map(|(version, group)| Message::OldReport { version, group }),
            group().prop_map(|group| Message::Leave { group }),
        ]
    }

    #[test]
    fn a_report_byte_by_byte() {
        let report = Message::Report(vec![Record {
            kind: RecordKind::ChangeToExclude,
            group: GROUP,
            sources: vec![],
        }]);
        let mut bytes = Vec::new();
        let source = Ipv4Addr::new(10, 0, 0, 1);
        report.emit_packet(source, &mut bytes).unwrap();
        // Version 4, 24 bytes of header, CS6, length 40, DF, TTL 1, IGMP; to 224.0.0.22, Router Alert.
        assert_eq!(bytes[..10], [0x46, 0xc0, 0, 40, 0, 0, 0x40, 0, 1, 2]);
        assert_eq!(bytes[12..24], [10, 0, 0, 1, 224, 0, 0, 22, 0x94, 4, 0, 0]);
        // RFC 3376, section 4.2; the sum by hand: 0x2200 + 1 + 0x0400 + 0xef01 + 0x0203, carried 0x1706.
        let message = [0x22, 0, 0xe8, 0xf9, 0, 0, 0, 1, 4, 0, 0, 0, 239, 1, 2, 3];
        assert_eq!(bytes[24..], message);
        let view = ipv4::View::new(&bytes).unwrap();
        assert_eq!(Message::in_packet(&view), Ok(report));
    }

    #[test]
    fn queries_of_all_versions() {
        // The sums by hand: ~0x1100, ~(0x1164), ~(0x1164 + 0x027d).
        let v1 = [0x11, 0, 0xee, 0xff, 0, 0, 0, 0];
        let v2 = [0x11, 100, 0xee, 0x9b, 0, 0, 0, 0];
        let v3 = [0x11, 100, 0xec, 0x1e, 0, 0, 0, 0, 2, 125, 0, 0];
        for (version, bytes) in [(1, &v1[..]), (2, &v2), (3, &v3)] {
            let Ok(Message::Query(query)) = Message::parse(bytes) else {
                panic!("version {version}")
            };
            assert_eq!((query.version, query.max_response_ms), (version, 10_000));
        }
        let between = [0x11, 100, 0xec, 0x9a, 0, 0, 0, 0, 2, 1];
        assert_eq!(Message::parse(&between), Err(Error::Malformed));
    }

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(message in any_message(), cut: prop::sample::Index) {
            let mut bytes = Vec::new();
            message.emit(&mut bytes).unwrap();
            prop_assert_eq!(Message::parse(&bytes), Ok(message));
            bytes.truncate(cut.index(bytes.len()));
            prop_assert!(Message::parse(&bytes).is_err() || bytes.iter().all(|&byte| byte == 0));
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Message::parse(&bytes);
            if bytes.len() > 4 {
                bytes[2..4].fill(0);
                let sum = checksum(&bytes);
                bytes[2..4].copy_from_slice(&sum.to_be_bytes());
                let _ = Message::parse(&bytes);
            }
        }
    }
}
