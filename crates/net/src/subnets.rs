//! Which hosts are in each other's subnets, so that they have neighbours to find. It knows addresses and nodes' numbers alone.

use crate::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The addresses of all hosts, with their subnets.
#[derive(Debug, Default)]
pub(crate) struct Subnets {
    addresses: BTreeMap<IpAddr, Vec<NodeId>>,
    by_prefix: BTreeMap<(IpAddr, u8), Vec<NodeId>>,
    /// The prefix lengths in use, with true for IPv6.
    lengths: BTreeSet<(bool, u8)>,
}

impl Subnets {
    /// Adds a host's addresses, each with its prefix length. Returns the other hosts that share a subnet with it: one
    /// of their addresses is in one of its subnets, or one of its addresses in one of theirs.
    pub(crate) fn add(&mut self, host: NodeId, addresses: &[(IpAddr, u8)]) -> BTreeSet<NodeId> {
        let mut near = BTreeSet::new();
        for &(address, prefix_len) in addresses {
            let (first, last) = range(address, prefix_len);
            near.extend(self.addresses.range(first..=last).flat_map(|(_, of)| of));
            let lengths = self.lengths.iter();
            for &(_, length) in lengths.filter(|(is_v6, _)| *is_v6 == address.is_ipv6()) {
                let prefix = (range(address, length).0, length);
                near.extend(self.by_prefix.get(&prefix).into_iter().flatten());
            }
        }
        for &(address, prefix_len) in addresses {
            let prefix = (range(address, prefix_len).0, prefix_len);
            self.addresses.entry(address).or_default().push(host);
            self.by_prefix.entry(prefix).or_default().push(host);
            self.lengths.insert((address.is_ipv6(), prefix_len));
        }
        near
    }
}

/// Returns the first and the last address of the subnet that contains an address.
fn range(address: IpAddr, prefix_len: u8) -> (IpAddr, IpAddr) {
    match address {
        IpAddr::V4(address) => {
            let rest = u32::MAX.checked_shr(prefix_len.into()).unwrap_or(0);
            let bits = u32::from(address);
            (
                IpAddr::V4((bits & !rest).into()),
                IpAddr::V4((bits | rest).into()),
            )
        }
        IpAddr::V6(address) => {
            let rest = u128::MAX.checked_shr(prefix_len.into()).unwrap_or(0);
            let bits = u128::from(address);
            (
                IpAddr::V6((bits & !rest).into()),
                IpAddr::V6((bits | rest).into()),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contains((address, prefix_len): (IpAddr, u8), other: IpAddr) -> bool {
        let (first, last) = range(address, prefix_len);
        first.is_ipv4() == other.is_ipv4() && (first..=last).contains(&other)
    }

    #[test]
    fn subnets_have_their_first_and_last_addresses() {
        let cases = [
            ("10.1.2.3", 24, "10.1.2.0", "10.1.2.255"),
            ("10.1.2.3", 31, "10.1.2.2", "10.1.2.3"),
            ("10.1.2.3", 32, "10.1.2.3", "10.1.2.3"),
            ("10.1.2.3", 0, "0.0.0.0", "255.255.255.255"),
            ("2001:db8::1", 127, "2001:db8::", "2001:db8::1"),
            (
                "2001:db8::1",
                0,
                "::",
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            ),
        ];
        for (address, prefix_len, first, last) in cases {
            let expected = (first.parse().unwrap(), last.parse().unwrap());
            assert_eq!(range(address.parse().unwrap(), prefix_len), expected);
        }
    }

    proptest! {
        /// Compared with all pairs of hosts.
        #[test]
        fn hosts_near_each_other_are_found(hosts in proptest::collection::vec(
            proptest::collection::vec((0u32..40, 24u8..33, any::<bool>()), 1..3), 1..12
        )) {
            let mut subnets = Subnets::default();
            let mut all: Vec<Vec<(IpAddr, u8)>> = Vec::new();
            for (number, host) in hosts.into_iter().enumerate() {
                let host: Vec<(IpAddr, u8)> = host.into_iter().map(|(bits, len, is_v6)| match is_v6 {
                    false => (IpAddr::V4((0x0a00_0000 + bits).into()), len),
                    true => (IpAddr::V6((0xfd00_0000 + u128::from(bits)).into()), len + 96),
                }).collect();
                let near = subnets.add(NodeId(number as u32), &host);
                let expected: BTreeSet<NodeId> = all.iter().enumerate().filter(|(_, other)| {
                    host.iter().any(|own| other.iter().any(|it| contains(*own, it.0) || contains(*it, own.0)))
                }).map(|(number, _)| NodeId(number as u32)).collect();
                prop_assert_eq!(near, expected);
                all.push(host);
            }
        }
    }
}
