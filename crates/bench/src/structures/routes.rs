//! Routes: prefixes to next hops with counters.

use super::count::Count;
use super::dir24::Dir24;
use super::ipv4::addresses;

/// A prefix of IPv4 addresses; the bits beyond its length are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    /// The address.
    pub address: u32,
    /// The length in bits.
    pub len: u32,
}

/// The next hop of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextHop {
    /// The output port.
    pub port: u16,
    /// The source address of Ethernet.
    pub source: u64,
    /// The destination address of Ethernet.
    pub destination: u64,
}

/// Where packets of a prefix are sent.
pub struct Route {
    /// Output port.
    pub port: u32,
    /// Both addresses of the Ethernet header, as on the wire.
    pub addresses: [u8; 12],
    /// The packets that were sent there.
    pub count: Count,
}

/// A routing table.
#[derive(Default)]
pub struct Routes {
    numbers: Dir24,
    routes: Vec<Route>,
}

impl Routes {
    /// Adds a route from a prefix to a next hop, with a count of zero.
    pub fn insert(&mut self, prefix: Prefix, hop: NextHop) {
        self.numbers.insert(prefix, self.routes.len() as u16);
        self.routes.push(Route {
            port: hop.port.into(),
            addresses: addresses(hop.destination, hop.source),
            count: Count::default(),
        });
    }

    /// Returns the route of the longest prefix that contains an address; `None` if no prefix does.
    #[inline]
    pub fn lookup(&mut self, address: u32) -> Option<&mut Route> {
        let number = self.numbers.lookup(address)?;
        Some(&mut self.routes[usize::from(number)])
    }
}
