//! ARP (RFC 826) for IPv4 over Ethernet. It keeps no cache; other hardware and protocol types are `Malformed` here.

use crate::ethernet::{ETHERTYPE_IPV4, MacAddress};
use crate::{Error, array, at_least, fields, u16_at};
use std::net::Ipv4Addr;

const HARDWARE_ETHERNET: u16 = 1;

/// Checked bytes of a packet.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// Makes a view of an ARP packet, behind which padding may follow. Fails with `Truncated` if there are fewer than
    /// 28 bytes, and with `Malformed` if the packet does not map IPv4 to Ethernet addresses.
    pub fn new(bytes: &'a [u8]) -> Result<View<'a>, Error> {
        at_least(bytes, Message::LEN)?;
        let ours = u16_at(bytes, 0) == HARDWARE_ETHERNET
            && u16_at(bytes, 2) == ETHERTYPE_IPV4
            && bytes[4..6] == [6, 4];
        if !ours {
            return Err(Error::Malformed);
        }
        Ok(View(bytes))
    }

    fields! { bytes =>
        /// Operation code.
        operation: u16 = u16_at(bytes, 6);
        /// Hardware address of the sender.
        sender_mac: MacAddress = MacAddress(array(bytes, 8));
        /// Protocol address of the sender.
        sender_ipv4: Ipv4Addr = Ipv4Addr::from(array::<4>(bytes, 14));
        /// Hardware address of the target.
        target_mac: MacAddress = MacAddress(array(bytes, 18));
        /// Protocol address of the target.
        target_ipv4: Ipv4Addr = Ipv4Addr::from(array::<4>(bytes, 24));
    }
}

/// The operation of an ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Asks for the hardware address of the station that has the target's protocol address.
    Request,
    /// Tells that the sender has the sender's protocol address.
    Reply,
}

/// Values of an ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Request or reply.
    pub operation: Operation,
    /// Hardware address of the sender.
    pub sender_mac: MacAddress,
    /// Protocol address of the sender.
    pub sender_ipv4: Ipv4Addr,
    /// Hardware address of the target; zero in requests.
    pub target_mac: MacAddress,
    /// Protocol address of the target.
    pub target_ipv4: Ipv4Addr,
}

impl Message {
    /// Bytes of the packet.
    pub const LEN: usize = 28;

    /// Returns the fields of an ARP packet. Fails with `Malformed` if the operation is neither request nor reply.
    pub fn parse(view: &View<'_>) -> Result<Message, Error> {
        Ok(Message {
            operation: match view.operation() {
                1 => Operation::Request,
                2 => Operation::Reply,
                _ => return Err(Error::Malformed),
            },
            sender_mac: view.sender_mac(),
            sender_ipv4: view.sender_ipv4(),
            target_mac: view.target_mac(),
            target_ipv4: view.target_ipv4(),
        })
    }

    /// Appends the ARP packet, 28 bytes, to `out`. Never fails.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        let operation: u16 = match self.operation {
            Operation::Request => 1,
            Operation::Reply => 2,
        };
        out.extend_from_slice(&HARDWARE_ETHERNET.to_be_bytes());
        out.extend_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
        out.extend_from_slice(&[6, 4]);
        out.extend_from_slice(&operation.to_be_bytes());
        out.extend_from_slice(&self.sender_mac.0);
        out.extend_from_slice(&self.sender_ipv4.octets());
        out.extend_from_slice(&self.target_mac.0);
        out.extend_from_slice(&self.target_ipv4.octets());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parse_gives_what_was_emitted(
            request: bool, sender_mac: [u8; 6], sender_ipv4: [u8; 4], target_mac: [u8; 6], target_ipv4: [u8; 4],
            padding in 0usize..20
        ) {
            let message = Message {
                operation: if request { Operation::Request } else { Operation::Reply },
                sender_mac: MacAddress(sender_mac),
                sender_ipv4: sender_ipv4.into(),
                target_mac: MacAddress(target_mac),
                target_ipv4: target_ipv4.into(),
            };
            let mut bytes = Vec::new();
            message.emit(&mut bytes).unwrap();
            prop_assert_eq!(bytes.len(), Message::LEN);
            bytes.resize(Message::LEN + padding, 0);
            prop_assert_eq!(Message::parse(&View::new(&bytes).unwrap()), Ok(message));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40), operation: u16) {
            if let Ok(view) = View::new(&bytes) {
                let _ = Message::parse(&view);
            }
            // Random bytes almost never have the four fixed fields; give them.
            let mut likely = vec![0, 1, 8, 0, 6, 4];
            likely.extend_from_slice(&operation.to_be_bytes());
            likely.extend_from_slice(&bytes);
            match View::new(&likely) {
                Ok(view) => prop_assert_eq!(Message::parse(&view).is_ok(), operation == 1 || operation == 2),
                Err(error) => prop_assert!(error == Error::Truncated && likely.len() < Message::LEN),
            }
        }
    }

    #[test]
    fn other_address_families_are_refused() {
        let message = Message {
            operation: Operation::Request,
            sender_mac: MacAddress([2; 6]),
            sender_ipv4: Ipv4Addr::new(10, 0, 0, 1),
            target_mac: MacAddress::default(),
            target_ipv4: Ipv4Addr::new(10, 0, 0, 2),
        };
        let mut bytes = Vec::new();
        message.emit(&mut bytes).unwrap();
        for i in 0..6 {
            let mut wrong = bytes.clone();
            wrong[i] ^= 0x40;
            assert_eq!(View::new(&wrong).err(), Some(Error::Malformed), "byte {i}");
        }
    }
}
