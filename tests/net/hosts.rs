//! Hosts 1 to 254 of one subnet, by number. They know each other: the switches of these tests flood nothing.

use net::{HostConfig, HostSettings, MacAddress};
use std::net::Ipv4Addr;

pub fn mac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, number])
}

fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number)
}

pub fn host(number: u8) -> HostSettings {
    let config = HostConfig {
        mac: mac(number),
        ipv4: address(number),
        prefix_len: 24,
        gateway_mac: mac(99),
        ipv6: None,
    };
    let others = (1..=254).filter(|&other| other != number);
    HostSettings {
        neighbours: others.map(|it| (address(it).into(), mac(it))).collect(),
        ..HostSettings::from(config)
    }
}
