//! Options of a direction of a link: it refuses long frames, and puts frames in order. It does not
//! know when (`medium` does), and costs a comparison where it is not asked to.

use super::{Direction, LinkConfig};
use crate::ordering::Ordering;
use crate::ordering::tag::layer2_len;
use engine::Packet;

/// Bytes of an Ethernet header without VLAN tags.
const ETHERNET_LEN: u32 = 14;

/// Properties that only few directions have.
#[derive(Debug)]
pub(crate) struct Special {
    mtu_bytes: Option<u32>,
    ordering: Option<Ordering<Packet>>,
}

impl Special {
    pub(super) fn new(config: &LinkConfig) -> Option<Box<Special>> {
        if config.mtu_bytes.is_none() && config.ordering.is_none() {
            return None;
        }
        Some(Box::new(Special {
            mtu_bytes: config.mtu_bytes,
            ordering: config.ordering.clone().map(Ordering::new),
        }))
    }

    /// Returns the length, in bytes, of the longest frame that surely needs neither an MTU check nor the ordering
    /// function of a direction with this configuration.
    pub(super) fn plain_bytes(config: &LinkConfig) -> u32 {
        match (config.mtu_bytes, &config.ordering) {
            (_, Some(_)) => 0,
            (Some(mtu_bytes), None) => mtu_bytes + ETHERNET_LEN,
            (None, None) => u32::MAX,
        }
    }
}

impl Direction {
    /// Returns true if a frame of this length may need an MTU check or the direction's ordering function, rather than
    /// going straight to the transmitter.
    #[inline]
    pub(crate) fn is_special(&self, frame_bytes: usize) -> bool {
        frame_bytes > self.plain_bytes as usize
    }

    /// Returns true if a packet is longer than the MTU allows, and counts it as dropped then. Always returns false for
    /// a direction that is down, which drops packets for that reason.
    pub(crate) fn refuses(&mut self, packet: &Packet) -> bool {
        let mtu_bytes = self.special.as_ref().and_then(|special| special.mtu_bytes);
        let longest = mtu_bytes.map(|mtu_bytes| mtu_bytes as usize + layer2_len(packet.stored()));
        let refused = self.up && longest.is_some_and(|longest| packet.len() > longest);
        if refused {
            self.counters.offered += 1;
            self.counters.mtu_drops += 1;
        }
        refused
    }

    /// Returns the direction's packet ordering function; `None` if it has none.
    pub(crate) fn ordering(&self) -> Option<&Ordering<Packet>> {
        self.special.as_ref()?.ordering.as_ref()
    }

    /// Returns the direction's packet ordering function for modification; `None` if it has none.
    pub(crate) fn ordering_mut(&mut self) -> Option<&mut Ordering<Packet>> {
        self.special.as_mut()?.ordering.as_mut()
    }
}
