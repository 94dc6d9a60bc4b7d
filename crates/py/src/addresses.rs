//! Addresses, and the names of protocols, from Python's arguments. It does not know the network.

use crate::errors::{chosen, failed};
use net::{Ipv6Interface, MacAddress, MembershipVersion};
use pyo3::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

/// Converts the 6 bytes of a MAC address. Fails for any other number of bytes.
pub(crate) fn mac(parameter: &str, bytes: &[u8]) -> PyResult<MacAddress> {
    let bytes = bytes.try_into().map_err(|_| {
        failed(format!(
            "{parameter} must have 6 bytes; it has {}",
            bytes.len()
        ))
    })?;
    Ok(MacAddress(bytes))
}

/// Parses an IPv4 address. Fails for any other text.
pub(crate) fn ipv4(text: &str) -> PyResult<Ipv4Addr> {
    text.parse()
        .map_err(|_| failed(format!("{text:?} is no IPv4 address")))
}

/// Makes an IPv6 interface address of an address as text and the length of its prefix. Fails if the text is no IPv6 address.
pub(crate) fn ipv6((text, prefix_len): (String, u8)) -> PyResult<Ipv6Interface> {
    let address = text
        .parse()
        .map_err(|_| failed(format!("{text:?} is no IPv6 address")))?;
    Ok(Ipv6Interface {
        address,
        prefix_len,
    })
}

/// Parses an IPv4 or IPv6 address. Fails, with the name of the parameter, for any other text.
pub(crate) fn ip(parameter: &str, text: &str) -> PyResult<IpAddr> {
    text.parse()
        .map_err(|_| failed(format!("{parameter}: {text:?} is no IP address")))
}

/// Parses the name of a protocol of memberships, such as `igmpv3`. Fails for any other name.
pub(crate) fn membership_version(name: &str) -> PyResult<MembershipVersion> {
    let choices = [
        ("igmpv1", MembershipVersion::Igmpv1),
        ("igmpv2", MembershipVersion::Igmpv2),
        ("igmpv3", MembershipVersion::Igmpv3),
        ("mldv1", MembershipVersion::Mldv1),
        ("mldv2", MembershipVersion::Mldv2),
    ];
    chosen("version must be", name, choices)
}
