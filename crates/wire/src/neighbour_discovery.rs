//! Neighbour discovery (RFC 4861): solicitations and advertisements of neighbours, with the checks of sections 7.1.1 and 7.1.2. Routers'
//! messages and redirects are `Malformed` here, and options other than a link-layer address are skipped.

use crate::ethernet::MacAddress;
use crate::icmpv6;
use crate::ipv6;
use crate::{Error, array};
use std::net::Ipv6Addr;

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOURCE_LINK_LAYER: u8 = 1;
const TARGET_LINK_LAYER: u8 = 2;
// Flags of an advertisement, in the first byte behind the checksum.
const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

/// The hop limit that shows that no router passed a message on.
pub const HOP_LIMIT: u8 = 255;

/// All stations of a link.
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The type of a message, and an advertisement's flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The sender asks for the link-layer address of the target.
    Solicitation,
    /// The sender announces the link-layer address of the target.
    Advertisement {
        /// R flag: the sender is a router.
        router: bool,
        /// S flag: the message answers a solicitation.
        solicited: bool,
        /// O flag: receivers replace a link-layer address that they know already.
        overrides: bool,
    },
}

/// A solicitation or advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The type of the message.
    pub kind: Kind,
    /// The address that is asked for or announced.
    pub target: Ipv6Addr,
    /// The link-layer address of the sender of a solicitation, or of the target of an advertisement.
    pub link_layer: Option<MacAddress>,
}

/// Returns the solicited-node multicast address of an IPv6 address (RFC 4291, section 2.7.1), to which solicitations
/// for it are sent.
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    let (high, low) = (0xff00 | u16::from(a), u16::from_be_bytes([b, c]));
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, high, low)
}

impl Message {
    /// Returns the neighbour solicitation or advertisement in an IPv6 packet. Fails with `Checksum` if its checksum is
    /// wrong, with `Truncated` if bytes are missing, and with `Malformed` if it is another message, its hop limit is
    /// not 255 (a router may have forwarded it), or it breaks another rule of RFC 4861 (sections 7.1.1 and 7.1.2).
    pub fn parse(packet: &ipv6::View<'_>) -> Result<Message, Error> {
        let (source, to) = (packet.source(), packet.destination());
        let view = icmpv6::View::new(packet.payload())?;
        let icmpv6::Message::Other { kind, code, rest } =
            icmpv6::Message::parse(&view, source, to)?
        else {
            return Err(Error::Malformed);
        };
        let (target, options) = view
            .payload()
            .split_at_checked(16)
            .ok_or(Error::Truncated)?;
        let target = Ipv6Addr::from(array::<16>(target, 0));
        if packet.hop_limit() != HOP_LIMIT || code != 0 || target.is_multicast() {
            return Err(Error::Malformed);
        }
        let (kind, option) = match kind {
            SOLICITATION => (Kind::Solicitation, SOURCE_LINK_LAYER),
            ADVERTISEMENT => {
                let flag = |flag| rest[0] & flag != 0;
                let kind = Kind::Advertisement {
                    router: flag(ROUTER),
                    solicited: flag(SOLICITED),
                    overrides: flag(OVERRIDE),
                };
                (kind, TARGET_LINK_LAYER)
            }
            _ => return Err(Error::Malformed),
        };
        let link_layer = link_layer(options, option)?;
        let contradicts = match kind {
            // It asks whether anybody has an address that it is about to take (RFC 4862, 5.4.2).
            Kind::Solicitation => {
                source.is_unspecified() && (link_layer.is_some() || to != solicited_node(target))
            }
            Kind::Advertisement { solicited, .. } => solicited && to.is_multicast(),
        };
        match contradicts {
            true => Err(Error::Malformed),
            false => Ok(Message {
                kind,
                target,
                link_layer,
            }),
        }
    }

    /// Appends an IPv6 packet with the message, hop limit 255 and ICMPv6 checksum to `out`.
    pub fn emit(
        &self,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let (kind, flags, option) = match self.kind {
            Kind::Solicitation => (SOLICITATION, 0, SOURCE_LINK_LAYER),
            Kind::Advertisement {
                router,
                solicited,
                overrides,
            } => {
                let flags = [
                    (router, ROUTER),
                    (solicited, SOLICITED),
                    (overrides, OVERRIDE),
                ];
                let set = flags.into_iter().filter(|(set, _)| *set);
                let flags = set.fold(0, |all, (_, flag)| all | flag);
                (ADVERTISEMENT, flags, TARGET_LINK_LAYER)
            }
        };
        let mut payload = self.target.octets().to_vec();
        if let Some(mac) = self.link_layer {
            payload.extend_from_slice(&[option, 1]);
            payload.extend_from_slice(&mac.0);
        }
        ipv6::Header {
            traffic_class: 0,
            flow_label: 0,
            next_header: ipv6::NEXT_HEADER_ICMPV6,
            hop_limit: HOP_LIMIT,
            source,
            destination,
            payload_len: icmpv6::Message::LEN + payload.len(),
        }
        .emit(out)?;
        let message = icmpv6::Message::Other {
            kind,
            code: 0,
            rest: [flags, 0, 0, 0],
        };
        message.emit(source, destination, &payload, out)
    }
}

/// Returns the link-layer address in the last option of type `wanted`; `None` if there is none. Fails with `Malformed`
/// if an option has length zero or goes beyond the message.
fn link_layer(mut options: &[u8], wanted: u8) -> Result<Option<MacAddress>, Error> {
    let mut found = None;
    while let [kind, units, ..] = *options {
        let len = usize::from(units) * 8;
        let option = options.get(..len).filter(|it| !it.is_empty());
        let option = option.ok_or(Error::Malformed)?;
        if kind == wanted && len == 8 {
            found = Some(MacAddress(array(option, 2)));
        }
        options = &options[len..];
    }
    match options.is_empty() {
        true => Ok(found),
        false => Err(Error::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    const TWO: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0x12, 0x3456);
    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);

    fn solicitation(source: Ipv6Addr, link_layer: Option<MacAddress>) -> Vec<u8> {
        let message = Message {
            kind: Kind::Solicitation,
            target: TWO,
            link_layer,
        };
        let mut bytes = Vec::new();
        message
            .emit(source, solicited_node(TWO), &mut bytes)
            .unwrap();
        bytes
    }

    fn parse(bytes: &[u8]) -> Result<Message, Error> {
        Message::parse(&ipv6::View::new(bytes).unwrap())
    }

    /// Makes the checksum of a message right again.
    fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
        bytes[42..44].fill(0);
        let view = ipv6::View::new(&bytes).unwrap();
        let len = view.payload().len() as u16;
        let sum = ipv6::pseudo_header_sum(view.source(), view.destination(), 58, len);
        let sum = sum.bytes(view.payload()).finish();
        bytes[42..44].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    #[test]
    fn the_group_of_an_address_has_its_last_three_bytes() {
        let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff12, 0x3456);
        assert_eq!(solicited_node(TWO), group);
    }

    #[test]
    fn what_a_router_may_have_passed_on_or_contradicts_itself_is_refused() {
        let good = solicitation(ONE, Some(MAC));
        assert_eq!(parse(&good).map(|it| it.link_layer), Ok(Some(MAC)));
        // Hop limit, code, a multicast target, an option without length, one that goes on behind the end.
        for (at, value) in [(7, 254), (41, 1), (48, 0xff), (65, 0), (65, 2)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert_eq!(parse(&summed(bad)), Err(Error::Malformed), "byte {at}");
        }
        // RFC 4861, 7.1.1: without a source, no link-layer address.
        assert!(parse(&solicitation(Ipv6Addr::UNSPECIFIED, None)).is_ok());
        let bad = solicitation(Ipv6Addr::UNSPECIFIED, Some(MAC));
        assert_eq!(parse(&bad), Err(Error::Malformed));
        let mut answered = Vec::new();
        let kind = Kind::Advertisement {
            router: false,
            solicited: true,
            overrides: true,
        };
        let message = Message {
            kind,
            target: TWO,
            link_layer: Some(MAC),
        };
        message.emit(TWO, ALL_NODES, &mut answered).unwrap();
        assert_eq!(parse(&answered), Err(Error::Malformed));
    }

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(
            flags: Option<[bool; 3]>, target: [u8; 16], mac: Option<[u8; 6]>
        ) {
            let mut target = target;
            target[0] &= 0x7f;
            let message = Message {
                kind: match flags {
                    None => Kind::Solicitation,
                    Some([router, solicited, overrides]) => Kind::Advertisement { router, solicited, overrides },
                },
                target: target.into(),
                link_layer: mac.map(MacAddress),
            };
            let mut bytes = Vec::new();
            message.emit(ONE, TWO, &mut bytes).unwrap();
            prop_assert_eq!(parse(&bytes), Ok(message));
            // Every flipped bit behind the header is noticed.
            for at in 40..bytes.len() {
                bytes[at] ^= 1;
                prop_assert!(parse(&bytes).is_err());
                bytes[at] ^= 1;
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60), kind in 133u8..138) {
            let mut packet = solicitation(ONE, None);
            packet.truncate(64);
            packet.extend_from_slice(&bytes);
            packet[40] = kind;
            packet[5] = (packet.len() - 40) as u8;
            if let Ok(message) = parse(&summed(packet)) {
                prop_assert!(kind == SOLICITATION || kind == ADVERTISEMENT);
                prop_assert_eq!(message.target, TWO);
            }
        }
    }
}
