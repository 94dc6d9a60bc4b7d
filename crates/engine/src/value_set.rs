//! Parser value sets: a few members that the control plane lists, tried one after the other.

use ir::KeyMatch;

/// One value set.
#[derive(Clone, Debug)]
pub struct ValueSet {
    widths: Vec<u32>,
    members: Vec<Vec<KeyMatch>>,
}

impl ValueSet {
    /// Makes an empty set whose key fields have the declared widths.
    pub fn new(declared: &ir::ValueSet) -> ValueSet {
        ValueSet {
            widths: declared.widths.clone(),
            members: Vec::new(),
        }
    }

    /// Returns the members of the set, in the order in which they were set.
    pub fn members(&self) -> &[Vec<KeyMatch>] {
        &self.members
    }

    /// Replaces the members, and returns the former ones. Each member has one match per key field, of the field's
    /// width.
    pub fn set_members(&mut self, members: Vec<Vec<KeyMatch>>) -> Vec<Vec<KeyMatch>> {
        std::mem::replace(&mut self.members, members)
    }

    /// Returns true if a member matches a key, given as the limbs of each key field in turn.
    pub fn contains(&self, key: &[u64]) -> bool {
        self.members.iter().any(|member| {
            let mut at = 0;
            member.iter().zip(&self.widths).all(|(key_match, &width)| {
                let limbs = width.div_ceil(64) as usize;
                at += limbs;
                key_match.accepts(&key[at - limbs..at])
            })
        })
    }
}
