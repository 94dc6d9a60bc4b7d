//! Routes: prefixes to next hops with counters.

use super::count::Count;
use super::dir24::Dir24;
use super::ipv4::addresses;

/// A prefix; no bits beyond its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    /// Address.
    pub address: u32,
    /// Length.
    pub len: u32,
}

/// The next hop of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextHop {
    /// Port.
    pub port: u16,
    /// Ethernet source.
    pub source: u64,
    /// Ethernet destination.
    pub destination: u64,
}

/// The destination of packets of a prefix.
pub struct Route {
    /// Output port.
    pub port: u32,
    /// Both addresses of the Ethernet header.
    pub addresses: [u8; 12],
    /// The packets that went there.
    pub count: Count,
}

/// Routes by prefix.
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
