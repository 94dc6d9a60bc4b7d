//! The replication engine's configuration: the copies of a multicast group or a clone session.

use smallvec::SmallVec;
use std::collections::BTreeMap;

/// A copy that the replication engine makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
// Machine code reads it.
#[repr(C)]
pub struct Replica {
    /// Egress port.
    pub port: u32,
    /// The copy's `egress_rid`.
    pub rid: u16,
}

/// A multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastGroup {
    /// The value of `mcast_grp` that names it: 1 to 65535.
    pub group_id: u32,
    /// The copies, made in this order.
    pub replicas: Vec<Replica>,
}

/// A clone session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloneSession {
    /// The session's number in the program's `clone`.
    pub session_id: u32,
    /// The copies, made in this order.
    pub replicas: Vec<Replica>,
    /// The length in bytes to which a clone is cut when it is made, but headers are not cut; 0 keeps the whole
    /// packet.
    pub packet_length_bytes: u32,
    /// The clones' `priority`.
    pub class_of_service: u8,
}

/// The replicas of a group. Those of a group of two (1+1 protection) are stored in place, so that a packet waits for
/// one cache line instead of two.
pub type Replicas = SmallVec<[Replica; 2]>;

/// The multicast groups and clone sessions of one switch.
#[derive(Clone, Debug, Default)]
pub struct Replication {
    groups: BTreeMap<u32, MulticastGroup>,
    /// The replicas of each group whose number packets can name, by number.
    replicas: Vec<Replicas>,
    sessions: BTreeMap<u32, CloneSession>,
}

impl Replication {
    /// Returns the multicast group with this id, or `None` if there is no such group.
    pub fn group(&self, id: u32) -> Option<&MulticastGroup> {
        self.groups.get(&id)
    }

    /// Returns the replicas of a group, in order; an empty list if there is no such group.
    #[inline]
    pub fn replicas(&self, group: u32) -> &[Replica] {
        self.replicas.get(group as usize).map_or(&[], |r| r)
    }

    /// Moves the replicas of a group out, so that the switch can be changed while they are read.
    /// [`Replication::give_back`] must put them back. Returns an empty list if there is no such group.
    #[inline]
    pub fn take_replicas(&mut self, group: u32) -> Replicas {
        let replicas = self.replicas.get_mut(group as usize);
        replicas.map(std::mem::take).unwrap_or_default()
    }

    /// Puts back the replicas that [`Replication::take_replicas`] moved out.
    #[inline]
    pub fn give_back(&mut self, group: u32, replicas: Replicas) {
        if let Some(place) = self.replicas.get_mut(group as usize) {
            *place = replicas;
        }
    }

    /// Returns the clone session with this id, or `None` if there is no such session.
    pub fn session(&self, id: u32) -> Option<&CloneSession> {
        self.sessions.get(&id)
    }

    /// Returns all multicast groups, ordered by id.
    pub fn groups(&self) -> impl Iterator<Item = &MulticastGroup> {
        self.groups.values()
    }

    /// Returns all clone sessions, ordered by id.
    pub fn sessions(&self) -> impl Iterator<Item = &CloneSession> {
        self.sessions.values()
    }

    /// Sets the multicast group with this id, or removes it if `group` is `None`.
    pub fn put_group(&mut self, id: u32, group: Option<MulticastGroup>) {
        // A packet names a group with 16 bits.
        if let Ok(at) = u16::try_from(id).map(usize::from) {
            if self.replicas.len() <= at && group.is_some() {
                self.replicas.resize_with(at + 1, Replicas::new);
            }
            if let Some(replicas) = self.replicas.get_mut(at) {
                *replicas = group.iter().flat_map(|g| g.replicas.clone()).collect();
            }
        }
        match group {
            Some(group) => self.groups.insert(id, group),
            None => self.groups.remove(&id),
        };
    }

    /// Sets the clone session with this id, or removes it if `session` is `None`.
    pub fn put_session(&mut self, id: u32, session: Option<CloneSession>) {
        match session {
            Some(session) => self.sessions.insert(id, session),
            None => self.sessions.remove(&id),
        };
    }
}
