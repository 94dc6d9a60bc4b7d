//! `wire`: protocol headers as bytes and as values, checksums, and capture files (pcap, pcapng).
//!
//! Each protocol has a file with the same pair of types:
//!
//! * `View`: borrowed bytes that were checked once (`View::new`), with an accessor per field. A view never reads outside
//!   what its constructor checked.
//! * `Header` (`Message` for ARP and ICMP): a struct of values with `parse`, from a view, and `emit`, which appends to a
//!   buffer and refuses values that do not fit their field. Parsing what was emitted gives the same struct.
//!
//! It deliberately knows nothing about packets in motion: no ports, no time, no state between packets. P4 programs do not
//! use it either (a switch parses with its own program); hosts, captures and tests do.
#![forbid(unsafe_code)]

/// The view of a `Header` of fixed length, and a test that it refuses fewer bytes.
macro_rules! fixed_length_view {
    () => {
        /// Checked bytes of a header and its payload.
        #[derive(Clone, Copy, Debug)]
        pub struct View<'a>(&'a [u8]);

        impl<'a> View<'a> {
            /// Makes a view of a header and the bytes behind it. Fails with `Truncated` if the header is incomplete.
            pub fn new(bytes: &'a [u8]) -> Result<View<'a>, crate::Error> {
                crate::at_least(bytes, Header::LEN).map(View)
            }

            /// Returns the bytes behind the header.
            pub fn payload(&self) -> &'a [u8] {
                &self.0[Header::LEN..]
            }
        }

        #[cfg(test)]
        mod length {
            use super::*;
            use proptest::prelude::*;

            proptest! {
                #[test]
                fn short_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..Header::LEN)) {
                    prop_assert_eq!(View::new(&bytes).err(), Some(Error::Truncated));
                }
            }
        }
    };
}

mod address;
pub mod arp;
pub mod bfd;
pub mod capture;
pub mod checksum;
pub mod ecn;
pub mod ethernet;
pub mod icmp;
pub mod icmpv4;
pub mod icmpv6;
pub mod igmp;
pub mod int;
pub mod ipv4;
pub mod ipv6;
pub mod membership;
pub mod mld;
pub mod neighbour_discovery;
pub mod pcap;
pub mod pcapng;
pub mod report;
pub mod tcp;
pub mod udp;
pub mod vlan;

pub use address::Address;
pub use ethernet::MacAddress;

use std::fmt;

/// Why bytes are not a header, or values not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Fewer bytes than the header, or than its length field promises.
    Truncated,
    /// A field has a value that the protocol does not allow or that this crate does not read.
    Malformed,
    /// The checksum does not match.
    Checksum,
    /// A value to be emitted does not fit its field.
    OutOfRange,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Truncated => "fewer bytes than the header promises",
            Error::Malformed => "a field has a value that the protocol does not allow",
            Error::Checksum => "the checksum does not match",
            Error::OutOfRange => "a value does not fit its field",
        })
    }
}

impl std::error::Error for Error {}

/// Fields of a view: `name: Type = expression;`, of the view's bytes, whose constructor has checked that they exist.
macro_rules! fields {
    ($bytes:ident => $($(#[$doc:meta])* $name:ident: $ty:ty = $value:expr;)*) => {
        $($(#[$doc])* pub fn $name(&self) -> $ty {
            let $bytes = self.0;
            $value
        })*
    };
}
use fields;

/// Returns the `N` bytes from `offset` on. Panics if they are not all there, which a view's constructor has ruled out.
fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[offset..offset + N]);
    out
}

/// Returns all of `bytes` if there are at least `len`. Fails with `Truncated` otherwise.
fn at_least(bytes: &[u8], len: usize) -> Result<&[u8], Error> {
    if bytes.len() < len {
        return Err(Error::Truncated);
    }
    Ok(bytes)
}

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes(array(bytes, offset))
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes(array(bytes, offset))
}
