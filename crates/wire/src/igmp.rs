//! IGMP, versions 1 to 3 (RFC 1112, appendix I; RFC 2236; RFC 3376): its messages, and what their IP headers must be.

use crate::checksum::{Sum, checksum, verifies};
use crate::membership::{self, GroupAddress};
use crate::{Error, at_least, ipv4};
use std::net::Ipv4Addr;

/// Protocol number of IGMP.
pub const PROTOCOL_IGMP: u8 = 2;

/// The Router Alert option (RFC 2113).
const ROUTER_ALERT: [u8; 4] = [0x94, 4, 0, 0];

/// DSCP CS6: Internetwork Control.
const INTERNETWORK_CONTROL: u8 = 0xc0;

impl GroupAddress for Ipv4Addr {
    const LEN: usize = 4;
    const GROUP_AT: usize = 4;
    const LATEST: u8 = 3;
    const QUERY: u8 = 0x11;
    const REPORT: u8 = 0x22;
    const OLD_REPORTS: &'static [(u8, u8)] = &[(0x12, 1), (0x16, 2)];
    const LEAVE: u8 = 0x17;
    const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
    const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
    const REPORT_LISTENERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);
    const UNIT_MS: u32 = 100;
    const MANTISSA_BITS: u32 = 4;
    /// The maximum response time of IGMPv1 queries: 10 seconds (RFC 3376, section 7.2.1).
    const TIMELESS_MS: Option<u32> = Some(10_000);
    fn read(bytes: &[u8]) -> Ipv4Addr {
        crate::array::<4>(bytes, 0).into()
    }
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.octets());
    }
    fn is_group(self) -> bool {
        self.is_multicast()
    }
    fn code(query: &[u8]) -> u32 {
        query[1].into()
    }
    fn put_head(kind: u8, code: u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&[kind, code as u8, 0, 0]);
    }
}

/// A message.
pub type Message = membership::Message<Ipv4Addr>;
/// A query.
pub type Query = membership::Query<Ipv4Addr>;

impl Message {
    /// Returns the IGMP message in an IPv4 packet. Fails with `Malformed` if the packet contains another protocol, is a
    /// fragment, or has a time to live other than 1; with `Checksum` if its header's checksum is wrong; and like
    /// [`Message::parse`].
    pub fn in_packet(packet: &ipv4::View<'_>) -> Result<Message, Error> {
        if packet.protocol() != PROTOCOL_IGMP || packet.ttl() != 1 || packet.is_fragment() {
            return Err(Error::Malformed);
        }
        if !packet.checksum_is_valid() {
            return Err(Error::Checksum);
        }
        Message::parse(packet.payload())
    }

    /// Returns the fields of an IGMP message of any version. Fails with `Truncated` if bytes are missing, with
    /// `Checksum` if the checksum is wrong, and with `Malformed` for an unknown type, a query whose length is that of
    /// no version, or a group address that is not multicast.
    pub fn parse(bytes: &[u8]) -> Result<Message, Error> {
        if !verifies(Sum::new().bytes(at_least(bytes, 8)?)) {
            return Err(Error::Checksum);
        }
        Message::read(bytes)
    }

    /// Appends the IGMP message to `out`, with its checksum. Fails with `OutOfRange` if a value does not fit its field.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(16);
        self.put(&mut bytes)?;
        let sum = checksum(&bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Appends an IPv4 packet with the IGMP message to `out`. The IP header has the Router Alert option (RFC 2113),
    /// except for messages of version 1, which does not have it. Fails with `OutOfRange` if a value does not fit its
    /// field.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::tests::any_message;
    use crate::membership::{Record, RecordKind};
    use proptest::prelude::*;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);

    fn any_igmp() -> impl Strategy<Value = Message> {
        let group = (0xe000_0000u32..0xf000_0000).prop_map(Ipv4Addr::from);
        any_message(group, any::<u32>().prop_map(Ipv4Addr::from))
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
        fn parse_gives_what_was_emitted(message in any_igmp(), cut: prop::sample::Index) {
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
