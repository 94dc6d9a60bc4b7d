//! The replication engine's configuration: which copies a multicast group or a clone session asks for.

use crate::control::{CloneSession, MulticastGroup};
use std::collections::BTreeMap;

/// Groups and sessions of one switch.
#[derive(Clone, Debug, Default)]
pub struct Replication {
    groups: BTreeMap<u32, MulticastGroup>,
    sessions: BTreeMap<u32, CloneSession>,
}

impl Replication {
    /// A multicast group.
    pub fn group(&self, id: u32) -> Option<&MulticastGroup> {
        self.groups.get(&id)
    }

    /// A clone session.
    pub fn session(&self, id: u32) -> Option<&CloneSession> {
        self.sessions.get(&id)
    }

    /// All groups, by id.
    pub fn groups(&self) -> impl Iterator<Item = &MulticastGroup> {
        self.groups.values()
    }

    /// All sessions, by id.
    pub fn sessions(&self) -> impl Iterator<Item = &CloneSession> {
        self.sessions.values()
    }

    /// Sets or removes a group.
    pub fn put_group(&mut self, id: u32, group: Option<MulticastGroup>) {
        match group {
            Some(group) => self.groups.insert(id, group),
            None => self.groups.remove(&id),
        };
    }

    /// Sets or removes a session.
    pub fn put_session(&mut self, id: u32, session: Option<CloneSession>) {
        match session {
            Some(session) => self.sessions.insert(id, session),
            None => self.sessions.remove(&id),
        };
    }
}
