//! P4Runtime ids and aliases.
//!
//! The lower 24 bits of an id are Jenkins's one-at-a-time hash of the name, with linear probing in the order of the
//! names; ids given with `@id` are taken first. Kinds are numbered in the order of their first bytes.

use proto::p4info::p4_ids::Prefix;
use std::collections::{BTreeMap, BTreeSet};

/// Kinds of objects: the value is the first byte of the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Action = Prefix::Action as isize,
    Table = Prefix::Table as isize,
    ValueSet = Prefix::ValueSet as isize,
    ControllerHeader = Prefix::ControllerHeader as isize,
    ActionProfile = Prefix::ActionProfile as isize,
    Counter = Prefix::Counter as isize,
    DirectCounter = Prefix::DirectCounter as isize,
    Meter = Prefix::Meter as isize,
    DirectMeter = Prefix::DirectMeter as isize,
    Register = Prefix::Register as isize,
    Digest = Prefix::Digest as isize,
}

/// Why an `@id` cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdError {
    /// Its first byte is another kind's.
    Prefix,
    /// Another object has it.
    Twice,
}

/// The control-plane names of all objects, with their ids and aliases.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    names: BTreeMap<(Kind, String), Option<u32>>,
    taken: BTreeSet<u32>,
    suffixes: BTreeMap<String, u32>,
    known: BTreeSet<String>,
}

impl Symbols {
    /// Adds an object under its name; does nothing if its kind has the name already. `given` is the id that
    /// the program gives it with `@id`, with or without the first byte; with `None`, [`Symbols::assign`]
    /// chooses one.
    ///
    /// # Errors
    ///
    /// The given id has the first byte of another kind, or another object has it. The object is added without
    /// an id.
    pub fn add(&mut self, kind: Kind, name: &str, given: Option<u32>) -> Result<(), IdError> {
        if self.known.insert(name.to_string()) {
            for suffix in suffixes(name) {
                *self.suffixes.entry(suffix.to_string()).or_insert(0) += 1;
            }
        }
        let key = (kind, name.to_string());
        if self.names.contains_key(&key) {
            return Ok(());
        }
        let first = (kind as u32) << 24;
        let (id, result) = match given {
            Some(id) if id >> 24 != 0 && id & 0xff00_0000 != first => (None, Err(IdError::Prefix)),
            Some(id) if !self.taken.insert(id | first) => (None, Err(IdError::Twice)),
            Some(id) => (Some(id | first), Ok(())),
            None => (None, Ok(())),
        };
        self.names.insert(key, id);
        result
    }

    /// Returns whether an object of the kind `kind` was added under `name`.
    pub fn contains(&self, kind: Kind, name: &str) -> bool {
        self.names.contains_key(&(kind, name.to_string()))
    }

    /// Gives each object without an id one: the first byte is that of its kind, the other 24 bits are a hash
    /// of its name. If another object has that id, the next higher free one is taken.
    pub fn assign(&mut self) {
        for ((kind, name), id) in &mut self.names {
            if id.is_some() {
                continue;
            }
            let mut hash = one_at_a_time(name.as_bytes());
            loop {
                let candidate = (*kind as u32) << 24 | hash & 0x00ff_ffff;
                if self.taken.insert(candidate) {
                    *id = Some(candidate);
                    break;
                }
                hash = hash.wrapping_add(1);
            }
        }
    }

    /// Returns the id of the object of `kind` named `name`; 0 if no such object was added or it has no id yet.
    pub fn id(&self, kind: Kind, name: &str) -> u32 {
        self.names
            .get(&(kind, name.to_string()))
            .copied()
            .flatten()
            .unwrap_or(0)
    }

    /// Returns the alias of an object (P4Runtime): the shortest suffix of its name, in whole components
    /// between dots, that is a suffix of no other name; the whole name if there is no such suffix.
    pub fn alias(&self, name: &str) -> String {
        let mut all: Vec<&str> = suffixes(name).collect();
        all.reverse();
        let unique = all
            .iter()
            .find(|s| self.suffixes.get(**s).copied().unwrap_or(0) < 2);
        unique.copied().unwrap_or(name).to_string()
    }
}

/// Yields `name` and then its suffixes, each with one more component (up to a dot) removed from the front.
fn suffixes(name: &str) -> impl Iterator<Item = &str> {
    let starts = std::iter::once(0).chain(name.match_indices('.').map(|(i, _)| i + 1));
    starts.map(|i| &name[i..])
}

/// Computes Jenkins's one-at-a-time hash of `bytes`.
fn one_at_a_time(bytes: &[u8]) -> u32 {
    let mut hash = 0u32;
    for byte in bytes {
        hash = hash.wrapping_add(u32::from(*byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// Returns the ids of an object's members, such as the parameters of an action. `given` has the id that `@id`
/// gives to each, or `None`. The others get the lowest free numbers from 1 on, in order; a member with a
/// given id also uses up one number.
///
/// # Errors
///
/// The position and the value of an id that is 0 or given twice.
pub(crate) fn member_ids(given: &[Option<u32>]) -> Result<Vec<u32>, (usize, u32)> {
    let mut taken = BTreeSet::new();
    for (i, id) in given.iter().enumerate() {
        if let Some(id) = id
            && (*id == 0 || !taken.insert(*id))
        {
            return Err((i, *id));
        }
    }
    let mut next = 1u32;
    let mut ids = Vec::new();
    for id in given {
        if let Some(id) = id {
            ids.push(*id);
            next += 1;
            continue;
        }
        while !taken.insert(next) {
            next += 1;
        }
        ids.push(next);
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_action_has_its_well_known_id() {
        let mut symbols = Symbols::default();
        symbols
            .add(Kind::Action, "NoAction", None)
            .expect("no id given");
        symbols.assign();
        assert_eq!(symbols.id(Kind::Action, "NoAction"), 21_257_015);
    }

    #[test]
    fn aliases_are_shortest_unique_suffixes() {
        let mut symbols = Symbols::default();
        for name in ["ingress.a.t", "ingress.b.t", "egress.u", "t"] {
            symbols.add(Kind::Table, name, None).expect("no id given");
        }
        assert_eq!(symbols.alias("ingress.a.t"), "a.t");
        assert_eq!(symbols.alias("egress.u"), "u");
        assert_eq!(symbols.alias("t"), "t");
    }

    #[test]
    fn given_ids_get_their_first_byte_and_are_checked() {
        let mut symbols = Symbols::default();
        assert_eq!(symbols.add(Kind::Table, "a", Some(7)), Ok(()));
        assert_eq!(
            symbols.add(Kind::Table, "b", Some(0x0200_0007)),
            Err(IdError::Twice)
        );
        assert_eq!(
            symbols.add(Kind::Table, "c", Some(0x0100_0001)),
            Err(IdError::Prefix)
        );
        symbols.assign();
        assert_eq!(symbols.id(Kind::Table, "a"), 0x0200_0007);
    }

    #[test]
    fn member_ids_count_around_given_ones() {
        assert_eq!(member_ids(&[None, Some(1), None]), Ok(vec![2, 1, 3]));
        assert_eq!(member_ids(&[Some(2), Some(2)]), Err((1, 2)));
    }
}
