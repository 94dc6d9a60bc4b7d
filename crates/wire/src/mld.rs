//! MLD, versions 1 and 2 (RFC 2710, RFC 3810): its messages, and what their IP headers must be.

use crate::checksum::verifies;
use crate::ipv6::{self, NEXT_HEADER_HOP_BY_HOP, NEXT_HEADER_ICMPV6, pseudo_header_sum};
use crate::membership::{self, GroupAddress};
use crate::{Error, at_least, u16_at};
use std::net::Ipv6Addr;

/// The Hop-by-Hop header with the Router Alert option for MLD (RFC 2711), and two bytes of padding.
const HOP_BY_HOP: [u8; 8] = [NEXT_HEADER_ICMPV6, 0, 5, 2, 0, 0, 1, 0];

impl GroupAddress for Ipv6Addr {
    const LEN: usize = 16;
    const GROUP_AT: usize = 8;
    const LATEST: u8 = 2;
    const QUERY: u8 = 130;
    const REPORT: u8 = 143;
    const OLD_REPORTS: &'static [(u8, u8)] = &[(131, 1)];
    const LEAVE: u8 = 132;
    const ALL_HOSTS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
    const REPORT_LISTENERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);
    const UNIT_MS: u32 = 1;
    const MANTISSA_BITS: u32 = 12;
    const TIMELESS_MS: Option<u32> = None;
    fn read(bytes: &[u8]) -> Ipv6Addr {
        crate::array::<16>(bytes, 0).into()
    }
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.octets());
    }
    fn is_group(self) -> bool {
        self.is_multicast()
    }
    fn code(query: &[u8]) -> u32 {
        u16_at(query, 4).into()
    }
    fn put_head(kind: u8, code: u16, out: &mut Vec<u8>) {
        let code = code.to_be_bytes();
        out.extend_from_slice(&[kind, 0, 0, 0, code[0], code[1], 0, 0]);
    }
}

/// A message.
pub type Message = membership::Message<Ipv6Addr>;

impl Message {
    /// Returns the MLD message in an IPv6 packet. Fails with `Malformed` if the packet contains none, or does not have
    /// the link-local source, hop limit 1 and Router Alert option that RFC 3810 (section 6.2) demands; and like
    /// [`Message::parse`].
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

    /// Returns the fields of an MLD message of either version, in an IPv6 packet with these addresses. Fails with
    /// `Truncated` if bytes are missing, with `Checksum` if the checksum is wrong, and with `Malformed` for another
    /// ICMPv6 type, a query whose length is that of no version, or a group address that is not multicast.
    pub fn parse(bytes: &[u8], source: Ipv6Addr, destination: Ipv6Addr) -> Result<Message, Error> {
        at_least(bytes, 8)?;
        let len = u16::try_from(bytes.len()).map_err(|_| Error::Checksum)?;
        let sum = pseudo_header_sum(source, destination, NEXT_HEADER_ICMPV6, len);
        if !verifies(sum.bytes(bytes)) {
            return Err(Error::Checksum);
        }
        Message::read(bytes)
    }

    /// Appends the MLD message to `out`, with the checksum for `source` and the message's destination. Fails with
    /// `OutOfRange` if a value does not fit its field.
    pub fn emit(&self, source: Ipv6Addr, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut bytes = Vec::with_capacity(32);
        self.put(&mut bytes)?;
        let len = u16::try_from(bytes.len()).map_err(|_| Error::OutOfRange)?;
        let sum = pseudo_header_sum(source, self.destination(), NEXT_HEADER_ICMPV6, len);
        let sum = sum.bytes(&bytes).finish();
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Appends an IPv6 packet with the MLD message and the Router Alert option to `out`. `source` must be a link-local
    /// address, which is not checked. Fails with `OutOfRange` if a value does not fit its field.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::tests::any_message;
    use crate::membership::{Record, RecordKind};
    use proptest::prelude::*;

    const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const GROUP: Ipv6Addr = Ipv6Addr::new(0xff1e, 0, 0, 0, 0, 0, 0, 5);

    fn any_mld() -> impl Strategy<Value = Message> {
        let group = any::<u128>().prop_map(|low| Ipv6Addr::from(0xff << 120 | low >> 8));
        any_message(group, any::<u128>().prop_map(Ipv6Addr::from))
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
        assert_eq!(bytes[24..40], Ipv6Addr::REPORT_LISTENERS.octets());
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
        fn parse_gives_what_was_emitted(message in any_mld(), cut: prop::sample::Index) {
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
                let sum = pseudo_header_sum(HOST, Ipv6Addr::ALL_HOSTS, NEXT_HEADER_ICMPV6, bytes.len() as u16);
                let sum = sum.bytes(&bytes).finish();
                bytes[2..4].copy_from_slice(&sum.to_be_bytes());
                let _ = Message::parse(&bytes, HOST, Ipv6Addr::ALL_HOSTS);
            }
        }
    }
}
