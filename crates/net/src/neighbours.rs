//! A host's neighbours: which MAC address each IP address has, as ARP (RFC 826) and neighbour discovery (RFC 4861) tell, and the packets
//! that wait for an answer. One cache for both, with the states of RFC 4861, section 7.3, as Linux has it. It does not know frames, links
//! or events: it says whom to ask and when, and is told what was heard.
//!
//! Nothing is drawn at random: where the RFC wants a random time (how long a neighbour counts as reachable), it takes the mean.

use engine::{Packet, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use wire::MacAddress;

const S: u64 = 1_000_000_000_000;

/// The time for which a neighbour that answered counts as reachable (RFC 4861, REACHABLE_TIME).
pub(crate) const REACHABLE_PS: u64 = 30 * S;
/// The time for which packets are sent to a neighbour not heard from recently before it is asked again (RFC 4861,
/// DELAY_FIRST_PROBE_TIME).
pub(crate) const DELAY_PS: u64 = 5 * S;
/// The time between two requests for one address (RETRANS_TIMER; RFC 1122, 2.3.2.1, allows one per second).
pub(crate) const RETRANSMIT_PS: u64 = S;
/// Requests for an address after which, without an answer, no station has it (MAX_MULTICAST_SOLICIT,
/// MAX_UNICAST_SOLICIT).
pub(crate) const MOST_REQUESTS: u8 = 3;
/// The most packets that wait for one address. A further one replaces the oldest (RFC 4861, 7.2.2).
pub(crate) const MOST_WAITING: usize = 101;
/// The most addresses in the cache. A further one replaces the one that was used least recently and is not being asked
/// for.
pub(crate) const MOST_NEIGHBOURS: usize = 1024;

/// The state of a neighbour (RFC 4861, 7.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No answer to a request has come: `asked` requests were sent, and the next is due at `next_ps`.
    Incomplete { asked: u8, next_ps: Time },
    /// The neighbour answered, and counts as reachable until then.
    Reachable { until_ps: Time },
    /// The MAC address is known, but nothing shows that the neighbour is still there.
    Stale,
    /// As for `Stale`, but packets are being sent to it; from `until_ps` on, it is asked again.
    Delay { until_ps: Time },
    /// The neighbour is asked again, at the known MAC address.
    Probe { asked: u8, next_ps: Time },
}

/// A neighbour.
#[derive(Debug)]
struct Neighbour {
    state: State,
    mac: MacAddress,
    /// The host's port towards it.
    port: u32,
    /// Packets that wait for its address, the oldest first.
    waiting: VecDeque<Packet>,
    /// The number of its last use, counted over all neighbours.
    used: u64,
}

/// What happens to a packet to a neighbour.
#[derive(Debug)]
pub(crate) enum Sending {
    /// It is sent to a station; `news` is true if something has become due later.
    To {
        mac: MacAddress,
        packet: Packet,
        news: bool,
    },
    /// It waits for the MAC address. The packet that must be dropped for lack of room, if there is one, is returned.
    Waits(Option<Packet>),
}

/// In which kind of message a neighbour's MAC address was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A request for this host's address; a neighbour that is not in the cache is added.
    Asking,
    /// An answer to this host.
    Answer {
        /// False if a different MAC address in the cache must be kept (RFC 4861, 7.2.5; ARP always replaces it).
        overrides: bool,
    },
    /// An announcement to all stations, which changes an entry of the cache but adds none.
    Telling {
        /// False if a different MAC address in the cache must be kept, as for an answer.
        overrides: bool,
    },
}

/// Something that the host has to do.
#[derive(Debug)]
pub(crate) enum Due {
    /// To ask for an IP address out of a port: all stations, or the station that had it.
    Ask(IpAddr, u32, Option<MacAddress>),
    /// To drop packets that waited to leave by a port, since no station has the address.
    Drop(u32, VecDeque<Packet>),
}

/// The neighbours of a host.
#[derive(Debug)]
pub(crate) struct Neighbours {
    by_address: BTreeMap<IpAddr, Neighbour>,
    uses: u64,
    /// The time of the next event that is scheduled for the cache; [`Time::NEVER`] if there is none.
    pub(crate) wake_ps: Time,
}

impl Default for Neighbours {
    fn default() -> Neighbours {
        Neighbours {
            by_address: BTreeMap::new(),
            uses: 0,
            wake_ps: Time::NEVER,
        }
    }
}

impl Neighbours {
    /// Returns true if an IP address is in the cache, or being asked for.
    pub(crate) fn knows(&self, address: IpAddr) -> bool {
        self.by_address.contains_key(&address)
    }

    /// Takes a packet to the neighbour `address` behind a port. Returns it with the MAC address if that is known.
    /// Otherwise stores it, and returns the packet that must be dropped for lack of room, if there is one. Afterwards
    /// something may be [due](Self::due).
    pub(crate) fn send(
        &mut self,
        now_ps: Time,
        address: IpAddr,
        port: u32,
        packet: Packet,
    ) -> Sending {
        self.uses += 1;
        if !self.by_address.contains_key(&address) && !self.make_room() {
            return Sending::Waits(Some(packet));
        }
        let neighbour = self.by_address.entry(address).or_insert(Neighbour {
            state: State::Incomplete {
                asked: 0,
                next_ps: now_ps,
            },
            mac: MacAddress::default(),
            port,
            waiting: VecDeque::new(),
            used: 0,
        });
        neighbour.used = self.uses;
        match neighbour.state {
            State::Incomplete { .. } => {
                let full = neighbour.waiting.len() >= MOST_WAITING;
                let oldest = full.then(|| neighbour.waiting.pop_front()).flatten();
                neighbour.waiting.push_back(packet);
                Sending::Waits(oldest)
            }
            State::Reachable { until_ps } if until_ps > now_ps => Sending::To {
                mac: neighbour.mac,
                packet,
                news: false,
            },
            State::Reachable { .. } | State::Stale => {
                let until_ps = now_ps.saturating_add(DELAY_PS);
                neighbour.state = State::Delay { until_ps };
                Sending::To {
                    mac: neighbour.mac,
                    packet,
                    news: true,
                }
            }
            State::Delay { .. } | State::Probe { .. } => Sending::To {
                mac: neighbour.mac,
                packet,
                news: false,
            },
        }
    }

    /// Updates the cache with a neighbour's MAC address, received at a port in a message of kind `heard` (RFC 4861,
    /// 7.2.3 and 7.2.5; RFC 826). Returns the packets that waited for it, the oldest first.
    pub(crate) fn heard(
        &mut self,
        now_ps: Time,
        address: IpAddr,
        (mac, port): (MacAddress, u32),
        heard: Heard,
    ) -> VecDeque<Packet> {
        if mac.is_multicast() || mac == MacAddress::default() {
            return VecDeque::new();
        }
        if !self.by_address.contains_key(&address) {
            if heard == Heard::Asking && self.make_room() {
                self.uses += 1;
                let neighbour = Neighbour {
                    state: State::Stale,
                    mac,
                    port,
                    waiting: VecDeque::new(),
                    used: self.uses,
                };
                self.by_address.insert(address, neighbour);
            }
            return VecDeque::new();
        }
        let Some(neighbour) = self.by_address.get_mut(&address) else {
            return VecDeque::new();
        };
        let asked_for = matches!(neighbour.state, State::Incomplete { .. });
        let is_new = asked_for || neighbour.mac != mac;
        let (answers, overrides) = match heard {
            Heard::Asking => (false, true),
            Heard::Answer { overrides } => (true, overrides),
            Heard::Telling { overrides } => (false, overrides),
        };
        if is_new && !asked_for && !overrides {
            // RFC 4861, 7.2.5: doubted, but kept.
            if matches!(neighbour.state, State::Reachable { .. }) {
                neighbour.state = State::Stale;
            }
            return VecDeque::new();
        }
        (neighbour.mac, neighbour.port) = (mac, port);
        if answers {
            let until_ps = now_ps.saturating_add(REACHABLE_PS);
            neighbour.state = State::Reachable { until_ps };
        } else if is_new {
            // What waits is used at once.
            neighbour.state = match neighbour.waiting.is_empty() {
                true => State::Stale,
                false => State::Delay {
                    until_ps: now_ps.saturating_add(DELAY_PS),
                },
            };
        }
        std::mem::take(&mut neighbour.waiting)
    }

    /// Returns the time at which the next request or its timeout is due; `None` if there is none.
    pub(crate) fn due_ps(&self) -> Option<Time> {
        let neighbours = self.by_address.values();
        let times = neighbours.filter_map(|neighbour| match neighbour.state {
            State::Incomplete { next_ps, .. } | State::Probe { next_ps, .. } => Some(next_ps),
            State::Delay { until_ps } => Some(until_ps),
            State::Reachable { .. } | State::Stale => None,
        });
        times.min()
    }

    /// Returns what is due at `now_ps`, in the order of IP addresses: requests to send, and packets to drop because
    /// nobody answered. Updates the cache as if that had been done.
    pub(crate) fn due(&mut self, now_ps: Time) -> Vec<Due> {
        let mut due = Vec::new();
        self.by_address.retain(|&address, neighbour| {
            let (asked, next_ps, to) = match neighbour.state {
                State::Incomplete { asked, next_ps } => (asked, next_ps, None),
                State::Probe { asked, next_ps } => (asked, next_ps, Some(neighbour.mac)),
                State::Delay { until_ps } => (0, until_ps, Some(neighbour.mac)),
                State::Reachable { .. } | State::Stale => return true,
            };
            if next_ps > now_ps {
                return true;
            }
            if asked == MOST_REQUESTS {
                if !neighbour.waiting.is_empty() {
                    let waiting = std::mem::take(&mut neighbour.waiting);
                    due.push(Due::Drop(neighbour.port, waiting));
                }
                return false;
            }
            let (asked, next_ps) = (asked + 1, now_ps.saturating_add(RETRANSMIT_PS));
            neighbour.state = match to {
                None => State::Incomplete { asked, next_ps },
                Some(_) => State::Probe { asked, next_ps },
            };
            due.push(Due::Ask(address, neighbour.port, to));
            true
        });
        due
    }

    /// Empties the cache. Returns the number of packets that waited in it.
    pub(crate) fn forget(&mut self) -> u64 {
        let neighbours = std::mem::take(&mut self.by_address);
        neighbours.values().map(|it| it.waiting.len() as u64).sum()
    }

    /// Makes room for one more neighbour: if the cache is full, removes the least recently used of the neighbours in
    /// the states Reachable and Stale (RFC 4861, section 7.3.2). Returns false if the cache is full and no neighbour
    /// is in one of these two states.
    fn make_room(&mut self) -> bool {
        if self.by_address.len() < MOST_NEIGHBOURS {
            return true;
        }
        let idle = self.by_address.iter().filter(|(_, neighbour)| {
            matches!(neighbour.state, State::Reachable { .. } | State::Stale)
        });
        let oldest = idle.min_by_key(|(_, neighbour)| neighbour.used);
        match oldest.map(|(&address, _)| address) {
            Some(address) => self.by_address.remove(&address).is_some(),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests;
