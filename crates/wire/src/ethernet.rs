//! Ethernet II (IEEE 802.3 with a type field). It does not know the preamble, the frame check sequence or padding: frames
//! here are those that a packet socket sees.

use crate::{Error, array, fields, u16_at};
use std::fmt;
use std::str::FromStr;

/// EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ETHERTYPE_ARP: u16 = 0x0806;
/// EtherType of a customer VLAN tag (IEEE 802.1Q).
pub const ETHERTYPE_VLAN: u16 = 0x8100;
/// EtherType of a service VLAN tag (IEEE 802.1ad).
pub const ETHERTYPE_SERVICE_VLAN: u16 = 0x88a8;
/// EtherType of IPv6.
pub const ETHERTYPE_IPV6: u16 = 0x86dd;

/// A MAC address.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All stations.
    pub const BROADCAST: MacAddress = MacAddress([0xff; 6]);

    /// Returns true if the group bit of the address is set, as in multicast and broadcast addresses.
    pub fn is_multicast(&self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for MacAddress {
    type Err = Error;

    /// Parses a MAC address: six pairs of hexadecimal digits, separated by colons. Fails with `Malformed` for any other
    /// text.
    fn from_str(text: &str) -> Result<MacAddress, Error> {
        let mut out = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut out {
            let part = parts.next().ok_or(Error::Malformed)?;
            if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(Error::Malformed);
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| Error::Malformed)?;
        }
        match parts.next() {
            None => Ok(MacAddress(out)),
            Some(_) => Err(Error::Malformed),
        }
    }
}

fixed_length_view!();

impl View<'_> {
    fields! { bytes =>
        /// Destination address.
        destination: MacAddress = MacAddress(array(bytes, 0));
        /// Source address.
        source: MacAddress = MacAddress(array(bytes, 6));
        /// Type field; values below 1536 are a length (IEEE 802.3) and passed as they are.
        ethertype: u16 = u16_at(bytes, 12);
    }
}

/// Values of an Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Destination address.
    pub destination: MacAddress,
    /// Source address.
    pub source: MacAddress,
    /// Type field.
    pub ethertype: u16,
}

impl Header {
    /// Bytes of the header.
    pub const LEN: usize = 14;

    /// Returns the fields of an Ethernet header. Never fails.
    pub fn parse(view: &View<'_>) -> Result<Header, Error> {
        Ok(Header {
            destination: view.destination(),
            source: view.source(),
            ethertype: view.ethertype(),
        })
    }

    /// Appends the Ethernet header, 14 bytes, to `out`. Never fails.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        out.extend_from_slice(&self.destination.0);
        out.extend_from_slice(&self.source.0);
        out.extend_from_slice(&self.ethertype.to_be_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_have_a_text_form() {
        let mac: MacAddress = "02:00:0a:0B:ff:01".parse().unwrap();
        assert_eq!(mac, MacAddress([2, 0, 10, 11, 255, 1]));
        assert_eq!(mac.to_string(), "02:00:0a:0b:ff:01");
        for wrong in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:00:00",
            "2:0:0:0:0:0",
            "02:00:00:00:00:+1",
            "zz:00:00:00:00:00",
        ] {
            assert_eq!(
                wrong.parse::<MacAddress>(),
                Err(Error::Malformed),
                "{wrong}"
            );
        }
    }

    #[test]
    fn group_addresses() {
        assert!(MacAddress::BROADCAST.is_multicast());
        assert!(MacAddress([1, 0, 0x5e, 0, 0, 1]).is_multicast());
        assert!(!MacAddress([2, 0, 0, 0, 0, 1]).is_multicast());
    }

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(
            destination: [u8; 6], source: [u8; 6], ethertype: u16, payload: Vec<u8>
        ) {
            let header = Header {
                destination: MacAddress(destination),
                source: MacAddress(source),
                ethertype,
            };
            let mut bytes = Vec::new();
            header.emit(&mut bytes).unwrap();
            prop_assert_eq!(bytes.len(), Header::LEN);
            bytes.extend_from_slice(&payload);
            let view = View::new(&bytes).unwrap();
            prop_assert_eq!(Header::parse(&view), Ok(header));
            prop_assert_eq!(view.payload(), &payload[..]);
        }
    }
}
