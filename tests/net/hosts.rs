//! Hosts 1 to 254 of one subnet, by number.

use net::{HostConfig, MacAddress};
use std::net::Ipv4Addr;

pub fn mac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, number])
}

pub fn host(number: u8) -> HostConfig {
    HostConfig {
        mac: mac(number),
        ipv4: Ipv4Addr::new(10, 0, 0, number),
        prefix_len: 24,
        gateway_mac: mac(99),
        ipv6: None,
    }
}
