//! The addresses that the checksums of UDP and TCP cover, so that both use the same code over IPv4 and IPv6.

use crate::checksum::Sum;
use crate::{ipv4, ipv6};
use std::net::{Ipv4Addr, Ipv6Addr};

/// An IPv4 or an IPv6 address.
pub trait Address: Copy {
    /// True if a UDP checksum of zero says that the sender computed none (RFC 768); over IPv6 such datagrams are discarded
    /// (RFC 8200, section 8.1).
    const UDP_CHECKSUM_IS_OPTIONAL: bool;

    /// Returns the sum over the pseudo header with which the checksum of UDP or TCP begins (RFC 768, RFC 9293; over
    /// IPv6: RFC 8200, section 8.1). `len` is the length of transport header and payload in bytes.
    fn pseudo_header_sum(source: Self, destination: Self, protocol: u8, len: u16) -> Sum;
}

impl Address for Ipv4Addr {
    const UDP_CHECKSUM_IS_OPTIONAL: bool = true;

    #[inline]
    fn pseudo_header_sum(source: Self, destination: Self, protocol: u8, len: u16) -> Sum {
        ipv4::pseudo_header_sum(source, destination, protocol, len)
    }
}

impl Address for Ipv6Addr {
    const UDP_CHECKSUM_IS_OPTIONAL: bool = false;

    #[inline]
    fn pseudo_header_sum(source: Self, destination: Self, protocol: u8, len: u16) -> Sum {
        ipv6::pseudo_header_sum(source, destination, protocol, len)
    }
}
